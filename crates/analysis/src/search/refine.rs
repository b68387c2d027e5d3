//! After the cheapest size is found: the least memory that works, if less memory costs less.
//!
//! Owns when that is worth a search, and its result. The search itself is plain `size`
//! ([`SmallestMemory`]), at the CPU, options and rate of the answer, downwards from the size's
//! memory. The new size needs its own proof; if that fails, the first size stands.

use std::sync::Arc;
use std::time::Duration;

use super::expected::expected_limit;
use super::min_memory::{MemoryFound, MemoryParameters};
use super::purchase::Purchase;
use super::size::{SizeEnd, SmallestMemory, add_neighbour, prove_size};
use super::{Next, SeenTrials};
use crate::budget::HeapPolicy;
use crate::proof::{ProofCount, why_unproven};
use crate::record::{Configuration, TrialRecord, TrialVerdict};

/// Starts of a search of the smallest memory, as simulated searches need them on average (crate
/// simulated, `tests/size_error_rates.rs`).
const STARTS: u32 = 10;

#[derive(Debug, Clone)]
pub enum MemoryRefinement {
    Smaller(Box<RefinedMemory>),
    /// The size stays as it is; why, where a search ran or should have.
    AsFound(Option<String>),
}

#[derive(Debug, Clone)]
pub struct RefinedMemory {
    pub configuration: Configuration,
    pub answer: MemoryFound,
    pub trials: Vec<Arc<TrialRecord>>,
}

impl Purchase {
    /// Searches less memory for the configuration that the search for the cheapest size came to; its
    /// own starts there tell where to look first.
    pub(super) fn refine<'a>(
        &self,
        found: &Configuration,
        started: impl Iterator<Item = &'a TrialRecord>,
        spent: Duration,
        seen: &SeenTrials,
    ) -> Next<MemoryRefinement> {
        let Some(memory) = found.memory.filter(|m| *m > self.memory.low) else {
            return Ok(MemoryRefinement::AsFound(None));
        };
        if !self.pricing.offer.bills_any_memory {
            return Ok(MemoryRefinement::AsFound(None));
        }
        let wanted = self.trial_length.saturating_mul(STARTS + self.prove);
        if !self.has_room(spent, wanted) {
            let why = "less memory in the chosen size was not searched: the budget was spent";
            return Ok(as_found(why.to_owned()));
        }
        let base = Configuration {
            memory: None,
            label: without_size(found),
            ..found.clone()
        };
        let parameters = MemoryParameters {
            high: memory,
            max: memory,
            high_passed: true,
            expected: started
                .filter(|t| t.configuration == *found && t.verdict == TrialVerdict::Pass)
                .find_map(|t| expected_limit(&t.evidence)),
            ..self.memory
        };
        let search = SmallestMemory {
            base,
            level: None,
            parameters,
            start_deadline: self.start_deadline,
            warm_up: None,
            heap: HeapPolicy::Keep,
            keeps_direct: false,
            is_squeezable: false,
            cpus: Vec::new(),
            has_more_cpu: false,
        };
        let searched = search.bisect(seen)?;
        let answer = match &searched.end {
            SizeEnd::Found(answer) if answer.size < memory => *answer,
            end => return Ok(as_found(as_it_was(end, memory))),
        };
        let configuration = searched.at_size(answer.size);
        let deadline = searched.start_deadline;
        let (proofs, _) = prove_size(&configuration, self.prove, deadline, seen)?;
        let count = ProofCount::from_verdicts(proofs.iter().map(|t| t.verdict));
        if let Some(why) = why_unproven(self.prove, count) {
            let size = answer.size;
            let why = format!("{size} passed its confirmations, but {why}; {memory} stands");
            return Ok(as_found(why));
        }
        let below = searched.next_smaller(&answer, seen)?;
        let mut trials = searched.trials;
        add_neighbour(&mut trials, below);
        trials.extend(proofs);
        Ok(MemoryRefinement::Smaller(Box::new(RefinedMemory {
            configuration,
            answer,
            trials,
        })))
    }
}

