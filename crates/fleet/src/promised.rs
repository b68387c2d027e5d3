//! What a result promised of a workload, held against what production used.
//!
//! Owns the comparison. Production's load is not the trial's, so only what should carry over is
//! compared: memory against the limit and the peak of the proof, CPU time a request, p99, the rate of
//! an instance against the rate that was proven.

use std::time::Duration;

use loadline_analysis::wire;
use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::workload::{FleetContainerKey, FleetWorkload};

/// A difference of less than this is what hosts and days make of one service: the same bound as a
/// change of CPU time that `verify` must find.
const DRIFT: f64 = 0.15;

/// What a result said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Promise {
    /// Its id.
    pub result: String,
    /// The memory limit that it proved.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt")]
    pub memory: Option<Bytes>,
    /// Largest memory of a start of the proof.
    #[serde(rename = "memory_peak_bytes", with = "wire::bytes_opt")]
    pub memory_peak: Option<Bytes>,
    /// CPU time a request, the median of the proof.
    #[serde(rename = "cpu_per_request_ns", with = "wire::nanos_opt")]
    pub cpu_per_request: Option<Duration>,
    /// p99 of the proof, the median of its starts.
    #[serde(rename = "p99_ns", with = "wire::nanos_opt")]
    pub p99: Option<Duration>,
    /// Requests a second to an instance that it was proven for.
    pub rate_per_second: Option<f64>,
}

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PromisedFigure {
    /// The compared figure, with its unit.
    pub what: &'static str,
    /// What the result said.
    pub promised: f64,
    /// What production used.
    pub used: f64,
    /// Whether that breaks the promise, or makes its ground another one.
    pub drifts: bool,
}

/// A workload held against its promise.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PromiseCheck {
    /// Which.
    pub name: FleetContainerKey,
    /// The result's id.
    pub result: String,
    /// The figures that both know.
    pub figures: Vec<PromisedFigure>,
    /// Whether one drifts.
    pub drifts: bool,
}

pub fn check_promise(workload: &FleetWorkload, promise: &Promise) -> PromiseCheck {
    let traffic = workload.traffic.as_ref();
    let mib = |b: Bytes| b.as_mib();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let cpu = traffic.and_then(|t| Some(workload.cpu_mean? / t.mean_per_second * 1e3));
    let above = |promised: f64, used: f64| used > promised * (1.0 + DRIFT);
    let other = |promised: f64, used: f64| (used / promised - 1.0).abs() > 0.01;
    let figure = |what, promised: Option<f64>, used: Option<f64>, drifts: fn(f64, f64) -> bool| {
        let (promised, used) = (promised?, used?);
        Some(PromisedFigure {
            what,
            promised,
            used,
            drifts: drifts(promised, used),
        })
    };
    let figures: Vec<PromisedFigure> = [
        figure(
            "memory limit, MiB",
            promise.memory.map(mib),
            workload.limit.memory.map(mib),
            other,
        ),
        figure(
            "memory peak, MiB",
            promise.memory_peak.map(mib),
            workload.peak.memory.map(mib),
            above,
        ),
        figure(
            "CPU a request, ms",
            promise.cpu_per_request.map(ms),
            cpu,
            above,
        ),
        figure(
            "p99, ms",
            promise.p99.map(ms),
            traffic.and_then(|t| t.p99_seconds).map(|s| s * 1e3),
            above,
        ),
        figure(
            "busiest rate of an instance, 1/s",
            promise.rate_per_second,
            traffic.and_then(|t| t.peak_per_second),
            above,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    PromiseCheck {
        name: workload.name.clone(),
        result: promise.result.clone(),
        drifts: figures.iter().any(|f| f.drifts),
        figures,
    }
}
