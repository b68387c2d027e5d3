//! The command line: arguments to engine, records to text. The only crate that prints.
//!
//! One file a subcommand in [`commands`]; stdout is data, stderr is talk; the exit code says how
//! it ended ([`error::ErrorKind`]).

#[macro_use]
mod ui;

mod away;
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
mod result;
mod signals;
mod today;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use loadline_host::entry;

use crate::error::Error;

/// Finds how much a JVM in a container can carry.
#[derive(Parser)]
#[command(name = "loadline", version = env!("LOADLINE_VERSION"), args_override_self = true)]
struct Arguments {
    /// Say nothing but answers, warnings and errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say also where results and raw events lie, what is started, and how long each trial took
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    #[command(subcommand)]
    command: Option<commands::Command>,
}

fn main() -> ExitCode {
    if entry::is_in_image()
        && let Err(refusal) = entry::step_out()
    {
        return Error::refused(&refusal).report();
    }
    let matches = commands::grouped(Arguments::command()).try_get_matches();
    let parsed = matches.and_then(|found| Ok((Arguments::from_arg_matches(&found)?, found)));
    let (arguments, found) = match parsed {
        Ok(parsed) => parsed,
        Err(refusal) => return usage::refused(&refusal),
    };
    ui::begin(arguments.quiet, arguments.verbose);
    ui::next::begin(&found);
    let to = commands::output::begin(&found);
    let ended = arguments
        .command
        .map_or_else(commands::first, commands::run);
    let written = commands::output::end(to);
    match ended.and_then(|outcome| written.map(|()| outcome)) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => error.report(),
    }
}
