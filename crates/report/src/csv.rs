//! The trials as CSV (RFC 4180), one row each, and their seconds, one row each: for spreadsheets.
//!
//! A text that a spreadsheet would run as a formula (`= + - @`, tab, carriage return first) gets an
//! apostrophe in front, as OWASP advises.

use std::time::Duration;

use loadline_analysis::record::{SecondEvidence, TrialRecord};
use loadline_analysis::text::join_words;
use loadline_sizing::Bytes;

use crate::columns::{COLUMNS, ColumnValue, TrialRow, trial_rows};
use crate::view::ResultView;

type SecondColumn = (&'static str, fn(&SecondEvidence) -> Option<f64>);

const SECOND_COLUMNS: [SecondColumn; 17] = [
    ("offered", |second| count(second.offered)),
    ("achieved", |second| count(second.achieved)),
    ("errors", |second| count(second.errors)),
    ("p50_s", |second| latency(second, second.p50)),
    ("p99_s", |second| latency(second, second.p99)),
    ("max_s", |second| seconds(second.max)),
    ("cpu_s", |second| seconds(second.cpu)),
    ("throttled_periods", |second| count(second.nr_throttled)),
    ("throttled_s", |second| seconds(second.throttled)),
    ("memory_bytes", |second| size(second.memory)),
    ("working_set_bytes", |second| size(second.working_set)),
    ("anon_bytes", |second| size(second.anon)),
    ("gc_pause_s", |second| seconds(second.gc_pause)),
    ("threads", |second| count(second.threads)),
    ("sockets", |second| count(second.sockets)),
    ("heap_committed_bytes", |second| size(second.heap_committed)),
    ("heap_after_bytes", |second| size(second.heap_after)),
];

fn count(value: Option<u64>) -> Option<f64> {
    value.map(|count| count as f64)
}

fn size(value: Option<Bytes>) -> Option<f64> {
    count(value.map(Bytes::as_bytes))
}

fn seconds(value: Option<Duration>) -> Option<f64> {
    value.map(|time| time.as_secs_f64())
}

/// A percentile among failed requests is infinite, as in the rows of trials.
fn latency(second: &SecondEvidence, value: Option<Duration>) -> Option<f64> {
    let ended = second.achieved.unwrap_or(0) + second.errors.unwrap_or(0);
    seconds(value).or((ended > 0).then_some(f64::INFINITY))
}

/// Every second of every trial; `second` counts from the begin of its trial, and `phase` is where the
/// second ended.
pub fn render_seconds(view: &ResultView) -> String {
    let names = SECOND_COLUMNS.map(|(name, _)| name).join(",");
    let mut out = format!("trial,id,phase,second,{names}\r\n");
    for (number, trial) in (1..).zip(&view.trials) {
        let begin = trial.evidence.phases.iter().map(|span| span.start).min();
        for second in &trial.evidence.seconds {
            let since = second.at_ns.saturating_sub(begin.unwrap_or(second.at_ns));
            let since = Duration::from_nanos(since).as_secs_f64();
            let phase = phase_at(trial, second.at_ns);
            let id = csv_field(&trial.id);
            out += &format!("{number},{id},{phase},{since:.3}");
            for (_, read) in &SECOND_COLUMNS {
                let value = read(second).map(|value| value.to_string());
                out.push_str(&format!(",{}", value.unwrap_or_default()));
            }
            out.push_str("\r\n");
        }
    }
    out
}

fn phase_at(trial: &TrialRecord, at_ns: u64) -> String {
    let phases = trial.evidence.phases.iter();
    let mut own = phases.filter(|span| span.start < at_ns && at_ns <= span.end);
    let last = own.next_back();
    last.map_or_else(String::new, |span| span.phase.to_string())
}

/// All trials; the first line names the columns. Missing numbers are empty.
pub fn render_csv(view: &ResultView) -> String {
    let mut out = COLUMNS.map(|(name, _)| name).join(",") + "\r\n";
    for row in trial_rows(view) {
        let cells = COLUMNS.iter().map(|(_, value)| csv_cell(value, &row));
        out += &(join_words(cells, ",") + "\r\n");
    }
    out
}

fn csv_cell(value: &ColumnValue, row: &TrialRow) -> String {
    let text = value.read_text(row).map(|text| csv_field(&text));
    let count = || Some(value.read_count(row)?.to_string());
    let number = || Some(value.read_number(row)?.to_string());
    text.or_else(count).or_else(number).unwrap_or_default()
}

fn csv_field(text: &str) -> String {
    let runs = text.starts_with(['=', '+', '-', '@']);
    let text = if runs {
        format!("'{text}")
    } else {
        text.to_owned()
    };
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
    }
}
