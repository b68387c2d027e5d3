//! Results of several processes that made one load together, and their exact sum.
//!
//! Owns the file of one part. Counters add, histograms add bucket by bucket: the sum is the same
//! as if one process had made the whole load.

use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::health::Health;
use crate::histogram;
use crate::outcome::{ErrorKind, RequestTotals, Totals};
use crate::part::{RequestMessage, ResultMessage, TotalsMessage, result_message};
use crate::plan::Plan;
use crate::run::Outcome;
use crate::summary::{Setting, Summary};

/// The whole result of one process, histograms included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartFile {
    /// Version of this form.
    pub schema: u32,
    /// What was run.
    pub setting: Setting,
    /// What came of it.
    pub result: ResultMessage,
}

impl PartFile {
    /// Of a run.
    pub fn new(plan: &Plan, outcome: &Outcome, url: &str) -> Self {
        Self {
            schema: 1,
            setting: Setting::new(plan, outcome, url),
            result: result_message(plan, outcome),
        }
    }
}

/// Sums up all parts of one load.
///
/// # Errors
/// [`LoadError::Plan`] when there is none or they are not of one load; [`LoadError::Histogram`]
/// when one is damaged; [`LoadError::Accounting`] when outcomes are missing.
pub fn merge(parts: &[PartFile]) -> Result<Summary, LoadError> {
    let refuse = |why: &str| LoadError::Plan {
        field: "part",
        why: why.to_owned(),
    };
    let (first, rest) = parts
        .split_first()
        .ok_or_else(|| refuse("no file is given"))?;
    let mut setting = first.setting.clone();
    let mut totals = totals(&first.result.measure)?;
    let mut health = first.result.health.clone();
    for part in rest {
        let theirs = &part.setting;
        if theirs.model != setting.model || theirs.requests != setting.requests {
            return Err(refuse("the files are of different loads"));
        }
        setting.connections += theirs.connections;
        setting.threads += theirs.threads;
        setting.duration_seconds = setting.duration_seconds.max(theirs.duration_seconds);
        totals.add(&self::totals(&part.result.measure)?);
        add_health(&mut health, &part.result.health);
    }
    totals.check()?;
    let results = || parts.iter().map(|p| &p.result);
    let warmups = || results().filter_map(|r| r.warmup.as_ref());
    let answered = totals.ok + warmups().map(|w| w.ok).sum::<u64>();
    let mut summary = Summary::of(&setting, &totals, answered, &health);
    summary.warmup_requests = warmups().map(|w| w.scheduled).sum();
    summary.stopped = results().any(|r| r.stopped);
    Ok(summary)
}

fn add_health(mine: &mut Health, theirs: &Health) {
    mine.send_lag_p99 = mine.send_lag_p99.max(theirs.send_lag_p99);
    mine.send_lag_p99_9 = mine.send_lag_p99_9.max(theirs.send_lag_p99_9);
    mine.send_lag_max = mine.send_lag_max.max(theirs.send_lag_max);
    mine.missed = mine.missed.max(theirs.missed);
    mine.cpu += theirs.cpu;
    mine.run_delay += theirs.run_delay;
    mine.throttled += theirs.throttled;
    if mine.saturated.is_none() {
        mine.saturated.clone_from(&theirs.saturated);
    }
}

fn totals(message: &TotalsMessage) -> Result<Totals, LoadError> {
    let mut totals = Totals {
        latency: histogram::decode(&message.latency)?,
        service_time: histogram::decode(&message.service_time)?,
        send_lag: histogram::decode(&message.send_lag)?,
        by_request: message
            .by_request
            .iter()
            .map(request_totals)
            .collect::<Result<_, _>>()?,
        ..Totals::default()
    };
    totals.scheduled = message.scheduled;
    totals.ok = message.ok;
    totals.unfinished = message.unfinished;
    totals.body_bytes = message.body_bytes;
    totals.redirects = message.redirects;
    for kind in ErrorKind::ALL {
        if let Some(count) = message.errors.get(kind.name()) {
            totals.fail_many(*kind, *count);
        }
    }
    Ok(totals)
}

fn request_totals(message: &RequestMessage) -> Result<RequestTotals, LoadError> {
    Ok(RequestTotals {
        ok: message.ok,
        failed: message.failed,
        latency: histogram::decode(&message.latency)?,
    })
}
