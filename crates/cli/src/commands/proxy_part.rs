//! `loadline proxy-part` (hidden): the proxy in front of a trial's dependencies. The implementation
//! is in [`loadline_trial::run_proxy_process`].

use loadline_trial::run_proxy_process;

use crate::error::{CommandOutcome, Error, FailureKind};

pub fn run() -> Result<CommandOutcome, Error> {
    run_proxy_process(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::new(FailureKind::Environment, format!("the proxy: {e}")))
}
