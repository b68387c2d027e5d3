//! JMeter's JTL as CSV and XML: samples with their start in ms since 1970, and whole ms.
//!
//! Source: jmeter.apache.org/usermanual/listeners.html, sections 3 and 4, and files of JMeter 5.6.3.
//! The stamp is the start (`sampleresult.timestamp.start`, as shipped). Where samples have parts, such
//! as redirects, the parts are what was sent. A transaction is none; in CSV only its message tells it.

use super::book::{ReportBook, ReportedRow, RowTime};
use super::input::{ReportInput, refuse_results};
use crate::error::LoadError;
use crate::profile::decimal;

const TRANSACTION: &[u8] = b"Number of samples in transaction";

/// Samples in each other that are told apart.
const MOST_DEPTH: usize = 100;

pub(super) fn is_csv(head: &[u8]) -> bool {
    let header = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let has = |name: &[u8]| header.split(|b| *b == b',').any(|field| field == name);
    has(b"timeStamp") && has(b"elapsed")
}

pub(super) fn is_xml(head: &[u8]) -> bool {
    head.windows(12).any(|part| part == b"<testResults")
}

fn sample_row<'a>(
    stamp: &[u8],
    elapsed: &[u8],
    is_ok: bool,
    name: &'a [u8],
) -> Option<ReportedRow<'a>> {
    Some(ReportedRow {
        at: RowTime::Unix(decimal(stamp)? / 1e3),
        latency: decimal(elapsed)? / 1e3,
        is_ok,
        name,
    })
}

pub(super) fn read_csv(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut header: Option<[usize; 3]> = None;
    let mut optional = [None; 2];
    input.each_record(|record, book| {
        let Some([stamp, elapsed, success]) = header else {
            header = Some(record.find_columns(["timeStamp", "elapsed", "success"])?);
            optional = ["label", "responseMessage"].map(|name| record.find_columns([name]));
            return Some(());
        };
        let [name, message] =
            optional.map(|column| column.and_then(|[at]| record.field(at)).unwrap_or_default());
        if !message.starts_with(TRANSACTION) {
            let is_ok = record.field(success)?.eq_ignore_ascii_case(b"true");
            let row = sample_row(record.field(stamp)?, record.field(elapsed)?, is_ok, name)?;
            book.count_row(&row);
        }
        Some(())
    })
}

struct OpenSample {
    tag: Vec<u8>,
    has_parts: bool,
}

pub(super) fn read_xml(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut open: Vec<OpenSample> = Vec::new();
    let mut piece = Vec::new();
    loop {
        piece.clear();
        if !input.append_until(b'>', &mut piece)? {
            return Ok(());
        }
        let mut bytes = piece.iter();
        let begin = bytes.rposition(|b| *b == b'<').map_or(0, |at| at + 1);
        let tag = &piece[begin..];
        let is_end = matches!(tag, b"/httpSample" | b"/sample");
        if is_end && let Some(sample) = open.pop() {
            count_sample(&sample, &mut input.book)?;
        }
        if !tag.starts_with(b"httpSample ") && !tag.starts_with(b"sample ") {
            continue;
        }
        if let Some(whole) = open.last_mut() {
            whole.has_parts = true;
        }
        let sample = OpenSample {
            tag: tag.to_vec(),
            has_parts: false,
        };
        match tag.last() {
            Some(b'/') => count_sample(&sample, &mut input.book)?,
            _ if open.len() >= MOST_DEPTH => {
                return Err(refuse_results(
                    "its samples are more than 100 deep; is it JMeter's?",
                ));
            }
            _ => open.push(sample),
        }
    }
}

fn count_sample(sample: &OpenSample, book: &mut ReportBook) -> Result<(), LoadError> {
    let value = |name| attribute(&sample.tag, name);
    if sample.has_parts || value(b" rm=\"").is_some_and(|said| said.starts_with(TRANSACTION)) {
        return Ok(());
    }
    let is_ok = value(b" s=\"") == Some(b"true");
    let row = value(b" ts=\"").zip(value(b" t=\""));
    let row = row.and_then(|(stamp, elapsed)| {
        sample_row(stamp, elapsed, is_ok, value(b" lb=\"").unwrap_or_default())
    });
    let row = row.ok_or_else(|| {
        refuse_results("a sample of JMeter's XML has no ts and t; jmeter.save.saveservice.time and timestamp_format=ms write them")
    })?;
    book.count_row(&row);
    Ok(())
}

fn attribute<'a>(tag: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = tag.windows(name.len()).position(|part| part == name)?;
    tag[at + name.len()..].split(|b| *b == b'"').next()
}
