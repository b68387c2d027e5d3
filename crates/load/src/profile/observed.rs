//! Statistics of the logs, besides the replayed data.
//!
//! Owns the descriptive figures and their units. People and reports read them; replay ignores them,
//! so a file without them, or with other ones, works equally well.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rates::RateCurve;
use crate::histogram::Histogram;

/// What the logs of a profile said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct LogObservations {
    /// Lines of the format: each is a request.
    pub requests: u64,
    /// Lines that are not of the format.
    pub rejected_lines: u64,
    /// Requests left out of rates and mix for their method, because no template has their body.
    pub left_out_methods: u64,
    /// Those by class, the most frequent 20.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// Patterns of templates that match no request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused_templates: Vec<String>,
    /// Requests left out of the mix: their path cannot be sent, or there are too many classes.
    pub left_out_paths: u64,
    /// Requests left out of the rates: their stamps are too far from the others.
    pub left_out_stamps: u64,
    /// Intervals of the rates without a request.
    pub empty_intervals: u64,
    /// Begin of the first interval of the rates, seconds since 1970 (UTC). Like the next three
    /// `None` when there are no rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_unix_seconds: Option<f64>,
    /// Requests a second over all intervals of the rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_rate: Option<f64>,
    /// Requests a second in the busiest interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_rate: Option<f64>,
    /// Peak rate over mean rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_factor: Option<f64>,
    /// Sum of the logged response bytes.
    pub total_response_bytes: u64,
    /// Requests by status.
    pub statuses: BTreeMap<String, u64>,
    /// Response bytes as logged; `None` when the format has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<Distribution>,
    /// Logged durations in ms; `None` when the format has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Distribution>,
    /// Think times in ms: from the end of a client's requests so far to the begin of its next one,
    /// within a session. Without logged durations from stamp to stamp, response time included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_time_ms: Option<Distribution>,
    /// The sessions that the think times lie in.
    pub sessions: UserSessionCounts,
}

/// How many values there were, and how they are distributed (within 0.1 %).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Distribution {
    /// Values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub p50: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Every request begins a session, comes after a think time, overlaps or is anonymous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UserSessionCounts {
    /// Sessions that began: first requests of a client, and first ones after 30 minutes of idle.
    pub begun: u64,
    /// Requests that began before an earlier one of their client had ended: no think time.
    pub overlapping: u64,
    /// Sessions lost because too many clients were active at once. Each hides at most one think
    /// time; a session that went on is counted as begun again.
    pub cut: u64,
    /// Requests of which the log does not say the client.
    pub anonymous: u64,
}

impl LogObservations {
    pub(super) fn with_rates(self, curve: &RateCurve) -> Self {
        let rates = &curve.rates;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let peak = rates.iter().copied().fold(0.0, f64::max);
        let known = |figure: f64| (!rates.is_empty()).then_some(figure);
        Self {
            left_out_stamps: curve.left_out,
            begin_unix_seconds: known(curve.begin),
            empty_intervals: rates.iter().filter(|rate| **rate == 0.0).count() as u64,
            mean_rate: known(mean),
            peak_rate: known(peak),
            peak_factor: known(peak / mean),
            ..self
        }
    }
}

impl Distribution {
    /// Of recorded values, `unit` of which are 1 here; `None` when there are none.
    pub(super) fn from_histogram(values: &Histogram, unit: f64) -> Option<Self> {
        // To a thousandth: further digits say nothing.
        let scaled = |value: f64| (value / unit * 1e3).round() / 1e3;
        let at = |quantile| scaled(values.value_at_quantile(quantile).min(values.max()) as f64);
        (!values.is_empty()).then(|| Self {
            count: values.len(),
            mean: scaled(values.mean()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    #[test]
    fn without_rates_there_is_no_peak() {
        let found = LogObservations::default().with_rates(&RateCurve::default());
        assert_eq!(found, LogObservations::default());
        let curve = RateCurve {
            begin: 60.0,
            rates: vec![1.0, 0.0, 2.0],
            left_out: 7,
        };
        let found = LogObservations::default().with_rates(&curve);
        assert_eq!((found.mean_rate, found.peak_rate), (Some(1.0), Some(2.0)));
        assert_eq!((found.peak_factor, found.empty_intervals), (Some(2.0), 1));
    }

    #[test]
    fn a_distribution_has_the_unit_asked_for() {
        assert_eq!(Distribution::from_histogram(&histogram::new(), 1e6), None);
        let mut values = histogram::new();
        for ms in 1..=1000 {
            values.saturating_record(ms * 1_000_000);
        }
        let found = Distribution::from_histogram(&values, 1e6).unwrap();
        assert_eq!(found.count, 1000);
        for (value, truth) in [
            (found.mean, 500.5),
            (found.p50, 500.0),
            (found.p90, 900.0),
            (found.p99, 990.0),
            (found.max, 1000.0),
        ] {
            assert!((value / truth - 1.0).abs() < 0.0011, "{value} for {truth}");
        }
    }
}
