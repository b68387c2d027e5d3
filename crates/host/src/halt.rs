//! Why a trial does not go on: the host cannot, the measurement failed, or it was told to stop.
//!
//! Owns the type and the short ways to make one.

use std::fmt::Display;

use loadline_analysis::record::{Failure, Invalid};
use loadline_cgroup::CgroupError;
use loadline_trial::Refusal;

/// What ends a trial before its phases are through. Never the application's own failure: that is
/// evidence.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The host cannot do what the trial needs; another attempt would come to the same.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The trial could not be measured; it is INVALID.
    #[error("{}", .0.detail)]
    Failed(Failure),
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

/// A refusal of this host.
pub fn refused(what: &str, why: impl ToString, hint: &str) -> Halt {
    Refusal::new(what, why, hint).into()
}

/// The same from a cgroup error, with its own hint where it has one.
pub fn cgroup(what: &str, error: &CgroupError) -> Refusal {
    let own = error.hint();
    let hint = own.as_deref();
    Refusal::new(
        what,
        error,
        hint.unwrap_or("`loadline doctor` shows what this machine can do"),
    )
}

/// A measurement that failed for this reason.
pub fn failed(detail: impl Display) -> Halt {
    Halt::Failed(failure(detail))
}

/// A step of loadline's that failed.
pub fn step<E: Display>(step: &str) -> impl FnOnce(E) -> Halt + '_ {
    move |error| failed(format_args!("{step}: {error}"))
}

/// A failure of loadline's own.
pub fn failure(detail: impl Display) -> Failure {
    Failure {
        cause: Invalid::ToolError,
        detail: detail.to_string(),
    }
}
