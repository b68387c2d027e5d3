//! What the kernel counted of the application's cgroup.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// Counters of the application's cgroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct CgroupEvidence {
    /// CPUs that the application could run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Highest memory usage, page cache included (what the limit acts on).
    #[serde(rename = "peak_memory_bytes", with = "wire::bytes_opt", default)]
    pub peak_memory: Option<Bytes>,
    /// Highest working set: usage minus inactive file pages.
    #[serde(rename = "peak_working_set_bytes", with = "wire::bytes_opt", default)]
    pub peak_working_set: Option<Bytes>,
    /// Highest anonymous memory (v1 `rss`, v2 `anon`).
    #[serde(rename = "peak_anon_bytes", with = "wire::bytes_opt", default)]
    pub peak_anon: Option<Bytes>,
    /// Highest share in transparent huge pages.
    #[serde(rename = "peak_anon_huge_bytes", with = "wire::bytes_opt", default)]
    pub peak_anon_huge: Option<Bytes>,
    /// Highest RSS of the application's processes, `/proc/PID/status` (VmRSS, VmHWM).
    #[serde(rename = "peak_rss_bytes", with = "wire::bytes_opt", default)]
    pub peak_rss: Option<Bytes>,
    /// RSS of the application's processes right after the measure phase, huge pages included.
    #[serde(rename = "loaded_rss_bytes", with = "wire::bytes_opt", default)]
    pub loaded_rss: Option<Bytes>,
    /// The same, but a page that n processes share counts 1/n.
    #[serde(rename = "loaded_pss_bytes", with = "wire::bytes_opt", default)]
    pub loaded_pss: Option<Bytes>,
    /// Times the kernel killed for memory in this cgroup.
    pub oom_kills: Option<u64>,
    /// File pages that had to be read again after reclaim: thrashing.
    pub file_refaults: Option<u64>,
    /// Page faults that read from disk.
    pub major_faults: Option<u64>,
    /// CPU time over the whole trial.
    #[serde(rename = "cpu_ns", with = "wire::nanos_opt", default)]
    pub cpu: Option<Duration>,
    /// CPU time in the measure phase.
    #[serde(rename = "measure_cpu_ns", with = "wire::nanos_opt", default)]
    pub measure_cpu: Option<Duration>,
    /// Periods with runnable tasks in the measure phase.
    pub measure_nr_periods: Option<u64>,
    /// Of them, throttled.
    pub measure_nr_throttled: Option<u64>,
    /// Throttled time in the measure phase: a sum over CPUs, it may exceed wall time.
    #[serde(rename = "measure_throttled_ns", with = "wire::nanos_opt", default)]
    pub measure_throttled: Option<Duration>,
}
