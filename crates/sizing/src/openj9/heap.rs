//! OpenJ9's heap: its default size, its initial size, its young generation and its regions.
//!
//! Source: the recorded rows; `computeDefaultMaxHeapForJava` of openj9 for the bound of 25 GiB, and
//! the documentation of `-XX:+UseContainerSupport`.

use super::options::OpenJ9Settings;
use super::{GcPolicy, OpenJ9Refusal};
use crate::Bytes;

const STEP: Bytes = Bytes::from_kib(64);
const YOUNG_STEP: Bytes = Bytes::from_kib(128);
const INITIAL: Bytes = Bytes::from_mib(8);
/// The old area of that heap: the remainder next to a young generation of a given size.
const INITIAL_OLD: Bytes = Bytes::from_mib(6);
const LEAST_OLD: Bytes = Bytes::from_mib(1);
/// The largest default heap: references keep their shift of 3.
const MOST: Bytes = Bytes::from_gib(25);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenJ9Heap {
    pub max: Bytes,
    pub initial: Bytes,
    /// The largest young generation (`-Xmnx`); `None` if the policy has none.
    pub max_new: Option<Bytes>,
    /// A region, of the policies that have them.
    pub region: Option<Bytes>,
}

/// OpenJ9's default largest heap: half below 1 GiB, all but 512 MiB up to 2 GiB, then three
/// quarters, at most 25 GiB.
pub fn default_max(limit: Bytes) -> Bytes {
    let half = limit.mul_ratio(1, 2);
    let all_but = limit.saturating_sub(Bytes::from_mib(512));
    let three_quarters = limit.mul_ratio(1, 4).as_bytes() * 3;
    let heap = half.max(all_but).min(Bytes::from_bytes(three_quarters));
    heap.min(MOST).round_down(STEP)
}

pub(super) fn size_openj9_heap(
    memory: Bytes,
    asked: &OpenJ9Settings,
) -> Result<OpenJ9Heap, OpenJ9Refusal> {
    let share = |percent: f64| memory.percent_share(percent).round_down(STEP);
    let given = asked.max_heap.or(asked.max_percent.map(share));
    let initial = asked.initial_heap.or(asked.initial_percent.map(share));
    let max = given.unwrap_or_else(|| {
        // An explicit initial heap raises a default largest one.
        default_max(memory).max(initial.unwrap_or_default())
    });
    if let Some(initial) = initial.filter(|initial| *initial > max) {
        return Err(OpenJ9Refusal::InitialAboveMax { initial, max });
    }
    let region = region(asked.policy, max);
    let step = region.unwrap_or(STEP).max(STEP);
    let max = max.round_down(STEP).round_down(step);
    let young = asked.young.filter(|_| asked.policy == GcPolicy::Gencon);
    let young = young.map(|young| young.round_down(YOUNG_STEP));
    if let Some(young) = young.filter(|young| young.saturating_add(LEAST_OLD) > max) {
        return Err(OpenJ9Refusal::NoRoomForOld { young, max });
    }
    let initial = match (asked.policy, initial) {
        (GcPolicy::Metronome, _) => max,
        _ if asked.is_tuned_for_throughput && initial.is_none() => max,
        (_, Some(initial)) => initial.round_down(step),
        (_, None) => young
            .map_or(INITIAL, |young| young.saturating_add(INITIAL_OLD))
            .min(max),
    };
    Ok(OpenJ9Heap {
        max,
        initial,
        max_new: (asked.policy == GcPolicy::Gencon)
            .then(|| young.unwrap_or(max.mul_ratio(1, 4).round_down(YOUNG_STEP))),
        region,
    })
}

/// Regions: half a mebibyte while that gives at most 2048, then a 1024th of the heap, rounded down
/// to a power of two; metronome's are fixed.
fn region(policy: GcPolicy, max: Bytes) -> Option<Bytes> {
    let least = Bytes::from_kib(512);
    match policy {
        GcPolicy::Balanced if max <= least.mul_ratio(2048, 1) => Some(least),
        GcPolicy::Balanced => Some(max.mul_ratio(1, 1024).power_of_two_below()),
        GcPolicy::Metronome => Some(Bytes::from_kib(64)),
        _ => None,
    }
}
