//! `loadline proxy-part` (hidden): the proxy in front of a trial's dependencies. The implementation
//! is in [`loadline_trial::run_proxy_process`].

use loadline_trial::run_proxy_process;

use crate::error::{CommandOutcome, Error};

pub fn run() -> Result<CommandOutcome, Error> {
    run_proxy_process(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the proxy: {e}")))
}
