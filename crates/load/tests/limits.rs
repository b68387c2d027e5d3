//! Deadlines of connections, pauses, redirects, several instances.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::{Expectation, LoadModel, LoadPlan, LoadTotals, ThinkTime, TlsSpec, run};
use server::{Answer, Server, ok};

fn go(plan: &LoadPlan) -> LoadTotals {
    let outcome = run(plan, &Arc::new(AtomicBool::new(false)), &mut |_| {});
    outcome.expect("the plan can be run").measure
}

#[test]
fn a_handshake_that_stands_still_runs_into_its_own_deadline() {
    // The kernel accepts, no server answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let plan = LoadPlan {
        tls: Some(TlsSpec {
            server_name: "localhost".to_owned(),
            insecure: true,
            roots: None,
        }),
        connect_timeout: Some(Duration::from_millis(300)),
        timeout: Duration::from_secs(60),
        ..plans::plan(address, LoadModel::ClosedRequests { requests: 8 })
    };
    let totals = go(&plan);
    assert_eq!(
        (totals.ok, totals.errors_by_name()["connect_timeout"]),
        (0, 8)
    );
}

#[test]
fn silence_ends_a_connection_and_slowness_does_not() {
    // 45 bytes, 100 ms apart, take longer than the deadline of a read.
    let server = Server::start(|nth| match nth {
        0 => Answer::Silence,
        1 => match ok() {
            Answer::Bytes(bytes) => Answer::Slowly(bytes, Duration::from_millis(100)),
            other => other,
        },
        _ => ok(),
    });
    let plan = LoadPlan {
        connections: 2,
        read_timeout: Some(Duration::from_secs(4)),
        timeout: Duration::from_secs(60),
        ..plans::plan(server.address, LoadModel::ClosedRequests { requests: 40 })
    };
    let totals = go(&plan);
    assert_eq!(
        (totals.ok, totals.errors_by_name()["read_timeout"]),
        (39, 1)
    );
}

#[test]
fn a_user_who_thinks_sends_less() {
    let server = Server::start(|_| ok());
    let pause = Duration::from_millis(100);
    let plan = LoadPlan {
        connections: 4,
        think: Some(ThinkTime {
            from: pause,
            to: pause,
        }),
        ..plans::plan(
            server.address,
            LoadModel::ClosedFor {
                duration: Duration::from_secs(2),
            },
        )
    };
    let totals = go(&plan);
    // At most one request at once and one after each pause.
    assert!((4..=4 * 21).contains(&totals.ok), "{}", totals.ok);
    assert_eq!(totals.failed_requests(), 0);
}

#[test]
fn redirects_are_counted_and_not_followed() {
    let server = Server::start(|_| {
        let head = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
        Answer::Bytes(head.as_bytes().to_vec())
    });
    let plan = plans::plan(server.address, LoadModel::ClosedRequests { requests: 50 });
    let totals = go(&plan);
    assert_eq!((totals.ok, totals.redirects), (50, 50));
    let strict = LoadPlan {
        expect: Expectation {
            status: vec![200],
            ..Expectation::default()
        },
        ..plan
    };
    let totals = go(&strict);
    assert_eq!(
        (totals.errors_by_name()["http_3xx"], totals.redirects),
        (50, 50)
    );
    assert_eq!(server.requests.load(Ordering::SeqCst), 100);
}

#[test]
fn instances_get_equal_shares() {
    let servers = [Server::start(|_| ok()), Server::start(|_| ok())];
    let plan = plans::plan(
        servers[0].address,
        LoadModel::at_constant_rate(200.0, Duration::from_secs(2)),
    );
    let plan = LoadPlan {
        targets: servers.iter().map(|s| s.address).collect(),
        ..plan
    };
    assert_eq!(go(&plan).ok, 400);
    let shares = servers.map(|s| s.requests.load(Ordering::SeqCst));
    assert_eq!(shares[0] + shares[1], 400);
    assert!(shares.iter().all(|n| (160..=240).contains(n)), "{shares:?}");
}
