//! What the generator saw of a load phase: of all requests together, and of each of a mix.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::TrialPhase;
use crate::wire;

/// One load phase as the generator saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEvidence {
    /// Warm-up or measure.
    pub phase: TrialPhase,
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
    /// In a cluster: what sent the requests. Absent elsewhere, where it was a process of the machine
    /// itself, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_from: Option<LoadFrom>,
}

/// What sent the requests of a trial that ran as a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadFrom {
    /// loadline's container beside the application, over localhost.
    OwnPod,
    /// Pods of their own, over the network of the cluster.
    Generators {
        /// Each made its part of one load, which all began at one instant.
        generators: Vec<GeneratorEvidence>,
    },
}

/// One generator pod and its part of a load. Its latencies are of its own clock; what stands by the
/// second was moved to that of the trial by the offset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorEvidence {
    /// Its pod.
    pub name: String,
    /// The node that it ran on.
    pub node: String,
    /// Requests of its part.
    pub scheduled: u64,
    /// How far its clock was ahead of that of the trial's node before the load, ns.
    pub offset_ns: i64,
    /// The offset is right to so much: half of the smallest of 20 round trips.
    #[serde(rename = "offset_error_ns", with = "wire::nanos")]
    pub offset_error: Duration,
    /// How much further it was ahead after the load, ns.
    pub drift_ns: i64,
    /// Intended to actual send, 99th percentile, of its part.
    #[serde(rename = "send_lag_p99_ns", with = "wire::nanos")]
    pub send_lag_p99: Duration,
    /// CPU time that it used.
    #[serde(rename = "cpu_ns", with = "wire::nanos")]
    pub cpu: Duration,
    /// `None`, or why it says that it was itself the bottleneck.
    pub saturated: Option<String>,
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
