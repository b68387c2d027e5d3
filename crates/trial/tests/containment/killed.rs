//! SIGKILL in the middle of trials, for loadline, for the process of the trial, or for both: all
//! its processes are dead within a second, and the next start removes leftover groups and files.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, UID, load, spec};
use crate::oracle::{groups, processes};
use crate::runner::Case;

pub const CASES: [Case; 1] = [("killed_at_random_times", killed_at_random_times)];

/// How often loadline is killed.
const KILLS: u32 = 24;

/// When everything must be dead.
const DEAD_WITHIN: Duration = Duration::from_secs(1);

/// Time between two checks for leftovers.
const POLL: Duration = Duration::from_millis(2);

/// The victim: trials one after the other until it, or a trial, is killed.
pub fn trials_without_end(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let Some(scratch) = arguments.next() else {
        return ExitCode::FAILURE;
    };
    for number in 0usize.. {
        let modes: [&[&str]; 3] = [&["daemons"], &["fork-bomb"], &["serve"]];
        let name = format!("containment-{}-{number}", std::process::id());
        let mut spec = spec(Path::new(&scratch), &name, modes[number % 3]);
        spec.start_deadline = Duration::from_secs(5);
        spec.stop_grace = Duration::from_millis(50);
        spec.load = vec![load(100.0, Duration::from_millis(300))];
        if spec.start().end().is_none() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Who is killed.
#[derive(Debug, Clone, Copy)]
enum Whom {
    Loadline,
    Trial,
    Both,
}

fn killed_at_random_times() {
    let lab = Lab::new();
    let (mut longest, mut groups) = (Duration::ZERO, 0);
    // A simple generator of times: the test must be the same each time it runs.
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    for kill in 0..KILLS {
        let whom = [Whom::Loadline, Whom::Trial, Whom::Both][kill as usize % 3];
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let after = Duration::from_millis(20 + (random >> 33) % 1500);
        let (lived, swept) = kill_once(&lab, whom, after);
        longest = longest.max(lived);
        groups += swept;
    }
    println!(
        "{KILLS} kills; the slowest tree was dead after {longest:?}; {groups} groups were left"
    );
    assert!(groups > 0, "no kill hit a trial");
    lab.assert_clean();
}

/// Waits until no process of the victim is left; gives how long that took. A time in which this
/// program did not run either is not held against them.
fn until_dead(after: Duration) -> Duration {
    let mut lived = Duration::ZERO;
    loop {
        let left = processes(UID);
        if left.is_empty() {
            return lived;
        }
        assert!(
            lived < DEAD_WITHIN,
            "killed after {after:?}: still there: {left:#?}"
        );
        let look = Instant::now();
        std::thread::sleep(POLL);
        lived += look.elapsed().min(POLL * 25);
    }
}

/// Kills one victim; returns how long its tree lived after it, and how many groups were swept.
fn kill_once(lab: &Lab, whom: Whom, after: Duration) -> (Duration, usize) {
    let own = std::env::current_exe().expect("this program");
    let mut victim = Command::new(own)
        .arg("trials-without-end")
        .arg(lab.scratch.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(after);
    // Between two trials there is none: then it is loadline's turn.
    let trial = trial_of(victim.id()).filter(|_| !matches!(whom, Whom::Loadline));
    if let Some(trial) = trial {
        // It may have ended since.
        let _ = kill_process(trial, Signal::KILL);
    }
    if trial.is_none() || matches!(whom, Whom::Both) {
        victim.kill().expect("it runs");
    }
    let ended = end(&mut victim);
    assert!(
        ended.signal() == Some(9) || ended.code() == Some(1),
        "it ended before the kill: {ended}"
    );
    let lived = until_dead(after);
    let swept = sweep_groups(lab, &victim, (whom, after));
    lab.assert_clean();
    (lived, swept)
}

/// Sweeps until no group of the victim is left: the process of its trial dies when loadline does, but
/// where the CPUs are busy it may be a moment later, and until then its groups are in use.
fn sweep_groups(lab: &Lab, victim: &Child, killed: (Whom, Duration)) -> usize {
    let (mut swept, mut waited) = (0, Duration::ZERO);
    loop {
        let sweep = lab.site.sweep_leftovers().expect("it can be swept");
        assert!(sweep.failures.is_empty(), "{:?}", sweep.failures);
        swept += sweep.groups.len();
        let groups = groups(victim.id());
        if groups.is_empty() {
            return swept;
        }
        assert!(waited < DEAD_WITHIN, "{killed:?}: {groups:?}");
        let look = Instant::now();
        std::thread::sleep(POLL);
        waited += look.elapsed().min(POLL * 25);
    }
}

/// The trial may have ended before the signal came: then loadline still goes on.
fn end(victim: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    while begin.elapsed() < DEAD_WITHIN {
        if let Some(ended) = victim.try_wait().expect("it is a child") {
            return ended;
        }
        std::thread::sleep(POLL);
    }
    victim.kill().expect("it runs");
    victim.wait().expect("it is a child")
}

/// The trial that a loadline runs now.
fn trial_of(loadline: u32) -> Option<Pid> {
    let children = format!("/proc/{loadline}/task");
    let tasks = std::fs::read_dir(children).ok()?.flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children = children.collect::<Vec<_>>().join(" ");
    let is_trial = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.windows(10).any(|part| part == b"trial-part")
    };
    let mut pids = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    pids.find(is_trial).and_then(Pid::from_raw)
}
