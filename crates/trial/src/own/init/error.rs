//! What can go wrong between loadline and the application, with the step it happened in.

use loadline_sys::SysError;

use crate::own::protocol::ProtocolError;

#[derive(Debug, thiserror::Error)]
pub enum InitError {
    #[error(
        "`loadline init-part` is a part of loadline: it takes its order from a socket on standard input"
    )]
    NotForPeople,
    #[error(transparent)]
    Line(#[from] ProtocolError),
    #[error(transparent)]
    Sys(#[from] SysError),
    #[error("making the filter of system calls (seccomp): {0}")]
    Filter(String),
    #[error("{step}: {source}")]
    Step {
        step: String,
        source: std::io::Error,
    },
}

pub(super) trait StepContext<T> {
    fn at_step(self, step: impl Into<String>) -> Result<T, InitError>;
}

impl<T, E: Into<std::io::Error>> StepContext<T> for Result<T, E> {
    fn at_step(self, step: impl Into<String>) -> Result<T, InitError> {
        self.map_err(|error| InitError::Step {
            step: step.into(),
            source: error.into(),
        })
    }
}
