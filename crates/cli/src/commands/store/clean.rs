//! `loadline clean`: what killed loadlines left, and results that are no longer wanted.
//!
//! Owns what is shown before anything of a result goes, and that nothing does unless it was asked
//! for. What belongs to a result is the store's.

use std::path::PathBuf;

use clap::Args;
use loadline_engine::store::{Removed, ResultRow, Store, unix_ms};
use loadline_host::apart;
use loadline_host::oci::engine;
use loadline_host::{Options, Site};
use loadline_kubernetes::Swept;
use loadline_report::format;
use loadline_report::table::{Cell, Table};
use loadline_sizing::Bytes;
use loadline_trial::Engine;

use super::answer;
use super::filter::Moment;
use crate::commands::{print, width};
use crate::error::{Error, ErrorKind, Outcome};
use crate::experiment::ClusterFlags;
use crate::measuring::{open_store, open_store_to_read, state_directory, store_refused};
use crate::ui::next::command as next;
use crate::ui::text::short;

/// Remove what a killed loadline left: cgroups, containers, files of trials; with --kubernetes Jobs of
/// a cluster. Results stay, but for those that --older names
#[derive(Args)]
pub struct CleanArguments {
    /// Also results begun before: a time ago (12h, 30d) or a day in UTC (2026-11-20). They are
    /// listed with their sizes, the largest first, and removed with --yes
    #[arg(long, value_name = "WHEN")]
    older: Option<Moment>,
    /// Remove the results that are listed: records, logs and caches, for good
    #[arg(long, requires = "older")]
    yes: bool,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Removes it and says what; where there is no state directory, none is made.
pub fn run(arguments: CleanArguments) -> Result<Outcome, Error> {
    if let Some(older) = arguments.older {
        return old_results(&arguments, older);
    }
    if let Some(wanted) = arguments.cluster.wanted() {
        let swept = Swept::of(&wanted).map_err(|e| Error::refused(&e))?;
        print(&format!(
            "removed {} with their pods",
            format::count(swept.jobs.len(), "Job")
        ))?;
        for result in &swept.results {
            let take = next(&format!("resume {result} --kubernetes"));
            talk!(
                "left alone: loadline itself works, or has worked, on {result}; fetch or take over: {take}"
            );
        }
        return Ok(Outcome::Done);
    }
    let engines = engine::installed(None).into_iter();
    // One that does not answer has nothing that could be found.
    let engines: Vec<Engine> = engines.filter_map(|e| engine::reached(e).ok()).collect();
    let has_apart = engines.iter().any(|engine| engine.apart.is_some());
    let apart = apart(&engines)?;
    let store = open_store_to_read(arguments.state.as_deref())?;
    let options = Options {
        scratch_root: Some(store.scratch_root()),
        ..Options::default()
    };
    let site = match Site::find(options) {
        Ok(site) => site,
        // Where no cgroup can be made, trials were at engines apart only.
        Err(_) if has_apart => return not_removed(&apart),
        Err(refusal) => return Err(Error::refused(&refusal)),
    };
    let swept = site.sweep_with(&engines);
    let swept = swept.map_err(|e| Error::refused(&e))?;
    for container in &swept.containers {
        print(&format!("removed the container {container}"))?;
    }
    let (groups, killed, directories) = (swept.groups.len(), swept.killed, swept.directories.len());
    print(&format!(
        "removed {groups} control groups with {killed} processes, and {directories} trial directories"
    ))?;
    not_removed(&[swept.failures, apart].concat())
}

/// Removes what was left at engines where the application's container had one beside it, and the image
/// that loadline made of itself there; gives what could not be removed.
fn apart(engines: &[Engine]) -> Result<Vec<String>, Error> {
    let mut failures = Vec::new();
    for engine in engines {
        let mut swept = apart::sweep(engine);
        for container in &swept.containers {
            print(&format!("removed the container {container}"))?;
        }
        for volume in &swept.volumes {
            print(&format!("removed the volume {volume}"))?;
        }
        failures.append(&mut swept.failures);
        let images = apart::remove_images(engine);
        if images > 0 {
            let images = format::count(images, "image");
            print(&format!(
                "removed {images} of loadline itself from {}",
                engine.kind
            ))?;
        }
    }
    Ok(failures)
}

fn not_removed(failures: &[String]) -> Result<Outcome, Error> {
    match failures {
        [] => Ok(Outcome::Done),
        failures => Err(Error::new(
            ErrorKind::Environment,
            format!("not removed: {}", failures.join("; ")),
        )
        .hint("look at what holds it, then: loadline clean")),
    }
}

/// Shows the results that are older, and removes them where that was asked for.
fn old_results(arguments: &CleanArguments, older: Moment) -> Result<Outcome, Error> {
    let state = arguments.state.as_deref();
    let looked = open_store_to_read(state)?;
    let mut rows = Vec::new();
    for row in looked.results().map_err(|e| store_refused(&e))? {
        if row.created_unix_ms < older.unix_ms(unix_ms()) {
            let size = looked.bytes_of(&row).map_err(|e| store_refused(&e))?;
            rows.push((size, row));
        }
    }
    drop(looked);
    if rows.is_empty() {
        let place = state_directory(state);
        print(&format!("no result in {} is older", place.display()))?;
        if !arguments.yes || !Store::is_in(&place) {
            return Ok(Outcome::Done);
        }
        // A removal that was killed may have left files of results that are listed no more.
        return remove(&open_store(state)?, &rows);
    }
    rows.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    print(&table(&rows).terminal(width()))?;
    let all: u64 = rows.iter().map(|(size, _)| size).sum();
    let what = format!(
        "{}, {}",
        format::count(rows.len(), "result"),
        format::bytes(Bytes::from_bytes(all))
    );
    if !arguments.yes {
        print(&format!(
            "{what}; nothing was removed. To remove them: add --yes"
        ))?;
        return Ok(Outcome::Done);
    }
    remove(&open_store(state)?, &rows)
}

fn table(rows: &[(u64, ResultRow)]) -> Table {
    let mut table = Table::new()
        .right("size")
        .left("result")
        .left("begun")
        .left("kind")
        .left("title")
        .left("status")
        .wrapping("answer");
    for (size, row) in rows {
        table.row(
            [
                &format::bytes(Bytes::from_bytes(*size)),
                short(&row.id),
                &format::date(row.created_unix_ms),
                row.kind.name(),
                &row.title,
                row.status.name(),
                &answer(row),
            ]
            .map(Cell::from),
        );
    }
    table
}

/// One that somebody works on stays and is named; the others go.
fn remove(store: &Store, rows: &[(u64, ResultRow)]) -> Result<Outcome, Error> {
    let mut removed = Removed::default();
    let mut results = 0;
    for (_, row) in rows {
        match store.remove_result(&row.id) {
            Ok(files) => {
                removed.add(files);
                results += 1;
            }
            Err(error) => removed.failures.push(error.to_string()),
        }
    }
    removed.add(store.remove_orphans().map_err(|e| store_refused(&e))?);
    if rows.is_empty() && removed == Removed::default() {
        return Ok(Outcome::Done);
    }
    print(&format!(
        "removed {} with {} of logs and caches",
        format::count(results, "result"),
        format::bytes(Bytes::from_bytes(removed.bytes))
    ))?;
    not_removed(&removed.failures)
}
