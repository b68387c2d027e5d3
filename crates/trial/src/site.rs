//! The machine that trials run on: its cgroups, its CPUs, and settings for trials there.
//!
//! Owns the inspection; makes nothing. Also refuses orders for all instances of a trial together: a
//! limit around loadline, a memory that is full.

use std::path::{Path, PathBuf};

use loadline_analysis::record::{CpuSets, MachineDescription};
use loadline_cgroup::host::{HostFacts, MachineMemory, outer_conflict, outer_limits};
use loadline_cgroup::{CgroupLayout, CgroupLimits};
use loadline_protocol::{DependencySpec, RunRefusal, TrialOrder};
use loadline_sizing::{Bytes, Cpus};
use rustix::system::uname;

use crate::cpus::{self, CpuPlan};
use crate::halt;
use crate::pod::PodPaths;

#[derive(Debug, Clone)]
pub struct SiteOptions {
    pub program: PathBuf,
    pub scratch_root: Option<PathBuf>,
    pub evict_page_cache: bool,
    pub open_files: u64,
    pub memory_reserve: Bytes,
    /// In a pod of Kubernetes, or its like at an engine apart: limits and memory are not loadline's to
    /// give.
    pub is_pod: bool,
    pub pod: Option<PodPaths>,
}

impl SiteOptions {
    pub fn in_pod(pod: Option<PodPaths>) -> Self {
        Self {
            evict_page_cache: false,
            is_pod: true,
            pod,
            ..Self::default()
        }
    }
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            // Not its path: the file may be replaced or moved while trials run.
            program: PathBuf::from("/proc/self/exe"),
            scratch_root: None,
            evict_page_cache: true,
            // What most container engines give at least.
            open_files: 65_536,
            memory_reserve: Bytes::from_mib(256),
            is_pod: false,
            pod: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Site {
    pub(crate) options: SiteOptions,
    pub(crate) layout: CgroupLayout,
    cpus: Vec<u32>,
    host: HostFacts,
}

impl Site {
    pub fn detect_site(options: SiteOptions) -> Result<Self, RunRefusal> {
        let what = "finding the cgroups of this machine";
        let layout = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))
            .map_err(|error| halt::cgroup_refusal(what, &error))?;
        if !options.is_pod {
            layout
                .check_permission()
                .map_err(|error| halt::cgroup_refusal("making a cgroup for trials", &error))?;
        }
        let cpus = cpus::available_cpus().map_err(|errno| {
            let hint = "`loadline doctor` shows what this machine can do";
            RunRefusal::new("finding the CPUs of this machine", errno, hint)
        })?;
        // A result with half a description could not be resumed.
        let host = HostFacts::read(Path::new("/proc"))
            .map_err(|error| halt::cgroup_refusal("reading what machine this is", &error))?;
        Ok(Self {
            options,
            layout,
            cpus,
            host,
        })
    }

    pub fn chosen_options(&self) -> &SiteOptions {
        &self.options
    }

    pub fn describe_machine(&self) -> MachineDescription {
        MachineDescription {
            kernel: format!("Linux {}", self.host.kernel),
            cpu_model: self.host.cpu_model.clone().unwrap_or_default(),
            cpus: u32::try_from(self.cpus.len()).unwrap_or(u32::MAX),
            memory: Some(self.host.memory.total),
            cgroup: self.layout.mode().to_string(),
            architecture: uname().machine().to_string_lossy().into_owned(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            ..MachineDescription::default()
        }
    }

    /// The CPUs of one instance, from 0; the CPUs without an instance, for the generators; and the
    /// CPUs of the dependencies.
    pub(crate) fn plan_cpus(
        &self,
        order: &TrialOrder,
        instance: u32,
    ) -> Result<CpuPlan, RunRefusal> {
        let is_split = self.options.pod.as_ref().is_some_and(|pod| pod.splits_cpus);
        if self.options.is_pod && !is_split {
            return Ok(CpuPlan::unsplit(&self.cpus));
        }
        let configuration = &order.configuration;
        let available = self.without_dependencies(order)?;
        let plan = |wanted: Option<&[u32]>| {
            let most = configuration.cpu.max(configuration.cpu_request);
            let quota = most.max(configuration.start_cpu);
            let instances = configuration.instances;
            let plan = CpuPlan::new(&available, quota, wanted, instances);
            if order.dependencies.iter().any(|d| d.cpuset.is_none()) {
                plan.with_dependencies(quota, wanted.is_some())
            } else {
                plan
            }
        };
        let Some(sets) = &configuration.cpuset else {
            return Ok(plan(None));
        };
        let all = self.cpus_of(sets)?;
        Ok(CpuPlan {
            application: self.cpus_of(&sets.of_instance(instance))?,
            ..plan(Some(&all))
        })
    }

    fn without_dependencies(&self, order: &TrialOrder) -> Result<Vec<u32>, RunRefusal> {
        let mut left = self.cpus.clone();
        for sets in order.dependencies.iter().filter_map(|d| d.cpuset.as_ref()) {
            let theirs = self.cpus_of(sets)?;
            left.retain(|cpu| !theirs.contains(cpu));
        }
        Ok(if left.is_empty() {
            self.cpus.clone()
        } else {
            left
        })
    }

    pub(crate) fn dependency_cpus(
        &self,
        dependency: &DependencySpec,
        plan: &CpuPlan,
    ) -> Result<Vec<u32>, RunRefusal> {
        match &dependency.cpuset {
            Some(sets) => self.cpus_of(sets),
            None => Ok(plan.dependencies.clone()),
        }
    }

    fn cpus_of(&self, sets: &CpuSets) -> Result<Vec<u32>, RunRefusal> {
        let wanted: Vec<u32> = sets.all_cpus().iter().collect();
        if wanted.iter().any(|cpu| !self.cpus.contains(cpu)) {
            let here = cpus::format_cpu_list(&self.cpus);
            let (what, hint) = (format!("the cpuset `{sets}`"), "choose among these CPUs");
            let why = format!("loadline may use CPUs {here} of this machine");
            return Err(RunRefusal::new(what, why, hint));
        }
        Ok(wanted)
    }

    /// Refuses instances that do not fit next to everything else here, with these limits.
    pub(crate) fn refuse_too_large(
        &self,
        own: &CgroupLimits,
        instances: u32,
    ) -> Result<(), RunRefusal> {
        if self.options.is_pod {
            return Ok(());
        }
        let limits = in_all(own, instances);
        // A limit around the trial that is not above the trial's own would be measured in its place.
        outer_limits(&self.layout)
            .and_then(|outer| outer_conflict(&outer, &limits))
            .map_err(|error| halt::cgroup_refusal(COMPARING, &error))?;
        let whole = Cpus::from_whole(self.cpus.len() as u32);
        if let Some(cpu) = own.cpu_quota.filter(|cpu| *cpu > whole) {
            let why = format!("the configuration has a limit of {cpu} CPUs, and there are {whole}");
            let hint = format!(
                "give at most {whole} (--cpu, --start-cpu), or measure on a machine with more"
            );
            return Err(RunRefusal::new("the CPUs of this machine", why, &hint));
        }
        let Some(limit) = limits.memory else {
            return Ok(());
        };
        let memory = MachineMemory::read(Path::new("/proc"))
            .map_err(|error| halt::cgroup_refusal("reading how much memory is free", &error))?;
        let reserve = self.options.memory_reserve;
        // An application that takes its whole limit must not bring the machine to swap or kill.
        if limit.saturating_add(reserve) <= memory.available {
            return Ok(());
        }
        let why = format!(
            "the configuration takes up to {limit} and {reserve} stay for the machine, but only {:.0}Mi of memory are available",
            memory.available.as_mib()
        );
        let hint = "stop other programs, or try smaller sizes";
        Err(RunRefusal::new("the memory of this machine", why, hint))
    }
}

const COMPARING: &str = "comparing with the limits around loadline";

fn in_all(own: &CgroupLimits, instances: u32) -> CgroupLimits {
    let times = |cpus: Cpus| Cpus::from_millis(cpus.as_millis().saturating_mul(instances));
    CgroupLimits {
        cpu_quota: own.cpu_quota.map(times),
        memory: own.memory.map(|m| m.mul_ratio(u64::from(instances), 1)),
        ..own.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_are_those_of_one_times_their_number() {
        let own = CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(500)),
            memory: Some(Bytes::from_mib(256)),
            ..CgroupLimits::default()
        };
        let all = in_all(&own, 4);
        assert_eq!(all.cpu_quota, Some(Cpus::from_whole(2)));
        assert_eq!(all.memory, Some(Bytes::from_gib(1)));
    }
}
