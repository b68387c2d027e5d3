//! What the generator saw of a load phase: of all requests together, and of each of a mix.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::Phase;
use crate::wire;

/// One load phase as the generator saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEvidence {
    /// Warm-up or measure.
    pub phase: Phase,
    /// Which instance answered, from 1, where the trial ran several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    /// Requests a second that were scheduled; `None` for a closed model.
    pub offered_rate: Option<f64>,
    /// Good responses a second that came while requests were due; those of the drain are left out.
    /// Null where it is no number.
    #[serde(with = "wire::number")]
    pub achieved_rate: f64,
    /// How long the phase lasted.
    #[serde(rename = "duration_ns", with = "wire::nanos")]
    pub duration: Duration,
    /// Requests scheduled: the sum of the next three.
    pub scheduled: u64,
    /// Good responses.
    pub ok: u64,
    /// Requests that failed, by kind (`http_5xx`, `timeout`, `refused`, ...).
    pub errors: BTreeMap<String, u64>,
    /// Requests without an outcome at the end of the drain.
    pub unfinished: u64,
    /// Latency from the intended send time, successful requests, HdrHistogram V2 deflate, base64, ns.
    pub latency: String,
    /// Service time from the actual send time, successful requests, the same form.
    pub service_time: String,
    /// Intended to actual send, 99th percentile.
    #[serde(rename = "send_lag_p99_ns", with = "wire::nanos")]
    pub send_lag_p99: Duration,
    /// CPU time the generator used.
    #[serde(rename = "generator_cpu_ns", with = "wire::nanos")]
    pub generator_cpu: Duration,
    /// `None`, or why the generator says that it was itself the bottleneck.
    pub saturated: Option<String>,
    /// The requests of a mix, in its order; empty without one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestEvidence>,
    /// Second by second from its begin, by when requests were due; kept where a dependency is slow or
    /// away on a schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_second: Vec<DueEvidence>,
}

/// Outcomes of the requests that were due in one second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DueEvidence {
    /// Good responses, whenever they came.
    pub ok: u64,
    /// Requests that failed, were shed, or had no outcome at the end of the drain.
    pub failed: u64,
    /// Latency from the intended send time, good responses, in the form of that of all requests.
    pub latency: String,
}

/// Outcomes of one request of a mix. Requests that were never sent belong to none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestEvidence {
    /// Its name.
    pub name: String,
    /// Good responses.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Requests that were sent and had no outcome at the end of the drain.
    pub unfinished: u64,
    /// Latency from the intended send time, good responses, in the form of that of all requests.
    pub latency: String,
}
