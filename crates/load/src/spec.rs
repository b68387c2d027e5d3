//! A load as people write it: the one vocabulary of flags, experiment files and profiles.
//!
//! Owns the names, the defaults and what contradicts what. A [`LoadSpec`] holds references (files,
//! environment variables); [`LoadSpec::to_plan`] reads them and makes the [`LoadPlan`] that is run. It is
//! stored, a plan never is.

mod command;
mod files;
mod grpc;
mod mix;
mod secret;
pub mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use secret::{authorization, read_credential};
pub(crate) use secret::{is_credential_header, is_secret_name};

use crate::error::LoadError;
use crate::plan::{
    Expectation, Http2Options, LoadModel, LoadPlan, Pacing, ThinkTime, TlsSpec, Users,
};
use crate::profile::{LoadProfile, MixRequest};
use crate::schedule::{ArrivalPattern, RateSegment};
use crate::target::LoadTarget;
use text::{GrpcCode, PeakLoad, PositiveFactor, PositiveTime, RateShape, TimeOrNone, as_text};

pub const CONNECTIONS: u32 = 20;
pub const TIMEOUT: Duration = Duration::from_secs(5);
pub const WARM_UP: Duration = Duration::from_secs(5);
pub const DURATION: Duration = Duration::from_secs(15);
/// More connections are a typing error.
const CONNECTIONS_MAX: u32 = 10_000;

/// The load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoadSpec {
    /// The request: `http://localhost:8080/owners?lastName=Da`; if `request` entries exist the path
    /// is not used. `https` needs `cacert` or `insecure`.
    pub url: Option<LoadTarget>,
    /// Another program makes the load, as `["vegeta", "attack", "-rate={rate}", ...]`: in the
    /// application's network, to the port of `url`, on the generator's CPUs. loadline times each
    /// HTTP exchange in front of the service. `{url} {host} {port} {rate} {duration_s}
    /// {results}` are filled in, and are also in the environment as `LOADLINE_URL` and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A command that makes work which is not HTTP, as filling a queue, for an application that its
    /// metrics judge: from ready to the end of the judged part, in its network, on the generator's CPUs.
    /// `{duration_s}` and `{results}` are filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drive: Vec<String>,
    /// A command that restores the backlog of such an application before each of its starts, as the
    /// offsets of a consumer group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backlog: Vec<String>,
    /// Request method; default GET.
    pub method: Option<String>,
    /// Headers of every request: `{ Accept = "text/html" }`. `{env:NAME}` in a value is the value
    /// of an environment variable, read when a trial begins and never stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// User name and password (HTTP Basic): `{env:LOGIN}` with the value NAME:PASSWORD, or `@FILE`
    /// that holds them.
    pub basic: Option<String>,
    /// Token (HTTP Bearer): `{env:TOKEN}`, or `@FILE` that holds it.
    pub bearer: Option<String>,
    /// Body of the request; may hold variables (`{seq}`, `{rand:1:100}`, `{uuid}`,
    /// `{csv:FILE:COLUMN}`, `{pick:A|B}`, `{env:NAME}`), as paths and header values may.
    pub body: Option<String>,
    /// File with the body, relative to this file.
    pub body_file: Option<PathBuf>,
    /// The requests are gRPC calls: paths are methods (`/pkg.Service/Method`), bodies messages as JSON.
    /// A `.proto` file or a descriptor set (`protoc --include_imports -o`), relative to this file; or a
    /// running instance, `http://localhost:9090`, which is asked by reflection.
    pub proto: Option<PathBuf>,
    /// Open model: requests a second, `300/s`; a ramp `100/s..1000/s`; steps `100/s,200/s`. The
    /// load is made by exactly one of `rate`, `closed`, `requests` alone, and the rates of a
    /// profile.
    pub rate: Option<RateShape>,
    /// Behind the judged part a burst, reported apart and judged by objectives such as
    /// `peak p99<500ms`: `200/s`, or `2x` for twice the highest rate; for 10 s, or as `2x:30s` says.
    /// Default: none.
    pub peak: Option<PeakLoad>,
    /// This many requests instead of a duration: at the rate if there is one, else as fast as
    /// answers come.
    pub requests: Option<u64>,
    /// Closed model: each connection sends when its last answer came.
    pub closed: Option<bool>,
    /// Spread requests as independent users would (Poisson) instead of evenly; default false.
    pub poisson: Option<bool>,
    /// Closed model, or with `session`: pause of each connection before its next request, `100ms` or
    /// `50ms..150ms`.
    #[serde(default, with = "as_text::opt")]
    #[schemars(with = "Option<String>")]
    pub think: Option<ThinkTime>,
    /// Sessions with this mean number of requests: each connection is a user, who keeps the cookies
    /// that the server sets, pauses for `think` between requests, and leaves; a new user comes with
    /// a new connection. An open model keeps its rate.
    pub session: Option<f64>,
    /// Load profile, as `loadline profile` writes it: its requests, and its rates unless another
    /// is given. A file, relative to this one, or its content as a table.
    pub profile: Option<ProfileSource>,
    /// Multiplies the rates of the profile; default 1.
    pub scale: Option<PositiveFactor>,
    /// Replays the profile faster by this factor, at the same rates; default 1.
    pub speed: Option<PositiveFactor>,
    /// Connections kept open; default 20. With sessions the most users at once; default: half as many
    /// again as the highest rate times a pause and a second.
    pub connections: Option<u32>,
    /// HTTP/2: chosen in the TLS handshake of an https URL, with prior knowledge (h2c) of others;
    /// default false.
    pub http2: Option<bool>,
    /// HTTP/2 with this many concurrent requests on each connection; default 1.
    #[serde(alias = "http2-streams")]
    pub streams: Option<u32>,
    /// Load before the judged part; recorded, not judged: `5s` (default), `0s` for none.
    pub warm_up: Option<TimeOrNone>,
    /// Length of the judged part: the whole profile, else `15s` (default) or as long as the SLO's
    /// percentiles need at this rate, at most `60s`.
    #[serde(alias = "measure")]
    pub duration: Option<PositiveTime>,
    /// A request without an answer after this has failed: `5s` (default).
    pub timeout: Option<PositiveTime>,
    /// A connection that does not stand after this has failed, TLS included.
    pub connect_timeout: Option<PositiveTime>,
    /// A connection that brings no byte of an answer for this long has failed.
    pub read_timeout: Option<PositiveTime>,
    /// When sends happen: `auto` (default), `exact`, `spin`, or bundled on a grid of this length,
    /// `1ms`.
    #[serde(default, with = "as_text::opt")]
    #[schemars(with = "Option<String>")]
    pub pacing: Option<Pacing>,
    /// Accept any certificate; default false.
    pub insecure: Option<bool>,
    /// PEM file with the roots that certificates are checked against, relative to this file.
    pub cacert: Option<PathBuf>,
    /// Statuses that count as a good answer; default: 200 to 399.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_status: Vec<u16>,
    /// Text that the body of a good answer contains.
    pub expect_body: Option<String>,
    /// Size in bytes of the body of a good answer.
    pub expect_bytes: Option<u64>,
    /// How a good gRPC call ends, by name or number; default: `OK`. With it, an answer that is no call
    /// has failed. Needs `http2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_grpc_status: Vec<GrpcCode>,
    /// Requests to choose from, at random by their weights, as in a profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<MixRequest>,
}

