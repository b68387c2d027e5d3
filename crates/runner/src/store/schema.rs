//! The tables of the store, and how an older store becomes a newer one.

use rusqlite::Connection;

pub const VERSION: u32 = 1;

/// Marks the file as loadline's (`ldln`).
const APPLICATION_ID: u32 = 0x6c64_6c6e;

const TABLES: &str = "
CREATE TABLE result (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    created_unix_ms INTEGER NOT NULL,
    experiment TEXT NOT NULL,
    directory TEXT NOT NULL,
    command TEXT NOT NULL,
    machine TEXT NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    outcome TEXT
) STRICT;
CREATE TABLE trial (
    id TEXT PRIMARY KEY,
    result TEXT NOT NULL REFERENCES result(id),
    key TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
    owner TEXT NOT NULL,
    started_unix_ms INTEGER NOT NULL,
    record BLOB,
    CHECK ((state = 'finished') = (record IS NOT NULL))
) STRICT;
CREATE INDEX trial_of_result ON trial (result, started_unix_ms);
-- The same trial is never measured twice within a result.
CREATE UNIQUE INDEX trial_once ON trial (result, key, repeat, attempt) WHERE state = 'finished';
";

/// Sets the connection up and makes or checks the tables. The inner error is the format of a
/// store that is newer than this program.
pub fn prepare_connection(connection: &Connection) -> rusqlite::Result<Result<(), u32>> {
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match found {
        0 => create_tables(connection)?,
        VERSION => {}
        newer => return Ok(Err(newer)),
    }
    // Tables added later; older loadlines ignore them.
    connection.execute_batch(super::reuse::TABLE)?;
    connection.execute_batch(super::copies::TABLE).map(Ok)
}

fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    // IMMEDIATE: of two first starts at once, the second waits and then finds the tables.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found == 0 {
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    connection.execute_batch("COMMIT")
}
