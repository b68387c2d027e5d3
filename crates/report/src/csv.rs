//! The trials as CSV (RFC 4180), one row each: for spreadsheets.
//!
//! Columns carry their unit in the name. A text that a spreadsheet would run as a formula
//! (`= + - @`, tab, carriage return first) gets an apostrophe in front, as OWASP advises.

use crate::content::{groups, trials};
use crate::figures::{self, Figures};
use crate::text;
use crate::view::ResultView;

const HEADER: [&str; 35] = [
    "trial",
    "id",
    "purpose",
    "configuration",
    "repeat",
    "cpu_millicpus",
    "memory_bytes",
    "verdict",
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
    "reason",
];

/// All trials; the first line names the columns. Missing numbers are empty.
pub fn csv(view: &ResultView) -> String {
    let mut out = HEADER.join(",");
    out.push_str("\r\n");
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let names = groups::Names::of(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let figures = Figures::of(trial, quantile);
        let sli = figures.sli;
        let configuration = &trial.configuration;
        let cells = [
            (i + 1).to_string(),
            field(&trial.id),
            trials::purpose(trial.purpose).to_owned(),
            field(&names.name(configuration)),
            trial.repeat.to_string(),
            configuration
                .cpu
                .map_or_else(String::new, |c| c.as_millis().to_string()),
            bytes(configuration.memory),
            figures::verdict(trial.verdict),
            number(sli.offered_rate),
            number(sli.achieved_rate),
            number(sli.error_share),
            seconds(sli.start),
            seconds(sli.p50),
            seconds(sli.p90),
            seconds(sli.p99),
            seconds(sli.p99_9),
            seconds(sli.max),
            bytes(sli.peak_memory),
            bytes(sli.peak_working_set),
            bytes(figures.anon),
            number(sli.cpus_used),
            number(sli.throttled_periods_share),
            seconds(sli.gc_pause_max),
            number(sli.gc_pause_share),
            seconds(sli.start_cpu),
            seconds(sli.start_throttled),
            seconds(sli.start_log_line),
            count(sli.start_classes),
            number(sli.start_archived_share),
            bytes(sli.start_rss),
            bytes(sli.start_pss),
            seconds(sli.time_to_performance),
            trial
                .evidence
                .cache
                .as_ref()
                .map_or_else(String::new, |cache| cache.kind.to_string()),
            bytes(trial.evidence.cache.as_ref().map(|cache| cache.archive)),
            field(&trial.reason.to_string()),
        ];
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    out
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|v| v.is_finite())
        .map_or_else(String::new, |v| v.to_string())
}

fn seconds(value: Option<std::time::Duration>) -> String {
    number(value.map(|v| v.as_secs_f64()))
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

fn bytes(value: Option<loadline_sizing::Bytes>) -> String {
    value.map_or_else(String::new, |v| v.as_bytes().to_string())
}

/// A text as a CSV field.
fn field(text: &str) -> String {
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
        assert_eq!(field("plain"), "plain");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(field("two\nlines"), "two lines");
    }
}
