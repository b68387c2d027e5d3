//! `loadline list`, `resume`, `export`, `report`, `clean`: the store and what can be made of it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use loadline_engine::backend::local::{LocalBackend, Options};
use loadline_engine::store::{Kind as ResultKind, Status};
use loadline_report::table::{Cell, Table};
use serde_json::json;

use super::show::{view, write};
use super::{OutputFlags, print, width};
use crate::error::{Error, Kind, Outcome};
use crate::measuring::{Measuring, open_store, store_refused};
use crate::ui::text::short;

/// List the results
#[derive(Args)]
pub struct ListArguments {
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the list.
pub fn list(arguments: ListArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let rows = store.results().map_err(|e| store_refused(&e))?;
    if arguments.json {
        let row = |r: &loadline_engine::store::ResultRow| json!({ "id": r.id, "kind": r.kind, "title": r.title, "status": r.status, "trials": r.trials, "created_unix_ms": r.created_unix_ms });
        let rows: Vec<_> = rows.iter().map(row).collect();
        print(&json!({ "schema": 1, "results": rows }).to_string())?;
        return Ok(Outcome::Done);
    }
    if rows.is_empty() {
        eprintln!("no results in {}", store.directory().display());
        return Ok(Outcome::Done);
    }
    let mut table = Table::new()
        .left("result")
        .left("kind")
        .left("title")
        .left("status")
        .right("trials");
    for row in &rows {
        let kind = if row.kind == ResultKind::Run {
            "run"
        } else {
            "size"
        };
        let status = match row.status {
            Status::Running => "running",
            Status::Interrupted => "interrupted",
            Status::Failed => "failed",
            Status::Done => "done",
        };
        table.row(
            [
                short(&row.id),
                kind,
                &row.title,
                status,
                &row.trials.to_string(),
            ]
            .map(Cell::from),
        );
    }
    print(&table.terminal(width()))?;
    Ok(Outcome::Done)
}

/// Go on with a result that was stopped
#[derive(Args)]
pub struct ResumeArguments {
    /// Id of the result (or the start of it)
    #[arg(default_value = "last")]
    id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Wait until no other loadline measures, instead of refusing
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs what is left.
pub fn resume(arguments: ResumeArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let row = store.result(&arguments.id).map_err(|e| store_refused(&e))?;
    let measuring = Measuring::again(&row, store, arguments.wait)?;
    match row.kind {
        ResultKind::Run => super::run::matrix(measuring, &arguments.output),
        ResultKind::Size => super::size::sized(measuring, &arguments.output),
    }
}

/// What `export` writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Everything: the records as they are
    Json,
    /// One row a trial
    Csv,
    /// For continuous integration: a test case a configuration
    Junit,
    /// For a pull request
    Markdown,
}

/// Export a result
#[derive(Args)]
pub struct ExportArguments {
    /// Id of the result (or the start of it)
    #[arg(default_value = "last")]
    id: String,
    /// The form
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// File to write; default: standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes it.
pub fn export(arguments: ExportArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let row = store.result(&arguments.id).map_err(|e| store_refused(&e))?;
    let view = view(&store, &row)?;
    let text = match arguments.format {
        Format::Json => loadline_report::json(&view),
        Format::Csv => loadline_report::csv(&view),
        Format::Junit => loadline_report::junit(&view),
        Format::Markdown => loadline_report::markdown(&view),
    };
    match &arguments.output {
        Some(path) => write(path, &text)?,
        None => print(&text)?,
    }
    Ok(Outcome::Done)
}

/// Write the report of a result: one offline HTML file
#[derive(Args)]
pub struct ReportArguments {
    /// Id of the result (or the start of it)
    #[arg(default_value = "last")]
    id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Writes it.
pub fn report(arguments: ReportArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let row = store.result(&arguments.id).map_err(|e| store_refused(&e))?;
    write(
        &arguments.output,
        &loadline_report::html(&view(&store, &row)?),
    )?;
    eprintln!("report: {}", arguments.output.display());
    Ok(Outcome::Done)
}

/// Remove what a killed loadline left: cgroups, files of trials. Results stay
#[derive(Args)]
pub struct CleanArguments {
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Removes it and says what.
pub fn clean(arguments: CleanArguments) -> Result<Outcome, Error> {
    let store = open_store(arguments.state.as_deref())?;
    let options = Options {
        scratch_root: Some(store.scratch_root()),
        ..Options::default()
    };
    let backend = LocalBackend::new(options).map_err(|e| Error::from_backend(&e))?;
    let swept = backend.sweep().map_err(|e| Error::from_backend(&e))?;
    let (groups, killed, directories) = (swept.groups.len(), swept.killed, swept.directories.len());
    print(&format!(
        "removed {groups} control groups with {killed} processes, and {directories} trial directories"
    ))?;
    match swept.failures.as_slice() {
        [] => Ok(Outcome::Done),
        failures => Err(Error::new(
            Kind::Environment,
            format!("not removed: {}", failures.join("; ")),
        )),
    }
}
