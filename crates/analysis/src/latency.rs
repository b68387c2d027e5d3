//! Latency over ALL scheduled requests: failed requests sit at +infinity.
//!
//! Owns the histogram's text form (HdrHistogram V2 deflate, base64, nanoseconds: the form that
//! HistogramLog and the HdrHistogram tools read) and the quantile rule. A quantile among failed or
//! unfinished requests is `None`, never the largest success: leaving failures out would make a
//! service look faster the more it fails.

use std::io::{self, Read};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

use crate::record::LoadEvidence;
use crate::slo::Quantile;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LatencyError {
    #[error("the latency histogram of the record cannot be read: {0}")]
    Decode(String),
    #[error("the latency histogram cannot be written: {0}")]
    Encode(String),
    #[error("the latency histogram holds {recorded} requests, but {scheduled} were scheduled")]
    TooMany { recorded: u64, scheduled: u64 },
    #[error("latency histograms of different ranges cannot be added: {0}")]
    Merge(String),
}

pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3)
        .expect("the bounds are constants that the library accepts")
}

/// Writes a histogram as base64 of the V2 deflate form.
/// Errors: [`LatencyError::Encode`] when the library refuses, which it does for counts beyond 2^63.
pub fn encode_histogram(histogram: &Histogram<u64>) -> Result<String, LatencyError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| LatencyError::Encode(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}

/// First bytes of the plain and of the packed form; the length of what follows comes next.
/// Source: HdrHistogram, AbstractHistogram.java.
const PLAIN: &[u8] = b"\x1c\x84\x93\x13";
const PACKED: &[u8] = b"\x1c\x84\x93\x14";
const LENGTH: usize = 4;
/// Bytes between that length and the counts.
const HEAD: usize = 32;

/// Most bytes of counts: 3 digits over 1 h take 0.2 MiB.
const LARGEST: u64 = 4 << 20;

/// Reads a histogram that [`encode_histogram`] or another HdrHistogram library wrote.
/// Errors: [`LatencyError::Decode`] when the text is no such histogram.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, LatencyError> {
    let refused = |error: &dyn std::fmt::Display| LatencyError::Decode(error.to_string());
    let bytes = STANDARD.decode(text).map_err(|error| refused(&error))?;
    let plain = unpack_counts(bytes).map_err(|error| refused(&error))?;
    let histogram = Deserializer::new().deserialize(&mut plain.as_slice());
    histogram.map_err(|error| refused(&error))
}

/// The plain form, with as many bytes as it declares: the library allocates those unseen.
fn unpack_counts(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let packed = bytes.strip_prefix(PACKED);
    let plain = match packed.and_then(|rest| rest.get(LENGTH..)) {
        Some(packed) => {
            let mut plain = Vec::new();
            let unpacker = ZlibDecoder::new(packed);
            unpacker.take(LARGEST).read_to_end(&mut plain)?;
            plain
        }
        None => bytes,
    };
    let counts = plain.strip_prefix(PLAIN);
    let declared = counts.and_then(|rest| rest.first_chunk());
    let declared = declared.map(|length: &[u8; LENGTH]| u32::from_be_bytes(*length));
    let all = declared.map(|length| (PLAIN.len() + LENGTH + HEAD) as u64 + u64::from(length));
    if all.is_some_and(|all| all <= plain.len() as u64) {
        Ok(plain)
    } else {
        Err(io::Error::other("it is no histogram, cut or too large"))
    }
}

fn rank_of(quantile: Quantile, all: u64) -> u64 {
    // The tiny step down undoes products such as 0.07 * 100 = 7.000000000000001.
    let rank = quantile.as_fraction() * all as f64 * (1.0 - 1e-12);
    (rank.ceil() as u64).max(1)
}

#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    histogram: Histogram<u64>,
    scheduled: u64,
}

