//! New namespaces for the calling thread.

use rustix::thread::UnshareFlags;

use crate::error::SysError;

/// Which namespaces to make. File descriptors are never unshared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Namespaces {
    /// Users: the kernel refuses it to a process with several threads.
    pub user: bool,
    /// Process ids: the next child is PID 1 there; the caller stays where it is.
    pub pid: bool,
    pub mount: bool,
    pub ipc: bool,
    pub uts: bool,
    pub net: bool,
}

impl Namespaces {
    fn unshare_flags(self) -> UnshareFlags {
        let mut flags = UnshareFlags::empty();
        flags.set(UnshareFlags::NEWUSER, self.user);
        flags.set(UnshareFlags::NEWPID, self.pid);
        flags.set(UnshareFlags::NEWNS, self.mount);
        flags.set(UnshareFlags::NEWIPC, self.ipc);
        flags.set(UnshareFlags::NEWUTS, self.uts);
        flags.set(UnshareFlags::NEWNET, self.net);
        flags
    }
}

/// unshare(2): moves the calling thread into new namespaces.
/// Errors: What the kernel says: EPERM without the right, ENOSPC at a limit of namespaces, EINVAL
/// for `user` with several threads.
pub fn unshare(namespaces: Namespaces) -> Result<(), SysError> {
    // SAFETY: the call is unsafe only for CLONE_FILES, which would give this thread a private
    // descriptor table; `Namespaces` cannot express it.
    let done = unsafe { rustix::thread::unshare_unsafe(namespaces.unshare_flags()) };
    done.map_err(|errno| SysError::Call {
        call: format!("unshare({namespaces:?})"),
        errno,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_never_unshared() {
        let all = Namespaces {
            user: true,
            pid: true,
            mount: true,
            ipc: true,
            uts: true,
            net: true,
        };
        assert!(!all.unshare_flags().contains(UnshareFlags::FILES));
        assert_eq!(all.unshare_flags().iter().count(), 6);
    }

    #[test]
    fn a_user_namespace_is_refused_to_a_process_with_threads() {
        // Source: unshare(2), EINVAL. The test harness itself has threads.
        let refused = std::thread::spawn(|| {
            unshare(Namespaces {
                user: true,
                ..Namespaces::default()
            })
        });
        let error = refused.join().ok().and_then(Result::err);
        let errno = error.and_then(|e| e.errno());
        assert!(
            matches!(
                errno,
                Some(rustix::io::Errno::INVAL | rustix::io::Errno::PERM | rustix::io::Errno::NOSPC)
            ),
            "{errno:?}"
        );
    }
}
