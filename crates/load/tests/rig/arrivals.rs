//! What a server saw of a schedule: lateness and dispersion of arrivals.

/// Arrivals against the uniform schedule they were meant to follow.
#[derive(Debug, Clone, Copy)]
pub struct Arrivals {
    /// Requests looked at.
    pub count: usize,
    /// Median lateness, µs.
    pub late_p50_us: f64,
    /// 99th percentile of the lateness, µs.
    pub late_p99_us: f64,
    /// Index of dispersion: variance over mean of the arrivals in each ms. Uniform arrivals have
    /// about 0, Poisson ones 1.
    pub dispersion: f64,
    /// Its median over stretches of a quarter of a second: a stall of the machine, which shows in
    /// one stretch, does not change it. `None` when there was less than one.
    pub dispersion_median: Option<f64>,
    /// Most arrivals in one ms.
    pub most_per_ms: u64,
}

/// Analyses arrivals (ns, in order) of a schedule with `rate` requests a second, without the first
/// `skip_seconds`. The schedule is anchored at the 0.1 % quantile of the offsets: a generator with
/// too low a rate accumulates lateness.
pub fn analyse(arrivals: &[u64], rate: f64, skip_seconds: f64) -> Option<Arrivals> {
    let first = *arrivals.first()?;
    let from = first + (skip_seconds * 1e9) as u64;
    let begin = arrivals.partition_point(|t| *t < from);
    let seen = &arrivals[begin..];
    if seen.len() < 1000 {
        return None;
    }
    let step = 1e9 / rate;
    let offset = |(k, t): (usize, &u64)| (*t - first) as f64 - k as f64 * step;
    let mut offsets: Vec<f64> = seen.iter().enumerate().map(offset).collect();
    offsets.sort_by(f64::total_cmp);
    let at = |q: f64| offsets[((q * offsets.len() as f64) as usize).min(offsets.len() - 1)];
    let anchor = at(0.001);
    let bins = ((seen[seen.len() - 1] - seen[0]) / 1_000_000) as usize;
    let mut counts = vec![0u64; bins + 1];
    for t in seen {
        counts[((t - seen[0]) / 1_000_000) as usize] += 1;
    }
    // The last bin is not full.
    counts.pop();
    let mut windows: Vec<f64> = counts.chunks_exact(WINDOW).map(dispersion).collect();
    windows.sort_by(f64::total_cmp);
    Some(Arrivals {
        count: seen.len(),
        late_p50_us: (at(0.5) - anchor) / 1e3,
        late_p99_us: (at(0.99) - anchor) / 1e3,
        dispersion: dispersion(&counts),
        dispersion_median: windows.get(windows.len() / 2).copied(),
        most_per_ms: counts.iter().copied().max().unwrap_or(0),
    })
}

/// Milliseconds in a stretch of [`Arrivals::dispersion_median`].
const WINDOW: usize = 250;

fn dispersion(counts: &[u64]) -> f64 {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / n;
    let squares = counts.iter().map(|c| (*c as f64 - mean).powi(2));
    squares.sum::<f64>() / n / mean
}
