//! The application's first process: found, watched until it ends, killed.
//!
//! Owns the scan of /proc. A container's first process has no parent in the PID namespace of the
//! pod; the application's has the trial's mark in its environment. The runtime's process before the
//! application's exec(2) cannot be inspected, so the first match is the application.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use loadline_analysis::record::InvalidReason;
use loadline_cgroup::{CgroupSample, ControlGroup};
use loadline_sys::{O_PATH, PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};

use super::MARK;
use crate::clock::monotonic_ns;
use crate::container::ContainerEvent;
use crate::halt::{HaltReason, failed_for};
use crate::process_text::read_status;

/// Pause between two scans for the application: the resolution of its start time.
const LOOK: Duration = Duration::from_millis(1);

/// Time for a released application to start: beyond it, the kubelet has the reason.
const APPEARS: Duration = Duration::from_secs(600);

/// How long dying may take once killed; milliseconds as a rule.
const END: Duration = Duration::from_secs(10);

pub(super) struct AppProcess {
    pub(super) group: ControlGroup,
    pub(super) root: OwnedFd,
    pid: OwnedFd,
    at_ns: u64,
    at_exec: Option<CgroupSample>,
}

impl AppProcess {
    pub(super) fn already_runs(trial: &str) -> bool {
        find_marked(&environment_mark(trial)).is_some()
    }

    pub(super) fn wait_for_exec(trial: &str, told_to_end: &AtomicBool) -> Result<Self, HaltReason> {
        let begin = Instant::now();
        let mark = environment_mark(trial);
        while begin.elapsed() < APPEARS {
            if let Some(found) = find_marked(&mark) {
                return Ok(found);
            }
            if told_to_end.load(Ordering::Relaxed) {
                return Err(HaltReason::Stopped);
            }
            thread::sleep(LOOK);
        }
        let waited = APPEARS.as_secs();
        let why =
            format!("the application's container did not start within {waited} s of being let");
        Err(failed_for(InvalidReason::RuntimeLost, why))
    }
}

fn environment_mark(trial: &str) -> String {
    format!("{MARK}={trial}")
}

fn find_marked(mark: &str) -> Option<AppProcess> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find_map(|pid| application_with_mark(pid, mark))
}

fn application_with_mark(pid: u32, mark: &str) -> Option<AppProcess> {
    let status = read_status(pid)?;
    let has_parent = !status.lines().any(|line| line == "PPid:\t0");
    if has_parent || pid == std::process::id() {
        return None;
    }
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let descriptor = pidfd_open(raw, PidfdFlags::empty()).ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    if !variables.any(|variable| variable == mark.as_bytes()) {
        return None;
    }
    let group = ControlGroup::of_process(Path::new("/proc"), pid).ok()?;
    let flags = O_PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()).ok()?;
    Some(AppProcess {
        pid: descriptor,
        at_ns: monotonic_ns(),
        at_exec: group.read().ok(),
        group,
        root,
    })
}

pub(super) struct WatchedProcess {
    pid: Arc<OwnedFd>,
    at_exec: Option<CgroupSample>,
    at_end: Arc<Mutex<Option<CgroupSample>>>,
    thread: thread::JoinHandle<()>,
}

impl WatchedProcess {
    /// Watches it on a separate thread; reports its begin and its end. Returns the root of its
    /// files.
    pub(super) fn watch_application(
        of: AppProcess,
        tell: Box<dyn Fn(ContainerEvent) + Send>,
    ) -> io::Result<(Self, OwnedFd)> {
        tell(ContainerEvent::Exec { at_ns: of.at_ns });
        let (pid, at_end) = (Arc::new(of.pid), Arc::new(Mutex::new(None)));
        let (watched, kept) = (Arc::clone(&pid), Arc::clone(&at_end));
        // Open from now on: the files of a group that is being removed cannot be opened any more.
        let mut reader = of.group.open_reader().ok();
        let thread = thread::Builder::new()
            .name("container".to_owned())
            .spawn(move || {
                let wait = || poll(&mut [PollFd::new(&*watched, PollFlags::IN)], None);
                while !matches!(wait(), Ok(1..)) {}
                let last = reader.as_mut().and_then(|reader| reader.read().ok());
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = last;
                // Only the kubelet learns the code.
                tell(ContainerEvent::Exited {
                    code: None,
                    signal: None,
                });
                tell(ContainerEvent::Gone);
            })?;
        let watched = Self {
            pid,
            at_exec: of.at_exec,
            at_end,
            thread,
        };
        Ok((watched, of.root))
    }

    pub(super) fn signal_process(&self, signal: Signal) {
        // One that has ended does not mind.
        let _ = pidfd_send_signal(&*self.pid, signal);
    }

    pub(super) fn counters_at_exec(&self) -> Option<CgroupSample> {
        self.at_exec.clone()
    }

    pub(super) fn counters_at_end(&self) -> Option<CgroupSample> {
        let last = self.at_end.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until its end was reported; `false` if it did not end.
    pub(super) fn wait_until_told(&self) -> bool {
        let begin = Instant::now();
        while !self.thread.is_finished() {
            if begin.elapsed() > END {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

/// Kills every process of the group until none is left. With the first one the runtime ends the
/// container, and the rest with it.
pub(super) fn kill_group(group: &ControlGroup) {
    let begin = Instant::now();
    while begin.elapsed() < END {
        let left = group.process_ids().unwrap_or_default();
        let left = left.into_iter().filter(|pid| *pid != 0 && !is_dead(*pid));
        let pids = left.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let pids: Vec<Pid> = pids.collect();
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(LOOK);
    }
}

/// A zombie stays in its group.
fn is_dead(pid: u32) -> bool {
    let Some(status) = read_status(pid) else {
        return true;
    };
    let mut lines = status.lines();
    let state = lines.find_map(|line| line.strip_prefix("State:\t"));
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_the_mark_or_with_a_parent_is_not_the_application() {
        assert!(application_with_mark(std::process::id(), "PATH=").is_none());
        assert!(!AppProcess::already_runs("none-of-this-name"));
    }

    #[test]
    fn a_process_that_is_gone_is_dead() {
        assert!(is_dead(u32::MAX));
        assert!(!is_dead(std::process::id()));
    }
}
