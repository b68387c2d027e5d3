//! Whether the run is steady, and from when: change points, outliers, and the ±5 % rule.
//!
//! Owns PELT (exact change points of mean and variance) and the rule for the verdict: the run is
//! steady from the earliest change point after which every segment has the mean of the last one, ±5
//! % by a bootstrap interval. Feed it CPU time per request (robust on a noisy machine) or p50 per
//! second. Many JVM runs never get steady; that is a result, not an error.
//!
//! Sources: Killick, Fearnhead, Eckley 2012 (PELT); Barrett et al., OOPSLA 2017 (penalty, outlier
//! window); Traini et al., EMSE 2023 (p99 − p1 outliers, ratio of means).

use crate::interval::{Bootstrap, Statistic, quantile, ratio_interval};

const LEAST_VARIANCE: f64 = 1e-11;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadinessRule {
    /// Two segments are the same when the interval of the ratio of their means touches
    /// 1 ± this.
    pub tolerance: f64,
    pub shortest_segment: usize,
    /// Fewest steady values at the end (seconds, for a series per second).
    pub fewest_steady: usize,
    /// Least share of the series that must be steady, in [0, 1].
    pub steady_share: f64,
    pub bootstrap: Bootstrap,
}

impl Default for SteadinessRule {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            shortest_segment: 5,
            fewest_steady: 30,
            steady_share: 0.4,
            bootstrap: Bootstrap {
                resamples: 2000,
                ..Bootstrap::default()
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    pub from: usize,
    pub level: f64,
    pub change_points: Vec<usize>,
    pub is_steady: bool,
}

/// Judges a series of positive values. `None` when it is shorter than two segments or has a value
/// that is not positive and finite.
pub fn judge_steadiness(values: &[f64], rule: &SteadinessRule) -> Option<Steadiness> {
    let is_valid = |value: &f64| value.is_finite() && *value > 0.0;
    if values.len() < 2 * rule.shortest_segment.max(2) || !values.iter().all(is_valid) {
        return None;
    }
    let outliers = outliers(values);
    let kept = (0..values.len()).filter(|i| !outliers.contains(i));
    let kept: Vec<usize> = kept.collect();
    let series: Vec<f64> = kept.iter().map(|i| values[*i]).collect();
    let logs: Vec<f64> = series.iter().map(|value| value.ln()).collect();
    let cuts = pelt(&logs, penalty(logs.len()), rule.shortest_segment).change_points;
    let from = steady_from(&series, &cuts, rule);
    let steady = &series[from..];
    let enough = (values.len() as f64 * rule.steady_share).max(rule.fewest_steady as f64);
    let from = if from == 0 { 0 } else { kept[from] };
    Some(Steadiness {
        from,
        level: steady.iter().sum::<f64>() / steady.len() as f64,
        change_points: cuts.iter().map(|cut| kept[*cut]).collect(),
        is_steady: (values.len() - from) as f64 >= enough,
    })
}

/// The penalty of a change point: 15·ln n was chosen for some 2000 values; on a few hundred it
/// misses steps of 12 %, so it is 4·ln n there and the ±5 % rule merges the excess segments.
pub fn penalty(n: usize) -> f64 {
    let factor = if n < 500 { 4.0 } else { 15.0 };
    factor * (n.max(2) as f64).ln()
}

fn steady_from(series: &[f64], cuts: &[usize], rule: &SteadinessRule) -> usize {
    let begins: Vec<usize> = std::iter::once(0).chain(cuts.iter().copied()).collect();
    let Some((last, earlier)) = begins.split_last() else {
        return 0;
    };
    let last_segment = vec![series[*last..].to_vec()];
    let mut from = *last;
    for begin in earlier.iter().rev() {
        let segment = vec![series[*begin..from].to_vec()];
        let ratio = ratio_interval(&segment, &last_segment, Statistic::Mean, rule.bootstrap);
        if ratio.is_none_or(|ratio| ratio.is_difference(rule.tolerance)) {
            break;
        }
        from = *begin;
    }
    from
}

/// Indices outside median ± 3·(p99 − p1) of a sliding window of 200 values (or all of fewer);
/// none in the first half window, where warm-up is wild.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let half = 100.min(values.len() / 2);
    let is_outlier = |index: &usize| {
        let window = &values[index - half..(index + half).min(values.len())];
        let at = |fraction| quantile(window, fraction).unwrap_or(f64::NAN);
        let reach = 3.0 * (at(0.99) - at(0.01));
        (values[*index] - at(0.5)).abs() > reach
    };
    (half..values.len()).filter(is_outlier).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub struct Segmentation {
    pub change_points: Vec<usize>,
    pub cost: f64,
}

/// Exact change points of mean and variance for normal values, with pruning.
///
/// The cost of a segment of m values with variance v (maximum likelihood) is m·(ln 2πv + 1);
/// `penalty` is added for each segment but one.
pub fn pelt(values: &[f64], penalty: f64, shortest: usize) -> Segmentation {
    let shortest = shortest.max(1);
    let costs = SegmentCosts::new(values);
    let n = values.len();
    let mut best = vec![f64::INFINITY; n + 1];
    let mut previous = vec![0; n + 1];
    best[0] = -penalty;
    // Where the last segment may begin, and from when on it may not any more. A begin that t
    // beats stays until t itself can begin a segment, or a short minimum would cost exactness.
    let mut candidates: Vec<(usize, usize)> = vec![(0, usize::MAX)];
    for t in shortest..=n {
        candidates.retain(|(_, until)| t < *until);
        let cost = |s: usize| best[s] + costs.segment_cost(s, t);
        let begins = candidates.iter().map(|(s, _)| *s);
        let begins = begins.filter(|s| t - s >= shortest).map(|s| (s, cost(s)));
        let (begin, least) = begins.fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
        for (s, until) in &mut candidates {
            if t - *s >= shortest && cost(*s) > least + penalty {
                *until = (*until).min(t + shortest);
            }
        }
        best[t] = least + penalty;
        previous[t] = begin;
        candidates.push((t + 1 - shortest, usize::MAX));
    }
    let mut change_points = Vec::new();
    let mut at = n;
    while previous[at] > 0 {
        at = previous[at];
        change_points.push(at);
    }
    change_points.reverse();
    Segmentation {
        change_points,
        cost: best[n],
    }
}

struct SegmentCosts {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl SegmentCosts {
    fn new(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let prefix = |f: &dyn Fn(f64) -> f64| {
            let mut sum = 0.0;
            let sums = values.iter().map(|value| {
                sum += f(value - mean);
                sum
            });
            std::iter::once(0.0).chain(sums).collect::<Vec<f64>>()
        };
        Self {
            sums: prefix(&|x| x),
            squares: prefix(&|x| x * x),
        }
    }

