//! "Why did it pause?": the study's table, a row a configuration, and the longest pauses of the
//! trial that paused most.
//!
//! Owns the words; the classes are `loadline_analysis::explain`'s.

use std::time::Duration;

use loadline_analysis::attribution::{Attribution, PauseClass};
use loadline_analysis::explain::{Explanation, class_words};
use loadline_analysis::record::{CgroupEvidence, TrialPhase, TrialRecord};
use loadline_analysis::span::TimeSpan;
use loadline_analysis::text::join_words;

use super::groups::{ConfigurationGroup, ConfigurationNames, group_trials};
use super::section::Section;
use crate::figures::spread;
use crate::format;
use crate::table::{Table, TableCell};
use crate::view::ResultView;

pub fn pauses_section(view: &ResultView) -> Option<Section> {
    let (worst, explanation) = worst_pauses(view)?;
    let number = view.trial_number(&worst.id)?;
    let sentence = explanation.pause_sentence();
    let told = format!("The trial that paused most is number {number}: {sentence}");
    let mut section = Section::new("pauses", "Why did it pause?")
        .with_table(configurations(view))
        .with_paragraph(LEGEND)
        .with_paragraph(told)
        .with_table(longest_pauses(&explanation));
    if let Some(sampler) = worst.evidence.pauses.as_ref().map(|p| &p.sampler) {
        let cost = sampler.cpu_share().map_or(String::new(), |share| {
            format!(" Watching it took {:.2} % of a CPU.", 100.0 * share)
        });
        let text = format!(
            "Throttling was placed by {}; an edge may be off by {}.{cost}",
            sampler.estimator,
            format::measured_time(sampler.edge_error())
        );
        section = section.with_paragraph(text);
    }
    Some(section)
}

const LEGEND: &str = "Pauses over 50 ms in the measured phase, as the application saw them if it records them, else from the GC log and the cgroup. Each row is the median of its trials, the longest pause the longest of all. Throttled time is a sum over CPUs: it may exceed wall time.";

pub(crate) fn worst_pauses(view: &ResultView) -> Option<(&TrialRecord, Explanation)> {
    let explained = view.evidence_trials();
    let explained = explained.filter_map(|t| Some((t, Explanation::for_trial(t)?)));
    let paused = explained.filter(|(_, e)| !e.pauses.is_empty());
    paused.max_by_key(|(_, e)| e.total_ns())
}

fn configurations(view: &ResultView) -> Table {
    let mut table = Table::new()
        .wrapping("Configuration")
        .right("Done a second | Pauses > 50 ms | Longest | GC ran | GC throttled")
        .right("Threads throttled | CPU used | Periods throttled | Throttled time");
    let names = ConfigurationNames::for_result(view);
    for group in group_trials(view) {
        let name = match group.configuration.label.as_str() {
            "" => names.cell_name(group.configuration),
            label => label.to_owned(),
        };
        if let Some(row) = pauses_row(&group, name) {
            table.add_row(row);
        }
    }
    table
}

fn pauses_row(group: &ConfigurationGroup<'_>, name: String) -> Option<Vec<TableCell>> {
    let explained = group.evidence_trials();
    let explained = explained.filter_map(|t| Some((t, Explanation::for_trial(t)?)));
    let explained: Vec<(&TrialRecord, Explanation)> = explained.collect();
    let longest = explained.iter().flat_map(|(_, e)| &e.pauses);
    let longest = longest.map(|p| p.pause.length_ns()).max().unwrap_or(0);
    let share =
        |class| median(explained.iter().map(|(_, e)| e.class_share(class))).map(format::as_percent);
    // An application without a JVM has no collections.
    let has_jvm = group.evidence_trials().any(|t| t.evidence.gc.is_some());
    let of_gc = |class| share(class).filter(|_| has_jvm);
    let cgroups = || explained.iter().map(|(t, _)| &t.evidence.cgroup);
    let cgroup = |get: fn(&CgroupEvidence) -> Option<f64>| median(cgroups().filter_map(get));
    let or_none = |text| TableCell::from(format::or_none(text));
    let rates = |(t, e): &(&TrialRecord, Explanation)| operation_rate(t, e.window);
    let rate = median(explained.iter().filter_map(rates));
    let pauses = median(explained.iter().map(|(_, e)| e.pauses.len() as f64))?;
    let seconds =
        |s: Option<f64>| or_none(s.map(|s| format::measured_time(Duration::from_secs_f64(s))));
    let periods = cgroup(|c| Some(c.measure_nr_throttled? as f64));
    Some(vec![
        name.into(),
        or_none(rate.map(|r| format::three_digits(r.round()))),
        format::three_digits(pauses).into(),
        show_nanos(longest).into(),
        or_none(of_gc(PauseClass::Gc)),
        or_none(of_gc(PauseClass::GcThrottled)),
        or_none(share(PauseClass::MutatorThrottled)),
        seconds(cgroup(|c| Some(c.measure_cpu?.as_secs_f64()))),
        or_none(periods.map(format::three_digits)),
        seconds(cgroup(|c| Some(c.measure_throttled?.as_secs_f64()))),
    ])
}

fn operation_rate(trial: &TrialRecord, window: TimeSpan) -> Option<f64> {
    let application = trial.evidence.pauses.as_ref()?.application.as_ref();
    let counted = application.and_then(|a| a.operations_per_second(window));
    let mut judged = trial.evidence.load_in(TrialPhase::Measure);
    counted.or_else(|| Some(judged.next()?.achieved_rate))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    spread(values).map(|s| s.median)
}

fn longest_pauses(explanation: &Explanation) -> Table {
    let mut table = Table::new()
        .right("At | Length | Known to")
        .wrapping("What it was");
    for pause in explanation.longest() {
        let at = pause.pause.start.saturating_sub(explanation.window.start);
        table.add_row([
            TableCell::from(show_nanos(at)),
            show_nanos(pause.pause.length_ns()).into(),
            format!("± {}", show_nanos(pause.error_ns)).into(),
            parts(pause).into(),
        ]);
    }
    table
}

fn parts(pause: &Attribution) -> String {
    let parts = PauseClass::ALL.map(|class| (class, pause.class_ns(class)));
    let parts = parts.into_iter().filter(|(_, ns)| *ns >= 500_000);
    let parts = parts.map(|(class, ns)| format!("{} {}", show_nanos(ns), class_words(class)));
    join_words(parts, ", ")
}

fn show_nanos(nanos: u64) -> String {
    format::measured_time(Duration::from_nanos(nanos))
}
