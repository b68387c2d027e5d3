//! What `run`, `size` and `resume` share: preflight, the machine's lock, the store, the runner.
//!
//! Owns the order: check the experiment against this machine, take the lock, sweep leftovers,
//! open the store, begin (or go on with) a result, run, note how it ended.

mod account;
mod here;
mod preflight;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use loadline_analysis::record::{ApplicationVersion, MachineDescription, TrialRecord};
use loadline_analysis::search::TrialSearch;
use loadline_analysis::verdict::VerdictThresholds;
use loadline_experiment::{Experiment, Slots};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_kubernetes::{KubernetesHost, NodeDemand, check_context};
use loadline_report::format;
use loadline_runner::agenda::Agenda;
use loadline_runner::consumer::end_on_out_of_memory;
use loadline_runner::ground::{explain_change, fingerprint};
use loadline_runner::heaps::check_heaps;
use loadline_runner::host::TrialHost;
use loadline_runner::lock::MachineLock;
use loadline_runner::runner::{Measurement, RunError, SearchRunner};
use loadline_runner::store::{NewResult, ResultKind, ResultRow, ResultStatus, Store};
use loadline_runner::{commit, searches};
use loadline_trial::jvm_words;
use loadline_trial::oci::image::EngineImage;

use crate::called::called_words;
use crate::enough::refuse_missing_cpus;
use crate::error::{Error, run_refused};
use crate::experiment::LoadedExperiment;
use crate::notify::Webhook;
use crate::output::RESULT;
use crate::signals::Signals;
use crate::ui::ProgressDisplay;
use crate::{called, images};

pub use account::{account, sudo_caller};
use here::{enter_namespace, lock_machine, prepare_engine_apart, prepare_host, try_machine};
use preflight::preflight;

/// Flags of every command that measures.
#[derive(Args, Debug, Default, Clone)]
pub struct MeasureFlags {
    /// Where results are kept [default: /var/lib/loadline for root, else ~/.local/state/loadline]
    #[arg(long, value_name = "DIR", help_heading = RESULT)]
    pub state: Option<PathBuf>,

    /// Wait while another loadline is measuring, instead of refusing
    #[arg(long, help_heading = RESULT)]
    pub wait: bool,

    /// Reuse trials of earlier results if nothing that matters changed (command and its files,
    /// load, SLO, limits, options, machine, JDK, loadline); the result names each one. Proofs are
    /// always run
    #[arg(long, help_heading = RESULT)]
    pub reuse: bool,

    /// Webhook to send the outcome of the run to: a URL, or {env:NAME} or @FILE containing it
    #[arg(long, value_name = "URL", help_heading = RESULT)]
    pub notify: Option<String>,
}

pub fn state_directory(flag: Option<&Path>) -> PathBuf {
    flag.map_or_else(Store::default_directory, Path::to_owned)
}

fn check_state_directory(flag: Option<&Path>) -> Result<(), Error> {
    let hint = "give another one: --state DIR";
    called::must_be_text(&state_directory(flag), "the state directory", hint)
}

pub fn open_store(flag: Option<&Path>) -> Result<Store, Error> {
    check_state_directory(flag)?;
    Store::open_or_create(&state_directory(flag)).map_err(Error::from)
}

pub fn open_store_to_read(flag: Option<&Path>) -> Result<Store, Error> {
    Store::open_to_read(&state_directory(flag)).map_err(Error::from)
}

