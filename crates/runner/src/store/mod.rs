//! Results and trials on disk: one SQLite database and one event log per trial.
//!
//! Owns the state directory (0700, and no other user can change it or its parents): `loadline.db`
//! (WAL, synchronous FULL: a committed trial survives kill -9 and power loss), `logs/` (event
//! logs), `trials/` (files of running trials). A trial has a row before its start; its record is
//! committed before any reader acts on it. Records are never changed afterwards. Rows are ordered
//! by begin, whatever the clock said. Facts: SQLite "How To Corrupt", wal.html, rowidtable.html.

mod copies;
mod error;
mod live;
mod reading;
mod removal;
mod reuse;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_analysis::record::{Configuration, TrialPurpose, TrialRecord};
use loadline_cgroup::GroupName;
use loadline_files::{Directory, PathRefusal};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};
use serde::{Deserialize, Serialize};

pub use copies::{AwayLocation, FinishedTrial, IncomingResult, TrialCopies, is_store_id};
pub use error::StoreError;
pub use removal::RemovalTotals;
pub use rows::{NewResult, ResultKind, ResultRow, ResultStatus, TrialKey, UnfinishedTrial};

#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    connection: Connection,
    copies: Option<Box<dyn TrialCopies>>,
}

type Stored<T> = Result<T, StoreError>;

const DATABASE: &str = "loadline.db";

/// Longest record of a trial, unpacked; real ones have some hundred KiB.
const LARGEST_RECORD: u64 = 64 << 20;

