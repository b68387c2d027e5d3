//! "Which sizes keep the SLO?": a grid of variants and memory sizes, or a list when only the
//! memory varied.

use loadline_analysis::recommend::SmallerSize;
use loadline_analysis::record::{TrialRecord, TrialVerdict};
use loadline_analysis::verdict::{self, VerdictThresholds};
use loadline_sizing::Bytes;

use super::groups::{self, ConfigurationGroup, ConfigurationNames};
use super::section::Section;
use super::{drill, runs};
use crate::figures::{self, FAILED, SeenLatency, TrialFigures, spread, unique};
use crate::format;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;

pub fn matrix_section(view: &ResultView) -> Option<Section> {
    let groups = groups::group_trials(view);
    if groups.is_empty() || runs::is_of_runs(view) {
        return None;
    }
    let names = ConfigurationNames::for_result(view);
    let section = Section::new("sizes", "Which sizes keep the SLO?");
    let section = match names.shared.join(", ") {
        shared if shared.is_empty() => section,
        shared => section.with_paragraph(format!("All with {shared}.")),
    };
    Some(if names.differ_beyond_memory() {
        section
            .with_paragraph(legend(view))
            .with_table(grid(view, &groups, &names))
            .with_list(names.meanings())
    } else {
        section
            .with_paragraph(meanings(view))
            .with_table(size_table(view, groups))
    })
}

fn meanings(view: &ResultView) -> String {
    let loads = || view.evidence_trials().flat_map(|t| &t.evidence.load);
    let mut words: Vec<String> = Vec::new();
    if loads().any(|l| l.unfinished > 0 || !l.errors.is_empty()) {
        let quantile = figures::headline_quantile(&view.slo.objectives);
        words.push(format!(
            "A request without a good answer counts as slower than every other; when there are too many, {quantile} is one of them ({FAILED})."
        ));
    }
    if loads().any(|l| l.errors.contains_key("shed")) {
        let shed =
            "Shed requests were never sent: every connection was still waiting for an answer.";
        words.push(shed.to_owned());
    }
    if view.evidence_trials().any(is_thrash) {
        let thrash = "Thrash: to stay below the limit the kernel dropped pages of code and jars, and they were read again (file refaults).";
        words.push(thrash.to_owned());
    }
    let words = words.join(" ") + drill::before_outage(view);
    words.trim_start().to_owned()
}

fn is_thrash(trial: &TrialRecord) -> bool {
    trial.verdict != TrialVerdict::Pass
        && verdict::is_thrash(&trial.evidence, &VerdictThresholds::default())
}

fn legend(view: &ResultView) -> String {
    format!(
        "In each cell: the verdict, how many of the trials kept the SLO, the worst {} and the start time.{}",
        figures::headline_quantile(&view.slo.objectives),
        drill::before_outage(view)
    )
}

fn size_table(view: &ResultView, mut groups: Vec<ConfigurationGroup<'_>>) -> Table {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    groups.sort_by_key(|g| std::cmp::Reverse(memory_of(g)));
    let mut table = Table::new()
        .right("Memory")
        .left("Verdict")
        .right("Kept the SLO")
        .right(format!("Worst {quantile}"))
        .right("Start")
        .right(if groups.iter().any(|g| g.configuration.instances > 1) {
            "Peak memory, all instances"
        } else {
            "Peak memory"
        })
        .wrapping("What happened");
    let mut lowered = lowered_limit(view, &groups);
    for group in &groups {
        if let Some(row) = lowered.take_if(|next| next.memory.as_bytes() > memory_of(group)) {
            table.add_row(lowered_row(row));
        }
        let chosen = groups::is_chosen(view, group.configuration);
        let (verdict, tone) = group_verdict(group);
        let (passed, of) = group.passes();
        let figures = group.figures(quantile);
        let start = spread(figures.iter().filter_map(|f| f.sli.start));
        table.add_row([
            groups::memory_words(group.configuration).into(),
            TableCell::new(
                if chosen {
                    format!("{verdict}, {}", view.chosen_as())
                } else {
                    verdict
                },
                tone,
            ),
            format!("{passed} of {of}").into(),
            worst_latency(&figures).into(),
            format::time_or(start.map(|s| s.median)).into(),
            format::bytes_or(figures.iter().filter_map(|f| f.sli.peak_memory).max()).into(),
            what_happened(group).into(),
        ]);
        if chosen {
            table.mark_last();
        }
    }
    if let Some(row) = lowered {
        table.add_row(lowered_row(row));
    }
    if !view.sends_requests() {
        table.drop_unknown_columns();
    }
    table
}

