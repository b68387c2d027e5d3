//! Each request of a mix: number sent, failures, latency.
//!
//! Owns which requests are shown: the most frequent ones of the recommended configuration, or of
//! all without a recommendation.

use loadline_analysis::record::TrialRecord;
use loadline_analysis::sli::{MeasuredLoad, MeasuredRequest};

use super::groups::{self, ConfigurationGroup};
use super::section::Section;
use crate::figures::{self, spread};
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

/// A profile has up to thousands; more rows say no more.
const SHOWN: usize = 20;

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

pub fn requests_section(view: &ResultView) -> Option<Section> {
    let recommended = view.recommendation.as_ref();
    let recommended = recommended.and_then(|r| groups::group_of(view, &r.configuration));
    let groups = recommended.map_or_else(|| groups::group_trials(view), |group| vec![group]);
    let names = groups::ConfigurationNames::for_result(view);
    let mut table = Table::new();
    if groups.len() > 1 {
        table = table.wrapping("Configuration");
    }
    table = table.wrapping("Request").right("Sent").right("Failed");
    for quantile in QUANTILES {
        table = table.right(format!("p{}", (quantile * 1e5).round() / 1e3));
    }
    let mut left_out = 0;
    for group in &groups {
        let of_group = requests_of_group(group);
        left_out = left_out.max(of_group.len().saturating_sub(SHOWN));
        for request in of_group.into_iter().take(SHOWN) {
            let mut row = Vec::new();
            if groups.len() > 1 {
                row.push(TableCell::from(names.cell_name(group.configuration)));
            }
            row.extend(cells(&request));
            table.add_row(row);
        }
    }
    if table.has_no_rows() {
        return None;
    }
    let mut words = format!(
        "Each request of the mix in the measured phase; medians of the trials. Latency counts {}; a request that failed counts as slower than every other, and a dash means that the median lies there.",
        view.latency_origin()
    );
    if left_out > 0 {
        let others = format::count_of(left_out, "other");
        words += &format!(" The {SHOWN} that were sent most; {others} left out.");
    }
    let section = Section::new("requests", "Each request");
    Some(section.with_paragraph(words).with_table(table))
}

struct RequestFigures {
    name: String,
    /// For each trial: the figures, and its length in seconds.
    trials: Vec<(MeasuredRequest, f64)>,
}

fn requests_of_group(group: &ConfigurationGroup<'_>) -> Vec<RequestFigures> {
    let mut requests: Vec<RequestFigures> = Vec::new();
    for measured in group.evidence_trials().filter_map(measured_requests) {
        let seconds = measured.duration.as_secs_f64();
        for request in measured.by_request {
            match requests.iter_mut().find(|r| r.name == request.name) {
                Some(known) => known.trials.push((request, seconds)),
                None => requests.push(RequestFigures {
                    name: request.name.clone(),
                    trials: vec![(request, seconds)],
                }),
            }
        }
    }
    let sent = |(request, _): &(MeasuredRequest, f64)| request.sent();
    requests.sort_by_key(|r| std::cmp::Reverse(r.trials.iter().map(sent).sum::<u64>()));
    requests
}

/// `None` when nothing was measured, the trial was ended early or the record is damaged.
fn measured_requests(trial: &TrialRecord) -> Option<MeasuredLoad> {
    let is_whole = trial.evidence.ended_early.is_none();
    let load = MeasuredLoad::from_evidence(&trial.evidence).ok()?;
    load.filter(|_| is_whole)
}

fn cells(request: &RequestFigures) -> Vec<TableCell> {
    let trials = || request.trials.iter();
    let rates = trials().map(|(request, seconds)| request.sent() as f64 / seconds.max(1e-9));
    let failed = trials().filter_map(|(request, _)| request.error_share());
    let or_none = |text| TableCell::from(format::or_none(text));
    let mut cells = vec![
        TableCell::from(request.name.clone()),
        or_none(spread(rates).map(|s| format::as_rate(s.median))),
        or_none(spread(failed).map(|s| format::as_percent(s.median))),
    ];
    for quantile in QUANTILES {
        let seen =
            trials().filter_map(|(request, _)| figures::latency_at(&request.latency, quantile));
        let median = figures::spread(seen).and_then(|s| s.median.known_time());
        cells.push(format::time_or(median).into());
    }
    cells
}
