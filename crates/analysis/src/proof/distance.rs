//! How far fresh starts stay from their bounds, and how many starts suffice.
//!
//! Owns the rule that replaces counting if starts are far from every bound: one-sided tolerance
//! intervals of a normal distribution (95 % of all starts, 95 % confidence; Hahn and Meeker 1991,
//! table A.12). Each start is a value here, not a coin: three far starts prove more than twenty
//! that pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{BurstMemory, MemoryWall};
use crate::record::{STORM_REFAULTS, TrialPurpose, TrialRecord};
use crate::slo::{Comparison, Objective};
use crate::startup::ready_seconds;
use crate::verdict::was_disturbed;

/// Number of starts, and the standard deviations from their mean within which 95 % of all starts
/// lie.
const FACTORS: [(u32, f64); 7] = [
    (3, 7.66),
    (4, 5.14),
    (5, 4.20),
    (7, 3.40),
    (10, 2.91),
    (15, 2.57),
    (20, 2.40),
];
/// So many starts at less than this distance are given up, before they are as many as counting takes:
/// 95 % of a normal distribution lie within 1.645 standard deviations of its mean.
const NEAR_STARTS: usize = 5;
const NEAR: f64 = 1.645;
/// Fewer starts in a row differ less than all do, so that only latencies at this logarithm below their
/// bound are far. Chosen as the search for the CPU was (`search::size::cpu`).
const FEW_STARTS: u32 = 10;
const AWAY: f64 = 0.4;
const FARTHEST: f64 = 1000.0;
/// Correlation of starts of one search, which share an hour and a machine. Measured for logarithms of
/// p99: 0.25 to 0.42 in searches of four kinds (records/2026-11-30-searches), for CPU use: 0.3 to 0.6.
pub const CORRELATION: f64 = 0.5;

/// How far starts are from one bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distance {
    /// The measured quantity: an objective, `memory`, `re-reads` or `start`.
    pub of: String,
    /// Standard deviations from the mean of the starts to the bound.
    pub deviations: f64,
    /// How many starts at such a distance say that 95 % of all starts stay below the bound.
    pub enough: u32,
}

struct Values {
    of: String,
    values: Vec<f64>,
    bound: f64,
}

/// Other programs change times, and nothing else: how far those vary is then not the service's.
fn quiet_starts<'a>(starts: &[&'a TrialRecord]) -> Vec<&'a TrialRecord> {
    let mut quiet = starts.to_vec();
    quiet.retain(|start| !was_disturbed(&start.evidence));
    quiet
}

pub fn distances(starts: &[&TrialRecord], bursts: Option<&BurstMemory>) -> Vec<Distance> {
    let quiet = quiet_starts(starts);
    let mut all = Vec::new();
    if quiet.len() == starts.len() || quiet.len() >= FACTORS[0].0 as usize {
        all.extend(objectives(&quiet, |_| true));
        all.extend(start_times(&quiet));
    }
    all.extend(rereads(starts));
    let memory = bursts.and_then(|bursts| memory(starts, bursts));
    let all = all.iter().filter_map(Values::distance);
    all.chain(memory).collect()
}

/// Whether starts are too near the bound of a latency to say that 95 % of all keep it.
pub fn are_near(starts: &[&TrialRecord]) -> bool {
    let starts = &quiet_starts(starts);
    let (_, far) = FACTORS[FACTORS.len() - 1];
    let least = match starts.len() {
        ..NEAR_STARTS => return false,
        NEAR_STARTS..20 => NEAR,
        _ => far,
    };
    let mut all = objectives(starts, Objective::is_time).into_iter();
    all.any(|values| values.distance().is_some_and(|d| d.deviations < least))
}

/// Starts that latencies near their bound need, whatever their spread.
pub fn starts_when_near(starts: &[&TrialRecord]) -> u32 {
    let mut all = objectives(&quiet_starts(starts), Objective::is_time).into_iter();
    if all.any(|values| values.bound - values.mean() < AWAY) {
        FEW_STARTS
    } else {
        0
    }
}

/// Share of all starts, in [0, 1], that stay below a bound with 95 % confidence. `deviations` is the
/// distance of the bound from the mean of `starts` starts, in their standard deviations; starts correlate
/// by [`CORRELATION`]. From the noncentral t distribution (Hahn and Meeker 1991, table A.12), with the
/// variance of a mean of correlated values.
pub fn share_of_starts(deviations: f64, starts: u64) -> f64 {
    let (mut kept, mut too_far) = (-8.0, 8.0);
    for _ in 0..30 {
        let quantile = f64::midpoint(kept, too_far);
        if confidence(quantile, deviations, starts, CORRELATION) >= 0.95 {
            kept = quantile
        } else {
            too_far = quantile
        }
    }
    normal_share(kept)
}

