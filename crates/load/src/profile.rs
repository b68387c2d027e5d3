//! Load profiles: a request mix with weights, and the rate over time (TOML).
//!
//! Owns the file's form. `loadline profile` writes it from access logs and HAR files, people may write
//! it by hand; `loadline load --profile` replays it, scaled in rate and time.

mod answered;
mod build;
mod class;
mod date;
mod json;
mod known;
mod line;
mod notation;
mod observed;
mod pattern;
mod rates;
mod sessions;
mod stamp;
mod templates;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{LoadError, toml_refusal};
use crate::plan::ThinkTime;
use crate::schedule::RateSegment;
use crate::spec::text::as_text;
pub use answered::ClassAnswers;
pub use build::{ProfileBuilder, RejectedLine};
pub use known::{DetectedFormat, UnknownLogFormat, detect_format, format_by_name, format_names};
pub(crate) use line::decimal;
pub use line::{AccessLogFormat, LogSource};
pub use observed::{Distribution, LogObservations, UserSessionCounts};
pub use pattern::Pattern;
pub(crate) use stamp::parse_iso;
pub use templates::RequestTemplates;

/// The kind of a request: its method and its path with identifiers replaced, as `loadline profile`
/// names it: `GET /owners/{id}?page`.
pub fn request_class(method: &[u8], path: &[u8]) -> Vec<u8> {
    let mut class = [method, b" "].concat();
    class::normalise(path, &mut class);
    class
}

pub const SCHEMA: u32 = 1;

/// A load profile.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoadProfile {
    /// [`SCHEMA`].
    #[serde(default = "current_version")]
    pub schema: u32,
    /// Where it comes from, in words; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// Length of each interval of `rates`, in seconds.
    #[serde(default = "one_minute")]
    pub interval_seconds: f64,
    /// Requests of a session on average: each connection is a user with cookies, who leaves after
    /// them. Without it connections stay, and keep nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<f64>,
    /// With sessions: pause of each user before the next request, `10s` or `0s..20s`.
    #[serde(
        default,
        with = "as_text::opt",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<String>")]
    pub think: Option<ThinkTime>,
    /// Requests a second in each interval, from the first to the last; empty is no curve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
    /// Statistics of the logs; not used for replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<LogObservations>,
    /// The requests.
    #[serde(default, rename = "request")]
    pub requests: Vec<MixRequest>,
}

/// A request of the mix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MixRequest {
    /// Its name in results; method and path where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its share is its weight over the sum of weights.
    pub weight: f64,
    /// With sessions: it is sent first of each, such as a login, and only then; of several one is
    /// drawn by their weights, which count among themselves.
    #[serde(default, rename = "first", skip_serializing_if = "std::ops::Not::not")]
    pub is_first: bool,
    /// HTTP method.
    #[serde(default = "default_method")]
    pub method: String,
    /// Path and query; may hold variables, see [`crate::template`].
    pub path: String,
    /// More headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body; may hold variables.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// File with the body, instead of `body`; relative to the file that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_file: Option<PathBuf>,
}

impl MixRequest {
    pub fn request_name(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("{} {}", self.method, self.path),
        }
    }
}

fn current_version() -> u32 {
    SCHEMA
}

fn one_minute() -> f64 {
    60.0
}

fn default_method() -> String {
    "GET".to_owned()
}

impl LoadProfile {
    /// Reads the TOML form. Errors: [`LoadError::Plan`] with the place and the problem.
    pub fn parse_load_profile(text: &str) -> Result<Self, LoadError> {
        let parsed = toml::from_str::<Self>(text);
        let profile = parsed.map_err(|e| LoadError::plan("profile", toml_refusal(text, &e)))?;
        profile.check_profile()?;
        Ok(profile)
    }

    pub fn check_profile(&self) -> Result<(), LoadError> {
        let interval = self.interval_seconds;
        let why = if self.requests.is_empty() && self.rates.is_empty() {
            "it has neither [[request]] nor rates; loadline profile writes one from access logs"
                .to_owned()
        } else if self.schema != SCHEMA {
            let schema = self.schema;
            format!("its schema is {schema}, this loadline reads {SCHEMA}")
        } else if !(interval.is_finite() && interval > 0.0) {
            "interval-seconds must be above 0".to_owned()
        } else {
            return Ok(());
        };
        Err(LoadError::plan("profile", why))
    }

    pub fn toml_text(&self) -> Result<String, LoadError> {
        toml::to_string(self).map_err(|e| LoadError::plan("profile", e.to_string()))
    }

    /// Requests of the mix without a body although their method takes one: names and shares, in [0,
    /// 1].
    pub fn bodiless_requests(&self) -> Vec<(String, f64)> {
        let all: f64 = self.requests.iter().map(|r| r.weight).sum();
        let lacks = |r: &&MixRequest| {
            let takes_one = matches!(r.method.as_str(), "POST" | "PUT" | "PATCH");
            takes_one && r.body.is_empty() && r.body_file.is_none()
        };
        let named = |r: &MixRequest| (r.request_name(), r.weight / all);
        self.requests.iter().filter(lacks).map(named).collect()
    }

    /// The stretch of `intervals` intervals with the most requests, in seconds since 1970, and its
    /// share of all requests; `None` if there are no rates, or no start time.
    pub fn busiest_stretch(&self, intervals: usize) -> Option<(Range<f64>, f64)> {
        let begin = self.observed.as_ref()?.begin_unix_seconds?;
        let length = intervals.clamp(1, self.rates.len().max(1));
        let sum = |rates: &[f64]| rates.iter().sum::<f64>();
        let mut within = sum(self.rates.get(..length)?);
        let (mut best, mut first) = (within, 0);
        for (index, gone) in self.rates.iter().enumerate() {
            let Some(come) = self.rates.get(index + length) else {
                break;
            };
            within += come - gone;
            if within > best {
                (best, first) = (within, index + 1);
            }
        }
        let at = |index: usize| begin + index as f64 * self.interval_seconds;
        Some((at(first)..at(first + length), best / sum(&self.rates)))
    }

