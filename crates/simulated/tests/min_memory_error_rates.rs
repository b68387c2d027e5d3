//! How often the minimum-memory search is wrong, over thousands of synthetic services.
//!
//! Each row repeats a published one (1500 to 3000 services, P(pass) an S-curve, grid 64..1024 MiB
//! step 4) with 20 000 services. An answer is bad when fewer than 95 % of starts pass there.
//! Tolerances are about three standard errors of the published run, so the seed does not matter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use loadline_analysis::interval::quantile;
use loadline_analysis::random::RandomStream;
use loadline_analysis::search::TrialOutcome;
use loadline_analysis::search::min_memory::{MemoryFound, MemoryParameters, MemoryStep, MinMemory};
use loadline_simulated::world::MemoryWall;
use loadline_sizing::Bytes;

const SERVICES: u64 = 20_000;

#[derive(Debug)]
struct Row {
    bad: f64,
    below_99: f64,
    starts_mean: f64,
    starts_p95: f64,
    oversize_median: f64,
    oversize_p90: f64,
    no_answer: f64,
}

fn parameters(confirmations: u32, margin: f64) -> MemoryParameters {
    MemoryParameters {
        high_passed: true,
        resolution: 1.02,
        backoff: 1.02,
        confirmations,
        after_miss: confirmations,
        margin,
        ..MemoryParameters::new(Bytes::from_mib(64), Bytes::from_mib(1024))
    }
}

fn search(
    parameters: MemoryParameters,
    wall: MemoryWall,
    random: &mut RandomStream,
) -> Option<MemoryFound> {
    let mut search = MinMemory::new(parameters);
    loop {
        match search.next() {
            MemoryStep::Try(size, _) => {
                let passed = random.chance(wall.pass_probability(size.as_mib()));
                let outcome = if passed {
                    TrialOutcome::Pass
                } else {
                    TrialOutcome::Fail
                };
                search.record_trial(size, outcome).unwrap();
            }
            MemoryStep::Done(answer) => return Some(answer),
            MemoryStep::Infeasible { .. } => return None,
            MemoryStep::CouldNotMeasure { .. } => unreachable!("every trial counts here"),
        }
    }
}

fn row(parameters: MemoryParameters) -> Row {
    let seeds = RandomStream::from_seed(2026);
    let runs: Vec<(MemoryWall, Option<MemoryFound>)> = (0..SERVICES)
        .map(|service| {
            let mut random = seeds.derive(service);
            let wall = MemoryWall::draw_wall(&mut random);
            (wall, search(parameters, wall, &mut random))
        })
        .collect();
    let answered: Vec<(MemoryWall, MemoryFound)> = runs
        .iter()
        .filter_map(|(wall, a)| Some((*wall, (*a)?)))
        .collect();
    let share_below = |probability: f64| {
        let is_below = |(wall, a): &&(MemoryWall, MemoryFound)| {
            wall.pass_probability(a.size.as_mib()) < probability
        };
        answered.iter().filter(is_below).count() as f64 / answered.len() as f64
    };
    let starts: Vec<f64> = answered.iter().map(|(_, a)| f64::from(a.starts)).collect();
    let oversize: Vec<f64> = answered
        .iter()
        .map(|(wall, a)| a.size.as_mib() / wall.memory_for(0.95) - 1.0)
        .collect();
    Row {
        bad: share_below(0.95),
        below_99: share_below(0.99),
        starts_mean: starts.iter().sum::<f64>() / starts.len() as f64,
        starts_p95: quantile(&starts, 0.95).unwrap(),
        oversize_median: quantile(&oversize, 0.5).unwrap(),
        oversize_p90: quantile(&oversize, 0.9).unwrap(),
        no_answer: 1.0 - answered.len() as f64 / runs.len() as f64,
    }
}

fn near(name: &str, got: f64, published: f64, tolerance: f64) {
    let difference = (got - published).abs();
    assert!(
        difference <= tolerance,
        "{name}: {got}, published {published} ± {tolerance}"
    );
}

#[test]
fn five_confirmations_are_wrong_once_in_five_hundred_searches() {
    let row = row(parameters(5, 0.08));
    near("bad", row.bad, 0.002, 0.003);
    near("below 99 %", row.below_99, 0.089, 0.025);
    near("starts", row.starts_mean, 15.2, 0.4);
    near("starts p95", row.starts_p95, 21.0, 1.0);
    near("oversize", row.oversize_median, 0.087, 0.006);
    near("oversize p90", row.oversize_p90, 0.112, 0.008);
    assert_eq!(row.no_answer, 0.0);
    assert!(row.bad <= 0.01, "acceptance: at most 1 % bad results");
}

#[test]
fn three_confirmations_trade_three_starts_for_one_bad_answer_in_a_hundred() {
    let row = row(parameters(3, 0.08));
    near("bad", row.bad, 0.013, 0.006);
    near("below 99 %", row.below_99, 0.15, 0.03);
    near("starts", row.starts_mean, 12.1, 0.4);
    near("starts p95", row.starts_p95, 16.0, 1.0);
    near("oversize", row.oversize_median, 0.082, 0.006);
}

#[test]
fn a_smaller_margin_costs_the_published_errors() {
    let three = row(parameters(3, 0.05));
    near("confirm 3 + 5 %", three.bad, 0.074, 0.02);
    let five = row(parameters(5, 0.05));
    near("confirm 5 + 5 %", five.bad, 0.041, 0.015);
    let ten = row(parameters(10, 0.05));
    near("confirm 10 + 5 %", ten.bad, 0.006, 0.006);
    near("starts of confirm 10", ten.starts_mean, 22.5, 1.0);
}

#[test]
fn plain_bisection_is_nearly_always_wrong() {
    // The published row halves down to neighbouring sizes: resolution 1.
    let plain = row(MemoryParameters {
        resolution: 1.0,
        ..parameters(0, 0.0)
    });
    near("bad", plain.bad, 0.87, 0.03);
    near("starts", plain.starts_mean, 7.9, 0.3);
    near("oversize", plain.oversize_median, -0.022, 0.006);
    let margin_only = row(parameters(0, 0.08));
    near("8 % margin only", margin_only.bad, 0.14, 0.03);
}

/// The acceptance of the whole search: three independent searches of one service agree within
/// 8 %, in at most 21 starts. Each holds for 95 % of these services: the noisiest third (3 %)
/// has the exceptions.
#[test]
fn three_searches_of_one_service_agree() {
    let seeds = RandomStream::from_seed(8);
    let mut agreed = 0;
    let mut searches_in_21 = 0;
    let services = 1000;
    for service in 0..services {
        let mut random = seeds.derive(service);
        let wall = MemoryWall::draw_wall(&mut random);
        let answers: Vec<MemoryFound> = (0..3)
            .filter_map(|_| search(parameters(5, 0.08), wall, &mut random))
            .collect();
        let sizes = answers.iter().map(|a| a.size.as_mib());
        let (low, high) = (
            sizes.clone().fold(f64::MAX, f64::min),
            sizes.fold(0.0, f64::max),
        );
        agreed += u64::from(high / low <= 1.08);
        searches_in_21 += answers.iter().filter(|a| a.starts <= 21).count();
    }
    let agreed = agreed as f64 / services as f64;
    let within = searches_in_21 as f64 / (3 * services) as f64;
    assert!(agreed >= 0.93, "{agreed}");
    assert!(within >= 0.935, "{within}");
}
