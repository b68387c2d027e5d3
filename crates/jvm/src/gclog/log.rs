//! The stored data of a log: its pauses, safepoints and stalls, its JVM, counts of read and lost
//! lines.

use std::time::Duration;

use super::event::{GcCpuTimes, HeapChange, LogTime};
use super::header::GcLogHeader;
use super::lines::LineCounts;
use super::names::PauseName;
use super::summary::GcSummary;
use super::window::{DroppedEntries, LogWindow};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcPause {
    pub name: PauseName,
    pub id: Option<u64>,
    pub end: LogTime,
    /// Its length; its begin is its end minus this.
    pub duration: Duration,
    pub heap: Option<HeapChange>,
    pub cpu: Option<GcCpuTimes>,
}

impl GcPause {
    pub fn monotonic_span(&self) -> Option<(u64, u64)> {
        span(self.end, self.duration)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safepoint {
    /// The VM operation; JDK 12 and earlier do not name it.
    pub name: Option<std::sync::Arc<str>>,
    pub end: LogTime,
    pub reaching: Option<Duration>,
    /// From the request until the threads went on.
    pub total: Duration,
}

impl Safepoint {
    pub fn monotonic_span(&self) -> Option<(u64, u64)> {
        span(self.end, self.total)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationStall {
    /// `Allocation Stall`, `Relocation Stall`, or `Pacing` (a sum over threads and one cycle).
    pub name: std::sync::Arc<str>,
    pub end: LogTime,
    pub duration: Duration,
}

fn span(end: LogTime, duration: Duration) -> Option<(u64, u64)> {
    let end = end.monotonic_ns?;
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Some((end.saturating_sub(nanos), end))
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcLogInput {
    pub counts: LineCounts,
    pub gc_lines: u64,
    pub other_lines: u64,
    pub empty_lines: u64,
    pub unknown_lines: u64,
    /// Collections with missing numbers: a file of the set, or lines, are missing.
    pub missing_collections: u64,
    /// Number of the first collection, when it is not 0: the begin of the log is missing.
    pub first_collection: Option<u64>,
    pub unfinished_pauses: u64,
    /// Lines that the JVM says it dropped (`-Xlog:async`).
    pub dropped_lines: u64,
    /// Whether something was read that only a GC log has. Lines that merely look like details of
    /// one, `Heap` or `}`, are not enough.
    pub is_gc_log: bool,
    /// Why reading stopped early: an I/O error, a gzip stream that is cut or grows too much.
    pub stopped: Option<String>,
}

impl GcLogInput {
    pub fn is_complete(&self) -> bool {
        self.missing_collections == 0
            && self.first_collection.is_none()
            && self.unfinished_pauses == 0
            && self.dropped_lines == 0
            && self.counts.too_long == 0
            && !self.counts.is_cut
            && self.stopped.is_none()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct GcLog {
    pub header: GcLogHeader,
    pub input: GcLogInput,
    pub summary: GcSummary,
    pub window: Option<LogWindow>,
    pub pauses: Vec<GcPause>,
    pub safepoints: Vec<Safepoint>,
    pub stalls: Vec<AllocationStall>,
    pub cut: DroppedEntries,
}
