//! The heap: largest, initial and smallest size, alignment, compressed oops.
//!
//! Source: arguments.cpp, `Arguments::set_heap_size` (from 27 on in gcArguments.cpp), and the
//! `initialize_alignments` of each collector. All sizes are bytes as PrintFlagsFinal prints them.

use std::borrow::Cow;

use super::{CollectorKind, HotSpotRefusal, MachineSize};
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::{JvmOptionSet, OptionOrigin};

/// Default `MaxHeapSize` before ergonomics: 96 MiB scaled by 1.3 for 64 bits, 8-byte aligned.
/// Below this, `MinRAMPercentage` decides; above, `MaxRAMPercentage`.
pub const DEFAULT_MAX_HEAP: Bytes = Bytes::from_bytes(130_862_280);
/// Default `NewSize`: 1 MiB scaled by 1.3.
pub const DEFAULT_NEW_SIZE: Bytes = Bytes::from_bytes(1_363_144);
/// Default `OldSize`: 4 MiB scaled by 1.3.
pub const DEFAULT_OLD_SIZE: Bytes = Bytes::from_bytes(5_452_592);
/// Default `MaxRAM`: the most memory that percentages are taken from, unless one is set.
pub const DEFAULT_MAX_RAM: Bytes = Bytes::from_gib(128);
const HEAP_BASE: Bytes = Bytes::from_gib(2);
/// What 32-bit oops can address for each byte of an object's alignment (`-XX:ObjectAlignmentInBytes`).
const OOP_ENCODING_MAX: Bytes = Bytes::from_gib(4);
/// Card table alignment: a page of 512-byte cards.
const CARD_ALIGNMENT: Bytes = Bytes::from_mib(2);

/// Flags of which the first may not be above the second, with their defaults:
/// `-XX:MaxHeapFreeRatio=30` alone starts no JVM (17.0.15, 25.0.3).
const ORDERED: [[(&str, u64); 2]; 3] = [
    [("MinHeapFreeRatio", 40), ("MaxHeapFreeRatio", 70)],
    [("MinMetaspaceFreeRatio", 40), ("MaxMetaspaceFreeRatio", 70)],
    [("G1NewSizePercent", 5), ("G1MaxNewSizePercent", 60)],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSpotHeap {
    pub max: Bytes,
    pub initial: Bytes,
    pub min: Bytes,
    pub soft_max: Bytes,
    /// `G1HeapRegionSize`; zero for other collectors.
    pub g1_region: Bytes,
    pub alignment: Bytes,
    pub compressed_oops: bool,
    pub max_ram: Bytes,
}

impl HotSpotHeap {
    /// The emulated client VM prints 1 GiB where the default would stand, after the heap was sized
    /// without it.
    pub(super) fn printed_max_ram(&self, is_client: bool) -> Bytes {
        if is_client && self.max_ram == DEFAULT_MAX_RAM {
            Bytes::from_gib(1)
        } else {
            self.max_ram
        }
    }
}

struct RamPercentages {
    max: f64,
    min: f64,
    initial: f64,
    /// Any of these, or `MaxRAM`, is set: the user wants memory to decide, not compressed oops.
    is_any_set: bool,
}

impl RamPercentages {
    fn from_options(jdk: JdkRelease, options: &JvmOptionSet) -> Self {
        let of = |percentage: &str, fraction: &str, default: f64| {
            let by_fraction = || options.count_value(fraction).filter(|n| *n > 0);
            options
                .percentage_value(percentage)
                .or_else(|| by_fraction().map(|n| 100.0 / n as f64))
                .unwrap_or(default)
        };
        // JDK 26 starts with the smallest heap (documented, not measured).
        let initial = if jdk.at_least(26) { 0.0 } else { 1.5625 };
        let flags = [
            "MaxRAMPercentage",
            "MinRAMPercentage",
            "InitialRAMPercentage",
            "MaxRAMFraction",
            "MinRAMFraction",
            "InitialRAMFraction",
            "MaxRAM",
        ];
        Self {
            max: of("MaxRAMPercentage", "MaxRAMFraction", 25.0),
            min: of("MinRAMPercentage", "MinRAMFraction", 50.0),
            initial: of("InitialRAMPercentage", "InitialRAMFraction", initial),
            is_any_set: flags.iter().any(|flag| options.is_set(flag)),
        }
    }
}

/// The options plus the effects of `-XX:+AggressiveHeap` if the largest heap is not set: half the
/// memory, all committed at once, 3/8 of the heap young. Other options are unchanged.
///
/// Source: arguments.cpp, `set_aggressive_heap_flags`; measured on 17 and 25.
pub fn with_aggressive(machine: MachineSize, options: &JvmOptionSet) -> Cow<'_, JvmOptionSet> {
    if options.switch_value("AggressiveHeap") != Some(true) || options.is_set("MaxHeapSize") {
        return Cow::Borrowed(options);
    }
    let memory = machine.memory;
    let half = Bytes::from_bytes(memory.as_bytes() / 2);
    let size = half.min(memory.saturating_sub(Bytes::from_mib(160)));
    let heap = ["MaxHeapSize", "InitialHeapSize", "MinHeapSize"].map(|flag| (flag, size));
    let young = Bytes::from_bytes(size.as_bytes() / 8 * 3);
    let young = ["NewSize", "MaxNewSize"].map(|flag| (flag, young));
    let set = heap.into_iter().chain(young).map(|(flag, size)| {
        // Below everything that the user wrote.
        let text = format!("-XX:{flag}={}", size.as_bytes());
        (text, OptionOrigin::ToolOptions)
    });
    let own = options
        .option_texts()
        .map(|(text, from)| (text.to_owned(), from));
    Cow::Owned(JvmOptionSet::merge(set.chain(own)))
}

