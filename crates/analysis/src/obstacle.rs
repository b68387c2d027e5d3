//! No size is proven although memory is not the cause: starts miss at every size alike.
//!
//! Owns how the trials of a search show that, and the common cause of the missed starts: the pause
//! in the second with the slowest requests ([`crate::explain`]), or the counters. Only causes that
//! the record shows are named; everything else is [`MissCause::Unknown`].

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use loadline_sizing::Bytes;

use crate::attribution::{Attribution, PauseClass};
use crate::explain::Explanation;
use crate::record::{Configuration, SecondEvidence, TrialPurpose, TrialRecord, TrialVerdict};
use crate::warming::{is_warming, measured_seconds};

/// The largest size that misses is at least this many times the smallest: a lower ratio could be
/// the edge.
const SPREAD: f64 = 1.25;
/// A pause explains a second if its slowest request waited at most this many times as long.
const EXPLAINS: u32 = 2;
/// Share of the CPU limit in use from which there was no more.
const FULL: f64 = 0.9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissCause {
    GcPause,
    Throttling,
    WarmingUp,
    Cpu,
    Failure,
    Unknown,
}

impl fmt::Display for MissCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GcPause => "a GC pause",
            Self::Throttling => "CPU throttling",
            Self::WarmingUp => "an application that was still warming up",
            Self::Cpu => "a CPU limit that was all used",
            Self::Failure => "a failure of the application",
            Self::Unknown => "no cause that was measured",
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FlatMisses {
    pub from: Bytes,
    pub to: Bytes,
    pub misses: u64,
    pub starts: u64,
    pub causes: Vec<(MissCause, u64)>,
    pub example: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lever {
    Advice,
    WarmUp,
    Cpu,
}

pub fn same_but_memory<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord>,
    answer: &'a Configuration,
) -> impl Iterator<Item = &'a TrialRecord> {
    let is_own = move |t: &&TrialRecord| {
        let own = Configuration {
            memory: answer.memory,
            label: answer.label.clone(),
            ..t.configuration.clone()
        };
        own == *answer
    };
    trials.into_iter().filter(is_own)
}

/// Whether these trials of one search, which proved no size, miss at every size alike: the largest
/// was refuted although starts pass there, and it is well above the smallest that was confirmed.
pub fn find_flat_misses<'a>(
    trials: impl IntoIterator<Item = &'a TrialRecord>,
) -> Option<FlatMisses> {
    let at = |t: &'a TrialRecord| Some((t.configuration.memory?, t));
    let trials = trials.into_iter().filter(|t| t.verdict.is_evidence());
    let trials: Vec<_> = trials.filter_map(at).collect();
    let is_tested =
        |t: &TrialRecord| matches!(t.purpose, TrialPurpose::Confirm | TrialPurpose::Prove);
    let is_passed = |t: &TrialRecord| is_tested(t) && t.verdict == TrialVerdict::Pass;
    let passed = trials.iter().filter(|(_, t)| is_passed(t));
    let from = passed.map(|(size, _)| *size).min()?;
    let to = trials.iter().map(|(size, _)| *size).max()?;
    let tested = |least: Bytes| trials.iter().filter(move |(size, _)| *size >= least);
    let missed = |t: &TrialRecord| t.verdict != TrialVerdict::Pass;
    let misses_at_top = tested(to).filter(|(_, t)| missed(t)).count();
    let is_mixed = misses_at_top > 0 && misses_at_top < tested(to).count();
    if !is_mixed || (to.as_bytes() as f64) < SPREAD * from.as_bytes() as f64 {
        return None;
    }
    let those = tested(from).map(|(_, t)| *t).filter(|t| missed(t));
    let those: Vec<&TrialRecord> = those.collect();
    let (causes, example) = count_causes(&those)?;
    Some(FlatMisses {
        from,
        to,
        misses: those.len() as u64,
        starts: tested(from).count() as u64,
        causes,
        example,
    })
}

