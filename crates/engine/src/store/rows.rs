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
    /// The command's name.
    pub fn command_name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Size => "size",
            Self::Soak => "soak",
            Self::Verify => "verify",
        }
    }
}

/// A trial that was begun and has no record.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedTrial {
    /// Its id.
    pub id: String,
    /// What it ran; the label is not kept.
    pub configuration: Configuration,
    /// Ordinal.
    pub repeat: u32,
    /// Wall clock at its begin, milliseconds since 1970-01-01 UTC.
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
    /// In a word.
    pub fn status_word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }
}

/// One run of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    /// UUIDv7.
    pub id: String,
    /// Which command made it.
    pub kind: ResultKind,
    /// Short text for lists.
    pub title: String,
    /// Wall clock, milliseconds since 1970-01-01 UTC.
    pub created_unix_ms: u64,
    /// The experiment, TOML.
    pub experiment: String,
    /// Directory it was called in; relative paths start there.
    pub directory: PathBuf,
    /// The command line, secrets redacted.
    pub command: Vec<String>,
    /// The machine.
    pub machine: MachineDescription,
    /// Where it stands.
    pub status: ResultStatus,
    /// The recommendation, JSON, when there is one.
    pub outcome: Option<String>,
    /// Finished trials.
    pub trials: u64,
}

/// What a new result needs.
#[derive(Debug, Clone)]
pub struct NewResult {
    /// Which command makes it.
    pub kind: ResultKind,
    /// Short text for lists.
    pub title: String,
    /// The experiment, TOML.
    pub experiment: String,
    /// Directory it was called in.
    pub directory: PathBuf,
    /// The command line, secrets redacted.
    pub command: Vec<String>,
    /// The machine.
    pub machine: MachineDescription,
}

/// A trial before it has a record: what it will run.
#[derive(Debug, Clone)]
pub struct TrialKey {
    /// The result it belongs to.
    pub result: String,
    /// Why it runs.
    pub purpose: TrialPurpose,
    /// What it runs.
    pub configuration: Configuration,
    /// Ordinal, from 1.
    pub repeat: u32,
    /// Attempt at it, from 1; a trial that was not valid is tried again.
    pub attempt: u32,
}
