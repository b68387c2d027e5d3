//! The plan that tests start from.

use std::net::SocketAddr;
use std::time::Duration;

use loadline_load::{LoadModel, LoadPlan, RequestSpec};

/// `GET /` over 8 connections, with a timeout and a drain of 5 s.
pub fn plan(target: SocketAddr, model: LoadModel) -> LoadPlan {
    LoadPlan {
        connections: 8,
        timeout: Duration::from_secs(5),
        drain: Duration::from_secs(5),
        seed: 1,
        ..LoadPlan::new(vec![target], RequestSpec::for_get("/"), model)
    }
}
