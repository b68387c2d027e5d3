//! What a running trial tells: where it is, how it goes, how it ended.

use std::time::Duration;

use loadline_analysis::record::{Evidence, SoakLook, SoakPoint, TrialPhase};
use serde::{Deserialize, Serialize};

use crate::RunRefusal;

/// Something that happened in a trial. Times are CLOCK_MONOTONIC of the host that carries it out,
/// in ns, and compare with no other host's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum TrialEvent {
    Phase {
        phase: TrialPhase,
        at_ns: u64,
    },
    /// It has not begun: its host has no room for it, and says why.
    Waits(String),
    /// A live figure, at most some a second.
    Progress(TrialProgress),
    /// What a soak saw of its application under load.
    Soak(Box<SoakPoint>),
    Look(Box<SoakLook>),
    /// The last event: the trial is over, and nothing of it is left on its host.
    Ended(TrialEnding),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ending")]
pub enum TrialEnding {
    /// With what was measured; a failing application and a failed measurement are both in it.
    Measured(Box<Evidence>),
    Refused(RunRefusal),
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialProgress {
    pub phase: TrialPhase,
    pub elapsed: Duration,
    /// 99th percentile of the last second, in load phases.
    pub p99: Option<Duration>,
    /// Good responses in the last second, in load phases.
    pub rate: Option<f64>,
}
