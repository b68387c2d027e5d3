//! The warm-up study finds when a server that is known to be slow at first got fast.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_analysis::steady::Rule;
use loadline_load::warmup::{Steady, Study};
use loadline_load::{Model, Plan, run};
use rig::server::{Behaviour, Server};

const RATE: f64 = 200.0;

#[test]
fn the_end_of_the_warm_up_is_found_and_its_requests_are_counted() {
    let server = Server::local(Behaviour {
        warm_up: Some((Duration::from_secs(6), Duration::from_millis(80))),
        // Every answer takes long enough for the noise of a busy machine to be small beside it.
        slow: Some((1, Duration::from_millis(20))),
        ..Behaviour::default()
    });
    let model = Model::constant(RATE, Duration::from_secs(18));
    let plan = Plan {
        connections: 50,
        ..plans::plan(server.address, model)
    };
    // The rule for long runs, shortened: 30 s steady are too long for a test.
    let rule = Rule {
        fewest_steady: 8,
        tolerance: 0.25,
        ..Rule::default()
    };
    let mut study = Study::with_rule(&plan, rule);
    let stop = Arc::new(AtomicBool::new(false));
    run(&plan, &stop, &mut |second| study.take(second)).expect("the plan can be run");
    server.stop();
    let found = study.judge().expect("the run is long enough");
    assert_eq!(found.outcome, Steady::Steady, "{found:?}");
    assert!((6..=8).contains(&found.seconds), "{found:?}");
    // All requests of the first six seconds were slower, and no others.
    let expected = RATE * 6.0;
    assert!(
        (found.slower_requests as f64 / expected - 1.0).abs() < 0.2,
        "{found:?}"
    );
}
