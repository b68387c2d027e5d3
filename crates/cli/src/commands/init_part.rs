//! `loadline init-part` (hidden): the processes between loadline and an application under test. The
//! implementation is in [`loadline_trial::init`].

use loadline_trial::init::{self, InitError};

use crate::error::{CommandOutcome, Error, FailureKind};

pub fn run() -> Result<CommandOutcome, Error> {
    init::run().map(|()| CommandOutcome::Done).map_err(|error| {
        let kind = match &error {
            InitError::NotForPeople => FailureKind::Usage,
            InitError::Line(_) => FailureKind::Internal,
            InitError::Sys(_) | InitError::Filter(_) | InitError::Step { .. } => {
                FailureKind::Environment
            }
        };
        let hint = "see `loadline --help` for the commands to use";
        let hint = matches!(error, InitError::NotForPeople).then_some(hint);
        Error::new(kind, error).with_hint_if(hint)
    })
}
