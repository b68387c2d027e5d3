//! One answer whatever the number of slots, and whenever it was cut: for every search.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use std::fmt::Debug;
use std::sync::Arc;

use loadline_analysis::baseline::{Baseline, MeasurementConditions, StartFigures};
use loadline_analysis::random::RandomStream;
use loadline_analysis::record::{MachineDescription, TrialPurpose, TrialRecord};
use loadline_analysis::search::TrialSearch;
use loadline_analysis::search::prices::PriceAnswer;
use loadline_analysis::search::refine::MemoryRefinement;
use loadline_analysis::search::size::{OfLevel, SizeAnswer, SizeEnd};
use loadline_analysis::search::soak::SoakSearch;
use loadline_analysis::search::verify::{VerifyOutcome, VerifySearch};
use loadline_experiment::Experiment;
use loadline_runner::agenda::Agenda;
use loadline_runner::runner::RunError;
use loadline_runner::searches::size_search;
use loadline_simulated::world::{MemoryWall, draw_expectation};
use loadline_simulated::{SimulatedHost, WarmingCost, World};
use loadline_sizing::Bytes;

/// Worlds for each search; `LOADLINE_SEEDS=50` is the long form.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("LOADLINE_SEEDS").ok();
    0..asked.and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// Walls anywhere in the range; some trials disturbed, a part invisibly; some starts crash.
fn world(seed: u64) -> World {
    let mut random = RandomStream::from_seed(1000).derive(seed);
    World {
        wall: MemoryWall::draw_wall(&mut random),
        expectation: draw_expectation(&mut random),
        disturbed: 0.1,
        disturbance_seen: 0.8,
        glitch: 0.02,
        crash: 0.02,
        cold: random.chance(0.5).then_some(WarmingCost {
            extra: 2.0,
            decay: 3.0,
        }),
        ..World::default()
    }
}

/// What tells one trial from another in an answer.
fn names(trials: &[Arc<TrialRecord>]) -> Vec<String> {
    let name = |t: &Arc<TrialRecord>| {
        let label = &t.configuration.label;
        format!("{:?} {label} #{} {}", t.purpose, t.repeat, t.verdict)
    };
    trials.iter().map(name).collect()
}

fn of_sizes(sized: &SizeAnswer) -> impl PartialEq + Debug + use<> {
    let searched = sized.searched.iter();
    let ends: Vec<_> = searched
        .map(|s| (s.end.clone(), names(&s.trials), s.start_deadline))
        .collect();
    let best = sized.best.as_ref();
    let best = best.map(|b| (b.configuration.clone(), b.answer, names(&b.trials)));
    (ends, best)
}

fn of_prices(priced: &PriceAnswer) -> impl PartialEq + Debug + use<> {
    let records: Vec<_> = priced
        .searched
        .asked
        .iter()
        .map(|a| Arc::clone(&a.record))
        .collect();
    let found = priced.found.as_ref().map(|found| {
        let refined = match &found.refined {
            MemoryRefinement::Smaller(s) => {
                (Some((s.configuration.clone(), names(&s.trials))), None)
            }
            MemoryRefinement::AsFound(why) => (None, why.clone()),
        };
        let tuned = found.tuned.as_ref();
        let tuned = tuned.map(|t| {
            (
                t.compared.clone(),
                names(&t.trials),
                t.configuration.clone(),
            )
        });
        (found.choice, found.is_proven, refined, tuned)
    });
    let left_out = priced.left_out.clone();
    (priced.searched.end, names(&records), found, left_out)
}

/// The same answer with 1, 4 and 64 slots, and after a cut at any trial.
fn same<S: TrialSearch, T: PartialEq + Debug>(
    experiment: &Experiment,
    search: impl Fn() -> S,
    told: impl Fn(&S::Answer) -> T,
) {
    let mut most = 0;
    for seed in seeds() {
        let (answer, watch, _) = rig::answer(world(seed), seed, 1, experiment, &search());
        let one = told(&answer);
        most = most.max(watch.measured);
        for slots in [4, 64] {
            let (answer, ..) = rig::answer(world(seed), seed, slots, experiment, &search());
            assert_eq!(told(&answer), one, "seed {seed}, {slots} slots");
        }
        let cut = RandomStream::from_seed(7)
            .derive(seed)
            .uniform_below(watch.measured as usize) as u32;
        let slots = [(1, 1), (4, 1), (1, 64)][seed as usize % 3];
        let resumed = resumed(experiment, &search, seed, cut, slots);
        assert_eq!(
            told(&resumed),
            one,
            "seed {seed}, cut after {cut}, {slots:?}"
        );
    }
    assert!(most > 1, "something was measured");
}

