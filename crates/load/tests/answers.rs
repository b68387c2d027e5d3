//! Real servers' oddities: each gives right counts or a named error, and never hangs the load.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::{Expectation, LoadModel, LoadPlan, LoadTotals, run};
use server::{Answer, Server};

fn go(plan: &LoadPlan) -> LoadTotals {
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run").measure
}

/// 40 requests, one connection after the other's answer.
fn closed(server: &Server) -> LoadPlan {
    plans::plan(server.address, LoadModel::ClosedRequests { requests: 40 })
}

fn answers(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> LoadTotals {
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
fn an_answer_of_each_form_ends_where_it_ends() {
    // Head, body, bytes of body that must be counted.
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";
    let forms: [(&str, &[u8], u64); 7] = [
        (
            "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 25",
            gzip,
            25,
        ),
        ("204 No Content", b"", 0),
        ("304 Not Modified\r\nContent-Length: 500", b"", 0),
        ("200 OK\r\nContent-Length: 0", b"", 0),
        ("200\r\ncontent-length:5", b"hello", 5),
        (
            "200 OK\r\nTransfer-Encoding: Chunked",
            b"3;a=\"b\"\r\nabc\r\n00\r\n\r\n",
            3,
        ),
        (
            "200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2",
            b"ok",
            2,
        ),
    ];
    for (head, body, counted) in forms {
        let answer = [b"HTTP/1.1 ", head.as_bytes(), b"\r\n\r\n", body].concat();
        let server = Server::start(move |_| Answer::Bytes(answer.clone()));
        let totals = go(&closed(&server));
        assert_eq!(totals.ok, 40, "{head}: {:?}", totals.errors_by_name());
        assert_eq!(totals.body_bytes, 40 * counted, "{head}");
        // 8 connections serve all 40 requests: no answer left data over.
        assert_eq!(server.connections.load(Ordering::SeqCst), 8, "{head}");
    }
}

#[test]
fn a_gzipped_chunked_answer_is_counted_by_its_bytes_on_the_wire() {
    let mut answer =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
        19\r\n"
            .to_vec();
    answer.extend_from_slice(
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0",
    );
    answer.extend_from_slice(b"\r\n0\r\n\r\n");
    let totals = answers(move |_| Answer::Bytes(answer.clone()));
    assert_eq!((totals.ok, totals.body_bytes), (40, 40 * 25));
}

#[test]
fn the_answer_to_head_has_no_body_whatever_its_length_says() {
    let server = Server::start(|_| {
        Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec())
    });
    let mut plan = closed(&server);
    plan.request.method = "HEAD".to_owned();
    let totals = go(&plan);
    assert_eq!((totals.ok, totals.body_bytes), (40, 0));
}

#[test]
fn http_1_0_closes_unless_it_says_otherwise() {
    for (connection, connections) in [("close", 40), ("keep-alive", 8)] {
        let answer =
            format!("HTTP/1.0 200 OK\r\nConnection: {connection}\r\nContent-Length: 2\r\n\r\nok");
        let server = Server::start(move |_| match connections {
            40 => Answer::Last(answer.clone().into_bytes()),
            _ => Answer::Bytes(answer.clone().into_bytes()),
        });
        let totals = go(&closed(&server));
        assert_eq!(totals.ok, 40, "{connection}: {:?}", totals.errors_by_name());
        let opened = server.connections.load(Ordering::SeqCst);
        assert!(opened >= connections, "{connection}: {opened}");
    }
}

#[test]
fn a_request_that_closes_its_connection_is_the_last_on_it() {
    // The server closes as requested, but does not announce it (like the JDK's own).
    let server =
        Server::start(|_| Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()));
    let mut plan = closed(&server);
    plan.request.headers = vec![("Connection".to_owned(), "Close".to_owned())];
    let totals = go(&plan);
    assert_eq!(totals.ok, 40, "{:?}", totals.errors_by_name());
    assert!(server.connections.load(Ordering::SeqCst) >= 40);
}

#[test]
fn a_half_closed_socket_ends_the_answer_and_the_connection() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let totals = answers(move |_| Answer::HalfClosed(whole.clone()));
    // The answer is whole; the next request may find the connection closing under it.
    let found = totals.errors_by_name();
    let known = ["closed", "reset"]
        .iter()
        .filter_map(|kind| found.get(*kind));
    assert_eq!(totals.ok + known.sum::<u64>(), 40, "{found:?}");
    assert!(totals.ok >= 8, "{found:?}");
    for cut in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let totals = answers(move |_| Answer::HalfClosed(cut.to_vec()));
        assert_eq!(totals.errors_by_name(), all("closed"));
    }
    let to_the_end = b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec();
    let totals = answers(move |_| Answer::HalfClosed(to_the_end.clone()));
    assert_eq!(totals.ok, 40, "{:?}", totals.errors_by_name());
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
    let server = Server::start(|_| {
        Answer::Slowly(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            Duration::from_millis(100),
        )
    });
    let totals = go(&LoadPlan {
        timeout: Duration::from_millis(600),
        ..closed(&server)
    });
    assert_eq!(totals.errors_by_name(), all("timeout"));
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
            totals.errors_by_name(),
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
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(101)),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_owned(),
        "HTTP/2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
    ] {
        let answer = broken.clone();
        let totals = answers(move |_| Answer::Bytes(answer.clone().into_bytes()));
        assert_eq!(totals.errors_by_name(), all("protocol"), "{:.40}", broken);
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
fn an_answer_must_be_what_was_expected() {
    let server = Server::start(|n| {
        let body = if n % 4 == 0 { "broken" } else { "all is well" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        Answer::Bytes((head + body).into_bytes())
    });
    let totals = go(&LoadPlan {
        expect: Expectation {
            body_contains: Some("is well".to_owned()),
            ..Expectation::default()
        },
        ..closed(&server)
    });
    assert_eq!((totals.ok, totals.errors_by_name()["wrong_body"]), (30, 10));
}

#[test]
fn a_large_request_arrives_whole() {
    let server = Server::start(|_| server::ok());
    let mut plan = closed(&server);
    plan.timeout = Duration::from_secs(10);
    plan.model = LoadModel::ClosedRequests { requests: 16 };
    plan.request.method = "POST".to_owned();
    plan.request.body = vec![b'x'; 8 << 20];
    let totals = go(&plan);
    assert_eq!(totals.ok, 16);
    assert_eq!(server.body_bytes(), 16 * (8 << 20));
}
