//! Why a trial cannot go on: the host cannot, the measurement failed, or it was asked to stop.
//!
//! Owns the type and its constructors.

use std::fmt::Display;

use loadline_analysis::record::{InvalidReason, MeasurementFailure};
use loadline_cgroup::CgroupError;
use loadline_protocol::RunRefusal;

/// What ends a trial before its phases are through. Never the application's own failure: that is
/// evidence.
#[derive(Debug, thiserror::Error)]
pub enum HaltReason {
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    #[error("{}", .0.detail)]
    Failed(MeasurementFailure),
    #[error("stopped")]
    Stopped,
}

pub(crate) type Stop<'a> = &'a dyn Fn() -> bool;

pub fn refusal_halt(what: &str, why: impl ToString, hint: &str) -> HaltReason {
    RunRefusal::new(what, why, hint).into()
}

pub fn cgroup_refusal(what: &str, error: &CgroupError) -> RunRefusal {
    let own = error.suggested_fix();
    let hint = own.as_deref();
    let hint = hint.unwrap_or("`loadline doctor` shows what this machine can do");
    RunRefusal::new(what, error, hint)
}

pub fn measurement_failed(detail: impl Display) -> HaltReason {
    HaltReason::Failed(own_failure(detail))
}

pub fn failed_for(reason: InvalidReason, detail: impl Into<String>) -> HaltReason {
    HaltReason::Failed(MeasurementFailure::new(reason, detail.into()))
}

pub fn step_failed<E: Display>(step: &str) -> impl FnOnce(E) -> HaltReason + '_ {
    move |error| measurement_failed(format_args!("{step}: {error}"))
}

pub fn own_failure(detail: impl Display) -> MeasurementFailure {
    MeasurementFailure::new(InvalidReason::ToolError, detail.to_string())
}