/// A search stopped after this many records and restarted on the same store.
fn resumed<S: TrialSearch>(
    experiment: &Experiment,
    search: impl Fn() -> S,
    seed: u64,
    cut: u32,
    (before, after): (usize, usize),
) -> S::Answer {
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let at = (&store, result.as_str());
    let mut host = SimulatedHost::new(world(seed), seed, before);
    let mut watch = rig::stop_after(cut);
    let stopped = rig::run(&mut host, &mut watch, at, experiment, &search());
    // With many slots the last records may come at once, the answer with them.
    let is_stopped = matches!(stopped, Err(RunError::Interrupted));
    assert!(is_stopped || (before > 1 && stopped.is_ok()));
    let kept = store.finished_trials(&result).unwrap().len();
    assert!(kept as u32 >= cut, "finished trials are kept");
    let mut host = SimulatedHost::new(world(seed), seed, after);
    let mut watch = rig::watch();
    let answer = rig::run(&mut host, &mut watch, at, experiment, &search()).unwrap();
    assert!(watch.reused >= cut.min(1), "it is used again");
    answer
}

#[test]
fn a_matrix_gives_the_same_records_on_any_number_of_slots() {
    let tables = "[run]\nrepeats = 3\n[[factor]]\nname = \"memory\"\nlevels = [\"128Mi\", \"256Mi\", \"384Mi\", \"512Mi\", \"1Gi\"]";
    let experiment = rig::experiment(tables, "100/s");
    let search = || Agenda::new(&experiment).matrix;
    same(&experiment, search, |records| names(records));
}

#[test]
fn a_soak_is_one_trial_on_any_number_of_slots() {
    let experiment = rig::experiment("[search]\nsoak = \"60s\"", "100/s");
    let search = || SoakSearch {
        configuration: experiment.configurations().remove(0),
        start_deadline: experiment.app.start_deadline,
    };
    same(&experiment, search, |record| names(record.as_slice()));
}

#[test]
fn a_verify_decides_with_the_same_starts_on_any_number_of_slots() {
    let experiment = rig::experiment("[limits]\nmemory = \"400Mi\"\ncpu = \"1\"", "100/s");
    let configuration = experiment.configurations().remove(0);
    let search = || {
        let ground = MeasurementConditions::new(
            &MachineDescription::default(),
            &configuration,
            String::new(),
        );
        let start = StartFigures {
            kept: true,
            memory: Some(Bytes::from_mib(250)),
            ..StartFigures::default()
        };
        VerifySearch {
            configuration: configuration.clone(),
            start_deadline: experiment.app.start_deadline,
            baseline: Some(Baseline {
                schema: 1,
                loadline: String::new(),
                result: String::new(),
                ground: ground.clone(),
                starts: vec![start; 20],
            }),
            ground,
            at_least: 0,
        }
    };
    same(&experiment, search, |verified: &VerifyOutcome| {
        let count = verified.starts.len();
        assert!(count <= 20, "{count} starts");
        (names(&verified.trials), verified.slo, verified.holds())
    });
}

#[test]
fn a_ladder_ends_at_the_same_rung_on_any_number_of_slots() {
    let tables = "[run]\nrepeats = 4\n[[factor]]\nname = \"memory\"\ndescend = true\nlevels = [\"1Gi\", \"768Mi\", \"512Mi\", \"384Mi\", \"256Mi\", \"192Mi\", \"128Mi\"]";
    let experiment = rig::experiment(tables, "100/s");
    let search = || Agenda::new(&experiment).matrix;
    same(&experiment, search, |records| names(records));
}