fn as_found(why: String) -> MemoryRefinement {
    MemoryRefinement::AsFound(Some(why))
}

fn as_it_was(end: &SizeEnd, memory: loadline_sizing::Bytes) -> String {
    match end {
        SizeEnd::Found(answer) => format!(
            "{} is the smallest memory that kept the SLO there; with the margin it is no less than {memory}",
            answer.confirmed
        ),
        SizeEnd::Infeasible { reason, .. } => format!("less memory was searched in vain: {reason}"),
        SizeEnd::CouldNotMeasure { size, reason } => {
            format!("less memory could not be measured at {size}: {reason}")
        }
        SizeEnd::Refused { reason, .. } => reason.clone(),
    }
}

/// The label without its memory: `at_size` puts the new one at its end.
fn without_size(found: &Configuration) -> String {
    let memory = found.memory.map(|m| m.to_string());
    let words = found.label.split(' ');
    let kept: Vec<&str> = words.filter(|w| Some(*w) != memory.as_deref()).collect();
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{TrialPurpose, TrialVerdict};
    use crate::search::TrialAsk;
    use crate::search::purchase::tests::purchase;

    /// Why a search for less memory does not run, or `None` when it asks for trials.
    fn why(budget: Option<Duration>, mib: u64, spent: Duration) -> Option<Option<String>> {
        let found = fixture::configuration(mib);
        let seen = SeenTrials::default();
        let refined = purchase(budget).refine(&found, std::iter::empty(), spent, &seen);
        refined.ok().map(|refined| match refined {
            MemoryRefinement::AsFound(why) => why,
            MemoryRefinement::Smaller(_) => panic!("nothing was measured"),
        })
    }

    #[test]
    fn less_memory_is_searched_where_there_is_less_and_time_for_it() {
        let none = Duration::ZERO;
        assert_eq!(
            why(None, 64, none),
            Some(None),
            "nothing below the smallest"
        );
        assert_eq!(why(None, 68, none), None);
        // Ten starts and two for the proof, a minute each.
        let budget = Some(Duration::from_secs(13 * 60));
        assert_eq!(why(budget, 256, Duration::from_secs(60)), None);
        let spent = why(budget, 256, Duration::from_secs(61)).flatten();
        assert!(spent.is_some_and(|why| why.contains("the budget was spent")));
    }

    /// Less memory than 256Mi, where `verdict` says what a trial comes to.
    fn refined(verdict: impl Fn(&TrialAsk) -> TrialVerdict) -> MemoryRefinement {
        let found = fixture::configuration(256);
        let mut seen = SeenTrials::default();
        loop {
            let refined = purchase(None).refine(&found, std::iter::empty(), Duration::ZERO, &seen);
            let open = match refined {
                Ok(refined) => return refined,
                Err(open) => open,
            };
            for ask in open.wanted {
                let memory = ask.configuration.memory.unwrap();
                assert!(memory <= found.memory.unwrap(), "{memory}");
                let size = memory.as_mib() as u64;
                let record = fixture::trial_record("t", ask.purpose, size, verdict(&ask));
                seen.add_record(&ask, record, Duration::ZERO);
            }
        }
    }

    #[test]
    fn a_size_that_is_proven_is_the_largest_that_is_tried_again() {
        // Whatever passes once does not when it is confirmed.
        let ended = refined(|ask| match ask.purpose {
            TrialPurpose::Confirm => TrialVerdict::SloMiss,
            _ => TrialVerdict::Pass,
        });
        assert!(matches!(ended, MemoryRefinement::AsFound(Some(_))));
        let ended = refined(|ask| match ask.configuration.memory {
            Some(memory) if memory < loadline_sizing::Bytes::from_mib(252) => TrialVerdict::SloMiss,
            _ => TrialVerdict::Pass,
        });
        let MemoryRefinement::AsFound(Some(why)) = ended else {
            panic!("it is no less");
        };
        insta::assert_snapshot!(why, @"256Mi is the smallest memory that kept the SLO there; with the margin it is no less than 256Mi");
    }
}
