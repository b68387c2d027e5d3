//! The warm-up study finds when a server that is known to be slow at first got fast.

mod plans;
mod quiet;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_analysis::steady::SteadinessRule;
use loadline_load::warmup::{SteadyEnd, WarmUpStudy};
use loadline_load::{LoadModel, LoadPlan, run};
use rig::server::{Behaviour, Server};

const RATE: f64 = 200.0;

#[test]
fn the_end_of_the_warm_up_is_found_and_its_requests_are_counted() {
    // A standstill of half a second changes the median of a second.
    quiet::measured(
        "the_end_of_the_warm_up_is_found_and_its_requests_are_counted",
        Duration::from_millis(250),
        the_end_of_the_warm_up,
    );
}

fn the_end_of_the_warm_up() -> Result<(), String> {
    let server = Server::local(Behaviour {
        warm_up: Some((Duration::from_secs(6), Duration::from_millis(80))),
        // Every answer takes long enough that the noise of a busy machine is small in comparison.
        slow: Some((1, Duration::from_millis(20))),
        ..Behaviour::default()
    });
    let model = LoadModel::at_constant_rate(RATE, Duration::from_secs(18));
    let plan = LoadPlan {
        connections: 50,
        ..plans::plan(server.address, model)
    };
    // The rule for long runs, shortened: 30 s steady are too long for a test.
    let rule = SteadinessRule {
        fewest_steady: 8,
        tolerance: 0.25,
        ..SteadinessRule::default()
    };
    let mut study = WarmUpStudy::with_rule(&plan, rule);
    let stop = Arc::new(AtomicBool::new(false));
    run(&plan, &stop, &mut |second| study.add_second(second)).expect("the plan can be run");
    server.stop();
    let found = study.judge_warm_up().expect("the run is long enough");
    let is_found = found.outcome == SteadyEnd::Steady && (6..=8).contains(&found.seconds);
    // All requests of the first six seconds were slower, and no others.
    let share = found.slower_requests as f64 / (RATE * 6.0);
    let are_counted = (share - 1.0).abs() < 0.2;
    quiet::holds(is_found && are_counted, || format!("{found:?}"))
}
