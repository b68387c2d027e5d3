//! The warm-up of the target: when it reaches its final speed, and the time before.
//!
//! Owns the judged series (median latency of each second, from second 0, the marked warm-up
//! included; seconds without any request are left out) and the verdict's meaning for requests;
//! change points and the ±5 % rule are `loadline_analysis::steady`. Only load with a constant rate
//! is judged. Many JVM runs never get steady: that is an outcome, not an error.

use std::time::Duration;

use loadline_analysis::steady::{SteadinessRule, judge_steadiness};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram;
use crate::outcome::LoadSecond;
use crate::plan::{LoadModel, LoadPlan};

/// How the target warmed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUp {
    /// Whether enough of the run was steady to tell.
    pub outcome: SteadyEnd,
    /// Seconds until the steady part begins, from the first request due: the time to performance
    /// where the outcome is steady.
    pub seconds: u64,
    /// Seconds from there to the end.
    pub steady_seconds: u64,
    /// Mean of the seconds' median latencies in the steady part.
    pub steady_p50_us: f64,
    /// Requests answered or failed before the steady part.
    pub requests_before: u64,
    /// Requests in seconds with a median more than 5 % above the steady one, or without a good
    /// answer.
    pub slower_requests: u64,
    /// Seconds in which the latency changed.
    pub change_points: Vec<u64>,
}

/// Whether the end of a run is steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyEnd {
    /// At least 30 s and 40 % of the run.
    Steady,
    /// Less: the run is too short, or the target never settles.
    NotSteady,
}

impl WarmUp {
    pub(crate) fn summary_line(&self) -> String {
        let requests = format!(
            "{} of {} requests until then were slower",
            self.slower_requests, self.requests_before
        );
        match self.outcome {
            SteadyEnd::Steady if self.seconds == 0 => {
                format!("warm-up: none, steady for {} s", self.steady_seconds)
            }
            SteadyEnd::Steady => format!(
                "warm-up: {} s to performance, then steady for {} s; {requests}",
                self.seconds, self.steady_seconds
            ),
            SteadyEnd::NotSteady => format!(
                "NOT STEADY: only the last {} s are alike, 30 s and 40 % of the run are needed; \
                 a longer run (--duration) may settle",
                self.steady_seconds
            ),
        }
    }
}

#[derive(Debug)]
pub struct WarmUpStudy {
    rule: SteadinessRule,
    /// Seconds of the run without its drain; 0 where nothing is judged.
    length: u64,
    timeout: Duration,
    seconds: Vec<JudgedSecond>,
}

#[derive(Debug, Clone, Copy)]
struct JudgedSecond {
    index: u64,
    requests: u64,
    /// Median latency in s, the timeout where it lies in failed requests; `None` where none ended.
    p50: Option<f64>,
}

impl WarmUpStudy {
    pub fn new(plan: &LoadPlan) -> Self {
        Self::with_rule(plan, SteadinessRule::default())
    }

    pub fn with_rule(plan: &LoadPlan, rule: SteadinessRule) -> Self {
        let is_even = match &plan.model {
            LoadModel::Open { segments, .. } => segments
                .iter()
                .all(|s| s.from == s.to && s.from == segments[0].from),
            LoadModel::ClosedFor { .. } => true,
            LoadModel::ClosedRequests { .. } => false,
        };
        let length = plan.model.scheduled_duration().filter(|_| is_even);
        Self {
            rule,
            length: length.unwrap_or_default().as_secs(),
            timeout: plan.timeout,
            seconds: Vec::new(),
        }
    }

    pub fn add_second(&mut self, second: &LoadSecond) {
        if second.index >= self.length || second.length < Duration::from_secs(1) {
            return;
        }
        let totals = &second.totals;
        let ended = totals.ok + totals.failed_requests();
        if ended + totals.scheduled == 0 {
            return;
        }
        let p50 = histogram::quantile_with_failures(&totals.latency, totals.failed_requests(), 0.5);
        self.seconds.push(JudgedSecond {
            index: second.index,
            requests: ended,
            p50: (ended > 0).then(|| p50.unwrap_or(self.timeout).as_secs_f64()),
        });
    }

    /// The medians. Requests of a second in which none ended show in the next one in which some
    /// do; at the end of the run they take as long as the timeout.
    fn medians(&self) -> Vec<f64> {
        let mut next = self.timeout.as_secs_f64();
        let later = |second: &JudgedSecond| {
            next = second.p50.unwrap_or(next);
            next
        };
        let mut medians: Vec<f64> = self.seconds.iter().rev().map(later).collect();
        medians.reverse();
        medians
    }

