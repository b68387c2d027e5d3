//! Whether a trial left anything to judge: requests, metrics, or the exit code of its load command.

use crate::record::{Evidence, InvalidReason};
use crate::sli::MeasuredLoad;
use crate::slo::Slo;

pub(super) fn is_measured(measured: Option<&MeasuredLoad>, evidence: &Evidence) -> bool {
    measured.is_some() || !evidence.metrics.is_empty() || evidence.load_exit.is_some()
}

pub(super) fn why_unjudged(
    measured: Option<&MeasuredLoad>,
    slo: &Slo,
    evidence: &Evidence,
) -> Option<(InvalidReason, String)> {
    let is_cut = evidence.ended_early.is_some();
    if slo.failing_exit().is_some() && evidence.load_exit.is_none() && !is_cut {
        let reason = "the load command did not end after the judged part, so its exit code is unknown; it must end after {duration_s} seconds, as its command can say";
        return Some((InvalidReason::LoadCommand, reason.to_owned()));
    }
    (!is_measured(measured, evidence)).then(|| {
        let reason = "the application was ready, but no load was measured";
        (InvalidReason::ToolError, reason.to_owned())
    })
}
