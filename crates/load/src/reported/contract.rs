//! What any other tool can write: JSON lines, or an HdrHistogram log in ns.
//!
//! Owns the form of a line; docs/guides/load-command.md documents it.

use std::borrow::Cow;
use std::io::Read;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde::Deserialize;

use super::book::{ReportedRow, RowTime};
use super::input::{ReportInput, refuse_results};
use crate::error::LoadError;
use crate::histogram::decode_histogram;

/// One request.
#[derive(Deserialize)]
struct ContractLine<'a> {
    /// When it was sent, or should have been, s since 1970.
    time: f64,
    /// s.
    latency: f64,
    ok: bool,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

pub(super) fn is_lines(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let has = |key: &[u8]| line.windows(key.len()).any(|part| part == key);
    line.starts_with(b"{") && has(b"\"time\"") && has(b"\"latency\"") && has(b"\"ok\"")
}

pub(super) fn read_lines(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    input.each_line(|line, book| {
        let line: ContractLine<'_> = serde_json::from_slice(line).ok()?;
        book.count_row(&ReportedRow {
            at: RowTime::Unix(line.time),
            latency: line.latency,
            is_ok: line.ok,
            name: line.name.as_bytes(),
        });
        Some(())
    })
}

pub(super) fn is_log(head: &[u8]) -> bool {
    head.starts_with(b"#[") || head.starts_with(b"\"StartTimestamp\"")
}

/// Times of intervals count from the base or start time, where the log has one.
pub(super) fn read_log(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut text = Vec::new();
    let read = Read::read_to_end(&mut *input.text, &mut text);
    read.map_err(|error| refuse_results(format!("it cannot be read: {error}")))?;
    let mut base = None;
    for entry in IntervalLogIterator::new(&text) {
        match entry {
            Ok(LogEntry::BaseTime(time) | LogEntry::StartTime(time)) => {
                base = Some(time.as_secs_f64());
            }
            Ok(LogEntry::Interval(interval)) => {
                let middle = interval
                    .start_timestamp()
                    .saturating_add(interval.duration() / 2);
                let histogram = decode_histogram(interval.encoded_histogram());
                let histogram = histogram.map_err(|error| refuse_results(error.to_string()))?;
                let middle = base.map(|base| base + middle.as_secs_f64());
                input.book.add_interval(middle, &histogram);
            }
            // Its last line may be cut.
            Err(_) => break,
        }
    }
    Ok(())
}
