//! Every trial, one row each, in running order.

use loadline_analysis::record::{Purpose, TrialRecord};
use loadline_analysis::sli::Measured;

use super::groups;
use super::section::{Block, Section};
use crate::figures::{self, Figures, Seen};
use crate::format;
use crate::table::{Cell, Table};
use crate::view::ResultView;

/// The section; `None` when there are no trials.
pub fn section(view: &ResultView) -> Option<Section> {
    let table = table(view);
    if table.is_empty() {
        return None;
    }
    Some(
        Section::new(
            "trials",
            format!("All {}", format::count(view.trials.len(), "trial")),
        )
        .folded()
        .with(Block::Table(table))
        .with_all(cut(view).map(Block::Paragraph)),
    )
}

/// Over which time the shares are of trials that were ended early.
fn cut(view: &ResultView) -> Option<String> {
    let ran = |(number, trial): (usize, &TrialRecord)| {
        let early = trial.evidence.ended_early.as_ref()?;
        let measured = Measured::of(&trial.evidence).ok().flatten();
        Some(match measured {
            Some(measured) => format!(
                "trial {number} after {} of load",
                format::time(measured.duration)
            ),
            None => format!("trial {number} in its {} phase", early.phase),
        })
    };
    let all: Vec<String> = (1..).zip(&view.trials).filter_map(ran).collect();
    (!all.is_empty()).then(|| {
        format!(
            "Ended early, because they could not pass any more: {}. Peaks and shares of these are of that time, latencies and rates are not shown.",
            all.join(", ")
        )
    })
}

/// The table of all trials.
pub fn table(view: &ResultView) -> Table {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let mut table = Table::new()
        .right("Trial")
        .left("Purpose")
        .wrapping("Configuration")
        .left("Verdict")
        .right(quantile.to_string())
        .right("Achieved")
        .right("Failed")
        .right("Start")
        .right("Peak memory")
        .right("GC stopped")
        .right("Throttled")
        .wrapping("Reason");
    let names = groups::Names::of(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let figures = Figures::of(trial, quantile);
        let or_none =
            |text: Option<String>| Cell::from(text.unwrap_or_else(|| format::NONE.into()));
        table.row([
            (i + 1).to_string().into(),
            purpose(trial.purpose).into(),
            names.name(&trial.configuration).into(),
            Cell::new(
                figures::verdict(trial.verdict),
                figures::tone(trial.verdict),
            ),
            format::time_or(figures.headline.and_then(Seen::time)).into(),
            or_none(figures.sli.achieved_rate.map(format::rate)),
            or_none(figures.sli.error_share.map(format::percent)),
            format::time_or(figures.sli.start).into(),
            format::bytes_or(figures.sli.peak_memory).into(),
            or_none(figures.sli.gc_pause_share.map(format::percent)),
            or_none(figures.sli.throttled_periods_share.map(format::percent)),
            trial.reason.to_string().into(),
        ]);
    }
    table
}

/// Why a trial ran, in a word.
pub fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Matrix => "matrix",
        Purpose::Search => "search",
        Purpose::Confirm => "confirm",
        Purpose::Prove => "prove",
        Purpose::Neighbour => "neighbour",
        Purpose::Compare => "compare",
        Purpose::Soak => "soak",
        Purpose::Abreast => "abreast",
    }
}