/// Each JDK gets its own size, proven; the first gives the second a starting point.
#[test]
fn sizes_of_several_jdks_are_each_proven_on_any_number_of_slots() {
    each_level_is_proven("name = \"jdk\"\nlevels = [\"17\", \"25\"]");
}

#[test]
fn sizes_of_several_applications_are_each_proven_on_any_number_of_slots() {
    each_level_is_proven(
        "name = \"application\"\nlevels = [{ label = \"jar\" }, { label = \"native\", command = [\"/bin/true\"] }]",
    );
}

#[test]
fn each_of_several_cpu_limits_has_a_memory_that_is_proven_on_any_number_of_slots() {
    each_level_is_proven("name = \"cpu\"\nlevels = [\"1\", \"2\"]");
}

fn each_level_is_proven(factor: &str) {
    let tables = format!("[search]\nprove = 5\n[[factor]]\n{factor}");
    let experiment = rig::experiment(&tables, "50/s");
    let told = |sized: &SizeAnswer| {
        let own = |of: &OfLevel| {
            let best = of.best.as_ref().map_err(SizeEnd::why_none)?;
            let proofs = best
                .trials
                .iter()
                .filter(|t| t.purpose == TrialPurpose::Prove);
            let jdks: Vec<_> = proofs.map(|t| t.configuration.jdk.clone()).collect();
            assert!(
                jdks.len() >= 5,
                "{} has {} proofs",
                best.answer.size,
                jdks.len()
            );
            assert!(jdks.iter().all(|jdk| *jdk == of.level.jdk), "{jdks:?}");
            let limits = best.trials.iter().map(|t| t.configuration.cpu);
            let is_own = |cpu| of.level.cpu.is_none() || cpu == of.level.cpu;
            assert!(limits.into_iter().all(is_own), "{:?}", of.level);
            let own = of.level.application.as_deref() == Some("native");
            let mut run = best
                .trials
                .iter()
                .map(|t| t.configuration.application.is_some());
            assert!(run.all(|is_native| is_native == own), "{:?}", of.level);
            Ok::<_, String>((best.answer, names(&best.trials)))
        };
        let each: Vec<_> = sized.by_level.iter().map(own).collect();
        assert_eq!(each.len(), 2);
        let firsts: Vec<_> = sized
            .searched
            .iter()
            .filter_map(|s| s.trials.first()?.configuration.memory)
            .collect();
        assert!(firsts[1] <= firsts[0], "{firsts:?}");
        (of_sizes(sized), each)
    };
    same(&experiment, || size_search(&experiment, None), told);
}

#[test]
fn a_size_of_a_warm_jvm_is_the_same_on_any_number_of_slots() {
    let tables = "[search]\nprove = 5\nquestion = \"steady\"\n[[factor]]\nname = \"cpu\"\nlevels = [\"500m\", \"1\"]";
    let experiment = rig::experiment(tables, "50/s");
    same(&experiment, || size_search(&experiment, None), of_sizes);
}

#[test]
fn a_size_over_several_bases_is_the_same_on_any_number_of_slots() {
    let tables =
        "[search]\nprove = 5\n[[factor]]\nname = \"cpu\"\nlevels = [\"500m\", \"1\", \"2\"]";
    let experiment = rig::experiment(tables, "50/s");
    same(&experiment, || size_search(&experiment, None), of_sizes);
}

#[test]
fn the_cheapest_deployment_is_the_same_on_any_number_of_slots() {
    let tables = "[search]\nprices = \"own-nodes\"\nsizes = [\"0.5/800Mi\", \"1/800Mi\", \"1/1Gi\", \"2/1Gi\"]\nreplicas = \"1..6\"";
    let experiment = rig::experiment(tables, "900/s");
    same(&experiment, || rig::prices(&experiment), of_prices);
}

#[test]
fn a_budget_ends_at_the_same_trial_on_any_number_of_slots() {
    let tables = "[search]\nprices = \"own-nodes\"\nsizes = [\"0.5/800Mi\", \"1/800Mi\", \"2/1Gi\"]\nreplicas = \"1..6\"\nbudget = \"8m\"";
    let experiment = rig::experiment(tables, "900/s");
    same(&experiment, || rig::prices(&experiment), of_prices);
}

