//! The figures of one trial that tables and charts show.
//!
//! Owns no formula: [`loadline_analysis::sli`] and [`loadline_analysis::latency`] derive. Everything
//! a section shows about a trial comes from here, so that two sections cannot disagree.

use std::time::Duration;

use loadline_analysis::latency::Latency;
use loadline_analysis::outage::OutageCourse;
use loadline_analysis::record::{InvalidReason, TrialRecord, TrialVerdict};
use loadline_analysis::sli::{MeasuredLoad, Sli};
use loadline_analysis::slo::{Objective, Quantile};
use loadline_sizing::Bytes;

use crate::format;
use crate::table::Tone;

pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

pub const FAILED: &str = "in failures";

/// A latency over all requests of a load. Failed requests are slower than all others, as in
/// [`loadline_analysis::latency`]: the order of the variants reflects that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeenLatency {
    At(Duration),
    /// It lies in requests that failed or never finished.
    InFailures,
}

impl SeenLatency {
    /// What a quantile of a load is; `None` lies in requests that failed.
    pub fn from_quantile(quantile: Option<Duration>) -> Self {
        quantile.map_or(Self::InFailures, Self::At)
    }

    /// The time; `None` when it lies in requests that failed.
    pub fn known_time(self) -> Option<Duration> {
        match self {
            Self::At(time) => Some(time),
            Self::InFailures => None,
        }
    }

    pub fn show(self) -> String {
        let time = self.known_time();
        time.map_or_else(|| FAILED.to_owned(), format::measured_time)
    }
}

/// The latencies of the judged phase, around an outage those of the time before it, which the verdict
/// is about; `None` when nothing was measured, the trial was ended early or the record is damaged.
pub fn judged_latency(trial: &TrialRecord) -> Option<Latency> {
    let is_whole = trial.evidence.ended_early.is_none();
    if let Some(course) = OutageCourse::from_evidence(&trial.evidence, &trial.slo).ok()? {
        return is_whole.then_some(course.before.latency);
    }
    let measured = MeasuredLoad::from_evidence(&trial.evidence).ok()??;
    is_whole.then_some(measured.latency)
}

/// The latency at a fraction in [0, 1]; `None` for any other fraction.
pub fn latency_at(latency: &Latency, fraction: f64) -> Option<SeenLatency> {
    let quantile = Quantile::from_fraction(fraction)?;
    Some(SeenLatency::from_quantile(latency.quantile(quantile)))
}

/// The cause is empty for a trial that was judged by its SLO.
pub fn verdict_and_cause(verdict: TrialVerdict) -> (&'static str, &'static str) {
    match verdict {
        TrialVerdict::Pass => ("PASS", ""),
        TrialVerdict::SloMiss => ("SLO MISS", ""),
        TrialVerdict::AppKo(cause) => ("KO", cause.ko_name()),
        TrialVerdict::Invalid(cause) => ("INVALID", cause.reason_name()),
    }
}

pub fn verdict_words(verdict: TrialVerdict) -> String {
    let (verdict, cause) = verdict_and_cause(verdict);
    let words = format!("{verdict} {}", cause.replace('_', " "));
    words.trim_end().to_owned()
}

pub fn tone(verdict: TrialVerdict) -> Tone {
    match verdict {
        TrialVerdict::Pass => Tone::Good,
        TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => Tone::Bad,
        TrialVerdict::Invalid(_) => Tone::Muted,
    }
}

/// Why an INVALID trial says nothing, in words.
pub fn invalid_reason(cause: InvalidReason) -> &'static str {
    match cause {
        InvalidReason::Noise => "something else used the machine",
        InvalidReason::GeneratorSaturated => "the load generator was the bottleneck",
        InvalidReason::ProxySaturated => {
            "the proxy before the dependencies could not keep its schedule"
        }
        InvalidReason::PortExhausted => "the load generator ran out of ports or descriptors",
        InvalidReason::ClockJump => "a clock jumped or the machine was suspended",
        InvalidReason::OuterThrottle => "a limit around loadline throttled it",
        InvalidReason::DiskFull => "the disk was full",
        InvalidReason::Dependency => "what the application depends on failed or was the bottleneck",
        InvalidReason::RuntimeLost => "the container runtime went away",
        InvalidReason::OtherLimits => "the cluster gave it other limits than were ordered",
        InvalidReason::OutOfTime => "the time was over before it ran",
        InvalidReason::OtherNode => "it ran on a node unlike that of the other trials",
        InvalidReason::LoadCommand => "the load command did not make its load",
        InvalidReason::Metrics => "a metric of the SLO could not be read",
        InvalidReason::OtherOptions => "the JVM ran with other options than were ordered",
        InvalidReason::ToolError => "loadline itself failed",
    }
}

