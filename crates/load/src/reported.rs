//! A load command's own result file: the requests that it says it made.
//!
//! Owns which formats are read, told apart by content, and how rows become figures: only those of the
//! judged part count, failed ones as slowest. A tool's own percentiles are taken only where it wrote
//! no rows. Each format has a file with its source; nothing here is judged.

mod contract;
mod gatling;
mod input;
mod jmeter;
mod summaries;
mod table;
mod vegeta;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use loadline_analysis::record::{ReportedEvidence, ReportedFigures, ReportedScope};

use crate::error::LoadError;
use crate::histogram::{self, quantile_with_failures};
use crate::outcome::RequestTotals;
use input::{ReportInput, refuse_results};

/// Largest file, in bytes: an hour of 1,000 requests a second in most formats.
const MOST: u64 = 256 << 20;

/// What is looked at to tell the format, in bytes.
const HEAD: usize = 4096;

/// Names that are kept apart, and where the others are counted.
const MOST_NAMES: usize = 200;
const OTHERS: &str = "other requests";
const LONGEST_NAME: usize = 200;
const READS: &str = "loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {\"time\": 1795738504.25, \"latency\": 0.0123, \"ok\": true}";

/// The judged part of a load, in s, as the rows of a file may say it.
#[derive(Debug, Clone, Copy)]
pub struct ReportedWindow {
    /// Its begin, since 1970.
    pub begin: f64,
    /// Its begin, since the first request of the command.
    pub since_first: f64,
    pub length: f64,
}

struct ResultFormat {
    name: &'static str,
    is_format: fn(&[u8]) -> bool,
    read: fn(&mut ReportInput<'_>, &mut ReportBook) -> Result<(), LoadError>,
}

const fn format(
    name: &'static str,
    is_format: fn(&[u8]) -> bool,
    read: fn(&mut ReportInput<'_>, &mut ReportBook) -> Result<(), LoadError>,
) -> ResultFormat {
    ResultFormat {
        name,
        is_format,
        read,
    }
}

const FORMATS: [ResultFormat; 15] = [
    format("Gatling", gatling::is_log, gatling::read_log),
    format("vegeta", vegeta::is_gob, vegeta::read_gob),
    format("vegeta JSON", vegeta::is_json, vegeta::read_json),
    format("vegeta CSV", vegeta::is_csv, vegeta::read_csv),
    format("JMeter CSV", jmeter::is_csv, jmeter::read_csv),
    format("JMeter XML", jmeter::is_xml, jmeter::read_xml),
    format("hey", table::is_hey, table::read_hey),
    format("oha CSV", table::is_oha, table::read_oha),
    format("ghz CSV", table::is_ghz, table::read_ghz),
    format("ghz JSON", summaries::is_ghz, summaries::read_ghz),
    format("oha JSON", summaries::is_oha, summaries::read_oha),
    format("Locust", summaries::is_locust, summaries::read_locust),
    format("wrk", summaries::is_wrk, summaries::read_wrk),
    format("HdrHistogram", contract::is_log, contract::read_log),
    format("JSON lines", contract::is_lines, contract::read_lines),
];

/// Errors: [`LoadError::Plan`] when the format is not known, or the file is damaged, empty or too
/// large.
pub fn read_reported(
    file: impl Read,
    window: ReportedWindow,
) -> Result<ReportedEvidence, LoadError> {
    let mut text = BufReader::new(file.take(MOST));
    let head = text
        .fill_buf()
        .map_err(|error| refuse_results(format!("it cannot be read: {error}")))?;
    let head = head[..head.len().min(HEAD)].to_vec();
    let format = FORMATS.iter().find(|format| (format.is_format)(&head));
    let format = format.ok_or_else(|| unknown_format(&head))?;
    let mut book = ReportBook::new(window);
    let read = (format.read)(&mut ReportInput::new(&mut text), &mut book);
    if text.get_ref().limit() == 0 {
        let why = "it is larger than 256 MiB; let the command write less for each request";
        return Err(refuse_results(why));
    }
    read?;
    Ok(book.into_evidence(format.name))
}

fn unknown_format(head: &[u8]) -> LoadError {
    let text = String::from_utf8_lossy(head);
    let first = text.lines().find(|line| !line.trim().is_empty());
    let Some(first) = first else {
        return refuse_results(
            "it is empty; the command must write it before it ends, by {duration_s}",
        );
    };
    let why = match first {
        _ if first.starts_with("RUN\t") => "it is a log of Gatling before 3.12".to_owned(),
        _ if first == "Summary:" => {
            "it is hey's text, which has no counts; use hey -o csv".to_owned()
        }
        _ if first.starts_with("{\"latencies\"") => {
            "it is vegeta's report, which has no rows; use vegeta attack -output={results}"
                .to_owned()
        }
        _ => {
            let first: String = first.chars().take(60).collect();
            format!("its format is unknown, it starts with {first:?}")
        }
    };
    refuse_results(format!("{why}; {READS}"))
}

/// When a request began, in s.
#[derive(Debug, Clone, Copy)]
enum RowTime {
    /// Since 1970.
    Unix(f64),
    /// Since a moment that the file does not say.
    Offset(f64),
    Unknown,
}

#[derive(Debug)]
struct ReportedRow<'a> {
    at: RowTime,
    /// s.
    latency: f64,
    is_ok: bool,
    /// Empty where the file has no names.
    name: &'a [u8],
}

struct ReportBook {
    window: ReportedWindow,
    scope: ReportedScope,
    all: RequestTotals,
    by_name: BTreeMap<Vec<u8>, RequestTotals>,
    /// Rows with offsets wait for the smallest: begin, latency, whether it was good.
    offsets: Vec<(f64, f64, bool)>,
    /// What the tool itself sums up, under the names of requests; all under the empty name.
    summed: BTreeMap<String, ReportedFigures>,
}

impl ReportBook {
    fn new(window: ReportedWindow) -> Self {
        Self {
            window,
            scope: ReportedScope::Rows,
            all: RequestTotals::default(),
            by_name: BTreeMap::new(),
            offsets: Vec::new(),
            summed: BTreeMap::new(),
        }
    }

