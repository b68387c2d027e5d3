//! When the stops of OpenJ9's log were, more exactly than its time stamps say.
//!
//! A stamp is local wall-clock time cut to milliseconds, read when the line is written, which may
//! be late. But each stop tells in microseconds how long ago the one before it began, by the
//! JVM's own monotonic clock. So the chain of intervals has all distances exactly, and every stamp
//! is one measurement of where the chain lies: never earlier than the truth but for the cut, which
//! takes less than a millisecond. The earliest one is kept. Where the wall clock was set while the
//! log was written, stamps are taken back to how it was before, and those of the time in which it was
//! set say nothing. Facts: omr, `VerboseHandlerOutput.cpp` (`handleExclusiveStart`), `omrtime.c`
//! (CLOCK_MONOTONIC).

use std::time::Duration;

use super::super::event::LogTime;

/// Stamps that disagree by more use another clock: the wall clock was set without being noticed, or
/// a part of the log is missing. Up to this a thread may have waited for CPU before it wrote.
const STEP_US: i64 = 1_000_000;
const CUT_US: i64 = 1_000;

/// Time zones differ by multiples of this.
const ZONE_MS: i64 = 15 * 60 * 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WallClock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC when the JVM was started, ns.
    pub ahead_ns: i64,
    pub set: Vec<ClockAdjustment>,
    /// CLOCK_REALTIME when the JVM was started, ms since 1970: its first stamp is a few minutes later
    /// at most, whatever its time zone.
    pub started_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockAdjustment {
    pub between: (u64, u64),
    pub ahead_ns: i64,
}

impl WallClock {
    /// From, to, both on CLOCK_MONOTONIC, and how far it was ahead then, us: each span in which it was
    /// not set.
    fn spans(&self) -> impl Iterator<Item = (i64, i64, i64)> {
        let us = |ns: u64| i64::try_from(ns / 1_000).unwrap_or(i64::MAX);
        let later = self.set.iter().map(move |s| (us(s.between.1), s.ahead_ns));
        let begins = std::iter::once((0, self.ahead_ns)).chain(later);
        let ends = self.set.iter().map(move |s| us(s.between.0));
        let ends = ends.chain(std::iter::once(i64::MAX));
        begins
            .zip(ends)
            .map(|((from, ahead_ns), to)| (from, to, ahead_ns / 1_000))
    }
}

#[derive(Debug, Default)]
pub(super) struct StopClock {
    wall: Option<WallClock>,
    /// What its time zone adds, ms; known from the first stamp on.
    zone_ms: Option<i64>,
    chain: i64,
    /// Stamp minus chain, the smallest one, us.
    base: Option<i64>,
    agreed: i64,
}

impl StopClock {
    pub fn set_wall(&mut self, wall: WallClock) {
        self.wall = Some(wall);
    }

    pub fn note_stamp(&mut self, stamp_ms: i64) {
        let Some(wall) = self.wall.as_ref().filter(|_| self.zone_ms.is_none()) else {
            return;
        };
        let ahead = stamp_ms.saturating_sub(wall.started_ms);
        let quarters = ahead.saturating_add(ZONE_MS / 2).div_euclid(ZONE_MS);
        self.zone_ms = Some(quarters.saturating_mul(ZONE_MS));
    }

    pub fn place_stop(&mut self, stamp_ms: i64, interval: Duration) -> Option<LocalMoment> {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        self.chain = self.chain.saturating_add(interval);
        let Some(stamp_us) = self.as_at_start(stamp_ms) else {
            return self.begin_of_last();
        };
        let here = stamp_us.saturating_sub(self.chain);
        match self.base {
            Some(base) if here.saturating_sub(base).abs() < STEP_US => {
                self.base = Some(base.min(here));
                self.agreed += 1;
            }
            _ => {
                self.base = Some(here);
                self.agreed = 1;
            }
        }
        self.begin_of_last()
    }

