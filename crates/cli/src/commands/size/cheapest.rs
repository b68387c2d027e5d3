//! `loadline size --prices`: from the search for the cheapest deployment to its recommendation.

use loadline_analysis::deployment::Course;
use loadline_analysis::recommend::recommend_deployment;
use loadline_analysis::record::{Configuration, Purpose, TrialRecord};
use loadline_analysis::search::cheapest::{Ask, End};
use loadline_engine::cheapest::{Searched, configuration, search};
use loadline_engine::experiment::Pricing;
use loadline_engine::session::{Session, SessionError};
use loadline_engine::store::unix_ms;
use loadline_report::format;

use super::Answer;
use crate::error::{Error, Kind};

/// Searches and derives the recommendation.
pub fn answer(
    session: &mut Session<'_>,
    pricing: &Pricing,
    variants: &[Configuration],
) -> Result<Answer, SessionError> {
    let searched = search(session, pricing, variants)?;
    let End::Found { choice, is_proven } = searched.end else {
        return Ok(Answer {
            recommendation: None,
            proven: false,
            why_none: why_none(&searched),
        });
    };
    let labels: Vec<String> = variants.iter().map(|v| v.label.clone()).collect();
    let course = Course {
        offer: &pricing.offer,
        search: &searched.search,
        asked: &searched.asked,
        variants: &labels,
        left_out: &searched.left_out,
        today: &format::day(unix_ms()),
    };
    let ask = Ask {
        cell: choice.cell,
        replicas: choice.replicas,
        rate: pricing.parameters.rate_of_each(choice.replicas),
        purpose: Purpose::Prove,
    };
    let own: Vec<TrialRecord> = course
        .trials_of(choice.cell, choice.replicas)
        .cloned()
        .collect();
    let all: Vec<TrialRecord> = searched.asked.iter().map(|a| a.record.clone()).collect();
    let recommendation = recommend_deployment(
        configuration(&searched.search, variants, &ask),
        course.deployment(choice, is_proven),
        &all,
        &own,
    );
    Ok(Answer {
        recommendation: Some(recommendation),
        proven: is_proven,
        why_none: None,
    })
}

/// Nothing feasible is an answer (exit 1); nothing that could be measured is an error (exit 4).
fn why_none(searched: &Searched) -> Option<Error> {
    let is_evidence = |a: &loadline_analysis::deployment::Asked| a.record.verdict.is_evidence();
    if searched.asked.iter().any(is_evidence) {
        return None;
    }
    let last = searched.asked.last();
    super::super::not_measured(last.map(|a| &a.record)).or_else(|| {
        Some(
            Error::new(Kind::Usage, "there is nothing to search: no size of the offer fits this machine, or the budget is shorter than one trial")
                .hint("give sizes that fit, as --sizes 0.5/512Mi,1/1Gi, or a longer --budget"),
        )
    })
}
