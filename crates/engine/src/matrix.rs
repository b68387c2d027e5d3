//! `run`: every configuration of an experiment, or each ladder down to where it breaks.

use std::collections::BTreeMap;

use loadline_analysis::record::{Purpose, TrialRecord, Verdict};

use crate::plan::Plan;
use crate::session::{Session, SessionError};

/// Rungs that may fail in a row before a ladder ends: the threshold is a probability, one failure
/// above it happens.
const FAILURES_THAT_END: u32 = 2;

/// Runs all trials of a plan.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store.
pub fn run(session: &mut Session<'_>, plan: &Plan) -> Result<Vec<TrialRecord>, SessionError> {
    let mut failures: BTreeMap<(u32, usize), u32> = BTreeMap::new();
    let mut records = Vec::new();
    for planned in &plan.trials {
        let ladder = planned.ladder.map(|l| (planned.repeat, l));
        if ladder.is_some_and(|l| failures.get(&l).copied().unwrap_or(0) >= FAILURES_THAT_END) {
            continue;
        }
        let record = session.trial(&planned.configuration, Purpose::Matrix, planned.repeat)?;
        if let Some(ladder) = ladder {
            count(failures.entry(ladder).or_default(), record.verdict);
        }
        records.push(record);
    }
    Ok(records)
}

fn count(failures: &mut u32, verdict: Verdict) {
    match verdict {
        Verdict::Pass => *failures = 0,
        Verdict::SloMiss | Verdict::AppKo(_) => *failures += 1,
        Verdict::Invalid(_) => {}
    }
}
