//! What the JVM's own log says of its collections.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// Garbage collection, from the JVM's log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GcEvidence {
    /// `Serial`, `Parallel`, `G1`, `ZGC`, `Shenandoah`, ...
    pub collector: String,
    /// The JDK as the log states it.
    pub jdk: Option<String>,
    /// Stop-the-world pauses of the collector over the whole trial.
    pub pauses: u64,
    /// Their sum.
    #[serde(rename = "pause_sum_ns", with = "wire::nanos")]
    pub pause_sum: Duration,
    /// The longest.
    #[serde(rename = "pause_max_ns", with = "wire::nanos")]
    pub pause_max: Duration,
    /// Of the pauses, full collections.
    pub full_gcs: u64,
    /// CPU time of the collector (user + system) where the log has it.
    #[serde(rename = "gc_cpu_ns", with = "wire::nanos_opt", default)]
    pub gc_cpu: Option<Duration>,
    /// CPU time of the collector in the pauses of the measure phase; `None` as in `measure_pauses`.
    #[serde(rename = "measure_gc_cpu_ns", with = "wire::nanos_opt", default)]
    pub measure_gc_cpu: Option<Duration>,
    /// Pauses that ended in the measure phase; `None` where there was none, or where the log does
    /// not place its pauses on the trial's clock (JDK 8 and earlier).
    #[serde(default)]
    pub measure_pauses: Option<u64>,
    /// Their sum.
    #[serde(rename = "measure_pause_sum_ns", with = "wire::nanos_opt", default)]
    pub measure_pause_sum: Option<Duration>,
    /// The longest pause in the measure phase.
    #[serde(rename = "measure_pause_max_ns", with = "wire::nanos_opt", default)]
    pub measure_pause_max: Option<Duration>,
    /// Most threads that a pause may use, where the log tells (those of JDK 17 and 25 do, Serial
    /// has none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_workers: Option<u32>,
    /// Largest heap in use after a collection: near the live set.
    #[serde(rename = "heap_after_max_bytes", with = "wire::bytes_opt", default)]
    pub heap_after_max: Option<Bytes>,
    /// Largest heap the JVM allowed itself (`-Xmx` or its default).
    #[serde(rename = "heap_max_bytes", with = "wire::bytes_opt", default)]
    pub heap_max: Option<Bytes>,
    /// Bytes allocated over the whole log: a lower bound for concurrent collectors.
    #[serde(rename = "allocated_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated: Option<Bytes>,
    /// What the heap after a collection rose by from each to the next, added up: near what came into
    /// the old generation. `None` where no pause has a heap, as of ZGC.
    #[serde(rename = "promoted_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Bytes>,
    /// Heap in use after collections, in order; at most 1,000, full ones among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heaps_after: Vec<HeapAfter>,
    /// Each pause: [start, end) on CLOCK_MONOTONIC in ns; at most 10 000, the rest is only counted.
    pub pause_spans_ns: Vec<(u64, u64)>,
}

/// Heap in use after one collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapAfter {
    /// Its end, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Heap in use.
    #[serde(with = "wire::bytes")]
    pub bytes: Bytes,
    /// Committed heap after it; `None` where the log has none (ZGC).
    #[serde(rename = "committed_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<Bytes>,
    /// Whether it was a full collection.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub is_full: bool,
}
