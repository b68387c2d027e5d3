//! Growth of a series from one load cycle to the next, with its confidence.
//!
//! Owns the lows (the least value of each window) and the two ways to compare them. With two cycles
//! of the same load each low is compared with the low at the same place of the previous cycle:
//! everything that follows the load cancels out. If growth falls from third to third of the cycle
//! it is settling, and its limit is extrapolated (Aitken's delta-squared process, exact for an
//! exponential on top of a constant). With one cycle only, a line through its lows must do.
//! Intervals come from a block bootstrap, because memory is autocorrelated (Künsch 1989, "The
//! jackknife and the bootstrap for general stationary observations").

use crate::random::RandomStream;

const WINDOWS: usize = 30;
const FEWEST: usize = 18;

/// Share of a cycle that is left out at its begin: a start or a rest and a collection came before it.
const SETTLE: f64 = 0.1;
const BLOCK: usize = 4;
const RESAMPLES: usize = 300;

/// Half an interval in standard deviations of the bootstrap. More than the 2.6 of a normal 99 %
/// interval: ten values with a memory know their spread badly.
const WIDTH: f64 = 3.5;

/// A jump is at least this many times the usual step from low to low.
const JUMP: f64 = 8.0;

/// Growth in the last third below this share of the first third's is settling.
const SETTLING: f64 = 0.8;

/// Growth in the first third below this share of the last third's means a step within the cycle.
const STEP: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    pub slope: f64,
    pub low: f64,
    pub high: f64,
    pub span: f64,
    /// Growth falls from third to third of the cycle and may approach zero.
    pub is_settling: bool,
    pub is_step: bool,
}

impl Trend {
    pub fn cycle_growth(&self) -> f64 {
        self.slope * self.span
    }

    pub fn is_growing(&self) -> bool {
        self.low > 0.0 && !self.is_settling && !self.is_step
    }
}

type Values = [(f64, f64)];

/// Growth from the first cycle to the second; `None` with too few lows.
pub fn between_cycles(first: &Values, second: &Values, seed: u64) -> Option<Trend> {
    let (start, again) = (first.first()?.0, second.first()?.0);
    let span = again - start;
    let length = (second.last()?.0 - again).min(first.last()?.0 - start);
    let lows = |values: &Values, from: f64| without_jump(lows(values, from, length));
    let (first, second) = (lows(first, start), lows(second, again));
    let both = first.into_iter().zip(second);
    let grown: Vec<f64> = both.filter_map(|(a, b)| Some(b?.1 - a?.1)).collect();
    if grown.len() < FEWEST || span <= 0.0 {
        return None;
    }
    let third = grown.len() / 3;
    let thirds = [
        &grown[..third],
        &grown[third..2 * third],
        &grown[2 * third..],
    ];
    let mut random = RandomStream::from_seed(seed);
    let mut sample = |_| thirds.map(|part| mean(&resample_blocks(part, &mut random)));
    let samples: Vec<[f64; 3]> = (0..RESAMPLES).map(&mut sample).collect();
    let estimate = |of: fn(&[f64; 3]) -> f64| {
        let values: Vec<f64> = samples.iter().map(of).collect();
        (of(&thirds.map(mean)), WIDTH * deviation(&values))
    };
    let falls = estimate(|t| SETTLING * t[0] - t[2]);
    let at_first = estimate(|t| t[0]);
    let rises = estimate(|t| STEP * t[2] - t[0]);
    let (all, left) = (estimate(|t| mean(t)), estimate(asymptote));
    let is_falling = falls.0 - falls.1 / 2.0 > 0.0 && at_first.0 - at_first.1 > 0.0;
    // The limit of a falling series rests on three values, not one.
    let (value, wide) = if is_falling {
        (left.0, left.1 * 0.7)
    } else {
        all
    };
    Some(Trend {
        slope: value / span,
        low: (value - wide) / span,
        high: (value + wide) / span,
        span: length,
        is_settling: is_falling && value - wide <= 0.0,
        is_step: rises.0 > 0.0,
    })
}

