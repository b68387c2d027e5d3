//! The end of a load run for people and programs.
//!
//! Owns the stored form ([`LoadSummary`], JSON, units in the field names) and its text. Percentiles
//! run over every scheduled request: a failed or unfinished one counts as infinitely slow, which is
//! `null` in JSON and `failed` in text.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::health::Health;
use crate::histogram::{self, Histogram};
use crate::outcome::{LoadTotals, RequestTotals};
use crate::plan::{Http2Options, LoadModel, LoadPlan};
use crate::run::LoadOutcome;
use crate::schedule::ArrivalPattern;
use crate::warmup::WarmUp;

/// Version of the stored form; it grows when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// A load run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSummary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where requests went.
    pub url: String,
    /// The model in words: `open model, uniform arrivals` or `closed model`, and the protocol
    /// where it is HTTP/2.
    pub model: String,
    /// Connections kept open.
    pub connections: u32,
    /// Threads of the generator.
    pub threads: u32,
    /// Length of the measured part.
    pub duration_seconds: f64,
    /// Requests scheduled: the sum of the next three.
    pub requests: u64,
    /// Good responses.
    pub ok: u64,
    /// Failed requests, shed ones included.
    pub errors: u64,
    /// Requests without an outcome at the end of the drain.
    pub unfinished: u64,
    /// Responses that redirect, good or not; none is followed.
    #[serde(default)]
    pub redirects: u64,
    /// Sessions that began, with users.
    #[serde(default)]
    pub sessions: u64,
    /// Pauses of users that were cut short for want of connections.
    #[serde(default)]
    pub cut_pauses: u64,
    /// Failed requests by kind.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Requests a second that were scheduled; `None` in a closed model.
    pub offered_rate: Option<f64>,
    /// Good responses a second that came in the measured part; those of the drain are left out.
    pub achieved_rate: f64,
    /// Body bytes a second that came in the measured part.
    pub body_bytes_per_second: f64,
    /// From the intended send time.
    pub latency_us: Percentiles,
    /// From the actual send time.
    pub service_time_us: Percentiles,
    /// The generator's own delay; `None` in a closed model.
    pub send_lag_us: Option<Percentiles>,
    /// The requests of the mix, in its order; empty without a mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestSummary>,
    /// CPU time of the generator.
    pub cpu_seconds: f64,
    /// CPU time of the generator by request that was answered; `None` without any.
    pub cpu_us_per_request: Option<f64>,
    /// Share of requests that the generator sent later than ten times the send lag it allows
    /// itself, in [0, 1]; `None` in a closed model.
    #[serde(default)]
    pub missed_share: Option<f64>,
    /// Time that the generator's threads were runnable but had no CPU, summed.
    #[serde(default)]
    pub run_delay_seconds: f64,
    /// Time that the generator's own cgroup and those above it were throttled.
    #[serde(default)]
    pub throttled_seconds: f64,
    /// Requests of the warm-up, which the other fields leave out.
    pub warmup_requests: u64,
    /// How the target warmed up; `None` where the load says nothing about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// `None`, or why the generator was itself the bottleneck.
    pub saturated: Option<String>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// One request of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestSummary {
    /// Its name.
    pub name: String,
    /// Good responses.
    pub ok: u64,
    /// Failed requests.
    pub errors: u64,
    /// Requests that were sent and had no outcome at the end of the drain.
    #[serde(default)]
    pub unfinished: u64,
    /// From the intended send time.
    pub latency_us: Percentiles,
}

impl RequestSummary {
    fn new(name: &str, totals: &RequestTotals) -> Self {
        let failed = totals.failed + totals.unfinished;
        Self {
            name: name.to_owned(),
            ok: totals.ok,
            errors: totals.failed,
            unfinished: totals.unfinished,
            latency_us: Percentiles::new(&totals.latency, failed),
        }
    }

    fn format_time(&self, micros: Option<f64>) -> String {
        format_micros_if_any(micros, self.ok + self.errors + self.unfinished)
    }
}

