//! `loadline trial-part`: an order in, an event log out.
//!
//! Owns the process: its parent, the place of its log, its last event. The log is a file that it
//! appends to and reads again: figures are computed from the logged samples, not from memory. When
//! this process dies, everything of its trial dies with it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline_analysis::foreign_text::clean;
use loadline_analysis::record::{Evidence, InvalidReason, MeasurementFailure, TrialNode};
use loadline_protocol::log::EventLog;
use loadline_protocol::{NetworkMode, TrialEnding, TrialEvent, TrialOrder};

use crate::halt::{HaltReason, Stop};
use crate::pod::{self, PodPaths};
use crate::site::{Site, SiteOptions};
use crate::spawner::die_with;
use crate::trial;

pub use crate::spawner::ParentError;

pub const PARENT: &str = "LOADLINE_PARENT";
pub const NODE: &str = "LOADLINE_NODE";

#[derive(Debug, thiserror::Error)]
pub enum TrialProcessError {
    #[error(transparent)]
    Parent(#[from] ParentError),
    #[error("writing the event log of the trial: {0}")]
    Log(#[source] io::Error),
    #[error("starting a thread: {0}")]
    Thread(#[source] io::Error),
}

impl TrialProcessError {
    pub fn recovery_hint(&self) -> &'static str {
        match self {
            Self::Parent(ParentError::NotForPeople) => {
                "see `loadline --help` for the commands to use"
            }
            Self::Parent(_) => "continue with loadline resume",
            Self::Log(_) => "free some space in the state directory",
            Self::Thread(_) => "look at ulimit -u and pids.max",
        }
    }
}

/// Carries the order on `input` out; its events go to `log`, an empty file opened for reading and
/// appending. `parent` is the process that ends this one by its death.
/// Errors: [`TrialProcessError`], when the log does not tell the end. Nothing of the trial is left
/// then either.
pub fn run(
    mut input: impl Read,
    log: impl AsFd,
    parent: Option<i32>,
    stop: Stop<'_>,
) -> Result<(), TrialProcessError> {
    die_with(parent)?;
    let mut order = Vec::new();
    let read = input.read_to_end(&mut order);
    let order: TrialOrder = read
        .ok()
        .and_then(|_| serde_json::from_slice(&order).ok())
        .ok_or(ParentError::NotForPeople)?;
    let file = log.as_fd().try_clone_to_owned();
    let file = file.map_err(TrialProcessError::Log)?;
    let log = Arc::new(EventLog::begin_log(File::from(file)).map_err(TrialProcessError::Log)?);
    let ending = run_to_ending(&order, &log, SiteOptions::default(), stop);
    log.append_event(&TrialEvent::Ended(ending))
        .map_err(TrialProcessError::Log)
}

/// The same in the pod of a trial, where the kubelet starts the application after a signal; the log
/// is written as lines to `output`. Errors: [`TrialProcessError::Parent`] outside of a pod;
/// [`TrialProcessError::Log`] when the log fails.
pub fn run_in_pod(place: &PodPaths, output: impl Write + Send) -> Result<(), TrialProcessError> {
    let mut order: TrialOrder = std::fs::read(&place.order)
        .ok()
        .and_then(|packed| zstd::decode_all(packed.as_slice()).ok())
        .and_then(|text| serde_json::from_slice(&text).ok())
        .ok_or(ParentError::NotForPeople)?;
    order.network = NetworkMode::Host;
    order.scratch = place.work.join("scratch");
    let mut options = File::options();
    options.read(true).append(true).create_new(true);
    let log = options.open(place.work.join("events"));
    let log = log.map_err(TrialProcessError::Log)?;
    let reading = log.try_clone().map_err(TrialProcessError::Log)?;
    let log = Arc::new(EventLog::begin_log(log).map_err(TrialProcessError::Log)?);
    let is_over = AtomicBool::new(false);
    let armed = || place.armed_file().exists();
    std::thread::scope(|scope| {
        let ship = || pod::ship(&reading, output, armed, &is_over);
        let shipping = std::thread::Builder::new()
            .spawn_scoped(scope, ship)
            .map_err(TrialProcessError::Thread)?;
        let stop = || place.told_to_end.load(Ordering::Relaxed);
        let ending = run_to_ending(
            &order,
            &log,
            SiteOptions::in_pod(Some(place.clone())),
            &stop,
        );
        let told = log.append_event(&TrialEvent::Ended(ending));
        is_over.store(true, Ordering::Release);
        let shipped = shipping.join();
        let shipped = shipped.unwrap_or_else(|_| Err(io::Error::other("its thread died")));
        told.and(shipped).map_err(TrialProcessError::Log)
    })
}

fn run_to_ending(
    order: &TrialOrder,
    log: &Arc<EventLog>,
    options: SiteOptions,
    stop: Stop<'_>,
) -> TrialEnding {
    let is_pod = options.is_pod;
    let site = match Site::detect_site(options) {
        Ok(site) => site,
        Err(refusal) => return TrialEnding::Refused(refusal),
    };
    match trial::run(&site, order, log, stop) {
        Ok(mut evidence) => {
            if is_pod {
                let name = std::env::var(NODE).unwrap_or_default();
                evidence.node = Some(TrialNode::from_machine(&site.describe_machine(), &name));
            }
            if order.as_shipped {
                evidence.as_shipped = true;
                evidence.warnings.push(pod::AS_SHIPPED.to_owned());
            }
            if let Some(error) = log.chunk_failure() {
                evidence.failure = Some(incomplete_failure(&error));
            }
            shorten_texts(&mut evidence);
            TrialEnding::Measured(Box::new(evidence))
        }
        Err(HaltReason::Refused(refusal)) => TrialEnding::Refused(refusal),
        Err(HaltReason::Stopped) => TrialEnding::Stopped,
        Err(HaltReason::Failed(failure)) => {
            let mut evidence = Evidence::failed(failure);
            shorten_texts(&mut evidence);
            TrialEnding::Measured(Box::new(evidence))
        }
    }
}

/// Texts that quote the application or its tools: an ending that is too large for the event log is lost.
fn shorten_texts(evidence: &mut Evidence) {
    let failure = evidence.failure.iter_mut();
    let metrics = evidence.metrics.iter_mut();
    let texts = failure.map(|failure| &mut failure.detail);
    let texts = texts.chain(metrics.filter_map(|metric| metric.last_failure.as_mut()));
    let last_probe = std::iter::once(&mut evidence.start.last_probe);
    for text in texts.chain(&mut evidence.warnings).chain(last_probe) {
        *text = clean(text);
    }
}

/// Raw evidence that is not whole: what follows from it may be wrong.
fn incomplete_failure(error: &io::Error) -> MeasurementFailure {
    let cause = match error.kind() {
        io::ErrorKind::StorageFull => InvalidReason::DiskFull,
        _ => InvalidReason::ToolError,
    };
    let why = format!("the event log of the trial is not complete: {error}");
    MeasurementFailure::new(cause, why)
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::MetricEvidence;

    use super::*;

    #[test]
    fn foreign_text_does_not_cost_a_trial_its_ending() {
        let long = "\u{1}a".repeat(20 << 20);
        let failure = MeasurementFailure::new(InvalidReason::Metrics, long.clone());
        let mut evidence = Evidence {
            warnings: vec![long.clone()],
            metrics: vec![MetricEvidence {
                last_failure: Some(long),
                ..MetricEvidence::default()
            }],
            ..Evidence::failed(failure)
        };
        shorten_texts(&mut evidence);
        let text = serde_json::to_string(&evidence).expect("it can be written");
        assert!(text.len() < 20_000, "{}", text.len());
    }
}
