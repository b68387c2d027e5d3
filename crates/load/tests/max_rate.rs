//! The search finds the known capacity of a server.

#![allow(clippy::print_stdout)] // A failed search shows its trials, from a helper too.

mod plans;
mod quiet;
#[allow(dead_code, reason = "other tests need the rest")]
mod rig;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline_load::max_rate::{MaxRateSearch, MaxRateTrial, find_max_rate};
use loadline_load::{ArrivalPattern, LoadModel, LoadPlan};
use rig::server::{Behaviour, Server};

const CAPACITY: f64 = 400.0;

#[test]
fn the_answer_lies_just_below_the_capacity() {
    quiet::measured(
        "the_answer_lies_just_below_the_capacity",
        Duration::from_millis(30),
        the_answer_is_right,
    );
}

fn the_answer_is_right() -> Result<(), String> {
    let server = Server::local(Behaviour {
        capacity: Some(CAPACITY),
        ..Behaviour::default()
    });
    let model = LoadModel::ClosedRequests { requests: 1 };
    let plan = LoadPlan {
        // A machine that runs other tests makes the generator late; the search is tested here.
        slo: Some(Duration::from_secs(5)),
        ..plans::plan(server.address, model)
    };
    let search = MaxRateSearch {
        slos: ["p90<100ms", "p99<150ms,errors<1%"]
            .map(|slo| slo.parse().expect("an SLO"))
            .to_vec(),
        trial: Duration::from_secs(3),
        arrivals: ArrivalPattern::Uniform,
        is_strict: false,
        curve_steps: 4,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let found = find_max_rate(&plan, &search, &stop, &mut |trial| {
        println!("{}", trial.trial_row())
    })
    .expect("the server answers");
    server.stop();
    // Both SLOs share the trials.
    assert!(found.trials.iter().all(|t| t.broke.len() == 2));
    for goal in &found.goals {
        let is_known = goal.too_high.is_some() && goal.broke.is_some();
        let rate = goal.rate.filter(|_| is_known);
        let rate = rate.ok_or_else(|| format!("{goal:?}, {:?}", found.incomplete))?;
        // No more than the capacity can be answered in 3 s, except requests under way on the 8
        // connections at both ends.
        assert!(rate <= CAPACITY + 2.0 * 8.0 / 3.0, "{goal:?}");
        // It is the rate answered in a trial, not the offered rate.
        let answered = |t: &MaxRateTrial| t.achieved_rate.min(t.offered_rate) == rate;
        assert!(found.trials.iter().any(answered), "{goal:?}");
        quiet::holds(rate >= 0.95 * CAPACITY, || format!("{goal:?}"))?;
    }
    let count = found.trials.len();
    quiet::holds(count <= 10, || format!("{count} trials"))?;
    let shares: Vec<f64> = found.curve.iter().map(|point| point.share).collect();
    let why = || format!("{shares:?}, {:?}", found.incomplete);
    quiet::holds(shares == [0.25, 0.5, 0.75, 1.0], why)?;
    let half = &found.curve[1];
    let is_reached = (half.achieved_rate / half.offered_rate - 1.0).abs() < 0.1;
    quiet::holds(is_reached, || format!("{half:?}"))
}

fn search(arrivals: ArrivalPattern) -> MaxRateSearch {
    MaxRateSearch {
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
    let plan = LoadPlan {
        // None waits for a connection, which would make its arrival the server's doing.
        connections: 300,
        ..plans::plan(server.address, LoadModel::ClosedRequests { requests: 1 })
    };
    let stop = Arc::new(AtomicBool::new(false));
    // One trial is enough.
    let end = |_: &MaxRateTrial| stop.store(true, Ordering::Relaxed);
    let found =
        find_max_rate(&plan, &search(ArrivalPattern::Poisson), &stop, &mut { end }).unwrap();
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
    let plan = plans::plan(target, LoadModel::ClosedRequests { requests: 1 });
    let stop = Arc::new(AtomicBool::new(true));
    let found = find_max_rate(&plan, &search(ArrivalPattern::Uniform), &stop, &mut |_| {}).unwrap();
    assert_eq!(found.incomplete.as_deref(), Some("it was stopped"));
    assert_eq!(found.goals[0].rate, None);
    assert!(
        found.to_string().contains(": not known"),
        "{}",
        found.to_string()
    );
}