/// Percentiles in µs; `None` is infinite: the request at that rank failed, or there was none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// 99.99th percentile.
    pub p99_99: Option<f64>,
    /// The largest among good responses; `None` without any.
    pub max: Option<f64>,
    /// Their mean.
    pub mean: Option<f64>,
}

impl Percentiles {
    fn new(histogram: &Histogram, failed: u64) -> Self {
        let micros = |d: Duration| d.as_nanos() as f64 / 1e3;
        let at = |q| histogram::quantile_with_failures(histogram, failed, q).map(micros);
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: (!histogram.is_empty()).then(|| histogram.max() as f64 / 1e3),
            mean: (!histogram.is_empty()).then(|| histogram.mean() / 1e3),
        }
    }

    fn percentile_rows(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
            ("p99.99", self.p99_99),
            ("max", self.max),
        ]
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SummarySetting {
    pub url: String,
    pub model: String,
    pub is_open: bool,
    pub connections: u32,
    pub threads: u32,
    pub duration_seconds: f64,
    pub requests: Vec<String>,
}

impl SummarySetting {
    pub fn new(plan: &LoadPlan, outcome: &LoadOutcome, url: &str) -> Self {
        Self {
            url: url.to_owned(),
            model: model_words(plan),
            is_open: matches!(plan.model, LoadModel::Open { .. }),
            connections: plan.connections,
            threads: plan.shard_count(),
            duration_seconds: outcome.measured_time(plan).as_secs_f64().max(1e-9),
            requests: plan.mix.iter().map(|w| w.name.clone()).collect(),
        }
    }
}

impl fmt::Display for LoadSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        writeln!(out, "{}", self.url)?;
        writeln!(
            out,
            "  {}, {} connections, {} {threads}, {:.1} s{}",
            self.model,
            self.connections,
            self.threads,
            self.duration_seconds,
            if self.stopped { " (stopped early)" } else { "" }
        )?;
        if let Some(offered) = self.offered_rate {
            writeln!(
                out,
                "  offered   {offered:10.1}/s   {} requests",
                self.requests
            )?;
        }
        writeln!(
            out,
            "  achieved  {:10.1}/s   {} good responses, {} failed, {} unfinished",
            self.achieved_rate, self.ok, self.errors, self.unfinished
        )?;
        if self.redirects > 0 {
            writeln!(out, "  redirects {:10}     not followed", self.redirects)?;
        }
        if self.sessions > 0 {
            writeln!(out, "  sessions  {:10}     began", self.sessions)?;
        }
        if self.cut_pauses > 0 {
            writeln!(
                out,
                "  pauses    {:10}     cut short: a request was due and all {} connections were \
                 taken by users; raise --connections",
                self.cut_pauses, self.connections
            )?;
        }
        writeln!(out)?;
        self.write_percentiles(out)?;
        self.write_requests(out)?;
        self.write_errors(out)?;
        if let Some(warm_up) = &self.warm_up {
            writeln!(out, "\n  {}", warm_up.summary_line())?;
        }
        self.write_generator(out)
    }
}

impl LoadSummary {
    pub fn new(plan: &LoadPlan, outcome: &LoadOutcome, url: &str) -> Self {
        let setting = SummarySetting::new(plan, outcome, url);
        let mut summary = Self::from_totals(
            &setting,
            &outcome.measure,
            outcome.warmup.ok + outcome.measure.ok,
            &outcome.health,
        );
        summary.warmup_requests = outcome.warmup.scheduled;
        summary.stopped = outcome.stopped;
        summary
    }

