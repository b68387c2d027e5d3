//! Why a start-up cache could not be made, and the remedy.
//!
//! Owns the texts; the sibling modules detect the causes.

use loadline_jvm::cache::application::ApplicationError;
use loadline_jvm::cache::manifest::ManifestError;
use loadline_jvm::cache::{CacheKind, KindError};

#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error(transparent)]
    Application(#[from] ApplicationError),
    #[error(transparent)]
    Kind(#[from] KindError),
    #[error("the JDK behind `{program}` is not known")]
    NoJdk { program: String },
    /// The command already names a shared class cache.
    #[error("the command has its own shared class cache: {option}")]
    OwnCache { option: String },
    #[error("the training run was never ready: {why}{output}")]
    NeverReady { why: String, output: String },
    #[error("the training run wrote no {kind} cache: {why}{output}")]
    NotWritten {
        kind: CacheKind,
        why: String,
        output: String,
        hint: &'static str,
    },
    #[error(transparent)]
    File(#[from] ManifestError),
}

impl CacheError {
    pub fn cache_hint(&self) -> &'static str {
        match self {
            Self::Application(error) => error.application_hint(),
            Self::Kind(KindError::Unsupported { hint, .. }) | Self::NotWritten { hint, .. } => hint,
            Self::NoJdk { .. } => {
                "give the java command itself, not a script: -- java -jar app.jar"
            }
            Self::OwnCache { .. } => {
                "take the option out of the command; only an image can have a layer above an existing cache: --image"
            }
            Self::NeverReady { .. } => {
                "try the command alone; --ready names the path that answers when it is ready, --start-deadline how long that may take"
            }
            Self::File(error) if error.is_disk_full() => {
                "free some space, or choose another directory: -o DIR"
            }
            Self::File(_) => "the directory must be writable: -o DIR",
        }
    }
}
