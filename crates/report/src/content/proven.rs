//! How sure an answer is: what its fresh starts prove, each by itself and together.

use loadline_analysis::proof::Proof;

use super::headline::sentence;
use crate::format;

/// Fresh starts without a miss, and what they show at 95 % confidence: fewer than one start in so
/// many misses (1 − 0.05^(1/60) is 4.9 %).
const NARROWER: (u32, u64) = (60, 20);

/// What the starts show, and how many would show clearly more.
pub(super) fn proven_how(proof: &Proof) -> String {
    if proof.starts == 0 {
        return "It has not been proven by fresh starts.".to_owned();
    }
    let bound = proof.failure_upper_bound;
    // Rounded to the safe side.
    let one_in = (1.0 / bound.max(f64::EPSILON)).floor() as u64;
    let could = match one_in {
        0 | 1 => format!("{} of all starts", format::percent(bound)),
        n => format!("1 start in {n}"),
    };
    let narrower = match one_in < NARROWER.1 && proof.passes == proof.starts {
        true => format!(
            "; --prove {} narrows that to 1 in {}",
            NARROWER.0, NARROWER.1
        ),
        false => String::new(),
    };
    format!(
        "{} of {} fresh starts of exactly this size kept the SLO: up to {could} could still miss it (95 % confidence){narrower}.",
        proof.passes, proof.starts,
    )
}

/// What all starts say together where one has too few requests.
pub(super) fn together(proof: &Proof) -> impl Iterator<Item = String> {
    proof
        .pooled
        .iter()
        .map(|pooled| sentence(&pooled.sentence()))
}
