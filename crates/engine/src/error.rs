//! What ends a run: every layer's own error, as the runner hands it on.

use loadline_load::LoadError;
use loadline_protocol::RunRefusal;

use crate::cache::CacheError;
use crate::program::CommandError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(#[from] RunRefusal),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("interrupted")]
    Interrupted,
}
