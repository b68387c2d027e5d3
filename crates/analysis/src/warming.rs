//! Whether the application was still warming up while it was judged.
//!
//! Owns the comparison of the two halves of the measure phase, by the CPU time of a request: other
//! programs hardly move it, unlike latencies. It is for phases of any length; of thirty seconds and
//! more [`crate::steady`] says when the warm-up ended.

use std::time::Duration;

use crate::interval::median;
use crate::record::{Phase, SecondEvidence, TrialRecord};

/// CPU time of a request in the first half of the load, as a multiple of that in the second, from
/// which the application was still warming up.
const WARMING: f64 = 1.3;

/// The seconds of the measure phase.
pub(crate) fn measured(record: &TrialRecord) -> Vec<&SecondEvidence> {
    let phases = &record.evidence.phases;
    let span = phases.iter().find(|p| p.phase == Phase::Measure);
    let within = |s: &&SecondEvidence| {
        span.is_none_or(|p| p.start < s.at_ns && s.at_ns <= p.end) && s.offered.is_some()
    };
    record.evidence.seconds.iter().filter(within).collect()
}

/// CPU time of a request in the first half of the measure phase over that in the second; `None`
/// where a half has no answers or the kernel does not tell.
pub fn first_half_over_second(record: &TrialRecord) -> Option<f64> {
    let seconds = measured(record);
    let (first, second) = seconds.split_at(seconds.len() / 2);
    let each = |half: &[&SecondEvidence]| {
        let cpu: Duration = half.iter().filter_map(|s| s.cpu).sum();
        let answered: u64 = half.iter().filter_map(|s| s.achieved).sum();
        (!cpu.is_zero() && answered > 0).then(|| cpu.as_secs_f64() / answered as f64)
    };
    Some(each(first)? / each(second)?)
}

/// Whether requests took clearly more CPU in the first half of the measure phase.
pub fn is_warming(record: &TrialRecord) -> bool {
    first_half_over_second(record).is_some_and(|ratio| ratio > WARMING)
}

/// Starts that were judged while they were still warming up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cold {
    /// Of these starts.
    pub starts: usize,
    /// So many were.
    pub warming: usize,
    /// Median of [`first_half_over_second`] of those.
    pub ratio: f64,
}

/// Whether most of these starts were judged while they were warming up.
pub fn cold<'a>(starts: impl IntoIterator<Item = &'a TrialRecord>) -> Option<Cold> {
    let starts = starts.into_iter().map(first_half_over_second);
    let starts: Vec<Option<f64>> = starts.collect();
    let warming = starts.iter().flatten().filter(|ratio| **ratio > WARMING);
    let warming: Vec<f64> = warming.copied().collect();
    (2 * warming.len() > starts.len()).then_some(Cold {
        starts: starts.len(),
        warming: warming.len(),
        ratio: median(&warming)?,
    })
}

impl Cold {
    /// `In 18 of 20 starts a request took 1.6 times as much CPU ...`.
    pub fn sentence(&self) -> String {
        format!(
            "In {} of {} starts a request took {:.1} times as much CPU in the first half of the measuring as in the second: this answers for a JVM that is still warming up, as after a deployment; for one that is warm, measure later: --warm-up 30s",
            self.warming, self.starts, self.ratio
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::trial;
    use crate::record::{PhaseSpan, Purpose, Verdict};

    /// Ten seconds of load, CPU of each so many milliseconds.
    fn start(cpu: impl Fn(usize) -> u64) -> TrialRecord {
        let mut record = trial("t", Purpose::Prove, 324, Verdict::Pass);
        for (second, evidence) in record.evidence.seconds.iter_mut().enumerate() {
            evidence.cpu = Some(Duration::from_millis(cpu(second)));
        }
        record
    }

    #[test]
    fn most_starts_must_be_warming_before_it_is_said() {
        let warm = start(|_| 300);
        let warming = start(|second| 800 - 60 * second as u64);
        assert!(!is_warming(&warm) && is_warming(&warming));
        assert_eq!(cold([&warm, &warming]), None);
        insta::assert_snapshot!(
            cold([&warm, &warming, &warming]).unwrap().sentence(),
            @"In 2 of 3 starts a request took 1.8 times as much CPU in the first half of the measuring as in the second: this answers for a JVM that is still warming up, as after a deployment; for one that is warm, measure later: --warm-up 30s"
        );
        assert_eq!(cold([]), None);
    }

    #[test]
    fn only_the_measure_phase_counts() {
        let mut record = start(|second| if second < 4 { 900 } else { 300 });
        assert!(is_warming(&record));
        record.evidence.phases = vec![PhaseSpan {
            phase: Phase::Measure,
            start: 4_000_000_000,
            end: 10_000_000_000,
        }];
        assert!(!is_warming(&record));
        for second in &mut record.evidence.seconds {
            second.cpu = None;
        }
        assert_eq!(first_half_over_second(&record), None);
    }
}