/// The limit of the growth of three equal stretches.
fn asymptote([a, b, c]: &[f64; 3]) -> f64 {
    let bend = a + c - 2.0 * b;
    // A straight fall has no end that could be seen.
    if bend.abs() < 1e-9 * (a.abs() + c.abs()) {
        return f64::NAN;
    }
    // The limit cannot exceed the total.
    ((a * c - b * b) / bend).clamp(c.min(0.0) - (a - c).abs(), c.max(0.0))
}

/// Growth along the lows of one cycle; `None` with too few lows.
pub fn within_cycle(values: &Values, seed: u64) -> Option<Trend> {
    let (first, last) = (values.first()?.0, values.last()?.0);
    let lows = lows(values, first, last - first).into_iter();
    let found: Vec<(f64, f64)> = lows.flatten().collect();
    if found.len() < FEWEST {
        return None;
    }
    let (slope, height) = fit_line(&found)?;
    let middle = mean(&found.iter().map(|l| l.0).collect::<Vec<_>>());
    let fitted = |x: f64| height + slope * (x - middle);
    let residuals: Vec<f64> = found.iter().map(|l| l.1 - fitted(l.0)).collect();
    let mut random = RandomStream::from_seed(seed);
    let slopes = (0..RESAMPLES).filter_map(|_| {
        let moved = resample_blocks(&residuals, &mut random);
        let sample = found.iter().zip(moved).map(|(l, r)| (l.0, fitted(l.0) + r));
        fit_line(&sample.collect::<Vec<_>>()).map(|l| l.0)
    });
    let slopes: Vec<f64> = slopes.collect();
    let wide = WIDTH * deviation(&slopes);
    Some(Trend {
        slope,
        low: slope - wide,
        high: slope + wide,
        span: last - first,
        is_settling: false,
        is_step: false,
    })
}

fn lows(values: &Values, begin: f64, length: f64) -> Vec<Option<(f64, f64)>> {
    let from = begin + length * SETTLE;
    let width = length * (1.0 - SETTLE) / WINDOWS as f64;
    let mut lows: Vec<Option<(f64, f64)>> = vec![None; WINDOWS];
    if width <= 0.0 {
        return lows;
    }
    for (x, y) in values.iter().copied().filter(|v| v.0 >= from) {
        let Some(window) = lows.get_mut(((x - from) / width) as usize) else {
            continue;
        };
        let low = window.get_or_insert((x, y));
        if y < low.1 {
            *low = (x, y);
        }
    }
    lows
}

/// The lows of a cycle as if its one jump had been there from the begin: a cache that was filled, a
/// table that was made larger. Where several lows jump, none is taken for an exception.
fn without_jump(mut lows: Vec<Option<(f64, f64)>>) -> Vec<Option<(f64, f64)>> {
    let step = |pair: &[Option<(f64, f64)>]| match pair {
        [Some(a), Some(b)] => b.1 - a.1,
        _ => 0.0,
    };
    let steps: Vec<f64> = lows.windows(2).map(step).collect();
    let mut sizes: Vec<f64> = steps.iter().map(|s| s.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let Some(usual) = sizes.get(sizes.len() / 2) else {
        return lows;
    };
    let jumps = |step: &f64| step.abs() > JUMP * usual;
    let mut found = steps.iter().enumerate().filter(|(_, step)| jumps(step));
    if let (Some((place, jump)), None) = (found.next(), found.next()) {
        for low in lows[..=place].iter_mut().flatten() {
            low.1 += jump;
        }
    }
    lows
}

/// Least squares: slope, and the height over the mean of the axis.
fn fit_line(points: &Values) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    (spread > 0.0).then(|| (both / spread, y))
}

fn resample_blocks(values: &[f64], random: &mut RandomStream) -> Vec<f64> {
    let block = BLOCK.min(values.len());
    let mut drawn = Vec::with_capacity(values.len() + block);
    while drawn.len() < values.len() {
        let from = random.uniform_below(values.len() + 1 - block);
        drawn.extend_from_slice(&values[from..from + block]);
    }
    drawn.truncate(values.len());
    drawn
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|v| (v - middle).powi(2)).sum();
    (squares / (values.len().max(2) - 1) as f64).sqrt()
}
