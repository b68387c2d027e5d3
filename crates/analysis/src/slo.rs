//! The service-level objective: what "it works" means, as `p99<50ms` or `errors<0.1%`.
//!
//! Owns the text form and the comparison. An SLO is judged over the measure phase only.

mod exit;
mod jvm;
mod metric;
mod peak;
mod run;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;
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
}

impl Objective {
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

pub const DEFAULT_ERROR_BOUND: f64 = 0.01;

impl FromStr for Slo {
    type Err = ParseSloError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut objectives, mut by_request) = (Vec::new(), Vec::new());
        let (mut outage, mut peak) = (Vec::new(), Vec::new());
        for part in split_objectives(text) {
            if let Some(objective) = parse_outage_objective(part)? {
                outage.push(objective);
                continue;
            }
            if let Some(objective) = peak::parse_peak_objective(part)? {
                peak.push(objective);
                continue;
            }
            match parse_request_objective(part)? {
                Some(named) => by_request.push(named),
                None => objectives.push(parse_objective(part)?),
            }
        }
        let has_own = |o: &Objective| matches!(o, Objective::Errors { .. } | Objective::Run(_));
        if !objectives.iter().any(has_own) {
            objectives.push(Objective::Errors {
                bound: DEFAULT_ERROR_BOUND,
            });
        }
        Ok(Self {
            objectives,
            by_request,
            outage,
            peak,
        })
    }
}

impl Slo {
    /// The tightest latency bound; `None` where no objective is about latency.
    pub fn tightest_latency(&self) -> Option<Duration> {
        let bound = |o: &Objective| match o {
            Objective::Latency { bound, .. } | Objective::MaxLatency { bound } => Some(*bound),
            Objective::Errors { .. }
            | Objective::Start { .. }
            | Objective::Jvm(_)
            | Objective::Run(_)
            | Objective::Metric(_)
            | Objective::LoadPasses { .. } => None,
        };
        let named = self.by_request.iter().map(|named| &named.objective);
        self.objectives.iter().chain(named).filter_map(bound).min()
    }
}

