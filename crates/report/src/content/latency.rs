//! Latency by percentile, a row a configuration: the table below the chart.

use loadline_analysis::latency::Latency;

use super::headline::{capital, slo_words};
use super::section::Section;
use super::{drill, groups};

use crate::figures::{self, QUANTILES};
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

pub fn latency_section(view: &ResultView) -> Option<Section> {
    let mut table = Table::new().wrapping("Configuration").right("Trials");
    for quantile in QUANTILES {
        let percent = (quantile * 100.0 * 1e6).round() / 1e6;
        table = table.right(format!("p{percent}"));
    }
    let names = groups::ConfigurationNames::for_result(view);
    let mut groups = groups::group_trials(view);
    if !names.differ_beyond_memory() {
        groups.sort_by_key(|g| std::cmp::Reverse(g.configuration.memory));
    }
    for group in groups {
        let trials = group.evidence_trials();
        let measured: Vec<Latency> = trials.filter_map(figures::judged_latency).collect();
        if measured.is_empty() {
            continue;
        }
        let mut row = vec![
            TableCell::from(names.cell_name(group.configuration)),
            TableCell::from(measured.len().to_string()),
        ];
        for quantile in QUANTILES {
            let seen = measured
                .iter()
                .filter_map(|l| figures::latency_at(l, quantile));
            let median = figures::spread(seen).and_then(|s| s.median.known_time());
            row.push(format::time_or(median).into());
        }
        table.add_row(row);
    }
    if table.has_no_rows() {
        return None;
    }
    let before = drill::before_outage(view);
    Some(
        Section::new("latency", "Latency by percentile")
            .with_paragraph(format!(
                "{}, over all scheduled requests of the measured phase; the median of the trials. A request that failed counts as slower than every other; a dash means that the median lies there. The SLO: {}.{before}",
                capital(view.latency_origin()),
                slo_words(view)
            ))
            .with_table(table),
    )
}
