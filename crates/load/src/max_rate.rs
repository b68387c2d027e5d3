//! The highest rate a target carries under an SLO.
//!
//! Owns the search over trials; the rule that decides (MLRsearch) is
//! `loadline_analysis::search::max_rate`, one trial is `trial`, the response-time curve `curve`. A
//! short closed-model probe finds the ceiling, then open-model trials narrow the answer down.
//! Several SLOs share one search: each trial is evidence for all.
//!
//! It does not use `loadline_analysis::search::Search`, because its trials run on no host: loadline
//! neither starts nor limits the target here, so there is no configuration to ask for, no record to
//! keep and nothing to resume, and two trials at once would share the target. The rule stays pure
//! all the same, and a simulation drives it.

mod curve;
mod goal;
mod text;
mod trial;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_analysis::search::TrialOutcome as Verdict;
use loadline_analysis::search::max_rate::{MaxRate, RateParameters, RateStep, critical_rate};
use loadline_analysis::slo::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::plan::{LoadModel, LoadPlan};
use crate::run::run;
use crate::schedule::ArrivalPattern;
pub use curve::CurvePoint;
use goal::LoadGoal;
pub use text::TRIALS_HEAD;
pub use trial::MaxRateTrial;

const PROBE: Duration = Duration::from_secs(2);
/// First range of the search, as shares of the probe's rate.
const RANGE: (f64, f64) = (0.5, 1.1);
/// Bounds within this factor end the search.
const WIDTH: f64 = 1.03;
/// Ranges tried before the search gives up: each next one is ten times lower or twice higher.
const RANGES: usize = 4;
const STOPPED: &str = "it was stopped";
/// Version of [`MaxRateResult`]; 2: `rate` is the answered rate, not the offered one.
const SCHEMA: u32 = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct MaxRateSearch {
    pub slos: Vec<Slo>,
    /// Length of a trial, at least 1 s; a fraction of a second at the end is not judged for its
    /// rate.
    pub trial: Duration,
    pub arrivals: ArrivalPattern,
    /// Decide each rate by a majority of five trials instead of the first good one of two.
    pub is_strict: bool,
    /// Steps of the response-time curve up to the highest rate found; 0 is no curve.
    pub curve_steps: u32,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MaxRateResult {
    /// Version of this form.
    pub schema: u32,
    /// Good responses a second of the closed-model probe; 0 when the search was stopped before.
    pub ceiling: f64,
    /// One for each SLO, in order.
    pub goals: Vec<GoalAnswer>,
    /// Geometric mean of the rates of all goals, as in SPECjbb2015 if the goals are its five;
    /// `None` when one goal has no rate.
    pub critical_rate: Option<f64>,
    /// Every trial, in order.
    pub trials: Vec<MaxRateTrial>,
    /// Response times at shares of the highest rate found; empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// Why the search ended before its bounds were close, or why the curve is no evidence.
    pub incomplete: Option<String>,
}

/// The answer for one SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalAnswer {
    /// The SLO in text.
    pub slo: String,
    /// Highest rate that was carried, answers a second: the offered rate, less the requests not
    /// answered in the same time (the "conditional throughput" of MLRsearch).
    pub rate: Option<f64>,
    /// Lowest rate that was too high.
    pub too_high: Option<f64>,
    /// What broke there, in words.
    pub broke: Option<String>,
}

/// Searches. `observe` gets every trial when it has ended.
/// Errors: [`LoadError`] when load cannot be made at all, or an SLO is about something else than
/// load.
pub fn find_max_rate(
    plan: &LoadPlan,
    search: &MaxRateSearch,
    stop: &Arc<AtomicBool>,
    observe: &mut dyn FnMut(&MaxRateTrial),
) -> Result<MaxRateResult, LoadError> {
    let goals = search.slos.iter();
    let goals = goals.map(LoadGoal::new).collect::<Result<Vec<_>, _>>()?;
    if search.trial < Duration::from_secs(1) {
        let why = "a trial shorter than 1 s says nothing about a rate";
        return Err(LoadError::plan("duration", why));
    }
    let probe = probe_ceiling(plan, stop)?;
    let mut hunt = GoalHunt {
        plan,
        search,
        goals: &goals,
        stop,
        observe,
        trials: Vec::new(),
        incomplete: None,
    };
    let found = match probe {
        Some(ceiling) => hunt.hunt(ceiling)?,
        None => hunt.interrupted_answers(),
    };
    let top = found.iter().filter_map(|g| g.rate).fold(0.0, f64::max);
    let curve = if hunt.incomplete.is_none() && search.curve_steps > 0 && top > 0.0 {
        let curve = curve::measure(plan, search, &goals, top, stop)?;
        hunt.incomplete = curve.incomplete;
        curve.points
    } else {
        Vec::new()
    };
    let rates: Option<Vec<f64>> = found.iter().map(|g| g.rate).collect();
    Ok(MaxRateResult {
        schema: SCHEMA,
        ceiling: probe.unwrap_or_default(),
        critical_rate: rates.and_then(|rates| critical_rate(&rates)),
        goals: found,
        trials: hunt.trials,
        curve,
        incomplete: hunt.incomplete,
    })
}

