//! Fresh starts at exactly the recommended size, and what they prove.
//!
//! Owns the one rule for every proof, of a size and of a deployment. The starts do not choose the
//! size: they are counted after it is found. Where their distance from every bound is large, that
//! decides ([`distance`]) and few are enough.

mod distance;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::BurstMemory;
use crate::interval::failure_upper_bound;
use crate::pooled::{PooledPercentile, pool_percentiles};
use crate::record::{TrialPurpose, TrialRecord, TrialVerdict};
use crate::search::TrialOutcome;
use crate::text;
use crate::verdict::lacked_memory;

pub use distance::{
    CORRELATION, Distance, are_near, distances, share_of_starts, squeezed, starts_by_distance,
    starts_when_near,
};

pub const COUNTED_STARTS: u32 = 20;
pub const DISTANT_STARTS: u32 = 3;
pub const CONFIDENCE: f64 = 0.95;
pub const STARTS_PER_FAILURE: u64 = 20;

pub fn is_proof(passes: u64, starts: u64) -> bool {
    starts > 0 && starts.saturating_sub(passes) * STARTS_PER_FAILURE <= starts
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProofCount {
    pub passes: u32,
    pub misses: u32,
    pub not_measured: u32,
}

impl ProofCount {
    pub fn from_verdicts(verdicts: impl IntoIterator<Item = TrialVerdict>) -> Self {
        let mut count = Self::default();
        for verdict in verdicts {
            count.add_outcome(TrialOutcome::from(verdict));
        }
        count
    }

    pub fn add_outcome(&mut self, outcome: TrialOutcome) {
        match outcome {
            TrialOutcome::Pass => self.passes += 1,
            TrialOutcome::Fail | TrialOutcome::Crash => self.misses += 1,
            TrialOutcome::Invalid => self.not_measured += 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofStanding {
    More(u32),
    Proven,
    Refuted,
    NotMeasured,
}

/// The standing of a size after these starts, when `wanted` passing ones prove it.
///
/// A start that misses doubles the number of starts required; so does a size that follows a refuted
/// one (`is_doubted`): repeating until one passes by luck proves nothing. Two misses refute a size
/// unless they are at most one start in [`STARTS_PER_FAILURE`]. Its error rates: crate simulated,
/// `tests/size_error_rates.rs`.
pub fn judge_starts(wanted: u32, count: ProofCount, is_doubted: bool) -> ProofStanding {
    let each = STARTS_PER_FAILURE as u32;
    let (misses, not_measured) = (count.misses, count.not_measured);
    let starts = count.passes + misses + not_measured;
    if misses > 1 && misses * each > starts {
        return ProofStanding::Refuted;
    }
    if not_measured > 1 && (misses + not_measured) * each > starts {
        return ProofStanding::NotMeasured;
    }
    let again = wanted * (1 + misses + u32::from(is_doubted));
    let enough = again.max((misses + not_measured) * each);
    match enough.saturating_sub(starts) {
        0 => ProofStanding::Proven,
        more => ProofStanding::More(more),
    }
}

/// Fresh starts at the recommended size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Starts that kept the SLO.
    pub passes: u64,
    /// Starts that counted.
    pub starts: u64,
    /// Starts that could not be measured; they show nothing, and too many leave it unproven.
    pub not_measured: u64,
    /// With 95 % confidence the probability of a failing start is below this, in [0, 1]
    /// (Clopper-Pearson, one-sided); 1 when nothing was proven.
    pub failure_upper_bound: f64,
    /// The starts that failed: trial id and reason.
    pub failures: Vec<(String, String)>,
    /// Of the starts that failed, those without any sign of too little memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blind_misses: u64,
    /// Percentiles that rest on too few requests in one start, over all starts together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled: Vec<PooledPercentile>,
    /// How far the starts are from each bound, where a squeezed start found the wall.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distances: Vec<Distance>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub fn count_proof(size: Bytes, trials: &[TrialRecord]) -> Proof {
    let is_own =
        |t: &&TrialRecord| t.purpose == TrialPurpose::Prove && t.configuration.memory == Some(size);
    let proofs = trials.iter().filter(is_own);
    let (counted, not): (Vec<_>, Vec<_>) = proofs.partition(|t| t.verdict.is_evidence());
    let failed = counted.iter().filter(|t| t.verdict != TrialVerdict::Pass);
    let failures = failed.map(|t| (t.id.clone(), t.reason.to_string()));
    let failures: Vec<_> = failures.collect();
    let missed = counted
        .iter()
        .filter(|t| t.verdict == TrialVerdict::SloMiss);
    let blind = missed.filter(|t| !lacked_memory(t));
    let starts = counted.len() as u64;
    Proof {
        blind_misses: blind.count() as u64,
        passes: starts - failures.len() as u64,
        starts,
        not_measured: not.len() as u64,
        failure_upper_bound: failure_upper_bound(failures.len() as u64, starts, CONFIDENCE),
        failures,
        pooled: pool_percentiles(&counted),
        distances: squeezed(trials).map_or(Vec::new(), |found| {
            distances(&counted, BurstMemory::from_starts(found, trials).as_ref())
        }),
    }
}

impl Proof {
    /// Whether the starts prove the size: all but one in [`STARTS_PER_FAILURE`] kept the SLO, and
    /// their pooled requests do too if a single start has too few.
    pub fn is_proven(&self) -> bool {
        self.is_counted() && self.pooled.iter().all(PooledPercentile::is_kept)
    }

    fn is_counted(&self) -> bool {
        is_proof(self.passes, self.starts + self.not_measured) || self.is_far()
    }

    /// Whether fewer starts suffice because all are far from every bound.
    fn is_far(&self) -> bool {
        let is_whole = self.passes == self.starts && self.not_measured <= self.starts;
        let enough = starts_by_distance(&self.distances).max(DISTANT_STARTS);
        !self.distances.is_empty() && is_whole && self.starts >= u64::from(enough)
    }

    pub fn is_undecided(&self) -> bool {
        let possible = self.passes + self.not_measured;
        !self.is_counted() && is_proof(possible, self.starts + self.not_measured)
    }

    pub fn broken_together(&self) -> Option<&PooledPercentile> {
        let mut broken = self.pooled.iter().filter(|pooled| !pooled.is_kept());
        broken.find(|_| self.is_counted())
    }

    /// `0 of 20 fresh starts failed; up to 1 in 7 could still (95 % confidence)`.
    pub fn proof_sentence(&self) -> String {
        let not_measured = match self.not_measured {
            0 => String::new(),
            n => format!("; {n} could not be measured"),
        };
        if self.starts == 0 {
            return format!("not tested: no fresh start ran at this size{not_measured}");
        }
        let (failed, all) = (self.starts - self.passes, self.starts);
        let could = could_still(self.failure_upper_bound);
        format!("{failed} of {all} fresh starts failed; {could}{not_measured}")
    }
}

pub fn one_in(share: f64) -> String {
    match (1.0 / share.max(f64::EPSILON)).floor() as u64 {
        0 | 1 => text::short_percent(share),
        n => format!("1 in {n}"),
    }
}

/// What starts do not exclude: `up to 1 in 7 could still (95 % confidence)`.
pub fn could_still(failure_upper_bound: f64) -> String {
    let (share, sure) = (one_in(failure_upper_bound), text::short_percent(CONFIDENCE));
    format!("up to {share} could still ({sure} confidence)")
}

pub fn why_unproven(wanted: u32, count: ProofCount) -> Option<&'static str> {
    match judge_starts(wanted, count, false) {
        _ if wanted == 0 => Some("no proof was asked for"),
        ProofStanding::Proven => None,
        ProofStanding::NotMeasured => Some("its proof could not be measured"),
        ProofStanding::Refuted | ProofStanding::More(_) => Some("its proof failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::trial_record;
    use crate::record::InvalidReason;

    #[test]
    fn one_start_in_twenty_may_fail() {
        for (passes, starts, wanted) in [
            (0, 0, false),
            (1, 1, true),
            (18, 19, false),
            (19, 20, true),
            (18, 20, false),
            (0, 20, false),
            (38, 40, true),
        ] {
            assert_eq!(is_proof(passes, starts), wanted, "{passes} of {starts}");
        }
    }

    #[test]
    fn a_miss_asks_for_as_many_again_and_two_refute() {
        let of = |passes, misses, not_measured| {
            let count = ProofCount {
                passes,
                misses,
                not_measured,
            };
            judge_starts(20, count, false)
        };
        assert_eq!(of(0, 0, 0), ProofStanding::More(20));
        assert_eq!(of(20, 0, 0), ProofStanding::Proven);
        assert_eq!(of(19, 1, 0), ProofStanding::More(20));
        assert_eq!(of(39, 1, 0), ProofStanding::Proven);
        assert_eq!(of(30, 2, 0), ProofStanding::Refuted);
        assert_eq!(of(37, 2, 0), ProofStanding::Refuted);
        assert_eq!(of(38, 2, 0), ProofStanding::More(20), "one in twenty");
        assert_eq!(of(19, 0, 1), ProofStanding::Proven);
        assert_eq!(of(3, 0, 2), ProofStanding::NotMeasured);
        assert_eq!(of(37, 0, 2), ProofStanding::NotMeasured);
        assert_eq!(of(38, 0, 2), ProofStanding::Proven, "one in twenty");
        let five = |misses| {
            let count = ProofCount {
                passes: 5 - misses,
                misses,
                not_measured: 0,
            };
            judge_starts(5, count, false)
        };
        assert_eq!(
            (five(0), five(1)),
            (ProofStanding::Proven, ProofStanding::More(15))
        );
        let doubted = judge_starts(20, ProofCount::default(), true);
        assert_eq!(doubted, ProofStanding::More(40));
    }

    fn proof_of(passes: usize, misses: usize, not_measured: usize) -> Proof {
        let verdicts = [
            vec![TrialVerdict::Pass; passes],
            vec![TrialVerdict::SloMiss; misses],
            vec![TrialVerdict::Invalid(InvalidReason::Noise); not_measured],
        ];
        let of = |verdict| trial_record("p", TrialPurpose::Prove, 324, verdict);
        let trials: Vec<_> = verdicts.concat().into_iter().map(of).collect();
        count_proof(Bytes::from_mib(324), &trials)
    }

    #[test]
    fn starts_that_could_not_be_measured_show_nothing() {
        let proof = |passes, misses, not_measured| {
            let proof = proof_of(passes, misses, not_measured);
            (proof.is_proven(), proof.is_undecided())
        };
        assert_eq!(proof(20, 0, 0), (true, false));
        assert_eq!(proof(19, 0, 1), (true, false));
        assert_eq!(proof(18, 0, 2), (false, true));
        assert_eq!(proof(1, 0, 19), (false, true));
        assert_eq!(proof(0, 0, 20), (false, true));
        assert_eq!(proof(17, 1, 2), (false, true));
        assert_eq!(proof(17, 2, 1), (false, false));
        assert_eq!(proof(0, 0, 0), (false, false));
    }

    #[test]
    fn only_proofs_of_the_size_count() {
        let trials = [
            trial_record("p1", TrialPurpose::Prove, 324, TrialVerdict::Pass),
            trial_record("p2", TrialPurpose::Prove, 320, TrialVerdict::SloMiss),
            trial_record("c1", TrialPurpose::Confirm, 324, TrialVerdict::SloMiss),
        ];
        let proof = count_proof(Bytes::from_mib(324), &trials);
        assert_eq!((proof.passes, proof.starts), (1, 1));
    }

    #[test]
    fn a_bound_is_said_as_one_start_in_so_many_and_never_as_too_few() {
        for (share, said) in [
            (0.139, "1 in 7"),
            (0.049, "1 in 20"),
            (0.05, "1 in 20"),
            (0.5, "1 in 2"),
            (0.632, "63.2 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(one_in(share), said);
        }
    }

    #[test]
    fn a_start_that_could_not_be_measured_refutes_nothing() {
        let (pass, miss) = (TrialVerdict::Pass, TrialVerdict::SloMiss);
        let invalid = TrialVerdict::Invalid(InvalidReason::Noise);
        let of = |wanted, all: &[TrialVerdict]| {
            why_unproven(wanted, ProofCount::from_verdicts(all.iter().copied()))
        };
        let not_measured = Some("its proof could not be measured");
        assert_eq!(of(3, &[pass, invalid, invalid]), not_measured);
        let most = [vec![pass; 19], vec![invalid]].concat();
        assert_eq!(of(20, &most), None, "one in twenty");
        let one = [vec![pass], vec![invalid; 19]].concat();
        assert_eq!(of(20, &one), not_measured);
        assert_eq!(of(3, &[pass, miss, miss]), Some("its proof failed"));
        assert_eq!(of(2, &[invalid, invalid]), not_measured);
        assert_eq!(of(0, &[]), Some("no proof was asked for"));
    }

    #[test]
    fn what_starts_do_not_exclude_is_told_on_the_safe_side() {
        let told = could_still(0.139);
        assert_eq!(told, "up to 1 in 7 could still (95 % confidence)");
        assert_eq!(one_in(0.5), "1 in 2");
        assert_eq!(one_in(0.51), "51 %");
        assert_eq!(one_in(1.0), "100 %");
    }

    #[test]
    fn a_proof_says_what_failed_and_what_was_broken_together() {
        let lines = [(0, 0, 0), (0, 0, 2), (20, 0, 0), (18, 2, 1)];
        let lines =
            lines.map(|(passes, misses, not)| proof_of(passes, misses, not).proof_sentence());
        insta::assert_snapshot!(lines.join("\n"), @"
        not tested: no fresh start ran at this size
        not tested: no fresh start ran at this size; 2 could not be measured
        0 of 20 fresh starts failed; up to 1 in 7 could still (95 % confidence)
        2 of 20 fresh starts failed; up to 1 in 3 could still (95 % confidence); 1 could not be measured
        ");

        let with = |mut proof: Proof, high: f64| {
            proof.pooled = vec![PooledPercentile {
                request: None,
                objective: "p99<50ms".parse::<crate::slo::Slo>().unwrap().objectives[0],
                starts: proof.starts,
                requests_of_a_start: 10,
                requests: 200,
                measured: Some(high),
                low: Some(high),
                high: Some(high),
            }];
            (proof.is_proven(), proof.broken_together().is_some())
        };
        assert_eq!(with(proof_of(20, 0, 0), 0.04), (true, false));
        assert_eq!(with(proof_of(20, 0, 0), 0.06), (false, true));
        assert_eq!(with(proof_of(18, 2, 0), 0.06), (false, false), "each alone");
    }
}
