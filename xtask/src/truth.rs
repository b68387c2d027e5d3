//! Calls the check of pause attribution against a trace of the scheduler.
//!
//! Owns nothing but the call: the check is an example of crate engine, built for speed, because
//! what it measures includes the cost of sampling.

use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::workloads;

pub fn run(root: &Path, arguments: impl Iterator<Item = String>) -> Result<bool, Error> {
    workloads::build(root)?;
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(root)
        .args(["run", "--quiet", "--release", "-p", "loadline-runner"])
        .args(["--example", "attribution_truth", "--"])
        .args(arguments);
    let status = command.status().map_err(Error::start(&command))?;
    Ok(status.success())
}
