//! The command line's output: data to stdout, and the one place that writes to stderr.
//!
//! Owns verbosity and width. stderr may have no reader: it may be closed, or a log on a full disk,
//! and a measurement of hours must not end because a line cannot be written. `eprintln!` panics
//! there.

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_report::text::harmless;
use serde::Serialize;

use crate::error::Error;

macro_rules! say {
    ($($what:tt)*) => {
        $crate::say::write_line(format_args!($($what)*))
    };
}

/// A line on stderr that helps and may be left out: progress, notes, what to do next. Warnings,
/// errors and answers are none.
macro_rules! talk {
    ($($what:tt)*) => {
        if !$crate::say::is_quiet() {
            say!($($what)*);
        }
    };
}

/// A line on stderr about details: only with `-v`.
macro_rules! detail {
    ($($what:tt)*) => {
        if $crate::say::is_verbose() {
            say!($($what)*);
        }
    };
}

static IS_QUIET: AtomicBool = AtomicBool::new(false);
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

pub fn set_verbosity(is_quiet: bool, is_verbose: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
    IS_VERBOSE.store(is_verbose, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

pub fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// A line: what others wrote into it cannot steer the terminal.
pub fn write_line(text: Arguments<'_>) {
    write_stderr(format_args!("{}\n", harmless(&text.to_string())));
}

/// Writes it at once, so that no other process comes between its parts. What cannot be written is
/// lost.
pub fn write_stderr(text: Arguments<'_>) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Prints an answer: a text for people, or JSON.
pub fn print_text(text: &str) -> Result<(), Error> {
    write_stdout(&harmless(text))
}

/// Prints data, as they are where no terminal shows them.
pub fn print_data(text: &str) -> Result<(), Error> {
    if io::stdout().is_terminal() {
        print_text(text)
    } else {
        write_stdout(text)
    }
}

/// A reader that went away (`| head`) is no error.
pub fn write_stdout(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let mut written = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        written = written.and_then(|()| out.write_all(b"\n"));
    }
    match written.and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            let problem = format!("cannot write to standard output: {e}");
            let hint = "write to a disk with free space: loadline ... > FILE";
            Err(Error::environment(problem).with_hint(hint))
        }
        _ => Ok(()),
    }
}

pub fn one_line_json(form: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(form).map_err(Error::internal)
}

pub fn schema_of<T: schemars::JsonSchema>() -> String {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    serde_json::to_string_pretty(schema.as_value()).unwrap_or_default()
}

/// Columns of the terminal that answers are written to; 100 elsewhere.
pub fn width() -> usize {
    let columns = columns(io::stdout());
    columns.filter(|w| *w >= 40).unwrap_or(100)
}

pub fn columns(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
