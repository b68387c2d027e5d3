//! Several JDKs in one search: what the first needs tells the second where to look.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use loadline_analysis::random::RandomStream;
use loadline_analysis::search::size::SearchedBase;
use loadline_engine::searches::size_search;
use loadline_simulated::World;
use loadline_simulated::world::MemoryWall;

#[test]
fn the_second_takes_fewer_starts_than_the_first() {
    let tables = "[search]\nprove = 5\n[[factor]]\nname = \"jdk\"\nlevels = [\"17\", \"25\"]";
    let experiment = rig::experiment(tables, "200/s");
    let search = size_search(&experiment, None);
    let mut starts = [0, 0];
    for seed in 0..30 {
        let world = World {
            wall: MemoryWall::draw_wall(&mut RandomStream::from_seed(5000).derive(seed)),
            ..World::default()
        };
        let (sized, ..) = rig::answer(world, seed, 1, &experiment, &search);
        let own = |searched: &SearchedBase| searched.trials.len();
        starts[0] += own(&sized.searched[0]);
        starts[1] += own(&sized.searched[1]);
    }
    println!("starts before the proof in 30 searches: {starts:?}");
    assert!(starts[1] * 10 <= starts[0] * 8, "{starts:?}");
}
