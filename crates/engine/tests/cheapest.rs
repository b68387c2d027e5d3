//! The search for the cheapest deployment through session, store and the simulated backend.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::path::Path;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Machine, Purpose, TrialRecord, Verdict};
use loadline_analysis::search::cheapest::{Ask, End};
use loadline_analysis::verdict::Thresholds;
use loadline_engine::backend::simulated::{Simulated, World};
use loadline_engine::backend::{Account, Observer, Progress};
use loadline_engine::cheapest::{Searched, configuration, search};
use loadline_engine::experiment::{Experiment, Pricing};
use loadline_engine::refine::{Refined, refine};
use loadline_engine::session::{Session, Watcher};
use loadline_engine::size;
use loadline_engine::store::{Kind, NewResult, Store};
use loadline_engine::tune::{Tuned, tune};
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

/// Does something in a session on the simulated backend; also the trials seen and the time spent.
fn session<T>(
    store: &Store,
    result: &str,
    experiment: &Experiment,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> (T, Watch, Duration) {
    in_world(World::default(), store, result, experiment, work)
}

/// The same with another truth.
fn in_world<T>(
    world: World,
    store: &Store,
    result: &str,
    experiment: &Experiment,
    work: impl FnOnce(&mut Session<'_>) -> T,
) -> (T, Watch, Duration) {
    let mut backend = Simulated::new(world, 7);
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
        reuse: Some("same".to_owned()),
    };
    let done = work(&mut session);
    let spent = session.spent;
    (done, watch, spent)
}

fn search_in(session: &mut Session<'_>, pricing: &Pricing, experiment: &Experiment) -> Searched {
    search(session, pricing, &experiment.configurations()).unwrap()
}

fn run(store: &Store, result: &str, experiment: &Experiment) -> (Searched, Watch, Duration) {
    let pricing = experiment.search.pricing.clone().unwrap();
    session(store, result, experiment, |session| {
        search_in(session, &pricing, experiment)
    })
}

/// The answer of a search and what came of looking for less memory in it.
fn refined(search: &str, rate: &str) -> (Searched, Refined, Watch) {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let experiment = experiment(search, rate);
    let pricing = experiment.search.pricing.clone().unwrap();
    let variants = experiment.configurations();
    let (searched, ..) = run(&store, &result, &experiment);
    let End::Found { choice, .. } = searched.end else {
        panic!("{:?}", searched.end)
    };
    let ask = Ask {
        cell: choice.cell,
        replicas: choice.replicas,
        rate: pricing.parameters.rate_of_each(choice.replicas),
        purpose: Purpose::Prove,
    };
    let found = configuration(&searched.search, &variants, &ask);
    let (refined, watch, _) = session(&store, &result, &experiment, |session| {
        refine(session, &pricing, &found).unwrap()
    });
    (searched, refined, watch)
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

/// The generator cannot make the rate of two replicas; five carry it, and three do too.
#[test]
fn a_rate_that_the_generator_cannot_make_leaves_the_answer() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let search = "prices = \"fargate\"\nsizes = [\"1/2Gi\"]\nreplicas = \"2..16\"\nprove = 2";
    let experiment = experiment(search, "300/s");
    let pricing = experiment.search.pricing.clone().unwrap();
    let world = World {
        generator: 110.0,
        ..World::default()
    };
    let (searched, ..) = in_world(world, &store, &result, &experiment, |session| {
        search_in(session, &pricing, &experiment)
    });
    let End::Found { choice, is_proven } = searched.end else {
        panic!("{:?}", searched.end)
    };
    assert_eq!((choice.replicas, is_proven), (3, true));
    let lattice = searched.search.lattice();
    assert_eq!(lattice.unmeasured(choice.cell), Some(150.0));
}

/// The proof would take longer than the budget; what is there to prove is not known yet.
#[test]
fn a_budget_that_ends_before_an_answer_does_not_say_that_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let search = "prices = \"fargate\"\nsizes = [\"0.25/512Mi\", \"1/2Gi\"]\nreplicas = \"1..2\"\nbudget = \"25s\"\nprove = 20";
    let (searched, ..) = run(&store, &result, &experiment(search, "5000/s"));
    assert!(
        !searched.asked.is_empty(),
        "nothing is kept for a proof of nothing"
    );
    assert_eq!(searched.end, End::Unknown);
    assert!(searched.search.is_closed());
}

