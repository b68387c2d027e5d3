//! Requests in each interval of a log.
//!
//! Owns the limit on intervals, and which intervals are kept when stamps are further apart: the
//! stretch of that length with the most requests. The others are counted.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Intervals kept: a week of seconds. Their counts take 25 MB then.
const MAX_INTERVALS: usize = 7 * 86_400;

#[derive(Debug)]
pub(super) struct Intervals {
    pub(super) seconds: f64,
    counts: BTreeMap<i64, u64>,
    current: (i64, u64),
    dropped: u64,
}

#[derive(Debug, PartialEq, Default)]
pub(super) struct RateCurve {
    /// When it begins, seconds since 1970.
    pub(super) begin: f64,
    /// Requests a second in each interval, from the first to the last.
    pub(super) rates: Vec<f64>,
    pub(super) left_out: u64,
}

impl Intervals {
    pub(super) fn new(seconds: f64) -> Self {
        Self {
            seconds,
            counts: BTreeMap::new(),
            current: (i64::MIN, 0),
            dropped: 0,
        }
    }

    pub(super) fn count_arrival(&mut self, arrival: f64) {
        let interval = (arrival / self.seconds).floor() as i64;
        if interval != self.current.0 {
            self.flush_interval();
            self.current.0 = interval;
        }
        self.current.1 += 1;
    }

    fn flush_interval(&mut self) {
        let (interval, count) = std::mem::take(&mut self.current);
        if count == 0 {
            return;
        }
        if self.counts.len() < MAX_INTERVALS || self.counts.contains_key(&interval) {
            *self.counts.entry(interval).or_default() += count;
        } else {
            self.dropped += count;
        }
    }

    pub(super) fn into_curve(mut self) -> RateCurve {
        self.flush_interval();
        let all: u64 = self.counts.values().sum();
        let Some((kept, requests)) = busiest_range(&self.counts) else {
            return RateCurve::default();
        };
        let count = |interval| self.counts.get(&interval).copied().unwrap_or(0);
        RateCurve {
            begin: *kept.start() as f64 * self.seconds,
            rates: kept.map(|i| count(i) as f64 / self.seconds).collect(),
            left_out: self.dropped + (all - requests),
        }
    }
}

/// The stretch of at most [`MAX_INTERVALS`] with the most requests, and how many they are: a stray
/// stamp must not push the day out.
fn busiest_range(counts: &BTreeMap<i64, u64>) -> Option<(RangeInclusive<i64>, u64)> {
    let mut best: Option<(RangeInclusive<i64>, u64)> = None;
    let mut earliest = counts.iter().peekable();
    let mut within = 0;
    for (last, count) in counts {
        within += count;
        while let Some((_, gone)) =
            earliest.next_if(|(first, _)| last.saturating_sub(**first) >= MAX_INTERVALS as i64)
        {
            within -= gone;
        }
        if let Some((first, _)) = earliest.peek()
            && best.as_ref().is_none_or(|(_, most)| within > *most)
        {
            best = Some((**first..=*last, within));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(seconds: f64, arrivals: impl IntoIterator<Item = f64>) -> RateCurve {
        let mut intervals = Intervals::new(seconds);
        for arrival in arrivals {
            intervals.count_arrival(arrival);
        }
        intervals.into_curve()
    }

    const BEGIN: f64 = 1_795_132_800.0;

    #[test]
    fn a_day_of_seconds_is_kept_whole() {
        let day = curve(1.0, (0..86_400).map(|second| BEGIN + f64::from(second)));
        assert_eq!((day.rates.len(), day.left_out), (86_400, 0));
        assert_eq!(day.begin, BEGIN);
        assert!(day.rates.iter().all(|rate| *rate == 1.0));
    }

    #[test]
    fn stray_stamps_do_not_push_the_day_out() {
        let stray = [0.0, 5e9, -1e300, 1e300];
        let hour = (0..3_600).map(|second| BEGIN + f64::from(second));
        let found = curve(60.0, stray.into_iter().chain(hour));
        assert_eq!((found.rates, found.left_out), (vec![1.0; 60], 4));
        assert_eq!(found.begin, BEGIN);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        // Every second one, so that a longer stretch than can be kept is met in order.
        let seconds = MAX_INTERVALS as u64 + 1000;
        let found = curve(1.0, (0..seconds).map(|n| BEGIN + (2 * n) as f64));
        let kept: f64 = found.rates.iter().sum();
        assert!(found.rates.len() <= MAX_INTERVALS);
        assert_eq!(kept as u64 + found.left_out, seconds);
        assert_eq!(kept as usize, MAX_INTERVALS / 2);
    }

    #[test]
    fn no_request_is_no_curve() {
        assert_eq!(curve(1.0, []), RateCurve::default());
    }
}
