//! A window of a log, such as the measured part of a trial.
//!
//! Owns the sums over it, independent of how much of a log is stored, and which entries are stored
//! when there are too many: those of the window first.

use std::time::Duration;

use super::event::LogTime;
use super::log::GcPause;
use super::tally::DurationTally;

/// The tallies of a window on CLOCK_MONOTONIC. An entry belongs to it when it ends in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWindow {
    /// First nanosecond, and the first after the end.
    range: std::ops::Range<u64>,
    pub stw: DurationTally,
    pub cpu: Duration,
    pub unplaced: u64,
}

impl LogWindow {
    pub(super) fn new(from: u64, to: u64) -> Self {
        Self {
            range: from..to,
            stw: DurationTally::default(),
            cpu: Duration::ZERO,
            unplaced: 0,
        }
    }

    pub(super) fn has_end(&self, end: LogTime) -> bool {
        end.monotonic_ns
            .is_some_and(|end| self.range.contains(&end))
    }

    pub(super) fn add_if_inside(&mut self, pause: &GcPause) -> bool {
        self.unplaced += u64::from(pause.end.monotonic_ns.is_none());
        let is_inside = self.has_end(pause.end);
        if is_inside {
            self.stw.add_duration(pause.duration);
            self.cpu += pause.cpu.map(|cpu| cpu.total_cpu()).unwrap_or_default();
        }
        is_inside
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedEntries {
    pub pauses: u64,
    pub safepoints: u64,
    pub stalls: u64,
}

/// A list that takes the first entries of the window, and others while there is room.
#[derive(Debug)]
pub(super) struct BoundedEntries<T> {
    limit: usize,
    seen: u64,
    inside: Vec<(u64, T)>,
    outside: Vec<(u64, T)>,
    cut: u64,
}

impl<T> BoundedEntries<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            seen: 0,
            inside: Vec::new(),
            outside: Vec::new(),
            cut: 0,
        }
    }

    pub(super) fn add_entry(&mut self, entry: T, is_inside: bool) {
        let list = if is_inside {
            &mut self.inside
        } else {
            &mut self.outside
        };
        if list.len() < self.limit {
            list.push((self.seen, entry));
        } else {
            self.cut += u64::from(is_inside);
        }
        self.seen += 1;
    }

    pub(super) fn into_entries(self) -> (Vec<T>, u64) {
        let room = self.limit - self.inside.len();
        let mut all = self.inside;
        all.extend(self.outside.into_iter().take(room));
        all.sort_unstable_by_key(|(number, _)| *number);
        (all.into_iter().map(|(_, entry)| entry).collect(), self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::super::GcLogBuilder;
    use super::*;

    /// At second n a pause of n ms with 10 ms of CPU ends, a safepoint and a stall too.
    fn log() -> String {
        let second = |n: u64| {
            format!(
                "[{n}000000000ns][info][gc] GC({n}) Pause Young (Normal) 9M->1M(16M) {n}.000ms\n\
                 [{n}000000000ns][info][gc,cpu] GC({n}) User=0.01s Sys=0.00s Real=0.00s\n\
                 [{n}000000000ns][info][safepoint] Safepoint \"X\", Time since last: 5 ns, Reaching safepoint: 700 ns, At safepoint: 300 ns, Total: 1000 ns\n\
                 [{n}000000000ns][info][gc] Allocation Stall (main) 2.000ms\n"
            )
        };
        (1..=10).map(second).collect()
    }

    fn read(text: &str, keep: usize, window: Option<(u64, u64)>) -> super::super::GcLog {
        let mut builder = GcLogBuilder::new(keep).with_window(window);
        builder.read(text.as_bytes());
        builder.finish_log()
    }

    fn seconds<'a>(ends: impl Iterator<Item = &'a LogTime>) -> Vec<u64> {
        let seconds = ends.filter_map(|end| Some(end.monotonic_ns? / 1_000_000_000));
        seconds.collect()
    }

    #[test]
    fn a_window_is_added_up_whatever_is_kept() {
        for keep in [0, 2, 100] {
            let log = read(&log(), keep, Some((6_000_000_000, 9_000_000_000)));
            let window = log.window.expect("it was asked for");
            assert_eq!((window.stw.count, window.unplaced), (3, 0), "{keep}");
            assert_eq!(window.stw.total, Duration::from_millis(6 + 7 + 8));
            assert_eq!(window.stw.max, Duration::from_millis(8));
            assert_eq!(window.cpu, Duration::from_millis(30));
        }
    }

    #[test]
    fn the_window_is_kept_first_and_what_it_lacks_is_counted() {
        let window = Some((6_000_000_000, 9_000_000_000));
        let all = read(&log(), 5, window);
        let kept = [1, 2, 6, 7, 8];
        assert_eq!(seconds(all.pauses.iter().map(|p| &p.end)), kept);
        assert_eq!(seconds(all.safepoints.iter().map(|s| &s.end)), kept);
        assert_eq!(seconds(all.stalls.iter().map(|s| &s.end)), kept);
        assert_eq!(all.cut, DroppedEntries::default());
        let few = read(&log(), 2, window);
        assert_eq!(seconds(few.pauses.iter().map(|p| &p.end)), [6, 7]);
        let one = DroppedEntries {
            pauses: 1,
            safepoints: 1,
            stalls: 1,
        };
        assert_eq!(few.cut, one);
        let whole = read(&log(), 2, None);
        assert_eq!(seconds(whole.pauses.iter().map(|p| &p.end)), [1, 2]);
        assert_eq!((whole.cut.pauses, whole.window), (8, None));
    }

    #[test]
    fn pauses_without_the_clock_are_not_placed() {
        let text = "[1.000s][info][gc] GC(0) Pause Young (Normal) 9M->1M(16M) 1.000ms\n";
        let log = read(text, 10, Some((0, u64::MAX)));
        let window = log.window.expect("it was asked for");
        assert_eq!((window.stw.count, window.unplaced), (0, 1));
        assert_eq!(log.pauses.len(), 1);
    }
}