impl Latency {
    /// From the successes' histogram and the number of requests scheduled.
    /// Errors: [`LatencyError::TooMany`] when there are more successes than requests.
    pub fn new(histogram: Histogram<u64>, scheduled: u64) -> Result<Self, LatencyError> {
        let recorded = histogram.len();
        if recorded > scheduled {
            return Err(LatencyError::TooMany {
                recorded,
                scheduled,
            });
        }
        Ok(Self {
            histogram,
            scheduled,
        })
    }

    /// Latency from the intended send time, of one load phase.
    /// Errors: When the record's histogram cannot be read or does not fit its counts.
    pub fn from_load(load: &LoadEvidence) -> Result<Self, LatencyError> {
        Self::new(decode_histogram(&load.latency)?, load.scheduled)
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    pub fn scheduled(&self) -> u64 {
        self.scheduled
    }

    pub fn succeeded(&self) -> u64 {
        self.histogram.len()
    }

    /// Adds the requests of another part of the same load.
    /// Errors: [`LatencyError::Merge`] when its values do not fit into this histogram's range.
    pub fn merge(&mut self, other: &Self) -> Result<(), LatencyError> {
        let added = self.histogram.add(&other.histogram);
        added.map_err(|error| LatencyError::Merge(error.to_string()))?;
        self.scheduled += other.scheduled;
        Ok(())
    }

    /// The smallest latency that at least this share of all scheduled requests did not exceed,
    /// to the histogram's three digits. `None` when it lies in requests that failed or never
    /// finished, or nothing was scheduled.
    pub fn quantile(&self, quantile: Quantile) -> Option<Duration> {
        self.at_rank(rank_of(quantile, self.scheduled))
    }

    pub fn max(&self) -> Option<Duration> {
        self.at_rank(self.scheduled.max(1))
    }

    /// The quantile of the successes only; a separate line in reports, never judged.
    pub fn quantile_of_successes(&self, quantile: Quantile) -> Option<Duration> {
        self.at_rank(rank_of(quantile, self.histogram.len()))
    }

    pub fn recorded_values(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.histogram.iter_recorded().map(|bucket| {
            let value = Duration::from_nanos(bucket.value_iterated_to());
            (value, bucket.count_since_last_iteration())
        })
    }

    fn at_rank(&self, rank: u64) -> Option<Duration> {
        let mut seen = 0;
        self.recorded_values().find_map(|(value, count)| {
            seen += count;
            (seen >= rank).then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn q(fraction: f64) -> Quantile {
        Quantile::from_fraction(fraction).unwrap()
    }

    fn of_millis(values: impl IntoIterator<Item = u64>, scheduled: u64) -> Latency {
        let mut histogram = empty_histogram();
        for value in values {
            histogram.record(value * 1_000_000).unwrap();
        }
        Latency::new(histogram, scheduled).unwrap()
    }

    fn millis(value: Option<Duration>) -> Option<f64> {
        value.map(|v| (v.as_secs_f64() * 1e3).round())
    }

    #[test]
    fn failed_requests_sit_at_infinity() {
        // 98 answers of 1..98 ms and 2 failures: p98 is the slowest answer, p99 is a failure.
        let latency = of_millis(1..=98, 100);
        assert_eq!(millis(latency.quantile(q(0.5))), Some(50.0));
        assert_eq!(millis(latency.quantile(q(0.07))), Some(7.0));
        assert_eq!(millis(latency.quantile(q(0.98))), Some(98.0));
        assert_eq!(latency.quantile(q(0.99)), None);
        assert_eq!(latency.max(), None);
        assert_eq!(millis(latency.quantile_of_successes(q(0.5))), Some(49.0));
    }

    #[test]
    fn nothing_scheduled_has_no_quantile() {
        let latency = of_millis([], 0);
        assert_eq!(latency.quantile(q(0.5)), None);
        assert_eq!(latency.max(), None);
    }

    #[test]
    fn more_answers_than_requests_are_refused() {
        let mut histogram = empty_histogram();
        histogram.record(5_000_000).unwrap();
        assert!(matches!(
            Latency::new(histogram, 0),
            Err(LatencyError::TooMany { .. })
        ));
    }

    #[test]
    fn a_text_that_is_no_histogram_is_an_error() {
        for text in ["", "!", "aGVsbG8gd29ybGQ="] {
            assert!(
                matches!(decode_histogram(text), Err(LatencyError::Decode(_))),
                "{text}"
            );
        }
    }

    /// Of the plain form, with this declared length and no counts.
    fn empty_plain(length: u32) -> Vec<u8> {
        let mut plain = PLAIN.to_vec();
        plain.extend(length.to_be_bytes());
        plain.extend([0, 0, 0, 0, 0, 0, 0, 3]);
        plain.extend([1, 3_600_000_000_000_u64].map(u64::to_be_bytes).concat());
        plain.extend(1.0_f64.to_be_bytes());
        plain
    }

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut zlib = flate2::read::ZlibEncoder::new(plain, flate2::Compression::default());
        let mut body = Vec::new();
        zlib.read_to_end(&mut body).unwrap();
        [PACKED, &(body.len() as u32).to_be_bytes(), &body].concat()
    }

    #[test]
    fn a_declared_length_allocates_nothing() {
        assert!(decode_histogram(&STANDARD.encode(packed(&empty_plain(0)))).is_ok());
        // 4 GiB each, had the library seen them.
        let endless = empty_plain(u32::MAX);
        for bytes in [endless.clone(), packed(&endless), packed(&packed(&endless))] {
            let refusal = decode_histogram(&STANDARD.encode(bytes)).unwrap_err();
            assert!(refusal.to_string().contains("too large"), "{refusal}");
        }
        let bomb = packed(&vec![0; 64 << 20]);
        assert!(decode_histogram(&STANDARD.encode(bomb)).is_err());
    }

    #[test]
    fn it_reads_what_the_java_library_wrote() {
        // Each line states the interval's maximum in ms as well as the histogram (in ns).
        let log = include_str!("../tests/data/jhiccup.hlog");
        let intervals = log
            .lines()
            .filter(|line| line.starts_with(char::is_numeric));
        let mut read = 0;
        for fields in intervals.map(|line| line.split(',').collect::<Vec<_>>()) {
            let stated: f64 = fields[2].parse().unwrap();
            let got = decode_histogram(fields[3]).unwrap().max() as f64 / 1e6;
            assert!((got / stated - 1.0).abs() < 1e-2, "{got} {stated}");
            read += 1;
        }
        assert_eq!(read, 4);
    }

    proptest! {
        #[test]
        fn encoding_loses_nothing(values in prop::collection::vec(1_000_u64..3_600_000_000_000, 0..200)) {
            let mut histogram = empty_histogram();
            for value in &values { histogram.record(*value).unwrap(); }
            prop_assert_eq!(decode_histogram(&encode_histogram(&histogram).unwrap()).unwrap(), histogram);
        }

        #[test]
        fn merged_is_the_histogram_of_all(
            a in prop::collection::vec(1_u64..60_000, 0..100),
            b in prop::collection::vec(1_u64..60_000, 0..100),
            failed in 0_u64..5,
        ) {
            let mut merged = of_millis(a.clone(), a.len() as u64 + failed);
            merged.merge(&of_millis(b.clone(), b.len() as u64)).unwrap();
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, of_millis(all.clone(), all.len() as u64 + failed));
        }

        #[test]
        fn a_quantile_is_within_the_histogram_s_precision(
            mut values in prop::collection::vec(1_u64..60_000, 1..300),
            fraction in 0.001_f64..1.0,
        ) {
            let latency = of_millis(values.clone(), values.len() as u64);
            values.sort_unstable();
            let rank = ((fraction * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1] as f64;
            let got = latency.quantile(q(fraction)).unwrap().as_secs_f64() * 1e3;
            prop_assert!((got / exact - 1.0).abs() < 2e-3, "{got} {exact}");
        }
    }
}
