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
    Soak(Box<SoakPoint>),
    Look(Box<SoakLook>),
    /// The last event: the trial is over, and has left nothing on its host.
    Ended(TrialEnding),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ending")]
pub enum TrialEnding {
    /// The evidence, also of a failing application or a failed measurement.
    Measured(Box<Evidence>),
    Refused(RunRefusal),
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialProgress {
    pub phase: TrialPhase,
    pub elapsed: Duration,
    pub p99: Option<Duration>,
    /// Good responses in the last second, in load phases.
    pub rate: Option<f64>,
}
