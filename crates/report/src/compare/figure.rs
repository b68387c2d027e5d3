//! One figure of two groups of trials: both values and the ratio with its interval.
//!
//! Owns the list of compared figures. The interval is [`loadline_analysis::interval::ratio`], one
//! value a trial, so it holds the spread between starts.

use std::time::Duration;

use loadline_analysis::interval::{Bootstrap, Interval, Statistic, median, ratio};

use crate::content::groups::Group;
use crate::figures::{self, FAILED, Figures};
use crate::format;
use crate::view::ResultView;
use loadline_sizing::Bytes;

/// Fewest trials on each side for an interval: with fewer a bootstrap repeats what it was given.
const FEWEST: usize = 3;
/// A difference smaller than this share is none.
const EFFECT: f64 = 0.02;

/// What an interval says of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The whole interval lies above.
    More,
    /// The whole interval lies below.
    Less,
    /// The interval holds "no change".
    NotShown,
    /// Too few trials for an interval.
    TooFew,
    /// In a trial of either side it lies in requests that failed: it has no ratio.
    InFailures,
}

/// A figure on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Name in JSON, with its unit.
    pub key: &'static str,
    /// The medians: seconds, bytes, or as the name says; `None` where it was not measured.
    pub medians: [Option<f64>; 2],
    /// The medians as text.
    pub shown: [String; 2],
    /// Trials behind each.
    pub trials: [usize; 2],
    /// The second over the first.
    pub ratio: Option<Interval>,
    /// What that says.
    pub change: Change,
}

/// How a value is read from a trial and shown.
struct Row {
    name: &'static str,
    key: &'static str,
    read: fn(&Figures) -> Option<f64>,
    show: fn(f64) -> String,
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|t| t.as_secs_f64())
}

/// A time; infinite is in requests that failed.
fn show_time(value: f64) -> String {
    if value == f64::INFINITY {
        return FAILED.to_owned();
    }
    Duration::try_from_secs_f64(value).map_or_else(|_| format::NONE.to_owned(), format::time)
}

fn show_bytes(value: f64) -> String {
    format::bytes(Bytes::from_bytes(value.max(0.0) as u64))
}

fn bytes(value: Option<Bytes>) -> Option<f64> {
    value.map(|b| b.as_bytes() as f64)
}

const ROWS: &[Row] = &[
    Row {
        name: "Latency at the SLO's percentile",
        key: "latency_s",
        read: |f| Some(seconds(f.headline?.time()).unwrap_or(f64::INFINITY)),
        show: show_time,
    },
    Row {
        name: "Start time",
        key: "start_s",
        read: |f| seconds(f.sli.start),
        show: show_time,
    },
    Row {
        name: "Achieved rate",
        key: "achieved_per_s",
        read: |f| f.sli.achieved_rate,
        show: format::rate,
    },
    Row {
        name: "CPUs used",
        key: "cpus",
        read: |f| f.sli.cpus_used,
        show: format::number,
    },
    Row {
        name: "Time stopped by GC",
        key: "gc_share",
        read: |f| f.sli.gc_pause_share,
        show: format::percent,
    },
    Row {
        name: "CFS periods throttled",
        key: "throttled_share",
        read: |f| f.sli.throttled_periods_share,
        show: format::percent,
    },
    Row {
        name: "Heap after GC, largest",
        key: "heap_after_bytes",
        read: |f| bytes(f.heap_after),
        show: show_bytes,
    },
    Row {
        name: "Peak working set",
        key: "working_set_bytes",
        read: |f| bytes(f.sli.peak_working_set),
        show: show_bytes,
    },
    Row {
        name: "Peak anonymous memory",
        key: "anon_bytes",
        read: |f| bytes(f.anon),
        show: show_bytes,
    },
];

/// The figures of two groups; those that neither side measured are left out.
pub fn figures(view: &ResultView, a: Option<&Group<'_>>, b: Option<&Group<'_>>) -> Vec<Figure> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let sides = [a, b].map(|group| -> Vec<Figures> {
        group
            .into_iter()
            .flat_map(Group::evidence)
            .map(|t| Figures::of(t, quantile))
            .collect()
    });
    let rows = ROWS.iter().map(|row| figure(row, &sides));
    rows.filter(|f| f.medians.iter().any(Option::is_some))
        .collect()
}

fn figure(row: &Row, sides: &[Vec<Figures>; 2]) -> Figure {
    let values = sides.each_ref().map(|side| -> Vec<f64> {
        let read = side.iter().filter_map(row.read);
        read.filter(|v| !v.is_nan()).collect()
    });
    // Between two that lie in failures there is no number; the middle lies there as well.
    let middle = |m: f64| if m.is_nan() { f64::INFINITY } else { m };
    let medians = values.each_ref().map(|v| median(v).map(middle));
    let shown = medians.map(|m| m.map_or_else(|| format::NONE.to_owned(), row.show));
    let is_failed = values.iter().flatten().any(|v| v.is_infinite());
    let is_enough = !is_failed && values.iter().all(|v| v.len() >= FEWEST);
    let starts = values
        .each_ref()
        .map(|v| v.iter().map(|x| vec![*x]).collect::<Vec<_>>());
    let interval = is_enough
        .then(|| {
            ratio(
                &starts[1],
                &starts[0],
                Statistic::Median,
                Bootstrap::default(),
            )
        })
        .flatten();
    let change = match interval {
        None if is_failed => Change::InFailures,
        None if is_enough => Change::NotShown,
        None => Change::TooFew,
        Some(interval) if !interval.is_difference(EFFECT) => Change::NotShown,
        Some(interval) if interval.estimate > 1.0 => Change::More,
        Some(_) => Change::Less,
    };
    Figure {
        name: row.name,
        key: row.key,
        trials: values.each_ref().map(Vec::len),
        medians,
        shown,
        ratio: interval,
        change,
    }
}
