//! What an option decides: its dimension. A user's option freezes its own dimension only.
//!
//! Owns the table from flag to dimension, for every flag that the launcher budgets or would set.

use super::words::has_word;
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

/// The flags of each dimension, or its option prefixes below, for options without a flag.
/// `AggressiveHeap` sets all three: half the memory at once, and ParallelGC. `UseParNewGC` alone
/// selects a separate collector on 8: ParNew with the serial old one.
const TABLE: &[(OptionDimension, &str)] = &[
    (
        OptionDimension::Heap,
        "MaxHeapSize MaxRAMPercentage MinRAMPercentage MaxRAMFraction MinRAMFraction MaxRAM \
         ErgoHeapSizeLimit AggressiveHeap",
    ),
    (
        OptionDimension::HeapShape,
        "InitialHeapSize MinHeapSize InitialRAMPercentage InitialRAMFraction MinHeapFreeRatio \
         MaxHeapFreeRatio AggressiveHeap",
    ),
    (
        OptionDimension::Collector,
        "UseSerialGC UseParallelGC UseParallelOldGC UseConcMarkSweepGC UseG1GC UseZGC \
         UseShenandoahGC UseEpsilonGC UseParNewGC AggressiveHeap",
    ),
    (
        OptionDimension::GcThreads,
        "ParallelGCThreads ConcGCThreads",
    ),
    (OptionDimension::ThreadStack, "ThreadStackSize"),
    (
        OptionDimension::Metaspace,
        "MaxMetaspaceSize CompressedClassSpaceSize",
    ),
    (
        OptionDimension::CodeCache,
        "ReservedCodeCacheSize NonNMethodCodeHeapSize ProfiledCodeHeapSize NonProfiledCodeHeapSize",
    ),
    (OptionDimension::Direct, "MaxDirectMemorySize"),
    (
        OptionDimension::Compiler,
        "TieredCompilation TieredStopAtLevel CICompilerCount",
    ),
    (OptionDimension::CpuCount, "ActiveProcessorCount"),
    (
        OptionDimension::OutOfMemory,
        "ExitOnOutOfMemoryError CrashOnOutOfMemoryError OnOutOfMemoryError",
    ),
    (
        OptionDimension::StartupCache,
        "SharedArchiveFile ArchiveClassesAtExit AutoCreateSharedArchive AOTCache AOTMode \
         AOTCacheOutput",
    ),
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
    let row = TABLE.iter().find(|(_, flags)| has_word(flags, name));
    row.map(|(dimension, _)| *dimension)
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
        let row = TABLE.iter().find(|(of, _)| *of == dimension);
        let flags = row.map_or("", |(_, flags)| *flags);
        self.settings()
            .filter(|(name, _)| has_word(flags, name))
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
