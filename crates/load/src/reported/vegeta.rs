//! vegeta's results as it writes them (gob), and as `vegeta encode` does (CSV, JSON lines): requests
//! with their begin, in ns.
//!
//! Source: `Result` in lib/results.go of vegeta 12.13, pkg.go.dev/encoding/gob, and files of vegeta
//! 12.13.0. A request is good with a status from 200 to 399 and no error, as vegeta counts.

use std::borrow::Cow;
use std::io::Read;

use serde::Deserialize;

use super::book::{ReportBook, ReportedRow, RowTime};
use super::input::{MOST_LINE, ReportInput, refuse_results};
use crate::error::LoadError;
use crate::har::split_url;
use crate::profile::{decimal, parse_iso, request_class};

/// The fields of a result in gob, in their order; later versions may add some behind them.
const FIELDS: [&[u8]; 11] = [
    b"\x06Attack",
    b"\x03Seq",
    b"\x04Code",
    b"\x09Timestamp",
    b"\x07Latency",
    b"\x08BytesOut",
    b"\x07BytesIn",
    b"\x05Error",
    b"\x04Body",
    b"\x06Method",
    b"\x03URL",
];

/// Columns of its CSV: begin, status, latency, bytes out, bytes in, error, body, attack, number, method,
/// URL, headers.
const COLUMNS: usize = 12;

/// From the year 1, where Go's times begin, to 1970, s.
const GO_EPOCH: f64 = 62_135_596_800.0;

#[derive(Default, Deserialize)]
struct VegetaResult<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    /// ns.
    latency: u64,
    code: u16,
    #[serde(borrow, default)]
    error: Cow<'a, str>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
}

impl VegetaResult<'_> {
    fn count_at(&self, unix: f64, book: &mut ReportBook) {
        let name = split_url(&self.url).map(|(_, path)| {
            let path = if path.is_empty() { "/" } else { path };
            request_class(self.method.as_bytes(), path.as_bytes())
        });
        book.count_row(&ReportedRow {
            at: RowTime::Unix(unix),
            latency: self.latency as f64 / 1e9,
            is_ok: (200..400).contains(&self.code) && self.error.is_empty(),
            name: &name.unwrap_or_default(),
        });
    }
}

pub(super) fn is_json(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    line.starts_with(b"{\"attack\":")
}

pub(super) fn read_json(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    input.each_line(|line, book| {
        let result: VegetaResult<'_> = serde_json::from_slice(line).ok()?;
        result.count_at(parse_iso(result.timestamp.as_bytes())?, book);
        Some(())
    })
}

pub(super) fn is_csv(head: &[u8]) -> bool {
    let mut fields = head.split(|b| *b == b',');
    let mut is_number = |digits: std::ops::RangeInclusive<usize>| {
        let field = fields.next().unwrap_or_default();
        digits.contains(&field.len()) && field.iter().all(u8::is_ascii_digit)
    };
    is_number(16..=19) && is_number(1..=3) && is_number(1..=19)
}

pub(super) fn read_csv(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    input.each_record(|record, book| {
        let text = |index| record.field(index).map(String::from_utf8_lossy);
        let result = VegetaResult {
            code: text(1)?.parse().ok()?,
            latency: text(2)?.parse().ok()?,
            error: text(5)?,
            method: text(9)?,
            url: text(10)?,
            ..VegetaResult::default()
        };
        record.field(COLUMNS - 1)?;
        result.count_at(decimal(record.field(0)?)? / 1e9, book);
        Some(())
    })
}

pub(super) fn is_gob(head: &[u8]) -> bool {
    head.windows(7).take(16).any(|part| part == b"\x06Result")
}

