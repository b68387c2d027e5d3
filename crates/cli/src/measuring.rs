//! What `run`, `size` and `resume` share: preflight, the machine's lock, the store, the runner.
//!
//! Owns the order: check the experiment against this machine, take the lock, sweep leftovers,
//! open the store, begin (or go on with) a result, run, note how it ended.

mod account;
mod here;
mod preflight;
mod refusals;

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::abreast::Standing;
use loadline_analysis::record::{Machine, Version};
use loadline_analysis::search::Search;
use loadline_analysis::search::abreast::Abreast;
use loadline_analysis::verdict::Thresholds;
use loadline_engine::commit;
use loadline_engine::experiment::{Experiment, Slots};
use loadline_engine::ground::{changed, fingerprint};
use loadline_engine::host::Host;
use loadline_engine::lock::MachineLock;
use loadline_engine::runner::{Measurement, RunError, Runner};
use loadline_engine::searches;
use loadline_engine::store::{NewResult, ResultKind, ResultRow, Status as ResultStatus, Store};
use loadline_host::jvm_words;
use loadline_jvm::detect::{Found, Jdk, Places};
use loadline_kubernetes::{Demand, Kubernetes};
use loadline_report::format;

use crate::commands::RESULT;
use crate::error::{Error, ErrorKind};
use crate::experiment::{Given, refused};
use crate::images;
use crate::notify::Webhook;
use crate::signals::Signals;
use crate::ui::Progress;

pub use account::{account, sudo_caller};
use here::{apart, enter_namespace, host, lock, try_machine};
use preflight::preflight;
use refusals::run_refused;
pub use refusals::{cache_refused, command_refused, store_refused};

/// Flags of every command that measures.
#[derive(Args, Debug, Default, Clone)]
pub struct MeasureFlags {
    /// Where results are kept [default: /var/lib/loadline for root, else ~/.local/state/loadline]
    #[arg(long, value_name = "DIR", help_heading = RESULT)]
    pub state: Option<PathBuf>,

    /// Wait until no other loadline measures, instead of refusing
    #[arg(long, help_heading = RESULT)]
    pub wait: bool,

    /// Use trials of earlier results where nothing that matters changed (command and its files,
    /// load, SLO, limits, options, machine, JDK, loadline); the result names each. Proofs are
    /// always run
    #[arg(long, help_heading = RESULT)]
    pub reuse: bool,

    /// Tell this webhook how the run ended: a URL, {env:NAME} or @FILE that hold it
    #[arg(long, value_name = "URL", help_heading = RESULT)]
    pub notify: Option<String>,
}

/// The state directory of these flags.
pub fn state_directory(flag: Option<&Path>) -> PathBuf {
    flag.map(Path::to_owned)
        .unwrap_or_else(Store::default_directory)
}

/// Opens the store.
///
/// # Errors
/// With what to do about it.
pub fn open_store(flag: Option<&Path>) -> Result<Store, Error> {
    Store::open(&state_directory(flag)).map_err(|e| store_refused(&e))
}

/// The same for commands that only look: the directory need not be writable.
pub fn open_store_to_read(flag: Option<&Path>) -> Result<Store, Error> {
    Store::open_to_read(&state_directory(flag)).map_err(|e| store_refused(&e))
}

/// What would refuse the measurement before its first trial, but for the machine: the program, its
/// JDK, its image and their engine, files of the load, dependencies.
///
/// # Errors
/// As [`Measuring::begin`].
pub fn can_run(experiment: &mut Experiment) -> Result<(), Error> {
    let (jdks, places) = java();
    images::find(experiment)?;
    preflight(experiment, &jdks, &places)
}

/// Everything that a measurement holds while it runs.
pub struct Measuring {
    /// Where results are kept.
    pub store: Store,
    /// The result.
    pub result: String,
    /// What is measured.
    pub experiment: Experiment,
    /// The command that made it.
    kind: ResultKind,
    reuse: Option<String>,
    /// Whether the result had ended: what could not be measured is tried again.
    retries: bool,
    signals: Signals,
    webhook: Option<Webhook>,
    /// Where trials run.
    pub host: Box<dyn Host>,
    /// JDKs of this machine.
    pub jdks: Found,
    /// Where programs are looked for.
    pub places: Places,
    _lock: Option<MachineLock>,
}

