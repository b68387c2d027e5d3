//! The launcher's grids in full, against every JDK in /usr/lib/jvm.
//!
//! `make test` runs a sample of each. A grid is a test with a switch, so that there is one place
//! that knows how to compare. Needs root, a v1 memory controller and a JDK; some minutes each.

use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::process;

/// A grid: its name on the command line, the test that is it, and the switch.
struct Grid {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    switch: (&'static str, &'static str),
}

const fn grid(name: &'static str, package: &'static str, test: &'static str) -> Grid {
    Grid {
        name,
        package,
        test,
        switch: ("LOADLINE_GRID", "full"),
    }
}

const GRIDS: &[Grid] = &[
    grid("flags", "loadline-sizing", "real_jvm"),
    grid("openj9", "loadline-sizing", "openj9"),
    grid("options", "loadline-launcher", "grid"),
    Grid {
        switch: ("LOADLINE_VECTORS", "10000"),
        ..grid("words", "loadline-launcher", "words")
    },
];

/// Runs the named grids, or all. False when a grid differs or could not run.
pub fn run(root: &Path, names: &[String]) -> Result<bool, Error> {
    let known: Vec<&str> = GRIDS.iter().map(|grid| grid.name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        eprintln!("xtask: no grid is called `{name}`; there are {known}");
        return Ok(false);
    }
    let wanted = |grid: &&Grid| names.is_empty() || names.iter().any(|name| name == grid.name);
    let mut is_good = true;
    for grid in GRIDS.iter().filter(wanted) {
        build_examples(root, grid.package)?;
        let (switch, value) = grid.switch;
        let mut command = Command::new("cargo");
        command
            .current_dir(root)
            .env(switch, value)
            .args(["test", "--quiet", "--package", grid.package])
            .args(["--test", grid.test, "--", "--nocapture"]);
        let output = process::output_of(&mut command)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_skipped = text.contains("SKIP ");
        is_good &= output.status.success() && !is_skipped;
        print!("{text}");
        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
        }
        let verdict = match (output.status.success(), is_skipped) {
            (true, false) => "equal",
            (true, true) => "could not run",
            _ => "differs",
        };
        println!("grid {}: {verdict}", grid.name);
    }
    Ok(is_good)
}

/// The tests of the launcher start a program of its examples; a single test does not build them.
fn build_examples(root: &Path, package: &str) -> Result<(), Error> {
    let mut command = Command::new("cargo");
    command
        .current_dir(root)
        .args(["build", "--quiet", "--package", package, "--examples"]);
    process::stdout_of(&mut command).map(drop)
}
