//! The load as flags: the keys of `[load]` in an experiment file, under the same names.
//!
//! Owns how flags are laid over a file. What a value means, which go together and the defaults are
//! those of [`loadline_load::spec`].

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_load::profile::LoadProfile;
use loadline_load::spec::text::{GrpcCode, PositiveFactor, PositiveTime, RateShape, TimeOrNone};
use loadline_load::{LoadSpec, Pacing, ProfileSource, ThinkTime};

const HEADING: &str = "Load";

/// The load.
#[derive(Args, Debug, Default, Clone)]
pub struct LoadFlags {
    /// Open model: send requests at this rate whether or not answers come: 300/s; a ramp
    /// 100/s..1000/s; steps 100/s,200/s
    #[arg(long, help_heading = HEADING)]
    pub rate: Option<RateShape>,
    /// Closed model: each connection sends its next request once the last answer has come
    #[arg(long, help_heading = HEADING, conflicts_with = "rate")]
    pub closed: bool,
    /// Number of requests to send, instead of a duration; without a rate the model is closed
    #[arg(long, short = 'n', value_name = "N", help_heading = HEADING,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Spread requests as independent users would (Poisson) instead of evenly
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["closed", "requests"])]
    pub poisson: bool,
    /// Closed model, or with --session: pause of a connection between an answer and its next
    /// request, such as 100ms, or 50ms..150ms for pauses spread evenly in between
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub think: Option<ThinkTime>,
    /// Sessions with this mean number of requests: each connection is a user who keeps the cookies
    /// that the server sets, pauses for --think between requests, and leaves; the next user opens a
    /// new connection. A given rate is kept
    #[arg(long, value_name = "REQUESTS", help_heading = HEADING, conflicts_with_all = ["http2", "streams"])]
    pub session: Option<f64>,
    /// Requests with their weights, and the rate over time unless another is given (TOML, as
    /// written by `loadline profile`)
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub profile: Option<PathBuf>,
    /// Multiply the rates of the profile by this factor
    #[arg(long, value_name = "FACTOR", help_heading = HEADING,
          conflicts_with_all = ["rate", "closed"])]
    pub scale: Option<PositiveFactor>,
    /// Replay the profile faster by this factor, at the same rates
    #[arg(long, value_name = "FACTOR", help_heading = HEADING,
          conflicts_with_all = ["rate", "closed"])]
    pub speed: Option<PositiveFactor>,
    /// Load before the judged part, recorded separately [default: 5s; none for `load`]
    #[arg(long, alias = "warmup", value_name = "TIME", help_heading = HEADING)]
    pub warm_up: Option<TimeOrNone>,
    /// Length of the judged part, such as 5m [default: 15s, or up to 60s to have 10 requests beyond
    /// a percentile of the SLO; 30s for `load`, 10s for each trial of its search; the whole length
    /// of a profile]
    #[arg(long, short, alias = "measure", value_name = "TIME", help_heading = HEADING)]
    pub duration: Option<PositiveTime>,
    /// Connections to keep open [default: 20; with sessions, as many as users need]
    #[arg(long, short, value_name = "N", help_heading = HEADING)]
    pub connections: Option<u32>,
    /// Use HTTP/2: chosen in the TLS handshake for https targets, with prior knowledge (h2c) for
    /// others
    #[arg(long, help_heading = HEADING)]
    pub http2: bool,
    /// Use HTTP/2 with this many concurrent requests on each connection [default: 1]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub streams: Option<u32>,
    /// HTTP method [default: GET; POST with a body]
    #[arg(long, short = 'X', help_heading = HEADING)]
    pub method: Option<String>,
    /// A header, such as 'Accept: application/json'; {env:NAME} in it is replaced by that
    /// environment variable. Repeat the flag for more
    #[arg(long, short = 'H', value_parser = parse_header, help_heading = HEADING)]
    pub header: Vec<(String, String)>,
    /// User name and password (HTTP Basic): {env:NAME} or @FILE containing NAME:PASSWORD; `load`
    /// also takes them directly
    #[arg(long, value_name = "USER", conflicts_with = "bearer", help_heading = HEADING)]
    pub basic: Option<String>,
    /// Token (HTTP Bearer): {env:NAME} or @FILE containing it; `load` also takes it directly
    #[arg(long, value_name = "TOKEN", help_heading = HEADING)]
    pub bearer: Option<String>,
    /// Body of the request
    #[arg(long, conflicts_with = "body_file", help_heading = HEADING)]
    pub body: Option<String>,
    /// File with the body of the request
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub body_file: Option<PathBuf>,
    /// Send gRPC calls: the URL's path is the method (/pkg.Service/Method), the body is its message
    /// as JSON, encoded once by this .proto file or descriptor set, or by the reflection of a
    /// running instance, e.g. http://localhost:9090
    #[arg(long, value_name = "FILE|URL", help_heading = HEADING)]
    pub proto: Option<PathBuf>,
    /// Status of a good answer; repeat the flag for more [default: 200 to 399]
    #[arg(long, value_name = "STATUS", value_parser = parse_status, help_heading = HEADING)]
    pub expect_status: Vec<u16>,
    /// Text that the body of a good answer contains
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    pub expect_body: Option<String>,
    /// Size in bytes of the body of a good answer
    #[arg(long, value_name = "BYTES", help_heading = HEADING)]
    pub expect_bytes: Option<u64>,
    /// Status of a good gRPC call, e.g. NOT_FOUND or 5; repeat the flag for more [default: OK for a
    /// gRPC call]. Needs --http2
    #[arg(long, value_name = "STATUS", help_heading = HEADING)]
    pub expect_grpc_status: Vec<GrpcCode>,
    /// A request fails if it has no answer within this time [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub timeout: Option<PositiveTime>,
    /// A connection fails if it is not established within this time, TLS included
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub connect_timeout: Option<PositiveTime>,
    /// A connection fails if no byte of an answer arrives for this long
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub read_timeout: Option<PositiveTime>,
    /// When to send: on a grid of this length (1ms costs least CPU), `exact` or `spin` [default:
    /// auto]
    #[arg(long, help_heading = HEADING)]
    pub pacing: Option<Pacing>,
    /// Accept any certificate of an https target
    #[arg(long, help_heading = HEADING)]
    pub insecure: bool,
    /// PEM file with the root certificates to check an https target against
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub cacert: Option<PathBuf>,
}