/// The limit at which the squeezed start broke: no start began there, so no group has it.
fn lowered_limit<'a>(
    view: &'a ResultView,
    groups: &[ConfigurationGroup<'_>],
) -> Option<&'a SmallerSize> {
    let next = view.recommendation.as_ref()?.next_smaller.as_ref()?;
    let began_there = groups
        .iter()
        .any(|g| g.configuration.memory == Some(next.memory));
    (!began_there).then_some(next)
}

fn lowered_row(next: &SmallerSize) -> [TableCell; 7] {
    let none = || TableCell::from(format::NONE);
    [
        next.memory.to_string().into(),
        TableCell::new("too small", Tone::Bad),
        none(),
        none(),
        none(),
        none(),
        next.breaks.in_short().into(),
    ]
}

fn grid(view: &ResultView, groups: &[ConfigurationGroup<'_>], names: &ConfigurationNames) -> Table {
    let mut sizes: Vec<Option<Bytes>> = groups.iter().map(|g| g.configuration.memory).collect();
    sizes.sort_by_key(|m| std::cmp::Reverse(m.map_or(u64::MAX, |m| m.as_bytes())));
    sizes.dedup();
    let variants = unique(groups.iter().map(|g| names.variant(g.configuration)));
    let mut table = Table::new().wrapping("Configuration");
    for size in &sizes {
        table = table.left(size.map_or_else(|| "no limit".to_owned(), |m| m.to_string()));
    }
    for variant in variants {
        let mut row = vec![TableCell::from(variant.clone())];
        for size in &sizes {
            let group = groups.iter().find(|g| {
                g.configuration.memory == *size && names.variant(g.configuration) == variant
            });
            row.push(group.map_or_else(|| TableCell::from(""), |g| cell(view, g)));
        }
        table.add_row(row);
    }
    table
}

fn cell(view: &ResultView, group: &ConfigurationGroup<'_>) -> TableCell {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let (verdict, tone) = group_verdict(group);
    let (passed, of) = group.passes();
    let figures = group.figures(quantile);
    let mut text = verdict;
    if of > 1 {
        text.push_str(&format!(" {passed}/{of}"));
    }
    let latency = Some(worst_latency(&figures)).filter(|text| text != format::NONE);
    let start = spread(figures.iter().filter_map(|f| f.sli.start)).map(|s| s.median);
    let start = start.map(|s| format!("start {}", format::measured_time(s)));
    for part in [latency, start].into_iter().flatten() {
        text.push_str(&format!(", {part}"));
    }
    if groups::is_chosen(view, group.configuration) {
        text.push_str(&format!(", {}", view.chosen_as()));
    }
    TableCell::new(text, tone)
}

pub fn group_verdict(group: &ConfigurationGroup<'_>) -> (String, Tone) {
    let shown = group
        .first_failure()
        .or_else(|| group.evidence_trials().next());
    let shown = shown.or_else(|| group.trials.first().copied());
    shown.map_or_else(
        || (format::NONE.to_owned(), Tone::Muted),
        |t| (figures::verdict_words(t.verdict), figures::tone(t.verdict)),
    )
}

fn worst_latency(figures: &[TrialFigures]) -> String {
    let slowest = figures.iter().filter_map(|f| f.headline).max();
    format::or_none(slowest.map(SeenLatency::show))
}

pub(super) fn what_happened(group: &ConfigurationGroup<'_>) -> String {
    match group.first_failure() {
        Some(failure) => failure.reason.in_short(),
        None if group.keeps_slo() => "kept the SLO".to_owned(),
        None => group
            .trials
            .first()
            .map(|t| t.reason.to_string())
            .unwrap_or_default(),
    }
}

fn memory_of(group: &ConfigurationGroup<'_>) -> u64 {
    let memory = group.configuration.memory;
    memory.map_or(u64::MAX, |m| m.as_bytes())
}
