//! Whether a change removed pauses: trials before and after, run in turn, and the ratio of their
//! pauses with an interval.
//!
//! Owns the comparison that `explain --try` makes. Both sides are counted a second at a time, so
//! that starts and seconds both show how much they vary.

use crate::explain::Explanation;
use crate::interval::{Bootstrap, ConfidenceInterval, Statistic, ratio_interval};
use crate::record::TrialRecord;
use crate::span::TimeSpan;

const SECOND: u64 = 1_000_000_000;
/// A month. A foreign record may say anything.
const LONGEST: u64 = 30 * 24 * 3600 * SECOND;

#[derive(Debug, Clone, PartialEq)]
pub struct EffectSide {
    pub trials: usize,
    /// Pauses over 50 ms, summed over the trials.
    pub pauses: usize,
    pub pauses_per_minute: f64,
    pub longest_ns: u64,
    pub rate: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChangeEffect {
    pub before: EffectSide,
    pub after: EffectSide,
    /// Pauses after / pauses before, with the 95 % interval; `None` when there were none before.
    pub ratio: Option<ConfidenceInterval>,
}

impl ChangeEffect {
    pub fn between_trials(
        before: &[&TrialRecord],
        after: &[&TrialRecord],
        bootstrap: Bootstrap,
    ) -> Option<Self> {
        let (old, new) = (watched_trials(before), watched_trials(after));
        if old.is_empty() || new.is_empty() {
            return None;
        }
        let windows = |all: &[WatchedTrial<'_>]| -> Vec<_> {
            all.iter().map(|s| a_second(&s.explanation)).collect()
        };
        Some(Self {
            ratio: ratio_interval(&windows(&new), &windows(&old), Statistic::Mean, bootstrap),
            before: side(&old),
            after: side(&new),
        })
    }
}

struct WatchedTrial<'a> {
    record: &'a TrialRecord,
    explanation: Explanation,
}

fn watched_trials<'a>(records: &[&'a TrialRecord]) -> Vec<WatchedTrial<'a>> {
    let valid = records.iter().filter(|r| r.verdict.is_evidence());
    let explained = valid.filter_map(|record| {
        let explanation = Explanation::for_trial(record)?;
        let is_usual = (SECOND..LONGEST).contains(&explanation.window.length_ns());
        is_usual.then_some(WatchedTrial {
            record,
            explanation,
        })
    });
    explained.collect()
}

fn a_second(explanation: &Explanation) -> Vec<f64> {
    let window = explanation.window;
    let mut counts = vec![0.0; (window.length_ns() / SECOND) as usize];
    for pause in &explanation.pauses {
        let second = (pause.pause.start.saturating_sub(window.start) / SECOND) as usize;
        if let Some(count) = counts.get_mut(second) {
            *count += 1.0;
        }
    }
    counts
}

fn side(all: &[WatchedTrial<'_>]) -> EffectSide {
    let pauses = all.iter().flat_map(|s| &s.explanation.pauses);
    let count = pauses.clone().count();
    let time: u64 = all.iter().map(|s| s.explanation.window.length_ns()).sum();
    let rate = |s: &WatchedTrial<'_>| operation_rate(s.record, s.explanation.window);
    let rates: Vec<f64> = all.iter().filter_map(rate).collect();
    EffectSide {
        trials: all.len(),
        pauses: count,
        pauses_per_minute: count as f64 / (time as f64 / 60e9).max(f64::MIN_POSITIVE),
        longest_ns: pauses.map(|a| a.pause.length_ns()).max().unwrap_or(0),
        rate: Statistic::Mean.compute_value(&rates),
    }
}

fn operation_rate(record: &TrialRecord, window: TimeSpan) -> Option<f64> {
    let application = record.evidence.pauses.as_ref()?.application.as_ref()?;
    application.operations_per_second(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::pauses::{ApplicationPauses, PauseEvidence};
    use crate::record::{InvalidReason, PhaseSpan, TrialPhase, TrialPurpose, TrialVerdict};

    /// Ten seconds with a pause of 60 ms every `every` ms.
    fn trial(every: u64) -> TrialRecord {
        let ms = 1_000_000;
        let mut record = fixture::trial_record("t", TrialPurpose::Matrix, 64, TrialVerdict::Pass);
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 10 * SECOND,
        }];
        let pauses = (0..10_000 / every).map(|n| (n * every * ms, (n * every + 60) * ms));
        record.evidence.pauses = Some(PauseEvidence {
            application: Some(ApplicationPauses {
                pauses_ns: pauses.collect(),
                ..ApplicationPauses::default()
            }),
            ..PauseEvidence::default()
        });
        record
    }

    #[test]
    fn fewer_pauses_are_a_ratio_below_one() {
        let (old, new) = (trial(100), trial(500));
        let effect =
            ChangeEffect::between_trials(&[&old, &old], &[&new, &new], Bootstrap::default())
                .unwrap();
        assert_eq!((effect.before.pauses, effect.after.pauses), (200, 40));
        assert!((effect.before.pauses_per_minute - 600.0).abs() < 1e-9);
        let ratio = effect.ratio.unwrap();
        assert!((ratio.estimate - 0.2).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.is_difference(0.5));
    }

    #[test]
    fn what_could_not_be_measured_does_not_count() {
        let good = trial(100);
        let mut bad = trial(100);
        bad.verdict = TrialVerdict::Invalid(InvalidReason::Noise);
        let mut endless = trial(100);
        endless.evidence.phases[0].end = u64::MAX;
        assert_eq!(
            ChangeEffect::between_trials(&[&endless], &[&good], Bootstrap::default()),
            None
        );
        assert_eq!(
            ChangeEffect::between_trials(&[&bad], &[&good], Bootstrap::default()),
            None
        );
        let effect =
            ChangeEffect::between_trials(&[&good, &bad], &[&good], Bootstrap::default()).unwrap();
        assert_eq!(effect.before.trials, 1);
    }
}
