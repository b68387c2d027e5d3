//! The best result when nothing keeps the SLO, and the objective that prevents it.
//!
//! Owns the order of failures: a trial's distance from the SLO is the largest ratio of measured
//! value to bound over its objectives. A trial in which the application died or never became ready
//! ranks last, whatever it answered before.

use crate::record::{ObjectiveResult, TrialRecord};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearestTrial<'a> {
    pub trial: &'a TrialRecord,
    /// The objective that is missed by the largest factor, or kept by the smallest; `None` where
    /// the application died or the trial measured nothing.
    pub binding: Option<BindingObjective<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BindingObjective<'a> {
    pub result: &'a ObjectiveResult,
    /// Measured over allowed: above 1 it is missed. Infinite without a measured value.
    pub ratio: f64,
}

/// The best of these trials that are evidence; `None` when none is. Of trials as far from the SLO
/// as each other the one at the higher rate is better, then the later one.
pub fn nearest_to_slo<'a>(
    records: impl Iterator<Item = &'a TrialRecord>,
) -> Option<NearestTrial<'a>> {
    let attained = |trial: &'a TrialRecord| NearestTrial {
        trial,
        binding: match trial.verdict {
            crate::record::TrialVerdict::AppKo(_) => None,
            _ => binding_objective(&trial.objectives),
        },
    };
    let counted = records.filter(|t| t.verdict.is_evidence());
    let rate = |a: &NearestTrial<'_>| a.trial.configuration.rate.unwrap_or(0.0);
    counted.map(attained).min_by(|a, b| {
        let nearer = a.distance().total_cmp(&b.distance());
        let later = (b.trial.started_at_unix_ms).cmp(&a.trial.started_at_unix_ms);
        nearer.then(rate(b).total_cmp(&rate(a))).then(later)
    })
}

impl NearestTrial<'_> {
    pub fn is_kept(&self) -> bool {
        self.trial.verdict == crate::record::TrialVerdict::Pass
    }

    fn distance(&self) -> f64 {
        match self.binding {
            // A kept SLO has distance zero, by whatever margin.
            Some(_) if self.is_kept() => 0.0,
            // Missed for a reason other than an objective, such as the rate: at least as far as the
            // bounds.
            Some(binding) => binding.ratio.max(1.0),
            None => f64::INFINITY,
        }
    }
}

fn binding_objective(objectives: &[ObjectiveResult]) -> Option<BindingObjective<'_>> {
    let ratio = |result: &ObjectiveResult| {
        let limit = result.objective.bound_value();
        let ratio = result.measured.map_or(f64::INFINITY, |value| value / limit);
        // An objective of 0 errors that is kept: 0 / 0.
        if ratio.is_nan() { 0.0 } else { ratio }
    };
    let bindings = objectives.iter().map(|result| BindingObjective {
        result,
        ratio: ratio(result),
    });
    bindings.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{AppKo, InvalidReason, TrialPurpose, TrialVerdict};

    fn missed(id: &str, measured: &[(&str, Option<f64>)], verdict: TrialVerdict) -> TrialRecord {
        let mut trial = fixture::trial_record(id, TrialPurpose::Search, 256, verdict);
        let slo = measured.iter().map(|(text, value)| {
            let slo: crate::slo::Slo = text.parse().unwrap();
            ObjectiveResult {
                request: None,
                is_peak: false,
                objective: slo.objectives[0],
                measured: *value,
                met: false,
            }
        });
        trial.objectives = slo.collect();
        trial
    }

    #[test]
    fn the_nearest_trial_and_what_it_misses_most() {
        let far = [("p99<50ms", Some(0.5)), ("errors<1%", Some(0.005))];
        let near = [("p99<50ms", Some(0.055)), ("errors<1%", Some(0.02))];
        let lost = [("p99<50ms", None), ("errors<1%", Some(0.5))];
        let quick = [("p99<50ms", Some(0.01))];
        let records = [
            missed("dead", &[], TrialVerdict::AppKo(AppKo::CgroupOom)),
            missed("killed", &quick, TrialVerdict::AppKo(AppKo::CgroupOom)),
            missed("far", &far, TrialVerdict::SloMiss),
            missed("near", &near, TrialVerdict::SloMiss),
            missed("lost", &lost, TrialVerdict::SloMiss),
            missed(
                "noise",
                &[("p99<50ms", Some(0.01))],
                TrialVerdict::Invalid(InvalidReason::Noise),
            ),
        ];
        let best = nearest_to_slo(records.iter()).unwrap();
        let binding = best.binding.unwrap();
        assert_eq!(best.trial.id, "near");
        assert_eq!(binding.result.objective_text(), "errors<1%");
        assert!((binding.ratio - 2.0).abs() < 1e-9 && !best.is_kept());
    }

    #[test]
    fn where_a_rate_was_kept_the_highest_is_the_best() {
        let kept = |id: &str, rate| {
            let mut trial = missed(id, &[("p99<50ms", Some(0.01))], TrialVerdict::Pass);
            trial.configuration.rate = Some(rate);
            trial
        };
        let mut faster = missed(
            "missed",
            &[("p99<50ms", Some(0.051))],
            TrialVerdict::SloMiss,
        );
        faster.configuration.rate = Some(200.0);
        let records = [kept("slow", 50.0), kept("best", 100.0), faster];
        let best = nearest_to_slo(records.iter()).unwrap();
        assert_eq!((best.trial.id.as_str(), best.is_kept()), ("best", true));
        assert_eq!(super::nearest_to_slo([].iter()), None);
    }
}
