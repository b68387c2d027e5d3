//! A replayed profile arrives at the server when it was recorded.
//!
//! benches/replay.py holds the exact bound (1 %) of the counts on a quiet machine; here no request
//! may come early, which no machine can cause, and most of each recorded second must be in time.

mod plans;
mod quiet;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::profile::LoadProfile;
use loadline_load::{ArrivalPattern, LoadModel, run};
use rig::server::{Behaviour, Server};

const RATES: [u32; 6] = [400, 1200, 200, 1000, 600, 1400];

/// Replays `RATES` (a second each) at a speed; returns the arrivals, in ns since the start.
fn replay(speed: f64) -> Vec<u64> {
    let profile = LoadProfile {
        interval_seconds: 1.0,
        rates: RATES.map(f64::from).to_vec(),
        ..LoadProfile::default()
    };
    // The scale undoes what the speed takes: every recorded second keeps its requests.
    let segments = profile
        .rate_segments(speed, speed, None)
        .expect("it has rates");
    let server = Server::local(Behaviour::default());
    let model = LoadModel::Open {
        segments,
        arrivals: ArrivalPattern::Uniform,
    };
    let plan = plans::plan(server.address, model);
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    let outcome = outcome.expect("the plan can be run");
    assert_eq!(outcome.measure.ok, u64::from(RATES.iter().sum::<u32>()));
    let arrivals = server.stop();
    let since = |at: u64| at.checked_sub(outcome.start_ns).expect("none before");
    arrivals.into_iter().map(since).collect()
}

/// When the requests of each recorded second are due, in ns since the start.
fn due(second: f64) -> Vec<Vec<f64>> {
    let of = |(index, rate): (u32, u32)| {
        let due = |n| (f64::from(index) + f64::from(n) / f64::from(rate)) * second;
        (0..rate).map(due).collect()
    };
    (0..).zip(RATES).map(of).collect()
}

#[test]
fn requests_come_when_they_were_recorded_at_every_speed() {
    quiet::measured(
        "requests_come_when_they_were_recorded_at_every_speed",
        Duration::from_millis(30),
        || [1.0, 5.0].into_iter().try_for_each(check),
    );
}

fn check(speed: f64) -> Result<(), String> {
    let mut arrivals = replay(speed).into_iter();
    let second = 1e9 / speed;
    let lateness = due(second).into_iter().map(|due| {
        let late = |due: f64| arrivals.next().expect("all came") as f64 - due;
        let mut late: Vec<f64> = due.into_iter().map(late).collect();
        late.sort_by(f64::total_cmp);
        late
    });
    let lateness: Vec<Vec<f64>> = lateness.collect();
    // 1 µs is for rounding.
    let earliest: Vec<f64> = lateness.iter().map(|late| late[0]).collect();
    assert!(earliest.iter().all(|ns| *ns >= -1000.0), "{earliest:?}");
    let medians: Vec<f64> = lateness.iter().map(|late| late[late.len() / 2]).collect();
    let are_in_time = medians.iter().all(|late| *late < second / 4.0);
    quiet::holds(are_in_time, || format!("x{speed}: late by {medians:?} ns"))
}
