//! From values to places: linear from zero, or logarithmic.
//!
//! Owns the choice of round ends and ticks. [`AxisScale::position_of`] keeps at the edge what lies outside.

const TICKS: f64 = 5.0;
/// Ticks at 1, 2 and 5 up to this many decades, at powers of ten beyond.
const FINE_DECADES: f64 = 2.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AxisScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    is_log: bool,
}

impl AxisScale {
    fn over((from, to): (f64, f64), (start, end): (f64, f64), is_log: bool) -> Self {
        Self {
            from,
            to,
            start,
            end,
            is_log,
        }
    }

    pub(super) fn linear(values: impl IntoIterator<Item = f64>, place: (f64, f64)) -> Option<Self> {
        let largest = usable_values(values).reduce(f64::max)?;
        let step = round_step(largest);
        let to = (largest / step).ceil() * step;
        Some(Self::over((0.0, to), place, false))
    }

    /// Between round values around all; values that are not positive do not count. `None` without
    /// values.
    pub(super) fn log_around(
        values: impl IntoIterator<Item = f64>,
        place: (f64, f64),
    ) -> Option<Self> {
        let (least, largest) = ends(values)?;
        let (mut from, mut to) = (round_down(least), largest);
        if round_down(to) < to {
            to = next(round_down(to));
        }
        if from >= to {
            (from, to) = (round_down(from * 0.99), next(to));
        }
        Some(Self::over((from, to), place, true))
    }

    /// Logarithmic, exactly from the least to the largest value, with a little room: for values
    /// that are their own ticks.
    pub(super) fn log_of(values: impl IntoIterator<Item = f64>, place: (f64, f64)) -> Option<Self> {
        let (least, largest) = ends(values)?;
        let room = 1.0 + 0.06 * (largest / least).ln().max(1.0);
        Some(Self::over((least / room, largest * room), place, true))
    }

    pub(super) fn position_of(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        // A number that is none would spoil the drawing.
        let share = if share.is_nan() { 0.0 } else { share };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    pub(super) fn end_positions(&self) -> (f64, f64) {
        (self.start, self.end)
    }

    pub(super) fn labelled_ticks(&self, show: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        self.ticks().into_iter().map(|v| (v, show(v))).collect()
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            let step = round_step(self.to);
            let count = (self.to / step).round() as usize;
            return (0..=count).map(|i| i as f64 * step).collect();
        }
        let is_fine = (self.to / self.from).log10() <= FINE_DECADES;
        let mut ticks = Vec::new();
        let mut tick = round_down(self.from * 1.000_001);
        while tick <= self.to * 1.000_001 {
            let is_power = (tick.log10() - tick.log10().round()).abs() < 1e-9;
            if tick >= self.from * 0.999_999 && (is_fine || is_power) {
                ticks.push(tick);
            }
            tick = next(tick);
        }
        ticks
    }
}

fn usable_values(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    let values = values.into_iter();
    // Beyond them no tick would be the last one.
    values.filter(|value| (1e-300..1e300).contains(value))
}

fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values = usable_values(values);
    let first = values.next()?;
    Some(values.fold((first, first), |(a, b), v| (a.min(v), b.max(v))))
}

/// 1, 2 or 5 times a power of ten: a fifth of the value, about.
fn round_step(largest: f64) -> f64 {
    let rough = largest / TICKS;
    let below = round_down(rough);
    if below * 1.5 < rough {
        next(below)
    } else {
        below
    }
}

fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    // A hair of slack: 0.3 / 0.1 is less than 3.
    let digit = match value / power * 1.000_000_1 {
        digit if digit >= 5.0 => 5.0,
        digit if digit >= 2.0 => 2.0,
        _ => 1.0,
    };
    digit * power
}

fn next(round: f64) -> f64 {
    let power = 10f64.powf(round.log10().floor());
    match (round / power).round() {
        digit if digit < 1.5 => 2.0 * power,
        digit if digit < 3.0 => 5.0 * power,
        _ => 10.0 * power,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(scale: Option<AxisScale>) -> Vec<String> {
        let ticks = scale.expect("a scale").ticks();
        ticks.iter().map(|t| format!("{t:.4}")).collect()
    }

    #[test]
    fn linear_scales_begin_at_zero_and_end_round() {
        let scale = AxisScale::linear([3.0, 87.0], (0.0, 100.0));
        assert_eq!(
            shown(scale),
            [
                "0.0000", "20.0000", "40.0000", "60.0000", "80.0000", "100.0000"
            ]
        );
        let scale = scale.expect("a scale");
        assert_eq!(
            (
                scale.position_of(0.0),
                scale.position_of(50.0),
                scale.position_of(1e9)
            ),
            (0.0, 50.0, 100.0)
        );
        assert_eq!(AxisScale::linear([0.0, f64::NAN], (0.0, 1.0)), None);
    }

    #[test]
    fn a_scale_ends_whatever_its_values_are() {
        for value in [f64::MAX, f64::MIN_POSITIVE, 5e-324] {
            assert_eq!(AxisScale::log_around([value], (0.0, 10.0)), None);
        }
        for value in [9e299, 1e-300] {
            let scale = AxisScale::log_around([value], (0.0, 10.0)).expect("a scale");
            assert!(scale.ticks().len() < 10, "{value}");
        }
    }

    #[test]
    fn logarithmic_scales_have_ticks_at_one_two_and_five() {
        let scale = AxisScale::log_around([0.3, 4.0], (0.0, 10.0));
        assert_eq!(
            shown(scale),
            ["0.2000", "0.5000", "1.0000", "2.0000", "5.0000"]
        );
        let wide = AxisScale::log_around([1.0, 9000.0], (0.0, 10.0));
        assert_eq!(
            shown(wide),
            ["1.0000", "10.0000", "100.0000", "1000.0000", "10000.0000"]
        );
        // One value alone has room on both sides.
        let one = AxisScale::log_around([5.0], (0.0, 10.0)).expect("a scale");
        assert!(
            one.position_of(5.0) > 0.0 && one.position_of(5.0) < 10.0,
            "{one:?}"
        );
        assert_eq!(
            AxisScale::log_around([-1.0, f64::INFINITY], (0.0, 1.0)),
            None
        );
    }

    #[test]
    fn every_value_lies_within_its_scale_and_in_order() {
        let values = [0.07, 0.35, 1.0, 1.4, 12.0, 990.0];
        for scale in [
            AxisScale::linear(values, (0.0, 1.0)),
            AxisScale::log_around(values, (0.0, 1.0)),
            AxisScale::log_of(values, (0.0, 1.0)),
        ] {
            let scale = scale.expect("a scale");
            let places = values.map(|v| scale.position_of(v));
            assert!(places.is_sorted(), "{places:?}");
            assert!(places[5] < 1.0 || scale.to >= 990.0, "{places:?}");
            assert!(scale.ticks().len() >= 3, "{:?}", scale.ticks());
        }
    }
}
