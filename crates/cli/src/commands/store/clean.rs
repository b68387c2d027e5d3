//! `loadline clean`: leftovers of killed loadlines, and unwanted results.
//!
//! Owns the listing before any result is deleted, and that nothing is deleted without a request.
//! The store knows which files belong to a result.

use std::path::PathBuf;

use clap::Args;
use loadline_kubernetes::ClusterSweep;
use loadline_protocol::ContainerEngine;
use loadline_report::format;
use loadline_report::table::Table;
use loadline_runner::store::{RemovalTotals, ResultRow, Store, unix_ms};
use loadline_sizing::Bytes;
use loadline_trial::oci::engine;
use loadline_trial::{Site, SiteOptions, apart};

use super::answer_words;
use super::filter::PointInTime;
use crate::error::{CommandOutcome, Error};
use crate::experiment::ClusterFlags;
use crate::measuring::{open_store, open_store_to_read, state_directory};
use crate::output::AnswerPrinter;
use crate::say::width;
use crate::ui::next::next_command as next;
use crate::ui::text::short;

#[derive(Args)]
pub struct CleanArguments {
    /// Also results begun before this time: an age (12h, 30d) or a day in UTC (2026-11-20). They
    /// are listed with their sizes, largest first, and removed with --yes
    #[arg(long, value_name = "WHEN")]
    older: Option<PointInTime>,
    /// Remove the listed results for good: records, logs and caches
    #[arg(long, requires = "older")]
    yes: bool,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub fn run(arguments: CleanArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    if let Some(older) = arguments.older {
        return old_results(&arguments, older, out);
    }
    if let Some(wanted) = arguments.cluster.wanted_cluster() {
        let swept = ClusterSweep::remove_leftovers(&wanted)?;
        let jobs = format::count_of(swept.jobs.len(), "Job");
        out.print_answer(&format!("removed {jobs} with their pods"))?;
        for result in &swept.results {
            let take = next(&format!("resume {result} --kubernetes"));
            talk!("left alone: loadline works or worked on {result}; fetch or take over: {take}");
        }
        return Ok(CommandOutcome::Done);
    }
    let engines = engine::installed_engines(None).into_iter();
    // One that does not answer has nothing that could be found.
    let engines: Vec<ContainerEngine> = engines
        .filter_map(|e| engine::reach_engine(e).ok())
        .collect();
    let has_apart = engines.iter().any(|engine| engine.apart.is_some());
    let apart = clean_engines_apart(&engines, out)?;
    let store = open_store_to_read(arguments.state.as_deref())?;
    let options = SiteOptions {
        scratch_root: Some(store.scratch_root()),
        ..SiteOptions::default()
    };
    let site = match Site::detect_site(options) {
        Ok(site) => site,
        // Where no cgroup can be made, trials were at engines apart only.
        Err(_) if has_apart => return not_removed(&apart),
        Err(refusal) => return Err(Error::from_refusal(&refusal)),
    };
    let swept = site.sweep_with(&engines)?;
    for container in &swept.containers {
        out.print_answer(&format!("removed the container {container}"))?;
    }
    let (groups, killed, directories) = (swept.groups.len(), swept.killed, swept.directories.len());
    out.print_answer(&format!(
        "removed {groups} control groups with {killed} processes, and {directories} trial directories"
    ))?;
    not_removed(&[swept.failures, apart].concat())
}

/// Removes leftovers from remote engines, and loadline's own image there; returns the failures.
fn clean_engines_apart(
    engines: &[ContainerEngine],
    out: &mut AnswerPrinter,
) -> Result<Vec<String>, Error> {
    let mut failures = Vec::new();
    for engine in engines {
        let mut swept = apart::sweep_engine(engine);
        for container in &swept.containers {
            out.print_answer(&format!("removed the container {container}"))?;
        }
        for volume in &swept.volumes {
            out.print_answer(&format!("removed the volume {volume}"))?;
        }
        failures.append(&mut swept.failures);
        let images = apart::remove_images(engine);
        if images > 0 {
            let (images, kind) = (format::count_of(images, "image"), &engine.kind);
            out.print_answer(&format!("removed {images} of loadline itself from {kind}"))?;
        }
    }
    Ok(failures)
}

fn not_removed(failures: &[String]) -> Result<CommandOutcome, Error> {
    if failures.is_empty() {
        return Ok(CommandOutcome::Done);
    }
    let refusal = format!("not removed: {}", failures.join("; "));
    Err(Error::environment(refusal).with_hint("find out what holds it, then: loadline clean"))
}

fn old_results(
    arguments: &CleanArguments,
    older: PointInTime,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let state = arguments.state.as_deref();
    let looked = open_store_to_read(state)?;
    let mut rows = Vec::new();
    for row in looked.all_results()? {
        if row.created_unix_ms < older.unix_ms(unix_ms()) {
            let size = looked.bytes_of(&row)?;
            rows.push((size, row));
        }
    }
    drop(looked);
    if rows.is_empty() {
        let place = state_directory(state);
        out.print_answer(&format!("no result in {} is older", place.display()))?;
        if !arguments.yes || !Store::is_in(&place) {
            return Ok(CommandOutcome::Done);
        }
        // A removal that was killed may have left files of results that are listed no more.
        return remove_results(&open_store(state)?, &rows, out);
    }
    rows.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    out.print_answer(&results_table(&rows).to_terminal(width()))?;
    let all: u64 = rows.iter().map(|(size, _)| size).sum();
    let results = format::count_of(rows.len(), "result");
    let size = format::measured_bytes(Bytes::from_bytes(all));
    if !arguments.yes {
        let nothing = "nothing was removed. To remove them: add --yes";
        out.print_answer(&format!("{results}, {size}; {nothing}"))?;
        return Ok(CommandOutcome::Done);
    }
    remove_results(&open_store(state)?, &rows, out)
}

fn results_table(rows: &[(u64, ResultRow)]) -> Table {
    let mut table = Table::new()
        .right("size")
        .left("result | begun | kind | title | status")
        .wrapping("answer");
    for (size, row) in rows {
        table.add_texts([
            &format::measured_bytes(Bytes::from_bytes(*size)),
            short(&row.id),
            &format::date(row.created_unix_ms),
            row.kind.command_name(),
            &row.title,
            row.status.status_word(),
            &answer_words(row),
        ]);
    }
    table
}

fn remove_results(
    store: &Store,
    rows: &[(u64, ResultRow)],
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let mut removed = RemovalTotals::default();
    let mut results = 0;
    for (_, row) in rows {
        match store.remove_result(&row.id) {
            Ok(files) => {
                removed.add_totals(files);
                results += 1;
            }
            Err(error) => removed.failures.push(error.to_string()),
        }
    }
    removed.add_totals(store.remove_orphans()?);
    if rows.is_empty() && removed == RemovalTotals::default() {
        return Ok(CommandOutcome::Done);
    }
    let results = format::count_of(results, "result");
    let size = format::measured_bytes(Bytes::from_bytes(removed.bytes));
    out.print_answer(&format!("removed {results} with {size} of logs and caches"))?;
    not_removed(&removed.failures)
}
