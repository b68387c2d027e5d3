//! Counters of one dependency in one trial: memory, CPU and throttling of its cgroup.
//!
//! Owns the window and the resulting evidence; starts and ends nothing. The dependency is either
//! the trial's own ([`crate::dependency`]) or shared between trials ([`JoinedDependency`]).

use std::time::Duration;

use loadline_analysis::record::{DependencyEvidence, InvalidReason, MeasurementFailure};
use loadline_cgroup::{CgroupError, CgroupLayout, CgroupSample, ControlGroup};
use loadline_protocol::SharedDependency;

use crate::container::ContainerNetwork;

pub(crate) struct DependencyCounters {
    pub(crate) group: ControlGroup,
    begin: Option<CgroupSample>,
    killed_before: u64,
    pub(crate) evidence: DependencyEvidence,
}

impl DependencyCounters {
    pub(crate) fn new(group: ControlGroup, evidence: DependencyEvidence) -> Self {
        Self {
            group,
            begin: None,
            killed_before: 0,
            evidence,
        }
    }

    pub(crate) fn measure_memory(&mut self) {
        let sample = self.group.read().ok();
        let now = sample.and_then(|s| s.memory).and_then(|m| m.working_set());
        self.evidence.peak_working_set = now.max(self.evidence.peak_working_set);
    }

    pub(crate) fn begin_window(&mut self) {
        self.begin = self.group.read().ok();
    }

    pub(crate) fn end_window(&mut self) {
        let Some((begin, end)) = self.begin.take().zip(self.group.read().ok()) else {
            return;
        };
        let grown =
            |of: fn(&CgroupSample) -> Option<u64>| Some(of(&end)?.saturating_sub(of(&begin)?));
        let time =
            |of: fn(&CgroupSample) -> Option<Duration>| Some(of(&end)?.saturating_sub(of(&begin)?));
        let evidence = &mut self.evidence;
        let window = end.at_ns.saturating_sub(begin.at_ns);
        evidence.window = Some(Duration::from_nanos(window));
        evidence.cpu = time(|s| s.cpu.usage);
        evidence.throttled = time(|s| s.cpu.throttled_time);
        evidence.nr_periods = grown(|s| s.cpu.nr_periods);
        evidence.nr_throttled = grown(|s| s.cpu.nr_throttled);
    }

    pub(crate) fn read_last_memory(&mut self) {
        self.measure_memory();
        let memory = self.group.read().ok().and_then(|s| s.memory);
        let kills = memory.and_then(|m| m.oom_kill);
        self.evidence.peak_memory = memory.and_then(|m| m.peak);
        self.evidence.oom_kills = kills.map(|kills| kills.saturating_sub(self.killed_before));
    }
}

/// A shared dependency, in one trial. Dropping it does not end it: it belongs to the keeper.
pub(crate) struct JoinedDependency {
    pub(crate) counted: DependencyCounters,
    pub(crate) network: ContainerNetwork,
}

impl JoinedDependency {
    pub(crate) fn new(layout: &CgroupLayout, kept: &SharedDependency) -> Result<Self, CgroupError> {
        let group = ControlGroup::open_existing(layout, &kept.group)?;
        let memory = group.read().ok().and_then(|sample| sample.memory);
        let killed_before = memory.and_then(|m| m.oom_kill).unwrap_or(0);
        Ok(Self {
            counted: DependencyCounters {
                killed_before,
                ..DependencyCounters::new(group, kept.evidence.clone())
            },
            network: kept
                .network
                .clone()
                .map_or(ContainerNetwork::Host, ContainerNetwork::Of),
        })
    }

    /// Why the trial cannot go on, if the dependency has ended. The keeper knows how; it is asked
    /// after the trial.
    pub(crate) fn poll_failure(&self) -> Option<MeasurementFailure> {
        let processes = self.counted.group.process_ids();
        let is_gone = processes.map_or(true, |processes| processes.is_empty());
        is_gone.then(|| {
            let name = &self.counted.evidence.name;
            let why = format!("the dependency {name}: it ended during the trial");
            MeasurementFailure::new(InvalidReason::Dependency, why)
        })
    }

    pub(crate) fn into_evidence(mut self) -> DependencyEvidence {
        self.counted.read_last_memory();
        self.counted.evidence
    }
}
