//! Searches as pure functions: records in, asks out.
//!
//! Owns the trait of every search ([`TrialSearch`]) and the rules of each; never runs a trial,
//! knows no slot. The runner passes [`SeenTrials`] to a search and runs its asks. A search keeps no
//! state: it reads the records in the order in which it would have asked for them one after the
//! other, so resume, parallel slots and simulation reach the same answer. Surplus trials are never
//! read.
//!
//! Read in this order: [`TrialSearch`], [`matrix`] (the simplest), [`size`], [`prices`].

mod ahead;
pub mod ascent;
pub mod cheapest;
pub mod expected;
pub mod lattice;
pub mod matrix;
pub mod max_rate;
pub mod min_memory;
pub mod outlook;
pub mod prices;
pub mod purchase;
pub mod refine;
mod seen;
pub mod size;
pub mod soak;
pub mod start_cpu;
#[cfg(test)]
mod story;
pub mod tune;
pub mod verify;

use std::sync::Arc;
use std::time::Duration;

use crate::record::{AppKo, Configuration, TrialPurpose, TrialRecord, TrialVerdict};

pub use expected::expected_limit as floor;
pub use seen::{ByAsk, SeenTrials};

#[derive(Debug, Clone, PartialEq)]
pub struct TrialAsk {
    pub configuration: Configuration,
    pub purpose: TrialPurpose,
    /// Ordinal among the asks of the same configuration and purpose, from 1.
    pub repeat: u32,
    pub start_deadline: Duration,
    /// Asks with the same number stay on one slot and run in the order they are asked, one after
    /// the other: trials are comparable only in the same surroundings.
    pub pair: Option<u32>,
}

impl TrialAsk {
    fn new(
        configuration: Configuration,
        purpose: TrialPurpose,
        repeat: u32,
        start_deadline: Duration,
    ) -> Self {
        Self {
            configuration,
            purpose,
            repeat,
            start_deadline,
            pair: None,
        }
    }

    /// This ask and the next ones of the same configuration and purpose.
    fn repeats(&self, number: u32) -> impl Iterator<Item = Self> + '_ {
        (0..number).map(|more| Self {
            repeat: self.repeat + more,
            ..self.clone()
        })
    }

    /// Whether both ask for the same trial. Label, deadline and pair do not tell trials apart.
    pub fn is_same(&self, other: &Self) -> bool {
        self.purpose == other.purpose
            && self.repeat == other.repeat
            && runs_like(&self.configuration, &other.configuration)
    }
}

/// Whether both are the same but for the label, which is for people.
fn runs_like(one: &Configuration, other: &Configuration) -> bool {
    let relabelled = || Configuration {
        label: one.label.clone(),
        ..other.clone()
    };
    one == other || (one.label != other.label && *one == relabelled())
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WantedTrials {
    /// What the answer needs in any case, as far as is known now, most urgent first. Also what runs
    /// already: whatever runs and is asked for no more may be stopped. Never empty.
    pub wanted: Vec<TrialAsk>,
    /// What it may need, likeliest first: for slots that would be idle.
    pub guesses: Vec<TrialAsk>,
}

impl WantedTrials {
    /// Of these asks the ones without a record.
    fn missing(asks: impl IntoIterator<Item = TrialAsk>, seen: &SeenTrials) -> Self {
        let asks = asks.into_iter();
        Self {
            wanted: asks.filter(|a| seen.record_for(a).is_none()).collect(),
            guesses: Vec::new(),
        }
    }

    fn extend(&mut self, more: Self) {
        self.wanted.extend(more.wanted);
        self.guesses.extend(more.guesses);
    }
}

/// The answer, or the trials still wanted. A `Result`, so that searches compose with `?`: an open
/// step ends the step that needs its answer.
pub type Next<T> = Result<T, WantedTrials>;

pub trait TrialSearch {
    type Answer;

    /// The answer, or the trials that are wanted now.
    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer>;
}

fn read_records(seen: &SeenTrials, asks: Vec<TrialAsk>) -> Next<Vec<Arc<TrialRecord>>> {
    let records = asks.iter().map(|ask| seen.record_for(ask).cloned());
    let records: Option<Vec<_>> = records.collect();
    records.ok_or_else(|| WantedTrials::missing(asks, seen))
}

/// Every one of several searches that do not need each other's answers, the first most urgent.
fn all_answers<T>(parts: impl IntoIterator<Item = Next<T>>) -> Next<Vec<T>> {
    let mut answers = Vec::new();
    let mut open: Option<WantedTrials> = None;
    for part in parts {
        match part {
            Ok(answer) => answers.push(answer),
            Err(more) => open.get_or_insert_default().extend(more),
        }
    }
    open.map_or(Ok(answers), Err)
}

/// Two searches that do not need each other's answer, the first more urgent.
fn both_answers<A, B>(first: Next<A>, second: Next<B>) -> Next<(A, B)> {
    match (first, second) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(open), Ok(_)) | (Ok(_), Err(open)) => Err(open),
        (Err(mut open), Err(more)) => {
            open.extend(more);
            Err(open)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOutcome {
    Pass,
    /// It broke the SLO, or the application failed in a way that more resources may cure.
    Fail,
    /// It ended for a reason that need not be the size; a crash that repeats counts as [`Fail`].
    ///
    /// [`Fail`]: TrialOutcome::Fail
    Crash,
    /// It could not be measured; never evidence.
    Invalid,
}

impl From<TrialVerdict> for TrialOutcome {
    fn from(verdict: TrialVerdict) -> Self {
        match verdict {
            TrialVerdict::Pass => Self::Pass,
            TrialVerdict::AppKo(AppKo::Crash) => Self::Crash,
            TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => Self::Fail,
            TrialVerdict::Invalid(_) => Self::Invalid,
        }
    }
}
