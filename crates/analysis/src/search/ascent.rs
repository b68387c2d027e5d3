//! From a found size to a proven one: fresh starts, and how far up to go after misses.
//!
//! Owns the tests of one size after the other and the step between them; [`judge_starts`] decides
//! when starts prove or refute a size. It never chooses the first size. Misses that more memory
//! cures follow a logistic curve over the size (crate simulated, `world::MemoryWall`): its logit is
//! a line, so the miss rates so far, made monotone, predict where misses end.

use std::collections::BTreeMap;

use loadline_sizing::Bytes;

use super::TrialOutcome;
use super::min_memory::{MemoryParameters, scale_steps};
use crate::proof::{ProofCount, ProofStanding, judge_starts};

/// Share of starts that may miss at the size that the curve leads to.
const RARE: f64 = 0.01;
/// A refuted size moves up by at least this factor: less is within the spread of starts.
const LEAST: f64 = 1.04;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct MissTally {
    misses: f64,
    starts: f64,
}

#[derive(Debug, Clone)]
pub struct Ascent {
    parameters: MemoryParameters,
    prove: u32,
    is_by_distance: bool,
    /// Every start that counted, of the search and of proofs, by size in steps.
    tallies: BTreeMap<u64, MissTally>,
    refuted: Vec<u64>,
    at: u64,
    top: u64,
    count: ProofCount,
    blind_misses: u32,
}

impl Ascent {
    /// Begins at `size`; `trials` are those of the search that found it.
    pub fn new(
        parameters: MemoryParameters,
        prove: u32,
        size: Bytes,
        trials: impl IntoIterator<Item = (Bytes, TrialOutcome)>,
    ) -> Self {
        let at = size.as_bytes() / parameters.step_bytes();
        let first = parameters.high.as_bytes() / parameters.step_bytes();
        let mut ascent = Self {
            at,
            top: first.max(at * 2).min(parameters.max_steps()),
            parameters,
            prove,
            is_by_distance: false,
            tallies: BTreeMap::new(),
            refuted: Vec::new(),
            count: ProofCount::default(),
            blind_misses: 0,
        };
        for (size, outcome) in trials {
            ascent.tally_start(size.as_bytes() / parameters.step_bytes(), outcome);
        }
        ascent
    }

    pub fn by_distance(mut self) -> Self {
        self.is_by_distance = true;
        self
    }

    pub fn current_size(&self) -> Bytes {
        self.parameters.steps_to_bytes(self.at)
    }

    /// How the size stands. Refuted: it is the largest that is tested, or its misses are none that more
    /// memory cures.
    pub fn size_standing(&self) -> ProofStanding {
        self.standing_of(self.count)
    }

    fn standing_of(&self, mut count: ProofCount) -> ProofStanding {
        if self.is_by_distance {
            if count.not_measured > self.prove.max(count.passes) {
                return ProofStanding::NotMeasured;
            }
            count.not_measured = 0;
        }
        judge_starts(self.prove, count, !self.refuted.is_empty())
    }

    /// Takes a fresh start at [`Ascent::current_size`], and goes up where that refutes it.
    pub fn record_start(&mut self, outcome: TrialOutcome) {
        self.tally_start(self.at, outcome);
        self.count.add_outcome(outcome);
        // Few starts support the found size: a miss there moves it up a little, and the next size
        // needs twice as many. From then on a miss asks for more.
        let lacks_memory = self.count.misses > self.blind_misses;
        let is_doubted = self.refuted.is_empty() && lacks_memory;
        let is_refuted = self.size_standing() == ProofStanding::Refuted && lacks_memory;
        if (is_refuted || is_doubted) && self.at < self.top {
            self.refuted.push(self.at);
            // What memory does not cure says nothing about where its lack ends.
            let mut of_memory = self.count;
            of_memory.misses -= self.blind_misses;
            self.at = if self.standing_of(of_memory) == ProofStanding::Refuted {
                self.where_misses_end()
            } else {
                self.little_higher().min(self.top)
            };
            self.count = ProofCount::default();
            self.blind_misses = 0;
        }
    }

    /// Takes a fresh start at [`Ascent::current_size`] that missed and did not lack memory: it counts
    /// against the size, and no larger one is tried for it.
    pub fn record_blind_miss(&mut self) {
        self.count.add_outcome(TrialOutcome::Fail);
        self.blind_misses += 1;
    }

