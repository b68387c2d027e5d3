//! Whether the application was still warming up while it was judged, and how much longer to wait.
//!
//! Owns the comparison of the two halves of the measure phase, by the CPU time and by the median
//! latency of a request; which JVM an answer is for; and the lengths of warm-up that are tried. It is
//! for phases of any length; of thirty seconds and more [`crate::steady`] says when the warm-up ended.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::median;
use crate::record::{SecondEvidence, TrialPhase, TrialRecord};
use crate::text;

/// What a request takes in the first half of the load, as a multiple of that in the second, from
/// which the application was still warming up.
const WARMING: f64 = 1.3;

/// Medians that differ by less differ by the machine's own timers and wake-ups.
const GRAIN: Duration = Duration::from_millis(1);
pub const FEW: usize = 3;
const FIRST: Duration = Duration::from_secs(5);

/// The longest warm-up that is tried: a trial of a search may take minutes, not hours.
pub const LONGEST: Duration = Duration::from_secs(120);

/// Which JVM an answer is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JvmQuestion {
    /// One that has just started, judged after the warm-up that was asked for: a deployment.
    #[default]
    Start,
    /// One that is warm: the warm-up is lengthened while requests still get cheaper.
    Steady,
}

impl JvmQuestion {
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "start" => Some(Self::Start),
            "steady" => Some(Self::Steady),
            _ => None,
        }
    }
}

/// The warm-up to try after a shorter one: twice as long, [`LONGEST`] at most; `None` if no longer
/// one is tried.
pub fn longer_warm_up(warm_up: Duration) -> Option<Duration> {
    let next = (warm_up * 2).clamp(FIRST, LONGEST);
    (next > warm_up).then_some(next)
}

pub(crate) fn measured_seconds(record: &TrialRecord) -> Vec<&SecondEvidence> {
    let span = record.evidence.span_of(TrialPhase::Measure);
    let within = |s: &&SecondEvidence| {
        span.is_none_or(|p| p.start < s.at_ns && s.at_ns <= p.end) && s.offered.is_some()
    };
    record.evidence.seconds.iter().filter(within).collect()
}

/// What of a request falls while it is judged: how many times as much it takes in the first half of
/// the measure phase as in the second.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FallingCost {
    Cpu(f64),
    /// Its latency, the median of the medians of the seconds.
    Latency(f64),
}

/// CPU seconds for each of these requests of a half.
fn cpu_of_one(half: &[&SecondEvidence], requests: u64) -> Option<f64> {
    let cpu: Duration = half.iter().filter_map(|s| s.cpu).sum();
    (!cpu.is_zero() && requests > 0).then(|| cpu.as_secs_f64() / requests as f64)
}

/// Requests that wait at the end of the first half have taken CPU there and are answered in the
/// second, so a CPU limit that is all used would look like a warm-up: those count as well.
fn ratio_of_cpu(first: &[&SecondEvidence], second: &[&SecondEvidence]) -> Option<f64> {
    let answered = |half: &[&SecondEvidence]| half.iter().filter_map(|s| s.achieved).sum::<u64>();
    let offered: u64 = first.iter().filter_map(|s| s.offered).sum();
    let begun = offered.max(answered(first));
    Some(cpu_of_one(first, begun)? / cpu_of_one(second, answered(second))?)
}

fn latency_of_one(half: &[&SecondEvidence]) -> Option<f64> {
    let seconds = half.iter().filter_map(|s| Some(s.p50?.as_secs_f64()));
    median(&seconds.collect::<Vec<_>>()).filter(|latency| *latency > 0.0)
}

fn find_falling_cost(record: &TrialRecord) -> Option<FallingCost> {
    let seconds = measured_seconds(record);
    let (first, second) = seconds.split_at(seconds.len() / 2);
    let cpu = ratio_of_cpu(first, second).filter(|ratio| *ratio > WARMING);
    let latency = || {
        let (before, after) = (latency_of_one(first)?, latency_of_one(second)?);
        let is_long = before - after > GRAIN.as_secs_f64();
        (is_long && before / after > WARMING).then_some(before / after)
    };
    cpu.map(FallingCost::Cpu)
        .or_else(|| latency().map(FallingCost::Latency))
}

pub fn is_warming(record: &TrialRecord) -> bool {
    find_falling_cost(record).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColdStarts {
    pub starts: usize,
    pub warming: usize,
    falls: FallingCost,
}

pub fn find_cold_starts<'a>(
    starts: impl IntoIterator<Item = &'a TrialRecord>,
) -> Option<ColdStarts> {
    let starts: Vec<Option<FallingCost>> = starts.into_iter().map(find_falling_cost).collect();
    let (mut by_cpu, mut by_latency) = (Vec::new(), Vec::new());
    for cost in starts.iter().flatten() {
        match cost {
            FallingCost::Cpu(ratio) => by_cpu.push(*ratio),
            FallingCost::Latency(ratio) => by_latency.push(*ratio),
        }
    }
    let warming = by_cpu.len() + by_latency.len();
    let falls = if by_cpu.len() >= by_latency.len() {
        FallingCost::Cpu(median(&by_cpu)?)
    } else {
        FallingCost::Latency(median(&by_latency)?)
    };
    (2 * warming > starts.len()).then_some(ColdStarts {
        starts: starts.len(),
        warming,
        falls,
    })
}

impl ColdStarts {
    /// `In 18 of 20 starts a request took 1.6 times as much CPU ...`.
    fn cold_sentence(&self) -> String {
        let took = match self.falls {
            FallingCost::Cpu(ratio) => format!("{ratio:.1} times as much CPU"),
            FallingCost::Latency(ratio) => format!("{ratio:.1} times as long"),
        };
        let (warming, starts) = (self.warming, self.starts);
        format!(
            "In {warming} of {starts} starts a request took {took} in the first half of the measuring as in the second"
        )
    }
}

