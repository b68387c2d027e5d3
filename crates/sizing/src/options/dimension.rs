//! What an option decides: its dimension. A user's option freezes its own dimension only.
//!
//! Owns the table from flag to dimension, for every flag that the launcher budgets or would set.

use super::{Options, Setting};

/// One thing that options decide about a JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The largest heap.
    Heap,
    /// The heap at the start and when it shrinks or grows.
    HeapShape,
    /// Which collector.
    Collector,
    /// Threads of the collector.
    GcThreads,
    /// The stack of a Java thread.
    ThreadStack,
    /// Metaspace.
    Metaspace,
    /// The code cache.
    CodeCache,
    /// Direct (NIO) buffers.
    Direct,
    /// Which JIT compilers, and their threads.
    Compiler,
    /// How many CPUs the JVM believes it has.
    CpuCount,
    /// The common fork-join pool.
    CommonPool,
    /// What happens at the first OutOfMemoryError.
    OutOfMemory,
    /// A start-up cache.
    StartupCache,
}

/// Flag (or option prefix, for those that are no flags) to dimension; a flag may have several rows.
const TABLE: &[(&str, Dimension)] = &[
    ("MaxHeapSize", Dimension::Heap),
    ("MaxRAMPercentage", Dimension::Heap),
    ("MinRAMPercentage", Dimension::Heap),
    ("MaxRAMFraction", Dimension::Heap),
    ("MinRAMFraction", Dimension::Heap),
    ("MaxRAM", Dimension::Heap),
    ("ErgoHeapSizeLimit", Dimension::Heap),
    ("InitialHeapSize", Dimension::HeapShape),
    ("MinHeapSize", Dimension::HeapShape),
    ("InitialRAMPercentage", Dimension::HeapShape),
    ("InitialRAMFraction", Dimension::HeapShape),
    ("MinHeapFreeRatio", Dimension::HeapShape),
    ("MaxHeapFreeRatio", Dimension::HeapShape),
    ("UseSerialGC", Dimension::Collector),
    ("UseParallelGC", Dimension::Collector),
    ("UseParallelOldGC", Dimension::Collector),
    ("UseConcMarkSweepGC", Dimension::Collector),
    ("UseG1GC", Dimension::Collector),
    ("UseZGC", Dimension::Collector),
    ("UseShenandoahGC", Dimension::Collector),
    ("UseEpsilonGC", Dimension::Collector),
    // Alone it is a collector of its own on 8: ParNew with the serial old one.
    ("UseParNewGC", Dimension::Collector),
    // Sets all three: half the memory at once, and ParallelGC.
    ("AggressiveHeap", Dimension::Heap),
    ("AggressiveHeap", Dimension::HeapShape),
    ("AggressiveHeap", Dimension::Collector),
    ("ParallelGCThreads", Dimension::GcThreads),
    ("ConcGCThreads", Dimension::GcThreads),
    ("ThreadStackSize", Dimension::ThreadStack),
    ("MaxMetaspaceSize", Dimension::Metaspace),
    ("CompressedClassSpaceSize", Dimension::Metaspace),
    ("ReservedCodeCacheSize", Dimension::CodeCache),
    ("NonNMethodCodeHeapSize", Dimension::CodeCache),
    ("ProfiledCodeHeapSize", Dimension::CodeCache),
    ("NonProfiledCodeHeapSize", Dimension::CodeCache),
    ("MaxDirectMemorySize", Dimension::Direct),
    ("TieredCompilation", Dimension::Compiler),
    ("TieredStopAtLevel", Dimension::Compiler),
    ("CICompilerCount", Dimension::Compiler),
    ("ActiveProcessorCount", Dimension::CpuCount),
    ("ExitOnOutOfMemoryError", Dimension::OutOfMemory),
    ("CrashOnOutOfMemoryError", Dimension::OutOfMemory),
    ("OnOutOfMemoryError", Dimension::OutOfMemory),
    ("SharedArchiveFile", Dimension::StartupCache),
    ("ArchiveClassesAtExit", Dimension::StartupCache),
    ("AutoCreateSharedArchive", Dimension::StartupCache),
    ("AOTCache", Dimension::StartupCache),
    ("AOTMode", Dimension::StartupCache),
    ("AOTCacheOutput", Dimension::StartupCache),
];

const PREFIXES: &[(&str, Dimension)] = &[
    (
        "-Djava.util.concurrent.ForkJoinPool.common.parallelism=",
        Dimension::CommonPool,
    ),
    ("-Xshare:", Dimension::StartupCache),
    ("-Xshareclasses", Dimension::StartupCache),
    ("-Xint", Dimension::Compiler),
];

/// The (first) dimension that this flag decides, if it is one that is budgeted.
pub fn of_flag(name: &str) -> Option<Dimension> {
    let row = TABLE.iter().find(|(flag, _)| *flag == name);
    row.map(|(_, dimension)| *dimension)
}

impl Options {
    /// The user's option that freezes this dimension, as written; the last of the strongest source.
    pub fn freezing(&self, dimension: Dimension) -> Option<&str> {
        let flag = self.frozen_settings(dimension).next();
        let flag = flag.map(|setting| setting.text.as_str());
        flag.or_else(|| {
            let mut texts: Vec<&str> = self.texts().map(|(text, _)| text).collect();
            texts.reverse();
            texts.into_iter().find(|text| {
                let mut rows = PREFIXES.iter();
                rows.any(|(prefix, of)| *of == dimension && text.starts_with(prefix))
            })
        })
    }

    fn frozen_settings(&self, dimension: Dimension) -> impl Iterator<Item = &Setting> {
        self.settings()
            .filter(move |(name, _)| TABLE.contains(&(*name, dimension)))
            .map(|(_, setting)| setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_freezes_its_own_dimension_only() {
        let options = Options::from_words(["-Xmx512m", "-Xint"]);
        assert_eq!(options.freezing(Dimension::Heap), Some("-Xmx512m"));
        assert_eq!(options.freezing(Dimension::Compiler), Some("-Xint"));
        assert_eq!(options.freezing(Dimension::Collector), None);
        assert_eq!(options.freezing(Dimension::ThreadStack), None);
    }

    #[test]
    fn the_aggressive_heap_freezes_heap_and_collector() {
        let option = "-XX:+AggressiveHeap";
        let options = Options::from_words([option]);
        for dimension in [Dimension::Heap, Dimension::HeapShape, Dimension::Collector] {
            assert_eq!(options.freezing(dimension), Some(option), "{dimension:?}");
        }
        assert_eq!(options.freezing(Dimension::GcThreads), None);
    }
}