fn count_causes(missed: &[&TrialRecord]) -> Option<(Vec<(MissCause, u64)>, String)> {
    let mut counted: BTreeMap<MissCause, u64> = BTreeMap::new();
    for record in missed {
        *counted.entry(cause(record)).or_default() += 1;
    }
    let mut causes: Vec<(MissCause, u64)> = counted.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (most, _) = causes.first()?;
    let example = missed.iter().find(|record| cause(record) == *most)?;
    Some((causes, example.id.clone()))
}

pub fn cause(record: &TrialRecord) -> MissCause {
    if record.verdict != TrialVerdict::SloMiss {
        return MissCause::Failure;
    }
    let seconds = measured_seconds(record);
    let slowest = seconds.iter().max_by_key(|s| slowest_wait(s));
    let paused = slowest.and_then(|second| pause_cause(record, second));
    paused.unwrap_or_else(|| match (is_warming(record), slowest) {
        (true, _) => MissCause::WarmingUp,
        (false, Some(second)) if is_cpu_full(record, second) => MissCause::Cpu,
        _ => MissCause::Unknown,
    })
}

fn slowest_wait(second: &SecondEvidence) -> Duration {
    second.max.or(second.p99).unwrap_or_default()
}

/// The class of the longest pause in this second, where it is long enough to be the cause. The
/// second is that in which the requests ended: the pause may have begun before.
fn pause_cause(record: &TrialRecord, second: &SecondEvidence) -> Option<MissCause> {
    let waited = slowest_wait(second);
    let before = 1_000_000_000 + waited.as_nanos() as u64;
    let begin = second.at_ns.saturating_sub(before);
    let explanation = Explanation::for_trial(record)?;
    let near = |a: &&Attribution| a.pause.start < second.at_ns && a.pause.end > begin;
    let longest = explanation.pauses.iter().filter(near);
    let longest = longest.max_by_key(|a| a.pause.length_ns())?;
    if Duration::from_nanos(longest.pause.length_ns()) * EXPLAINS < waited {
        return None;
    }
    match longest.dominant() {
        PauseClass::Gc | PauseClass::AllocationStall | PauseClass::SafepointSync => {
            Some(MissCause::GcPause)
        }
        PauseClass::GcThrottled | PauseClass::MutatorThrottled => Some(MissCause::Throttling),
        PauseClass::CpuContention | PauseClass::Other => None,
    }
}

fn is_cpu_full(record: &TrialRecord, second: &SecondEvidence) -> bool {
    let limit = record.configuration.cpu.map(|cpu| cpu.as_f64());
    matches!((limit, second.cpu), (Some(limit), Some(used)) if used.as_secs_f64() > FULL * limit)
}

impl FlatMisses {
    pub fn miss_sentence(&self) -> String {
        format!(
            "from {} to {}, {} of {} starts missed it, and more memory did not lower that",
            self.from, self.to, self.misses, self.starts
        )
    }

    pub fn causes_sentence(&self) -> String {
        let one =
            |(cause, count): &(MissCause, u64)| format!("{cause} ({count} of {})", self.misses);
        let causes: Vec<String> = self.causes.iter().map(one).collect();
        format!("Behind the misses: {}", causes.join(", "))
    }

    /// What can be tried; `None` where a person must look first.
    pub fn lever(&self) -> Option<Lever> {
        match self.causes.first()?.0 {
            MissCause::GcPause | MissCause::Throttling => Some(Lever::Advice),
            MissCause::WarmingUp => Some(Lever::WarmUp),
            MissCause::Cpu => Some(Lever::Cpu),
            MissCause::Failure | MissCause::Unknown => None,
        }
    }

