//! Seconds and results of several generators as one.
//!
//! Owns the sums: exact, by count and by bucket, and on the client's clock.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::record::GeneratorEvidence;

use super::messages::{GeneratorMember, GeneratorSecond};
use super::offset::ClockOffset;
use crate::error::LoadError;
use crate::outcome::{LoadSecond, LoadTotals};
use crate::part::{ResultMessage, SecondMessage, TotalsMessage, second_message};
use crate::parts;

pub(super) struct MergedSeconds {
    pending: BTreeMap<u64, (LoadSecond, usize)>,
    /// For each generator the number of reported seconds, and whether it is finished.
    told: Vec<(u64, bool)>,
}

impl MergedSeconds {
    pub(super) fn for_generators(generators: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            told: vec![(0, false); generators],
        }
    }

    pub(super) fn add_generator_second(&mut self, generator: usize, of: &GeneratorSecond) {
        let (second, count) = self.pending.entry(of.index).or_insert_with(|| {
            let second = LoadSecond {
                index: of.index,
                at_ns: of.at_ns,
                length: Duration::ZERO,
                is_warmup: of.is_warmup,
                totals: LoadTotals::default(),
                phases: None,
            };
            (second, 0)
        });
        second.totals.add_outcomes(&of.totals.totals);
        second.at_ns = second.at_ns.max(of.at_ns);
        second.length = second.length.max(of.totals.duration);
        *count += 1;
        self.told[generator].0 = of.index.saturating_add(1);
    }

    pub(super) fn end_generator(&mut self, generator: usize) {
        self.told[generator].1 = true;
    }

    pub(super) fn next(&mut self) -> Option<SecondMessage> {
        let entry = self.pending.first_entry()?;
        let ended_before = |(told, is_over): &&(u64, bool)| *is_over && told <= entry.key();
        let ended = self.told.iter().filter(ended_before).count();
        let is_complete = entry.get().1 + ended == self.told.len();
        is_complete.then(|| second_message(&entry.remove().0))
    }
}

pub(super) struct FinishedPart<'a> {
    pub(super) member: &'a GeneratorMember,
    pub(super) offset: ClockOffset,
    pub(super) drift_ns: i64,
    pub(super) result: ResultMessage,
}

pub(super) fn merge_results(parts: Vec<FinishedPart<'_>>) -> Result<ResultMessage, LoadError> {
    let sum = parts::sum_results(parts.iter().map(|part| &part.result))?;
    let of = |moment: fn(&ResultMessage) -> u64| {
        let here = |part: &FinishedPart<'_>| part.offset.to_local_ns(moment(&part.result));
        parts.iter().map(here).collect::<Vec<_>>()
    };
    let starts = of(|result| result.start_ns).into_iter().min();
    let ends = of(|result| result.end_ns).into_iter().max();
    let longest = |of: fn(&ResultMessage) -> Option<Duration>| {
        parts.iter().filter_map(|part| of(&part.result)).max()
    };
    let measured = longest(|result| Some(result.measure.duration)).unwrap_or_default();
    let warmed = longest(|result| Some(result.warmup.as_ref()?.duration));
    Ok(ResultMessage {
        start_ns: starts.unwrap_or_default(),
        end_ns: ends.unwrap_or_default(),
        measure: TotalsMessage::new(&sum.measure, measured),
        warmup: warmed.map(|duration| TotalsMessage::new(&sum.warmup, duration)),
        health: sum.health,
        stopped: parts.iter().any(|part| part.result.stopped),
        generators: parts.iter().map(generator_evidence).collect(),
        users: parts.into_iter().flat_map(|p| p.result.users).collect(),
    })
}

fn generator_evidence(part: &FinishedPart<'_>) -> GeneratorEvidence {
    let health = &part.result.health;
    GeneratorEvidence {
        name: part.member.name.clone(),
        node: part.member.node.clone(),
        scheduled: part.result.measure.totals.scheduled,
        offset_ns: part.offset.ahead,
        offset_error: Duration::from_nanos(part.offset.error),
        drift_ns: part.drift_ns,
        send_lag_p99: health.send_lag_p99,
        cpu: health.cpu,
        saturated: health.saturated.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds as (generator, index), and ends as (generator, none); returns the merged seconds,
    /// with their numbers of answers.
    fn gather(order: &[(usize, Option<u64>)]) -> Vec<(u64, u64)> {
        let mut seconds = MergedSeconds::for_generators(2);
        let mut out = Vec::new();
        for (generator, index) in order {
            let totals = LoadTotals {
                ok: 1,
                ..LoadTotals::default()
            };
            match index {
                None => seconds.end_generator(*generator),
                Some(index) => {
                    let told = GeneratorSecond {
                        index: *index,
                        at_ns: index + 1,
                        is_warmup: false,
                        totals: Box::new(TotalsMessage::new(&totals, Duration::from_secs(1))),
                    };
                    seconds.add_generator_second(*generator, &told);
                }
            }
            while let Some(second) = seconds.next() {
                out.push((second.at_ns, second.ok));
            }
        }
        out
    }

    #[test]
    fn a_second_is_given_out_once_all_have_told_it_or_ended_before_it() {
        let (one, two) = (|n| (0, Some(n)), |n| (1, Some(n)));
        let order = [one(0), one(1), (0, None), two(0), two(1), two(2), (1, None)];
        assert_eq!(gather(&order), [(1, 2), (2, 2), (3, 1)]);
        assert_eq!(gather(&[(0, None), two(0), (1, None)]), [(1, 1)]);
    }
}
