//! A mix of many requests costs little memory: a separate test, because it reads the peak of its
//! process.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{LoadModel, LoadPlan, RequestSpec, WeightedRequest, run};
use server::{Server, ok};

const REQUESTS: u64 = 400;

/// Largest resident set of this process so far, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process may read its own");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.expect("Linux has the field")
}

#[test]
fn each_request_of_a_mix_costs_far_less_than_a_full_histogram() {
    let server = Server::start(|_| ok());
    let weighted = |n| WeightedRequest {
        is_first: false,
        name: format!("request {n}"),
        weight: 1.0,
        request: RequestSpec::for_get(&format!("/{n}")),
    };
    let model = LoadModel::at_constant_rate(4000.0, Duration::from_secs(2));
    let plan = LoadPlan {
        mix: (0..REQUESTS).map(weighted).collect(),
        ..plans::plan(server.address, model)
    };
    let before = peak_kib();
    let outcome = run(&plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    let outcome = outcome.expect("the plan can be run");
    let used = outcome.measure.by_request.iter().filter(|r| r.ok > 0);
    let used = used.count() as u64;
    assert!(used > REQUESTS * 9 / 10, "{used}");
    // A histogram of all values up to 1 h has 270 KiB, and a run has several sets at once if each
    // second has its own.
    let each = (peak_kib() - before) / REQUESTS;
    assert!(each < 400, "{each} KiB for each request");
}