    fn segment_cost(&self, from: usize, to: usize) -> f64 {
        let m = (to - from) as f64;
        let mean = (self.sums[to] - self.sums[from]) / m;
        let variance = (self.squares[to] - self.squares[from]) / m - mean * mean;
        m * ((std::f64::consts::TAU * variance.max(LEAST_VARIANCE)).ln() + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::RandomStream;

    fn series(n: usize, levels: &[(usize, f64)]) -> Vec<f64> {
        let level = |t: usize| levels.iter().rfind(|(from, _)| *from <= t).unwrap().1;
        (0..n)
            .map(|t| level(t) + ((37 * t % 11) as f64 - 5.0) / 10.0)
            .collect()
    }

    #[test]
    fn the_golden_series_have_the_golden_change_points() {
        let fifth = [(0, 10.0), (30, 5.0), (80, 5.6)];
        // Length, levels, factor of the penalty; change points, cost.
        type Case<'a> = (usize, &'a [(usize, f64)], f64, &'a [usize], f64);
        let cases: [Case<'_>; 6] = [
            (
                100,
                &[(0, 10.0), (20, 7.0), (50, 5.0)],
                15.0,
                &[20, 50],
                193.10074,
            ),
            (120, &[(0, 5.0)], 15.0, &[], 64.83022),
            (120, &[(0, 5.0), (60, 5.2)], 15.0, &[], 78.36604),
            (120, &[(0, 5.0), (90, 8.0)], 15.0, &[90], 136.55230),
            (120, &fifth, 15.0, &[30], 193.15964),
            (120, &fifth, 4.0, &[30, 81], 101.74929),
        ];
        for (n, levels, factor, points, cost) in cases {
            for shortest in [2, 5] {
                let got = pelt(&series(n, levels), factor * (n as f64).ln(), shortest);
                assert_eq!(got.change_points, points, "{levels:?}");
                assert!((got.cost - cost).abs() < 5e-6, "{} {cost}", got.cost);
            }
        }
    }

    #[test]
    fn equal_values_are_one_segment() {
        assert_eq!(pelt(&[3.0; 50], 10.0, 2).change_points, Vec::<usize>::new());
        assert_eq!(pelt(&[], 10.0, 2).change_points, Vec::<usize>::new());
    }

    fn noisy(seed: u64, n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = RandomStream::from_seed(seed);
        (0..n)
            .map(|t| level(t) * (1.0 + 0.04 * random.normal()))
            .collect()
    }

    #[test]
    fn a_warm_up_ends_where_it_ends() {
        let warm_up = |t: usize| {
            if t < 25 {
                3.0
            } else if t < 40 {
                1.3
            } else {
                1.0
            }
        };
        let got = judge_steadiness(&noisy(1, 120, warm_up), &SteadinessRule::default()).unwrap();
        assert!(got.is_steady);
        assert!((39..=41).contains(&got.from), "{got:?}");
        assert!((got.level - 1.0).abs() < 0.02, "{got:?}");
    }

    #[test]
    fn a_flat_run_is_steady_from_its_begin() {
        let mut values = noisy(2, 120, |_| 1.0);
        values[100] = 9.0;
        let got = judge_steadiness(&values, &SteadinessRule::default()).unwrap();
        assert_eq!((got.from, got.is_steady), (0, true), "{got:?}");
        assert_eq!(outliers(&values), [100]);
    }

    #[test]
    fn a_late_step_is_not_steady() {
        let got = judge_steadiness(
            &noisy(3, 120, |t| if t < 90 { 1.0 } else { 1.4 }),
            &SteadinessRule::default(),
        );
        let got = got.unwrap();
        assert!(!got.is_steady && (89..=91).contains(&got.from), "{got:?}");
    }

    #[test]
    fn a_step_within_five_percent_is_no_change() {
        let got = judge_steadiness(
            &noisy(4, 120, |t| if t < 60 { 1.0 } else { 1.03 }),
            &SteadinessRule::default(),
        );
        assert_eq!(got.unwrap().from, 0);
    }

    #[test]
    fn a_series_that_cannot_be_judged_is_none() {
        assert_eq!(
            judge_steadiness(&[1.0; 5], &SteadinessRule::default()),
            None
        );
        assert_eq!(
            judge_steadiness(&[0.0; 50], &SteadinessRule::default()),
            None
        );
        assert_eq!(
            judge_steadiness(&[f64::NAN; 50], &SteadinessRule::default()),
            None
        );
    }

    /// Unpruned optimal partitioning: what PELT must equal.
    fn unpruned(values: &[f64], penalty: f64, shortest: usize) -> f64 {
        let costs = SegmentCosts::new(values);
        let mut best = vec![f64::INFINITY; values.len() + 1];
        best[0] = -penalty;
        for t in shortest..=values.len() {
            for s in 0..=t - shortest {
                best[t] = best[t].min(best[s] + costs.segment_cost(s, t) + penalty);
            }
        }
        best[values.len()]
    }

    proptest! {
        #[test]
        fn pruning_loses_nothing(
            values in prop::collection::vec(0.1_f64..10.0, 12..60),
            penalty in 1.0_f64..40.0,
            shortest in 2_usize..6,
        ) {
            let got = pelt(&values, penalty, shortest).cost;
            let exact = unpruned(&values, penalty, shortest);
            prop_assert!((got - exact).abs() < 1e-6, "{} {}", got, exact);
        }
    }
}
