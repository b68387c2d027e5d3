//! The first screen of an answer, below its sentence: savings, measurements, proof, and why not
//! less.
//!
//! Owns which facts appear there and their names; their words come from the headline, so that each
//! fact has only one wording.

use loadline_analysis::deployment::{Deployment, WhyNot};

use super::claim::AnswerClaim;
use super::headline::{
    carried_sentence, incomplete_sentence, measured_what, next_smaller, with_full_stop,
};
use super::proven::proven_how;
use super::{budget, money, peak, runs, saving, shell_quoted, smaller, start_cpu};
use crate::format;
use crate::view::ResultView;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFact {
    pub name: &'static str,
    pub words: String,
}

pub fn facts(view: &ResultView) -> Vec<AnswerFact> {
    let Some(recommendation) = &view.recommendation else {
        return Vec::new();
    };
    let claim = AnswerClaim::new(view, recommendation);
    let deployment = recommendation.deployment.as_ref();
    let measured = match deployment {
        Some(deployment) => carried_sentence(deployment),
        None => measured_what(view, recommendation),
    };
    let budget = budget::describe_budget(recommendation).or_else(|| claim.describe_unbudgeted());
    let mut facts = Vec::new();
    let mut add = |name, words: Option<String>| {
        facts.extend(words.map(|words| AnswerFact { name, words }));
    };
    add("Not complete", incomplete_sentence(view));
    add("Live set", claim.describe_trend());
    add("Saving", saving::saving_sentence(view));
    // A run has no load.
    let measured = Some(measured).filter(|_| !runs::is_of_runs(view));
    add("Measured", measured);
    add("Peak", peak::peak_sentence(view, recommendation));
    add("Memory", budget);
    let proof = runs::say_of_runs(proven_how(&claim), view);
    add("Proof", Some(proof));
    match deployment {
        Some(deployment) => add("Next cheaper", next_cheaper(view, deployment)),
        None => add("Next smaller", next_smaller(view, recommendation)),
    }
    for words in smaller::smaller_cpu(view, recommendation) {
        add("Less CPU", Some(with_full_stop(&words)));
    }
    let answer = &recommendation.configuration;
    add("Start", start_cpu::start_cpu_sentence(view, answer));
    add("Next", Some(next_steps(view, &claim)));
    facts
}

/// What to type after reading; a reader of the report alone may have no shell, and passes it on.
fn next_steps(view: &ResultView, claim: &AnswerClaim<'_>) -> String {
    let id = shell_quoted(format::short_id(&view.id));
    let soak = if claim.soak.is_some() || runs::is_of_runs(view) {
        String::new()
    } else {
        format!("Before it ships, soak it: `loadline soak {id} --for 30m`. ")
    };
    let saved = match view.today {
        Some(_) => String::new(),
        None => format!(
            " What it saves against the present size: `loadline report {id} --today 1/2Gi`."
        ),
    };
    format!("{soak}The files to ship: `loadline emit {id} --to DIR`.{saved}")
}

fn next_cheaper(view: &ResultView, deployment: &Deployment) -> Option<String> {
    let price = |why: &&WhyNot| why.neighbour.cost.per_month;
    let next = deployment.why_not.iter();
    let next = next.max_by(|a, b| price(a).total_cmp(&price(b)))?;
    Some(with_full_stop(&money::why_not(view, next)))
}
