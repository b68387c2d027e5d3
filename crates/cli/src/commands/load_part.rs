//! `loadline load-part` (hidden): one load generator process of a trial. All of it is in
//! [`loadline_load::part`].

use loadline_host::load_part;
use loadline_load::LoadError;

use super::load_error;
use crate::error::{Error, ErrorKind, Outcome};

/// Reads the order from stdin, writes messages to stdout.
pub fn run() -> Result<Outcome, Error> {
    load_part(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| Outcome::Done)
        .map_err(load_error)
}

/// The exit code that a failed load stands for.
pub fn kind(error: &LoadError) -> ErrorKind {
    match error {
        LoadError::Plan { .. } | LoadError::Part { .. } | LoadError::Order(_) => ErrorKind::Usage,
        LoadError::System { .. }
        | LoadError::Namespace { .. }
        | LoadError::Target { .. }
        | LoadError::UnknownHost { .. }
        | LoadError::Generator { .. }
        | LoadError::Output(_) => ErrorKind::Environment,
        LoadError::Histogram(_) => ErrorKind::Invalid,
        LoadError::Accounting { .. } | LoadError::Panicked => ErrorKind::Internal,
    }
}
