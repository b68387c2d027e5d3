//! Count, sum, largest and quantiles of durations, in constant memory.
//!
//! Owns the histogram: 32 classes for each power of two of nanoseconds, so a quantile is at most
//! 3.2 % too high and never above the largest.

use std::time::Duration;

const PER_OCTAVE: u64 = 32;
const OCTAVE_BITS: u32 = PER_OCTAVE.trailing_zeros();

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationTally {
    pub count: u64,
    pub total: Duration,
    pub max: Duration,
    classes: Vec<u32>,
}

impl DurationTally {
    pub fn add_duration(&mut self, duration: Duration) {
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.max = self.max.max(duration);
        let class = class_of(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] = self.classes[class].saturating_add(1);
    }

    /// The duration that a share of `quantile` in [0, 1] does not exceed; zero when there is none.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let wanted = (self.count as f64 * quantile.clamp(0.0, 1.0))
            .ceil()
            .max(1.0) as u64;
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return Duration::from_nanos(upper_end(class)).min(self.max);
            }
        }
        self.max
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
        if other.classes.len() > self.classes.len() {
            self.classes.resize(other.classes.len(), 0);
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// Each value below 32 has a class; above, the five bits below the highest bit decide.
fn class_of(nanos: u64) -> usize {
    let octave = (64 - nanos.leading_zeros()).saturating_sub(OCTAVE_BITS + 1);
    let within = nanos >> octave;
    usize::try_from(u64::from(octave) * PER_OCTAVE + within).unwrap_or(usize::MAX)
}

fn upper_end(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * PER_OCTAVE {
        return class;
    }
    let octave = class / PER_OCTAVE - 1;
    let within = class - octave * PER_OCTAVE;
    let next = u128::from(within + 1) << octave;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_lies_in_its_class(value in any::<u64>()) {
            let class = class_of(value);
            prop_assert!(class < 2000);
            prop_assert!(upper_end(class) >= value);
            prop_assert!(class == 0 || upper_end(class - 1) < value);
        }

        #[test]
        fn quantiles_are_near_the_exact_ones(
            mut values in proptest::collection::vec(1u64..10_000_000_000, 1..300),
            quantile in 0.0f64..=1.0,
        ) {
            let mut tally = DurationTally::default();
            for value in &values {
                tally.add_duration(Duration::from_nanos(*value));
            }
            values.sort_unstable();
            let rank = ((values.len() as f64 * quantile).ceil().max(1.0)) as usize;
            let exact = values[rank - 1] as f64;
            let found = tally.quantile(quantile).as_nanos() as f64;
            prop_assert!(found >= exact && found <= exact * 1.033, "{found} {exact}");
        }

        #[test]
        fn merging_is_adding_all(a in proptest::collection::vec(0u64..1 << 40, 0..50),
                                 b in proptest::collection::vec(0u64..1 << 40, 0..50)) {
            let of = |values: &[u64]| {
                let mut tally = DurationTally::default();
                values.iter().for_each(|v| tally.add_duration(Duration::from_nanos(*v)));
                tally
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged, of(&all));
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(DurationTally::default().quantile(0.99), Duration::ZERO);
    }
}