    /// Goes up to a size that the memory of starts asks for. None of the starts before has missed for it,
    /// so that they cast no doubt on it.
    pub fn raise_to(&mut self, size: Bytes) {
        let step = self.parameters.step_bytes();
        let at = size.as_bytes().div_ceil(step).min(self.top);
        if at > self.at {
            self.at = at;
            self.count = ProofCount::default();
            self.blind_misses = 0;
        }
    }

    fn tally_start(&mut self, at: u64, outcome: TrialOutcome) {
        let misses = match outcome {
            TrialOutcome::Invalid => return,
            TrialOutcome::Pass => 0.0,
            TrialOutcome::Fail | TrialOutcome::Crash => 1.0,
        };
        let starts = 1.0;
        let tally = self.tallies.entry(at).or_default();
        tally.add_tally(MissTally { misses, starts });
    }

    fn little_higher(&self) -> u64 {
        scale_steps(self.at, LEAST)
    }

    /// Where the misses of the size just refuted end, as far as the starts say; the largest size
    /// that is tested where two miss alike: then only that can show whether memory helps at all.
    fn where_misses_end(&self) -> u64 {
        let (at, top) = (self.at, self.top);
        let blocks = isotonic(&self.tallies);
        let own = blocks.iter().position(|b| b.from <= at && at <= b.to);
        let own = own.unwrap_or_default();
        let block = blocks[own];
        let alike = |size: &&u64| (block.from..=block.to).contains(*size);
        let is_alone = self.refuted.iter().filter(alike).count() == 1;
        // A search leaves its first size at one miss, so this one is not the first that was refuted:
        // where no block is below, the one before is in the same block.
        match own.checked_sub(1) {
            Some(below) if is_alone => crossing_size(blocks[below], block, at)
                .max(self.little_higher())
                .min(top),
            _ => top,
        }
    }
}

impl MissTally {
    fn add_tally(&mut self, more: Self) {
        self.misses += more.misses;
        self.starts += more.starts;
    }

    fn miss_rate(self) -> f64 {
        self.misses / self.starts
    }

    fn rate_logit(self) -> f64 {
        logit((self.misses + 0.5) / (self.starts + 1.0))
    }
}

fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

#[derive(Debug, Clone, Copy)]
struct SizeBlock {
    from: u64,
    to: u64,
    tally: MissTally,
}

/// Miss rates that fall with the size: neighbours that do not are pooled (pool adjacent violators,
/// Ayer and others 1955).
fn isotonic(tallies: &BTreeMap<u64, MissTally>) -> Vec<SizeBlock> {
    let mut blocks: Vec<SizeBlock> = Vec::new();
    for (&at, &tally) in tallies {
        let mut block = SizeBlock {
            from: at,
            to: at,
            tally,
        };
        while let Some(below) = blocks.pop_if(|b| b.tally.miss_rate() <= block.tally.miss_rate()) {
            block.from = below.from;
            block.tally.add_tally(below.tally);
        }
        blocks.push(block);
    }
    blocks
}

