//! What the first screen says of an answer beside its sentence: measured, proven, and why not less.
//!
//! Owns which facts stand there and how they are called; their words are the headline's, so that the
//! same thing is never said in two ways.

use loadline_analysis::deployment::WhyNot;

use super::headline::{carried, measured_what, next_smaller, sentence};
use super::money;
use super::proven::proven_how;
use crate::view::ResultView;

/// A fact of the first screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about, in a few words.
    pub name: &'static str,
    /// A sentence.
    pub words: String,
}

impl Fact {
    fn new(name: &'static str, words: String) -> Self {
        Self { name, words }
    }
}

/// The facts, most important first; none without a recommendation.
pub fn facts(view: &ResultView) -> Vec<Fact> {
    let Some(recommendation) = &view.recommendation else {
        return Vec::new();
    };
    let proof = Fact::new("Proof", proven_how(&recommendation.proof));
    let Some(deployment) = &recommendation.deployment else {
        let measured = Fact::new("Measured", measured_what(view, recommendation));
        let next = next_smaller(view, recommendation);
        let next = next.map(|words| Fact::new("Next smaller", words));
        return [measured, proof].into_iter().chain(next).collect();
    };
    let dearest = |a: &&WhyNot, b: &&WhyNot| {
        let price = |why: &WhyNot| why.neighbour.cost.per_month;
        price(a).total_cmp(&price(b))
    };
    let next = deployment.why_not.iter().max_by(dearest);
    let next = next.map(|why| Fact::new("Next cheaper", sentence(&money::why_not(view, why))));
    let measured = Fact::new("Measured", carried(deployment));
    [measured, proof].into_iter().chain(next).collect()
}
