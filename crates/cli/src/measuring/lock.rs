//! The machine's lock, taken or waited for, and what is said while it is not to be had.

use loadline_engine::lock::{LockError, MachineLock};

use crate::error::{Error, ErrorKind};
use crate::signals::Signals;

/// Takes the lock; waits for it where asked to.
///
/// # Errors
/// Another loadline has it, a signal came while waiting, or its file cannot be used.
pub fn lock(wait: bool, signals: &Signals) -> Result<MachineLock, Error> {
    let mut told = false;
    let locked = if wait {
        MachineLock::wait(|held| {
            if !told {
                talk!("waiting: {held}");
                told = true;
            }
            !signals.came()
        })
    } else {
        MachineLock::acquire()
    };
    locked.map_err(|error| match error {
        LockError::Held { .. } if signals.came() => Error::new(
            signals.kind(),
            "interrupted while waiting for another loadline",
        ),
        held @ LockError::Held { .. } => Error::new(ErrorKind::Environment, held)
            .hint("two measurements disturb each other; add --wait to run after it"),
        io @ LockError::Io { .. } => Error::new(ErrorKind::Environment, io)
            .hint("its directory must be writable, on a disk with space; then go on as before"),
    })
}
