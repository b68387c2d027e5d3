//! The dependencies of an application in a trial: a database, a broker, another service.
//!
//! Owns the stored form. The counters belong to the dependency's own cgroup, not the application's;
//! [`crate::dependency`] tells whether it was the bottleneck.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::proxy::LinkEvidence;
use crate::wire;

/// One dependency in one trial. Counters are those of the window: the measure phase, or of a trial
/// that did not get so far its last phase of load or the application's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct DependencyEvidence {
    /// Its name in the experiment.
    pub name: String,
    /// Id of its image; `None` where it is a program of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// From its exec until it was ready; `None` where it never was.
    #[serde(rename = "ready_ns", with = "wire::nanos_opt", default)]
    pub ready: Option<Duration>,
    /// How long its seed ran; `None` without one.
    #[serde(rename = "seed_ns", with = "wire::nanos_opt", default)]
    pub seed: Option<Duration>,
    /// That other trials of the result share it; `None` where it was fresh for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedEvidence>,
    /// CPUs it could run on, as the kernel lists them.
    pub cpus: String,
    /// How many these are.
    pub cpu_count: u32,
    /// Who else ran on them.
    pub beside: CpuNeighbours,
    /// Its CPU limit; `None` is none.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt", default)]
    pub cpu_limit: Option<Cpus>,
    /// Its memory limit; `None` is none.
    #[serde(rename = "memory_limit_bytes", with = "wire::bytes_opt", default)]
    pub memory_limit: Option<Bytes>,
    /// Length of the window; `None` where there was none.
    #[serde(rename = "window_ns", with = "wire::nanos_opt", default)]
    pub window: Option<Duration>,
    /// CPU time used in the window.
    #[serde(rename = "cpu_ns", with = "wire::nanos_opt", default)]
    pub cpu: Option<Duration>,
    /// CFS periods with runnable tasks in the window.
    pub nr_periods: Option<u64>,
    /// Of them, throttled.
    pub nr_throttled: Option<u64>,
    /// Throttled time in the window: a sum over CPUs, it may exceed wall time.
    #[serde(rename = "throttled_ns", with = "wire::nanos_opt", default)]
    pub throttled: Option<Duration>,
    /// Highest memory usage of its life, page cache included.
    #[serde(rename = "peak_memory_bytes", with = "wire::bytes_opt", default)]
    pub peak_memory: Option<Bytes>,
    /// Highest working set, looked at once a second: usage minus inactive file pages.
    #[serde(rename = "peak_working_set_bytes", with = "wire::bytes_opt", default)]
    pub peak_working_set: Option<Bytes>,
    /// Times the kernel killed for memory in its cgroup.
    pub oom_kills: Option<u64>,
    /// How it ended before the trial did: `exit code 1`, `signal 9`; `None` is that it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The last lines that it wrote, where it failed; control characters removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_output: Vec<String>,
    /// What it was asked for, where loadline stood in for it; `None` is the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stub: Option<StubEvidence>,
    /// What went to it through the proxy; `None` where nothing stood in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkEvidence>,
}

/// What a dependency went through before a trial that shares it with others. Its readiness and seed
/// are those of its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct SharedEvidence {
    /// Starts of the application that it had served before: trials, and trainings of caches.
    pub trials: u32,
    /// How long its reset ran before this one; `None` without one, and before the first.
    #[serde(rename = "reset_ns", with = "wire::nanos_opt", default)]
    pub reset: Option<Duration>,
    /// Why it was restarted and seeded again before this trial, although earlier trials had started
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anew: Option<String>,
}

/// The requests to a stub in the whole trial. It runs in the proxy's process;
/// [`super::ProxyEvidence`] has its CPU and lateness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct StubEvidence {
    /// Requests that came.
    pub requests: u64,
    /// Those for which it had no answer, by method and path with identifiers replaced, the first 100;
    /// each got a 404.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unanswered: BTreeMap<String, u64>,
}

/// Who else runs on a dependency's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuNeighbours {
    /// Nobody of this trial but other dependencies.
    #[default]
    Nobody,
    /// The load generator.
    Generator,
    /// The application, and perhaps the load generator.
    Application,
}
