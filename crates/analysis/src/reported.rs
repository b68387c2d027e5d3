//! Where the result file of a load command differs from what loadline observed before the service.
//!
//! Owns from when on it does. Neither is wrong by that: requests that never left the tool are in its
//! file only. What was observed is judged.

use std::time::Duration;

use crate::latency::{Latency, decode_histogram};
use crate::record::{LoadEvidence, LoadFrom, ReportedFigures, ReportedScope, RequestEvidence};
use crate::slo::Quantile;

/// Counts differ by this share, and by more requests than two clocks put to different sides of the ends
/// of a phase.
const COUNT_SHARE: f64 = 0.01;
const COUNT_LEAST: u64 = 3;

/// The 99th percentile differs by this share of the larger one, and by more than tools round: most
/// write whole ms.
const TAIL_SHARE: f64 = 0.1;
const TAIL_LEAST: Duration = Duration::from_millis(1);

/// The same figure from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedPair<T> {
    pub reported: T,
    pub observed: T,
}

/// What differs; a figure that agrees is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportDifference {
    /// The request that both name alike; `None` is all of them.
    pub request: Option<String>,
    pub requests: Option<ReportedPair<u64>>,
    /// 99th percentiles; `None` in a pair lies in failed requests.
    pub p99: Option<ReportedPair<Option<Duration>>>,
}

/// All requests first, then those that differ by themselves. `None` without a file, or one about
/// another time than the phase.
pub fn find_differences(load: &LoadEvidence) -> Option<Vec<ReportDifference>> {
    let Some(LoadFrom::Command { command }) = &load.load_from else {
        return None;
    };
    let reported = command.reported.as_ref()?;
    let is_counted = match reported.scope {
        ReportedScope::Rows => true,
        ReportedScope::Intervals => false,
        ReportedScope::WholeRun | ReportedScope::ToolSummary => return None,
    };
    let p99 = Quantile::from_fraction(0.99)?;
    let tail = |latency: &str, scheduled| {
        let latency = Latency::new(decode_histogram(latency).ok()?, scheduled).ok()?;
        latency.quantile(p99)
    };
    let differ = |request: Option<&str>, reported: &ReportedFigures, scheduled, latency: &str| {
        let requests = ReportedPair {
            reported: reported.requests,
            observed: scheduled,
        };
        let p99 = ReportedPair {
            reported: reported.p99,
            observed: tail(latency, scheduled),
        };
        let difference = ReportDifference {
            request: request.map(str::to_owned),
            requests: (is_counted && counts_differ(requests)).then_some(requests),
            p99: tails_differ(p99).then_some(p99),
        };
        let is_one = difference.requests.is_some() || difference.p99.is_some();
        is_one.then_some(difference)
    };
    let all = differ(None, &reported.all, load.scheduled, &load.latency);
    let named = load.by_request.iter().filter(|_| load.by_request.len() > 1);
    let named = named.filter_map(|observed: &RequestEvidence| {
        let reported = reported.by_request.get(&observed.name)?;
        let scheduled = observed.ok + observed.failed + observed.unfinished;
        differ(Some(&observed.name), reported, scheduled, &observed.latency)
    });
    Some(all.into_iter().chain(named).collect())
}

fn counts_differ(requests: ReportedPair<u64>) -> bool {
    let ReportedPair { reported, observed } = requests;
    let most = reported.max(observed) as f64 * COUNT_SHARE;
    let apart = reported.abs_diff(observed);
    apart > COUNT_LEAST && apart as f64 > most
}

fn tails_differ(p99: ReportedPair<Option<Duration>>) -> bool {
    match (p99.reported, p99.observed) {
        (Some(one), Some(other)) => {
            let apart = one.abs_diff(other);
            apart > TAIL_LEAST && apart > one.max(other).mul_f64(TAIL_SHARE)
        }
        (one, other) => one != other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::latency::{empty_histogram, encode_histogram};
    use crate::record::{LoadCommandEvidence, ReportedEvidence};

    fn pair<T>(reported: T, observed: T) -> ReportedPair<T> {
        ReportedPair { reported, observed }
    }

    #[test]
    fn counts_differ_by_more_than_a_hundredth_and_the_ends_of_a_phase() {
        for (reported, observed, is_so) in [
            (1000, 1000, false),
            (1000, 990, false),
            (1000, 989, true),
            (989, 1000, true),
            (100, 97, false),
            (100, 96, true),
            (0, 4, true),
        ] {
            assert_eq!(
                counts_differ(pair(reported, observed)),
                is_so,
                "{reported} {observed}"
            );
        }
    }

    #[test]
    fn tails_differ_by_more_than_a_tenth_and_a_millisecond() {
        let us = |us| Some(Duration::from_micros(us));
        for (reported, observed, is_so) in [
            (us(2000), us(1001), false),
            (us(2002), us(1001), true),
            (us(20_000), us(18_001), false),
            (us(17_900), us(20_000), true),
            (None, None, false),
            (None, us(1), true),
        ] {
            assert_eq!(
                tails_differ(pair(reported, observed)),
                is_so,
                "{reported:?} {observed:?}"
            );
        }
    }

    fn load(scope: ReportedScope, requests: u64, p99_ms: u64) -> LoadEvidence {
        let mut histogram = empty_histogram();
        histogram.record_n(10_000_000, 1000).expect("in range");
        let latency = encode_histogram(&histogram).expect("small");
        let figures = ReportedFigures {
            requests,
            p99: Some(Duration::from_millis(p99_ms)),
            ..ReportedFigures::default()
        };
        let named = |name: &str| RequestEvidence {
            name: name.to_owned(),
            ok: 1000,
            failed: 0,
            unfinished: 0,
            latency: latency.clone(),
        };
        let reported = ReportedEvidence {
            format: "vegeta".to_owned(),
            scope,
            all: figures.clone(),
            by_request: [("GET /a".to_owned(), figures)].into(),
        };
        let command = LoadCommandEvidence {
            words: Vec::new(),
            connections: 1,
            stalled: Duration::ZERO,
            arrived_in_stalls: 0,
            expected_in_stalls: 0.0,
            front_lag_p99: Duration::ZERO,
            cpu_wait: None,
            reported: Some(reported),
        };
        LoadEvidence {
            scheduled: 1000,
            by_request: vec![named("GET /a"), named("GET /b")],
            latency,
            load_from: Some(LoadFrom::Command {
                command: Box::new(command),
            }),
            ..fixture::steady_load()
        }
    }

    #[test]
    fn differences_are_found_in_all_and_by_common_name_within_the_phase() {
        use ReportedScope::{Intervals, Rows, ToolSummary, WholeRun};
        let told = |scope, requests, p99| {
            let found = find_differences(&load(scope, requests, p99))?;
            let words = found.iter().map(|one| {
                let name = one.request.as_deref().unwrap_or("all");
                format!("{name}: {} {}", one.requests.is_some(), one.p99.is_some())
            });
            Some(words.collect::<Vec<_>>().join(", "))
        };
        let said = |words: &str| Some(words.to_owned());
        assert_eq!(told(Rows, 1000, 10), said(""));
        assert_eq!(
            told(Rows, 1100, 10),
            said("all: true false, GET /a: true false")
        );
        assert_eq!(
            told(Rows, 1000, 20),
            said("all: false true, GET /a: false true")
        );
        assert_eq!(told(Intervals, 1100, 10), said(""));
        assert_eq!(told(WholeRun, 1100, 10), None);
        assert_eq!(told(ToolSummary, 1100, 10), None);
    }
}
