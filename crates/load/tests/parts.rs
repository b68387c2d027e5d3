//! Mixes, profiles and parts: shares, names, and sums that are exact.

#[allow(dead_code, reason = "other tests need the rest")]
mod cpus;
mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::parts::{PartFile, merge};
use loadline_load::{LoadModel, LoadOutcome, LoadPart, LoadPlan, LoadSpec, run};
use server::{Server, ok};

fn go(plan: &LoadPlan) -> LoadOutcome {
    run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {}).expect("the plan can be run")
}

fn mixed(server: &Server, model: LoadModel) -> LoadPlan {
    let mix = "[[request]]\nweight = 3\npath = \"/a?n={seq}\"\n\
                   [[request]]\nname = \"b\"\nweight = 1\npath = \"/b\"\n";
    let load = format!("url = \"http://{}/\"\nclosed = true\n{mix}", server.address);
    let load: LoadSpec = toml::from_str(&load).expect("a load");
    let load = load
        .to_plan(vec![server.address])
        .expect("no file is needed");
    LoadPlan {
        mix: load.mix,
        ..plans::plan(server.address, model)
    }
}

#[test]
fn every_request_of_a_mix_is_counted_under_its_name() {
    let server = Server::start(|_| ok());
    let plan = mixed(&server, LoadModel::ClosedRequests { requests: 2000 });
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
    let model = LoadModel::at_constant_rate(300.0, Duration::from_secs(1));
    let parts: Vec<(LoadOutcome, PartFile)> = (0..3)
        .map(|index| {
            let plan = LoadPlan {
                part: LoadPart { index, of: 3 },
                ..mixed(&server, model.clone())
            };
            let outcome = go(&plan);
            let file = PartFile::new(&plan, &outcome, "http://x/");
            let text = serde_json::to_string(&file).unwrap();
            (outcome, PartFile::parse_part_file(&text).unwrap())
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
    whole.add_outcomes(&parts[1].0.measure);
    whole.add_outcomes(&parts[2].0.measure);
    let p99 = whole.latency_quantile(0.99).unwrap().as_nanos() as f64 / 1e3;
    assert_eq!(summary.latency_us.p99, Some(p99));
    let named: u64 = summary.by_request.iter().map(|r| r.ok).sum();
    assert_eq!(named, 300);
}

/// The file of one of two parts.
fn half(server: &Server, index: u32, model: LoadModel) -> PartFile {
    let plan = LoadPlan {
        part: LoadPart { index, of: 2 },
        ..plans::plan(server.address, model)
    };
    PartFile::new(&plan, &go(&plan), "http://x/")
}

#[test]
fn only_all_parts_of_one_load_merge_each_of_them_once() {
    let server = Server::start(|_| ok());
    let model = || LoadModel::at_constant_rate(100.0, Duration::from_millis(200));
    let (first, second) = (half(&server, 0, model()), half(&server, 1, model()));
    let changed = |change: fn(&mut PartFile)| {
        let mut other = second.clone();
        change(&mut other);
        vec![first.clone(), other]
    };
    let faster = half(
        &server,
        1,
        LoadModel::at_constant_rate(200.0, Duration::from_millis(200)),
    );
    let closed = half(&server, 1, LoadModel::ClosedRequests { requests: 10 });
    let cases = [
        (Vec::new(), "part: no file is given"),
        (vec![first.clone()], "part: 1/2 is missing"),
        (vec![second.clone()], "part: 0/2 is missing"),
        (
            vec![first.clone(), second.clone(), first.clone()],
            "part: 0/2 is given more than once",
        ),
        (
            vec![first.clone(), faster],
            "part: 0/2 and 1/2 are of different loads: the rate or the length",
        ),
        (
            vec![first.clone(), closed],
            "part: 0/2 and 1/2 are of different loads: the model",
        ),
        (
            changed(|file| file.part.of = 3),
            "part: 0/2 and 1/3 are of different loads: the number of parts",
        ),
        (
            changed(|file| file.setting.url = "http://y/".to_owned()),
            "part: 0/2 and 1/2 are of different loads: the URL",
        ),
        (
            changed(|file| file.warmup = Duration::from_millis(100)),
            "part: 0/2 and 1/2 are of different loads: the warm-up",
        ),
        (
            changed(|file| file.setting.requests.push("b".to_owned())),
            "part: 0/2 and 1/2 are of different loads: the mix",
        ),
    ];
    for (files, expected) in cases {
        let refused = merge(&files).expect_err(expected).to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
    let summary = merge(&[second, first]).expect("the order does not matter");
    assert_eq!((summary.requests, summary.ok), (20, 20));
}

#[test]
fn a_file_of_another_version_says_so() {
    for (text, expected) in [
        ("{", "part: EOF"),
        (
            r#"{"schema": 1, "setting": {}}"#,
            "part: the file has schema 1",
        ),
        (r#"{"schema": 2}"#, "part: missing field"),
    ] {
        let refused = PartFile::parse_part_file(text).expect_err(text).to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn parts_with_different_threads_share_no_sequence_number() {
    let server = Server::start(|_| ok());
    let model = LoadModel::at_constant_rate(300.0, Duration::from_secs(1));
    let files: Vec<PartFile> = [vec![], vec![cpus::first(); 2]]
        .into_iter()
        .zip(0..)
        .map(|(cpus, index)| {
            let plan = LoadPlan {
                part: LoadPart { index, of: 2 },
                cpus,
                ..mixed(&server, model.clone())
            };
            PartFile::new(&plan, &go(&plan), "http://x/")
        })
        .collect();
    let summary = merge(&files).expect("both parts are there");
    assert_eq!(
        (summary.requests, summary.ok, summary.threads),
        (300, 300, 3)
    );
    assert!(
        (200.0..=300.0).contains(&summary.achieved_rate),
        "{summary:?}"
    );
}
