//! What can go wrong in a chore.

use std::path::PathBuf;

/// A chore that could not be done. A chore that ran and found faults is no error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}\nhint: make setup installs what is missing")]
    Start {
        /// Its name.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A program ended with a failure; its own words are above or in `output`.
    #[error("{command} failed ({status})\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// Exit code or signal.
        status: std::process::ExitStatus,
        /// What it said.
        output: String,
    },
    /// Arguments that the chore does not take, or something that it needs first.
    #[error("{0}")]
    Usage(String),
    /// A program's output was not what its documentation promises.
    #[error("{command}: unexpected output: {detail}")]
    Output {
        /// The command line.
        command: String,
        /// What was wrong with it.
        detail: String,
    },
}

impl Error {
    /// For `map_err` after an operation on a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
