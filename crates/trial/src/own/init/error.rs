//! What can go wrong between loadline and the application, with the step it happened in.

use loadline_sys::SysError;

use crate::own::protocol::ProtocolError;

/// A stage of `loadline init-part` that failed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Someone typed it.
    #[error(
        "`loadline init-part` is a part of loadline: it takes its order from a socket on standard input"
    )]
    NotForPeople,
    /// The socket to loadline.
    #[error(transparent)]
    Line(ProtocolError),
    /// A system call with unsafe code.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The filter of system calls.
    #[error("making the filter of system calls (seccomp): {0}")]
    Filter(String),
    /// Any other step.
    #[error("{step}: {source}")]
    Step {
        /// The call or file, and what for.
        step: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Names the step of a system error.
pub(super) trait StepContext<T> {
    /// Turns the error into [`InitError::Step`].
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
