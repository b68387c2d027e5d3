//! What can go wrong in a chore.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot run {program}: {source}\nhint: make setup installs what is missing")]
    Start {
        program: String,
        source: std::io::Error,
    },
    /// A program ended with a failure; its own words are above or in `output`.
    #[error("{command} failed ({status})\n{output}")]
    Failed {
        command: String,
        status: std::process::ExitStatus,
        output: String,
    },
    #[error("{0}")]
    Usage(String),
    #[error("{command}: unexpected output: {detail}")]
    Output { command: String, detail: String },
}

impl Error {
    /// For `map_err` after an operation on a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
