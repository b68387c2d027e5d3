//! `loadline verify`: does the shipped size still hold, and by how much? Compares a few fresh
//! starts with the SLO and with the baseline.

mod tune;

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::baseline::{Baseline, MeasurementConditions, SCHEMA};
use loadline_analysis::record::Configuration;
use loadline_analysis::search::verify::{FIRST, VerifyOutcome, VerifySearch};
use loadline_report::content::groups::size_words;
use loadline_report::verified::{VerifyAnswer, VerifyStatement};
use loadline_runner::baseline::{self, BaselineLocation};
use loadline_runner::store::ResultKind;

use super::drill;
use super::init::FILE;
use crate::error::{CommandOutcome, Error, not_measured, remedy_for_invalid};
use crate::experiment::{ExperimentFlags, ExtraFlags, LoadedExperiment, load_experiment};
use crate::measuring::{MeasureFlags, MeasuringSession};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::say::one_line_json;
use crate::ui::next::next_command as next;
use crate::ui::text::short;
use crate::{enough, files};

const BY_CHANCE: &str = "single slow requests decide the verdict of a start";

/// Default place of the baseline, next to the experiment file.
const BASELINE: &str = "loadline.baseline.json";

#[derive(Args)]
pub struct VerifyArguments {
    /// Baseline: a file, or a directory with a file for each kind of host [default:
    /// loadline.baseline.json next to the experiment file]
    #[arg(long, value_name = "FILE|DIR")]
    baseline: Option<PathBuf>,
    /// Run 20 starts and make them the baseline, whatever they cost, unless they miss the SLO
    #[arg(long)]
    accept: bool,
    /// If the size no longer holds, or holds with much to spare: search for the smallest memory
    /// needed now, and write a patch for the manifest
    #[arg(long, conflicts_with_all = ["accept", "json", "markdown"])]
    tune: bool,
    /// Directory to write the patch to
    #[arg(
        long,
        value_name = "DIR",
        default_value = "loadline-patch",
        requires = "tune"
    )]
    to: PathBuf,
    /// Print as Markdown, for a job summary or a comment
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(
    mut arguments: VerifyArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let named = arguments.flags.experiment_file();
    let file = named.unwrap_or_else(|| PathBuf::from(FILE));
    if !file.exists() {
        let what = format!("there is no {}", file.display());
        return Err(Error::usage(what).with_hint(
            "write it with `loadline init` in the service's directory, or name the experiment file",
        ));
    }
    arguments.flags.experiment = Some(file.clone());
    arguments.flags.file = None;
    let given = load_experiment(&arguments.flags, ExtraFlags::default())?;
    drill::refuse_search(&given)?;
    let shipped = shipped_configuration(&given)?;
    for note in enough::notes(&given, BY_CHANCE) {
        talk!("{note}");
    }
    let place = BaselineLocation::from_path(&match &arguments.baseline {
        Some(path) => path.clone(),
        None => file.parent().unwrap_or(Path::new("")).join(BASELINE),
    });
    place.check_readable().map_err(Error::from_wrong_input)?;
    // A second measurement of the same experiment, should a size be searched.
    let plan = || tune::TunePlan::from_experiment(&given, &file);
    let again = arguments.tune.then(plan).transpose()?;
    let measuring = MeasuringSession::begin_result(given, ResultKind::Verify, &arguments.measure)?;
    let seen = verify_shipped(measuring, &place, shipped, &arguments)?;
    print_statement(&seen, &place, &arguments, out)?;
    if arguments.accept {
        accept(&seen, &place)?;
    }
    if let Some(plan) = again {
        let (flags, to) = (&arguments.measure, &arguments.to);
        tune::tune(plan, &seen.statement, flags, to, out)?;
    }
    seen.outcome()
}

fn shipped_configuration(given: &LoadedExperiment) -> Result<Configuration, Error> {
    let mut all = given.experiment.configurations();
    match (all.len(), all.pop()) {
        (1, Some(one)) => Ok(one),
        (n, _) => Err(Error::usage(format!("{} has {n} configurations, but only one is shipped", given.title),
        )
        .with_hint("leave the factors out: limits belong in [limits] or the manifest; `loadline run` measures several")),
    }
}

struct VerifyComparison {
    result: String,
    ground: MeasurementConditions,
    baseline: Option<Baseline>,
    verified: VerifyOutcome,
    statement: VerifyStatement,
}