impl Slo {
    pub fn metric_objectives(&self) -> impl Iterator<Item = (&str, MetricObjective)> {
        self.by_request
            .iter()
            .filter_map(|named| match named.objective {
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
        self.objectives.iter().find(|objective| {
            matches!(
                objective,
                Objective::Latency { .. } | Objective::MaxLatency { .. } | Objective::Errors { .. }
            )
        })
    }

    /// Whether it bounds how fast a backlog is worked off.
    pub fn is_drained(&self) -> bool {
        self.metric_objectives()
            .any(|(_, metric)| metric.is_drain())
    }

    pub fn run_objectives(&self) -> impl Iterator<Item = RunObjective> {
        self.objectives
            .iter()
            .filter_map(|objective| match objective {
                Objective::Run(run) => Some(*run),
                _ => None,
            })
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

/// The objectives of a text. A name of a request may hold a comma; every objective has a `<` after
/// it, but for an exit code and some of metrics.
fn split_objectives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (comma, _) in text.match_indices(',') {
        let part = &text[begin..comma];
        let is_metric = |(_, rest)| MetricObjective::parse(rest).is_some();
        if part.contains('<')
            || part.trim_start().starts_with("exit")
            || part.trim_start().starts_with(exit::LOAD_PASSES)
            || part.rsplit_once(':').is_some_and(is_metric)
        {
            parts.push(&text[begin..comma]);
            begin = comma + 1;
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn parse_outage_objective(text: &str) -> Result<Option<OutageObjective>, ParseSloError> {
    let text = text.trim();
    let error = |why: &str| ParseSloError {
        text: text.to_owned(),
        why: why.to_owned(),
    };
    if let Some(during) = text.strip_suffix("during") {
        return match parse_objective(during)? {
            Objective::Errors { bound } => Ok(Some(OutageObjective::Errors { bound })),
            _ => Err(error("only errors have a bound during an outage")),
        };
    }
    match text.split_once('<') {
        Some((name, bound)) if name.trim() == "recovers" => {
            let bound = parse_duration(bound.trim().trim_start_matches('='));
            let bound = bound.ok_or_else(|| error("the bound is no duration (10s)"))?;
            Ok(Some(OutageObjective::Recovers { bound }))
        }
        _ => Ok(None),
    }
}

/// An objective with the name of a request before it; `None` when there is no name.
fn parse_request_objective(text: &str) -> Result<Option<RequestObjective>, ParseSloError> {
    let Some((request, rest)) = text.rsplit_once(':') else {
        return Ok(None);
    };
    let error = |why: &str| ParseSloError {
        text: text.trim().to_owned(),
        why: why.to_owned(),
    };
    let objective = match MetricObjective::parse(rest) {
        Some(metric) => Objective::Metric(metric.map_err(|why| error(&why))?),
        None => parse_objective(rest)
            .map_err(|refused| error(&format!("{}; {}", refused.why, metric::FORM)))?,
    };
    let request = request.trim().to_owned();
    if request.is_empty() {
        return Err(error("no request is named before the `:`"));
    }
    if matches!(
        objective,
        Objective::Start { .. }
            | Objective::Jvm(_)
            | Objective::Run(_)
            | Objective::LoadPasses { .. }
    ) {
        return Err(error(
            "the start, the JVM, the run and the load command are those of the application, not of a request",
        ));
    }
    Ok(Some(RequestObjective { request, objective }))
}

/// What was meant, with the reason: other names and signs that people write, an order of the parts, a bound
/// without its unit. `None` where nothing is near.
fn meant_objective(text: &str) -> Option<String> {
    let plain = text.to_ascii_lowercase().replace([' ', ','], "");
    if plain.starts_with("load") && !plain.starts_with("loadpasses") {
        return Some(format!("did you mean `{}`?", exit::LOAD_PASSES));
    }
    let signs = ['<', '>', '=', '≤'];
    let (name, bound) = plain.split_once(signs)?;
    let bound = bound.trim_start_matches(signs);
    let by_percent = || {
        let number = name.strip_suffix('%').or(name.strip_suffix("th"))?;
        Some(format!("p{number}"))
    };
    let (mut reason, name) = match name {
        "error" | "err" | "failures" | "errorrate" | "error_rate" => ("", "errors".to_owned()),
        "p100" | "maximum" | "worst" => ("", "max".to_owned()),
        "avg" | "average" | "mean" => ("a mean hides slow requests; ", "p50".to_owned()),
        "median" => ("", "p50".to_owned()),
        "startup" | "boot" => ("", "start".to_owned()),
        other => ("", by_percent().unwrap_or_else(|| other.to_owned())),
    };
    let mut bounds = vec![bound.to_owned()];
    if let Ok(number) = bound.parse::<f64>() {
        reason = "the bound has no unit; ";
        // Below 1 it is a fraction, or of seconds.
        let is_small = number < 1.0;
        let is_long = is_small || matches!(name.as_str(), "start" | "time" | "cpu");
        let percent = round_printed(number * if is_small { 100.0 } else { 1.0 });
        let unit = if is_long { "s" } else { "ms" };
        bounds = vec![format!("{bound}{unit}"), format!("{percent}%")];
    }
    let mut meant = bounds.iter().map(|bound| format!("{name}<{bound}"));
    let meant = meant.find(|meant| meant != text && read_objective(meant).is_ok())?;
    Some(format!("{reason}did you mean `{meant}`?"))
}

/// Objectives that something else than commas separates, with commas; `None` where it is one.
fn with_commas(text: &str) -> Option<String> {
    let between = |c: char| c == ';' || c == '&' || c == '|' || c.is_whitespace();
    let parts = text.split(between);
    let parts: Vec<&str> = parts.filter(|p| !p.is_empty() && *p != "and").collect();
    let is_each = parts.iter().all(|part| part.contains('<'));
    (parts.len() > 1 && is_each).then(|| parts.join(","))
}

fn parse_objective(text: &str) -> Result<Objective, ParseSloError> {
    let text = text.trim();
    read_objective(text).map_err(|error| match meant_objective(text) {
        // What it says already is nearer.
        Some(why) if !error.why.contains("commas") => ParseSloError { why, ..error },
        _ => error,
    })
}

const NO_NAME: &str = "the name is not one of p50..p99.999, max, errors, start, heap, gc; a run has time, cpu, slower, exit; a metric has its name before: `lag: max<1000`";

fn read_objective(text: &str) -> Result<Objective, ParseSloError> {
    let error = |why: &str| ParseSloError {
        text: text.to_owned(),
        why: why.to_owned(),
    };
    if let Some(run) = RunObjective::parse(text) {
        return run.map(Objective::Run).map_err(|why| error(&why));
    }
    if let Some(jvm) = JvmObjective::parse(text) {
        return jvm.map(Objective::Jvm).map_err(|why| error(&why));
    }
    if let Some(passes) = exit::parse_load_passes(text) {
        return passes.map_err(error);
    }
    if text.is_empty() {
        return Err(error("it is empty: nothing stands before or after a comma"));
    }
    let (name, bound) = text
        .split_once('<')
        .ok_or_else(|| error("there is no `<`"))?;
    let (name, bound) = (name.trim(), bound.trim().trim_start_matches('='));
    if let Some(several) = with_commas(text) {
        return Err(error(&format!("commas separate objectives: `{several}`")));
    }
    let time = || match parse_duration(bound) {
        Some(Duration::ZERO) => Err(error("the bound is not above 0")),
        Some(bound) => Ok(bound),
        None => Err(error("the bound is no duration (50ms, 1.5s)")),
    };
    match name {
        "max" => Ok(Objective::MaxLatency { bound: time()? }),
        "start" => Ok(Objective::Start { bound: time()? }),
        "errors" => {
            let percent = bound
                .strip_suffix('%')
                .and_then(|p| p.trim().parse::<f64>().ok())
                .map(round_printed);
            let percent = percent.ok_or_else(|| error("the bound is no percentage (0.1%)"))?;
            if !(percent > 0.0 && percent <= 100.0) {
                return Err(error(
                    "the percentage is not above 0 and at most 100; for no error at all: errors<0.001%",
                ));
            }
            Ok(Objective::Errors {
                bound: percent / 100.0,
            })
        }
        _ => {
            let percentile = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
            let quantile = percentile
                .map(round_printed)
                .filter(|p| *p > 0.0 && *p < 100.0);
            let quantile = quantile.and_then(|p| Quantile::from_fraction(p / 100.0));
            let quantile = quantile.ok_or_else(|| error(NO_NAME))?;
            Ok(Objective::Latency {
                quantile,
                bound: time()?,
            })
        }
    }
}

/// The longest duration that is read, s: 31 years, to a µs in a floating-point number.
const LONGEST: f64 = 1e9;

/// Reads `250us`, `50ms`, `1.5s`, `2m`, `1h`, to the ns, from a second on to the µs, as [`print_duration`]
/// prints them; nothing else, and nothing above 31 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(split);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = number.trim().parse().ok()?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * seconds;
    match seconds {
        s if s > LONGEST => None,
        s if s >= 1.0 => Some(Duration::from_micros((s * 1e6).round() as u64)),
        s => Duration::try_from_secs_f64(s).ok(),
    }
}

/// Prints a duration the way people write it: `250us`, `50ms`, `1.5s`, `2m`; parses back.
pub fn print_duration(value: Duration) -> String {
    let nanos = value.as_nanos() as f64;
    let (scale, unit) = match nanos {
        n if n >= 60e9 && n % 60e9 == 0.0 => (60e9, "m"),
        n if n >= 1e9 => (1e9, "s"),
        n if n >= 1e6 => (1e6, "ms"),
        n if n >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{}{unit}", round_printed(nanos / scale))
}

fn round_printed(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_signs_that_people_write_are_understood_as_meant() {
        let why = |text: &str| {
            text.parse::<Slo>()
                .map_err(|e| e.why)
                .err()
                .unwrap_or_default()
        };
        for (text, meant) in [
            ("error<1%", "errors<1%"),
            ("P99<250MS", "p99<250ms"),
            ("99%<250ms", "p99<250ms"),
            ("p100<1s", "max<1s"),
            ("p99≤250ms", "p99<250ms"),
            ("avg<100ms", "p50<100ms"),
            ("p99=250ms", "p99<250ms"),
        ] {
            let said = why(text);
            assert!(
                said.contains(&format!("did you mean `{meant}`?")),
                "{text}: {said}"
            );
        }
        assert_eq!(why("p99<0ms"), "the bound is not above 0");
        assert!(why("nonsense<1s").contains("not one of p50"));
    }

    #[test]
    fn what_was_meant_is_shown() {
        let why = |text: &str| text.parse::<Slo>().map_err(|e| e.why).err();
        for between in [";", "&", "|", " ", " and "] {
            let text = format!("p95<250ms{between}errors<1%");
            let wanted = "commas separate objectives: `p95<250ms,errors<1%`";
            assert_eq!(why(&text).as_deref(), Some(wanted), "{text}");
        }
        for (text, meant) in [
            ("p99 < 250", "p99<250ms"),
            ("p99=250", "p99<250ms"),
            ("p99<0.25", "p99<0.25s"),
            ("start<20", "start<20s"),
            ("time<60", "time<60s"),
            ("errors<1", "errors<1%"),
            ("errors<0.01", "errors<1%"),
            ("slower<0.1", "slower<10%"),
            ("heap<80", "heap<80%"),
        ] {
            let wanted = format!("the bound has no unit; did you mean `{meant}`?");
            assert_eq!(why(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
        for (text, meant) in [
            ("p99>250ms", "p99<250ms"),
            ("heap<=80%", "heap<80%"),
            ("time=60s", "time<60s"),
            (",p99<250ms", "p99<250ms"),
            ("load pass", "load passes"),
        ] {
            let wanted = format!("did you mean `{meant}`?");
            assert_eq!(why(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
        for text in ["", "p99<250ms,"] {
            assert!(why(text).is_some_and(|why| why.starts_with("it is empty")));
        }
        assert!(why("exit<1").is_some_and(|why| why.contains("exit=3")));
        for text in ["lag: p50<1000", "lag: mx<1000", "lag: max<1k"] {
            assert!(why(text).is_some_and(|why| why.ends_with(metric::FORM)));
        }
        let wanted = "the bound is no duration (50ms, 1.5s)";
        assert_eq!(why("p99<fast").as_deref(), Some(wanted));
        assert_eq!(why("p99 < 250ms, errors < 1 %"), None);
        for text in ["errors<0%", "errors<100.1%"] {
            assert!(why(text).is_some_and(|why| why.contains("above 0 and at most 100;")));
        }
        let wanted = "an exit code that means failure is 1 to 255: load passes unless 99";
        for text in [
            "load passes unless 0",
            "load passes unless 256",
            "load passes 99",
        ] {
            assert_eq!(why(text).as_deref(), Some(wanted), "{text}");
        }
        let wanted = NO_NAME;
        for text in ["p0<1s", "p-1<1s", "q99<1s"] {
            assert_eq!(why(text).as_deref(), Some(wanted), "{text}");
        }
    }

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
    fn a_duration_that_is_read_is_read_again_as_it_prints() {
        for (text, printed) in [
            ("2.5us", "2.5us"),
            ("0.4ns", "0ns"),
            ("999.9999999ms", "1s"),
            ("1.123456789s", "1.123457s"),
            ("0.03333333h", "119.999988s"),
            ("1.5m", "90s"),
            ("999999999.123456s", "999999999.123456s"),
            ("1000000000s", "1000000000s"),
        ] {
            let read = parse_duration(text).expect(text);
            assert_eq!(print_duration(read), printed, "{text}");
            assert_eq!(parse_duration(printed), Some(read), "{text}");
        }
        for text in ["1000000001s", "3775418158742670608s", "300000h", "1e999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
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
    fn errors_are_bounded_even_when_nobody_says_so() {
        assert_eq!(
            "p99<50ms".parse::<Slo>().map(|s| s.to_string()),
            Ok("p99<50ms,errors<1%".to_owned())
        );
    }

    #[test]
    fn what_is_no_objective_is_refused_with_the_reason() {
        for text in [
            "",
            "p99",
            "p99<50",
            "p101<5ms",
            "q<5ms",
            "errors<5",
            "errors<0%",
            "p99<-5ms",
            "recovers<10",
            "p99<5ms during",
        ] {
            assert!(text.parse::<Slo>().is_err(), "{text}");
        }
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
