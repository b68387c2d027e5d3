//! The requests that a result file says were made, as figures.
//!
//! Owns which rows count: those of the judged part, under their names if they have any.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::record::{ReportedEvidence, ReportedFigures, ReportedScope};

use super::input::refuse_results;
use crate::error::LoadError;
use crate::histogram::{self, quantile_with_failures};
use crate::outcome::RequestTotals;

/// Names that are kept apart, and where the others are counted.
const MOST_NAMES: usize = 200;
const OTHERS: &str = "other requests";
const LONGEST_NAME: usize = 200;
/// Most rows that are held until the first one is known; tools write some 60 bytes for each.
const MOST_OFFSETS: usize = if cfg!(test) { 1_000 } else { 10_000_000 };

/// The judged part of a load, in s, as the rows of a file may say it.
#[derive(Debug, Clone, Copy)]
pub struct ReportedWindow {
    /// Its begin, since 1970.
    pub begin: f64,
    /// Its begin, since the first request of the command.
    pub since_first: f64,
    pub length: f64,
}

/// When a request began, in s.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowTime {
    /// Since 1970.
    Unix(f64),
    /// Since a moment that the file does not say.
    Offset(f64),
    Unknown,
}

#[derive(Debug)]
pub(super) struct ReportedRow<'a> {
    pub(super) at: RowTime,
    /// s.
    pub(super) latency: f64,
    pub(super) is_ok: bool,
    /// Empty where the file has no names.
    pub(super) name: &'a [u8],
}

pub(super) struct ReportBook {
    window: ReportedWindow,
    scope: ReportedScope,
    all: RequestTotals,
    by_name: BTreeMap<Vec<u8>, RequestTotals>,
    /// Rows with offsets wait for the smallest: begin, latency, whether it was good.
    offsets: Vec<(f64, f64, bool)>,
    has_too_many: bool,
    /// What the tool itself sums up, under the names of requests; all under the empty name.
    summed: BTreeMap<String, ReportedFigures>,
}

impl ReportBook {
    pub(super) fn new(window: ReportedWindow) -> Self {
        Self {
            window,
            scope: ReportedScope::Rows,
            all: RequestTotals::default(),
            by_name: BTreeMap::new(),
            offsets: Vec::new(),
            has_too_many: false,
            summed: BTreeMap::new(),
        }
    }

    fn is_judged(&self, unix: f64) -> bool {
        let ReportedWindow { begin, length, .. } = self.window;
        (begin..begin + length).contains(&unix)
    }

    pub(super) fn count_row(&mut self, row: &ReportedRow<'_>) {
        let is_in = match row.at {
            RowTime::Unix(at) => self.is_judged(at),
            RowTime::Offset(at) => {
                self.hold_offset((at, row.latency, row.is_ok));
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

    fn hold_offset(&mut self, row: (f64, f64, bool)) {
        if self.offsets.len() < MOST_OFFSETS {
            self.offsets.push(row);
        } else {
            self.has_too_many = true;
        }
    }

    pub(super) fn check_count(&self) -> Result<(), LoadError> {
        if !self.has_too_many {
            return Ok(());
        }
        let why = format!("it has more than {MOST_OFFSETS} rows; let the command send less");
        Err(refuse_results(why))
    }

    fn named(&mut self, name: &[u8]) -> &mut RequestTotals {
        let name = &name[..name.len().min(LONGEST_NAME)];
        let is_kept = self.by_name.contains_key(name) || self.by_name.len() < MOST_NAMES;
        let name = if is_kept { name } else { OTHERS.as_bytes() };
        self.by_name.entry(name.to_vec()).or_default()
    }

    /// Good requests of an interval with its middle at this time.
    pub(super) fn add_interval(&mut self, middle: Option<f64>, latencies: &histogram::Histogram) {
        self.scope = match middle {
            Some(_) => ReportedScope::Intervals,
            None => ReportedScope::WholeRun,
        };
        if middle.is_none_or(|middle| self.is_judged(middle)) {
            self.all.ok = self.all.ok.saturating_add(latencies.len());
            histogram::add_histogram(&mut self.all.latency, latencies);
        }
    }

    /// The percentiles of a tool leave failed requests out, or mix them in: they say something where
    /// none failed.
    pub(super) fn take_summary(&mut self, name: &str, figures: ReportedFigures) {
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

    pub(super) fn into_evidence(mut self, format: &str) -> ReportedEvidence {
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
    if is_ok {
        // A cast takes what is below 0 for 0, and what is too large for the largest.
        totals.count_success((latency * 1e9).round() as u64)
    } else {
        totals.failed += 1
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
pub(super) fn is_good(status: &[u8]) -> bool {
    matches!(status, [b'2' | b'3', _, _])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> ReportBook {
        ReportBook::new(ReportedWindow {
            begin: 0.0,
            since_first: 0.0,
            length: 1.0,
        })
    }

    #[test]
    fn rows_with_offsets_fill_no_memory() {
        let mut book = book();
        let row = ReportedRow {
            at: RowTime::Offset(0.5),
            latency: 0.1,
            is_ok: true,
            name: b"",
        };
        for _ in 0..MOST_OFFSETS {
            book.count_row(&row);
        }
        book.check_count().expect("they are held");
        book.count_row(&row);
        assert_eq!(book.offsets.len(), MOST_OFFSETS);
        let refusal = book.check_count().expect_err("one too many").to_string();
        assert!(refusal.contains("more than 1000 rows"), "{refusal}");
    }

    #[test]
    fn counts_of_intervals_do_not_wrap() {
        let mut many = histogram::growing_histogram();
        many.record_n(1, u64::MAX).expect("it fits");
        let mut book = book();
        book.add_interval(Some(0.5), &many);
        book.add_interval(Some(0.5), &many);
        assert_eq!(book.into_evidence("a log").all.requests, u64::MAX);
    }
}
