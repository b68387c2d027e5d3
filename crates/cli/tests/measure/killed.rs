//! loadline, the process of its trial, both, or the load generator killed by SIGKILL at random
//! times: every process of the trial dies, no finished trial is lost, and `resume` reaches the
//! result of an undisturbed run. Commands that only write are killed too: reports, files to ship,
//! exports, and soaks of an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lab::{Lab, is_answer, recommended};
use crate::process::{Call, Ended, POLL, Running};
use crate::runner::{Case, Outcome};
use crate::traces::{assert_dead, assert_nothing_left, networks, parts, trials};

pub const CASES: [Case; 2] = [
    ("killed_at_random_times", killed_at_random_times),
    (
        "what_writes_is_killed_at_random_times",
        what_writes_is_killed_at_random_times,
    ),
];

/// How often, unless LOADLINE_KILLS says otherwise.
const KILLS: u32 = 16;

/// Time until everything must be dead; survivors serve forever.
const DEAD_WITHIN: Duration = Duration::from_secs(10);

/// Longest time between taking the machine and the kill: some trials long.
const LATEST_MS: u64 = 2000;

/// Longest time between the start of a trial and the kill: shorter than a trial.
const LATEST_IN_TRIAL_MS: u64 = 250;

/// Time for loadline to notice that its trial is dead, and to clean up after it.
const FOUND_OUT: Duration = Duration::from_millis(500);

/// A result as `export` wrote it.
const KEPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../records/2026-11-20-spring-web-size/result.json.gz"
);

/// Trials that were printed as finished, by result: purpose, configuration and repeat.
type Printed = BTreeMap<String, BTreeSet<String>>;

