//! `cargo xtask test`: everything that checks the project, one step after the other.
//!
//! Each step's whole output goes to `build/test/NAME.log`; of a failed step the part that matters
//! is shown. All steps run, whatever fails. The last line counts: a step that is no test run
//! counts as one check. What could not be checked here is named, with its reason;
//! so is a test that failed beside the others and passed alone.

mod answers;
mod audit;
pub mod output;
mod site;
mod steps;

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::error::Error;
use output::Counts;

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
    let mut total = Counts::default();
    for step in steps::STEPS {
        if !names.is_empty() && names.iter().all(|name| name != step.name) {
            continue;
        }
        println!("{:<12} {}", step.name, step.what);
        let start = Instant::now();
        let log = logs.join(format!("{}.log", step.name));
        let counts = step.run(root, &log)?;
        let seconds = start.elapsed().as_secs();
        println!("{:<12} {counts} ({seconds} s)", "");
        total.add(counts);
    }
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
