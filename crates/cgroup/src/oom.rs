//! Learning of an OOM kill the moment it happens, instead of at the next sample.
//!
//! v1: an eventfd registered through cgroup.event_control (cgroup-v1/memory.rst, "OOM Control").
//! v2: memory.events wakes a poll for POLLPRI when it changes (cgroup-v2.rst). On v1 the kernel
//! kills one process only; the caller kills the rest, as memory.oom.group does on v2.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::error::CgroupError;
use crate::file;
use crate::group::ControlGroup;
use crate::layout::{CgroupVersion, Controller};
use crate::sample::oom_kill;

/// v1 signals that memory is out before it kills and counts: the count is looked at so often...
const COUNT_POLL: Duration = Duration::from_millis(1);

/// ... and for so long before the next sleep. A group that is over its limit may also be saved by
/// reclaim, and then no kill follows.
const COUNT_GRACE: Duration = Duration::from_millis(500);

/// Once memory was out, the count is looked at so often: the kill may come later than the grace.
const COUNT_AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct OomWatch {
    count: PathBuf,
    seen: u64,
    wake: WakeSource,
}

#[derive(Debug)]
enum WakeSource {
    /// v1: becomes readable.
    Event(OwnedFd),
    /// v2: memory.events, gets POLLPRI.
    Events(File),
}

impl ControlGroup {
    /// Watches for OOM kills from now on.
    /// Errors: No memory controller, a group that is gone, a kernel without notification.
    pub fn oom_watch(&self) -> Result<OomWatch, CgroupError> {
        let Some((version, dir)) = self.controller_dir(Controller::Memory) else {
            return Err(CgroupError::NoController {
                controller: Controller::Memory,
                what: "watching for OOM kills",
                hint: "`loadline doctor` shows which controllers are there".to_owned(),
            });
        };
        let (count, wake) = match version {
            CgroupVersion::V1 => {
                let count = dir.join("memory.oom_control");
                let control =
                    File::open(&count).map_err(|e| CgroupError::for_file("open", &count, e))?;
                let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|e| CgroupError::for_file("watch", &count, e))?;
                let order = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
                file::write(&dir.join("cgroup.event_control"), &order)?;
                (count, WakeSource::Event(event))
            }
            CgroupVersion::V2 => {
                let count = dir.join("memory.events");
                let events =
                    File::open(&count).map_err(|e| CgroupError::for_file("open", &count, e))?;
                (count, WakeSource::Events(events))
            }
        };
        let mut watch = OomWatch {
            count,
            seen: 0,
            wake,
        };
        watch.seen = watch.kills()?;
        Ok(watch)
    }
}

impl OomWatch {
    /// Waits until the kernel has killed in the group, or the time is over. `true`: it has, since
    /// the watch began or this last said so.
    /// Errors: A group that is gone.
    pub fn wait_for_kill(&mut self, timeout: Duration) -> Result<bool, CgroupError> {
        let end = Instant::now() + timeout;
        let mut grace_end: Option<Instant> = None;
        loop {
            // Counted before the sleep as well: what came between two calls must not be missed.
            let kills = self.kills()?;
            if kills > self.seen {
                self.seen = kills;
                return Ok(true);
            }
            let now = Instant::now();
            if now >= end {
                return Ok(false);
            }
            let longest = grace_end.map_or(timeout, |_| COUNT_AGAIN);
            if grace_end.is_some_and(|end| now < end) {
                thread::sleep(COUNT_POLL);
            } else if self.is_woken(longest.min(end - now)) {
                grace_end = Some(Instant::now() + COUNT_GRACE);
            }
        }
    }

    fn kills(&self) -> Result<u64, CgroupError> {
        // A group that is removed signals its eventfd, and reading it fails from then on.
        let text = match &self.wake {
            WakeSource::Event(_) => file::read(&self.count)?,
            // Reading the very file that is polled is what arms it again.
            WakeSource::Events(events) => file::read_open(&self.count, events)?,
        };
        Ok(oom_kill(&text).unwrap_or(0))
    }

    /// Sleeps until the kernel says something, or the time is over: `false`.
    fn is_woken(&self, left: Duration) -> bool {
        let mut fd = match &self.wake {
            WakeSource::Event(event) => [PollFd::new(event, PollFlags::IN)],
            WakeSource::Events(events) => [PollFd::new(events, PollFlags::PRI)],
        };
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // EINTR: the caller looks at the clock again.
        let is_woken = matches!(poll(&mut fd, Some(&timeout)), Ok(1..));
        if let (true, WakeSource::Event(event)) = (is_woken, &self.wake) {
            // Takes the signal off the eventfd; it is non-blocking.
            let _ = rustix::io::read(event, &mut [0u8; 8]);
        }
        is_woken
    }
}
