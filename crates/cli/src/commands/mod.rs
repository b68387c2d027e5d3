//! The subcommands, one file each: its arguments with their help, and what it does.

mod gc;
mod load;
mod load_part;

use clap::Subcommand;

use crate::error::{Error, Outcome};

/// All subcommands, in the order of the help.
#[derive(Subcommand)]
pub enum Command {
    Gc(gc::GcArgs),
    /// Sends HTTP load to a URL and measures the latency.
    Load(load::Arguments),
    /// One load generator process of a trial; started by loadline itself.
    #[command(hide = true)]
    LoadPart,
}

/// Runs one.
pub fn run(command: Command) -> Result<Outcome, Error> {
    match command {
        Command::Gc(arguments) => gc::run(&arguments),
        Command::Load(arguments) => load::run_load(&arguments),
        Command::LoadPart => load_part::run(),
    }
}
