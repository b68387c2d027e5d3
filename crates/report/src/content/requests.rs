//! Each request of a mix: what was sent of it, what failed, how long it took.
//!
//! Owns which are shown: those that were sent most, of the configuration that is recommended, or of
//! all where none is.

use loadline_analysis::record::TrialRecord;
use loadline_analysis::sli::{Measured, MeasuredRequest};

use super::groups::{self, Group};
use super::section::{Block, Section};
use crate::figures::{self, spread};
use crate::format;
use crate::table::{Cell, Table};
use crate::view::ResultView;

/// A profile has up to thousands; more rows say no more.
const SHOWN: usize = 20;

/// Percentiles of each.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The section; `None` where every request was the same.
pub fn section(view: &ResultView) -> Option<Section> {
    let recommended = view
        .recommendation
        .as_ref()
        .and_then(|r| groups::group_of(view, &r.configuration));
    let groups = recommended.map_or_else(|| groups::groups(view), |group| vec![group]);
    let names = groups::Names::of(view);
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
        let of_group = requests(group);
        left_out = left_out.max(of_group.len().saturating_sub(SHOWN));
        for request in of_group.into_iter().take(SHOWN) {
            let mut row = Vec::new();
            if groups.len() > 1 {
                row.push(Cell::from(names.name(group.configuration)));
            }
            row.extend(cells(&request));
            table.row(row);
        }
    }
    if table.is_empty() {
        return None;
    }
    let mut words = "Each request of the mix in the measured phase; medians of the trials. Latency counts from the intended send time; a request that failed counts as slower than every other, and a dash means that the median lies there.".to_owned();
    if left_out > 0 {
        words += &format!(
            " The {SHOWN} that were sent most; {} left out.",
            format::count(left_out, "other")
        );
    }
    Some(
        Section::new("requests", "Each request")
            .with(Block::Paragraph(words))
            .with(Block::Table(table)),
    )
}

/// One request in the trials of a configuration.
struct Request {
    name: String,
    /// In each trial: what was measured, and for how many seconds.
    trials: Vec<(MeasuredRequest, f64)>,
}

impl Request {
    fn sent(&self) -> u64 {
        self.trials.iter().map(|(request, _)| request.sent()).sum()
    }
}

/// The requests of a configuration, those that were sent most first.
fn requests(group: &Group<'_>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for measured in group.evidence().filter_map(measured) {
        let seconds = measured.duration.as_secs_f64();
        for request in measured.by_request {
            let known = requests.iter_mut().find(|r| r.name == request.name);
            match known {
                Some(known) => known.trials.push((request, seconds)),
                None => requests.push(Request {
                    name: request.name.clone(),
                    trials: vec![(request, seconds)],
                }),
            }
        }
    }
    requests.sort_by_key(|request| std::cmp::Reverse(request.sent()));
    requests
}

/// `None` when nothing was measured, the trial was ended early or the record is damaged.
fn measured(trial: &TrialRecord) -> Option<Measured> {
    let is_whole = trial.evidence.ended_early.is_none();
    Measured::of(&trial.evidence).ok()?.filter(|_| is_whole)
}

fn cells(request: &Request) -> Vec<Cell> {
    let trials = || request.trials.iter();
    let rates = trials().map(|(request, seconds)| request.sent() as f64 / seconds.max(1e-9));
    let failed = trials().filter_map(|(request, _)| request.error_share());
    let or_none = |text: Option<String>| Cell::from(text.unwrap_or_else(|| format::NONE.into()));
    let mut cells = vec![
        Cell::from(request.name.clone()),
        or_none(spread(rates).map(|s| format::rate(s.median))),
        or_none(spread(failed).map(|s| format::percent(s.median))),
    ];
    for quantile in QUANTILES {
        let seen = trials().filter_map(|(request, _)| figures::at(&request.latency, quantile));
        let median = figures::latencies(seen).and_then(|s| s.median.time());
        cells.push(format::time_or(median).into());
    }
    cells
}
