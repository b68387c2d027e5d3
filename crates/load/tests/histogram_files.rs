//! The files that loadline writes mean the same to the standard tool as to loadline.
//!
//! `data/run.hlog` is an interval log of a real run; `data/run.tool.hgrm` is
//! HistogramLogProcessor's output for it (tests/histogram-files/run.sh writes both).

use std::collections::BTreeMap;

use loadline_load::export::to_hgrm;
use loadline_load::histogram::{self, Histogram};

const LOG: &str = include_str!("data/run.hlog");
const TOOL: &str = include_str!("data/run.tool.hgrm");

/// All intervals of the log together; those of the warm-up have a tag and do not count.
fn sum() -> Histogram {
    let mut sum = histogram::new();
    let rows = LOG.lines().filter(|l| !l.starts_with(['#', '"']));
    let rows = rows.filter(|l| !l.starts_with("Tag=warmup,"));
    for row in rows {
        let encoded = row.rsplit(',').next().expect("the last field");
        let interval = histogram::decode_histogram(encoded).expect("a histogram of loadline");
        sum.add(interval).expect("it has the same bounds");
    }
    sum
}

/// Percentile in millionths, value in ms, of each row.
fn rows(text: &str) -> Vec<(u64, f64, u64)> {
    let numbers = |line: &str| -> Option<(u64, f64, u64)> {
        let mut fields = line.split_whitespace();
        let value = fields.next()?.parse().ok()?;
        let quantile: f64 = fields.next()?.parse().ok()?;
        let count = fields.next()?.parse().ok()?;
        Some(((quantile * 1e6).round() as u64, value, count))
    };
    text.lines().filter_map(numbers).collect()
}

#[test]
fn the_standard_tool_reads_the_interval_log_as_it_was_meant() {
    let sum = sum();
    let tool = rows(TOOL);
    assert!(tool.len() > 20, "{} rows", tool.len());
    for (millionths, value, count) in &tool {
        let found = sum.value_at_quantile(*millionths as f64 / 1e6) as f64 / 1e6;
        assert!(
            (found / value - 1.0).abs() < 0.002,
            "at {millionths}: {found} ms, the tool says {value} ms"
        );
        assert!(*count <= sum.len());
    }
    assert_eq!(tool.last().expect("there are rows").2, sum.len());
}

#[test]
fn the_percentile_text_is_that_of_the_standard_tool() {
    let ours = to_hgrm(&sum(), 0);
    let by_percentile: BTreeMap<u64, (f64, u64)> = rows(&ours)
        .into_iter()
        .map(|(millionths, value, count)| (millionths, (value, count)))
        .collect();
    let mut same = 0;
    for (millionths, value, count) in rows(TOOL) {
        let Some((our_value, our_count)) = by_percentile.get(&millionths) else {
            continue;
        };
        assert!((our_value / value - 1.0).abs() < 0.002, "{millionths}");
        assert_eq!(*our_count, count, "{millionths}");
        same += 1;
    }
    assert!(same > 20, "{same} rows");
    // Mean, deviation, maximum, count: the footers are equal to the letter, but for rounding.
    for name in ["Max", "Total count", "Mean", "StdDeviation", "Buckets"] {
        let (ours, tool) = (footer(&ours, name), footer(TOOL, name));
        assert!((ours / tool - 1.0).abs() < 0.002, "{name}: {ours}, {tool}");
    }
}

fn footer(text: &str, name: &str) -> f64 {
    let lines = text.lines().filter(|l| l.starts_with("#["));
    let fields = lines.flat_map(|l| l.trim_matches(['#', '[', ']']).split(','));
    let value = fields
        .filter_map(|f| f.split_once('='))
        .find(|(n, _)| n.trim() == name);
    let value = value.expect("both have it").1.trim();
    value.parse().expect("a number")
}
