//! `loadline size --prices`: from the search for the cheapest deployment to its recommendation.

use loadline_analysis::deployment::{Asked, Grounds};
use loadline_analysis::recommend::{
    NoAnswer, Recommendation, recommend_deployment, recommend_refined,
};
use loadline_analysis::search::cheapest::End;
use loadline_analysis::search::prices::{Found, Priced, Prices, Searched};
use loadline_analysis::search::refine::Refined;
use loadline_engine::experiment::Pricing;
use loadline_engine::searches::prices;
use loadline_engine::store::unix_ms;
use loadline_report::format;

use super::{Concluded, owned};
use crate::error::{Error, ErrorKind};
use crate::measuring::{Measuring, command_refused};

/// Searches and derives the recommendation.
pub fn concluded(measuring: &mut Measuring, pricing: &Pricing) -> Result<Concluded, Error> {
    let machine = measuring.host.machine();
    let search = prices(
        &measuring.experiment,
        pricing,
        &machine,
        &measuring.jdks,
        &measuring.places,
    );
    let search = search.map_err(|e| command_refused(&e))?;
    let priced = measuring.search(&search, None)?;
    Ok(derived(&search, priced))
}

fn derived(search: &Prices, priced: Priced) -> Concluded {
    let variants = search.purchase.variants.iter();
    let labels: Vec<String> = variants.map(|v| v.configuration.label.clone()).collect();
    let today = format::day(unix_ms());
    let grounds = Grounds {
        offer: &search.purchase.pricing.offer,
        search: &priced.searched.search,
        asked: &priced.searched.asked,
        variants: &labels,
        left_out: &priced.left_out,
        today: &today,
    };
    match priced.found {
        Some(found) => Concluded::Found(Box::new(recommend(&grounds, found))),
        None => none(&priced.searched, &grounds),
    }
}

fn recommend(grounds: &Grounds<'_>, found: Found) -> Recommendation {
    let own = grounds.trials_of(found.choice.cell, found.choice.replicas);
    let mut own: Vec<_> = own.cloned().collect();
    let mut deployment = grounds.deployment(found.choice, found.is_proven);
    let mut configuration = found.configuration;
    if let Some(tuned) = found.tuned {
        deployment.compared = tuned.compared;
        if tuned.has_changed {
            configuration = tuned.configuration;
            // Other options, so the proof is another.
            own = owned(&tuned.trials);
        }
    }
    match found.refined {
        Refined::AsFound(_) => recommend_deployment(configuration, deployment, &own),
        Refined::Smaller(smaller) => recommend_refined(
            smaller.configuration,
            deployment.refined(grounds.offer, &smaller.answer),
            &smaller.answer,
            &owned(&smaller.trials),
        ),
    }
}

/// Nothing feasible is an answer (exit 1). Nothing found is none (exit 4), and a search that could
/// not begin was asked for something that is not there (exit 2).
fn none(searched: &Searched, grounds: &Grounds<'_>) -> Concluded {
    let error = why_none(searched);
    let undecided = match searched.end {
        End::Unknown => error.as_ref().map(|e| e.message().to_owned()),
        End::Found { .. } | End::Infeasible => None,
    };
    let left_out = grounds.left_out();
    Concluded::None {
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
    let error = super::super::not_measured(last.map(|a| &*a.record))?;
    Some(error.hint(format!(
        "this proves nothing about what was not measured: {}",
        super::quieter()
    )))
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