/// Which JVM an answer is for, by the starts of its proof; `longer` is the warm-up that the search
/// came to, where the one asked for was too short.
pub fn answers_for<'a>(
    question: JvmQuestion,
    starts: impl IntoIterator<Item = &'a TrialRecord>,
    longer: Option<Duration>,
) -> String {
    let cold = find_cold_starts(starts).map(|cold| cold.cold_sentence());
    let warmed = longer.map_or("the warm-up asked for".to_owned(), |longer| {
        format!("a warm-up lengthened to {}", text::short_duration(longer))
    });
    match (question, cold) {
        (JvmQuestion::Start, None) => "This answers for fresh starts, judged right after the warm-up asked for, as after a deployment (--question start)".to_owned(),
        (JvmQuestion::Start, Some(cold)) => format!(
            "{cold}: this answers for an application that is still warming up, as after a deployment; for one that is warm: --question steady"
        ),
        (JvmQuestion::Steady, None) => format!(
            "This answers for an application that is warm (--question steady): after {warmed} most starts no longer got clearly faster while they were judged"
        ),
        (JvmQuestion::Steady, Some(cold)) => format!(
            "{cold}, after {warmed}: this answers for an application that is still warming up, the longest warm-up that is tried is {}",
            text::short_duration(LONGEST)
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::trial_record;
    use crate::record::{PhaseSpan, TrialPurpose, TrialVerdict};

    /// Ten seconds of load; `cpu` gives the CPU milliseconds of each.
    pub(crate) fn start(cpu: impl Fn(usize) -> u64) -> TrialRecord {
        let mut record = trial_record("t", TrialPurpose::Prove, 324, TrialVerdict::Pass);
        for (second, evidence) in record.evidence.seconds.iter_mut().enumerate() {
            evidence.cpu = Some(Duration::from_millis(cpu(second)));
        }
        record
    }

    /// The same with these medians of latency, microseconds, and steady CPU.
    fn answering(p50: impl Fn(usize) -> u64) -> TrialRecord {
        let mut record = start(|_| 300);
        for (second, evidence) in record.evidence.seconds.iter_mut().enumerate() {
            evidence.p50 = Some(Duration::from_micros(p50(second)));
        }
        record
    }

    #[test]
    fn most_starts_must_be_warming_before_it_is_said() {
        let warm = start(|_| 300);
        let warming = start(|second| 800 - 60 * second as u64);
        assert!(!is_warming(&warm) && is_warming(&warming));
        assert_eq!(find_cold_starts([&warm, &warming]), None);
        assert_eq!(find_cold_starts([]), None);
    }

    #[test]
    fn an_answer_says_which_jvm_it_is_for() {
        let (warm, warming) = (start(|_| 300), start(|second| 800 - 60 * second as u64));
        let slow = answering(|second| 9_000 - 700 * second as u64);
        let longer = Some(Duration::from_secs(20));
        let lines = [
            answers_for(JvmQuestion::Start, [&warm, &warm], None),
            answers_for(JvmQuestion::Start, [&warm, &warming, &warming], None),
            answers_for(JvmQuestion::Steady, [&warm, &warm], None),
            answers_for(JvmQuestion::Steady, [&warm, &warm], longer),
            answers_for(JvmQuestion::Steady, [&slow, &slow], Some(LONGEST)),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        This answers for fresh starts, judged right after the warm-up asked for, as after a deployment (--question start)
        In 2 of 3 starts a request took 1.8 times as much CPU in the first half of the measuring as in the second: this answers for an application that is still warming up, as after a deployment; for one that is warm: --question steady
        This answers for an application that is warm (--question steady): after the warm-up asked for most starts no longer got clearly faster while they were judged
        This answers for an application that is warm (--question steady): after a warm-up lengthened to 20s most starts no longer got clearly faster while they were judged
        In 2 of 2 starts a request took 1.9 times as long in the first half of the measuring as in the second, after a warm-up lengthened to 120s: this answers for an application that is still warming up, the longest warm-up that is tried is 120s
        ");
    }

    #[test]
    fn latencies_that_fall_count_where_timers_cannot_explain_it() {
        assert!(is_warming(&answering(|second| 9_000 - 700 * second as u64)));
        assert!(!is_warming(&answering(|second| 900 - 70 * second as u64)));
        assert!(!is_warming(&answering(|_| 9_000)));
    }

    #[test]
    fn a_queue_at_a_limit_that_is_all_used_is_no_warm_up() {
        let mut record = start(|_| 200);
        for (second, evidence) in record.evidence.seconds.iter_mut().enumerate() {
            evidence.offered = Some(50);
            // The first half's last requests are answered in the second.
            evidence.achieved = Some(if second < 5 { 20 } else { 33 });
        }
        assert!(!is_warming(&record));
    }

    #[test]
    fn a_warm_up_doubles_up_to_the_longest() {
        let mut all = vec![Duration::ZERO];
        while let Some(next) = all.last().copied().and_then(longer_warm_up) {
            all.push(next);
        }
        let all: Vec<u64> = all.iter().map(Duration::as_secs).collect();
        assert_eq!(all, [0, 5, 10, 20, 40, 80, 120]);
        assert_eq!(longer_warm_up(Duration::from_secs(300)), None);
    }

    #[test]
    fn only_the_measure_phase_counts() {
        let mut record = start(|second| if second < 4 { 900 } else { 300 });
        assert!(is_warming(&record));
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 4_000_000_000,
            end: 10_000_000_000,
        }];
        assert!(!is_warming(&record));
        for second in &mut record.evidence.seconds {
            second.cpu = None;
        }
        assert!(!is_warming(&record), "no data");
    }
}
