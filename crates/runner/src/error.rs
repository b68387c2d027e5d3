//! What ends a run: every layer's own error, as the runner hands it on.

use loadline_experiment::SurroundingsError;
use loadline_experiment::program::CommandError;
use loadline_load::LoadError;
use loadline_protocol::RunRefusal;

use crate::cache::CacheError;
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

impl From<SurroundingsError> for RunError {
    fn from(error: SurroundingsError) -> Self {
        match error {
            SurroundingsError::Refused(refusal) => Self::Refused(refusal),
            SurroundingsError::Command(error) => Self::Command(error),
            SurroundingsError::Load(error) => Self::Load(error),
        }
    }
}
