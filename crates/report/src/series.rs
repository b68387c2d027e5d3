//! Time series for charts: columns over a shared time axis, thinned to what a screen can show.
//!
//! Owns the thinning. It keeps the smallest and the largest value of every bucket, so no peak is
//! lost; a value can move in time by at most one bucket.

use serde::Serialize;

pub const MOST_POINTS: usize = 600;

pub type Column = Vec<Option<f64>>;

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ChartSeries {
    pub t: Vec<f64>,
    pub columns: Vec<Column>,
}

pub fn thin(series: ChartSeries) -> ChartSeries {
    let n = series.t.len();
    if n <= MOST_POINTS {
        return series;
    }
    let size = n.div_ceil(MOST_POINTS / 2);
    let mut out = ChartSeries {
        t: Vec::new(),
        columns: vec![Vec::new(); series.columns.len()],
    };
    for start in (0..n).step_by(size) {
        let end = (start + size).min(n);
        out.t.push(series.t[start]);
        out.t.push(series.t[end - 1]);
        for (column, thinned) in series.columns.iter().zip(&mut out.columns) {
            let values = column[start..end].iter().flatten().copied();
            thinned.push(values.clone().reduce(f64::min));
            thinned.push(values.reduce(f64::max));
        }
    }
    out
}

/// Four significant digits: enough for a chart, half the size.
pub fn round(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some(0.0);
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    rounded.is_finite().then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_digits_stay() {
        assert_eq!(round(12.345_678), Some(12.35));
        assert_eq!(round(0.000_123_456), Some(0.000_123_5));
        assert_eq!(round(987_654.0), Some(987_700.0));
        assert_eq!(round(f64::NAN), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn no_peak_is_lost(values in prop::collection::vec(prop::option::of(-1e9..1e9f64), 1..5000)) {
            let series = ChartSeries {
                t: (0..values.len()).map(|i| i as f64).collect(),
                columns: vec![values.clone()],
            };
            let thinned = thin(series);
            let peak = |v: &[Option<f64>]| v.iter().flatten().copied().reduce(f64::max);
            let low = |v: &[Option<f64>]| v.iter().flatten().copied().reduce(f64::min);
            prop_assert!(thinned.t.len() <= MOST_POINTS);
            prop_assert_eq!(thinned.t.len(), thinned.columns[0].len());
            prop_assert_eq!(peak(&thinned.columns[0]), peak(&values));
            prop_assert_eq!(low(&thinned.columns[0]), low(&values));
            prop_assert!(thinned.t.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
