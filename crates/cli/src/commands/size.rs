//! `loadline size`: the smallest memory that keeps the SLO, proven, and what the next smaller
//! size breaks.

mod lever;
mod many;
mod prices;
mod start_cpu;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use loadline_analysis::budget::SoakOutcome;
use loadline_analysis::growth::GrowthVerdict;
use loadline_analysis::offer::Offer;
use loadline_analysis::recommend::{Conclusion, LevelSize, NoAnswer, Recommendation, recommend};
use loadline_analysis::record::{InvalidReason, TrialRecord, TrialVerdict};
use loadline_analysis::search::size::{
    IncomparableBases, SearchedBase, SizeAnswer, SizeEnd, check_comparable,
};
use loadline_analysis::warming::JvmQuestion;
use loadline_runner::searches::{bases, size_search_on};
use loadline_runner::store::{ResultKind, ResultStatus};
use loadline_sizing::Bytes;

use super::drill;
use super::plan::outlook;
use crate::error::{CommandOutcome, Error, remedy_for_invalid};
use crate::experiment::{
    APPLICATION, ExperimentFlags, ExtraFlags, InClusterFlags, SEARCH, SearchFlags, load_experiment,
};
use crate::extract::extract_command;
use crate::measuring::{MeasureFlags, MeasuringSession};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::say::one_line_json;
use crate::{away, enough};

const MOST_RAISES: u32 = 2;

fn remedy(last: Option<TrialVerdict>) -> String {
    let resume = crate::ui::next::next_command("resume");
    remedy_for_invalid(last, &format!("continue: {resume}"))
}

/// What becomes of percentiles that rest on few requests.
pub const TOGETHER: &str = "the proof judges those of all its starts together";