fn verify_shipped(
    mut measuring: MeasuringSession,
    place: &BaselineLocation,
    shipped: Configuration,
    arguments: &VerifyArguments,
) -> Result<VerifyComparison, Error> {
    let row = measuring.store.result_by_prefix(&measuring.result);
    let machine = row?.machine;
    let load = crate::result::load_words(&measuring.experiment);
    let ground = MeasurementConditions::new(&machine, &shipped, load);
    let baseline = place.read(&ground);
    let baseline = baseline.map_err(Error::from_wrong_input)?;
    if baseline.is_none() && !arguments.accept {
        let (BaselineLocation::File(path) | BaselineLocation::Directory(path)) = place;
        talk!(
            "there is no baseline in {}: only the SLO is checked; `loadline verify --accept` makes one",
            path.display()
        );
    }
    let search = VerifySearch {
        configuration: shipped,
        start_deadline: measuring.experiment.app.start_deadline,
        ground: ground.clone(),
        baseline: baseline.clone(),
        at_least: if arguments.accept { FIRST } else { 0 },
    };
    let verified = measuring.search(&search, None)?;
    measuring.note_done()?;
    let (configuration, before) = (&search.configuration, baseline.as_ref());
    let (result, size) = (&measuring.result, size_words(configuration));
    let statement = VerifyStatement::new(result, size, configuration, &verified, before);
    if let Some(path) = &arguments.output.report {
        let row = measuring.store.result_by_prefix(&measuring.result);
        let view = crate::result::stored_view(&measuring.store, &row?)?;
        files::write(path, &loadline_report::render_html(&view))?;
        talk!("report: {}", path.display());
    }
    Ok(VerifyComparison {
        result: measuring.result.clone(),
        ground,
        baseline,
        verified,
        statement,
    })
}

fn print_statement(
    seen: &VerifyComparison,
    place: &BaselineLocation,
    arguments: &VerifyArguments,
    out: &mut AnswerPrinter,
) -> Result<(), Error> {
    let statement = &seen.statement;
    out.print_answer(&match (arguments.markdown, arguments.output.json) {
        (true, _) => statement.to_markdown(),
        (_, true) => one_line_json(statement)?,
        _ => statement.to_text(),
    })?;
    let short = short(&seen.result);
    talk!("answer: {}", statement.sentence);
    let show = next(&format!("show {short}"));
    let report = next(&format!("report {short} -o report.html"));
    talk!("trials: {show}; {report}");
    if statement.answer == VerifyAnswer::Worse && !arguments.accept {
        let file = place.file_for_ground(&seen.ground);
        let file = file.display();
        talk!("if the change is worth that, loadline verify --accept rewrites {file}");
    }
    Ok(())
}

fn accept(seen: &VerifyComparison, place: &BaselineLocation) -> Result<(), Error> {
    let answer = seen.statement.answer;
    if !matches!(answer, VerifyAnswer::Holds | VerifyAnswer::Worse) {
        say!("not accepted: a baseline must keep the SLO");
        return Ok(());
    }
    let file = place.file_for_ground(&seen.ground);
    if let BaselineLocation::Directory(directory) = place {
        std::fs::create_dir_all(directory).map_err(|e| {
            let what = format!("cannot make {}: {e}", directory.display());
            Error::environment(what).with_hint("give a writable directory")
        })?;
    }
    let baseline = Baseline {
        schema: SCHEMA,
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        result: seen.result.clone(),
        ground: seen.ground.clone(),
        starts: seen.verified.starts.clone(),
    };
    files::write(&file, &baseline::baseline_text(&baseline))?;
    let how = match seen.baseline {
        Some(_) => "again",
        None => "for the first time",
    };
    let file = file.display();
    talk!("accepted {how}: {file}; commit it to the repository");
    Ok(())
}

impl VerifyComparison {
    fn outcome(&self) -> Result<CommandOutcome, Error> {
        match self.statement.answer {
            VerifyAnswer::Holds => Ok(CommandOutcome::Done),
            VerifyAnswer::SloMissed | VerifyAnswer::Worse => Ok(CommandOutcome::SloMissed),
            VerifyAnswer::NotMeasured => {
                let last = self.verified.trials.last().map(|r| &**r);
                let verdict = last.map(|record| record.verdict);
                let error = not_measured(last);
                let error = error.unwrap_or_else(|| Error::invalid(&self.statement.sentence));
                Err(error.with_hint(remedy_for_invalid(verdict, "verify again")))
            }
        }
    }
}
