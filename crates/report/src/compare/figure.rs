//! One figure of two groups of trials: both values and the ratio with its interval.
//!
//! Owns the list of compared figures. The interval is [`loadline_analysis::interval::ratio_interval`], one
//! value a trial, so it holds the spread between starts.

use std::time::Duration;

use loadline_analysis::interval::{
    Bootstrap, ConfidenceInterval, Statistic, median, ratio_interval,
};
use loadline_sizing::Bytes;

use crate::content::groups::ConfigurationGroup;
use crate::figures::{self, FAILED, TrialFigures};
use crate::format;
use crate::view::ResultView;

/// Fewest trials on each side for an interval: with fewer a bootstrap repeats what it was given.
const FEWEST: usize = 3;
const EFFECT: f64 = 0.02;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureChange {
    More,
    Less,
    NotShown,
    TooFew,
    /// In a trial of either side the latency lies among failed requests: there is no ratio.
    InFailures,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    pub name: &'static str,
    pub key: &'static str,
    pub medians: [Option<f64>; 2],
    pub shown: [String; 2],
    pub trials: [usize; 2],
    pub ratio: Option<ConfidenceInterval>,
    pub change: FigureChange,
}

struct FigureRow {
    name: &'static str,
    key: &'static str,
    read: fn(&TrialFigures) -> Option<f64>,
    show: fn(f64) -> String,
}

fn as_seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|t| t.as_secs_f64())
}

/// A time; infinite means among failed requests.
fn show_time(value: f64) -> String {
    if value == f64::INFINITY {
        return FAILED.to_owned();
    }
    Duration::try_from_secs_f64(value)
        .map_or_else(|_| format::NONE.to_owned(), format::measured_time)
}

fn show_bytes(value: f64) -> String {
    format::measured_bytes(Bytes::from_bytes(value.max(0.0) as u64))
}

fn byte_count(value: Option<Bytes>) -> Option<f64> {
    value.map(|b| b.as_bytes() as f64)
}

const ROWS: &[FigureRow] = &[
    FigureRow {
        name: "Latency at the SLO's percentile",
        key: "latency_s",
        read: |f| Some(as_seconds(f.headline?.known_time()).unwrap_or(f64::INFINITY)),
        show: show_time,
    },
    FigureRow {
        name: "Start time",
        key: "start_s",
        read: |f| as_seconds(f.sli.start),
        show: show_time,
    },
    FigureRow {
        name: "Achieved rate",
        key: "achieved_per_s",
        read: |f| f.sli.achieved_rate,
        show: format::as_rate,
    },
    FigureRow {
        name: "CPUs used",
        key: "cpus",
        read: |f| f.sli.cpus_used,
        show: format::three_digits,
    },
    FigureRow {
        name: "Time stopped by GC",
        key: "gc_share",
        read: |f| f.sli.gc_pause_share,
        show: format::as_percent,
    },
    FigureRow {
        name: "CFS periods throttled",
        key: "throttled_share",
        read: |f| f.sli.throttled_periods_share,
        show: format::as_percent,
    },
    FigureRow {
        name: "Heap after GC, largest",
        key: "heap_after_bytes",
        read: |f| byte_count(f.heap_after),
        show: show_bytes,
    },
    FigureRow {
        name: "Peak working set",
        key: "working_set_bytes",
        read: |f| byte_count(f.sli.peak_working_set),
        show: show_bytes,
    },
    FigureRow {
        name: "Peak anonymous memory",
        key: "anon_bytes",
        read: |f| byte_count(f.anon),
        show: show_bytes,
    },
];

/// The figures of two groups, except figures that neither side measured.
pub fn compare_figures(
    view: &ResultView,
    a: Option<&ConfigurationGroup<'_>>,
    b: Option<&ConfigurationGroup<'_>>,
) -> Vec<ComparedFigure> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let sides = [a, b].map(|group| group.map_or_else(Vec::new, |g| g.figures(quantile)));
    let rows = ROWS.iter().map(|row| compare_figure(row, &sides));
    rows.filter(|f| f.medians.iter().any(Option::is_some))
        .collect()
}

fn compare_figure(row: &FigureRow, sides: &[Vec<TrialFigures>; 2]) -> ComparedFigure {
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
    let starts = |values: &Vec<f64>| values.iter().map(|v| vec![*v]).collect::<Vec<_>>();
    let [before, after] = values.each_ref().map(starts);
    let ratio = || ratio_interval(&after, &before, Statistic::Median, Bootstrap::default());
    let interval = is_enough.then(ratio).flatten();
    let change = match interval {
        None if is_failed => FigureChange::InFailures,
        None if is_enough => FigureChange::NotShown,
        None => FigureChange::TooFew,
        Some(interval) if !interval.is_difference(EFFECT) => FigureChange::NotShown,
        Some(interval) if interval.estimate > 1.0 => FigureChange::More,
        Some(_) => FigureChange::Less,
    };
    ComparedFigure {
        name: row.name,
        key: row.key,
        trials: values.each_ref().map(Vec::len),
        medians,
        shown,
        ratio: interval,
        change,
    }
}
