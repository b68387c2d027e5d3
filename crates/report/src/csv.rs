//! The trials as CSV (RFC 4180), one row each: for spreadsheets.
//!
//! Columns carry their unit in the name. A text that a spreadsheet would run as a formula
//! (`= + - @`, tab, carriage return first) gets an apostrophe in front, as OWASP advises.

use std::time::Duration;

use loadline_analysis::record::{Configuration, ObjectiveResult, TrialRecord};
use loadline_analysis::slo::Objective;
use loadline_sizing::{Bytes, JvmOptionSet};

use crate::content::{groups, trials};
use crate::figures::{self, TrialFigures};
use crate::redact;
use crate::text;
use crate::view::ResultView;

const HEADER: [&str; 44] = [
    "trial",
    "id",
    "purpose",
    "configuration",
    "repeat",
    "cpu_millicpus",
    "memory_bytes",
    "heap_bytes",
    "jdk",
    "jvm_options",
    "started_unix_ms",
    "verdict",
    "cause",
    "offered_rate",
    "achieved_rate",
    "errors_share",
    "start_s",
    "p50_s",
    "p90_s",
    "p99_s",
    "p999_s",
    "max_s",
    "peak_memory_bytes",
    "working_set_bytes",
    "anon_bytes",
    "oom_kills",
    "file_refaults",
    "major_faults",
    "cpus_used",
    "throttled_periods_share",
    "gc_pause_max_s",
    "gc_share",
    "start_cpu_s",
    "start_throttled_s",
    "start_log_line_s",
    "start_classes",
    "start_archived_share",
    "start_rss_bytes",
    "start_pss_bytes",
    "time_to_performance_s",
    "cache",
    "cache_bytes",
    "metrics",
    "reason",
];

/// All trials; the first line names the columns. Missing numbers are empty. A latency that lies in
/// failures is `inf`, also that of a trial that ended before it had one: no mean must leave it out.
pub fn render_csv(view: &ResultView) -> String {
    let mut out = HEADER.join(",");
    out.push_str("\r\n");
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let names = groups::ConfigurationNames::for_result(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let figures = TrialFigures::for_trial(trial, quantile);
        let sli = figures.sli;
        let configuration = &trial.configuration;
        let (verdict, cause) = figures::verdict_and_cause(trial.verdict);
        let (gc, cgroup) = (trial.evidence.gc.as_ref(), &trial.evidence.cgroup);
        let jdk = gc
            .and_then(|gc| gc.jdk.as_ref())
            .or(configuration.jdk.as_ref());
        let latency = |value: Option<Duration>| match value {
            None if trial.verdict.is_evidence() && view.sends_requests() => "inf".to_owned(),
            value => csv_seconds(value),
        };
        let cells = [
            (i + 1).to_string(),
            csv_field(&trial.id),
            trials::purpose(trial.purpose).to_owned(),
            csv_field(&names.cell_name(configuration)),
            trial.repeat.to_string(),
            configuration
                .cpu
                .map_or_else(String::new, |c| c.as_millis().to_string()),
            csv_bytes(configuration.memory),
            csv_bytes(heap_size(configuration)),
            csv_field(jdk.map_or("", String::as_str)),
            csv_field(&options_text(configuration)),
            trial.started_at_unix_ms.to_string(),
            verdict.to_owned(),
            cause.to_owned(),
            csv_number(sli.offered_rate),
            csv_number(sli.achieved_rate),
            csv_number(sli.error_share),
            csv_seconds(sli.start),
            latency(sli.p50),
            latency(sli.p90),
            latency(sli.p99),
            latency(sli.p99_9),
            latency(sli.max),
            csv_bytes(sli.peak_memory),
            csv_bytes(sli.peak_working_set),
            csv_bytes(figures.anon),
            csv_count(cgroup.oom_kills),
            csv_count(cgroup.file_refaults),
            csv_count(cgroup.major_faults),
            csv_number(sli.cpus_used),
            csv_number(sli.throttled_periods_share),
            csv_seconds(sli.gc_pause_max),
            csv_number(sli.gc_pause_share),
            csv_seconds(sli.start_cpu),
            csv_seconds(sli.start_throttled),
            csv_seconds(sli.start_log_line),
            csv_count(sli.start_classes),
            csv_number(sli.start_archived_share),
            csv_bytes(sli.start_rss),
            csv_bytes(sli.start_pss),
            csv_seconds(sli.time_to_performance),
            trial
                .evidence
                .cache
                .as_ref()
                .map_or_else(String::new, |cache| cache.kind.to_string()),
            csv_bytes(trial.evidence.cache.as_ref().map(|cache| cache.archive)),
            csv_field(&metric_values(trial)),
            csv_field(&trial.reason.to_string()),
        ];
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

/// `lag: max<1000 12; done: rate>5`: the objectives about metrics, and their values where they have one.
fn metric_values(trial: &TrialRecord) -> String {
    let of_metrics = trial.objectives.iter();
    let of_metrics = of_metrics.filter(|o| matches!(o.objective, Objective::Metric(_)));
    let cell = |result: &ObjectiveResult| {
        let value = result.measured.map(|value| format!(" {value}"));
        result.objective_text() + &value.unwrap_or_default()
    };
    of_metrics.map(cell).collect::<Vec<_>>().join("; ")
}

fn options_text(configuration: &Configuration) -> String {
    let options = configuration.jvm_options.iter();
    let options: Vec<String> = options.map(|option| option.text.clone()).collect();
    redact::redact_command(&options).join(" ")
}

fn heap_size(configuration: &Configuration) -> Option<Bytes> {
    JvmOptionSet::from_words(configuration.heap_option()).size_value("MaxHeapSize")
}

fn csv_number(value: Option<f64>) -> String {
    value
        .filter(|v| v.is_finite())
        .map_or_else(String::new, |v| v.to_string())
}

fn csv_seconds(value: Option<Duration>) -> String {
    csv_number(value.map(|v| v.as_secs_f64()))
}

fn csv_count(value: Option<u64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

fn csv_bytes(value: Option<Bytes>) -> String {
    value.map_or_else(String::new, |v| v.as_bytes().to_string())
}

fn csv_field(text: &str) -> String {
    let text = text::one_line(text);
    let runs = text.starts_with(['=', '+', '-', '@']);
    let text = if runs { format!("'{text}") } else { text };
    if text.contains(['"', ',', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_never_formulas() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(csv_field("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(csv_field("two\nlines"), "two lines");
    }
}
