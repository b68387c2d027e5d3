//! `cargo xtask test`: everything that checks the project, in steps.
//!
//! Lanes run in parallel ([`steps::Lane`]). Each step's whole output goes to `build/test/NAME.log`;
//! for a failed step the relevant part is shown. All steps run, whatever fails. The last line
//! counts: a step that is no test run counts as one check. Skipped checks are named, with the
//! reason; so is a test that failed next to the others and passed alone.

mod answers;
mod audit;
mod elsewhere;
mod groups;
pub mod output;
mod room;
mod site;
mod steps;

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use crate::error::Error;
use output::Counts;
use steps::{Lane, Step};

/// Runs every step, or the named ones, prints the summary, and returns whether all passed.
pub fn run(root: &Path, names: &[String]) -> Result<bool, Error> {
    let known: Vec<&str> = steps::STEPS.iter().map(|step| step.name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let hint = format!("the steps are {}", known.join(", "));
        return Err(Error::Usage(format!(
            "there is no step {name}\nhint: {hint}"
        )));
    }
    if names.is_empty() {
        room::check_room(root)?;
    }
    let logs = root.join("build/test");
    fs::create_dir_all(&logs).map_err(Error::file(&logs))?;
    let begin = Instant::now();
    let is_wanted = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    let wanted: Vec<&Step> = steps::STEPS.iter().filter(is_wanted).collect();
    let done = thread::scope(|scope| {
        let mut done = Vec::new();
        let mut beside = Vec::new();
        for steps in wanted.chunk_by(|one, next| one.lane == next.lane) {
            let lane = steps[0].lane;
            for (_, before) in beside.extract_if(.., |(before, _)| lane.waits_for(*before)) {
                done.extend(joined(before)?);
            }
            match lane {
                Lane::Main | Lane::Alone => done.extend(run_steps(steps, root, &logs)?),
                _ => beside.push((lane, scope.spawn(|| run_steps(steps, root, &logs)))),
            }
        }
        for (_, lane) in beside {
            done.extend(joined(lane)?);
        }
        Ok::<Vec<CountedStep<'_>>, Error>(done)
    })?;
    let mut total = Counts::default();
    // All lanes have ended, so a test that runs again now is alone.
    for (step, counts) in done {
        total.add(step.run_failures_again(counts, root, &log_of(step, &logs))?);
    }
    println!();
    for name in &total.failures {
        println!("FAILED {name}");
    }
    for name in &total.unsteady {
        println!("UNSTEADY {name}: failed next to the others, passed when run again alone");
    }
    for (name, reason) in &total.skips {
        println!("SKIP {name}: {reason}");
    }
    println!("logs in build/test, {} s in all", begin.elapsed().as_secs());
    println!("{total}");
    Ok(total.failed == 0)
}

type CountedStep<'a> = (&'a Step, Counts);

fn joined<T>(lane: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    lane.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn run_steps<'a>(
    steps: &[&'a Step],
    root: &Path,
    logs: &Path,
) -> Result<Vec<CountedStep<'a>>, Error> {
    let run = |step: &&'a Step| Ok((*step, run_step(step, root, logs)?));
    steps.iter().map(run).collect()
}

fn run_step(step: &Step, root: &Path, logs: &Path) -> Result<Counts, Error> {
    println!("{:<12} {}", step.name, step.what);
    let start = Instant::now();
    let counts = step.run(root, &log_of(step, logs))?;
    let seconds = start.elapsed().as_secs();
    println!("{:<12} {counts} ({seconds} s)", step.name);
    Ok(counts)
}

fn log_of(step: &Step, logs: &Path) -> PathBuf {
    logs.join(format!("{}.log", step.name))
}
