//! Every scheduled request has exactly one outcome, whatever the server does.

#[allow(dead_code, reason = "other tests need the rest")]
mod cpus;
mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;
#[allow(dead_code, reason = "other tests need the rest")]
mod server;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::parts::PartFile;
use loadline_load::summary::LoadSummary;
use loadline_load::{LoadModel, LoadOutcome, LoadPlan, Pacing, WeightedRequest, run};
use plans::plan;
use rustix::net::{AddressFamily, SocketType};
use server::{Answer, Server, ok};

fn open(rate: f64, millis: u64) -> LoadModel {
    LoadModel::at_constant_rate(rate, Duration::from_millis(millis))
}

/// Runs and checks the invariant and that the seconds add up to the totals.
fn go(plan: &LoadPlan) -> LoadOutcome {
    go_until(plan, &Arc::new(AtomicBool::new(false)))
}

/// The same, until the plan's end or a stop.
fn go_until(plan: &LoadPlan, stop: &Arc<AtomicBool>) -> LoadOutcome {
    let (mut scheduled, mut ok, mut failed, mut next) = (0, 0, 0, 0);
    let outcome = run(plan, stop, &mut |second| {
        scheduled += second.totals.scheduled;
        ok += second.totals.ok;
        failed += second.totals.failed_requests();
        assert_eq!(second.index, next, "every second comes once, in order");
        next += 1;
    })
    .expect("the plan can be run");
    let sum = |f: fn(&loadline_load::LoadTotals) -> u64| f(&outcome.warmup) + f(&outcome.measure);
    outcome.measure.check_balance().expect("outcomes add up");
    outcome.warmup.check_balance().expect("outcomes add up");
    assert_eq!(scheduled, sum(|t| t.scheduled));
    assert_eq!(ok, sum(|t| t.ok));
    assert_eq!(failed, sum(|t| t.failed_requests()));
    assert_eq!(outcome.measure.ok, outcome.measure.latency.len());
    outcome
}

fn errors(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect()
}

#[test]
fn a_healthy_server_answers_the_whole_schedule() {
    let server = Server::start(|_| ok());
    let outcome = go(&plan(server.address, open(500.0, 1000)));
    assert_eq!((outcome.measure.scheduled, outcome.measure.ok), (500, 500));
    assert_eq!(server.requests.load(Ordering::SeqCst), 500);
    assert_eq!(outcome.end_ns - outcome.start_ns, 1_000_000_000);
}

#[test]
fn a_closed_model_makes_exactly_the_requests_asked_for() {
    let server = Server::start(|_| ok());
    let requests = LoadModel::ClosedRequests { requests: 777 };
    let outcome = go(&plan(server.address, requests));
    assert_eq!((outcome.measure.scheduled, outcome.measure.ok), (777, 777));
    assert_eq!(server.requests.load(Ordering::SeqCst), 777);
}

#[test]
fn two_threads_share_one_schedule() {
    let server = Server::start(|_| ok());
    for model in [
        open(501.0, 1000),
        LoadModel::ClosedRequests { requests: 501 },
    ] {
        let outcome = go(&LoadPlan {
            cpus: vec![cpus::first(); 2],
            ..plan(server.address, model)
        });
        assert_eq!((outcome.measure.scheduled, outcome.measure.ok), (501, 501));
    }
}

#[test]
fn the_warmup_is_apart_and_nothing_is_lost() {
    let server = Server::start(|_| ok());
    for model in [
        open(200.0, 1500),
        LoadModel::ClosedFor {
            duration: Duration::from_millis(2500),
        },
    ] {
        let outcome = go(&LoadPlan {
            warmup: Duration::from_millis(500),
            ..plan(server.address, model.clone())
        });
        if matches!(model, LoadModel::Open { .. }) {
            assert_eq!(outcome.warmup.ok, 100);
            assert_eq!(outcome.measure.ok, 200);
        } else {
            assert!(outcome.warmup.ok > 0 && outcome.measure.ok > 0);
        }
    }
}

