//! The young generation: `NewSize`, `MaxNewSize`, `OldSize`.
//!
//! Source: genArguments.cpp (Serial, Parallel) and g1YoungGenSizer.cpp (G1). ZGC and Shenandoah
//! leave the flags at their defaults.

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

pub fn size_young(
    jdk: JdkRelease,
    collector: CollectorKind,
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
        CollectorKind::Z | CollectorKind::Shenandoah => untouched,
        CollectorKind::G1 => g1(heap, options, untouched),
        CollectorKind::Serial => generations(heap, options, Bytes::from_kib(64), old.is_some()),
        CollectorKind::Parallel => generations(heap, options, Bytes::from_kib(512), old.is_some()),
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
    let new = match is_new_set && new >= heap.initial {
        true => below(new, heap.initial),
        false => new,
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