/// Find the smallest memory that keeps the SLO
#[derive(Args)]
// Positional arguments count as they are declared, and the command comes with the flags above.
#[command(mut_arg("command", |command| command.index(3)))]
pub struct SizeArguments {
    #[command(flatten)]
    flags: ExperimentFlags,
    /// More experiment files, sized one after the other; a table of the answers follows at the end
    #[arg(index = 2, value_name = "MORE", requires = "experiment", conflicts_with_all = ["report", "in_cluster"])]
    more: Vec<PathBuf>,
    #[command(flatten)]
    search: SearchFlags,
    /// If starts miss at every size alike, try the likely remedy once, at the largest size with as
    /// many starts as a proof, and report the change
    #[arg(long = "try", conflicts_with_all = ["prices", "in_cluster"], help_heading = SEARCH)]
    lever: bool,
    /// Extract a Spring Boot jar first, with its libraries in a directory next to it; the extracted
    /// application is sized, and shipped by `emit`. Start-up caches need this
    #[arg(long, conflicts_with_all = ["image", "compose"], help_heading = APPLICATION)]
    extract: bool,
    #[command(flatten)]
    in_cluster: InClusterFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(mut arguments: SizeArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    if arguments.more.is_empty() {
        size_one(&mut arguments, out).map(|(_, ended)| ended)
    } else {
        many::size_each(arguments, out)
    }
}

/// One search, and the id of its result where it is measured here.
fn size_one(
    arguments: &mut SizeArguments,
    out: &mut AnswerPrinter,
) -> Result<(Option<String>, CommandOutcome), Error> {
    if arguments.extract {
        arguments.flags.command = extract_command(&arguments.flags.command, None)?;
    }
    let more = ExtraFlags {
        search: Some(&arguments.search),
        matrix: None,
    };
    let mut given = load_experiment(&arguments.flags, more)?;
    if !arguments.in_cluster.in_cluster {
        given = given.with_chosen_cpu()?;
    }
    drill::refuse_search(&given)?;
    if given.experiment.search.pricing.is_none() {
        check_comparable(&bases(&given.experiment)).map_err(incomparable_error)?;
    }
    enough::check_request_count(&given.experiment)?;
    for note in enough::notes(&given, TOGETHER) {
        talk!("{note}");
    }
    if arguments.in_cluster.in_cluster {
        let sent = (&arguments.measure, &arguments.output);
        return away::send_result(given, ResultKind::Size, sent).map(|ended| (None, ended));
    }
    let measuring = MeasuringSession::begin_result(given, ResultKind::Size, &arguments.measure)?;
    if measuring.experiment.search.pricing.is_none() {
        let told = outlook::outlook_from_store(&measuring.experiment, Some(&measuring.store));
        talk!("{}", told.search_sentence());
    }
    let result = measuring.result.clone();
    let ended = run_size_search(measuring, &arguments.output, out)?;
    if arguments.lever && ended == CommandOutcome::SloMissed {
        lever::try_lever(&result, &arguments.measure, out)?;
    }
    Ok((Some(result), ended))
}

pub fn run_size_search(
    mut measuring: MeasuringSession,
    output: &OutputFlags,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let concluded = match measuring.experiment.search.pricing.clone() {
        Some(pricing) => {
            let concluded = prices::conclude_prices(&mut measuring, &pricing)?;
            soak_conclusion(&mut measuring, concluded)?.0
        }
        None => conclude_memory(&mut measuring)?,
    };
    let (conclusion, ended) = match concluded {
        SearchConclusion::Found(best, ended) => (Conclusion::Answer(best), ended),
        SearchConclusion::None { left, error } => (
            Conclusion::NoAnswer(left),
            error.map_or(Ok(CommandOutcome::SloMissed), Err),
        ),
    };
    let conclusion = one_line_json(&conclusion)?;
    let status = match &ended {
        Ok(_) => ResultStatus::Done,
        Err(_) => ResultStatus::Failed,
    };
    measuring.note_end(status, Some(&conclusion))?;
    super::show::print_result(&measuring.store, &measuring.result, output, out)?;
    ended
}

/// Searches the smallest memory, and soaks the answer where that is asked for. A soak that refutes its
/// size raises it: the larger size is tested and soaked like the first.
fn conclude_memory(measuring: &mut MeasuringSession) -> Result<SearchConclusion, Error> {
    let mut search = size_search_on(&measuring.experiment, &measuring.host.host_machine());
    let search_terms = &measuring.experiment.search;
    let (question, prove) = (search_terms.question, search_terms.prove);
    // What half of such searches take.
    let told = outlook::outlook_from_store(&measuring.experiment, Some(&measuring.store));
    let starts = told.outlook.starts;
    let mut raises = 0;
    loop {
        let sized = measuring.search(&search, Some(starts))?;
        let offer = measuring.experiment.search.run_offer.as_ref();
        let mut concluded = search_conclusion(&sized, (question, prove), offer);
        if let SearchConclusion::Found(best, Ok(CommandOutcome::Done)) = &mut concluded
            && let Some(boosted) = start_cpu::choose_start_cpu(measuring, &best.configuration)?
        {
            best.configuration = boosted;
        }
        let (concluded, raised) = soak_conclusion(measuring, concluded)?;
        let Some(raised) = raised.filter(|_| raises < MOST_RAISES) else {
            return Ok(concluded);
        };
        talk!("the soak refutes this size: continuing with at least {raised}");
        search.raise_to(raised);
        raises += 1;
    }
}

/// Soaks an answer where that is asked for; also the larger size to test where the soak refutes it and
/// nothing grows without end.
fn soak_conclusion(
    measuring: &mut MeasuringSession,
    concluded: SearchConclusion,
) -> Result<(SearchConclusion, Option<Bytes>), Error> {
    let SearchConclusion::Found(best, Ok(CommandOutcome::Done)) = concluded else {
        return Ok((concluded, None));
    };
    let soaked = match measuring.experiment.search.soak {
        Some(_) => super::soak::soak_configuration(measuring, &best.configuration)?,
        None => None,
    };
    let Some(soaked) = soaked else {
        let done = SearchConclusion::Found(best, Ok(CommandOutcome::Done));
        return Ok((done, None));
    };
    let outcome = SoakOutcome::for_trial(&soaked, best.budget.as_ref());
    let raised = outcome.and_then(|outcome| outcome.raised_size(best.configuration.memory?));
    let growth = loadline_report::growth_of(&soaked);
    let grows = growth.is_some_and(|growth| growth.verdict == GrowthVerdict::Growing);
    let holds = raised.is_none() && !super::soak::did_not_last(&soaked);
    let ended = CommandOutcome::for_slo(holds);
    let concluded = SearchConclusion::Found(best, Ok(ended));
    Ok((concluded, raised.filter(|_| !grows)))
}

fn incomparable_error(error: IncomparableBases) -> Error {
    let hint = match error {
        IncomparableBases::Rates => "search for each rate separately: --rate 300/s",
        IncomparableBases::Limits => "give every level a CPU limit, or none (--cpu)",
    };
    Error::usage(error)
        .with_hint(hint)
        .with_hint("`loadline run` measures all combinations and compares nothing")
}

enum SearchConclusion {
    Found(Box<Recommendation>, Result<CommandOutcome, Error>),
    None {
        left: NoAnswer,
        error: Option<Error>,
    },
}

fn search_conclusion(
    sized: &SizeAnswer,
    (question, prove): (JvmQuestion, u32),
    offer: Option<&Offer>,
) -> SearchConclusion {
    let Some(best) = &sized.best else {
        return SearchConclusion::None {
            left: NoAnswer::default(),
            error: why_none(&sized.searched),
        };
    };
    let (trials, mut others) = (owned_records(&best.trials), owned_records(&best.others));
    others.retain(|trial| !trial.is_left_out());
    let configuration = best.configuration.clone();
    let mut recommendation = recommend(configuration, &best.answer, &trials, &others);
    recommendation.by_level = sized.by_level.iter().map(LevelSize::for_level).collect();
    recommendation.question = question;
    if let Some(offer) = offer {
        recommendation.price_runs(offer, &trials);
    }
    let last = trials.last().map(|trial| trial.verdict);
    let ended = how_it_stands(&recommendation, prove, last);
    SearchConclusion::Found(Box::new(recommendation), ended)
}

fn owned_records(records: &[Arc<TrialRecord>]) -> Vec<TrialRecord> {
    records.iter().map(|r| (**r).clone()).collect()
}

/// An answer that is not proven, of any JDK or application, misses the SLO (exit 1), unless its starts could not be measured
/// (exit 4). A proof that was not asked for fails nothing.
fn how_it_stands(
    best: &Recommendation,
    starts: u32,
    last: Option<TrialVerdict>,
) -> Result<CommandOutcome, Error> {
    if starts > 0 && best.is_proven() && !best.by_level.iter().all(LevelSize::is_answered) {
        return Ok(CommandOutcome::SloMissed);
    }
    if starts == 0 || best.is_proven() {
        return Ok(CommandOutcome::Done);
    }
    let proof = &best.proof;
    if !proof.is_undecided() {
        return Ok(CommandOutcome::SloMissed);
    }
    let all = proof.starts + proof.not_measured;
    let (ran, invalid) = (proof.starts, proof.not_measured);
    let what = match last {
        Some(TrialVerdict::Invalid(InvalidReason::OutOfTime)) => {
            format!("the time was over before the size was tested: {ran} of its fresh starts ran")
        }
        _ => format!(
            "the proof could not be measured: {invalid} of its {all} fresh starts are invalid"
        ),
    };
    Err(Error::invalid(what).with_hint(remedy(last)))
}

/// Nothing feasible is an answer (exit 1); nothing measurable is an error (exit 4).
fn why_none(searched: &[SearchedBase]) -> Option<Error> {
    let could_not = searched.iter().find_map(|s| match &s.end {
        SizeEnd::CouldNotMeasure { size, reason } => {
            let last = s.trials.last().map(|trial| trial.verdict);
            Some((size, reason, remedy(last)))
        }
        SizeEnd::Found(_) | SizeEnd::Infeasible { .. } | SizeEnd::Refused { .. } => None,
    });
    let refused = searched.iter().find_map(|s| match &s.end {
        SizeEnd::Refused { reason, hint } => Some(Error::usage(reason).with_hint(hint)),
        _ => None,
    });
    if refused.is_some() {
        return refused;
    }
    could_not.map(|(size, reason, hint)| {
        Error::invalid(format!("could not measure at {size}: {reason}")).with_hint(hint)
    })
}
