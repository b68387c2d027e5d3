//! Trials of earlier results with the same ground.
//!
//! Owns the table from result to fingerprint ([`crate::ground`]) and the look-up in it.

use loadline_analysis::record::TrialRecord;
use rusqlite::{OptionalExtension, params};

use super::{Store, Stored, TrialKey};

/// Made when it is missing: older stores have none, and older loadlines do not mind it.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS ground (
    result TEXT PRIMARY KEY REFERENCES result(id),
    fingerprint TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS ground_by_fingerprint ON ground (fingerprint);
";

impl Store {
    pub fn set_ground(&self, result: &str, fingerprint: &str) -> Stored<()> {
        self.execute_sql(
            "INSERT OR REPLACE INTO ground (result, fingerprint) VALUES (?1, ?2)",
            params![result, fingerprint],
        )?;
        Ok(())
    }

    /// The ground of a result; `None` if unknown.
    pub fn ground_fingerprint(&self, result: &str) -> Stored<Option<String>> {
        let sql = "SELECT fingerprint FROM ground WHERE result = ?1";
        let row = self.connection.query_row(sql, [result], |row| row.get(0));
        self.check_sql(row.optional())
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
