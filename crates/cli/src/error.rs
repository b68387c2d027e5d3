//! How a command ends: the exit codes, and errors as people read them.
//!
//! Owns the mapping from what went wrong to exit code and text. Every error says what happened,
//! why, and (as hints) what to do next.

use std::fmt::Display;
use std::process::ExitCode;

use loadline_protocol::RunRefusal;

/// A command that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Done, and the SLO was met where there is one. Exit code 0.
    Done,
    /// The SLO was not met, or nothing is feasible. Exit code 1.
    SloMissed,
}

impl CommandOutcome {
    /// The process's exit code.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// The same as a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::SloMissed => 1,
        }
    }
}

/// What kind of failure ended a command; decides the exit code.
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

    /// The kind that has this exit code.
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

/// A failure with what to do about it.
#[derive(Debug)]
pub struct Error {
    kind: FailureKind,
    message: String,
    hints: Vec<String>,
}

impl Error {
    /// A failure of this kind; the message says what happened and why.
    pub fn new(kind: FailureKind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            hints: Vec::new(),
        }
    }

    /// Adds what to do next.
    pub fn with_hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Adds what to do next, where the error knows it.
    pub fn with_hint_if(self, hint: Option<impl Display>) -> Self {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    /// What happened and why, without the hints.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Its exit code.
    pub fn code(&self) -> u8 {
        self.kind.code()
    }

    /// What kind it is.
    pub fn failure_kind(&self) -> FailureKind {
        self.kind
    }

    /// Prints it to stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        say!("loadline: error: {}", self.message);
        for hint in &self.hints {
            say!("hint: {hint}");
        }
        ExitCode::from(self.kind.code())
    }
}

impl Error {
    /// A refusal, as it is: this machine cannot.
    pub fn from_refusal(refusal: &RunRefusal) -> Self {
        Self::new(FailureKind::Environment, refusal).with_hint(&refusal.hint)
    }
}
