//! Where a JVM's memory goes: one file a region, and the sum that leaves the heap.
//!
//! Owns the default constants, each with its origin, and the formula
//! `heap = (limit - reserve - sum of fixed regions) / (1 + collector's share of the heap)`.
//! A measured [`AppProfile`] replaces a constant; a user's option replaces both. Sizes are resident
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
pub mod threads;

use std::fmt;

use crate::Bytes;
use crate::hotspot::{CollectorKind, MachineSize, threads as threads_of};
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;
use crate::profile::AppProfile;

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeProvenance {
    /// A constant of this crate, with its origin in the source.
    Default,
    /// From a formula over limits and other values.
    Calculated,
    /// Measured by loadline: from the profile.
    Measured,
    /// Set by the user.
    User,
}

impl fmt::Display for SizeProvenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::Calculated => "calculated",
            Self::Measured => "measured",
            Self::User => "user",
        })
    }
}

/// One region's budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its name: metaspace, code cache, thread stacks, ...
    pub name: &'static str,
    /// Resident memory planned for it.
    pub size: Bytes,
    /// Where the size came from.
    pub provenance: SizeProvenance,
    /// How it was reached, in plain words.
    pub how: String,
}

/// What the regions depend on.
#[derive(Debug, Clone, Copy)]
pub struct RegionInputs<'a> {
    /// The JVM.
    pub jdk: JdkRelease,
    /// The collector that will run.
    pub collector: CollectorKind,
    /// Its parallel workers.
    pub gc_workers: u32,
    /// Whether C2 is off.
    pub is_c1_only: bool,
    /// Compiler threads.
    pub compiler_threads: u32,
    /// What was measured.
    pub profile: &'a AppProfile,
    /// What the user set.
    pub options: &'a JvmOptionSet,
}

impl<'a> RegionInputs<'a> {
    /// Of a JVM in a container of this size, with so many workers of its collector unless the options
    /// say otherwise.
    pub fn for_container(
        jdk: JdkRelease,
        (machine, collector, workers): (MachineSize, CollectorKind, u32),
        options: &'a JvmOptionSet,
        profile: &'a AppProfile,
    ) -> Self {
        let set = options.count_value("ParallelGCThreads");
        let level = options.count_value("TieredStopAtLevel");
        let compilers = threads_of::choose_compilers(jdk, machine, options);
        Self {
            jdk,
            collector,
            gc_workers: set
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(match collector {
                    CollectorKind::Serial => 0,
                    _ => workers,
                }),
            is_c1_only: level.is_some_and(|level| level < 4),
            compiler_threads: compilers.map_or(2, |compilers| compilers.count),
            profile,
            options,
        }
    }
}

/// The share of the limit kept free: page cache for jars, page tables, short peaks.
///
/// Origin: a choice; DESIGN's margin of 8 % is for replicas, half of it here, because every region
/// already has a margin. Too small: OOM kills at peaks; too large: wasted heap.
pub const RESERVE_PERCENT: f64 = 4.0;

/// The fixed regions (all but heap and the collector's share of it), in the order of reports.
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

/// The sum of regions.
pub fn sum_sizes(regions: &[Region]) -> Bytes {
    let sizes = regions.iter().map(|region| region.size);
    sizes.fold(Bytes::default(), Bytes::saturating_add)
}

/// A measured value, or the default with its explanation.
pub(crate) fn measured_or(
    name: &'static str,
    measured: Option<Bytes>,
    default: Bytes,
    how: impl Into<String>,
) -> Region {
    match measured {
        Some(size) => Region {
            name,
            size,
            provenance: SizeProvenance::Measured,
            how: "from the profile".to_owned(),
        },
        None => Region {
            name,
            size: default,
            provenance: SizeProvenance::Default,
            how: how.into(),
        },
    }
}
