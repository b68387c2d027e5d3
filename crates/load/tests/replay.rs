//! A replayed profile arrives at the server with the counts that were recorded.
//!
//! benches/replay.py holds the exact bound (1 %) on a quiet machine; here the bound leaves room
//! for requests that a busy one sends into the next stretch of time.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadline_load::profile::Profile;
use loadline_load::{Arrivals, Model, run};
use rig::server::{Behaviour, Server};

const RATES: [f64; 6] = [400.0, 1200.0, 200.0, 1000.0, 600.0, 1400.0];

/// Replays `RATES` (a second each) at a speed; returns the arrivals of each recorded second.
fn replay(speed: f64) -> Vec<u64> {
    let profile = Profile {
        interval_seconds: 1.0,
        rates: RATES.to_vec(),
        ..Profile::default()
    };
    // The scale undoes what the speed takes: every recorded second keeps its requests.
    let segments = profile.segments(speed, speed, None).expect("it has rates");
    let server = Server::local(Behaviour::default());
    let model = Model::Open {
        segments,
        arrivals: Arrivals::Uniform,
    };
    let plan = plans::plan(server.address, model);
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    let outcome = outcome.expect("the plan can be run");
    let requests = RATES.iter().sum::<f64>() as u64;
    assert_eq!(outcome.measure.ok, requests);
    let second = (1e9 / speed) as u64;
    let mut counts = vec![0; RATES.len()];
    for arrival in server.stop() {
        let at = ((arrival - outcome.start_ns) / second) as usize;
        counts[at.min(RATES.len() - 1)] += 1;
    }
    counts
}

#[test]
fn counts_are_those_of_the_recording_at_every_speed() {
    for speed in [1.0, 5.0] {
        let counts = replay(speed);
        for (count, rate) in counts.iter().zip(RATES) {
            let off = (*count as f64 - rate).abs();
            assert!(off <= 0.15 * rate + 60.0, "x{speed}: {counts:?}, {RATES:?}");
        }
    }
}
