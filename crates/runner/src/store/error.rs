//! What can go wrong with the store, in words.

use std::path::PathBuf;

use loadline_files::PathRefusal;
use loadline_protocol::RunRefusal;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the disk with {} is full; finished trials are safe", path.display())]
    Full { path: PathBuf },
    #[error("cannot use the state directory {}: {why}", path.display())]
    Directory { path: PathBuf, why: String },
    /// The directory, or the way to it, is not one to trust, or the system refuses it.
    #[error("cannot use the state directory {}: {source}", path.display())]
    Place { path: PathBuf, source: PathRefusal },
    #[error("{} was written by a newer loadline (format {found}, this one knows {known})", path.display())]
    Newer {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("there is no result `{id}` in {}", path.display())]
    Unknown { id: String, path: PathBuf },
    #[error("`{id}` matches {count} results; write more characters")]
    Ambiguous { id: String, count: usize },
    #[error("another loadline is working on the result `{id}`")]
    InUse { id: String },
    #[error("{}: {source}", path.display())]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error("cannot put the event log {} on disk: {source}", path.display())]
    Log {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Copy(RunRefusal),
    #[error("`{}` came from a cluster as an id and is not a UUID", id.escape_debug())]
    ForeignId { id: String },
    /// A cluster has a result with the id of a local result that was not sent there.
    #[error(
        "the result `{id}` is in this store already and was not sent to that cluster; nothing was changed"
    )]
    NotAway { id: String },
    #[error("a trial of `{}` came from a cluster as one of the result `{id}`", other.escape_debug())]
    OtherResult { id: String, other: String },
    #[error("a record in {} cannot be read: {why}", path.display())]
    Record { path: PathBuf, why: String },
}
