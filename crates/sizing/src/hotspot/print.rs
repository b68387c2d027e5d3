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
        let Self {
            jdk,
            compilers,
            gc_threads: gc,
            heap,
            code_cache: code,
            young,
            ..
        } = self;
        let switch = PrintedValue::Switch;
        let size = |size: Bytes| PrintedValue::Number(size.as_bytes());
        let count = |count: u32| PrintedValue::Number(u64::from(count));
        let limit =
            |limit: Option<Bytes>| PrintedValue::Number(limit.map_or(UNLIMITED, Bytes::as_bytes));
        let stack = PrintedValue::Number(self.thread_stack.as_bytes() / 1024);
        let old = size(young.old.unwrap_or_default());
        let headers = switch(self.compact_headers);
        let since = |feature| jdk.at_least(feature);
        let mut rows = vec![
            ("CICompilerCount", count(compilers.count), true),
            ("CompressedClassSpaceSize", size(self.class_space), true),
            ("ConcGCThreads", count(gc.concurrent), true),
            ("G1ConcRefinementThreads", count(gc.refinement), true),
            ("G1HeapRegionSize", size(heap.g1_region), true),
            ("InitialCodeCacheSize", size(code.initial), true),
            ("InitialHeapSize", size(heap.initial), true),
            ("MaxDirectMemorySize", size(self.max_direct), true),
            ("MaxHeapSize", size(heap.max), true),
            ("MaxMetaspaceSize", limit(self.max_metaspace), true),
            ("MaxNewSize", limit(young.max), true),
            ("MaxRAM", size(heap.max_ram), !since(27)),
            ("MetaspaceSize", size(self.metaspace_start), true),
            ("MinHeapSize", size(heap.min), since(14)),
            ("NewSize", size(young.initial), true),
            ("NonNMethodCodeHeapSize", size(code.non_nmethod), since(9)),
            ("NonProfiledCodeHeapSize", size(code.non_profiled), since(9)),
            ("OldSize", old, young.old.is_some()),
            ("ParallelGCThreads", count(gc.parallel), true),
            ("ProfiledCodeHeapSize", size(code.profiled), since(9)),
            ("ReservedCodeCacheSize", size(code.reserved), true),
            ("SegmentedCodeCache", switch(code.is_segmented), since(9)),
            ("SoftMaxHeapSize", size(heap.soft_max), since(13)),
            ("ThreadStackSize", stack, true),
            ("TieredCompilation", switch(compilers.is_tiered), true),
            ("TieredStopAtLevel", count(compilers.stop_at_level), true),
            ("UseCompactObjectHeaders", headers, since(25)),
            ("UseCompressedOops", switch(heap.compressed_oops), true),
        ];
        rows.extend(CollectorKind::ALL.map(|collector| {
            let name = collector.flag();
            let is_on = collector == self.collector;
            // Experimental ones are printed only where they are unlocked.
            let is_printed =
                gate::is_known(*jdk, name) && (is_on || gate::find_lock(*jdk, name).is_none());
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
