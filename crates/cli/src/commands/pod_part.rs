//! `loadline pod-part`, `loadline pod-look` and `loadline pod-generator` (hidden): the processes in
//! a Kubernetes pod. The implementation is in [`loadline_trial::part`] and [`loadline_trial::pod`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use loadline_trial::part;
use loadline_trial::pod::{self, PodPaths};

use super::parts::part_refused;
use crate::error::{CommandOutcome, Error};
use crate::say::{one_line_json, print_data};
use crate::signals::Signals;

/// How long the hook of its container, for which the application waits, waits for it to be armed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where things lie; the pod's manifest says it.
#[derive(Args)]
pub struct PodPartArguments {
    /// The order
    #[arg(long)]
    order: PathBuf,
    /// For the event log
    #[arg(long)]
    work: PathBuf,
    /// The application's /tmp
    #[arg(long)]
    tmp: PathBuf,
    /// Give application and load generator separate CPUs
    #[arg(long)]
    split_cpus: bool,
    /// Only say whether the application may start
    #[arg(long)]
    armed: bool,
}

pub fn run(arguments: PodPartArguments) -> Result<CommandOutcome, Error> {
    let signals = Signals::watch_signals()?;
    if let Some(code) = pod::reap_until_end(signals.flag()).map_err(Error::environment)? {
        return Err(Error::environment(format!("it ended with {code}")));
    }
    let place = PodPaths {
        order: arguments.order,
        work: arguments.work,
        tmp: arguments.tmp,
        splits_cpus: arguments.split_cpus,
        told_to_end: Arc::clone(signals.flag()),
    };
    if arguments.armed {
        return if place.is_armed_within(PATIENCE) {
            Ok(CommandOutcome::Done)
        } else {
            Err(Error::environment("not yet"))
        };
    }
    part::run_in_pod(&place, std::io::stdout())
        .map(|()| CommandOutcome::Done)
        .map_err(|error| part_refused(&error))
}

/// Where a pod that looks puts its copy of loadline, or what it saw.
#[derive(Args)]
pub struct PodLookArguments {
    /// Copy this program to here instead
    #[arg(long)]
    copy_to: Option<PathBuf>,
    /// Take more memory than a look may instead
    #[arg(long)]
    fill: bool,
}

pub fn inspect_image(arguments: PodLookArguments) -> Result<CommandOutcome, Error> {
    if let Some(to) = &arguments.copy_to {
        let copied = std::fs::copy("/proc/self/exe", to);
        return copied.map(|_| CommandOutcome::Done).map_err(|error| {
            let what = format!("copying loadline to {}: {error}", to.display());
            Error::environment(what)
        });
    }
    if arguments.fill {
        let filled = pod::fill_memory();
        return filled.map(|()| CommandOutcome::Done).map_err(Error::from);
    }
    let seen = pod::probe_from_inside()?;
    print_data(&one_line_json(&seen)?)?;
    Ok(CommandOutcome::Done)
}

/// What a generator needs to know; the pod's manifest says it.
#[derive(Args)]
pub struct PodGeneratorArguments {
    /// The file with what its client knows
    #[arg(long)]
    secret: PathBuf,
    /// Where it listens
    #[arg(long)]
    port: u16,
    /// Seconds without a client until it ends
    #[arg(long)]
    idle: u64,
}

pub fn generate(arguments: PodGeneratorArguments) -> Result<CommandOutcome, Error> {
    let signals = Signals::watch_signals()?;
    let (secret, port) = (&arguments.secret, arguments.port);
    let idle = Duration::from_secs(arguments.idle);
    pod::generate_load(secret, port, idle, signals.flag())
        .map(|()| CommandOutcome::Done)
        .map_err(Error::from)
}
