//! How a command ends: the exit codes, and errors as people read them.
//!
//! Owns the mapping from what went wrong to exit code and text, for what several commands meet. Every error says what happened,
//! why, and (as hints) what to do next.

use std::fmt::Display;
use std::process::ExitCode;

use loadline_analysis::record::{InvalidReason, TrialRecord, TrialVerdict};
use loadline_experiment::ExperimentError;
use loadline_load::{LoadError, split_refusal};
use loadline_protocol::RunRefusal;
use loadline_runner::cache::CacheError;
use loadline_runner::command::CommandError;
use loadline_runner::runner::RunError;
use loadline_runner::store::{ResultKind, StoreError};

use crate::signals::Signals;
use crate::ui::next::next_command as next;
use crate::ui::text::short;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Done, and any SLO was met. Exit code 0.
    Done,
    /// The SLO was not met, or nothing is feasible. Exit code 1.
    SloMissed,
}

impl CommandOutcome {
    pub fn for_slo(is_kept: bool) -> Self {
        if is_kept { Self::Done } else { Self::SloMissed }
    }

    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::SloMissed => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Wrong arguments or a wrong file. Exit code 2.
    Usage,
    /// This machine cannot: cgroups, JDK, disk, permissions. Exit code 3.
    Environment,
    /// The measurement is not valid. Exit code 4.
    Invalid,
    /// A defect of loadline. Exit code 70.
    Internal,
    /// Stopped by a signal; the number of the signal. Exit code 128 + signal.
    Interrupted(u8),
}

impl FailureKind {
    fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Invalid => 4,
            Self::Internal => 70,
            Self::Interrupted(signal) => 128 + signal,
        }
    }

    /// Of a file that cannot be read: a wrong name is the caller's, a disk the machine's.
    pub fn of_unreadable(error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
        match error.kind() {
            InvalidData | IsADirectory | NotFound => Self::Usage,
            _ => Self::Environment,
        }
    }

    pub fn of_code(code: u8) -> Self {
        match code {
            2 => Self::Usage,
            3 => Self::Environment,
            4 => Self::Invalid,
            129.. => Self::Interrupted(code - 128),
            _ => Self::Internal,
        }
    }
}

#[derive(Debug)]
pub struct Error {
    kind: FailureKind,
    message: String,
    hints: Vec<String>,
}

impl Error {
    pub fn new(kind: FailureKind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            hints: Vec::new(),
        }
    }

    pub fn usage(message: impl Display) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    pub fn environment(message: impl Display) -> Self {
        Self::new(FailureKind::Environment, message)
    }

    pub fn invalid(message: impl Display) -> Self {
        Self::new(FailureKind::Invalid, message)
    }

    pub fn internal(message: impl Display) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    pub fn with_hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    pub fn with_hint_if(self, hint: Option<impl Display>) -> Self {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    pub fn code(&self) -> u8 {
        self.kind.code()
    }

    pub fn failure_kind(&self) -> FailureKind {
        self.kind
    }

    pub fn report(&self) -> ExitCode {
        say!("loadline: error: {}", self.message);
        for hint in &self.hints {
            say!("hint: {hint}");
        }
        ExitCode::from(self.kind.code())
    }
}

impl Error {
    pub fn from_refusal(refusal: &RunRefusal) -> Self {
        Self::environment(refusal).with_hint(&refusal.hint)
    }

    /// Of what the caller gave, not of this machine.
    pub fn from_wrong_input(refusal: RunRefusal) -> Self {
        Self::usage(&refusal).with_hint(&refusal.hint)
    }
}

macro_rules! told_by {
    ($($error:ty: $told_by:path),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                $told_by(&error)
            }
        }
    )*};
}

told_by!(
    CacheError: cache_refused,
    CommandError: command_refused,
    ExperimentError: experiment_refused,
    LoadError: load_error,
    RunRefusal: Self::from_refusal,
    StoreError: store_refused,
);

pub fn not_measured(record: Option<&TrialRecord>) -> Option<Error> {
    let record = record?;
    Some(Error::invalid(format!(
        "could not measure: {}: {}",
        record.verdict, record.reason
    )))
}

/// What helps against trials without a verdict; `again` says how to go on.
pub fn remedy_for_invalid(last: Option<TrialVerdict>, again: &str) -> String {
    match last {
        // A start script that sets options does so on a quiet machine too.
        Some(TrialVerdict::Invalid(InvalidReason::OtherOptions)) => {
            "set the script's own variable for JVM options (--env NAME=VALUE) so that it adds none, or keep its heap: --heap keep".to_owned()
        }
        Some(TrialVerdict::Invalid(InvalidReason::OutOfTime)) => {
            format!("give it more time (--budget), or {again}")
        }
        Some(TrialVerdict::Invalid(reason)) if !reason.is_disturbance() => {
            format!("fix the problem above, then {again}")
        }
        _ => format!("stop other programs on this machine, then {again}"),
    }
}

pub fn experiment_refused(error: &ExperimentError) -> Error {
    Error::usage(error).with_hint_if(error.hint.as_ref())
}

pub fn load_error(error: &LoadError) -> Error {
    let text = error.to_string();
    let (what, next) = match error.load_hint() {
        Some(hint) => (text.as_str(), Some(hint)),
        None => split_refusal(&text),
    };
    Error::new(load_failure_kind(error), what)
        .with_hint(next.unwrap_or("`loadline load --help` explains each flag"))
}

