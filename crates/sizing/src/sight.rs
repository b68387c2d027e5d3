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
use crate::jdk::{JavaVersion, JdkRelease, Vm};
use crate::limits::{
    ContainerLimits, ControllerBinding, FileSource, Hierarchy, bindings_of_first_mounts,
    parse_cpu_max, parse_limit,
};
use crate::options::JvmOptionSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerceivedMachine {
    pub memory: Bytes,
    pub cpus: u32,
    pub blindness: Vec<String>,
}

enum CgroupSource {
    V1,
    V2,
    Nothing(String),
}

pub fn predict(
    jdk: JdkRelease,
    files: &impl FileSource,
    limits: &ContainerLimits,
    options: &JvmOptionSet,
) -> PerceivedMachine {
    let host = PerceivedMachine {
        memory: limits.host.memory,
        cpus: limits.host.affinity.max(1),
        blindness: Vec::new(),
    };
    let hierarchy = match choose_cgroup_source(jdk, files, options) {
        CgroupSource::V1 => Hierarchy::V1,
        CgroupSource::V2 => Hierarchy::V2,
        CgroupSource::Nothing(reason) => {
            let blindness = vec![reason];
            return PerceivedMachine { blindness, ..host };
        }
    };
    let read = |path: &str| files.read(path).ok();
    let mountinfo = read("/proc/self/mountinfo").unwrap_or_default();
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let binding = |controller: &str| {
        let mut found = bindings_of_first_mounts(controller, &mountinfo, &own).into_iter();
        found.find(|binding| binding.hierarchy == hierarchy)
    };
    let view = CgroupView { jdk, files };
    let memory = binding("memory").and_then(|binding| view.memory_limit(&binding));
    let cpus = binding("cpu").filter(|binding| !view.is_covered(binding));
    let cpus = cpus.and_then(|binding| view.processor_limit(&binding));
    let mut sight = PerceivedMachine {
        memory: memory.map_or(host.memory, |limit| limit.min(host.memory)),
        cpus: cpus.map_or(host.cpus, |count| count.min(host.cpus)).max(1),
        blindness: Vec::new(),
    };
    sight.blindness = differences(jdk, &sight, limits);
    sight
}

/// Why this JVM reads no cgroup at all, if it does not: it then takes the machine for its own,
/// whatever the limits are.
pub fn gives_up(
    jdk: JdkRelease,
    files: &impl FileSource,
    options: &JvmOptionSet,
) -> Option<String> {
    match choose_cgroup_source(jdk, files, options) {
        CgroupSource::Nothing(reason) => Some(reason),
        CgroupSource::V1 | CgroupSource::V2 => None,
    }
}

