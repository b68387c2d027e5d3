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
    let budget = budget::describe_budget(recommendation).or_else(|| claim.describe_unbudgeted());
    let budget = budget.map(|words| AnswerFact::new("Memory", words));
    let proof = AnswerFact::new("Proof", runs::say_of_runs(proven_how(&claim), view));
    let (measured, next) = match &recommendation.deployment {
        Some(deployment) => (carried_sentence(deployment), next_cheaper(view, deployment)),
        None => {
            let next = next_smaller(view, recommendation);
            let next = next.map(|words| AnswerFact::new("Next smaller", words));
            (measured_what(view, recommendation), next)
        }
    };
    // A run has no load.
    let measured = (!runs::is_of_runs(view)).then(|| AnswerFact::new("Measured", measured));
    let first = incomplete.into_iter().chain(trend).chain(saving);
    let peak = peak::peak_sentence(view, recommendation);
    let peak = peak.map(|words| AnswerFact::new("Peak", words));
    let first = first.chain(measured).chain(peak).chain(budget);
    let steps = AnswerFact::new("Next", next_steps(view, &claim));
    let less_cpu = smaller::smaller_cpu(view, recommendation).into_iter();
    let less_cpu = less_cpu.map(|words| AnswerFact::new("Less CPU", with_full_stop(&words)));
    let boost = start_cpu::start_cpu_sentence(view, &recommendation.configuration)
        .map(|words| AnswerFact::new("Start", words));
    let last = next.into_iter().chain(less_cpu).chain(boost);
    let last = last.chain([steps]);
    first.chain([proof]).chain(last).collect()
}

/// What to type after reading; a reader of the report alone may have no shell, and passes it on.
fn next_steps(view: &ResultView, claim: &AnswerClaim<'_>) -> String {
    let id = shell_quoted(format::short_id(&view.id));
    let soak = match claim.soak.is_some() || runs::is_of_runs(view) {
        true => String::new(),
        false => format!("Before it ships, soak it: `loadline soak {id} --for 30m`. "),
    };
    let saved = match view.today {
        Some(_) => String::new(),
        None => {
            format!(
                " What it saves against the present size: `loadline report {id} --today 1/2Gi`."
            )
        }
    };
    format!("{soak}The files to ship: `loadline emit {id} --to DIR`.{saved}")
}

fn next_cheaper(view: &ResultView, deployment: &Deployment) -> Option<AnswerFact> {
    let price = |why: &&WhyNot| why.neighbour.cost.per_month;
    let next = deployment.why_not.iter();
    let next = next.max_by(|a, b| price(a).total_cmp(&price(b)))?;
    let words = with_full_stop(&money::why_not(view, next));
    Some(AnswerFact::new("Next cheaper", words))
}