    fn is_judged(&self, unix: f64) -> bool {
        let ReportedWindow { begin, length, .. } = self.window;
        (begin..begin + length).contains(&unix)
    }

    fn count_row(&mut self, row: &ReportedRow<'_>) {
        let is_in = match row.at {
            RowTime::Unix(at) => self.is_judged(at),
            RowTime::Offset(at) => {
                self.offsets.push((at, row.latency, row.is_ok));
                false
            }
            RowTime::Unknown => {
                self.scope = ReportedScope::WholeRun;
                true
            }
        };
        if is_in {
            count_outcome(&mut self.all, row.latency, row.is_ok);
            if !row.name.is_empty() {
                count_outcome(self.named(row.name), row.latency, row.is_ok);
            }
        }
    }

    fn named(&mut self, name: &[u8]) -> &mut RequestTotals {
        let name = &name[..name.len().min(LONGEST_NAME)];
        let is_kept = self.by_name.contains_key(name) || self.by_name.len() < MOST_NAMES;
        let name = if is_kept { name } else { OTHERS.as_bytes() };
        self.by_name.entry(name.to_vec()).or_default()
    }

    /// Good requests of an interval with its middle at this time.
    fn add_interval(&mut self, middle: Option<f64>, latencies: &histogram::Histogram) {
        self.scope = match middle {
            Some(_) => ReportedScope::Intervals,
            None => ReportedScope::WholeRun,
        };
        if middle.is_none_or(|middle| self.is_judged(middle)) {
            self.all.ok += latencies.len();
            histogram::add_histogram(&mut self.all.latency, latencies);
        }
    }

    /// The percentiles of a tool leave failed requests out, or mix them in: they say something where
    /// none failed.
    fn take_summary(&mut self, name: &str, figures: ReportedFigures) {
        self.scope = ReportedScope::ToolSummary;
        let ReportedFigures {
            requests, failed, ..
        } = figures;
        let kept = match failed {
            0 => figures,
            _ => ReportedFigures {
                requests,
                failed,
                ..ReportedFigures::default()
            },
        };
        if self.summed.len() <= MOST_NAMES {
            let name = name.chars().take(LONGEST_NAME).collect();
            self.summed.insert(name, kept);
        }
    }

    fn count_offsets(&mut self) {
        let offsets = std::mem::take(&mut self.offsets);
        let first = offsets.iter().map(|row| row.0).fold(f64::MAX, f64::min);
        let begin = first + self.window.since_first;
        let judged = begin..begin + self.window.length;
        for (at, latency, is_ok) in offsets {
            if judged.contains(&at) {
                count_outcome(&mut self.all, latency, is_ok);
            }
        }
    }

    fn into_evidence(mut self, format: &str) -> ReportedEvidence {
        self.count_offsets();
        let by_name = self.by_name.iter();
        let mut by_request: BTreeMap<_, _> = by_name
            .map(|(name, totals)| (String::from_utf8_lossy(name).into_owned(), figures(totals)))
            .collect();
        by_request.append(&mut self.summed);
        ReportedEvidence {
            format: format.to_owned(),
            scope: self.scope,
            all: by_request.remove("").unwrap_or_else(|| figures(&self.all)),
            by_request,
        }
    }
}

fn count_outcome(totals: &mut RequestTotals, latency: f64, is_ok: bool) {
    match is_ok {
        // A cast takes what is below 0 for 0, and what is too large for the largest.
        true => totals.count_success((latency * 1e9).round() as u64),
        false => totals.failed += 1,
    }
}

fn figures(totals: &RequestTotals) -> ReportedFigures {
    let at = |fraction| -> Option<Duration> {
        quantile_with_failures(&totals.latency, totals.failed, fraction)
    };
    ReportedFigures {
        requests: totals.ok + totals.failed,
        failed: totals.failed,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
    }
}

/// Whether an answer counts as good where the file has only its HTTP status.
fn is_good(status: &[u8]) -> bool {
    matches!(status, [b'2' | b'3', _, _])
}
