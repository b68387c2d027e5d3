//! From an experiment to the order of one trial.
//!
//! Owns the order for a host, and the seed of a trial's load; [`command`](crate::command) owns the
//! command line, [`load`](loadline_experiment::load) the load phases. Starts nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::proof::{DISTANT_STARTS, squeezed};
use loadline_analysis::record::{Configuration, RunReference, TrialPurpose, TrialVerdict};
use loadline_experiment::AppUnderTest;
use loadline_experiment::program::{build_home, locate_for};
use loadline_experiment::references::{self, FilledEnvironment};
use loadline_jvm::log_option;
use loadline_protocol::{
    AppSpec, MemoryStudy, MetricsSpec, Readiness, RunSpec, SamplingRate, StudyGoal, TrialOrder,
};

use crate::cache::{InstalledCache, assemble_with};
use crate::command::{AssembledCommand, assemble};
use crate::error::RunError;
use crate::load_command::{backlog_command, load_command};
use crate::measurement::Measurement;
use crate::soak::divide_soak;
use crate::store::TrialKey;

/// Requests that age an application: with the first compiler only, and with both. The second goes on to
/// take memory for some 20,000.
const BURST: u64 = 20_000;
const BURST_OF_FIRST_COMPILER: u64 = 5_000;
const SOAK_SAMPLES: Duration = Duration::from_secs(1);

