//! Whether a shipped size still holds: fresh starts, one after the other, until they decide.
//!
//! Owns when starts suffice: for the SLO by Wald's sequential test, against a baseline by the rule
//! of `crate::shift`, whichever needs more; a shown rise or miss ends it. From [`FEWEST`] to
//! [`MOST`] starts. Source: Wald, "Sequential Tests of Statistical Hypotheses", Annals of
//! Mathematical Statistics 16 (1945).

use std::sync::Arc;
use std::time::Duration;

use super::size::proof_ask;
use super::{Next, SeenTrials, TrialAsk, TrialSearch, WantedTrials};
use crate::baseline::{
    self, Baseline, ComparisonGaps, MeasurementConditions, StartFigures, find_comparison_gaps,
};
use crate::proof::is_proof;
use crate::record::{Configuration, TrialRecord};
use crate::shift::{self, FigureShift, ShiftStanding, measure_shift};

pub const FEWEST: u32 = 3;
pub const MOST: u32 = 20;
/// Starts that become a baseline: those of every later day are held against them.
pub const FIRST: u32 = MOST;
const KEPT: f64 = 0.05;
/// A size that no longer holds misses every second start.
const BROKEN: f64 = 0.5;
/// Share of sizes that keep their promise and are called broken, at most.
const FALSE_ALARM: f64 = 0.01;
/// Share of broken sizes that are missed, at most.
const OVERLOOKED: f64 = 0.1;

#[derive(Debug, Clone)]
pub struct VerifySearch {
    pub configuration: Configuration,
    pub start_deadline: Duration,
    pub ground: MeasurementConditions,
    pub baseline: Option<Baseline>,
    /// Run at least this many starts, whatever they show: they become the next baseline.
    pub at_least: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SloStanding {
    Holds,
    Broken,
    Open,
    NotMeasured,
}

#[derive(Debug, Clone)]
pub struct VerifyOutcome {
    pub trials: Vec<Arc<TrialRecord>>,
    pub starts: Vec<StartFigures>,
    pub slo: SloStanding,
    pub cpu: Option<FigureShift>,
    pub memory: Option<FigureShift>,
    pub unlike: ComparisonGaps,
}

impl VerifyOutcome {
    pub fn has_risen(&self) -> bool {
        let rose =
            |shift: &Option<FigureShift>| shift.is_some_and(|s| s.standing == ShiftStanding::Rose);
        rose(&self.cpu) || rose(&self.memory)
    }

    pub fn holds(&self) -> bool {
        self.slo == SloStanding::Holds && !self.has_risen()
    }
}

impl TrialSearch for VerifySearch {
    type Answer = VerifyOutcome;

    fn next(&self, seen: &SeenTrials) -> Next<VerifyOutcome> {
        let mut verified = VerifyOutcome {
            trials: Vec::new(),
            starts: Vec::new(),
            slo: SloStanding::Open,
            cpu: None,
            memory: None,
            unlike: self.comparison_gaps(),
        };
        for repeat in 1.. {
            if self.is_over(&mut verified) {
                break;
            }
            let ask = proof_ask(&self.configuration, repeat, self.start_deadline);
            let Some(record) = seen.record_for(&ask) else {
                return Err(self.wanted_trials(&ask, &verified, seen));
            };
            verified.starts.extend(StartFigures::for_start(record));
            verified.trials.push(Arc::clone(record));
        }
        Ok(verified)
    }
}

impl VerifySearch {
    /// The starts needed in any case, then the next ones as guesses.
    fn wanted_trials(
        &self,
        first: &TrialAsk,
        verified: &VerifyOutcome,
        seen: &SeenTrials,
    ) -> WantedTrials {
        let measured = verified.starts.len() as u32;
        let needed = FEWEST.max(self.at_least).saturating_sub(measured).max(1);
        let missing = WantedTrials::missing(first.repeats(MOST), seen);
        let mut all = missing.wanted.into_iter();
        WantedTrials {
            wanted: all.by_ref().take(needed as usize).collect(),
            guesses: all.take(FEWEST as usize).collect(),
        }
    }

