//! Finished trials that another store has, too: a result that was begun elsewhere comes here, and one
//! that is measured in a place that may vanish leaves copies.
//!
//! Owns how a trial goes from store to store with its id, so that it is found again and never run
//! twice. Where copies are kept, and how, is [`TrialCopies`]'.

use std::fmt::Debug;

use loadline_analysis::record::{MachineDescription, TrialRecord};
use loadline_protocol::RunRefusal;
use rusqlite::{OptionalExtension, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResultRow, ResultStatus, Store, StoreError, Stored, TrialKey};

/// A finished trial with what its record does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedTrial {
    /// Which attempt at it.
    pub attempt: u32,
    /// Its record.
    pub record: TrialRecord,
}

/// Keeps a copy of every trial that finishes.
pub trait TrialCopies: Debug {
    /// Keeps one; it is safe when this returns.
    ///
    /// # Errors
    /// What keeps it from being safe: the run ends.
    fn keep_trial(&self, finished: &FinishedTrial) -> Result<(), RunRefusal>;

    /// Keeps what the result stands on, and its fingerprint where that could be made.
    ///
    /// # Errors
    /// As [`TrialCopies::keep_trial`].
    fn stand_on(
        &self,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Result<(), RunRefusal>;
}

impl Store {
    /// From now on a copy of every finished trial is kept there, before anyone acts on it.
    pub fn copy_to(&mut self, copies: Box<dyn TrialCopies>) {
        self.copies = Some(copies);
    }

    pub(super) fn copy_trial(&self, record: &TrialRecord) -> Stored<()> {
        let Some(copies) = &self.copies else {
            return Ok(());
        };
        let sql = "SELECT attempt FROM trial WHERE id = ?1";
        let attempt = self
            .connection
            .query_row(sql, [&record.id], |row| row.get(0));
        let finished = FinishedTrial {
            attempt: self.check_sql(attempt)?,
            record: record.clone(),
        };
        copies.keep_trial(&finished).map_err(StoreError::Copy)
    }

    /// Takes a result in that was begun elsewhere, with its id; one that is here stays as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn take_result(&self, row: &ResultRow) -> Stored<()> {
        let [kind, command] = [self.json_text(&row.kind)?, self.json_text(&row.command)?];
        let [machine, status] = [
            self.json_text(&row.machine)?,
            self.json_text(&ResultStatus::Interrupted)?,
        ];
        let directory = row.directory.to_string_lossy();
        self.check_sql(self.connection.execute(
            "INSERT OR IGNORE INTO result (id, kind, title, created_unix_ms, experiment, directory, command, machine, status, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![row.id, kind, row.title, row.created_unix_ms.cast_signed(), row.experiment, directory, command, machine, status, self.owner_text(&row.id)?],
        ))?;
        Ok(())
    }

    /// Takes a finished trial of a result in; whether it was not here.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn take_trial(&self, finished: &FinishedTrial) -> Stored<bool> {
        let record = &finished.record;
        let key = self.key_text(&TrialKey {
            result: record.result.clone(),
            purpose: record.purpose,
            configuration: record.configuration.clone(),
            repeat: record.repeat,
            attempt: finished.attempt,
        })?;
        let (owner, started) = (self.owner_text(&record.id)?, record.started_at_unix_ms);
        let taken = self.check_sql(self.connection.execute(
            "INSERT OR IGNORE INTO trial (id, result, key, repeat, attempt, state, owner, started_unix_ms, record)
             VALUES (?1, ?2, ?3, ?4, ?5, 'finished', ?6, ?7, ?8)",
            params![record.id, record.result, key, record.repeat, finished.attempt, owner, started.cast_signed(), self.encode_record(record)?],
        ))?;
        Ok(taken == 1)
    }

    /// Notes what a result stands on that was begun before its first node was looked at.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn stand_on(
        &self,
        result: &str,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Stored<()> {
        let text = self.json_text(machine)?;
        self.check_sql(self.connection.execute(
            "UPDATE result SET machine = ?2 WHERE id = ?1",
            params![result, text],
        ))?;
        if let Some(fingerprint) = fingerprint {
            self.set_ground(result, fingerprint)?;
        }
        let kept = self.copies.as_ref();
        let kept = kept.map_or(Ok(()), |copies| copies.stand_on(machine, fingerprint));
        kept.map_err(StoreError::Copy)
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
";

impl Store {
    /// Notes that a result is measured elsewhere, or, with `None`, that it is so no more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn set_away(&self, result: &str, away: Option<&AwayLocation>) -> Stored<()> {
        self.check_sql(match away {
            Some(away) => self.connection.execute(
                "INSERT OR REPLACE INTO away (result, place) VALUES (?1, ?2)",
                params![result, self.json_text(away)?],
            ),
            None => self
                .connection
                .execute("DELETE FROM away WHERE result = ?1", [result]),
        })?;
        Ok(())
    }

    /// Where a result is, if it is not here.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn away_location(&self, result: &str) -> Stored<Option<AwayLocation>> {
        // A store of an older loadline that is only read has no such table.
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'away'";
        let tables: u32 = self.check_sql(self.connection.query_row(sql, [], |row| row.get(0)))?;
        if tables == 0 {
            return Ok(None);
        }
        let sql = "SELECT place FROM away WHERE result = ?1";
        let place = self.connection.query_row(sql, [result], |row| row.get(0));
        let place: Option<String> = self.check_sql(place.optional())?;
        place.map(|text| self.parse_json(&text)).transpose()
    }
}
