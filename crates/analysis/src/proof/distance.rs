//! How far fresh starts stay from their bounds, and how many starts suffice.
//!
//! Owns the rule that replaces counting if starts are far from every bound: one-sided tolerance
//! intervals of a normal distribution (95 % of all starts, 95 % confidence; Hahn and Meeker 1991,
//! table A.12). Each start is a value here, not a coin: three far starts prove more than twenty
//! that pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::MemoryWall;
use crate::record::{STORM_REFAULTS, TrialPurpose, TrialRecord};
use crate::slo::{Comparison, Objective};

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
const FARTHEST: f64 = 1000.0;
/// No measured service varied more in anonymous memory from start to start, as a share. A known
/// spread needs fewer starts than an unknown one.
const MEMORY_STRAYS: f64 = 0.023;
/// With a known spread three starts suffice from here on: 1.645 (1 + 1/√3).
const KNOWN_FACTOR: f64 = 2.6;

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
    strays: Option<f64>,
}

pub fn distances(starts: &[&TrialRecord], squeezed: Option<&TrialRecord>) -> Vec<Distance> {
    let mut all = objectives(starts);
    all.extend(start_times(starts));
    all.extend(rereads(starts));
    all.extend(squeezed.and_then(|squeezed| memory(starts, squeezed)));
    all.iter().filter_map(Values::distance).collect()
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
    fn distance(&self) -> Option<Distance> {
        let n = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / n;
        let squares = self.values.iter().map(|value| (value - mean).powi(2));
        let deviation = (squares.sum::<f64>() / (n - 1.0)).sqrt();
        let deviations = ((self.bound - mean) / deviation.max(1e-12)).min(FARTHEST);
        let most = FACTORS[FACTORS.len() - 1];
        let (by_own, _) = FACTORS
            .into_iter()
            .find(|(_, factor)| *factor <= deviations)
            .unwrap_or(most);
        let is_known =
            |strays: f64| deviation <= strays && (self.bound - mean) / strays >= KNOWN_FACTOR;
        let enough = match self.strays.is_some_and(is_known) {
            true => FACTORS[0].0,
            false => by_own,
        };
        (self.values.len() > 1 && deviations.is_finite()).then(|| Distance {
            of: self.of.clone(),
            deviations,
            enough,
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

fn objectives(starts: &[&TrialRecord]) -> Vec<Values> {
    let Some(first) = starts.first() else {
        return Vec::new();
    };
    let bounded = first.objectives.iter().enumerate();
    let of = |(index, result): (usize, &crate::record::ObjectiveResult)| {
        let scale = scale(result.objective)?;
        let own = starts
            .iter()
            .map(|start| start.objectives.get(index)?.measured);
        let own: Option<Vec<f64>> = own.collect();
        Some(Values {
            of: result.objective_text(),
            values: own?.into_iter().map(scale).collect(),
            bound: scale(result.objective.bound_value()),
            strays: None,
        })
    };
    bounded.filter_map(of).collect()
}

fn start_times(starts: &[&TrialRecord]) -> Option<Values> {
    let bound = starts.first()?.evidence.start.deadline.as_secs_f64();
    let own = starts.iter().map(|start| start.evidence.start.ready);
    let own: Option<Vec<f64>> = own
        .map(|ready| Some(ready?.as_secs_f64().max(1e-3).ln()))
        .collect();
    (bound > 0.0).then_some(Values {
        of: "start".to_owned(),
        values: own?,
        bound: bound.ln(),
        strays: None,
    })
}

/// Over a whole trial: the counter covers the cgroup's life.
fn rereads(starts: &[&TrialRecord]) -> Option<Values> {
    let rate = |start: &&TrialRecord| {
        let seconds = start.total_length().as_secs_f64();
        let refaults = start.evidence.cgroup.file_refaults? as f64;
        (seconds > 0.0).then(|| refaults / seconds)
    };
    let own: Option<Vec<f64>> = starts.iter().map(rate).collect();
    Some(Values {
        of: "re-reads".to_owned(),
        values: own?,
        bound: STORM_REFAULTS,
        strays: None,
    })
}

fn memory(starts: &[&TrialRecord], squeezed: &TrialRecord) -> Option<Values> {
    let wall = MemoryWall::of_start(&squeezed.evidence)?;
    let aged = squeezed.evidence.cgroup.peak_anon?.as_mib();
    let limit = starts.first()?.configuration.memory?.as_mib();
    let spare = limit - wall.warm_room().as_mib() - wall.unreclaimable.as_mib();
    let own = starts.iter().map(|start| start.evidence.cgroup.peak_anon);
    let own: Option<Vec<f64>> = own.map(|anon| Some(anon?.as_mib())).collect();
    Some(Values {
        of: "memory".to_owned(),
        values: own?,
        bound: aged + spare,
        strays: Some(MEMORY_STRAYS * aged),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64], bound: f64) -> Vec<Distance> {
        let values = Values {
            of: "p99".to_owned(),
            values: values.to_vec(),
            bound,
            strays: None,
        };
        values.distance().into_iter().collect()
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
}
