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

mod progress;
pub mod text;

use std::sync::atomic::{AtomicBool, Ordering};

pub use progress::Progress;

static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on [`talk!`] says nothing, where that is asked for.
pub fn quiet(is_quiet: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Whether only answers, warnings and errors are wanted.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}
