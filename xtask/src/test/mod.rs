//! `cargo xtask test`: everything that checks the project, one step after the other.
//!
//! Each step's whole output goes to `build/test/NAME.log`; of a failed step the part that matters
//! is shown. All steps run, whatever fails. The last line counts: a step that is no test run
//! counts as one check. What could not be checked here is named, with its reason;
//! so is a test that failed beside the others and passed alone.

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
use steps::Step;

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
    let total = thread::scope(|scope| {
        let mut total = Counts::default();
        let mut beside = Vec::new();
        for step in steps::STEPS.iter().filter(is_wanted) {
            if step.is_alone() {
                for step in beside.drain(..) {
                    total.add(joined(step)?);
                }
            }
            if step.is_beside() {
                beside.push(scope.spawn(|| run_step(step, root, &logs)));
            } else {
                total.add(run_step(step, root, &logs)?);
            }
        }
        for step in beside {
            total.add(joined(step)?);
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

/// What a step counts for that ran beside others.
fn joined(step: ScopedJoinHandle<'_, Result<Counts, Error>>) -> Result<Counts, Error> {
    step.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn run_step(step: &Step, root: &Path, logs: &Path) -> Result<Counts, Error> {
    println!("{:<12} {}", step.name, step.what);
    let start = Instant::now();
    let counts = step.run(root, &logs.join(format!("{}.log", step.name)))?;
    let seconds = start.elapsed().as_secs();
    println!("{:<12} {counts} ({seconds} s)", step.name);
    Ok(counts)
}
