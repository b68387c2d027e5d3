//! Whether a percentile has enough requests beyond it, and its judgement over all starts together
//! if one start has too few.
//!
//! Owns the rule of [`ENOUGH`] and the pooled sample of a proof. It never changes the verdict of a
//! trial. Error of a percentile with few requests: the number beyond it is binomial, so with 10 the
//! standard deviation is a third, with 2 three quarters (David and Nagaraja, "Order Statistics",
//! 2003, §7.1). Requests of one start are correlated, so the interval comes from a bootstrap over
//! starts (Davison and Hinkley 1997, §3.8), never over requests.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::quantile;
use crate::latency::Latency;
use crate::random::RandomStream;
use crate::record::TrialRecord;
use crate::sli::MeasuredLoad;
use crate::slo::{Objective, Quantile, RequestObjective, Slo};
use crate::text;

/// Requests that must lie beyond a percentile.
pub const ENOUGH: f64 = 10.0;
/// Share of [`ENOUGH`] that a trial must have had: random schedules and mixes draw fewer than were
/// planned for.
const DRAWN: f64 = 0.9;
const RESAMPLES: u32 = 2000;
const FEWEST: usize = 3;
/// Ends of the 95 % interval, as quantiles of the resamples.
const ENDS: (f64, f64) = (0.025, 0.975);

#[derive(Debug, Clone, PartialEq)]
pub struct SloPercentile {
    /// The request of a mix that it is about; `None` for all requests.
    pub request: Option<String>,
    pub quantile: Quantile,
}

impl fmt::Display for SloPercentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.request {
            Some(request) => write!(f, "{} of {request}", self.quantile),
            None => self.quantile.fmt(f),
        }
    }
}

impl SloPercentile {
    pub fn all_of_slo(slo: &Slo) -> Vec<Self> {
        let bounded = bounded_percentiles(slo).into_iter();
        bounded.map(|(percentile, _)| percentile).collect()
    }

    pub fn beyond(&self, requests: f64) -> f64 {
        // Rounded: 1 − 0.999 is a little less than 0.001.
        ((1.0 - self.quantile.as_fraction()) * requests * 1e6).round() / 1e6
    }

    pub fn requests_needed(&self) -> f64 {
        ENOUGH / (1.0 - self.quantile.as_fraction())
    }
}

fn bounded_percentiles(slo: &Slo) -> Vec<(SloPercentile, Objective)> {
    let of_all = slo.objectives.iter().map(|o| (None, *o));
    let of_one = slo.by_request.iter();
    let of_one = of_one.map(|RequestObjective { request, objective }| (Some(request), *objective));
    let percentile = |(request, objective): (Option<&String>, Objective)| match objective {
        Objective::Latency { quantile, .. } => {
            let request = request.cloned();
            Some((SloPercentile { request, quantile }, objective))
        }
        _ => None,
    };
    of_all.chain(of_one).filter_map(percentile).collect()
}

/// A percentile over the requests of all starts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledPercentile {
    /// The request of a mix that it is about; null for all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What the SLO asks.
    pub objective: Objective,
    /// Number of starts.
    pub starts: u64,
    /// Requests of the start that had most.
    pub requests_of_a_start: u64,
    /// Number of requests in all starts.
    pub requests: u64,
    /// The percentile in seconds; null lies in requests that failed.
    pub measured: Option<f64>,
    /// Lower end of its 95 % interval over starts, in seconds; of fewer than three starts the same.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The percentiles with too few requests in each single start, judged over all starts.
pub fn pool_percentiles(starts: &[&TrialRecord]) -> Vec<PooledPercentile> {
    let Some(first) = starts.first() else {
        return Vec::new();
    };
    // A start without a readable histogram has no requests here; the report names it.
    let load = |t: &&TrialRecord| MeasuredLoad::from_evidence(&t.evidence).ok().flatten();
    let measured: Vec<MeasuredLoad> = starts.iter().filter_map(load).collect();
    let judged = |(percentile, objective): (SloPercentile, Objective)| {
        let latencies = measured.iter().filter_map(|m| match &percentile.request {
            Some(name) => m.request_named(name).map(|request| &request.latency),
            None => Some(&m.latency),
        });
        judge_percentile(&percentile, objective, &latencies.collect::<Vec<_>>())
    };
    let bounded = bounded_percentiles(&first.slo).into_iter();
    bounded.filter_map(judged).collect()
}

