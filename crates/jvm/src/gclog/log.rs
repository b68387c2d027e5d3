//! What is kept of a log: its pauses, safepoints and stalls, its JVM, what was read and lost.

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
    /// Number of the collection in unified logs.
    pub id: Option<u64>,
    pub end: LogTime,
    /// Its length; it began so much before its end.
    pub duration: Duration,
    /// Heap before and after, where the pause changes it.
    pub heap: Option<HeapChange>,
    /// CPU time of the collection, where the log has it.
    pub cpu: Option<GcCpuTimes>,
}

impl GcPause {
    /// Begin and end on CLOCK_MONOTONIC in ns, where the log has that clock.
    pub fn monotonic_span(&self) -> Option<(u64, u64)> {
        span(self.end, self.duration)
    }
}

/// One time that all threads stood, for a collection or something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safepoint {
    /// The VM operation; JDK 12 and earlier do not name it.
    pub name: Option<std::sync::Arc<str>>,
    pub end: LogTime,
    /// From the request until the last thread stood; a part of `total`.
    pub reaching: Option<Duration>,
    /// From the request until the threads went on.
    pub total: Duration,
}

impl Safepoint {
    /// Begin and end on CLOCK_MONOTONIC in ns, where the log has that clock.
    pub fn monotonic_span(&self) -> Option<(u64, u64)> {
        span(self.end, self.total)
    }
}

/// One time that a thread waited for memory. Other threads may have run.
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
    /// Lines of unified logs with other tags.
    pub other_lines: u64,
    pub empty_lines: u64,
    /// Not empty, and nothing of a GC log.
    pub unknown_lines: u64,
    /// Collections whose numbers do not occur: a file of the set, or lines, are missing.
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
    /// Whether nothing is known to be missing.
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
    /// Counts and sums; always of the whole log.
    pub summary: GcSummary,
    /// The window that was asked for; whole too.
    pub window: Option<LogWindow>,
    /// The pauses, in the order of the log; when there are more than were wanted the first ones,
    /// those of the window before others.
    pub pauses: Vec<GcPause>,
    pub safepoints: Vec<Safepoint>,
    pub stalls: Vec<AllocationStall>,
    pub cut: DroppedEntries,
}
