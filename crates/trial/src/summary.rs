//! The cgroup of one trial over time: from rows of samples to seconds, peaks and the measure
//! phase's counters.
//!
//! Owns the arithmetic, in one pass over the rows: an hour of rows does not fit into memory. The
//! value of a counter at a moment is its last sample before it, and samples are at most 100 ms
//! apart: a difference is off by 100 ms of growth at most.

use std::collections::BTreeMap;
use std::ops::Sub;

use loadline_analysis::record::{CgroupEvidence, SecondEvidence};
use loadline_cgroup::MemorySample;

use crate::samples::SampleRow;

const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy)]
pub struct SummaryTimes<'a> {
    pub start: u64,
    pub end: u64,
    pub load_ends: &'a [u64],
    pub measure: Option<(u64, u64)>,
    /// Up to here the peaks and counters over everything reach, kills apart: what comes of lowering a
    /// limit on purpose is not the application's.
    pub judged_until: u64,
}

/// Peaks over everything, counters over the life of the group and over the measure phase; and one
/// entry a second from start to end.
pub fn summarize_rows(
    rows: impl Iterator<Item = SampleRow>,
    times: SummaryTimes<'_>,
) -> (CgroupEvidence, Vec<SecondEvidence>) {
    let cuts = cuts(times);
    let moments = cuts.iter().copied().chain(times.measure.map(|m| m.0));
    let moments = moments.chain(times.measure.map(|m| m.1));
    let mut moments: BTreeMap<u64, Option<SampleRow>> = moments.map(|at| (at, None)).collect();
    let mut open = moments.iter_mut().peekable();
    let mut all = CgroupEvidence::default();
    let mut last: Option<SampleRow> = None;
    for row in rows {
        while let Some((_, at)) = open.next_if(|(moment, _)| **moment < row.at_ns) {
            at.clone_from(&last);
        }
        add_kills(&mut all, &row);
        if row.at_ns <= times.judged_until {
            add_row(&mut all, &row);
        }
        // Memory is read less often than the CPU: a row has the latest there is.
        let memory = row.memory.or(last.and_then(|last| last.memory));
        last = Some(SampleRow { memory, ..row });
    }
    open.for_each(|(_, at)| at.clone_from(&last));
    let at = |moment: u64| moments.get(&moment).and_then(Option::as_ref);
    if let Some((begin, end)) = times.measure {
        let (begin, end) = (at(begin), at(end));
        all.measure_cpu = growth_between(begin, end, |row| row.cpu);
        all.measure_nr_periods = growth_between(begin, end, |row| row.nr_periods);
        all.measure_nr_throttled = growth_between(begin, end, |row| row.nr_throttled);
        all.measure_throttled = growth_between(begin, end, |row| row.throttled);
    }
    let seconds = cuts
        .windows(2)
        .map(|pair| second_between(pair[1], at(pair[0]), at(pair[1])));
    (all, seconds.collect())
}

fn add_row(all: &mut CgroupEvidence, row: &SampleRow) {
    all.cpu = all.cpu.max(row.cpu);
    let Some(memory) = &row.memory else { return };
    all.peak_memory = all.peak_memory.max(memory.peak.max(memory.usage));
    all.peak_working_set = all.peak_working_set.max(memory.working_set());
    all.peak_anon = all.peak_anon.max(memory.anon);
    all.peak_anon_huge = all.peak_anon_huge.max(memory.anon_huge);
    all.file_refaults = all.file_refaults.max(memory.refault_file);
    all.major_faults = all.major_faults.max(memory.pgmajfault);
}

fn add_kills(all: &mut CgroupEvidence, row: &SampleRow) {
    let kills = row.memory.and_then(|memory| memory.oom_kill);
    all.oom_kills = all.oom_kills.max(kills);
}

/// Where the seconds begin and end, from `start` to the last sample. Where the generator told its own
/// seconds, the cuts are theirs, so that the trial can put the two together.
fn cuts(times: SummaryTimes<'_>) -> Vec<u64> {
    let mut cuts = vec![times.start];
    let mut begin = times.start;
    let mut load_ends = times.load_ends.iter().copied().peekable();
    while begin < times.end {
        // A second of the generator once it has begun; the 50 ms bridge rounding of its ends.
        let told = load_ends.next_if(|at| *at < begin + SECOND + SECOND / 20);
        let until_load = load_ends
            .peek()
            .map_or(u64::MAX, |at| at.saturating_sub(SECOND));
        let cut = told.unwrap_or((begin + SECOND).min(times.end).min(until_load));
        if cut > begin {
            cuts.push(cut);
            begin = cut;
        }
    }
    cuts
}

fn second_between(
    at_ns: u64,
    first: Option<&SampleRow>,
    last: Option<&SampleRow>,
) -> SecondEvidence {
    let memory = last.and_then(|row| row.memory);
    SecondEvidence {
        at_ns,
        cpu: growth_between(first, last, |row| row.cpu),
        nr_throttled: growth_between(first, last, |row| row.nr_throttled),
        throttled: growth_between(first, last, |row| row.throttled),
        memory: memory.and_then(|m| m.usage),
        working_set: memory.as_ref().and_then(MemorySample::working_set),
        anon: memory.and_then(|m| m.anon),
        ..SecondEvidence::default()
    }
}

