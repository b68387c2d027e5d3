//! Metrics of the measure phase: the samples of each trial.

use loadline_analysis::record::MetricEvidence;
use loadline_analysis::text;

use super::Section;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

/// The table of a long search has the last trials.
const SHOWN: usize = 30;

pub(super) fn section(view: &ResultView) -> Option<Section> {
    let mut table = Table::new()
        .right("Trial")
        .wrapping("Metric")
        .right("Samples | Missing | Least | Most | Last");
    let trials = view.trials.iter().enumerate();
    let rows = trials.flat_map(|(i, t)| t.evidence.metrics.iter().map(move |m| (i + 1, m)));
    let rows: Vec<_> = rows.collect();
    for (number, metric) in &rows[rows.len().saturating_sub(SHOWN)..] {
        table.add_row(cells(*number, metric));
    }
    let words = "One sample a second of the measure phase. A missing one (no answer in time, no number) counts as worse than any other.";
    let section = Section::new("metrics", "What did the metrics show?");
    (!rows.is_empty()).then(|| section.with_paragraph(words).with_table(table))
}

fn cells(number: usize, metric: &MetricEvidence) -> Vec<TableCell> {
    let seen = || metric.values.iter().flatten().copied();
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), text::three_digits);
    vec![
        number.to_string().into(),
        metric.name.clone().into(),
        metric.values.len().to_string().into(),
        metric.missing().to_string().into(),
        show(seen().reduce(f64::min)).into(),
        show(seen().reduce(f64::max)).into(),
        show(metric.values.last().copied().flatten()).into(),
    ]
}
