//! Predicted throttling: for an answer on a larger host, and for configurations at a smaller CPU
//! limit, next to the measurement.
//!
//! Owns the sentence and the table. `loadline_analysis::foresee` has the model.

use loadline_analysis::foresee::{ForeseenThrottling, foresee_elsewhere, of_trial};
use loadline_analysis::interval::median;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_analysis::sli::Sli;
use loadline_analysis::slo::Quantile;

use super::groups::{self, ConfigurationGroup};
use super::section::{Section, SectionBlock};
use crate::figures::{self, SeenLatency, TrialFigures, spread_latencies};
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

const USUAL_NODE: u32 = 16;

/// `At most 12 % of its periods would be throttled on ...`; `None` where starts were throttled as they
/// would be elsewhere.
pub fn throttling_sentence<'a>(
    view: &ResultView,
    starts: impl IntoIterator<Item = &'a TrialRecord>,
) -> Option<String> {
    let cpus = view.node.as_ref().map_or(USUAL_NODE, |node| node.cpus);
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let starts: Vec<&TrialRecord> = starts.into_iter().collect();
    let own = starts.first().and_then(|t| t.evidence.cgroup.cpus)?;
    let bound = foresee_elsewhere(starts.iter().copied(), cpus, quantile)?;
    if own >= cpus {
        return None;
    }
    let then = match bound.latency {
        _ if bound.throttled == 0.0 || !view.sends_requests() => String::new(),
        Some(time) => format!(", and {quantile} at most {}", format::measured_time(time)),
        None => format!(", and {quantile} would lie in requests that fail"),
    };
    Some(format!(
        "It ran on {} here, no more than its quota ({}), so nothing was throttled. On a host with {cpus} CPUs at most {} of its periods would be{then}: by the CPU that it used in each 10 ms, median of {}.",
        format::count_of(own as usize, "CPU"),
        groups::cpu_words(&starts.first()?.configuration),
        format::as_percent(bound.throttled),
        format::count_of(bound.starts, "start"),
    ))
}

/// Prediction and measurement for each CPU limit with throttling; `None` if the trials hold no such
/// pair.
pub fn throttling_section(view: &ResultView) -> Option<Section> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let groups = groups::group_trials(view);
    let free =
        |group: &ConfigurationGroup<'_>| groups.iter().find(|free| differ_in_cpu(free, group));
    let pairs = groups.iter().filter_map(|g| Some((g, free(g)?)));
    let rows: Vec<[String; 5]> = pairs
        .filter_map(|(group, free)| throttling_row(group, free, quantile))
        .collect();
    rows.first()?;
    let mut table = Table::new()
        .left("Configuration")
        .right("Periods throttled")
        .right("foreseen")
        .right(quantile.to_string())
        .right("foreseen");
    for row in rows {
        table.add_row(row.map(Into::into));
    }
    let words = "Foreseen from the trials with as much quota as CPUs, which nothing throttled, by a model of CFS bandwidth control: from the CPU that they used in each 10 ms and from their latencies. It holds where a request takes as much CPU at both limits. Medians of all trials.";
    Some(
        Section::new("throttling", "What the CPU limit does")
            .with_block(SectionBlock::Paragraph(words.to_owned()))
            .with_block(SectionBlock::Table(table)),
    )
}

/// Whether a group was never throttled and is otherwise the same.
fn differ_in_cpu(free: &ConfigurationGroup<'_>, group: &ConfigurationGroup<'_>) -> bool {
    let like = |c: &Configuration| Configuration {
        cpu: None,
        ..c.clone()
    };
    let has_use = |t: &TrialRecord| !t.evidence.cgroup.measure_used.is_empty();
    free.configuration.cpu > group.configuration.cpu
        && free.evidence_trials().any(has_use)
        && groups::is_same(&like(free.configuration), &like(group.configuration))
}

fn throttling_row(
    group: &ConfigurationGroup<'_>,
    free: &ConfigurationGroup<'_>,
    quantile: Quantile,
) -> Option<[String; 5]> {
    let quota = group.configuration.cpu?;
    let share = |t: &TrialRecord| Sli::from_record(t).ok()?.throttled_periods_share;
    let shares: Vec<f64> = group.evidence_trials().filter_map(share).collect();
    let seen = group.evidence_trials();
    let seen =
        spread_latencies(seen.filter_map(|t| TrialFigures::for_trial(t, quantile).headline))?;
    let foresee = |t| Some((of_trial(t, quota, t.evidence.cgroup.cpus?)?, t));
    let foreseen: Vec<(ForeseenThrottling, &TrialRecord)> =
        free.evidence_trials().filter_map(foresee).collect();
    let expected = foreseen.iter();
    let expected = spread_latencies(
        expected.map(|(f, t)| SeenLatency::from_quantile(f.latency_of(t, quantile))),
    )?;
    let throttled: Vec<f64> = foreseen.iter().map(|(f, _)| f.throttled).collect();
    Some([
        groups::size_words(group.configuration),
        format::as_percent(median(&shares)?),
        format::as_percent(median(&throttled)?),
        seen.median.show(),
        expected.median.show(),
    ])
}