/// Probability, in [0, 1], that a bound at this distance lies above the normal quantile: integrated over
/// the standard deviations that this number of starts can measure.
fn confidence(quantile: f64, deviations: f64, starts: u64, correlation: f64) -> f64 {
    let (n, free) = (starts as f64, starts.saturating_sub(1) as f64);
    let of_mean = (correlation + (1.0 - correlation) / n).sqrt();
    let measured = deviations * ((1.0 - correlation) / free).sqrt();
    let (mut all, mut kept) = (0.0, 0.0);
    for step in 0..500 {
        let chi = (f64::from(step) + 0.5) * (free.sqrt() + 6.0) / 500.0;
        let density = ((free - 1.0) * chi.ln() - chi * chi / 2.0).exp();
        all += density;
        kept += density * normal_share((measured * chi - quantile) / of_mean);
    }
    kept / all
}

fn normal_share(quantile: f64) -> f64 {
    libm::erfc(-quantile / std::f64::consts::SQRT_2) / 2.0
}

pub fn squeezed<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Option<&'a TrialRecord> {
    let has_wall = |trial: &&TrialRecord| {
        trial.purpose == TrialPurpose::Squeeze && MemoryWall::of_start(&trial.evidence).is_some()
    };
    trials.into_iter().filter(has_wall).last()
}

pub fn starts_by_distance(distances: &[Distance]) -> u32 {
    let enough = distances.iter().map(|distance| distance.enough);
    enough.max().unwrap_or(FACTORS[0].0)
}

impl Values {
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn distance(&self) -> Option<Distance> {
        let (n, mean) = (self.values.len() as f64, self.mean());
        let squares = self.values.iter().map(|value| (value - mean).powi(2));
        let deviation = (squares.sum::<f64>() / (n - 1.0)).sqrt();
        let deviations = ((self.bound - mean) / deviation.max(1e-12)).min(FARTHEST);
        (self.values.len() > 1 && deviations.is_finite()).then(|| Distance {
            of: self.of.clone(),
            deviations,
            enough: starts_at(deviations),
        })
    }
}

/// Latencies are compared as logarithms, metrics and shares as they are; a lower bound is turned round.
fn scale(objective: Objective) -> Option<fn(f64) -> f64> {
    match objective {
        Objective::Errors { .. } | Objective::LoadPasses { .. } => None,
        Objective::Jvm(_) => Some(|value| value),
        Objective::Metric(metric) => match metric.comparison {
            Comparison::Below | Comparison::AtMost => Some(|value| value),
            Comparison::Above | Comparison::AtLeast => Some(|value| -value),
            Comparison::Equal => None,
        },
        _ => Some(|value| value.max(1e-6).ln()),
    }
}

fn objectives(starts: &[&TrialRecord], is_wanted: fn(Objective) -> bool) -> Vec<Values> {
    let Some(first) = starts.first() else {
        return Vec::new();
    };
    let bounded = first.objectives.iter().enumerate();
    let of = |(index, result): (usize, &crate::record::ObjectiveResult)| {
        let scale = scale(result.objective).filter(|_| is_wanted(result.objective))?;
        let measured = |start: &&TrialRecord| start.objectives.get(index)?.measured.map(scale);
        Some(Values {
            of: result.objective_text(),
            values: starts.iter().map(measured).collect::<Option<_>>()?,
            bound: scale(result.objective.bound_value()),
        })
    };
    bounded.filter_map(of).collect()
}

fn start_times(starts: &[&TrialRecord]) -> Option<Values> {
    let bound = starts.first()?.evidence.start.deadline.as_secs_f64();
    let own = |start: &&TrialRecord| Some(ready_seconds(start)?.max(1e-3).ln());
    let values = starts.iter().map(own).collect::<Option<_>>()?;
    (bound > 0.0).then(|| Values {
        of: "start".to_owned(),
        values,
        bound: bound.ln(),
    })
}

/// Over a trial up to the end of its judged load, as the counter.
fn rereads(starts: &[&TrialRecord]) -> Option<Values> {
    let rate = |start: &&TrialRecord| {
        let seconds = start.evidence.counted_length().as_secs_f64();
        let refaults = start.evidence.cgroup.file_refaults? as f64;
        (seconds > 0.0).then(|| refaults / seconds)
    };
    Some(Values {
        of: "re-reads".to_owned(),
        values: starts.iter().map(rate).collect::<Option<_>>()?,
        bound: STORM_REFAULTS,
    })
}

/// How far the bursts of all starts with these options stay below the limit of these.
fn memory(starts: &[&TrialRecord], bursts: &BurstMemory) -> Option<Distance> {
    let limit = starts.first()?.configuration.memory?;
    let deviations = bursts.deviations(limit).min(FARTHEST);
    (starts.len() > 1).then(|| Distance {
        of: "memory".to_owned(),
        deviations,
        enough: if bursts.is_far_from(limit) {
            FACTORS[0].0
        } else {
            starts_at(deviations)
        },
    })
}

