//! Walks the bindings of each controller and keeps the tightest value.

use super::value::quota_of;
use super::{
    ContainerLimits, ControllerBinding, FileSource, Hierarchy, Quota, SourcedValue,
    SystemCallFacts, UnreadableFile, bindings, parse_cpu_max, parse_limit,
};
use crate::{Bytes, CpuSet};

pub fn discover(files: &impl FileSource, host: SystemCallFacts) -> ContainerLimits {
    let mut notes = Vec::new();
    let mut read_proc = |path: &str| match files.read(path) {
        Ok(text) => text,
        Err(_) => {
            notes.push(format!(
                "{path} could not be read; no limit can be found through it"
            ));
            String::new()
        }
    };
    let mountinfo = read_proc("/proc/self/mountinfo");
    let own = read_proc("/proc/self/cgroup");
    let mut walk = LimitFinder {
        files,
        mountinfo,
        own,
        notes,
    };
    let memory = walk.tightest_value("memory", ["memory.limit_in_bytes", "memory.max"]);
    let memory_high = walk.tightest_value("memory", ["", "memory.high"]);
    let swap = walk.tightest_value("memory", ["memory.memsw.limit_in_bytes", "memory.swap.max"]);
    let pids = walk.tightest_value("pids", ["pids.max", "pids.max"]);
    let bytes =
        |found: SourcedValue<u64>| SourcedValue::new(Bytes::from_bytes(found.value), found.from);
    // The kernel never accepts 0 as a usable memory limit; a file with 0 has no limit.
    let bytes = |found: Option<SourcedValue<u64>>| found.filter(|f| f.value > 0).map(bytes);
    ContainerLimits {
        host,
        memory: bytes(memory),
        memory_high: bytes(memory_high),
        swap: swap.map(|found| SourcedValue::new(Bytes::from_bytes(found.value), found.from)),
        quota: walk.quota(),
        shares: walk.own_value("cpu.shares", Hierarchy::V1),
        weight: walk.own_value("cpu.weight", Hierarchy::V2),
        cpuset: walk.cpuset(),
        pids,
        notes: walk.notes,
    }
}

struct LimitFinder<'a, F> {
    files: &'a F,
    mountinfo: String,
    own: String,
    notes: Vec<String>,
}

