//! Removing results for good: their rows, then their files.
//!
//! Owns which files belong to a result, and the order: rows go in one transaction, which refuses
//! while a process works on the result; files go after it, so that a crash in between leaves files
//! without rows, which the next removal finds, and never rows without evidence. Trials taken over
//! by a later result (`--reuse`) are copies and stay. Facts: SQLite lang_transaction.html
//! (IMMEDIATE).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use loadline_files::remove_tree;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::{ResultRow, Store, StoreError, Stored, is_alive};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct RemovalTotals {
    pub bytes: u64,
    pub files: u64,
    pub failures: Vec<String>,
}

impl Store {
    /// What a result takes on disk: event logs, start-up caches, records. Bytes.
    pub fn bytes_of(&self, row: &ResultRow) -> Stored<u64> {
        let sql = "SELECT coalesce(sum(length(record)), 0) FROM trial WHERE result = ?1";
        let records: Option<i64> = self.find_value(sql, [&row.id])?;
        let trials = self.check_sql(ids(&self.connection, TRIALS, &row.id))?;
        let files = self.files_of(&row.id, &trials);
        let files: u64 = files.iter().map(|path| disk_bytes(path)).sum();
        Ok(records.unwrap_or_default().cast_unsigned() + files)
    }

    /// Removes a result with its trials, logs and caches.
    /// Errors: [`StoreError::InUse`] while a loadline works on it: then nothing is changed.
    pub fn remove_result(&self, id: &str) -> Stored<RemovalTotals> {
        self.check_sql(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        let gone = self.check_sql(remove_rows(&self.connection, id));
        let end = match gone {
            Ok(Some(_)) => "COMMIT",
            Ok(None) | Err(_) => "ROLLBACK",
        };
        let ended = self.check_sql(self.connection.execute_batch(end));
        let Some(trials) = gone? else {
            return Err(StoreError::InUse { id: id.to_owned() });
        };
        ended?;
        let mut removed = RemovalTotals::default();
        for path in self.files_of(id, &trials) {
            removed.remove_path(&path);
        }
        Ok(removed)
    }

    /// Removes logs and caches that no row knows: what a removal that was killed left.
    pub fn remove_orphans(&self) -> Stored<RemovalTotals> {
        let mut removed = RemovalTotals::default();
        // Rows come before their files: looked at in this order, no file of a trial that has just
        // begun is without one.
        let logs = directory_entries(&self.directory.join("logs"));
        let caches = directory_entries(&self.directory.join("caches"));
        let trials = self.check_sql(ids(&self.connection, "SELECT id FROM trial", ""))?;
        let results = self.check_sql(ids(&self.connection, "SELECT id FROM result", ""))?;
        for (paths, known) in [(logs, trials), (caches, results)] {
            let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
            let name =
                |path: &PathBuf| path.file_stem().and_then(|s| s.to_str()).map(str::to_owned);
            let is_known = |path: &&PathBuf| name(path).is_none_or(|n| known.contains(n.as_str()));
            let orphans = paths.iter().filter(|path| !is_known(path));
            orphans.for_each(|path| removed.remove_path(path));
        }
        Ok(removed)
    }

    fn files_of(&self, result: &str, trials: &[String]) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = trials.iter().map(|id| self.trial_log_path(id)).collect();
        files.push(self.cache_directory(result));
        files
    }
}

const TRIALS: &str = "SELECT id FROM trial WHERE result = ?1";

/// Deletes the rows of a result; returns its trials. `None` while a process works on it.
fn remove_rows(connection: &Connection, id: &str) -> rusqlite::Result<Option<Vec<String>>> {
    let owner = "SELECT owner FROM result WHERE id = ?1 AND status = '\"running\"'";
    let of_result: Option<String> = connection.query_row(owner, [id], |r| r.get(0)).optional()?;
    let owner = "SELECT owner FROM trial WHERE result = ?1 AND state = 'running'";
    let mut owners = ids(connection, owner, id)?;
    owners.extend(of_result);
    if owners.iter().any(|owner| is_alive(owner)) {
        return Ok(None);
    }
    let trials = ids(connection, TRIALS, id)?;
    for table in ["trial", "ground", "away", "soaked", "from_cluster"] {
        let sql = format!("DELETE FROM {table} WHERE result = ?1");
        connection.execute(&sql, [id])?;
    }
    connection.execute("DELETE FROM result WHERE id = ?1", [id])?;
    Ok(Some(trials))
}

fn ids(connection: &Connection, sql: &str, result: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let of = [result];
    let of = &of[..statement.parameter_count().min(1)];
    let rows = statement.query_map(params_from_iter(of), |row| row.get(0))?;
    rows.collect()
}

impl RemovalTotals {
    fn remove_path(&mut self, path: &Path) {
        let size = disk_bytes(path);
        match remove_any(path) {
            Ok(()) => {
                self.bytes += size;
                self.files += 1;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.failures.push(format!("{}: {error}", path.display())),
        }
    }

    pub fn add_totals(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.files += other.files;
        self.failures.extend(other.failures);
    }
}

fn remove_any(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        remove_tree(path)
    } else {
        fs::remove_file(path)
    }
}

/// Length of a file, of a directory with all below it; what cannot be looked at counts nothing.
fn disk_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if metadata.is_dir() {
        directory_entries(path).iter().map(|p| disk_bytes(p)).sum()
    } else {
        metadata.len()
    }
}

fn directory_entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten();
    read.flatten().map(|entry| entry.path()).collect()
}
