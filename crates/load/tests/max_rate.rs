//! The search finds the capacity of a server whose capacity is known.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::max_rate::{Search, max_rate};
use loadline_load::{Model, Plan};
use rig::server::{Behaviour, Server};

const CAPACITY: f64 = 400.0;

#[test]
fn the_answer_lies_just_below_the_capacity() {
    let server = Server::local(Behaviour {
        capacity: Some(CAPACITY),
        ..Behaviour::default()
    });
    let model = Model::ClosedRequests { requests: 1 };
    let plan = Plan {
        // A machine that runs other tests makes the generator late; the search is tested here.
        slo: Some(Duration::from_secs(5)),
        ..plans::plan(server.address, model)
    };
    let search = Search {
        slos: vec!["p90<100ms".parse().unwrap()],
        trial: Duration::from_secs(4),
        is_strict: false,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let found = max_rate(&plan, &search, &stop, &mut |trial| {
        println!("{}", trial.row())
    })
    .unwrap();
    server.stop();
    let goal = &found.goals[0];
    let rate = goal.rate.unwrap();
    assert!(
        (0.9 * CAPACITY..1.04 * CAPACITY).contains(&rate),
        "{goal:?}"
    );
    assert!(goal.too_high.is_some() && goal.broke.is_some(), "{goal:?}");
    assert!(found.trials.len() <= 12, "{}", found.trials.len());
}