impl Measuring {
    /// Begins a new result.
    ///
    /// # Errors
    /// When the experiment does not fit this machine, or another loadline measures.
    pub fn begin(mut given: Given, kind: ResultKind, flags: &MeasureFlags) -> Result<Self, Error> {
        let webhook = flags.notify.as_deref().map(Webhook::new).transpose()?;
        let (jdks, places) = java();
        let version = version(&given);
        if given.experiment.cluster.is_some() {
            let java = (jdks, places);
            return Self::begin_in_cluster(given, kind, flags, java, (webhook, version));
        }
        images::find(&mut given.experiment)?;
        preflight(&given.experiment, &jdks, &places)?;
        if let Some(host) = apart(&given.experiment)? {
            let signals = Signals::watch()?;
            let held = Held {
                lock: Some(lock(flags.wait, &signals)?),
                store: open_store(flags.state.as_deref())?,
                signals,
                webhook,
                host,
                java: (jdks, places),
                version,
            };
            return held.begin(given, kind, flags);
        }
        // Nothing is stored before it can run; but in the namespace that others than root enter,
        // root's files and those of others look alike, so theirs is opened before.
        let is_root = rustix::process::geteuid().is_root();
        let state = || open_store(flags.state.as_deref());
        let early = (!is_root).then(state).transpose()?;
        enter_namespace()?;
        let signals = Signals::watch()?;
        let lock = lock(flags.wait, &signals)?;
        let store = early.map_or_else(state, Ok)?;
        let host = host(&store, &given.experiment)?;
        try_machine(&host)?;
        let held = Held {
            store,
            signals,
            webhook,
            host: Box::new(host),
            java: (jdks, places),
            lock: Some(lock),
            version,
        };
        held.begin(given, kind, flags)
    }

    /// The same where trials are pods: nothing is measured here, so nothing is locked.
    fn begin_in_cluster(
        mut given: Given,
        kind: ResultKind,
        flags: &MeasureFlags,
        java: (Found, Places),
        (webhook, version): (Option<Webhook>, Option<Version>),
    ) -> Result<Self, Error> {
        let signals = Signals::watch()?;
        let host = cluster(&mut given.experiment)?;
        preflight(&given.experiment, &java.0, &java.1)?;
        let held = Held {
            store: open_store(flags.state.as_deref())?,
            signals,
            webhook,
            host,
            java,
            lock: None,
            version,
        };
        held.begin(given, kind, flags)
    }

