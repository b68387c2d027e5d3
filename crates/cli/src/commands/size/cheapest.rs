//! `loadline size --prices`: from the search for the cheapest deployment to its recommendation.

use loadline_analysis::deployment::{Asked, Grounds};
use loadline_analysis::recommend::{
    NoAnswer, Recommendation, recommend_deployment, recommend_refined,
};
use loadline_analysis::record::{Configuration, Purpose, TrialRecord};
use loadline_analysis::search::cheapest::{Ask, End};
use loadline_analysis::search::lattice::Choice;
use loadline_engine::cheapest::{Searched, configuration, search};
use loadline_engine::command::assemble;
use loadline_engine::experiment::Pricing;
use loadline_engine::refine::{Refined, refine};
use loadline_engine::session::{Session, SessionError};
use loadline_engine::store::unix_ms;
use loadline_engine::tune::{Tuned, tune};
use loadline_report::format;
use loadline_sizing::Version;
use loadline_sizing::Vm;

use super::Answer;
use crate::error::{Error, Kind as ErrorKind};

/// Searches and derives the recommendation.
pub fn answer(
    session: &mut Session<'_>,
    pricing: &Pricing,
    variants: &[Configuration],
) -> Result<Answer, SessionError> {
    let searched = search(session, pricing, variants)?;
    let labels: Vec<String> = variants.iter().map(|v| v.label.clone()).collect();
    let today = format::day(unix_ms());
    let grounds = Grounds {
        offer: &pricing.offer,
        search: &searched.search,
        asked: &searched.asked,
        variants: &labels,
        left_out: &searched.left_out,
        today: &today,
    };
    let End::Found { choice, is_proven } = searched.end else {
        return Ok(none(&searched, &grounds));
    };
    let ask = Ask {
        cell: choice.cell,
        replicas: choice.replicas,
        rate: pricing.parameters.rate_of_each(choice.replicas),
        purpose: Purpose::Prove,
    };
    let found = configuration(&searched.search, variants, &ask);
    let mut left_out = searched.left_out.clone();
    // What is not proven as it was found is neither tuned nor searched with less memory.
    let tuned = match (is_proven, pricing.compare) {
        (true, Some(pairs)) => tuned(session, pricing, &found, pairs, &mut left_out)?,
        (false, Some(_)) => {
            left_out.push("options were not compared: the answer is not proven".to_owned());
            None
        }
        (_, None) => None,
    };
    let best = tuned.as_ref().map_or(&found, |t| &t.configuration);
    let refined = match is_proven {
        true => refine(session, pricing, best)?,
        false => Refined::AsFound(None),
    };
    if let Refined::AsFound(Some(why)) = &refined {
        left_out.push(why.clone());
    }
    let grounds = Grounds {
        left_out: &left_out,
        ..grounds
    };
    let recommendation = recommend(&grounds, (choice, is_proven), found, tuned, refined);
    Ok(Answer::Found(Box::new(recommendation)))
}

fn recommend(
    grounds: &Grounds<'_>,
    (choice, is_proven): (Choice, bool),
    found: Configuration,
    tuned: Option<Tuned>,
    refined: Refined,
) -> Recommendation {
    let own = grounds.trials_of(choice.cell, choice.replicas).cloned();
    let mut own: Vec<TrialRecord> = own.collect();
    let mut deployment = grounds.deployment(choice, is_proven);
    let mut configuration = found;
    if let Some(tuned) = tuned {
        deployment.compared = tuned.compared;
        if tuned.has_changed {
            configuration = tuned.configuration;
            // Other options, so the proof is another.
            own = tuned.trials;
        }
    }
    match refined {
        Refined::AsFound(_) => recommend_deployment(configuration, deployment, &own),
        Refined::Smaller(smaller) => recommend_refined(
            smaller.configuration,
            deployment.refined(grounds.offer, &smaller.answer),
            &smaller.answer,
            &smaller.trials,
        ),
    }
}

/// The comparison of options in the size that was found, where the JVM's options are known.
fn tuned(
    session: &mut Session<'_>,
    pricing: &Pricing,
    found: &Configuration,
    pairs: u32,
    left_out: &mut Vec<String>,
) -> Result<Option<Tuned>, SessionError> {
    let app = &session.experiment.app;
    let jdk = assemble(app, found, session.jdks, session.places)?.jdk;
    let Some(jdk) = jdk.filter(|jdk| jdk.kind == Vm::HotSpot) else {
        let why = "options were not compared: loadline does not know which HotSpot JVM this command starts";
        left_out.push(why.to_owned());
        return Ok(None);
    };
    let version = jdk.version.full.parse();
    let version = version.unwrap_or(Version::feature(jdk.version.feature));
    let tuned = tune(
        session,
        pricing,
        found,
        loadline_sizing::Jdk::hotspot(version),
        pairs,
    )?;
    left_out.extend(tuned.left_out.iter().cloned());
    Ok(Some(tuned))
}

/// Nothing feasible is an answer (exit 1). Nothing found is none (exit 4), and a search that could
/// not begin was asked for something that is not there (exit 2).
fn none(searched: &Searched, grounds: &Grounds<'_>) -> Answer {
    let error = why_none(searched);
    let undecided = match searched.end {
        End::Unknown => error.as_ref().map(|e| e.message().to_owned()),
        End::Found { .. } | End::Infeasible => None,
    };
    let left_out = grounds.left_out();
    Answer::None {
        left: NoAnswer {
            undecided,
            left_out,
        },
        error,
    }
}

fn why_none(searched: &Searched) -> Option<Error> {
    let search = &searched.search;
    if search.lattice().cells().is_empty() {
        let error = Error::new(
            ErrorKind::Usage,
            "there is nothing to search: no size of the offer fits this machine",
        );
        return Some(error.hint("give sizes that fit, as --sizes 0.5/512Mi,1/1Gi"));
    }
    if searched.end != End::Unknown {
        return None;
    }
    if search.is_closed() {
        return Some(out_of_time(searched.asked.len()));
    }
    let could_not = |a: &&Asked| !a.record.verdict.is_evidence();
    let last = searched.asked.iter().rfind(could_not);
    let error = super::super::not_measured(last.map(|a| &a.record))?;
    Some(error.hint("this proves nothing about what was not measured: close what else uses this machine, then: loadline resume"))
}

fn out_of_time(trials: usize) -> Error {
    if trials == 0 {
        return Error::new(
            ErrorKind::Usage,
            "there is nothing to search: the budget is shorter than one trial",
        )
        .hint("give a longer --budget; `loadline plan` says how long a trial is");
    }
    let what =
        "no answer was found before the budget was spent, which does not mean that there is none";
    Error::new(ErrorKind::Invalid, what)
        .hint("give a longer --budget; with --reuse the trials of this result are not run again")
}
