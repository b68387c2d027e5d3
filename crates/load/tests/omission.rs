//! Latency from the intended time: a stall of the server shows in full, a slow answer does not
//! hold up the others.
//!
//! These tests check what is measured against what the server is known to have done. The bounds
//! leave room for a busy machine only where that cannot hide the error looked for: a generator
//! that waits for answers reports a few ms where the truth is hundreds.

mod plans;
#[allow(dead_code, reason = "the example uses the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{Model, Outcome, Plan, run};
use rig::server::{Behaviour, Server};

const RATE: f64 = 1000.0;

fn go(plan: &Plan) -> Outcome {
    run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {}).expect("the plan can be run")
}

/// Source of the formula: with uniform arrivals over W and one stall of S, the requests due in the
/// stall have latencies uniform on (0, S], so L(q) = S - (1 - q)·W for q > 1 - S/W.
fn stall(connections: u32) {
    let (stall, window) = (Duration::from_millis(800), Duration::from_secs(8));
    let server = Server::local(Behaviour {
        stall: Some((Duration::from_secs(4), stall)),
        ..Behaviour::default()
    });
    let outcome = go(&Plan {
        connections,
        ..plans::plan(server.address, Model::constant(RATE, window))
    });
    server.stop();
    assert_eq!(outcome.measure.ok, 8000);
    for quantile in [0.95, 0.99, 0.999, 1.0] {
        let expected = (stall.as_secs_f64() - (1.0 - quantile) * window.as_secs_f64()) * 1e3;
        let found = outcome
            .measure
            .latency_quantile(quantile)
            .expect("no failures");
        let found = found.as_secs_f64() * 1e3;
        // 1 % of the stall for the formula, 12 ms for the backlog and a busy machine.
        assert!(
            (found - expected).abs() < 20.0,
            "{connections} connections, quantile {quantile}: {found} ms, expected {expected} ms"
        );
    }
    // The wait for a free connection is the server's doing, not the generator's lag.
    let lag = outcome.health.send_lag_p99;
    assert!(lag < Duration::from_millis(80), "{lag:?}");
}

#[test]
fn a_stall_shows_in_full_with_few_connections() {
    stall(10);
}

#[test]
fn a_stall_shows_in_full_with_many_connections() {
    stall(512);
}

#[test]
fn one_slow_request_in_a_hundred_does_not_hold_up_the_others() {
    let slow = Duration::from_millis(500);
    let server = Server::local(Behaviour {
        slow: Some((100, slow)),
        ..Behaviour::default()
    });
    let model = Model::constant(RATE, Duration::from_secs(5));
    let outcome = go(&plans::plan(server.address, model));
    server.stop();
    let at = |q| {
        outcome
            .measure
            .latency_quantile(q)
            .expect("no failures")
            .as_millis()
    };
    // A generator with a schedule for each connection reports about 100 ms here.
    assert!(at(0.95) < 40, "{}", at(0.95));
    assert!((500..540).contains(&at(0.999)), "{}", at(0.999));
    assert!((500..560).contains(&at(1.0)), "{}", at(1.0));
}

#[test]
fn a_server_without_capacity_for_the_rate_shows_a_growing_queue() {
    let server = Server::local(Behaviour {
        capacity: Some(500.0),
        ..Behaviour::default()
    });
    let model = Model::constant(RATE, Duration::from_secs(2));
    let outcome = go(&plans::plan(server.address, model));
    server.stop();
    // 2000 requests at 500/s: the last one waits until 4 s, 2 s after it was due.
    let last = outcome.measure.latency.max() as f64 / 1e9;
    assert!((last - 2.0).abs() < 0.1, "{last}");
    let service = outcome.measure.service_time.max() as f64 / 1e9;
    assert!(
        service < 0.5,
        "8 connections wait for each other only: {service}"
    );
}
