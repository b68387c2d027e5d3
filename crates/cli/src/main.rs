//! The command line: arguments to engine, records to text. The only crate that prints.
//!
//! One file a subcommand in [`commands`]; stdout is data, stderr is talk; the exit code says how
//! it ended ([`error::ErrorKind`]).

mod commands;
mod enough;
mod error;
mod experiment;
mod files;
mod images;
mod load_flags;
mod measuring;
mod result;
mod signals;
mod ui;

use std::process::ExitCode;

use clap::Parser;
use loadline_host::entry;

use crate::error::Error;

/// Finds how much a JVM in a container can carry.
#[derive(Parser)]
#[command(
    name = "loadline",
    version,
    arg_required_else_help = true,
    args_override_self = true
)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    if entry::is_in_image()
        && let Err(refusal) = entry::step_out()
    {
        return Error::refused(&refusal).report();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(refusal) => return error::usage(&refusal),
    };
    match commands::run(arguments.command) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => error.report(),
    }
}
