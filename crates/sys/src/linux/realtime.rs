//! A thread that the scheduler lets run at once.

use crate::error::SysError;

/// Gives the calling thread the lowest real-time priority (SCHED_FIFO 1); threads and processes
/// that it starts do not inherit it. A thread that wakes up for microseconds then wakes up in time
/// also when every CPU is busy.
/// Errors: EPERM without CAP_SYS_NICE, and in a v1 cpu cgroup without real-time budget
/// (`cpu.rt_runtime_us`). Source: sched(7).
pub fn run_at_once() -> Result<(), SysError> {
    /// The kernel's `sched_param`, a number; a C library may have more in its own.
    #[repr(C)]
    struct SchedulerParameters {
        priority: libc::c_int,
    }
    let parameters = SchedulerParameters { priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // musl's function of this name refuses every call: the kernel is asked itself.
    // SAFETY: `parameters` is a live sched_param that the kernel only reads; 0 is this thread.
    let set = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            policy,
            &raw const parameters,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(SysError::from_last_errno("sched_setscheduler(SCHED_FIFO)")),
    }
}