/// What would refuse the measurement before its first trial, but for the machine: the program, its
/// JDK, its image and their engine, files of the load, dependencies.
///
/// # Errors
/// As [`MeasuringSession::begin_result`].
pub fn can_plan(experiment: &mut Experiment, is_search: bool) -> Result<(), Error> {
    // The nodes pull its images, and have JDKs of their own.
    if let Some(cluster) = &experiment.cluster {
        let named = cluster.context.as_deref();
        return match named.map(|name| check_context(Some(name))) {
            Some(Err(refusal)) => Err(Error::from_refusal(&refusal)),
            Some(Ok(())) | None => Ok(()),
        };
    }
    let (jdks, places) = find_java();
    let mut missing = None;
    for image in experiment.images() {
        let is_local = EngineImage::is_local(&image.reference, image.engine);
        let is_local = is_local.map_err(Error::from_wrong_input)?;
        missing = missing.or((!is_local).then(|| image.reference.clone()));
    }
    let Some(reference) = missing else {
        images::find_images(experiment)?;
        end_on_out_of_memory(experiment, &jdks, &places);
        preflight(experiment, &jdks, &places)?;
        return if is_search {
            check_heap_options(experiment, &jdks, &places)
        } else {
            Ok(())
        };
    };
    talk!(
        "note: the image {reference} is not on this machine yet, so it was not checked; the measurement pulls it"
    );
    Ok(())
}