fn differences(jdk: JdkRelease, sight: &PerceivedMachine, limits: &ContainerLimits) -> Vec<String> {
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

pub fn without_container_support(jdk: JdkRelease, options: &JvmOptionSet) -> Option<String> {
    if options.switch_value("UseContainerSupport") == Some(false) {
        return Some("-XX:-UseContainerSupport switches container support off".to_owned());
    }
    // A bare 8 is taken as current; 9 never had it.
    let is_bare = jdk.version == JavaVersion::from_feature(8);
    let is_too_old = jdk.vm == Vm::HotSpot && !jdk.has_fix(&[(8, 191)], 10) && !is_bare;
    is_too_old.then(|| format!("{jdk} has no container support"))
}

/// Nodes on which this JVM would not see the limits of its container, though it has container support;
/// a sentence each.
pub fn blind_places(jdk: JdkRelease, options: &JvmOptionSet) -> Vec<String> {
    if jdk.vm != Vm::HotSpot || without_container_support(jdk, options).is_some() {
        return Vec::new();
    }
    let mut places = Vec::new();
    if !has_v2(jdk) {
        places.push(format!(
            "on a node with cgroup v2 {jdk} does not see the limits: it takes the whole node (8u372, 11.0.16 and 15 and later do)"
        ));
    }
    if counts_shares(jdk) {
        places.push(format!(
            "{jdk} counts CPU shares: without a CPU limit a CPU request of 500m makes it 1 processor"
        ));
    }
    places
}

/// Whether CPU shares count as processors, 1024 each: before JDK-8281181. A bare version is taken
/// as current.
pub fn counts_shares(jdk: JdkRelease) -> bool {
    let is_bare = jdk.version.update == 0 && matches!(jdk.version.feature, 11 | 17);
    !is_bare && !jdk.has_fix(&[(11, 17), (17, 5), (18, 2)], 19)
}

fn choose_cgroup_source(
    jdk: JdkRelease,
    files: &impl FileSource,
    options: &JvmOptionSet,
) -> CgroupSource {
    if let Some(reason) = without_container_support(jdk, options) {
        return CgroupSource::Nothing(reason);
    }
    let mountinfo = files.read("/proc/self/mountinfo").unwrap_or_default();
    let is_unified = crate::limits::parse_mounts(&mountinfo)
        .iter()
        .any(|m| m.hierarchy == Hierarchy::V2 && m.point == "/sys/fs/cgroup");
    if jdk.at_least(25) {
        // Since 25 the file system at /sys/fs/cgroup decides.
        return if is_unified {
            CgroupSource::V2
        } else {
            CgroupSource::V1
        };
    }
    let Ok(controllers) = files.read("/proc/cgroups") else {
        return CgroupSource::Nothing(format!(
            "{jdk} needs /proc/cgroups, which could not be read"
        ));
    };
    match required_controllers(&controllers) {
        Err(missing) => CgroupSource::Nothing(format!(
            "{jdk} gives up because /proc/cgroups lists no enabled `{missing}` (as on many kernels from 6.12 on)"
        )),
        Ok(true) if !has_v2(jdk) => CgroupSource::Nothing(format!("{jdk} cannot read cgroup v2")),
        Ok(true) => CgroupSource::V2,
        Ok(false) => CgroupSource::V1,
    }
}

/// cgroup v2 support: 15, backported to 11.0.16 and 8u372. A bare version is taken as current.
fn has_v2(jdk: JdkRelease) -> bool {
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

struct CgroupView<'a, F> {
    jdk: JdkRelease,
    files: &'a F,
}

impl<F: FileSource> CgroupView<'_, F> {
    fn directories<'p>(&self, binding: &'p ControllerBinding) -> &'p [String] {
        let count = if self.jdk.at_least(25) {
            binding.directories.len()
        } else {
            1
        };
        &binding.directories[..count]
    }

    /// Whether another mount hides the own group: it has no files where the JVM looks. Measured on
    /// 17 and 25: the quota is then not seen, although 25 finds the memory limit of an ancestor.
    fn is_covered(&self, binding: &ControllerBinding) -> bool {
        let own = &binding.directories[0];
        let name = match binding.hierarchy {
            Hierarchy::V1 => "cpu.cfs_quota_us",
            Hierarchy::V2 => "cpu.max",
        };
        let is_root = binding.directories.len() == 1;
        !is_root && self.files.read(&format!("{own}/{name}")).is_err()
    }

    fn read_limit(&self, path: &str) -> Option<u64> {
        parse_limit(&self.files.read(path).ok()?).ok()?
    }

    fn memory_limit(&self, binding: &ControllerBinding) -> Option<Bytes> {
        let name = match binding.hierarchy {
            Hierarchy::V1 => "memory.limit_in_bytes",
            Hierarchy::V2 => "memory.max",
        };
        let paths = self
            .directories(binding)
            .iter()
            .map(|d| format!("{d}/{name}"));
        let limit = paths.filter_map(|path| self.read_limit(&path)).min();
        let limit = limit.or_else(|| self.hierarchical_limit(binding));
        limit.filter(|limit| *limit > 0).map(Bytes::from_bytes)
    }

    /// v1: an unlimited own group still has its ancestors' limit in memory.stat.
    fn hierarchical_limit(&self, binding: &ControllerBinding) -> Option<u64> {
        let is_v1 = binding.hierarchy == Hierarchy::V1;
        let path = format!("{}/memory.stat", binding.directories[0]);
        let text = self.files.read(&path).ok().filter(|_| is_v1)?;
        let value = text
            .lines()
            .find_map(|l| l.strip_prefix("hierarchical_memory_limit "));
        parse_limit(value?).ok()?
    }

    fn processor_limit(&self, binding: &ControllerBinding) -> Option<u32> {
        let quotas = self
            .directories(binding)
            .iter()
            .filter_map(|d| self.quota(binding, d));
        quotas.min().or_else(|| self.by_shares(binding))
    }

    fn quota(&self, binding: &ControllerBinding, directory: &str) -> Option<u32> {
        match binding.hierarchy {
            Hierarchy::V2 => {
                let text = self.files.read(&format!("{directory}/cpu.max")).ok()?;
                parse_cpu_max(&text)
                    .ok()?
                    .map(|quota| quota.whole_processors())
            }
            Hierarchy::V1 => {
                let quota = self.read_limit(&format!("{directory}/cpu.cfs_quota_us"))?;
                let period = self.read_limit(&format!("{directory}/cpu.cfs_period_us"))?;
                let count = quota.checked_div(period).map(|_| quota.div_ceil(period))?;
                u32::try_from(count.max(1)).ok()
            }
        }
    }

    fn by_shares(&self, binding: &ControllerBinding) -> Option<u32> {
        if !counts_shares(self.jdk) {
            return None;
        }
        let shares = match binding.hierarchy {
            Hierarchy::V1 => self.read_limit(&format!("{}/cpu.shares", binding.directories[0]))?,
            Hierarchy::V2 => {
                let weight = self.read_limit(&format!("{}/cpu.weight", binding.directories[0]))?;
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
