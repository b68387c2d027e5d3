//! Why a path is not used, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

const SYSTEM: &str = "give a path you can write to";

#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct PathRefusal {
    pub path: PathBuf,
    pub why: String,
    pub hint: String,
    /// The system's answer, when it was the system.
    pub kind: Option<io::ErrorKind>,
}

impl PathRefusal {
    /// The same for the requested file, if the obstacle is on the way to it.
    pub(crate) fn on_the_way_to(self, path: &Path) -> Self {
        if self.path == path {
            return self;
        }
        Self {
            why: format!("{}: {}", self.path.display(), self.why),
            path: path.to_owned(),
            ..self
        }
    }

    pub(crate) fn unsafe_place(path: &Path, why: String, hint: String) -> Self {
        Self {
            path: path.to_owned(),
            why,
            hint,
            kind: None,
        }
    }

    pub(crate) fn from_system(path: &Path, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self {
            path: path.to_owned(),
            why: error.to_string(),
            hint: SYSTEM.to_owned(),
            kind: Some(error.kind()),
        }
    }
}

impl From<PathRefusal> for io::Error {
    fn from(refused: PathRefusal) -> Self {
        Self::new(refused.kind.unwrap_or(io::ErrorKind::Other), refused.why)
    }
}
