//! From an experiment to the order of one trial.
//!
//! Owns what a host is told, and the load phases of a trial; the command line is
//! [`command`](crate::command)'s. Starts nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use loadline_analysis::record::{Configuration, Phase, Purpose};
use loadline_load::Model;
use loadline_trial::{App, LoadPhase, Order};

use crate::cache::{Built, with_options};
use crate::command::{Assembled, CommandError, assemble};
use crate::experiment::Experiment;
use crate::runner::Measurement;
use crate::store::TrialKey;

/// The order of a trial; `cache` is the start-up cache that it uses.
pub(crate) fn trial(
    of: &Measurement<'_>,
    id: &str,
    key: &TrialKey,
    start_deadline: Duration,
    cache: Option<&Built>,
) -> Result<Order, CommandError> {
    let with = cache.map(|built| with_options(&key.configuration, built));
    let with = with.as_ref().unwrap_or(&key.configuration);
    let assembled = assemble(&of.experiment.app, with, of.jdks, of.places)?;
    let seed = seed(of.experiment.seed, key.purpose, key.repeat, key.attempt);
    Ok(Order {
        load: load(of.experiment, key.configuration.rate, seed),
        ..self::of(of, id, &key.configuration, assembled, start_deadline)
    })
}

/// The order of an application without load.
pub(crate) fn of(
    of: &Measurement<'_>,
    id: &str,
    configuration: &Configuration,
    assembled: Assembled,
    start_deadline: Duration,
) -> Order {
    let app = &of.experiment.app;
    Order {
        trial: id.to_owned(),
        configuration: configuration.clone(),
        app: App::Command {
            command: assembled.command,
            env: assembled.env,
            directory: app.directory.clone(),
        },
        readiness: app.readiness.clone(),
        network: app.network,
        account: of.account,
        scratch: of.store.scratch(id),
        gc_log: assembled.gc_log,
        log_line: app.log_line.clone(),
        hand_over: Vec::new(),
        sampling: of.experiment.sampling,
        start_deadline,
        load: Vec::new(),
        stop_grace: app.stop_grace,
    }
}

/// The load phases; `rate` replaces the rate of an open model.
fn load(experiment: &Experiment, rate: Option<f64>, seed: u64) -> Vec<LoadPhase> {
    let load = &experiment.load;
    let model = match rate {
        Some(rate) => load.model.clone().at_rate(rate),
        None => load.model.clone(),
    };
    let phase = |phase, model| {
        let mut phase = load.phase(phase, model);
        phase.plan.slo = experiment.slo.tightest_latency();
        phase.plan.seed = seed;
        phase
    };
    let warm_up = match model.rate() {
        Some(rate) => Model::constant(rate, load.warm_up),
        None => Model::ClosedFor {
            duration: load.warm_up,
        },
    };
    let mut phases = Vec::new();
    if !load.warm_up.is_zero() {
        phases.push(phase(Phase::WarmUp, warm_up));
    }
    phases.push(phase(Phase::Measure, model));
    phases
}

/// The seed of a trial's load: fresh starts are independent of each other, and the same repeat of
/// two configurations gets the same arrivals, which takes the luck of the draw out of a comparison.
fn seed(experiment: u64, purpose: Purpose, repeat: u32, attempt: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (experiment, purpose, repeat, attempt).hash(&mut hasher);
    hasher.finish()
}
