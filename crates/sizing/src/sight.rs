//! What a JVM believes about its container, which is not always the truth.
//!
//! Owns the model of HotSpot's container detection by version: which cgroup files it reads and when
//! it gives up. The launcher compares it with [`crate::limits`] and passes explicit values where
//! they differ. Never guesses in the JVM's favour: where a fix may or may not be backported, the
//! JVM counts as blind.
//!
//! Facts: cgroupSubsystem_linux.cpp and cgroupUtil_linux.cpp of 17 and 25; JDK-8346874, 8347129 and
//! 8349988 (kernels from 6.12 on list no cpuset and memory in /proc/cgroups); JDK-8281181 (shares).

use crate::Bytes;
use crate::jdk::{Jdk, Vm};
use crate::limits::{
    Binding, Files, Hierarchy, Limits, bindings_of_first_mounts, parse_cpu_max, parse_limit,
};
use crate::options::Options;

/// What the JVM takes for the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// What it takes for physical memory.
    pub memory: Bytes,
    /// What it takes for the number of processors.
    pub cpus: u32,
    /// Why it sees less than there is, in plain words; empty when it sees all.
    pub blindness: Vec<String>,
}

/// Which cgroup version the JVM decides to read.
enum Reads {
    V1,
    V2,
    Nothing(String),
}

/// Predicts what this JVM sees.
pub fn predict(jdk: Jdk, files: &impl Files, limits: &Limits, options: &Options) -> Sight {
    let host = Sight {
        memory: limits.host.memory,
        cpus: limits.host.affinity.max(1),
        blindness: Vec::new(),
    };
    let hierarchy = match reads(jdk, files, options) {
        Reads::V1 => Hierarchy::V1,
        Reads::V2 => Hierarchy::V2,
        Reads::Nothing(reason) => {
            let blindness = vec![reason];
            return Sight { blindness, ..host };
        }
    };
    let read = |path: &str| files.read(path).ok();
    let mountinfo = read("/proc/self/mountinfo").unwrap_or_default();
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let binding = |controller: &str| {
        let mut found = bindings_of_first_mounts(controller, &mountinfo, &own).into_iter();
        found.find(|binding| binding.hierarchy == hierarchy)
    };
    let view = View { jdk, files };
    let memory = binding("memory").and_then(|binding| view.memory(&binding));
    let cpus = binding("cpu").filter(|binding| !view.is_covered(binding));
    let cpus = cpus.and_then(|binding| view.processors(&binding));
    let mut sight = Sight {
        memory: memory.map_or(host.memory, |limit| limit.min(host.memory)),
        cpus: cpus.map_or(host.cpus, |count| count.min(host.cpus)).max(1),
        blindness: Vec::new(),
    };
    sight.blindness = differences(jdk, &sight, limits);
    sight
}

/// Why this JVM reads no cgroup at all, if it does not: it then takes the machine for its own,
/// whatever the limits are.
pub fn gives_up(jdk: Jdk, files: &impl Files, options: &Options) -> Option<String> {
    match reads(jdk, files, options) {
        Reads::Nothing(reason) => Some(reason),
        Reads::V1 | Reads::V2 => None,
    }
}

fn differences(jdk: Jdk, sight: &Sight, limits: &Limits) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(limit) = limits
        .memory
        .as_ref()
        .filter(|limit| limit.value < sight.memory)
    {
        reasons.push(format!("{jdk} does not see the memory limit {limit}"));
    }
    let truth = limits.true_processor_count();
    if truth != sight.cpus {
        reasons.push(format!(
            "{jdk} counts {} processors, there are {truth}",
            sight.cpus
        ));
    }
    reasons
}

/// Why a JVM takes no limit of a container for its own, wherever it runs; `None` where it does.
pub fn without_container_support(jdk: Jdk, options: &Options) -> Option<String> {
    if options.switch("UseContainerSupport") == Some(false) {
        return Some("-XX:-UseContainerSupport switches container support off".to_owned());
    }
    let is_too_old =
        jdk.vm == Vm::HotSpot && !jdk.has_fix(&[(8, 191)], 10) && jdk.version.update != 0;
    is_too_old.then(|| format!("{jdk} has no container support"))
}

/// Whether CPU shares count as processors, 1024 each: before JDK-8281181. A bare version is taken
/// as current.
pub fn counts_shares(jdk: Jdk) -> bool {
    let is_bare = jdk.version.update == 0 && matches!(jdk.version.feature, 11 | 17);
    !is_bare && !jdk.has_fix(&[(11, 17), (17, 5), (18, 2)], 19)
}

fn reads(jdk: Jdk, files: &impl Files, options: &Options) -> Reads {
    if let Some(reason) = without_container_support(jdk, options) {
        return Reads::Nothing(reason);
    }
    let mountinfo = files.read("/proc/self/mountinfo").unwrap_or_default();
    let is_unified = crate::limits::mounts(&mountinfo)
        .iter()
        .any(|m| m.hierarchy == Hierarchy::V2 && m.point == "/sys/fs/cgroup");
    if jdk.at_least(25) {
        // Since 25 the file system at /sys/fs/cgroup decides.
        return if is_unified { Reads::V2 } else { Reads::V1 };
    }
    let Ok(controllers) = files.read("/proc/cgroups") else {
        return Reads::Nothing(format!(
            "{jdk} needs /proc/cgroups, which could not be read"
        ));
    };
    match required_controllers(&controllers) {
        Err(missing) => Reads::Nothing(format!(
            "{jdk} gives up because /proc/cgroups lists no enabled `{missing}` (as on many kernels from 6.12 on)"
        )),
        Ok(true) if !has_v2(jdk) => Reads::Nothing(format!("{jdk} cannot read cgroup v2")),
        Ok(true) => Reads::V2,
        Ok(false) => Reads::V1,
    }
}