pub(crate) fn trial_order(
    of: &Measurement<'_>,
    id: &str,
    key: &TrialKey,
    start_deadline: Duration,
    cache: Option<&InstalledCache>,
) -> Result<TrialOrder, RunError> {
    let assembled = match cache {
        Some(built) => assemble_with(of, &key.configuration, built)?,
        None => assemble(of.experiment, &key.configuration, of.jdks, of.places)?,
    };
    let bound = of.experiment.slo.tightest_latency();
    let seed = load_seed(of.experiment.seed, key.purpose, key.repeat, key.attempt);
    let mut order = TrialOrder {
        give_up: gives_up(of, key.purpose).then(|| of.experiment.slo.clone()),
        as_shipped: is_as_shipped(of, key),
        ..self::order_without_load(of, id, &key.configuration, assembled, start_deadline)?
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
    let soak = of.experiment.search.soak;
    let length = soak.filter(|_| key.purpose == TrialPurpose::Soak);
    let study = study(of, key, &order)?;
    Ok(match length {
        None => {
            let mut phases = match study {
                Some(study) => load.studied(level, bound, seed, study.goal)?,
                None => load.phases(level, bound, seed)?,
            };
            for phase in &mut phases {
                phase.plan.by_second = of.experiment.has_outages();
            }
            TrialOrder {
                load_command: load_command(of, level, &phases)?,
                backlog: backlog_command(of, level, &phases)?,
                load: phases,
                memory_study: study,
                ..order
            }
        }
        Some(length) => {
            let (soak, cycle) = divide_soak(length);
            limit_soak_logging(TrialOrder {
                load: load.cycles(level, bound, seed, cycle)?,
                soak: Some(soak),
                sampling: SamplingRate::Every(SOAK_SAMPLES),
                ..order
            })
        }
    })
}

fn study(
    of: &Measurement<'_>,
    key: &TrialKey,
    order: &TrialOrder,
) -> Result<Option<MemoryStudy>, RunError> {
    let goal = match key.purpose {
        _ if order.run.is_some() => return Ok(None),
        TrialPurpose::Room => StudyGoal::LiveSet,
        TrialPurpose::Squeeze => StudyGoal::Wall,
        TrialPurpose::Prove if key.repeat <= DISTANT_STARTS && has_wall(of)? => StudyGoal::Burst,
        _ => return Ok(None),
    };
    let values = order.app.app_environment().values();
    let values = values.flat_map(|value| value.split_whitespace());
    let words = order.app.command_line().iter();
    let mut words = words.map(String::as_str).chain(values);
    let burst_requests = if words.any(|w| w == "-client" || w == "-XX:TieredStopAtLevel=1") {
        BURST_OF_FIRST_COMPILER
    } else {
        BURST
    };
    Ok(Some(MemoryStudy {
        burst_requests,
        goal,
    }))
}

/// Whether a squeezed start found a wall, and a burst of fresh ones can show more: a load command has none.
fn has_wall(of: &Measurement<'_>) -> Result<bool, RunError> {
    if !of.experiment.load.spec.command.is_empty() {
        return Ok(false);
    }
    let trials = of.store.finished_trials(&of.result)?;
    Ok(squeezed(&trials).is_some())
}

/// In a soak the JVM logs collections only: a day of every detail would fill the disk.
fn limit_soak_logging(mut order: TrialOrder) -> TrialOrder {
    let mut of_image = Vec::new();
    let (command, env) = match &mut order.app {
        AppSpec::Command { command, env, .. } => (command, env),
        AppSpec::Image(image) => (&mut of_image, &mut image.env),
    };
    for word in command.iter_mut().chain(env.values_mut()) {
        *word = log_option::shorten_gc_log_option(word);
    }
    order
}

pub(crate) fn order_without_load(
    of: &Measurement<'_>,
    id: &str,
    configuration: &Configuration,
    assembled: AssembledCommand,
    start_deadline: Duration,
) -> Result<TrialOrder, RunError> {
    let app = &of.experiment.app;
    let (app_of_trial, mut secrets) = fill_environment(assembled.app)?;
    let beside = of.experiment.ordered_dependencies(of.places, of.account)?;
    secrets.extend(beside.secrets);
    Ok(TrialOrder {
        trial: id.to_owned(),
        configuration: configuration.clone(),
        readiness: located_readiness(of, &app_of_trial)?,
        app: app_of_trial,
        dependencies: beside.dependencies,
        kept: None,
        stubs: of.experiment.ordered_stubs()?,
        secrets,
        network: app.network,
        account: of.account,
        scratch: of.store.scratch_root().join(id),
        hidden: vec![of.store.state_directory().to_owned()],
        gc_log: assembled.gc_log,
        log_line: app.log_line.clone(),
        hand_over: Vec::new(),
        sampling: of.experiment.sampling,
        start_deadline,
        load: Vec::new(),
        give_up: None,
        stop_grace: app.stop_grace,
        soak: None,
        memory_study: None,
        as_shipped: false,
        generators: None,
        load_command: None,
        backlog: None,
        metrics: located_metrics(of)?,
        run: match &app.run {
            Some(run) => Some(RunSpec {
                reference: run_reference(of, configuration)?,
                ..located_run(run, app)
            }),
            None => None,
        },
    })
}

/// The metrics with the programs of their probes found.
fn located_metrics(of: &Measurement<'_>) -> Result<Option<MetricsSpec>, RunError> {
    let mut metrics = of.experiment.metrics.clone();
    let all = metrics.iter_mut();
    for (name, words) in all.flat_map(|metrics| metrics.probes.iter_mut()) {
        locate_first(of, words, &format!("the probe {name}"))?;
    }
    Ok(metrics)
}

/// The readiness check with its program found, unless an engine runs it in the container.
fn located_readiness(of: &Measurement<'_>, app: &AppSpec) -> Result<Readiness, RunError> {
    let mut readiness = of.experiment.app.readiness.clone();
    if let (Readiness::Command { command }, AppSpec::Command { .. }) = (&mut readiness, app) {
        locate_first(of, command, "the command of ready")?;
    }
    Ok(readiness)
}

fn locate_first(of: &Measurement<'_>, words: &mut [String], whose: &str) -> Result<(), RunError> {
    if let Some(program) = words.first_mut() {
        let found = locate_for(whose, program, &of.experiment.app.directory, of.places)?;
        *program = found.to_string_lossy().into_owned();
    }
    Ok(())
}

/// The run at the largest memory that this result has, of the same configuration but for memory and heap.
fn run_reference(
    of: &Measurement<'_>,
    configuration: &Configuration,
) -> Result<Option<RunReference>, RunError> {
    let same = |other: &Configuration| Configuration {
        label: configuration.label.clone(),
        memory: configuration.memory,
        jvm_options: configuration.jvm_options.clone(),
        ..other.clone()
    };
    let trials = of.store.finished_trials(&of.result)?;
    let room = trials.iter().find(|trial| {
        trial.purpose == TrialPurpose::Room
            && trial.verdict == TrialVerdict::Pass
            && same(&trial.configuration) == *configuration
    });
    Ok(room.and_then(|room| {
        let start = &room.evidence.start;
        let time = start.ready?;
        let cpu = start.cpu;
        Some(RunReference { time, cpu })
    }))
}

/// With absolute paths, the home directory of whoever calls loadline, and a copy of what the build tool
/// writes there.
fn located_run(run: &RunSpec, app: &AppUnderTest) -> RunSpec {
    let absolute = |path: &PathBuf| -> PathBuf { app.directory.join(path).components().collect() };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    let mut copies: Vec<PathBuf> = run.copies.iter().map(absolute).collect();
    if app.image.is_none() {
        let written = build_home(&app.command, &app.env, home.as_deref());
        let written = written.map(|written| absolute(&written));
        copies.extend(written.filter(|home| home.is_dir() && !copies.contains(home)));
    }
    RunSpec {
        copies,
        file: run.file.as_ref().map(absolute),
        home,
        ..run.clone()
    }
}

/// Whether a trial is the last start of a proof as pods: its pod has the shipped layout. The PID
/// namespace shared by the containers of a pod is used for measuring in the other starts, and is
/// not shipped. Without it the end of a run would not be seen.
fn is_as_shipped(of: &Measurement<'_>, key: &TrialKey) -> bool {
    let starts = of.experiment.search.counted_starts();
    let is_last = starts > 0 && key.repeat.is_multiple_of(starts);
    let is_service = of.experiment.app.run.is_none();
    of.experiment.cluster.is_some() && is_service && key.purpose == TrialPurpose::Prove && is_last
}

/// Whether only the verdict of a trial counts once it misses: in a search of the smallest memory,
/// but not in its proof, because its requests are also judged as one sample. With prices the
/// distance from the SLO counts too; in a matrix every figure does.
fn gives_up(of: &Measurement<'_>, purpose: TrialPurpose) -> bool {
    use TrialPurpose::{Compare, Confirm, Matrix, Neighbour, Prove, Room, Search, Soak, Squeeze};
    let is_search = match purpose {
        Search | Confirm | Neighbour | Room | Squeeze => true,
        Prove | Matrix | Compare | Soak => false,
    };
    is_search && of.experiment.search.pricing.is_none() && !of.experiment.has_outages()
}

fn fill_environment(mut app: AppSpec) -> Result<(AppSpec, Vec<String>), RunError> {
    let env = match &mut app {
        AppSpec::Command { env, .. } => env,
        AppSpec::Image(image) => &mut image.env,
    };
    let FilledEnvironment { env: full, secrets } = references::fill_references(env)?;
    *env = full;
    Ok((app, secrets))
}

/// Keeps the random numbers of one dependency's toxics independent of the load's.
fn seed_of(trial: u64, dependency: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (trial, dependency).hash(&mut hasher);
    hasher.finish()
}

/// The seed of a trial's load: fresh starts are independent of each other, and the same repeat of
/// two configurations gets the same arrivals, which takes the luck of the draw out of a comparison.
fn load_seed(experiment: u64, purpose: TrialPurpose, repeat: u32, attempt: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (experiment, purpose, repeat, attempt).hash(&mut hasher);
    hasher.finish()
}
