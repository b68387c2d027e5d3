//! Objectives in the words of a reason: `p99 of POST /orders`, `max of lag 7 <= 7`.

use crate::record::{Evidence, ObjectiveResult};
use crate::sli::MeasuredLoad;
use crate::slo::{Objective, RunObjective};
use crate::text;

pub(super) fn met_sentence(result: &ObjectiveResult) -> String {
    let (name, bound) = (objective_name(result), bound_text(result.objective));
    let value = result.measured;
    let value = value.map(|measured| result.objective.show_measured(measured));
    let value = value.unwrap_or("unknown".to_owned());
    match result.objective {
        Objective::Metric(_) => format!("{name} {value} {bound}"),
        Objective::LoadPasses { .. } => "the load passes".to_owned(),
        _ => format!("{name} {value} < {bound}"),
    }
}

/// `p99`, `max latency`; `p99 of POST /orders`, `peak p99`.
pub(super) fn objective_name(result: &ObjectiveResult) -> String {
    let name = match result.objective {
        Objective::Latency { quantile, .. } => quantile.to_string(),
        Objective::MaxLatency { .. } => "max latency".to_owned(),
        Objective::Errors { .. } => "errors".to_owned(),
        Objective::Start { .. } => "start time".to_owned(),
        Objective::Jvm(jvm) => jvm.subject().to_owned(),
        Objective::Run(run) => run.subject().to_owned(),
        Objective::Metric(metric) => metric.word_name().to_owned(),
        Objective::LoadPasses { .. } => "exit code of the load command".to_owned(),
    };
    match &result.request {
        Some(request) => format!("{name} of {request}"),
        None if result.is_peak => format!("peak {name}"),
        None => name,
    }
}

pub(super) fn bound_text(objective: Objective) -> String {
    match objective {
        Objective::Latency { bound, .. }
        | Objective::MaxLatency { bound }
        | Objective::Start { bound } => text::exact_duration(bound),
        Objective::Errors { bound } => text::percent_bound(bound),
        Objective::Run(RunObjective::Time { bound } | RunObjective::Cpu { bound }) => {
            text::exact_duration(bound)
        }
        Objective::Jvm(jvm) => text::percent_bound(jvm.bound_value()),
        Objective::Run(RunObjective::Slower { bound }) => text::percent_bound(bound),
        Objective::Run(RunObjective::Exit { code }) => code.to_string(),
        Objective::Metric(metric) => metric.show_bound(),
        Objective::LoadPasses { .. } => "0".to_owned(),
    }
}

pub(super) fn broken_sentence(
    miss: &ObjectiveResult,
    measured: Option<&MeasuredLoad>,
    evidence: &Evidence,
) -> String {
    if let Objective::Metric(metric) = miss.objective {
        return super::metric::broken_sentence(miss, metric, evidence);
    }
    let name = objective_name(miss);
    let bound = bound_text(miss.objective);
    // What failed is known by kind for all requests together only.
    let (sent, failed, kinds) = match (&miss.request, measured) {
        (_, None) => (0, 0, String::new()),
        (Some(request), Some(measured)) => {
            let request = measured.request_named(request);
            let failed = request.map_or(0, |request| request.failed);
            let kinds = format!(" ({})", text::short_count(failed));
            (request.map_or(0, |request| request.sent()), failed, kinds)
        }
        (None, Some(measured)) => {
            let failed = measured.errors.values().sum::<u64>() + measured.unfinished;
            (measured.scheduled, failed, failure_kinds(measured))
        }
    };
    match (miss.measured, miss.objective) {
        (Some(share), Objective::Errors { .. }) => {
            let were = miss.objective.show_measured(share);
            format!("{name} were {were}{kinds}, the SLO allows {bound}")
        }
        (Some(seconds), objective) => {
            let was = objective.show_measured(seconds);
            format!("{name} was {was}, the SLO allows {bound}")
        }
        (None, Objective::Jvm(_)) => {
            format!("{name} has no value: there is no GC log of one JVM, the SLO allows {bound}")
        }
        (None, _) if sent == 0 => {
            format!("{name} has no value: no request was sent, the SLO allows {bound}")
        }
        (None, _) => {
            let failed = text::short_count(failed);
            let sent = text::short_count(sent);
            format!("{failed} of {sent} requests failed{kinds}: too many for {name}<{bound}")
        }
    }
}

/// ` (timeout 120, unfinished 3)`: the failed requests by kind, most frequent first.
fn failure_kinds(measured: &MeasuredLoad) -> String {
    let errors = measured.errors.iter();
    let errors = errors.map(|(kind, count)| (kind.as_str(), *count));
    let errors = errors.chain([("unfinished", measured.unfinished)]);
    let mut kinds: Vec<(&str, u64)> = errors.filter(|(_, count)| *count > 0).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let said = |(kind, count): &(&str, u64)| format!("{kind} {}", text::short_count(*count));
    let kinds: Vec<String> = kinds.iter().take(3).map(said).collect();
    if kinds.is_empty() {
        String::new()
    } else {
        format!(" ({})", kinds.join(", "))
    }
}
