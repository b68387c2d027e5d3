//! When a search for a warm JVM restarts, and with which warm-up.
//!
//! Owns how many cold starts trigger it; [`crate::warming`] judges each start.

use std::sync::Arc;

use super::{SmallestMemory, labelled};
use crate::record::{Configuration, TrialRecord};
use crate::text;
use crate::warming::{self, FEW};

const WARM_UP: &str = "warm-up=";

/// Whether the search must restart with a longer warm-up. The first start alone shows it, even if
/// it missed: a warm JVM might have kept the SLO.
pub(super) fn is_too_early(trials: &[Arc<TrialRecord>]) -> bool {
    match trials {
        [first] => first.verdict.is_evidence() && warming::is_warming(first),
        trials => is_cold(trials),
    }
}

impl SmallestMemory {
    pub(super) fn with_longer_warm_up(&self) -> Option<Self> {
        let longer = warming::longer_warm_up(self.warm_up?)?;
        let given = match self.base.label.rsplit_once(WARM_UP) {
            Some((given, _)) => given,
            None => self.base.label.as_str(),
        };
        let warm_up = format!("{WARM_UP}{}", text::exact_duration(longer));
        let base = Configuration {
            label: labelled(given.trim(), &warm_up),
            warm_up: Some(longer),
            ..self.base.clone()
        };
        Some(Self {
            base,
            warm_up: Some(longer),
            ..self.clone()
        })
    }
}

/// Whether most starts at the last size were judged while warming up, given enough starts.
pub(super) fn is_cold(trials: &[Arc<TrialRecord>]) -> bool {
    let last = trials.last().map(|t| t.configuration.memory);
    let is_same =
        |t: &&TrialRecord| Some(t.configuration.memory) == last && t.verdict.is_evidence();
    let same: Vec<&TrialRecord> = trials.iter().map(|t| &**t).filter(is_same).collect();
    same.len() >= FEW && warming::find_cold_starts(same).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{InvalidReason, TrialVerdict};
    use crate::warming::tests::start;

    /// A start with this many MiB; in a cold start requests get cheaper while it is judged.
    fn of(is_cold: bool, size: u64, verdict: TrialVerdict) -> Arc<TrialRecord> {
        let falls = if is_cold { 60 } else { 0 };
        let mut record = start(|second| 800 - falls * second as u64);
        record.configuration = crate::fixture::configuration(size);
        record.verdict = verdict;
        Arc::new(record)
    }

    const INVALID: TrialVerdict = TrialVerdict::Invalid(InvalidReason::Noise);

    #[test]
    fn most_starts_of_the_last_size_say_that_it_is_cold() {
        let cold = |size| of(true, size, TrialVerdict::Pass);
        let warm = |size| of(false, size, TrialVerdict::Pass);
        let invalid = of(true, 256, INVALID);
        assert!(is_cold(&[cold(256), warm(256), cold(256)]));
        assert!(!is_cold(&[cold(256), warm(256), warm(256)]));
        assert!(!is_cold(&[cold(256), cold(256)]), "too few");
        assert!(!is_cold(&[cold(256), cold(256), invalid]), "too few");
        assert!(!is_cold(&[cold(128), cold(256), cold(256)]), "too few");
        assert!(!is_cold(&[]));
    }

    #[test]
    fn the_first_start_says_alone_that_it_was_too_early() {
        assert!(is_too_early(&[of(true, 256, TrialVerdict::Pass)]));
        assert!(is_too_early(&[of(true, 256, TrialVerdict::SloMiss)]));
        assert!(!is_too_early(&[of(false, 256, TrialVerdict::Pass)]));
        assert!(!is_too_early(&[of(true, 256, INVALID)]));
    }
}
