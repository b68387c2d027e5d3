//! `cargo xtask failpoints`: every system call by which loadline changes files or starts something,
//! and the first calls by which it reads, broken in every possible way.
//!
//! Owns which commands are broken, in which ways, and the requirements afterwards.
//! tests/faults/fault.c breaks a call, from outside: the program is the shipped one, its trials are
//! real ones of a fraction of a second. The requirements are the same after each fault: it reports
//! the error, none of its processes lives, the store is whole with all finished trials, the command
//! completes when it is repeated, and after `clean` nothing is left.

mod lab;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use super::random::Random;
use super::{Programs, count_and_seed, locked, missing, share_among};
use crate::error::Error;
use crate::test::output::Counts;
use lab::{Lab, SCENARIOS, Scenario};

/// So many faults in `make test`.
const SAMPLE: usize = 24;

/// In addition, earlier defects: the process that is about to become the application is killed, a
/// thread cannot be started. Who makes the call, which, and how it breaks.
const ONCE_WRONG: [(&str, &str, &str); 2] =
    [("init-part", "execve", "kill"), ("run", "clone3", "error")];

const WORKERS: usize = 8;

#[derive(Debug, Clone)]
struct Fault {
    scenario: Scenario,
    calls: Calls,
    at: usize,
    kind: &'static str,
}

/// Which calls are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// What changes files or starts something.
    Changes,
    /// What reads, lists or connects.
    Reads,
}

/// So many of the calls by which a process reads one thing are broken: samplers read for as long as a
/// trial lasts.
const READS: usize = 4;

#[derive(Debug)]
struct Point {
    name: String,
    role: String,
    what: String,
}

impl Point {
    fn of(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ').skip(1);
        let mut word = || words.next().map(str::to_owned);
        Some(Self {
            name: word()?,
            role: word()?,
            what: word()?,
        })
    }

    /// What it reads, whoever's process that is of.
    fn what_is_read(&self) -> (String, String, String) {
        let what = self.what.split(|c: char| c.is_ascii_digit());
        let what = what.filter(|part| !part.is_empty()).collect();
        (self.role.clone(), self.name.clone(), what)
    }

    fn kinds_of_read(&self) -> Vec<&'static str> {
        match self.name.as_str() {
            "open" | "openat" => vec!["EMFILE", "unread"],
            "read" | "pread64" => vec!["unread", "half"],
            _ => vec!["unread"],
        }
    }

    fn kinds(&self, base: &Path) -> Vec<&'static str> {
        let name = self.name.as_str();
        let writes = ["write", "pwrite64"].contains(&name);
        let takes_room = writes
            || ["openat", "ftruncate", "fallocate", "fsync", "fdatasync"].contains(&name)
            || ["rename", "link", "mkdir"]
                .iter()
                .any(|n| name.starts_with(n));
        let is_kernels = self.what.starts_with("/sys/") || self.what.starts_with("/proc/");
        let starts = ["clone", "clone3", "fork", "vfork", "execve"].contains(&name);
        let mut kinds = vec!["kill", "error"];
        if takes_room && !is_kernels {
            kinds.push("ENOSPC");
        }
        if !starts {
            kinds.push("EIO");
        }
        if writes && !is_kernels {
            kinds.push("short");
        }
        if (writes || name == "openat") && Path::new(&self.what).starts_with(base) {
            kinds.push("full");
        }
        kinds
    }
}

struct Outcome {
    /// The broken call; `None` if the command made fewer calls this time.
    point: Option<Point>,
    wrong: Vec<String>,
}

pub fn step(root: &Path) -> Result<Counts, Error> {
    if let Some(reason) = missing() {
        return Ok(Counts::one_skipped("failpoints", &reason));
    }
    let programs = Programs::build(root)?;
    if let Some(reason) = programs.refused()? {
        return Ok(Counts::one_skipped("failpoints", &reason));
    }
    let wrong = of(&programs, Some(SAMPLE), 0)?.into_iter();
    let failed = wrong.map(|wrong| Counts::one_failed(&format!("failpoints: {wrong}")));
    let sum = |mut all: Counts, one| {
        all.add(one);
        all
    };
    Ok(failed.reduce(sum).unwrap_or_else(Counts::one_passed))
}

pub fn run(root: &Path, arguments: &[String]) -> Result<bool, Error> {
    let (count, seed) = count_and_seed("failpoints", arguments)?;
    if let Some(reason) = missing() {
        println!("SKIP failpoints: {reason}");
        return Ok(false);
    }
    Ok(of(&Programs::build(root)?, count, seed)?.is_empty())
}

