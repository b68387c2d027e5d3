//! From an experiment to the order of one trial.
//!
//! Owns what a host is told, and the seed of a trial's load; the command line is
//! [`command`](crate::command)'s, the load phases are [`load`](crate::experiment::load)'s. Starts
//! nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use loadline_analysis::record::{Configuration, Purpose};
use loadline_jvm::log_option;
use loadline_trial::{App, Order, Sampling};

use crate::cache::{Built, assemble_with};
use crate::command::{Assembled, assemble};
use crate::experiment::references::{self, Filled};
use crate::runner::{Measurement, RunError};
use crate::soak::divide;
use crate::store::TrialKey;

/// Distance of samples of a soak: its questions are those of hours.
const SOAK_SAMPLES: Duration = Duration::from_secs(1);

/// The order of a trial; `cache` is the start-up cache that it uses.
pub(crate) fn trial(
    of: &Measurement<'_>,
    id: &str,
    key: &TrialKey,
    start_deadline: Duration,
    cache: Option<&Built>,
) -> Result<Order, RunError> {
    let assembled = match cache {
        Some(built) => assemble_with(of, &key.configuration, built)?,
        None => assemble(of.experiment, &key.configuration, of.jdks, of.places)?,
    };
    let bound = of.experiment.slo.tightest_latency();
    let seed = seed(of.experiment.seed, key.purpose, key.repeat, key.attempt);
    let mut order = Order {
        give_up: gives_up(of, key.purpose).then(|| of.experiment.slo.clone()),
        as_shipped: is_as_shipped(of, key),
        ..self::of(of, id, &key.configuration, assembled, start_deadline)?
    };
    let (load, level) = (&of.experiment.load, &key.configuration);
    for dependency in &mut order.dependencies {
        if let Some(proxied) = &mut dependency.proxied {
            proxied.seed = seed_of(seed, &dependency.name);
        }
    }
    for stub in &mut order.stubs {
        stub.seed = seed_of(seed, &stub.name);
    }
    let length = of
        .experiment
        .search
        .soak
        .filter(|_| key.purpose == Purpose::Soak);
    Ok(match length {
        None => {
            let mut phases = load.phases(level, bound, seed)?;
            for phase in &mut phases {
                phase.plan.by_second = of.experiment.has_outages();
            }
            Order {
                load: phases,
                ..order
            }
        }
        Some(length) => {
            let (soak, cycle) = divide(length);
            soaked(Order {
                load: load.cycles(level, bound, seed, cycle)?,
                soak: Some(soak),
                sampling: Sampling::Every(SOAK_SAMPLES),
                ..order
            })
        }
    })
}

/// Of a soak the JVM logs its collections only: a day of every detail would fill the disk.
fn soaked(mut order: Order) -> Order {
    match &mut order.app {
        App::Command { command, env, .. } => {
            for word in command.iter_mut().chain(env.values_mut()) {
                *word = log_option::terse(word);
            }
        }
        App::Image(image) => {
            for word in image.env.values_mut() {
                *word = log_option::terse(word);
            }
        }
    }
    order
}

/// The order of an application without load.
pub(crate) fn of(
    of: &Measurement<'_>,
    id: &str,
    configuration: &Configuration,
    assembled: Assembled,
    start_deadline: Duration,
) -> Result<Order, RunError> {
    let app = &of.experiment.app;
    let (app_of_trial, mut secrets) = filled(assembled.app)?;
    let beside = of.experiment.ordered_dependencies(of.places, of.account)?;
    secrets.extend(beside.secrets);
    Ok(Order {
        trial: id.to_owned(),
        configuration: configuration.clone(),
        app: app_of_trial,
        dependencies: beside.dependencies,
        kept: None,
        stubs: of.experiment.ordered_stubs()?,
        secrets,
        readiness: app.readiness.clone(),
        network: app.network,
        account: of.account,
        scratch: of.store.scratch(id),
        hidden: vec![of.store.directory().to_owned()],
        gc_log: assembled.gc_log,
        log_line: app.log_line.clone(),
        hand_over: Vec::new(),
        sampling: of.experiment.sampling,
        start_deadline,
        load: Vec::new(),
        give_up: None,
        stop_grace: app.stop_grace,
        soak: None,
        as_shipped: false,
        generators: None,
    })
}

/// Whether a trial is the last start of a proof as pods: its pod is made as the application ships. What
/// counts in the other starts is the PID namespace that the pod's containers share, and that is not
/// what is shipped.
fn is_as_shipped(of: &Measurement<'_>, key: &TrialKey) -> bool {
    let starts = of.experiment.search.prove;
    let is_last = starts > 0 && key.repeat.is_multiple_of(starts);
    of.experiment.cluster.is_some() && key.purpose == Purpose::Prove && is_last
}

/// Whether only the verdict of a trial counts: in a search of the smallest memory, but not in its
/// proof, whose requests are also judged as one sample. With prices, how far a trial is from its SLO
/// counts too; in a matrix every figure does.
fn gives_up(of: &Measurement<'_>, purpose: Purpose) -> bool {
    let is_search = match purpose {
        Purpose::Search | Purpose::Confirm | Purpose::Neighbour => true,
        Purpose::Prove | Purpose::Matrix | Purpose::Compare | Purpose::Soak | Purpose::Abreast => {
            false
        }
    };
    is_search && of.experiment.search.pricing.is_none() && !of.experiment.has_outages()
}

/// An application with what its environment refers to.
fn filled(mut app: App) -> Result<(App, Vec<String>), RunError> {
    let env = match &mut app {
        App::Command { env, .. } => env,
        App::Image(image) => &mut image.env,
    };
    let Filled { env: full, secrets } = references::fill(env)?;
    *env = full;
    Ok((app, secrets))
}

/// What is drawn on the way to one dependency of a trial has nothing to do with its load.
fn seed_of(trial: u64, dependency: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (trial, dependency).hash(&mut hasher);
    hasher.finish()
}

/// The seed of a trial's load: fresh starts are independent of each other, and the same repeat of
/// two configurations gets the same arrivals, which takes the luck of the draw out of a comparison.
fn seed(experiment: u64, purpose: Purpose, repeat: u32, attempt: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (experiment, purpose, repeat, attempt).hash(&mut hasher);
    hasher.finish()
}
