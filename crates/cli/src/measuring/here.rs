//! This machine as a place of trials: its lock, its requirements, leftovers of earlier loadlines.
//!
//! Owns the checks before the first trial. Starts none.

use loadline_cgroup::CheckStatus;
use loadline_experiment::Experiment;
use loadline_runner::apart::ApartHost;
use loadline_runner::host::TrialHost;
use loadline_runner::local::LocalTrialHost;
use loadline_runner::lock::{LockError, MachineLock};
use loadline_runner::store::Store;
use loadline_trial::{SiteOptions, rootless};

use crate::error::Error;
use crate::images;
use crate::signals::Signals;

/// Without root trials need a user namespace, and only a process with one thread can enter one:
/// this comes first.
pub(super) fn enter_namespace() -> Result<(), Error> {
    rootless::enter_user_namespace().map_err(Error::from)
}

pub(super) fn try_machine(host: &LocalTrialHost) -> Result<(), Error> {
    let mut broken = host.site().run_preflight();
    broken.retain(|check| check.status == CheckStatus::Broken);
    let Some(first) = broken.first() else {
        return Ok(());
    };
    let names: Vec<_> = broken.iter().map(|c| c.name).collect();
    let (names, detail) = (names.join(", "), &first.detail);
    let problem = format!("this machine cannot run trials ({names}): {detail}");
    let error = Error::environment(problem);
    let error = match &first.fix {
        Some(fix) => error.with_hint(fix),
        None => error,
    };
    Err(error.with_hint("`loadline doctor` shows all checks"))
}

pub(super) fn prepare_host(
    store: &Store,
    experiment: &Experiment,
) -> Result<LocalTrialHost, Error> {
    let options = SiteOptions {
        scratch_root: Some(store.scratch_root()),
        ..SiteOptions::default()
    };
    let host = LocalTrialHost::new(options)?;
    let swept = host.site().sweep_with(&images::engines(experiment))?;
    for failure in &swept.failures {
        say!("warning: left over from an earlier trial and not removed: {failure}");
    }
    Ok(host)
}

/// The engine apart that starts the images of an experiment, if one does, after what killed loadlines
/// left there is gone.
pub(super) fn prepare_engine_apart(
    experiment: &Experiment,
) -> Result<Option<Box<dyn TrialHost>>, Error> {
    let Some(images) = images::images_apart(experiment) else {
        return Ok(None);
    };
    let (host, swept) = ApartHost::new(&images)?;
    for failure in &swept.failures {
        say!("warning: left over from an earlier trial and not removed: {failure}");
    }
    Ok(Some(Box::new(host)))
}

pub(super) fn lock_machine(wait: bool, signals: &Signals) -> Result<MachineLock, Error> {
    let mut told = false;
    let locked = if wait {
        MachineLock::wait_for_lock(|held| {
            if !told {
                talk!("waiting: {held}");
                told = true;
            }
            !signals.has_come()
        })
    } else {
        MachineLock::acquire()
    };
    locked.map_err(|error| match error {
        LockError::Held { .. } if signals.has_come() => Error::new(
            signals.interrupt_kind(),
            "interrupted while waiting for another loadline",
        ),
        held @ LockError::Held { .. } => Error::environment(held)
            .with_hint("two measurements disturb each other; add --wait to run after it"),
        io @ LockError::Io { .. } => Error::environment(io)
            .with_hint("its directory must be writable, on a disk with space; then try again"),
    })
}
