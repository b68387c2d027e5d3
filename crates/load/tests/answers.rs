//! Real servers' oddities: each gives right counts or a named error, and never hangs the load.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_load::{Expectation, Model, Plan, Totals, run};
use server::{Answer, Server};

fn go(plan: &Plan) -> Totals {
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run").measure
}

/// 40 requests, one connection after the other's answer.
fn closed(server: &Server) -> Plan {
    Plan {
        timeout: Duration::from_millis(600),
        ..plans::plan(server.address, Model::ClosedRequests { requests: 40 })
    }
}

fn answers(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Totals {
    go(&closed(&Server::start(answer)))
}

fn all(kind: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(kind.to_owned(), 40)])
}

#[test]
fn chunked_and_interim_answers_are_good_ones() {
    let chunked =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n";
    let totals = answers(|_| Answer::Bytes(chunked.to_vec()));
    assert_eq!((totals.ok, totals.body_bytes), (40, 200));
}

#[test]
fn an_answer_in_single_bytes_is_good_when_it_comes_in_time() {
    let totals = answers(|_| {
        Answer::Slowly(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            Duration::from_micros(500),
        )
    });
    assert_eq!(totals.ok, 40);
}

#[test]
fn a_slow_loris_runs_into_the_timeout() {
    let totals = answers(|_| {
        Answer::Slowly(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            Duration::from_millis(100),
        )
    });
    assert_eq!(totals.errors(), all("timeout"));
}

#[test]
fn what_is_cut_short_is_no_good_answer() {
    for cut in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\nConte",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"",
    ] {
        let totals = answers(|_| Answer::Last(cut.to_vec()));
        assert_eq!(
            totals.errors(),
            all("closed"),
            "{}",
            String::from_utf8_lossy(cut)
        );
    }
}

#[test]
fn broken_heads_are_protocol_errors() {
    for broken in [
        "HTTP/1.1 abc\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000)),
    ] {
        let answer = broken.clone();
        let totals = answers(move |_| Answer::Bytes(answer.clone().into_bytes()));
        assert_eq!(totals.errors(), all("protocol"), "{:.40}", broken);
    }
}

#[test]
fn more_than_was_asked_for_ends_the_connection_not_the_load() {
    let two =
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let totals = answers(|_| Answer::Bytes(two.to_vec()));
    assert_eq!(totals.ok, 40);
}

#[test]
fn a_body_of_300_mb_is_counted_and_does_not_hold_up_the_others() {
    const BODY: usize = 300 << 20;
    let server = Server::start(|n| match n {
        0 => {
            let mut bytes =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes();
            bytes.resize(bytes.len() + BODY, b'x');
            Answer::Bytes(bytes)
        }
        _ => server::ok(),
    });
    let mut plan = plans::plan(
        server.address,
        Model::constant(100.0, Duration::from_secs(2)),
    );
    plan.timeout = Duration::from_secs(60);
    plan.drain = Duration::from_secs(60);
    let totals = go(&plan);
    assert_eq!(totals.ok, 200, "{:?}", totals.errors());
    assert_eq!(totals.body_bytes, BODY as u64 + 199 * 2);
}

#[test]
fn an_answer_must_be_what_was_expected() {
    let server = Server::start(|n| {
        let body = if n % 4 == 0 { "broken" } else { "all is well" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        Answer::Bytes((head + body).into_bytes())
    });
    let totals = go(&Plan {
        expect: Expectation {
            body_contains: Some("is well".to_owned()),
            ..Expectation::default()
        },
        ..closed(&server)
    });
    assert_eq!((totals.ok, totals.errors()["wrong_body"]), (30, 10));
}

#[test]
fn a_large_request_arrives_whole() {
    let server = Server::start(|_| server::ok());
    let mut plan = closed(&server);
    plan.timeout = Duration::from_secs(10);
    plan.model = Model::ClosedRequests { requests: 16 };
    plan.request.method = "POST".to_owned();
    plan.request.body = vec![b'x'; 8 << 20];
    let totals = go(&plan);
    assert_eq!(totals.ok, 16);
    assert_eq!(server.body_bytes(), 16 * (8 << 20));
}
