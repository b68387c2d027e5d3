//! `loadline verify`: does what is shipped still hold, and by how much? Few fresh starts of it against
//! the SLO and against what was accepted before.

mod tune;

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::baseline::{Baseline, Ground, SCHEMA};
use loadline_analysis::record::Configuration;
use loadline_analysis::search::verify::{FIRST, Verified, Verify};
use loadline_engine::baseline::{self, Place};
use loadline_engine::store::ResultKind;
use loadline_report::verified::{Answer, Statement};

use super::init::FILE;
use super::{OutputFlags, drill, print};
use crate::enough;
use crate::error::{Error, ErrorKind, Outcome};
use crate::experiment::{ExperimentFlags, Given, given};
use crate::files;
use crate::measuring::{MeasureFlags, Measuring, store_refused};
use crate::ui::next::command as next;
use crate::ui::text::short;

/// What verdicts are that rest on few requests.
const BY_CHANCE: &str = "single slow requests decide the verdict of a start";

/// Where the baseline is unless the caller says otherwise, beside the experiment file.
const BASELINE: &str = "loadline.baseline.json";

/// Say whether what is shipped still keeps the SLO and costs no more than before
#[derive(Args)]
pub struct VerifyArguments {
    /// The service's experiment file, as `loadline init` writes it [default: loadline.toml]
    #[arg(value_name = "FILE", conflicts_with = "file")]
    experiment: Option<PathBuf>,
    /// What was accepted before: a file, or a directory with a file for each kind of host [default:
    /// loadline.baseline.json beside the experiment file]
    #[arg(long, value_name = "FILE|DIR")]
    baseline: Option<PathBuf>,
    /// Run 20 starts and make them the baseline, whatever they cost; what misses the SLO is never one
    #[arg(long)]
    accept: bool,
    /// Where it no longer holds, or holds with much to spare: search the smallest memory from the
    /// shipped size on, and write the patch of the manifest
    #[arg(long, conflicts_with_all = ["accept", "json", "markdown"])]
    tune: bool,
    /// Directory that the patch is written to
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

/// Runs the starts, prints what they say, and does what was asked for with it.
pub fn run(mut arguments: VerifyArguments) -> Result<Outcome, Error> {
    let file = arguments.flags.file.take().or(arguments.experiment.take());
    let file = file.unwrap_or_else(|| PathBuf::from(FILE));
    if !file.exists() {
        let what = format!("there is no {}", file.display());
        return Err(Error::new(ErrorKind::Usage, what).hint(
            "in the service's directory `loadline init` writes it; or name the experiment file",
        ));
    }
    arguments.flags.file = Some(file.clone());
    let given = given(&arguments.flags, None)?;
    drill::refuse(&given)?;
    let shipped = shipped(&given)?;
    for note in enough::notes(&given, BY_CHANCE) {
        talk!("{note}");
    }
    let place = Place::of(&match &arguments.baseline {
        Some(path) => path.clone(),
        None => file.parent().unwrap_or(Path::new("")).join(BASELINE),
    });
    place
        .check()
        .map_err(|r| Error::new(ErrorKind::Usage, &r).hint(&r.hint))?;
    // A second measurement of the same experiment, should a size be searched.
    let again = arguments
        .tune
        .then(|| tune::Plan::of(&given, &file))
        .transpose()?;
    let measuring = Measuring::begin(given, ResultKind::Verify, &arguments.measure)?;
    let seen = verified(measuring, &place, shipped, &arguments)?;
    say(&seen, &place, &arguments)?;
    if arguments.accept {
        accept(&seen, &place)?;
    }
    if let Some(plan) = again {
        tune::tune(plan, &seen.statement, &arguments.measure, &arguments.to)?;
    }
    seen.outcome()
}

/// What is shipped: one configuration.
fn shipped(given: &Given) -> Result<Configuration, Error> {
    let mut all = given.experiment.configurations();
    match (all.len(), all.pop()) {
        (1, Some(one)) => Ok(one),
        (n, _) => Err(Error::new(
            ErrorKind::Usage,
            format!("{} has {n} configurations, and one is shipped", given.title),
        )
        .hint("leave the factors out: limits stand in [limits] or in the manifest; `loadline run` measures several")),
    }
}

/// What was measured and what it is held against.
struct Seen {
    result: String,
    ground: Ground,
    baseline: Option<Baseline>,
    verified: Verified,
    statement: Statement,
}

fn verified(
    mut measuring: Measuring,
    place: &Place,
    shipped: Configuration,
    arguments: &VerifyArguments,
) -> Result<Seen, Error> {
    let row = measuring.store.result(&measuring.result);
    let machine = row.map_err(|e| store_refused(&e))?.machine;
    let load = crate::result::load_words(&measuring.experiment);
    let ground = Ground::new(&machine, &shipped, load);
    let baseline = place.read(&ground);
    let baseline = baseline.map_err(|r| Error::new(ErrorKind::Usage, &r).hint(&r.hint))?;
    if baseline.is_none() && !arguments.accept {
        talk!(
            "there is no baseline: only the SLO is looked at; `loadline verify --accept` makes one"
        );
    }
    let search = Verify {
        configuration: shipped,
        start_deadline: measuring.experiment.app.start_deadline,
        ground: ground.clone(),
        baseline: baseline.clone(),
        at_least: if arguments.accept { FIRST } else { 0 },
    };
    let verified = measuring.search(&search, None)?;
    measuring.done(None)?;
    let configuration = &search.configuration;
    let statement = Statement::new(
        &measuring.result,
        size(configuration),
        configuration,
        &verified,
        baseline.as_ref(),
    );
    if let Some(path) = &arguments.output.report {
        let row = measuring.store.result(&measuring.result);
        let view = crate::result::view(&measuring.store, &row.map_err(|e| store_refused(&e))?)?;
        files::write(path, &loadline_report::html(&view))?;
        talk!("report: {}", path.display());
    }
    Ok(Seen {
        result: measuring.result.clone(),
        ground,
        baseline,
        verified,
        statement,
    })
}

/// `1 CPU and 232Mi`.
fn size(configuration: &Configuration) -> String {
    loadline_report::content::groups::size(configuration)
}

fn say(seen: &Seen, place: &Place, arguments: &VerifyArguments) -> Result<(), Error> {
    let statement = &seen.statement;
    print(&match (arguments.markdown, arguments.output.json) {
        (true, _) => statement.markdown(),
        (_, true) => statement.json(),
        _ => statement.text(),
    })?;
    let short = short(&seen.result);
    talk!("answer: {}", statement.sentence);
    talk!(
        "trials: {}; {}",
        next(&format!("show {short}")),
        next(&format!("report {short} -o report.html"))
    );
    if statement.answer == Answer::Worse && !arguments.accept {
        let file = place.file(&seen.ground);
        talk!(
            "if that is what the change is worth: loadline verify --accept writes {} anew",
            file.display()
        );
    }
    Ok(())
}

/// Writes the baseline.
fn accept(seen: &Seen, place: &Place) -> Result<(), Error> {
    let is_kept = matches!(seen.statement.answer, Answer::Holds | Answer::Worse);
    if !is_kept {
        eprintln!("not accepted: what does not keep the SLO is no baseline");
        return Ok(());
    }
    let file = place.file(&seen.ground);
    if let Place::Directory(directory) = place {
        std::fs::create_dir_all(directory).map_err(|e| {
            let what = format!("cannot make {}: {e}", directory.display());
            Error::new(ErrorKind::Environment, what).hint("give a directory that you may write")
        })?;
    }
    let baseline = Baseline {
        schema: SCHEMA,
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        result: seen.result.clone(),
        ground: seen.ground.clone(),
        starts: seen.verified.starts.clone(),
    };
    files::write(&file, &baseline::text(&baseline))?;
    let how = match seen.baseline {
        Some(_) => "anew",
        None => "for the first time",
    };
    talk!(
        "accepted {how}: {}; keep it in the repository",
        file.display()
    );
    Ok(())
}

impl Seen {
    fn outcome(&self) -> Result<Outcome, Error> {
        match self.statement.answer {
            Answer::Holds => Ok(Outcome::Done),
            Answer::SloMissed | Answer::Worse => Ok(Outcome::SloMissed),
            Answer::NotMeasured => {
                let last = self.verified.trials.last().map(|r| &**r);
                Err(super::not_measured(last)
                    .unwrap_or_else(|| Error::new(ErrorKind::Invalid, &self.statement.sentence))
                    .hint("close what else uses this machine, then verify again"))
            }
        }
    }
}
