//! Whether two trials at once tell what one alone tells: the A/A comparison before a search with
//! several slots.
//!
//! Owns the figures that are compared, the bound, and when enough was seen. One configuration runs
//! alone and beside itself; what differs is what slots do to each other (caches, memory bandwidth,
//! clock speed). Latencies are not compared: their tails differ from start to start by far more than
//! the bound. Which trials these are is [`crate::search::abreast`]'s.

use std::fmt;

use crate::interval::ConfidenceInterval;
use crate::record::{TrialPhase, TrialRecord};
use crate::shift;
use crate::text;

/// Difference that is tolerated, as a share.
pub const TOLERATED: f64 = 0.02;

/// After so many rounds, of one trial alone and two at once, the figures are looked at; after the last
/// it is over. Few looks, because each may find by chance what is not there.
pub const LOOKS: [u32; 3] = [6, 10, 16];

/// Standard errors between the difference seen and the bound, for "no more" and for "more". The error
/// rates: tests below.
const SURE: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbreastFigure {
    /// From exec to the first good response.
    Start,
    /// CPU time of a good response in the measure phase.
    CpuPerRequest,
}

impl fmt::Display for AbreastFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "the start time",
            Self::CpuPerRequest => "CPU time a request",
        })
    }
}

/// The figures of one trial, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AbreastValues {
    pub start: f64,
    pub cpu_per_request: f64,
}

impl AbreastValues {
    pub fn from_trial(record: &TrialRecord) -> Option<Self> {
        let evidence = &record.evidence;
        let parts = evidence
            .load
            .iter()
            .filter(|l| l.phase == TrialPhase::Measure);
        let good: u64 = parts.map(|l| l.ok).sum();
        let cpu = evidence.cgroup.measure_cpu?.as_secs_f64();
        let start = evidence.start.ready?.as_secs_f64();
        let is_sound = record.verdict.is_evidence() && good > 0 && cpu > 0.0 && start > 0.0;
        is_sound.then(|| Self {
            start,
            cpu_per_request: cpu / good as f64,
        })
    }

