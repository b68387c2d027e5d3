//! The cgroup of a trial: made with its limits, gone when dropped.
//!
//! Owns the translation of a configuration into limits and the end of the group. The cgroup file
//! system itself is `loadline-cgroup`'s.

use std::time::Duration;

use loadline_analysis::record::Configuration;
use loadline_cgroup::{CgroupError, CgroupLayout, CgroupLimits, ControlGroup, Controller};
use loadline_sizing::{CpuSet, Cpus};

use crate::cpus::CpuPlan;

/// Tasks where the configuration names no limit: room for any server, none for a fork bomb.
pub(crate) const TASKS: u64 = 16_384;

const END: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct TrialGroup {
    group: ControlGroup,
    is_removed: bool,
}

impl TrialGroup {
    pub(crate) fn create_limited(
        layout: &CgroupLayout,
        name: &str,
        limits: &CgroupLimits,
    ) -> Result<Self, CgroupError> {
        let group = Self {
            group: ControlGroup::create_group(layout, name)?,
            is_removed: false,
        };
        group.group.apply_limits(limits)?;
        Ok(group)
    }

    pub(crate) fn as_group(&self) -> &ControlGroup {
        &self.group
    }

    pub(crate) fn kill_and_remove(&mut self) -> Result<(), CgroupError> {
        if self.is_removed {
            return Ok(());
        }
        self.group.kill_processes(END)?;
        self.group.remove_dirs(END)?;
        self.is_removed = true;
        Ok(())
    }
}

impl Drop for TrialGroup {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        let _ = self.kill_and_remove();
    }
}

const DEFAULT_SHARES: f64 = 1024.0;

/// The weight that buys a request of the CPUs while a neighbour of the default weight takes the rest.
fn request_shares(request: Cpus, cpus: usize) -> u64 {
    let (request, cpus) = (request.as_f64(), cpus as f64);
    let rest = (cpus - request).max(0.01);
    ((DEFAULT_SHARES * request / rest) as u64).clamp(2, 262_144)
}

/// The limits of a configuration, on the CPUs of the plan. Where the kernel has no cpuset
/// controller, only a configuration that asks for one gets one (and is refused); otherwise the
/// application's CPU mask alone keeps it there.
pub(crate) fn limits_for_configuration(
    layout: &CgroupLayout,
    configuration: &Configuration,
    plan: &CpuPlan,
) -> CgroupLimits {
    let has_cpuset = layout.hierarchy_of(Controller::Cpuset).is_some();
    let cpuset = has_cpuset || configuration.cpuset.is_some();
    let cpus = plan.application.len();
    let requested = configuration.cpu_request;
    let requested = requested.map(|request| request_shares(request, cpus));
    CgroupLimits {
        cpu_quota: configuration.cpu.max(configuration.start_cpu),
        cpu_period: configuration.cpu_period,
        cpu_burst: configuration.cpu_burst,
        cpu_shares: requested.or(configuration.cpu_shares),
        cpuset: cpuset.then(|| plan.application.iter().copied().collect::<CpuSet>()),
        memory: configuration.memory,
        pids: Some(configuration.pids.unwrap_or(TASKS)),
    }
}
