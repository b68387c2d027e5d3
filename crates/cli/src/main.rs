//! The command line: arguments to engine, records to text. The only crate that prints.
//!
//! One file a subcommand in [`commands`]; stdout is data, stderr is talk; the exit code says how
//! it ended ([`error::ErrorKind`]).

mod commands;
mod enough;
mod error;
mod experiment;
mod extract;
mod files;
mod images;
mod load_flags;
mod measuring;
mod result;
mod signals;
mod ui;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use loadline_host::entry;

use crate::error::Error;

/// Finds how much a JVM in a container can carry.
#[derive(Parser)]
#[command(name = "loadline", version, args_override_self = true)]
struct Arguments {
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
    let arguments = match matches.and_then(|found| Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(refusal) => return error::usage(refusal),
    };
    match arguments
        .command
        .map_or_else(commands::first, commands::run)
    {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => error.report(),
    }
}