#[test]
fn each_way_to_fail_has_its_name() {
    let body = |head: &str| Answer::Bytes(format!("HTTP/1.1 {head}\r\n\r\n").into_bytes());
    let server = Server::start(move |n| match n % 5 {
        0 => ok(),
        1 => body("503 Busy\r\nContent-Length: 0"),
        2 => body("404 No\r\nContent-Length: 0"),
        3 => Answer::Reset,
        _ => Answer::Bytes(b"SSH-2.0-x\r\n".to_vec()),
    });
    let outcome = go(&plan(server.address, open(100.0, 1000)));
    assert_eq!(outcome.measure.ok, 20);
    let expected = [
        ("http_4xx", 20),
        ("http_5xx", 20),
        ("protocol", 20),
        ("reset", 20),
    ];
    assert_eq!(outcome.measure.errors_by_name(), errors(&expected));
}

/// An address that refuses connections while the socket is kept: it is bound, so that no other
/// process gets the port, and does not listen.
fn refusing() -> (OwnedFd, SocketAddr) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("there is room for a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&socket, &any).expect("loopback has a free port");
    let address = rustix::net::getsockname(&socket).expect("it is bound");
    (socket, address.try_into().expect("it is of this family"))
}

#[test]
fn a_server_that_is_gone_costs_errors_but_not_the_schedule() {
    let (_kept, gone) = refusing();
    let outcome = go(&plan(gone, open(300.0, 1000)));
    assert_eq!(
        outcome.measure.errors_by_name(),
        errors(&[("refused", 300)])
    );
    let outcome = go(&plan(gone, LoadModel::ClosedRequests { requests: 50 }));
    assert_eq!(outcome.measure.errors_by_name(), errors(&[("refused", 50)]));
}

#[test]
fn silence_is_timeout_shed_and_unfinished() {
    let server = Server::start(|_| Answer::Silence);
    // Of 3.1 s the first requests time out after 2 s; requests due in the last second are not that
    // late yet, even if the generator stalls for most of that second.
    let outcome = go(&LoadPlan {
        timeout: Duration::from_secs(2),
        drain: Duration::from_millis(100),
        ..plan(server.address, open(100.0, 3000))
    });
    let measure = &outcome.measure;
    assert_eq!((measure.scheduled, measure.ok), (300, 0));
    let found = measure.errors_by_name();
    assert!(
        found.contains_key("timeout") && found.contains_key("shed"),
        "{found:?}"
    );
    assert!(measure.unfinished > 0);
    assert_eq!(measure.latency_quantile(0.5), None);
}

/// A mix of two requests that are alike.
fn twins(plan: LoadPlan) -> LoadPlan {
    let twin = |name: &str| WeightedRequest {
        is_first: false,
        name: name.to_owned(),
        weight: 1.0,
        request: plan.request.clone(),
    };
    LoadPlan {
        mix: vec![twin("a"), twin("b")],
        ..plan
    }
}

#[test]
fn requests_of_a_mix_that_never_end_are_their_slowest() {
    // Good answers first, so that there is a latency at all. The load ends with its 48th request,
    // however slow the machine is: by then each of the 8 connections waits in vain.
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let server = Server::start(move |n| {
        if n == 47 {
            flag.store(true, Ordering::Relaxed);
        }
        if n < 40 { ok() } else { Answer::Silence }
    });
    let plan = twins(LoadPlan {
        drain: Duration::from_millis(100),
        ..plan(
            server.address,
            LoadModel::ClosedFor {
                duration: Duration::from_secs(60),
            },
        )
    });
    let outcome = go_until(&plan, &stop);
    let by_request = &outcome.measure.by_request;
    let sum = |f: fn(&loadline_load::RequestTotals) -> u64| by_request.iter().map(f).sum::<u64>();
    assert_eq!((sum(|r| r.ok), sum(|r| r.unfinished)), (40, 8));
    assert_eq!(outcome.measure.unfinished, 8);
    let summary = LoadSummary::new(&plan, &outcome, "http://x/");
    for request in summary.by_request.iter().filter(|r| r.unfinished > 0) {
        assert_eq!(request.latency_us.p99, None, "{request:?}");
    }
}

