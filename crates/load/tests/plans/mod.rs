//! The plan that tests start from.

use std::net::SocketAddr;
use std::time::Duration;

use loadline_load::{Expectation, Model, Pacing, Plan, RequestSpec};

/// `GET /` over 8 connections, with a timeout and a drain of 5 s.
pub fn plan(target: SocketAddr, model: Model) -> Plan {
    Plan {
        targets: vec![target],
        request: RequestSpec::get("/"),
        expect: Expectation::default(),
        model,
        warmup: Duration::ZERO,
        connections: 8,
        timeout: Duration::from_secs(5),
        drain: Duration::from_secs(5),
        cpus: Vec::new(),
        seed: 1,
        pacing: Pacing::Auto,
        slo: None,
    }
}
