//! The process side: an order in, messages out.

#[allow(dead_code, reason = "other tests use the rest")]
mod server;

use loadline_load::{LoadModel, part};
use std::time::Duration;

use server::{Server, ok};

#[test]
fn an_order_gives_seconds_and_one_result() {
    let server = Server::start(|_| ok());
    let order = format!(
        r#"{{"plan": {{"targets": ["{}"], "request": {{"method": "GET", "path": "/"}},
            "model": {{"kind": "open", "segments": [{{"from": 100, "to": 100, "duration_ns": 2000000000}}]}},
            "connections": 2, "timeout_ns": 10000000000, "drain_ns": 10000000000}}}}"#,
        server.address
    );
    let mut output = Vec::new();
    let order = part::read_order(&mut order.as_bytes()).unwrap().unwrap();
    part::run(&order, &mut output).unwrap();
    let messages: Vec<part::LoadMessage> = String::from_utf8(output)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let (last, seconds) = messages.split_last().unwrap();
    assert!(
        seconds
            .iter()
            .all(|m| matches!(m, part::LoadMessage::Second(_)))
    );
    assert!(seconds.len() >= 2);
    let part::LoadMessage::Result(result) = last else {
        panic!("{last:?}");
    };
    assert_eq!(
        (result.measure.totals.scheduled, result.measure.totals.ok),
        (200, 200)
    );
    assert_eq!(result.end_ns - result.start_ns, 2_000_000_000);
    assert_eq!(result.measure.totals.latency.len(), 200);
}

#[test]
fn an_order_reads_back_as_it_was_written() {
    let order = part::LoadOrder {
        plan: loadline_load::LoadPlan {
            pacing: loadline_load::Pacing::Quantum {
                quantum: Duration::from_micros(250),
            },
            slo: Some(Duration::from_millis(50)),
            ..loadline_load::LoadPlan::new(
                vec!["[::1]:80".parse().unwrap()],
                loadline_load::RequestSpec {
                    body: vec![0, 255],
                    ..loadline_load::RequestSpec::for_get("/x")
                },
                LoadModel::at_constant_rate(1.5, Duration::from_secs(1)),
            )
        },
        netns: Some("/proc/1/ns/net".into()),
        generators: None,
        front_port: None,
    };
    let text = serde_json::to_string(&order).unwrap();
    assert_eq!(
        serde_json::from_str::<part::LoadOrder>(&text).unwrap(),
        order
    );
}

#[test]
fn a_wrong_order_says_what_is_wrong() {
    for (order, expected) in [
        ("{", "the order on standard input is not valid"),
        (
            r#"{"plan": {"targets": [], "request": {"method": "GET", "path": "/"},
               "model": {"kind": "closed_requests", "requests": 1},
               "connections": 1, "timeout_ns": 1, "drain_ns": 1}}"#,
            "targets: no address is given",
        ),
    ] {
        let order = part::read_order(&mut order.as_bytes());
        let error = order.and_then(|order| part::run(&order.unwrap(), Vec::new()));
        let error = error.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