    /// From outcomes that may come from several processes; `answered` counts good responses of
    /// the warm-up too.
    pub fn from_totals(
        setting: &SummarySetting,
        totals: &LoadTotals,
        answered: u64,
        health: &Health,
    ) -> Self {
        let seconds = setting.duration_seconds;
        let failed = totals.failed_requests() + totals.unfinished;
        let cpu = health.cpu.as_secs_f64();
        let named = setting.requests.iter().zip(&totals.by_request);
        Self {
            schema: SCHEMA,
            url: setting.url.clone(),
            model: setting.model.clone(),
            connections: setting.connections,
            threads: setting.threads,
            duration_seconds: seconds,
            requests: totals.scheduled,
            ok: totals.ok,
            errors: totals.failed_requests(),
            unfinished: totals.unfinished,
            redirects: totals.redirects,
            sessions: totals.sessions,
            cut_pauses: totals.cut_pauses,
            errors_by_kind: totals.errors_by_name(),
            offered_rate: setting.is_open.then(|| totals.scheduled as f64 / seconds),
            achieved_rate: totals.answered_in_time as f64 / seconds,
            body_bytes_per_second: totals.body_bytes_in_time as f64 / seconds,
            latency_us: Percentiles::new(&totals.latency, failed),
            service_time_us: Percentiles::new(&totals.service_time, failed),
            send_lag_us: setting
                .is_open
                .then(|| Percentiles::new(&totals.send_lag, 0)),
            by_request: named
                .map(|(name, request)| RequestSummary::new(name, request))
                .collect(),
            cpu_seconds: cpu,
            cpu_us_per_request: (answered > 0).then(|| cpu * 1e6 / answered as f64),
            missed_share: setting.is_open.then_some(health.missed),
            run_delay_seconds: health.run_delay.as_secs_f64(),
            throttled_seconds: health.throttled.as_secs_f64(),
            warmup_requests: 0,
            warm_up: None,
            saturated: health.saturated.clone(),
            stopped: false,
        }
    }

    fn write_requests(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_request.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n        good   failed unfinished        p50        p99  request"
        )?;
        for request in &self.by_request {
            writeln!(
                out,
                "  {:>10} {:>8} {:>10} {:>10} {:>10}  {}",
                request.ok,
                request.errors,
                request.unfinished,
                request.format_time(request.latency_us.p50),
                request.format_time(request.latency_us.p99),
                request.name
            )?;
        }
        Ok(())
    }

    fn write_percentiles(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "              latency  service time")?;
        let rows = self.latency_us.percentile_rows();
        for ((name, latency), (_, service)) in
            rows.into_iter().zip(self.service_time_us.percentile_rows())
        {
            writeln!(
                out,
                "  {name:8} {:>10} {:>13}",
                format_micros_if_any(latency, self.requests),
                format_micros_if_any(service, self.requests)
            )?;
        }
        writeln!(
            out,
            "  latency: from the intended send time; service time: from the actual one"
        )?;
        if self.errors + self.unfinished > 0 {
            writeln!(
                out,
                "  percentiles count failed requests as slowest; max is of good ones"
            )?;
        }
        Ok(())
    }

    fn write_errors(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.errors + self.unfinished == 0 {
            return Ok(());
        }
        let share = (self.errors + self.unfinished) as f64 / self.requests as f64 * 100.0;
        writeln!(out, "\n  not answered well: {share:.3} % of the requests")?;
        for (kind, count) in &self.errors_by_kind {
            writeln!(out, "    {kind:14} {count:>10}")?;
        }
        if self.unfinished > 0 {
            writeln!(out, "    {:14} {:>10}", "unfinished", self.unfinished)?;
        }
        Ok(())
    }

    fn write_generator(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\n  generator: CPU {:.2} s", self.cpu_seconds)?;
        if let Some(cost) = self.cpu_us_per_request {
            write!(out, ", {cost:.2} us a request")?;
        }
        if let Some(lag) = self.send_lag_us {
            write!(out, ", send lag p99 {}", format_micros(lag.p99))?;
        }
        match &self.saturated {
            None => writeln!(out, ", not the bottleneck"),
            Some(reason) => writeln!(out, "\n  NOT VALID: {reason}"),
        }
    }
}

