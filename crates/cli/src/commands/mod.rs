//! The subcommands, one file each: its arguments with their help, and what it does.

mod predict;

use clap::Subcommand;

use crate::error::{Error, Outcome};

/// All subcommands, in the order of the help.
#[derive(Subcommand)]
pub enum Command {
    /// What the JVM would choose by itself in a container of this size.
    Predict(predict::Predict),
}

/// Runs one.
pub fn run(command: Command) -> Result<Outcome, Error> {
    match command {
        Command::Predict(arguments) => predict::run(&arguments),
    }
}
