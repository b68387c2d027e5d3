//! The heap: what the other regions leave, and whether a given heap fits into it.

use std::fmt;

use super::{
    RESERVE_PERCENT, Region, RegionInputs, SizeProvenance, fixed_regions, gc_native, sum_sizes,
};
use crate::Bytes;
use crate::hotspot::{self, MachineSize, threads};
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;
use crate::profile::AppProfile;

/// The least heap a small service starts with. Below it the answer is "does not fit".
pub const LEAST: Bytes = Bytes::from_mib(16);

/// The objection to a heap in which a JVM starts, but no service: often a unit is missing or wrong.
pub fn object_to_small(heap: Bytes) -> Option<String> {
    let why = || format!("a heap of {heap} is less than a small service needs ({LEAST})");
    (heap < LEAST).then(why)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapOverrun {
    pub heap: Bytes,
    pub rest: Bytes,
    pub limit: Bytes,
}

impl HeapOverrun {
    pub fn find_overrun(heap: Bytes, rest: Bytes, limit: Bytes) -> Option<Self> {
        let overrun = Self { heap, rest, limit };
        (overrun.total_need() > limit).then_some(overrun)
    }

    pub fn total_need(&self) -> Bytes {
        self.heap.saturating_add(self.rest)
    }

    /// `lower the heap to 69Mi (-Xmx69m) or raise the limit to 313Mi`
    pub fn suggest_change(&self) -> String {
        let mib = Bytes::from_mib(1);
        let fits = self.limit.saturating_sub(self.rest).round_down(mib);
        let limit = self.total_need().round_up(mib);
        if fits >= LEAST {
            format!(
                "lower the heap to {fits} (-Xmx{}) or raise the limit to {limit}",
                fits.to_jvm_size()
            )
        } else {
            format!(
                "raise the limit to {limit}; no heap fits into {}",
                self.limit.to_short()
            )
        }
    }
}

impl fmt::Display for HeapOverrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = Bytes::from_mib(1);
        let (rest, total) = (self.rest.round_up(mib), self.total_need().round_up(mib));
        write!(
            f,
            "the heap may take {} and everything else {rest}: {total} in a limit of {}",
            self.heap.to_short(),
            self.limit.to_short()
        )
    }
}

/// Checks that the heap these options allow, `rest` and files in memory fit into a container; without a
/// rest the regions of a typical service count. `None` if they fit, or if the options contradict each
/// other.
pub fn check_container(
    jdk: JdkRelease,
    machine: MachineSize,
    options: &JvmOptionSet,
    (rest, files): (Option<Bytes>, Bytes),
) -> Option<HeapOverrun> {
    // A collector that this JDK no longer has does not change what the heap may take.
    let collector = hotspot::collector::choose(jdk, machine, options);
    let collector = collector.unwrap_or(hotspot::CollectorKind::G1);
    let heap = hotspot::heap::size_heap(jdk, machine, collector, options)
        .ok()?
        .max;
    let typical = || {
        let profile = AppProfile::default();
        let workers = threads::parallel_workers(machine.cpus);
        let jvm = (machine, collector, workers);
        let situation = RegionInputs::for_container(jdk, jvm, options, &profile);
        plan_limit(machine.memory, &situation)
            .total_bytes(heap)
            .saturating_sub(heap)
    };
    let rest = rest.unwrap_or_else(typical).saturating_add(files);
    HeapOverrun::find_overrun(heap, rest, machine.memory)
}

#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    pub limit: Bytes,
    pub reserve: Bytes,
    /// All regions but heap and the collector's share.
    pub fixed: Vec<Region>,
    pub heap: Bytes,
    pub gc_share: f64,
}

impl Budget {
    pub fn gc_for(&self, heap: Bytes) -> Bytes {
        heap.percent_share(self.gc_share * 100.0)
    }

    pub fn total_bytes(&self, heap: Bytes) -> Bytes {
        sum_sizes(&self.fixed)
            .saturating_add(heap)
            .saturating_add(self.gc_for(heap))
    }

    pub fn minimum_limit(&self, heap: Bytes) -> Bytes {
        let total = self.total_bytes(heap).as_bytes() as f64;
        // Where nothing is kept free, the regions have room for it.
        let reserve = match self.reserve.as_bytes() {
            0 => 0.0,
            _ => RESERVE_PERCENT / 100.0,
        };
        let limit = total / (1.0 - reserve);
        Bytes::from_bytes(limit as u64).round_up(Bytes::from_mib(1))
    }
}

pub fn plan_limit(limit: Bytes, situation: &RegionInputs<'_>) -> Budget {
    if let Some(budget) = left_by_rest(limit, situation.profile) {
        return budget;
    }
    let cost = gc_native::collector_cost(situation.jdk, situation.collector, situation.gc_workers);
    left_by(limit, fixed_regions(situation), cost.share)
}

/// What a measured rest leaves of a limit; room for page cache and peaks is in it already.
pub fn left_by_rest(limit: Bytes, profile: &AppProfile) -> Option<Budget> {
    let rest = Region {
        name: "rest",
        size: profile.rest?,
        provenance: SizeProvenance::Measured,
        how: "everything outside the heap, from the profile".to_owned(),
    };
    let heap = limit.saturating_sub(rest.size);
    Some(Budget {
        limit,
        reserve: Bytes::default(),
        fixed: vec![rest],
        heap: heap.round_down(Bytes::from_mib(1)),
        gc_share: 0.0,
    })
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
