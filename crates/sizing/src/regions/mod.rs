//! Where a JVM's memory goes: one file a region, and the sum that leaves the heap.
//!
//! Owns the default constants, each with its origin, and the formula
//! `heap = (limit - reserve - sum of fixed regions) / (1 + collector's share of the heap)`.
//! A measured [`crate::profile::AppProfile`] replaces a constant; a user's option replaces both. Sizes are resident
//! memory (touched), because that is what a limit counts, not reserved address space.

pub mod agents;
pub mod cds;
pub mod code_cache;
pub mod direct;
pub mod files;
pub mod gc_native;
pub mod heap;
pub mod jit;
pub mod malloc;
pub mod metaspace;
mod region;
pub mod threads;

use crate::Bytes;

pub(crate) use region::measured_or;
pub use region::{Region, RegionInputs, SizeProvenance};

/// The share of the limit kept free: page cache for jars, page tables, short peaks.
///
/// Origin: a choice; DESIGN's margin of 8 % is for replicas, half here, because every region
/// already has a margin. Too small: OOM kills at peaks; too large: wasted heap.
pub const RESERVE_PERCENT: f64 = 4.0;

/// The fixed regions (all but heap and the collector's share), in the order of reports.
pub fn fixed_regions(situation: &RegionInputs<'_>) -> Vec<Region> {
    vec![
        metaspace::plan_metaspace(situation),
        code_cache::plan_code_cache(situation),
        threads::plan_threads(situation),
        direct::plan_direct(situation),
        gc_native::fixed_region(situation),
        jit::plan_jit(situation),
        cds::plan_cds(situation),
        files::plan_files(situation),
        agents::plan_agents(situation.profile, situation.options),
        malloc::plan_malloc(situation),
    ]
}

pub fn sum_sizes(regions: &[Region]) -> Bytes {
    let sizes = regions.iter().map(|region| region.size);
    sizes.fold(Bytes::default(), Bytes::saturating_add)
}
