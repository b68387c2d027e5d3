//! Every trial, one row each, in running order.

use loadline_analysis::record::{TrialPurpose, TrialRecord};
use loadline_analysis::sli::MeasuredLoad;

use super::groups;
use super::section::{Section, SectionBlock};
use crate::figures::{self, SeenLatency, TrialFigures};
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

pub fn trials_section(view: &ResultView) -> Option<Section> {
    let table = trials_table(view);
    if table.has_no_rows() {
        return None;
    }
    let all = format::count_of(view.trials.len(), "trial");
    let section = Section::new("trials", format!("All {all}")).folded();
    let section = section.with_table(table);
    Some(section.with_all(early_end_note(view).map(SectionBlock::Paragraph)))
}

fn early_end_note(view: &ResultView) -> Option<String> {
    let ran = |(number, trial): (usize, &TrialRecord)| {
        let early = trial.evidence.ended_early.as_ref()?;
        let measured = MeasuredLoad::from_evidence(&trial.evidence).ok().flatten();
        Some(match measured {
            Some(measured) => {
                let length = format::measured_time(measured.duration);
                format!("trial {number} after {length} of load")
            }
            None => format!("trial {number} in its {} phase", early.phase),
        })
    };
    let all: Vec<String> = (1..).zip(&view.trials).filter_map(ran).collect();
    (!all.is_empty()).then(|| {
        format!(
            "Ended early, because they could no longer pass: {}. Their peaks and shares cover that time; latencies and rates are not shown.",
            all.join(", ")
        )
    })
}

pub fn trials_table(view: &ResultView) -> Table {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let mut table = Table::new()
        .right("Trial")
        .left("Purpose")
        .wrapping("Configuration")
        .left("Verdict")
        .right(quantile.to_string())
        .right("Achieved | Failed | Start | Peak memory | GC stopped | Throttled")
        .wrapping("Reason");
    let names = groups::ConfigurationNames::for_result(view);
    for (i, trial) in view.trials.iter().enumerate() {
        let figures = TrialFigures::for_trial(trial, quantile);
        let or_none = |text| TableCell::from(format::or_none(text));
        table.add_row([
            (i + 1).to_string().into(),
            purpose(trial.purpose).into(),
            names.cell_name(&trial.configuration).into(),
            TableCell::new(
                figures::verdict_words(trial.verdict),
                figures::tone(trial.verdict),
            ),
            format::time_or(figures.headline.and_then(SeenLatency::known_time)).into(),
            or_none(figures.sli.achieved_rate.map(format::as_rate)),
            or_none(figures.sli.error_share.map(format::as_percent)),
            format::time_or(figures.sli.start).into(),
            format::bytes_or(figures.sli.peak_memory).into(),
            or_none(figures.sli.gc_pause_share.map(format::as_percent)),
            or_none(figures.sli.throttled_periods_share.map(format::as_percent)),
            trial.reason.to_string().into(),
        ]);
    }
    if !view.sends_requests() {
        table.drop_unknown_columns();
    }
    table
}

pub fn purpose(purpose: TrialPurpose) -> &'static str {
    match purpose {
        TrialPurpose::Matrix => "matrix",
        TrialPurpose::Search => "search",
        TrialPurpose::Confirm => "confirm",
        TrialPurpose::Prove => "prove",
        TrialPurpose::Neighbour => "neighbour",
        TrialPurpose::Compare => "compare",
        TrialPurpose::Soak => "soak",
        TrialPurpose::Room => "room",
        TrialPurpose::Squeeze => "squeeze",
    }
}
