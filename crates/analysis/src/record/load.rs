//! The load of a phase as the generator, or the front before the service, saw it: all requests
//! together, and each request of a mix.

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
    #[serde(rename = "send_lag_p99_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_lag_p99: Option<Duration>,
    /// CPU time the generator used; for a load command its own plus the front's. `None` if not
    /// measured.
    #[serde(rename = "generator_cpu_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// The source of a trial's requests, if it was not a loadline process next to the application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadFrom {
    /// loadline's container in the application's pod, over localhost.
    OwnPod,
    /// Dedicated pods, over the network of the cluster.
    Generators {
        /// Each made its part of one load, which all began at one instant.
        generators: Vec<GeneratorEvidence>,
    },
    /// A program of the user's; each exchange was timed by loadline before the service.
    Command {
        /// What loadline observed.
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
    #[serde(rename = "cpu_wait_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_wait: Option<Duration>,
    /// What its own result file says of the phase; never judged. `None` without such a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedEvidence>,
}

/// The result file of a load command, read by loadline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedEvidence {
    /// The format that it was recognised as, such as `JMeter CSV`.
    pub format: String,
    /// Where its figures come from.
    pub scope: ReportedScope,
    /// All its requests.
    pub all: ReportedFigures,
    /// Its requests by the tool's own names, at most 200 and the sum of others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_request: BTreeMap<String, ReportedFigures>,
}

/// What the figures of a result file cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportedScope {
    /// Rows of the requests that began in the phase.
    Rows,
    /// Histograms of intervals, each with its middle in the phase: good requests only.
    Intervals,
    /// The whole run, because its rows have no time.
    WholeRun,
    /// The whole run, as the tool itself summed it up.
    ToolSummary,
}

/// Outcomes that a result file says; percentiles count failed requests as slowest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedFigures {
    /// Requests, failed ones included.
    pub requests: u64,
    /// Failed requests.
    pub failed: u64,
    /// Median; `None` lies in failed requests, or is not known, as the next two.
    #[serde(rename = "p50_ns", with = "wire::nanos_opt", default)]
    pub p50: Option<Duration>,
    /// 90th percentile.
    #[serde(rename = "p90_ns", with = "wire::nanos_opt", default)]
    pub p90: Option<Duration>,
    /// 99th percentile.
    #[serde(rename = "p99_ns", with = "wire::nanos_opt", default)]
    pub p99: Option<Duration>,
}

/// A command that drove a consumer, over the measure phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriveEvidence {
    /// Program and arguments, as the experiment says them.
    pub words: Vec<String>,
    /// CPU time that it used.
    #[serde(rename = "cpu_ns", with = "wire::nanos")]
    pub cpu: Duration,
    /// How long its threads waited for a CPU, summed.
    #[serde(rename = "cpu_wait_ns", with = "wire::nanos")]
    pub cpu_wait: Duration,
    /// `None`, or why it did not make the intended work.
    pub saturated: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedModel {
    Open,
    /// It sent next to nothing in stalls: requests that users would have sent then are missing.
    Closed,
    /// Some came, or the command itself had no CPU.
    Unclear,
    /// The service never stalled, so that it does not matter.
    NoStall,
}

/// A load is open if at least this share of the expected requests arrives during a stall, and
/// closed if at most its complement does, which comes from connections that were free when the
/// stall began.
const OPEN_SHARE: f64 = 0.7;
const CLOSED_SHARE: f64 = 0.5;
/// Nothing came, whatever CPU the command had: wrk, at full speed, waits for a CPU for seconds.
const NEXT_TO_NOTHING: f64 = 0.1;
const LEAST_EXPECTED: f64 = 5.0;

impl LoadCommandEvidence {
    pub fn observed_model(&self) -> ObservedModel {
        if self.expected_in_stalls < LEAST_EXPECTED {
            return ObservedModel::NoStall;
        }
        // A command that has no CPU sends nothing either, and catches up later.
        let is_starved = self.cpu_wait.is_some_and(|wait| wait > self.stalled);
        match self.arrived_in_stalls as f64 / self.expected_in_stalls {
            share if share >= OPEN_SHARE => ObservedModel::Open,
            share if share <= CLOSED_SHARE && (share <= NEXT_TO_NOTHING || !is_starved) => {
                ObservedModel::Closed
            }
            _ => ObservedModel::Unclear,
        }
    }
}

/// One generator pod and its part of a load. Its latencies use its own clock; values per second
/// were moved to the trial's clock by the offset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorEvidence {
    /// Its pod.
    pub name: String,
    /// The node that it ran on.
    pub node: String,
    /// Requests of its part.
    pub scheduled: u64,
    /// How far its clock was ahead of the trial node's clock before the load, ns.
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
    /// Latency from the intended send time, good responses, encoded like the total.
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
    /// Latency from the intended send time, good responses, encoded like the total.
    pub latency: String,
}
