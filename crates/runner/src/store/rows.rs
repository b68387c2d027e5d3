//! What a row of the store holds: results and the keys of trials. Owns no SQL.

use std::path::PathBuf;

use loadline_analysis::record::{Configuration, MachineDescription, TrialPurpose};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which command made a result; `resume` runs it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// `loadline run`: a matrix or sweep.
    Run,
    /// `loadline size`: a search.
    Size,
    /// `loadline soak`: one long start of an answer.
    Soak,
    /// `loadline verify`: starts of a shipped size.
    Verify,
}

impl ResultKind {
    pub fn command_name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Size => "size",
            Self::Soak => "soak",
            Self::Verify => "verify",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedTrial {
    pub id: String,
    pub configuration: Configuration,
    pub repeat: u32,
    pub started_at_unix_ms: u64,
}

/// Where a result stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// Not finished; its owner runs, or died.
    Running,
    /// Stopped by a signal.
    Interrupted,
    /// Ended by an error.
    Failed,
    /// All trials done.
    Done,
}

impl ResultStatus {
    pub fn status_word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    pub id: String,
    pub kind: ResultKind,
    pub title: String,
    pub created_unix_ms: u64,
    pub experiment: String,
    pub directory: PathBuf,
    pub command: Vec<String>,
    pub machine: MachineDescription,
    pub status: ResultStatus,
    pub outcome: Option<String>,
    pub trials: u64,
}

#[derive(Debug, Clone)]
pub struct NewResult {
    pub kind: ResultKind,
    pub title: String,
    pub experiment: String,
    pub directory: PathBuf,
    pub command: Vec<String>,
    pub machine: MachineDescription,
}

#[derive(Debug, Clone)]
pub struct TrialKey {
    pub result: String,
    pub purpose: TrialPurpose,
    pub configuration: Configuration,
    pub repeat: u32,
    /// Attempt at it, from 1; a trial that was not valid is tried again.
    pub attempt: u32,
}
