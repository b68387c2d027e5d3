//! Learning of an OOM kill the moment it happens, instead of at the next sample.
//!
//! v1: an eventfd registered through cgroup.event_control (cgroup-v1/memory.rst, "OOM Control").
//! v2: memory.events wakes a poll for POLLPRI when it changes (cgroup-v2.rst). On v1 the kernel
//! kills one process only; the caller kills the rest, as memory.oom.group does on v2.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::error::CgroupError;
use crate::file;
use crate::group::Group;
use crate::layout::{Controller, Version};
use crate::sample::oom_kill;

/// Waits for OOM kills in one group.
#[derive(Debug)]
pub struct OomWatch {
    /// File with the count of kills.
    count: PathBuf,
    /// Kills that are known.
    seen: u64,
    wake: Wake,
}

#[derive(Debug)]
enum Wake {
    /// v1: becomes readable.
    Event(OwnedFd),
    /// v2: memory.events, gets POLLPRI.
    Events(File),
}

impl Group {
    /// Watches for OOM kills from now on.
    ///
    /// # Errors
    /// No memory controller, a group that is gone, a kernel without notification.
    pub fn oom_watch(&self) -> Result<OomWatch, CgroupError> {
        let Some((version, dir)) = self.dir(Controller::Memory) else {
            return Err(CgroupError::NoController {
                controller: Controller::Memory,
                what: "watching for OOM kills",
                hint: "`loadline doctor` shows which controllers are there".to_owned(),
            });
        };
        let (count, wake) = match version {
            Version::V1 => {
                let count = dir.join("memory.oom_control");
                let control =
                    File::open(&count).map_err(|e| CgroupError::file("open", &count, e))?;
                let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|e| CgroupError::file("watch", &count, e))?;
                let order = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
                file::write(&dir.join("cgroup.event_control"), &order)?;
                (count, Wake::Event(event))
            }
            Version::V2 => {
                let count = dir.join("memory.events");
                let events =
                    File::open(&count).map_err(|e| CgroupError::file("open", &count, e))?;
                (count, Wake::Events(events))
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
    ///
    /// # Errors
    /// A group that is gone.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, CgroupError> {
        let end = std::time::Instant::now() + timeout;
        loop {
            // Counted before the sleep as well: what came between two calls must not be missed.
            self.drain();
            let kills = self.kills()?;
            if kills > self.seen {
                self.seen = kills;
                return Ok(true);
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.sleep(left);
        }
    }

    fn kills(&self) -> Result<u64, CgroupError> {
        // A group that is removed signals its eventfd, and reading it fails from then on.
        let text = match &self.wake {
            Wake::Event(_) => file::read(&self.count)?,
            // Reading the very file that is polled is what arms it again.
            Wake::Events(events) => file::read_open(&self.count, events)?,
        };
        Ok(oom_kill(&text).unwrap_or(0))
    }

    /// Takes the signal off the eventfd; it is non-blocking.
    fn drain(&self) {
        if let Wake::Event(event) = &self.wake {
            let _ = rustix::io::read(event, &mut [0u8; 8]);
        }
    }

    fn sleep(&self, left: Duration) {
        let mut fd = match &self.wake {
            Wake::Event(event) => [PollFd::new(event, PollFlags::IN)],
            Wake::Events(events) => [PollFd::new(events, PollFlags::PRI)],
        };
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // EINTR: the loop looks at the clock again.
        let _ = poll(&mut fd, Some(&timeout));
    }
}