    fn figure_value(&self, figure: AbreastFigure) -> f64 {
        match figure {
            AbreastFigure::Start => self.start,
            AbreastFigure::CpuPerRequest => self.cpu_per_request,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AbreastStanding {
    /// No figure differs by more than [`TOLERATED`].
    Alike,
    /// This one does, or may: trials at once over trials alone.
    Unlike {
        figure: AbreastFigure,
        ratio: ConfidenceInterval,
    },
    TooFew,
    Open,
}

impl AbreastStanding {
    /// The answer in a sentence; `None` while it is open.
    pub fn comparison_sentence(&self) -> Option<String> {
        let percent = text::short_percent(TOLERATED);
        match self {
            Self::Open => None,
            Self::Alike => Some(format!(
                "trials at once differ from trials alone by no more than {percent} in {} and in {}",
                AbreastFigure::Start,
                AbreastFigure::CpuPerRequest
            )),
            Self::TooFew => Some(
                "too few trials could be measured to compare trials at once with trials alone"
                    .to_owned(),
            ),
            Self::Unlike { figure, ratio } => Some(format!(
                "{figure} of trials at once was {:.3} ({:.3} to {:.3}) of that of trials alone: a difference of no more than {percent} was not shown",
                ratio.estimate, ratio.low, ratio.high
            )),
        }
    }
}

/// Compares trials alone with trials at once. `rounds` are those that were asked for, whether or not
/// they could be measured.
pub fn compare_rounds(
    rounds: u32,
    alone: &[AbreastValues],
    at_once: &[AbreastValues],
) -> AbreastStanding {
    let is_last = LOOKS.last().is_some_and(|last| rounds >= *last);
    if !is_last && !LOOKS.contains(&rounds) {
        return AbreastStanding::Open;
    }
    let (mut is_alike, mut is_seen) = (true, true);
    for figure in [AbreastFigure::Start, AbreastFigure::CpuPerRequest] {
        let of = |seen: &[AbreastValues]| {
            seen.iter()
                .map(|s| s.figure_value(figure))
                .collect::<Vec<_>>()
        };
        let Some(ratio) = shift::ratio_of_values(&of(alone), &of(at_once), SURE) else {
            is_seen = false;
            continue;
        };
        let (least, most) = (1.0 / (1.0 + TOLERATED), 1.0 + TOLERATED);
        let is_within = ratio.low > least && ratio.high < most;
        let is_beyond = ratio.low > most || ratio.high < least;
        if is_beyond || (is_last && !is_within) {
            return AbreastStanding::Unlike { figure, ratio };
        }
        is_alike &= is_within;
    }
    match (is_seen, is_alike, is_last) {
        (true, true, _) => AbreastStanding::Alike,
        (false, _, true) => AbreastStanding::TooFew,
        _ => AbreastStanding::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    /// Rounds of trials that stray by `spread`, of which those at once take `factor` of the CPU.
    fn decided(seed: u64, spread: f64, factor: f64) -> (AbreastStanding, u32) {
        let mut random = RandomStream::from_seed(16).derive(seed);
        let mut trial = |factor: f64| AbreastValues {
            start: 4.0 * (spread * random.normal()).exp(),
            cpu_per_request: 0.002 * factor * (spread * random.normal()).exp(),
        };
        let (mut alone, mut at_once) = (Vec::new(), Vec::new());
        for round in 1.. {
            alone.push(trial(1.0));
            at_once.extend([trial(factor), trial(factor)]);
            let standing = compare_rounds(round, &alone, &at_once);
            if standing != AbreastStanding::Open {
                return (standing, round);
            }
        }
        unreachable!("the last look decides")
    }

    /// Share of comparisons that allow trials at once, and rounds that they take.
    fn allowed(spread: f64, factor: f64) -> (f64, f64) {
        let runs: Vec<_> = (0..1000)
            .map(|seed| decided(seed, spread, factor))
            .collect();
        let is_alike = runs
            .iter()
            .filter(|(s, _)| *s == AbreastStanding::Alike)
            .count();
        let rounds: u32 = runs.iter().map(|(_, rounds)| rounds).sum();
        (is_alike as f64 / 1000.0, f64::from(rounds) / 1000.0)
    }

    #[test]
    fn trials_at_once_are_allowed_where_they_are_alike_and_hardly_ever_where_they_are_not() {
        for (spread, factor, least, most) in [
            (0.01, 1.0, 0.95, 1.0),
            (0.015, 1.0, 0.85, 1.0),
            (0.04, 1.0, 0.0, 0.2),
            (0.01, 1.02, 0.0, 0.06),
            (0.015, 1.03, 0.0, 0.01),
            (0.04, 1.04, 0.0, 0.01),
            (0.01, 0.96, 0.0, 0.01),
        ] {
            let (share, rounds) = allowed(spread, factor);
            println!("stray {spread}, factor {factor}: allowed {share:.3}, {rounds:.1} rounds");
            assert!(
                (least..=most).contains(&share),
                "{spread} {factor}: {share}"
            );
        }
    }

    #[test]
    fn it_looks_a_few_times_only_and_says_what_it_saw() {
        let seen = AbreastValues {
            start: 4.0,
            cpu_per_request: 0.002,
        };
        let slow = AbreastValues { start: 4.4, ..seen };
        assert_eq!(
            compare_rounds(5, &[seen; 5], &[seen; 10]),
            AbreastStanding::Open
        );
        let alike = compare_rounds(6, &[seen; 6], &[seen; 12]);
        insta::assert_snapshot!(alike.comparison_sentence().unwrap_or_default(), @"trials at once differ from trials alone by no more than 2 % in the start time and in CPU time a request");
        let unlike = compare_rounds(6, &[seen; 6], &[slow; 12]);
        insta::assert_snapshot!(unlike.comparison_sentence().unwrap_or_default(), @"the start time of trials at once was 1.100 (1.088 to 1.112) of that of trials alone: a difference of no more than 2 % was not shown");
        assert_eq!(
            compare_rounds(16, &[seen; 2], &[seen; 2]),
            AbreastStanding::TooFew
        );
        assert_eq!(
            compare_rounds(10, &[seen; 2], &[seen; 2]),
            AbreastStanding::Open
        );
    }
}
