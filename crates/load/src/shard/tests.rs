//! Cases that a run only meets by chance: late answers, a generator that stood still.

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::channel;

use super::*;
use crate::connection::InFlight;
use crate::outcome::ErrorKind;
use crate::plan::{LoadPart, RequestSpec, WeightedRequest};
use crate::response::Response;

const MILLI: u64 = 1_000_000;

fn plan(target: SocketAddr, model: LoadModel) -> LoadPlan {
    LoadPlan {
        connections: 2,
        timeout: Duration::from_millis(200),
        ..LoadPlan::new(vec![target], RequestSpec::for_get("/"), model)
    }
}

/// A thread with a load that began five seconds ago. The kernel accepts its connections.
fn shard<'a>(plan: &'a LoadPlan) -> Shard<'a> {
    let mut shard =
        Shard::connect_shard(plan, 0, channel().0, channel().1).expect("loopback is there");
    assert_eq!(shard.ready.len(), 2);
    shard.times = RunTimes::starting_at(clock_ns() - 5 * SECOND_NS, plan);
    shard
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

#[test]
fn requests_that_a_free_connection_waited_for_are_late_by_the_generator() {
    let (_listener, address) = listener();
    let plan = plan(
        address,
        LoadModel::at_constant_rate(100.0, Duration::from_secs(10)),
    );
    let mut stood_still = shard(&plan);
    stood_still.dispatch(clock_ns());
    let totals = &stood_still.interval.totals[1];
    let shed = totals.errors_of(ErrorKind::Shed);
    assert!(shed >= 470, "{shed}");
    assert!(totals.send_lag.len() >= 470, "{}", totals.send_lag.len());
    assert!(totals.send_lag.max() > 4_900 * MILLI);
}

#[test]
fn requests_that_no_connection_was_free_for_are_not() {
    let (_listener, address) = listener();
    let plan = plan(
        address,
        LoadModel::at_constant_rate(100.0, Duration::from_secs(10)),
    );
    let mut busy = shard(&plan);
    busy.ready.clear();
    busy.dispatch(clock_ns());
    let totals = &busy.interval.totals[1];
    assert!(totals.errors_of(ErrorKind::Shed) >= 470);
    assert!(totals.send_lag.is_empty());
    // A connection that was free for a moment only delayed them for that moment.
    let mut recovering = shard(&plan);
    let now = clock_ns();
    for free in &mut recovering.ready {
        free.since = now - MILLI;
    }
    recovering.dispatch(now);
    // Requests given up at once, by the time they were looked at: nearly all.
    let lags = &recovering.interval.totals[1].send_lag;
    assert!(lags.len() >= 470, "{}", lags.len());
    let lag = lags.value_at_quantile(0.9);
    assert!(lag.abs_diff(MILLI) < MILLI / 100, "{lag}");
}

/// The outcome of one answer that comes this long after its request was sent.
fn answered(shard: &mut Shard<'_>, sent: u64, after: u64) -> [u64; 3] {
    let request = InFlight {
        intended: sent,
        begun: sent,
        sent,
        written: 0,
        kind: 0,
        is_repeated: false,
    };
    let response = Response {
        status: 200,
        keep_alive: true,
        body_bytes: 2,
        grpc_status: None,
    };
    shard.interval.clear();
    shard.count_response(request, response, None, sent + after);
    let [warm, measured] = &shard.interval.totals;
    let timeouts = measured.errors_of(ErrorKind::Timeout);
    let in_time = warm.answered_in_time * 10 + measured.answered_in_time;
    [measured.ok + warm.ok, timeouts, in_time]
}

#[test]
fn an_answer_after_its_time_has_failed_whenever_it_is_looked_for() {
    let (_listener, address) = listener();
    let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(10));
    let plan = LoadPlan {
        mix: vec![WeightedRequest {
            is_first: false,
            name: "one".to_owned(),
            weight: 1.0,
            request: RequestSpec::for_get("/"),
        }],
        ..plan(address, model)
    };
    let mut shard = shard(&plan);
    let start = shard.times.start;
    assert_eq!(answered(&mut shard, start, 200 * MILLI), [1, 0, 1]);
    assert_eq!(answered(&mut shard, start, 200 * MILLI + 1), [0, 1, 0]);
    let one = &shard.by_request[1][0];
    assert_eq!((one.ok, one.failed, one.latency.len()), (1, 1, 1));
}

#[test]
fn an_answer_is_in_the_time_it_came_in() {
    let (_listener, address) = listener();
    let model = LoadModel::at_constant_rate(100.0, Duration::from_secs(10));
    let plan = LoadPlan {
        warmup: Duration::from_secs(1),
        ..plan(address, model)
    };
    let mut shard = shard(&plan);
    let RunTimes { warm_end, end, .. } = shard.times;
    let after = 100 * MILLI;
    assert_eq!(
        answered(&mut shard, warm_end - after - 1, after),
        [1, 0, 10]
    );
    assert_eq!(answered(&mut shard, warm_end - 1, after), [1, 0, 1]);
    assert_eq!(answered(&mut shard, end - after - 1, after), [1, 0, 1]);
    assert_eq!(answered(&mut shard, end - 1, after), [1, 0, 0]);
}

/// The slots of all threads of one part, in order, or how many requests they have between them.
fn share(model: &LoadModel, threads: u32, part: LoadPart) -> (Vec<u64>, u64) {
    let plan = LoadPlan {
        cpus: (0..threads).collect(),
        part,
        ..plan(([127, 0, 0, 1], 1).into(), model.clone())
    };
    let (mut slots, mut requests) = (Vec::new(), 0);
    for thread in 0..threads {
        match source(&plan, thread) {
            RequestSource::Closed { left } => requests += left,
            RequestSource::Open { mut due, .. } => {
                while let Some(at) = due.next {
                    slots.push(at);
                    due.advance();
                }
            }
        }
    }
    slots.sort_unstable();
    (slots, requests)
}

#[test]
fn parts_are_one_schedule_however_many_threads_each_has() {
    let open = LoadModel::at_constant_rate(1000.0, Duration::from_secs(1));
    let closed = LoadModel::ClosedRequests { requests: 1001 };
    for threads in [[1, 2], [2, 1], [3, 2]] {
        let parts = [0, 1].map(|index| (threads[index as usize], LoadPart { index, of: 2 }));
        let mut all = Vec::new();
        for (threads, part) in parts {
            let (slots, _) = share(&open, threads, part);
            assert!(
                slots
                    .iter()
                    .all(|at| at / MILLI % 2 == u64::from(part.index))
            );
            all.extend(slots);
        }
        all.sort_unstable();
        assert_eq!(all, share(&open, 1, LoadPart::default()).0);
        let requests = parts.map(|(threads, part)| share(&closed, threads, part).1);
        assert_eq!(requests, [501, 500], "{threads:?}");
    }
}
