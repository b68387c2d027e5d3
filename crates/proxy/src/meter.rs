//! The counters: connections, round trips and bytes by second, and the proxy's own delay.
//!
//! Owns the window: counters begin with it, and are handed over at its end.

use std::time::Duration;

use loadline_analysis::record::LinkSecond;
use loadline_load::histogram::{self, Histogram};

const KEPT: usize = 3600;
pub(crate) const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct LinkCounters {
    pub(crate) now: LinkSecond,
    pub(crate) open: u64,
    total: LinkSecond,
    seconds: Vec<LinkSecond>,
}

impl LinkCounters {
    pub(crate) fn open_window(&mut self) {
        *self = Self {
            open: self.open,
            ..Self::default()
        };
    }

    pub(crate) fn end_second(&mut self, at_ns: u64) {
        let second = LinkSecond {
            at_ns,
            open: self.open,
            ..std::mem::take(&mut self.now)
        };
        self.total = sum_seconds(self.total, second);
        if self.seconds.len() < KEPT {
            self.seconds.push(second);
        }
    }

    pub(crate) fn close_window(&mut self, at_ns: u64) -> (LinkSecond, Vec<LinkSecond>) {
        self.end_second(at_ns);
        (self.total, std::mem::take(&mut self.seconds))
    }
}

fn sum_seconds(a: LinkSecond, b: LinkSecond) -> LinkSecond {
    LinkSecond {
        at_ns: b.at_ns,
        opened: a.opened + b.opened,
        refused: a.refused + b.refused,
        reset: a.reset + b.reset,
        open: b.open,
        exchanges: a.exchanges + b.exchanges,
        upstream_bytes: a.upstream_bytes + b.upstream_bytes,
        downstream_bytes: a.downstream_bytes + b.downstream_bytes,
    }
}

#[derive(Debug)]
pub(crate) struct Lag(Histogram);

impl Lag {
    pub(crate) fn new() -> Self {
        Self(histogram::new())
    }

    pub(crate) fn record_lag(&mut self, due: u64, now: u64) {
        self.0.saturating_record(now.saturating_sub(due).max(1));
    }

    /// 99th percentile and maximum since the last time.
    pub(crate) fn take_quantiles(&mut self) -> (Duration, Duration) {
        let p99 = self.0.value_at_quantile(0.99).min(self.0.max());
        let max = self.0.max();
        self.0.reset();
        (Duration::from_nanos(p99), Duration::from_nanos(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_sum_of_its_seconds_and_the_last_number_of_open_ones() {
        let mut counters = LinkCounters::default();
        counters.now.exchanges = 99;
        counters.open = 3;
        counters.open_window();
        counters.now.exchanges = 5;
        counters.end_second(SECOND);
        counters.open = 1;
        counters.now.exchanges = 2;
        counters.now.opened = 1;
        let (total, seconds) = counters.close_window(SECOND + 10);
        let expected = LinkSecond {
            at_ns: SECOND + 10,
            opened: 1,
            open: 1,
            exchanges: 7,
            ..LinkSecond::default()
        };
        assert_eq!(total, expected);
        let of_each: Vec<_> = seconds.iter().map(|s| (s.exchanges, s.open)).collect();
        assert_eq!(of_each, [(5, 3), (2, 1)]);
    }
}
