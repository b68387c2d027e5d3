//! The result a command is about: one of the store by its id, or a file that `export` wrote.
//!
//! Owns the way from either to a [`ResultView`], so that every command that reads results works on
//! another machine too.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::read::MultiGzDecoder;
use loadline_analysis::recommend::Recommendation;
use loadline_engine::backend::LoadModel;
use loadline_engine::experiment::Experiment;
use loadline_engine::store::{ResultRow, Status, Store};
use loadline_report::ResultView;

use crate::error::{Error, Kind};
use crate::experiment::refused;
use crate::measuring::{experiment_of, open_store_to_read, store_refused};
use crate::ui::text::short;

/// Largest file of records that is read, unpacked. A thousand trials are some tens of MiB.
const LARGEST: u64 = 1 << 30;

/// Which result.
#[derive(Args, Debug, Clone)]
pub struct ResultFlags {
    /// Id of the result (or the start of it); `last` is the newest; or a file that `export` wrote
    #[arg(default_value = "last", value_name = "RESULT")]
    pub id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl ResultFlags {
    /// Reads it.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn view(&self) -> Result<ResultView, Error> {
        result(&self.id, self.state.as_deref())
    }
}

/// A result by id or file.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn result(id: &str, state: Option<&Path>) -> Result<ResultView, Error> {
    let path = Path::new(id);
    if path.is_file() {
        return exported(path);
    }
    if path.extension().is_some_and(|e| e == "json" || e == "gz") {
        return Err(
            Error::new(Kind::Usage, format!("there is no file {}", path.display()))
                .hint("`loadline export RESULT -o result.json` writes one"),
        );
    }
    let store = open_store_to_read(state)?;
    let row = store.result(id).map_err(|e| store_refused(&e))?;
    view(&store, &row)
}

/// A file that `export` wrote, also packed with gzip.
fn exported(path: &Path) -> Result<ResultView, Error> {
    let unreadable = |e: std::io::Error| {
        Error::new(
            Kind::Environment,
            format!("cannot read {}: {e}", path.display()),
        )
    };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let begin = std::io::BufRead::fill_buf(&mut file).map_err(unreadable)?;
    let mut text = String::new();
    let read = if begin.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(file)
            .take(LARGEST)
            .read_to_string(&mut text)
    } else {
        file.take(LARGEST).read_to_string(&mut text)
    };
    read.map_err(unreadable)?;
    loadline_report::read(&text)
        .map_err(|e| Error::new(Kind::Usage, format!("{}: {e}", path.display())))
}

/// The experiment that a view was measured with.
///
/// # Errors
/// When its text is not understood (an older or newer loadline wrote it).
pub fn experiment(view: &ResultView) -> Result<Experiment, Error> {
    let name = Path::new("the experiment of the result");
    Experiment::parse(&view.experiment, name, Path::new(".")).map_err(|e| refused(&e))
}

/// A stored result as reports read it.
///
/// # Errors
/// When the store cannot be read.
pub fn view(store: &Store, row: &ResultRow) -> Result<ResultView, Error> {
    let experiment = experiment_of(row)?;
    let trials = store.trials(&row.id).map_err(|e| store_refused(&e))?;
    let recommendation = row
        .outcome
        .as_deref()
        .map(serde_json::from_str::<Recommendation>)
        .transpose();
    let recommendation = recommendation.map_err(|e| {
        Error::new(
            Kind::Environment,
            format!("the stored recommendation cannot be read: {e}"),
        )
    })?;
    Ok(ResultView {
        id: row.id.clone(),
        title: row.title.clone(),
        question: experiment.question.clone(),
        command: row.command.clone(),
        experiment: row.experiment.clone(),
        load: load_in_words(&experiment),
        machine: row.machine.clone(),
        slo: experiment.slo.clone(),
        recommendation,
        incomplete: incomplete(row),
        warnings: Vec::new(),
        trials,
    })
}

fn incomplete(row: &ResultRow) -> Option<String> {
    match row.status {
        Status::Done => None,
        Status::Running => Some(format!("still running: {} trials so far", row.trials)),
        Status::Interrupted => Some(format!(
            "interrupted after {} trials; go on with: loadline resume {}",
            row.trials,
            short(&row.id)
        )),
        Status::Failed => Some(format!(
            "ended by an error after {} trials; go on with: loadline resume {}",
            row.trials,
            short(&row.id)
        )),
    }
}

fn load_in_words(experiment: &Experiment) -> String {
    let load = &experiment.load;
    let seconds = |d: std::time::Duration| format!("{} s", d.as_secs_f64());
    let model = match load.model {
        LoadModel::Open { rate, duration } => {
            format!("open model, {rate}/s for {}", seconds(duration))
        }
        LoadModel::ClosedFor { duration } => format!("closed model for {}", seconds(duration)),
        LoadModel::ClosedRequests { requests } => format!("closed model, {requests} requests"),
    };
    format!(
        "{} {}, {model}, {} connections{}, warm-up {}",
        load.method,
        load.path,
        load.connections,
        load.http2
            .map_or_else(String::new, |h| format!(" of {} HTTP/2 streams", h.streams)),
        seconds(load.warm_up)
    )
}
