//! Results of several processes that made one load together, and their exact sum.
//!
//! Owns the file of one part, and the check that the files are exactly the parts of one load.
//! Counters add, histograms add bucket by bucket: the sum is the same as if one process had made
//! the whole load.

use std::time::Duration;

use loadline_analysis::wire::nanos;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::health::Health;
use crate::outcome::LoadTotals;
use crate::part::{ResultMessage, result_message};
use crate::plan::{LoadModel, LoadPart, LoadPlan};
use crate::run::LoadOutcome;
use crate::summary::{LoadSummary, SummarySetting};

/// Version of [`PartFile`]; 2: it says which part it is of which schedule.
pub const SCHEMA: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartFile {
    pub schema: u32,
    pub part: LoadPart,
    pub schedule: LoadModel,
    #[serde(rename = "warmup_ns", with = "nanos")]
    pub warmup: Duration,
    pub setting: SummarySetting,
    pub result: ResultMessage,
}

impl PartFile {
    pub fn new(plan: &LoadPlan, outcome: &LoadOutcome, url: &str) -> Self {
        Self {
            schema: SCHEMA,
            part: plan.part,
            schedule: plan.model.clone(),
            warmup: plan.warmup,
            setting: SummarySetting::new(plan, outcome, url),
            result: result_message(plan, outcome),
        }
    }

    pub fn parse_part_file(text: &str) -> Result<Self, LoadError> {
        #[derive(Deserialize)]
        struct PartFileHeader {
            schema: u32,
        }
        let no_part = |e: serde_json::Error| {
            refuse_parts(
                e,
                "only files that `loadline load --out` wrote can be merged",
            )
        };
        let head: PartFileHeader = serde_json::from_str(text).map_err(no_part)?;
        if head.schema != SCHEMA {
            return Err(refuse_parts(
                format!(
                    "the file has schema {}, this loadline reads {SCHEMA}",
                    head.schema
                ),
                "make and merge all parts with the same version",
            ));
        }
        serde_json::from_str(text).map_err(no_part)
    }

    fn find_difference(&self, other: &Self) -> Option<&'static str> {
        let (mine, theirs) = (&self.setting, &other.setting);
        let known = [
            ("the number of parts", self.part.of == other.part.of),
            ("the URL", mine.url == theirs.url),
            ("the model", mine.model == theirs.model),
            ("the rate or the length", self.schedule == other.schedule),
            ("the warm-up", self.warmup == other.warmup),
            ("the mix of requests", mine.requests == theirs.requests),
        ];
        known
            .iter()
            .find(|(_, is_same)| !is_same)
            .map(|(what, _)| *what)
    }
}

fn refuse_parts(why: impl ToString, hint: impl ToString) -> LoadError {
    LoadError::Part {
        why: why.to_string(),
        hint: hint.to_string(),
    }
}

fn check_parts(first: &PartFile, parts: &[PartFile]) -> Result<(), LoadError> {
    for other in parts {
        if let Some(what) = first.find_difference(other) {
            return Err(refuse_parts(
                format!(
                    "{} and {} are of different loads: {what} is not the same",
                    first.part, other.part
                ),
                "only --part, --start-at and --out may differ from part to part, and what the machine has",
            ));
        }
    }
    for index in 0..first.part.of {
        let part = LoadPart {
            index,
            ..first.part
        };
        match parts.iter().filter(|p| p.part == part).count() {
            1 => {}
            0 => {
                return Err(refuse_parts(
                    format!("{part} is missing"),
                    format!("the load has {} parts; give the file of each", part.of),
                ));
            }
            _ => {
                return Err(refuse_parts(
                    format!("{part} is given more than once"),
                    "give the file of each part once",
                ));
            }
        }
    }
    Ok(())
}

/// Sums up all parts of one load.
/// Errors: [`LoadError::Part`] when one is missing, twice there or of another load;
/// [`LoadError::Accounting`] when outcomes are missing.
pub fn merge(parts: &[PartFile]) -> Result<LoadSummary, LoadError> {
    let (first, rest) = parts
        .split_first()
        .ok_or_else(|| refuse_parts("no file is given", "give the file of each part"))?;
    check_parts(first, parts)?;
    let mut setting = first.setting.clone();
    for part in rest {
        let theirs = &part.setting;
        setting.connections += theirs.connections;
        setting.threads += theirs.threads;
        setting.duration_seconds = setting.duration_seconds.max(theirs.duration_seconds);
    }
    let results = || parts.iter().map(|p| &p.result);
    let PartsSum {
        measure, health, ..
    } = sum_results(results())?;
    let warmups = || results().filter_map(|r| r.warmup.as_ref());
    let answered = measure.ok + warmups().map(|w| w.totals.ok).sum::<u64>();
    let mut summary = LoadSummary::from_totals(&setting, &measure, answered, &health);
    summary.warmup_requests = warmups().map(|w| w.totals.scheduled).sum();
    summary.stopped = results().any(|r| r.stopped);
    Ok(summary)
}

pub(crate) struct PartsSum {
    pub(crate) measure: LoadTotals,
    pub(crate) warmup: LoadTotals,
    pub(crate) health: Health,
}

/// Adds up the results of the parts of one load, at least one.
/// Errors: [`LoadError::Accounting`] when outcomes are missing.
pub(crate) fn sum_results<'a>(
    mut results: impl Iterator<Item = &'a ResultMessage>,
) -> Result<PartsSum, LoadError> {
    let first = results
        .next()
        .ok_or_else(|| refuse_parts("there is no result", "this is a defect of loadline"))?;
    let warmup = |result: &ResultMessage| Some(result.warmup.clone()?.totals);
    let mut all = PartsSum {
        measure: first.measure.totals.clone(),
        warmup: warmup(first).unwrap_or_default(),
        health: first.health.clone(),
    };
    for result in results {
        all.measure.add_all(&result.measure.totals);
        if let Some(warmup) = warmup(result) {
            all.warmup.add_all(&warmup);
        }
        add_health(&mut all.health, &result.health);
    }
    all.measure.check_balance()?;
    all.warmup.check_balance()?;
    Ok(all)
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
