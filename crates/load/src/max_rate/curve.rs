//! The response-time curve: latency at shares of the highest rate, from little to all of it.
//!
//! Owns one run of rising steps. The first second of each step is left out: in it the change of
//! rate still shows. Source of the idea: SPECjbb2015, "response-throughput curve" in 1 % steps.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Search;
use crate::error::LoadError;
use crate::outcome::{Second, Totals};
use crate::plan::{Model, Plan};
use crate::run::run;
use crate::schedule::Segment;

/// Shortest step, in seconds: one that is left out, one that counts.
const SHORTEST_STEP: u64 = 2;

/// One step of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Share of the highest rate, in (0, 1].
    pub share: f64,
    /// Requests a second that were scheduled.
    pub offered_rate: f64,
    /// Good responses a second.
    pub achieved_rate: f64,
    /// Median latency in µs, failed requests infinitely slow; `None` is infinite.
    pub p50_us: Option<f64>,
    /// 90th percentile in µs, the same.
    pub p90_us: Option<f64>,
    /// 99th percentile in µs, the same.
    pub p99_us: Option<f64>,
    /// Largest latency of the good answers in µs; `None` without any.
    pub max_us: Option<f64>,
}

/// Measures the curve up to `top` requests a second.
pub(super) fn measure(
    plan: &Plan,
    search: &Search,
    top: f64,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<CurvePoint>, LoadError> {
    let steps = search.curve_steps;
    let length = (search.trial.as_secs() / 4).max(SHORTEST_STEP);
    let share = |step: u32| f64::from(step + 1) / f64::from(steps);
    let segment = |step| Segment::constant(top * share(step), Duration::from_secs(length));
    let plan = Plan {
        model: Model::Open {
            segments: (0..steps).map(segment).collect(),
            arrivals: plan.arrivals(),
        },
        warmup: Duration::ZERO,
        drain: plan.drain.min(Duration::from_secs(2)),
        ..plan.clone()
    };
    let mut totals = vec![Totals::default(); steps as usize];
    run(&plan, stop, &mut |second: &Second| {
        if let Some(step) = step_of(second.index, length, steps) {
            totals[step].add(&second.totals);
        }
    })?;
    let points = totals.iter().enumerate();
    Ok(points
        .map(|(step, totals)| {
            let share = share(step as u32);
            point(share, top * share, totals, (length - 1) as f64)
        })
        .collect())
}

/// The step whose judged time a second belongs to.
fn step_of(second: u64, length: u64, steps: u32) -> Option<usize> {
    let step = second / length;
    let counts = !second.is_multiple_of(length) && step < u64::from(steps);
    counts.then_some(step as usize)
}

fn point(share: f64, offered_rate: f64, totals: &Totals, seconds: f64) -> CurvePoint {
    let micros = |q| {
        // Only what ended in these seconds is known here; what never ended is in the trials.
        let value = crate::histogram::quantile(&totals.latency, totals.failed(), q);
        value.map(|d| d.as_nanos() as f64 / 1e3)
    };
    CurvePoint {
        share,
        offered_rate,
        achieved_rate: totals.ok as f64 / seconds,
        p50_us: micros(0.5),
        p90_us: micros(0.9),
        p99_us: micros(0.99),
        max_us: (!totals.latency.is_empty()).then(|| totals.latency.max() as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_second_of_a_step_and_the_drain_count_for_none() {
        let steps: Vec<_> = (0..7).map(|second| step_of(second, 3, 2)).collect();
        let expected = [None, Some(0), Some(0), None, Some(1), Some(1), None];
        assert_eq!(steps, expected);
    }
}
