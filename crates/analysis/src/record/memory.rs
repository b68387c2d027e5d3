//! Where the memory of a running application is, and what a squeeze of its limit showed.
//!
//! Owns the stored form. Parts are read from the kernel's page counts by mapping (smaps), the JVM's own
//! counter file and the cgroup, never from native memory tracking, which costs 10 to 15 MiB itself. What
//! they mean for a limit is [`crate::budget`]'s.

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// Resident memory of all processes of the cgroup, by part. The parts from `heap` to `kernel` add up to
/// what no reclaim can take away; `files` can be dropped and read again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct MemoryParts {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Good responses since the first load.
    pub requests: u64,
    /// Threads.
    pub threads: u64,
    /// Touched heap of the JVM, anonymous or shared (ZGC).
    #[serde(rename = "heap_bytes", with = "wire::bytes")]
    pub heap: Bytes,
    /// Heap that the JVM has committed, by its own counters; `None` where it keeps none.
    #[serde(rename = "heap_committed_bytes", with = "wire::bytes_opt", default)]
    pub heap_committed: Option<Bytes>,
    /// Heap in use after a full collection that was asked for; only where the trial asked.
    #[serde(rename = "live_set_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_set: Option<Bytes>,
    /// Metaspace and class space.
    #[serde(rename = "metaspace_bytes", with = "wire::bytes")]
    pub metaspace: Bytes,
    /// Compiled code.
    #[serde(rename = "code_cache_bytes", with = "wire::bytes")]
    pub code_cache: Bytes,
    /// Thread stacks.
    #[serde(rename = "stacks_bytes", with = "wire::bytes")]
    pub stacks: Bytes,
    /// malloc: the main heap and the arenas, direct buffers among them.
    #[serde(rename = "malloc_bytes", with = "wire::bytes")]
    pub malloc: Bytes,
    /// Anonymous pages of mapped files: relocated libraries and the class archive.
    #[serde(rename = "private_files_bytes", with = "wire::bytes")]
    pub private_files: Bytes,
    /// Everything else that is anonymous or shared: the collector's tables and the JVM's own.
    #[serde(rename = "other_bytes", with = "wire::bytes")]
    pub other: Bytes,
    /// Kernel memory charged to the cgroup: stacks of threads, sockets, page tables.
    #[serde(rename = "kernel_bytes", with = "wire::bytes")]
    pub kernel: Bytes,
    /// Resident pages of mapped files that can be read again.
    #[serde(rename = "files_bytes", with = "wire::bytes")]
    pub files: Bytes,
}

impl MemoryParts {
    pub fn unreclaimable(&self) -> Bytes {
        let parts = [
            self.heap,
            self.metaspace,
            self.code_cache,
            self.stacks,
            self.malloc,
            self.private_files,
            self.other,
            self.kernel,
        ];
        let parts = parts.into_iter();
        parts.fold(Bytes::default(), Bytes::saturating_add)
    }
}

/// One start with a limit that was lowered under load until reclaim could give no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqueezeEvidence {
    /// The parts right after ageing, before the first step.
    pub aged: Option<MemoryParts>,
    /// Requests of the ageing burst.
    pub burst_requests: u64,
    /// Each limit that was held, in order, about one a second.
    pub steps: Vec<SqueezeStep>,
    /// Why it went no further.
    pub end: SqueezeEnd,
    /// Read-ahead of the disk that holds the application's files; it moves the wall.
    #[serde(rename = "read_ahead_bytes", with = "wire::bytes_opt", default)]
    pub read_ahead: Option<Bytes>,
    /// The limit of the phase that was judged after the squeeze; `None` where there was none.
    #[serde(rename = "limit_after_bytes", with = "wire::bytes_opt", default)]
    pub limit_after: Option<Bytes>,
}

/// One step of a squeeze. Counters are growth within the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct SqueezeStep {
    /// Its end, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// The limit in force.
    #[serde(rename = "limit_bytes", with = "wire::bytes")]
    pub limit: Bytes,
    /// Memory that no reclaim can take away: anonymous, shared and kernel memory of the cgroup.
    #[serde(rename = "unreclaimable_bytes", with = "wire::bytes")]
    pub unreclaimable: Bytes,
    /// Page cache of the cgroup without shared memory.
    #[serde(rename = "file_bytes", with = "wire::bytes_opt", default)]
    pub file: Option<Bytes>,
    /// File pages that were dropped and read again, a second.
    pub refaults_per_second: f64,
    /// Share of the step in which every task waited for memory; `None` where the kernel does not tell.
    pub full_pressure: Option<f64>,
    /// Requests scheduled and good responses, where a second of load ended in the step.
    pub offered: Option<u64>,
    /// Good responses.
    pub achieved: Option<u64>,
}

/// Why a squeeze went no further.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum SqueezeEnd {
    /// File pages were read again faster than the bound: the wall.
    Storm,
    /// Every task waited for memory for too large a share of a step: the wall.
    Pressure,
    /// The kernel could not reclaim enough (EBUSY).
    Busy,
    /// Nothing but unreclaimable memory was left above the smallest room that is safe.
    NoRoom,
    /// The time for it had passed.
    OutOfTime,
    /// The kernel killed the application in it.
    Killed,
    /// This host cannot lower a limit, or the application ended; why, in words.
    NotPossible(String),
}

/// File pages read again a second from which a step is a storm. Measured: 0 to single thousands in calm
/// steps, 30,000 and more in the first second of a storm (8 MiB of read-ahead).
pub const STORM_REFAULTS: f64 = 10_000.0;
pub const STORM_PRESSURE: f64 = 0.20;
/// The least signs that memory is what keeps a service from answering. A collection or a busy machine
/// leaves none: a step without an answer had no re-read and no pressure then.
const SHORT_REFAULTS: f64 = 100.0;
const SHORT_PRESSURE: f64 = 0.01;
const SILENT_REQUESTS: u64 = 5;

impl SqueezeStep {
    pub fn is_calm(&self) -> bool {
        let is_free = self.full_pressure.is_none_or(|full| full <= STORM_PRESSURE);
        let is_asked = self.offered.is_some_and(|all| all >= SILENT_REQUESTS);
        let is_silent = is_asked && self.achieved == Some(0);
        let is_starved = is_silent && self.is_short();
        self.refaults_per_second <= STORM_REFAULTS && is_free && !is_starved
    }

    /// Whether anything says that it lacked memory, also where the kernel does not tell its pressure.
    pub fn is_short(&self) -> bool {
        let is_pressed = self.full_pressure.is_none_or(|full| full > SHORT_PRESSURE);
        is_pressed || self.refaults_per_second > SHORT_REFAULTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_storm_only_with_a_sign_of_short_memory() {
        let silent = |refaults_per_second, full_pressure| SqueezeStep {
            refaults_per_second,
            full_pressure,
            offered: Some(50),
            achieved: Some(0),
            ..SqueezeStep::default()
        };
        // Seen on a machine that compiled: two seconds without an answer, then 150 at once.
        assert!(silent(0.0, Some(0.0)).is_calm());
        assert!(!silent(0.0, Some(0.05)).is_calm());
        assert!(!silent(400.0, Some(0.0)).is_calm());
        assert!(!silent(0.0, None).is_calm());
    }
}
