//! The search finds the capacity of a server whose capacity is known.

mod plans;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::max_rate::{Search, Trial, max_rate};
use loadline_load::{Arrivals, Model, Plan};
use rig::server::{Behaviour, Server};

const CAPACITY: f64 = 400.0;

#[test]
fn the_answer_lies_just_below_the_capacity() {
    let server = Server::local(Behaviour {
        capacity: Some(CAPACITY),
        ..Behaviour::default()
    });
    let model = Model::ClosedRequests { requests: 1 };
    let plan = Plan {
        // A machine that runs other tests makes the generator late; the search is tested here.
        slo: Some(Duration::from_secs(5)),
        ..plans::plan(server.address, model)
    };
    let search = Search {
        slos: vec![
            "p90<100ms".parse().unwrap(),
            "p99<150ms,errors<1%".parse().unwrap(),
        ],
        trial: Duration::from_secs(3),
        arrivals: Arrivals::Uniform,
        is_strict: false,
        curve_steps: 4,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let found = max_rate(&plan, &search, &stop, &mut |trial| {
        println!("{}", trial.row())
    })
    .unwrap();
    server.stop();
    for goal in &found.goals {
        let rate = goal.rate.unwrap();
        // More than the capacity cannot be answered; less is a busy machine's doing.
        assert!(
            (0.95 * CAPACITY..1.002 * CAPACITY).contains(&rate),
            "{goal:?}"
        );
        assert!(goal.too_high.is_some() && goal.broke.is_some(), "{goal:?}");
    }
    // Both SLOs share the trials.
    assert!(found.trials.len() <= 10, "{}", found.trials.len());
    let shares: Vec<f64> = found.curve.iter().map(|point| point.share).collect();
    assert_eq!(shares, [0.25, 0.5, 0.75, 1.0], "{:?}", found.incomplete);
    let half = &found.curve[1];
    assert!((half.achieved_rate / half.offered_rate - 1.0).abs() < 0.1);
}

fn search(arrivals: Arrivals) -> Search {
    Search {
        slos: vec!["p90<5s".parse().expect("an SLO")],
        trial: Duration::from_secs(1),
        arrivals,
        is_strict: false,
        curve_steps: 0,
    }
}

/// Index of dispersion of the last `count` arrivals in bins of 10 ms: near 0 where they are even,
/// 1 where they are Poisson.
fn dispersion(arrivals: &[u64], count: usize) -> f64 {
    let last = &arrivals[arrivals.len() - count..];
    let bin = |at: u64| ((at - last[0]) / 10_000_000) as usize;
    let mut counts = vec![0.0; bin(last[count - 1]) + 1];
    for at in last {
        counts[bin(*at)] += 1.0;
    }
    let n = counts.len() as f64;
    let mean = count as f64 / n;
    counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / n / mean
}

#[test]
fn trials_have_the_arrivals_asked_for() {
    let server = Server::local(Behaviour {
        capacity: Some(CAPACITY),
        ..Behaviour::default()
    });
    let plan = Plan {
        // None waits for a connection, which would make its arrival the server's doing.
        connections: 300,
        ..plans::plan(server.address, Model::ClosedRequests { requests: 1 })
    };
    let stop = Arc::new(AtomicBool::new(false));
    // One trial is enough.
    let end = |_: &Trial| stop.store(true, Ordering::Relaxed);
    let found = max_rate(&plan, &search(Arrivals::Poisson), &stop, &mut { end }).unwrap();
    let arrivals = server.stop();
    assert_eq!(found.trials.len(), 1, "{found:?}");
    let dispersion = dispersion(&arrivals, 300);
    assert!(dispersion > 0.3, "{dispersion}");
}

#[test]
fn a_stop_during_the_probe_is_no_fault_of_the_server() {
    // It takes connections and answers nothing.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let plan = plans::plan(target, Model::ClosedRequests { requests: 1 });
    let stop = Arc::new(AtomicBool::new(true));
    let found = max_rate(&plan, &search(Arrivals::Uniform), &stop, &mut |_| {}).unwrap();
    assert_eq!(found.incomplete.as_deref(), Some("it was stopped"));
    assert_eq!(found.goals[0].rate, None);
    assert!(found.text().contains(": not known"), "{}", found.text());
}
