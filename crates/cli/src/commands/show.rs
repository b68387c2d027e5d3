//! `loadline show`: a result or a trial as text, and what other commands print at their end.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::recommend::Recommendation;
use loadline_engine::backend::LoadModel;
use loadline_engine::experiment::Experiment;
use loadline_engine::store::{ResultRow, Status, Store};
use loadline_report::ResultView;

use super::{OutputFlags, print, width};
use crate::error::{Error, Kind, Outcome};
use crate::measuring::{experiment_of, open_store, store_refused};
use crate::ui::text::short;

/// Show a result or a trial
#[derive(Args)]
pub struct ShowArguments {
    /// Id of a result or a trial (or the start of it); `last` is the newest result
    #[arg(default_value = "last")]
    id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print the experiment as it was given
    #[arg(long)]
    experiment: bool,
    #[command(flatten)]
    output: OutputFlags,
}

/// Prints it.
pub fn run(arguments: ShowArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let row = match store.result(&arguments.id) {
        Ok(row) => row,
        Err(no_result) => {
            return trial(&store, &arguments.id).map_err(|_| store_refused(&no_result));
        }
    };
    if arguments.experiment {
        print(&row.experiment)?;
    } else {
        print_result(&store, &row.id, &arguments.output)?;
    }
    Ok(Outcome::Done)
}

fn trial(store: &Store, id: &str) -> Result<Outcome, Error> {
    let record = store.trial(id).map_err(|e| store_refused(&e))?;
    let text = serde_json::to_string_pretty(&record).map_err(|e| Error::new(Kind::Internal, e))?;
    print(&text)?;
    Ok(Outcome::Done)
}

/// Prints a result and writes its report, as the flags say.
pub fn print_result(store: &Store, id: &str, output: &OutputFlags) -> Result<(), Error> {
    let row = store.result(id).map_err(|e| store_refused(&e))?;
    let view = view(store, &row)?;
    let text = match output.json {
        true => loadline_report::json(&view),
        false => loadline_report::terminal(&view, width()),
    };
    print(&text)?;
    if let Some(path) = &output.report {
        write(path, &loadline_report::html(&view))?;
        eprintln!("report: {}", path.display());
    } else {
        eprintln!("report: loadline report {} -o report.html", short(id));
    }
    Ok(())
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let refuse = |e: std::io::Error| {
        Error::new(
            Kind::Environment,
            format!("cannot write {}: {e}", path.display()),
        )
    };
    let mut name = path
        .file_name()
        .map(|n| n.to_owned())
        .ok_or_else(|| Error::new(Kind::Usage, format!("{} is no file name", path.display())))?;
    name.push(".part");
    let part = path.with_file_name(name);
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, path));
    written.map_err(|e| {
        // What was half written is of no use to anyone; the error is the one to report.
        let _ = fs::remove_file(&part);
        refuse(e)
    })
}

/// A result as reports read it.
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
        "{} {}, {model}, {} connections, warm-up {}",
        load.method,
        load.path,
        load.connections,
        seconds(load.warm_up)
    )
}
