//! `loadline neighbour` (hidden): the busy neighbour of a trial. The implementation is in
//! [`loadline_trial::run_neighbour`].

use clap::Args;
use loadline_trial::run_neighbour;

use crate::error::{CommandOutcome, Error};

#[derive(Args)]
pub struct NeighbourArguments {
    /// Threads to keep busy.
    threads: u32,
    /// CPUs they run on.
    cpus: loadline_sizing::CpuSet,
}

pub fn run(arguments: &NeighbourArguments) -> Result<CommandOutcome, Error> {
    let cpus: Vec<u32> = arguments.cpus.iter().collect();
    run_neighbour(arguments.threads, &cpus, std::io::stdin().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the neighbour: {e}")))
}