    /// Goes on with a result that was stopped.
    ///
    /// # Errors
    /// As [`Measuring::begin`].
    pub fn again(
        row: &ResultRow,
        store: Store,
        wait: bool,
        notify: Option<&str>,
    ) -> Result<Self, Error> {
        let webhook = notify.map(Webhook::new).transpose()?;
        let mut experiment = experiment_of(row)?;
        let (jdks, places) = java();
        if let (Some(wanted), Some(was)) = (&mut experiment.cluster, &row.machine.cluster) {
            // What was counted when it was begun stays so.
            wanted.slots = Slots::Number(was.slots);
        }
        let mut is_here = false;
        let elsewhere = match experiment.cluster {
            Some(_) => Some(cluster(&mut experiment)?),
            None => {
                images::find(&mut experiment)?;
                is_here = true;
                apart(&experiment)?
            }
        };
        if elsewhere.is_none() {
            enter_namespace()?;
        }
        preflight(&experiment, &jdks, &places)?;
        let signals = Signals::watch()?;
        // What a cluster measures disturbs nothing here.
        let lock = is_here.then(|| lock(wait, &signals)).transpose()?;
        let host: Box<dyn Host> = match elsewhere {
            Some(host) => host,
            None => Box::new(host(&store, &experiment)?),
        };
        let now = machine(host.machine(), &experiment, &jdks);
        let ground = fingerprint(&experiment, &now).ok();
        if experiment.cluster.is_some() && row.machine.cluster.is_none() {
            // It was begun to be measured in the cluster, and nothing of it has been.
            let version = row.machine.version.clone();
            let now = Machine {
                version,
                ..now.clone()
            };
            let noted = store.stand_on(&row.id, &now, ground.as_deref());
            noted.map_err(|e| store_refused(&e))?;
        }
        let row = &store.result(&row.id).map_err(|e| store_refused(&e))?;
        let begun = store.ground(&row.id).map_err(|e| store_refused(&e))?;
        if let Some(why) = changed((&row.machine, &now), begun.as_deref(), ground.as_deref()) {
            return Err(Error::new(ErrorKind::Environment, why)
                .hint("begin a new result with the same experiment: loadline show --experiment RESULT > exp.toml"));
        }
        store
            .set_status(&row.id, ResultStatus::Running, None)
            .map_err(|e| store_refused(&e))?;
        Ok(Self {
            store,
            result: row.id.clone(),
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

    /// A progress display for so many trials.
    pub fn progress(&self, expected: Option<u32>) -> Progress {
        Progress::new(
            self.signals.clone(),
            expected,
            loadline_engine::agenda::trial_length(&self.experiment),
        )
    }

    /// Runs `work` with a runner and notes in the store how it ended.
    ///
    /// # Errors
    /// The runner's error, as the command line reports it.
    pub fn run<T>(
        &mut self,
        progress: &mut Progress,
        work: impl FnOnce(&mut Runner<'_>) -> Result<T, RunError>,
    ) -> Result<T, Error> {
        let of = Measurement {
            store: &self.store,
            result: self.result.clone(),
            experiment: &self.experiment,
            jdks: &self.jdks,
            places: &self.places,
            account: account(&self.experiment),
            thresholds: Thresholds::default(),
            reuse: self.reuse.clone(),
            retries: self.retries,
        };
        let mut runner = Runner::new(of, self.host.as_mut(), progress);
        work(&mut runner).map_err(|error| {
            let status = if matches!(error, RunError::Interrupted) {
                ResultStatus::Interrupted
            } else {
                ResultStatus::Failed
            };
            // The first error is the one to report; a store that fails now failed before.
            let _ = self.ended(status, None);
            run_refused(&error, &self.signals, (self.kind, &self.result))
        })
    }

    /// Runs a search to its answer.
    ///
    /// # Errors
    /// As [`Measuring::run`].
    pub fn search<S: Search>(
        &mut self,
        search: &S,
        expected: Option<u32>,
    ) -> Result<S::Answer, Error> {
        let mut progress = self.progress(expected);
        let abreast = searches::abreast(&self.experiment);
        let is_compared = matches!(self.kind, ResultKind::Size | ResultKind::Run);
        self.run(&mut progress, |runner| {
            match &abreast {
                None => {}
                Some(abreast) if is_compared => side_by_side(runner, abreast)?,
                // A few starts are not worth the comparison, and without it none run at once.
                Some(_) => runner.at_most(1),
            }
            runner.run(search)
        })
    }

    /// Notes the end and the outcome.
    ///
    /// # Errors
    /// When the store fails.
    pub fn done(&self, outcome: Option<&str>) -> Result<(), Error> {
        self.ended(ResultStatus::Done, outcome)
    }

    /// Notes that there is no answer because something could not be measured, and what is left.
    ///
    /// # Errors
    /// When the store fails.
    pub fn failed(&self, left: Option<&str>) -> Result<(), Error> {
        self.ended(ResultStatus::Failed, left)
    }

    /// Notes it in the store, then tells whoever asked to be told.
    fn ended(&self, status: ResultStatus, outcome: Option<&str>) -> Result<(), Error> {
        self.store
            .set_status(&self.result, status, outcome)
            .map_err(|e| store_refused(&e))?;
        if let Some(webhook) = &self.webhook {
            webhook.tell(&self.store, &self.result);
        }
        Ok(())
    }
}

/// What a measurement has before it has a result.
struct Held {
    store: Store,
    signals: Signals,
    webhook: Option<Webhook>,
    host: Box<dyn Host>,
    java: (Found, Places),
    lock: Option<MachineLock>,
    version: Option<Version>,
}

impl Held {
    fn begin(
        self,
        given: Given,
        kind: ResultKind,
        flags: &MeasureFlags,
    ) -> Result<Measuring, Error> {
        let mut machine = machine(self.host.machine(), &given.experiment, &self.java.0);
        // A file that cannot be read now is told by the trial that needs it.
        let ground = fingerprint(&given.experiment, &machine).ok();
        // Trials stand on files; what their version is called is no ground.
        machine.version = self.version;
        let command: Vec<String> = std::env::args().collect();
        let new = NewResult {
            kind,
            title: given.title,
            experiment: given.text,
            directory: given.experiment.app.directory.clone(),
            command: loadline_report::redact::command(&command),
            machine,
        };
        let result = self
            .store
            .create_result(&new)
            .map_err(|e| store_refused(&e))?;
        if let Some(ground) = &ground {
            let noted = self.store.set_ground(&result, ground);
            noted.map_err(|e| store_refused(&e))?;
        }
        detail!(
            "result {result} in {}; raw events of each trial in {}",
            self.store.directory().display(),
            self.store.log("TRIAL").display()
        );
        Ok(Measuring {
            store: self.store,
            result,
            experiment: given.experiment,
            kind,
            reuse: ground.filter(|_| flags.reuse),
            retries: false,
            signals: self.signals,
            webhook: self.webhook,
            host: self.host,
            jdks: self.java.0,
            places: self.java.1,
            _lock: self.lock,
        })
    }
}

/// What is known of the version before anything is measured: later, in a namespace of loadline's own,
/// files have other owners. An image that no file names has nothing to do with the directory in which
/// loadline is called.
pub fn version(given: &Given) -> Option<Version> {
    let app = &given.experiment.app;
    let called_in = app.image.is_none().then_some(&app.directory);
    let version = Version {
        name: given.experiment.version.clone(),
        commit: given
            .lies_in
            .as_ref()
            .or(called_in)
            .and_then(|d| commit::of(d)),
    };
    (version != Version::default()).then_some(version)
}

/// The cluster of an experiment, after what killed loadlines left is gone; the image is known then.
fn cluster(experiment: &mut Experiment) -> Result<Box<dyn Host>, Error> {
    let image = images::only(experiment)?;
    let account = account(experiment);
    let wanted = experiment
        .cluster
        .clone()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the experiment names no cluster"))?;
    if wanted.slots == Slots::Auto && wanted.share_nodes.get() > 1 {
        let problem = "--slots auto and --share-nodes: auto counts nodes, one trial on each";
        return Err(Error::new(ErrorKind::Usage, problem).hint("say how many: --slots 6"));
    }
    if wanted.slots == Slots::Auto && wanted.generators.is_some() {
        let problem =
            "--slots auto and --generators: auto would count the nodes of the generators, too";
        return Err(Error::new(ErrorKind::Usage, problem).hint("say how many: --slots 6"));
    }
    let largest = searches::largest(experiment);
    let load = searches::load_memory(experiment);
    let host = Kubernetes::new(&wanted, &image, account, Demand { largest, load });
    let host = host.map_err(|e| Error::refused(&e))?;
    if let (Slots::Auto, Some(size)) = (wanted.slots, largest) {
        let nodes = format::count(host.slots(), "node");
        talk!(
            "slots: {}, on {nodes} of one kind with room for {size}",
            host.slots()
        );
    }
    images::found_in_cluster(experiment, &host)?;
    Ok(Box::new(host))
}

/// The experiment of a stored result, with the directory it ran in.
///
/// # Errors
/// When the stored text is not understood (an older or newer loadline wrote it).
pub fn experiment_of(row: &ResultRow) -> Result<Experiment, Error> {
    let parsed = Experiment::parse(
        &row.experiment,
        Path::new("stored experiment"),
        &row.directory,
    );
    let mut experiment = parsed.map_err(|e| refused(&e))?;
    experiment.app.directory = row.directory.clone();
    Ok(experiment)
}

fn java() -> (Found, Places) {
    let places = Places::of_process();
    (Found::look(&places), places)
}

/// Lets trials run at once where they tell what one alone tells, else one after the other.
fn side_by_side(runner: &mut Runner<'_>, abreast: &Abreast) -> Result<(), RunError> {
    let standing = runner.run(abreast)?;
    let sentence = standing.sentence().unwrap_or_default();
    let then = match standing {
        Standing::Alike => "several run at once",
        _ => "one runs after the other, on the CPUs that one had",
    };
    if standing != Standing::Alike {
        runner.at_most(1);
    }
    talk!("--slots: {sentence}; {then}");
    Ok(())
}

fn machine(mut machine: Machine, experiment: &Experiment, jdks: &Found) -> Machine {
    let mut wanted: Vec<String> = experiment
        .configurations()
        .iter()
        .filter_map(|c| c.jdk.clone())
        .collect();
    wanted.sort();
    wanted.dedup();
    let used: Vec<_> = match wanted.as_slice() {
        [] => jdks.jdks.first().cloned().into_iter().collect(),
        names => names.iter().filter_map(|n| jdks.select(n).ok()).collect(),
    };
    machine.jdks = used.iter().map(in_words).collect();
    machine.loadline = env!("CARGO_PKG_VERSION").to_owned();
    let image = experiment.app.image.as_ref();
    if let Some(found) = image.and_then(|image| image.found.as_ref()) {
        machine.jdks = found.jdk.iter().map(named).collect();
        machine.image = Some(images::recorded(found));
    }
    for found in experiment
        .level_images
        .iter()
        .filter_map(|i| i.found.as_ref())
    {
        let jdk = found.jdk.as_ref().map(named);
        let new = jdk.filter(|jdk| !machine.jdks.contains(jdk));
        machine.jdks.extend(new);
        machine.level_images.push(images::recorded(found));
    }
    machine
}

/// A JDK by what its files say: that of an image is not started on this machine.
fn named(jdk: &Jdk) -> String {
    format!("{} {} {}", jdk.name, jdk.vendor, jdk.version.full)
}

/// A JDK of this machine, with the build of its virtual machine where no file has it.
fn in_words(jdk: &Jdk) -> String {
    let name = named(jdk);
    match jvm_words::words(jdk) {
        Some(words) => format!("{name} ({} {})", jdk.kind, words.vm_build),
        None => name,
    }
}
