//! `loadline size`: the smallest memory that keeps the SLO, proven, and what the next smaller
//! size breaks.

mod cheapest;

use clap::Args;
use loadline_analysis::recommend::{Recommendation, recommend};
use loadline_analysis::record::Configuration;
use loadline_engine::experiment::Experiment;
use loadline_engine::session::{Session, SessionError};
use loadline_engine::size::{End, Searched, at, next_smaller, prove, search};
use loadline_engine::store::Kind as ResultKind;

use super::OutputFlags;
use crate::error::{Error, Kind, Outcome};
use crate::experiment::{ExperimentFlags, SearchFlags, given};
use crate::measuring::{MeasureFlags, Measuring};

/// What a GiB costs in CPUs where both are billed: about 9 GiB cost as much as 1 CPU (list prices
/// of three providers, METHODOLOGY.md). Only the ratio matters to compare sizes.
const GIB_PER_CPU: f64 = 9.0;

/// Find the smallest memory that keeps the SLO
#[derive(Args)]
pub struct SizeArguments {
    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    search: SearchFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Searches, proves and prints.
pub fn run(arguments: SizeArguments) -> Result<Outcome, Error> {
    let given = given(&arguments.flags, Some(&arguments.search))?;
    let measuring = Measuring::begin(given, ResultKind::Size, &arguments.measure)?;
    sized(measuring, &arguments.output)
}

/// Runs what is left of a search; also what `resume` does.
pub fn sized(mut measuring: Measuring, output: &OutputFlags) -> Result<Outcome, Error> {
    let mut progress = measuring.progress(None);
    let pricing = measuring.experiment.search.pricing.clone();
    let bases = bases(&measuring.experiment);
    let answer = measuring.run(&mut progress, |session| match &pricing {
        Some(pricing) => cheapest::answer(session, pricing, &bases),
        None => answer(session, &bases),
    })?;
    let recommendation = answer.recommendation.map(|r| serde_json::to_string(&r));
    let recommendation = recommendation
        .transpose()
        .map_err(|e| Error::new(Kind::Internal, e))?;
    match &answer.why_none {
        Some(_) => measuring.failed()?,
        None => measuring.done(recommendation.as_deref())?,
    }
    super::show::print_result(&measuring.store, &measuring.result, output)?;
    match (recommendation, answer.proven, answer.why_none) {
        (Some(_), true, _) => Ok(Outcome::Done),
        (Some(_), false, _) => Ok(Outcome::SloMissed),
        (None, _, Some(error)) => Err(error),
        (None, _, None) => Ok(Outcome::SloMissed),
    }
}

struct Answer {
    recommendation: Option<Recommendation>,
    /// Every start of the proof that counted kept the SLO, but for one in twenty.
    proven: bool,
    why_none: Option<Error>,
}

fn answer(session: &mut Session<'_>, bases: &[Configuration]) -> Result<Answer, SessionError> {
    let searched = bases
        .iter()
        .map(|base| search(session, base))
        .collect::<Result<Vec<_>, _>>()?;
    let Some((best, answer)) = cheapest(&searched) else {
        return Ok(Answer {
            recommendation: None,
            proven: false,
            why_none: why_none(&searched),
        });
    };
    let configuration = at(&best.base, answer.size);
    let starts = session.experiment.search.prove;
    let proofs = prove(session, &configuration, starts)?;
    let below = next_smaller(session, best, &answer)?;
    let mut trials = best.trials.clone();
    // A trial of the search that is shown again as neighbour is evidence once.
    trials.extend(below.filter(|b| !best.trials.iter().any(|t| t.id == b.id)));
    trials.extend(proofs);
    let others: Vec<_> = searched
        .iter()
        .filter(|s| s.base != best.base)
        .flat_map(|s| s.trials.clone())
        .collect();
    let recommendation = recommend(configuration, &answer, &trials, &others);
    let proof = &recommendation.proof;
    let proven = (proof.starts - proof.passes) * 20 <= proof.starts;
    Ok(Answer {
        recommendation: Some(recommendation),
        proven,
        why_none: None,
    })
}

/// Every combination of the factors but memory, which the search owns.
pub(super) fn bases(experiment: &Experiment) -> Vec<Configuration> {
    let factors = experiment
        .factors
        .iter()
        .filter(|f| f.name != "memory")
        .cloned()
        .collect();
    let base = Configuration {
        memory: None,
        ..experiment.base.clone()
    };
    Experiment {
        factors,
        base,
        ..experiment.clone()
    }
    .configurations()
}

fn cheapest(
    searched: &[Searched],
) -> Option<(&Searched, loadline_analysis::search::min_memory::Answer)> {
    let found = searched.iter().filter_map(|s| match s.end {
        End::Found(answer) => Some((s, answer)),
        End::Infeasible { .. } | End::CouldNotMeasure { .. } => None,
    });
    found.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn cost((searched, answer): &(&Searched, loadline_analysis::search::min_memory::Answer)) -> f64 {
    let cpus = searched.base.cpu.map_or(0.0, |c| c.as_f64());
    cpus * GIB_PER_CPU + answer.size.as_gib()
}

/// Nothing feasible is an answer (exit 1); nothing measurable is an error (exit 4).
fn why_none(searched: &[Searched]) -> Option<Error> {
    let could_not = searched.iter().find_map(|s| match &s.end {
        End::CouldNotMeasure { size, reason } => Some((size, reason)),
        End::Found(_) | End::Infeasible { .. } => None,
    });
    could_not.map(|(size, reason)| {
        Error::new(
            Kind::Invalid,
            format!("could not measure at {size}: {reason}"),
        )
        .hint("close what else uses this machine, then: loadline resume")
    })
}