#[test]
fn the_achieved_rate_is_what_a_server_carries_not_what_it_catches_up_with() {
    let server = rig::server::Server::local(rig::server::Behaviour {
        capacity: Some(200.0),
        ..rig::server::Behaviour::default()
    });
    let overload = plan(server.address, open(300.0, 2000));
    let outcome = go(&overload);
    server.stop();
    // The drain is long enough for every request.
    assert_eq!(outcome.measure.ok, 600);
    let summary = LoadSummary::new(&overload, &outcome, "http://x/");
    assert_eq!(summary.offered_rate, Some(300.0));
    // A busy machine makes it less; 300 would be the answers of the drain.
    assert!(
        (100.0..225.0).contains(&summary.achieved_rate),
        "{summary:?}"
    );
    // Of each answer 14 bytes are body.
    let bytes = summary.body_bytes_per_second / summary.achieved_rate;
    assert!((bytes - 14.0).abs() < 1e-6, "{summary:?}");
    let message = PartFile::new(&overload, &outcome, "http://x/")
        .result
        .measure;
    assert_eq!(message.achieved_rate(), summary.achieved_rate);
}

#[test]
fn a_number_of_requests_is_achieved_whole() {
    let server = Server::start(|_| ok());
    let plan = plan(server.address, LoadModel::ClosedRequests { requests: 400 });
    let outcome = go(&plan);
    assert_eq!(outcome.measure.answered_in_time, 400);
    let summary = LoadSummary::new(&plan, &outcome, "http://x/");
    let seconds = (outcome.end_ns - outcome.start_ns) as f64 / 1e9;
    assert!((summary.achieved_rate * seconds - 400.0).abs() < 0.1);
}

#[test]
fn the_summary_says_what_kept_the_generator_from_its_cpus() {
    let server = Server::start(|_| ok());
    let open = plan(server.address, open(100.0, 500));
    let outcome = go(&open);
    let summary = LoadSummary::new(&open, &outcome, "http://x/");
    assert_eq!(summary.missed_share, Some(outcome.health.missed));
    let known = (outcome.health.run_delay, outcome.health.throttled);
    let said = (summary.run_delay_seconds, summary.throttled_seconds);
    assert_eq!(said, (known.0.as_secs_f64(), known.1.as_secs_f64()));
    let closed = plan(server.address, LoadModel::ClosedRequests { requests: 10 });
    let summary = LoadSummary::new(&closed, &go(&closed), "http://x/");
    assert_eq!(summary.missed_share, None);
}

#[test]
fn a_pacing_grid_longer_than_the_timeout_is_refused() {
    let server = Server::start(|_| ok());
    let plan = LoadPlan {
        pacing: Pacing::Quantum {
            quantum: Duration::from_millis(500),
        },
        timeout: Duration::from_millis(100),
        ..plan(server.address, open(100.0, 500))
    };
    let refused = plan
        .check_plan()
        .expect_err("it sheds most requests")
        .to_string();
    assert!(refused.starts_with("pacing: "), "{refused}");
}

#[test]
fn a_connection_closed_after_every_answer_is_opened_again() {
    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::start(|_| Answer::Last(answer.to_vec()));
    let outcome = go(&plan(server.address, open(200.0, 1000)));
    assert_eq!(outcome.measure.ok, 200);
    let server = Server::start(|_| Answer::Last(b"HTTP/1.1 200 OK\r\n\r\nto the end".to_vec()));
    let outcome = go(&plan(
        server.address,
        LoadModel::ClosedRequests { requests: 100 },
    ));
    assert_eq!(outcome.measure.ok, 100);
}

#[test]
fn a_stop_ends_the_schedule_and_keeps_the_sum() {
    let server = Server::start(|_| ok());
    let stop = Arc::new(AtomicBool::new(false));
    let plan = plan(server.address, open(100.0, 60_000));
    let mut seconds = 0;
    let flag = Arc::clone(&stop);
    let outcome = run(&plan, &stop, &mut |_| {
        seconds += 1;
        flag.store(true, Ordering::Relaxed);
    })
    .unwrap();
    outcome.measure.check_balance().unwrap();
    assert!(outcome.stopped);
    assert!(outcome.measure.scheduled >= 100 && outcome.measure.scheduled < 1000);
    assert!(seconds < 10);
}
