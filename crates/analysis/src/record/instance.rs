//! How an application ended, and the evidence of a single instance of a trial with several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cgroup::CgroupEvidence;
use super::gc::GcEvidence;
use super::start::StartEvidence;

/// How the application ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub struct ExitEvidence {
    /// Whether it ended before loadline stopped it.
    pub before_stop: bool,
    /// Exit code, when it exited.
    pub code: Option<i32>,
    /// Signal number, when a signal ended it.
    pub signal: Option<i32>,
    /// SIGTERM was not enough within the grace time.
    pub unclean_stop: bool,
    /// Processes left behind that were killed with the tree.
    pub leftover_processes: u64,
}

/// What one instance did; its load is in [`super::Evidence::load`], by its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceEvidence {
    /// Its number, from 1.
    pub instance: u32,
    /// How it became ready, or did not.
    pub start: StartEvidence,
    /// Counters of its cgroup.
    pub cgroup: CgroupEvidence,
    /// What its JVM's log says; the spans of its pauses are not kept.
    pub gc: Option<GcEvidence>,
    /// How it ended.
    pub exit: ExitEvidence,
}

impl InstanceEvidence {
    pub fn is_oom_killed(&self) -> bool {
        self.cgroup.oom_kills.is_some_and(|kills| kills > 0)
    }

    /// Whether it was killed, exited early, or never became ready.
    pub fn has_failed(&self) -> bool {
        self.is_oom_killed() || self.exit.before_stop || self.start.ready.is_none()
    }
}
