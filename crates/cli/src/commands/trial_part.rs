//! `loadline trial-part` (hidden): one whole trial. All of it is in [`loadline_host::part`].

use loadline_host::part::{self, PartError};

use crate::error::{Error, ErrorKind, Outcome};
use crate::signals::Signals;

/// Reads the order from stdin, appends its events to the file that is stdout.
pub fn run() -> Result<Outcome, Error> {
    let signals = Signals::watch()?;
    let parent = std::env::var(part::PARENT).ok();
    let parent = parent.and_then(|text| text.parse().ok());
    let stop = || signals.came();
    part::run(std::io::stdin().lock(), std::io::stdout(), parent, &stop)
        .map(|()| Outcome::Done)
        .map_err(|error| refused(&error))
}

/// Why a part of a trial did not begin, as the command line reports it.
pub fn refused(error: &PartError) -> Error {
    let kind = match error {
        PartError::NotForPeople => ErrorKind::Usage,
        PartError::Orphan | PartError::Log(_) | PartError::Thread(_) => ErrorKind::Environment,
    };
    Error::new(kind, error).hint(error.hint())
}
