//! What `loadline profile` tells people while the profile goes to stdout.
//!
//! Owns the words. Computes nothing that is not in the profile.

use std::ops::Range;

use loadline_analysis::text::join_words;
use loadline_load::har::RecordedRequests;
use loadline_load::profile::{
    ClassAnswers, DetectedFormat, Distribution, LoadProfile, LogObservations,
};
use loadline_report::format::date;

use crate::load_flags::report_bodiless;

pub fn report_format(found: &DetectedFormat) {
    talk!("format: {}", found.name);
    if let Some(unread) = &found.unread {
        talk!(
            "not read in each line: {unread}; if that includes a duration, give the whole format with --format"
        );
    }
    if found.lacks_unit {
        talk!(
            "a number in the lines may be their duration, but has no unit and is not read: --server \
             decides between us (httpd, Jetty, Tomcat from 10.1) and ms (Tomcat up to 9, Undertow)"
        );
    }
}

pub fn report_window(window: &Range<f64>, share: f64) {
    talk!(
        "busiest stretch: {} to {}, {:.1} % of all requests",
        date((window.start * 1e3) as u64),
        date((window.end * 1e3) as u64),
        share * 100.0
    );
}

pub fn report_answers(seen: &[ClassAnswers], left_out: u64) {
    let requests: u64 = seen.iter().map(|seen| seen.requests).sum();
    talk!(
        "{} answers from {requests} requests; {left_out} requests left out, without a status from 200 to \
         599 or of too many kinds",
        seen.len()
    );
    if seen.iter().all(|seen| seen.durations.is_empty()) {
        talk!("the log has no durations: add `latency` to each answer, or it is sent at once");
    }
    talk!(
        "a log has no bodies: each gets the mean size; add body or body-file, and headers, if the \
         application reads them"
    );
}

pub fn report_recording(recorded: &RecordedRequests) {
    let share = |count: u64| 100.0 * count as f64 / recorded.requests as f64;
    let sent = recorded.requests - recorded.left_out.values().sum::<u64>();
    talk!(
        "HAR file: {sent} of {} requests, those to {}; it has no rate: give one with --rate",
        recorded.requests,
        recorded.host
    );
    for (why, count) in &recorded.left_out {
        talk!("left out: {count} {why} ({:.0} %)", share(*count));
    }
    if recorded.with_credentials > 0 {
        talk!(
            "{} requests had a cookie or credentials in a header, which are dropped: give \
             --bearer '{{env:NAME}}', --header or --basic",
            recorded.with_credentials
        );
    }
    if !recorded.references.is_empty() {
        let names = join_words(&recorded.references, ", ");
        talk!("secrets became environment variables, set them before a replay: {names}");
    }
    if recorded.profile.requests.iter().any(|r| r.method != "GET") {
        talk!("it has methods other than GET: a replay changes data");
    }
}

pub fn report_observed(seen: &LogObservations, profile: &LoadProfile) {
    talk!(
        "{} requests, {} lines rejected, {} left out for their method, {} for their path",
        seen.requests,
        seen.rejected_lines,
        seen.left_out_methods,
        seen.left_out_paths
    );
    if let (Some(mean), Some(peak), Some(factor)) =
        (seen.mean_rate, seen.peak_rate, seen.peak_factor)
    {
        talk!(
            "rate: mean {mean:.2}/s, peak {peak:.2}/s, peak factor {factor:.2}, in {} intervals of \
             {} s, {} of them without a request",
            profile.rates.len(),
            profile.interval_seconds,
            seen.empty_intervals
        );
    }
    if seen.left_out_stamps > 0 {
        talk!(
            "{} requests are not in the rates: their timestamps are too far from the others; try \
             a longer --interval",
            seen.left_out_stamps
        );
    }
    let statuses = seen.statuses.iter().map(|(s, n)| format!("{s}: {n}"));
    talk!("statuses: {}", join_words(statuses, ", "));
    if let Some(bytes) = &seen.response_bytes {
        talk!("response bytes: {}", quantiles(bytes, 1.0, 0, ""));
    }
    if let Some(durations) = &seen.duration_ms {
        talk!("logged durations: {}", quantiles(durations, 1.0, 1, " ms"));
        let (all, count) = (seen.requests, durations.count);
        let dropped = all.saturating_sub(count);
        if dropped > 0 {
            talk!("{dropped} of {all} requests have no readable duration");
        }
    }
    think_times(seen);
    not_replayed(seen, profile);
}

fn think_times(seen: &LogObservations) {
    let sessions = &seen.sessions;
    if sessions.begun == 0 {
        talk!("think times: none, because the lines do not name the client");
        return;
    }
    let (count, values) = match &seen.think_time_ms {
        Some(pauses) => (pauses.count, quantiles(pauses, 1e3, 1, " s")),
        None => (0, "none seen".to_owned()),
    };
    talk!(
        "think times: {values}; {count} in {} sessions, {} requests overlap",
        sessions.begun,
        sessions.overlapping
    );
    if sessions.anonymous > 0 {
        talk!("{} requests do not name the client", sessions.anonymous);
    }
    if sessions.cut > 0 {
        talk!(
            "{} sessions were lost, because too many clients were active at once: each \
             hides at most one think time",
            sessions.cut
        );
    }
}

/// What changes data and has no body, by its share of all requests.
fn not_replayed(seen: &LogObservations, profile: &LoadProfile) {
    let share = |requests: u64| requests as f64 / seen.requests as f64 * 100.0;
    if seen.left_out_methods > 0 {
        talk!(
            "not replayed, because no template has their body: {:.1} % of the requests",
            share(seen.left_out_methods)
        );
    }
    let mut classes: Vec<_> = seen.left_out.iter().collect();
    classes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (class, count) in classes {
        talk!("  {:5.1} %  {class}", share(*count));
    }
    report_bodiless(profile);
    for pattern in &seen.unused_templates {
        talk!("the template for `{pattern}` matches no request");
    }
}

fn quantiles(values: &Distribution, unit: f64, digits: usize, name: &str) -> String {
    let at = |value: f64| format!("{:.digits$}{name}", value / unit);
    let [p50, p90, p99, max] = [values.p50, values.p90, values.p99, values.max].map(at);
    format!("p50 {p50}, p90 {p90}, p99 {p99}, max {max}")
}
