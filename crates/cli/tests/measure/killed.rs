//! loadline, the process of its trial, or both killed by SIGKILL at random times: everything of the
//! trial dies, nothing finished is lost, and `resume` comes to the result of a run that nobody
//! disturbed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lab::{ANSWER, Lab, recommended};
use crate::process::{Call, Ended, POLL, Running};
use crate::runner::{Case, Outcome};
use crate::traces::{assert_dead, assert_nothing_left, networks, trials};

pub const CASES: [Case; 1] = [("killed_at_random_times", killed_at_random_times)];

/// How often, unless LOADLINE_KILLS says otherwise.
const KILLS: u32 = 25;

/// When everything must be dead; what is not killed serves for ever.
const DEAD_WITHIN: Duration = Duration::from_secs(10);

/// Longest time between taking the machine and the kill: some trials long.
const LATEST_MS: u64 = 2000;

/// Longest time between the start of a trial and the kill: shorter than a trial.
const LATEST_IN_TRIAL_MS: u64 = 250;

/// Time for loadline to notice that its trial is dead, and to clean up after it.
const FOUND_OUT: Duration = Duration::from_millis(500);

/// Trials that were printed as finished, by result: purpose, configuration and repeat.
type Printed = BTreeMap<String, BTreeSet<String>>;

fn killed_at_random_times() -> Outcome {
    let kills = std::env::var("LOADLINE_KILLS").ok();
    let kills = kills.and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let lab = Lab::new();
    let (mut owners, mut spaces) = (Vec::new(), BTreeSet::new());
    let (mut printed, mut finished, mut in_trial, mut alone) = (Printed::new(), 0, 0, 0);
    // A simple generator of times: the test must be the same each time it runs.
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    for kill in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mut victim = go_on(&lab).start();
        victim.until_it_measures();
        // Every second kill waits for a trial, and every fourth for one that is finished before:
        // how many of the others come to that is the machine's luck, and a test that hits no trial
        // and loses none would show nothing.
        if kill % 4 == 3 {
            victim.until_or_ended(|text| text.lines().any(is_new_trial));
        }
        let latest = if kill % 2 == 0 {
            LATEST_MS
        } else {
            until_a_trial_runs(&lab, &mut victim);
            LATEST_IN_TRIAL_MS
        };
        std::thread::sleep(Duration::from_millis((random >> 33) % latest));
        let trials = trials(&lab);
        owners.extend(&trials);
        let seen = networks(&lab);
        in_trial += u32::from(!seen.is_empty());
        spaces.extend(seen);
        // Loadline alone, the trial alone, both; the times of the kills go through fours.
        let whom = kill / 4 % 3;
        if whom > 0 {
            alone += u32::from(whom == 1 && !trials.is_empty());
            trials.iter().for_each(|trial| kill_trial(*trial));
        }
        if whom == 1 {
            // It shall find out, and go on with another attempt.
            std::thread::sleep(FOUND_OUT);
            owners.extend(crate::traces::trials(&lab));
        }
        victim.kill();
        assert_dead(&lab, DEAD_WITHIN);
        note(&lab, &victim.end(), &mut printed);
        let now = count(&lab);
        assert!(
            now >= finished,
            "{finished} trials were finished, {now} are left"
        );
        finished = now;
    }
    for result in lab.results() {
        let id = result["id"].as_str().expect("an id");
        let call = lab.call("resume").arg(id).args(&["--wait", "--json"]);
        let resumed = call.into_end().expect_code(0);
        let answer = resumed.json();
        assert_eq!(recommended(&answer), Some(ANSWER), "{resumed}");
        let stored = stored(&answer);
        let lost: Vec<_> = printed
            .entry(id.to_owned())
            .or_default()
            .difference(&stored)
            .collect();
        assert!(
            lost.is_empty(),
            "printed as finished, but not stored: {lost:?}"
        );
    }
    lab.call("clean")
        .into_end()
        .expect_code(0)
        .prints(&["removed 0 control groups"]);
    assert_nothing_left(&lab, &owners, &spaces);
    let searches = lab.results().len();
    println!(
        "{kills} kills, {in_trial} of them in a trial, {alone} of the trial alone; {searches} searches, {finished} trials, none lost"
    );
    assert!(
        in_trial * 4 >= kills,
        "of the half that waits for a trial, half at least must hit it"
    );
    assert!(
        finished * 8 >= u64::from(kills),
        "of the quarter that waits for a finished trial, half at least must see one"
    );
    None
}

/// It may have ended since it was seen.
pub fn kill_trial(trial: u32) {
    let pid = i32::try_from(trial).ok().and_then(Pid::from_raw);
    let _ = kill_process(pid.expect("a process"), Signal::KILL);
}

/// Waits until a trial has its network, or the victim has ended.
fn until_a_trial_runs(lab: &Lab, victim: &mut Running) {
    while networks(lab).is_empty() && !victim.has_ended() {
        std::thread::sleep(POLL);
    }
}

/// The line of a trial that this run finished, not an earlier one.
fn is_new_trial(line: &str) -> bool {
    trial_of_line(line).is_some() && !line.contains("(from the store)")
}

/// Resumes the newest search, or begins one when there is none to resume.
fn go_on(lab: &Lab) -> Call {
    let newest = lab.results().into_iter().next();
    match newest.filter(|result| result["status"] != "done") {
        Some(_) => lab.call("resume").arg("--wait"),
        None => lab.size(),
    }
}

fn count(lab: &Lab) -> u64 {
    let results = lab.results();
    results.iter().filter_map(|r| r["trials"].as_u64()).sum()
}

/// Notes what the victim printed as finished; its result is the newest.
fn note(lab: &Lab, victim: &Ended, printed: &mut Printed) {
    let results = lab.results();
    let Some(id) = results.first().and_then(|result| result["id"].as_str()) else {
        return;
    };
    let trials = victim.stderr.lines().filter_map(trial_of_line);
    printed.entry(id.to_owned()).or_default().extend(trials);
}

/// `confirm  48Mi #2             PASS ...`: `confirm 48Mi #2`. A kill may cut the last line.
fn trial_of_line(line: &str) -> Option<String> {
    let (head, tail) = line.split_once(" #")?;
    let (repeat, _) = tail.split_once(' ')?;
    let mut words = head.split_whitespace();
    let purpose = words.next()?;
    Some(format!("{purpose} {} #{repeat}", words.next()?))
}

fn stored(result: &Value) -> BTreeSet<String> {
    let trials = result["trials"].as_array().into_iter().flatten();
    let trial = |trial: &Value| {
        let purpose = match trial["purpose"].as_str().expect("a purpose") {
            "neighbour" => "below",
            other => other,
        };
        let label = trial["configuration"]["label"].as_str().expect("a label");
        format!("{purpose} {label} #{}", trial["repeat"])
    };
    trials.map(trial).collect()
}
