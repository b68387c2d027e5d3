//! The search for the cheapest deployment through session, store and the simulated backend.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Machine, Purpose, TrialRecord};
use loadline_analysis::search::cheapest::End;
use loadline_analysis::verdict::Thresholds;
use loadline_engine::backend::simulated::{Simulated, World};
use loadline_engine::backend::{Account, Observer, Progress};
use loadline_engine::cheapest::{Searched, search};
use loadline_engine::experiment::Experiment;
use loadline_engine::session::{Session, Watcher};
use loadline_engine::store::{Kind, NewResult, Store};
use loadline_jvm::detect::{Found, Places};

/// Counts trials by whether they were there from before.
#[derive(Default)]
struct Watch {
    measured: u32,
    reused: u32,
}

impl Observer for Watch {
    fn progress(&mut self, _: Progress) {}

    fn interrupted(&self) -> bool {
        false
    }
}

impl Watcher for Watch {
    fn trial_begins(&mut self, _: &Configuration, _: Purpose, _: u32, _: u32) {}

    fn trial_ends(&mut self, _: &TrialRecord, reused: bool) {
        if reused {
            self.reused += 1;
        } else {
            self.measured += 1;
        }
    }
}

fn experiment(search: &str, rate: &str) -> Experiment {
    let text = format!(
        "slo = \"p99<50ms,errors<1%\"\n\
         app.command = [\"sh\"]\n\
         [load]\nurl = \"http://localhost:8080/\"\nrate = \"{rate}\"\nwarm-up = \"1s\"\nmeasure = \"5s\"\n\
         [search]\n{search}\n"
    );
    let here = Path::new("/");
    Experiment::parse(&text, Path::new("test.toml"), here).unwrap_or_else(|e| panic!("{e}"))
}

fn store(directory: &Path) -> (Store, String) {
    let store = Store::open(directory).unwrap();
    let result = store
        .create_result(&NewResult {
            kind: Kind::Size,
            title: "test".to_owned(),
            experiment: String::new(),
            directory: "/".into(),
            command: Vec::new(),
            machine: Machine::default(),
        })
        .unwrap();
    (store, result)
}

fn run(store: &Store, result: &str, experiment: &Experiment) -> (Searched, Watch, Duration) {
    let mut backend = Simulated::new(World::default(), 7);
    let places = Places::of_process();
    let jdks = Found {
        jdks: Vec::new(),
        unusable: Vec::new(),
    };
    let mut watch = Watch::default();
    let mut session = Session {
        store,
        backend: &mut backend,
        experiment,
        result: result.to_owned(),
        jdks: &jdks,
        places: &places,
        account: Account { uid: 1, gid: 1 },
        thresholds: Thresholds::default(),
        watcher: &mut watch,
        start_deadline: experiment.app.start_deadline,
        spent: Duration::ZERO,
    };
    let pricing = experiment.search.pricing.clone().unwrap();
    let searched = search(&mut session, &pricing, &experiment.configurations()).unwrap();
    let spent = session.spent;
    (searched, watch, spent)
}

/// The service needs 300 MiB and carries 1000 requests a second on one CPU: of the sizes of
/// Fargate, half CPUs with 1 GiB do, and quarters cost more for what they carry.
#[test]
fn the_answer_is_found_proven_and_not_measured_twice() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let experiment = experiment("prices = \"fargate\"\nreplicas = \"2..8\"", "900/s");
    let (first, watch, _) = run(&store, &result, &experiment);
    let End::Found { choice, is_proven } = first.end else {
        panic!("{:?}", first.end)
    };
    let size = first.search.lattice().cells()[choice.cell].size;
    assert!(is_proven, "{choice:?}");
    assert!(
        first
            .asked
            .iter()
            .all(|a| a.record.configuration.rate == Some(a.ask.rate)),
        "every record says its rate"
    );
    assert!(
        choice.replicas <= 4 && size.memory.as_gib() <= 2.0,
        "{choice:?} {size}"
    );
    assert!(
        watch.measured < 60 && watch.reused == 0,
        "{}",
        watch.measured
    );
    let (second, again, _) = run(&store, &result, &experiment);
    assert_eq!((again.measured, again.reused), (0, watch.measured));
    assert_eq!(second.end, first.end);
}

#[test]
fn a_budget_bounds_the_trials_and_the_rest_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let search = "prices = \"fargate\"\nreplicas = \"2..8\"\nbudget = \"4m\"\nprove = 2";
    let experiment = experiment(search, "900/s");
    let (searched, _, spent) = run(&store, &result, &experiment);
    // One trial of a start that is slower than the mean may be over it.
    assert!(spent < Duration::from_secs(300), "{spent:?}");
    assert!(
        matches!(searched.end, End::Found { .. }),
        "{:?}",
        searched.end
    );
    assert!(!searched.search.lattice().open().is_empty());
}

#[test]
fn a_rate_that_nothing_carries_is_infeasible() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let search = "prices = \"fargate\"\nsizes = [\"0.5/512Mi\", \"1/1Gi\"]\nreplicas = \"1..2\"";
    let (searched, ..) = run(&store, &result, &experiment(search, "5000/s"));
    assert_eq!(searched.end, End::Infeasible);
}

#[test]
fn what_means_nothing_is_refused() {
    let refuse = |search: &str, load: &str| {
        let text = format!(
            "slo = \"p99<50ms\"\napp.command = [\"sh\"]\n[load]\nurl = \"http://localhost/\"\n{load}\n[search]\n{search}\n"
        );
        let parsed = Experiment::parse(&text, Path::new("test.toml"), Path::new("/"));
        parsed.map(|_| ()).unwrap_err().to_string()
    };
    let rate = "rate = \"10/s\"";
    insta::assert_snapshot!(refuse("headroom = \"20%\"", rate), @"test.toml: headroom is given without prices");
    insta::assert_snapshot!(refuse("prices = \"fargate\"", "closed = true"), @r#"
    test.toml:7:10: the cheapest deployment needs a rate to carry
        prices = "fargate"
    "#);
    insta::assert_snapshot!(refuse("prices = \"fargate\"\nreplicas = \"5..2\"", rate), @r#"
    test.toml:8:12: `5..2` is not a range of replicas
        replicas = "5..2"
    "#);
    insta::assert_snapshot!(refuse("prices = \"fargate\"\nsizes = [\"1x2Gi\"]", rate), @r#"
    test.toml:8:10: `1x2Gi` is not a size
        sizes = ["1x2Gi"]
    "#);
}
