//! One SLO as a trial of the search is held against it.
//!
//! Owns what a trial measured of each objective and when it can no longer pass; whether an
//! objective is met says [`Objective::is_met`].

use std::time::Duration;

use loadline_analysis::slo::{Objective, Slo, print_duration};

use crate::error::LoadError;
use crate::histogram::MAX_NS;
use crate::outcome::LoadTotals;

#[derive(Debug, Clone)]
pub(super) struct LoadGoal {
    slo: Slo,
}

impl LoadGoal {
    pub(super) fn new(slo: &Slo) -> Result<Self, LoadError> {
        let refuse = |why: String| Err(LoadError::plan("slo", why));
        let is_start = |o: &Objective| {
            matches!(
                o,
                Objective::Start { .. }
                    | Objective::Jvm(_)
                    | Objective::Run(_)
                    | Objective::LoadPasses { .. }
            )
        };
        if slo.objectives.iter().any(is_start) {
            return refuse(format!(
                "`{slo}` is about the start, the JVM, a run that ends or a load command, which load does not show"
            ));
        }
        if let Some(named) = slo.by_request.first() {
            return refuse(format!(
                "`{named}` is about one request, and the search judges all together; \
                 loadline size and run judge each"
            ));
        }
        if !slo.peak.is_empty() {
            return refuse(format!(
                "`{slo}` is about a peak, which the search does not have; loadline size and run have --peak"
            ));
        }
        Ok(Self { slo: slo.clone() })
    }

    pub(super) fn broken_objective(&self, totals: &LoadTotals) -> Option<String> {
        let objectives = self.slo.objectives.iter();
        let mut all = objectives.map(|objective| (*objective, measured_value(*objective, totals)));
        let miss = all.find(|(objective, measured)| !objective.is_met(*measured));
        miss.map(|(objective, measured)| objective_words(objective, measured))
    }

    /// Requests of a second that count against the tightest latency objective.
    pub(super) fn slow_requests(&self, totals: &LoadTotals, is_warmup: bool) -> f64 {
        let Some((_, bound)) = self.tightest_objective() else {
            return 0.0;
        };
        if is_warmup {
            return 0.0;
        }
        let slow = totals.latency.count_between(bound, MAX_NS);
        (slow + totals.failed_requests()) as f64
    }

    /// The most slow requests that a trial with this many requests can have and still pass.
    pub(super) fn allowance(&self, requests: f64) -> f64 {
        match self.tightest_objective() {
            // Half as much again: buckets of the histogram and the first second are not exact.
            Some((share, _)) => requests * share * 1.5 + 10.0,
            None => f64::INFINITY,
        }
    }

    /// The latency objective that allows the fewest slow requests: their share, its bound in ns.
    fn tightest_objective(&self) -> Option<(f64, u64)> {
        let latencies = self
            .slo
            .objectives
            .iter()
            .filter_map(|objective| match objective {
                Objective::Latency { quantile, bound } => {
                    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(MAX_NS);
                    Some((1.0 - quantile.as_fraction(), nanos.min(MAX_NS)))
                }
                _ => None,
            });
        latencies.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

fn measured_value(objective: Objective, totals: &LoadTotals) -> Option<f64> {
    let quantile = |q| totals.latency_quantile(q).map(|value| value.as_secs_f64());
    match objective {
        Objective::Latency { quantile: q, .. } => quantile(q.as_fraction()),
        Objective::MaxLatency { .. } => quantile(1.0),
        Objective::Errors { .. } => {
            let failed = totals.failed_requests() + totals.unfinished;
            Some(failed as f64 / totals.scheduled.max(1) as f64)
        }
        // `Goal::new` refuses it.
        Objective::Start { .. }
        | Objective::Jvm(_)
        | Objective::Run(_)
        | Objective::Metric(_)
        | Objective::LoadPasses { .. } => None,
    }
}

fn objective_words(objective: Objective, measured: Option<f64>) -> String {
    let name = match objective {
        Objective::Latency { quantile, .. } => quantile.to_string(),
        Objective::MaxLatency { .. } => "max".to_owned(),
        Objective::Errors { .. } => "errors".to_owned(),
        Objective::Start { .. }
        | Objective::Jvm(_)
        | Objective::Run(_)
        | Objective::Metric(_)
        | Objective::LoadPasses { .. } => "start".to_owned(),
    };
    let value = match (measured, objective) {
        (None, _) => "failed".to_owned(),
        (Some(share), Objective::Errors { .. }) => format!("{:.2}%", share * 100.0),
        (Some(seconds), _) => {
            print_duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        }
    };
    format!("{name} {value} ({objective})")
}

pub(super) fn shortest_bound(goals: &[LoadGoal]) -> Option<Duration> {
    goals
        .iter()
        .filter_map(|goal| goal.slo.tightest_latency())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(text: &str) -> LoadGoal {
        LoadGoal::new(&text.parse().expect("an SLO")).expect("about load")
    }

    fn totals() -> LoadTotals {
        let mut totals = LoadTotals {
            scheduled: 1000,
            ..LoadTotals::default()
        };
        for n in 0..1000 {
            totals.count_success((n / 10 + 1) * 1_000_000, 1_000_000);
        }
        totals
    }

    #[test]
    fn an_objective_that_is_broken_says_what_was_measured() {
        let totals = totals();
        assert_eq!(goal("p99<100ms").broken_objective(&totals), None);
        assert_eq!(
            goal("p90<50ms").broken_objective(&totals).as_deref(),
            Some("p90 90.046463ms (p90<50ms)")
        );
        assert!(goal("max<90ms").broken_objective(&totals).is_some());
    }

    #[test]
    fn failures_break_errors_and_percentiles() {
        let mut totals = totals();
        for _ in 0..200 {
            totals.scheduled += 1;
            totals.count_failure(crate::outcome::ErrorKind::Http5xx);
        }
        assert_eq!(
            goal("p99<1s").broken_objective(&totals).as_deref(),
            Some("p99 failed (p99<1s)")
        );
        assert!(goal("errors<20%").broken_objective(&totals).is_none());
        assert!(goal("errors<10%").broken_objective(&totals).is_some());
    }

    #[test]
    fn only_more_slow_requests_than_the_whole_trial_allows_end_it() {
        let totals = totals();
        let goal = goal("p99<50ms");
        assert!((goal.slow_requests(&totals, false) - 510.0).abs() < 11.0);
        assert!(goal.allowance(1000.0) < 500.0);
        assert!(goal.allowance(100_000.0) > 500.0);
        assert_eq!(goal.slow_requests(&totals, true), 0.0);
    }

    #[test]
    fn the_generator_is_held_against_the_shortest_bound() {
        let bound = |text| shortest_bound(&[goal(text)]);
        assert_eq!(bound("p99<50ms,max<20ms"), Some(Duration::from_millis(20)));
        assert_eq!(bound("errors<1%"), None);
    }

    #[test]
    fn the_start_time_is_no_matter_of_load() {
        assert!(LoadGoal::new(&"start<2s".parse().unwrap()).is_err());
    }
}
