//! Rounds of one trial alone and two at once, before a search with several slots.
//!
//! Owns which trials those are: the repeat says the place in a round. What they say is
//! [`crate::abreast`]'s. Two that did not run at the same time (a resume between them) say nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Ask, Next, Search, Seen};
use crate::abreast::{self, Standing};
use crate::record::{Configuration, Phase, Purpose, TrialRecord};

/// Trials of a round: the first alone, the others at once.
const SIZE: u32 = 3;

/// The comparison of one configuration with itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Abreast {
    /// What runs.
    pub configuration: Configuration,
    /// How long a start may take.
    pub start_deadline: Duration,
}

impl Search for Abreast {
    type Answer = Standing;

    fn next(&self, seen: &Seen) -> Next<Self::Answer> {
        let mut records = Vec::new();
        loop {
            let first = records.len() as u32 + 1;
            records.extend(self.seen([first], seen)?);
            records.extend(self.seen([first + 1, first + 2], seen)?);
            let standing = judged(records.iter().map(Arc::as_ref));
            if standing != Standing::Open {
                return Ok(standing);
            }
        }
    }
}

/// What the trials of whole rounds say; of several attempts at one the last.
pub fn judged<'a>(records: impl IntoIterator<Item = &'a TrialRecord>) -> Standing {
    let records = records.into_iter().map(|record| (record.repeat, record));
    let records: BTreeMap<u32, &TrialRecord> = records.collect();
    let rounds = records.len() as u32 / SIZE;
    let (mut alone, mut at_once) = (Vec::new(), Vec::new());
    for first in (0..rounds).map(|round| SIZE * round + 1) {
        let of = |place: u32| records.get(&(first + place)).copied();
        alone.extend(of(0).and_then(abreast::Seen::of));
        if let (Some(one), Some(other)) = (of(1), of(2))
            && overlap(one, other)
        {
            at_once.extend([one, other].into_iter().filter_map(abreast::Seen::of));
        }
    }
    abreast::standing(rounds, &alone, &at_once)
}

impl Abreast {
    /// The records of these repeats, all asked for at once.
    fn seen<const N: usize>(&self, repeats: [u32; N], seen: &Seen) -> Next<Vec<Arc<TrialRecord>>> {
        let asks = repeats.map(|repeat| Ask {
            configuration: self.configuration.clone(),
            purpose: Purpose::Abreast,
            repeat,
            start_deadline: self.start_deadline,
            pair: None,
        });
        super::each(seen, asks.into())
    }
}

/// Whether each was measured while the other was, for half of the time at least.
fn overlap(one: &TrialRecord, other: &TrialRecord) -> bool {
    let span = |record: &TrialRecord| {
        let mut phases = record.evidence.phases.iter();
        let measure = phases.find(|p| p.phase == Phase::Measure)?;
        Some((measure.start, measure.end))
    };
    let (Some(a), Some(b)) = (span(one), span(other)) else {
        return false;
    };
    let both = a.1.min(b.1).saturating_sub(a.0.max(b.0));
    2 * both >= (a.1 - a.0).max(b.1 - b.0)
}