/// Refuses heap options that a search cannot use; a note names options that stay.
fn check_heap_options(
    experiment: &Experiment,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<(), Error> {
    if experiment.search.pricing.is_some() {
        return Ok(());
    }
    let bases = searches::bases(experiment);
    let checked = check_heaps(experiment, &bases, jdks, places).map_err(Error::from_wrong_input)?;
    if let Some(note) = checked {
        talk!("{note}");
    }
    Ok(())
}

pub struct MeasuringSession {
    pub store: Store,
    pub result: String,
    pub experiment: Experiment,
    kind: ResultKind,
    reuse: Option<String>,
    /// Whether the result had ended: what could not be measured is tried again.
    retries: bool,
    /// When its last trial has to end, by the host's clock, ns.
    ends_at: Option<u64>,
    signals: Signals,
    webhook: Option<Webhook>,
    pub host: Box<dyn TrialHost>,
    pub jdks: DetectedJdks,
    pub places: JdkPlaces,
    _lock: Option<MachineLock>,
}

impl MeasuringSession {
    pub fn begin_result(
        mut given: LoadedExperiment,
        kind: ResultKind,
        flags: &MeasureFlags,
    ) -> Result<Self, Error> {
        let webhook = flags.notify.as_deref().map(Webhook::new).transpose()?;
        // Before the lock: wrong arguments are wrong whoever else measures.
        check_state_directory(flags.state.as_deref())?;
        let (jdks, places) = find_java();
        let version = version(&given);
        let place = prepare_place(&mut given.experiment, kind, flags, (&jdks, &places))?;
        let mut machine = machine_with_jdks(place.host.host_machine(), &given.experiment, &jdks);
        // The trial that needs an unreadable file reports it.
        let ground = fingerprint(&given.experiment, &machine).ok();
        // Trials depend on files; the version's name is no part of the ground.
        machine.version = version;
        let new = NewResult {
            kind,
            title: given.title,
            experiment: given.text,
            directory: given.experiment.app.directory.clone(),
            command: loadline_report::redact::redact_command(&called_words()),
            machine,
        };
        let result = place.store.create_result(&new)?;
        if let Some(ground) = &ground {
            place.store.set_ground(&result, ground)?;
        }
        let at = place.store.state_directory().display();
        let log = place.store.trial_log_path("TRIAL");
        let log = log.display();
        detail!("result {result} in {at}; raw events of each trial in {log}");
        Ok(Self {
            store: place.store,
            result,
            kind,
            reuse: ground.filter(|_| flags.reuse),
            retries: false,
            ends_at: end_of_budget(&given.experiment, kind, place.host.as_ref()),
            experiment: given.experiment,
            signals: place.signals,
            webhook,
            host: place.host,
            jdks,
            places,
            _lock: place.lock,
        })
    }

    pub fn resume_result(
        row: &ResultRow,
        store: Store,
        wait: bool,
        notify: Option<&str>,
    ) -> Result<Self, Error> {
        let webhook = notify.map(Webhook::new).transpose()?;
        let mut experiment = experiment_of(row)?;
        let (jdks, places) = find_java();
        if let (Some(wanted), Some(was)) = (&mut experiment.cluster, &row.machine.cluster) {
            // The number of slots counted at the begin stays.
            wanted.slots = Slots::Number(was.slots);
        }
        let mut is_here = false;
        let elsewhere = match experiment.cluster {
            Some(_) => Some(prepare_cluster(&mut experiment)?),
            None => {
                images::find_images(&mut experiment)?;
                end_on_out_of_memory(&mut experiment, &jdks, &places);
                is_here = true;
                prepare_engine_apart(&experiment)?
            }
        };
        if elsewhere.is_none() {
            enter_namespace()?;
        }
        preflight(&experiment, &jdks, &places)?;
        let signals = Signals::watch_signals()?;
        // What a cluster measures disturbs nothing here.
        let lock = is_here.then(|| lock_machine(wait, &signals)).transpose()?;
        let host: Box<dyn TrialHost> = match elsewhere {
            Some(host) => host,
            None => Box::new(prepare_host(&store, &experiment)?),
        };
        let now = machine_with_jdks(host.host_machine(), &experiment, &jdks);
        let ground = fingerprint(&experiment, &now).ok();
        if experiment.cluster.is_some() && row.machine.cluster.is_none() {
            // It was to be measured in the cluster, and no trial has run.
            let mut now = now.clone();
            now.version.clone_from(&row.machine.version);
            store.stand_on(&row.id, &now, ground.as_deref())?;
        }
        let row = &store.result_by_prefix(&row.id)?;
        let begun = store.ground_fingerprint(&row.id)?;
        let grounds = (begun.as_deref(), ground.as_deref());
        if let Some(why) = explain_change((&row.machine, &now), grounds.0, grounds.1) {
            let hint = "start a new result with the same experiment: loadline show --experiment RESULT > exp.toml";
            return Err(Error::environment(why).with_hint(hint));
        }
        store.set_status(&row.id, ResultStatus::Running, None)?;
        Ok(Self {
            store,
            result: row.id.clone(),
            ends_at: end_of_budget(&experiment, row.kind, host.as_ref()),
            experiment,
            kind: row.kind,
            reuse: None,
            retries: !matches!(
                row.status,
                ResultStatus::Running | ResultStatus::Interrupted
            ),
            signals,
            webhook,
            host,
            jdks,
            places,
            _lock: lock,
        })
    }

    pub fn progress_display(&self, expected: Option<u32>) -> ProgressDisplay {
        let length = loadline_runner::agenda::trial_length(&self.experiment);
        ProgressDisplay::new(self.signals.clone(), expected, length)
    }

    /// Runs `work` with a runner and notes in the store how it ended.
    /// Errors: The runner's error, as the command line reports it.
    pub fn run<T>(
        &mut self,
        progress: &mut ProgressDisplay,
        work: impl FnOnce(&mut SearchRunner<'_>) -> Result<T, RunError>,
    ) -> Result<T, Error> {
        let of = Measurement {
            store: &self.store,
            result: self.result.clone(),
            experiment: &self.experiment,
            jdks: &self.jdks,
            places: &self.places,
            account: account(&self.experiment),
            thresholds: VerdictThresholds::default(),
            reuse: self.reuse.clone(),
            retries: self.retries,
        };
        let mut runner = SearchRunner::new(of, self.host.as_mut(), progress).ends_at(self.ends_at);
        work(&mut runner).map_err(|error| {
            let status = match error {
                RunError::Interrupted => ResultStatus::Interrupted,
                _ => ResultStatus::Failed,
            };
            // The first error is the one to report; a store that fails now failed before.
            let _ = self.note_end(status, None);
            run_refused(&error, &self.signals, (self.kind, &self.result))
        })
    }

    pub fn search<S: TrialSearch>(
        &mut self,
        search: &S,
        expected: Option<u32>,
    ) -> Result<S::Answer, Error> {
        let mut progress = self.progress_display(expected);
        self.run(&mut progress, |runner| runner.run(search))
    }

    /// Runs all trials of a matrix and notes that the result is done.
    pub fn run_agenda(&mut self, agenda: &Agenda) -> Result<Vec<Arc<TrialRecord>>, Error> {
        let records = self.search(&agenda.matrix, Some(agenda.trial_count()))?;
        self.note_done()?;
        Ok(records)
    }

    pub fn note_done(&self) -> Result<(), Error> {
        self.note_end(ResultStatus::Done, None)
    }

    /// Notes the end; a failure because a trial could not be measured leaves bounds as its outcome.
    pub fn note_end(&self, status: ResultStatus, outcome: Option<&str>) -> Result<(), Error> {
        self.store.set_status(&self.result, status, outcome)?;
        if let Some(webhook) = &self.webhook {
            webhook.tell_status(&self.store, &self.result);
        }
        Ok(())
    }
}

struct MeasuringPlace {
    store: Store,
    signals: Signals,
    host: Box<dyn TrialHost>,
    lock: Option<MachineLock>,
}

fn prepare_place(
    experiment: &mut Experiment,
    kind: ResultKind,
    flags: &MeasureFlags,
    (jdks, places): (&DetectedJdks, &JdkPlaces),
) -> Result<MeasuringPlace, Error> {
    let state = || open_store(flags.state.as_deref());
    if experiment.cluster.is_some() {
        let signals = Signals::watch_signals()?;
        let host = prepare_cluster(experiment)?;
        preflight(experiment, jdks, places)?;
        return Ok(MeasuringPlace {
            store: state()?,
            signals,
            host,
            lock: None,
        });
    }
    images::find_images(experiment)?;
    if kind == ResultKind::Size {
        refuse_missing_cpus(experiment)?;
    }
    end_on_out_of_memory(experiment, jdks, places);
    preflight(experiment, jdks, places)?;
    if kind == ResultKind::Size {
        check_heap_options(experiment, jdks, places)?;
    }
    let apart = prepare_engine_apart(experiment)?;
    // Nothing is stored before it can run; but in the namespace that others than root enter,
    // root's files and those of others look alike, so theirs is opened before.
    let is_early = apart.is_none() && !rustix::process::geteuid().is_root();
    let early = is_early.then(state).transpose()?;
    if apart.is_none() {
        enter_namespace()?;
    }
    let signals = Signals::watch_signals()?;
    let lock = Some(lock_machine(flags.wait, &signals)?);
    let store = early.map_or_else(state, Ok)?;
    let host = match apart {
        Some(host) => host,
        None => {
            let host = prepare_host(&store, experiment)?;
            try_machine(&host)?;
            Box::new(host)
        }
    };
    Ok(MeasuringPlace {
        store,
        signals,
        host,
        lock,
    })
}

/// Its budget counts from when the machine is free; `resume` gets as much again.
fn end_of_budget(experiment: &Experiment, kind: ResultKind, host: &dyn TrialHost) -> Option<u64> {
    let budget = experiment.search.budget;
    let budget = budget.filter(|_| kind == ResultKind::Size)?;
    Some(host.host_clock_ns() + budget.as_nanos() as u64)
}

/// The version before anything is measured: later, in loadline's own user namespace, files have
/// other owners. An image has no relation to the working directory.
pub fn version(given: &LoadedExperiment) -> Option<ApplicationVersion> {
    let app = &given.experiment.app;
    let called_in = app.image.is_none().then_some(&app.directory);
    let lies_in = given.lies_in.as_ref().or(called_in);
    let version = ApplicationVersion {
        name: given.experiment.version.clone(),
        commit: lies_in.and_then(|directory| commit::find_commit(directory)),
    };
    (version != ApplicationVersion::default()).then_some(version)
}

/// The cluster of an experiment, after what killed loadlines left is gone; the image is known then.
fn prepare_cluster(experiment: &mut Experiment) -> Result<Box<dyn TrialHost>, Error> {
    let image = images::only_image(experiment)?;
    let account = account(experiment);
    let wanted = experiment.cluster.clone();
    let wanted = wanted.ok_or_else(|| Error::internal("the experiment names no cluster"))?;
    if wanted.slots == Slots::Auto && wanted.share_nodes.get() > 1 {
        let problem = "--slots auto and --share-nodes: auto counts nodes, one trial on each";
        return Err(Error::usage(problem).with_hint("set a number: --slots 6"));
    }
    if wanted.slots == Slots::Auto && wanted.generators.is_some() {
        let problem =
            "--slots auto and --generators: auto would count the nodes of the generators, too";
        return Err(Error::usage(problem).with_hint("set a number: --slots 6"));
    }
    let largest = searches::largest_trial_size(experiment);
    let load = searches::load_memory(experiment);
    let host = KubernetesHost::new(&wanted, &image, account, NodeDemand { largest, load })?;
    if let (Slots::Auto, Some(size)) = (wanted.slots, largest) {
        let slots = host.slot_count();
        let nodes = format::count_of(slots, "node");
        talk!("slots: {slots}, on {nodes} of one kind with room for {size}");
    }
    images::found_in_cluster(experiment, &host)?;
    Ok(Box::new(host))
}

/// The experiment of a stored result, with the directory it ran in.
/// Errors: When the stored text is not understood (an older or newer loadline wrote it).
pub fn experiment_of(row: &ResultRow) -> Result<Experiment, Error> {
    let name = Path::new("stored experiment");
    let parsed = Experiment::from_record_text(&row.experiment, name, &row.directory);
    let mut experiment = parsed?;
    experiment.app.directory = row.directory.clone();
    Ok(experiment)
}

fn find_java() -> (DetectedJdks, JdkPlaces) {
    let places = JdkPlaces::of_process();
    (DetectedJdks::scan_places(&places), places)
}

fn machine_with_jdks(
    mut machine: MachineDescription,
    experiment: &Experiment,
    jdks: &DetectedJdks,
) -> MachineDescription {
    let configurations = experiment.configurations();
    let wanted = configurations.iter().filter_map(|c| c.jdk.clone());
    let mut wanted: Vec<String> = wanted.collect();
    wanted.sort();
    wanted.dedup();
    let used: Vec<_> = match wanted.as_slice() {
        [] => jdks.jdks.first().cloned().into_iter().collect(),
        names => names.iter().filter_map(|n| jdks.select(n).ok()).collect(),
    };
    machine.jdks = used.iter().map(describe_jdk).collect();
    machine.loadline = env!("CARGO_PKG_VERSION").to_owned();
    let image = experiment.app.image.as_ref();
    if let Some(found) = image.and_then(|image| image.found.as_ref()) {
        machine.jdks = found.jdk.iter().map(describe_jdk_files).collect();
        machine.image = Some(images::image_record(found));
    }
    let of_levels = experiment.level_images.iter();
    for found in of_levels.filter_map(|image| image.found.as_ref()) {
        let jdk = found.jdk.as_ref().map(describe_jdk_files);
        let new = jdk.filter(|jdk| !machine.jdks.contains(jdk));
        machine.jdks.extend(new);
        machine.level_images.push(images::image_record(found));
    }
    machine
}

fn describe_jdk_files(jdk: &InstalledJdk) -> String {
    format!("{} {} {}", jdk.name, jdk.vendor, jdk.version.full)
}

fn describe_jdk(jdk: &InstalledJdk) -> String {
    let name = describe_jdk_files(jdk);
    match jvm_words::openj9_words(jdk) {
        Some(words) => format!("{name} ({} {})", jdk.kind, words.vm_build),
        None => name,
    }
}
