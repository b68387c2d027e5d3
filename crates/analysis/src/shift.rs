//! Whether a figure of fresh starts rose against a baseline, decided with as few starts as
//! possible.
//!
//! Owns the two bounds of each figure and the rule applied after every start. [`crate::baseline`]
//! defines the figures. Values are compared as logarithms, because starts differ by ratios; the
//! spread is pooled over both sides (Student's t with a pooled variance).

use crate::interval::ConfidenceInterval;

/// Standard errors by which a rise must exceed the tolerated one. The test runs after every start,
/// so it needs more than the 2.3 of a single test. Its error rates: crate simulated,
/// `tests/verify_error_rates.rs`.
const SHOWN: f64 = 2.7;

/// Standard errors by which a rise must be below what has to be found, and half of the width of the
/// interval that is shown.
const RULED_OUT: f64 = 2.5;

/// The least spread of starts, as a share: a few that agree by chance do not show that all do.
const LEAST_SPREAD: f64 = 0.01;
pub const FEWEST: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftBounds {
    /// Rises up to this are none: two days of one service differ by as much.
    pub tolerated: f64,
    pub found: f64,
}

pub const CPU: ShiftBounds = ShiftBounds {
    tolerated: 0.04,
    found: 0.15,
};

pub const MEMORY: ShiftBounds = ShiftBounds {
    tolerated: 0.02,
    found: 0.10,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShiftStanding {
    Rose,
    Held,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureShift {
    /// Now over before; the interval is ± [`RULED_OUT`] standard errors.
    pub ratio: ConfidenceInterval,
    pub standing: ShiftStanding,
}

/// Compares the values of starts, all above 0; `None` with fewer than [`FEWEST`] on a side.
pub fn measure_shift(before: &[f64], now: &[f64], bounds: ShiftBounds) -> Option<FigureShift> {
    let seen = LogDifference::between_sides(before, now)?;
    let shown = seen.rise - seen.standard_errors(SHOWN);
    let standing = if shown > bounds.tolerated.ln_1p() {
        ShiftStanding::Rose
    } else if seen.rise + seen.standard_errors(RULED_OUT) < bounds.found.ln_1p() {
        ShiftStanding::Held
    } else {
        ShiftStanding::Open
    };
    Some(FigureShift {
        ratio: seen.to_ratio(RULED_OUT),
        standing,
    })
}

struct LogDifference {
    rise: f64,
    error: f64,
    freedom: f64,
}

impl LogDifference {
    fn between_sides(before: &[f64], now: &[f64]) -> Option<Self> {
        let sides = [before, now].map(logarithms);
        if sides.iter().any(|side| side.len() < FEWEST) {
            return None;
        }
        let [(mean_before, squares_before), (mean_now, squares_now)] =
            sides.each_ref().map(|side| mean_and_squares(side));
        let [n, m] = sides.each_ref().map(|side| side.len() as f64);
        let freedom = n + m - 2.0;
        let deviation = ((squares_before + squares_now) / freedom).sqrt();
        Some(Self {
            rise: mean_now - mean_before,
            error: deviation.max(LEAST_SPREAD) * (1.0 / n + 1.0 / m).sqrt(),
            freedom,
        })
    }

    /// This many standard errors, widened for few values.
    fn standard_errors(&self, number: f64) -> f64 {
        student(number, self.freedom) * self.error
    }

    fn to_ratio(&self, errors: f64) -> ConfidenceInterval {
        let around = self.standard_errors(errors);
        ConfidenceInterval {
            estimate: self.rise.exp(),
            low: (self.rise - around).exp(),
            high: (self.rise + around).exp(),
        }
    }
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    let sound = values.iter().filter(|v| v.is_finite() && **v > 0.0);
    sound.map(|v| v.ln()).collect()
}

fn mean_and_squares(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum())
}

/// The quantile of Student's t at the probability of this normal quantile.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5. From 4 degrees of
/// freedom on within 2 % of the table at these quantiles.
fn student(z: f64, freedom: f64) -> f64 {
    let square = z * z;
    let one = z * (square + 1.0) / 4.0;
    let two = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let three = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    let four = z
        * ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0)
        / 92_160.0;
    z + one / freedom + two / freedom.powi(2) + three / freedom.powi(3) + four / freedom.powi(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_the_table() {
        // 0.95 and 0.995, one-sided.
        for (z, freedom, table) in [
            (1.644_854, 4.0, 2.132),
            (1.644_854, 10.0, 1.812),
            (2.575_829, 4.0, 4.604),
            (2.575_829, 10.0, 3.169),
            (2.575_829, 30.0, 2.750),
        ] {
            let quantile = student(z, freedom);
            assert!((quantile / table - 1.0).abs() < 0.02, "{quantile} {table}");
        }
    }

    #[test]
    fn a_rise_is_shown_ruled_out_or_open() {
        let standing =
            |now: &[f64]| measure_shift(&[100.0, 101.0, 99.0, 100.0], now, CPU).map(|s| s.standing);
        assert_eq!(standing(&[115.0, 116.0, 114.0]), Some(ShiftStanding::Rose));
        assert_eq!(standing(&[100.0, 102.0, 101.0]), Some(ShiftStanding::Held));
        assert_eq!(standing(&[90.0, 130.0, 115.0]), Some(ShiftStanding::Open));
        assert_eq!(standing(&[115.0, 116.0]), None, "two starts say nothing");
        assert_eq!(standing(&[f64::NAN, 0.0, 115.0, 116.0]), None);
        // Less is no rise.
        assert_eq!(standing(&[50.0, 51.0, 49.0]), Some(ShiftStanding::Held));
    }

    #[test]
    fn starts_that_agree_by_chance_do_not_decide() {
        let same = measure_shift(&[100.0; 3], &[105.0; 3], CPU).expect("enough");
        assert_ne!(same.standing, ShiftStanding::Rose, "{same:?}");
        assert!((same.ratio.estimate - 1.05).abs() < 1e-9);
        assert!(same.ratio.low < 1.05 && same.ratio.high > 1.05);
    }
}
