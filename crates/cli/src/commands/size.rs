//! `loadline size`: the smallest memory that keeps the SLO, proven, and what the next smaller
//! size breaks.

mod cheapest;

use clap::Args;
use loadline_analysis::recommend::{Conclusion, NoAnswer, Recommendation, recommend};
use loadline_analysis::record::Configuration;
use loadline_analysis::search::min_memory::MemoryFound;
use loadline_engine::experiment::Experiment;
use loadline_engine::session::{Session, SessionError};
use loadline_engine::size::{
    End, Incomparable, Searched, at, comparable, cost, next_smaller, prove, search,
};
use loadline_engine::store::Kind as ResultKind;

use super::OutputFlags;
use crate::error::{Error, Kind, Outcome};
use crate::experiment::{ExperimentFlags, SearchFlags, given};
use crate::measuring::{MeasureFlags, Measuring};

/// What helps when trials could not be measured.
const QUIETER: &str = "close what else uses this machine, then: loadline resume";

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
    if given.experiment.search.pricing.is_none() {
        comparable(&bases(&given.experiment)).map_err(incomparable)?;
    }
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
    let (conclusion, ended) = match answer {
        Answer::Found(best) => {
            let ended = how_it_stands(&best, measuring.experiment.search.prove);
            (Conclusion::Answer(best), ended)
        }
        Answer::None { left, error } => (
            Conclusion::NoAnswer(left),
            error.map_or(Ok(Outcome::SloMissed), Err),
        ),
    };
    let conclusion = super::json(&conclusion)?;
    match &ended {
        Ok(_) => measuring.done(Some(&conclusion))?,
        Err(_) => measuring.failed(Some(&conclusion))?,
    }
    super::show::print_result(&measuring.store, &measuring.result, output)?;
    ended
}

fn incomparable(error: Incomparable) -> Error {
    let hint = match error {
        Incomparable::Rates => "search for each rate by itself: --rate 300/s",
        Incomparable::Limits => "give every level a CPU limit, or none of them (--cpu)",
    };
    Error::new(Kind::Usage, error)
        .hint(hint)
        .hint("`loadline run` measures all combinations and compares nothing")
}

/// What a search came to.
enum Answer {
    Found(Box<Recommendation>),
    None {
        left: NoAnswer,
        /// Why that proves nothing; `None` where nothing keeps the SLO.
        error: Option<Error>,
    },
}

fn answer(session: &mut Session<'_>, bases: &[Configuration]) -> Result<Answer, SessionError> {
    let searched = bases
        .iter()
        .map(|base| search(session, base))
        .collect::<Result<Vec<_>, _>>()?;
    let Some((best, answer)) = cheapest(&searched) else {
        return Ok(Answer::None {
            left: NoAnswer::default(),
            error: why_none(&searched),
        });
    };
    let configuration = at(&best.base, answer.size);
    let proofs = prove(session, &configuration, best.start_deadline)?;
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
    Ok(Answer::Found(Box::new(recommendation)))
}

/// An answer that is not proven misses the SLO (exit 1), unless its starts could not be measured
/// (exit 4). A proof that was not asked for fails nothing.
fn how_it_stands(best: &Recommendation, starts: u32) -> Result<Outcome, Error> {
    if starts == 0 || best.is_proven() {
        return Ok(Outcome::Done);
    }
    let proof = &best.proof;
    if !proof.is_undecided() {
        return Ok(Outcome::SloMissed);
    }
    let all = proof.starts + proof.not_measured;
    let what = format!(
        "the proof could not be measured: {} of its {all} fresh starts are invalid",
        proof.not_measured
    );
    Err(Error::new(Kind::Invalid, what).hint(QUIETER))
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

fn cheapest(searched: &[Searched]) -> Option<(&Searched, MemoryFound)> {
    let found = searched.iter().filter_map(|s| match s.end {
        End::Found(answer) => Some((s, answer)),
        End::Infeasible { .. } | End::CouldNotMeasure { .. } => None,
    });
    let per = |(searched, answer): &(&Searched, MemoryFound)| cost(&searched.base, answer.size);
    found.min_by(|a, b| per(a).total_cmp(&per(b)))
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
        .hint(QUIETER)
    })
}
