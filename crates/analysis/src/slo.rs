//! The service-level objective: what "it works" means, as `p99<50ms` or `errors<0.1%`.
//!
//! Owns the objectives, how they print, and the comparison; [`parse`] reads them. An SLO is judged over the measure phase only.

mod duration;
mod exit;
mod jvm;
mod metric;
mod parse;
mod peak;
mod run;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;
use duration::round_printed;
pub use duration::{meant_duration, parse_duration, print_duration};
pub use jvm::JvmObjective;
pub use metric::{Comparison, MetricObjective};
pub use peak::print_peak_objective;
pub use run::RunObjective;

/// A quantile in [0, 1]; printed as a percentile (`p99.9`).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Quantile(f64);

impl Quantile {
    pub fn from_fraction(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    pub fn as_fraction(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Six decimals hold every percentile people write; the rounding hides 99.89999.
        let percent = (self.0 * 100.0 * 1e6).round() / 1e6;
        write!(f, "p{percent}")
    }
}

/// One objective; a trial meets it when the measured value is below the bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Objective {
    /// A latency quantile, from the intended send time, below a bound.
    Latency {
        /// Which quantile.
        quantile: Quantile,
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// The largest latency below a bound.
    MaxLatency {
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// The share of scheduled requests that did not succeed, below a bound in [0, 1].
    Errors {
        /// The bound, exclusive, a fraction in [0, 1].
        bound: f64,
    },
    /// The start time (exec to the first good response) below a bound.
    Start {
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// About the JVM's heap and collector.
    Jvm(JvmObjective),
    /// About a run.
    Run(RunObjective),
    /// About a metric, which a [`RequestObjective`] names.
    Metric(MetricObjective),
    /// The command that makes the load exits with 0; `load passes` in text, `load passes unless 99`
    /// where another code than 1 says that its own thresholds were missed.
    LoadPasses {
        /// The code that says so, 1 to 255; any other but 0 makes a trial void.
        fails_with: u8,
    },
}

impl Objective {
    /// Whether it bounds a latency or the start time, which more CPU shortens.
    pub fn is_time(self) -> bool {
        matches!(
            self,
            Self::Latency { .. } | Self::MaxLatency { .. } | Self::Start { .. }
        )
    }

    /// The bound as a number: seconds, or for errors a fraction in [0, 1].
    pub fn bound_value(self) -> f64 {
        match self {
            Self::Latency { bound, .. } | Self::MaxLatency { bound } | Self::Start { bound } => {
                bound.as_secs_f64()
            }
            Self::Errors { bound } => bound,
            Self::Jvm(jvm) => jvm.bound_value(),
            Self::Run(run) => run.bound_value(),
            Self::Metric(metric) => metric.bound,
            Self::LoadPasses { .. } => 0.0,
        }
    }

    /// Whether the measured value, in the same unit, keeps it; `None` for a quantile among failed
    /// requests, or nothing measured. The one rule for trials and for `--max-rate`.
    pub fn is_met(self, measured: Option<f64>) -> bool {
        measured.is_some_and(|value| match self {
            Self::Run(run) => run.is_met(value),
            Self::Metric(metric) => metric.is_met(value),
            Self::LoadPasses { .. } => value == 0.0,
            _ => value < self.bound_value(),
        })
    }

    /// The measured value with enough digits to differ from the printed bound: `100.3ms`, `1.004
    /// %`. Unit: [`Objective::bound_value`].
    pub fn show_measured(self, measured: f64) -> String {
        let length = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        match self {
            Self::Errors { bound } => text::percent_beside(measured, bound),
            Self::Latency { bound, .. } | Self::MaxLatency { bound } | Self::Start { bound } => {
                text::duration_beside(length(measured), bound)
            }
            Self::Jvm(jvm) => text::percent_beside(measured, jvm.bound_value()),
            Self::Run(run) => run.show_measured(measured),
            Self::Metric(metric) => metric.show_value(measured),
            Self::LoadPasses { .. } => format!("{measured}"),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency { quantile, bound } => write!(f, "{quantile}<{}", print_duration(*bound)),
            Self::MaxLatency { bound } => write!(f, "max<{}", print_duration(*bound)),
            Self::Errors { bound } => write!(f, "errors<{}%", round_printed(bound * 100.0)),
            Self::Start { bound } => write!(f, "start<{}", print_duration(*bound)),
            Self::Jvm(jvm) => fmt::Display::fmt(jvm, f),
            Self::Run(run) => fmt::Display::fmt(run, f),
            Self::Metric(metric) => fmt::Display::fmt(metric, f),
            Self::LoadPasses { fails_with } => exit::write_load_passes(*fails_with, f),
        }
    }
}

/// An objective about one request of a mix, or a metric; `POST /orders: p99<200ms` and
/// `lag: max<1000` in text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestObjective {
    /// The request's name, or the metric's.
    pub request: String,
    /// What it promises; never the start.
    pub objective: Objective,
}

impl fmt::Display for RequestObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.request, self.objective)
    }
}