    pub fn lever_hint(&self) -> String {
        let explain = |options: &str| format!("loadline explain {}{options}", self.example);
        match self.lever() {
            Some(Lever::Advice) => format!(
                "To try what would shorten the pauses (collector, heap, GC threads, CPU): {}; `size --try` does it",
                explain(" --try")
            ),
            Some(Lever::WarmUp) => {
                "To measure the application once it is warm, lengthen the warm-up: --warm-up 30s; `size --try` does it"
                    .to_owned()
            }
            Some(Lever::Cpu) => {
                "To give it more CPU: --cpu; `size --try` does it".to_owned()
            }
            None => format!("To see what happened in such a start: {}", explain("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::trial_record;
    use crate::pauses::PauseEvidence;
    use crate::record::{PhaseSpan, TrialPhase};

    const MS: u64 = 1_000_000;

    /// A start that missed; its slowest requests took 90 ms in the fifth second.
    fn missed(id: &str, mib: u64) -> TrialRecord {
        let mut record = trial_record(id, TrialPurpose::Prove, mib, TrialVerdict::SloMiss);
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 10_000 * MS,
        }];
        for second in &mut record.evidence.seconds {
            let slow = if second.at_ns == 5000 * MS { 90 } else { 5 };
            second.max = Some(Duration::from_millis(slow));
            second.cpu = Some(Duration::from_millis(300));
        }
        record
    }

    fn with_pause(mut record: TrialRecord, throttled: bool) -> TrialRecord {
        let (start, end) = (4500 * MS, 4580 * MS);
        record.evidence.pauses = Some(if throttled {
            PauseEvidence {
                throttled_ns: vec![(start, end)],
                ..PauseEvidence::default()
            }
        } else {
            PauseEvidence {
                safepoints_ns: vec![(start, end, 0)],
                ..PauseEvidence::default()
            }
        });
        record
    }

    #[test]
    fn the_cause_is_what_stood_in_the_way_of_the_slowest_requests() {
        assert_eq!(
            cause(&with_pause(missed("t", 324), false)),
            MissCause::GcPause
        );
        assert_eq!(
            cause(&with_pause(missed("t", 324), true)),
            MissCause::Throttling
        );
        assert_eq!(cause(&missed("t", 324)), MissCause::Unknown);
        let mut elsewhere = with_pause(missed("t", 324), false);
        elsewhere.evidence.seconds[4].max = Some(Duration::from_millis(5));
        elsewhere.evidence.seconds[8].max = Some(Duration::from_millis(90));
        assert_eq!(
            cause(&elsewhere),
            MissCause::Unknown,
            "the pause was at another time"
        );
        let mut cold = missed("t", 324);
        for second in &mut cold.evidence.seconds[..5] {
            second.cpu = Some(Duration::from_millis(600));
        }
        assert_eq!(cause(&cold), MissCause::WarmingUp);
        let mut full = missed("t", 324);
        for second in &mut full.evidence.seconds {
            second.cpu = Some(Duration::from_millis(980));
        }
        assert_eq!(cause(&full), MissCause::Cpu);
    }

    #[test]
    fn misses_at_every_size_alike_are_told_with_their_cause_and_a_lever() {
        let passed = |mib| trial_record("p", TrialPurpose::Prove, mib, TrialVerdict::Pass);
        let mut trials = vec![trial_record(
            "s",
            TrialPurpose::Search,
            256,
            TrialVerdict::SloMiss,
        )];
        for mib in [324, 1024] {
            trials.extend((0..8).map(|_| passed(mib)));
            trials.push(with_pause(missed("t1", mib), false));
            trials.push(missed("t2", mib));
        }
        trials.push(with_pause(missed("t3", 364), false));
        let found = find_flat_misses(&trials).unwrap();
        insta::assert_snapshot!(
            format!("{}\n{}\n{}", found.miss_sentence(), found.causes_sentence(), found.lever_hint()),
            @"
        from 324Mi to 1Gi, 5 of 21 starts missed it, and more memory did not lower that
        Behind the misses: a GC pause (3 of 5), no cause that was measured (2 of 5)
        To try what would shorten the pauses (collector, heap, GC threads, CPU): loadline explain t1 --try; `size --try` does it
        "
        );
        let at_the_edge: Vec<_> = trials
            .iter()
            .filter(|t| t.configuration.memory < Some(Bytes::from_mib(512)))
            .cloned()
            .collect();
        assert_eq!(find_flat_misses(&at_the_edge), None, "it may be too small");
        let hopeless = [passed(324), missed("t", 1024), missed("t", 1024)];
        assert_eq!(
            find_flat_misses(&hopeless),
            None,
            "every start at the largest size missed"
        );
    }
}