fn model_words(plan: &LoadPlan) -> String {
    let model = match &plan.model {
        LoadModel::Open {
            arrivals: ArrivalPattern::Uniform,
            ..
        } => "open model, uniform arrivals",
        LoadModel::Open {
            arrivals: ArrivalPattern::Poisson,
            ..
        } => "open model, Poisson arrivals",
        LoadModel::ClosedFor { .. } | LoadModel::ClosedRequests { .. } => "closed model",
    };
    match plan.http2 {
        None => match &plan.users {
            None => model.to_owned(),
            Some(users) => format!("{model}, sessions of {} requests", users.requests),
        },
        Some(Http2Options { streams: 1 }) => format!("HTTP/2, {model}"),
        Some(Http2Options { streams }) => format!("HTTP/2 with {streams} streams, {model}"),
    }
}

/// A time in µs as people read it, four figures.
fn format_micros(micros: Option<f64>) -> String {
    match micros {
        None => "failed".to_owned(),
        Some(us) if us < 1_000.0 => format!("{us:.1} us"),
        Some(us) if us < 10_000.0 => format!("{:.3} ms", us / 1e3),
        Some(us) if us < 100_000.0 => format!("{:.2} ms", us / 1e3),
        Some(us) if us < 1_000_000.0 => format!("{:.1} ms", us / 1e3),
        Some(us) => format!("{:.3} s", us / 1e6),
    }
}

/// The same over `requests` requests: a dash without any.
fn format_micros_if_any(micros: Option<f64>, requests: u64) -> String {
    match requests {
        0 => "-".to_owned(),
        _ => format_micros(micros),
    }
}

