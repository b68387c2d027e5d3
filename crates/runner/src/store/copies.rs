//! Finished trials in a second store: a result begun elsewhere comes here, and a result measured in
//! a place that may vanish leaves copies.
//!
//! Owns how a trial keeps its id from store to store, so that it is found again and never run
//! twice. [`TrialCopies`] owns where copies are kept, and how.

use std::fmt::Debug;

use loadline_analysis::record::{MachineDescription, TrialRecord};
use loadline_protocol::RunRefusal;
use rusqlite::params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResultRow, ResultStatus, Store, StoreError, Stored, TrialKey};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedTrial {
    pub attempt: u32,
    pub record: TrialRecord,
}

pub trait TrialCopies: Debug {
    /// Keeps one; it is safe when this returns.
    /// Errors: What keeps it from being safe: the run ends.
    fn keep_trial(&self, finished: &FinishedTrial) -> Result<(), RunRefusal>;

    fn stand_on(
        &self,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Result<(), RunRefusal>;
}

impl Store {
    pub fn copy_to(&mut self, copies: Box<dyn TrialCopies>) {
        self.copies = Some(copies);
    }

    pub(super) fn copy_trial(&self, record: &TrialRecord) -> Stored<()> {
        let Some(copies) = &self.copies else {
            return Ok(());
        };
        let sql = "SELECT attempt FROM trial WHERE id = ?1";
        let id = [&record.id];
        let attempt = self.connection.query_row(sql, id, |row| row.get(0));
        let finished = FinishedTrial {
            attempt: self.check_sql(attempt)?,
            record: record.clone(),
        };
        copies.keep_trial(&finished).map_err(StoreError::Copy)
    }

    /// Adds a result that was begun elsewhere, with its id. One that is here already stays as it is, and
    /// takes trials only while it is away.
    /// Errors: [`StoreError::ForeignId`] for an id that is no UUID, [`StoreError::NotAway`] for a
    /// result that is here and was not sent away.
    pub fn take_result(&self, row: &ResultRow) -> Stored<IncomingResult<'_>> {
        self.refuse_odd_id(&row.id)?;
        if self.insert_result(row)? {
            Ok(self.incoming_handle(&row.id))
        } else {
            self.incoming_result(&row.id)
        }
    }

    /// Adds a result found in a cluster, with its location, and notes that its experiment is
    /// foreign: the user must confirm it before it runs ([`Store::set_confirmed`]). All or nothing.
    /// A result that this store sent there stays as it is. Errors: [`StoreError::ForeignId`] for an
    /// id that is no UUID, [`StoreError::NotAway`] for a local result that was not sent to this
    /// place.
    pub fn take_from_cluster(&self, row: &ResultRow, place: &AwayLocation) -> Stored<()> {
        self.refuse_odd_id(&row.id)?;
        let transaction = self.check_sql(self.connection.unchecked_transaction())?;
        if self.insert_result(row)? {
            let sql = "INSERT OR REPLACE INTO from_cluster (result, confirmed) VALUES (?1, 0)";
            self.execute_sql(sql, [&row.id])?;
            self.set_away(&row.id, Some(place))?;
        } else if self.away_location(&row.id)?.as_ref() != Some(place) {
            return Err(StoreError::NotAway { id: row.id.clone() });
        }
        self.check_sql(transaction.commit())
    }

    /// A result that was sent away; the cluster's trials may be added to it. Errors:
    /// [`StoreError::NotAway`] for any other.
    pub fn incoming_result(&self, id: &str) -> Stored<IncomingResult<'_>> {
        match self.away_location(id)? {
            Some(_) => Ok(self.incoming_handle(id)),
            None => Err(StoreError::NotAway { id: id.to_owned() }),
        }
    }

    fn incoming_handle(&self, id: &str) -> IncomingResult<'_> {
        IncomingResult {
            store: self,
            id: id.to_owned(),
        }
    }

    /// Whether the user has confirmed that the experiment of this result may run; `None` for a
    /// local result, which needs no confirmation.
    pub fn is_confirmed(&self, result: &str) -> Stored<Option<bool>> {
        if !self.has_table("from_cluster")? {
            return Ok(None);
        }
        let sql = "SELECT confirmed FROM from_cluster WHERE result = ?1";
        self.find_value(sql, [result])
    }

    pub fn set_confirmed(&self, result: &str) -> Stored<()> {
        let sql = "UPDATE from_cluster SET confirmed = 1 WHERE result = ?1";
        self.execute_sql(sql, [result]).map(drop)
    }

    /// Ids name files: a foreign id must be a UUID in this store's form.
    fn refuse_odd_id(&self, id: &str) -> Stored<()> {
        if is_store_id(id) {
            Ok(())
        } else {
            Err(StoreError::ForeignId { id: id.to_owned() })
        }
    }

    fn insert_result(&self, row: &ResultRow) -> Stored<bool> {
        let [kind, command] = [self.json_text(&row.kind)?, self.json_text(&row.command)?];
        let machine = self.json_text(&row.machine)?;
        let status = self.json_text(&ResultStatus::Interrupted)?;
        let directory = row.directory.to_string_lossy();
        let added = self.execute_sql(
            "INSERT OR IGNORE INTO result (id, kind, title, created_unix_ms, experiment, directory, command, machine, status, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![row.id, kind, row.title, row.created_unix_ms.cast_signed(), row.experiment, directory, command, machine, status, self.owner_text(&row.id)?],
        )?;
        Ok(added == 1)
    }

    /// Notes the ground of a result that was begun before its first node was inspected.
    pub fn stand_on(
        &self,
        result: &str,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Stored<()> {
        let text = self.json_text(machine)?;
        let sql = "UPDATE result SET machine = ?2 WHERE id = ?1";
        self.execute_sql(sql, [result, text.as_str()])?;
        if let Some(fingerprint) = fingerprint {
            self.set_ground(result, fingerprint)?;
        }
        let kept = self.copies.as_ref();
        let kept = kept.map_or(Ok(()), |copies| copies.stand_on(machine, fingerprint));
        kept.map_err(StoreError::Copy)
    }
}

