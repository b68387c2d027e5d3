//! `-o FILE`: what a command prints goes into a file, the same of every command that prints a text or
//! JSON.
//!
//! Owns the flag and where the text is kept until the command has ended: a file is written whole or
//! not at all, and also where the command ends with an error after it has printed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::{Arg, ArgMatches, Command, value_parser};

use super::RESULT;
use crate::error::Error;
use crate::files;

const ID: &str = "printed-to";

/// Commands that print a text or JSON, and have no `-o` of their own.
const PRINTING: [&str; 20] = [
    "size", "verify", "run", "judge", "lint", "soak", "drill", "plan", "resume", "show", "explain",
    "compare", "list", "load", "merge", "gc", "predict", "doctor", "schema", "clean",
];

/// What is printed, where it goes into a file.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// The command line with the flag on every command that prints.
pub fn with_flag(command: Command) -> Command {
    PRINTING.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |one| {
            one.arg(
                Arg::new(ID)
                    .short('o')
                    .long("output")
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help_heading(RESULT)
                    .help("File for what is printed [default: -, standard output]"),
            )
        })
    })
}

/// The file of the flag; from now on what is printed is kept for it.
pub fn begin_output(matches: &ArgMatches) -> Option<PathBuf> {
    let (name, of_command) = matches.subcommand()?;
    if !PRINTING.contains(&name) {
        return None;
    }
    let path = of_command.get_one::<PathBuf>(ID)?;
    if files::is_standard(path) {
        return None;
    }
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
    Some(path.clone())
}

/// Keeps a text that is printed; `false` where it belongs on standard output.
pub fn keep_text(text: &str) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kept) = kept.as_mut() else {
        return false;
    };
    kept.push_str(text);
    if !text.ends_with('\n') {
        kept.push('\n');
    }
    true
}

/// Writes what was kept; nothing where nothing was printed.
///
/// # Errors
/// When the file cannot be written.
pub fn write_kept(path: Option<PathBuf>) -> Result<(), Error> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (path, kept) {
        (Some(path), Some(text)) if !text.is_empty() => files::write(&path, &text),
        _ => Ok(()),
    }
}
