//! Checks whether a state directory is whole: `cargo xtask failpoints` and `power-loss` run it
//! after each fault.
//!
//!     whole_store DIRECTORY
//!
//! Opens it as every command does, which repairs leftovers of a killed loadline. Standard output is
//! one line of JSON: the finished trials, and the problems: SQLite's `quick_check`, unreadable
//! records, event logs of evidence that are missing, damaged or without an end, logs without an
//! owner. Changes nothing else. Exit code 1 when the store cannot be opened at all.

#![allow(clippy::print_stdout, reason = "its output is its result")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};

use loadline_protocol::TrialEvent;
use loadline_protocol::log::{EventLogReader, LogEntry};
use loadline_runner::store::Store;
use rusqlite::Connection;

fn main() -> Result<(), Box<dyn Error>> {
    let directory: PathBuf = std::env::args_os().nth(1).ok_or("which directory?")?.into();
    let store = Store::open_or_create(&directory)?;
    let mut wrong = Vec::new();
    let database = Connection::open(directory.join("loadline.db"))?;
    let checked: String = database.query_row("PRAGMA quick_check", [], |row| row.get(0))?;
    if checked != "ok" {
        wrong.push(format!("quick_check: {checked}"));
    }
    let mut finished = Vec::new();
    for result in store.all_results()? {
        for record in store.finished_trials(&result.id)? {
            // A lost trial may have no log, or a log without an end: its record shows that.
            if record.verdict.is_evidence()
                && let Err(why) = read(&store.trial_log_path(&record.id))
            {
                wrong.push(format!("event log of {}: {why}", record.id));
            }
            finished.push(record.id);
        }
    }
    // Half a soak is evidence; half of any other trial is none.
    let mut statement = database.prepare("SELECT id FROM trial WHERE key LIKE '[\"soak\"%'")?;
    let soaks = statement.query_map([], |row| row.get(0))?;
    let mut known: BTreeSet<String> = soaks.collect::<Result<_, _>>()?;
    known.extend(finished.iter().cloned());
    for entry in std::fs::read_dir(directory.join("logs"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if !known.contains(name.as_ref()) {
            wrong.push(format!("{} belongs to no finished trial", path.display()));
        }
    }
    println!(
        "{}",
        serde_json::json!({ "finished": finished, "wrong": wrong })
    );
    Ok(())
}

/// Reads an event log to its last event.
fn read(log: &Path) -> Result<(), Box<dyn Error>> {
    let mut reader = EventLogReader::new(File::open(log)?);
    let mut has_ended = false;
    while let Some(record) = reader.next_entry()? {
        match record {
            LogEntry::Event(event) => has_ended |= matches!(event, TrialEvent::Ended(_)),
            LogEntry::Piece(piece) => drop(piece.unpacked_bytes()?),
        }
    }
    if has_ended {
        Ok(())
    } else {
        Err("it has no end".into())
    }
}