/// Where the line through the logits of two blocks, the upper at `at`, comes to [`RARE`].
fn crossing_size(below: SizeBlock, block: SizeBlock, at: u64) -> u64 {
    let fall = below.tally.rate_logit() - block.tally.rate_logit();
    let further = block.tally.rate_logit() - logit(RARE);
    let steps = (at - below.to) as f64 * (further / fall).max(0.0);
    at + steps.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mib(value: u64) -> Bytes {
        Bytes::from_mib(value)
    }

    #[test]
    fn a_miss_that_no_memory_cures_raises_nothing() {
        let parameters = MemoryParameters::new(mib(64), mib(1024));
        let mut ascent = Ascent::new(parameters, 3, mib(224), []).by_distance();
        ascent.record_start(TrialOutcome::Pass);
        ascent.record_blind_miss();
        assert!(matches!(ascent.size_standing(), ProofStanding::More(18)));
        ascent.record_blind_miss();
        assert_eq!(ascent.size_standing(), ProofStanding::Refuted);
        assert_eq!(ascent.current_size(), mib(224));
        let mut ascent = Ascent::new(parameters, 3, mib(224), []).by_distance();
        ascent.record_start(TrialOutcome::Fail);
        assert_eq!(ascent.current_size(), mib(236));
        let mut ascent = Ascent::new(parameters, 3, mib(224), []).by_distance();
        ascent.record_blind_miss();
        ascent.record_start(TrialOutcome::Fail);
        assert_eq!(
            ascent.current_size(),
            mib(236),
            "one of the two lacked memory"
        );
    }

    /// The sizes tried from 324 MiB up with 20 starts, where `misses` decides by size and by the
    /// number of the start at that size; 300 MiB passed and 292 MiB failed before.
    fn story(misses: impl Fn(u64, u64) -> bool) -> String {
        let before = [
            (mib(292), TrialOutcome::Fail),
            (mib(300), TrialOutcome::Pass),
        ];
        let parameters = MemoryParameters::new(mib(64), mib(1024));
        let mut ascent = Ascent::new(parameters, 20, mib(324), before);
        let mut counts: Vec<(Bytes, u64)> = Vec::new();
        while let ProofStanding::More(_) = ascent.size_standing() {
            let size = ascent.current_size();
            if counts.last().is_none_or(|(last, _)| *last != size) {
                counts.push((size, 0));
            }
            let number = counts.last_mut().map_or(0, |(_, number)| {
                *number += 1;
                *number
            });
            let outcome = if misses(size.as_mib() as u64, number) {
                TrialOutcome::Fail
            } else {
                TrialOutcome::Pass
            };
            ascent.record_start(outcome);
        }
        let counts = counts.iter().map(|(size, n)| format!("{n} at {size}"));
        let counts: Vec<String> = counts.collect();
        format!("{}: {:?}", counts.join(", "), ascent.size_standing())
    }

    #[test]
    fn a_refuted_size_goes_up_as_far_as_the_starts_say() {
        let lines = [
            story(|_, _| false),
            story(|_, number| number == 3),
            story(|size, number| size < 330 && number % 3 == 0),
            story(|size, number| size < 500 && number % 6 == 0),
            story(|_, number| number % 6 == 0),
            story(|size, number| match size {
                324 => number == 1,
                _ => size < 500 && number % 6 == 0,
            }),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        20 at 324Mi: Proven
        3 at 324Mi, 60 at 340Mi: Proven
        3 at 324Mi, 40 at 340Mi: Proven
        6 at 324Mi, 12 at 340Mi, 40 at 1Gi: Proven
        6 at 324Mi, 12 at 340Mi, 12 at 1Gi: Refuted
        1 at 324Mi, 12 at 340Mi, 12 at 376Mi, 40 at 1Gi: Proven
        ");
    }

    #[test]
    fn a_logit_is_that_of_the_rate_and_finite_at_its_ends() {
        assert_eq!(logit(0.5), 0.0);
        assert!((logit(0.8) - 4_f64.ln()).abs() < 1e-12);
        let of = |misses: f64, starts: f64| MissTally { misses, starts }.rate_logit();
        assert!((of(1.0, 3.0) - 0.6_f64.ln()).abs() < 1e-12);
        assert!((of(0.0, 9.0) - (1.0 / 19.0_f64).ln()).abs() < 1e-12);
        assert!((of(9.0, 9.0) + of(0.0, 9.0)).abs() < 1e-12);
    }

    /// 60 steps above the size at which 9 of 10 missed 1 of 10 does: three quarters of that more bring it
    /// to one in 100.
    #[test]
    fn misses_end_where_the_line_through_their_logits_does() {
        let block = |at: u64, misses: f64| SizeBlock {
            from: at,
            to: at,
            tally: MissTally {
                misses,
                starts: 10.0,
            },
        };
        assert_eq!(crossing_size(block(40, 9.0), block(100, 1.0), 100), 145);
        let down = crossing_size(block(40, 1.0), block(100, 9.0), 100);
        assert_eq!(down, 100, "never down");
    }

    #[test]
    fn miss_rates_fall_with_the_size_after_pooling() {
        let of = |misses: f64, starts: f64| MissTally { misses, starts };
        let tallies = BTreeMap::from([
            (10, of(2.0, 2.0)),
            (20, of(0.0, 5.0)),
            (30, of(2.0, 5.0)),
            (40, of(0.0, 9.0)),
        ]);
        let blocks: Vec<_> = isotonic(&tallies)
            .into_iter()
            .map(|b| (b.from, b.to, b.tally.miss_rate()))
            .collect();
        assert_eq!(blocks, [(10, 10, 1.0), (20, 30, 0.2), (40, 40, 0.0)]);
    }

    #[test]
    fn tallies_of_pooled_sizes_are_sums() {
        let mut tally = MissTally {
            misses: 1.0,
            starts: 4.0,
        };
        tally.add_tally(MissTally {
            misses: 2.0,
            starts: 6.0,
        });
        assert_eq!((tally.misses, tally.starts), (3.0, 10.0));
        assert_eq!(tally.miss_rate(), 0.3);
    }
}
