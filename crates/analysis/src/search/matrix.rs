//! A matrix: every configuration of an experiment, or each ladder down to where it breaks.
//!
//! Owns when a ladder ends. All trials are asked for at once; those of one ladder one after the
//! other, because the next rung depends on the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Next, SeenTrials, TrialAsk, TrialSearch, WantedTrials};
use crate::record::{Configuration, TrialPurpose, TrialRecord, TrialVerdict};

/// Rungs that may fail in a row before a ladder ends: the threshold is a probability, one failure
/// above it happens.
const FAILURES_THAT_END: u32 = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct MatrixCell {
    pub configuration: Configuration,
    pub repeat: u32,
    /// The ladder it is a rung of; a ladder ends after two rungs that fail in a row.
    pub ladder: Option<usize>,
    pub pair: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    pub cells: Vec<MatrixCell>,
    pub start_deadline: Duration,
}

impl TrialSearch for Matrix {
    type Answer = Vec<Arc<TrialRecord>>;

    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer> {
        let mut failures: BTreeMap<(u32, usize), u32> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        let (mut records, mut open) = (Vec::new(), WantedTrials::default());
        for cell in &self.cells {
            let ladder = cell.ladder.map(|ladder| (cell.repeat, ladder));
            let has_ended = |l| failures.get(&l).is_some_and(|n| *n >= FAILURES_THAT_END);
            if ladder.is_some_and(|l| waiting.contains(&l) || has_ended(l)) {
                continue;
            }
            let ask = self.cell_ask(cell);
            let Some(record) = seen.record_for(&ask) else {
                open.wanted.push(ask);
                waiting.extend(ladder);
                continue;
            };
            if let Some(ladder) = ladder {
                count_failures(failures.entry(ladder).or_default(), record.verdict);
            }
            records.push(Arc::clone(record));
        }
        if open.wanted.is_empty() {
            Ok(records)
        } else {
            Err(open)
        }
    }
}

impl Matrix {
    fn cell_ask(&self, cell: &MatrixCell) -> TrialAsk {
        TrialAsk {
            configuration: cell.configuration.clone(),
            purpose: TrialPurpose::Matrix,
            repeat: cell.repeat,
            start_deadline: self.start_deadline,
            pair: cell.pair,
        }
    }
}

fn count_failures(failures: &mut u32, verdict: TrialVerdict) {
    match verdict {
        TrialVerdict::Pass => *failures = 0,
        TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => *failures += 1,
        TrialVerdict::Invalid(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn matrix(ladder: Option<usize>) -> Matrix {
        let cell = |mib| MatrixCell {
            configuration: fixture::configuration(mib),
            repeat: 1,
            ladder,
            pair: None,
        };
        Matrix {
            cells: [512, 384, 256, 128].map(cell).into(),
            start_deadline: Duration::from_secs(60),
        }
    }

    fn wanted(next: Next<Vec<Arc<TrialRecord>>>) -> Vec<String> {
        let open = next.expect_err("it is open");
        open.wanted
            .into_iter()
            .map(|a| a.configuration.label)
            .collect()
    }

    #[test]
    fn a_matrix_asks_for_everything_and_a_ladder_for_its_next_rung() {
        let mut seen = SeenTrials::default();
        let all = ["512Mi", "384Mi", "256Mi", "128Mi"];
        assert_eq!(wanted(matrix(None).next(&seen)), all);
        let ladder = matrix(Some(0));
        let verdicts = [
            TrialVerdict::Pass,
            TrialVerdict::SloMiss,
            TrialVerdict::SloMiss,
        ];
        for (cell, verdict) in ladder.cells.iter().zip(verdicts) {
            assert_eq!(
                wanted(ladder.next(&seen)),
                [cell.configuration.label.as_str()]
            );
            let record = fixture::trial_record("t", TrialPurpose::Matrix, 1, verdict);
            seen.add_record(&ladder.cell_ask(cell), record, Duration::ZERO);
        }
        let records = ladder.next(&seen).expect("two failures in a row end it");
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn two_thousand_trials_are_looked_up_in_no_time_that_grows_with_them() {
        let cells = (0..2000).map(|i| MatrixCell {
            configuration: fixture::configuration(64 + i),
            repeat: 1,
            ladder: None,
            pair: None,
        });
        let matrix = Matrix {
            cells: cells.collect(),
            start_deadline: Duration::from_secs(60),
        };
        let mut seen = SeenTrials::default();
        let record = fixture::trial_record("t", TrialPurpose::Matrix, 1, TrialVerdict::Pass);
        for cell in &matrix.cells {
            seen.add_record(&matrix.cell_ask(cell), record.clone(), Duration::ZERO);
        }
        assert_eq!(matrix.next(&seen).map(|records| records.len()), Ok(2000));
        assert_eq!(seen.longest_chain(), 1, "no two asks share a hash");
    }
}
