//! What is told of a search before it runs holds on the simulated host.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use std::time::Duration;

use loadline_analysis::interval::median;
use loadline_analysis::random::Random;
use loadline_analysis::search::outlook::Outlook;
use loadline_engine::searches::sizes;
use loadline_simulated::World;
use loadline_simulated::world::MemoryWall;

#[test]
fn searches_take_as_many_starts_as_was_told() {
    let tables = "[search]\nmin-memory = \"64Mi\"\nmax-memory = \"1Gi\"\n";
    let experiment = rig::experiment(tables, "200/s");
    let search = sizes(&experiment, None);
    let told = Outlook::of(&search, &experiment.slo, Duration::from_secs(18));
    let starts: Vec<f64> = (0..20)
        .map(|seed| {
            let world = World {
                wall: MemoryWall::draw(&mut Random::from_seed(3000).derive(seed)),
                ..World::default()
            };
            let (_, watch, _) = rig::answer(world, seed, 1, &experiment, &search);
            f64::from(watch.begun)
        })
        .collect();
    let half = median(&starts).unwrap();
    let beyond = starts.iter().filter(|n| **n > f64::from(told.starts_95));
    let beyond = beyond.count();
    println!("{half} starts of 20 searches, {beyond} beyond the 95 %; told: {told:?}");
    assert!((half / f64::from(told.starts) - 1.0).abs() < 0.15);
    assert!(beyond <= 4, "one in twenty is expected");
}
