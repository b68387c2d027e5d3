//! GC and safepoint logs of HotSpot, unified (JDK 9 and later) and classic (JDK 8 and earlier),
//! every collector, any decorations; verbose GC logs of OpenJ9.
//!
//! Reads a stream in constant memory at hundreds of megabytes a second, skips and counts unknown
//! lines, and never fails on content: a truncated or damaged log gives partial data, and
//! [`GcLogInput`] reports the gaps. Start with [`read`] for one stream, [`files`] for files on
//! disk. Facts: openjdk/jdk and eclipse-openj9 sources, real logs of JDK 1.4 to 25.

mod build;
mod classic;
mod cycles;
mod event;
pub mod files;
mod findings;
mod header;
mod lines;
mod log;
mod names;
mod number;
mod numbering;
mod openj9;
pub mod report;
mod summary;
mod tally;
mod unified;
mod window;

pub use build::GcLogBuilder;
pub use event::{GcCpuTimes, HeapChange, LogTime};
pub use findings::{FindingCode, GcFinding};
pub use header::{GarbageCollector, GcLogHeader};
pub use lines::LineCounts;
pub use log::{AllocationStall, GcLog, GcLogInput, GcPause, Safepoint};
pub use names::PauseName;
pub use openj9::{ClockAdjustment, WallClock, stamp_ms};
pub use summary::{ByName, GcSummary};
pub use tally::DurationTally;
pub use window::{DroppedEntries, LogWindow};

pub fn read(reader: impl std::io::Read, keep: usize) -> GcLog {
    let mut builder = GcLogBuilder::new(keep);
    builder.read(reader);
    builder.finish_log()
}

#[cfg(test)]
mod tests;