/// Whether a text is an id as the store makes them: a UUID with hyphens, in lower case.
pub fn is_store_id(text: &str) -> bool {
    let parsed = uuid::Uuid::try_parse(text);
    parsed.is_ok_and(|id| id.to_string() == text)
}

/// A result that accepts trials from elsewhere: it is new here, or was sent away from here. No
/// other result can be changed through it.
#[derive(Debug)]
pub struct IncomingResult<'a> {
    store: &'a Store,
    id: String,
}

impl IncomingResult<'_> {
    /// Adds a finished trial; whether it was not here.
    /// Errors: [`StoreError::OtherResult`] for the trial of another result,
    /// [`StoreError::ForeignId`] for an id that is no UUID.
    pub fn take_trial(&self, finished: &FinishedTrial) -> Stored<bool> {
        let (store, record) = (self.store, &finished.record);
        store.refuse_odd_id(&record.id)?;
        if record.result != self.id {
            return Err(StoreError::OtherResult {
                id: self.id.clone(),
                other: record.result.clone(),
            });
        }
        let key = store.key_text(&TrialKey {
            result: record.result.clone(),
            purpose: record.purpose,
            configuration: record.configuration.clone(),
            repeat: record.repeat,
            attempt: finished.attempt,
        })?;
        let (owner, started) = (store.owner_text(&record.id)?, record.started_at_unix_ms);
        let taken = store.execute_sql(
            "INSERT OR IGNORE INTO trial (id, result, key, repeat, attempt, state, owner, started_unix_ms, record)
             VALUES (?1, ?2, ?3, ?4, ?5, 'finished', ?6, ?7, ?8)",
            params![record.id, record.result, key, record.repeat, finished.attempt, owner, started.cast_signed(), store.encode_record(record)?],
        )?;
        Ok(taken == 1)
    }

    pub fn take_machine(
        &self,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Stored<()> {
        self.store.stand_on(&self.id, machine, fingerprint)
    }

    pub fn take_end(&self, status: ResultStatus, outcome: Option<&str>) -> Stored<()> {
        self.store.set_status(&self.id, status, outcome)
    }
}

/// Where a result is that is not measured from here: loadline runs in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwayLocation {
    /// Context of the kubeconfig.
    pub context: String,
    /// Where its Job is.
    pub namespace: String,
}

/// Made when it is missing: older stores have none, and older loadlines do not mind it.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS away (
    result TEXT PRIMARY KEY REFERENCES result(id),
    place TEXT NOT NULL
) STRICT;
-- Results whose experiment came from a cluster. No reference to `result`: an older loadline, which does
-- not know this table, can still remove them.
CREATE TABLE IF NOT EXISTS from_cluster (
    result TEXT PRIMARY KEY,
    confirmed INTEGER NOT NULL
) STRICT;
";

impl Store {
    /// Notes that a result is measured elsewhere, or, with `None`, that it is so no more.
    pub fn set_away(&self, result: &str, away: Option<&AwayLocation>) -> Stored<()> {
        let Some(away) = away else {
            let sql = "DELETE FROM away WHERE result = ?1";
            return self.execute_sql(sql, [result]).map(drop);
        };
        let sql = "INSERT OR REPLACE INTO away (result, place) VALUES (?1, ?2)";
        let place = self.json_text(away)?;
        self.execute_sql(sql, [result, place.as_str()]).map(drop)
    }

    pub fn away_location(&self, result: &str) -> Stored<Option<AwayLocation>> {
        if !self.has_table("away")? {
            return Ok(None);
        }
        let sql = "SELECT place FROM away WHERE result = ?1";
        let place: Option<String> = self.find_value(sql, [result])?;
        place.map(|text| self.parse_json(&text)).transpose()
    }

    /// A store of an older loadline that is only read lacks the tables that came later.
    pub(super) fn has_table(&self, name: &str) -> Stored<bool> {
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
        let tables: Option<u32> = self.find_value(sql, [name])?;
        Ok(tables.is_some_and(|tables| tables > 0))
    }
}