impl LoadFlags {
    /// Lays the flags over a load. The model is one setting: a flag for it removes all earlier
    /// model settings.
    pub fn overlay(&self, load: &mut LoadSpec) {
        let says_how = self.rate.is_some() || self.closed || self.requests.is_some();
        if says_how || self.profile.is_some() {
            load.rate.clone_from(&self.rate);
            load.closed = self.closed.then_some(true);
            load.requests = self.requests;
        }
        if let Some(path) = &self.profile {
            load.profile = Some(ProfileSource::File(path.clone()));
            load.request.clear();
        }
        if self.body.is_some() || self.body_file.is_some() {
            load.body.clone_from(&self.body);
            load.body_file.clone_from(&self.body_file);
        }
        // As curl does.
        if (self.body.is_some() || self.body_file.is_some()) && load.method.is_none() {
            load.method = Some("POST".to_owned());
        }
        let file = self.body.as_ref().and_then(|body| body.strip_prefix('@'));
        if let Some(file) = file.filter(|file| Path::new(file).is_file()) {
            say!("warning: --body: @{file} is sent as it is; for its text: --body-file {file}");
        }
        let unusual = |method: &&String| !METHODS.contains(&method.as_str());
        if let Some(method) = self.method.as_ref().filter(unusual) {
            let usual = METHODS.join(", ");
            say!("warning: {method} is not a usual HTTP method ({usual})");
        }
        if self.basic.is_some() || self.bearer.is_some() {
            load.basic.clone_from(&self.basic);
            load.bearer.clone_from(&self.bearer);
        }
        for (name, value) in &self.header {
            let headers = &mut load.headers;
            headers.retain(|old, _| !old.eq_ignore_ascii_case(name));
            headers.insert(name.clone(), value.clone());
        }
        if !self.expect_status.is_empty() {
            load.expect_status.clone_from(&self.expect_status);
        }
        if !self.expect_grpc_status.is_empty() {
            load.expect_grpc_status.clone_from(&self.expect_grpc_status);
        }
        switch_on(&mut load.poisson, self.poisson);
        switch_on(&mut load.http2, self.http2);
        switch_on(&mut load.insecure, self.insecure);
        set_if_given(&mut load.think, &self.think);
        set_if_given(&mut load.session, &self.session);
        set_if_given(&mut load.scale, &self.scale);
        set_if_given(&mut load.speed, &self.speed);
        set_if_given(&mut load.warm_up, &self.warm_up);
        set_if_given(&mut load.duration, &self.duration);
        set_if_given(&mut load.connections, &self.connections);
        set_if_given(&mut load.streams, &self.streams);
        set_if_given(&mut load.method, &self.method);
        set_if_given(&mut load.proto, &self.proto);
        set_if_given(&mut load.expect_body, &self.expect_body);
        set_if_given(&mut load.expect_bytes, &self.expect_bytes);
        set_if_given(&mut load.timeout, &self.timeout);
        set_if_given(&mut load.connect_timeout, &self.connect_timeout);
        set_if_given(&mut load.read_timeout, &self.read_timeout);
        set_if_given(&mut load.pacing, &self.pacing);
        set_if_given(&mut load.cacert, &self.cacert);
    }
}

pub fn set_if_given<T: Clone>(key: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        key.clone_from(flag);
    }
}

fn switch_on(key: &mut Option<bool>, flag: bool) {
    if flag {
        *key = Some(true);
    }
}

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
];

fn parse_status(text: &str) -> Result<u16, String> {
    let status = text.parse().ok();
    let status = status.filter(|status| (100..600).contains(status));
    status.ok_or_else(|| {
        "it is not a status; repeat the flag: --expect-status 200 --expect-status 204 (without the flag 200 to 399 are good)".to_owned()
    })
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let hint = "there is no colon; write for example 'Accept: text/html'";
    let (name, value) = text.split_once(':').ok_or(hint)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub fn report_bodiless(profile: &LoadProfile) {
    let classes = profile.bodiless_requests();
    if classes.is_empty() {
        return;
    }
    let all: f64 = classes.iter().map(|(_, share)| share).sum();
    let all = all * 100.0;
    talk!("sent without a body, although their method takes one: {all:.1} % of the mix");
    for (class, share) in classes {
        talk!("  {:5.1} %  {class}", share * 100.0);
    }
}
