//! How certain an answer is: the proof of its fresh starts, singly and together.

use loadline_analysis::proof::{
    CORRELATION, COUNTED_STARTS, DISTANT_STARTS, Proof, could_still, share_of_starts,
};
use loadline_analysis::record::TrialRecord;
use loadline_analysis::verdict::was_disturbed;

use super::claim::AnswerClaim;
use super::headline::with_full_stop;
use crate::format;

/// Fresh starts without a miss, and the share of misses that they exclude at 95 % confidence, as
/// one start in N (1 − 0.05^(1/60) is 4.9 %).
const NARROWER: (u32, u64) = (60, 20);

const NO_MEMORY: &str = " None of the misses shows too little memory (no page re-reads, a quiet collector): look at CPU and other programs.";
const SOME_NO_MEMORY: &str = " Some of the misses do not show too little memory (no page re-reads, a quiet collector): look at CPU and other programs.";

pub(super) fn proven_how(claim: &AnswerClaim<'_>) -> String {
    let proof = &claim.recommendation.proof;
    if proof.starts == 0 {
        return "No fresh start has tested it.".to_owned();
    }
    if let Some(sentence) = by_distance(claim) {
        return sentence;
    }
    let (bound, (starts, one_in)) = (proof.failure_upper_bound, NARROWER);
    let narrower = if bound > 1.0 / one_in as f64 && proof.passes == proof.starts {
        format!("; --prove {starts} narrows that to 1 in {one_in}")
    } else {
        String::new()
    };
    let blind = match proof.blind_misses {
        0 => "",
        n if n == proof.starts - proof.passes => NO_MEMORY,
        _ => SOME_NO_MEMORY,
    };
    format!(
        "{} of {} fresh starts of exactly this size failed; {}{narrower}.{blind}",
        proof.starts - proof.passes,
        proof.starts,
        could_still(bound),
    )
}

/// The proof by distance: fewer starts suffice because all are far from every bound.
fn by_distance(claim: &AnswerClaim<'_>) -> Option<String> {
    let proof = &claim.recommendation.proof;
    let is_decided = proof.is_proven() && proof.starts < u64::from(COUNTED_STARTS);
    let distances = proof.distances.iter().filter(|_| is_decided);
    let nearest = distances.min_by(|a, b| a.deviations.total_cmp(&b.deviations))?;
    let is_quiet = |t: &&TrialRecord| !was_disturbed(&t.evidence);
    let quiet = claim.fresh_starts().filter(is_quiet).count() as u64;
    let judged = if quiet < u64::from(DISTANT_STARTS) {
        proof.starts
    } else {
        quiet
    };
    let unjudged = if quiet < proof.starts && quiet < u64::from(DISTANT_STARTS) {
        format!(
            " How far latency stays from its bound is not known: other programs disturbed {} of {} starts, and it takes {DISTANT_STARTS} quiet ones; size again when the machine is quiet.",
            proof.starts - quiet,
            proof.starts
        )
    } else {
        String::new()
    };
    Some(format!(
        "{} kept it. The nearest bound is {}, {:.1} standard deviations away: at least {} of such \
         starts stay below it (95 % confidence, starts correlated by {CORRELATION}).{unjudged} \
         `--prove {}` counts starts instead.",
        format::count_of(proof.starts as usize, "fresh start"),
        nearest.of,
        nearest.deviations,
        share_at_least(share_of_starts(nearest.deviations, judged)),
        NARROWER.0,
    ))
}

fn share_at_least(share: f64) -> String {
    if share < 0.999 {
        format!("{:.0} %", (share * 100.0).floor())
    } else {
        "99.9 %".to_owned()
    }
}

pub(super) fn pooled_sentences(proof: &Proof) -> impl Iterator<Item = String> {
    let pooled = proof.pooled.iter();
    pooled.map(|pooled| with_full_stop(&pooled.percentile_sentence()))
}
