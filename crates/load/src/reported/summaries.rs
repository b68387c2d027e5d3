//! Documents that a tool writes at its end: ghz's calls in JSON, and the sums of oha, Locust and wrk.
//!
//! Source: files of ghz 0.93.0, oha 1.16.0, Locust 2.47.0 and wrk 4.1.0. ghz stamps the end of a call
//! (`rs.EndTime` in its runner). oha counts any answer as success; here one with an error status failed.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use loadline_analysis::record::ReportedFigures;
use loadline_analysis::slo::parse_duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::book::{ReportedRow, RowTime, is_good};
use super::input::{ReportInput, refuse_results};
use crate::error::LoadError;
use crate::profile::{decimal, parse_iso};

fn has_text(head: &[u8], text: &[u8]) -> bool {
    head.windows(text.len()).any(|part| part == text)
}

/// Longest document of sums: only those of requests may be longer.
const LONGEST_SUMS: u64 = 4 << 20;

fn read_document<T: DeserializeOwned>(text: impl Read) -> Result<T, LoadError> {
    serde_json::from_reader(text).map_err(|error| {
        refuse_results(format!(
            "it is not a complete JSON document ({error}); the command must have ended by {{duration_s}}"
        ))
    })
}

#[derive(Deserialize)]
struct GhzDocument {
    options: GhzOptions,
    details: Option<Vec<GhzCall>>,
}

#[derive(Deserialize)]
struct GhzOptions {
    #[serde(default)]
    call: String,
}

/// There may be millions: texts are not kept.
#[derive(Deserialize)]
struct GhzCall {
    #[serde(rename = "timestamp", deserialize_with = "read_stamp")]
    end: f64,
    /// ns.
    latency: u64,
    #[serde(rename = "status", deserialize_with = "read_status")]
    is_ok: bool,
}

fn read_stamp<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let text = String::deserialize(from)?;
    parse_iso(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("no time"))
}

fn read_status<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    String::deserialize(from).map(|text| text == "OK")
}

pub(super) fn is_ghz(head: &[u8]) -> bool {
    head.starts_with(b"{") && has_text(head, b"\"endReason\"")
}

pub(super) fn read_ghz(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let document: GhzDocument = read_document(&mut *input.text)?;
    for call in document.details.unwrap_or_default() {
        let latency = call.latency as f64 / 1e9;
        input.book.count_row(&ReportedRow {
            at: RowTime::Unix(call.end - latency),
            latency,
            is_ok: call.is_ok,
            name: document.options.call.as_bytes(),
        });
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OhaDocument {
    /// s.
    latency_percentiles: OhaPercentiles,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct OhaPercentiles {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

pub(super) fn is_oha(head: &[u8]) -> bool {
    head.starts_with(b"{") && has_text(head, b"\"successRate\"")
}

pub(super) fn read_oha(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let document: OhaDocument = read_document(Read::take(&mut *input.text, LONGEST_SUMS))?;
    let sum =
        |counts: &mut dyn Iterator<Item = &u64>| counts.fold(0, |n: u64, c| n.saturating_add(*c));
    let statuses = &document.status_code_distribution;
    let errors = sum(&mut document.error_distribution.values());
    let bad = statuses
        .iter()
        .filter(|(status, _)| !is_good(status.as_bytes()));
    let bad = sum(&mut bad.map(|(_, count)| count));
    let at = |s: Option<f64>| Duration::try_from_secs_f64(s?).ok();
    let OhaPercentiles { p50, p90, p99 } = document.latency_percentiles;
    let figures = ReportedFigures {
        requests: sum(&mut statuses.values()).saturating_add(errors),
        failed: bad.saturating_add(errors),
        p50: at(p50),
        p90: at(p90),
        p99: at(p99),
    };
    input.book.take_summary("", figures);
    Ok(())
}

pub(super) fn is_locust(head: &[u8]) -> bool {
    head.starts_with(b"Type,Name,Request Count,Failure Count,")
}

/// The row without a type sums all up.
pub(super) fn read_locust(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    const NAMES: [&str; 7] = [
        "Type",
        "Name",
        "Request Count",
        "Failure Count",
        "50%",
        "90%",
        "99%",
    ];
    let mut header: Option<[usize; 7]> = None;
    input.each_record(|record, book| {
        let Some(columns) = header else {
            header = Some(record.find_columns(NAMES)?);
            return Some(());
        };
        let [method, name, requests, failed, p50, p90, p99] = columns;
        let number = |at| record.field(at).and_then(decimal);
        let ms = |at| Duration::try_from_secs_f64(number(at)? / 1e3).ok();
        let text = |at| record.field(at).map(String::from_utf8_lossy);
        let name = match text(method)? {
            empty if empty.is_empty() => String::new(),
            method => format!("{method} {}", text(name)?),
        };
        let figures = ReportedFigures {
            requests: number(requests)? as u64,
            failed: number(failed)? as u64,
            p50: ms(p50),
            p90: ms(p90),
            p99: ms(p99),
        };
        book.take_summary(&name, figures);
        Some(())
    })
}

pub(super) fn is_wrk(head: &[u8]) -> bool {
    head.starts_with(b"Running ") && has_text(head, b" test @ ")
}

/// The text that wrk and wrk2 print; percentiles only with `--latency`. A request without an answer is in the
/// socket errors only.
pub(super) fn read_wrk(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut figures = ReportedFigures::default();
    let (mut answers, mut lost) = (None, 0_u64);
    input.each_line(|line, _| {
        let line = String::from_utf8_lossy(line);
        let number = |text: &str| text.trim().parse::<u64>().unwrap_or_default();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["50%" | "50.000%", time] => figures.p50 = parse_duration(time),
            ["90%" | "90.000%", time] => figures.p90 = parse_duration(time),
            ["99%" | "99.000%", time] => figures.p99 = parse_duration(time),
            [count, "requests", "in", ..] => answers = Some(number(count)),
            ["Non-2xx", .., count] => figures.failed = number(count),
            ["Socket", "errors:", ..] => {
                let counts = words.iter().map(|word| number(word.trim_end_matches(',')));
                lost = counts.fold(0, u64::saturating_add);
            }
            _ => {}
        }
        Some(())
    })?;
    let answers = answers.ok_or_else(|| {
        refuse_results("it is only the start of wrk's text; wrk must end by {duration_s}")
    })?;
    figures.requests = answers.saturating_add(lost);
    figures.failed = figures.failed.saturating_add(lost);
    input.book.take_summary("", figures);
    Ok(())
}
