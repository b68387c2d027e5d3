//! Trials with hostile applications through `trial-part`, without leftovers.
//!
//! One program plays all parts: the test runner, `trial-part`, `init` and `load-part` (as loadline
//! would), and the applications (`zoo MODE`). Needs root and cgroups; without them every test is
//! skipped by name. `containment [FILTER [--exact]] [--skip FILTER]` runs the tests with names that
//! contain the filter.

// It is its own test runner: it prints what the usual one would.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cases;
mod generator;
mod hostile;
mod java;
mod killed;
mod kinds;
mod lab;
mod oracle;
mod runner;
mod squeezes;
mod tool;
mod uml;
#[path = "../../../../tests/wanted.rs"]
mod wanted;
mod way;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let words = || {
        let words = std::env::args_os().skip(1);
        words.map(|word| word.to_string_lossy().into_owned())
    };
    let mut arguments = words();
    match arguments.next().as_deref() {
        Some("init-part") => code(loadline_trial::init::run()),
        Some("trial-part") => trial_part(),
        Some("load-part") if generator::is_greedy() => generator::take(),
        Some("load-part") => code(loadline_trial::run_load_process(
            std::io::stdin().lock(),
            std::io::stdout().lock(),
        )),
        Some("zoo") => ExitCode::from(loadline_zoo::run(arguments)),
        Some(runner::IN_GUEST) => runner::run_in_guest(arguments.next().zip(arguments.next())),
        Some("trials-without-end") => killed::trials_without_end(arguments),
        _ => {
            see_own_mounts_alone();
            runner::run(&wanted::Wanted::by(words()))
        }
    }
}

/// Restarts with a private mount table: container engines and other tests mount meanwhile, and the
/// table is compared whole. Without root, or `unshare`, it stays in the machine's.
fn see_own_mounts_alone() {
    const IS_ALONE: &str = "CONTAINMENT_MOUNTS";
    if std::env::var_os(IS_ALONE).is_some() || !rustix::process::geteuid().is_root() {
        return;
    }
    if let Ok(own) = std::env::current_exe() {
        let mut again = Command::new("unshare");
        again.args(["--mount", "--propagation", "private"]).arg(own);
        again.args(std::env::args_os().skip(1)).env(IS_ALONE, "1");
        // It returns only where that failed.
        let _ = again.exec();
    }
}

/// SIGTERM asks for the end, as in loadline.
fn trial_part() -> ExitCode {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stop);
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGTERM, flag) {
        return code(Err(error));
    }
    let parent = std::env::var(loadline_trial::part::PARENT).ok();
    code(loadline_trial::part::run(
        std::io::stdin().lock(),
        std::io::stdout(),
        parent.and_then(|text| text.parse().ok()),
        &|| stop.load(std::sync::atomic::Ordering::Relaxed),
    ))
}

fn code<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