/// The quantile people look at first: the highest latency quantile of the SLO, else p99.
pub fn headline_quantile(objectives: &[Objective]) -> Quantile {
    let latency = objectives.iter().filter_map(|o| match o {
        Objective::Latency { quantile, .. } => Some(*quantile),
        _ => None,
    });
    let highest = latency.max_by(|a, b| a.as_fraction().total_cmp(&b.as_fraction()));
    let usual = || Quantile::from_fraction(0.99);
    highest.or_else(usual).expect("0.99 is a fraction")
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrialFigures {
    pub headline: Option<SeenLatency>,
    pub sli: Sli,
    /// The load of the burst behind the judged one.
    pub peak: Option<Sli>,
    pub anon: Option<Bytes>,
    pub heap_after: Option<Bytes>,
}

impl TrialFigures {
    /// Reads the figures of a record. A record with a damaged histogram has no latencies, and
    /// [`crate::content`] reports it.
    pub fn for_trial(trial: &TrialRecord, headline: Quantile) -> Self {
        let is_loaded = !trial.evidence.load.is_empty();
        Self {
            headline: is_loaded.then(|| {
                SeenLatency::from_quantile(judged_latency(trial).and_then(|l| l.quantile(headline)))
            }),
            sli: Sli::from_record(trial).unwrap_or_default(),
            peak: Sli::of_peak(&trial.evidence).unwrap_or_default(),
            anon: trial.evidence.cgroup.peak_anon,
            heap_after: trial.evidence.gc.as_ref().and_then(|g| g.heap_after_max),
        }
    }
}

/// Each value once, in the order in which they first come.
pub fn unique<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread<T> {
    pub low: T,
    pub median: T,
    pub high: T,
    pub n: usize,
}

/// The midpoint of two values: for the median of an even number of values, like
/// [`loadline_analysis::interval::median`], so that shown and compared values agree.
pub trait MiddleValue: Copy + PartialOrd {
    fn midpoint_with(self, other: Self) -> Self;
}

impl MiddleValue for f64 {
    fn midpoint_with(self, other: Self) -> Self {
        // Two infinities differ by no number.
        if self == other {
            self
        } else {
            self + (other - self) / 2.0
        }
    }
}

impl MiddleValue for Duration {
    fn midpoint_with(self, other: Self) -> Self {
        self + other.saturating_sub(self) / 2
    }
}

impl MiddleValue for Bytes {
    fn midpoint_with(self, other: Self) -> Self {
        let (a, b) = (self.as_bytes(), other.as_bytes());
        Self::from_bytes(a + b.saturating_sub(a) / 2)
    }
}

impl MiddleValue for usize {
    fn midpoint_with(self, other: Self) -> Self {
        self + other.saturating_sub(self) / 2
    }
}

impl MiddleValue for SeenLatency {
    fn midpoint_with(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a), Self::At(b)) => Self::At(a.midpoint_with(b)),
            _ => Self::InFailures,
        }
    }
}

/// The spread of the values there are; `None` when there are none. Where the middle lies between a
/// time and one in failures, it lies in failures.
pub fn spread<T: MiddleValue>(values: impl Iterator<Item = T>) -> Option<Spread<T>> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Some(Spread {
        low: *values.first()?,
        median: values[(values.len() - 1) / 2].midpoint_with(values[values.len() / 2]),
        high: *values.last()?,
        n: values.len(),
    })
}

impl<T: Copy + PartialEq> Spread<T> {
    /// `41.2 ms (38.0 ms to 47.0 ms)`; values that read the same stand without brackets.
    pub fn show(&self, print: impl Fn(T) -> String) -> String {
        let (low, median, high) = (print(self.low), print(self.median), print(self.high));
        if low == high {
            return median;
        }
        format!("{median} ({low} to {high})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_that_of_a_comparison() {
        let times = [8.42, 8.46, 7.0, 9.0];
        let shown = spread(times.into_iter()).map(|s| s.median);
        assert_eq!(shown, loadline_analysis::interval::median(&times));
        let at = |us| SeenLatency::At(Duration::from_micros(us));
        let seen = spread([at(8_420), at(8_480)].into_iter()).map(|s| s.median);
        assert_eq!(seen, Some(at(8_450)));
        let bytes = [Bytes::from_mib(1), Bytes::from_mib(2)].into_iter();
        assert_eq!(spread(bytes).map(|s| s.median), Some(Bytes::from_kib(1536)));
    }

    #[test]
    fn failures_are_slower_than_every_latency() {
        let at = |ms| SeenLatency::At(Duration::from_millis(ms));
        let median = |values: &[SeenLatency]| spread(values.iter().copied()).map(|s| s.median);
        assert_eq!(median(&[]), None);
        assert_eq!(
            median(&[at(9), at(8), SeenLatency::InFailures]),
            Some(at(9))
        );
        // The middle of two, one of which has no end, has none.
        assert_eq!(
            median(&[at(9), SeenLatency::InFailures]),
            Some(SeenLatency::InFailures)
        );
        let many = spread([SeenLatency::InFailures, SeenLatency::InFailures, at(5)].into_iter());
        let many = many.expect("three trials");
        assert_eq!((many.low, many.median), (at(5), SeenLatency::InFailures));
        assert_eq!(
            many.show(SeenLatency::show),
            "in failures (5ms to in failures)"
        );
    }
}
