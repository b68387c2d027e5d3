//! One generator process of a trial: an order on standard input, messages on standard output.
//!
//! Owns the JSON of both. An order is one JSON document; messages are JSON lines: a
//! [`LoadMessage::Second`] a second, then one [`LoadMessage::Result`]. SIGTERM and SIGINT stop the load;
//! the result still comes. With generators elsewhere the process drives them ([`crate::remote`]) and
//! says the same.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use loadline_analysis::record::GeneratorEvidence;
use loadline_analysis::wire::{nanos, nanos_opt};
use loadline_sys::{LinkNameSpaceType, move_into_link_name_space};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::health::Health;
use crate::histogram;
use crate::outcome::{LoadSecond, LoadTotals};
use crate::plan::LoadPlan;
use crate::remote::{Generators, RemoteLoadFailure, run_remote};
use crate::run::{LoadOutcome, run as run_plan};
use crate::user::User;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadOrder {
    pub plan: LoadPlan,
    #[serde(default)]
    pub netns: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Generators>,
    /// Another program makes the load: this process stands before the service at this port, in a
    /// network that it makes, and times each exchange. Then an order may follow each result, and begins
    /// another phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "message")]
pub enum LoadMessage {
    Second(SecondMessage),
    Result(Box<ResultMessage>),
    /// The front listens before the service; load must be sent in its network.
    Standing {
        network: PathBuf,
    },
    Observed(Box<ObservedMessage>),
    Failed {
        how: RemoteLoadFailure,
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecondMessage {
    /// Its end, CLOCK_MONOTONIC.
    pub at_ns: u64,
    pub offered: u64,
    pub ok: u64,
    pub errors: u64,
    /// Median latency of the requests that ended in it, failed ones infinitely slow; `None` is
    /// infinite, or none ended.
    #[serde(rename = "p50_ns", with = "nanos_opt")]
    pub p50: Option<Duration>,
    #[serde(rename = "p99_ns", with = "nanos_opt")]
    pub p99: Option<Duration>,
    /// The largest of the good responses; `None` without any.
    #[serde(rename = "max_ns", with = "nanos_opt")]
    pub max: Option<Duration>,
    /// 99th percentile of the generator's own send lag.
    #[serde(rename = "send_lag_p99_ns", with = "nanos_opt")]
    pub send_lag_p99: Option<Duration>,
    pub is_warmup: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultMessage {
    /// When the first request could be due, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When the last request could be due, CLOCK_MONOTONIC; the drain came after it.
    pub end_ns: u64,
    pub measure: TotalsMessage,
    /// Outcomes of the warm-up; `None` when the plan has none.
    #[serde(default)]
    pub warmup: Option<TotalsMessage>,
    pub health: Health,
    pub stopped: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<User>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorEvidence>,
}

/// A phase of load that another program sent, as seen from before the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedMessage {
    pub start_ns: u64,
    pub end_ns: u64,
    /// Outcomes, from the first byte of each request to the last of its answer. When requests were
    /// meant to be sent is not known, so service time and send lag mean nothing.
    pub totals: TotalsMessage,
    pub names: Vec<String>,
    pub connections: u64,
    #[serde(rename = "lag_p99_ns", with = "nanos")]
    pub lag_p99: Duration,
    #[serde(rename = "cpu_ns", with = "nanos")]
    pub cpu: Duration,
    pub stalls: StallMessage,
    /// A protocol that cannot be timed, if one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StallMessage {
    #[serde(rename = "stalled_ns", with = "nanos")]
    pub stalled: Duration,
    pub arrived: u64,
    /// Requests that would have come at the rate of the rest of the phase.
    pub expected: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TotalsMessage {
    #[serde(rename = "duration_ns", with = "nanos")]
    pub duration: Duration,
    #[serde(flatten)]
    pub totals: LoadTotals,
}

impl TotalsMessage {
    pub fn achieved_rate(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 {
            self.totals.answered_in_time as f64 / seconds
        } else {
            0.0
        }
    }

    pub fn new(totals: &LoadTotals, duration: Duration) -> Self {
        let totals = totals.clone();
        Self { duration, totals }
    }
}

/// Reads the next order, and no bytes after it; `None` at the end of input. Errors:
/// [`LoadError::Order`].
pub fn read_order(input: &mut impl BufRead) -> Result<Option<LoadOrder>, LoadError> {
    let orders = serde_json::Deserializer::from_reader(input);
    let next = orders.into_iter().next().transpose();
    next.map_err(LoadError::Order)
}

pub fn run(order: &LoadOrder, mut output: impl Write) -> Result<(), LoadError> {
    let stop = stop_on_signals()?;
    if let Some(path) = &order.netns {
        enter_network_namespace(path)?;
    }
    if let Some(generators) = &order.generators {
        return run_remote(&order.plan, generators, &stop, &mut |message| {
            write_message(&mut output, message)
        });
    }
    let plan = order.plan.clone().into_listening();
    let mut broken = None;
    let outcome = run_plan(&plan, &stop, &mut |second| {
        let written = write_message(&mut output, &LoadMessage::Second(second_message(second)));
        broken = broken.take().or(written.err());
    })?;
    if let Some(error) = broken {
        return Err(error);
    }
    write_message(
        &mut output,
        &LoadMessage::Result(Box::new(result_message(&plan, &outcome))),
    )
}

pub fn stop_on_signals() -> Result<Arc<AtomicBool>, LoadError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| LoadError::System {
            call: "sigaction",
            errno: rustix::io::Errno::from_raw_os_error(e.raw_os_error().unwrap_or(0)),
            hint: "a seccomp profile may forbid it",
        })?;
    }
    Ok(stop)
}

fn enter_network_namespace(path: &PathBuf) -> Result<(), LoadError> {
    let refuse = |errno| LoadError::Namespace {
        path: path.clone(),
        errno,
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = open(path, flags, Mode::empty()).map_err(refuse)?;
    use std::os::fd::AsFd;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).map_err(refuse)
}

pub fn write_message(output: &mut impl Write, message: &LoadMessage) -> Result<(), LoadError> {
    let mut line = serde_json::to_vec(message).map_err(|e| LoadError::Output(e.into()))?;
    line.push(b'\n');
    output.write_all(&line).map_err(LoadError::Output)?;
    output.flush().map_err(LoadError::Output)
}

pub fn second_message(second: &LoadSecond) -> SecondMessage {
    let totals = &second.totals;
    let latency = &totals.latency;
    SecondMessage {
        at_ns: second.at_ns,
        offered: totals.scheduled,
        ok: totals.ok,
        errors: totals.failed_requests(),
        p50: totals.latency_quantile(0.5),
        p99: totals.latency_quantile(0.99),
        max: (!latency.is_empty()).then(|| Duration::from_nanos(latency.max())),
        send_lag_p99: histogram::quantile_with_failures(&totals.send_lag, 0, 0.99),
        is_warmup: second.is_warmup,
    }
}

pub(crate) fn result_message(plan: &LoadPlan, outcome: &LoadOutcome) -> ResultMessage {
    let has_warmup = !plan.warmup.is_zero();
    ResultMessage {
        start_ns: outcome.start_ns,
        end_ns: outcome.end_ns,
        measure: TotalsMessage::new(&outcome.measure, outcome.measured_time(plan)),
        warmup: has_warmup.then(|| TotalsMessage::new(&outcome.warmup, plan.warmup)),
        health: outcome.health.clone(),
        stopped: outcome.stopped,
        users: outcome.users.clone(),
        generators: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ErrorKind;

    #[test]
    fn a_second_s_percentiles_count_failures_as_slowest() {
        let mut totals = LoadTotals::default();
        for _ in 0..2 {
            totals.latency.saturating_record(1_000_000);
        }
        totals.count_failure(ErrorKind::Timeout);
        let message = second_message(&LoadSecond {
            index: 0,
            at_ns: 0,
            length: Duration::from_secs(1),
            is_warmup: false,
            totals,
            phases: None,
        });
        assert!(message.p50.is_some() && message.max.is_some());
        assert_eq!(message.p99, None);
    }
}
