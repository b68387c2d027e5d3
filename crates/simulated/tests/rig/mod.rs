//! What the tests of searches share: an experiment, a store, a runner on the simulated host.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::record::{Configuration, MachineDescription, TrialRecord};
use loadline_analysis::search::prices::PriceSearch;
use loadline_analysis::search::purchase::PricingTerms;
use loadline_analysis::search::{TrialAsk, TrialSearch};
use loadline_analysis::verdict::VerdictThresholds;
use loadline_experiment::Experiment;
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces, JdkVersion};
use loadline_protocol::Account;
use loadline_protocol::TrialProgress;
use loadline_runner::host::TrialHost;
use loadline_runner::runner::{Measurement, RunError, SearchRunner, TrialWatcher};
use loadline_runner::searches;
use loadline_runner::store::{NewResult, ResultKind, Store};
use loadline_simulated::{SimulatedHost, World};
use loadline_sizing::Vm;

#[derive(Debug)]
pub struct Watch {
    /// Trials that were begun.
    pub begun: u32,
    /// Records that were measured.
    pub measured: u32,
    /// Records that were there from before.
    pub reused: u32,
    /// Trials that ended without a record.
    pub dropped: u32,
    /// The slot of each trial, by its pair, in the order they began.
    pub pairs: Vec<(u32, usize)>,
    /// How long each trial took and whether it could be measured, in the order they ended.
    pub lengths: Vec<(Duration, bool)>,
    /// How long each slot measured.
    pub worked: BTreeMap<usize, Duration>,
    stop_after: u32,
}

/// Nothing seen yet, and never a stop.
pub fn watch() -> Watch {
    stop_after(u32::MAX)
}

/// Nothing seen yet; Ctrl-C comes after this many records.
pub fn stop_after(records: u32) -> Watch {
    Watch {
        begun: 0,
        measured: 0,
        reused: 0,
        dropped: 0,
        pairs: Vec::new(),
        lengths: Vec::new(),
        worked: BTreeMap::new(),
        stop_after: records,
    }
}

impl TrialWatcher for Watch {
    fn trial_begins(&mut self, slot: usize, ask: &TrialAsk, _: u32) {
        self.begun += 1;
        self.pairs.extend(ask.pair.map(|pair| (pair, slot)));
    }

    fn training_begins(&mut self, _: usize, _: &Configuration) {}

    fn slot_waits(&mut self, _: usize, _: &str) {}

    fn trial_progress(&mut self, _: usize, _: TrialProgress) {}

    fn trial_ends(&mut self, slot: Option<usize>, record: &TrialRecord) {
        match slot {
            Some(slot) => {
                self.measured += 1;
                *self.worked.entry(slot).or_default() += record.total_length();
                let is_measured = record.verdict.is_evidence();
                self.lengths.push((record.total_length(), is_measured));
            }
            None => self.reused += 1,
        }
    }

    fn slot_ends(&mut self, _: usize) {
        self.dropped += 1;
    }

    fn is_interrupted(&self) -> bool {
        self.measured >= self.stop_after
    }
}

/// An experiment with short phases; `tables` are its other tables.
pub fn experiment(tables: &str, rate: &str) -> Experiment {
    let text = format!(
        "slo = \"p99<50ms,errors<1%\"\n\
         app.command = [\"sh\"]\n\
         [load]\nurl = \"http://localhost:8080/\"\nrate = \"{rate}\"\nwarm-up = \"1s\"\nmeasure = \"5s\"\n\
         {tables}\n"
    );
    let here = Path::new("/");
    Experiment::from_file_text(&text, Path::new("test.toml"), here)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A directory for a store: in memory if possible, because a store waits for its disk at every
/// record and virtual time does not.
pub fn directory() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

/// A store in this directory and a new result in it.
pub fn store(directory: &Path) -> (Store, String) {
    let store = Store::open_or_create(directory).unwrap();
    let result = store
        .create_result(&NewResult {
            kind: ResultKind::Size,
            title: "test".to_owned(),
            experiment: String::new(),
            directory: "/".into(),
            command: Vec::new(),
            machine: MachineDescription::default(),
        })
        .unwrap();
    (store, result)
}

/// The search for the cheapest deployment of an experiment with prices.
pub fn prices(experiment: &Experiment) -> PriceSearch {
    let pricing: &PricingTerms = experiment.search.pricing.as_ref().unwrap();
    let machine = SimulatedHost::new(World::default(), 0, 1).host_machine();
    let prices = searches::price_search(experiment, pricing, &machine, &jdks(), &places());
    let mut prices = prices.unwrap();
    for variant in &mut prices.purchase.variants {
        let jdk = loadline_sizing::JdkRelease::for_hotspot(
            loadline_sizing::JavaVersion::from_feature(17),
        );
        variant.jdk = Some(jdk);
    }
    prices
}

/// Runs a search over one result.
pub fn run<S: TrialSearch>(
    host: &mut dyn TrialHost,
    watch: &mut Watch,
    (store, result): (&Store, &str),
    experiment: &Experiment,
    search: &S,
) -> Result<S::Answer, RunError> {
    let (jdks, places) = (jdks(), places());
    let of = Measurement {
        store,
        result: result.to_owned(),
        experiment,
        jdks: &jdks,
        places: &places,
        account: Account { uid: 1, gid: 1 },
        thresholds: VerdictThresholds::default(),
        reuse: Some("same".to_owned()),
        retries: false,
    };
    let budget = experiment.search.budget;
    let ends_at = budget.map(|budget| host.host_clock_ns() + budget.as_nanos() as u64);
    SearchRunner::new(of, host, watch)
        .ends_at(ends_at)
        .run(search)
}

/// Runs a search in a separate store; returns its answer, the events, and the virtual time it took.
pub fn answer<S: TrialSearch>(
    world: World,
    seed: u64,
    slots: usize,
    experiment: &Experiment,
    search: &S,
) -> (S::Answer, Watch, Duration) {
    let directory = directory();
    let (store, result) = store(directory.path());
    let mut host = SimulatedHost::new(world, seed, slots);
    let mut watch = watch();
    let at = (&store, result.as_str());
    let answer = run(&mut host, &mut watch, at, experiment, search).unwrap();
    (answer, watch, host.elapsed())
}

/// JDKs that nothing starts: the simulated host runs no program.
fn jdks() -> DetectedJdks {
    let jdk = |feature: &str| InstalledJdk {
        name: feature.to_owned(),
        home: PathBuf::from("/opt").join(feature),
        java: PathBuf::from("/opt").join(feature).join("bin/java"),
        version: JdkVersion::from_version_text(feature).expect("a version"),
        vendor: "openjdk".to_owned(),
        kind: Vm::HotSpot,
        modules: Vec::new(),
    };
    DetectedJdks {
        jdks: ["17", "25"].map(jdk).into(),
        unusable: Vec::new(),
    }
}

fn places() -> JdkPlaces {
    JdkPlaces::of_process()
}
