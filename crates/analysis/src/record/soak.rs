//! A soak: the memory of the application by part, over hours, in the record of its trial.
//!
//! Owns the stored form. Points are cheap and taken under load; looks ask the JVM and walk its
//! pages, and are taken only without load. [`crate::growth`] judges it.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TrialPhase;
use crate::wire;

/// Most points of a soak, whatever its length: a record and a report stay small.
pub const MOST_POINTS: u32 = 2880;

/// What a soak saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct SoakEvidence {
    /// Memory and counts over time, in order.
    pub points: Vec<SoakPoint>,
    /// The JVM's own account where there was no load: before the first cycle, between the cycles,
    /// after the second. Fewer where the JVM could not be asked.
    pub looks: Vec<SoakLook>,
    /// Why it ended before its time; `None` where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

impl SoakEvidence {
    pub(crate) fn points_in(&self, phase: TrialPhase) -> impl Iterator<Item = &SoakPoint> {
        self.points.iter().filter(move |p| p.phase == phase)
    }

    pub(crate) fn points_under_load(&self) -> impl Iterator<Item = &SoakPoint> {
        let is_under_load = |phase| matches!(phase, TrialPhase::Measure | TrialPhase::Again);
        self.points.iter().filter(move |p| is_under_load(p.phase))
    }

    pub(crate) fn time_under_load(&self) -> Duration {
        let of_phase = |phase| {
            let mut points = self.points_in(phase);
            let first = points.next().map_or(0, |p| p.at_ns);
            let last = points.last().map_or(first, |p| p.at_ns);
            Duration::from_nanos(last.saturating_sub(first))
        };
        of_phase(TrialPhase::Measure) + of_phase(TrialPhase::Again)
    }
}

/// The application at one moment, from /proc, the cgroup and files that the JVM keeps anyway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakPoint {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The phase it is in.
    pub phase: TrialPhase,
    /// Good responses since the first load.
    pub requests: u64,
    /// Failed requests since the first load.
    pub errors: u64,
    /// Anonymous pages of its processes.
    #[serde(rename = "anon_bytes", with = "wire::bytes_opt", default)]
    pub anon: Option<Bytes>,
    /// Pages of files that its processes map.
    #[serde(rename = "file_bytes", with = "wire::bytes_opt", default)]
    pub file: Option<Bytes>,
    /// What the cgroup charges less what can be dropped at once.
    #[serde(rename = "working_set_bytes", with = "wire::bytes_opt", default)]
    pub working_set: Option<Bytes>,
    /// The least heap in use after a collection since the point before; `None` without collection.
    #[serde(rename = "heap_after_bytes", with = "wire::bytes_opt", default)]
    pub heap_after: Option<Bytes>,
    /// The most heap in use before one of those collections.
    #[serde(rename = "heap_before_bytes", with = "wire::bytes_opt", default)]
    pub heap_before: Option<Bytes>,
    /// Heap that is committed.
    #[serde(rename = "heap_committed_bytes", with = "wire::bytes_opt", default)]
    pub heap_committed: Option<Bytes>,
    /// Metaspace that is committed.
    #[serde(rename = "metaspace_bytes", with = "wire::bytes_opt", default)]
    pub metaspace: Option<Bytes>,
    /// Threads.
    pub threads: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// Of them, sockets.
    pub sockets: Option<u64>,
}

/// The JVM's own account of its memory, laid over the pages that are resident, after a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct SoakLook {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Good responses since the first load.
    pub requests: u64,
    /// Heap in use after a full collection.
    #[serde(rename = "live_heap_bytes", with = "wire::bytes_opt", default)]
    pub live_heap: Option<Bytes>,
    /// Heap that is resident.
    #[serde(rename = "heap_bytes", with = "wire::bytes")]
    pub heap: Bytes,
    /// Direct buffers, in records of soaks with native memory tracking; without it `malloc` and `jvm`
    /// hold them.
    #[serde(rename = "direct_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<Bytes>,
    /// Direct buffers that are alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_buffers: Option<u64>,
    /// Thread stacks.
    #[serde(rename = "stacks_bytes", with = "wire::bytes")]
    pub stacks: Bytes,
    /// Metaspace.
    #[serde(rename = "metaspace_bytes", with = "wire::bytes")]
    pub metaspace: Bytes,
    /// Compiled code.
    #[serde(rename = "code_cache_bytes", with = "wire::bytes")]
    pub code_cache: Bytes,
    /// The collector's own, compilers, symbols and all else that the JVM names.
    #[serde(rename = "jvm_bytes", with = "wire::bytes")]
    pub jvm: Bytes,
    /// What no category has: libraries' own memory, what malloc adds or keeps.
    #[serde(rename = "malloc_bytes", with = "wire::bytes")]
    pub malloc: Bytes,
    /// Pages of mapped files.
    #[serde(rename = "files_bytes", with = "wire::bytes")]
    pub files: Bytes,
    /// Threads, Java and internal.
    pub threads: u64,
    /// What malloc held after it was asked to give back what it does not use; only at the end.
    #[serde(rename = "malloc_trimmed_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub malloc_trimmed: Option<Bytes>,
}
