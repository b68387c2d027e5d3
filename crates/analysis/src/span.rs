//! Sets of time: half-open spans on CLOCK_MONOTONIC and their algebra.
//!
//! Owns union, intersection, difference and length of sets of spans. A set is always sorted and
//! its spans never touch, so that every operation is one pass.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan {
    pub start: u64,
    pub end: u64,
}

impl TimeSpan {
    /// From `start` up to, not including, `end`; empty when that is not after it.
    pub fn new(start: u64, end: u64) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    pub fn length_ns(&self) -> u64 {
        self.end - self.start
    }

    pub fn has_no_time(&self) -> bool {
        self.start == self.end
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeSpans(Vec<TimeSpan>);

impl FromIterator<TimeSpan> for TimeSpans {
    fn from_iter<I: IntoIterator<Item = TimeSpan>>(spans: I) -> Self {
        let mut spans: Vec<TimeSpan> = spans.into_iter().filter(|s| !s.has_no_time()).collect();
        spans.sort_unstable();
        let mut merged: Vec<TimeSpan> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        Self(merged)
    }
}

impl TimeSpans {
    pub fn as_slice(&self) -> &[TimeSpan] {
        &self.0
    }

    pub fn len_ns(&self) -> u64 {
        self.0.iter().map(TimeSpan::length_ns).sum()
    }

    pub fn union(&self, other: &Self) -> Self {
        self.0.iter().chain(&other.0).copied().collect()
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let span = TimeSpan::new(x.start.max(y.start), x.end.min(y.end));
            if !span.has_no_time() {
                both.push(span);
            }
            if x.end <= y.end {
                a.next()
            } else {
                b.next()
            };
        }
        Self(both)
    }

    pub fn difference(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.0.iter().peekable();
        for span in &self.0 {
            let mut at = span.start;
            while let Some(hole) = holes.peek() {
                if hole.end <= at {
                    holes.next();
                    continue;
                }
                if hole.start >= span.end {
                    break;
                }
                left.push(TimeSpan::new(at, hole.start));
                at = hole.end.min(span.end);
                if hole.end >= span.end {
                    break;
                }
            }
            left.push(TimeSpan::new(at, span.end));
        }
        left.retain(|span| !span.has_no_time());
        Self(left)
    }

    pub fn within(&self, window: TimeSpan) -> Self {
        let from = self.0.partition_point(|span| span.end <= window.start);
        let near = self.0[from..].iter().take_while(|s| s.start < window.end);
        let cut =
            |span: &TimeSpan| TimeSpan::new(span.start.max(window.start), span.end.min(window.end));
        Self(near.map(cut).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spans(pairs: &[(u64, u64)]) -> TimeSpans {
        pairs.iter().map(|(a, b)| TimeSpan::new(*a, *b)).collect()
    }

    #[test]
    fn sets_do_what_sets_do() {
        let a = spans(&[(0, 10), (20, 30), (30, 35)]);
        let b = spans(&[(5, 22), (34, 40)]);
        assert_eq!(a, spans(&[(0, 10), (20, 35)]));
        assert_eq!(a.union(&b), spans(&[(0, 40)]));
        assert_eq!(a.intersection(&b), spans(&[(5, 10), (20, 22), (34, 35)]));
        assert_eq!(a.difference(&b), spans(&[(0, 5), (22, 34)]));
        assert_eq!(a.within(TimeSpan::new(8, 21)), spans(&[(8, 10), (20, 21)]));
        assert_eq!(a.len_ns(), 25);
    }

    fn any_spans() -> impl Strategy<Value = TimeSpans> {
        let pair =
            (0_u64..60, 0_u64..12).prop_map(|(start, length)| TimeSpan::new(start, start + length));
        prop::collection::vec(pair, 0..8).prop_map(|spans| spans.into_iter().collect())
    }

    fn holds(set: &TimeSpans, t: u64) -> bool {
        set.as_slice().iter().any(|s| s.start <= t && t < s.end)
    }

    proptest! {
        #[test]
        fn every_nanosecond_is_where_it_belongs(a in any_spans(), b in any_spans(), from in 0_u64..70, length in 0_u64..20) {
            let window = TimeSpan::new(from, from + length);
            let (union, both, only, cut) = (a.union(&b), a.intersection(&b), a.difference(&b), a.within(window));
            for t in 0..80 {
                prop_assert_eq!(holds(&union, t), holds(&a, t) || holds(&b, t));
                prop_assert_eq!(holds(&both, t), holds(&a, t) && holds(&b, t));
                prop_assert_eq!(holds(&only, t), holds(&a, t) && !holds(&b, t));
                prop_assert_eq!(holds(&cut, t), holds(&a, t) && from <= t && t < from + length);
            }
        }
    }
}