fn killed_at_random_times() -> Outcome {
    let kills = kills();
    let lab = Lab::new();
    let (mut owners, mut spaces) = (Vec::new(), BTreeMap::new());
    let (mut printed, mut finished, mut in_trial) = (Printed::new(), 0, 0);
    let (mut alone, mut generators) = (0, 0);
    let mut random = Random::from_environment();
    for kill in 0..kills {
        let mut victim = go_on(&lab).start();
        victim.until_it_measures();
        // Every second kill waits for a trial, and every fourth for a finished trial before it:
        // whether the others get so far depends on the machine, and a test that hits no trial and
        // loses none would prove nothing.
        if kill % 4 == 3 {
            victim.until_or_ended(|text| text.lines().any(is_new_trial));
        }
        let latest = if kill % 2 == 0 {
            LATEST_MS
        } else {
            until_a_trial_runs(&lab, &mut victim);
            LATEST_IN_TRIAL_MS
        };
        std::thread::sleep(random.millis(latest));
        let trials = trials(&lab);
        owners.extend(&trials);
        let seen = networks(&lab);
        in_trial += u32::from(!seen.is_empty());
        spaces.extend(seen);
        // Loadline alone, the trial alone, both, the generator alone; the times go through fours.
        let whom = kill / 4 % 4;
        if whom == 1 || whom == 2 {
            alone += u32::from(whom == 1 && !trials.is_empty());
            trials.iter().for_each(|trial| kill_trial(*trial));
        }
        if whom == 3 {
            until_it_loads(&lab, &mut victim);
            let found = parts(&lab, "load-part");
            generators += u32::from(!found.is_empty());
            found.iter().for_each(|generator| kill_trial(*generator));
        }
        if whom == 1 || whom == 3 {
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
        assert!(is_answer(recommended(&answer)), "{resumed}");
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
        "{kills} kills, {in_trial} in a trial, {alone} of the trial alone, {generators} of the generator alone; {searches} searches, {finished} trials, none lost"
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

/// Commands that only write are killed: a file is whole or missing, and the repeated command writes
/// the undisturbed output. A killed soak is judged.
fn what_writes_is_killed_at_random_times() -> Outcome {
    // Half as many: each writes three times.
    let kills = kills().div_ceil(2);
    let lab = Lab::new();
    lab.size().into_end().expect_code(0);
    let search = lab.results()[0]["id"].as_str().expect("an id").to_owned();
    let before = lab.result(&search);
    let mut random = Random::from_environment();
    let (mut in_time, mut soaks) = (0, 0);
    // The zoo's application is no jar, and `emit` ships jars: use a kept record's.
    let writers: [(&str, &str, &str, &[&str]); 4] = [
        ("report", &search, "-o", &[]),
        ("emit", KEPT, "--to", &["--force"]),
        ("export", &search, "-o", &["--format=json"]),
        ("report", KEPT, "-o", &[]),
    ];
    for kill in 0..kills {
        if kill % 8 == 7 {
            soaks += 1;
            kill_a_soak(&lab, &search, &mut random);
            continue;
        }
        let (subcommand, of, flag, more) = writers[kill as usize / 2 % writers.len()];
        let place = lab.path().join("written");
        let whole = lab.path().join("whole");
        let write = |to: &std::path::Path| {
            let call = lab.call(subcommand).arg(of).args(more);
            call.arg(flag).arg(to)
        };
        let begin = Instant::now();
        write(&whole).into_end().expect_code(0);
        let length = begin.elapsed().as_millis().max(1) as u64;
        // Every second kill meets a file of the same name, which is then one of the two.
        if kill % 2 == 1 {
            copy(&whole, &place);
        }
        let mut victim = write(&place).start();
        std::thread::sleep(random.millis(length));
        victim.kill();
        in_time += u32::from(victim.end().signal.is_some());
        // Temporary files of a killed writer are removed by the next.
        let is_beside = |name: &str| name.starts_with(".loadline-") && name.ends_with(".part/");
        for (name, bytes) in contents(&place) {
            if is_beside(&name) {
                continue;
            }
            let same = contents(&whole);
            let same = same.get(&name);
            assert_eq!(same, Some(&bytes), "{subcommand} left half of {name}");
        }
        write(&place).into_end().expect_code(0);
        assert_eq!(contents(&place), contents(&whole), "{subcommand}");
        for path in [place, whole] {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
        }
        let parts = std::fs::read_dir(lab.path()).expect("the lab").flatten();
        let mut parts = parts.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(parts.find(|name| name.ends_with(".part")), None);
    }
    // Its soaks count for its answer.
    let own = |mut shown: serde_json::Value| {
        let trials = shown["trials"].as_array_mut().expect("trials");
        trials.retain(|trial| trial["result"] == search.as_str());
        shown
    };
    assert_eq!(own(lab.result(&search)), own(before), "the search changed");
    lab.call("clean").into_end().expect_code(0);
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    println!("{kills} kills, {in_time} while it wrote, {soaks} of a soak");
    assert!(in_time * 3 >= kills, "a third at least is killed in time");
    None
}

fn kill_a_soak(lab: &Lab, search: &str, random: &mut Random) {
    let soak = lab.call("soak").arg(search).args(&["--wait", "--for=3h"]);
    let mut victim = soak.start();
    victim.until_it_measures();
    until_it_loads(lab, &mut victim);
    std::thread::sleep(random.millis(LATEST_MS));
    victim.kill();
    victim.end();
    assert_dead(lab, DEAD_WITHIN);
    let soaked = lab.results()[0]["id"].as_str().expect("an id").to_owned();
    let resumed = lab.call("resume").arg(&soaked).arg("--wait").into_end();
    // Too short to tell, and kept.
    resumed.expect_code(4);
    assert_eq!(lab.results()[0]["trials"], 1);
}

/// Files by their names: the entries of a directory, or a single file; empty if missing.
fn contents(place: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    if place.is_file() {
        found.insert(String::new(), std::fs::read(place).expect("a file"));
    }
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        for (below, bytes) in contents(&entry.path()) {
            found.insert(format!("{name}/{below}"), bytes);
        }
    }
    found
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    if from.is_dir() {
        std::fs::create_dir_all(to).expect("a directory");
        for entry in std::fs::read_dir(from).expect("a directory").flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::copy(from, to).expect("a copy");
    }
}

fn kills() -> u32 {
    let kills = std::env::var("LOADLINE_KILLS").ok();
    kills.and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// A simple generator of times: a test must be the same each time it runs.
struct Random(u64);

impl Random {
    /// The same times for the same LOADLINE_SEED; without one those of every run.
    fn from_environment() -> Self {
        let seed = std::env::var("LOADLINE_SEED").ok();
        let seed: u64 = seed.and_then(|text| text.parse().ok()).unwrap_or(0);
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// Less than `below` milliseconds.
    fn millis(&mut self, below: u64) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((self.0 >> 33) % below)
    }
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

/// Waits until a trial is under load, or the victim has ended.
fn until_it_loads(lab: &Lab, victim: &mut Running) {
    while parts(lab, "load-part").is_empty() && !victim.has_ended() {
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
