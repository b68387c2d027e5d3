//! Stand-ins for the calls of Linux on other systems, of the same form: nearly each is refused with ENOSYS.
//!
//! Everything builds against them, so that commands that read work there. A command that measures
//! is refused before it comes here.

use std::io::Read;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::net::{SendFlags, SocketFlags};
use rustix::path::Arg;
use rustix::process::{Gid, Pid, Resource, Rlimit, Signal, Uid};
use rustix::time::{ClockId, Timespec};

use crate::error::SysError;

#[cfg(not(target_vendor = "apple"))]
pub const O_PATH: OFlags = OFlags::PATH;
#[cfg(target_vendor = "apple")]
pub const O_PATH: OFlags = OFlags::RDONLY;
pub const BOOT_CLOCK: ClockId = ClockId::Monotonic;
pub const NONBLOCKING_SOCKET: SocketFlags = SocketFlags::empty();
pub const WITHOUT_SIGNAL: SendFlags = SendFlags::empty();

/// Flags by name; they mean nothing here.
macro_rules! flags {
    ($name:ident: $($flag:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(u64);

        impl $name {
            $(pub const $flag: Self = Self(0);)*

            pub const fn empty() -> Self {
                Self(0)
            }

            pub const fn from_bits_retain(bits: u64) -> Self {
                Self(bits)
            }

            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

flags!(MemfdFlags: CLOEXEC);
flags!(ResolveFlags: BENEATH NO_SYMLINKS IN_ROOT NO_MAGICLINKS);
flags!(PidfdFlags: NONBLOCK);
flags!(TimerfdFlags: CLOEXEC);
flags!(TimerfdTimerFlags: ABSTIME);
flags!(CapabilitySet: SYS_ADMIN);

pub mod epoll {
    //! epoll(7).

    use super::{AsFd, Errno, OwnedFd, Result};
    use rustix::buffer::Buffer;
    use rustix::event::Timespec;

    flags!(CreateFlags: CLOEXEC);
    flags!(EventFlags: IN OUT RDHUP HUP ERR ET);

    #[derive(Debug, Clone, Copy)]
    pub struct EventData(u64);

    impl EventData {
        pub const fn new_u64(value: u64) -> Self {
            Self(value)
        }

        pub const fn u64(self) -> u64 {
            self.0
        }
    }

    #[derive(Debug, Clone, Copy)]
    pub struct Event {
        pub flags: EventFlags,
        pub data: EventData,
    }

    pub fn create(_: CreateFlags) -> Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    pub fn add(_: impl AsFd, _: impl AsFd, _: EventData, _: EventFlags) -> Result<()> {
        Err(Errno::NOSYS)
    }

    pub fn wait<B: Buffer<Event>>(_: impl AsFd, _: B, _: Option<&Timespec>) -> Result<B::Output> {
        Err(Errno::NOSYS)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSet;

impl CpuSet {
    pub const MAX_CPU: usize = 0;

    pub const fn new() -> Self {
        Self
    }

    pub fn set(&mut self, _: usize) {}

    pub const fn is_set(&self, _: usize) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Itimerspec {
    pub it_interval: Timespec,
    pub it_value: Timespec,
}

#[derive(Debug, Clone, Copy)]
pub enum Advice {
    DontNeed,
}

#[derive(Debug, Clone, Copy)]
pub enum TimerfdClockId {
    Monotonic,
}

#[derive(Debug, Clone, Copy)]
pub struct CapabilitySets {
    pub effective: CapabilitySet,
    pub permitted: CapabilitySet,
    pub inheritable: CapabilitySet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkNameSpaceType {
    ControlGroup,
    HostNameAndNISDomainName,
    InterProcessCommunication,
    Mount,
    Network,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkSide {
    Parent(Pid),
    Child,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Namespaces {
    pub user: bool,
    pub pid: bool,
    pub mount: bool,
    pub ipc: bool,
    pub uts: bool,
    pub net: bool,
}

/// Not refused: every system has this file.
pub fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

fn refuse<T>(call: &str) -> std::result::Result<T, SysError> {
    Err(SysError::Call {
        call: call.to_owned(),
        errno: Errno::NOSYS,
    })
}

pub fn close_on_exec_from(_: u32) -> std::result::Result<(), SysError> {
    refuse("close_range")
}

pub fn fork() -> std::result::Result<ForkSide, SysError> {
    refuse("fork")
}

pub fn set_interface_up(_: &str) -> std::result::Result<(), SysError> {
    refuse("ioctl(SIOCSIFFLAGS)")
}

pub fn new_session_keyring() -> std::result::Result<(), SysError> {
    refuse("keyctl")
}

pub fn unshare(_: Namespaces) -> std::result::Result<(), SysError> {
    refuse("unshare")
}

pub fn run_at_once() -> std::result::Result<(), SysError> {
    refuse("sched_setscheduler")
}

pub fn default_signals() {}

pub fn fadvise(_: impl AsFd, _: u64, _: Option<NonZeroU64>, _: Advice) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn getxattr(_: impl Arg, _: impl Arg, _: &mut [u8]) -> Result<usize> {
    Err(Errno::NOSYS)
}

pub fn timerfd_create(_: TimerfdClockId, _: TimerfdFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub fn timerfd_settime(_: impl AsFd, _: TimerfdTimerFlags, _: &Itimerspec) -> Result<Itimerspec> {
    Err(Errno::NOSYS)
}

pub fn memfd_create(_: impl Arg, _: MemfdFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub fn openat2(_: impl AsFd, _: impl Arg, _: OFlags, _: Mode, _: ResolveFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub fn pidfd_open(_: Pid, _: PidfdFlags) -> Result<OwnedFd> {
    Err(Errno::NOSYS)
}

pub fn pidfd_send_signal(_: impl AsFd, _: Signal) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn prlimit(_: Option<Pid>, _: Resource, _: Rlimit) -> Result<Rlimit> {
    Err(Errno::NOSYS)
}

pub fn set_parent_process_death_signal(_: Option<Signal>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn capabilities(_: Option<Pid>) -> Result<CapabilitySets> {
    Err(Errno::NOSYS)
}

pub fn set_capabilities(_: Option<Pid>, _: CapabilitySets) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn configure_capability_in_ambient_set(_: CapabilitySet, _: bool) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn move_into_link_name_space(_: BorrowedFd<'_>, _: Option<LinkNameSpaceType>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn sched_getaffinity(_: Option<Pid>) -> Result<CpuSet> {
    Err(Errno::NOSYS)
}

pub fn sched_setaffinity(_: Option<Pid>, _: &CpuSet) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn set_current_timer_slack(_: Option<NonZeroU64>) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn set_thread_groups(_: &[Gid]) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn set_thread_res_gid(
    _: impl Into<Option<Gid>>,
    _: impl Into<Option<Gid>>,
    _: impl Into<Option<Gid>>,
) -> Result<()> {
    Err(Errno::NOSYS)
}

pub fn set_thread_res_uid(
    _: impl Into<Option<Uid>>,
    _: impl Into<Option<Uid>>,
    _: impl Into<Option<Uid>>,
) -> Result<()> {
    Err(Errno::NOSYS)
}
