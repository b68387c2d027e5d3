//! The offset of a generator's clock from the client's, and its uncertainty.
//!
//! Owns the estimate: among some round trips the shortest, with the generator's clock reading at
//! its middle, plus or minus half (Cristian 1989). Both clocks are CLOCK_MONOTONIC: no process sets
//! them, and a kernel that follows NTP lets one run at most 500 ppm fast or slow.

use std::time::Duration;

pub(super) const ROUNDS: u64 = 20;

/// A less certain offset is useless: the parts of a load would not begin together, and the
/// application's timeline would not match the load's. A network within a cluster gives some hundred
/// microseconds.
pub(super) const MOST_ERROR: Duration = Duration::from_millis(10);

/// Two clocks may come apart by so much, in millionths: 500 ppm each. More is a machine that was
/// suspended or moved.
const MOST_DRIFT_PPM: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockOffset {
    pub(super) ahead: i64,
    pub(super) error: u64,
    pub(super) at: u64,
}

impl ClockOffset {
    pub(super) fn from_round_trip(sent: u64, there: u64, received: u64) -> Self {
        let half = received.saturating_sub(sent).div_ceil(2);
        let middle = sent.saturating_add(half);
        Self {
            ahead: there.cast_signed().wrapping_sub(middle.cast_signed()),
            error: half,
            at: middle,
        }
    }

    pub(super) fn better_known(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.error <= self.error => other,
            _ => self,
        }
    }

    pub(super) fn to_remote_ns(self, here: u64) -> u64 {
        here.saturating_add_signed(self.ahead)
    }

    pub(super) fn to_local_ns(self, there: u64) -> u64 {
        there.saturating_add_signed(self.ahead.saturating_neg())
    }

    pub(super) fn unknown_reason(self) -> Option<String> {
        (u128::from(self.error) > MOST_ERROR.as_nanos()).then(|| {
            format!(
                "the shortest of {ROUNDS} round trips took {:.1} ms, so its clock is known to {:.1} ms at best, and {} ms are allowed",
                ns_to_ms(self.error) * 2.0,
                ns_to_ms(self.error),
                MOST_ERROR.as_millis()
            )
        })
    }

    /// How much further ahead the clock was when it was measured again, ns, or why that is no drift of
    /// clocks.
    pub(super) fn drift_since(self, again: Self) -> Result<i64, String> {
        let drift = again.ahead.saturating_sub(self.ahead);
        let passed = again.at.saturating_sub(self.at);
        let allowed = passed / 1_000_000 * MOST_DRIFT_PPM + self.error + again.error;
        if drift.unsigned_abs() <= allowed {
            return Ok(drift);
        }
        Err(format!(
            "its clock went {:.1} ms apart from the trial's in {:.1} s: one of the two machines was suspended or moved",
            ns_to_ms(drift.unsigned_abs()),
            passed as f64 / 1e9
        ))
    }
}

fn ns_to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_truth_lies_within_the_error_however_uneven_the_ways_are() {
        for ahead in [-5_000 * MS.cast_signed(), 0, 7 * MS.cast_signed()] {
            for (there, back) in [(0, 4), (1, 3), (2, 2), (4, 0)] {
                let sent = 10_000 * MS;
                let seen = (sent + there * MS).saturating_add_signed(ahead);
                let offset = ClockOffset::from_round_trip(sent, seen, sent + (there + back) * MS);
                assert_eq!(offset.error, 2 * MS);
                assert!((offset.ahead - ahead).unsigned_abs() <= offset.error);
                assert_eq!(offset.to_local_ns(offset.to_remote_ns(sent)), sent);
            }
        }
    }

    #[test]
    fn a_long_way_and_a_clock_that_jumped_are_told() {
        let begin = ClockOffset::from_round_trip(0, 1000 * MS, 2 * MS);
        assert_eq!(begin.unknown_reason(), None);
        let far = ClockOffset::from_round_trip(0, 1000 * MS, 30 * MS);
        assert!(
            far.unknown_reason()
                .is_some_and(|why| why.contains("15.0 ms"))
        );
        assert_eq!(begin.better_known(Some(far)), begin);
        assert_eq!(far.better_known(Some(begin)), begin);
        // 10 s later: 10 ms of drift, and 1 ms each, are what clocks do.
        let later = |ahead: u64| {
            ClockOffset::from_round_trip(10_000 * MS, (11_000 + ahead) * MS, 10_002 * MS)
        };
        assert_eq!(begin.drift_since(later(10)), Ok(10 * MS.cast_signed()));
        assert!(
            begin
                .drift_since(later(20))
                .is_err_and(|why| why.contains("20.0 ms"))
        );
    }
}
