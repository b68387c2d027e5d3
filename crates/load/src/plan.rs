//! The requests, their targets and their rate: the plan of one load run, in the form used in
//! orders.
//!
//! Owns the check that a plan makes sense. Durations are whole ns in JSON.

mod memory;
mod users;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::wire::{nanos, nanos_opt};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::loopback::listening_loopback;
use crate::schedule::{ArrivalPattern, RateSegment};
pub use users::{ThinkTime, Users};

/// Above this rate on one thread, exact pacing spends more CPU on wake-ups than on requests.
const EXACT_RATE: f64 = 5_000.0;
/// Keeps the lateness of arrivals below 0.3 ms at the 99th percentile, with room for the wake-up.
const AUTO_QUANTUM: Duration = Duration::from_micros(100);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Addresses of the instances; connections are spread evenly over them.
    pub targets: Vec<SocketAddr>,
    pub request: RequestSpec,
    /// Requests to choose from, at random by their weights; empty is always `request`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<WeightedRequest>,
    #[serde(default)]
    pub expect: Expectation,
    /// How connections are encrypted; `None` is not at all.
    pub tls: Option<TlsSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Options>,
    pub model: LoadModel,
    #[serde(rename = "warmup_ns", with = "nanos", default)]
    pub warmup: Duration,
    /// Connections kept open, over all threads and targets; at least 1.
    pub connections: u32,
    /// A request without a complete response this long after its send has failed; a request without
    /// a free connection this long after its intended time is shed.
    #[serde(rename = "timeout_ns", with = "nanos")]
    pub timeout: Duration,
    /// A connection that is not open within this time, TLS handshake included, has failed, and the
    /// requests that wait for it; `None` is bounded by the timeout alone.
    #[serde(
        rename = "connect_timeout_ns",
        with = "nanos_opt",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub connect_timeout: Option<Duration>,
    /// A connection with requests under way that brings no byte for this long has failed, and
    /// they have; `None` is bounded by the timeout alone.
    #[serde(
        rename = "read_timeout_ns",
        with = "nanos_opt",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub read_timeout: Option<Duration>,
    /// Closed model, or with users: how long a connection pauses between an answer and its next
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Users>,
    #[serde(rename = "drain_ns", with = "nanos")]
    pub drain: Duration,
    /// CPUs to use, one thread on each; empty is one thread wherever the kernel puts it.
    #[serde(default)]
    pub cpus: Vec<u32>,
    #[serde(default)]
    pub seed: u64,
    /// When sends happen relative to their intended times.
    #[serde(default)]
    pub pacing: Pacing,
    #[serde(default)]
    pub part: LoadPart,
    pub start_ns: Option<u64>,
    /// Whether outcomes of the measured part are also kept by the second in which requests were due.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_second: bool,
    /// Tightest latency bound of the SLO; the generator must not lag by more than a tenth.
    #[serde(rename = "slo_ns", with = "nanos_opt", default)]
    pub slo: Option<Duration>,
}

/// One of several processes that make one load together, without talking to each other: each
/// takes its slots of the same schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPart {
    pub index: u32,
    pub of: u32,
}

impl LoadPart {
    pub fn share_of(self, whole: u32) -> u32 {
        (whole / self.of + u32::from(self.index < whole % self.of)).max(1)
    }
}

