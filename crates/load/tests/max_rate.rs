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
        slos: vec![
            "p90<100ms".parse().unwrap(),
            "p99<150ms,errors<1%".parse().unwrap(),
        ],
        trial: Duration::from_secs(3),
        is_strict: false,
        curve_steps: 4,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let found = max_rate(&plan, &search, &stop, &mut |trial| {
        println!("{}", trial.row())
    })
    .unwrap();
    server.stop();
    for goal in &found.goals {
        let rate = goal.rate.unwrap();
        // More than the capacity cannot be answered; less is a busy machine's doing.
        assert!(
            (0.93 * CAPACITY..1.002 * CAPACITY).contains(&rate),
            "{goal:?}"
        );
        assert!(goal.too_high.is_some() && goal.broke.is_some(), "{goal:?}");
    }
    // Both SLOs share the trials.
    assert!(found.trials.len() <= 12, "{}", found.trials.len());
    let shares: Vec<f64> = found.curve.iter().map(|point| point.share).collect();
    assert_eq!(shares, [0.25, 0.5, 0.75, 1.0]);
    let half = &found.curve[1];
    assert!((half.achieved_rate / half.offered_rate - 1.0).abs() < 0.1);
}
