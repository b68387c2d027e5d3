//! Trials that count in another result: those on the same ground, and soaks of its answer.
//!
//! Owns the tables from result to fingerprint ([`crate::ground`]) and from soak to answer, and the
//! look-ups in them.

use loadline_analysis::record::TrialRecord;
use rusqlite::params;

use super::{Store, Stored, TrialKey};

/// Made when it is missing: older stores have none, and older loadlines do not mind it.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS ground (
    result TEXT PRIMARY KEY REFERENCES result(id),
    fingerprint TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS ground_by_fingerprint ON ground (fingerprint);
-- No reference to `result`: an older loadline, which does not know this table, can still remove them.
CREATE TABLE IF NOT EXISTS soaked (
    result TEXT PRIMARY KEY,
    answer TEXT NOT NULL
) STRICT;
";

impl Store {
    pub fn set_ground(&self, result: &str, fingerprint: &str) -> Stored<()> {
        let sql = "INSERT OR REPLACE INTO ground (result, fingerprint) VALUES (?1, ?2)";
        self.execute_sql(sql, [result, fingerprint]).map(drop)
    }

    /// The ground of a result; `None` if unknown.
    pub fn ground_fingerprint(&self, result: &str) -> Stored<Option<String>> {
        let sql = "SELECT fingerprint FROM ground WHERE result = ?1";
        self.find_value(sql, [result])
    }

    /// Notes which result's answer a soak tests; a soak of a soak tests the answer of the first.
    pub fn set_soaked(&self, soak: &str, result: &str) -> Stored<()> {
        let sql = "INSERT OR REPLACE INTO soaked (result, answer)
                   VALUES (?1, coalesce((SELECT answer FROM soaked WHERE result = ?2), ?2))";
        self.execute_sql(sql, [soak, result]).map(drop)
    }

    /// The finished trials of all separate soaks of a result's answer, oldest first.
    pub fn soaks_of(&self, result: &str) -> Stored<Vec<TrialRecord>> {
        if !self.has_table("soaked")? {
            return Ok(Vec::new());
        }
        let sql = "SELECT record FROM trial JOIN soaked ON soaked.result = trial.result
                   WHERE soaked.answer = ?1 AND trial.state = 'finished' ORDER BY trial.rowid";
        self.select_records(sql, result)
    }

    /// The newest record of the same trial in another result on the same ground, where it is
    /// evidence. Results that came from a cluster are left out: their fingerprint is whatever was
    /// written there.
    pub fn find_alike(&self, fingerprint: &str, key: &TrialKey) -> Stored<Option<TrialRecord>> {
        let text = self.key_text(key)?;
        let sql = "SELECT record FROM trial JOIN ground ON ground.result = trial.result
                   WHERE ground.fingerprint = ?1 AND trial.key = ?2 AND trial.repeat = ?3
                     AND trial.result <> ?4 AND trial.state = 'finished'
                     AND trial.result NOT IN (SELECT result FROM from_cluster)
                   ORDER BY trial.rowid DESC LIMIT 8";
        let sought = params![fingerprint, text, key.repeat, key.result];
        let blobs: Vec<Vec<u8>> = self.select_rows(sql, sought, |row| row.get(0))?;
        for blob in blobs {
            let record = self.decode_record(&blob)?;
            if record.verdict.is_evidence() {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}
