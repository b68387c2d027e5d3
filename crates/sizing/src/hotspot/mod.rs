//! HotSpot's defaults: an emulator of its ergonomics, JDK 8 to 27, x86-64 and aarch64.
//!
//! Owns the formulas, one file a subject, each with its source. It covers machines and JDKs that
//! are not at hand; where a real JVM is at hand, its `-XX:+PrintFlagsFinal` is the truth and this
//! module is tested against it. Never measures, never starts a JVM.
//!
//! Facts: grids of `-XX:+PrintFlagsFinal` output of 17.0.15 and 25.0.3 (`tests/data`); sources of
//! OpenJDK 17 and 25 for the formulas; release notes and JEPs for the versions between and after.

pub mod code_cache;
pub mod collector;
pub mod heap;
mod machine;
pub mod node;
mod print;
pub mod refusal;
pub mod threads;
pub mod young;

use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;

pub use code_cache::CodeCache;
pub use collector::CollectorKind;
pub use heap::HotSpotHeap;
pub use machine::MachineSize;
pub use print::{PrintedFlag, PrintedValue};
pub use refusal::HotSpotRefusal;
pub use threads::{GcThreads, HotSpotJit};
pub use young::YoungGeneration;

const MEASURED: u32 = 25;
const DOCUMENTED: u32 = 27;

