//! `cargo xtask test`: everything that checks the project, in steps.
//!
//! Lanes of them run beside each other ([`steps::Lane`]). Each step's whole output goes to
//! `build/test/NAME.log`; of a failed step the part that matters is shown. All steps run, whatever
//! fails. The last line counts: a step that is no test run counts as one check. What could not be
//! checked here is named, with its reason; so is a test that failed beside the others and passed alone.

mod answers;
mod audit;
mod groups;
pub mod output;
mod site;
mod steps;

use std::fs;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use crate::error::Error;
use output::Counts;
use steps::{Lane, Step};

/// Runs every step, or those that are named, prints the summary, and gives whether nothing failed.
pub fn run(root: &Path, names: &[String]) -> Result<bool, Error> {
    if let Some(name) = names
        .iter()
        .find(|name| steps::STEPS.iter().all(|s| s.name != **name))
    {
        let known: Vec<&str> = steps::STEPS.iter().map(|step| step.name).collect();
        let known = known.join(", ");
        return Err(Error::Usage(format!(
            "there is no step {name}\nhint: the steps are {known}"
        )));
    }
    let logs = root.join("build/test");
    fs::create_dir_all(&logs).map_err(Error::file(&logs))?;
    let begin = Instant::now();
    let is_wanted = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.name);
    let wanted: Vec<&Step> = steps::STEPS.iter().filter(is_wanted).collect();
    let total = thread::scope(|scope| {
        let mut total = Counts::default();
        let mut beside = Vec::new();
        for steps in wanted.chunk_by(|one, next| one.lane == next.lane) {
            if steps[0].lane == Lane::Alone {
                for lane in beside.drain(..) {
                    total.add(joined(lane)?);
                }
            }
            match steps[0].lane {
                Lane::Guests | Lane::Trials => {
                    beside.push(scope.spawn(|| run_steps(steps, root, &logs)));
                }
                Lane::Main | Lane::Alone => total.add(run_steps(steps, root, &logs)?),
            }
        }
        for lane in beside {
            total.add(joined(lane)?);
        }
        Ok::<Counts, Error>(total)
    })?;
    println!();
    for name in &total.failures {
        println!("FAILED {name}");
    }
    for name in &total.unsteady {
        println!("UNSTEADY {name}: failed beside the others, passed when run again alone");
    }
    for (name, reason) in &total.skips {
        println!("SKIP {name}: {reason}");
    }
    println!("logs in build/test, {} s in all", begin.elapsed().as_secs());
    println!("{total}");
    Ok(total.failed == 0)
}

fn joined(lane: ScopedJoinHandle<'_, Result<Counts, Error>>) -> Result<Counts, Error> {
    lane.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn run_steps(steps: &[&Step], root: &Path, logs: &Path) -> Result<Counts, Error> {
    let mut total = Counts::default();
    for step in steps {
        total.add(run_step(step, root, logs)?);
    }
    Ok(total)
}

fn run_step(step: &Step, root: &Path, logs: &Path) -> Result<Counts, Error> {
    println!("{:<12} {}", step.name, step.what);
    let start = Instant::now();
    let counts = step.run(root, &logs.join(format!("{}.log", step.name)))?;
    let seconds = start.elapsed().as_secs();
    println!("{:<12} {counts} ({seconds} s)", step.name);
    Ok(counts)
}