/// Violations after a fault, in the order found.
fn of(programs: &Programs, count: Option<usize>, seed: u64) -> Result<Vec<String>, Error> {
    let begin = Instant::now();
    let lab = Lab::new(programs)?;
    let (mut faults, mut known) = (Vec::new(), Vec::new());
    let mut unmet = Vec::from(ONCE_WRONG);
    for (scenario, calls) in SCENARIOS
        .iter()
        .flat_map(|s| [(*s, Calls::Changes), (*s, Calls::Reads)])
    {
        let points = lab.points(scenario, calls)?;
        println!("{scenario:?}, {calls:?}: {} calls", points.len());
        let mut times = BTreeMap::new();
        for (place, point) in points.iter().enumerate() {
            let kinds = match calls {
                Calls::Changes => point.kinds(&lab.base),
                Calls::Reads => {
                    let time = times.entry(point.what_is_read()).or_insert(0);
                    *time += 1;
                    match *time > READS {
                        true => Vec::new(),
                        false => point.kinds_of_read(),
                    }
                }
            };
            for kind in kinds {
                let what = (&*point.role, &*point.name, kind);
                unmet.retain(|known| *known != what);
                let of = match ONCE_WRONG.contains(&what) {
                    true => &mut known,
                    false => &mut faults,
                };
                of.push(Fault {
                    scenario,
                    calls,
                    at: place + 1,
                    kind,
                });
            }
        }
    }
    let all = faults.len() + known.len();
    if !unmet.is_empty() {
        let what = format!("nobody makes these calls any more: {unmet:?}");
        return Err(Error::Usage(format!("{what}\nhint: look at ONCE_WRONG")));
    }
    if let Some(count) = count {
        let more = known.len();
        println!("{count} of {all} faults, seed {seed}, and {more} more");
        faults = Random::from_seed(seed).sample(faults, count);
    }
    faults.append(&mut known);
    let total = faults.len();
    let outcomes = Mutex::new(Vec::new());
    share_among(WORKERS, faults, |worker, fault| {
        let outcome = lab.outcome(worker, &fault)?;
        findings(&fault, &outcome).for_each(|wrong| println!("WRONG {wrong}"));
        let mut outcomes = locked(&outcomes);
        outcomes.push((fault, outcome));
        if outcomes.len().is_multiple_of(500) {
            println!("{} of {total} faults", outcomes.len());
        }
        Ok(())
    })?;
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let left = lab.left()?;
    left.iter().for_each(|group| println!("LEFT {group}"));
    summary(&outcomes, begin.elapsed().as_secs());
    let outcomes = outcomes.iter();
    let of_faults = outcomes.flat_map(|(fault, outcome)| findings(fault, outcome));
    let left = left.iter().map(|group| format!("left: {group}"));
    let wrong: Vec<String> = of_faults.chain(left).collect();
    if wrong.is_empty() {
        fs::remove_dir_all(&lab.base).map_err(Error::file(&lab.base))?;
    }
    Ok(wrong)
}

fn findings(fault: &Fault, outcome: &Outcome) -> impl Iterator<Item = String> {
    let Fault {
        scenario, at, kind, ..
    } = fault;
    outcome
        .wrong
        .iter()
        .map(move |wrong| format!("{scenario:?} {kind} at {at} {:?}: {wrong}", outcome.point))
}

fn summary(outcomes: &[(Fault, Outcome)], seconds: u64) {
    let mut table: BTreeMap<(Scenario, &str), [usize; 3]> = BTreeMap::new();
    let mut places = BTreeSet::new();
    for (fault, outcome) in outcomes {
        let row = table.entry((fault.scenario, fault.kind)).or_default();
        row[0] += 1;
        row[1] += usize::from(outcome.point.is_none());
        row[2] += usize::from(!outcome.wrong.is_empty());
        if let Some(point) = &outcome.point {
            places.insert((point.role.clone(), point.name.clone()));
        }
    }
    println!("\n| command | fault | tried | not met | wrong |\n|---|---|---:|---:|---:|");
    let mut all = [0; 3];
    for ((scenario, kind), row) in &table {
        let command = format!("{scenario:?}").to_lowercase();
        let [tried, unmet, wrong] = row;
        println!("| {command} | {kind} | {tried} | {unmet} | {wrong} |");
        (0..3).for_each(|column| all[column] += row[column]);
    }
    println!("| all | | {} | {} | {} |", all[0], all[1], all[2]);
    let kinds = places.len();
    println!("\n{kinds} kinds of calls by their process, {seconds} s");
}
