//! Commands that a message asks the user to type next.
//!
//! Owns that such a command finds what this one worked on: it gets the `--state` of this one.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::ArgMatches;
use loadline_report::content::shell_quoted;

static STATE: OnceLock<PathBuf> = OnceLock::new();

pub fn keep_state_flag(matches: &ArgMatches) {
    let of_command = matches.subcommand().map(|(_, found)| found);
    // A command without the flag has no such argument at all, which `get_one` would not forgive.
    let state = of_command.and_then(|found| found.try_get_one::<PathBuf>("state").ok().flatten());
    if let Some(state) = state {
        // Once a process: `main` is the only caller.
        let _ = STATE.set(state.clone());
    }
}

/// `loadline resume 1a2b3c`, with `--state DIR` where this command had one.
pub fn next_command(words: &str) -> String {
    match STATE.get() {
        Some(state) => {
            let state = shell_quoted(&state.display().to_string());
            format!("loadline {words} --state {state}")
        }
        None => format!("loadline {words}"),
    }
}
