//! The fresh starts of a base, size after size, until one is proven or refuted.
//!
//! Owns which start is asked for next; the sizes are [`Ascent`]'s.

use std::sync::Arc;

use super::warmer::is_cold;
use super::{SearchedBase, SizeEnd, SizeSearch, SmallestMemory, proof_ask};
use crate::proof::{
    COUNTED_STARTS, ProofStanding, are_near, distances, starts_by_distance, starts_when_near,
};
use crate::record::{TrialPurpose, TrialRecord};
use crate::search::ascent::Ascent;
use crate::search::min_memory::MemoryFound;
use crate::search::{Next, SeenTrials, TrialOutcome, WantedTrials};
use crate::verdict::lacked_memory;

pub(super) struct ProvedBase {
    pub(super) base: usize,
    pub(super) is_proven: bool,
    pub(super) answer: MemoryFound,
    pub(super) trials: Vec<Arc<TrialRecord>>,
    pub(super) is_cold: bool,
    /// Its starts missed, or nearly, although they had memory to spare.
    pub(super) lacks_cpu: bool,
}

pub(super) struct Climb {
    pub(super) found: MemoryFound,
    pub(super) ascent: Ascent,
    /// The start that found the wall, where the distance of fresh starts decides.
    squeezed: Option<Arc<TrialRecord>>,
    /// Whether starts near a bound end it, because more CPU takes them away from it.
    has_more_cpu: bool,
    trials: Vec<Arc<TrialRecord>>,
    pub(super) is_cold: bool,
    is_out_of_time: bool,
}

impl Climb {
    pub(super) fn from_search(
        search: &SmallestMemory,
        searched: &SearchedBase,
        sizes: &SizeSearch,
    ) -> Option<Self> {
        let SizeEnd::Found(found) = searched.end else {
            return None;
        };
        let outcome = |t: &Arc<TrialRecord>| {
            let size = t.configuration.memory?;
            Some((size, TrialOutcome::from(t.verdict)))
        };
        // The limit of a squeezed start changed during the trial.
        let trials = searched.trials.iter();
        let trials = trials.filter(|t| t.purpose != TrialPurpose::Squeeze);
        let trials = trials.filter_map(outcome);
        let squeezed = searched.squeezed.clone().filter(|_| !sizes.is_counted);
        let prove = match (&squeezed, sizes.is_counted || sizes.prove == 0) {
            (None, false) => sizes.prove.max(COUNTED_STARTS),
            _ => sizes.prove,
        };
        let ascent = Ascent::new(search.parameters, prove, found.size, trials);
        Some(Self {
            found,
            ascent: match squeezed {
                Some(_) => ascent.by_distance(),
                None => ascent,
            },
            squeezed,
            has_more_cpu: searched.more_cpu.is_some(),
            trials: Vec::new(),
            is_cold: false,
            is_out_of_time: false,
        })
    }

    fn current_answer(&self) -> MemoryFound {
        let (size, confirmed) = (self.ascent.current_size(), self.found.confirmed);
        MemoryFound {
            size,
            margin: size.as_bytes() as f64 / confirmed.as_bytes().max(1) as f64 - 1.0,
            ..self.found
        }
    }

    /// How the size stands that is tested now: starts that all pass must also be far from every bound.
    pub(super) fn standing(&self) -> ProofStanding {
        let standing = self.ascent.size_standing();
        let own = self.own_starts();
        if self.is_near() {
            return ProofStanding::Refuted;
        }
        if self.is_out_of_time {
            return ProofStanding::NotMeasured;
        }
        let (Some(squeezed), ProofStanding::Proven) = (&self.squeezed, standing) else {
            return standing;
        };
        let by_distance = starts_by_distance(&distances(&own, Some(squeezed)));
        let enough = match self.has_more_cpu {
            true => by_distance.max(starts_when_near(&own)),
            false => by_distance,
        };
        match enough.saturating_sub(own.len() as u32) {
            more if more > 0 && !own.is_empty() => ProofStanding::More(more),
            _ => ProofStanding::Proven,
        }
    }

    /// The starts at the size that is tested now.
    fn own_starts(&self) -> Vec<&TrialRecord> {
        let size = Some(self.ascent.current_size());
        let is_own = |t: &&TrialRecord| t.configuration.memory == size && t.verdict.is_evidence();
        self.trials.iter().map(|t| &**t).filter(is_own).collect()
    }

    fn is_near(&self) -> bool {
        self.has_more_cpu && are_near(&self.own_starts())
    }

    /// Reads the fresh starts at one size; opens the missing ones.
    pub(super) fn test_size(&mut self, searched: &SearchedBase, seen: &SeenTrials) -> Next<()> {
        let size = self.ascent.current_size();
        let configuration = searched.at_size(size);
        // Elsewhere only a squeezed start tells which miss memory cures.
        let tells_blind = self.squeezed.is_some() || self.has_more_cpu;
        let mut repeat = 1;
        while let ProofStanding::More(more) = self.standing()
            && self.ascent.current_size() == size
            && !self.is_cold
        {
            let ask = proof_ask(&configuration, repeat, searched.start_deadline);
            let Some(record) = seen.record_for(&ask) else {
                return Err(WantedTrials::missing(ask.repeats(more), seen));
            };
            match TrialOutcome::from(record.verdict) {
                TrialOutcome::Fail if tells_blind && !lacked_memory(record) => {
                    self.ascent.record_blind_miss();
                }
                outcome => self.ascent.record_start(outcome),
            }
            self.trials.push(Arc::clone(record));
            self.is_out_of_time = record.is_left_out();
            self.is_cold = searched.longer.is_some() && is_cold(&self.trials);
            repeat += 1;
        }
        Ok(())
    }
}

pub(super) fn conclude_climb(base: usize, mut climbs: Vec<Option<Climb>>) -> Option<ProvedBase> {
    let climb = climbs[base].take()?;
    let has_missed = |t: &TrialRecord| TrialOutcome::from(t.verdict) == TrialOutcome::Fail;
    let is_blind = |t: &Arc<TrialRecord>| has_missed(t) && !lacked_memory(t);
    Some(ProvedBase {
        base,
        is_proven: climb.standing() == ProofStanding::Proven,
        lacks_cpu: climb.standing() == ProofStanding::Refuted
            && (climb.is_near() || climb.trials.iter().any(is_blind)),
        answer: climb.current_answer(),
        trials: climb.trials,
        is_cold: climb.is_cold,
    })
}
