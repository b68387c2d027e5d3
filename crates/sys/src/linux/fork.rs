//! fork for a process with one thread.

use rustix::process::Pid;

use crate::error::SysError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkSide {
    Parent(Pid),
    Child,
}

/// fork(2), for a process with exactly one thread: the child may then do whatever its parent
/// could, allocate included.
/// Errors: [`SysError::Threads`] when there are more threads, [`SysError::Call`] when the kernel
/// refuses.
pub fn fork() -> Result<ForkSide, SysError> {
    let threads = thread_count()?;
    if threads != 1 {
        return Err(SysError::Threads { threads });
    }
    // SAFETY: fork is unsafe where another thread may hold a lock (signal-safety(7)): the copy of
    // that lock would stay held in the child. There is no other thread: this one was just counted
    // alone, and only a running thread can start one.
    let pid = unsafe { libc::fork() };
    match pid {
        0 => Ok(ForkSide::Child),
        pid => Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(ForkSide::Parent)
            .ok_or_else(|| SysError::from_last_errno("fork")),
    }
}

fn thread_count() -> Result<usize, SysError> {
    let failed = |error: std::io::Error| SysError::Call {
        call: "reading /proc/self/task to count threads".to_owned(),
        errno: error
            .raw_os_error()
            .map_or(rustix::io::Errno::IO, rustix::io::Errno::from_raw_os_error),
    };
    Ok(std::fs::read_dir("/proc/self/task")
        .map_err(failed)?
        .count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_not_forked() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || held.recv());
        let refused = fork();
        assert!(
            matches!(refused, Err(SysError::Threads { threads }) if threads >= 2),
            "{refused:?}"
        );
        drop(hold);
        assert!(other.join().is_ok());
    }
}
