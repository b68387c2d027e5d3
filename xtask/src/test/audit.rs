//! `cargo deny`, which `make setup` installs: external packages, and their known problems.
//!
//! Licences and sources are checked by `cargo xtask check` as well, so a machine without it misses
//! little but the advisories. Those need a database from the network; if it cannot be reached, the
//! run reports it by the name `advisories`.

use std::path::Path;
use std::process::{Command, Output};

use super::output::Counts;
use crate::error::Error;
use crate::process::output_of;

const NO_DATABASE: &str = "failed to fetch advisory database";

pub fn run(root: &Path) -> Result<Counts, Error> {
    if !deny(root, &["--version"])?.status.success() {
        let reason = "cargo-deny is not installed (make setup)";
        return Ok(Counts::one_skipped("audit", reason));
    }
    let outside = deny(root, &["--offline", "check", "bans", "licenses", "sources"])?;
    let mut counts = judge("audit", &outside);
    let known = deny(root, &["check", "advisories"])?;
    if String::from_utf8_lossy(&known.stderr).contains(NO_DATABASE) {
        let reason = "their database cannot be reached";
        counts.add(Counts::one_skipped("advisories", reason));
    } else {
        counts.add(judge("advisories", &known));
    }
    Ok(counts)
}

fn deny(root: &Path, arguments: &[&str]) -> Result<Output, Error> {
    let mut command = Command::new("cargo");
    output_of(command.arg("deny").args(arguments).current_dir(root))
}

/// Prints a failure's reason.
pub fn judge(name: &str, output: &Output) -> Counts {
    if output.status.success() {
        return Counts::one_passed();
    }
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    Counts::one_failed(name)
}
