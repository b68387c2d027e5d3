//! Opening a store read-only: for commands that only look.
//!
//! Owns the names and flags that SQLite needs for that, and the empty result without a store.
//! Facts: SQLite wal.html, "Read-Only Databases", and uri.html, "immutable".

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{DATABASE, Store, StoreError, Stored, schema};

impl Store {
    pub fn is_in(directory: &Path) -> bool {
        directory.join(DATABASE).is_file()
    }

    /// Opens the store for reading: like [`Store::open_or_create`] if possible, otherwise, in a
    /// directory that this user may not write, without changing anything. Creates none: a missing
    /// store is empty. Errors: [`StoreError`], with the path.
    pub fn open_to_read(directory: &Path) -> Stored<Self> {
        let path = directory.join(DATABASE);
        if fs::symlink_metadata(&path).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            return Self::open_empty(directory, path);
        }
        let may_write = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok();
        if may_write || !path.is_file() {
            return Self::open_or_create(directory);
        }
        let failed = |source| StoreError::Database {
            path: path.clone(),
            source,
        };
        let refuse = |why: std::io::Error| StoreError::Directory {
            path: directory.to_owned(),
            why: why.to_string(),
        };
        let absolute = std::path::absolute(&path).map_err(refuse)?;
        let connection =
            Connection::open_with_flags(uri(&absolute), read_only()).map_err(failed)?;
        let found = connection.pragma_query_value(None, "user_version", |row| row.get(0));
        let (found, known) = (found.map_err(failed)?, schema::VERSION);
        if found != known {
            return Err(StoreError::Newer { path, found, known });
        }
        Ok(Self {
            directory: absolute.parent().unwrap_or(directory).to_owned(),
            connection,
            copies: None,
        })
    }

    fn open_empty(directory: &Path, path: PathBuf) -> Stored<Self> {
        let connection = Connection::open_in_memory();
        let prepared = connection.and_then(|connection| {
            // These are the tables of this program: they cannot be newer.
            let _ = schema::prepare_connection(&connection)?;
            Ok(connection)
        });
        Ok(Self {
            directory: directory.to_owned(),
            connection: prepared.map_err(|source| StoreError::Database { path, source })?,
            copies: None,
        })
    }
}

pub(super) fn read_only() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// The name of a read-only database. Without a WAL file no process has it open, and SQLite needs
/// the `immutable` flag, because it can make no lock files; SQLite also reads an existing WAL.
pub(super) fn uri(path: &Path) -> String {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-".contains(b);
    let quoted = |b: u8| {
        if is_plain(&b) {
            char::from(b).to_string()
        } else {
            format!("%{b:02X}")
        }
    };
    let bytes = path.as_os_str().as_encoded_bytes();
    let name: String = bytes.iter().copied().map(quoted).collect();
    let log = path.with_extension("db-wal");
    let has_log = fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0);
    let more = if has_log { "" } else { "?immutable=1" };
    format!("file:{name}{more}")
}
