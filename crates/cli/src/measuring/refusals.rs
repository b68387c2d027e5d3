//! What stops a measurement, as the command line reports it.
//!
//! Owns the hints that name commands and flags.

use loadline_engine::cache::CacheError;
use loadline_engine::command::CommandError;
use loadline_engine::runner::RunError;
use loadline_engine::store::{ResultKind, StoreError};

use crate::commands::load_error;
use crate::error::{Error, FailureKind};
use crate::signals::Signals;
use crate::ui::next::next_command as next;

/// A store error as the command line reports it.
pub fn store_refused(error: &StoreError) -> Error {
    match error {
        StoreError::Full { .. } => Error::new(FailureKind::Environment, error)
            .with_hint(format!("free some space, then: {}", next("resume"))),
        StoreError::Place { source, .. } if source.kind.is_none() => {
            let hint = format!("{}, or give another directory: --state DIR", source.hint);
            Error::new(FailureKind::Environment, error).with_hint(hint)
        }
        StoreError::Directory { .. } | StoreError::Place { .. } => {
            Error::new(FailureKind::Environment, error)
                .with_hint("give another directory: --state DIR")
        }
        StoreError::Newer { .. } => Error::new(FailureKind::Environment, error)
            .with_hint("use that loadline, or another directory: --state DIR"),
        StoreError::Unknown { id, path } if id == "last" => Error::new(
            FailureKind::Usage,
            format!("there are no results in {} yet", path.display()),
        )
        .with_hint(
            "`loadline size` and `loadline run` make one; --state DIR names another directory",
        ),
        StoreError::Unknown { .. } => Error::new(FailureKind::Usage, error)
            .with_hint("loadline list shows the results; `last` is the newest"),
        StoreError::Ambiguous { .. } => {
            Error::new(FailureKind::Usage, error).with_hint("loadline list shows all of them")
        }
        StoreError::InUse { .. } => Error::new(FailureKind::Environment, error)
            .with_hint("wait for its end, or stop it: `loadline serve` has a button"),
        StoreError::Log { .. } => Error::new(FailureKind::Environment, error).with_hint(format!(
            "look after the disk (dmesg), then: {}",
            next("resume")
        )),
        StoreError::Copy(refusal) => Error::from_refusal(refusal),
        StoreError::NotAway { id } => {
            Error::new(FailureKind::Environment, error).with_hint(format!(
                "go on with the one that is here, without --kubernetes: {}",
                next(&format!("resume {}", crate::ui::text::short(id)))
            ))
        }
        StoreError::ForeignId { .. } | StoreError::OtherResult { .. } => {
            Error::new(FailureKind::Environment, error)
                .with_hint("somebody changed it there; nothing of it was taken")
        }
        StoreError::Database { .. } | StoreError::Record { .. } => {
            Error::new(FailureKind::Environment, error)
                .with_hint("give another directory with --state DIR; the file is left as it is")
        }
    }
}

/// A command that cannot be run, as the command line reports it.
pub fn command_refused(error: &CommandError) -> Error {
    let refusal = match error {
        CommandError::NoJar { .. } | CommandError::NoProgram { .. } => {
            Error::new(FailureKind::Usage, error)
        }
        CommandError::NoJdk { hint, .. } => {
            Error::new(FailureKind::Environment, error).with_hint_if(hint.as_ref())
        }
        CommandError::Image(refusal) => return Error::from_refusal(refusal),
    };
    match error {
        CommandError::NoJar { .. } => refusal.with_hint("build it first, or check the path; it is relative to the directory loadline is called in"),
        CommandError::NoProgram { program } if program == "java" => refusal.with_hint("install a JDK, or put one into PATH or JAVA_HOME; `loadline doctor` lists what it finds"),
        CommandError::NoProgram { .. } => refusal.with_hint("check the spelling and PATH"),
        CommandError::NoJdk { .. } => refusal.with_hint("`loadline doctor` lists the JDKs of this machine"),
        CommandError::Image(_) => refusal,
    }
}

/// A cache that cannot be made.
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

/// What ended a run, with the way on.
pub(super) fn run_refused(
    error: &RunError,
    signals: &Signals,
    (kind, result): (ResultKind, &str),
) -> Error {
    let resume = match kind {
        ResultKind::Verify => "begin it again: loadline verify".to_owned(),
        _ => format!(
            "everything finished is kept; go on with: {}",
            next(&format!("resume {}", crate::ui::text::short(result)))
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