pub fn size_heap(
    jdk: JdkRelease,
    machine: MachineSize,
    collector: CollectorKind,
    options: &JvmOptionSet,
) -> Result<HotSpotHeap, HotSpotRefusal> {
    let percentages = RamPercentages::from_options(jdk, options);
    let max_ram = max_ram(jdk, machine, &percentages, options);
    let base = match options.size_value("MaxRAM") {
        Some(set) => set,
        None => machine.memory.min(max_ram),
    };
    let (max, compressed_oops) = max_and_oops(jdk, collector, base, &percentages, options);
    let (initial, min) = initial_and_min(base, max, &percentages, options);
    let g1_region = g1_region(jdk, collector, max, initial, options);
    let alignment = alignment(collector, max, g1_region);
    refuse_impossible(collector, (max, initial, min), options)?;
    let aligned = align(max, initial, min, alignment, options);
    let soft_max_is_guessed = collector == CollectorKind::Z
        && has_generational_z(jdk, options)
        && !options.is_set("MaxHeapSize")
        && !options.is_set("MaxRAMPercentage");
    let soft_max = match options.size_value("SoftMaxHeapSize") {
        Some(set) if set > aligned.0 => {
            return Err(HotSpotRefusal::SoftMaxAboveMax {
                soft_max: set,
                max: aligned.0,
            });
        }
        Some(set) => set,
        None if soft_max_is_guessed => aligned.0.mul_ratio(90, 100),
        None => aligned.0,
    };
    Ok(HotSpotHeap {
        max: aligned.0,
        initial: aligned.1,
        min: aligned.2,
        soft_max,
        g1_region,
        alignment,
        compressed_oops,
        max_ram,
    })
}

/// `MaxRAM`: the machine's memory when percentages are given, so that large machines get the full
/// percentage. From 26 on the 128 GiB cap is gone (documented, not measured).
fn max_ram(
    jdk: JdkRelease,
    machine: MachineSize,
    percentages: &RamPercentages,
    options: &JvmOptionSet,
) -> Bytes {
    match options.size_value("MaxRAM") {
        Some(set) => set,
        None if percentages.is_any_set || jdk.at_least(26) => machine.memory,
        None => DEFAULT_MAX_RAM,
    }
}

/// A percentage that does not count in this memory, and the other, which does: HotSpot takes
/// `MinRAMPercentage` of small machines, and `MaxRAMPercentage` of others.
pub fn idle_percentage(
    jdk: JdkRelease,
    memory: Bytes,
    options: &JvmOptionSet,
) -> Option<(&str, &'static str)> {
    let min = RamPercentages::from_options(jdk, options).min;
    let (idle, other) = if memory.percent_share(min) < DEFAULT_MAX_HEAP {
        ("MaxRAMPercentage", "MinRAMPercentage")
    } else {
        ("MinRAMPercentage", "MaxRAMPercentage")
    };
    let decides = ["MaxHeapSize", "MaxRAM", other];
    let setting = options.setting(idle)?;
    let is_alone = !decides.iter().any(|name| options.is_set(name));
    is_alone.then_some((setting.text.as_str(), other))
}

