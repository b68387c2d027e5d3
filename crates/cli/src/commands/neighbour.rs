//! `loadline neighbour` (hidden): the busy neighbour of a trial. All of it is in
//! [`loadline_host::neighbour`].

use clap::Args;
use loadline_host::neighbour;

use crate::error::{Error, ErrorKind, Outcome};

/// What it is told.
#[derive(Args)]
pub struct NeighbourArguments {
    /// Threads to keep busy.
    threads: u32,
    /// CPUs they run on.
    cpus: loadline_sizing::CpuSet,
}

/// Runs until standard input ends.
pub fn run(arguments: &NeighbourArguments) -> Result<Outcome, Error> {
    let cpus: Vec<u32> = arguments.cpus.iter().collect();
    neighbour(arguments.threads, &cpus, std::io::stdin().lock())
        .map(|()| Outcome::Done)
        .map_err(|e| Error::new(ErrorKind::Environment, format!("the neighbour: {e}")))
}
