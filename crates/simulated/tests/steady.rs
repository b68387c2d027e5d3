//! `size --question steady`: the found warm-up is correct, and bounded, in worlds with a known
//! course of getting warm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod rig;

use std::time::Duration;

use loadline_analysis::search::size::BestSize;
use loadline_analysis::warming::{LONGEST, longer_warm_up};
use loadline_experiment::Experiment;
use loadline_runner::searches::size_search;
use loadline_simulated::world::MemoryWall;
use loadline_simulated::{WarmingCost, World};

/// From the warm-up of [`rig::experiment`].
const GIVEN: Duration = Duration::from_secs(1);
/// Its measure phase.
const MEASURED: f64 = 5.0;

fn experiment(question: &str) -> Experiment {
    let search = format!("[search]\nquestion = \"{question}\"\nmax-memory = \"1Gi\"\nprove = 5\n");
    rig::experiment(&search, "200/s")
}

fn world(cold: Option<WarmingCost>) -> World {
    World {
        wall: MemoryWall {
            middle: 300.0,
            width: 1.0,
        },
        cold,
        ..World::default()
    }
}

/// What the search comes to and the trials that it took.
fn answer(question: &str, cold: Option<WarmingCost>, seed: u64) -> (BestSize, u32) {
    let experiment = experiment(question);
    let search = size_search(&experiment, None);
    let (sized, watch, _) = rig::answer(world(cold), seed, 1, &experiment, &search);
    (sized.best.unwrap(), watch.measured)
}

/// What a request costs on average in the first half of the measure phase (its first 2 of 5 seconds)
/// over the second, after this warm-up.
fn fall(cold: WarmingCost, warm_up: Duration) -> f64 {
    let mean = |from: f64, to: f64| {
        let sum = |t: f64| t - cold.extra * cold.decay * (-t / cold.decay).exp();
        (sum(to) - sum(from)) / (to - from)
    };
    let begin = warm_up.as_secs_f64();
    mean(begin, begin + 2.0) / mean(begin + 2.0, begin + MEASURED)
}

/// The shortest tried warm-up after which a request costs less than `most` more.
fn long_enough(cold: WarmingCost, most: f64) -> Duration {
    let mut warm_up = GIVEN;
    while fall(cold, warm_up) > most {
        let Some(next) = longer_warm_up(warm_up) else {
            break;
        };
        warm_up = next;
    }
    warm_up
}

#[test]
fn the_warm_up_is_as_long_as_the_service_needs() {
    let mut lengths = std::collections::BTreeSet::new();
    let mut services = [0.3, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0]
        .map(|decay| (3.0, decay))
        .to_vec();
    services.extend([(12.0, 4.0), (30.0, 6.0)]);
    for (seed, (extra, decay)) in (0..).zip(services) {
        let cold = WarmingCost { extra, decay };
        let (best, _) = answer("steady", Some(cold), seed);
        let found = best.configuration.warm_up.unwrap_or(GIVEN);
        // A start strays by some percent from what the curve says.
        let (least, most) = (long_enough(cold, 1.4), long_enough(cold, 1.2));
        assert!(
            least <= found && found <= most,
            "decay {decay}: {found:?}, expected from {least:?} to {most:?}"
        );
        lengths.insert(found);
        let mixed = best
            .trials
            .iter()
            .find(|t| t.configuration.warm_up != best.configuration.warm_up);
        assert!(mixed.is_none(), "decay {decay}: trials of two warm-ups");
    }
    assert!(lengths.len() >= 3, "{lengths:?}");
}

#[test]
fn a_service_that_never_gets_warm_gets_the_longest_warm_up_and_an_answer() {
    // Even after two minutes it falls by a third from half to half.
    let never = WarmingCost {
        extra: 1e9,
        decay: 7.0,
    };
    let experiment = rig::experiment(
        "[search]\nquestion = \"steady\"\nmax-memory = \"1Gi\"\nprove = 5\n",
        "20/s",
    );
    let mut world = world(Some(never));
    world.surface.per_cpu = 3e10;
    world.surface.floor = 0.0;
    let relaxed = Experiment {
        slo: "errors<1%".parse().unwrap(),
        ..experiment
    };
    let search = size_search(&relaxed, None);
    let (sized, ..) = rig::answer(world, 1, 1, &relaxed, &search);
    let found = sized.best.unwrap().configuration.warm_up;
    assert_eq!(found, Some(LONGEST));
    assert!(fall(never, LONGEST) > 1.3);
}

#[test]
fn fresh_starts_are_judged_as_they_come_unless_a_warm_jvm_is_asked_for() {
    let cold = WarmingCost {
        extra: 3.0,
        decay: 6.0,
    };
    let (start, _) = answer("start", Some(cold), 3);
    assert_eq!(start.configuration.warm_up, None);
    // Where it is warm already, both questions are the same search.
    let (start, starts) = answer("start", None, 3);
    let (steady, same) = answer("steady", None, 3);
    assert_eq!(start.configuration, steady.configuration);
    assert_eq!(starts, same);
}

/// Beginning again costs the starts that showed it: one where the first does.
#[test]
fn only_what_is_needed_is_decided_again() {
    let cold = WarmingCost {
        extra: 3.0,
        decay: 4.0,
    };
    let (_, warm) = answer("steady", None, 4);
    let (best, all) = answer("steady", Some(cold), 4);
    let mut longer_ones = 0;
    let mut length = GIVEN;
    while Some(length) < best.configuration.warm_up {
        length = longer_warm_up(length).unwrap();
        longer_ones += 1;
    }
    assert!(longer_ones > 0);
    assert!(
        all <= warm + longer_ones + 3,
        "{all} starts, {warm} where it is warm"
    );
}
