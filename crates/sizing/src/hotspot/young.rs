//! The young generation: `NewSize`, `MaxNewSize`, `OldSize`.
//!
//! Source: genArguments.cpp (Serial, Parallel), g1YoungGenSizer.cpp (G1) and 11's cmsArguments.cpp.
//! ZGC and Shenandoah leave the flags at their defaults.

use super::heap::{DEFAULT_NEW_SIZE, DEFAULT_OLD_SIZE};
use super::{CollectorKind, HotSpotHeap};
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YoungGeneration {
    pub initial: Bytes,
    /// `MaxNewSize`; `None` is the flag's default, the largest size there is.
    pub max: Option<Bytes>,
    pub old: Option<Bytes>,
}

const SMALL_GRAIN: Bytes = Bytes::from_kib(64);

/// `CMSYoungGenPerWorker`: 64 MiB scaled by 1.3. Flag lines of recorded logs of JDK 8 with 2, 4 and 8
/// workers agree up to the rounding.
const CMS_PER_WORKER: u64 = 87_241_520;

pub fn size_young(
    jdk: JdkRelease,
    (collector, workers): (CollectorKind, u32),
    heap: &HotSpotHeap,
    options: &JvmOptionSet,
) -> YoungGeneration {
    let old =
        (!jdk.at_least(25)).then(|| options.size_value("OldSize").unwrap_or(DEFAULT_OLD_SIZE));
    let untouched = YoungGeneration {
        initial: options.size_value("NewSize").unwrap_or(DEFAULT_NEW_SIZE),
        max: options.size_value("MaxNewSize"),
        old,
    };
    match collector {
        CollectorKind::Z | CollectorKind::Shenandoah | CollectorKind::Epsilon => untouched,
        CollectorKind::Cms => cms(heap, options, workers),
        CollectorKind::G1 => g1(heap, options, untouched),
        CollectorKind::Serial => generations(heap, options, SMALL_GRAIN, old.is_some()),
        CollectorKind::Parallel => generations(heap, options, Bytes::from_kib(512), old.is_some()),
    }
}

/// As Serial, with at most [`CMS_PER_WORKER`] unless the size is set.
fn cms(heap: &HotSpotHeap, options: &JvmOptionSet, workers: u32) -> YoungGeneration {
    let young = generations(heap, options, SMALL_GRAIN, true);
    let is_set = ["NewSize", "MaxNewSize", "NewRatio"]
        .iter()
        .any(|name| options.is_set(name));
    let most =
        Bytes::from_bytes(CMS_PER_WORKER * u64::from(workers.max(1))).round_down(SMALL_GRAIN);
    let most = if is_set { heap.max } else { most };
    YoungGeneration {
        initial: young.initial.min(most),
        max: young.max.map(|max| max.min(most)),
        ..young
    }
}

/// G1 may use 60 % of the heap for young regions, unless the size is set.
fn g1(heap: &HotSpotHeap, options: &JvmOptionSet, untouched: YoungGeneration) -> YoungGeneration {
    let most = heap.max.percent_share(60.0).round_down(heap.g1_region);
    let most = most.max(heap.g1_region);
    let by_ratio = options.count_value("NewRatio").map(|ratio| {
        let size = heap.max.mul_ratio(1, ratio + 1);
        size.round_down(heap.g1_region).max(heap.g1_region)
    });
    match (options.size_value("MaxNewSize"), by_ratio) {
        (Some(set), _) => YoungGeneration {
            initial: untouched.initial.min(set),
            max: Some(set),
            ..untouched
        },
        (None, Some(by_ratio)) if !options.is_set("NewSize") => YoungGeneration {
            max: Some(by_ratio),
            ..untouched
        },
        (None, _) => YoungGeneration {
            max: Some(most.max(options.size_value("NewSize").unwrap_or_default())),
            ..untouched
        },
    }
}

/// Serial and Parallel: contiguous generations, each a multiple of `grain`.
fn generations(
    heap: &HotSpotHeap,
    options: &JvmOptionSet,
    grain: Bytes,
    has_old_flag: bool,
) -> YoungGeneration {
    // Eden and two survivor spaces.
    let smallest = Bytes::from_bytes(3 * grain.as_bytes());
    let is_new_set = options.is_set("NewSize");
    let new = options.size_value("NewSize").unwrap_or(DEFAULT_NEW_SIZE);
    let below = |size: Bytes, whole: Bytes| size.min(whole.saturating_sub(grain));
    // A size that was set makes room for an old generation.
    let new = if is_new_set && new >= heap.initial {
        below(new, heap.initial)
    } else {
        new
    };
    let new = below(new, heap.max).round_down(grain).max(smallest);
    let max_set = options.size_value("MaxNewSize").map(|max| match max {
        max if max >= heap.max => heap.max.saturating_sub(grain),
        max => max.max(new).round_down(grain),
    });
    let new = max_set.map_or(new, |max| if max < new { max } else { new });
    let ratio = options
        .count_value("NewRatio")
        .filter(|r| *r > 0)
        .unwrap_or(2);
    let share = |whole: Bytes| whole.mul_ratio(1, ratio + 1).round_down(grain).max(grain);
    let max = max_set.unwrap_or_else(|| share(heap.max).max(new));
    let (initial, max) = if heap.max == heap.initial {
        let max = if is_new_set { new } else { max };
        (max, max)
    } else if is_new_set {
        (below(new, heap.initial).min(max), max)
    } else {
        (share(heap.initial).clamp(new.min(max), max), max)
    };
    YoungGeneration {
        initial,
        max: Some(max),
        old: has_old_flag.then(|| heap.initial.saturating_sub(initial)),
    }
}
