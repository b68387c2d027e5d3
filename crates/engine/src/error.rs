//! What ends a run: every layer's own error, as the runner hands it on.

use loadline_load::LoadError;
use loadline_protocol::RunRefusal;

use crate::cache::CacheError;
use crate::program::CommandError;
use crate::store::StoreError;

/// What ends a run before its search has an answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host cannot.
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file or variable that the load names is not there.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A start-up cache cannot be made.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Ctrl-C or a signal.
    #[error("interrupted")]
    Interrupted,
}
