//! A generator that shares its CPU with others says that it was itself the bottleneck.
//!
//! benches/saturated.py counts this over 20 runs, with a throttled generator and with clean runs,
//! which only a quiet machine can have.

#[allow(dead_code, reason = "other tests need the rest")]
mod cpus;
mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loadline_load::{LoadModel, LoadPlan, run};
use rig::server::{Behaviour, Server};

/// A thread that does nothing, on one CPU, as fast as it can.
fn hog(cpu: u32, stop: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        cpus::pin(cpu as usize);
        while !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })
}

#[test]
fn a_hog_on_the_generator_s_cpu_is_noticed() {
    let cpu = cpus::first();
    let server = Server::local(Behaviour::default());
    let done = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..3).map(|_| hog(cpu, &done)).collect();
    let plan = LoadPlan {
        cpus: vec![cpu],
        ..plans::plan(
            server.address,
            LoadModel::at_constant_rate(5000.0, Duration::from_secs(1)),
        )
    };
    for _ in 0..3 {
        let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
        let outcome = outcome.expect("the plan can be run");
        outcome
            .measure
            .check_balance()
            .expect("outcomes add up all the same");
        assert!(outcome.health.saturated.is_some(), "{:?}", outcome.health);
    }
    done.store(true, Ordering::Relaxed);
    for hog in hogs {
        hog.join().expect("it stops");
    }
    server.stop();
}
