//! The hidden commands that loadline starts itself, one process each: the first processes of a
//! trial, a load generator, the keeper, the proxy, a whole trial, the busy neighbour. Crate `trial`
//! has the implementations.

use std::io::{stdin, stdout};

use clap::Args;
#[cfg(target_os = "linux")]
use loadline_trial::init::{self, InitError};
use loadline_trial::part::{self, ParentError, TrialProcessError};
use loadline_trial::{keeper, run_load_process, run_neighbour, run_proxy_process};

use crate::error::{CommandOutcome, Error, FailureKind};
use crate::signals::Signals;

#[cfg(target_os = "linux")]
pub fn run_init() -> Result<CommandOutcome, Error> {
    init::run().map(|()| CommandOutcome::Done).map_err(|error| {
        let kind = match &error {
            InitError::NotForPeople => FailureKind::Usage,
            InitError::Line(_) => FailureKind::Internal,
            InitError::Sys(_) | InitError::Filter(_) | InitError::Step { .. } => {
                FailureKind::Environment
            }
        };
        let hint = "see `loadline --help` for the commands to use";
        let hint = matches!(error, InitError::NotForPeople).then_some(hint);
        Error::new(kind, error).with_hint_if(hint)
    })
}

pub fn run_load() -> Result<CommandOutcome, Error> {
    run_load_process(stdin().lock(), stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(Error::from)
}

fn parent() -> Option<i32> {
    std::env::var(part::PARENT).ok()?.parse().ok()
}

pub fn run_keeper() -> Result<CommandOutcome, Error> {
    keeper::run_keeper_process(stdin(), stdout().lock(), parent())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the keeper: {e}")))
}

pub fn run_proxy() -> Result<CommandOutcome, Error> {
    run_proxy_process(stdin().lock(), stdout().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the proxy: {e}")))
}

pub fn run_trial() -> Result<CommandOutcome, Error> {
    let signals = Signals::watch_signals()?;
    part::run(stdin().lock(), stdout(), parent(), &|| signals.has_come())
        .map(|()| CommandOutcome::Done)
        .map_err(|error| part_refused(&error))
}

pub fn part_refused(error: &TrialProcessError) -> Error {
    let kind = match error {
        TrialProcessError::Parent(ParentError::NotForPeople) => FailureKind::Usage,
        TrialProcessError::Parent(_) | TrialProcessError::Log(_) | TrialProcessError::Thread(_) => {
            FailureKind::Environment
        }
    };
    Error::new(kind, error).with_hint(error.recovery_hint())
}

#[derive(Args)]
pub struct NeighbourArguments {
    /// Threads to keep busy.
    threads: u32,
    /// CPUs they run on.
    cpus: loadline_sizing::CpuSet,
}

pub fn keep_busy(arguments: &NeighbourArguments) -> Result<CommandOutcome, Error> {
    let cpus: Vec<u32> = arguments.cpus.iter().collect();
    run_neighbour(arguments.threads, &cpus, stdin().lock())
        .map(|()| CommandOutcome::Done)
        .map_err(|e| Error::environment(format!("the neighbour: {e}")))
}
