//! The proxy between an application and its dependencies: what it forwarded, and what it took.
//!
//! Owns the stored form. [`crate::proxy`] says whether the proxy itself was the bottleneck.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// The proxy process of one trial, which stands before every dependency with toxics. Counters are
/// those of the window: the measure phase, or the last phase of load of a trial that got not so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct ProxyEvidence {
    /// CPUs it could run on, as the kernel lists them; it has one thread.
    pub cpus: String,
    /// Length of the window; `None` where there was none.
    #[serde(rename = "window_ns", with = "wire::nanos_opt", default)]
    pub window: Option<Duration>,
    /// CPU time used in the window.
    #[serde(rename = "cpu_ns", with = "wire::nanos", default)]
    pub cpu: Duration,
    /// From when something was due (bytes to be sent on, a look at the clock every 10 ms) until it
    /// was done, 99th percentile: the proxy's own delay, which adds to every toxic.
    #[serde(rename = "lag_p99_ns", with = "wire::nanos", default)]
    pub lag_p99: Duration,
    /// The largest.
    #[serde(rename = "lag_max_ns", with = "wire::nanos", default)]
    pub lag_max: Duration,
}

/// What went through the proxy to one dependency, in the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct LinkEvidence {
    /// The toxics, one per line: `latency 20ms downstream, at 20s for 10s`.
    pub toxics: Vec<String>,
    /// Connections and bytes of the whole window.
    pub total: LinkSecond,
    /// One entry a second, the first hour.
    pub seconds: Vec<LinkSecond>,
}

/// Counters of a second, or of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct LinkSecond {
    /// Its end, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Connections that the application made.
    pub opened: u64,
    /// Refused connections: for a dependency that is down, as the kernel of the application's
    /// network counts them; otherwise those the dependency itself refused.
    pub refused: u64,
    /// Connections that were reset, by a toxic or by either side.
    pub reset: u64,
    /// Open connections at its end.
    pub open: u64,
    /// Times the application spoke after the dependency had, or first: its round trips.
    pub exchanges: u64,
    /// Bytes from the application.
    pub upstream_bytes: u64,
    /// Bytes from the dependency.
    pub downstream_bytes: u64,
}

/// A time in which something was wrong, from the begin of the measured load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageEvidence {
    /// Name of the dependency.
    pub dependency: String,
    /// The kind of outage: `down`.
    pub what: String,
    /// Begin.
    #[serde(rename = "from_ns", with = "wire::nanos")]
    pub from: Duration,
    /// End.
    #[serde(rename = "to_ns", with = "wire::nanos")]
    pub to: Duration,
}