    /// The rate curve: `scale` times the rates, each interval `speed` times shorter; cut off or
    /// repeated where a length is given.
    pub fn rate_segments(
        &self,
        scale: f64,
        speed: f64,
        length: Option<Duration>,
    ) -> Result<Vec<RateSegment>, LoadError> {
        let refuse = |why: &str| LoadError::plan("profile", why);
        if self.rates.is_empty() {
            return Err(refuse("it has no rates; give one with rate (--rate)"));
        }
        let interval = Duration::try_from_secs_f64(self.interval_seconds / speed)
            .ok()
            .filter(|d| !d.is_zero())
            .ok_or_else(|| refuse("the interval is too short or too long at this speed"))?;
        let whole = interval * u32::try_from(self.rates.len()).unwrap_or(u32::MAX);
        let mut left = length.unwrap_or(whole);
        let mut segments = Vec::new();
        for rate in self.rates.iter().cycle() {
            if left.is_zero() {
                break;
            }
            let duration = interval.min(left);
            segments.push(RateSegment::constant_rate(rate * scale, duration));
            left -= duration;
        }
        Ok(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        interval-seconds = 10
        rates = [1.0, 3.0]

        [[request]]
        weight = 3
        path = "/owners/{rand:1:10}"

        [[request]]
        name = "new owner"
        weight = 1
        method = "POST"
        path = "/owners"
        body = '{"name": "{csv:names.csv:last}"}'
        headers = { Content-Type = "application/json" }
    "#;

    #[test]
    fn a_profile_gives_a_mix_and_a_curve() {
        let profile = LoadProfile::parse_load_profile(TEXT).unwrap();
        let names: Vec<_> = profile
            .requests
            .iter()
            .map(MixRequest::request_name)
            .collect();
        assert_eq!(names, ["GET /owners/{rand:1:10}", "new owner"]);
        let segments = profile.rate_segments(2.0, 5.0, None).unwrap();
        let expected = [2.0, 6.0].map(|r| RateSegment::constant_rate(r, Duration::from_secs(2)));
        assert_eq!(segments, expected);
        let cut = profile.rate_segments(1.0, 1.0, Some(Duration::from_secs(25)));
        let lengths: Vec<_> = cut.unwrap().iter().map(|s| s.duration.as_secs()).collect();
        assert_eq!(lengths, [10, 10, 5]);
    }

    #[test]
    fn the_busiest_stretch_is_found_wherever_it_lies() {
        let profile = |rates: &[f64]| LoadProfile {
            interval_seconds: 60.0,
            rates: rates.to_vec(),
            observed: Some(LogObservations {
                begin_unix_seconds: Some(600.0),
                ..LogObservations::default()
            }),
            ..LoadProfile::default()
        };
        let busy = profile(&[1.0, 0.0, 2.0, 4.0, 1.0]);
        assert_eq!(busy.busiest_stretch(2), Some((720.0..840.0, 0.75)));
        assert_eq!(busy.busiest_stretch(1), Some((780.0..840.0, 0.5)));
        assert_eq!(busy.busiest_stretch(9), Some((600.0..900.0, 1.0)));
        assert_eq!(profile(&[]).busiest_stretch(1), None);
    }

    #[test]
    fn requests_that_lack_a_body_are_named_with_their_share() {
        let mut profile = LoadProfile::parse_load_profile(TEXT).unwrap();
        assert_eq!(profile.bodiless_requests(), []);
        profile.requests[1].body.clear();
        assert_eq!(
            profile.bodiless_requests(),
            [("new owner".to_owned(), 0.25)]
        );
        profile.requests[1].body_file = Some("x".into());
        assert_eq!(profile.bodiless_requests(), []);
    }

    #[test]
    fn what_was_written_reads_back() {
        let profile = LoadProfile::parse_load_profile(TEXT).unwrap();
        assert_eq!(
            LoadProfile::parse_load_profile(&profile.toml_text().unwrap()).unwrap(),
            profile
        );
    }

    #[test]
    fn what_was_observed_is_written_and_changes_nothing_that_is_sent() {
        let plain = LoadProfile::parse_load_profile(TEXT).unwrap();
        let mut described = plain.clone();
        let seen = LogObservations {
            requests: 40,
            statuses: [("200".to_owned(), 39), ("503".to_owned(), 1)].into(),
            response_bytes: Some(Distribution::default()),
            think_time_ms: Some(Distribution::default()),
            ..LogObservations::default()
        };
        described.observed = Some(seen);
        let text = described.toml_text().unwrap();
        assert!(text.contains("[observed.statuses]\n200 = 39\n"), "{text}");
        assert_eq!(LoadProfile::parse_load_profile(&text).unwrap(), described);
        assert_eq!(described.requests, plain.requests);
        // Figures of another version do not keep a file from being replayed.
        let later = format!("{TEXT}\n[observed]\nrequests = 1\nsomething-new = [1]\n");
        assert_eq!(
            LoadProfile::parse_load_profile(&later).unwrap().requests,
            plain.requests
        );
    }

    #[test]
    fn what_is_no_profile_is_refused_with_the_place() {
        for (text, expected) in [
            ("", "neither"),
            ("ratse = [1]", "ratse"),
            ("schema = 9\nrates = [1]", "schema is 9"),
            ("interval-seconds = 0\nrates = [1]", "above 0"),
        ] {
            let error = LoadProfile::parse_load_profile(text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
