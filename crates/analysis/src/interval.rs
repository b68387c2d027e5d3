//! Intervals: how far a measured ratio or a pass count may be from the truth.
//!
//! Owns the two-level bootstrap for comparing configurations and the exact binomial bounds for
//! proofs. A comparison counts only if its interval excludes the null effect; a lone mean is never
//! printed.

use crate::random::RandomStream;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

impl ConfidenceInterval {
    /// The percentile interval of resampled values; `None` without any.
    pub(crate) fn of_resamples(
        estimate: f64,
        mut values: Vec<f64>,
        confidence: f64,
    ) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        (!values.is_empty()).then(|| Self {
            estimate,
            low: sorted_quantile(&values, tail),
            high: sorted_quantile(&values, 1.0 - tail),
        })
    }

    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn is_difference(&self, effect: f64) -> bool {
        self.high < 1.0 - effect || self.low > 1.0 + effect
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    Mean,
    Median,
}

impl Statistic {
    pub fn compute_value(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Mean => {
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            }
            Self::Median => median(values),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Resamples; 10 000 for printed figures, fewer inside a search.
    pub resamples: u32,
    pub confidence: f64,
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self {
            resamples: 10_000,
            confidence: 0.95,
            seed: 1,
        }
    }
}

/// The ratio `numerator / denominator` of a statistic, with its interval.
///
/// Each side is a list of starts, each start a list of windows (seconds, say). Two levels: starts
/// are drawn with replacement, then windows within each start, because JVM starts differ more
/// than windows of one start do. `None` when a side has no window or the denominator is zero.
///
/// Source: Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, §6 and §7;
/// percentile interval as in Efron 1979.
pub fn ratio_interval(
    numerator: &[Vec<f64>],
    denominator: &[Vec<f64>],
    statistic: Statistic,
    bootstrap: Bootstrap,
) -> Option<ConfidenceInterval> {
    let estimate = statistic.compute_value(&numerator.concat())?
        / statistic.compute_value(&denominator.concat())?;
    let mut random = RandomStream::from_seed(bootstrap.seed);
    let ratios = (0..bootstrap.resamples.max(1)).filter_map(|_| {
        let top = statistic.compute_value(&resample(numerator, &mut random))?;
        let bottom = statistic.compute_value(&resample(denominator, &mut random))?;
        Some(top / bottom).filter(|ratio| ratio.is_finite())
    });
    let ratios: Vec<f64> = ratios.collect();
    if !estimate.is_finite() {
        return None;
    }
    ConfidenceInterval::of_resamples(estimate, ratios, bootstrap.confidence)
}

fn resample(starts: &[Vec<f64>], random: &mut RandomStream) -> Vec<f64> {
    let mut drawn = Vec::new();
    for _ in 0..starts.len() {
        let start = &starts[random.uniform_below(starts.len())];
        drawn.extend((0..start.len()).map(|_| start[random.uniform_below(start.len())]));
    }
    drawn
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// A quantile by linear interpolation (type 7 of Hyndman and Fan 1996); `None` for no values.
pub fn quantile(values: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| sorted_quantile(&sorted, fraction))
}

fn sorted_quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * position.fract()
}

/// Upper bound of the failure probability after `failures` in `starts`, one-sided.
///
/// Clopper and Pearson 1934: the p at which so few failures would have probability
/// 1 − confidence. Without failures this is 1 − (1 − confidence)^(1/n): 5 passes of 5 prove
/// less than 45.1 %, 20 of 20 less than 13.9 %, at 95 %. 1 when nothing was tried.
pub fn failure_upper_bound(failures: u64, starts: u64, confidence: f64) -> f64 {
    if failures >= starts {
        return 1.0;
    }
    let risk = 1.0 - confidence;
    if failures == 0 {
        return 1.0 - risk.powf(1.0 / starts as f64);
    }
    // P(at most `failures`) falls from 1 to 0 as p grows: bisect it.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if at_most(failures, starts, middle) > risk {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// P(X <= k) of a binomial with n trials of probability p, summed in logarithms.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    let mut log_choose = 0.0;
    let mut sum = 0.0;
    for i in 0..=k {
        sum += (log_choose + i as f64 * p.ln() + (n - i) as f64 * (1.0 - p).ln()).exp();
        log_choose += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn passes_prove_what_the_table_says() {
        for (n, bound) in [
            (3, 0.632),
            (5, 0.451),
            (10, 0.259),
            (20, 0.139),
            (59, 0.050),
        ] {
            close(failure_upper_bound(0, n, 0.95), bound, 0.0005);
        }
    }

    #[test]
    fn failures_raise_the_bound_as_clopper_and_pearson_computed() {
        // One-sided 95 % bounds: the beta quantile 0.95 of (k+1, n-k), tabulated values.
        close(failure_upper_bound(1, 20, 0.95), 0.2161, 0.0001);
        close(failure_upper_bound(2, 20, 0.95), 0.2826, 0.0001);
        close(failure_upper_bound(1, 5, 0.95), 0.6574, 0.0001);
        close(failure_upper_bound(5, 100, 0.95), 0.1023, 0.0001);
        assert_eq!(failure_upper_bound(5, 5, 0.95), 1.0);
        assert_eq!(failure_upper_bound(0, 0, 0.95), 1.0);
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn an_interval_covers_the_true_ratio_about_as_often_as_it_says() {
        // 200 comparisons of 8 starts x 20 windows with start noise 3 % and window noise 5 %.
        let mut random = RandomStream::from_seed(42);
        let mut side = |level: f64| -> Vec<Vec<f64>> {
            (0..8)
                .map(|_| {
                    let start = level * (1.0 + 0.03 * random.normal());
                    (0..20)
                        .map(|_| start * (1.0 + 0.05 * random.normal()))
                        .collect()
                })
                .collect()
        };
        let bootstrap = Bootstrap {
            resamples: 400,
            ..Bootstrap::default()
        };
        let covered = (0..200)
            .filter(|_| {
                let (a, b) = (side(1.2), side(1.0));
                ratio_interval(&a, &b, Statistic::Mean, bootstrap)
                    .unwrap()
                    .contains(1.2)
            })
            .count();
        // The percentile bootstrap of 8 starts is known to be somewhat narrow.
        assert!((174..=199).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn nothing_to_compare_gives_no_interval() {
        let one = vec![vec![1.0]];
        assert!(ratio_interval(&[], &one, Statistic::Mean, Bootstrap::default()).is_none());
        assert!(
            ratio_interval(&one, &[vec![0.0]], Statistic::Mean, Bootstrap::default()).is_none()
        );
        assert!(ratio_interval(&[vec![]], &one, Statistic::Median, Bootstrap::default()).is_none());
    }

    proptest! {
        #[test]
        fn more_passes_lower_the_bound(failures in 0_u64..5, starts in 5_u64..60) {
            let bound = failure_upper_bound(failures, starts, 0.95);
            prop_assert!(bound >= failure_upper_bound(failures, starts + 1, 0.95));
            prop_assert!(bound > failures as f64 / starts as f64);
        }
    }
}
