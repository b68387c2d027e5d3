//! A load command's own result file: the requests that it says it made.
//!
//! Owns which formats are read, told apart by content, and how rows become figures: only those of the
//! judged part count, failed ones as slowest. A tool's own percentiles are taken only where it wrote
//! no rows. Each format has a file with its source; nothing here is judged.

mod book;
mod contract;
mod gatling;
mod input;
mod jmeter;
mod summaries;
mod table;
mod vegeta;

use std::io::{BufRead, BufReader, Read};

use loadline_analysis::record::ReportedEvidence;

use crate::error::LoadError;
use book::ReportBook;
pub use book::ReportedWindow;
use input::{ReportInput, refuse_results};

/// Largest file, in bytes: an hour of 1,000 requests a second in most formats.
const MOST: u64 = 256 << 20;

/// What is looked at to tell the format, in bytes.
const HEAD: usize = 4096;

const READS: &str = "loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {\"time\": 1795738504.25, \"latency\": 0.0123, \"ok\": true}";

struct ResultFormat {
    name: &'static str,
    is_format: fn(&[u8]) -> bool,
    read: fn(&mut ReportInput<'_>) -> Result<(), LoadError>,
}

const fn format(
    name: &'static str,
    is_format: fn(&[u8]) -> bool,
    read: fn(&mut ReportInput<'_>) -> Result<(), LoadError>,
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
    let mut input = ReportInput::new(&mut text, ReportBook::new(window));
    let read = (format.read)(&mut input);
    let book = input.book;
    if text.get_ref().limit() == 0 {
        let why = "it is larger than 256 MiB; let the command write less for each request";
        return Err(refuse_results(why));
    }
    read?;
    book.check_count()?;
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
