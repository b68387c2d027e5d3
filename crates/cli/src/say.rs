//! What the command line says: the one place that writes to stderr.
//!
//! Owns how much is said. Nobody reads stderr for sure: it may be closed, or a log on a full disk,
//! and a measurement of hours does not end for a line that nobody gets. `eprintln!` panics there.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line on stderr: warnings, errors, and what else must be known.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::say::write_stderr(format_args!("{}\n", format_args!($($what)*)))
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

/// A line on stderr for who wants to know what is done: only with `-v`.
macro_rules! detail {
    ($($what:tt)*) => {
        if $crate::say::is_verbose() {
            say!($($what)*);
        }
    };
}

static IS_QUIET: AtomicBool = AtomicBool::new(false);
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

/// From now on [`talk!`] says nothing, or [`detail!`] something, where that is asked for.
pub fn set_verbosity(is_quiet: bool, is_verbose: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
    IS_VERBOSE.store(is_verbose, Ordering::Relaxed);
}

/// Whether only answers, warnings and errors are wanted.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Whether details are wanted, too.
pub fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// Writes it at once, so that no other process comes between its parts. What cannot be written is
/// lost.
pub fn write_stderr(text: Arguments<'_>) {
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}
