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

use loadline_cgroup::{Group, Sample};
use loadline_trial::Engine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock::monotonic_ns;
use crate::container::{Told, how_it_ended};
use crate::oci::engine;

/// Takes what is told.
pub type Tell = Box<dyn Fn(Told) + Send>;

/// Pause between two looks for the application's process: the start is known to so much.
const LOOK: Duration = Duration::from_micros(500);

/// A container without a process in its cgroup for so long is somewhere else.
const APPEARS: Duration = Duration::from_secs(30);

/// Names of the processes of runtimes before they become the application.
const RUNTIMES: [&str; 3] = ["runc", "crun", "exe"];

/// When a container was started that never was: Go's zero time, as both engines print it.
const NEVER: &str = "0001-01-01";

/// What was started, for questions about it.
#[derive(Debug)]
pub struct Started {
    /// The engine.
    pub engine: Engine,
    /// The container.
    pub name: String,
}

/// A container that is being started, runs or has ended.
#[derive(Debug)]
pub struct Watched {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    client: Child,
    application: Option<(u32, OwnedFd)>,
    at_exec: Option<Sample>,
    at_end: Option<Sample>,
    is_over: bool,
}

impl Watched {
    /// Watches what a client starts in a group that is empty.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(client: Child, leaf: Group, of: Started, tell: Tell) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State {
            client,
            application: None,
            at_exec: None,
            at_end: None,
            is_over: false,
        }));
        let shared = Arc::clone(&state);
        thread::Builder::new()
            .name("container".to_owned())
            .spawn(move || watch(&shared, &leaf, &of, &tell))?;
        Ok(Self { state })
    }

    /// The application's process, once there is one.
    pub fn process(&self) -> Option<u32> {
        lock(&self.state).application.as_ref().map(|(pid, _)| *pid)
    }

    /// Sends it a signal. One that has ended does not mind.
    pub fn signal(&self, signal: Signal) {
        if let Some((_, descriptor)) = &lock(&self.state).application {
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }

    /// The counters of its group when it was executed.
    pub fn at_exec(&self) -> Option<Sample> {
        lock(&self.state).at_exec.clone()
    }

    /// The counters of its group when it ended.
    pub fn at_end(&self) -> Option<Sample> {
        lock(&self.state).at_end.clone()
    }

    /// Waits until the client has told how it ended; `false` when it was killed instead.
    pub fn end(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        while !lock(&self.state).is_over {
            if begin.elapsed() > patience {
                // Nothing is lost with it but the exit code.
                let _ = lock(&self.state).client.kill();
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // After `end` it has ended; the thread reaps it in any case.
        let _ = lock(&self.state).client.kill();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(state: &Mutex<State>, leaf: &Group, of: &Started, tell: &Tell) {
    match await_exec(state, leaf) {
        Begun::Running => {
            tell(Told::Exec {
                at_ns: monotonic_ns(),
            });
            await_end(state, leaf);
            tell(exited(wait(state)));
        }
        Begun::Ended(status) => ended_unseen(status, of, tell),
        Begun::Nowhere => tell(Told::Failed {
            detail: format!(
                "nothing appeared in its cgroup within {} s: {} starts containers on another machine, or in other cgroups than loadline sees",
                APPEARS.as_secs(),
                of.engine.kind
            ),
        }),
    }
    lock(state).is_over = true;
    tell(Told::Gone);
}

enum Begun {
    Running,
    /// The client, before an application was seen.
    Ended(Option<ExitStatus>),
    Nowhere,
}

/// Looks until the runtime's process has become the application.
fn await_exec(state: &Mutex<State>, leaf: &Group) -> Begun {
    let begin = Instant::now();
    loop {
        let processes = leaf.processes().unwrap_or_default();
        if let Some(found) = processes.iter().find_map(|pid| application(*pid)) {
            let mut state = lock(state);
            state.application = Some(found);
            state.at_exec = leaf.read().ok();
            return Begun::Running;
        }
        match lock(state).client.try_wait() {
            Ok(None) => {}
            ended => return Begun::Ended(ended.ok().flatten()),
        }
        if processes.is_empty() && begin.elapsed() > APPEARS {
            return Begun::Nowhere;
        }
        thread::sleep(LOOK);
    }
}

/// The first process of the container, if it is the application already.
fn application(pid: u32) -> Option<(u32, OwnedFd)> {
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
fn await_end(state: &Mutex<State>, leaf: &Group) {
    let descriptor = match &lock(state).application {
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
    lock(state).at_end = leaf.read().ok();
}

fn wait(state: &Mutex<State>) -> Option<ExitStatus> {
    loop {
        match lock(state).client.try_wait() {
            Ok(None) => {}
            ended => return ended.ok().flatten(),
        }
        thread::sleep(LOOK);
    }
}

/// A client that ended before its application was seen: it did not start, or was very quick. The codes
/// of clients do not tell: docker gives 1 for a program that is not there.
fn ended_unseen(status: Option<ExitStatus>, of: &Started, tell: &Tell) {
    let kind = of.engine.kind;
    let when = ["inspect", "--format", "{{.State.StartedAt}}", &of.name];
    let when = engine::run(&of.engine, &when).unwrap_or_default();
    if when.is_empty() || when.starts_with(NEVER) {
        let code = status.and_then(|status| status.code());
        let code = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        return tell(Told::Failed {
            detail: format!("`{kind} start` ended with {code}"),
        });
    }
    tell(Told::Exec {
        at_ns: monotonic_ns(),
    });
    tell(exited(status));
}

/// A client ends with the code of its container, which for a signal is 128 more than its number.
fn exited(status: Option<ExitStatus>) -> Told {
    let (code, signal) = how_it_ended(status.and_then(|status| status.code()));
    Told::Exited { code, signal }
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
        let told = |code: i32| exited(Some(ExitStatus::from_raw(code << 8)));
        let exit = |code, signal| Told::Exited { code, signal };
        assert_eq!(told(0), exit(Some(0), None));
        assert_eq!(told(137), exit(None, Some(9)));
        assert_eq!(told(143), exit(Some(143), None));
        assert_eq!(exited(None), exit(None, None));
    }
}