fn max_and_oops(
    jdk: JdkRelease,
    collector: CollectorKind,
    base: Bytes,
    percentages: &RamPercentages,
    options: &JvmOptionSet,
) -> (Bytes, bool) {
    let set = options.size_value("MaxHeapSize");
    let oops_set = options.switch_value("UseCompressedOops");
    let object = options.count_value("ObjectAlignmentInBytes").unwrap_or(8);
    let limit = OOP_ENCODING_MAX.mul_ratio(object, 1);
    let limit = limit.saturating_sub(oops_alignment(jdk, collector, options));
    let first = set.unwrap_or(DEFAULT_MAX_HEAP);
    let first = first.max(options.size_value("InitialHeapSize").unwrap_or_default());
    let fits = first <= limit && collector != CollectorKind::Z;
    let oops = fits && oops_set != Some(false);
    if let Some(set) = set {
        return (set, oops);
    }
    let wanted = by_percentage(base, percentages, options);
    // The base of the heap is subtracted so that it can lie above 2 GiB and still be zero-based.
    let limit = limit.saturating_sub(HEAP_BASE);
    match oops && wanted > limit {
        false => (wanted, oops),
        true if percentages.is_any_set && oops_set.is_none() => (wanted, false),
        true => (limit, true),
    }
}

fn by_percentage(base: Bytes, percentages: &RamPercentages, options: &JvmOptionSet) -> Bytes {
    let small = base.percent_share(percentages.min);
    let wanted = if small < DEFAULT_MAX_HEAP {
        small
    } else {
        base.percent_share(percentages.max).max(DEFAULT_MAX_HEAP)
    };
    let cap = options
        .size_value("ErgoHeapSizeLimit")
        .filter(|cap| *cap > Bytes::default());
    let wanted = cap.map_or(wanted, |cap| wanted.min(cap));
    let initial = options
        .size_value("InitialHeapSize")
        .or(options.size_value("MinHeapSize"));
    wanted.max(initial.unwrap_or_default())
}

/// How much address space compressed oops lose to alignment: a null page of the largest
/// alignment the heap could need.
///
/// Source: arguments.cpp, `max_heap_for_compressed_oops`; measured for G1: 32736m keeps oops,
/// computed heaps are clamped to 30688 MiB.
fn oops_alignment(jdk: JdkRelease, collector: CollectorKind, options: &JvmOptionSet) -> Bytes {
    match collector {
        CollectorKind::G1 if jdk.at_least(18) && options.is_set("G1HeapRegionSize") => {
            Bytes::from_mib(512)
        }
        CollectorKind::G1 | CollectorKind::Shenandoah => Bytes::from_mib(32),
        _ => CARD_ALIGNMENT,
    }
}

fn initial_and_min(
    base: Bytes,
    max: Bytes,
    percentages: &RamPercentages,
    options: &JvmOptionSet,
) -> (Bytes, Bytes) {
    let zero_is_unset = |size: Option<Bytes>| size.filter(|size| *size > Bytes::default());
    let new = options.size_value("NewSize").unwrap_or(DEFAULT_NEW_SIZE);
    let old = options.size_value("OldSize").unwrap_or(DEFAULT_OLD_SIZE);
    let smallest = new.saturating_add(old).min(max);
    let min_set = zero_is_unset(options.size_value("MinHeapSize"));
    let initial = zero_is_unset(options.size_value("InitialHeapSize")).unwrap_or_else(|| {
        let wanted = base.percent_share(percentages.initial);
        wanted
            .max(smallest)
            .max(min_set.unwrap_or_default())
            .min(max)
    });
    (initial, min_set.unwrap_or(smallest.min(initial)))
}