fn probe_ceiling(plan: &LoadPlan, stop: &Arc<AtomicBool>) -> Result<Option<f64>, LoadError> {
    let closed = LoadPlan {
        model: LoadModel::ClosedFor { duration: PROBE },
        warmup: PROBE / 4,
        ..plan.clone()
    };
    let outcome = run(&closed, stop, &mut |_| {})?;
    let rate = outcome.measure.answered_in_time as f64
        / outcome.measured_time(&closed).as_secs_f64().max(1e-9);
    match outcome.measure.ok {
        _ if outcome.stopped => Ok(None),
        0 => Err(LoadError::Target {
            authority: plan.targets[0].to_string(),
            why: format!(
                "no good response in {PROBE:?}: {:?}",
                outcome.measure.errors_by_name()
            ),
        }),
        _ => Ok(Some(rate)),
    }
}

struct GoalHunt<'a> {
    plan: &'a LoadPlan,
    search: &'a MaxRateSearch,
    goals: &'a [LoadGoal],
    stop: &'a Arc<AtomicBool>,
    observe: &'a mut dyn FnMut(&MaxRateTrial),
    trials: Vec<MaxRateTrial>,
    incomplete: Option<String>,
}

type Bounds = (Option<f64>, Option<f64>);

impl GoalHunt<'_> {
    fn hunt(&mut self, ceiling: f64) -> Result<Vec<GoalAnswer>, LoadError> {
        let (mut low, mut high) = (ceiling * RANGE.0, ceiling * RANGE.1);
        let mut machine = self.rate_search(low, high);
        let mut bounds = Vec::new();
        for _ in 0..RANGES {
            bounds = self.narrow(&mut machine)?;
            let is_low = bounds.iter().any(|(carried, _)| carried.is_none());
            let is_high = bounds.iter().any(|(_, too_high)| too_high.is_none());
            if self.incomplete.is_some() || !(is_low || is_high) {
                break;
            }
            low = if is_low { low / 10.0 } else { low };
            high = if is_high { high * 2.0 } else { high };
            machine.widen(low, high);
        }
        Ok(self.goal_answers(bounds))
    }

    fn interrupted_answers(&mut self) -> Vec<GoalAnswer> {
        self.incomplete = Some(STOPPED.to_owned());
        self.goal_answers(self.known_bounds())
    }

    fn goal_answers(&self, bounds: Vec<Bounds>) -> Vec<GoalAnswer> {
        let goals = bounds.into_iter().enumerate();
        goals
            .map(|(goal, bounds)| self.answer_goal(goal, bounds))
            .collect()
    }

    fn rate_search(&self, low: f64, high: f64) -> MaxRate {
        let length = self.search.trial;
        let mut parameters = if self.search.is_strict {
            RateParameters::strict(low, high, length)
        } else {
            RateParameters::new(low, high, length)
        };
        let goal = parameters.goals[0];
        parameters.goals = vec![goal; self.goals.len()];
        parameters.width = WIDTH;
        MaxRate::new(parameters)
    }

    fn narrow(&mut self, machine: &mut MaxRate) -> Result<Vec<Bounds>, LoadError> {
        loop {
            match machine.next() {
                RateStep::Try { rate, .. } => {
                    let trial = trial::run(self.plan, self.search, self.goals, rate, self.stop)?;
                    if self.stop.load(Ordering::Relaxed) {
                        self.incomplete = Some(STOPPED.to_owned());
                        return Ok(self.known_bounds());
                    }
                    let verdict = |broke: &Option<String>| match (&trial.saturated, broke) {
                        (Some(_), _) => Verdict::Invalid,
                        (None, None) => Verdict::Pass,
                        (None, Some(_)) => Verdict::Fail,
                    };
                    machine.record_outcomes(&trial.broke.iter().map(verdict).collect::<Vec<_>>());
                    (self.observe)(&trial);
                    self.trials.push(trial);
                }
                RateStep::Done(answers) => {
                    return Ok(answers.iter().map(|a| (a.rate, a.too_high)).collect());
                }
                RateStep::CouldNotMeasure { rate } => {
                    let last = self.trials.iter().rev().find_map(|t| t.saturated.clone());
                    let why = last.unwrap_or_default();
                    self.incomplete = Some(format!("{rate:.1}/s could not be measured: {why}"));
                    return Ok(self.known_bounds());
                }
            }
        }
    }

    fn known_bounds(&self) -> Vec<Bounds> {
        let bounds = |goal: usize| {
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
        };
        (0..self.goals.len()).map(bounds).collect()
    }

    fn answer_goal(&self, goal: usize, (carried, too_high): Bounds) -> GoalAnswer {
        let at = |rate: Option<f64>| {
            let trials = self.trials.iter().filter(|t| t.saturated.is_none());
            trials.filter(move |t| Some(t.offered_rate) == rate)
        };
        // Of several good trials the worst counts, as in MLRsearch.
        let answered = at(carried)
            .filter(|t| t.broke[goal].is_none())
            .map(|t| t.achieved_rate.min(t.offered_rate))
            .reduce(f64::min);
        GoalAnswer {
            slo: self.search.slos[goal].to_string(),
            rate: answered,
            too_high,
            broke: at(too_high).find_map(|t| t.broke[goal].clone()),
        }
    }
}
