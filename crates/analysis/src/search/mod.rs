//! Searches as pure state machines: ask for the next trial, take its outcome, say when done.
//!
//! Owns the rules of each search, never a trial: the engine runs what [`min_memory`] asks for
//! and gives back outcomes. A search is resumed by giving it the recorded outcomes again.

pub mod cheapest;
pub mod lattice;
pub mod max_rate;
pub mod min_memory;

use crate::record::{AppKo, Verdict};

/// What one trial tells a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It kept the SLO.
    Pass,
    /// It broke the SLO, or the application failed in a way that more resources may cure.
    Fail,
    /// It ended for a reason that need not be the size; a crash that repeats counts as [`Fail`].
    ///
    /// [`Fail`]: Outcome::Fail
    Crash,
    /// It could not be measured; never evidence.
    Invalid,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::AppKo(AppKo::Crash) => Self::Crash,
            Verdict::SloMiss | Verdict::AppKo(_) => Self::Fail,
            Verdict::Invalid(_) => Self::Invalid,
        }
    }
}