    fn comparison_gaps(&self) -> ComparisonGaps {
        let baseline = self.baseline.as_ref();
        let gaps = baseline.map(|b| find_comparison_gaps(&b.ground, &self.ground));
        gaps.unwrap_or_default()
    }

    fn is_over(&self, verified: &mut VerifyOutcome) -> bool {
        let measured = verified.starts.len() as u32;
        let not_measured = verified.trials.len() as u32 - measured;
        if not_measured > FEWEST.max(measured) {
            verified.slo = SloStanding::NotMeasured;
            return true;
        }
        if measured < FEWEST {
            return false;
        }
        verified.slo = test_slo(&verified.starts);
        if let Some(baseline) = &self.baseline {
            let too_few = |starts: &[StartFigures]| baseline::too_few_requests(starts);
            let of_few = || too_few(&baseline.starts).or_else(|| too_few(&verified.starts));
            verified.unlike.cpu = verified.unlike.cpu.take().or_else(of_few);
            let compare = |of: fn(&[StartFigures]) -> Vec<f64>, bounds| {
                measure_shift(&of(&baseline.starts), &of(&verified.starts), bounds)
            };
            let (cpu, memory) = (&verified.unlike.cpu, &verified.unlike.memory);
            let is_alike = |why: &Option<String>| why.is_none();
            let cpu = is_alike(cpu).then(|| compare(baseline::cpu_per_request, shift::CPU));
            let memory = is_alike(memory).then(|| compare(baseline::memory_needs, shift::MEMORY));
            (verified.cpu, verified.memory) = (cpu.flatten(), memory.flatten());
        }
        let shifts = [verified.cpu, verified.memory];
        let mut shifts = shifts.iter().flatten();
        let is_decided =
            verified.slo != SloStanding::Open && shifts.all(|s| s.standing != ShiftStanding::Open);
        if measured >= MOST {
            if verified.slo == SloStanding::Open {
                verified.slo = by_count(&verified.starts);
            }
            return true;
        }
        let is_enough = measured >= self.at_least;
        verified.slo == SloStanding::Broken || is_enough && (is_decided || verified.has_risen())
    }
}

fn count_kept(starts: &[StartFigures]) -> u64 {
    starts.iter().filter(|start| start.kept).count() as u64
}

/// The sequential test: the likelihood of these starts if the size is broken over that if it holds.
fn test_slo(starts: &[StartFigures]) -> SloStanding {
    let passes = count_kept(starts) as f64;
    let misses = starts.len() as f64 - passes;
    let likelihood = misses * (BROKEN / KEPT).ln() + passes * ((1.0 - BROKEN) / (1.0 - KEPT)).ln();
    if likelihood >= ((1.0 - OVERLOOKED) / FALSE_ALARM).ln() {
        SloStanding::Broken
    } else if likelihood <= (OVERLOOKED / (1.0 - FALSE_ALARM)).ln() {
        SloStanding::Holds
    } else {
        SloStanding::Open
    }
}

fn by_count(starts: &[StartFigures]) -> SloStanding {
    if is_proof(count_kept(starts), starts.len() as u64) {
        SloStanding::Holds
    } else {
        SloStanding::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(passes: usize, misses: usize) -> Vec<StartFigures> {
        let of = |kept| StartFigures {
            kept,
            ..StartFigures::default()
        };
        [vec![of(true); passes], vec![of(false); misses]].concat()
    }

    #[test]
    fn four_starts_that_keep_it_hold_and_two_that_miss_break_it() {
        assert_eq!(test_slo(&starts(3, 0)), SloStanding::Open);
        assert_eq!(test_slo(&starts(4, 0)), SloStanding::Holds);
        assert_eq!(test_slo(&starts(0, 2)), SloStanding::Broken);
        assert_eq!(test_slo(&starts(2, 1)), SloStanding::Open);
        assert_eq!(test_slo(&starts(7, 1)), SloStanding::Open);
        assert_eq!(test_slo(&starts(8, 1)), SloStanding::Holds);
        assert_eq!(by_count(&starts(19, 1)), SloStanding::Holds);
        assert_eq!(by_count(&starts(18, 2)), SloStanding::Broken);
    }
}
