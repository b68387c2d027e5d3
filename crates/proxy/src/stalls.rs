//! Whether a load waits for answers: how many requests came while the service answered nothing.
//!
//! Owns the rule of a stall and its sums; which model follows is the record's to say. A closed load
//! sends next to nothing in a stall, an open one goes on, and without a stall neither shows.

use std::time::Duration;

use loadline_load::histogram::Histogram;
use loadline_load::part::StallMessage;

/// A service that answers nothing for so long, or for ten times its median, stalls.
const LEAST: u64 = 100_000_000;
const TIMES: u64 = 10;

#[derive(Debug, Default, Clone, Copy)]
struct Arrivals {
    ns: u64,
    requests: u64,
}

#[derive(Debug, Default)]
pub(crate) struct StallWatch {
    looked: u64,
    arrived: u64,
    answered: u64,
    calm: Arrivals,
    stalled: Arrivals,
}

impl StallWatch {
    pub(crate) fn begin_watch(now: u64) -> Self {
        Self {
            looked: now,
            ..Self::default()
        }
    }

    pub(crate) fn count_arrival(&mut self) {
        self.arrived += 1;
    }

    pub(crate) fn count_answer(&mut self) {
        self.answered += 1;
    }

    /// Looks whether the time since the last look was a stall: nothing was answered, and the oldest
    /// request under way waits too long.
    pub(crate) fn look(&mut self, now: u64, oldest: Option<u64>, latency: &Histogram) {
        let ns = now.saturating_sub(self.looked);
        if ns == 0 {
            return;
        }
        let waited = oldest.map_or(0, |oldest| now.saturating_sub(oldest));
        // Asked only where it may matter: a quantile is not free.
        let is_long = waited > LEAST && waited > TIMES * latency.value_at_quantile(0.5);
        let sum = if is_long && self.answered == 0 {
            &mut self.stalled
        } else {
            &mut self.calm
        };
        sum.ns += ns;
        sum.requests += self.arrived;
        (self.looked, self.arrived, self.answered) = (now, 0, 0);
    }

    pub(crate) fn finish_watch(&mut self, end: u64, latency: &Histogram) -> StallMessage {
        self.look(end, None, latency);
        let calm_rate = self.calm.requests as f64 / (self.calm.ns as f64).max(1.0);
        StallMessage {
            stalled: Duration::from_nanos(self.stalled.ns),
            arrived: self.stalled.requests,
            expected: calm_rate * self.stalled.ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use loadline_load::histogram;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Seconds of 100 requests each with looks of 10 ms; in stalls `goes_on` says whether they come.
    fn watched(stall_ms: std::ops::Range<u64>, goes_on: bool) -> StallMessage {
        let mut latency = histogram::new();
        latency.record_n(MS, 100).unwrap();
        let mut watch = StallWatch::begin_watch(0);
        for at in (10..=8000).step_by(10) {
            let is_stalled = stall_ms.contains(&at);
            if goes_on || !is_stalled {
                watch.count_arrival();
            }
            if !is_stalled {
                watch.count_answer();
            }
            watch.look(at * MS, is_stalled.then_some(stall_ms.start * MS), &latency);
        }
        watch.finish_watch(8000 * MS, &latency)
    }

    #[test]
    fn arrivals_in_a_stall_tell_an_open_load_from_a_closed_one() {
        let closed = watched(3000..5000, false);
        assert!(closed.stalled > Duration::from_millis(1800), "{closed:?}");
        assert_eq!(closed.arrived, 0);
        // The first 100 ms of the stall, before it is one, take some off the rate.
        assert!((150.0..200.0).contains(&closed.expected), "{closed:?}");
        let open = watched(3000..5000, true);
        assert!(open.arrived as f64 > 0.95 * open.expected, "{open:?}");
        let none = watched(0..0, true);
        assert_eq!((none.stalled, none.arrived), (Duration::ZERO, 0));
    }
}
