//! The clocks: did the wall clock step, was the machine suspended?

use std::time::Duration;

use loadline_sys::BOOT_CLOCK;
use rustix::time::{ClockId, clock_gettime};

/// The three clocks at one moment, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// CLOCK_MONOTONIC: stands still in suspend, never steps.
    pub monotonic_ns: i128,
    pub boottime_ns: i128,
    pub realtime_ns: i128,
}

impl ClockReading {
    /// Reads them. The monotonic clock is read around the others, so that a preemption between
    /// the calls is not taken for a jump: of a few tries the tightest counts.
    pub fn now() -> Self {
        let try_once = || {
            let before = clock_nanos(ClockId::Monotonic);
            let boottime_ns = clock_nanos(BOOT_CLOCK);
            let realtime_ns = clock_nanos(ClockId::Realtime);
            let after = clock_nanos(ClockId::Monotonic);
            let clocks = Self {
                monotonic_ns: i128::midpoint(before, after),
                boottime_ns,
                realtime_ns,
            };
            (after - before, clocks)
        };
        let mut best = try_once();
        for _ in 0..4 {
            let next = try_once();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }

    pub fn jump_since(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic_ns - earlier.monotonic_ns;
        let boottime = self.boottime_ns - earlier.boottime_ns - monotonic;
        let realtime = self.realtime_ns - earlier.realtime_ns - monotonic;
        let largest = boottime.unsigned_abs().max(realtime.unsigned_abs());
        Duration::from_nanos(u64::try_from(largest).unwrap_or(u64::MAX))
    }
}

fn clock_nanos(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_both_directions_and_suspend_are_seen() {
        let start = ClockReading {
            monotonic_ns: 5,
            boottime_ns: 7,
            realtime_ns: 1_000,
        };
        let after = |boot: i128, real: i128| ClockReading {
            monotonic_ns: 5 + 1_000_000,
            boottime_ns: 7 + 1_000_000 + boot,
            realtime_ns: 1_000 + 1_000_000 + real,
        };
        assert_eq!(after(0, 0).jump_since(start), Duration::ZERO);
        assert_eq!(after(0, -300).jump_since(start), Duration::from_nanos(300));
        assert_eq!(after(900, 300).jump_since(start), Duration::from_nanos(900));
    }
}
