//! The prediction as flags, with HotSpot's names and units, as `-XX:+PrintFlagsFinal` prints them.

use std::fmt;

use super::{CollectorKind, HotSpotErgonomics};
use crate::Bytes;
use crate::options::gate;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrintedValue {
    Switch(bool),
    /// A number; sizes are bytes unless the flag's own unit is another (ThreadStackSize: KiB).
    Number(u64),
}

impl fmt::Display for PrintedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(value) => f.pad(if *value { "true" } else { "false" }),
            Self::Number(value) => f.pad(&value.to_string()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedFlag {
    pub name: &'static str,
    pub value: PrintedValue,
}

/// What HotSpot prints for "no limit" in an unsigned 64-bit flag.
const UNLIMITED: u64 = u64::MAX;

impl HotSpotErgonomics {
    pub fn printed_flags(&self) -> Vec<PrintedFlag> {
        let jdk = self.jdk;
        let size = |size: Bytes| PrintedValue::Number(size.as_bytes());
        let count = |count: u32| PrintedValue::Number(u64::from(count));
        let limit =
            |limit: Option<Bytes>| PrintedValue::Number(limit.map_or(UNLIMITED, Bytes::as_bytes));
        let mut rows = vec![
            ("CICompilerCount", count(self.compilers.count), true),
            ("CompressedClassSpaceSize", size(self.class_space), true),
            ("ConcGCThreads", count(self.gc_threads.concurrent), true),
            (
                "G1ConcRefinementThreads",
                count(self.gc_threads.refinement),
                true,
            ),
            ("G1HeapRegionSize", size(self.heap.g1_region), true),
            ("InitialCodeCacheSize", size(self.code_cache.initial), true),
            ("InitialHeapSize", size(self.heap.initial), true),
            ("MaxDirectMemorySize", size(self.max_direct), true),
            ("MaxHeapSize", size(self.heap.max), true),
            ("MaxMetaspaceSize", limit(self.max_metaspace), true),
            ("MaxNewSize", limit(self.young.max), true),
            ("MaxRAM", size(self.heap.max_ram), !jdk.at_least(27)),
            ("MetaspaceSize", size(self.metaspace_start), true),
            ("MinHeapSize", size(self.heap.min), jdk.at_least(14)),
            ("NewSize", size(self.young.initial), true),
            (
                "NonNMethodCodeHeapSize",
                size(self.code_cache.non_nmethod),
                jdk.at_least(9),
            ),
            (
                "NonProfiledCodeHeapSize",
                size(self.code_cache.non_profiled),
                jdk.at_least(9),
            ),
            (
                "OldSize",
                size(self.young.old.unwrap_or_default()),
                self.young.old.is_some(),
            ),
            ("ParallelGCThreads", count(self.gc_threads.parallel), true),
            (
                "ProfiledCodeHeapSize",
                size(self.code_cache.profiled),
                jdk.at_least(9),
            ),
            (
                "ReservedCodeCacheSize",
                size(self.code_cache.reserved),
                true,
            ),
            (
                "SegmentedCodeCache",
                PrintedValue::Switch(self.code_cache.is_segmented),
                jdk.at_least(9),
            ),
            (
                "SoftMaxHeapSize",
                size(self.heap.soft_max),
                jdk.at_least(13),
            ),
            (
                "ThreadStackSize",
                PrintedValue::Number(self.thread_stack.as_bytes() / 1024),
                true,
            ),
            (
                "TieredCompilation",
                PrintedValue::Switch(self.compilers.is_tiered),
                true,
            ),
            (
                "TieredStopAtLevel",
                count(self.compilers.stop_at_level),
                true,
            ),
            (
                "UseCompactObjectHeaders",
                PrintedValue::Switch(self.compact_headers),
                jdk.at_least(25),
            ),
            (
                "UseCompressedOops",
                PrintedValue::Switch(self.heap.compressed_oops),
                true,
            ),
        ];
        rows.extend(CollectorKind::ALL.map(|collector| {
            let name = collector.flag();
            let is_on = collector == self.collector;
            // Experimental ones are printed only where they are unlocked.
            let is_printed =
                gate::is_known(jdk, name) && (is_on || !gate::is_experimental(jdk, name));
            (name, PrintedValue::Switch(is_on), is_printed)
        }));
        let known = rows.into_iter().filter(|(_, _, exists)| *exists);
        let mut flags: Vec<PrintedFlag> = known
            .map(|(name, value, _)| PrintedFlag { name, value })
            .collect();
        flags.sort_by_key(|flag| flag.name);
        flags
    }
}
