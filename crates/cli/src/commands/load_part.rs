//! `loadline load-part` (hidden): one load generator process of a trial. All of it is in
//! [`loadline_load::part`].

use loadline_load::LoadError;
use loadline_trial::run_load_process;

use super::load_error;
use crate::error::{CommandOutcome, Error, FailureKind};

/// Reads the order from stdin, writes messages to stdout.
pub fn run() -> Result<CommandOutcome, Error> {
    run_load_process(std::io::stdin().lock(), std::io::stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(load_error)
}

/// The exit code that a failed load stands for.
pub fn load_failure_kind(error: &LoadError) -> FailureKind {
    match error {
        LoadError::Plan { .. } | LoadError::Part { .. } | LoadError::Order(_) => FailureKind::Usage,
        LoadError::System { .. }
        | LoadError::Namespace { .. }
        | LoadError::Target { .. }
        | LoadError::UnknownHost { .. }
        | LoadError::Generator { .. }
        | LoadError::Output(_) => FailureKind::Environment,
        LoadError::Histogram(_) => FailureKind::Invalid,
        LoadError::Accounting { .. } | LoadError::Panicked => FailureKind::Internal,
    }
}
