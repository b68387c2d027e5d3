//! What a line of a GC log can say. All grammars speak this one language.
//!
//! Owns the borrowed form that parsers emit; [`super::GcPause`] is the kept form.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogTime {
    /// CLOCK_MONOTONIC, ns: only in logs decorated with `tn`.
    pub monotonic_ns: Option<u64>,
    /// Time since the JVM started, ns.
    pub uptime_ns: Option<u64>,
    /// Wall clock, milliseconds since 1970 UTC.
    pub unix_ms: Option<i64>,
}

impl LogTime {
    pub fn later_by(self, by: Duration) -> Self {
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self {
            monotonic_ns: self.monotonic_ns.map(|t| t.saturating_add(nanos)),
            uptime_ns: self.uptime_ns.map(|t| t.saturating_add(nanos)),
            unix_ms: self.unix_ms.map(|t| t.saturating_add(millis)),
        }
    }

    pub(super) fn axis(self) -> Option<ClockAxis> {
        let mut axes = [ClockAxis::Uptime, ClockAxis::Monotonic, ClockAxis::Wall].into_iter();
        axes.find(|axis| self.time_on(*axis).is_some())
    }

    pub(super) fn time_on(self, axis: ClockAxis) -> Option<u64> {
        match axis {
            ClockAxis::Uptime => self.uptime_ns,
            ClockAxis::Monotonic => self.monotonic_ns,
            ClockAxis::Wall => self
                .unix_ms
                .map(|ms| u64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockAxis {
    Uptime,
    Monotonic,
    /// Since 1970.
    Wall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeapChange {
    pub before: u64,
    pub after: u64,
    /// Committed after; `None` where the line has none (ZGC).
    pub committed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcCpuTimes {
    /// In user mode, all GC threads. Logs have a granularity of 10 ms.
    pub user: Duration,
    pub system: Duration,
    pub real: Duration,
}

impl GcCpuTimes {
    pub fn total_cpu(self) -> Duration {
        self.user + self.system
    }

    /// The remainder without one part; not negative.
    pub(super) fn without_part(self, part: Self) -> Self {
        Self {
            user: self.user.saturating_sub(part.user),
            system: self.system.saturating_sub(part.system),
            real: self.real.saturating_sub(part.real),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderFact<'a> {
    /// The JDK's version. Unified logs have it once, at the start of a JVM; classic ones at the
    /// begin of every file.
    Version {
        text: &'a [u8],
        is_start: bool,
    },
    Collector(super::GarbageCollector),
    /// Something that only this collector writes.
    CollectorMark(super::GarbageCollector),
    OpenJ9,
    Generational,
    /// CPUs of the machine and those the JVM may use.
    Cpus {
        total: u64,
        available: u64,
    },
    /// CPUs of the machine, on a separate line (OpenJ9).
    MachineCpus(u64),
    /// CPUs the JVM may use, likewise.
    AvailableCpus(u64),
    Memory(u64),
    HeapMin(u64),
    HeapInitial(u64),
    HeapMax(u64),
    RegionSize(u64),
    ParallelWorkers(u64),
    ConcurrentWorkers(u64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GcLogEvent<'a> {
    Fact(HeaderFact<'a>),
    /// Another JVM's log begins (OpenJ9; unified logs tell it by their version).
    JvmStart,
    /// With its collection's number.
    PauseStart(Option<u64>),
    /// A stop-the-world pause; its name as unified logs write it, from `Pause` to the last cause.
    Pause(CollectionWork<'a>),
    /// Heap figures of the last pause on a separate line (G1 before JDK 9).
    PauseHeap(HeapChange),
    Cpu {
        id: Option<u64>,
        cpu: GcCpuTimes,
    },
    /// The collection copied into a heap that was too full (old: to-space exhausted).
    EvacuationFailure,
    Phase {
        name: &'a [u8],
        duration: Duration,
    },
    Concurrent(CollectionWork<'a>),
    CycleStart(u64),
    Cycle {
        id: u64,
        end: LogTime,
        heap: HeapChange,
    },
    /// A thread waited for memory; not stop-the-world.
    Stall {
        name: &'a [u8],
        end: LogTime,
        duration: Duration,
    },
    /// All threads stood. `reaching` is a part of `total`.
    Safepoint {
        name: Option<&'a [u8]>,
        end: LogTime,
        reaching: Option<Duration>,
        total: Duration,
    },
    /// The log itself says that it lost lines.
    Dropped(u64),
}

/// What a collection did, while the application stood or next to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CollectionWork<'a> {
    pub id: Option<u64>,
    pub name: &'a [u8],
    pub end: LogTime,
    pub duration: Duration,
    pub heap: Option<HeapChange>,
}

impl GcLogEvent<'_> {
    /// Whether it proves a GC log. Other programs also print their version, their memory and
    /// dropped messages, and the name of a generation may appear in any text.
    pub(super) fn is_evidence(&self) -> bool {
        match self {
            Self::Fact(HeaderFact::Collector(_)) => true,
            Self::Fact(HeaderFact::Version { is_start, .. }) => !is_start,
            Self::Fact(_) | Self::Dropped(_) => false,
            _ => true,
        }
    }
}
