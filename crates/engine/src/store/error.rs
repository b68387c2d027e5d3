//! What can go wrong with the store, in words.

use std::path::PathBuf;

use loadline_files::PathRefusal;
use loadline_protocol::RunRefusal;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full.
    #[error("the disk with {} is full; what was finished before is safe", path.display())]
    Full {
        /// The state directory.
        path: PathBuf,
    },
    /// The directory cannot be used.
    #[error("cannot use the state directory {}: {why}", path.display())]
    Directory {
        /// The state directory.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The directory, or the way to it, is not one to trust, or the system refuses it.
    #[error("cannot use the state directory {}: {source}", path.display())]
    Place {
        /// The state directory.
        path: PathBuf,
        /// What is in the way, and what to do.
        source: PathRefusal,
    },
    /// The database was written by a newer loadline.
    #[error("{} was written by a newer loadline (format {found}, this one knows {known})", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// No such result.
    #[error("there is no result `{id}` in {}", path.display())]
    Unknown {
        /// What was asked for.
        id: String,
        /// The state directory.
        path: PathBuf,
    },
    /// The start of an id that fits several results.
    #[error("`{id}` fits {count} results; write more of it")]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// How many fit.
        count: usize,
    },
    /// A result that a loadline works on.
    #[error("a loadline works on the result `{id}`")]
    InUse {
        /// The result.
        id: String,
    },
    /// The database failed.
    #[error("{}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The raw evidence of a trial is not on disk.
    #[error("cannot put the event log {} on disk: {source}", path.display())]
    Log {
        /// The event log.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A finished trial could not be kept where copies of it are kept.
    #[error(transparent)]
    Copy(RunRefusal),
    /// Something that came from elsewhere has an id that no store makes.
    #[error("`{}` came from a cluster as an id and is not a UUID", id.escape_debug())]
    ForeignId {
        /// The id.
        id: String,
    },
    /// A cluster has a result whose id a result of this store has that was not sent there.
    #[error(
        "the result `{id}` is in this store already and was not sent to that cluster; nothing of it was changed"
    )]
    NotAway {
        /// The result.
        id: String,
    },
    /// A trial came with a result to which it does not belong.
    #[error("a trial of `{}` came from a cluster as one of the result `{id}`", other.escape_debug())]
    OtherResult {
        /// The result with which it came.
        id: String,
        /// The result that its record names.
        other: String,
    },
    /// A stored record cannot be read.
    #[error("a record in {} cannot be read: {why}", path.display())]
    Record {
        /// The database.
        path: PathBuf,
        /// The cause.
        why: String,
    },
}
