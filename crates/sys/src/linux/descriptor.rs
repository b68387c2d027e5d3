//! Close-on-exec for every descriptor that a program must not inherit.

use rustix::io::{Errno, FdFlags};

use crate::error::SysError;

/// Marks every open descriptor from `first` on close-on-exec. They stay open in this process.
/// Errors: What the kernel says; on kernels before 5.11 it goes through /proc/self/fd.
pub fn close_on_exec_from(first: u32) -> Result<(), SysError> {
    // SAFETY: with CLOSE_RANGE_CLOEXEC nothing is closed, only a flag is set: no owner of a
    // descriptor loses it. Source: close_range(2), since Linux 5.11.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if done == 0 {
        return Ok(());
    }
    match SysError::from_last_errno("close_range") {
        SysError::Call {
            errno: Errno::NOSYS | Errno::INVAL,
            ..
        } => one_by_one(first),
        error => Err(error),
    }
}

fn one_by_one(first: u32) -> Result<(), SysError> {
    let failed = |errno| SysError::Call {
        call: "setting close-on-exec on the entries of /proc/self/fd".to_owned(),
        errno,
    };
    let entries = std::fs::read_dir("/proc/self/fd").map_err(|_| failed(Errno::NOENT))?;
    let numbers: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| u32::try_from(*number).is_ok_and(|n| n >= first))
        .collect();
    for number in numbers {
        // SAFETY: the number is not negative, and the borrow does not outlive this statement. It
        // may have been closed since (the directory's own descriptor was): that gives EBADF.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        match rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn is_close_on_exec(fd: impl AsFd) -> bool {
        rustix::io::fcntl_getfd(fd).is_ok_and(|flags| flags.contains(FdFlags::CLOEXEC))
    }

    // dup without the flag, numbered so high that no other test's descriptor is meant.
    fn inheritable(at_least: i32) -> std::os::fd::OwnedFd {
        let high = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), at_least);
        let high = high.expect("stderr is open");
        rustix::io::fcntl_setfd(&high, FdFlags::empty()).expect("it was just opened");
        high
    }

    #[test]
    fn descriptors_from_the_first_on_are_marked_by_both_ways() {
        let (low, high) = (inheritable(700), inheritable(800));
        assert_eq!(close_on_exec_from(800), Ok(()));
        assert!(!is_close_on_exec(&low) && is_close_on_exec(&high));
        rustix::io::fcntl_setfd(&high, FdFlags::empty()).expect("it is open");
        assert_eq!(one_by_one(800), Ok(()));
        assert!(!is_close_on_exec(&low) && is_close_on_exec(&high));
    }
}
