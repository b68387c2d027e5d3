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

            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
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

/// Calls of this crate.
macro_rules! refused_call {
    ($($name:ident($($argument:ty),*) -> $result:ty: $call:literal;)*) => {
        $(pub fn $name($(_: $argument),*) -> std::result::Result<$result, SysError> {
            Err(SysError::Call {
                call: $call.to_owned(),
                errno: Errno::NOSYS,
            })
        })*
    };
}

refused_call! {
    close_on_exec_from(u32) -> (): "close_range";
    fork() -> ForkSide: "fork";
    set_interface_up(&str) -> (): "ioctl(SIOCSIFFLAGS)";
    new_session_keyring() -> (): "keyctl";
    unshare(Namespaces) -> (): "unshare";
    run_at_once() -> (): "sched_setscheduler";
}

pub fn default_signals() {}

/// Calls that rustix offers on Linux only.
macro_rules! without_call {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        $(pub fn $name($(_: $argument),*) -> Result<$result> {
            Err(Errno::NOSYS)
        })*
    };
}

without_call! {
    fadvise(impl AsFd, u64, Option<NonZeroU64>, Advice) -> ();
    getxattr(impl Arg, impl Arg, &mut [u8]) -> usize;
    timerfd_create(TimerfdClockId, TimerfdFlags) -> OwnedFd;
    timerfd_settime(impl AsFd, TimerfdTimerFlags, &Itimerspec) -> Itimerspec;
    memfd_create(impl Arg, MemfdFlags) -> OwnedFd;
    openat2(impl AsFd, impl Arg, OFlags, Mode, ResolveFlags) -> OwnedFd;
    pidfd_open(Pid, PidfdFlags) -> OwnedFd;
    pidfd_send_signal(impl AsFd, Signal) -> ();
    prlimit(Option<Pid>, Resource, Rlimit) -> Rlimit;
    set_parent_process_death_signal(Option<Signal>) -> ();
    capabilities(Option<Pid>) -> CapabilitySets;
    set_capabilities(Option<Pid>, CapabilitySets) -> ();
    configure_capability_in_ambient_set(CapabilitySet, bool) -> ();
    move_into_link_name_space(BorrowedFd<'_>, Option<LinkNameSpaceType>) -> ();
    sched_getaffinity(Option<Pid>) -> CpuSet;
    sched_setaffinity(Option<Pid>, &CpuSet) -> ();
    set_current_timer_slack(Option<NonZeroU64>) -> ();
    set_thread_groups(&[Gid]) -> ();
    set_thread_res_gid(impl Into<Option<Gid>>, impl Into<Option<Gid>>, impl Into<Option<Gid>>) -> ();
    set_thread_res_uid(impl Into<Option<Uid>>, impl Into<Option<Uid>>, impl Into<Option<Uid>>) -> ();
}