/// A load profile: the file, or what it held.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileSource {
    /// Where it is.
    File(PathBuf),
    /// What it says.
    Inline(Box<LoadProfile>),
}

// By hand, because an untagged enum hides which key of the table is wrong.
impl<'de> Deserialize<'de> for ProfileSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ProfileSourceVisitor;
        impl<'de> Visitor<'de> for ProfileSourceVisitor {
            type Value = ProfileSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a profile, or its content as a table")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<ProfileSource, E> {
                Ok(ProfileSource::File(PathBuf::from(path)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ProfileSource, A::Error> {
                let profile = LoadProfile::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ProfileSource::Inline(Box::new(profile)))
            }
        }
        deserializer.deserialize_any(ProfileSourceVisitor)
    }
}

impl LoadSpec {
    pub fn check_spec(&self) -> Result<(), LoadError> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        if self.cacert.is_some() && self.url.as_ref().is_some_and(|url| !url.is_tls) {
            let why =
                "the URL is http, where no certificate is checked; write https://, or leave it out";
            return Err(refuse_key("cacert", why));
        }
        let may_call = self.http2().is_some() || !self.command.is_empty();
        if !self.expect_grpc_status.is_empty() && !may_call {
            let why = "gRPC is spoken over HTTP/2 only; add http2 = true (--http2)";
            return Err(refuse_key("expect-grpc-status", why));
        }
        self.check_command()?;
        self.check_mix()?;
        let judged = self.judged_model()?;
        let peak = self.peak_model(&judged)?;
        [Some(judged), peak]
            .into_iter()
            .flatten()
            .try_for_each(|model| self.draft(vec![nowhere], model)?.check_plan())
    }

    /// The burst behind a judged load of this model; `None` without one.
    pub fn peak_model(&self, judged: &LoadModel) -> Result<Option<LoadModel>, LoadError> {
        let burst = self.peak.map(|peak| peak.model_after(judged));
        burst.transpose().map_err(|why| refuse_key("peak", &why))
    }

    /// Refuses what a load that is stored may not hold: a credential itself.
    pub fn refuse_literal_credentials(&self) -> Result<(), LoadError> {
        secret::refuse_literals(self)
    }

    /// The plan of the judged part: reads the named files and variables, and keeps their contents
    /// private. The model excludes the warm-up. Errors: [`LoadError::Plan`] names the key of a
    /// missing file or variable.
    pub fn to_plan(&self, targets: Vec<SocketAddr>) -> Result<LoadPlan, LoadError> {
        self.plan_with_model(targets, self.judged_model()?)
    }

    pub fn plan_with_model(
        &self,
        targets: Vec<SocketAddr>,
        model: LoadModel,
    ) -> Result<LoadPlan, LoadError> {
        let mut plan = self.draft(targets, model)?;
        self.fill_plan(&mut plan)?;
        plan.check_plan()?;
        Ok(plan)
    }

    pub fn judged_model(&self) -> Result<LoadModel, LoadError> {
        let duration = self.duration.map_or(DURATION, |time| time.0);
        let curve = self.replayed_profile();
        if !self.command.is_empty() && self.rate.is_none() {
            // When its requests leave is the command's to say.
            return Ok(LoadModel::ClosedFor { duration });
        }
        if self.rate.is_some() || self.closed == Some(true) || curve.is_none() {
            self.refuse_factors()?;
        }
        match (&self.rate, self.closed == Some(true), self.requests) {
            (Some(_), true, _) => {
                Err(refuse_key("closed", "a rate is given too; leave one out"))
            }
            (Some(shape), false, requests) => self.open_model(match requests {
                None => shape.segments_over(duration),
                Some(requests) => shape.segments_for_requests(requests).ok_or_else(|| {
                    refuse_key(
                        "requests",
                        "this number takes more than a year at this rate; use fewer, or a higher rate (--rate)",
                    )
                })?,
            }),
            (None, true, None) => self.closed_model(LoadModel::ClosedFor { duration }),
            (None, true, Some(requests)) => self.closed_model(LoadModel::ClosedRequests { requests }),
            (None, false, requests) => match (curve, requests) {
                (Some(profile), None) => self.open_model(self.replayed_segments(profile)?),
                (Some(_), Some(_)) => Err(refuse_key(
                    "requests",
                    "a profile's own rates set how many; cut them off with duration (--duration), \
                     or give a rate (--rate) or closed",
                )),
                (None, Some(requests)) => self.closed_model(LoadModel::ClosedRequests { requests }),
                (None, None) => Err(refuse_key(
                    "rate",
                    "the load is not clear: choose rate, closed, requests or the rates of a \
                     profile; rate = \"300/s\" (--rate 300/s) is load as in production, closed \
                     (--closed) as fast as possible, requests (--requests 1000) a fixed number",
                )),
            },
        }
    }

    fn open_model(&self, segments: Vec<RateSegment>) -> Result<LoadModel, LoadError> {
        if self.poisson == Some(true) && self.requests.is_some() {
            let why = "a random schedule has no fixed number of requests; give a duration instead";
            return Err(refuse_key("poisson", why));
        }
        Ok(LoadModel::Open {
            segments,
            arrivals: self.arrivals(),
        })
    }

    fn closed_model(&self, model: LoadModel) -> Result<LoadModel, LoadError> {
        match self.poisson {
            Some(true) => Err(refuse_key(
                "poisson",
                "in a closed model answers decide when requests are sent; give a rate, or leave it out",
            )),
            _ => Ok(model),
        }
    }

    pub fn arrivals(&self) -> ArrivalPattern {
        match self.poisson {
            Some(true) => ArrivalPattern::Poisson,
            _ => ArrivalPattern::Uniform,
        }
    }

    fn replayed_segments(&self, profile: &LoadProfile) -> Result<Vec<RateSegment>, LoadError> {
        let factor = |factor: Option<PositiveFactor>| factor.map_or(1.0, |f| f.0);
        let length = self.duration.map(|time| time.0);
        profile.rate_segments(factor(self.scale), factor(self.speed), length)
    }

    fn refuse_factors(&self) -> Result<(), LoadError> {
        let mut factors = [("scale", self.scale), ("speed", self.speed)].into_iter();
        let Some((field, _)) = factors.find(|(_, factor)| factor.is_some()) else {
            return Ok(());
        };
        let why = "it is for the rates of a profile, but no rates are replayed; name a profile with \
                   rates (--profile FILE) and give neither rate nor closed";
        Err(refuse_key(field, why))
    }

    pub fn loaded_profile(&self) -> Option<&LoadProfile> {
        match &self.profile {
            Some(ProfileSource::Inline(profile)) => Some(profile),
            Some(ProfileSource::File(_)) | None => None,
        }
    }

    pub fn replayed_profile(&self) -> Option<&LoadProfile> {
        let is_other = self.rate.is_some() || self.closed == Some(true);
        let profile = self.loaded_profile().filter(|_| !is_other);
        profile.filter(|profile| !profile.rates.is_empty())
    }

    pub fn port(&self) -> u16 {
        self.url.as_ref().map_or(80, |url| url.port)
    }

    /// Connections kept open under this load. As many users are there at once as come in the time that
    /// one needs for a request (Little): a pause and, at most, a second.
    pub fn connection_count(&self, model: &LoadModel) -> u32 {
        let users = || {
            let (_, rate) = (self.session_requests()?, model.peak()?);
            let think = self
                .think_time()
                .map_or(0.0, |t| (t.from + t.to).as_secs_f64() / 2.0);
            let users = (1.5 * rate * (think + 1.0)).ceil() as u32;
            Some(users.max(CONNECTIONS))
        };
        self.connections.or_else(users).unwrap_or(CONNECTIONS)
    }

    pub fn session_requests(&self) -> Option<f64> {
        self.session.or_else(|| self.loaded_profile()?.session)
    }

    fn think_time(&self) -> Option<ThinkTime> {
        self.think.or_else(|| self.loaded_profile()?.think)
    }

    pub fn warm_up(&self) -> Duration {
        self.warm_up.map_or(WARM_UP, |time| time.0)
    }

    pub fn http2(&self) -> Option<Http2Options> {
        let is_spoken = self.http2 == Some(true) || self.streams.is_some() || self.proto.is_some();
        is_spoken.then(|| Http2Options {
            streams: self.streams.unwrap_or(1),
        })
    }

    fn draft(&self, targets: Vec<SocketAddr>, model: LoadModel) -> Result<LoadPlan, LoadError> {
        let connections = self.connection_count(&model);
        if connections > CONNECTIONS_MAX {
            return Err(match self.connections {
                Some(_) => refuse_key("connections", "it is out of range; write 1 to 10000"),
                None => refuse_key(
                    "session",
                    &format!(
                        "users who pause that long need {connections} connections at this rate, \
                         but at most 10000 are possible; shorten the pause (--think), or limit \
                         the users (--connections), which cuts pauses short"
                    ),
                ),
            });
        }
        let timeout = self.timeout.map_or(TIMEOUT, |time| time.0);
        let request = self.url_request()?;
        let mix = self.weighted_mix(&request);
        Ok(LoadPlan {
            mix,
            expect: Expectation {
                status: self.expect_status.clone(),
                body_contains: self.expect_body.clone(),
                body_bytes: self.expect_bytes,
                grpc_status: self.expect_grpc_status.iter().map(|code| code.0).collect(),
            },
            tls: self.url.as_ref().and_then(|url| self.tls_to(url)),
            http2: self.http2(),
            connections,
            timeout,
            connect_timeout: self.connect_timeout.map(|time| time.0),
            read_timeout: self.read_timeout.map(|time| time.0),
            think: self.think_time(),
            users: self.session_requests().map(|requests| Users {
                requests,
                present: Vec::new(),
            }),
            drain: timeout,
            pacing: self.pacing.unwrap_or_default(),
            ..LoadPlan::new(targets, request, model)
        })
    }

    /// How a connection to this URL is encrypted; `None` for http.
    pub fn tls_to(&self, url: &LoadTarget) -> Option<TlsSpec> {
        url.is_tls.then(|| TlsSpec {
            server_name: url.host.clone(),
            insecure: self.insecure == Some(true),
            roots: self.cacert.clone(),
        })
    }
}

fn refuse_key(field: &'static str, why: &str) -> LoadError {
    LoadError::plan(field, why)
}

pub(crate) const LARGEST_FILE: u64 = 64 << 20;

fn read(path: &Path, field: &'static str) -> Result<Vec<u8>, LoadError> {
    read_bounded(path).map_err(|error| {
        let path = path.display();
        let why =
            format!("{path} cannot be read: {error}; a path is relative to the file that names it");
        LoadError::plan(field, why)
    })
}

pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)? as u64 > LARGEST_FILE {
        Err(io::Error::other("it is larger than 64 MiB"))
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
