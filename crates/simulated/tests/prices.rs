//! The search for the cheapest deployment through runner, store and the simulated host.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod rig;

use std::path::Path;

use loadline_analysis::record::{TrialPurpose, TrialVerdict};
use loadline_analysis::search::cheapest::CheapestEnd;
use loadline_analysis::search::prices::{FoundDeployment, PriceAnswer};
use loadline_analysis::search::refine::MemoryRefinement;
use loadline_analysis::search::tune::TunedOptions;
use loadline_experiment::Experiment;
use loadline_runner::searches::size_search;
use loadline_runner::store::Store;
use loadline_simulated::{SimulatedHost, World};
use rig::Watch;

fn experiment(search: &str, rate: &str) -> Experiment {
    rig::experiment(&format!("[search]\n{search}"), rate)
}

fn in_world(world: World, store: &Store, result: &str, of: &Experiment) -> (PriceAnswer, Watch) {
    let mut host = SimulatedHost::new(world, 7, 1);
    let mut watch = rig::watch();
    let priced = rig::run(&mut host, &mut watch, (store, result), of, &rig::prices(of));
    (priced.unwrap(), watch)
}

fn run(store: &Store, result: &str, of: &Experiment) -> (PriceAnswer, Watch) {
    in_world(World::default(), store, result, of)
}

/// In a separate store.
fn alone(world: World, search: &str, rate: &str) -> (PriceAnswer, Watch) {
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    in_world(world, &store, &result, &experiment(search, rate))
}

fn found(priced: &PriceAnswer) -> &FoundDeployment {
    priced
        .found
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", priced.searched.end))
}