/// An objective about a time in which a dependency is slow or away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OutageObjective {
    /// From its end until the other objectives hold again; `recovers<10s` in text.
    Recovers {
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// The share of requests due in it that did not succeed; `errors<5% during` in text.
    Errors {
        /// The bound, exclusive, a fraction in [0, 1].
        bound: f64,
    },
}

impl fmt::Display for OutageObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recovers { bound } => write!(f, "recovers<{}", print_duration(*bound)),
            Self::Errors { bound } => write!(f, "errors<{}% during", round_printed(bound * 100.0)),
        }
    }
}

/// All objectives together; `p99<50ms,errors<0.1%` in text.
///
/// An SLO without an error objective gets `errors<1%`: a service that fails fast must not pass. An
/// SLO for a run has no requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slo {
    /// The objectives about all requests together, in the order written.
    pub objectives: Vec<Objective>,
    /// Those about one request of a mix, in the order written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestObjective>,
    /// Those about an outage of a dependency, in the order written. With one the others are about the
    /// time before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<OutageObjective>,
    /// Those about the burst behind the judged load, in the order written: latencies and errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peak: Vec<Objective>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an objective: {why}")]
pub struct ParseSloError {
    pub text: String,
    pub why: String,
}

impl ParseSloError {
    fn new(text: &str, why: &str) -> Self {
        let (text, why) = (text.trim().to_owned(), why.to_owned());
        Self { text, why }
    }
}

pub const DEFAULT_ERROR_BOUND: f64 = 0.01;

impl Slo {
    /// The tightest latency bound; `None` where no objective is about latency.
    pub fn tightest_latency(&self) -> Option<Duration> {
        let bound = |o: &Objective| match o {
            Objective::Latency { bound, .. } | Objective::MaxLatency { bound } => Some(*bound),
            _ => None,
        };
        let named = self.by_request.iter().map(|named| &named.objective);
        self.objectives.iter().chain(named).filter_map(bound).min()
    }

    pub fn metric_objectives(&self) -> impl Iterator<Item = (&str, MetricObjective)> {
        let named = self.by_request.iter();
        named.filter_map(|named| match named.objective {
            Objective::Metric(metric) => Some((named.request.as_str(), metric)),
            _ => None,
        })
    }

    /// Takes the bound on errors away that every SLO has which names none: without requests.
    pub fn forget_default_errors(&mut self, text: &str) {
        let is_error = |objective: &Objective| matches!(objective, Objective::Errors { .. });
        if !text.contains("errors") {
            self.objectives.retain(|objective| !is_error(objective));
        }
    }

    pub fn jvm_objectives(&self) -> impl Iterator<Item = JvmObjective> {
        let jvm = |objective: &Objective| match objective {
            Objective::Jvm(jvm) => Some(*jvm),
            _ => None,
        };
        self.objectives.iter().filter_map(jvm)
    }

    /// An objective about all requests; `None` for a run, or a consumer.
    pub fn request_objective(&self) -> Option<&Objective> {
        use Objective::{Errors, Latency, MaxLatency};
        let is_of_requests =
            |o: &&Objective| matches!(o, Latency { .. } | MaxLatency { .. } | Errors { .. });
        self.objectives.iter().find(is_of_requests)
    }

