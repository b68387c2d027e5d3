//! Programs that chores run, and directories that they fill.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::Error;

/// What stands before a command to give its trials a separate machine lock, so that they run next to
/// others. For tests that judge no time; needs root.
pub const OWN_LOCK: [&str; 6] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /run/lock && exec \"$@\"",
    "sh",
];

/// Whether this machine allows [`OWN_LOCK`].
pub fn can_have_own_lock() -> bool {
    let mut command = Command::new(OWN_LOCK[0]);
    command.args(&OWN_LOCK[1..]).arg("true");
    output_of(&mut command).is_ok_and(|output| output.status.success())
}

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
    command.output().map_err(Error::start(command))
}

pub fn remove(directory: &Path) -> Result<(), Error> {
    match directory.exists() {
        true => fs::remove_dir_all(directory).map_err(Error::file(directory)),
        false => Ok(()),
    }
}

/// Paths in a directory, sorted.
pub fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = read.map_err(Error::file(directory))?;
    paths.sort();
    Ok(paths)
}

/// Makes it, without what an earlier run left in it.
pub fn empty(directory: &Path) -> Result<(), Error> {
    remove(directory)?;
    fs::create_dir_all(directory).map_err(Error::file(directory))
}

pub fn text(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
