//! The system calls that an application may not use.
//!
//! Owns the list and its seccomp(2) filter. An application without a capability could still make a
//! user namespace and have every capability inside it, which opens much of the kernel to it; it
//! could use the keys of its account, and load programs into the kernel if a machine allows that
//! for all. Refused calls give EPERM, as in containers. Source of the list: the calls that the
//! profile of container engines (moby, `profiles/seccomp/default.json`) always refuses, or allows
//! only with a capability that the application lacks.

use std::collections::BTreeMap;

use libc::{c_long, c_ulong};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::error::InitError;

const REFUSED: [c_long; 41] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Namespaces of every kind. Source: clone(2).
const NEW_NAMESPACES: libc::c_int = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

/// The kinds of namespaces one by one: a rule compares bits under a mask with one value.
const NAMESPACE_BITS: u32 = 32;

/// Puts the filter around this process and all that it starts, for good. It must not be able to gain
/// rights any more (`no_new_privs`).
pub fn install_filter() -> Result<(), InitError> {
    // The flags of clone3 are in memory, which a filter cannot read. On ENOSYS the C library falls
    // back to clone, with its flags in a register.
    apply_filter(denied_calls()?, libc::EPERM)?;
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply_filter(clone3, libc::ENOSYS)
}

/// What a process may be for the kernel, where it asks: Linux, that of 32 bits, with the name of an old one,
/// or what it is. The others turn protections of its memory off.
const PERSONALITIES: [u64; 5] = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// The calls, and what of `clone`, `personality` and `socket`: vsock(7), the way to the hypervisor and its
/// other guests, knows no network namespace.
fn denied_calls() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, InitError> {
    let mut rules: BTreeMap<_, _> = REFUSED.map(|call| (call, Vec::new())).into();
    let mut clone = Vec::new();
    for bit in (0..NAMESPACE_BITS).map(|bit| 1 << bit) {
        let flag = c_ulong::from(NEW_NAMESPACES.unsigned_abs() & bit);
        if flag != 0 {
            let operator = SeccompCmpOp::MaskedEq(flag);
            let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, operator, flag);
            let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
            clone.push(rule.map_err(filter_error)?);
        }
    }
    rules.insert(libc::SYS_clone, clone);
    let vsock = libc::AF_VSOCK.unsigned_abs().into();
    let machine = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, vsock);
    let machine = machine.and_then(|condition| SeccompRule::new(vec![condition]));
    rules.insert(libc::SYS_socket, vec![machine.map_err(filter_error)?]);
    let others = PERSONALITIES.map(|known| {
        let operator = SeccompCmpOp::Ne;
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, known)
    });
    let others = others.into_iter().collect::<Result<Vec<_>, _>>();
    let others = others.and_then(SeccompRule::new).map_err(filter_error)?;
    rules.insert(libc::SYS_personality, vec![others]);
    // The same calls by the numbers of the x32 interface, which a kernel may also offer.
    #[cfg(target_arch = "x86_64")]
    {
        const X32: c_long = 0x4000_0000;
        let x32: Vec<_> = rules.iter().map(|(c, r)| (c | X32, r.clone())).collect();
        rules.extend(x32);
    }
    Ok(rules)
}

fn apply_filter(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    errno: libc::c_int,
) -> Result<(), InitError> {
    let here = std::env::consts::ARCH.try_into().map_err(filter_error)?;
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, here);
    let program: seccompiler::BpfProgram =
        filter.and_then(TryInto::try_into).map_err(filter_error)?;
    seccompiler::apply_filter(&program).map_err(|error| InitError::Filter(error.to_string()))
}

fn filter_error(error: seccompiler::BackendError) -> InitError {
    InitError::Filter(error.to_string())
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn namespaces_are_refused_and_threads_are_not() {
        // A separate thread: a filter cannot be removed.
        let seen = std::thread::spawn(|| {
            rustix::thread::set_no_new_privs(true).expect("always allowed");
            install_filter().expect("the kernel has seccomp");
            // Without the filter it is EINVAL: this process has threads.
            let namespace = loadline_sys::unshare(loadline_sys::Namespaces {
                user: true,
                ..Default::default()
            });
            let errno = namespace.err().and_then(|error| error.errno());
            let is_thread = std::thread::spawn(|| 7).join().is_ok_and(|n| n == 7);
            let child = std::process::Command::new("/bin/true").status();
            let made = |s: std::io::Result<std::process::ExitStatus>| s.is_ok_and(|s| s.success());
            (errno, is_thread, made(child))
        });
        let seen = seen.join().expect("a thread");
        assert_eq!(seen, (Some(Errno::PERM), true, true));
    }
}
