//! A running JVM as /proc shows it: what attaching and reading its counters need.
//!
//! Reads /proc/PID/status only. Facts: proc_pid_status(5); HotSpot keeps its files in /tmp of its
//! own mount namespace, whatever `java.io.tmpdir` says (os_linux.cpp).

use std::path::{Path, PathBuf};

/// A process that cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// /proc cannot be read: it has ended, or is not ours.
    #[error(
        "process {pid}: {path}: {source}\nhint: it has ended, or loadline may not look at it (run as root or as its user)"
    )]
    Unreadable {
        /// The process.
        pid: u32,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file lacks a line.
    #[error("process {pid}: /proc/{pid}/status has no {field}")]
    Field {
        /// The process.
        pid: u32,
        /// The line's name.
        field: &'static str,
    },
}

/// What /proc/PID/status says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id as loadline sees it.
    pub pid: u32,
    /// Its id as it sees itself, in its own PID namespace.
    pub inner_pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// It has a handler for SIGQUIT; without one the signal kills it.
    pub catches_quit: bool,
}

/// SIGQUIT is signal 3; the mask's lowest bit is signal 1.
const QUIT_BIT: u64 = 1 << 2;

impl Process {
    /// Looks at a process.
    ///
    /// # Errors
    /// When it has ended or may not be read.
    pub fn of(pid: u32) -> Result<Self, ProcessError> {
        let path = PathBuf::from(format!("/proc/{pid}/status"));
        let text = std::fs::read_to_string(&path).map_err(|source| ProcessError::Unreadable {
            pid,
            path,
            source,
        })?;
        Self::parse(pid, &text)
    }

    fn parse(pid: u32, status: &str) -> Result<Self, ProcessError> {
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
        })
    }

    /// Its /tmp, reached through its root directory.
    pub fn temporary_directory(&self) -> PathBuf {
        Path::new("/proc")
            .join(self.pid.to_string())
            .join("root/tmp")
    }

    /// Its working directory.
    pub(crate) fn working_directory(&self) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join("cwd")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_a_process_in_a_container() {
        let status = "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\nGid:\t10\t11\t10\t10\n\
                      NSpid:\t4711\t7\nSigCgt:\t2000000181005ccf\n";
        let process = Process::parse(4711, status).unwrap();
        assert_eq!((process.inner_pid, process.uid, process.gid), (7, 1001, 11));
        assert!(process.catches_quit);
        let early = status.replace("2000000181005ccf", "0000000000000000");
        assert!(!Process::parse(4711, &early).unwrap().catches_quit);
        assert!(Process::parse(4711, "Name:\tjava\n").is_err());
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let me = Process::of(std::process::id()).unwrap();
        assert_eq!(me.pid, std::process::id());
        assert!(me.temporary_directory().is_dir());
    }
}
