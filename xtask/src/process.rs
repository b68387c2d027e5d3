//! Programs that chores run.

use std::process::{Command, Output};

use crate::error::Error;

/// Runs a program to its end and gives its stdout.
/// Errors: When it cannot be started or fails; the error carries its stderr.
pub fn stdout_of(command: &mut Command) -> Result<String, Error> {
    let output = output_of(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Failed {
        command: text(command),
        status: output.status,
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a program to its end, however it ends.
/// Errors: When it cannot be started.
pub fn output_of(command: &mut Command) -> Result<Output, Error> {
    command.output().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

pub fn text(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
