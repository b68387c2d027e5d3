//! Ctrl-C and its relatives: the first ends cleanly and says how to go on, the second ends at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::lab::{Lab, is_answer, recommended};
use crate::process::POLL;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_dead, assert_nothing_left, networks, processes, trials};

/// Longer than the time in which loadline takes signals for one request.
const ONE_REQUEST: Duration = Duration::from_secs(1);

pub const CASES: [Case; 3] = [
    (
        "a_signal_ends_it_and_resume_goes_on",
        a_signal_ends_it_and_resume_goes_on,
    ),
    (
        "trials_of_two_builds_are_not_mixed",
        trials_of_two_builds_are_not_mixed,
    ),
    (
        "a_second_signal_ends_it_at_once",
        a_second_signal_ends_it_at_once,
    ),
];

fn a_signal_ends_it_and_resume_goes_on() -> Outcome {
    let lab = Lab::new();
    let mut owners = Vec::new();
    // Long enough for three rounds.
    let mut sizing = lab.size_with(&["--prove=10"]).start();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        sizing.until("two more trials", |text| {
            let new = text
                .lines()
                .filter(|line| !line.contains("(from the store)"));
            new.filter(|line| line.contains(" #")).count() >= 2
        });
        owners.extend(trials(&lab));
        let networks = networks(&lab);
        sizing.signal(signal);
        let ended = sizing.end().expect_code(code);
        ended.says(&["interrupted", "hint: ", "loadline resume "]);
        assert_nothing_left(&lab, &owners, &networks);
        assert_eq!(lab.results()[0]["status"], "interrupted");
        sizing = lab.call("resume").args(&["--wait", "--json"]).start();
    }
    let ended = sizing.end().expect_code(0).says(&["(from the store)"]);
    assert!(is_answer(recommended(&ended.json())), "{ended}");
    assert_eq!(lab.results()[0]["status"], "done");
    None
}

fn trials_of_two_builds_are_not_mixed() -> Outcome {
    let lab = Lab::new();
    let build = lab.path().join("build");
    let write = |content: &str| std::fs::write(&build, content).expect("a file");
    write("one");
    let named = format!("build={}", build.display());
    let search = ["--min-memory=8Mi", "--max-memory=96Mi", "--step=16Mi"];
    let sizing = lab.measure("size").args(&search).arg("--prove=2");
    let mut sizing = sizing.zoo(&lab, &["serve", "heap_mib=34", &named]).start();
    sizing.until("two more trials", |text| {
        text.lines().filter(|line| line.contains(" #")).count() >= 2
    });
    sizing.signal(Signal::INT);
    sizing.end().expect_code(130);
    write("two");
    let refused = lab.call("resume").arg("--wait").into_end().expect_code(3);
    refused.says(&[
        "a file of the application, or loadline itself",
        "hint: start a new result",
    ]);
    assert_eq!(lab.results()[0]["status"], "interrupted");
    write("one");
    let resume = lab.call("resume").args(&["--wait", "--json"]);
    let ended = resume.into_end().expect_code(0);
    assert!(is_answer(recommended(&ended.json())), "{ended}");
    None
}

fn a_second_signal_ends_it_at_once() -> Outcome {
    let lab = Lab::new();
    // The application handles SIGTERM by doing nothing: a clean end takes the whole grace.
    let call = lab.measure("run").zoo(&lab, &["ignore-term"]);
    let mut running = call.start();
    running.until_it_measures();
    let program = std::env::current_exe().ok();
    let handles_term = |process: &PathBuf| {
        std::fs::read_link(process.join("exe")).ok() == program
            && signals(process, "SigCgt:") & bit(Signal::TERM) != 0
    };
    while !processes(&lab).iter().any(handles_term) {
        assert!(!running.has_ended(), "it ended before any signal");
        std::thread::sleep(POLL);
    }
    let (owner, networks) = (running.id(), networks(&lab));
    let owners = trials(&lab);
    let loadline = PathBuf::from(format!("/proc/{owner}"));
    let take_signal = || {
        while signals(&loadline, "ShdPnd:") & bit(Signal::INT) != 0 {
            std::thread::sleep(POLL);
        }
    };
    // The first request, sent twice, as timeout(1) does.
    running.signal(Signal::INT);
    take_signal();
    running.signal(Signal::INT);
    take_signal();
    std::thread::sleep(ONE_REQUEST);
    assert!(!running.has_ended(), "one request ended it at once");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.signal, Some(2), "{ended}");
    assert_dead(&lab, Duration::from_secs(10));
    lab.call("clean").into_end().expect_code(0);
    assert_nothing_left(&lab, &owners, &networks);
    None
}

/// A set of signals in proc(5)'s status of a process; none when it is gone.
fn signals(process: &Path, name: &str) -> u64 {
    let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix(name));
    set.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}
