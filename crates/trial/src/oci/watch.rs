//! From the start of an engine's client to the end of the application: its process, its start time,
//! its end.
//!
//! Owns the watching thread, and the client. The application's process is found in its cgroup,
//! because an engine answers a tenth of a second late. Facts: runc starts a process in the
//! container's cgroup and PID namespace, which becomes the application by execve(2) (its
//! libcontainer, nsenter); pidfd_open(2) becomes readable when the process ends.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use loadline_cgroup::{CgroupSample, ControlGroup};
use loadline_protocol::ContainerEngine;
use loadline_sys::{PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};

use crate::clock::monotonic_ns;
use crate::container::{ContainerEvent, how_it_ended};
use crate::oci::engine;
use crate::process_text::read_status;

pub type Tell = Box<dyn Fn(ContainerEvent) + Send>;

/// Pause between two looks for the application's process: the start is known to so much.
const LOOK: Duration = Duration::from_micros(500);

/// A container without a process in its cgroup for this long runs elsewhere.
const APPEARS: Duration = Duration::from_secs(30);

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
        let state = lock_state(&self.state);
        state.application.as_ref().map(|(pid, _)| *pid)
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
            let at_ns = monotonic_ns();
            tell(ContainerEvent::Exec { at_ns });
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

fn application_process(pid: u32) -> Option<(u32, OwnedFd)> {
    let id = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let descriptor = pidfd_open(id, PidfdFlags::empty()).ok()?;
    let status = read_status(pid)?;
    let is_one = is_application(&status, || runs_file_of_its_root(pid));
    is_one.then_some((pid, descriptor))
}

/// Source: proc_pid_status(5): `NSpid` has the process id in each PID namespace, its own last.
fn is_application(status: &str, runs_own_file: impl Fn() -> bool) -> bool {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let own = field("NSpid:").and_then(|ids| {
        let mut words = ids.split_whitespace();
        words.nth(1).map(|second| words.last().unwrap_or(second))
    });
    let name = field("Name:").map_or("", str::trim);
    let is_runtime =
        RUNTIMES.contains(&name) || name.starts_with("runc:[") || name.parse::<u32>().is_ok();
    own == Some("1") && (!is_runtime || runs_own_file())
}

/// Whether what a process runs lies in its root, and that is not ours: the program of a runtime lies
/// outside of the container, or in no file system at all.
fn runs_file_of_its_root(pid: u32) -> bool {
    let found = || {
        let number = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino()));
        let own = PathBuf::from(format!("/proc/{pid}"));
        let (exe, root) = (own.join("exe"), own.join("root"));
        let path = fs::read_link(&exe)?;
        // Where its mounts are ours its root has a path, in a container none.
        let within = path.strip_prefix(fs::read_link(&root)?);
        let there = root.join(within.map_err(io::Error::other)?);
        let is_ours = number(&root)? == number(Path::new("/"))?;
        Ok::<_, io::Error>(!is_ours && number(&exe)? == number(&there)?)
    };
    found().unwrap_or(false)
}

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
    let wait = || {
        poll(
            &mut [PollFd::new(&descriptor, PollFlags::IN)],
            Some(&second),
        )
    };
    while !matches!(wait(), Ok(1..)) {}
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
        let detail = format!("`{kind} start` ended with {code}");
        return tell(ContainerEvent::Failed { detail });
    }
    let at_ns = monotonic_ns();
    tell(ContainerEvent::Exec { at_ns });
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
    use std::process::Command;

    use super::*;

    #[test]
    fn the_application_is_told_from_the_runtime_that_becomes_it() {
        let status = |name: &str, ids: &str| format!("Name:\t{name}\nPid:\t7\nNSpid:\t{ids}\n");
        let is_application = |text: &str| super::is_application(text, || false);
        assert!(is_application(&status("java", "4309\t1")));
        assert!(!is_application(&status("runc:[2:INIT]", "4309\t1")));
        assert!(!is_application(&status("crun", "4309\t1")));
        assert!(!is_application(&status("sh", "4310\t8")), "its child");
        assert!(
            !is_application(&status("systemd", "1")),
            "the machine's own"
        );
        assert!(!is_application(""));
        for name in ["exe", "crun", "runc", "runc:[2:INIT]", "7"] {
            let own = status(name, "4309\t1");
            assert!(super::is_application(&own, || true), "{name} of an image");
            let child = status(name, "4310\t8");
            assert!(!super::is_application(&child, || true), "a child");
        }
    }

    #[test]
    fn a_program_of_its_own_root_is_told_from_one_outside() {
        assert!(!runs_file_of_its_root(std::process::id()));
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP a_program_of_its_own_root_is_told_from_one_outside: not root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let place = root.path().display();
        let script = format!(
            "cd /bin && cp -L --parents $(ldd /bin/sleep | grep -o '/[^ ]*') {place} && \
             cp /bin/sleep {place}/exe && exec chroot {place} /exe 60"
        );
        let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        while fs::read_to_string(&comm).unwrap().trim() != "exe" {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "it ended before it was looked at");
            thread::sleep(LOOK);
        }
        assert!(runs_file_of_its_root(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
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
