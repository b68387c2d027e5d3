//! From the start of an engine's client to the end of the application: who runs, since when, how it
//! ended.
//!
//! Owns the thread that looks, and the client. The application's process is found in its cgroup, not
//! asked for: an engine answers a tenth of a second late. Facts: runc starts a process of its own in
//! the container's cgroup and PID namespace, which becomes the application by execve(2) (its
//! libcontainer, nsenter); pidfd_open(2) becomes readable when the process ends.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use loadline_cgroup::{CgroupSample, ControlGroup};
use loadline_protocol::ContainerEngine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock::monotonic_ns;
use crate::container::{ContainerEvent, how_it_ended};
use crate::oci::engine;

pub type Tell = Box<dyn Fn(ContainerEvent) + Send>;

/// Pause between two looks for the application's process: the start is known to so much.
const LOOK: Duration = Duration::from_micros(500);

/// A container without a process in its cgroup for so long is somewhere else.
const APPEARS: Duration = Duration::from_secs(30);

/// Names of the processes of runtimes before they become the application.
const RUNTIMES: [&str; 3] = ["runc", "crun", "exe"];

/// When a container was started that never was: Go's zero time, as both engines print it.
const NEVER: &str = "0001-01-01";

#[derive(Debug)]
pub struct StartedContainer {
    pub engine: ContainerEngine,
    pub name: String,
}

#[derive(Debug)]
pub struct WatchedContainer {
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug)]
struct WatchState {
    client: Child,
    application: Option<(u32, OwnedFd)>,
    at_exec: Option<CgroupSample>,
    at_end: Option<CgroupSample>,
    is_over: bool,
}

impl WatchedContainer {
    /// Watches what a client starts in a group that is empty.
    /// Errors: When no thread can be started.
    pub fn watch_client(
        client: Child,
        leaf: ControlGroup,
        of: StartedContainer,
        tell: Tell,
    ) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(WatchState {
            client,
            application: None,
            at_exec: None,
            at_end: None,
            is_over: false,
        }));
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("container".to_owned())
            .spawn(move || watch_container(&shared, &leaf, &of, &tell))?;
        Ok(Self { state })
    }

    pub fn application_pid(&self) -> Option<u32> {
        lock_state(&self.state)
            .application
            .as_ref()
            .map(|(pid, _)| *pid)
    }

    pub fn signal_process(&self, signal: Signal) {
        if let Some((_, descriptor)) = &lock_state(&self.state).application {
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }

    pub fn counters_at_exec(&self) -> Option<CgroupSample> {
        lock_state(&self.state).at_exec.clone()
    }

    pub fn counters_at_end(&self) -> Option<CgroupSample> {
        lock_state(&self.state).at_end.clone()
    }

    /// Waits until the client has told how it ended; `false` when it was killed instead.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        while !lock_state(&self.state).is_over {
            if begin.elapsed() > patience {
                // Nothing is lost with it but the exit code.
                let _ = lock_state(&self.state).client.kill();
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

impl Drop for WatchedContainer {
    fn drop(&mut self) {
        // After `end` it has ended; the thread reaps it in any case.
        let _ = lock_state(&self.state).client.kill();
    }
}

fn lock_state(state: &Mutex<WatchState>) -> MutexGuard<'_, WatchState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch_container(
    state: &Mutex<WatchState>,
    leaf: &ControlGroup,
    of: &StartedContainer,
    tell: &Tell,
) {
    match await_exec(state, leaf) {
        StartOutcome::Running => {
            tell(ContainerEvent::Exec {
                at_ns: monotonic_ns(),
            });
            await_end(state, leaf);
            tell(exit_event(wait_for_client(state)));
        }
        StartOutcome::Ended(status) => ended_unseen(status, of, tell),
        StartOutcome::Nowhere => tell(ContainerEvent::Failed {
            detail: format!(
                "nothing appeared in its cgroup within {} s: {} starts containers on another machine, or in other cgroups than loadline sees",
                APPEARS.as_secs(),
                of.engine.kind
            ),
        }),
    }
    lock_state(state).is_over = true;
    tell(ContainerEvent::Gone);
}

enum StartOutcome {
    Running,
    Ended(Option<ExitStatus>),
    Nowhere,
}

/// Looks until the runtime's process has become the application.
fn await_exec(state: &Mutex<WatchState>, leaf: &ControlGroup) -> StartOutcome {
    let begin = Instant::now();
    loop {
        let processes = leaf.process_ids().unwrap_or_default();
        if let Some(found) = processes.iter().find_map(|pid| application_process(*pid)) {
            let mut state = lock_state(state);
            state.application = Some(found);
            state.at_exec = leaf.read().ok();
            return StartOutcome::Running;
        }
        match lock_state(state).client.try_wait() {
            Ok(None) => {}
            ended => return StartOutcome::Ended(ended.ok().flatten()),
        }
        if processes.is_empty() && begin.elapsed() > APPEARS {
            return StartOutcome::Nowhere;
        }
        thread::sleep(LOOK);
    }
}

/// The first process of the container, if it is the application already.
fn application_process(pid: u32) -> Option<(u32, OwnedFd)> {
    let id = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let descriptor = pidfd_open(id, PidfdFlags::empty()).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    is_application(&status).then_some((pid, descriptor))
}

/// Source: proc_pid_status(5): `NSpid` has the process id in each PID namespace, its own last.
fn is_application(status: &str) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let own = field("NSpid:").and_then(|ids| {
        ids.split_whitespace()
            .nth(1)
            .and(ids.split_whitespace().last())
    });
    let name = field("Name:").map_or("", str::trim);
    let is_runtime =
        RUNTIMES.contains(&name) || name.starts_with("runc:[") || name.parse::<u32>().is_ok();
    own == Some("1") && !is_runtime
}

