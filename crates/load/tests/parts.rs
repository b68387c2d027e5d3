//! Mixes, profiles and parts: shares, names, and sums that are exact.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::parts::{PartFile, merge};
use loadline_load::profile::Profile;
use loadline_load::{Model, Outcome, Part, Plan, run};
use server::{Server, ok};

fn go(plan: &Plan) -> Outcome {
    run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {}).expect("the plan can be run")
}

fn mixed(server: &Server, model: Model) -> Plan {
    let profile = "[[request]]\nweight = 3\npath = \"/a?n={seq}\"\n\
                   [[request]]\nname = \"b\"\nweight = 1\npath = \"/b\"\n";
    let profile = Profile::parse(profile).expect("a profile");
    let plan = plans::plan(server.address, model);
    Plan {
        mix: profile.mix(&plan.request).expect("no file is needed"),
        ..plan
    }
}

#[test]
fn every_request_of_a_mix_is_counted_under_its_name() {
    let server = Server::start(|_| ok());
    let plan = mixed(&server, Model::ClosedRequests { requests: 2000 });
    let outcome = go(&plan);
    let counts: Vec<u64> = outcome.measure.by_request.iter().map(|r| r.ok).collect();
    assert_eq!(counts.iter().sum::<u64>(), 2000);
    assert!((1400..1600).contains(&counts[0]), "{counts:?}");
    let latencies: u64 = outcome
        .measure
        .by_request
        .iter()
        .map(|r| r.latency.len())
        .sum();
    assert_eq!(latencies, 2000);
}

#[test]
fn parts_are_the_whole_and_merge_exactly() {
    let server = Server::start(|_| ok());
    let model = Model::constant(300.0, Duration::from_secs(1));
    let parts: Vec<(Outcome, PartFile)> = (0..3)
        .map(|index| {
            let plan = Plan {
                part: Part { index, of: 3 },
                ..mixed(&server, model.clone())
            };
            let outcome = go(&plan);
            let file = PartFile::new(&plan, &outcome, "http://x/");
            let text = serde_json::to_string(&file).unwrap();
            (outcome, serde_json::from_str(&text).unwrap())
        })
        .collect();
    for (outcome, _) in &parts {
        assert_eq!(outcome.measure.scheduled, 100);
    }
    let files: Vec<PartFile> = parts.iter().map(|(_, file)| file.clone()).collect();
    let summary = merge(&files).unwrap();
    assert_eq!(
        (summary.requests, summary.ok, summary.connections),
        (300, 300, 24)
    );
    let mut whole = parts[0].0.measure.clone();
    whole.add(&parts[1].0.measure);
    whole.add(&parts[2].0.measure);
    let p99 = whole.latency_quantile(0.99).unwrap().as_nanos() as f64 / 1e3;
    assert_eq!(summary.latency_us.p99, Some(p99));
    let named: u64 = summary.by_request.iter().map(|r| r.ok).sum();
    assert_eq!(named, 300);
}

#[test]
fn files_of_different_loads_do_not_merge() {
    let server = Server::start(|_| ok());
    let files: Vec<PartFile> = [
        Model::ClosedRequests { requests: 10 },
        Model::constant(100.0, Duration::from_millis(100)),
    ]
    .into_iter()
    .map(|model| {
        let plan = plans::plan(server.address, model);
        PartFile::new(&plan, &go(&plan), "http://x/")
    })
    .collect();
    assert!(merge(&files).is_err());
    assert!(merge(&[]).is_err());
}
