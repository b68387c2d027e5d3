//! What was seen of a load phase, by its generator or from before the service: of all requests together,
//! and of each of a mix.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::TrialPhase;
use crate::wire;

/// One load phase, as the generator saw it or, of a load command, as it was seen from before the service.
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
    /// Latency from the intended send time, of a load command from the first byte of each request;
    /// successful requests, HdrHistogram V2 deflate, base64, ns.
    pub latency: String,
    /// Service time from the actual send time, successful requests, the same form. `None` of a load
    /// command, which does not say when it meant to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<String>,
    /// Intended to actual send, 99th percentile; `None` of a load command.
    #[serde(
        rename = "send_lag_p99_ns",
        with = "wire::nanos_opt",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub send_lag_p99: Option<Duration>,
    /// CPU time the generator used; of a load command its own and that of the front before the
    /// service. `None` is not measured.
    #[serde(
        rename = "generator_cpu_ns",
        with = "wire::nanos_opt",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub generator_cpu: Option<Duration>,
    /// `None`, or why the generator says that it was itself the bottleneck.
    pub saturated: Option<String>,
    /// The requests of a mix, in its order; empty without one, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestEvidence>,
    /// Second by second from its begin, by when requests were due; kept where a dependency is slow or
    /// away on a schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_second: Vec<DueEvidence>,
    /// What sent the requests: in a cluster, or a load command. Absent elsewhere, where it was loadline's
    /// own generator on the machine itself, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_from: Option<LoadFrom>,
}

/// What sent the requests of a trial, where it was not a process of loadline beside the application.
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
    /// A program of the user's; each exchange was timed by loadline before the service.
    Command {
        /// What was seen of it.
        command: Box<LoadCommandEvidence>,
    },
}

/// A load command, as it was seen from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCommandEvidence {
    /// Program and arguments, as the experiment says them.
    pub words: Vec<String>,
    /// Connections that it opened in the phase.
    pub connections: u64,
    /// How long the service answered nothing in the phase, in all.
    #[serde(rename = "stalled_ns", with = "wire::nanos")]
    pub stalled: Duration,
    /// Requests that came in that time.
    pub arrived_in_stalls: u64,
    /// Requests that would have come in it at the rate of the rest of the phase.
    #[serde(with = "wire::number")]
    pub expected_in_stalls: f64,
    /// How late the front before the service was itself, 99th percentile.
    #[serde(rename = "front_lag_p99_ns", with = "wire::nanos")]
    pub front_lag_p99: Duration,
    /// How long its threads waited for a CPU in the phase, summed; `None` is not measured.
    #[serde(
        rename = "cpu_wait_ns",
        with = "wire::nanos_opt",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cpu_wait: Option<Duration>,
}

/// Whether a load waits for answers, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedModel {
    /// It went on in stalls: nothing is hidden.
    Open,
    /// It sent next to nothing in stalls: requests that users would have sent then are missing.
    Closed,
    /// It sent some.
    Unclear,
    /// The service never stalled, so that it does not matter.
    NoStall,
}

/// Of the requests that a stall should have had, so many come where a load is open, and at most so many
/// where it is closed: connections that were free when it began.
const OPEN_SHARE: f64 = 0.7;
const CLOSED_SHARE: f64 = 0.5;

/// Fewer expected requests tell nothing.
const LEAST_EXPECTED: f64 = 5.0;

impl LoadCommandEvidence {
    /// Whether it waits for answers.
    pub fn observed_model(&self) -> ObservedModel {
        if self.expected_in_stalls < LEAST_EXPECTED {
            return ObservedModel::NoStall;
        }
        match self.arrived_in_stalls as f64 / self.expected_in_stalls {
            share if share >= OPEN_SHARE => ObservedModel::Open,
            share if share <= CLOSED_SHARE => ObservedModel::Closed,
            _ => ObservedModel::Unclear,
        }
    }
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
