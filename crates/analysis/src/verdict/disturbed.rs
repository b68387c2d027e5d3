//! Trials that other programs disturbed: which count in a search all the same.
//!
//! Owns that rule. Other programs make a service slower, never faster, and take nothing from its
//! memory limit: a kept SLO counts, and so does a miss for which counters show a lack of memory. Any
//! other miss says nothing.

use std::time::Duration;

use super::{Judgement, VerdictThresholds, judge_trial, shows_lack_of_memory};
use crate::noise::{self, NoiseThresholds};
use crate::record::{
    Configuration, Evidence, InvalidReason, LoadEvidence, TrialPurpose, TrialVerdict,
};
use crate::slo::Slo;

/// The warning of a disturbed trial in an experiment that accepts noise. It counts like a quiet one.
pub const ACCEPTED: &str =
    "other programs disturbed it; judged all the same, as the experiment accepts noise";

/// Judges as [`judge_trial`] does, and a disturbed start of a search by what noise cannot change.
pub fn judge_for(
    purpose: TrialPurpose,
    configuration: &Configuration,
    slo: &Slo,
    evidence: &Evidence,
    thresholds: &VerdictThresholds,
) -> Judgement {
    let strict = judge_trial(configuration, slo, evidence, thresholds);
    let is_noisy = strict.verdict == TrialVerdict::Invalid(InvalidReason::Noise);
    let is_late = strict.verdict == TrialVerdict::Invalid(InvalidReason::GeneratorSaturated)
        && was_disturbed(evidence)
        && evidence.load.iter().all(counts_from_schedule);
    if !is_search(purpose) || !(is_noisy || is_late) {
        return strict;
    }
    let lenient = VerdictThresholds {
        noise: NoiseThresholds::accepting_neighbours(),
        accept_saturated: is_late,
        send_lag: if is_late {
            Duration::MAX
        } else {
            thresholds.send_lag
        },
        ..*thresholds
    };
    let mut counted = judge_trial(configuration, slo, evidence, &lenient);
    let counts = match counted.verdict {
        TrialVerdict::Pass => true,
        TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => {
            shows_lack_of_memory(&counted.objectives, evidence)
        }
        TrialVerdict::Invalid(_) => false,
    };
    if !counts {
        return strict;
    }
    counted.reason.push(&format!("although {}", strict.reason));
    counted
}

/// A generator that others delayed sends late, and its latencies count that too. A closed load, or a
/// load command, sends less instead.
fn counts_from_schedule(load: &LoadEvidence) -> bool {
    load.offered_rate.is_some() && load.load_from.is_none()
}

/// Figures of other trials are compared with each other, and there a disturbance shows.
fn is_search(purpose: TrialPurpose) -> bool {
    use TrialPurpose::{Confirm, Neighbour, Prove, Room, Search, Squeeze};
    [Room, Squeeze, Search, Confirm, Prove, Neighbour].contains(&purpose)
}

/// Whether other programs disturbed a trial, which its experiment does not accept.
pub fn was_disturbed(evidence: &Evidence) -> bool {
    let is_accepted = evidence.warnings.iter().any(|warning| warning == ACCEPTED);
    !is_accepted && noise::why_too_noisy(&evidence.noise, &NoiseThresholds::default()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn judged(purpose: TrialPurpose, change: impl Fn(&mut Evidence)) -> String {
        let mut evidence = fixture::passing_evidence();
        evidence.noise.foreign_cpu = Some(0.31);
        change(&mut evidence);
        let slo: Slo = "p99<50ms,errors<1%".parse().expect("an SLO");
        let configuration = fixture::configuration(256);
        let thresholds = VerdictThresholds::default();
        let judged = judge_for(purpose, &configuration, &slo, &evidence, &thresholds);
        format!("{}: {}", judged.verdict, judged.reason)
    }

    #[test]
    fn a_disturbed_start_counts_for_what_noise_cannot_change() {
        let kept = judged(TrialPurpose::Prove, |_| ());
        assert!(kept.starts_with("PASS"), "{kept}");
        assert!(
            kept.ends_with("although other programs used 31 % of the CPUs (at most 5 %)"),
            "{kept}"
        );
        let fails = |evidence: &mut Evidence| {
            for load in &mut evidence.load {
                load.errors.insert("timeout".to_owned(), load.ok);
                load.ok = 0;
            }
        };
        let slow = judged(TrialPurpose::Prove, fails);
        assert!(slow.starts_with("INVALID noise"), "{slow}");
        let thrashes = judged(TrialPurpose::Prove, |evidence| {
            fails(evidence);
            evidence.cgroup.file_refaults = Some(10_000_000);
        });
        assert!(thrashes.starts_with("SLO_MISS"), "{thrashes}");
        let late = |evidence: &mut Evidence| {
            evidence.load[0].saturated = Some("it waited for a CPU".to_owned());
            evidence.load[0].send_lag_p99 = Some(Duration::from_millis(40));
        };
        let counted = judged(TrialPurpose::Prove, late);
        assert!(counted.starts_with("PASS"), "{counted}");
        let closed = judged(TrialPurpose::Prove, |evidence| {
            late(evidence);
            evidence.load[0].offered_rate = None;
        });
        assert!(closed.starts_with("INVALID generator"), "{closed}");
        let compared = judged(TrialPurpose::Compare, |_| ());
        assert!(compared.starts_with("INVALID noise"), "{compared}");
    }
}
