//! The SLO table of the recommended size, and why not the next smaller one.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{
    Configuration, ObjectiveResult, TrialPurpose, TrialRecord, TrialVerdict,
};
use loadline_analysis::sli::Sli;
use loadline_analysis::slo::Objective;
use loadline_sizing::Cpus;

use super::groups::{self, ConfigurationGroup};
use super::headline;
use super::section::{Section, SectionBlock};
use crate::figures::{self, TrialFigures, spread};
use crate::format;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;

pub fn smaller_section(view: &ResultView) -> Option<Section> {
    let recommendation = view.recommendation.as_ref()?;
    let group = groups::group_of(view, &recommendation.configuration)?;
    let next = next_smaller(view, recommendation);
    let title = match &recommendation.next_smaller {
        Some(next) => format!("Does it keep the SLO, and why not {}?", next.memory),
        None => "Does it keep the SLO?".to_owned(),
    };
    let is_squeezed = next.is_none() && recommendation.next_smaller.is_some();
    let squeezed = is_squeezed.then(|| headline::next_smaller(view, recommendation));
    let squeezed = squeezed.flatten().map(SectionBlock::Paragraph);
    let words = "Median over the trials, the extremes in brackets. An objective is met when the worst trial met it.";
    let section = Section::new("slo", title).with_all(squeezed);
    let section = section.with_paragraph(words);
    let section = section.with_table(objectives(&group, next.as_ref()));
    Some(section.with_table(comparison(view, &group, next.as_ref())))
}

pub fn next_smaller<'a>(
    view: &'a ResultView,
    r: &Recommendation,
) -> Option<ConfigurationGroup<'a>> {
    let trial = view.trial_by_id(&r.next_smaller.as_ref()?.trial)?;
    // A squeezed start began above the limit at which it broke, and its figures are of there.
    let began_below = trial.configuration.memory < r.configuration.memory;
    groups::group_of(view, &trial.configuration).filter(|_| began_below)
}

/// `475m CPU is too little (trial 6): p99 was 310ms`, where the search chose the CPU, and the same of its
/// limit where it is not the request.
pub fn smaller_cpu(view: &ResultView, recommendation: &Recommendation) -> Vec<String> {
    let own = &recommendation.configuration;
    let limit = |of: &Configuration| of.cpu.filter(|_| of.cpu_request == own.cpu_request);
    let sure = too_little(view, own, Configuration::sure_cpu);
    let limit = own.cpu_request.and_then(|_| too_little(view, own, limit));
    let limit = limit.map(|text| format!("A limit of {text}"));
    sure.into_iter().chain(limit).collect()
}

fn too_little(
    view: &ResultView,
    own: &Configuration,
    amount: impl Fn(&Configuration) -> Option<Cpus>,
) -> Option<String> {
    let is_smaller = |trial: &&TrialRecord| {
        let other = &trial.configuration;
        matches!(trial.purpose, TrialPurpose::Room | TrialPurpose::Search)
            && trial.verdict.is_evidence()
            && trial.verdict != TrialVerdict::Pass
            && amount(other).is_some_and(|cpu| Some(cpu) < amount(own))
            && other.memory >= own.memory
    };
    let smaller = view.trials.iter().filter(is_smaller);
    let trial = smaller.max_by_key(|trial| amount(&trial.configuration))?;
    let number = view.trial_number(&trial.id)?;
    let throttled = Sli::from_record(trial).ok();
    let throttled = throttled.and_then(|sli| sli.throttled_periods_share);
    let throttled = throttled.filter(|share| *share > 0.0);
    let throttled = throttled.map(format::as_percent);
    let throttled = throttled.map(|share| format!(", throttled in {share} of its periods"));
    Some(format!(
        "{} CPU is too little (trial {number}): {}{}",
        amount(&trial.configuration)?,
        trial.reason.in_short(),
        throttled.unwrap_or_default()
    ))
}

