//! The highest rate a target carries under an SLO.
//!
//! Owns the trials of the search; the rule that decides (MLRsearch) is
//! `loadline_analysis::search::max_rate`. A short closed-model probe finds the ceiling, then
//! open-model trials narrow it down. A trial ends early once more requests were slow than its
//! whole length allows. Several SLOs share one search and its trials.

mod goal;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_analysis::search::Outcome as Verdict;
use loadline_analysis::search::max_rate::{MaxRate, Parameters, Step, critical_rate};
use loadline_analysis::slo::Slo;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::plan::{Model, Plan};
use crate::run::{Outcome, run};
use crate::schedule::Segment;
use goal::Goal;
pub use text::TRIALS_HEAD;

/// Load before each trial that is not judged: the change of rate is no property of the rate.
const SETTLE: Duration = Duration::from_millis(500);
/// Length of the closed-model probe.
const PROBE: Duration = Duration::from_secs(2);
/// First range of the search, as shares of the probe's rate.
const RANGE: (f64, f64) = (0.5, 1.1);
/// Bounds within this factor end the search.
const WIDTH: f64 = 1.03;
/// Ranges tried before the search gives up: each next one is ten times lower or twice higher.
const RANGES: usize = 4;

/// What to search for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The SLOs, each searched for its own rate.
    pub slos: Vec<Slo>,
    /// Length of a trial.
    pub trial: Duration,
    /// Decide each rate by a majority of five trials instead of the first good one of two.
    pub is_strict: bool,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Version of this form.
    pub schema: u32,
    /// Good responses a second of the closed-model probe.
    pub ceiling: f64,
    /// One for each SLO, in order.
    pub goals: Vec<GoalFound>,
    /// Geometric mean of the rates of all goals, as in SPECjbb2015 where the goals are its five;
    /// `None` when one of them has no rate.
    pub critical_rate: Option<f64>,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// Why the search ended before its bounds were close, if it did.
    pub incomplete: Option<String>,
}

/// The answer for one SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalFound {
    /// The SLO in text.
    pub slo: String,
    /// Highest rate that was carried, requests a second.
    pub rate: Option<f64>,
    /// Lowest rate that was too high.
    pub too_high: Option<f64>,
    /// What broke there, in words.
    pub broke: Option<String>,
}

/// One trial of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Requests a second that were scheduled.
    pub offered_rate: f64,
    /// Good responses a second.
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

/// Searches. `observe` gets every trial when it has ended.
///
/// # Errors
/// [`LoadError`] when load cannot be made at all, or an SLO is about something else than load.
pub fn max_rate(
    plan: &Plan,
    search: &Search,
    stop: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&Trial),
) -> Result<Found, LoadError> {
    let goals = search
        .slos
        .iter()
        .map(Goal::new)
        .collect::<Result<Vec<_>, _>>()?;
    let ceiling = probe(plan, stop)?;
    let mut hunt = Hunt {
        plan,
        search,
        goals: &goals,
        stop,
        observe,
        trials: Vec::new(),
        incomplete: None,
    };
    let mut found: Vec<GoalFound> = Vec::new();
    for index in 0..goals.len() {
        let known = hunt.known(index);
        found.push(hunt.hunt(index, ceiling, known)?);
    }
    let rates: Option<Vec<f64>> = found.iter().map(|g| g.rate).collect();
    Ok(Found {
        schema: 1,
        ceiling,
        critical_rate: rates.and_then(|rates| critical_rate(&rates)),
        goals: found,
        trials: hunt.trials,
        incomplete: hunt.incomplete,
    })
}

/// The closed-model rate; it also warms the target up.
fn probe(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<f64, LoadError> {
    let closed = Plan {
        model: Model::ClosedFor { duration: PROBE },
        warmup: PROBE / 4,
        ..plan.clone()
    };
    let outcome = run(&closed, stop, &mut |_| {})?;
    let rate = outcome.measure.ok as f64 / outcome.measured(&closed).as_secs_f64().max(1e-9);
    match outcome.measure.ok {
        0 => Err(LoadError::Target {
            authority: plan.targets[0].to_string(),
            why: format!(
                "no good response in {PROBE:?}: {:?}",
                outcome.measure.errors()
            ),
        }),
        _ => Ok(rate),
    }
}

struct Hunt<'a> {
    plan: &'a Plan,
    search: &'a Search,
    goals: &'a [Goal],
    stop: &'a Arc<AtomicBool>,
    observe: &'a mut dyn FnMut(&Trial),
    trials: Vec<Trial>,
    incomplete: Option<String>,
}