    /// Whether it bounds how fast a backlog is worked off.
    pub fn is_drained(&self) -> bool {
        let mut metrics = self.metric_objectives();
        metrics.any(|(_, metric)| metric.word == metric::MetricWord::Drains)
    }

    pub fn run_objectives(&self) -> impl Iterator<Item = RunObjective> {
        let run = |objective: &Objective| match objective {
            Objective::Run(run) => Some(*run),
            _ => None,
        };
        self.objectives.iter().filter_map(run)
    }

    pub fn expected_exit(&self) -> i32 {
        let code = self.run_objectives().find_map(|run| match run {
            RunObjective::Exit { code } => Some(code),
            _ => None,
        });
        code.unwrap_or(0)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.objectives.iter().map(ToString::to_string);
        let named = self.by_request.iter().map(ToString::to_string);
        let outage = self.outage.iter().map(ToString::to_string);
        let peak = self.peak.iter().map(print_peak_objective);
        let all = all.chain(named).chain(outage).chain(peak);
        f.write_str(&all.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_slo_prints_and_parses_back() {
        for text in [
            "p99<50ms,errors<0.1%",
            "p99.9<1.5s,max<2m,start<20s,errors<1%",
            "p50<250us,errors<100%",
            "p99<50ms,errors<0.1%,recovers<10s,errors<5% during",
            "load passes,p99<50ms,errors<1%",
            "load passes unless 99,errors<1%",
            "p99<300ms,errors<1%,POST /orders: p99<200ms,GET /a?x={rand:1:9},2: errors<2%",
        ] {
            assert_eq!(
                text.parse::<Slo>().map(|s| s.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn a_percentage_that_is_read_is_read_again_as_it_prints() {
        let slo: Slo = "p1.7566666666<9s,errors<33.3333333333%".parse().unwrap();
        assert_eq!(slo.to_string(), "p1.756667<9s,errors<33.333333%");
        assert_eq!(slo.to_string().parse(), Ok(slo));
        for text in ["p99.9999999<1s", "p0.0000001<1s", "errors<0.0000001%"] {
            assert!(text.parse::<Slo>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_objective_may_name_one_request() {
        let slo: Slo = "POST /orders: p99<200ms, p99<300ms".parse().unwrap();
        assert_eq!(
            slo.to_string(),
            "p99<300ms,errors<1%,POST /orders: p99<200ms"
        );
        assert_eq!(slo.tightest_latency(), Some(Duration::from_millis(200)));
        for (text, why) in [
            ("POST /orders: start<2s", "the application"),
            (" : p99<2s", "no request is named"),
        ] {
            let refused = text.parse::<Slo>().unwrap_err();
            assert!(refused.why.contains(why), "{refused}");
        }
        let stored = r#"{"objectives":[{"kind":"errors","bound":0.01}]}"#;
        let old: Slo = serde_json::from_str(stored).unwrap();
        assert_eq!(old.by_request, []);
    }

    #[test]
    fn what_was_measured_never_reads_like_the_bound_beside_it() {
        let shown = |slo: &str, measured: f64| {
            let slo: Slo = slo.parse().unwrap();
            format!(
                "{} of {}",
                slo.objectives[0].show_measured(measured),
                slo.objectives[0]
            )
        };
        let texts = [
            shown("p99<100ms", 0.09998),
            shown("p99<100ms", 0.1003),
            shown("p99<100ms", 0.1),
            shown("start<20s", 20.004),
            shown("errors<1%", 0.009_999),
            shown("max<1s", 0.25),
        ];
        insta::assert_snapshot!(texts.join(", "), @"99.98ms of p99<100ms, 100.3ms of p99<100ms, exactly 100ms of p99<100ms, 20.004s of start<20s, 0.9999 % of errors<1%, 250ms of max<1s");
    }

    #[test]
    fn a_bound_is_kept_below_it() {
        let slo: Slo = "p99<50ms,errors<1%".parse().expect("one");
        let kept = |value| slo.objectives[0].is_met(value);
        assert!(kept(Some(0.049)));
        assert!(!kept(Some(0.05)));
        assert!(!kept(None));
    }
}
