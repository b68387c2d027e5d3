//! What an option decides: its dimension. A user's option freezes its own dimension only.
//!
//! Owns the table from flag to dimension, for every flag that the launcher budgets or would set.

use super::{FlagSetting, JvmOptionSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptionDimension {
    Heap,
    /// The heap at the start and when it shrinks or grows.
    HeapShape,
    Collector,
    GcThreads,
    ThreadStack,
    Metaspace,
    CodeCache,
    Direct,
    Compiler,
    CpuCount,
    CommonPool,
    OutOfMemory,
    StartupCache,
}

/// Flag (or option prefix, for options without a flag) to dimension; a flag may have several rows.
const TABLE: &[(&str, OptionDimension)] = &[
    ("MaxHeapSize", OptionDimension::Heap),
    ("MaxRAMPercentage", OptionDimension::Heap),
    ("MinRAMPercentage", OptionDimension::Heap),
    ("MaxRAMFraction", OptionDimension::Heap),
    ("MinRAMFraction", OptionDimension::Heap),
    ("MaxRAM", OptionDimension::Heap),
    ("ErgoHeapSizeLimit", OptionDimension::Heap),
    ("InitialHeapSize", OptionDimension::HeapShape),
    ("MinHeapSize", OptionDimension::HeapShape),
    ("InitialRAMPercentage", OptionDimension::HeapShape),
    ("InitialRAMFraction", OptionDimension::HeapShape),
    ("MinHeapFreeRatio", OptionDimension::HeapShape),
    ("MaxHeapFreeRatio", OptionDimension::HeapShape),
    ("UseSerialGC", OptionDimension::Collector),
    ("UseParallelGC", OptionDimension::Collector),
    ("UseParallelOldGC", OptionDimension::Collector),
    ("UseConcMarkSweepGC", OptionDimension::Collector),
    ("UseG1GC", OptionDimension::Collector),
    ("UseZGC", OptionDimension::Collector),
    ("UseShenandoahGC", OptionDimension::Collector),
    ("UseEpsilonGC", OptionDimension::Collector),
    // Alone it selects a separate collector on 8: ParNew with the serial old one.
    ("UseParNewGC", OptionDimension::Collector),
    // Sets all three: half the memory at once, and ParallelGC.
    ("AggressiveHeap", OptionDimension::Heap),
    ("AggressiveHeap", OptionDimension::HeapShape),
    ("AggressiveHeap", OptionDimension::Collector),
    ("ParallelGCThreads", OptionDimension::GcThreads),
    ("ConcGCThreads", OptionDimension::GcThreads),
    ("ThreadStackSize", OptionDimension::ThreadStack),
    ("MaxMetaspaceSize", OptionDimension::Metaspace),
    ("CompressedClassSpaceSize", OptionDimension::Metaspace),
    ("ReservedCodeCacheSize", OptionDimension::CodeCache),
    ("NonNMethodCodeHeapSize", OptionDimension::CodeCache),
    ("ProfiledCodeHeapSize", OptionDimension::CodeCache),
    ("NonProfiledCodeHeapSize", OptionDimension::CodeCache),
    ("MaxDirectMemorySize", OptionDimension::Direct),
    ("TieredCompilation", OptionDimension::Compiler),
    ("TieredStopAtLevel", OptionDimension::Compiler),
    ("CICompilerCount", OptionDimension::Compiler),
    ("ActiveProcessorCount", OptionDimension::CpuCount),
    ("ExitOnOutOfMemoryError", OptionDimension::OutOfMemory),
    ("CrashOnOutOfMemoryError", OptionDimension::OutOfMemory),
    ("OnOutOfMemoryError", OptionDimension::OutOfMemory),
    ("SharedArchiveFile", OptionDimension::StartupCache),
    ("ArchiveClassesAtExit", OptionDimension::StartupCache),
    ("AutoCreateSharedArchive", OptionDimension::StartupCache),
    ("AOTCache", OptionDimension::StartupCache),
    ("AOTMode", OptionDimension::StartupCache),
    ("AOTCacheOutput", OptionDimension::StartupCache),
];

const PREFIXES: &[(&str, OptionDimension)] = &[
    (
        "-Djava.util.concurrent.ForkJoinPool.common.parallelism=",
        OptionDimension::CommonPool,
    ),
    ("-Xshare:", OptionDimension::StartupCache),
    ("-Xshareclasses", OptionDimension::StartupCache),
    ("-Xint", OptionDimension::Compiler),
];

pub fn of_flag(name: &str) -> Option<OptionDimension> {
    let row = TABLE.iter().find(|(flag, _)| *flag == name);
    row.map(|(_, dimension)| *dimension)
}

impl JvmOptionSet {
    /// The user's option that freezes this dimension, as written; the last of the strongest source.
    pub fn freezing_option(&self, dimension: OptionDimension) -> Option<&str> {
        let flag = self.frozen_settings(dimension).next();
        let flag = flag.map(|setting| setting.text.as_str());
        flag.or_else(|| {
            let mut texts: Vec<&str> = self.option_texts().map(|(text, _)| text).collect();
            texts.reverse();
            texts.into_iter().find(|text| {
                let mut rows = PREFIXES.iter();
                rows.any(|(prefix, of)| *of == dimension && text.starts_with(prefix))
            })
        })
    }

    fn frozen_settings(&self, dimension: OptionDimension) -> impl Iterator<Item = &FlagSetting> {
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
        let options = JvmOptionSet::from_words(["-Xmx512m", "-Xint"]);
        assert_eq!(
            options.freezing_option(OptionDimension::Heap),
            Some("-Xmx512m")
        );
        assert_eq!(
            options.freezing_option(OptionDimension::Compiler),
            Some("-Xint")
        );
        assert_eq!(options.freezing_option(OptionDimension::Collector), None);
        assert_eq!(options.freezing_option(OptionDimension::ThreadStack), None);
    }

    #[test]
    fn the_aggressive_heap_freezes_heap_and_collector() {
        let option = "-XX:+AggressiveHeap";
        let options = JvmOptionSet::from_words([option]);
        for dimension in [
            OptionDimension::Heap,
            OptionDimension::HeapShape,
            OptionDimension::Collector,
        ] {
            assert_eq!(
                options.freezing_option(dimension),
                Some(option),
                "{dimension:?}"
            );
        }
        assert_eq!(options.freezing_option(OptionDimension::GcThreads), None);
    }
}
