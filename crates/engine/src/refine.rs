//! After the cheapest size is found: the least memory in it that works, where less is billed for less.
//!
//! Owns when that is worth a search and what it comes to. The search itself is that of plain `size`
//! ([`crate::size`]), at the CPU, options and rate of the answer, from the size's own memory down.
//! What it finds has its own proof; where that fails, the size that was found first stands.

use std::time::Duration;

use loadline_analysis::proof::is_proof;
use loadline_analysis::record::{Configuration, TrialRecord, Verdict};
use loadline_analysis::search::min_memory::{MemoryFound, Parameters};

use crate::experiment::Pricing;
use crate::session::{Session, SessionError};
use crate::size::{self, End, at, next_smaller, prove};

/// Starts of a search of the smallest memory, as simulated searches need them on average (crate
/// analysis, `tests/min_memory_error_rates.rs`).
const STARTS: u32 = 15;

/// What came of it.
#[derive(Debug, Clone)]
pub enum Refined {
    /// Less memory works, and is proven.
    Smaller(Box<Smaller>),
    /// The size stays as it is; why, where a search ran or should have.
    AsFound(Option<String>),
}

/// Less memory than that of the size.
#[derive(Debug, Clone)]
pub struct Smaller {
    /// The configuration with it.
    pub configuration: Configuration,
    /// How it was found.
    pub answer: MemoryFound,
    /// Trials of the search and of the proof.
    pub trials: Vec<TrialRecord>,
}

/// Searches less memory for the configuration that the search for the cheapest size came to.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store and is not run again by the next call.
pub fn refine(
    session: &mut Session<'_>,
    pricing: &Pricing,
    found: &Configuration,
) -> Result<Refined, SessionError> {
    let lowest = session.experiment.search.min_memory;
    let Some(memory) = found.memory.filter(|m| *m > lowest) else {
        return Ok(Refined::AsFound(None));
    };
    if !pricing.offer.bills_any_memory {
        return Ok(Refined::AsFound(None));
    }
    if !has_room(session, pricing.budget) {
        let why = "less memory in the chosen size was not searched: the budget was spent";
        return Ok(as_found(why.to_owned()));
    }
    let base = Configuration {
        memory: None,
        label: without_size(found),
        ..found.clone()
    };
    let bounds = Parameters {
        high_passed: true,
        ..Parameters::new(lowest, memory)
    };
    let searched = size::search_within(session, &base, bounds)?;
    let answer = match &searched.end {
        End::Found(answer) if answer.size < memory => *answer,
        End::Found(answer) => {
            return Ok(as_found(format!(
                "{} is the smallest memory that kept the SLO there; with the margin it is no less than {memory}",
                answer.confirmed
            )));
        }
        End::Infeasible { reason, .. } => {
            let why = format!("less memory was searched in vain: {reason}");
            return Ok(as_found(why));
        }
        End::CouldNotMeasure { size, reason } => {
            let why = format!("less memory could not be measured at {size}: {reason}");
            return Ok(as_found(why));
        }
    };
    let configuration = at(&base, answer.size);
    let proofs = prove(session, &configuration, searched.start_deadline)?;
    if let Some(why) = unproven(proofs.iter().map(|t| t.verdict)) {
        return Ok(as_found(format!(
            "{} passed its confirmations, but {why}; {memory} stands",
            answer.size
        )));
    }
    let below = next_smaller(session, &searched, &answer)?;
    let mut trials = searched.trials;
    // A trial of the search that is shown again as neighbour is evidence once.
    trials.extend(below.filter(|b| !trials.iter().any(|t| t.id == b.id)));
    trials.extend(proofs);
    Ok(Refined::Smaller(Box::new(Smaller {
        configuration,
        answer,
        trials,
    })))
}

fn as_found(why: String) -> Refined {
    Refined::AsFound(Some(why))
}

/// Whether the budget has room for a search and its proof.
fn has_room(session: &Session<'_>, budget: Option<Duration>) -> bool {
    let each = crate::plan::trial_length(session.experiment);
    let wanted = each * (STARTS + session.experiment.search.prove);
    budget.is_none_or(|budget| session.spent + wanted <= budget)
}

/// Why a proof does not hold; `None` where it does. A start that could not be measured refutes
/// nothing and shows nothing: too many of them leave it unproven.
pub(crate) fn unproven(proofs: impl IntoIterator<Item = Verdict>) -> Option<&'static str> {
    let all: Vec<Verdict> = proofs.into_iter().collect();
    let passed = all.iter().filter(|v| **v == Verdict::Pass).count() as u64;
    let counted = all.iter().filter(|v| v.is_evidence()).count() as u64;
    if is_proof(passed, all.len() as u64) {
        return None;
    }
    Some(
        match (
            all.is_empty(),
            passed == counted || is_proof(passed, counted),
        ) {
            (true, _) => "no proof was asked for",
            (false, true) => "its proof could not be measured",
            (false, false) => "its proof failed",
        },
    )
}

/// The label without its memory: [`at`] puts the new one at its end.
fn without_size(found: &Configuration) -> String {
    let memory = found.memory.map(|m| m.to_string());
    let words = found.label.split(' ');
    let kept: Vec<&str> = words.filter(|w| Some(*w) != memory.as_deref()).collect();
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::Invalid;

    use super::*;

    #[test]
    fn a_start_that_could_not_be_measured_refutes_nothing() {
        let (pass, miss) = (Verdict::Pass, Verdict::SloMiss);
        let invalid = Verdict::Invalid(Invalid::Noise);
        let measured = unproven([pass, invalid, pass]);
        assert_eq!(measured, Some("its proof could not be measured"));
        let most = [vec![pass; 19], vec![invalid]].concat();
        assert_eq!(unproven(most), None, "one in twenty");
        let one = [vec![pass], vec![invalid; 19]].concat();
        assert_eq!(unproven(one), Some("its proof could not be measured"));
        assert_eq!(unproven([pass, miss, pass]), Some("its proof failed"));
        let none = unproven([invalid, invalid]);
        assert_eq!(none, Some("its proof could not be measured"));
        assert_eq!(unproven([]), Some("no proof was asked for"));
    }
}