/// Messages with a length before each: descriptions of types with vegeta's fields, then results.
pub(super) fn read_gob(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    const WHY: &str = "it is not a result file of vegeta 12; pipe it through `vegeta encode`";
    let mut message = Vec::new();
    let mut is_described = false;
    while next_message(input, &mut message)? {
        let mut bytes = GobBytes(&message);
        let counted = match bytes.take_signed() {
            // The first description is the result's, the others are of its fields.
            Some(..0) => {
                is_described |= has_fields(&message);
                Some(())
            }
            Some(_) if is_described => bytes.count_result(&mut input.book),
            _ => None,
        };
        counted.ok_or_else(|| refuse_results(WHY))?;
    }
    Ok(())
}

/// `false` at the end of the file, or where the tool was killed within a message.
fn next_message(input: &mut ReportInput<'_>, message: &mut Vec<u8>) -> Result<bool, LoadError> {
    message.clear();
    let mut first = [0];
    if input.text.read_exact(&mut first).is_err() {
        return Ok(false);
    }
    let mut length = first.to_vec();
    let more = extra_bytes(first[0]).min(8);
    let read = Read::take(&mut *input.text, more as u64).read_to_end(&mut length);
    let length = GobBytes(&length).take_number().unwrap_or(0);
    if length > MOST_LINE {
        return Err(refuse_results(
            "a result of vegeta is longer than 4 MiB; -max-body=0 leaves answers out",
        ));
    }
    let read = read.and_then(|_| Read::take(&mut *input.text, length).read_to_end(message));
    Ok(length > 0 && read.is_ok_and(|read| read as u64 == length))
}

fn has_fields(mut description: &[u8]) -> bool {
    FIELDS.iter().all(|field| {
        let found = description
            .windows(field.len())
            .position(|part| part == *field);
        description = found.map_or(&[][..], |at| &description[at + field.len()..]);
        found.is_some()
    })
}

/// Bytes that follow the first of a number: none for one below 128, else it is minus their count.
fn extra_bytes(first: u8) -> usize {
    match first {
        0..=127 => 0,
        _ => usize::from(first.wrapping_neg()),
    }
}

struct GobBytes<'a>(&'a [u8]);

impl<'a> GobBytes<'a> {
    fn take_number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        let (bytes, rest) = rest.split_at_checked(extra_bytes(*first))?;
        self.0 = rest;
        match bytes.len() {
            0 => Some(u64::from(*first)),
            1..=8 => Some(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))),
            _ => None,
        }
    }

    fn take_signed(&mut self) -> Option<i64> {
        let number = self.take_number()?;
        let half = (number >> 1).cast_signed();
        Some(if number & 1 == 0 { half } else { !half })
    }

    fn take_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.take_number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Fields that are zero or empty are left out; each number before one says how many.
    fn count_result(&mut self, book: &mut ReportBook) -> Option<()> {
        let (mut result, mut unix, mut field) = (VegetaResult::default(), None, 0);
        loop {
            let step = self.take_number()?;
            field = step.saturating_add(field);
            match field {
                _ if step == 0 || field > FIELDS.len() as u64 => break,
                3 => result.code = self.take_number()?.try_into().ok()?,
                4 => unix = Some(go_time(self.take_bytes()?)?),
                5 => result.latency = self.take_signed()?.try_into().ok()?,
                2 | 6 | 7 => drop(self.take_number()?),
                1 | 9 => drop(self.take_bytes()?),
                8 => result.error = String::from_utf8_lossy(self.take_bytes()?),
                10 => result.method = String::from_utf8_lossy(self.take_bytes()?),
                _ => result.url = String::from_utf8_lossy(self.take_bytes()?),
            }
        }
        result.count_at(unix?, book);
        Some(())
    }
}

/// A version, s since the year 1, ns, a zone.
fn go_time(bytes: &[u8]) -> Option<f64> {
    let seconds = i64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?);
    let nanos = u32::from_be_bytes(bytes.get(9..13)?.try_into().ok()?);
    Some(seconds as f64 - GO_EPOCH + f64::from(nanos) / 1e9)
}
