//! A body of 1 GB is counted to the byte, takes no memory, and does not delay others.
//!
//! Alone in its process: the test reads the memory of the process.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{LoadModel, run};
use server::{Answer, Server};

const BODY: usize = 1 << 30;

/// Largest resident memory of this process so far, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse().ok());
    kib.expect("VmHWM is in kB")
}

#[test]
fn a_body_of_1_gb_takes_no_memory() {
    let server = Server::start(|n| match n {
        0 => Answer::Large(BODY),
        _ => server::ok(),
    });
    let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(2));
    let mut plan = plans::plan(server.address, model);
    plan.timeout = Duration::from_secs(120);
    plan.drain = Duration::from_secs(120);
    let before = peak_memory();
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    let outcome = outcome.expect("the plan can be run");
    let grown = peak_memory() - before;
    let totals = outcome.measure;
    assert_eq!(totals.ok, 200, "{:?}", totals.errors_by_name());
    assert_eq!(totals.body_bytes, BODY as u64 + 199 * 2);
    // Histograms and threads; 1/64 of the body would show.
    assert!(grown < 16 * 1024, "{grown} KiB");
}
