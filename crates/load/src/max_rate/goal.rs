//! One SLO as a trial of the search is held against it.

use std::time::Duration;

use loadline_analysis::slo::{Objective, Slo, duration};

use crate::error::LoadError;
use crate::histogram::MAX_NS;
use crate::outcome::Totals;

/// An SLO about load only.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    objectives: Vec<Objective>,
}

impl Goal {
    /// # Errors
    /// [`LoadError::Plan`] for an objective that no load can decide.
    pub(super) fn new(slo: &Slo) -> Result<Self, LoadError> {
        let is_start = |o: &Objective| matches!(o, Objective::Start { .. });
        if slo.objectives.iter().any(is_start) {
            return Err(LoadError::Plan {
                field: "slo",
                why: format!("`{slo}` is about the start time, which load does not show"),
            });
        }
        Ok(Self {
            objectives: slo.objectives.clone(),
        })
    }

    /// What the first broken objective measured; `None` when all are kept.
    pub(super) fn broke(&self, totals: &Totals) -> Option<String> {
        self.objectives.iter().find_map(|objective| {
            let measured = match objective {
                Objective::Latency { quantile, bound } => {
                    let value = totals.latency_quantile(quantile.as_fraction());
                    (value.is_none_or(|v| v >= *bound)).then(|| match value {
                        Some(value) => format!("{quantile} {}", duration(value)),
                        None => format!("{quantile} failed"),
                    })
                }
                Objective::MaxLatency { bound } => {
                    let value = totals.latency_quantile(1.0);
                    (value.is_none_or(|v| v >= *bound)).then(|| match value {
                        Some(value) => format!("max {}", duration(value)),
                        None => "max failed".to_owned(),
                    })
                }
                Objective::Errors { bound } => {
                    let failed = totals.failed() + totals.unfinished;
                    let share = failed as f64 / totals.scheduled.max(1) as f64;
                    (share >= *bound).then(|| format!("errors {:.2}%", share * 100.0))
                }
                Objective::Start { .. } => None,
            };
            measured.map(|m| format!("{m} ({objective})"))
        })
    }

    /// Requests of a second that count against the tightest latency objective.
    pub(super) fn slow(&self, totals: &Totals, is_warmup: bool) -> f64 {
        let Some((_, bound)) = self.tightest() else {
            return 0.0;
        };
        if is_warmup {
            return 0.0;
        }
        let slow = totals.latency.count_between(bound, MAX_NS);
        (slow + totals.failed()) as f64
    }

    /// How many of them a trial of so many requests can have and still pass.
    pub(super) fn allowance(&self, requests: f64) -> f64 {
        match self.tightest() {
            // Half as much again: buckets of the histogram and the first second are not exact.
            Some((share, _)) => requests * share * 1.5 + 10.0,
            None => f64::INFINITY,
        }
    }

    /// The shortest latency that an objective asks for.
    fn shortest_bound(&self) -> Option<Duration> {
        let bounds = self.objectives.iter().filter_map(|o| match o {
            Objective::Latency { bound, .. } | Objective::MaxLatency { bound } => Some(*bound),
            Objective::Errors { .. } | Objective::Start { .. } => None,
        });
        bounds.min()
    }

    /// The latency objective that allows the fewest slow requests: their share, its bound in ns.
    fn tightest(&self) -> Option<(f64, u64)> {
        let latencies = self
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

/// The shortest latency that any of them asks for.
pub(super) fn shortest_bound(goals: &[Goal]) -> Option<Duration> {
    goals.iter().filter_map(Goal::shortest_bound).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(text: &str) -> Goal {
        Goal::new(&text.parse().expect("an SLO")).expect("about load")
    }

    /// 1000 requests of 1 to 100 ms, 10 of each.
    fn totals() -> Totals {
        let mut totals = Totals {
            scheduled: 1000,
            ..Totals::default()
        };
        for n in 0..1000 {
            totals.succeed((n / 10 + 1) * 1_000_000, 1_000_000);
        }
        totals
    }

    #[test]
    fn an_objective_that_is_broken_says_what_was_measured() {
        let totals = totals();
        assert_eq!(goal("p99<100ms").broke(&totals), None);
        assert_eq!(
            goal("p90<50ms").broke(&totals).as_deref(),
            Some("p90 90.046463ms (p90<50ms)")
        );
        assert!(goal("max<90ms").broke(&totals).is_some());
    }

    #[test]
    fn failures_break_errors_and_percentiles() {
        let mut totals = totals();
        for _ in 0..200 {
            totals.scheduled += 1;
            totals.fail(crate::outcome::ErrorKind::Http5xx);
        }
        assert_eq!(
            goal("p99<1s").broke(&totals).as_deref(),
            Some("p99 failed (p99<1s)")
        );
        assert!(goal("errors<20%").broke(&totals).is_none());
        assert!(goal("errors<10%").broke(&totals).is_some());
    }

    #[test]
    fn only_more_slow_requests_than_the_whole_trial_allows_end_it() {
        let totals = totals();
        let goal = goal("p99<50ms");
        assert!((goal.slow(&totals, false) - 510.0).abs() < 11.0);
        assert!(goal.allowance(1000.0) < 500.0);
        assert!(goal.allowance(100_000.0) > 500.0);
        assert_eq!(goal.slow(&totals, true), 0.0);
    }

    #[test]
    fn the_generator_is_held_against_the_shortest_bound() {
        let bound = |text| goal(text).shortest_bound();
        assert_eq!(bound("p99<50ms,max<20ms"), Some(Duration::from_millis(20)));
        assert_eq!(bound("errors<1%"), None);
    }

    #[test]
    fn the_start_time_is_no_matter_of_load() {
        assert!(Goal::new(&"start<2s".parse().unwrap()).is_err());
    }
}
