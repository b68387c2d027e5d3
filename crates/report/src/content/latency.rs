//! Latency by percentile, a row a configuration: the table below the chart.

use super::headline::slo_words;
use super::section::{Block, Section};
use super::{drill, groups};
use loadline_analysis::latency::Latency;

use crate::figures::{self, QUANTILES};
use crate::format;
use crate::table::{Cell, Table};
use crate::view::ResultView;

/// The section; `None` when no load was measured.
pub fn section(view: &ResultView) -> Option<Section> {
    let mut table = Table::new().wrapping("Configuration").right("Trials");
    for quantile in QUANTILES {
        table = table.right(format!("p{}", percent(quantile)));
    }
    let names = groups::Names::of(view);
    let mut groups = groups::groups(view);
    if !names.differ() {
        groups.sort_by_key(|g| std::cmp::Reverse(g.configuration.memory));
    }
    for group in groups {
        let measured: Vec<Latency> = group.evidence().filter_map(figures::latency).collect();
        if measured.is_empty() {
            continue;
        }
        let mut row = vec![
            Cell::from(names.name(group.configuration)),
            Cell::from(measured.len().to_string()),
        ];
        for quantile in QUANTILES {
            let seen = measured.iter().filter_map(|l| figures::at(l, quantile));
            let median = figures::latencies(seen).and_then(|s| s.median.time());
            row.push(format::time_or(median).into());
        }
        table.row(row);
    }
    if table.is_empty() {
        return None;
    }
    let before = drill::before(view).map_or_else(String::new, |words| format!(" {words}"));
    Some(
        Section::new("latency", "Latency by percentile")
            .with(Block::Paragraph(format!(
                "From the intended send time, over all scheduled requests of the measured phase; the median of the trials. A request that failed counts as slower than every other; a dash means that the median lies there. The SLO: {}.{before}",
                slo_words(view)
            )))
            .with(Block::Table(table)),
    )
}

fn percent(quantile: f64) -> f64 {
    (quantile * 100.0 * 1e6).round() / 1e6
}
