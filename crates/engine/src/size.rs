//! `size`: the smallest memory for each combination of the other factors, proven.
//!
//! Owns the driving of the search: which trials run and in which purpose. The rules are
//! `loadline_analysis::search::min_memory`'s. The first trial runs at the largest size; its start
//! sets how long later starts may take, because a size at which the start takes several times as
//! long thrashes and is no answer.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Purpose, TrialRecord, Verdict};
use loadline_analysis::search::Outcome;
use loadline_analysis::search::min_memory::{Answer, MinMemory, Parameters, Step};
use loadline_sizing::Bytes;

use crate::session::{Session, SessionError};

/// A start may take this many times the start with room.
const START_FACTOR: u32 = 4;

/// A start may always take this long: short starts vary more than their length says.
const START_FLOOR: Duration = Duration::from_secs(5);

/// The search over one combination of the other factors.
#[derive(Debug, Clone)]
pub struct Searched {
    /// The configuration without a memory limit of its own.
    pub base: Configuration,
    /// How it ended.
    pub end: End,
    /// Every trial that counted, in order.
    pub trials: Vec<TrialRecord>,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It found the smallest size.
    Found(Answer),
    /// Not even the largest size passes.
    Infeasible {
        /// The largest size.
        largest: Bytes,
        /// What it broke.
        reason: String,
    },
    /// A size could not be measured.
    CouldNotMeasure {
        /// The size.
        size: Bytes,
        /// Why.
        reason: String,
    },
}

/// Runs the search for one configuration. Its own memory limit is ignored.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store and is not run again by the next call.
pub fn search(session: &mut Session<'_>, base: &Configuration) -> Result<Searched, SessionError> {
    let wanted = &session.experiment.search;
    let mut search = MinMemory::new(Parameters {
        step: wanted.step,
        confirmations: wanted.confirm,
        margin: wanted.margin,
        // The session repeats what could not be measured itself.
        retries: 0,
        ..Parameters::new(wanted.min_memory, wanted.max_memory)
    });
    let mut repeats: BTreeMap<(u64, bool), u32> = BTreeMap::new();
    let mut trials = Vec::new();
    session.start_deadline = session.experiment.app.start_deadline;
    loop {
        let (size, purpose) = match search.next() {
            Step::Try(size, purpose) => (size, purpose),
            Step::Done(answer) => {
                return Ok(Searched {
                    base: base.clone(),
                    end: End::Found(answer),
                    trials,
                });
            }
            Step::Infeasible { largest } => {
                let end = End::Infeasible {
                    largest,
                    reason: last_failure(&trials),
                };
                return Ok(Searched {
                    base: base.clone(),
                    end,
                    trials,
                });
            }
            Step::CouldNotMeasure { size, .. } => {
                let end = End::CouldNotMeasure {
                    size,
                    reason: last_failure(&trials),
                };
                return Ok(Searched {
                    base: base.clone(),
                    end,
                    trials,
                });
            }
        };
        let repeat = repeats
            .entry((size.as_bytes(), purpose == Purpose::Confirm))
            .or_default();
        *repeat += 1;
        let record = session.trial(&at(base, size), purpose, *repeat)?;
        let first_start = record.evidence.start.ready.filter(|_| trials.is_empty());
        if let Some(start) = first_start {
            session.start_deadline = (start * START_FACTOR)
                .max(START_FLOOR)
                .min(session.start_deadline);
        }
        let recorded = search.record(size, Outcome::from(record.verdict));
        debug_assert!(
            recorded.is_ok(),
            "the search takes the outcome it asked for"
        );
        trials.push(record);
    }
}

/// Fresh starts of the answer.
///
/// # Errors
/// As [`search`].
pub fn prove(
    session: &mut Session<'_>,
    configuration: &Configuration,
    starts: u32,
) -> Result<Vec<TrialRecord>, SessionError> {
    (1..=starts)
        .map(|repeat| session.trial(configuration, Purpose::Prove, repeat))
        .collect()
}

/// The next smaller size and what it breaks: a trial of the search that failed just below the
/// confirmed size, or, where none was run, one that is run now.
///
/// # Errors
/// As [`search`].
pub fn next_smaller(
    session: &mut Session<'_>,
    searched: &Searched,
    answer: &Answer,
) -> Result<Option<TrialRecord>, SessionError> {
    let broke = |t: &&TrialRecord| t.verdict.is_evidence() && t.verdict != Verdict::Pass;
    let below = searched
        .trials
        .iter()
        .filter(broke)
        .filter(|t| t.configuration.memory < Some(answer.confirmed));
    if let Some(record) = below.max_by_key(|t| t.configuration.memory) {
        return Ok(Some(record.clone()));
    }
    let step = session.experiment.search.step;
    let size = answer.confirmed.saturating_sub(step);
    if size < step {
        return Ok(None);
    }
    let record = session.trial(&at(&searched.base, size), Purpose::Neighbour, 1)?;
    Ok(broke(&&record).then_some(record))
}

/// The configuration at a size; the label says so.
pub fn at(base: &Configuration, size: Bytes) -> Configuration {
    let label = if base.label.is_empty() || base.label == "as given" {
        size.to_string()
    } else {
        format!("{} {size}", base.label)
    };
    Configuration {
        memory: Some(size),
        label,
        ..base.clone()
    }
}

fn last_failure(trials: &[TrialRecord]) -> String {
    trials
        .last()
        .map(|t| format!("{}: {}", t.verdict, t.reason))
        .unwrap_or_default()
}