/// A quarter of a CPU starts in 20 s, two CPUs in 2.5: a start that is slow for the second is not
/// slow for the first, whichever was searched last.
#[test]
fn a_proof_waits_as_long_as_the_search_that_it_proves() {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let search = "min-memory = \"256Mi\"\nmax-memory = \"512Mi\"\nconfirm = 2\nprove = 3";
    let experiment = experiment(search, "20/s");
    let base = |cpu: &str| Configuration {
        cpu: Some(cpu.parse().unwrap()),
        ..experiment.base.clone()
    };
    let (proofs, ..) = session(&store, &result, &experiment, |session| {
        let slow = size::search(session, &base("250m")).unwrap();
        let quick = size::search(session, &base("2")).unwrap();
        assert!(quick.start_deadline < slow.start_deadline);
        let size::End::Found(answer) = slow.end else {
            panic!("{:?}", slow.end)
        };
        let configuration = size::at(&slow.base, answer.size);
        size::prove(session, &configuration, slow.start_deadline).unwrap()
    });
    let passed = proofs.iter().filter(|t| t.verdict == Verdict::Pass);
    assert_eq!((passed.count(), proofs.len()), (3, 3), "{proofs:#?}");
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
    let level = |what: &str| {
        let levels =
            format!("{{ label = \"small\", {what} }}, {{ label = \"big\", args = [\"x\"] }}");
        refuse(
            &format!("prices = \"fargate\"\n[[factor]]\nname = \"flavour\"\nlevels = [{levels}]"),
            rate,
        )
    };
    let refused = "is given, but with prices the search chooses it";
    for (name, what) in [
        ("cpu", "cpu = \"250m\""),
        ("memory", "memory = \"512Mi\""),
        ("rate", "rate = \"10/s\""),
    ] {
        assert!(
            level(what).contains(&format!("{name} {refused}")),
            "{}",
            level(what)
        );
    }
    insta::assert_snapshot!(refuse("prices = \"fargate\"\nsizes = [\"1/2Gi\", \"32/8Gi\"]", rate), @r#"
    test.toml:8:19: `fargate` sells nothing that holds 32 vCPU, 8Gi
        sizes = ["1/2Gi", "32/8Gi"]
    "#);
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

/// The service needs 300 MiB: half of the smallest size that is on offer.
#[test]
fn less_memory_is_searched_where_less_is_billed() {
    let search =
        "prices = \"own-nodes\"\nsizes = [\"0.5/700Mi\", \"1/700Mi\"]\nreplicas = \"1..4\"";
    let (_, refined, watch) = refined(search, "300/s");
    let Refined::Smaller(smaller) = refined else {
        panic!("{refined:?}")
    };
    let (confirmed, size) = (smaller.answer.confirmed, smaller.answer.size);
    assert!((290.0..340.0).contains(&confirmed.as_mib()), "{confirmed}");
    assert!(size > confirmed && size.as_mib() < 380.0, "{size}");
    assert_eq!(smaller.configuration.memory, Some(size));
    assert!(smaller.configuration.label.ends_with(&size.to_string()));
    assert!(
        smaller.configuration.rate.is_some(),
        "at its share of the rate"
    );
    let of = |purpose| {
        smaller
            .trials
            .iter()
            .filter(|t| t.purpose == purpose)
            .count()
    };
    assert_eq!(of(Purpose::Prove), 5, "it has a proof of its own");
    assert!(of(Purpose::Confirm) >= 4);
    assert!(watch.measured <= 30, "{}", watch.measured);
}

#[test]
fn sizes_that_are_billed_whole_stay_as_they_are() {
    let search = "prices = \"fargate\"\nsizes = [\"0.5/1Gi\", \"1/2Gi\"]\nreplicas = \"1..4\"";
    let (_, refined, watch) = refined(search, "300/s");
    assert!(matches!(refined, Refined::AsFound(None)), "{refined:?}");
    assert_eq!(watch.measured, 0);
    let search = "prices = \"own-nodes\"\nsizes = [\"1/700Mi\"]\nreplicas = \"1..4\"\nprove = 2\nbudget = \"3m\"";
    let (_, refined, watch) = self::refined(search, "300/s");
    let Refined::AsFound(Some(why)) = refined else {
        panic!("{refined:?}")
    };
    assert!(why.contains("the budget was spent"), "{why}");
    assert_eq!(watch.measured, 0);
}

/// Compares in a world where this option changes the CPU time of a request by a factor.
fn tuned(option: Option<(&'static str, f64)>, search: &str) -> (Tuned, Watch) {
    let directory = tempfile::tempdir().unwrap();
    let (store, result) = store(directory.path());
    let experiment = experiment(search, "200/s");
    let pricing = experiment.search.pricing.clone().unwrap();
    let found = Configuration {
        label: "500m 1Gi".to_owned(),
        cpu: Some("500m".parse().unwrap()),
        memory: Some("1Gi".parse().unwrap()),
        rate: Some(200.0),
        ..experiment.base.clone()
    };
    let world = World {
        option,
        ..World::default()
    };
    let jdk = loadline_sizing::Jdk::hotspot(loadline_sizing::Version::feature(17));
    let (tuned, watch, _) = in_world(world, &store, &result, &experiment, |session| {
        tune(session, &pricing, &found, jdk, 6).unwrap()
    });
    (tuned, watch)
}

const COMPARING: &str = "prices = \"fargate\"\ncompare = 6\nprove = 3";

#[test]
fn an_option_that_saves_cpu_is_adopted_measured_and_proven() {
    let (tuned, _) = tuned(Some(("-XX:+UseParallelGC", 0.7)), COMPARING);
    assert!(tuned.has_changed, "{:#?}", tuned.compared);
    let adopted: Vec<_> = tuned.compared.iter().filter(|c| c.is_adopted).collect();
    assert_eq!(adopted.len(), 1, "{adopted:#?}");
    assert_eq!(adopted[0].label, "parallel");
    let ratio = adopted[0].ratio.unwrap();
    assert!((ratio - 0.7).abs() < 0.05, "{ratio}");
    let option = tuned.configuration.jvm_options.last().unwrap();
    assert_eq!(option.text, "-XX:+UseParallelGC");
    assert_eq!(
        option.provenance,
        loadline_analysis::record::Provenance::Measured
    );
    let of = |purpose| tuned.trials.iter().filter(|t| t.purpose == purpose).count();
    assert_eq!(of(Purpose::Prove), 3);
    let of_next = tuned
        .compared
        .iter()
        .find(|c| c.label == "C1 only")
        .unwrap();
    assert!(
        (of_next.ratio.unwrap() - 1.0).abs() < 0.05,
        "against the winner"
    );
}

#[test]
fn without_a_difference_nothing_is_adopted_and_many_are_halved() {
    let (tuned, watch) = tuned(None, COMPARING);
    assert!(!tuned.has_changed, "{:#?}", tuned.compared);
    assert!(tuned.compared.iter().all(|c| !c.is_adopted));
    let flags: Vec<_> = tuned
        .compared
        .iter()
        .filter(|c| c.stage == loadline_analysis::tuning::Stage::Flags)
        .collect();
    let dropped = flags.iter().filter(|c| c.trials == 2).count();
    assert_eq!(
        (flags.len(), dropped),
        (9, 4),
        "the worse half stops after two rounds"
    );
    // Five collectors, nine flags of which four stop early, four heaps: each with its reference.
    assert!(
        watch.measured >= 6 * 6 + 6 * 6 + 2 * 4 + 6 * 5,
        "{}",
        watch.measured
    );
}

#[test]
fn a_stage_that_the_budget_has_no_room_for_is_named() {
    let (tuned, watch) = tuned(None, "prices = \"fargate\"\ncompare = 6\nbudget = \"1m\"");
    assert_eq!((watch.measured, tuned.compared.len()), (0, 0));
    assert_eq!(tuned.left_out.len(), 3, "{:?}", tuned.left_out);
    assert!(tuned.left_out[0].starts_with("collector: not compared"));
}

/// A second result on the same ground searches without a trial of its own; its proof is run.
#[test]
fn trials_of_an_earlier_result_are_used_again_and_said_so() {
    let directory = tempfile::tempdir().unwrap();
    let (store, first) = store(directory.path());
    let experiment = experiment("prices = \"fargate\"\nreplicas = \"2..8\"", "900/s");
    let (one, watch, _) = run(&store, &first, &experiment);
    let second = self::store(directory.path()).1;
    let (_, strange, _) = run(&store, &second, &experiment);
    assert_eq!(strange.reused, 0, "its ground is not known");
    store.set_ground(&first, "same").unwrap();
    let third = self::store(directory.path()).1;
    let (again, reusing, _) = run(&store, &third, &experiment);
    assert_eq!(again.end, one.end);
    let proofs = |s: &Searched| {
        let prove = |a: &&loadline_analysis::deployment::Asked| a.ask.purpose == Purpose::Prove;
        s.asked.iter().filter(prove).count() as u32
    };
    assert_eq!(reusing.measured, proofs(&again), "fresh starts are fresh");
    assert_eq!(reusing.reused, watch.measured - proofs(&one));
    let trials = store.trials(&third).unwrap();
    let said = trials
        .iter()
        .filter(|t| t.result == third && t.evidence.warnings.iter().any(|w| w.contains(&first)));
    assert_eq!(said.count() as u32, reusing.reused);
    assert_eq!(store.ground(&first).unwrap().as_deref(), Some("same"));
    assert_eq!(store.ground(&second).unwrap(), None);
    // Another ground has nothing to use again.
    store.set_ground(&first, "other").unwrap();
    let fourth = self::store(directory.path()).1;
    let (_, other, _) = run(&store, &fourth, &experiment);
    assert_eq!(other.reused, 0);
}
