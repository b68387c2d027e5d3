//! Where the smallest memory is expected to lie, from a trial that passed with more.
//!
//! Owns the estimate and how far a search trusts it. It chooses which sizes are tried first, never
//! what they must show: a wrong one costs starts.

use loadline_sizing::Bytes;

use crate::record::{CgroupEvidence, Evidence};

/// Half of all estimates from one start are taken to be off by less, as a share.
const OF_A_START: f64 = 0.15;

/// The same, where it is the sum of the parts of a start with room. Chosen.
const OF_A_BUDGET: f64 = 0.06;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedSize {
    pub size: Bytes,
    pub spread: f64,
}

impl ExpectedSize {
    pub fn of_a_start(size: Bytes) -> Self {
        let spread = OF_A_START;
        Self { size, spread }
    }

    pub fn of_a_budget(size: Bytes) -> Self {
        let spread = OF_A_BUDGET;
        Self { size, spread }
    }
}

/// The smallest limit that one instance is expected to work with: its anonymous memory, which
/// cannot be dropped, and half of its file pages in use, of which some can. In the record of
/// spring-web (`records/2026-11-20-spring-web-size`) 209 MiB are expected from the start with
/// 512 MiB; 204 MiB passed once of twice, 212 MiB each time. A heap that takes what it may is in it:
/// less memory makes it smaller, so the trial with the least memory says most. `None` where the
/// kernel does not tell.
pub fn expected_limit(evidence: &Evidence) -> Option<ExpectedSize> {
    let alone = evidence.instances.iter().map(|i| &i.cgroup);
    let of_each = alone.filter_map(memory_floor).max();
    let size = of_each.or_else(|| memory_floor(&evidence.cgroup))?;
    Some(ExpectedSize::of_a_start(size))
}

fn memory_floor(cgroup: &CgroupEvidence) -> Option<Bytes> {
    let (anon, used) = (cgroup.peak_anon?, cgroup.peak_working_set?);
    let files = used.saturating_sub(anon);
    Some(anon.saturating_add(files.mul_ratio(1, 2)))
}

/// The size that halves the probability of where the smallest lies, between two sizes: the
/// logarithm of the estimate has a Cauchy-distributed error, because long tails soon abandon a
/// useless estimate. Sizes in any unit, above 0.
pub(super) fn likely_middle(low: f64, high: f64, expected: f64, spread: f64) -> f64 {
    let share = |size: f64| ((size / expected).ln() / spread).atan();
    let half = (share(low) + share(high)) / 2.0;
    expected * (spread * half.tan()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{InstanceEvidence, TrialPurpose, TrialVerdict};

    fn cgroup(anon: u64, used: u64) -> CgroupEvidence {
        CgroupEvidence {
            peak_anon: Some(Bytes::from_mib(anon)),
            peak_working_set: Some(Bytes::from_mib(used)),
            ..CgroupEvidence::default()
        }
    }

    #[test]
    fn half_of_the_files_in_use_are_expected_to_be_needed() {
        let trial = fixture::trial_record("t", TrialPurpose::Search, 512, TrialVerdict::Pass);
        let mut evidence = Evidence {
            cgroup: cgroup(189, 229),
            ..trial.evidence
        };
        let size = |evidence: &Evidence| expected_limit(evidence).map(|expected| expected.size);
        assert_eq!(size(&evidence), Some(Bytes::from_mib(209)));
        let of = |instance, anon, used| InstanceEvidence {
            instance,
            cgroup: cgroup(anon, used),
            start: Default::default(),
            gc: None,
            exit: Default::default(),
        };
        evidence.instances = vec![of(1, 90, 110), of(2, 80, 140)];
        assert_eq!(size(&evidence), Some(Bytes::from_mib(110)));
        evidence.instances = Vec::new();
        evidence.cgroup.peak_anon = None;
        assert_eq!(size(&evidence), None);
    }

    #[test]
    fn the_middle_is_near_what_is_expected_and_between_the_ends() {
        let at =
            |low, high, expected| likely_middle(low, high, expected, OF_A_START).round() as u64;
        assert_eq!(at(64.0, 1024.0, 256.0), 256);
        assert_eq!(at(64.0, 1024.0, 210.0), 210);
        assert_eq!(at(64.0, 210.0, 210.0), 184);
        // Useless estimates: it goes on in ever larger steps.
        assert_eq!(at(64.0, 1024.0, 2000.0), 646);
        assert_eq!(at(64.0, 646.0, 2000.0), 364);
        assert_eq!(at(64.0, 1024.0, 30.0), 105);
        // The sharper it is, the nearer the next is tried.
        let near = likely_middle(64.0, 210.0, 210.0, OF_A_BUDGET);
        assert_eq!(near.round() as u64, 198);
    }
}
