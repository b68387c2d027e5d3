//! loadline killed by SIGKILL in the middle of trials: everything of it is dead within a second,
//! and the next start removes what is left of groups and files.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use loadline_host::backend::Backend;
use loadline_host::{LocalBackend, Options};

use crate::lab::{Lab, Quiet, UID, load, spec};
use crate::oracle::{groups, processes};
use crate::runner::Case;

pub const CASES: [Case; 1] = [("killed_at_random_times", killed_at_random_times)];

/// How often loadline is killed.
const KILLS: u32 = 50;

/// When everything must be dead.
const DEAD_WITHIN: Duration = Duration::from_secs(1);

/// Time between two looks at what is left.
const POLL: Duration = Duration::from_millis(2);

/// The victim: trials one after the other until it is killed.
pub fn trials_without_end(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let Some(scratch) = arguments.next() else {
        return ExitCode::FAILURE;
    };
    let options = Options {
        scratch_root: Some(scratch.clone().into()),
        ..Options::default()
    };
    let Ok(mut backend) = LocalBackend::new(options) else {
        return ExitCode::FAILURE;
    };
    for number in 0usize.. {
        let modes: [&[&str]; 3] = [&["daemons"], &["fork-bomb"], &["serve"]];
        let name = format!("containment-{}-{number}", std::process::id());
        let spec = spec(Path::new(&scratch), &name, modes[number % 3]);
        let mut observer = Quiet::default();
        let Ok(mut instance) = backend.prepare(&spec) else {
            return ExitCode::FAILURE;
        };
        let started = instance.start(Duration::from_secs(5), &mut observer);
        if started.is_ok_and(|start| start.ready.is_some()) {
            let _driven = instance.drive(&load(100.0, Duration::from_millis(300)), &mut observer);
        }
        instance.stop(Duration::from_millis(50), &mut observer);
    }
    ExitCode::SUCCESS
}

fn killed_at_random_times() {
    let lab = Lab::new();
    let (mut longest, mut groups) = (Duration::ZERO, 0);
    // A simple generator of times: the test must be the same each time it runs.
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let after = Duration::from_millis(20 + (random >> 33) % 1500);
        let (lived, swept) = kill_once(&lab, after);
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
fn kill_once(lab: &Lab, after: Duration) -> (Duration, usize) {
    let own = std::env::current_exe().expect("this program");
    let mut victim = Command::new(own)
        .arg("trials-without-end")
        .arg(lab.scratch.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(after);
    victim.kill().expect("it runs");
    let ended = victim.wait().expect("it is a child");
    assert_eq!(ended.signal(), Some(9), "it ended before the kill");
    let lived = until_dead(after);
    let swept = lab.backend.sweep().expect("it can be swept");
    assert!(swept.failures.is_empty(), "{:?}", swept.failures);
    let groups = groups(victim.id());
    assert!(groups.is_empty(), "killed after {after:?}: {groups:?}");
    lab.assert_clean();
    (lived, swept.groups.len())
}