fn growth_between<T: Copy + Ord + Sub<Output = T>>(
    begin: Option<&SampleRow>,
    end: Option<&SampleRow>,
    get: fn(&SampleRow) -> Option<T>,
) -> Option<T> {
    let (begin, end) = (get(begin?)?, get(end?)?);
    Some(end.max(begin) - begin)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_sizing::Bytes;

    use super::*;

    /// Half a CPU, growing memory, one throttled period a second; memory in every second row.
    fn rows(to_ms: u64) -> impl Iterator<Item = SampleRow> {
        (0..=to_ms).step_by(100).map(|ms| SampleRow {
            at_ns: ms * 1_000_000,
            cpu: Some(Duration::from_millis(ms / 2)),
            per_cpu_ns: Vec::new(),
            nr_periods: Some(ms / 100),
            nr_throttled: Some(ms / 1000),
            throttled: Some(Duration::from_millis(ms / 10)),
            memory: ms.is_multiple_of(200).then(|| MemorySample {
                usage: Some(Bytes::from_mib(ms / 100)),
                inactive_file: Some(Bytes::from_mib(1)),
                oom_kill: Some(0),
                ..MemorySample::default()
            }),
        })
    }

    fn times<'a>(
        to_ms: u64,
        load_ends: &'a [u64],
        measure: Option<(u64, u64)>,
    ) -> SummaryTimes<'a> {
        SummaryTimes {
            start: 0,
            end: to_ms * 1_000_000,
            load_ends,
            measure,
            judged_until: u64::MAX,
        }
    }

    #[test]
    fn peaks_are_over_all_and_counters_over_the_measure_phase() {
        let measure = Some((4_050_000_000, 8_020_000_000));
        let (all, _) = summarize_rows(rows(10_000), times(10_000, &[], measure));
        assert_eq!(all.peak_memory, Some(Bytes::from_mib(100)));
        assert_eq!(all.peak_working_set, Some(Bytes::from_mib(99)));
        assert_eq!(all.cpu, Some(Duration::from_secs(5)));
        assert_eq!(all.measure_cpu, Some(Duration::from_secs(2)));
        assert_eq!(all.measure_nr_periods, Some(40));
        assert_eq!(all.measure_nr_throttled, Some(4));
        assert_eq!(all.oom_kills, Some(0));
        assert_eq!(all.file_refaults, None);
    }

    #[test]
    fn what_is_studied_behind_the_measure_phase_raises_no_peak() {
        let times = SummaryTimes {
            judged_until: 8_020_000_000,
            ..times(10_000, &[], Some((4_050_000_000, 8_020_000_000)))
        };
        let (all, seconds) = summarize_rows(rows(10_000), times);
        assert_eq!(all.peak_memory, Some(Bytes::from_mib(80)));
        assert_eq!(all.measure_cpu, Some(Duration::from_secs(2)));
        assert_eq!((all.oom_kills, seconds.len()), (Some(0), 10));
    }

    #[test]
    fn without_samples_or_a_measure_phase_nothing_is_claimed() {
        let (none, seconds) = summarize_rows(std::iter::empty(), times(0, &[], Some((1, 2))));
        assert_eq!((none, seconds.len()), (CgroupEvidence::default(), 0));
        let (some, _) = summarize_rows(rows(1000), times(1000, &[], None));
        assert_eq!(some.measure_cpu, None);
        assert!(some.cpu.is_some());
    }

    #[test]
    fn the_generators_seconds_are_kept_and_the_rest_is_cut_evenly() {
        let load_ends = [3_500_000_000, 4_500_000_000];
        let (_, seconds) = summarize_rows(rows(6000), times(6000, &load_ends, None));
        let ends: Vec<u64> = seconds.iter().map(|s| s.at_ns / 1_000_000).collect();
        assert_eq!(ends, [1000, 2000, 2500, 3500, 4500, 5500, 6000]);
        let cpu: Duration = seconds.iter().filter_map(|s| s.cpu).sum();
        assert_eq!(cpu, Duration::from_secs(3));
        assert_eq!(seconds[0].working_set, Some(Bytes::from_mib(9)));
        // The last row has no memory value.
        assert_eq!(seconds[2].memory, Some(Bytes::from_mib(24)));
    }

    proptest::proptest! {
        #[test]
        fn any_seconds_of_the_generator_give_rising_cuts(
            start in 0..5_000_000_000u64,
            load_ends in proptest::collection::vec(0..9_000_000_000u64, 0..12),
        ) {
            let times = SummaryTimes { start, ..times(6000, &load_ends, None) };
            let (_, seconds) = summarize_rows(rows(6000), times);
            proptest::prop_assert!(seconds.iter().all(|s| s.at_ns > start));
            proptest::prop_assert!(seconds.is_sorted_by_key(|s| s.at_ns));
        }
    }
}
