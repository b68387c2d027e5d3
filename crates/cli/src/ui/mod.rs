//! What a person sees while trials run, on stderr.

/// A line on stderr that helps and may be left out: progress, notes, what to do next. Warnings,
/// errors and answers are none.
macro_rules! talk {
    ($($what:tt)*) => {
        if !$crate::ui::is_quiet() {
            eprintln!($($what)*);
        }
    };
}

/// A line on stderr for who wants to know what is done: only with `-v`.
macro_rules! detail {
    ($($what:tt)*) => {
        if $crate::ui::is_verbose() {
            eprintln!($($what)*);
        }
    };
}

pub mod next;
mod progress;
pub mod text;

use std::sync::atomic::{AtomicBool, Ordering};

pub use progress::ProgressDisplay;

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
