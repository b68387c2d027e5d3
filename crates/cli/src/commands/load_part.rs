//! `loadline load-part` (hidden): one load generator process of a trial. The implementation is in
//! [`loadline_load::part`].

use loadline_trial::run_load_process;

use crate::error::{CommandOutcome, Error};

pub fn run() -> Result<CommandOutcome, Error> {
    run_load_process(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(Error::from)
}
