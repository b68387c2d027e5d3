//! The first second after readiness: it is not judged, and often the slowest a user meets.
//!
//! Owns the sentence, which is said where that second breaks the SLO.

use loadline_analysis::record::{SecondEvidence, TrialPhase, TrialRecord};
use loadline_analysis::slo::Objective;

use crate::figures::{SeenLatency, spread};
use crate::view::ResultView;

pub(super) fn describe_miss<'a>(
    view: &ResultView,
    starts: impl Iterator<Item = &'a TrialRecord>,
) -> Option<String> {
    let seconds: Vec<&SecondEvidence> = starts.filter_map(first_second).collect();
    let middle = |of: fn(&SecondEvidence) -> Option<std::time::Duration>| {
        let all = seconds.iter().map(|s| SeenLatency::from_quantile(of(s)));
        spread(all).map(|spread| spread.median)
    };
    let (p50, p99) = (middle(|s| s.p50)?, middle(|s| s.p99)?);
    let is_missed = |objective: &Objective| match objective {
        Objective::Latency { quantile, bound } => {
            let seen = if quantile.as_fraction() <= 0.5 {
                p50
            } else {
                p99
            };
            seen >= SeenLatency::At(*bound)
        }
        _ => false,
    };
    view.slo.objectives.iter().any(is_missed).then(|| {
        format!(
            "In the first second after start, which is not judged, p50 was {} and p99 {}.",
            p50.show(),
            p99.show()
        )
    })
}

fn first_second(trial: &TrialRecord) -> Option<&SecondEvidence> {
    let phases = &trial.evidence.phases;
    let ready = phases.iter().find(|p| p.phase == TrialPhase::Start)?.end;
    let mut seconds = trial.evidence.seconds.iter();
    seconds.find(|s| s.at_ns > ready && s.offered.is_some_and(|n| n > 0))
}
