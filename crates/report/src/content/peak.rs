//! The burst behind the judged load: how each size took it, apart from the load itself. And the bursts at
//! full speed, which a search needs for its memory: how far the service is from its most.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{TrialPhase, TrialRecord};
use loadline_analysis::sli::MeasuredLoad;

use super::groups;
use super::section::Section;
use crate::figures::{self, SeenLatency, spread};
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (1.0, "Max")];

pub fn peak_section(view: &ResultView) -> Option<Section> {
    let mut table = Table::new().wrapping("Configuration").right("Rate");
    for (_, name) in QUANTILES {
        table = table.right(name);
    }
    table = table.right("Failed").right("p99 before it");
    let names = groups::ConfigurationNames::for_result(view);
    for group in groups::group_trials(view) {
        let peaks: Vec<_> = group.evidence_trials().filter_map(peak_load).collect();
        let Some(rate) = peaks.first().and_then(|peak| peak.offered_rate) else {
            continue;
        };
        let before = group.evidence_trials().filter_map(figures::judged_latency);
        let before = before.filter_map(|latency| figures::latency_at(&latency, 0.99));
        let mut row = vec![
            TableCell::from(names.cell_name(group.configuration)),
            format::as_rate(rate).into(),
        ];
        row.extend(QUANTILES.map(|(fraction, _)| latency_cell(peak_latencies(&peaks, fraction))));
        row.push(failed_words(&peaks).into());
        row.push(latency_cell(before));
        table.add_row(row);
    }
    let about = format!(
        "A burst behind the judged load. Its latencies count {}; a request that failed counts as slower than every other. Median over the trials, the extremes in brackets.",
        view.latency_origin()
    );
    let section = Section::new("peak", "What does the peak show?");
    (!table.has_no_rows()).then(|| section.with_paragraph(about).with_table(table))
}

/// `At 200/s for 10s: p99 41ms, 0 of 6000 requests failed.`, and what broke first at the next
/// smaller size.
pub fn peak_sentence(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let group = groups::group_of(view, &recommendation.configuration)?;
    let words = starts_sentence(group.evidence_trials())?;
    let broken = broken_below(view, recommendation).unwrap_or_default();
    Some(words + &broken)
}

pub fn starts_sentence<'a>(starts: impl Iterator<Item = &'a TrialRecord>) -> Option<String> {
    let peaks: Vec<_> = starts.filter_map(peak_load).collect();
    let first = peaks.first()?;
    let p99 = spread(peak_latencies(&peaks, 0.99))?;
    Some(format!(
        "At {} for {}: p99 {}, {} requests failed.",
        format::as_rate(first.offered_rate?),
        loadline_analysis::text::short_duration(first.duration),
        p99.show(SeenLatency::show),
        failed_words(&peaks),
    ))
}

/// `In bursts at full speed, which are not judged, it answered 412/s (318/s to 640/s), 10 times the judged
/// rate: p99 96ms, 0 of 6000 requests failed.`
pub(super) fn burst_sentence<'a>(starts: impl Iterator<Item = &'a TrialRecord>) -> Option<String> {
    let starts: Vec<&TrialRecord> = starts.collect();
    let in_phase = |phase| {
        let loads = starts.iter();
        loads.filter_map(move |start| MeasuredLoad::in_phase(&start.evidence, phase).ok()?)
    };
    let bursts: Vec<MeasuredLoad> = in_phase(TrialPhase::Age).collect();
    let rate = spread(bursts.iter().map(|burst| burst.achieved_rate))?;
    let judged = spread(in_phase(TrialPhase::Measure).map(|load| load.achieved_rate));
    let judged = judged.filter(|judged| judged.median > 0.0)?;
    let p99 = spread(peak_latencies(&bursts, 0.99))?;
    Some(format!(
        "In bursts at full speed, which are not judged, it answered {}, {:.1} times the judged rate: p99 {}, {} requests failed.",
        rate.show(format::as_rate),
        rate.median / judged.median,
        p99.show(SeenLatency::show),
        failed_words(&bursts),
    ))
}

fn broken_below(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let next = recommendation.next_smaller.as_ref()?;
    let trial = view.trial_by_id(&next.trial)?;
    let mut missed = trial.objectives.iter().filter(|o| o.is_peak && !o.met);
    let first = missed.next()?.objective_text();
    Some(format!(" With {} it broke {first} first.", next.memory))
}

fn peak_load(trial: &TrialRecord) -> Option<MeasuredLoad> {
    MeasuredLoad::in_phase(&trial.evidence, TrialPhase::Peak).ok()?
}

fn peak_latencies(peaks: &[MeasuredLoad], fraction: f64) -> impl Iterator<Item = SeenLatency> {
    let at = move |peak: &MeasuredLoad| figures::latency_at(&peak.latency, fraction);
    peaks.iter().filter_map(at)
}

fn latency_cell(seen: impl Iterator<Item = SeenLatency>) -> TableCell {
    let shown = spread(seen).map(|spread| spread.show(SeenLatency::show));
    format::or_none(shown).into()
}

/// `3 of 6000`, over all trials.
fn failed_words(peaks: &[MeasuredLoad]) -> String {
    let sent: u64 = peaks.iter().map(|peak| peak.scheduled).sum();
    let good: u64 = peaks.iter().map(|peak| peak.ok).sum();
    format!("{} of {sent}", sent.saturating_sub(good))
}