/// The basis of a prediction for this JDK, if that is no measured JVM: later JDKs are predicted
/// from their documentation, and beyond that like the last one.
pub fn rests_on(jdk: JdkRelease) -> Option<String> {
    match jdk.version.feature {
        ..=MEASURED => None,
        feature @ ..=DOCUMENTED => Some(format!(
            "JDK {feature} was not measured: this follows its release notes on top of {MEASURED}"
        )),
        feature => Some(format!(
            "JDK {feature} is newer than what is known here: this is what {DOCUMENTED} would do"
        )),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HotSpotErgonomics {
    pub jdk: JdkRelease,
    pub machine: MachineSize,
    pub collector: CollectorKind,
    pub heap: HotSpotHeap,
    pub young: YoungGeneration,
    pub gc_threads: GcThreads,
    pub compilers: HotSpotJit,
    pub code_cache: CodeCache,
    /// `MetaspaceSize`: where metaspace starts to trigger collections.
    pub metaspace_start: Bytes,
    /// `MaxMetaspaceSize`; `None` is unlimited.
    pub max_metaspace: Option<Bytes>,
    /// `CompressedClassSpaceSize`: reserved, not used.
    pub class_space: Bytes,
    /// `UseCompactObjectHeaders`: off until 26, the default from 27 on (JEP 519, 534).
    pub compact_headers: bool,
    pub thread_stack: Bytes,
    /// `MaxDirectMemorySize` as set; zero means "as large as the heap".
    pub max_direct: Bytes,
    pub common_pool: u32,
    /// Carrier threads of virtual threads; `None` before 21.
    pub virtual_thread_carriers: Option<u32>,
}

pub fn predict(
    jdk: JdkRelease,
    machine: MachineSize,
    options: &JvmOptionSet,
) -> Result<HotSpotErgonomics, HotSpotRefusal> {
    let machine = machine.as_overridden_by(options);
    let options = &*heap::with_aggressive(machine, options);
    refusal::check_flags(jdk, options)?;
    let collector = collector::choose(jdk, machine, options)?;
    let has_ratio = [CollectorKind::Serial, CollectorKind::Parallel].contains(&collector);
    let ratio = options
        .setting("NewRatio")
        .filter(|ratio| ratio.value == "0");
    if let Some(ratio) = ratio.filter(|_| has_ratio) {
        return Err(refusal::bad_value(&ratio.text, "a number above 0"));
    }
    let compilers = threads::choose_compilers(jdk, machine, options)?;
    let heap = heap::size_heap(jdk, machine, collector, options)?;
    let heap = HotSpotHeap {
        max_ram: heap.printed_max_ram(compilers.is_client),
        ..heap
    };
    let gc_threads = threads::collector_threads(jdk, machine, collector, heap.max, options)?;
    let young = young::size_young(jdk, (collector, gc_threads.parallel), &heap, options);
    let code_cache = code_cache::size_code_cache(jdk, &compilers, options)?;
    let max_metaspace = options.size_value("MaxMetaspaceSize");
    Ok(HotSpotErgonomics {
        jdk,
        machine,
        collector,
        young,
        gc_threads,
        compilers,
        code_cache,
        metaspace_start: metaspace_start(max_metaspace, options),
        max_metaspace,
        class_space: class_space(max_metaspace, options),
        compact_headers: options
            .switch_value("UseCompactObjectHeaders")
            .unwrap_or(jdk.at_least(27)),
        thread_stack: thread_stack(options),
        max_direct: options
            .size_value("MaxDirectMemorySize")
            .unwrap_or_default(),
        common_pool: threads::common_pool(jdk, machine, options),
        virtual_thread_carriers: jdk.at_least(21).then_some(machine.cpus),
        heap,
    })
}

/// Default `ThreadStackSize` is 1 MiB on x86-64 (2 MiB on aarch64; documented, not measured).
fn thread_stack(options: &JvmOptionSet) -> Bytes {
    let kib = options
        .count_value("ThreadStackSize")
        .filter(|kib| *kib > 0);
    kib.map_or(Bytes::from_mib(1), Bytes::from_kib)
}

/// `MetaspaceSize`: 21 MiB, at most the limit, in whole steps of 64 KiB and at least one.
///
/// Source: metaspace.cpp, `Metaspace::ergo_initialize`; measured: 0 gives 65536, 100000001 gives 99942400.
fn metaspace_start(max_metaspace: Option<Bytes>, options: &JvmOptionSet) -> Bytes {
    let granule = Bytes::from_kib(64);
    let set = options.size_value("MetaspaceSize");
    let start = set.unwrap_or(Bytes::from_mib(21));
    let start = start.min(max_metaspace.unwrap_or(start));
    start.round_down(granule).max(granule)
}

/// `CompressedClassSpaceSize`: 1 GiB, or when metaspace is limited 80 % of that limit, rounded
/// up to 16 MiB steps.
///
/// Source: metaspace.cpp, `Metaspace::ergo_initialize`; measured: 100m gives 80 MiB, 77777k gives 64.
fn class_space(max_metaspace: Option<Bytes>, options: &JvmOptionSet) -> Bytes {
    let granule = Bytes::from_mib(16);
    let set = options.size_value("CompressedClassSpaceSize");
    let wanted = set.unwrap_or(Bytes::from_gib(1)).round_up(granule);
    let Some(limit) = max_metaspace else {
        return wanted;
    };
    let share = Bytes::from_bytes((limit.as_bytes() as f64 * 0.8) as u64);
    if set.is_none() || wanted > share {
        share.round_up(granule).max(granule).min(wanted)
    } else {
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(jdk: &str, mib: u64) -> HotSpotErgonomics {
        let machine = MachineSize {
            memory: Bytes::from_mib(mib),
            cpus: 2,
        };
        let jdk = JdkRelease::for_hotspot(jdk.parse().unwrap());
        predict(jdk, machine, &JvmOptionSet::none()).unwrap()
    }

    #[test]
    fn newer_releases_follow_what_is_documented_of_them() {
        // JEP 523: G1 everywhere; JEP 534: compact headers; 26: the smallest initial heap.
        for (jdk, collector, compact, initial) in [
            ("25", CollectorKind::Serial, false, 8),
            ("26", CollectorKind::Serial, false, 8),
            ("27", CollectorKind::G1, true, 8),
            ("28", CollectorKind::G1, true, 8),
        ] {
            let of = on(jdk, 512);
            assert_eq!(
                (of.collector, of.compact_headers),
                (collector, compact),
                "{jdk}"
            );
            assert_eq!(of.heap.initial, Bytes::from_mib(initial), "{jdk}");
        }
        assert_eq!(on("25", 4096).heap.initial, Bytes::from_mib(64));
        assert_eq!(on("26", 4096).heap.initial, Bytes::from_mib(8));
        let flag = |jdk| {
            let flags = on(jdk, 512).printed_flags();
            flags
                .into_iter()
                .find(|f| f.name == "UseCompactObjectHeaders")
                .map(|f| f.value)
        };
        assert_eq!(flag("17"), None);
        assert_eq!(flag("25"), Some(PrintedValue::Switch(false)));
        assert_eq!(flag("27"), Some(PrintedValue::Switch(true)));
    }

    #[test]
    fn collectors_of_other_times_are_predicted_where_they_are_asked_for() {
        let of = |jdk: &str, cpus, option: &str| {
            let machine = MachineSize {
                memory: Bytes::from_gib(4),
                cpus,
            };
            let jdk = JdkRelease::for_hotspot(jdk.parse().unwrap());
            predict(jdk, machine, &JvmOptionSet::from_words(option.split(' ')))
        };
        let cms = of("8u372", 4, "-XX:+UseConcMarkSweepGC").unwrap();
        assert_eq!(cms.collector, CollectorKind::Cms);
        let threads = cms.gc_threads;
        assert_eq!((threads.parallel, threads.concurrent), (4, 1));
        // 83.2 MiB a worker, in steps of 64 KiB; then a third of the heap.
        let young = |cpus, option: &str| {
            let of = of("8u372", cpus, option).unwrap();
            of.young.max.map(|max| max.as_bytes())
        };
        assert_eq!(young(4, "-XX:+UseConcMarkSweepGC"), Some(348_913_664));
        assert_eq!(
            young(2, "-XX:+UseConcMarkSweepGC -Xmx4g"),
            Some(174_456_832)
        );
        assert_eq!(
            young(8, "-XX:+UseConcMarkSweepGC -Xmx800m"),
            Some(279_576_576)
        );
        assert!(of("17", 4, "-XX:+UseConcMarkSweepGC").is_err());
        assert!(of("17", 4, "-XX:+UseEpsilonGC").is_err());
        assert!(of("17", 4, "-XX:-UseG1GC").is_err());
        assert!(of("17", 1, "-XX:-UseG1GC").is_ok());
        assert!(of("17", 4, "-XX:MaxHeapFreeRatio=30").is_err());
        assert!(of("17", 4, "-XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=30").is_ok());
        let epsilon = "-XX:+UnlockExperimentalVMOptions -XX:+UseEpsilonGC";
        let epsilon = of("17", 4, epsilon).unwrap();
        // Larger objects let 32 bits reach further.
        for (option, is_compressed) in [
            ("-Xmx32g", false),
            ("-Xmx32g -XX:ObjectAlignmentInBytes=16", true),
            ("-Xmx64g -XX:ObjectAlignmentInBytes=16", false),
        ] {
            let heap = of("17", 4, option).unwrap().heap;
            assert_eq!(heap.compressed_oops, is_compressed, "{option}");
        }
        assert_eq!(epsilon.collector, CollectorKind::Epsilon);
        assert_eq!(epsilon.heap.min, Bytes::from_bytes(6_815_744));
    }

    #[test]
    fn percentages_that_do_not_count_are_named() {
        let idle = |mib, option: &str| {
            let options = JvmOptionSet::from_words([option]);
            let jdk = JdkRelease::for_hotspot("17".parse().unwrap());
            heap::idle_percentage(jdk, Bytes::from_mib(mib), &options).map(|(_, other)| other)
        };
        assert_eq!(
            idle(200, "-XX:MaxRAMPercentage=75"),
            Some("MinRAMPercentage")
        );
        assert_eq!(idle(300, "-XX:MaxRAMPercentage=75"), None);
        assert_eq!(
            idle(300, "-XX:MinRAMPercentage=75"),
            Some("MaxRAMPercentage")
        );
        assert_eq!(idle(200, "-Xmx100m"), None);
    }

    #[test]
    fn what_was_not_measured_says_so() {
        let of = |feature| {
            rests_on(JdkRelease::for_hotspot(crate::JavaVersion::from_feature(
                feature,
            )))
        };
        assert_eq!(of(25), None);
        assert!(of(26).is_some_and(|t| t.contains("was not measured")));
        assert!(of(28).is_some_and(|t| t.contains("newer than what is known")));
    }
}