impl<F: FileSource> LimitFinder<'_, F> {
    fn bindings(&self, controller: &str) -> Vec<ControllerBinding> {
        bindings(controller, &self.mountinfo, &self.own)
    }

    fn text_or_note(&mut self, path: &str) -> Option<String> {
        match self.files.read(path) {
            Ok(text) => Some(text),
            Err(UnreadableFile::Missing) => None,
            Err(UnreadableFile::Refused) => {
                self.notes
                    .push(format!("{path} could not be read; it was passed over"));
                None
            }
        }
    }

    fn value_or_note<T>(&mut self, path: &str, value: Result<Option<T>, String>) -> Option<T> {
        value.unwrap_or_else(|text| {
            self.notes.push(format!(
                "{path} says `{text}`, which is no limit; it was passed over"
            ));
            None
        })
    }

    /// The smallest number of the own group and its ancestors; file names for v1 and v2, an empty
    /// one where a version has no such file.
    fn tightest_value(&mut self, controller: &str, names: [&str; 2]) -> Option<SourcedValue<u64>> {
        let mut tightest: Option<SourcedValue<u64>> = None;
        for binding in self.bindings(controller) {
            let name = match binding.hierarchy {
                Hierarchy::V1 => names[0],
                Hierarchy::V2 => names[1],
            };
            for directory in binding.directories.iter().filter(|_| !name.is_empty()) {
                let path = format!("{directory}/{name}");
                let Some(text) = self.text_or_note(&path) else {
                    continue;
                };
                let Some(value) = self.value_or_note(&path, parse_limit(&text)) else {
                    continue;
                };
                if tightest.as_ref().is_none_or(|found| value < found.value) {
                    tightest = Some(SourcedValue::new(value, path));
                }
            }
            self.ancestors_by_stat(&binding, name, &mut tightest);
        }
        tightest
    }

    /// v1 in a container shows no ancestors; memory.stat still says what they allow.
    fn ancestors_by_stat(
        &mut self,
        binding: &ControllerBinding,
        name: &str,
        tightest: &mut Option<SourcedValue<u64>>,
    ) {
        if binding.hierarchy != Hierarchy::V1 || name != "memory.limit_in_bytes" {
            return;
        }
        let path = format!("{}/memory.stat", binding.directories[0]);
        let text = self.text_or_note(&path).unwrap_or_default();
        let value = text
            .lines()
            .find_map(|l| l.strip_prefix("hierarchical_memory_limit "));
        let Some(value) = value else { return };
        let Some(value) = self.value_or_note(&path, parse_limit(value)) else {
            return;
        };
        if tightest.as_ref().is_none_or(|found| value < found.value) {
            *tightest = Some(SourcedValue::new(value, path));
        }
    }

    fn quota(&mut self) -> Option<SourcedValue<Quota>> {
        let mut tightest: Option<SourcedValue<Quota>> = None;
        for binding in self.bindings("cpu") {
            for directory in &binding.directories {
                let found = match binding.hierarchy {
                    Hierarchy::V1 => self.quota_v1(directory),
                    Hierarchy::V2 => self.quota_v2(directory),
                };
                let Some(found) = found else { continue };
                let is_tighter =
                    |old: &SourcedValue<Quota>| found.value.to_cpus() < old.value.to_cpus();
                if tightest.as_ref().is_none_or(is_tighter) {
                    tightest = Some(found);
                }
            }
        }
        tightest
    }

    fn quota_v1(&mut self, directory: &str) -> Option<SourcedValue<Quota>> {
        let path = format!("{directory}/cpu.cfs_quota_us");
        let text = self.text_or_note(&path)?;
        let quota = self.value_or_note(&path, parse_limit(&text));
        let period_path = format!("{directory}/cpu.cfs_period_us");
        let text = self.text_or_note(&period_path)?;
        let period = self.value_or_note(&period_path, parse_limit(&text))?;
        quota_of(quota, period).map(|quota| SourcedValue::new(quota, path))
    }

    fn quota_v2(&mut self, directory: &str) -> Option<SourcedValue<Quota>> {
        let path = format!("{directory}/cpu.max");
        let text = self.text_or_note(&path)?;
        let quota = self.value_or_note(&path, parse_cpu_max(&text))?;
        Some(SourcedValue::new(quota, path))
    }

    fn own_value(&mut self, name: &str, hierarchy: Hierarchy) -> Option<SourcedValue<u64>> {
        let mut bindings = self.bindings("cpu").into_iter();
        let binding = bindings.find(|binding| binding.hierarchy == hierarchy)?;
        let path = format!("{}/{name}", binding.directories[0]);
        let text = self.text_or_note(&path)?;
        let value = self.value_or_note(&path, parse_limit(&text))?;
        Some(SourcedValue::new(value, path))
    }

    /// The effective cpuset already contains what ancestors allow.
    fn cpuset(&mut self) -> Option<SourcedValue<u32>> {
        for binding in self.bindings("cpuset") {
            let names: &[&str] = match binding.hierarchy {
                Hierarchy::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
                Hierarchy::V2 => &["cpuset.cpus.effective"],
            };
            for name in names {
                let path = format!("{}/{name}", binding.directories[0]);
                let cpus: Option<CpuSet> =
                    self.text_or_note(&path).and_then(|text| text.parse().ok());
                if let Some(cpus) = cpus.filter(|cpus| !cpus.has_no_cpu()) {
                    return Some(SourcedValue::new(cpus.cpu_count() as u32, path));
                }
            }
        }
        None
    }
}
