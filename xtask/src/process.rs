//! Programs that chores run.

use std::process::{Command, Output};

use crate::error::Error;

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