    /// A stamp by the wall clock as it was when the JVM was started, us; `None` if the stamp may be
    /// from before or after a clock change.
    fn as_at_start(&self, stamp_ms: i64) -> Option<i64> {
        let stamp_us = stamp_ms.saturating_mul(1_000);
        let Some(wall) = self.wall.as_ref().filter(|wall| !wall.set.is_empty()) else {
            return Some(stamp_us);
        };
        let unix_us = stamp_us.saturating_sub(self.zone_ms.unwrap_or(0).saturating_mul(1_000));
        let at_start = wall.ahead_ns / 1_000;
        let fits = wall.spans().filter_map(|(from, to, ahead_us)| {
            let at = unix_us.saturating_sub(ahead_us);
            let is_in = from - CUT_US <= at && at <= to;
            is_in.then(|| stamp_us.saturating_sub(ahead_us - at_start))
        });
        let fits: Vec<i64> = fits.collect();
        // A clock that was set back by hours shows much of its time twice: the chain knows which.
        let known = self.base.map(|base| base.saturating_add(self.chain));
        let near = known.or(fits.first().copied())?;
        let mut fits = fits
            .into_iter()
            .filter(|fit| fit.saturating_sub(near).abs() < STEP_US);
        fits.next().filter(|_| fits.next().is_none())
    }

    /// Where the last stop lies by all that is known. The earliest of `n` stamps was cut by
    /// `n / (n + 1)` of a millisecond, on average.
    fn begin_of_last(&self) -> Option<LocalMoment> {
        let cut = CUT_US * self.agreed / (self.agreed + 1);
        let base = self.base?;
        Some(LocalMoment(
            base.saturating_add(self.chain).saturating_add(cut),
        ))
    }

    pub fn of_stamp(&self, stamp_ms: i64) -> Option<LocalMoment> {
        self.as_at_start(stamp_ms).map(LocalMoment)
    }

    pub fn at_stamp(&self, stamp_ms: i64) -> LogTime {
        let moment = self.of_stamp(stamp_ms);
        moment.map_or_else(LogTime::default, |moment| {
            self.log_time(moment, Duration::ZERO)
        })
    }

    pub fn log_time(&self, moment: LocalMoment, later: Duration) -> LogTime {
        let later = i64::try_from(later.as_micros()).unwrap_or(i64::MAX);
        let local_us = moment.0.saturating_add(later);
        let zone_us = self.zone_ms.unwrap_or(0).saturating_mul(1_000);
        let unix_us = local_us.saturating_sub(zone_us);
        let monotonic = self.wall.as_ref().map(|wall| {
            let ns = unix_us.saturating_mul(1_000).saturating_sub(wall.ahead_ns);
            u64::try_from(ns).unwrap_or(0)
        });
        LogTime {
            monotonic_ns: monotonic,
            uptime_ns: None,
            unix_ms: Some(unix_us.div_euclid(1_000)),
        }
    }
}

