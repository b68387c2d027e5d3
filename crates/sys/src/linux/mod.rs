//! The calls themselves, and those of rustix that only Linux has.

mod descriptor;
mod fork;
mod interface;
mod keyring;
mod namespace;
mod realtime;
mod signal;

pub use descriptor::close_on_exec_from;
pub use fork::{ForkSide, fork};
pub use interface::set_interface_up;
pub use keyring::new_session_keyring;
pub use namespace::{Namespaces, unshare};
pub use realtime::run_at_once;
pub use signal::default_signals;

pub use rustix::event::epoll;
pub use rustix::fs::{Advice, MemfdFlags, ResolveFlags, fadvise, getxattr, memfd_create, openat2};
pub use rustix::process::{
    PidfdFlags, pidfd_open, pidfd_send_signal, prlimit, set_parent_process_death_signal,
};
pub use rustix::thread::{
    CapabilitySet, CpuSet, LinkNameSpaceType, capabilities, configure_capability_in_ambient_set,
    move_into_link_name_space, sched_getaffinity, sched_setaffinity, set_capabilities,
    set_current_timer_slack, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

pub use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::error::SysError;
use rustix::fs::OFlags;
use rustix::net::{SendFlags, SocketFlags};
use rustix::time::ClockId;

/// Fills at most 256 bytes with the kernel's random numbers: more may come in parts.
/// Errors: What the kernel says. Source: getrandom(2).
pub fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    let wanted = bytes.len();
    match rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())? {
        filled if filled == wanted => Ok(()),
        _ => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

/// It goes on in suspend.
pub const BOOT_CLOCK: ClockId = ClockId::Boottime;
/// A descriptor that names a file without opening it.
pub const O_PATH: OFlags = OFlags::PATH;
pub const NONBLOCKING_SOCKET: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
/// A send to a closed connection is an error, not a signal.
pub const WITHOUT_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

impl SysError {
    pub(crate) fn from_last_errno(call: impl Into<String>) -> Self {
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(rustix::io::Errno::IO, rustix::io::Errno::from_raw_os_error);
        Self::Call {
            call: call.into(),
            errno,
        }
    }
}