fn judge_percentile(
    percentile: &SloPercentile,
    objective: Objective,
    starts: &[&Latency],
) -> Option<PooledPercentile> {
    let most = starts.iter().map(|latency| latency.scheduled()).max()?;
    if percentile.beyond(most as f64) >= ENOUGH * DRAWN {
        return None;
    }
    let sample = PooledSample::from_starts(starts);
    let q = percentile.quantile;
    let seconds = |value: Option<Duration>| value.map(|v| v.as_secs_f64());
    let measured = seconds(sample.percentile_at(q, &vec![1; starts.len()]));
    let (low, high) = if starts.len() < FEWEST {
        (measured, measured)
    } else {
        sample.interval(q)
    };
    Some(PooledPercentile {
        request: percentile.request.clone(),
        objective,
        starts: starts.len() as u64,
        requests_of_a_start: most,
        requests: starts.iter().map(|latency| latency.scheduled()).sum(),
        measured,
        low,
        high,
    })
}

/// The requests of several starts, slowest first; failed requests sort before all others.
struct PooledSample {
    slowest: Vec<(Option<Duration>, usize, u64)>,
    requests: Vec<u64>,
}

impl PooledSample {
    fn from_starts(starts: &[&Latency]) -> Self {
        let mut slowest = Vec::new();
        for (start, latency) in starts.iter().enumerate() {
            let failed = latency.scheduled().saturating_sub(latency.succeeded());
            slowest.push((None, start, failed));
            let recorded = latency.recorded_values();
            slowest.extend(recorded.map(|(value, count)| (Some(value), start, count)));
        }
        slowest.sort_by_key(|(value, ..)| Reverse(value.unwrap_or(Duration::MAX)));
        Self {
            slowest,
            requests: starts.iter().map(|latency| latency.scheduled()).collect(),
        }
    }

    /// The percentile with each start counted `times` times; `None` if it lies among failed
    /// requests.
    fn percentile_at(&self, q: Quantile, times: &[u64]) -> Option<Duration> {
        let all: u64 = self.requests.iter().zip(times).map(|(n, t)| n * t).sum();
        let rank = (q.as_fraction() * all as f64 * (1.0 - 1e-12)).ceil() as u64;
        let beyond = all.saturating_sub(rank.max(1));
        let mut seen = 0;
        let found = self.slowest.iter().find(|(_, start, count)| {
            seen += count * times[*start];
            seen > beyond
        });
        found.and_then(|(value, ..)| *value)
    }

    /// The ends in seconds; what lies in requests that failed is longer than any.
    fn interval(&self, q: Quantile) -> (Option<f64>, Option<f64>) {
        let mut random = RandomStream::from_seed(1);
        let starts = self.requests.len();
        let resamples = (0..RESAMPLES).map(|_| {
            let mut times = vec![0; starts];
            (0..starts).for_each(|_| times[random.uniform_below(starts)] += 1);
            let value = self.percentile_at(q, &times);
            value.map_or(f64::MAX, |v| v.as_secs_f64())
        });
        let resamples: Vec<f64> = resamples.collect();
        let end = |at| quantile(&resamples, at).filter(|seconds| *seconds < f64::MAX / 2.0);
        (end(ENDS.0), end(ENDS.1))
    }
}

impl PooledPercentile {
    pub fn is_kept(&self) -> bool {
        self.objective.is_met(self.high)
    }