impl Hunt<'_> {
    /// What earlier trials already say about a goal: a rate that was carried, one that was not.
    fn known(&self, goal: usize) -> (Option<f64>, Option<f64>) {
        let evidence = || self.trials.iter().filter(|t| t.saturated.is_none());
        let too_high = evidence()
            .filter(|t| t.broke[goal].is_some())
            .map(|t| t.offered_rate)
            .reduce(f64::min);
        let carried = evidence()
            .filter(|t| t.broke[goal].is_none())
            .map(|t| t.offered_rate)
            .filter(|rate| too_high.is_none_or(|high| *rate < high))
            .reduce(f64::max);
        (carried, too_high)
    }

    /// Searches one goal, in ranges that move down or up until both bounds are found.
    fn hunt(
        &mut self,
        goal: usize,
        ceiling: f64,
        (carried, too_high): (Option<f64>, Option<f64>),
    ) -> Result<GoalFound, LoadError> {
        let mut low = carried.unwrap_or(ceiling * RANGE.0);
        let mut high = too_high.map_or(ceiling * RANGE.1, |rate| rate * WIDTH);
        low = low.min(high / 2.0);
        let mut answer = (None, None);
        for _ in 0..RANGES {
            answer = self.narrow(goal, low, high)?;
            if self.incomplete.is_some() || (answer.0.is_some() && answer.1.is_some()) {
                break;
            }
            (low, high) = match answer.0 {
                None => (low / 10.0, low),
                Some(_) => (high, high * 2.0),
            };
        }
        let (rate, too_high) = answer;
        let broke = self
            .trials
            .iter()
            .filter(|t| Some(t.offered_rate) == too_high)
            .find_map(|t| t.broke[goal].clone());
        Ok(GoalFound {
            slo: self.search.slos[goal].to_string(),
            rate,
            too_high,
            broke,
        })
    }

    /// Bounds of one goal within a range.
    fn narrow(
        &mut self,
        goal: usize,
        low: f64,
        high: f64,
    ) -> Result<(Option<f64>, Option<f64>), LoadError> {
        let length = self.search.trial;
        let parameters = match self.search.is_strict {
            true => Parameters::strict(low, high, length),
            false => Parameters::new(low, high, length),
        };
        let mut machine = MaxRate::new(Parameters {
            width: WIDTH,
            ..parameters
        });
        loop {
            match machine.next() {
                Step::Try { rate, .. } => {
                    let trial = self.trial(rate)?;
                    if self.stop.load(Ordering::Relaxed) {
                        self.incomplete = Some("it was stopped".to_owned());
                        return Ok(self.known(goal));
                    }
                    machine.record(&[match (&trial.saturated, &trial.broke[goal]) {
                        (Some(_), _) => Verdict::Invalid,
                        (None, None) => Verdict::Pass,
                        (None, Some(_)) => Verdict::Fail,
                    }]);
                    (self.observe)(&trial);
                    self.trials.push(trial);
                }
                Step::Done(answers) => {
                    let answer = answers.first().map(|a| (a.rate, a.too_high));
                    return Ok(answer.unwrap_or_default());
                }
                Step::CouldNotMeasure { rate } => {
                    let last = self.trials.iter().rev().find_map(|t| t.saturated.clone());
                    let why = last.unwrap_or_default();
                    self.incomplete = Some(format!("{rate:.1}/s could not be measured: {why}"));
                    return Ok(self.known(goal));
                }
            }
        }
    }

    /// One trial at a rate, judged for every goal.
    fn trial(&mut self, rate: f64) -> Result<Trial, LoadError> {
        let plan = Plan {
            model: Model::Open {
                segments: vec![Segment::constant(rate, SETTLE + self.search.trial)],
                arrivals: self.plan.arrivals(),
            },
            warmup: SETTLE,
            drain: self.plan.drain.min(Duration::from_secs(2)),
            ..self.plan.clone()
        };
        let whole = rate * self.search.trial.as_secs_f64();
        let hopeless = Arc::new(AtomicBool::new(false));
        let mut slow = vec![0.0; self.goals.len()];
        let mut ended_early = false;
        let outcome = run(&plan, &hopeless, &mut |second| {
            for (slow, goal) in slow.iter_mut().zip(self.goals) {
                *slow += goal.slow(&second.totals, second.is_warmup);
            }
            let mut sums = slow.iter().zip(self.goals);
            let is_lost = sums.all(|(slow, goal)| *slow > goal.allowance(whole));
            if is_lost && !ended_early {
                ended_early = true;
                hopeless.store(true, Ordering::Relaxed);
            }
            if self.stop.load(Ordering::Relaxed) {
                hopeless.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(self.judge(rate, &plan, &outcome, ended_early && outcome.stopped))
    }

    fn judge(&self, rate: f64, plan: &Plan, outcome: &Outcome, ended_early: bool) -> Trial {
        let totals = &outcome.measure;
        let seconds = outcome.measured(plan).as_secs_f64().max(1e-9);
        let micros = |q| {
            let value = totals.latency_quantile(q);
            value.map(|d| d.as_nanos() as f64 / 1e3)
        };
        Trial {
            offered_rate: rate,
            achieved_rate: totals.ok as f64 / seconds,
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            failed: totals.failed() + totals.unfinished,
            ended_early,
            broke: self.goals.iter().map(|g| g.broke(totals)).collect(),
            saturated: outcome.health.saturated.clone(),
        }
    }
}
