//! Objectives in the words of a reason: `p99 of POST /orders`, `max of lag 7 <= 7`.

use crate::record::ObjectiveResult;
use crate::slo::{Objective, RunObjective};
use crate::text;

pub(super) fn met_sentence(result: &ObjectiveResult) -> String {
    let (name, bound) = (objective_name(result), bound_text(result.objective));
    let value = result.measured.map_or_else(
        || "unknown".to_owned(),
        |measured| result.objective.show_measured(measured),
    );
    match result.objective {
        Objective::Metric(_) => format!("{name} {value} {bound}"),
        Objective::LoadPasses { .. } => "the load passes".to_owned(),
        _ => format!("{name} {value} < {bound}"),
    }
}

/// `p99`, `max latency`; `p99 of POST /orders`.
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
