//! Objectives about a metric of the application, or a number that a command prints.
//!
//! Owns the words of an SLO about metrics, and how one sample a second becomes a value. A missing sample is
//! worse than any other: a starved application does not answer, and after its consumer died it reports NaN.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{meant_number, parse_duration, print_duration, round_printed};
use crate::text;

/// What of the samples is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricWord {
    /// The largest.
    Max,
    /// The 99th percentile of the samples.
    P99,
    /// The 90th percentile of the samples.
    P90,
    /// The mean.
    Avg,
    /// The smallest.
    Min,
    /// The last.
    Last,
    /// Of a counter: increase a second.
    Rate,
    /// Of a counter: increase.
    Count,
    /// Seconds from the begin until `max` holds to the end.
    Drains,
    /// How fast its low points rise, a second.
    Grows,
}

const WORDS: [(&str, MetricWord); 10] = [
    ("max", MetricWord::Max),
    ("p99", MetricWord::P99),
    ("p90", MetricWord::P90),
    ("avg", MetricWord::Avg),
    ("min", MetricWord::Min),
    ("last", MetricWord::Last),
    ("rate", MetricWord::Rate),
    ("count", MetricWord::Count),
    ("drains", MetricWord::Drains),
    ("grows", MetricWord::Grows),
];

/// Its words, as a reason names them.
pub(super) const FORM: &str = "a metric has max, p99, p90, avg, min, last, rate, count, grows and a number, or drains and a time";

/// How a value is compared with the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
}

/// Longer signs first, because `<` is the begin of `<=`.
const SIGNS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    (">", Comparison::Above),
    ("=", Comparison::Equal),
];

/// An objective about a metric; `max<1000` in `lag: max<1000`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricObjective {
    /// What of the samples.
    pub word: MetricWord,
    /// How.
    pub comparison: Comparison,
    /// The bound, in the metric's own unit; of `drains` in seconds.
    pub bound: f64,
}

/// A metric that rises by less of its bound than this over the measure phase stands still.
const STANDS: f64 = 0.1;

