//! When the stops of OpenJ9's log were, more exactly than its time stamps say.
//!
//! A stamp is local wall-clock time cut to milliseconds, read when the line is written, which may
//! be late. But each stop tells in microseconds how long ago the one before it began, by the
//! JVM's own monotonic clock. So the chain of intervals has all distances exactly, and every stamp
//! is one measurement of where the chain lies: never earlier than the truth but for the cut, which
//! takes less than a millisecond. The earliest one is kept. Facts: omr, `VerboseHandlerOutput.cpp`
//! (`handleExclusiveStart`), `omrtime.c` (CLOCK_MONOTONIC).

use std::time::Duration;

use super::super::event::At;

/// Stamps that disagree by more than this are of another clock: the wall clock was set, or a part
/// of the log is missing. Less than that a thread may have waited for CPU before it wrote.
const STEP_US: i64 = 1_000_000;

/// Stamps are cut to this.
const CUT_US: i64 = 1_000;

/// Time zones differ by multiples of this.
const ZONE_MS: i64 = 15 * 60 * 1_000;

/// How the wall clock of a log is related to CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub ahead_ns: i64,
    /// CLOCK_REALTIME when the JVM was started, ms since 1970: its first stamp is a few minutes later
    /// at most, whatever its time zone.
    pub started_ms: i64,
}

/// The chain of intervals and where it lies.
#[derive(Debug, Default)]
pub(super) struct Clock {
    wall: Option<WallClock>,
    /// What its time zone adds, ms; known from the first stamp on.
    zone_ms: Option<i64>,
    /// Begin of the last stop on the chain, us.
    chain: i64,
    /// Stamp minus chain, the smallest one, us.
    base: Option<i64>,
    /// Stamps that agreed.
    agreed: i64,
}

impl Clock {
    /// Tells where the wall clock lies on CLOCK_MONOTONIC.
    pub fn set_wall(&mut self, wall: WallClock) {
        self.wall = Some(wall);
    }

    /// A stamp of any line: the first one tells the time zone.
    pub fn see(&mut self, stamp_ms: i64) {
        let Some(wall) = self.wall.filter(|_| self.zone_ms.is_none()) else {
            return;
        };
        let ahead = stamp_ms.saturating_sub(wall.started_ms);
        let quarters = ahead.saturating_add(ZONE_MS / 2).div_euclid(ZONE_MS);
        self.zone_ms = Some(quarters.saturating_mul(ZONE_MS));
    }

    /// A stop begins, this long after the one before it.
    pub fn stop(&mut self, stamp_ms: i64, interval: Duration) -> Moment {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        self.chain = self.chain.saturating_add(interval);
        let here = stamp_ms.saturating_mul(1_000).saturating_sub(self.chain);
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

    /// Where the last stop lies by all that is known. The earliest of `n` stamps was cut by
    /// `n / (n + 1)` of a millisecond, on average.
    fn begin_of_last(&self) -> Moment {
        let cut = CUT_US * self.agreed / (self.agreed + 1);
        let base = self.base.unwrap_or(0);
        Moment(base.saturating_add(self.chain).saturating_add(cut))
    }

    /// A moment as the log's other readers have it, so much later.
    pub fn at(&self, moment: Moment, later: Duration) -> At {
        let later = i64::try_from(later.as_micros()).unwrap_or(i64::MAX);
        let local_us = moment.0.saturating_add(later);
        let zone_us = self.zone_ms.unwrap_or(0).saturating_mul(1_000);
        let unix_us = local_us.saturating_sub(zone_us);
        let monotonic = self.wall.map(|wall| {
            let ns = unix_us.saturating_mul(1_000).saturating_sub(wall.ahead_ns);
            u64::try_from(ns).unwrap_or(0)
        });
        At {
            monotonic_ns: monotonic,
            uptime_ns: None,
            unix_ms: Some(unix_us.div_euclid(1_000)),
        }
    }
}

/// A moment of the JVM's local wall clock, us since 1970 as if it were UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(i64);

impl Moment {
    /// A stamp as it stands, where there is no chain.
    pub fn of_stamp(stamp_ms: i64) -> Self {
        Self(stamp_ms.saturating_mul(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 1_700_000_000_000;

    fn clock(zone_hours: i64) -> Clock {
        let mut clock = Clock::default();
        clock.set_wall(WallClock {
            ahead_ns: DAY_MS * 1_000_000,
            started_ms: DAY_MS,
        });
        clock.see(DAY_MS + 120 + zone_hours * 3_600_000);
        clock
    }

    /// Begins of stops, us after the day's begin, seen late by so many us, through stamps that are
    /// cut: the largest error of where they are placed.
    fn worst(zone_hours: i64, stops: &[(i64, i64)]) -> i64 {
        let mut clock = clock(zone_hours);
        let mut last = 0;
        let errors = stops.iter().map(|(begin, late)| {
            let stamp = DAY_MS + zone_hours * 3_600_000 + (begin + late).div_euclid(1_000);
            let interval = Duration::from_micros(u64::try_from(begin - last).expect("in order"));
            last = *begin;
            let moment = clock.stop(stamp, interval);
            let at = clock
                .at(moment, Duration::ZERO)
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
        clock.stop(DAY_MS + 1_000, Duration::from_secs(1));
        let moment = clock.stop(DAY_MS + 3_602_000, Duration::from_secs(1));
        let at = clock.at(moment, Duration::ZERO);
        assert_eq!(at.unix_ms, Some(DAY_MS + 3_602_000));
    }
}