/// A moment of the JVM's local wall clock, us since 1970 as if it were UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalMoment(i64);

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 1_700_000_000_000;

    fn clock(zone_hours: i64) -> StopClock {
        let mut clock = StopClock::default();
        clock.set_wall(WallClock {
            ahead_ns: DAY_MS * 1_000_000,
            set: Vec::new(),
            started_ms: DAY_MS,
        });
        clock.note_stamp(DAY_MS + 120 + zone_hours * 3_600_000);
        clock
    }

    /// Begins of stops, us after the day's begin, each with its delay in us, as truncated stamps:
    /// returns the largest placement error.
    fn worst(zone_hours: i64, stops: &[(i64, i64)]) -> i64 {
        let mut clock = clock(zone_hours);
        let mut last = 0;
        let errors = stops.iter().map(|(begin, late)| {
            let stamp = DAY_MS + zone_hours * 3_600_000 + (begin + late).div_euclid(1_000);
            let interval = Duration::from_micros(u64::try_from(begin - last).expect("in order"));
            last = *begin;
            let moment = clock.place_stop(stamp, interval).expect("it has a place");
            let at = clock
                .log_time(moment, Duration::ZERO)
                .monotonic_ns
                .expect("placed");
            (i64::try_from(at / 1_000).expect("small") - begin).abs()
        });
        errors.max().expect("there are stops")
    }

    #[test]
    fn stops_lie_within_a_millisecond_in_any_time_zone() {
        let stops: Vec<(i64, i64)> = (0..100).map(|n| (1_000_000 + n * 77_777, 3)).collect();
        for zone in [-11, 0, 5] {
            assert!(worst(zone, &stops) < 1_000, "{zone}");
        }
    }

    #[test]
    fn a_line_that_was_written_late_does_not_move_its_stop() {
        let stops: Vec<(i64, i64)> = (0..50)
            .map(|n| (1_000_000 + n * 77_777, if n % 3 == 1 { 90_000 } else { 3 }))
            .collect();
        assert!(worst(2, &stops) < 1_000);
    }

    #[test]
    fn a_wall_clock_that_was_set_is_followed() {
        let mut clock = clock(0);
        clock.place_stop(DAY_MS + 1_000, Duration::from_secs(1));
        let moment = clock.place_stop(DAY_MS + 3_602_000, Duration::from_secs(1));
        let at = clock.log_time(moment.expect("a place"), Duration::ZERO);
        assert_eq!(at.unix_ms, Some(DAY_MS + 3_602_000));
    }

    fn with_sets(sets: &[(i64, i64)], stops: impl Iterator<Item = i64>) -> i64 {
        let mut clock = clock(0);
        let wall = clock.wall.as_mut().expect("it was told");
        let ns = |us: i64| u64::try_from(us * 1_000).expect("after the begin");
        wall.set = sets
            .iter()
            .map(|&(at, by)| ClockAdjustment {
                between: (ns(at - 40_000), ns(at + 10_000)),
                ahead_ns: DAY_MS * 1_000_000 + by * 1_000,
            })
            .collect();
        let mut last = 0;
        let errors = stops.map(|begin| {
            let by = sets.iter().rfind(|(at, _)| *at <= begin);
            let stamp = DAY_MS + (begin + by.map_or(0, |(_, by)| *by)).div_euclid(1_000);
            let interval = Duration::from_micros(u64::try_from(begin - last).expect("in order"));
            last = begin;
            let moment = clock.place_stop(stamp, interval).expect("it has a place");
            let at = clock.log_time(moment, Duration::ZERO).monotonic_ns;
            (i64::try_from(at.expect("placed") / 1_000).expect("small") - begin).abs()
        });
        errors.max().expect("there are stops")
    }

    #[test]
    fn a_wall_clock_that_is_seen_to_be_set_moves_no_stop() {
        for by in [3_000, 250_000, -3_000, -250_000, 90_000_000, -90_000_000] {
            let sets = [(1_500_000, by), (4_500_000, by / 2)];
            let worst = with_sets(&sets, (1..100).map(|n| n * 77_777));
            assert!(worst < 1_000, "set by {by} us: {worst} us off");
        }
    }

    #[test]
    fn a_clock_that_is_set_all_the_time_places_nothing() {
        let mut clock = clock(0);
        let wall = clock.wall.as_mut().expect("it was told");
        let set = |n: i64| ClockAdjustment {
            between: ((n * 50_000_000) as u64, ((n + 1) * 50_000_000) as u64),
            ahead_ns: DAY_MS * 1_000_000 + n * 7_000_000,
        };
        wall.set = (0..100).map(set).collect();
        assert_eq!(
            clock.place_stop(DAY_MS + 1_025, Duration::from_secs(1)),
            None
        );
        assert_eq!(clock.at_stamp(DAY_MS + 1_025).monotonic_ns, None);
    }
}
