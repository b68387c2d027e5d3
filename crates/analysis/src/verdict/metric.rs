//! Objectives about metrics: their values from the samples, and the sentence for a miss.

use super::words::objective_name;
use crate::record::{Evidence, MetricEvidence, ObjectiveResult};
use crate::slo::{MetricObjective, Slo};

/// Its samples, and all objectives about the same metric.
fn samples<'a>(
    name: &str,
    slo: &Slo,
    evidence: &'a Evidence,
) -> (Option<&'a MetricEvidence>, Vec<MetricObjective>) {
    let of_same = slo.metric_objectives().filter(|(other, _)| *other == name);
    let metric = evidence.metrics.iter().find(|metric| metric.name == name);
    (metric, of_same.map(|(_, objective)| objective).collect())
}

pub(super) fn measured_value(
    name: &str,
    objective: MetricObjective,
    slo: &Slo,
    evidence: &Evidence,
) -> Option<f64> {
    let (metric, others) = samples(name, slo, evidence);
    objective.value(&metric?.values, &others)
}

pub(super) fn broken_sentence(
    miss: &ObjectiveResult,
    objective: MetricObjective,
    evidence: &Evidence,
) -> String {
    let name = objective_name(miss);
    let bound = objective.show_bound();
    if let Some(value) = miss.measured {
        let value = objective.show_value(value);
        return format!("{name} was {value}, the SLO asks for {bound}");
    }
    let mut metrics = evidence.metrics.iter();
    let metric = metrics.find(|metric| Some(&metric.name) == miss.request.as_ref());
    match metric.map(|metric| (metric, metric.missing())) {
        Some((metric, missing)) if missing > 0 => {
            let all = metric.values.len();
            let why = metric.last_failure.as_ref();
            let why = why.map_or_else(String::new, |why| format!(" (last: {why})"));
            format!(
                "{name} has no value, the SLO asks for {bound}: {missing} of {all} samples are missing or no number{why}"
            )
        }
        _ => format!("{name} was not reached in the measure phase, the SLO asks for {bound}"),
    }
}

/// Metrics that keep their bound only because the phase ended.
pub(super) fn growth_sentences(slo: &Slo, evidence: &Evidence) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, objective) in slo.metric_objectives() {
        let (metric, others) = samples(name, slo, evidence);
        let growth = metric.and_then(|m| objective.unkept_growth(&m.values, &others));
        if let Some(growth) = growth {
            let rate = objective.show_value(growth);
            sentences.push(format!(
                "{name} grows by {rate}/s: it keeps {objective} only because the measure phase ended"
            ));
        }
    }
    sentences.dedup();
    sentences
}