    pub fn judge_warm_up(&self) -> Option<WarmUp> {
        if self.seconds.len() < self.rule.fewest_steady {
            return None;
        }
        let series = self.medians();
        let verdict = judge_steadiness(&series, &self.rule)?;
        let slow = verdict.level * (1.0 + self.rule.tolerance);
        let before = || self.seconds.iter().zip(&series).take(verdict.from);
        let requests = |least: f64| {
            let slower = before().filter(|(_, p50)| **p50 > least);
            slower.map(|(second, _)| second.requests).sum()
        };
        let at = |index: &usize| match index {
            0 => 0,
            index => self.seconds[*index].index,
        };
        let end = self.seconds.last().map_or(0, |second| second.index + 1);
        let begin = at(&verdict.from);
        Some(WarmUp {
            outcome: if verdict.is_steady {
                SteadyEnd::Steady
            } else {
                SteadyEnd::NotSteady
            },
            seconds: begin,
            steady_seconds: end - begin,
            steady_p50_us: verdict.level * 1e6,
            requests_before: requests(0.0),
            slower_requests: requests(slow),
            change_points: verdict.change_points.iter().map(at).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{ErrorKind, LoadTotals};
    use crate::plan::RequestSpec;

    fn plan(seconds: u64) -> LoadPlan {
        let target = ([127, 0, 0, 1], 1).into();
        let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(seconds));
        LoadPlan::new(vec![target], RequestSpec::for_get("/"), model)
    }

    /// 100 requests of one latency in µs each; 0 is 100 failures. A little noise, as PELT expects.
    fn study(latencies: &[u64]) -> Option<WarmUp> {
        let mut study = WarmUpStudy::new(&plan(latencies.len() as u64));
        for (index, us) in latencies.iter().enumerate() {
            let mut totals = LoadTotals {
                scheduled: 100,
                ..LoadTotals::default()
            };
            match us {
                0 => totals.count_failures(ErrorKind::Refused, 100),
                us => {
                    let noisy = us * 1000 + (index as u64 * 37 % 11) * us * 2;
                    (0..100).for_each(|_| totals.count_success(noisy, noisy));
                }
            }
            study.add_second(&second(index, totals));
        }
        study.judge_warm_up()
    }

    fn second(index: usize, totals: LoadTotals) -> LoadSecond {
        LoadSecond {
            index: index as u64,
            at_ns: 0,
            length: Duration::from_secs(1),
            is_warmup: false,
            totals,
            phases: None,
        }
    }

    fn steps(parts: &[(u64, usize)]) -> Vec<u64> {
        let part = |(us, seconds): &(u64, usize)| vec![*us; *seconds];
        parts.iter().flat_map(part).collect()
    }

    #[test]
    fn the_time_to_performance_and_its_cost_are_found() {
        let warm_up = study(&steps(&[(0, 2), (5000, 10), (1500, 15), (900, 60)])).unwrap();
        assert_eq!(warm_up.outcome, SteadyEnd::Steady);
        assert!((26..=28).contains(&warm_up.seconds), "{warm_up:?}");
        assert_eq!(warm_up.requests_before, warm_up.seconds * 100);
        assert!(warm_up.slower_requests >= 2600, "{warm_up:?}");
        assert!((warm_up.steady_p50_us / 910.0 - 1.0).abs() < 0.02);
        let text = warm_up.summary_line();
        assert!(text.contains("s to performance, then steady for"), "{text}");
    }

    /// Seconds with this many due requests and the latencies in ms of finished ones.
    fn sparse(seconds: &[(u64, &[u64])]) -> Option<WarmUp> {
        let mut study = WarmUpStudy::new(&plan(seconds.len() as u64));
        for (index, (due, ended)) in seconds.iter().enumerate() {
            let mut totals = LoadTotals {
                scheduled: *due,
                ..LoadTotals::default()
            };
            ended
                .iter()
                .for_each(|ms| totals.count_success(ms * 1_000_000, ms * 1_000_000));
            study.add_second(&second(index, totals));
        }
        study.judge_warm_up()
    }

    #[test]
    fn a_second_without_requests_says_nothing() {
        // A request every other second, slow until second 20.
        let rare: Vec<(u64, &[u64])> = (0..160)
            .map(|second| match second {
                second if second % 2 == 1 => (0, &[][..]),
                0..20 => (1, &[50][..]),
                _ => (1, &[10][..]),
            })
            .collect();
        let warm_up = sparse(&rare).unwrap();
        assert_eq!(warm_up.outcome, SteadyEnd::Steady, "{warm_up:?}");
        assert_eq!((warm_up.seconds, warm_up.steady_seconds), (20, 139));
        assert_eq!((warm_up.requests_before, warm_up.slower_requests), (10, 10));
        assert!((warm_up.steady_p50_us / 1e4 - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_ends_in_the_next_second_is_judged_there() {
        // Every fourth request is due at the very end of its second.
        let late: Vec<(u64, &[u64])> = (0..80)
            .map(|second| match second % 4 {
                0 => (1, &[][..]),
                1 => (0, &[10][..]),
                _ => (1, &[10][..]),
            })
            .collect();
        let warm_up = sparse(&late).unwrap();
        assert_eq!((warm_up.outcome, warm_up.seconds), (SteadyEnd::Steady, 0));
        // A server that hangs to the end is not steady at its old speed.
        let mut hanging = late;
        hanging.extend((0..40).map(|_| (1, &[][..])));
        let warm_up = sparse(&hanging).unwrap();
        assert!(warm_up.steady_p50_us > 1e6, "{warm_up:?}");
    }

    #[test]
    fn what_changes_to_the_end_is_not_steady() {
        let warm_up = study(&steps(&[(1000, 40), (2000, 10), (900, 12)])).unwrap();
        assert_eq!(warm_up.outcome, SteadyEnd::NotSteady);
        assert!(warm_up.summary_line().starts_with("NOT STEADY"));
    }

    #[test]
    fn a_fast_target_has_no_warm_up() {
        let warm_up = study(&steps(&[(300, 40)])).unwrap();
        assert_eq!((warm_up.outcome, warm_up.seconds), (SteadyEnd::Steady, 0));
        assert_eq!(warm_up.summary_line(), "warm-up: none, steady for 40 s");
    }

    #[test]
    fn a_short_run_and_a_ramp_say_nothing() {
        assert_eq!(study(&[1000; 20]), None);
        let mut ramp = plan(60);
        ramp.model = LoadModel::Open {
            segments: vec![crate::schedule::RateSegment {
                from: 1.0,
                to: 10.0,
                duration: Duration::from_secs(60),
            }],
            arrivals: crate::schedule::ArrivalPattern::Uniform,
        };
        assert_eq!(WarmUpStudy::new(&ramp).length, 0);
    }
}
