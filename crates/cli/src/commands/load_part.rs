//! `loadline load-part` (hidden): one load generator process of a trial. All of it is in
//! [`loadline_load::part`].

use loadline_trial::run_load_process;

use crate::error::{CommandOutcome, Error, load_error};

/// Reads the order from stdin, writes messages to stdout.
pub fn run() -> Result<CommandOutcome, Error> {
    run_load_process(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(load_error)
}