impl MetricObjective {
    /// Reads `max<1000`, `rate >= 500/s`, `drains<60s`; `None` for what may be about requests. A percentile
    /// or `max` with a unit is about latency.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let at = text.find(['<', '>', '='])?;
        let name = text[..at].trim();
        let word = WORDS.iter().find(|(word, _)| *word == name)?.1;
        let mut signs = SIGNS.iter();
        let (sign, comparison) = signs.find(|(sign, _)| text[at..].starts_with(sign))?;
        let bound = text[at + sign.len()..].trim();
        let is_latency = matches!(word, MetricWord::Max | MetricWord::P99 | MetricWord::P90);
        let number = bound.strip_suffix("/s").unwrap_or(bound).trim();
        let number = number.parse().ok().filter(|n: &f64| n.is_finite());
        let bound = match word {
            MetricWord::Drains if *comparison != Comparison::Below => {
                return Some(Err("drains has an upper bound: drains<60s".to_owned()));
            }
            MetricWord::Drains => parse_duration(bound)
                .map(|bound| bound.as_secs_f64())
                .ok_or("the bound is not a duration (60s)"),
            _ if number.is_none() && is_latency => return None,
            _ => number.ok_or("the bound is not a number (1000)"),
        };
        let objective = bound.map(|bound| Self {
            word,
            comparison: *comparison,
            bound,
        });
        Some(objective.map_err(str::to_owned))
    }

    /// The objective that was meant by a bound with a suffix: `max<1000` of `max<1k`.
    pub(super) fn meant_objective(text: &str) -> Option<String> {
        let sign = text.rfind(['<', '>', '='])?;
        let (begin, bound) = text.split_at(sign + 1);
        let meant = format!("{}{}", begin.replace(' ', ""), meant_number(bound)?);
        Self::parse(&meant)?.is_ok().then_some(meant)
    }

    pub(super) fn is_met(self, value: f64) -> bool {
        match self.comparison {
            Comparison::Below => value < self.bound,
            Comparison::AtMost => value <= self.bound,
            Comparison::Above => value > self.bound,
            Comparison::AtLeast => value >= self.bound,
            Comparison::Equal => value == self.bound,
        }
    }

    pub fn show_value(self, value: f64) -> String {
        match self.word {
            MetricWord::Drains => {
                let time = Duration::try_from_secs_f64(value.max(0.0));
                print_duration(time.unwrap_or(Duration::MAX))
            }
            MetricWord::Rate | MetricWord::Grows => text::short_rate(value),
            _ => text::three_digits(value),
        }
    }

    /// `< 1000`.
    pub fn show_bound(self) -> String {
        format!("{} {}", self.sign(), self.show_value(self.bound))
    }

    pub fn word_name(self) -> &'static str {
        let named = WORDS.iter().find(|(_, word)| *word == self.word);
        named.map_or("", |(name, _)| name)
    }

    fn sign(self) -> &'static str {
        let named = SIGNS.iter().find(|(_, sign)| *sign == self.comparison);
        named.map_or("", |(name, _)| name)
    }

    /// Whether it holds a metric down, and so implies that the metric does not grow.
    pub fn is_ceiling(self) -> bool {
        use MetricWord::{Avg, Last, Max, P90, P99};
        let is_below = matches!(self.comparison, Comparison::Below | Comparison::AtMost);
        is_below && matches!(self.word, Max | P99 | P90 | Avg | Last)
    }

    /// Whether it says how fast a counter rises at least.
    pub fn is_rate_floor(self) -> bool {
        let is_above = matches!(self.comparison, Comparison::Above | Comparison::AtLeast);
        is_above && self.word == MetricWord::Rate
    }

    /// The value of one sample a second; `None` if it lies in missing ones. `others` are the objectives
    /// about the same metric.
    pub fn value(self, samples: &[Option<f64>], others: &[Self]) -> Option<f64> {
        let ceiling = others.iter().find(|o| o.word == MetricWord::Max);
        let drained = || first_kept(samples, ceiling);
        let is_drained = others.iter().any(|o| o.word == MetricWord::Drains);
        // The backlog before is not judged.
        let from = is_drained.then(drained).flatten().unwrap_or(0);
        let judged = &samples[from..];
        let sorted = || self.sorted(judged);
        match self.word {
            MetricWord::Max => sorted().last().copied(),
            MetricWord::P99 => rank(&sorted(), 0.99),
            MetricWord::P90 => rank(&sorted(), 0.9),
            MetricWord::Min => sorted().first().copied(),
            MetricWord::Last => judged.last().copied().flatten(),
            MetricWord::Avg => {
                let sum: Option<f64> = judged.iter().copied().sum();
                sum.map(|sum| sum / judged.len() as f64)
            }
            MetricWord::Count => self.increase(samples),
            MetricWord::Rate => {
                let seconds = samples.len().checked_sub(1).filter(|s| *s > 0)?;
                self.increase(samples).map(|sum| sum / seconds as f64)
            }
            MetricWord::Drains => drained().map(|at| at as f64),
            MetricWord::Grows => growth(judged),
        }
        .filter(|value| value.is_finite())
    }

    /// The growth a second of a metric below its upper bound, if its low points rise by more than a tenth
    /// of the bound over the phase: it would exceed the bound later.
    pub fn unkept_growth(self, samples: &[Option<f64>], others: &[Self]) -> Option<f64> {
        let is_said = |o: &Self| matches!(o.word, MetricWord::Grows | MetricWord::Drains);
        if !self.is_ceiling() || others.iter().any(is_said) {
            return None;
        }
        let growth = growth(samples)?;
        (growth * samples.len() as f64 > self.bound.abs() * STANDS).then_some(growth)
    }

    /// Ascending; missing samples are the worst.
    fn sorted(self, samples: &[Option<f64>]) -> Vec<f64> {
        let worst = match self.comparison {
            Comparison::Above | Comparison::AtLeast => f64::NEG_INFINITY,
            _ => f64::INFINITY,
        };
        let mut sorted: Vec<f64> = samples.iter().map(|s| s.unwrap_or(worst)).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// A counter that falls was reset to 0. For a lower bound the known samples suffice.
    fn increase(self, samples: &[Option<f64>]) -> Option<f64> {
        let is_floor = matches!(self.comparison, Comparison::Above | Comparison::AtLeast);
        let has_ends = samples.first()?.is_some() && samples.last()?.is_some();
        let seen: Vec<f64> = samples.iter().flatten().copied().collect();
        let grown = |pair: &[f64]| {
            if pair[1] >= pair[0] {
                pair[1] - pair[0]
            } else {
                pair[1]
            }
        };
        (has_ends || is_floor).then(|| seen.windows(2).map(grown).sum())
    }
}

/// The index of the first sample from which all keep the bound.
fn first_kept(samples: &[Option<f64>], ceiling: Option<&MetricObjective>) -> Option<usize> {
    let ceiling = ceiling?;
    let is_kept = |sample: &Option<f64>| sample.is_some_and(|value| ceiling.is_met(value));
    let kept = samples.iter().rev().take_while(|s| is_kept(s)).count();
    (kept > 0).then(|| samples.len() - kept)
}

/// Rise of the low points a second: from the lowest of the first third to the lowest of the last. A lag that
/// is committed every few seconds is a sawtooth, and a fitted line through it has any slope. 0 unless each
/// third is higher than the one before.
fn growth(samples: &[Option<f64>]) -> Option<f64> {
    let third = samples.len() / 3;
    let low = |from: usize, to: usize| {
        let values = samples[from..to].iter().flatten().copied();
        values.reduce(f64::min)
    };
    if third == 0 {
        return None;
    }
    let last = samples.len() - third;
    let (first, middle, last_low) = (low(0, third)?, low(third, last)?, low(last, samples.len())?);
    if first < middle && middle < last_low {
        Some((last_low - first) / last as f64)
    } else {
        Some(0.0)
    }
}

