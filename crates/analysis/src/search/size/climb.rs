//! The fresh starts of a base, size after size, until one is proven or refuted.
//!
//! Owns which start is asked for next; the sizes are [`Ascent`]'s.

use std::sync::Arc;

use super::warmer::is_cold;
use super::{SearchedBase, SizeEnd, SizeSearch, SmallestMemory, proof_ask};
use crate::budget::BurstMemory;
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
    /// The start that found the wall.
    squeezed: Option<Arc<TrialRecord>>,
    /// Whether the distance of fresh starts from it decides, not their number.
    is_by_distance: bool,
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
        let squeezed = searched.squeezed.clone();
        let is_by_distance = squeezed.is_some() && !sizes.is_counted;
        let prove = match (is_by_distance, sizes.is_counted || sizes.prove == 0) {
            (false, false) => sizes.prove.max(COUNTED_STARTS),
            _ => sizes.prove,
        };
        let ascent = Ascent::new(search.parameters, prove, found.size, trials);
        Some(Self {
            found,
            ascent: if is_by_distance {
                ascent.by_distance()
            } else {
                ascent
            },
            squeezed,
            is_by_distance,
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
        if !self.is_by_distance || standing != ProofStanding::Proven {
            return standing;
        }
        let by_distance = starts_by_distance(&distances(&own, self.bursts().as_ref()));
        let enough = if self.has_more_cpu {
            by_distance.max(starts_when_near(&own))
        } else {
            by_distance
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

    /// What the bursts of all starts with these options held, at whatever size.
    fn bursts(&self) -> Option<BurstMemory> {
        let fresh = self.trials.iter().map(|trial| &**trial);
        BurstMemory::from_starts(self.squeezed.as_deref()?, fresh)
    }

    fn is_near(&self) -> bool {
        self.has_more_cpu && are_near(&self.own_starts())
    }

    /// Reads the fresh starts at one size; opens the missing ones.
    pub(super) fn test_size(&mut self, searched: &SearchedBase, seen: &SeenTrials) -> Next<()> {
        let size = self.ascent.current_size();
        let configuration = searched.at_size(size);
        // Elsewhere only a squeezed start tells which miss memory cures.
        let tells_blind = self.is_by_distance || self.has_more_cpu;
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
            let raised = self.bursts().and_then(|bursts| bursts.limit_above(size));
            if let Some(raised) = raised {
                self.ascent.raise_to(raised);
            }
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
