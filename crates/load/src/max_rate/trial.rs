//! One trial of the search: load at a rate, judged for every goal.
//!
//! Owns when a rate counts as kept up with: besides the SLO, the answers that came in the judged
//! time must be 99 % of the requests that became due in it. Without that a short trial hides a
//! queue that grows for ever. A trial ends early once more requests were slow than its whole
//! length allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MaxRateSearch;
use super::goal::{self, LoadGoal};
use crate::error::LoadError;
use crate::outcome::LoadSecond;
use crate::plan::{LoadModel, LoadPlan};
use crate::run::{LoadOutcome, run as run_plan};
use crate::schedule::RateSegment;

/// Load before each trial that is not judged: the change of rate is no property of the rate. It
/// is whole seconds long, as the counts it is cut from.
const SETTLE: Duration = Duration::from_secs(1);
/// Share of the requests due that must be answered in the same time.
/// Source: the loss ratio of MLRsearch.
const KEPT_UP: f64 = 0.99;
/// Requests that may be under way at the end besides.
const UNDER_WAY: f64 = 2.0;

/// One trial of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MaxRateTrial {
    /// Requests a second that were scheduled.
    pub offered_rate: f64,
    /// Good responses a second that came in the judged time.
    pub achieved_rate: f64,
    /// Median latency in µs, failed requests infinitely slow; `None` is infinite.
    pub p50_us: Option<f64>,
    /// 99th percentile in µs, the same.
    pub p99_us: Option<f64>,
    /// Failed and unfinished requests.
    pub failed: u64,
    /// Whether it ended early because it could not pass any more.
    pub ended_early: bool,
    /// What broke for each SLO; `None` where it was kept.
    pub broke: Vec<Option<String>>,
    /// Why the generator could not make the rate; the trial is then no evidence.
    pub saturated: Option<String>,
}

#[derive(Debug, Default)]
struct TrialFlow {
    seconds: f64,
    due: u64,
    good: u64,
    answered: u64,
}

impl TrialFlow {
    fn add_second(&mut self, second: &LoadSecond) {
        if second.length < Duration::from_secs(1) || second.is_warmup {
            return;
        }
        self.seconds += 1.0;
        self.due += second.totals.scheduled;
        self.good += second.totals.ok;
        self.answered += second.totals.ok + second.totals.failed_requests();
    }

    fn fell_behind(&self) -> Option<String> {
        let (due, answered) = (self.due as f64, self.answered as f64);
        (self.due > 0 && answered + UNDER_WAY < due * KEPT_UP)
            .then(|| format!("only {:.1}% answered in time", answered / due * 100.0))
    }
}

fn trial_plan(plan: &LoadPlan, search: &MaxRateSearch, goals: &[LoadGoal], rate: f64) -> LoadPlan {
    LoadPlan {
        model: LoadModel::Open {
            segments: vec![RateSegment::constant_rate(rate, SETTLE + search.trial)],
            arrivals: search.arrivals,
        },
        warmup: SETTLE,
        drain: plan.drain.min(Duration::from_secs(2)),
        slo: plan.slo.or_else(|| goal::shortest_bound(goals)),
        ..plan.clone()
    }
}

pub(super) fn run(
    plan: &LoadPlan,
    search: &MaxRateSearch,
    goals: &[LoadGoal],
    rate: f64,
    stop: &Arc<AtomicBool>,
) -> Result<MaxRateTrial, LoadError> {
    let plan = trial_plan(plan, search, goals, rate);
    let whole = rate * search.trial.as_secs_f64();
    let last = search.trial.as_secs();
    let hopeless = Arc::new(AtomicBool::new(false));
    let mut slow = vec![0.0; goals.len()];
    let mut flow = TrialFlow::default();
    let mut ended_early = false;
    let outcome = run_plan(&plan, &hopeless, &mut |second| {
        // The drain is made of seconds too.
        if second.index <= last {
            flow.add_second(second);
        }
        for (slow, goal) in slow.iter_mut().zip(goals) {
            *slow += goal.slow_requests(&second.totals, second.is_warmup);
        }
        let mut sums = slow.iter().zip(goals);
        if !ended_early && sums.all(|(slow, goal)| *slow > goal.allowance(whole)) {
            ended_early = true;
            hopeless.store(true, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) {
            hopeless.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(judge_rate_trial(
        rate,
        goals,
        &flow,
        &outcome,
        ended_early && outcome.stopped,
    ))
}

fn judge_rate_trial(
    rate: f64,
    goals: &[LoadGoal],
    flow: &TrialFlow,
    outcome: &LoadOutcome,
    ended_early: bool,
) -> MaxRateTrial {
    let totals = &outcome.measure;
    let micros = |q| {
        let value = totals.latency_quantile(q);
        value.map(|d| d.as_nanos() as f64 / 1e3)
    };
    let behind = flow.fell_behind();
    MaxRateTrial {
        offered_rate: rate,
        achieved_rate: flow.good as f64 / flow.seconds.max(1.0),
        p50_us: micros(0.5),
        p99_us: micros(0.99),
        failed: totals.failed_requests() + totals.unfinished,
        ended_early,
        broke: goals
            .iter()
            .map(|g| g.broken_objective(totals).or_else(|| behind.clone()))
            .collect(),
        saturated: outcome.health.saturated.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::RequestSpec;
    use crate::schedule::ArrivalPattern;

    #[test]
    fn a_trial_has_the_arrivals_of_its_search() {
        let target = ([127, 0, 0, 1], 1).into();
        let closed = LoadModel::ClosedRequests { requests: 1 };
        let plan = LoadPlan::new(vec![target], RequestSpec::for_get("/"), closed);
        for arrivals in [ArrivalPattern::Uniform, ArrivalPattern::Poisson] {
            let search = MaxRateSearch {
                slos: Vec::new(),
                trial: Duration::from_secs(3),
                arrivals,
                is_strict: false,
                curve_steps: 0,
            };
            let segments = vec![RateSegment::constant_rate(70.0, Duration::from_secs(4))];
            let expected = LoadModel::Open { segments, arrivals };
            assert_eq!(trial_plan(&plan, &search, &[], 70.0).model, expected);
        }
    }

    fn flow(due: u64, answered: u64) -> TrialFlow {
        TrialFlow {
            seconds: 4.0,
            due,
            good: answered,
            answered,
        }
    }

    #[test]
    fn a_queue_that_grows_is_no_rate_that_is_carried() {
        assert_eq!(flow(1000, 1000).fell_behind(), None);
        assert_eq!(flow(1000, 990).fell_behind(), None);
        assert_eq!(
            flow(1000, 950).fell_behind().as_deref(),
            Some("only 95.0% answered in time")
        );
        // One request under way is more than 1 % of twenty.
        assert_eq!(flow(20, 19).fell_behind(), None);
        assert_eq!(TrialFlow::default().fell_behind(), None);
    }
}
