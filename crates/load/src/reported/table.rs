//! Tables of hey, oha and ghz: a header, then a request a line.
//!
//! Source: files of hey 0.1.5, oha 1.16.0 and ghz 0.93.0. hey leaves requests without an answer out;
//! ghz has no times.

use super::book::{ReportedRow, RowTime, is_good};
use super::input::ReportInput;
use crate::error::LoadError;
use crate::profile::decimal;

pub(super) fn is_hey(head: &[u8]) -> bool {
    head.starts_with(b"response-time,DNS+dialup,")
}

pub(super) fn read_hey(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    read_offsets(input, ["offset", "response-time", "status-code"])
}

pub(super) fn is_oha(head: &[u8]) -> bool {
    head.starts_with(b"request-start,DNS,")
}

pub(super) fn read_oha(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    read_offsets(input, ["request-start", "request-duration", "status"])
}

/// Begin since the first, latency, HTTP status, in s.
fn read_offsets(input: &mut ReportInput<'_>, names: [&str; 3]) -> Result<(), LoadError> {
    let mut header: Option<[usize; 3]> = None;
    input.each_record(|record, book| {
        let Some([begin, latency, status]) = header else {
            header = Some(record.find_columns(names)?);
            return Some(());
        };
        book.count_row(&ReportedRow {
            at: RowTime::Offset(decimal(record.field(begin)?)?),
            latency: decimal(record.field(latency)?)?,
            is_ok: is_good(record.field(status)?),
            name: b"",
        });
        Some(())
    })
}

pub(super) fn is_ghz(head: &[u8]) -> bool {
    head.trim_ascii_start()
        .starts_with(b"duration (ms),status,error")
}

pub(super) fn read_ghz(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut is_header = true;
    input.each_record(|record, book| {
        if std::mem::take(&mut is_header) {
            return Some(());
        }
        book.count_row(&ReportedRow {
            at: RowTime::Unknown,
            latency: decimal(record.field(0)?)? / 1e3,
            is_ok: record.field(1)? == b"OK",
            name: b"",
        });
        Some(())
    })
}