/// `G1HeapRegionSize`: about 2048 regions, a power of two from 1 to 32 MiB.
///
/// Source: heapRegion.cpp, `HeapRegion::setup_heap_region_size`. Since 16 (JDK-8241670) only the
/// largest heap counts and the size is rounded up; before, the mean of initial and largest heap,
/// rounded down.
fn g1_region(
    jdk: JdkRelease,
    collector: CollectorKind,
    max: Bytes,
    initial: Bytes,
    options: &JvmOptionSet,
) -> Bytes {
    if collector != CollectorKind::G1 {
        return Bytes::default();
    }
    let mib = Bytes::from_mib;
    let size = match options
        .size_value("G1HeapRegionSize")
        .filter(|s| *s > Bytes::default())
    {
        Some(set) => set,
        None if jdk.at_least(16) => max.mul_ratio(1, 2048).clamp(mib(1), mib(32)),
        None => {
            let mean = Bytes::from_bytes(max.saturating_add(initial).as_bytes() / 2);
            mean.mul_ratio(1, 2048).clamp(mib(1), mib(32))
        }
    };
    let largest = if jdk.at_least(18) { mib(512) } else { mib(32) };
    let size = size.clamp(mib(1), largest);
    if jdk.at_least(16) {
        Bytes::from_bytes(size.as_bytes().next_power_of_two())
    } else {
        size.power_of_two_below()
    }
}

/// Shenandoah's region: about 2048 regions, a power of two from 256 KiB to 32 MiB, rounded down.
///
/// Source: shenandoahHeapRegion.cpp, `setup_sizes`; agrees with the recorded grid.
fn shenandoah_region(max: Bytes) -> Bytes {
    let size = max.mul_ratio(1, 2048);
    size.clamp(Bytes::from_kib(256), Bytes::from_mib(32))
        .power_of_two_below()
}

fn alignment(collector: CollectorKind, max: Bytes, g1_region: Bytes) -> Bytes {
    match collector {
        CollectorKind::G1 => CARD_ALIGNMENT.max(g1_region),
        CollectorKind::Shenandoah => shenandoah_region(max),
        CollectorKind::Epsilon => Bytes::from_kib(4),
        _ => CARD_ALIGNMENT,
    }
}

fn align(
    max: Bytes,
    initial: Bytes,
    min: Bytes,
    alignment: Bytes,
    options: &JvmOptionSet,
) -> (Bytes, Bytes, Bytes) {
    let max = max.round_up(alignment);
    let initial = initial.round_up(alignment);
    let min = min.round_up(alignment);
    // An explicit initial size raises the largest; a computed one gives way.
    if initial > max && options.is_set("InitialHeapSize") {
        (initial, initial, min)
    } else {
        let initial = initial.min(max);
        (max, initial, min.min(initial))
    }
}

fn refuse_impossible(
    collector: CollectorKind,
    (max, initial, min): (Bytes, Bytes, Bytes),
    options: &JvmOptionSet,
) -> Result<(), HotSpotRefusal> {
    let is_both_set = options.is_set("MaxHeapSize") && options.is_set("InitialHeapSize");
    if is_both_set && initial > max {
        return Err(HotSpotRefusal::InitialAboveMax { initial, max });
    }
    let min_is_set = options.is_set("MinHeapSize");
    if options.is_set("MaxHeapSize") && min_is_set && min > max {
        return Err(HotSpotRefusal::InitialAboveMax { initial: min, max });
    }
    let own =
        |(name, usual): (&'static str, u64)| (name, options.count_value(name).unwrap_or(usual));
    for [low, high] in ORDERED.map(|pair| pair.map(own)) {
        let counts = !low.0.starts_with("G1") || collector == CollectorKind::G1;
        if counts && low.1 > high.1 {
            return Err(HotSpotRefusal::WrongOrder { low, high });
        }
    }
    // Shenandoah wants ten regions of 256 KiB (17.0.15 and 25.0.3).
    let least = match collector {
        CollectorKind::Shenandoah => Bytes::from_kib(2560),
        _ => Bytes::from_mib(2),
    };
    for (size, bound) in [(max, least), (initial, Bytes::from_mib(1))] {
        if size < bound {
            return Err(HotSpotRefusal::HeapTooSmall { size, least });
        }
    }
    Ok(())
}

/// Whether ZGC is generational: an option in 21 and 22 (JEP 439), the default in 23 (JEP 474),
/// the only mode from 24 on (JEP 490).
pub fn has_generational_z(jdk: JdkRelease, options: &JvmOptionSet) -> bool {
    match options.switch_value("ZGenerational") {
        _ if jdk.at_least(24) => true,
        Some(choice) => jdk.at_least(21) && choice,
        None => jdk.at_least(23),
    }
}