fn rank(sorted: &[f64], quantile: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted.get(at.checked_sub(1)?).copied()
}

impl fmt::Display for MetricObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.word {
            MetricWord::Drains => self.show_value(self.bound),
            _ => round_printed(self.bound).to_string(),
        };
        write!(f, "{}{}{bound}", self.word_name(), self.sign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::{Objective, Slo};

    fn objective(text: &str) -> MetricObjective {
        let parsed = MetricObjective::parse(text).expect(text);
        parsed.expect(text)
    }

    fn value(text: &str, samples: &[Option<f64>]) -> Option<f64> {
        objective(text).value(samples, &[])
    }

    fn seen(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn objectives_about_metrics_read_as_they_print() {
        for text in [
            "lag: max<1000",
            "done: rate>=500",
            "lag: drains<1m",
            "lag: grows<1",
            "bad: count=0",
            "lag: p90<=0.25",
        ] {
            let slo: Slo = format!("p99<50ms, {text},errors<1%").parse().expect(text);
            assert_eq!(slo.to_string(), format!("p99<50ms,errors<1%,{text}"));
            let written = serde_json::to_string(&slo).expect("an SLO is written");
            assert_eq!(
                serde_json::from_str::<Slo>(&written).expect("and read"),
                slo
            );
        }
        let of_request: Slo = "GET /: p99<50ms".parse().expect("a request's");
        assert!(matches!(
            of_request.by_request[0].objective,
            Objective::Latency { .. }
        ));
        let why = |text: &str| text.parse::<Slo>().expect_err(text).why;
        assert!(why("lag: drains<60").contains("not a duration"));
        assert!(why("done: rate>many").contains("not a number"));
    }

    #[test]
    fn a_missing_sample_is_worse_than_any_other() {
        let samples = [Some(1.0), None, Some(3.0), Some(2.0)];
        assert_eq!(value("max<10", &samples), None);
        assert_eq!(value("min>0", &samples), None);
        assert_eq!(value("avg<10", &samples), None);
        assert_eq!(value("last<10", &samples), Some(2.0));
        assert_eq!(value("min<10", &samples), Some(1.0));
        assert_eq!(value("last<10", &[Some(1.0), None]), None);
        assert_eq!(value("max<10", &[]), None);
        assert!(!Objective::Metric(objective("max<10")).is_met(None));
    }

    #[test]
    fn a_counter_may_begin_anew_and_a_floor_needs_no_end() {
        assert_eq!(value("count<99", &seen(&[5.0, 9.0, 2.0, 4.0])), Some(8.0));
        assert_eq!(value("rate>1/s", &seen(&[0.0, 10.0, 30.0])), Some(15.0));
        let cut = [Some(0.0), Some(10.0), None];
        assert_eq!(value("rate>1/s", &cut), Some(5.0));
        assert_eq!(value("count<99", &cut), None);
    }

    #[test]
    fn a_foreign_time_is_shown_however_long_it_is() {
        let foreign = r#"{"word":"drains","comparison":"below","bound":1e300}"#;
        let objective: MetricObjective = serde_json::from_str(foreign).expect("it is a number");
        assert_eq!(
            objective.to_string(),
            objective
                .show_bound()
                .replace(' ', "")
                .replace("<", "drains<")
        );
    }

    #[test]
    fn a_backlog_drains_when_the_bound_holds_to_the_end() {
        let all = [objective("max<100"), objective("drains<3s")];
        let samples = seen(&[900.0, 50.0, 400.0, 20.0, 10.0]);
        assert_eq!(all[1].value(&samples, &all), Some(3.0));
        assert_eq!(all[0].value(&samples, &all), Some(20.0));
        assert_eq!(all[1].value(&seen(&[50.0, 400.0]), &all), None);
        assert_eq!(all[0].value(&seen(&[50.0, 400.0]), &all), Some(400.0));
    }

    #[test]
    fn growth_is_seen_in_the_low_points_and_a_sawtooth_has_none() {
        let saw: Vec<f64> = (0..30).map(|s| f64::from(s % 5) * 60.0 + 1.0).collect();
        let lag = objective("max<1000");
        assert_eq!(lag.unkept_growth(&seen(&saw), &[lag]), None);
        let losing: Vec<f64> = (0..30).map(|s| f64::from(s) * 20.0).collect();
        let growth = lag.unkept_growth(&seen(&losing), &[lag]);
        assert_eq!(growth.map(f64::round), Some(20.0));
        let said = [lag, objective("grows<30/s")];
        assert_eq!(lag.unkept_growth(&seen(&losing), &said), None);
    }
}
