//! Latency histograms: HdrHistogram of ns, 3 significant digits, 1 ns to 1 h.
//!
//! Owns the bounds, the text form (V2 deflate in base64, what every HdrHistogram tool reads) and
//! quantiles that count failures. A value above 1 h is recorded as 1 h.

use std::time::Duration;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use loadline_analysis::latency::{self, LatencyError};

use crate::error::LoadError;

pub type Histogram = hdrhistogram::Histogram<u64>;

/// The largest value: 1 h, in ns.
pub const MAX_NS: u64 = 3_600_000_000_000;

pub fn new() -> Histogram {
    Histogram::new_with_bounds(1, MAX_NS, 3).expect("the bounds are constants that are allowed")
}

/// An empty histogram that grows with its values: for the many requests of a mix, most of which are
/// rare, and for values that a log may lack. Only [`record_value`] lets it grow.
pub(crate) fn growing_histogram() -> Histogram {
    Histogram::new(3).expect("3 digits are allowed")
}

/// Counts a value; memory is taken when it is larger than all before by a power of two, so a few
/// dozen times at most.
pub(crate) fn record_value(histogram: &mut Histogram, ns: u64) {
    histogram
        .record(ns.min(MAX_NS))
        .expect("it grows as far as the largest value");
}

pub(crate) fn add_histogram(mine: &mut Histogram, theirs: &Histogram) {
    if !theirs.is_empty() {
        mine.auto(true);
        mine.add(theirs).expect("it grows as far as needed");
    }
}

pub fn encode_histogram(histogram: &Histogram) -> String {
    latency::encode_histogram(histogram).expect("a histogram always serializes into memory")
}

/// From text that [`encode_histogram`] or another HdrHistogram tool wrote.
pub fn decode_histogram(text: &str) -> Result<Histogram, LoadError> {
    latency::decode_histogram(text).map_err(|error| match error {
        LatencyError::Decode(why) => LoadError::Histogram(why),
        other => LoadError::Histogram(other.to_string()),
    })
}

/// For serde: a histogram as [`encode_histogram`] writes it.
pub(crate) mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::histogram::{Histogram, decode_histogram, encode_histogram};

    pub fn serialize<S: Serializer>(histogram: &Histogram, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode_histogram(histogram))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
        decode_histogram(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// All intervals of an HdrHistogram interval log together. Its values are taken as ns, as loadline
/// and every tool that names no other unit write them.
/// Errors: [`LoadError::Histogram`] when the text is no such log, or has no interval.
pub fn from_interval_log(text: &str) -> Result<Histogram, LoadError> {
    let refused = |why: String| LoadError::Histogram(why);
    let mut all = growing_histogram();
    for (entry, number) in IntervalLogIterator::new(text.as_bytes()).zip(1..) {
        let entry = entry
            .map_err(|_| refused(format!("entry {number} does not belong to an interval log")))?;
        if let LogEntry::Interval(interval) = entry {
            add_histogram(&mut all, &decode_histogram(interval.encoded_histogram())?);
        }
    }
    if all.is_empty() {
        Err(refused("the log has no value".to_owned()))
    } else {
        Ok(all)
    }
}

/// The value below which a fraction of all requests lies, where `failed` requests that are not in
/// the histogram count as infinitely slow. `None` is infinite, or no request at all.
pub fn quantile_with_failures(
    histogram: &Histogram,
    failed: u64,
    fraction: f64,
) -> Option<Duration> {
    let all = histogram.len() + failed;
    let rank = (fraction * all as f64).ceil().max(1.0);
    if all == 0 || rank > histogram.len() as f64 {
        return None;
    }
    let within = (rank / histogram.len() as f64).min(1.0);
    let value = histogram.value_at_quantile(within).min(histogram.max());
    Some(Duration::from_nanos(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_holds_the_whole_histogram() {
        let mut histogram = new();
        for value in [1, 1_000, 123_456_789, MAX_NS] {
            histogram.saturating_record(value);
        }
        assert_eq!(
            decode_histogram(&encode_histogram(&histogram)).unwrap(),
            histogram
        );
        assert!(decode_histogram("AAAA").is_err());
        assert!(decode_histogram("not base64!").is_err());
    }

    #[test]
    fn one_that_grows_holds_the_same_and_takes_little_until_then() {
        let (mut small, mut whole) = (growing_histogram(), new());
        assert!(small.distinct_values() * 8 < whole.distinct_values());
        for value in [0, 900, 40_000_000, 2 * MAX_NS] {
            record_value(&mut small, value);
            whole.saturating_record(value);
        }
        for quantile in [0.25, 0.5, 0.75, 1.0] {
            let of = |h| super::quantile_with_failures(h, 0, quantile);
            assert_eq!(of(&small), of(&whole));
        }
        let mut sum = growing_histogram();
        record_value(&mut sum, 5);
        add_histogram(&mut sum, &whole);
        add_histogram(
            &mut whole,
            &decode_histogram(&encode_histogram(&small)).unwrap(),
        );
        assert_eq!((sum.len(), whole.len()), (5, 8));
        assert_eq!(sum.max(), whole.max());
    }

    #[test]
    fn failures_are_slower_than_everything() {
        let mut histogram = new();
        for ms in 1..=98 {
            histogram.saturating_record(ms * 1_000_000);
        }
        let p98 = quantile_with_failures(&histogram, 2, 0.98).unwrap();
        assert!((p98.as_secs_f64() * 1e3 - 98.0).abs() < 0.1);
        assert_eq!(quantile_with_failures(&histogram, 2, 0.99), None);
        assert_eq!(quantile_with_failures(&new(), 0, 0.5), None);
    }
}
