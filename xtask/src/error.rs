//! What can go wrong in a chore.

use std::path::PathBuf;
use std::process::Command;

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

    /// For `map_err` after the start of a program.
    pub fn start(command: &Command) -> impl FnOnce(std::io::Error) -> Self {
        let program = command.get_program().to_string_lossy().into_owned();
        move |source| Self::Start { program, source }
    }

    pub fn output(command: impl Into<String>, detail: impl ToString) -> Self {
        let (command, detail) = (command.into(), detail.to_string());
        Self::Output { command, detail }
    }
}
