//! `loadline keeper-part` (hidden): the dependencies that the trials of a result share. The
//! implementation is in [`loadline_trial::keeper`].

use loadline_trial::{keeper, part};

use crate::error::{CommandOutcome, Error};

pub fn run() -> Result<CommandOutcome, Error> {
    let parent = std::env::var(part::PARENT).ok();
    let parent = parent.and_then(|text| text.parse().ok());
    keeper::run_keeper_process(std::io::stdin(), std::io::stdout().lock(), parent)
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the keeper: {e}")))
}