#[test]
fn options_in_pairs_come_to_the_same_on_any_number_of_slots() {
    let tables = "[search]\nprices = \"fargate\"\nsizes = [\"0.5/1Gi\"]\nreplicas = \"1..3\"\ncompare = 6\nprove = 2";
    let experiment = rig::experiment(tables, "100/s");
    same(&experiment, || rig::prices(&experiment), of_prices);
}

/// One base, 20 proofs: what several slots are for.
#[test]
fn five_slots_take_less_than_half_of_the_time_of_one() {
    let experiment = rig::experiment("[search]\nprove = 20", "50/s");
    let (mut one, mut five) = (0.0, 0.0);
    for seed in seeds() {
        let took = |slots| {
            let search = size_search(&experiment, None);
            let (.., took) = rig::answer(world(seed), seed, slots, &experiment, &search);
            took.as_secs_f64()
        };
        one += took(1);
        five += took(5);
    }
    let share = five / one;
    println!(
        "a size with 20 proofs on 5 slots takes {:.1} % of the time of one",
        share * 100.0
    );
    assert!(share <= 0.45, "{share}");
}

/// Both of a pair, and all candidates of a round, one after the other on one slot.
#[test]
fn pairs_stay_on_their_slot() {
    let tables =
        "[run]\nrepeats = 12\n[[factor]]\nname = \"memory\"\nlevels = [\"512Mi\", \"1Gi\"]";
    let experiment = rig::experiment(tables, "100/s");
    let matrix = Agenda::new(&experiment).matrix;
    let (_, watch, took) = rig::answer(World::default(), 3, 4, &experiment, &matrix);
    for (pair, slot) in &watch.pairs {
        let of_pair = watch.pairs.iter().filter(|(other, _)| other == pair);
        assert!(of_pair.clone().count() >= 2);
        assert!(
            of_pair.into_iter().all(|(_, other)| other == slot),
            "pair {pair}"
        );
    }
    let (.., alone) = rig::answer(World::default(), 3, 1, &experiment, &matrix);
    assert!(took < alone.mul_f64(0.4), "{took:?} of {alone:?}");
}

/// An unwanted running trial is stopped, and its row shows that.
#[test]
fn a_wrong_guess_is_stopped_and_leaves_no_record() {
    let experiment = rig::experiment("[search]\nprove = 3", "50/s");
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let mut host = SimulatedHost::new(world(1), 1, 5);
    let mut watch = rig::watch();
    let at = (&store, result.as_str());
    rig::run(
        &mut host,
        &mut watch,
        at,
        &experiment,
        &size_search(&experiment, None),
    )
    .unwrap();
    assert!(watch.dropped > 0, "{watch:?}");
    assert_eq!(watch.begun, watch.measured + watch.dropped, "{watch:?}");
    assert_eq!(
        store.finished_trials(&result).unwrap().len() as u32,
        watch.measured
    );
}

/// Three starts in ten stall for a second whatever their memory.
#[test]
fn misses_that_memory_does_not_cure_are_said_to_be_so() {
    let experiment = rig::experiment("[search]\nprove = 20", "50/s");
    let stalls = World {
        glitch: 0.3,
        ..World::default()
    };
    let mut told = 0;
    for seed in 0..4 {
        let search = size_search(&experiment, None);
        let (sized, watch, _) = rig::answer(stalls, seed, 1, &experiment, &search);
        let own = sized.searched[0].trials.iter();
        let best = sized.best.as_ref();
        let trials = best.map_or_else(|| own.collect(), |b| b.trials.iter().collect::<Vec<_>>());
        // One time in eleven both first starts miss: then there is nothing to compare.
        let Some(flat) =
            loadline_analysis::obstacle::find_flat_misses(trials.iter().map(|t| &***t))
        else {
            continue;
        };
        println!("{} trials: {}", watch.measured, flat.miss_sentence());
        assert_eq!(flat.to.to_string(), "1Gi");
        told += 1;
    }
    assert!(told >= 3, "{told} of 4");
}
