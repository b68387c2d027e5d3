//! The command line: arguments to engine, records to text. The only crate that prints.
//!
//! One file a subcommand in [`commands`]; stdout is data, stderr is talk; the exit code says how
//! it ended ([`error::FailureKind`]).

#![deny(clippy::print_stderr, clippy::print_stdout)]

#[macro_use]
mod say;

mod away;
mod called;
mod commands;
mod enough;
mod error;
mod experiment;
mod extract;
mod files;
mod images;
mod load_flags;
mod measuring;
mod notify;
mod output;
mod result;
mod signals;
mod today;
mod ui;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use loadline_trial::entry;

use crate::commands::help;
use crate::error::Error;
use crate::output::AnswerPrinter;

/// Finds how much a JVM in a container can carry.
#[derive(Parser)]
#[command(name = "loadline", version = env!("LOADLINE_VERSION"), args_override_self = true)]
struct CommandLine {
    /// Say nothing but answers, warnings and errors
    #[arg(short, long, global = true, display_order = 1000)]
    quiet: bool,
    /// Also print where results and raw events lie, what is started, and how long each trial took
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        display_order = 1001
    )]
    verbose: bool,
    #[command(subcommand)]
    command: Option<commands::LoadlineCommand>,
}

fn main() -> ExitCode {
    if entry::is_in_image()
        && let Err(refusal) = entry::step_out()
    {
        return Error::from_refusal(&refusal).report();
    }
    let matches = help::group_commands(CommandLine::command()).try_get_matches();
    let parsed = matches.and_then(|found| Ok((CommandLine::from_arg_matches(&found)?, found)));
    let (arguments, found) = match parsed {
        Ok(parsed) => parsed,
        Err(refusal) => return usage::usage_refused(&refusal),
    };
    say::set_verbosity(arguments.quiet, arguments.verbose);
    ui::next::keep_state_flag(&found);
    let mut out = AnswerPrinter::for_command(&found);
    let ended = match arguments.command {
        Some(command) => commands::run(command, &mut out),
        None => help::first_steps(),
    };
    let written = out.write_file();
    match ended.and_then(|outcome| written.map(|()| outcome)) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => error.report(),
    }
}
