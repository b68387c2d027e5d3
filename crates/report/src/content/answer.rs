//! What the first screen says of an answer beside its sentence: saved, measured, proven, why not less.
//!
//! Owns which facts stand there and how they are called; their words are the headline's, so that the
//! same thing is never said in two ways.

use loadline_analysis::deployment::{Deployment, WhyNot};

use super::claim::AnswerClaim;
use super::headline::{
    carried_sentence, incomplete_sentence, measured_what, next_smaller, with_full_stop,
};
use super::proven::proven_how;
use super::{budget, money, saving};
use crate::view::ResultView;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFact {
    pub name: &'static str,
    pub words: String,
}

impl AnswerFact {
    fn new(name: &'static str, words: String) -> Self {
        Self { name, words }
    }
}

pub fn facts(view: &ResultView) -> Vec<AnswerFact> {
    let Some(recommendation) = &view.recommendation else {
        return Vec::new();
    };
    let incomplete = incomplete_sentence(view).map(|words| AnswerFact::new("Not complete", words));
    let saving = saving::saving_sentence(view).map(|words| AnswerFact::new("Saving", words));
    let claim = AnswerClaim::new(view, recommendation);
    let trend = claim
        .describe_trend()
        .map(|words| AnswerFact::new("Live set", words));
    let budget =
        budget::describe_budget(recommendation).map(|words| AnswerFact::new("Memory", words));
    let proof = AnswerFact::new("Proof", proven_how(&recommendation.proof));
    let (measured, next) = match &recommendation.deployment {
        Some(deployment) => (carried_sentence(deployment), next_cheaper(view, deployment)),
        None => {
            let next = next_smaller(view, recommendation);
            let next = next.map(|words| AnswerFact::new("Next smaller", words));
            (measured_what(view, recommendation), next)
        }
    };
    let measured = AnswerFact::new("Measured", measured);
    let first = incomplete.into_iter().chain(trend).chain(saving);
    let first = first.chain([measured]).chain(budget);
    first.chain([proof]).chain(next).collect()
}

/// The dearest of those that are cheaper, and what it breaks.
fn next_cheaper(view: &ResultView, deployment: &Deployment) -> Option<AnswerFact> {
    let price = |why: &&WhyNot| why.neighbour.cost.per_month;
    let next = deployment.why_not.iter();
    let next = next.max_by(|a, b| price(a).total_cmp(&price(b)))?;
    let words = with_full_stop(&money::why_not(view, next));
    Some(AnswerFact::new("Next cheaper", words))
}