/// Waits for the end of the application, and reads its group before the engine removes it.
fn await_end(state: &Mutex<WatchState>, leaf: &ControlGroup) {
    let descriptor = match &lock_state(state).application {
        Some((_, descriptor)) => descriptor.try_clone().ok(),
        None => None,
    };
    let Some(descriptor) = descriptor else { return };
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    while !matches!(
        poll(
            &mut [PollFd::new(&descriptor, PollFlags::IN)],
            Some(&second)
        ),
        Ok(1..)
    ) {}
    lock_state(state).at_end = leaf.read().ok();
}

fn wait_for_client(state: &Mutex<WatchState>) -> Option<ExitStatus> {
    loop {
        match lock_state(state).client.try_wait() {
            Ok(None) => {}
            ended => return ended.ok().flatten(),
        }
        thread::sleep(LOOK);
    }
}

/// A client that ended before its application was seen: it did not start, or was very quick. The codes
/// of clients do not tell: docker gives 1 for a program that is not there.
fn ended_unseen(status: Option<ExitStatus>, of: &StartedContainer, tell: &Tell) {
    let kind = of.engine.kind;
    let when = ["inspect", "--format", "{{.State.StartedAt}}", &of.name];
    let when = engine::run(&of.engine, &when).unwrap_or_default();
    if when.is_empty() || when.starts_with(NEVER) {
        let code = status.and_then(|status| status.code());
        let code = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        return tell(ContainerEvent::Failed {
            detail: format!("`{kind} start` ended with {code}"),
        });
    }
    tell(ContainerEvent::Exec {
        at_ns: monotonic_ns(),
    });
    tell(exit_event(status));
}

/// A client ends with the code of its container, which for a signal is 128 more than its number.
fn exit_event(status: Option<ExitStatus>) -> ContainerEvent {
    let (code, signal) = how_it_ended(status.and_then(|status| status.code()));
    ContainerEvent::Exited { code, signal }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_application_is_told_from_the_runtime_that_becomes_it() {
        let status = |name: &str, ids: &str| format!("Name:\t{name}\nPid:\t7\nNSpid:\t{ids}\n");
        assert!(is_application(&status("java", "4309\t1")));
        assert!(!is_application(&status("runc:[2:INIT]", "4309\t1")));
        assert!(!is_application(&status("crun", "4309\t1")));
        assert!(!is_application(&status("sh", "4310\t8")), "a child of it");
        assert!(
            !is_application(&status("systemd", "1")),
            "the machine's own"
        );
        assert!(!is_application(""));
    }

    #[test]
    fn the_code_of_a_client_says_how_its_container_ended() {
        let told = |code: i32| exit_event(Some(ExitStatus::from_raw(code << 8)));
        let exit = |code, signal| ContainerEvent::Exited { code, signal };
        assert_eq!(told(0), exit(Some(0), None));
        assert_eq!(told(137), exit(None, Some(9)));
        assert_eq!(told(143), exit(Some(143), None));
        assert_eq!(exit_event(None), exit(None, None));
    }
}
