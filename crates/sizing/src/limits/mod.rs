//! What the container may use: memory, CPU, processes; every value with the file it came from.
//!
//! Owns the reading of cgroup v1, v2 and hybrid trees, with or without a cgroup namespace, for the
//! own group and all its ancestors. Text in, values out: the files come from a [`FileSource`] that the
//! caller implements. A file that is missing or unreadable is skipped with a note, never an error.
//!
//! Facts: kernel documentation, admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst and
//! scheduler/sched-bwc.rst; proc(5); the JVM's own reading is in [`crate::sight`].

mod binding;
mod discover;
mod value;

use std::fmt;

use crate::{Bytes, Cpus};

pub use binding::{
    CgroupMembership, ControllerBinding, Hierarchy, HierarchyMount, bindings,
    bindings_of_first_mounts, cgroup_memberships, parse_mounts,
};
pub use discover::discover;
pub use value::{parse_cpu_max, parse_limit};

pub trait FileSource {
    fn read(&self, path: &str) -> Result<String, UnreadableFile>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableFile {
    Missing,
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcedValue<T> {
    pub value: T,
    pub from: String,
}

impl<T> SourcedValue<T> {
    pub fn new(value: T, from: impl Into<String>) -> Self {
        Self {
            value,
            from: from.into(),
        }
    }
}

impl<T: fmt::Display> fmt::Display for SourcedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.value, self.from)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// CPU time a period, in microseconds.
    pub quota_us: u64,
    /// Length of the period, in microseconds; never zero.
    pub period_us: u64,
}

impl Quota {
    /// As an amount of CPU, rounded up to a millicore; saturates.
    pub fn to_cpus(self) -> Cpus {
        let millis = (u128::from(self.quota_us) * 1000).div_ceil(u128::from(self.period_us.max(1)));
        Cpus::from_millis(u32::try_from(millis).unwrap_or(u32::MAX))
    }

    /// Whole processors, rounded up as in HotSpot. At least 1.
    pub fn whole_processors(self) -> u32 {
        let whole = self.quota_us.div_ceil(self.period_us.max(1));
        u32::try_from(whole).unwrap_or(u32::MAX).max(1)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} us", self.quota_us, self.period_us)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCallFacts {
    pub memory: Bytes,
    pub affinity: u32,
    pub address_space: Option<Bytes>,
    pub processes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerLimits {
    pub host: SystemCallFacts,
    pub memory: Option<SourcedValue<Bytes>>,
    pub memory_high: Option<SourcedValue<Bytes>>,
    /// The tightest swap limit: on v2 swap alone, on v1 memory and swap together.
    pub swap: Option<SourcedValue<Bytes>>,
    pub quota: Option<SourcedValue<Quota>>,
    /// cpu.shares (v1) of the own group: a relative weight.
    pub shares: Option<SourcedValue<u64>>,
    /// cpu.weight (v2) of the own group: a relative weight.
    pub weight: Option<SourcedValue<u64>>,
    pub cpuset: Option<SourcedValue<u32>>,
    pub pids: Option<SourcedValue<u64>>,
    pub notes: Vec<String>,
}

impl ContainerLimits {
    /// The memory the container may use: the limit, else the host's memory.
    ///
    /// `memory.high` counts too: at it the kernel reclaims and stalls, so a heap planned above it
    /// would never be usable.
    pub fn usable_memory(&self) -> SourcedValue<Bytes> {
        let host = SourcedValue::new(self.host.memory, "host memory");
        let found = [&self.memory, &self.memory_high]
            .into_iter()
            .flatten()
            .cloned();
        found.fold(host, |tightest, next| {
            if next.value < tightest.value {
                next
            } else {
                tightest
            }
        })
    }

    pub fn is_memory_limited(&self) -> bool {
        self.usable_memory().value < self.host.memory
    }

    pub fn usable_processors(&self) -> SourcedValue<u32> {
        let affinity = SourcedValue::new(self.host.affinity.max(1), "sched_getaffinity");
        match &self.cpuset {
            Some(cpuset) if cpuset.value < affinity.value => cpuset.clone(),
            _ => affinity,
        }
    }

    pub fn usable_cpus(&self) -> SourcedValue<Cpus> {
        let processors = self.usable_processors();
        let whole = SourcedValue::new(Cpus::from_whole(processors.value), processors.from);
        match &self.quota {
            Some(quota) if quota.value.to_cpus() < whole.value => {
                SourcedValue::new(quota.value.to_cpus(), quota.from.clone())
            }
            _ => whole,
        }
    }

    pub fn true_processor_count(&self) -> u32 {
        let processors = self.usable_processors().value;
        let quota = self
            .quota
            .as_ref()
            .map(|quota| quota.value.whole_processors());
        quota
            .map_or(processors, |quota| quota.min(processors))
            .max(1)
    }

    /// The amount of CPU that Kubernetes requested, from shares or weight; a guess.
    ///
    /// Source: Kubernetes kubelet, `MilliCPUToShares`: shares = millicores * 1024 / 1000, at least
    /// 2; runc before 1.3 converts to weight = 1 + (shares - 2) * 9999 / 262142. The defaults 1024
    /// and 100 mean "nothing was requested".
    pub fn requested_cpus(&self) -> Option<SourcedValue<Cpus>> {
        let from_shares = |shares: u64| {
            let millis = (shares * 1000).div_ceil(1024);
            Cpus::from_millis(u32::try_from(millis).unwrap_or(u32::MAX))
        };
        if let Some(found) = self.shares.as_ref().filter(|found| found.value != 1024) {
            return Some(SourcedValue::new(
                from_shares(found.value),
                found.from.clone(),
            ));
        }
        let found = self.weight.as_ref().filter(|found| found.value != 100)?;
        let shares = 2 + found.value.saturating_sub(1) * 262_142 / 9999;
        Some(SourcedValue::new(from_shares(shares), found.from.clone()))
    }
}
