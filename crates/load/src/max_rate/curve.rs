//! The response-time curve: latency at shares of the highest rate, from little to all.
//!
//! Owns one run of rising steps, and what invalidates it. The first second of each step is left
//! out: the change of rate still shows there. Source of the idea: SPECjbb2015, "response-throughput
//! curve" in 1 % steps.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MaxRateSearch;
use super::goal::{self, LoadGoal};
use crate::error::LoadError;
use crate::health::{GeneratorUsage, Health};
use crate::outcome::{LoadSecond, LoadTotals};
use crate::plan::{LoadModel, LoadPlan};
use crate::run::{LoadOutcome, run};
use crate::schedule::RateSegment;

/// Shortest step, in seconds: one second left out, one counted.
const SHORTEST_STEP: u64 = 2;
/// Requests with jointly judged send lags: with fewer, 1 % is a single wake-up.
const JUDGED_TOGETHER: u64 = 1000;

/// One step of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

pub(super) struct LatencyCurve {
    pub(super) points: Vec<CurvePoint>,
    pub(super) incomplete: Option<String>,
}

pub(super) fn measure(
    plan: &LoadPlan,
    search: &MaxRateSearch,
    goals: &[LoadGoal],
    top: f64,
    stop: &Arc<AtomicBool>,
) -> Result<LatencyCurve, LoadError> {
    let steps = search.curve_steps;
    let length = (search.trial.as_secs() / 4).max(SHORTEST_STEP);
    let share = |step: u32| f64::from(step + 1) / f64::from(steps);
    let segment = |step| RateSegment::constant_rate(top * share(step), Duration::from_secs(length));
    let plan = LoadPlan {
        model: LoadModel::Open {
            segments: (0..steps).map(segment).collect(),
            arrivals: search.arrivals,
        },
        warmup: Duration::ZERO,
        drain: plan.drain.min(Duration::from_secs(2)),
        slo: plan.slo.or_else(|| goal::shortest_bound(goals)),
        ..plan.clone()
    };
    let mut totals = vec![LoadTotals::default(); steps as usize];
    let outcome = run(&plan, stop, &mut |second: &LoadSecond| {
        if let Some(step) = step_of(second.index, length, steps) {
            totals[step].add_outcomes(&second.totals);
        }
    })?;
    // A step that a stop cut short, or that never came, is no point.
    let whole = outcome.measured_time(&plan).as_secs() / length;
    let points = totals.iter().zip(0..steps).take(whole as usize);
    Ok(LatencyCurve {
        points: points
            .map(|(totals, step)| {
                let share = share(step);
                curve_point(share, top * share, totals, (length - 1) as f64)
            })
            .collect(),
        incomplete: incomplete_reason(&plan, &outcome, &totals, whole),
    })
}

fn incomplete_reason(
    plan: &LoadPlan,
    outcome: &LoadOutcome,
    steps: &[LoadTotals],
    whole: u64,
) -> Option<String> {
    if outcome.stopped {
        let all = steps.len();
        return Some(format!(
            "the curve was stopped after {whole} of {all} steps"
        ));
    }
    let whole = outcome.health.saturated.clone();
    let reason = whole.or_else(|| late_step(plan, steps));
    reason.map(|reason| format!("the curve is not valid: {reason}"))
}

/// Whether the generator was late in a part of the curve, which the total may hide: low steps have
/// few requests.
fn late_step(plan: &LoadPlan, steps: &[LoadTotals]) -> Option<String> {
    let mut together = LoadTotals::default();
    steps.iter().find_map(|step| {
        together.add_outcomes(step);
        if together.send_lag.len() < JUDGED_TOGETHER {
            return None;
        }
        let health = Health::judge_run(plan, &together, GeneratorUsage::default(), Duration::ZERO);
        together.clear();
        health.saturated
    })
}

/// The step with the judged second `second`.
fn step_of(second: u64, length: u64, steps: u32) -> Option<usize> {
    let step = second / length;
    let counts = !second.is_multiple_of(length) && step < u64::from(steps);
    counts.then_some(step as usize)
}

fn curve_point(share: f64, offered_rate: f64, totals: &LoadTotals, seconds: f64) -> CurvePoint {
    let micros = |q| {
        // Only what ended in these seconds is known here; what never ended is in the trials.
        let value =
            crate::histogram::quantile_with_failures(&totals.latency, totals.failed_requests(), q);
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

    fn plan() -> LoadPlan {
        let target = ([127, 0, 0, 1], 1).into();
        let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(4));
        LoadPlan::new(vec![target], crate::plan::RequestSpec::for_get("/"), model)
    }

    /// A step with this many requests and this send lag.
    fn step(requests: u64, lag: Duration) -> LoadTotals {
        let mut totals = LoadTotals::default();
        let lag = u64::try_from(lag.as_nanos()).unwrap();
        totals.send_lag.saturating_record_n(lag, requests);
        totals
    }

    #[test]
    fn a_generator_that_is_late_in_one_low_step_is_noticed() {
        let (good, bad) = (Duration::from_micros(50), Duration::from_millis(3));
        let steps = |low| [step(20, low), step(2_000, good), step(20_000, good)];
        assert_eq!(late_step(&plan(), &steps(good)), None);
        assert_eq!(late_step(&plan(), &steps(bad)), None);
        let steps = |low| [step(200, low), step(2_000, good), step(200_000, good)];
        let reason = late_step(&plan(), &steps(bad)).expect("a tenth of those judged together");
        assert!(reason.contains("3.0 ms late"), "{reason}");
    }

    #[test]
    fn what_the_generator_says_about_itself_is_said_of_the_curve() {
        let plan = plan();
        let judge = || {
            Health::judge_run(
                &plan,
                &LoadTotals::default(),
                GeneratorUsage::default(),
                Duration::ZERO,
            )
        };
        let reason = |saturated: Option<&str>| {
            let outcome = LoadOutcome {
                start_ns: 0,
                end_ns: 4_000_000_000,
                warmup: LoadTotals::default(),
                measure: LoadTotals::default(),
                health: Health {
                    saturated: saturated.map(str::to_owned),
                    ..judge()
                },
                users: Vec::new(),
                stopped: false,
            };
            incomplete_reason(&plan, &outcome, &[LoadTotals::default()], 1)
        };
        assert_eq!(reason(None), None);
        let found = reason(Some("it was throttled")).expect("it is no evidence");
        assert!(found.ends_with("not valid: it was throttled"), "{found}");
    }

    #[test]
    fn a_curve_that_was_stopped_says_so_and_has_no_empty_points() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let target = listener.local_addr().expect("an address");
        let plan = LoadPlan {
            targets: vec![target],
            connections: 1,
            ..plan()
        };
        let search = MaxRateSearch {
            slos: Vec::new(),
            trial: Duration::from_secs(1),
            arrivals: crate::schedule::ArrivalPattern::Uniform,
            is_strict: false,
            curve_steps: 5,
        };
        let stop = Arc::new(AtomicBool::new(true));
        let curve = measure(&plan, &search, &[], 100.0, &stop).expect("it connects");
        assert_eq!(curve.points, []);
        let reason = curve.incomplete.expect("it is not complete");
        assert!(reason.contains("0 of 5 steps"), "{reason}");
    }

    #[test]
    fn the_first_second_of_a_step_and_the_drain_count_for_none() {
        let steps: Vec<_> = (0..7).map(|second| step_of(second, 3, 2)).collect();
        let expected = [None, Some(0), Some(0), None, Some(1), Some(1), None];
        assert_eq!(steps, expected);
    }
}
