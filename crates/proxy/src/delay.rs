//! How long bytes are held back: a number, or a distribution to draw from.
//!
//! Owns the distributions and the draw. Source of the uniform one: Toxiproxy 2.12,
//! `toxics/latency.go`, which adds to the latency a number drawn evenly from its jitter to both sides.

use std::fmt;
use std::time::Duration;

use loadline_analysis::random::RandomStream;
use loadline_analysis::slo::print_duration;
use loadline_load::histogram::{self, Histogram};
use serde::{Deserialize, Serialize};

/// No draw is longer: a tail without an end would hold bytes for ever.
pub const LONGEST: Duration = Duration::from_secs(600);

/// A delay, or what it is drawn from; each draw is for one piece of bytes in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "distribution")]
pub enum Delay {
    Fixed {
        latency: Duration,
    },
    /// Evenly from `latency - jitter` to `latency + jitter`, never below 0.
    Uniform {
        latency: Duration,
        jitter: Duration,
    },
    /// Normal; what falls below 0 is 0.
    Normal {
        latency: Duration,
        jitter: Duration,
    },
    /// Pareto: never below `latency`, with a tail that falls as x to the power of -`shape`.
    Pareto {
        latency: Duration,
        /// Above 1: its mean is `latency * shape / (shape - 1)`.
        shape: f64,
    },
    Recorded {
        name: String,
        /// HdrHistogram V2 deflate, base64, ns.
        histogram: String,
    },
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |duration: &Duration| print_duration(*duration);
        match self {
            Self::Fixed { latency } => f.write_str(&text(latency)),
            Self::Uniform { latency, jitter } => write!(f, "{} ± {}", text(latency), text(jitter)),
            Self::Normal { latency, jitter } => {
                write!(f, "{} ± {} (normal)", text(latency), text(jitter))
            }
            Self::Pareto { latency, shape } => {
                let latency = text(latency);
                write!(f, "{latency} or more (Pareto, shape {shape})")
            }
            Self::Recorded { name, .. } => write!(f, "as recorded in {name}"),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum DelayDraw {
    Formula(Delay),
    Recorded(Vec<(u64, u64)>),
}

impl DelayDraw {
    pub(crate) fn new(delay: &Delay) -> Result<Self, String> {
        Ok(match delay {
            Delay::Recorded { histogram, name } => {
                let read = histogram::decode_histogram(histogram);
                let read = read.map_err(|error| format!("the histogram of {name}: {error}"))?;
                Self::Recorded(cumulative_table(&read))
            }
            formula => Self::Formula(formula.clone()),
        })
    }

    pub(crate) fn next_ns(&self, random: &mut RandomStream) -> u64 {
        let ns = match self {
            Self::Recorded(table) => {
                let all = table.last().map_or(0, |(_, count)| *count);
                let rank = (random.uniform() * all as f64) as u64;
                let at = table.partition_point(|(_, count)| *count <= rank);
                table.get(at).map_or(0.0, |(value, _)| *value as f64)
            }
            Self::Formula(delay) => formula_ns(delay, random),
        };
        // A cast from a float saturates; NaN is 0.
        ns.clamp(0.0, LONGEST.as_nanos() as f64) as u64
    }
}

fn cumulative_table(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut all = 0;
    let recorded = histogram.iter_recorded();
    let row = recorded.map(|step| {
        all += step.count_since_last_iteration();
        (step.value_iterated_to(), all)
    });
    row.collect()
}

fn formula_ns(delay: &Delay, random: &mut RandomStream) -> f64 {
    let ns = |duration: &Duration| duration.as_nanos() as f64;
    match delay {
        Delay::Fixed { latency } => ns(latency),
        Delay::Uniform { latency, jitter } => {
            ns(latency) + ns(jitter) * random.uniform_between(-1.0, 1.0)
        }
        Delay::Normal { latency, jitter } => ns(latency) + ns(jitter) * random.normal(),
        // The inverse of its distribution function; 1 - uniform is never 0.
        Delay::Pareto { latency, shape } => {
            ns(latency) * (1.0 - random.uniform()).powf(-1.0 / shape)
        }
        // Decoded before.
        Delay::Recorded { .. } => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: &Delay) -> Vec<f64> {
        let draw = DelayDraw::new(delay).expect("it can be drawn from");
        let mut random = RandomStream::from_seed(7);
        let mut all: Vec<f64> = (0..100_000)
            .map(|_| draw.next_ns(&mut random) as f64 / 1e6)
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn mean(all: &[f64]) -> f64 {
        all.iter().sum::<f64>() / all.len() as f64
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn each_distribution_has_its_mean_and_its_ends() {
        let (latency, jitter) = (20 * MS, 5 * MS);
        let fixed = draws(&Delay::Fixed { latency });
        assert_eq!((fixed[0], fixed[99_999]), (20.0, 20.0));
        let uniform = draws(&Delay::Uniform { latency, jitter });
        assert!((mean(&uniform) - 20.0).abs() < 0.1);
        assert!(uniform[0] >= 15.0 && uniform[99_999] <= 25.0);
        assert!((uniform[90_000] - 24.0).abs() < 0.1, "{}", uniform[90_000]);
        let normal = draws(&Delay::Normal { latency, jitter });
        assert!((mean(&normal) - 20.0).abs() < 0.1);
        // 84.13 % of a normal distribution lie below one standard deviation above its mean.
        assert!((normal[84_134] - 25.0).abs() < 0.2, "{}", normal[84_134]);
        let pareto = draws(&Delay::Pareto {
            latency,
            shape: 3.0,
        });
        assert!((mean(&pareto) - 30.0).abs() < 0.5, "{}", mean(&pareto));
        assert!(pareto[0] >= 20.0);
        // A tenth lies above 20 * 10^(1/3).
        assert!((pareto[90_000] - 43.09).abs() < 0.7, "{}", pareto[90_000]);
    }

    #[test]
    fn a_recorded_one_comes_as_often_as_it_was_seen() {
        let mut seen = histogram::new();
        seen.record_n(2_000_000, 9).expect("it is in its bounds");
        seen.record(50_000_000).expect("it is in its bounds");
        let all = draws(&Delay::Recorded {
            name: "db.hlog".to_owned(),
            histogram: histogram::encode_histogram(&seen),
        });
        let slow = all.iter().filter(|ms| **ms > 40.0).count();
        assert!((9_000..11_000).contains(&slow), "{slow}");
        assert!((all[0] - 2.0).abs() < 0.01);
        let broken = DelayDraw::new(&Delay::Recorded {
            name: "db.hlog".to_owned(),
            histogram: "no".to_owned(),
        });
        assert!(broken.is_err_and(|why| why.contains("db.hlog")));
    }

    #[test]
    fn nothing_is_drawn_below_zero_or_without_an_end() {
        let jitter = 100 * MS;
        let normal = draws(&Delay::Normal {
            latency: MS,
            jitter,
        });
        assert!(normal[0] >= 0.0);
        let pareto = draws(&Delay::Pareto {
            latency: 1000 * MS,
            shape: 0.2,
        });
        assert!(pareto[99_999] <= LONGEST.as_secs_f64() * 1e3);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let delay = Delay::Normal {
            latency: 20 * MS,
            jitter: MS,
        };
        assert_eq!(draws(&delay), draws(&delay));
    }
}
