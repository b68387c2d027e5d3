//! The fresh starts of a base, size after size, until one is proven or refuted.
//!
//! Owns which start is asked for next; the sizes are [`Ascent`]'s.

use std::sync::Arc;

use super::warmer::is_cold;
use super::{SearchedBase, SizeEnd, SmallestMemory, at_size, proof_ask};
use crate::proof::ProofStanding;
use crate::record::TrialRecord;
use crate::search::ascent::Ascent;
use crate::search::min_memory::MemoryFound;
use crate::search::{Next, SeenTrials, TrialOutcome, WantedTrials};

/// A base's answer with its fresh starts.
pub(super) struct ProvedBase {
    pub(super) base: usize,
    pub(super) is_proven: bool,
    pub(super) answer: MemoryFound,
    /// The fresh starts at every size that was tested, in order.
    pub(super) trials: Vec<Arc<TrialRecord>>,
    /// They were judged too early.
    pub(super) is_cold: bool,
}

/// The fresh starts of one base, as far as they ran.
pub(super) struct Climb {
    pub(super) found: MemoryFound,
    pub(super) ascent: Ascent,
    trials: Vec<Arc<TrialRecord>>,
    pub(super) is_cold: bool,
}

impl Climb {
    pub(super) fn from_search(
        search: &SmallestMemory,
        searched: &SearchedBase,
        prove: u32,
    ) -> Option<Self> {
        let SizeEnd::Found(found) = searched.end else {
            return None;
        };
        let outcome = |t: &Arc<TrialRecord>| {
            let size = t.configuration.memory?;
            Some((size, TrialOutcome::from(t.verdict)))
        };
        let trials = searched.trials.iter().filter_map(outcome);
        Some(Self {
            found,
            ascent: Ascent::new(search.parameters, prove, found.size, trials),
            trials: Vec::new(),
            is_cold: false,
        })
    }

    /// The answer at the size that is tested now.
    fn current_answer(&self) -> MemoryFound {
        let (size, confirmed) = (self.ascent.current_size(), self.found.confirmed);
        MemoryFound {
            size,
            margin: size.as_bytes() as f64 / confirmed.as_bytes().max(1) as f64 - 1.0,
            ..self.found
        }
    }

    /// Reads the fresh starts at one size; opens those that are missing.
    pub(super) fn test_size(&mut self, searched: &SearchedBase, seen: &SeenTrials) -> Next<()> {
        let size = self.ascent.current_size();
        let configuration = at_size(&searched.base, size);
        let mut repeat = 1;
        while let ProofStanding::More(more) = self.ascent.size_standing()
            && self.ascent.current_size() == size
            && !self.is_cold
        {
            let start = |repeat| proof_ask(&configuration, repeat, searched.start_deadline);
            let Some(record) = seen.record_for(&start(repeat)) else {
                let asks = (repeat..repeat + more).map(start);
                return Err(WantedTrials {
                    wanted: asks.filter(|a| seen.record_for(a).is_none()).collect(),
                    guesses: Vec::new(),
                });
            };
            self.ascent.record_start(TrialOutcome::from(record.verdict));
            self.trials.push(Arc::clone(record));
            self.is_cold = searched.longer.is_some() && is_cold(&self.trials);
            repeat += 1;
        }
        Ok(())
    }
}

/// What the climb of a base has come to.
pub(super) fn conclude_climb(base: usize, mut climbs: Vec<Option<Climb>>) -> Option<ProvedBase> {
    let climb = climbs[base].take()?;
    Some(ProvedBase {
        base,
        is_proven: climb.ascent.size_standing() == ProofStanding::Proven,
        answer: climb.current_answer(),
        trials: climb.trials,
        is_cold: climb.is_cold,
    })
}
