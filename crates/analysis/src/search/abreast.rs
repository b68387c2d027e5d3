//! Rounds of one trial alone and two at once, before a search with several slots.
//!
//! Owns which trials those are: the repeat says the place in a round. What they say is
//! [`crate::abreast`]'s. Two that did not run at the same time (a resume between them) say nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Next, SeenTrials, TrialAsk, TrialSearch};
use crate::abreast::{self, AbreastStanding};
use crate::record::{Configuration, TrialPhase, TrialPurpose, TrialRecord};

/// Trials of a round: the first alone, the others at once.
const SIZE: u32 = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct AbreastSearch {
    pub configuration: Configuration,
    pub start_deadline: Duration,
}

impl TrialSearch for AbreastSearch {
    type Answer = AbreastStanding;

    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer> {
        let mut records = Vec::new();
        loop {
            let first = records.len() as u32 + 1;
            records.extend(self.repeat_records([first], seen)?);
            records.extend(self.repeat_records([first + 1, first + 2], seen)?);
            let standing = judge_rounds(records.iter().map(Arc::as_ref));
            if standing != AbreastStanding::Open {
                return Ok(standing);
            }
        }
    }
}

/// What the trials of whole rounds say; of several attempts at one the last.
pub fn judge_rounds<'a>(records: impl IntoIterator<Item = &'a TrialRecord>) -> AbreastStanding {
    let records = records.into_iter().map(|record| (record.repeat, record));
    let records: BTreeMap<u32, &TrialRecord> = records.collect();
    let rounds = records.len() as u32 / SIZE;
    let (mut alone, mut at_once) = (Vec::new(), Vec::new());
    for first in (0..rounds).map(|round| SIZE * round + 1) {
        let of = |place: u32| records.get(&(first + place)).copied();
        alone.extend(of(0).and_then(abreast::AbreastValues::from_trial));
        if let (Some(one), Some(other)) = (of(1), of(2))
            && overlap(one, other)
        {
            at_once.extend(
                [one, other]
                    .into_iter()
                    .filter_map(abreast::AbreastValues::from_trial),
            );
        }
    }
    abreast::compare_rounds(rounds, &alone, &at_once)
}

impl AbreastSearch {
    fn repeat_records<const N: usize>(
        &self,
        repeats: [u32; N],
        seen: &SeenTrials,
    ) -> Next<Vec<Arc<TrialRecord>>> {
        let asks = repeats.map(|repeat| TrialAsk {
            configuration: self.configuration.clone(),
            purpose: TrialPurpose::Abreast,
            repeat,
            start_deadline: self.start_deadline,
            pair: None,
        });
        super::read_records(seen, asks.into())
    }
}

/// Whether each was measured while the other was, for half of the time at least.
fn overlap(one: &TrialRecord, other: &TrialRecord) -> bool {
    let span = |record: &TrialRecord| {
        let mut phases = record.evidence.phases.iter();
        let measure = phases.find(|p| p.phase == TrialPhase::Measure)?;
        Some((measure.start, measure.end))
    };
    let (Some(a), Some(b)) = (span(one), span(other)) else {
        return false;
    };
    let both = a.1.min(b.1).saturating_sub(a.0.max(b.0));
    2 * both >= (a.1 - a.0).max(b.1 - b.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{PhaseSpan, TrialVerdict};

    /// Measured from one second to another.
    fn trial(repeat: u32, from: u64, to: u64) -> TrialRecord {
        let mut record = fixture::trial_record("t", TrialPurpose::Abreast, 256, TrialVerdict::Pass);
        record.repeat = repeat;
        let span = |phase, start: u64, end: u64| PhaseSpan {
            phase,
            start: start * 1_000_000_000,
            end: end * 1_000_000_000,
        };
        record.evidence.phases = vec![
            span(TrialPhase::Start, 0, from),
            span(TrialPhase::Measure, from, to),
        ];
        record
    }

    #[test]
    fn two_overlap_that_were_measured_at_once_for_half_of_the_time() {
        let of = |a: (u64, u64), b: (u64, u64)| overlap(&trial(2, a.0, a.1), &trial(3, b.0, b.1));
        assert!(of((10, 20), (10, 20)) && of((10, 20), (15, 25)) && of((15, 25), (10, 20)));
        assert!(!of((10, 20), (16, 26)) && !of((16, 26), (10, 20)));
        assert!(!of((10, 20), (30, 40)) && !of((30, 40), (10, 20)));
        // Of the longer of the two.
        assert!(of((10, 20), (10, 30)) && !of((10, 20), (10, 31)));
        let mut unmeasured = trial(3, 10, 20);
        unmeasured.evidence.phases.pop();
        assert!(!overlap(&trial(2, 10, 20), &unmeasured));
    }

    #[test]
    fn rounds_whose_trials_did_not_run_at_once_say_nothing() {
        let rounds = |apart: u64| {
            let round = |n: u64| {
                let begin = n * 100;
                [
                    trial(3 * n as u32 + 1, begin, begin + 10),
                    trial(3 * n as u32 + 2, begin + 20, begin + 30),
                    trial(3 * n as u32 + 3, begin + 20 + apart, begin + 30 + apart),
                ]
            };
            (0..6).flat_map(round).collect::<Vec<_>>()
        };
        assert_eq!(judge_rounds(&rounds(0)), AbreastStanding::Alike);
        assert_eq!(judge_rounds(&rounds(0)[..17]), AbreastStanding::Open);
        assert_ne!(judge_rounds(&rounds(10)), AbreastStanding::Alike);
    }

    #[test]
    fn the_two_at_once_are_asked_for_together_behind_the_one_alone() {
        let search = AbreastSearch {
            configuration: fixture::configuration(256),
            start_deadline: Duration::from_secs(60),
        };
        let mut seen = SeenTrials::default();
        let mut asked = Vec::new();
        let standing = loop {
            let open = match search.next(&seen) {
                Ok(standing) => break standing,
                Err(open) => open,
            };
            asked.push(open.wanted.iter().map(|ask| ask.repeat).collect::<Vec<_>>());
            for ask in open.wanted {
                let at_once = u64::from(ask.repeat / 3 * 100);
                let record = trial(ask.repeat, at_once, at_once + 10);
                seen.add_record(&ask, record, Duration::ZERO);
            }
        };
        assert_eq!(asked[..4], [vec![1], vec![2, 3], vec![4], vec![5, 6]]);
        // 2 and 3 lie in other hundreds: nothing of what was to run at once did.
        assert_ne!(standing, AbreastStanding::Alike);
    }
}