    /// `p99 rests on 4 of 400 requests in one start, so those of all 20 count together: p99 of
    /// 8 000 was 178ms (95 % confidence: 171ms to 190ms), the SLO allows 250ms`.
    pub fn percentile_sentence(&self) -> String {
        let Objective::Latency { quantile, bound } = self.objective else {
            return String::new();
        };
        let request = self.request.clone();
        let percentile = SloPercentile { request, quantile };
        let of_one = percentile.beyond(self.requests_of_a_start as f64);
        let time = |seconds: Option<f64>| match seconds {
            Some(seconds) => self.objective.show_measured(seconds),
            None => "in requests that failed".to_owned(),
        };
        let (low, high) = (time(self.low), time(self.high));
        let interval = if self.starts >= FEWEST as u64 {
            format!(" (95 % confidence: {low} to {high})")
        } else {
            String::new()
        };
        format!(
            "{percentile} rests on {} of {} requests in one start, so those of all {} count together: {quantile} of {} was {}{interval}, the SLO allows {}",
            text::three_digits(of_one),
            self.requests_of_a_start,
            self.starts,
            self.requests,
            time(self.measured),
            text::exact_duration(bound),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::trial_record;
    use crate::latency::{empty_histogram, encode_histogram};
    use crate::record::{TrialPurpose, TrialVerdict};

    /// A start with this many requests of 20 ms, the last `slow` at `late` ms.
    fn start(requests: u64, slow: u64, late: u64) -> TrialRecord {
        let mut record = trial_record("t", TrialPurpose::Prove, 324, TrialVerdict::Pass);
        let mut histogram = empty_histogram();
        histogram.record_n(20_000_000, requests - slow).unwrap();
        histogram.record_n(late * 1_000_000, slow).unwrap();
        let load = &mut record.evidence.load[0];
        load.latency = encode_histogram(&histogram).unwrap();
        (load.scheduled, load.ok) = (requests, requests);
        record
    }

    fn together(starts: &[TrialRecord]) -> Vec<PooledPercentile> {
        pool_percentiles(&starts.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_percentile_needs_ten_requests_beyond_it() {
        let slo: Slo = "p50<1s,p99<1s,p99.9<1s,max<1s,A: p95<1s".parse().unwrap();
        let texts = SloPercentile::all_of_slo(&slo).into_iter();
        let texts = texts.map(|p| format!("{p}: {}", p.requests_needed().round()));
        insta::assert_snapshot!(
            texts.collect::<Vec<_>>().join(", "),
            @"p50: 20, p99: 1000, p99.9: 10000, p95 of A: 200"
        );
        let thin = |requests| !together(&[start(requests, 0, 90)]).is_empty();
        assert_eq!([899, 900, 1000].map(thin), [true, false, false]);
        assert!(together(&[]).is_empty());
    }

    #[test]
    fn starts_with_few_requests_are_judged_together() {
        // Two of 200 requests are slow in each start: p99 of one start is chance.
        let mut starts: Vec<_> = (0..19).map(|n| start(200, n % 2 * 2, 45)).collect();
        starts.push(start(200, 30, 48));
        let judged = together(&starts);
        insta::assert_snapshot!(
            judged[0].percentile_sentence(),
            @"p99 rests on 2 of 200 requests in one start, so those of all 20 count together: p99 of 4000 was 45.0ms (95 % confidence: 20.0ms to 48.0ms), the SLO allows 50ms"
        );
        assert!(judged[0].is_kept());
        // One start in twenty is so slow that the pooled percentile misses: nothing is hidden.
        starts.push(start(200, 60, 90));
        let broken = &together(&starts)[0];
        assert!(!broken.is_kept(), "{}", broken.percentile_sentence());
        let two = &together(&starts[..2])[0];
        assert_eq!((two.low, two.high), (two.measured, two.measured));
        assert!(
            !two.percentile_sentence().contains("confidence"),
            "{}",
            two.percentile_sentence()
        );
    }

    #[test]
    fn requests_that_failed_are_slower_than_every_other() {
        let mut failing = start(200, 0, 45);
        failing.evidence.load[0].scheduled = 220;
        let starts = vec![failing; 5];
        let judged = &together(&starts)[0];
        assert_eq!((judged.measured, judged.high), (None, None));
        assert!(!judged.is_kept());
        assert!(
            judged
                .percentile_sentence()
                .contains("was in requests that failed")
        );
    }

    proptest::proptest! {
        /// If every start keeps the SLO, all requests together keep it: pooling never refutes a
        /// proof without a miss.
        #[test]
        fn starts_that_all_keep_it_keep_it_together(
            slow in proptest::collection::vec(0_u64..=4, 3..30),
        ) {
            let starts: Vec<_> = slow.iter().map(|slow| start(400, *slow, 90)).collect();
            proptest::prop_assert!(together(&starts)[0].is_kept());
        }
    }
}
