//! `loadline size`: the smallest memory that keeps the SLO, proven, and what the next smaller
//! size breaks.

mod lever;
mod prices;

use std::sync::Arc;

use clap::Args;
use loadline_analysis::recommend::{Conclusion, LevelSize, NoAnswer, Recommendation, recommend};
use loadline_analysis::record::TrialRecord;
use loadline_analysis::search::size::{End, Incomparable, Searched, Sized, comparable};
use loadline_analysis::warming::Question;
use loadline_engine::searches::{bases, sizes};
use loadline_engine::store::ResultKind;

use super::plan::outlook;
use super::{OutputFlags, drill};
use crate::away;
use crate::enough;
use crate::error::{Error, ErrorKind, Outcome};
use crate::experiment::{APPLICATION, ExperimentFlags, InClusterFlags, SEARCH, SearchFlags, given};
use crate::extract::extracted;
use crate::measuring::{MeasureFlags, Measuring};

/// What helps when trials could not be measured.
fn quieter() -> String {
    let resume = crate::ui::next::command("resume");
    format!("close what else uses this machine, then: {resume}")
}

/// What becomes of percentiles that rest on few requests.
pub const TOGETHER: &str = "the proof judges those of all its starts together";

/// Find the smallest memory that keeps the SLO
#[derive(Args)]
pub struct SizeArguments {
    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Where starts miss at every size alike: try by itself what may cure it, in as many starts at
    /// the largest size as a proof has, and say what that changed
    #[arg(long = "try", conflicts_with_all = ["prices", "in_cluster"], help_heading = SEARCH)]
    lever: bool,
    /// A Spring Boot jar is taken apart first, its libraries in a directory beside it: that is sized,
    /// and what `emit` ships; start-up caches need it
    #[arg(long, conflicts_with_all = ["image", "compose"], help_heading = APPLICATION)]
    extract: bool,
    #[command(flatten)]
    in_cluster: InClusterFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Searches, proves and prints.
pub fn run(mut arguments: SizeArguments) -> Result<Outcome, Error> {
    if arguments.extract {
        arguments.flags.command = extracted(&arguments.flags.command, None)?;
    }
    let given = given(&arguments.flags, Some(&arguments.search))?;
    drill::refuse(&given)?;
    if given.experiment.search.pricing.is_none() {
        comparable(&bases(&given.experiment)).map_err(incomparable)?;
    }
    enough::check(&given.experiment)?;
    for note in enough::notes(&given, TOGETHER) {
        talk!("{note}");
    }
    if arguments.in_cluster.in_cluster {
        return away::send(
            given,
            ResultKind::Size,
            (&arguments.measure, &arguments.output),
        );
    }
    let measuring = Measuring::begin(given, ResultKind::Size, &arguments.measure)?;
    if measuring.experiment.search.pricing.is_none() {
        let told = outlook::told(&measuring.experiment, Some(&measuring.store));
        talk!("{}", told.sentence());
    }
    let result = measuring.result.clone();
    let ended = sized(measuring, &arguments.output)?;
    if arguments.lever && ended == Outcome::SloMissed {
        lever::attempt(&result, &arguments.measure)?;
    }
    Ok(ended)
}

/// Runs what is left of a search; also what `resume` does.
pub fn sized(mut measuring: Measuring, output: &OutputFlags) -> Result<Outcome, Error> {
    let concluded = match measuring.experiment.search.pricing.clone() {
        Some(pricing) => prices::concluded(&mut measuring, &pricing)?,
        None => {
            let memory = measuring.host.machine().memory;
            let search = sizes(&measuring.experiment, memory);
            let question = measuring.experiment.search.question;
            // What half of such searches take.
            let starts = outlook::told(&measuring.experiment, Some(&measuring.store))
                .outlook
                .starts;
            concluded(&measuring.search(&search, Some(starts))?, question)
        }
    };
    let (conclusion, mut ended) = match concluded {
        Concluded::Found(best) => {
            let ended = how_it_stands(&best, measuring.experiment.search.prove);
            (Conclusion::Answer(best), ended)
        }
        Concluded::None { left, error } => (
            Conclusion::NoAnswer(left),
            error.map_or(Ok(Outcome::SloMissed), Err),
        ),
    };
    if let (Conclusion::Answer(best), Ok(Outcome::Done), Some(_)) =
        (&conclusion, &ended, measuring.experiment.search.soak)
    {
        let soaked = super::soak::after(&mut measuring, &best.configuration)?;
        if soaked.is_some_and(|record| super::soak::did_not_last(&record)) {
            ended = Ok(Outcome::SloMissed);
        }
    }
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
    Error::new(ErrorKind::Usage, error)
        .hint(hint)
        .hint("`loadline run` measures all combinations and compares nothing")
}

/// What a search came to.
enum Concluded {
    Found(Box<Recommendation>),
    None {
        left: NoAnswer,
        /// Why that proves nothing; `None` where nothing keeps the SLO.
        error: Option<Error>,
    },
}

fn concluded(sized: &Sized, question: Question) -> Concluded {
    let Some(best) = &sized.best else {
        return Concluded::None {
            left: NoAnswer::default(),
            error: why_none(&sized.searched),
        };
    };
    let (trials, others) = (owned(&best.trials), owned(&best.others));
    let configuration = best.configuration.clone();
    let mut recommendation = recommend(configuration, &best.answer, &trials, &others);
    recommendation.by_level = sized.by_level.iter().map(LevelSize::of).collect();
    recommendation.question = question;
    Concluded::Found(Box::new(recommendation))
}

fn owned(records: &[Arc<TrialRecord>]) -> Vec<TrialRecord> {
    records.iter().map(|r| (**r).clone()).collect()
}

/// An answer that is not proven, of any JDK or application, misses the SLO (exit 1), unless its starts could not be measured
/// (exit 4). A proof that was not asked for fails nothing.
fn how_it_stands(best: &Recommendation, starts: u32) -> Result<Outcome, Error> {
    if starts > 0 && best.is_proven() && !best.by_level.iter().all(LevelSize::is_answered) {
        return Ok(Outcome::SloMissed);
    }
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
    Err(Error::new(ErrorKind::Invalid, what).hint(quieter()))
}

/// Nothing feasible is an answer (exit 1); nothing measurable is an error (exit 4).
fn why_none(searched: &[Searched]) -> Option<Error> {
    let could_not = searched.iter().find_map(|s| match &s.end {
        End::CouldNotMeasure { size, reason } => Some((size, reason)),
        End::Found(_) | End::Infeasible { .. } => None,
    });
    could_not.map(|(size, reason)| {
        Error::new(
            ErrorKind::Invalid,
            format!("could not measure at {size}: {reason}"),
        )
        .hint(quieter())
    })
}