/// cgroup v2 support: 15, backported to 11.0.16 and 8u372. A bare version is taken as current.
fn has_v2(jdk: Jdk) -> bool {
    let is_bare = jdk.version.update == 0 && matches!(jdk.version.feature, 8 | 11);
    is_bare || jdk.has_fix(&[(8, 372), (11, 16)], 15)
}

/// Whether all required controllers are on v2 (hierarchy 0). The error is the missing one.
fn required_controllers(text: &str) -> Result<bool, &'static str> {
    let mut is_v2 = true;
    for name in ["cpu", "cpuacct", "cpuset", "memory"] {
        let mut rows = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.first() == Some(&name)).ok_or(name)?;
        if row.get(3) != Some(&"1") {
            return Err(name);
        }
        is_v2 &= row.get(1) == Some(&"0");
    }
    Ok(is_v2)
}

struct View<'a, F> {
    jdk: Jdk,
    files: &'a F,
}

impl<F: Files> View<'_, F> {
    /// The directories this JVM looks into: ancestors only since 25.
    fn directories<'p>(&self, binding: &'p Binding) -> &'p [String] {
        let count = if self.jdk.at_least(25) {
            binding.directories.len()
        } else {
            1
        };
        &binding.directories[..count]
    }

    /// Whether another mount hides the own group: it has no files where the JVM looks. Measured on
    /// 17 and 25: the quota is then not seen, although 25 finds the memory limit of an ancestor.
    fn is_covered(&self, binding: &Binding) -> bool {
        let own = &binding.directories[0];
        let name = match binding.hierarchy {
            Hierarchy::V1 => "cpu.cfs_quota_us",
            Hierarchy::V2 => "cpu.max",
        };
        let is_root = binding.directories.len() == 1;
        !is_root && self.files.read(&format!("{own}/{name}")).is_err()
    }

    fn limit(&self, path: &str) -> Option<u64> {
        parse_limit(&self.files.read(path).ok()?).ok()?
    }

    fn memory(&self, binding: &Binding) -> Option<Bytes> {
        let name = match binding.hierarchy {
            Hierarchy::V1 => "memory.limit_in_bytes",
            Hierarchy::V2 => "memory.max",
        };
        let paths = self
            .directories(binding)
            .iter()
            .map(|d| format!("{d}/{name}"));
        let limit = paths.filter_map(|path| self.limit(&path)).min();
        let limit = limit.or_else(|| self.hierarchical_limit(binding));
        limit.filter(|limit| *limit > 0).map(Bytes::from_bytes)
    }

    /// v1: an unlimited own group still has its ancestors' limit in memory.stat.
    fn hierarchical_limit(&self, binding: &Binding) -> Option<u64> {
        let is_v1 = binding.hierarchy == Hierarchy::V1;
        let path = format!("{}/memory.stat", binding.directories[0]);
        let text = self.files.read(&path).ok().filter(|_| is_v1)?;
        let value = text
            .lines()
            .find_map(|l| l.strip_prefix("hierarchical_memory_limit "));
        parse_limit(value?).ok()?
    }

    fn processors(&self, binding: &Binding) -> Option<u32> {
        let quotas = self
            .directories(binding)
            .iter()
            .filter_map(|d| self.quota(binding, d));
        quotas.min().or_else(|| self.by_shares(binding))
    }

    fn quota(&self, binding: &Binding, directory: &str) -> Option<u32> {
        match binding.hierarchy {
            Hierarchy::V2 => {
                let text = self.files.read(&format!("{directory}/cpu.max")).ok()?;
                parse_cpu_max(&text).ok()?.map(|quota| quota.processors())
            }
            Hierarchy::V1 => {
                let quota = self.limit(&format!("{directory}/cpu.cfs_quota_us"))?;
                let period = self.limit(&format!("{directory}/cpu.cfs_period_us"))?;
                let count = quota.checked_div(period).map(|_| quota.div_ceil(period))?;
                u32::try_from(count.max(1)).ok()
            }
        }
    }

    fn by_shares(&self, binding: &Binding) -> Option<u32> {
        if !counts_shares(self.jdk) {
            return None;
        }
        let shares = match binding.hierarchy {
            Hierarchy::V1 => self.limit(&format!("{}/cpu.shares", binding.directories[0]))?,
            Hierarchy::V2 => {
                let weight = self.limit(&format!("{}/cpu.weight", binding.directories[0]))?;
                if weight == 100 {
                    1024
                } else {
                    2 + weight * 262_142 / 9999
                }
            }
        };
        let count = u32::try_from(shares.div_ceil(1024)).ok()?;
        (shares != 1024).then_some(count.max(1))
    }
}
