//! Repository chores: what `make` calls once Rust is there.
//!
//! One module a chore. Never shipped. Read [`mod@test`] for what `make test` runs and [`check`] for
//! the rules every file of the project keeps.

mod check;
mod durable;
mod endurance;
mod error;
mod fuzz;
mod grid;
mod process;
mod release;
mod site;
mod test;
mod truth;
mod workloads;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask CHORE
  check        the project's invariants (ARCHITECTURE.md)
  docs         the documents as a site, build/site/index.html
  pictures     the pictures of the documents, from a recorded result by the program of this checkout
  test [STEP]...
               everything that checks the project; what `make test` runs
  endurance [--minutes COUNT] [NAME...]
               services of experiments/endurance at their answered sizes for an hour (or COUNT
               minutes) of their rate, with bursts; records/endurance. Goes on where it ended; root
  failpoints [COUNT [SEED]]
               every system call that changes a file or starts a process, broken in every way: what
               was finished stays, answers are the same, nothing is left; root. A sample of COUNT
  fuzz [SECONDS] [TARGET...]
               every parser against inputs that look for its branches, each for so many seconds, or
               until it has read 100 million
  fuzz keep [TARGET...]
               puts the smallest of what these runs found that reaches as much into fuzz/corpus
  grid [NAME]  the launcher's grids in full against the JDKs here: flags, options, words
  power-loss [COUNT [SEED]]
               the power goes at COUNT (10,000) moments while loadline measures on a real ext4: each
               is mounted as after a restart and looked at; root, Debian's user-mode-linux, dmsetup
  release [--target ARCHITECTURE]... [--out DIRECTORY] [--address URL]
               static programs, archives, packages, images and their sums, into build/release;
               tried as a user would. scripts/setup.sh release installs what it needs
  workloads    builds the Java workloads into build/workloads, when their sources changed
  attribution-truth [SECONDS [CPUS,... [GC THREADS [DIRECTORY]]]]
               compares pauses explained from samples with a trace of the scheduler; root. Keeps
               the runs in DIRECTORY; given a directory alone, judges the runs kept there again";

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let (chore, words) = match words.split_first() {
        Some((chore, words)) => (chore.as_str(), words),
        None => ("", words.as_slice()),
    };
    let root = root();
    let result = match chore {
        "check" => check::run(&root),
        "docs" => site::run(&root),
        "pictures" => pictures(&root),
        "test" => test::run(&root, words),
        "endurance" => endurance::run(&root, words),
        "failpoints" => durable::failpoints::run(&root, words),
        "fuzz" => fuzz::run(&root, words),
        "grid" => grid::run(&root, words),
        "power-loss" => durable::power::run(&root, words),
        "release" => release::run(&root, words),
        "workloads" => workloads::build(&root).map(|()| true),
        "attribution-truth" => truth::run(&root, words.iter().cloned()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pictures(root: &Path) -> Result<bool, error::Error> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["test", "--locked", "--package", "loadline-cli"])
        .args(["--test", "documents", "pictures"])
        .env("LOADLINE_UPDATE", "1")
        .current_dir(root);
    println!("{}", process::stdout_of(&mut cargo)?.trim_end());
    Ok(true)
}

fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