fn load_failure_kind(error: &LoadError) -> FailureKind {
    match error {
        LoadError::Plan { .. } | LoadError::Part { .. } | LoadError::Order(_) => FailureKind::Usage,
        LoadError::System { .. }
        | LoadError::Namespace { .. }
        | LoadError::Target { .. }
        | LoadError::UnknownHost { .. }
        | LoadError::Generator { .. }
        | LoadError::Output(_) => FailureKind::Environment,
        LoadError::Histogram(_) => FailureKind::Invalid,
        LoadError::Accounting { .. } | LoadError::Panicked => FailureKind::Internal,
    }
}

pub fn store_refused(error: &StoreError) -> Error {
    let hint = match error {
        StoreError::Full { .. } => format!("free some space, then: {}", next("resume")),
        StoreError::Place { source, .. } if source.kind.is_none() => {
            format!("{}, or choose another directory: --state DIR", source.hint)
        }
        StoreError::Directory { .. } | StoreError::Place { .. } => {
            "choose another directory: --state DIR".to_owned()
        }
        StoreError::Newer { .. } => {
            "use that loadline, or choose another directory: --state DIR".to_owned()
        }
        StoreError::Unknown { id, path } if id == "last" => {
            let nothing = format!("there are no results in {} yet", path.display());
            return Error::usage(nothing).with_hint(
                "create one with `loadline size` or `loadline run`, or choose another directory: --state DIR",
            );
        }
        StoreError::Unknown { .. } => {
            let hint = "list the results: loadline list; `last` is the newest";
            return Error::usage(error).with_hint(hint);
        }
        StoreError::Ambiguous { .. } => {
            return Error::usage(error).with_hint("list all: loadline list");
        }
        StoreError::InUse { .. } => {
            "wait until it ends, or stop it: `loadline serve` has a button".to_owned()
        }
        StoreError::Log { .. } => format!("check the disk (dmesg), then: {}", next("resume")),
        StoreError::Copy(refusal) => return Error::from_refusal(refusal),
        StoreError::NotAway { id } => format!(
            "continue the local one, without --kubernetes: {}",
            next(&format!("resume {}", short(id)))
        ),
        StoreError::ForeignId { .. } | StoreError::OtherResult { .. } => {
            "it was changed there; nothing was fetched".to_owned()
        }
        StoreError::Database { .. } | StoreError::Record { .. } => {
            "choose another directory with --state DIR; the file stays unchanged".to_owned()
        }
    };
    Error::environment(error).with_hint(hint)
}

pub fn command_refused(error: &CommandError) -> Error {
    let usage = |hint: &str| Error::usage(error).with_hint(hint);
    match error {
        CommandError::NoJar { .. } => usage(
            "build it first, or check the path; it is relative to the directory in which loadline runs",
        ),
        CommandError::NoProgram { program } if program == "java" => usage(
            "install a JDK, or set PATH or JAVA_HOME; `loadline doctor` lists the JDKs it finds",
        ),
        CommandError::NoProgram { program } if program.contains(' ') => usage(
            "give each word as its own: -- java -jar app.jar, in a file [\"java\", \"-jar\", \"app.jar\"]",
        ),
        CommandError::NoProgram { .. } => usage("check the spelling and PATH"),
        CommandError::NoJdk { hint, .. } => Error::environment(error)
            .with_hint_if(hint.as_ref())
            .with_hint("`loadline doctor` lists the JDKs of this machine"),
        CommandError::Image(refusal) => Error::from_refusal(refusal),
    }
}

pub fn cache_refused(error: &CacheError) -> Error {
    let kind = match error {
        CacheError::Application(_)
        | CacheError::NoJdk { .. }
        | CacheError::OwnCache { .. }
        | CacheError::Kind(_) => FailureKind::Usage,
        CacheError::NeverReady { .. } | CacheError::NotWritten { .. } => FailureKind::Invalid,
        CacheError::File(_) => FailureKind::Environment,
    };
    Error::new(kind, error).with_hint(error.cache_hint())
}

pub fn run_refused(
    error: &RunError,
    signals: &Signals,
    (kind, result): (ResultKind, &str),
) -> Error {
    let resume = match kind {
        ResultKind::Verify => "start again: loadline verify".to_owned(),
        _ => format!(
            "finished trials are kept; continue with: {}",
            next(&format!("resume {}", short(result)))
        ),
    };
    match error {
        RunError::Store(error) => store_refused(error),
        RunError::Refused(refusal) => Error::from_refusal(refusal),
        RunError::Command(error) => command_refused(error),
        RunError::Cache(error) => cache_refused(error),
        RunError::Load(error) => load_error(error),
        RunError::Interrupted => {
            Error::new(signals.interrupt_kind(), "interrupted").with_hint(resume)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quieter_machine_is_the_remedy_against_disturbances_alone() {
        let remedy = |reason| remedy_for_invalid(Some(TrialVerdict::Invalid(reason)), "go on");
        let quieter = "stop other programs on this machine, then go on";
        assert_eq!(remedy(InvalidReason::Noise), quieter);
        assert_eq!(remedy_for_invalid(None, "go on"), quieter);
        let mended = "fix the problem above, then go on";
        assert_eq!(remedy(InvalidReason::LoadCommand), mended);
        assert!(remedy(InvalidReason::OtherOptions).contains("--heap keep"));
    }
}
