//! The heap: what is left.

use super::{RESERVE_PERCENT, Region, RegionInputs, fixed_regions, gc_native, sum_sizes};
use crate::Bytes;

/// The least heap a small service starts with. Below it the answer is "does not fit".
pub const LEAST: Bytes = Bytes::from_mib(16);

/// A whole budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The memory planned for: the limit.
    pub limit: Bytes,
    /// Kept free.
    pub reserve: Bytes,
    /// All regions but heap and the collector's share of it.
    pub fixed: Vec<Region>,
    /// The largest heap that fits, a multiple of 1 MiB; zero when nothing is left.
    pub heap: Bytes,
    /// The collector's memory for each byte of heap.
    pub gc_share: f64,
}

impl Budget {
    /// The collector's part that grows with a heap of this size.
    pub fn gc_for(&self, heap: Bytes) -> Bytes {
        heap.percent_share(self.gc_share * 100.0)
    }

    /// Everything planned, with a heap of this size; without the reserve.
    pub fn total_bytes(&self, heap: Bytes) -> Bytes {
        sum_sizes(&self.fixed)
            .saturating_add(heap)
            .saturating_add(self.gc_for(heap))
    }

    /// The smallest limit that this budget fits into with a heap of this size.
    pub fn minimum_limit(&self, heap: Bytes) -> Bytes {
        let total = self.total_bytes(heap).as_bytes() as f64;
        let limit = total / (1.0 - RESERVE_PERCENT / 100.0);
        Bytes::from_bytes(limit as u64).round_up(Bytes::from_mib(1))
    }
}

/// Plans a limit for HotSpot.
pub fn plan_limit(limit: Bytes, situation: &RegionInputs<'_>) -> Budget {
    let cost = gc_native::collector_cost(situation.jdk, situation.collector, situation.gc_workers);
    left_by(limit, fixed_regions(situation), cost.share)
}

/// What regions leave of a limit: `heap = (limit - reserve - sum of fixed) / (1 + share)`.
pub fn left_by(limit: Bytes, fixed: Vec<Region>, gc_share: f64) -> Budget {
    let reserve = limit.percent_share(RESERVE_PERCENT);
    let rest = limit
        .saturating_sub(reserve)
        .saturating_sub(sum_sizes(&fixed));
    let heap = Bytes::from_bytes((rest.as_bytes() as f64 / (1.0 + gc_share)) as u64);
    Budget {
        limit,
        reserve,
        fixed,
        heap: heap.round_down(Bytes::from_mib(1)),
        gc_share,
    }
}
