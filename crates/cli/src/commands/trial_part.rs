//! `loadline trial-part` (hidden): one whole trial. The implementation is in
//! [`loadline_trial::part`].

use loadline_trial::part::{self, ParentError, TrialProcessError};

use crate::error::{CommandOutcome, Error, FailureKind};
use crate::signals::Signals;

pub fn run() -> Result<CommandOutcome, Error> {
    let signals = Signals::watch_signals()?;
    let parent = std::env::var(part::PARENT).ok();
    let parent = parent.and_then(|text| text.parse().ok());
    let stop = || signals.has_come();
    part::run(std::io::stdin().lock(), std::io::stdout(), parent, &stop)
        .map(|()| CommandOutcome::Done)
        .map_err(|error| part_refused(&error))
}

pub fn part_refused(error: &TrialProcessError) -> Error {
    let kind = match error {
        TrialProcessError::Parent(ParentError::NotForPeople) => FailureKind::Usage,
        TrialProcessError::Parent(_) | TrialProcessError::Log(_) | TrialProcessError::Thread(_) => {
            FailureKind::Environment
        }
    };
    Error::new(kind, error).with_hint(error.recovery_hint())
}
