//! The profile as JSON: what the TOML file says, in the names of the other forms.

use std::collections::BTreeMap;

use loadline_load::profile::{
    Distribution, LoadProfile, LogObservations, MixRequest, UserSessionCounts,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A load profile from access logs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProfileDocument {
    /// Version of this form.
    schema: u32,
    /// The logs.
    origin: String,
    /// Length of each interval of the rates.
    interval_seconds: f64,
    /// Begin of the first interval, seconds since 1970 (UTC); null when there are no rates.
    begin_unix_seconds: Option<f64>,
    /// Requests a second in each interval, from the first to the last.
    rates: Vec<f64>,
    /// Requests of a session on average, with `--sessions`.
    session: Option<f64>,
    /// Pause of each of its users before the next request, `10s` or `0s..20s`.
    think: Option<String>,
    /// Requests a second over all intervals; null when there are no rates.
    mean_rate: Option<f64>,
    /// Requests a second in the busiest interval; null when there are no rates.
    peak_rate: Option<f64>,
    /// Peak rate over mean rate; null when there are no rates.
    peak_factor: Option<f64>,
    /// Intervals without a request.
    empty_intervals: u64,
    /// Lines of the format: each is a request.
    requests: u64,
    /// Lines that are not of the format.
    rejected_lines: u64,
    /// Requests left out of rates and mix for their method, because no template has their body.
    left_out_methods: u64,
    /// Those by class, the most frequent 20.
    left_out: BTreeMap<String, u64>,
    /// Patterns of templates that match no request.
    unused_templates: Vec<String>,
    /// Requests left out of the mix: their path cannot be sent, or there are too many classes.
    left_out_paths: u64,
    /// Requests left out of the rates: their stamps are too far from the others.
    left_out_stamps: u64,
    /// Requests by status.
    statuses: BTreeMap<String, u64>,
    /// Sum of the logged response bytes.
    total_response_bytes: u64,
    /// Response bytes as logged; null when the format has none.
    response_bytes: Option<Distribution>,
    /// Logged durations; null when the format has none.
    duration_ms: Option<Distribution>,
    /// From the end of a client's requests so far to the begin of its next one, within a session.
    /// Without logged durations from stamp to stamp, response time included.
    think_time_ms: Option<Distribution>,
    /// The sessions that the think times lie in.
    sessions: UserSessionCounts,
    /// The requests that are replayed, the most frequent first.
    mix: Vec<RequestClass>,
}

/// Requests that do the same.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestClass {
    /// Method and path, identifiers replaced.
    name: String,
    /// How many requests there were.
    weight: f64,
    /// HTTP method.
    method: String,
    /// The path that is sent; `{pick:..}` is one of several samples.
    path: String,
}

pub(super) fn profile_document(profile: LoadProfile) -> ProfileDocument {
    let seen: LogObservations = profile.observed.unwrap_or_default();
    ProfileDocument {
        schema: profile.schema,
        origin: profile.origin,
        interval_seconds: profile.interval_seconds,
        begin_unix_seconds: seen.begin_unix_seconds,
        rates: profile.rates,
        session: profile.session,
        think: profile.think.map(|think| think.to_string()),
        mean_rate: seen.mean_rate,
        peak_rate: seen.peak_rate,
        peak_factor: seen.peak_factor,
        empty_intervals: seen.empty_intervals,
        requests: seen.requests,
        rejected_lines: seen.rejected_lines,
        left_out_methods: seen.left_out_methods,
        left_out: seen.left_out,
        unused_templates: seen.unused_templates,
        left_out_paths: seen.left_out_paths,
        left_out_stamps: seen.left_out_stamps,
        statuses: seen.statuses,
        total_response_bytes: seen.total_response_bytes,
        response_bytes: seen.response_bytes,
        duration_ms: seen.duration_ms,
        think_time_ms: seen.think_time_ms,
        sessions: seen.sessions,
        mix: profile.requests.into_iter().map(class).collect(),
    }
}

fn class(request: MixRequest) -> RequestClass {
    RequestClass {
        name: request.name.unwrap_or_default(),
        weight: request.weight,
        method: request.method,
        path: request.path,
    }
}
