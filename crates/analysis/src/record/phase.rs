//! The parts of a trial, and when each was.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of a trial, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialPhase {
    /// Limits, namespaces and files are made.
    Prepare,
    /// From exec to the first good response.
    Start,
    /// Load that is recorded but not judged.
    WarmUp,
    /// Load that is judged.
    Measure,
    /// A burst above that load, judged by its own objectives.
    Peak,
    /// As many requests as the application can take at full concurrency, not judged: what it still
    /// grows by comes early.
    Age,
    /// The load of the measure phase while the memory limit is lowered; not judged.
    Squeeze,
    /// No load, between the two cycles of a soak.
    Rest,
    /// The load of the measure phase once more: the second cycle of a soak; after a squeeze, at the limit
    /// that leaves room for the growth still expected; or after a fresh start's burst.
    Again,
    /// SIGTERM, grace, kill, clean up.
    Stop,
}

impl TrialPhase {
    /// Whether its load is judged.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Measure | Self::Peak)
    }
}

impl fmt::Display for TrialPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::WarmUp => "warm-up",
            Self::Measure => "measure",
            Self::Peak => "peak",
            Self::Age => "ageing",
            Self::Squeeze => "squeeze",
            Self::Rest => "rest",
            Self::Again => "second load",
            Self::Stop => "stop",
        })
    }
}

/// That a trial was ended before its time, because it could not pass any more ([`crate::early`]). Its
/// latencies and rates are those of a part of a phase: no sample of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlyEnd {
    /// The phase that was cut short.
    pub phase: TrialPhase,
    /// Why it could not pass any more, in words.
    pub reason: String,
}

/// When a phase was, on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpan {
    /// Which phase.
    pub phase: TrialPhase,
    /// Its begin, CLOCK_MONOTONIC.
    #[serde(rename = "start_ns")]
    pub start: u64,
    /// Its end, CLOCK_MONOTONIC.
    #[serde(rename = "end_ns")]
    pub end: u64,
}

impl PhaseSpan {
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }
}
