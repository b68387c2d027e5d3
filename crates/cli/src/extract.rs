//! `--extract`: extracts the application's Spring Boot jar and measures the result.
//!
//! Owns which word of a command is the jar. Crate `jvm` knows the layout.

use std::path::Path;

use loadline_jvm::cache::destination::FileOwner;
use loadline_jvm::cache::extracted::{ExtractError, extract, place_of};
use loadline_protocol::Account;

use crate::called;
use crate::error::{Error, FailureKind};
use crate::measuring::sudo_caller;

const LAUNCHERS: &str = "-Dloader.";

/// The command that starts the extracted application, extracted into `to`, or next to its jar.
/// Relative paths start here. Errors: With the problem of the command or its jar.
pub fn extract_command(command: &[String], to: Option<&Path>) -> Result<Vec<String>, Error> {
    let at = command.iter().position(|word| word == "-jar");
    let Some((at, jar)) = at.and_then(|at| Some((at + 1, command.get(at + 1)?))) else {
        let hint = "give the application's command, even if a file has it: -- java -jar app.jar";
        return Err(Error::usage("--extract: the command has no -jar").with_hint(hint));
    };
    if let Some(option) = command[..at].iter().find(|w| w.starts_with(LAUNCHERS)) {
        return Err(Error::usage(format!(
            "--extract: {option} is for Spring Boot's launcher, which an extracted application does not use"
        ))
        .with_hint("put the files it names on the class path yourself and measure that"));
    }
    let here = called::working_directory()?;
    let path = here.join(jar);
    let to = to.map_or_else(|| place_of(&path), |to| here.join(to));
    let caller = sudo_caller().map(|Account { uid, gid }| FileOwner { uid, gid });
    let done = extract(&path, &to, caller).map_err(|e| extract_refused(&e))?;
    let place = done.jar.strip_prefix(&here).unwrap_or(&done.jar);
    let (place, files) = (place.display().to_string(), done.libraries);
    talk!(
        "extracted {jar}: {place} and its libraries in lib next to it, {files} files; this will be measured"
    );
    let mut command = command.to_vec();
    command[at] = place;
    Ok(command)
}

fn extract_refused(error: &ExtractError) -> Error {
    let kind = match error {
        ExtractError::File(_) => FailureKind::Environment,
        _ => FailureKind::Usage,
    };
    Error::new(kind, format!("--extract: {error}")).with_hint(error.extract_hint())
}
