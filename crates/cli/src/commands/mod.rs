//! The subcommands, one file each: its arguments with their help, and what it does.

use clap::Subcommand;

use crate::error::{Error, Outcome};

/// All subcommands, in the order of the help.
#[derive(Subcommand)]
pub enum Command {}

/// Runs one.
pub fn run(command: Command) -> Result<Outcome, Error> {
    match command {}
}