fn objectives(group: &ConfigurationGroup<'_>, next: Option<&ConfigurationGroup<'_>>) -> Table {
    let mut table = Table::new()
        .left("Objective")
        .right(groups::memory_words(group.configuration))
        .left("Met");
    if let Some(next) = next {
        let memory = groups::memory_words(next.configuration);
        table = table.right(memory).left("Met");
    }
    let Some(first) = group.evidence_trials().find(|t| !t.objectives.is_empty()) else {
        return table;
    };
    for result in &first.objectives {
        let mut row = vec![TableCell::from(result.objective_text())];
        row.extend(objective(group, result));
        if let Some(next) = next {
            row.extend(objective(next, result));
        }
        table.add_row(row);
    }
    table
}

fn objective(group: &ConfigurationGroup<'_>, wanted: &ObjectiveResult) -> [TableCell; 2] {
    let objective = &wanted.objective;
    let is_it = |o: &&ObjectiveResult| o.objective_text() == wanted.objective_text();
    let result = |t: &TrialRecord| t.objectives.iter().find(is_it).cloned();
    let trials: Vec<_> = group.evidence_trials().map(result).collect();
    let met = trials.iter().flatten().filter(|r| r.met).count();
    let measured = trials.iter().flatten().filter_map(|r| r.measured);
    let measured = spread(measured.filter(|m| m.is_finite()));
    let measured = measured.map(|m| m.show(|value| objective.show_measured(value)));
    let lost = trials.iter().flatten().filter(|r| r.measured.is_none());
    let lost = lost.count();
    let is_latency = matches!(
        objective,
        Objective::Latency { .. } | Objective::MaxLatency { .. }
    );
    let measured = match measured {
        Some(measured) if lost > 0 && is_latency => {
            format!("{measured}; in failures {lost} of {}", trials.len())
        }
        Some(measured) => measured,
        None if lost > 0 && is_latency => "in failures".to_owned(),
        None => "not measured".to_owned(),
    };
    let all = met == trials.len() && met > 0;
    let tone = if all { Tone::Good } else { Tone::Bad };
    let word = if all { "yes" } else { "no" };
    [
        measured.into(),
        TableCell::new(format!("{word}, {met} of {}", trials.len()), tone),
    ]
}

fn comparison(
    view: &ResultView,
    group: &ConfigurationGroup<'_>,
    next: Option<&ConfigurationGroup<'_>>,
) -> Table {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let groups = std::iter::once(group).chain(next);
    let groups = groups.map(|g| (groups::memory_words(g.configuration), g.figures(quantile)));
    let groups: Vec<(String, Vec<TrialFigures>)> = groups.collect();
    let mut table = Table::new().left("Figure");
    for (name, _) in &groups {
        table = table.right(name.clone());
    }
    for (name, show) in ROWS {
        let cells: Vec<String> = groups.iter().map(|(_, f)| show(f)).collect();
        if cells.iter().all(|c| c == format::NONE) {
            continue;
        }
        let mut row = vec![TableCell::from(*name)];
        row.extend(cells.into_iter().map(TableCell::from));
        table.add_row(row);
    }
    table
}

type Show = fn(&[TrialFigures]) -> String;

macro_rules! row {
    ($name:literal, $($figure:ident).+, $print:path) => {
        ($name, |all| {
                let found = spread(all.iter().filter_map(|f| f.$($figure).+));
                found.map_or_else(|| format::NONE.to_owned(), |s| s.show($print))
            })
    };
}

const ROWS: &[(&str, Show)] = &[
    row!(
        "Start time, exec to ready",
        sli.start,
        format::measured_time
    ),
    row!("Achieved rate", sli.achieved_rate, format::as_rate),
    row!("Failed requests", sli.error_share, format::as_percent),
    row!("CPUs used", sli.cpus_used, format::three_digits),
    row!(
        "CFS periods throttled",
        sli.throttled_periods_share,
        format::as_percent
    ),
    row!("Longest GC pause", sli.gc_pause_max, format::measured_time),
    row!("Time stopped by GC", sli.gc_pause_share, format::as_percent),
    row!("Heap after GC, largest", heap_after, format::measured_bytes),
    row!(
        "Peak memory, page cache included",
        sli.peak_memory,
        format::measured_bytes
    ),
    row!(
        "Peak working set",
        sli.peak_working_set,
        format::measured_bytes
    ),
    row!("Peak anonymous memory", anon, format::measured_bytes),
];
