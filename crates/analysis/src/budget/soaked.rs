//! What a soak says about an answer: whether it lasted, and whether it stayed within its budget.
//!
//! Owns the difference between a tested answer (seconds) and a proven one (a soak).

use std::time::Duration;

use loadline_sizing::Bytes;

use super::{Budget, MemoryPart};
use crate::record::{SoakEvidence, SoakPoint, TrialRecord, TrialVerdict};

/// The shortest time under load, both cycles together, after which a soak proves a size. Measured: with
/// a fixed heap two services grew by 1 and 14 MiB in their first minutes and by 1 and 4 MiB in the 40
/// minutes after that.
pub const PROVING_SOAK: Duration = Duration::from_secs(30 * 60);

/// Factor on the size after a death, and on the missing memory after an overrun: growth goes on after
/// a soak ends.
const RAISED: (u64, u64) = (5, 4);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoakOutcome {
    Died {
        after: Duration,
    },
    Outgrew {
        after: Duration,
        most: Bytes,
        allowed: Bytes,
    },
    Missed {
        length: Duration,
    },
    TooShort {
        length: Duration,
    },
    Lasted {
        length: Duration,
    },
}

impl SoakOutcome {
    /// Judges a soak against the budget that it tested; `None` if the trial is no soak.
    pub fn for_trial(trial: &TrialRecord, budget: Option<&Budget>) -> Option<Self> {
        let soak = trial.evidence.soak.as_ref()?;
        let length = soak.time_under_load();
        let overrun = budget.and_then(|budget| find_overrun(soak, budget));
        Some(match (trial.verdict, overrun) {
            (TrialVerdict::AppKo(_), _) => Self::Died { after: length },
            (_, Some(overrun)) => overrun,
            (TrialVerdict::Pass, None) if length >= PROVING_SOAK => Self::Lasted { length },
            (TrialVerdict::Pass, None) => Self::TooShort { length },
            _ => Self::Missed { length },
        })
    }

    pub fn refutes(&self) -> bool {
        matches!(self, Self::Died { .. } | Self::Outgrew { .. })
    }

    pub fn raised_size(&self, size: Bytes) -> Option<Bytes> {
        match self {
            Self::Died { .. } => Some(size.mul_ratio(RAISED.0, RAISED.1)),
            Self::Outgrew { most, allowed, .. } => {
                let missing = most.saturating_sub(*allowed);
                Some(size.saturating_add(missing.mul_ratio(RAISED.0, RAISED.1)))
            }
            Self::Missed { .. } | Self::TooShort { .. } | Self::Lasted { .. } => None,
        }
    }
}

/// The first point above the anonymous memory of the budget: its limit without kernel and files.
fn find_overrun(soak: &SoakEvidence, budget: &Budget) -> Option<SoakOutcome> {
    let is_charged = |part| matches!(part, MemoryPart::Kernel | MemoryPart::Files);
    let charged = budget.lines().iter().filter(|line| is_charged(line.part));
    let allowed = charged.fold(budget.limit(), |room, line| {
        room.saturating_sub(line.need())
    });
    let begin = soak.points_under_load().next()?.at_ns;
    let above = |p: &&SoakPoint| p.anon.is_some_and(|anon| anon > allowed);
    let first = soak.points_under_load().find(above)?;
    Some(SoakOutcome::Outgrew {
        after: Duration::from_nanos(first.at_ns.saturating_sub(begin)),
        most: soak.points_under_load().filter_map(|p| p.anon).max()?,
        allowed,
    })
}
