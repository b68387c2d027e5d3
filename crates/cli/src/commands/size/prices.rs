//! `loadline size --prices`: from the search for the cheapest deployment to its recommendation.

use loadline_analysis::deployment::{AskedTrial, DeploymentGrounds};
use loadline_analysis::recommend::{
    NoAnswer, Recommendation, recommend_deployment, recommend_refined,
};
use loadline_analysis::search::cheapest::CheapestEnd;
use loadline_analysis::search::prices::{
    FoundDeployment, PriceAnswer, PriceSearch, SearchedPrices,
};
use loadline_analysis::search::refine::MemoryRefinement;
use loadline_experiment::PricingTerms;
use loadline_report::format;
use loadline_runner::searches::price_search;
use loadline_runner::store::unix_ms;

use super::{SearchConclusion, how_it_stands, owned_records};
use crate::error::{Error, not_measured};
use crate::measuring::MeasuringSession;

pub fn conclude_prices(
    measuring: &mut MeasuringSession,
    pricing: &PricingTerms,
) -> Result<SearchConclusion, Error> {
    let machine = measuring.host.host_machine();
    let (jdks, places) = (&measuring.jdks, &measuring.places);
    let search = price_search(&measuring.experiment, pricing, &machine, jdks, places)?;
    let priced = measuring.search(&search, None)?;
    let prove = measuring.experiment.search.prove;
    Ok(derive_conclusion(&search, priced, prove))
}

fn derive_conclusion(search: &PriceSearch, priced: PriceAnswer, prove: u32) -> SearchConclusion {
    let variants = search.purchase.variants.iter();
    let labels: Vec<String> = variants.map(|v| v.configuration.label.clone()).collect();
    let today = format::day(unix_ms());
    let grounds = DeploymentGrounds {
        offer: &search.purchase.pricing.offer,
        search: &priced.searched.search,
        asked: &priced.searched.asked,
        variants: &labels,
        left_out: &priced.left_out,
        today: &today,
    };
    match priced.found {
        Some(found) => {
            let best = recommend(&grounds, found);
            let ended = how_it_stands(&best, prove, None);
            SearchConclusion::Found(Box::new(best), ended)
        }
        None => no_deployment(&priced.searched, &grounds),
    }
}

fn recommend(grounds: &DeploymentGrounds<'_>, found: FoundDeployment) -> Recommendation {
    let own = grounds.trials_of(found.choice.cell, found.choice.replicas);
    let mut own: Vec<_> = own.cloned().collect();
    let mut deployment = grounds.to_deployment(found.choice, found.is_proven);
    let mut configuration = found.configuration;
    if let Some(tuned) = found.tuned {
        deployment.compared = tuned.compared;
        if tuned.has_changed {
            configuration = tuned.configuration;
            // Other options, so the proof is another.
            own = owned_records(&tuned.trials);
        }
    }
    match found.refined {
        MemoryRefinement::AsFound(_) => recommend_deployment(configuration, deployment, &own),
        MemoryRefinement::Smaller(smaller) => recommend_refined(
            smaller.configuration,
            deployment.with_refined_memory(grounds.offer, &smaller.answer),
            &smaller.answer,
            &owned_records(&smaller.trials),
        ),
    }
}

/// Nothing feasible is an answer (exit 1). Nothing found is none (exit 4), and a search that could
/// not begin was asked for something that is not there (exit 2).
fn no_deployment(searched: &SearchedPrices, grounds: &DeploymentGrounds<'_>) -> SearchConclusion {
    let error = why_none(searched);
    let undecided = match searched.end {
        CheapestEnd::Unknown => error.as_ref().map(|e| e.message().to_owned()),
        CheapestEnd::Found { .. } | CheapestEnd::Infeasible => None,
    };
    let left = NoAnswer {
        undecided,
        left_out: grounds.left_out(),
    };
    SearchConclusion::None { left, error }
}

fn why_none(searched: &SearchedPrices) -> Option<Error> {
    let search = &searched.search;
    if search.lattice().cells().is_empty() {
        let error =
            Error::usage("there is nothing to search: no size of the offer fits this machine");
        return Some(error.with_hint("give sizes that fit, e.g. --sizes 0.5/512Mi,1/1Gi"));
    }
    if searched.end != CheapestEnd::Unknown {
        return None;
    }
    if search.is_closed() {
        return Some(out_of_time(searched.asked.len()));
    }
    let could_not = |a: &&AskedTrial| !a.record.verdict.is_evidence();
    let last = searched.asked.iter().rfind(could_not);
    let last = last.map(|asked| &*asked.record)?;
    let error = not_measured(Some(last))?;
    Some(error.with_hint(format!(
        "this proves nothing about what was not measured: {}",
        super::remedy(Some(last.verdict))
    )))
}

fn out_of_time(trials: usize) -> Error {
    if trials == 0 {
        return Error::usage("there is nothing to search: the budget is shorter than one trial")
            .with_hint("give a longer --budget; `loadline plan` shows how long a trial takes");
    }
    let what = "the budget was spent before an answer was found; there may still be one";
    Error::invalid(what).with_hint(
        "give a longer --budget; with --reuse the trials of this result are not run again",
    )
}