/// The number of starts that suffice at this distance.
fn starts_at(deviations: f64) -> u32 {
    let most = FACTORS[FACTORS.len() - 1];
    let mut factors = FACTORS.into_iter();
    let enough = factors.find(|(_, factor)| *factor <= deviations);
    enough.unwrap_or(most).0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixture;
    use crate::record::TrialVerdict;

    fn values(values: &[f64], bound: f64) -> Vec<Distance> {
        let values = Values {
            of: "p99".to_owned(),
            values: values.to_vec(),
            bound,
        };
        values.distance().into_iter().collect()
    }

    /// Starts at these latencies, of a bound of 1 s.
    fn starts(seconds: &[f64]) -> Vec<TrialRecord> {
        let slo: crate::slo::Slo = "p99<1s".parse().expect("an SLO");
        let start = |seconds: &f64| {
            let verdict = TrialVerdict::Pass;
            let mut record = fixture::trial_record("t", TrialPurpose::Prove, 256, verdict);
            record.objectives = vec![crate::record::ObjectiveResult {
                request: None,
                is_peak: false,
                objective: slo.objectives[0],
                measured: Some(*seconds),
                met: *seconds < 1.0,
            }];
            record
        };
        seconds.iter().map(start).collect()
    }

    #[test]
    fn starts_near_the_bound_are_given_up_or_become_more() {
        let look = |seconds: &[f64]| {
            let mut starts = starts(seconds);
            // A disturbed start says nothing about the service's own times.
            let mut disturbed = starts[0].clone();
            disturbed.objectives[0].measured = Some(0.999);
            disturbed.evidence.noise.foreign_cpu = Some(0.6);
            starts.push(disturbed);
            let starts: Vec<&TrialRecord> = starts.iter().collect();
            (are_near(&starts), starts_when_near(&starts))
        };
        assert_eq!(look(&[0.5, 0.99, 0.5, 0.99]), (false, FEW_STARTS), "four");
        assert_eq!(look(&[0.5, 0.99, 0.5, 0.99, 0.99]), (true, FEW_STARTS));
        assert_eq!(look(&[0.8, 0.81, 0.8, 0.81, 0.8]), (false, FEW_STARTS));
        assert_eq!(look(&[0.1, 0.2, 0.1, 0.2, 0.2]), (false, 0));
        // Two standard deviations away: enough for five starts to go on, and not for twenty.
        let strays: Vec<f64> = (0..20).map(|n| [0.6, 0.82][n % 2]).collect();
        assert_eq!(look(&strays[..6]), (false, FEW_STARTS));
        assert_eq!(look(&strays), (true, FEW_STARTS));
    }

    #[test]
    fn the_smaller_the_distance_the_more_starts() {
        let starts = |own: &[f64], bound| starts_by_distance(&values(own, bound));
        assert_eq!(starts(&[1.0, 2.0, 3.0], 9.7), 3, "7.7 deviations");
        assert_eq!(starts(&[1.0, 2.0, 3.0], 8.0), 4);
        assert_eq!(starts(&[1.0, 2.0, 3.0], 5.0), 10);
        assert_eq!(starts(&[1.0, 2.0, 3.0], 2.5), 20);
        assert_eq!(starts(&[2.0, 2.0, 2.0], 2.5), 3, "no spread");
        assert_eq!(starts_by_distance(&[]), 3);
        assert!(values(&[2.0], 3.0).is_empty(), "one start has no spread");
    }

    #[test]
    fn the_factors_are_the_published_ones_and_starts_that_correlate_prove_less() {
        for (starts, factor) in FACTORS {
            let sure = confidence(1.6449, factor, u64::from(starts), 0.0);
            assert!((sure - 0.95).abs() < 0.001, "{starts} {sure}");
        }
        for (deviations, starts, share) in [(7.66, 3, 0.832), (4.2, 5, 0.780), (2.91, 10, 0.712)] {
            let own = share_of_starts(deviations, starts);
            assert!((own - share).abs() < 0.002, "{starts} {own}");
        }
        assert!(share_of_starts(FARTHEST, 3) > 0.9999);
    }

    #[test]
    fn other_programs_do_not_ask_for_more_starts() {
        let start = |ready_ms, foreign| {
            let mut record =
                fixture::trial_record("1", TrialPurpose::Prove, 256, TrialVerdict::Pass);
            record.evidence.start.ready = Some(Duration::from_millis(ready_ms));
            record.evidence.start.deadline = Duration::from_secs(30);
            record.evidence.noise.foreign_cpu = Some(foreign);
            record
        };
        let of_start = |starts: &[TrialRecord]| {
            let starts: Vec<&TrialRecord> = starts.iter().collect();
            let all = distances(&starts, None);
            all.into_iter().find(|distance| distance.of == "start")
        };
        let quiet: Vec<_> = [5000, 5100, 5200].map(|ms| start(ms, 0.0)).into();
        let alone = of_start(&quiet).expect("a distance");
        let disturbed = [start(9000, 0.6), start(20_000, 0.7)];
        let mixed: Vec<_> = quiet.iter().cloned().chain(disturbed).collect();
        assert_eq!(of_start(&mixed), Some(alone));
        assert_eq!(
            of_start(&mixed[1..]),
            None,
            "two quiet starts have no spread"
        );
    }
}