impl Default for LoadPart {
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl fmt::Display for LoadPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WeightedRequest {
    pub name: String,
    /// Its share of all requests is its weight over the sum of weights; above 0.
    pub weight: f64,
    /// With users: it is sent first of a session, and only then; several are drawn by weight.
    #[serde(default, rename = "first", skip_serializing_if = "std::ops::Not::not")]
    pub is_first: bool,
    pub request: RequestSpec,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LoadModel {
    /// Requests leave on a schedule that does not wait for answers.
    Open {
        segments: Vec<RateSegment>,
        #[serde(default)]
        arrivals: ArrivalPattern,
    },
    /// Each connection sends when its last answer came, for a time (warm-up included).
    ClosedFor {
        #[serde(rename = "duration_ns", with = "nanos")]
        duration: Duration,
    },
    /// Each connection sends when its last answer came, until this many requests were made after
    /// the warm-up.
    ClosedRequests { requests: u64 },
}

impl LoadModel {
    pub fn at_constant_rate(rate: f64, duration: Duration) -> Self {
        Self::Open {
            segments: vec![RateSegment::constant_rate(rate, duration)],
            arrivals: ArrivalPattern::Uniform,
        }
    }

    pub fn mean_rate(&self) -> Option<f64> {
        let Self::Open { segments, .. } = self else {
            return None;
        };
        let requests: f64 = segments.iter().map(RateSegment::due_requests).sum();
        let seconds: f64 = segments.iter().map(|s| s.duration.as_secs_f64()).sum();
        Some(requests / seconds)
    }

    /// The highest scheduled rate, in requests a second; `None` for a closed model.
    pub fn peak(&self) -> Option<f64> {
        let Self::Open { segments, .. } = self else {
            return None;
        };
        let highest = segments.iter().map(|s| s.from.max(s.to));
        Some(highest.fold(0.0, f64::max))
    }

    /// The same course of an open model at another mean rate; a closed model has none to change.
    pub fn at_rate(mut self, rate: f64) -> Self {
        let factor = self.mean_rate().map(|own| rate / own);
        if let (Self::Open { segments, .. }, Some(factor)) = (&mut self, factor) {
            for segment in segments {
                segment.from *= factor;
                segment.to *= factor;
            }
        }
        self
    }

    /// Load of this length before it, at a constant rate: its initial rate, or its mean if it
    /// begins with silence. A closed model stays one.
    pub fn lead_in(&self, length: Duration) -> Self {
        let Self::Open { segments, arrivals } = self else {
            return Self::ClosedFor { duration: length };
        };
        let first = segments.first().map(|s| s.from).filter(|rate| *rate > 0.0);
        let rate = first.or(self.mean_rate()).unwrap_or_default();
        Self::Open {
            segments: vec![RateSegment::constant_rate(rate, length)],
            arrivals: *arrivals,
        }
    }

    /// The same load for this length: an open model's course again and again, cut at its end.
    pub fn repeated_for(&self, length: Duration) -> Self {
        let Self::Open { segments, arrivals } = self else {
            return Self::ClosedFor { duration: length };
        };
        Self::Open {
            segments: crate::schedule::repeat_segments(segments, length),
            arrivals: *arrivals,
        }
    }

    /// How long requests are scheduled; `None` where only their number is known.
    pub fn scheduled_duration(&self) -> Option<Duration> {
        match self {
            Self::Open { segments, .. } => Some(segments.iter().map(|s| s.duration).sum()),
            Self::ClosedFor { duration } => Some(*duration),
            Self::ClosedRequests { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    pub method: String,
    pub path: String,
    /// Value of the Host header; `None` is the first target's address.
    pub host: Option<String>,
    /// More headers, in order. A Host or Content-Length here replaces the generated one.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body, base64 in JSON; empty is none.
    #[serde(default, with = "base64_bytes")]
    pub body: Vec<u8>,
}

impl RequestSpec {
    pub fn for_get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            host: None,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Whether it says that its connection ends with the answer. RFC 9112 §9.6: then no other
    /// request may follow on it, whether or not the answer says the same.
    pub(crate) fn closes_connection(&self) -> bool {
        self.headers.iter().any(|(name, value)| {
            let mut options = value.split(',');
            name.eq_ignore_ascii_case("connection")
                && options.any(|option| option.trim().eq_ignore_ascii_case("close"))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpec {
    /// Name the certificate must be for, and SNI.
    pub server_name: String,
    #[serde(default)]
    pub insecure: bool,
    /// PEM file with the accepted roots; `None` is the system's.
    pub roots: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Options {
    pub streams: u32,
}

impl Http2Options {
    pub const MAX_STREAMS: u32 = 1000;
}

/// What counts as a good response. The default accepts any status from 200 to 399.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Expectation {
    /// Accepted statuses; empty is 200 to 399.
    pub status: Vec<u16>,
    pub body_contains: Option<String>,
    pub body_bytes: Option<u64>,
    /// Accepted status codes of gRPC calls. Empty: 0 for gRPC calls, and other requests pass. Otherwise a
    /// request that is no gRPC call fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grpc_status: Vec<u16>,
}

/// When sends happen relative to their intended times. Each wake-up costs CPU; a quantum bundles
/// sends and delays each by up to its length, and so bounds the send lag that pacing itself adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Pacing {
    /// Exact up to 5000 requests a second and thread, a quantum of 100 µs above.
    #[default]
    Auto,
    Exact,
    /// Wake up on a grid, send all that is due.
    Quantum {
        #[serde(rename = "quantum_ns", with = "nanos")]
        quantum: Duration,
    },
    /// Never sleep: takes the whole CPU of each thread.
    Spin,
}

impl LoadPlan {
    pub fn new(targets: Vec<SocketAddr>, request: RequestSpec, model: LoadModel) -> Self {
        Self {
            targets,
            request,
            mix: Vec::new(),
            expect: Expectation::default(),
            tls: None,
            http2: None,
            model,
            warmup: Duration::ZERO,
            connections: 100,
            timeout: Duration::from_secs(10),
            connect_timeout: None,
            read_timeout: None,
            think: None,
            users: None,
            drain: Duration::from_secs(10),
            cpus: Vec::new(),
            seed: 0,
            pacing: Pacing::Auto,
            part: LoadPart::default(),
            start_ns: None,
            by_second: false,
            slo: None,
        }
    }

    /// A phase in which no request is sent: it lasts for its time.
    pub fn timed(duration: Duration) -> Self {
        let model = LoadModel::ClosedFor { duration };
        Self::new(Vec::new(), RequestSpec::for_get("/"), model)
    }

    pub fn sends_requests(&self) -> bool {
        !self.targets.is_empty()
    }

    pub fn after_warm_up(mut self, length: Duration) -> Self {
        if length.is_zero() {
            return self;
        }
        let before = self.model.lead_in(length);
        match (&mut self.model, before) {
            (LoadModel::Open { segments, .. }, LoadModel::Open { segments: lead, .. }) => {
                segments.splice(0..0, lead);
            }
            (LoadModel::ClosedFor { duration }, _) => *duration += length,
            (LoadModel::Open { .. } | LoadModel::ClosedRequests { .. }, _) => {}
        }
        self.warmup = length;
        self
    }

    /// The same load to where each target on the loopback listens: a service may do so at `::1` alone.
    pub(crate) fn into_listening(mut self) -> Self {
        let here = self.targets.iter_mut().filter(|at| at.ip().is_loopback());
        for target in here {
            if let Some(address) = listening_loopback(target.port()) {
                target.set_ip(address);
            }
        }
        self
    }

    pub fn check_plan(&self) -> Result<(), LoadError> {
        let refuse = |field, why: &str| Err(LoadError::plan(field, why));
        if self.targets.is_empty() {
            return refuse("targets", "no address is given");
        }
        if self.connections == 0 {
            return refuse("connections", "at least 1 is needed; write 1 to 10000");
        }
        if (self.connections as usize) < self.cpus.len() {
            return refuse("connections", "fewer connections than CPUs");
        }
        if self.timeout.is_zero() {
            return refuse("timeout", "it must be longer than 0");
        }
        if [self.connect_timeout, self.read_timeout].contains(&Some(Duration::ZERO)) {
            return refuse("timeout", "it must be longer than 0");
        }
        if self.think.is_some_and(|t| t.from > t.to) {
            return refuse("think", "the shortest pause comes first");
        }
        users::check_users(self)?;
        let mut requests = self.weighted_requests().into_iter();
        requests.try_for_each(|(_, spec)| check_request(spec))?;
        let allowed = 1..=Http2Options::MAX_STREAMS;
        if self.http2.is_some_and(|h| !allowed.contains(&h.streams)) {
            return refuse("streams", "it is out of range; write 1 to 1000");
        }
        if self.part.index >= self.part.of {
            return refuse("part", "the first part is 0/n, the last (n-1)/n");
        }
        let is_weight = |w: &WeightedRequest| w.weight > 0.0 && w.weight.is_finite();
        if !self.mix.iter().all(is_weight) {
            return refuse("request", "every weight must be above 0");
        }
        match &self.model {
            LoadModel::Open { segments, .. } => check_segments(segments)?,
            LoadModel::ClosedFor { duration } if duration.is_zero() => {
                return refuse("duration", "it must be longer than 0");
            }
            LoadModel::ClosedRequests { requests: 0 } => {
                return refuse("requests", "at least 1 is needed");
            }
            LoadModel::ClosedFor { .. } | LoadModel::ClosedRequests { .. } => {}
        }
        let length = self.model.scheduled_duration();
        if length.is_some_and(|length| length <= self.warmup) {
            return refuse("warmup", "nothing is left to measure after the warm-up");
        }
        if self.pacing_quantum() >= self.timeout {
            let why = "its grid must be shorter than the timeout, or requests are shed before they may be sent";
            return refuse("pacing", why);
        }
        Ok(())
    }

    pub(crate) fn pacing_quantum(&self) -> Duration {
        let Some(peak) = self.model.peak() else {
            return Duration::ZERO;
        };
        match self.pacing {
            Pacing::Exact | Pacing::Spin => Duration::ZERO,
            Pacing::Quantum { quantum } => quantum.min(Duration::from_secs(1)),
            Pacing::Auto if peak / f64::from(self.stream_count()) > EXACT_RATE => AUTO_QUANTUM,
            Pacing::Auto => Duration::ZERO,
        }
    }

    pub(crate) fn shard_count(&self) -> u32 {
        self.cpus.len().max(1) as u32
    }

    /// Into how many streams the schedule is dealt, one for each thread of every part, where all
    /// parts have as many threads as this one.
    pub(crate) fn stream_count(&self) -> u32 {
        self.shard_count() * self.part.of
    }

    /// The stream of a thread. Together the threads of a part make the slots that leave the
    /// part's number when divided by the number of parts: that holds however many threads it has,
    /// so parts need not have as many as each other.
    pub(crate) fn shard_stream(&self, shard: u32) -> u32 {
        self.part.index + self.part.of * shard
    }

    /// Requests that can be under way at once, at least 1.
    pub fn max_in_flight(&self) -> u32 {
        let streams = self.http2.map_or(1, |http2| http2.streams);
        self.connections.saturating_mul(streams).max(1)
    }

    pub(crate) fn request_spec(&self, kind: usize) -> &RequestSpec {
        self.mix.get(kind).map_or(&self.request, |w| &w.request)
    }

    pub(crate) fn is_first(&self, kind: usize) -> bool {
        self.mix.get(kind).is_some_and(|w| w.is_first)
    }

    pub(crate) fn weighted_requests(&self) -> Vec<(f64, &RequestSpec)> {
        match self.mix.as_slice() {
            [] => vec![(1.0, &self.request)],
            mix => mix.iter().map(|w| (w.weight, &w.request)).collect(),
        }
    }
}

fn check_segments(segments: &[RateSegment]) -> Result<(), LoadError> {
    let plausible = |rate: f64| rate.is_finite() && (0.0..=1e8).contains(&rate);
    let right = segments
        .iter()
        .all(|s| plausible(s.from) && plausible(s.to) && !s.duration.is_zero());
    if !right {
        let why = "rates must lie between 0 and 100 million a second, for longer than 0";
        return Err(LoadError::plan("rate", why));
    }
    if segments.iter().map(RateSegment::due_requests).sum::<f64>() <= 0.0 {
        return Err(LoadError::plan("rate", "no request would ever be sent"));
    }
    Ok(())
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        STANDARD
            .decode(String::deserialize(d)?)
            .map_err(D::Error::custom)
    }
}

/// Refuses text that would end a line of the request.
pub(crate) fn check_request(spec: &RequestSpec) -> Result<(), LoadError> {
    let refuse = |field, text: &str, why: &str| {
        let why = format!("`{}` {why}", text.escape_debug());
        Err(LoadError::plan(field, why))
    };
    let is_token = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    if !is_token(&spec.method) {
        let why = "is not an HTTP method; write GET or POST";
        return refuse("method", &spec.method, why);
    }
    let is_path = spec.path.starts_with('/') || spec.path.starts_with("{pick:/");
    if !is_path && spec.path != "*" {
        return refuse("path", &spec.path, "does not start with a slash");
    }
    if spec.path.bytes().any(|b| b <= b' ' || b == 0x7f) {
        let why = "holds a space or control character; write it as %20";
        return refuse("path", &spec.path, why);
    }
    let host = spec.host.iter().map(|h| ("Host", h.as_str()));
    let headers = spec.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    for (name, value) in host.chain(headers) {
        if !is_token(name) {
            let why = "is not a header name; write 'Accept: text/html'";
            return refuse("header", name, why);
        }
        if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return refuse("header", value, "contains a line break");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_lasts_by_being_played_again_and_cut() {
        let seconds = Duration::from_secs;
        let ramp = RateSegment {
            from: 0.0,
            to: 100.0,
            ..RateSegment::constant_rate(0.0, seconds(10))
        };
        let course = LoadModel::Open {
            segments: vec![RateSegment::constant_rate(50.0, seconds(5)), ramp],
            arrivals: ArrivalPattern::Uniform,
        };
        let LoadModel::Open { segments, .. } = course.repeated_for(seconds(25)) else {
            panic!("it stays open");
        };
        let told: Vec<_> = segments
            .iter()
            .map(|s| (s.from, s.to, s.duration))
            .collect();
        let (flat, whole) = ((50.0, 50.0, seconds(5)), (0.0, 100.0, seconds(10)));
        assert_eq!(told, [flat, whole, flat, (0.0, 50.0, seconds(5))]);
        let closed = LoadModel::ClosedRequests { requests: 7 }.repeated_for(seconds(3));
        assert_eq!(closed.scheduled_duration(), Some(seconds(3)));
    }
}