impl Store {
    /// `--state`, else `$LOADLINE_STATE`, else `/var/lib/loadline` for root, else
    /// `$XDG_STATE_HOME/loadline` or `~/.local/state/loadline`.
    pub fn default_directory() -> PathBuf {
        let variable = |name| {
            let set = std::env::var_os(name).map(PathBuf::from);
            set.filter(|path| !path.as_os_str().is_empty())
        };
        if let Some(directory) = variable("LOADLINE_STATE") {
            return directory;
        }
        if rustix::process::geteuid().is_root() {
            return PathBuf::from("/var/lib/loadline");
        }
        let state =
            variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|h| h.join(".local/state")));
        state.unwrap_or_else(|| PathBuf::from(".")).join("loadline")
    }

    /// Opens or creates the store, and marks trials interrupted if their loadline has gone. Errors:
    /// [`StoreError`], with the path.
    pub fn open_or_create(directory: &Path) -> Stored<Self> {
        Self::open_in(directory, Directory::open_own)
    }

    /// The same in a container with a single user: the engine made its parent directories, which
    /// are open to all, but there is no other user. Errors: [`StoreError`], with the path.
    pub fn open_alone(directory: &Path) -> Stored<Self> {
        Self::open_in(directory, Directory::open_or_make)
    }

    fn open_in(
        directory: &Path,
        open: impl FnOnce(&Path) -> Result<Directory, PathRefusal>,
    ) -> Stored<Self> {
        let place = |source| StoreError::Place {
            path: directory.to_owned(),
            source,
        };
        let own = open(directory).map_err(place)?;
        for part in ["trials", "logs"] {
            own.make_directory(part).map_err(place)?;
        }
        let refuse = |why: String| StoreError::Directory {
            path: directory.to_owned(),
            why,
        };
        refuse_network_file_system(&own).map_err(refuse)?;
        own.make_file(DATABASE).map_err(place)?;
        let path = own.real_path().join(DATABASE);
        let failed = |source| StoreError::Database {
            path: path.clone(),
            source,
        };
        let connection = Connection::open_with_flags(&path, by_name()).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .map_err(|e| refuse(e.to_string()))?;
        let store = Self {
            // Trials see these paths from another working directory.
            directory: own.real_path().to_owned(),
            connection,
            copies: None,
        };
        store
            .check_sql(schema::prepare_connection(&store.connection))?
            .map_err(|found| StoreError::Newer {
                path,
                found,
                known: schema::VERSION,
            })?;
        store.recover()?;
        Ok(store)
    }

    pub fn state_directory(&self) -> &Path {
        &self.directory
    }

    pub fn trial_log_path(&self, trial: &str) -> PathBuf {
        self.directory.join("logs").join(format!("{trial}.log"))
    }

    pub fn cache_directory(&self, result: &str) -> PathBuf {
        self.directory.join("caches").join(result)
    }

    pub fn scratch_root(&self) -> PathBuf {
        self.directory.join("trials")
    }

    pub fn create_result(&self, new: &NewResult) -> Stored<String> {
        let id = uuid::Uuid::now_v7().to_string();
        let machine = self.json_text(&new.machine)?;
        let command = self.json_text(&new.command)?;
        let kind = self.json_text(&new.kind)?;
        self.execute_sql(
            "INSERT INTO result (id, kind, title, created_unix_ms, experiment, directory, command, machine, status, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, '\"running\"', ?9)",
            params![id, kind, new.title, unix_ms().cast_signed(), new.experiment, new.directory.to_string_lossy(), command, machine, self.owner_text(&id)?],
        )?;
        Ok(id)
    }

    /// Sets where a result stands and its outcome. A running result is owned by this process.
    pub fn set_status(&self, id: &str, status: ResultStatus, outcome: Option<&str>) -> Stored<()> {
        let status = self.json_text(&status)?;
        let sql = "UPDATE result SET status = ?2, outcome = coalesce(?3, outcome), owner = ?4 WHERE id = ?1";
        let values = params![id, status, outcome, self.owner_text(id)?];
        self.execute_sql(sql, values).map(drop)
    }

    /// Notes that a trial starts; gives its id.
    pub fn begin_trial(&self, key: &TrialKey) -> Stored<String> {
        let id = uuid::Uuid::now_v7().to_string();
        let (text, owner) = (self.key_text(key)?, self.owner_text(&id)?);
        self.execute_sql(
            "INSERT INTO trial (id, result, key, repeat, attempt, state, owner, started_unix_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, 'running', ?6, ?7)",
            params![
                id,
                key.result,
                text,
                key.repeat,
                key.attempt,
                owner,
                unix_ms().cast_signed()
            ],
        )?;
        Ok(id)
    }

    /// Commits the record of a trial that was begun, once its event log is on disk: a record
    /// without its evidence would look finished after a power loss.
    /// Errors: [`StoreError`]; the trial then counts as interrupted.
    pub fn finish_trial(&self, record: &TrialRecord) -> Stored<()> {
        self.sync_log(&record.id)?;
        let sql = "UPDATE trial SET state = 'finished', record = ?2 WHERE id = ?1";
        self.execute_sql(sql, params![record.id, self.encode_record(record)?])?;
        self.copy_trial(record)
    }

    fn encode_record(&self, record: &TrialRecord) -> Stored<Vec<u8>> {
        let json = self.json_text(record)?;
        zstd::encode_all(json.as_bytes(), 3).map_err(|e| self.unreadable_error(&e))
    }

    fn sync_log(&self, trial: &str) -> Stored<()> {
        let path = self.trial_log_path(trial);
        match loadline_files::sync(&path) {
            // It was lost before it had a log.
            Err(source) if source.kind() == ErrorKind::NotFound => Ok(()),
            Err(source) if source.kind() == ErrorKind::StorageFull => Err(self.full_error()),
            synced => synced.map_err(|source| StoreError::Log { path, source }),
        }
    }

    pub fn interrupt_trial(&self, id: &str) -> Stored<()> {
        let sql = "UPDATE trial SET state = 'interrupted' WHERE id = ?1 AND state = 'running'";
        self.execute_sql(sql, [id]).map(drop)
    }

    /// The finished record of exactly this trial, if there is one.
    pub fn find_trial(&self, key: &TrialKey) -> Stored<Option<TrialRecord>> {
        let text = self.key_text(key)?;
        let sql = "SELECT record FROM trial WHERE result = ?1 AND key = ?2 AND repeat = ?3 AND attempt = ?4 AND state = 'finished'";
        let sought = params![key.result, text, key.repeat, key.attempt];
        let blob: Option<Vec<u8>> = self.find_value(sql, sought)?;
        blob.map(|b| self.decode_record(&b)).transpose()
    }

    pub fn finished_trials(&self, result: &str) -> Stored<Vec<TrialRecord>> {
        let sql =
            "SELECT record FROM trial WHERE result = ?1 AND state = 'finished' ORDER BY rowid";
        self.select_records(sql, result)
    }

    fn select_records(&self, sql: &str, result: &str) -> Stored<Vec<TrialRecord>> {
        let blobs: Vec<Vec<u8>> = self.select_rows(sql, [result], |row| row.get(0))?;
        blobs.iter().map(|blob| self.decode_record(blob)).collect()
    }

    /// Started trials of a purpose without a record and without a process.
    pub fn unfinished_trials(
        &self,
        result: &str,
        purpose: TrialPurpose,
    ) -> Stored<Vec<UnfinishedTrial>> {
        let mut begun = self.trials_in_state(result, "interrupted")?;
        begun.retain(|(of, _)| *of == purpose);
        Ok(begun.into_iter().map(|(_, trial)| trial).collect())
    }

    /// The trials of a result without a record in this state, oldest first.
    fn trials_in_state(
        &self,
        result: &str,
        state: &str,
    ) -> Stored<Vec<(TrialPurpose, UnfinishedTrial)>> {
        let sql = "SELECT id, key, repeat, started_unix_ms FROM trial WHERE result = ?1 AND state = ?2 ORDER BY rowid";
        let rows = self.select_rows(sql, [result, state], |row| {
            let key: String = row.get(1)?;
            Ok((row.get(0)?, key, row.get(2)?, row.get::<_, i64>(3)?))
        })?;
        let mut all = Vec::new();
        for (id, key, repeat, started) in rows {
            let (of, configuration): (TrialPurpose, Configuration) = self.parse_json(&key)?;
            let trial = UnfinishedTrial {
                id,
                configuration,
                repeat,
                started_at_unix_ms: started.cast_unsigned(),
            };
            all.push((of, trial));
        }
        Ok(all)
    }

    fn is_soak(&self, trial: &str) -> Stored<bool> {
        let sql = "SELECT key FROM trial WHERE id = ?1";
        let key: String =
            self.check_sql(self.connection.query_row(sql, [trial], |row| row.get(0)))?;
        let (purpose, _): (TrialPurpose, Configuration) = self.parse_json(&key)?;
        Ok(purpose == TrialPurpose::Soak)
    }

    /// One trial by its id or a unique prefix. Errors: [`StoreError::Unknown`],
    /// [`StoreError::Ambiguous`].
    pub fn trial_by_prefix(&self, prefix: &str) -> Stored<TrialRecord> {
        let sql = "SELECT record FROM trial WHERE substr(id, 1, length(?1)) = ?1 AND state = 'finished' LIMIT 3";
        let blobs: Vec<Vec<u8>> = self.select_rows(sql, [prefix], |row| row.get(0))?;
        let only = self.only_match(prefix, blobs)?;
        self.decode_record(&only)
    }

    pub fn all_results(&self) -> Stored<Vec<ResultRow>> {
        Ok(self.select("ORDER BY rowid DESC", [])?.rows)
    }

    /// How many results a loadline of another version has made that this one does not understand: the
    /// lists of results leave them out.
    pub fn unreadable_results(&self) -> Stored<usize> {
        Ok(self.select("", [])?.unreadable.len())
    }

    /// One result by its id, a unique prefix, or `last`. Errors: [`StoreError::Unknown`],
    /// [`StoreError::Ambiguous`].
    pub fn result_by_prefix(&self, prefix: &str) -> Stored<ResultRow> {
        let mut found = match prefix {
            "last" => self.select("ORDER BY rowid DESC", [])?,
            _ => self.select("WHERE substr(id, 1, length(?1)) = ?1", [prefix])?,
        };
        if prefix == "last" {
            found.rows.truncate(1);
        }
        match (found.rows.is_empty(), found.unreadable.pop()) {
            (true, Some(error)) => Err(error),
            _ => self.only_match(prefix, found.rows),
        }
    }

    /// Marks what dead processes left running. Alive ones are another instance's.
    fn recover(&self) -> Stored<()> {
        for (table, column, running, dead) in [
            ("trial", "state", "'running'", "'interrupted'"),
            ("result", "status", "'\"running\"'", "'\"interrupted\"'"),
        ] {
            let sql = format!("SELECT id, owner FROM {table} WHERE {column} = {running}");
            let rows = self.select_rows(&sql, [], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            for (id, owner) in rows {
                if !is_alive(&owner) {
                    if table == "trial" && !self.is_soak(&id)? {
                        // Half a trial is no evidence; of a soak what it has seen is.
                        let _ = fs::remove_file(self.trial_log_path(&id));
                    }
                    let sql = format!("UPDATE {table} SET {column} = {dead} WHERE id = ?1");
                    self.execute_sql(&sql, [id])?;
                }
            }
        }
        Ok(())
    }

    /// This process as the owner of a row; the same identity as of a trial's cgroup and files.
    fn owner_text(&self, id: &str) -> Stored<String> {
        let name = GroupName::new(Path::new("/proc"), id);
        Ok(name.map_err(|e| self.unreadable_error(&e))?.to_string())
    }

    fn select(&self, tail: &str, parameters: impl Params) -> Stored<SelectedRows> {
        let sql = format!(
            "SELECT id, kind, title, created_unix_ms, experiment, directory, command, machine, status, outcome, owner,
                    (SELECT count(*) FROM trial WHERE trial.result = result.id AND state = 'finished')
             FROM result {tail}"
        );
        let mut statement = self.check_sql(self.connection.prepare(&sql))?;
        let mut rows = self.check_sql(statement.query(parameters))?;
        let mut found = SelectedRows::default();
        while let Some(row) = self.check_sql(rows.next())? {
            match self.result_row(row) {
                Ok(row) => found.rows.push(row),
                Err(error @ StoreError::Record { .. }) => found.unreadable.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn result_row(&self, row: &Row<'_>) -> Stored<ResultRow> {
        let text = |i: usize| self.check_sql(row.get::<_, String>(i));
        Ok(ResultRow {
            id: text(0)?,
            kind: self.parse_json(&text(1)?)?,
            title: text(2)?,
            created_unix_ms: self.check_sql(row.get::<_, i64>(3))?.cast_unsigned(),
            experiment: text(4)?,
            directory: PathBuf::from(text(5)?),
            command: self.parse_json(&text(6)?)?,
            machine: self.parse_json(&text(7)?)?,
            // Where nothing may be changed, the dead are not marked: see `recover`.
            status: match self.parse_json(&text(8)?)? {
                ResultStatus::Running if !is_alive(&text(10)?) => ResultStatus::Interrupted,
                status => status,
            },
            outcome: self.check_sql(row.get(9))?,
            trials: self.check_sql(row.get::<_, i64>(11))?.cast_unsigned(),
        })
    }

    fn only_match<T>(&self, prefix: &str, mut found: Vec<T>) -> Stored<T> {
        let id = prefix.to_owned();
        match (found.len(), found.pop()) {
            (1, Some(one)) => Ok(one),
            (0, _) | (_, None) => {
                let path = self.directory.clone();
                Err(StoreError::Unknown { id, path })
            }
            (count, Some(_)) => Err(StoreError::Ambiguous { id, count }),
        }
    }

    /// What makes two trials the same: all of the configuration but its label, and the purpose.
    fn key_text(&self, key: &TrialKey) -> Stored<String> {
        let unlabelled = Configuration {
            label: String::new(),
            ..key.configuration.clone()
        };
        self.json_text(&(key.purpose, unlabelled))
    }

    fn decode_record(&self, blob: &[u8]) -> Stored<TrialRecord> {
        let mut json = Vec::new();
        zstd::Decoder::new(blob)
            .and_then(|unpacked| unpacked.take(LARGEST_RECORD).read_to_end(&mut json))
            .map_err(|e| self.unreadable_error(&e))?;
        serde_json::from_slice(&json).map_err(|e| self.unreadable_error(&e))
    }

    fn json_text<T: Serialize>(&self, value: &T) -> Stored<String> {
        serde_json::to_string(value).map_err(|e| self.unreadable_error(&e))
    }

    fn parse_json<'a, T: Deserialize<'a>>(&self, text: &'a str) -> Stored<T> {
        serde_json::from_str(text).map_err(|e| self.unreadable_error(&e))
    }

    fn unreadable_error(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Record {
            path: self.directory.join(DATABASE),
            why: why.to_string(),
        }
    }

    fn full_error(&self) -> StoreError {
        let path = self.directory.clone();
        StoreError::Full { path }
    }

    fn execute_sql(&self, sql: &str, parameters: impl Params) -> Stored<usize> {
        self.check_sql(self.connection.execute(sql, parameters))
    }

    fn select_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Stored<Vec<T>> {
        let select = || {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map(parameters, read)?.collect()
        };
        self.check_sql(select())
    }

    /// The first column of the first row that this selects.
    fn find_value<T: FromSql>(&self, sql: &str, parameters: impl Params) -> Stored<Option<T>> {
        let row = self.connection.query_row(sql, parameters, |row| row.get(0));
        self.check_sql(row.optional())
    }

    fn check_sql<T>(&self, result: rusqlite::Result<T>) -> Stored<T> {
        result.map_err(|source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => self.full_error(),
            _ => StoreError::Database {
                path: self.directory.join(DATABASE),
                source,
            },
        })
    }
}

/// The database of exactly this name: a link in its place is refused.
fn by_name() -> OpenFlags {
    OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// Rows of results. A row of an unknown version is skipped, not fatal.
#[derive(Default)]
struct SelectedRows {
    rows: Vec<ResultRow>,
    unreadable: Vec<StoreError>,
}

/// Whether the process that owns a row still runs. What cannot be found out counts as alive.
fn is_alive(owner: &str) -> bool {
    let alive = |name: GroupName| name.is_owner_alive(Path::new("/proc")).unwrap_or(true);
    owner.parse().map_or(true, alive)
}

/// Wall clock, milliseconds since 1970-01-01 UTC.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// WAL needs memory shared between processes, which network file systems do not give (wal.html).
fn refuse_network_file_system(directory: &Directory) -> Result<(), String> {
    const NFS: u64 = 0x6969;
    const SMB2: u64 = 0xfe53_4d42;
    const CIFS: u64 = 0xff53_4d42;
    const V9FS: u64 = 0x0102_1997;
    let found = rustix::fs::fstatfs(directory).map_err(|e| e.to_string())?;
    // Other systems have other numbers, all of them smaller.
    let kind = u64::try_from(found.f_type).unwrap_or_default();
    if [NFS, SMB2, CIFS, V9FS].contains(&kind) {
        return Err("it is on a network file system, where the database is not safe; choose a local one with --state".to_owned());
    }
    Ok(())
}
