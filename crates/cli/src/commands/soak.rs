//! `loadline soak`: one long start of a recommendation, and what grows in it.

use std::sync::Arc;

use clap::Args;
use loadline_analysis::growth::GrowthVerdict;
use loadline_analysis::record::{Configuration, TrialRecord, TrialVerdict as Kept};
use loadline_analysis::search::soak::SoakSearch;
use loadline_analysis::slo::parse_duration;
use loadline_experiment::{ExperimentFile, ValueWithOrigin};
use loadline_runner::soak;
use loadline_runner::store::{ResultKind, ResultRow, Store};

use crate::away::{ConsentFlags, confirm_experiment};
use crate::error::{CommandOutcome, Error, not_measured};
use crate::experiment::experiment_over;
use crate::measuring::{MeasureFlags, MeasuringSession, experiment_of, open_store_to_read};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::result::of_store;

#[derive(Args)]
pub struct SoakArguments {
    /// Id of a result of `size`, or a unique prefix
    #[arg(value_name = "RESULT", default_value = "last")]
    id: String,
    /// Total length of both cycles and the rest between them, e.g. 30m or 4h
    #[arg(long = "for", value_name = "TIME", default_value = "4h")]
    length: String,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    consent: ConsentFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(arguments: SoakArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    of_store(&arguments.id)?;
    if parse_duration(&arguments.length).is_none() {
        let what = format!("--for: `{}` is not a length of time", arguments.length);
        return Err(Error::usage(what).with_hint("write 30m or 4h"));
    }
    let store = open_store_to_read(arguments.measure.state.as_deref())?;
    let row = store.result_by_prefix(&arguments.id)?;
    let answer = soaked_configuration(&row)?;
    let flags = (arguments.measure.state.as_deref(), arguments.consent);
    confirm_experiment(&store, &row, flags)?;
    let experiment = experiment_of(&row)?;
    let name = std::path::Path::new("stored experiment");
    let mut file = ExperimentFile::from_toml(&row.experiment, name)?;
    let length = arguments.length.clone();
    file.search.soak = Some(ValueWithOrigin::from_flag("--for", length));
    // Its text is checked where all others are: with the flag in its place.
    let here = &row.directory;
    let checked = loadline_experiment::Experiment::from_flags(&file, None, here);
    let length = checked?.search.soak;
    drop(store);
    let once = ValueWithOrigin::from_flag("--for", 1);
    let mut given = experiment_over(file, experiment, vec![answer], once, row.title)?;
    given.experiment.search.soak = length;
    let measuring = MeasuringSession::begin_result(given, ResultKind::Soak, &arguments.measure)?;
    measuring.store.set_soaked(&measuring.result, &row.id)?;
    run_soak(measuring, &arguments.output, out)
}

fn soaked_configuration(row: &ResultRow) -> Result<Configuration, Error> {
    if row.kind == ResultKind::Soak {
        let experiment = experiment_of(row)?;
        let first = experiment.configurations().into_iter().next();
        return first.ok_or_else(|| Error::internal("a soak without configuration"));
    }
    let (found, _) = crate::result::stored_conclusion(row)?;
    found.map(|found| found.configuration).ok_or_else(|| {
        let short = crate::ui::text::short(&row.id);
        Error::usage(format!("the result {short} has no answer to soak"))
            .with_hint("soak the result of a `loadline size` that found a size: loadline list")
    })
}

pub fn run_soak(
    mut measuring: MeasuringSession,
    output: &OutputFlags,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let configuration = measuring.experiment.configurations().into_iter().next();
    let configuration =
        configuration.ok_or_else(|| Error::internal("a soak without configuration"))?;
    let record = soak_configuration(&mut measuring, &configuration)?;
    measuring.note_done()?;
    super::show::print_result(&measuring.store, &measuring.result, output, out)?;
    outcome(record.as_deref())
}

pub fn soak_configuration(
    measuring: &mut MeasuringSession,
    configuration: &Configuration,
) -> Result<Option<Arc<TrialRecord>>, Error> {
    let search = SoakSearch {
        configuration: configuration.clone(),
        start_deadline: measuring.experiment.app.start_deadline,
    };
    match measuring.search(&search, None) {
        Ok(record) => Ok(record),
        Err(error) => {
            let trials = measuring.store.finished_trials(&measuring.result)?;
            let seen = trials.into_iter().rev().find(|t| t.evidence.soak.is_some());
            let Some(seen) = seen else { return Err(error) };
            talk!("stopped: the soak's data so far are kept and judged");
            Ok(Some(Arc::new(seen)))
        }
    }
}

pub fn salvage_records(store: &Store, row: &ResultRow) -> Result<(), Error> {
    let experiment = experiment_of(row)?;
    let saved = soak::salvage(store, &row.id, &experiment)?;
    if saved > 0 {
        talk!("the soak was killed: its data so far are kept and judged");
    }
    Ok(())
}

/// Whether the application ended a soak early, for example killed at its limit: whatever grew or
/// not, its size does not hold.
pub fn did_not_last(record: &TrialRecord) -> bool {
    matches!(record.verdict, Kept::AppKo(_))
}

/// Growth and an application that did not last are bad news (exit 1); a soak that says nothing is an
/// invalid measurement (exit 4).
fn outcome(record: Option<&TrialRecord>) -> Result<CommandOutcome, Error> {
    let Some(record) = record.filter(|record| !did_not_last(record)) else {
        return Ok(CommandOutcome::SloMissed);
    };
    let Some(growth) = loadline_report::growth_of(record) else {
        return Err(not_measured(Some(record))
            .unwrap_or_else(|| Error::invalid("the soak recorded nothing")));
    };
    let missed = record.verdict.is_evidence() && record.verdict != Kept::Pass;
    match growth.verdict {
        GrowthVerdict::Growing => Ok(CommandOutcome::SloMissed),
        GrowthVerdict::Stable { .. } if missed => Ok(CommandOutcome::SloMissed),
        GrowthVerdict::Stable { .. } => Ok(CommandOutcome::Done),
        GrowthVerdict::TooShort { needs, .. } => {
            let what = "the soak is too short to tell whether something grows";
            let minutes = needs.as_secs().div_ceil(60);
            Err(Error::invalid(what).with_hint(format!(
                "soak the result of `size` again: loadline soak RESULT --for {minutes}m"
            )))
        }
    }
}
