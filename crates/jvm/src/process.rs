//! A running JVM as /proc shows it: the data needed to attach and to read its counters.
//!
//! Owns access to it: one descriptor of /proc/PID, so that every later request reaches the same
//! process, even if its id has been reused. Facts: proc_pid_status(5); pidfd_send_signal(2), which
//! takes that descriptor; HotSpot keeps its files in /tmp of its own mount namespace, whatever
//! `java.io.tmpdir` says (os_linux.cpp).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use loadline_sys::{O_PATH, ResolveFlags, openat2, pidfd_send_signal};
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::beneath;

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("process {pid}: {path}: {source}")]
    Unreadable {
        pid: u32,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("process {pid}: /proc/{pid}/status has no {field}")]
    Field { pid: u32, field: &'static str },
}

impl ProcessError {
    pub fn process_hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { .. } => {
                Some("it has exited, or loadline may not inspect it (run as root or as its user)")
            }
            Self::Field { .. } => None,
        }
    }
}

#[derive(Debug)]
pub struct JvmProcess {
    pub pid: u32,
    /// Its id as it sees itself, in its own PID namespace.
    pub inner_pid: u32,
    pub uid: u32,
    pub gid: u32,
    /// It has a handler for SIGQUIT; without one the signal kills it.
    pub catches_quit: bool,
    directory: OwnedFd,
}

/// Directories are opened for traversal only: they need not be readable.
const WAY: OFlags = O_PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// SIGQUIT is signal 3; the mask's lowest bit is signal 1.
const QUIT_BIT: u64 = 1 << 2;

impl JvmProcess {
    pub fn for_pid(pid: u32) -> Result<Self, ProcessError> {
        let path = PathBuf::from(format!("/proc/{pid}"));
        let looked = || -> io::Result<(OwnedFd, String)> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = openat(CWD, &path, flags, Mode::empty())?;
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let mut status = File::from(openat(&directory, "status", flags, Mode::empty())?);
            let mut text = String::new();
            status.read_to_string(&mut text)?;
            Ok((directory, text))
        };
        let unreadable = |source| ProcessError::Unreadable {
            pid,
            path: path.join("status"),
            source,
        };
        let (directory, text) = looked().map_err(unreadable)?;
        Self::from_status(pid, directory, &text)
    }

    fn from_status(pid: u32, directory: OwnedFd, status: &str) -> Result<Self, ProcessError> {
        let field = |field: &'static str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            line.ok_or(ProcessError::Field { pid, field })
        };
        // Real, effective, saved, file system.
        let effective = |name: &'static str| {
            let word = field(name)?.split_whitespace().nth(1);
            let number = word.and_then(|word| word.parse().ok());
            number.ok_or(ProcessError::Field { pid, field: name })
        };
        // One id for each namespace, the innermost last. Kernels before 4.1 have no such line.
        let inner_pid = field("NSpid:")
            .ok()
            .and_then(|ids| ids.split_whitespace().next_back()?.parse().ok())
            .unwrap_or(pid);
        let caught =
            u64::from_str_radix(field("SigCgt:")?.trim(), 16).map_err(|_| ProcessError::Field {
                pid,
                field: "SigCgt:",
            })?;
        Ok(Self {
            pid,
            inner_pid,
            uid: effective("Uid:")?,
            gid: effective("Gid:")?,
            catches_quit: caught & QUIT_BIT != 0,
            directory,
        })
    }

    pub fn read(&self, path: &Path, cap: u64) -> io::Result<Vec<u8>> {
        let root = openat(&self.directory, "root", WAY, Mode::empty())?;
        beneath::read(beneath::open_in_root(root, path)?, cap)
    }

    /// Its /tmp, as it sees it: a link on the way leads where it leads for the process, never out
    /// of its root directory.
    /// Errors: When it has ended, is not ours, or has no /tmp.
    pub fn temporary_directory(&self) -> io::Result<OwnedFd> {
        let root = openat(&self.directory, "root", WAY, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(root, "tmp", WAY, Mode::empty(), resolve)?)
    }

    pub(crate) fn working_directory(&self) -> io::Result<OwnedFd> {
        Ok(openat(&self.directory, "cwd", WAY, Mode::empty())?)
    }

    pub(crate) fn send_sigquit(&self) -> io::Result<()> {
        let signal = rustix::process::Signal::QUIT;
        Ok(pidfd_send_signal(&self.directory, signal)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_process_in_a_container() {
        let status = "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\nGid:\t10\t11\t10\t10\n\
                      NSpid:\t4711\t7\nSigCgt:\t2000000181005ccf\n";
        let parse = |status: &str| {
            let directory = File::open("/proc/self").expect("a directory");
            JvmProcess::from_status(4711, directory.into(), status)
        };
        let process = parse(status).unwrap();
        assert_eq!((process.inner_pid, process.uid, process.gid), (7, 1001, 11));
        assert!(process.catches_quit);
        let early = status.replace("2000000181005ccf", "0000000000000000");
        assert!(!parse(&early).unwrap().catches_quit);
        assert!(parse("Name:\tjava\n").is_err());
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let me = JvmProcess::for_pid(std::process::id()).unwrap();
        assert_eq!(me.pid, std::process::id());
        let own = |directory: OwnedFd| rustix::fs::fstat(directory).unwrap().st_ino;
        let tmp = me.temporary_directory().map(own).unwrap();
        assert_eq!(tmp, own(File::open("/tmp").unwrap().into()));
        let here = me.working_directory().map(own).unwrap();
        assert_eq!(here, own(File::open(".").unwrap().into()));
    }

    #[test]
    fn a_process_that_has_ended_is_not_mistaken_for_the_next_one() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep is everywhere");
        let process = JvmProcess::for_pid(child.id()).expect("it runs");
        child.kill().expect("it is our child");
        child.wait().expect("it is our child");
        // Its id is free now: whoever gets it is not meant.
        let signalled = process.send_sigquit().expect_err("no such process");
        assert_eq!(signalled.raw_os_error(), Some(3), "ESRCH: {signalled}");
        assert!(process.temporary_directory().is_err());
    }
}