pub fn live_line(second: u64, totals: &LoadTotals) -> String {
    let failed = totals.failed_requests() + totals.unfinished;
    let at = |histogram: &Histogram, failed, q| {
        let micros = |d: Duration| d.as_nanos() as f64 / 1e3;
        let value = histogram::quantile_with_failures(histogram, failed, q).map(micros);
        format_micros_if_any(value, histogram.len() + failed)
    };
    let lag = if totals.send_lag.is_empty() {
        String::new()
    } else {
        format!("  lag p99 {}", at(&totals.send_lag, 0, 0.99))
    };
    format!(
        "{:>4} s  {:>8}/s  p50 {:>9}  p99 {:>9}  max {:>9}  errors {}{lag}",
        second + 1,
        totals.ok,
        at(&totals.latency, failed, 0.5),
        at(&totals.latency, failed, 0.99),
        at(&totals.latency, 0, 1.0),
        totals.failed_requests(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ErrorKind;

    #[allow(clippy::field_reassign_with_default, reason = "one field is private")]
    fn summary(failed: u64) -> LoadSummary {
        let mut totals = LoadTotals::default();
        totals.scheduled = 1000 + failed;
        totals.ok = 1000;
        for n in 1..=1000 {
            totals.latency.saturating_record(n * 100_000);
            totals.service_time.saturating_record(n * 50_000);
            totals.send_lag.saturating_record(20_000);
        }
        for _ in 0..failed {
            totals.count_failure(ErrorKind::Http5xx);
        }
        let percentiles = |h: &Histogram| Percentiles::new(h, failed);
        LoadSummary {
            schema: SCHEMA,
            url: "http://localhost:8080/".to_owned(),
            model: "open model, uniform arrivals".to_owned(),
            connections: 100,
            threads: 1,
            duration_seconds: 10.0,
            requests: totals.scheduled,
            ok: totals.ok,
            errors: failed,
            unfinished: 0,
            redirects: 0,
            sessions: 0,
            cut_pauses: 0,
            errors_by_kind: totals.errors_by_name(),
            offered_rate: Some(totals.scheduled as f64 / 10.0),
            achieved_rate: 100.0,
            body_bytes_per_second: 0.0,
            latency_us: percentiles(&totals.latency),
            service_time_us: percentiles(&totals.service_time),
            send_lag_us: Some(Percentiles::new(&totals.send_lag, 0)),
            by_request: Vec::new(),
            cpu_seconds: 0.05,
            cpu_us_per_request: Some(50.0),
            missed_share: Some(0.0),
            run_delay_seconds: 0.25,
            throttled_seconds: 0.0,
            warmup_requests: 0,
            warm_up: None,
            saturated: (failed > 0).then(|| "the generator waited".to_owned()),
            stopped: false,
        }
    }

    #[test]
    fn the_model_and_the_rates_come_first() {
        insta::assert_snapshot!(summary(0).to_string(), @"
        http://localhost:8080/
          open model, uniform arrivals, 100 connections, 1 thread, 10.0 s
          offered        100.0/s   1000 requests
          achieved       100.0/s   1000 good responses, 0 failed, 0 unfinished

                      latency  service time
          p50        50.00 ms      25.00 ms
          p90        90.05 ms      45.02 ms
          p95        95.03 ms      47.51 ms
          p99        99.02 ms      49.51 ms
          p99.9      99.94 ms      49.97 ms
          p99.99     100.0 ms      50.00 ms
          max        100.0 ms      50.00 ms
          latency: from the intended send time; service time: from the actual one

          generator: CPU 0.05 s, 50.00 us a request, send lag p99 20.0 us, not the bottleneck
        ");
    }

    #[test]
    fn failures_stand_where_the_slowest_would() {
        insta::assert_snapshot!(summary(20).to_string(), @"
        http://localhost:8080/
          open model, uniform arrivals, 100 connections, 1 thread, 10.0 s
          offered        102.0/s   1020 requests
          achieved       100.0/s   1000 good responses, 20 failed, 0 unfinished

                      latency  service time
          p50        51.02 ms      25.51 ms
          p90        91.82 ms      45.91 ms
          p95        96.93 ms      48.46 ms
          p99          failed        failed
          p99.9        failed        failed
          p99.99       failed        failed
          max        100.0 ms      50.00 ms
          latency: from the intended send time; service time: from the actual one
          percentiles count failed requests as slowest; max is of good ones

          not answered well: 1.961 % of the requests
            http_5xx               20

          generator: CPU 0.05 s, 50.00 us a request, send lag p99 20.0 us
          NOT VALID: the generator waited
        ");
    }

    #[test]
    fn the_live_line_counts_failures_as_slowest() {
        let mut totals = LoadTotals::default();
        assert!(live_line(0, &totals).contains("p99         -"));
        totals.count_failure(ErrorKind::Timeout);
        totals.latency.saturating_record(1_000_000);
        let line = live_line(0, &totals);
        assert!(
            line.contains("p50  1.000 ms  p99    failed  max  1.000 ms"),
            "{line}"
        );
        let mut waiting = LoadTotals::default();
        waiting.latency.saturating_record(1_000_000);
        waiting.unfinished = 1;
        assert!(live_line(0, &waiting).contains("p99    failed"));
    }

    #[test]
    fn json_reads_back() {
        let summary = summary(20);
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<LoadSummary>(&text).unwrap(), summary);
    }

    #[test]
    fn every_figure_of_a_run_is_in_its_summary_and_in_its_text() {
        let setting = SummarySetting {
            url: "http://localhost:8080/".to_owned(),
            model: "open model, Poisson arrivals".to_owned(),
            is_open: true,
            connections: 7,
            threads: 2,
            duration_seconds: 4.0,
            requests: vec!["GET /a".to_owned(), "POST /b".to_owned()],
        };
        let mut totals = LoadTotals::default();
        (totals.scheduled, totals.ok, totals.answered_in_time) = (120, 0, 90);
        (1..=100).for_each(|n| totals.count_success(n * 20_000_000, n * 3_000));
        totals.send_lag.saturating_record(40_000);
        totals.count_failures(ErrorKind::Refused, 8);
        totals.count_failures(ErrorKind::Shed, 5);
        totals.unfinished = 7;
        (totals.body_bytes, totals.body_bytes_in_time) = (5000, 4000);
        (totals.redirects, totals.sessions, totals.cut_pauses) = (3, 11, 13);
        totals.add_requests(crate::outcome::RequestTotals::zeros_for_each(2));
        totals.by_request[1].count_success(700_000);
        (totals.by_request[1].failed, totals.by_request[1].unfinished) = (1, 2);
        let ms = Duration::from_millis;
        let health = |saturated: Option<&str>| Health {
            send_lag_p99: Duration::ZERO,
            send_lag_p99_9: Duration::ZERO,
            send_lag_max: Duration::ZERO,
            missed: 0.125,
            cpu: ms(30),
            run_delay: ms(250),
            throttled: ms(1500),
            saturated: saturated.map(str::to_owned),
        };
        let mut open =
            LoadSummary::from_totals(&setting, &totals, 120, &health(Some("it was late")));
        insta::assert_snapshot!(serde_json::to_string_pretty(&open).unwrap());
        open.stopped = true;
        insta::assert_snapshot!(open.to_string());
        let closed = SummarySetting {
            is_open: false,
            ..setting
        };
        let closed = LoadSummary::from_totals(&closed, &LoadTotals::default(), 0, &health(None));
        insta::assert_snapshot!(closed.to_string());
    }

    #[test]
    fn only_a_request_that_was_sent_has_a_latency() {
        let told = |ok, errors, unfinished| {
            let request = RequestSummary {
                name: String::new(),
                ok,
                errors,
                unfinished,
                latency_us: Percentiles::new(&histogram::new(), 0),
            };
            request.format_time(None)
        };
        assert_eq!(told(0, 0, 0), "-");
        let sent = [told(1, 0, 0), told(0, 1, 0), told(0, 0, 1), told(1, 1, 0)];
        assert_eq!(sent, ["failed"; 4]);
    }

    #[test]
    fn a_model_is_told_in_words() {
        let plan = |model| {
            let target = ([127, 0, 0, 1], 80).into();
            LoadPlan::new(vec![target], crate::plan::RequestSpec::for_get("/"), model)
        };
        let second = Duration::from_secs(1);
        let mut poisson = plan(LoadModel::at_constant_rate(1.0, second));
        if let LoadModel::Open { arrivals, .. } = &mut poisson.model {
            *arrivals = ArrivalPattern::Poisson;
        }
        let http2 = |streams| LoadPlan {
            http2: Some(Http2Options { streams }),
            ..plan(LoadModel::ClosedRequests { requests: 5 })
        };
        let all = [
            plan(LoadModel::at_constant_rate(1.0, second)),
            poisson,
            http2(1),
            http2(8),
        ];
        let all = all.iter().map(model_words).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(all, @"
        open model, uniform arrivals
        open model, Poisson arrivals
        HTTP/2, closed model
        HTTP/2 with 8 streams, closed model
        ");
    }

    #[test]
    fn what_failed_and_what_never_ended_are_both_told() {
        let with = |errors: u64, unfinished: u64| {
            let mut summary = summary(errors);
            summary.unfinished = unfinished;
            summary.requests = 100;
            let text = summary.to_string();
            let share = text.lines().find(|line| line.contains("not answered well"));
            let is_explained = text.contains("percentiles count failed");
            (share.map(|share| share.trim().to_owned()), is_explained)
        };
        let told = |share: &str| {
            (
                Some(format!("not answered well: {share} % of the requests")),
                true,
            )
        };
        assert_eq!(with(0, 0), (None, false));
        assert_eq!((with(1, 0), with(0, 2)), (told("1.000"), told("2.000")));
        assert_eq!((with(3, 2), with(2, 2)), (told("5.000"), told("4.000")));
    }

    #[test]
    fn times_have_four_figures() {
        let all = [
            999.94, 1_000.0, 9_999.4, 10_000.0, 99_994.0, 100_000.0, 999_940.0, 1e6,
        ];
        let all = all.map(|micros| format_micros(Some(micros))).join(", ");
        insta::assert_snapshot!(all, @"999.9 us, 1.000 ms, 9.999 ms, 10.00 ms, 99.99 ms, 100.0 ms, 999.9 ms, 1.000 s");
    }
}