/// The service needs 300 MiB and carries 1000 requests a second on one CPU: of the sizes of
/// Fargate, half CPUs with 1 GiB do, and quarters cost more for what they carry.
#[test]
fn the_answer_is_found_proven_and_not_measured_twice() {
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let experiment = experiment("prices = \"fargate\"\nreplicas = \"2..8\"", "900/s");
    let (first, watch) = run(&store, &result, &experiment);
    let FoundDeployment {
        choice, is_proven, ..
    } = found(&first);
    let lattice = first.searched.search.lattice();
    let size = lattice.cells()[choice.cell].size;
    assert!(is_proven, "{choice:?}");
    let mut asked = first.searched.asked.iter();
    assert!(
        asked.all(|a| a.record.configuration.rate == Some(a.question.rate)),
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
    let (second, again) = run(&store, &result, &experiment);
    assert_eq!((again.measured, again.reused), (0, watch.measured));
    assert_eq!(second.searched.end, first.searched.end);
}

#[test]
fn a_budget_bounds_the_trials_and_the_rest_is_named() {
    let search = "prices = \"fargate\"\nreplicas = \"2..8\"\nbudget = \"3m\"\nprove = 2";
    let (priced, _) = alone(World::default(), search, "900/s");
    // One trial of a start that is slower than the mean may be over it.
    let spent = priced.searched.spent;
    assert!(spent.as_secs() < 240, "{spent:?}");
    found(&priced);
    assert!(!priced.searched.search.lattice().open_cells().is_empty());
}

#[test]
fn a_rate_that_nothing_carries_is_infeasible() {
    let search = "prices = \"fargate\"\nsizes = [\"0.5/512Mi\", \"1/1Gi\"]\nreplicas = \"1..2\"";
    let (priced, _) = alone(World::default(), search, "5000/s");
    assert_eq!(priced.searched.end, CheapestEnd::Infeasible);
}

/// The generator cannot make the rate of two replicas; five carry it, and three do too.
#[test]
fn a_rate_that_the_generator_cannot_make_leaves_the_answer() {
    let search = "prices = \"fargate\"\nsizes = [\"1/2Gi\"]\nreplicas = \"2..16\"\nprove = 2";
    let world = World {
        generator: 110.0,
        ..World::default()
    };
    let (priced, _) = alone(world, search, "300/s");
    let FoundDeployment {
        choice, is_proven, ..
    } = found(&priced);
    assert_eq!((choice.replicas, *is_proven), (3, true));
    let lattice = priced.searched.search.lattice();
    assert_eq!(lattice.unmeasured(choice.cell), Some(150.0));
}

/// The proof would take longer than the budget; the size to prove is not known yet.
#[test]
fn a_budget_that_ends_before_an_answer_does_not_say_that_there_is_none() {
    let search = "prices = \"fargate\"\nsizes = [\"0.25/512Mi\", \"1/2Gi\"]\nreplicas = \"1..2\"\nbudget = \"25s\"\nprove = 20";
    let (priced, _) = alone(World::default(), search, "5000/s");
    assert!(
        !priced.searched.asked.is_empty(),
        "nothing is kept for a proof of nothing"
    );
    assert_eq!(priced.searched.end, CheapestEnd::Unknown);
    assert!(priced.searched.search.is_closed());
}

/// A quarter of a CPU starts in 20 s, two CPUs in 2.5: a start that is slow for the second is not
/// slow for the first, whichever was searched last.
#[test]
fn a_proof_waits_as_long_as_the_search_that_it_proves() {
    let tables = "[search]\nmin-memory = \"256Mi\"\nmax-memory = \"512Mi\"\nconfirm = 2\nprove = 3\n[[factor]]\nname = \"cpu\"\nlevels = [\"250m\", \"2\"]";
    let experiment = rig::experiment(tables, "20/s");
    let search = size_search(&experiment, None);
    let (sized, ..) = rig::answer(World::default(), 7, 1, &experiment, &search);
    let deadline = |index: usize| sized.searched[index].start_deadline;
    assert!(deadline(1) < deadline(0));
    let best = sized.best.unwrap();
    assert_eq!(best.configuration.cpu, "250m".parse().ok());
    let proofs = best
        .trials
        .iter()
        .filter(|t| t.purpose == TrialPurpose::Prove);
    let all: Vec<_> = proofs
        .map(|t| (t.verdict, t.evidence.start.deadline))
        .collect();
    assert_eq!(all, [(TrialVerdict::Pass, deadline(0)); 3]);
}

#[test]
fn what_means_nothing_is_refused() {
    let refuse = |search: &str, load: &str| {
        let text = format!(
            "slo = \"p99<50ms\"\napp.command = [\"sh\"]\n[load]\nurl = \"http://localhost/\"\n{load}\n[search]\n{search}\n"
        );
        let parsed = Experiment::from_file_text(&text, Path::new("test.toml"), Path::new("/"));
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
    insta::assert_snapshot!(refuse("replicas = \"2..3\"", rate), @"test.toml: replicas (--replicas) needs prices");
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
    let (priced, watch) = alone(World::default(), search, "300/s");
    let MemoryRefinement::Smaller(smaller) = &found(&priced).refined else {
        panic!("{:?}", found(&priced).refined)
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
        let trials = smaller.trials.iter();
        trials.filter(|t| t.purpose == purpose).count()
    };
    assert_eq!(of(TrialPurpose::Prove), 5, "it has its own proof");
    assert!(of(TrialPurpose::Confirm) >= 2);
    // The starts at the size that was found tell where to look first.
    let searched = of(TrialPurpose::Search);
    println!("{searched} starts of the bisection");
    assert!(searched <= 4, "{searched}");
    let before = priced.searched.asked.len() as u32;
    assert!(watch.measured - before <= 30, "{}", watch.measured);
}

#[test]
fn sizes_that_are_billed_whole_stay_as_they_are() {
    let search = "prices = \"fargate\"\nsizes = [\"0.5/1Gi\", \"1/2Gi\"]\nreplicas = \"1..4\"";
    let (priced, watch) = alone(World::default(), search, "300/s");
    let refined = &found(&priced).refined;
    assert!(
        matches!(refined, MemoryRefinement::AsFound(None)),
        "{refined:?}"
    );
    assert_eq!(watch.measured as usize, priced.searched.asked.len());
    let search = "prices = \"own-nodes\"\nsizes = [\"1/700Mi\"]\nreplicas = \"1..4\"\nprove = 2\nbudget = \"3m\"";
    let (priced, watch) = alone(World::default(), search, "300/s");
    let MemoryRefinement::AsFound(Some(why)) = &found(&priced).refined else {
        panic!("{:?}", found(&priced).refined)
    };
    assert!(why.contains("the budget was spent"), "{why}");
    assert_eq!(watch.measured as usize, priced.searched.asked.len());
}

/// Compares in a world where this option changes the CPU time of a request by a factor.
fn tuned(option: Option<(&'static str, f64)>, more: &str) -> (TunedOptions, u32, PriceAnswer) {
    let search = format!(
        "prices = \"fargate\"\nsizes = [\"0.5/1Gi\"]\nreplicas = \"1..2\"\ncompare = 6\nprove = 3\n{more}"
    );
    let world = World {
        option,
        ..World::default()
    };
    let (mut priced, watch) = alone(world, &search, "200/s");
    let compared = watch.measured - priced.searched.asked.len() as u32;
    let found = priced.found.as_mut().unwrap();
    (found.tuned.take().unwrap(), compared, priced)
}

#[test]
fn an_option_that_saves_cpu_is_adopted_measured_and_proven() {
    let (tuned, ..) = tuned(Some(("-XX:+UseParallelGC", 0.7)), "");
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
        loadline_analysis::record::ValueProvenance::Measured
    );
    let of = |purpose| tuned.trials.iter().filter(|t| t.purpose == purpose).count();
    assert_eq!(of(TrialPurpose::Prove), 3);
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
    let (tuned, measured, _) = tuned(None, "");
    assert!(!tuned.has_changed, "{:#?}", tuned.compared);
    assert!(tuned.compared.iter().all(|c| !c.is_adopted));
    let flags: Vec<_> = tuned
        .compared
        .iter()
        .filter(|c| c.stage == loadline_analysis::tuning::TuningStage::Flags)
        .collect();
    let dropped = flags.iter().filter(|c| c.trials == 2).count();
    assert_eq!(
        (flags.len(), dropped),
        (9, 4),
        "the worse half stops after two rounds"
    );
    // Five collectors, nine flags of which four stop early, four heaps: each with its reference.
    assert!(measured >= 6 * 6 + 6 * 6 + 2 * 4 + 6 * 5, "{measured}");
}

#[test]
fn a_stage_that_the_budget_has_no_room_for_is_named() {
    let (tuned, measured, _) = tuned(None, "budget = \"5m\"");
    assert_eq!((measured, tuned.compared.len()), (0, 0));
    assert_eq!(tuned.left_out.len(), 3, "{:?}", tuned.left_out);
    assert!(tuned.left_out[0].starts_with("collector: not compared"));
}

/// A second result on the same ground searches without new trials; its proof is run.
#[test]
fn trials_of_an_earlier_result_are_used_again_and_said_so() {
    let directory = rig::directory();
    let (store, first) = rig::store(directory.path());
    let experiment = experiment("prices = \"fargate\"\nreplicas = \"2..8\"", "900/s");
    let (one, watch) = run(&store, &first, &experiment);
    let second = rig::store(directory.path()).1;
    let (_, strange) = run(&store, &second, &experiment);
    assert_eq!(strange.reused, 0, "its ground is not known");
    store.set_ground(&first, "same").unwrap();
    let third = rig::store(directory.path()).1;
    let (again, reusing) = run(&store, &third, &experiment);
    assert_eq!(again.searched.end, one.searched.end);
    let proofs = |priced: &PriceAnswer| {
        let asked = priced.searched.asked.iter();
        asked
            .filter(|a| a.question.purpose == TrialPurpose::Prove)
            .count() as u32
    };
    assert_eq!(reusing.measured, proofs(&again), "fresh starts are fresh");
    assert_eq!(reusing.reused, watch.measured - proofs(&one));
    let trials = store.finished_trials(&third).unwrap();
    let said = trials
        .iter()
        .filter(|t| t.result == third && t.evidence.warnings.iter().any(|w| w.contains(&first)));
    assert_eq!(said.count() as u32, reusing.reused);
    assert_eq!(
        store.ground_fingerprint(&first).unwrap().as_deref(),
        Some("same")
    );
    assert_eq!(store.ground_fingerprint(&second).unwrap(), None);
    // Another ground has nothing to use again.
    store.set_ground(&first, "other").unwrap();
    let fourth = rig::store(directory.path()).1;
    let (_, other) = run(&store, &fourth, &experiment);
    assert_eq!(other.reused, 0);
}
