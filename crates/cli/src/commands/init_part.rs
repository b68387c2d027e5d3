//! `loadline init-part` (hidden): the processes between loadline and an application under test. All of
//! it is in [`loadline_host::init`].

use loadline_host::init::{self, InitError};

use crate::error::{Error, ErrorKind, Outcome};

/// Runs a stage; what it prints on failure goes into the application's output.
pub fn run() -> Result<Outcome, Error> {
    init::run().map(|()| Outcome::Done).map_err(|error| {
        let kind = match &error {
            InitError::NotForPeople => ErrorKind::Usage,
            InitError::Line(_) => ErrorKind::Internal,
            InitError::Sys(_) | InitError::Filter(_) | InitError::Step { .. } => {
                ErrorKind::Environment
            }
        };
        let hint = "see `loadline --help` for the commands for people";
        let hint = matches!(error, InitError::NotForPeople).then_some(hint);
        Error::new(kind, error).hint_if(hint)
    })
}
