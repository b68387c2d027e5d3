//! "Why did it pause?": the study's table, a row a configuration, and the longest pauses of the
//! trial that paused most.
//!
//! Owns the words; the classes are `loadline_analysis::explain`'s.

use std::time::Duration;

use loadline_analysis::attribution::{Attribution, Class};
use loadline_analysis::explain::{Explanation, words};
use loadline_analysis::record::TrialRecord;
use loadline_analysis::span::Span;
use loadline_analysis::standing::Standing;

use super::groups::{Group, Names, groups};
use super::section::{Block, Section};
use crate::figures::spread;
use crate::format;
use crate::table::{Cell, Table};
use crate::view::ResultView;

/// The section; `None` when no trial that may be believed paused for long.
pub fn section(view: &ResultView) -> Option<Section> {
    let (worst, explanation) = worst(view)?;
    let number = view.number(&worst.id)?;
    let told = format!(
        "The trial that paused most is number {number}: {}",
        explanation.sentence()
    );
    let mut section = Section::new("pauses", "Why did it pause?")
        .with(Block::Table(configurations(view)))
        .with(Block::Paragraph(legend().to_owned()))
        .with(Block::Paragraph(told))
        .with(Block::Table(longest(&explanation)));
    if let Some(standing) = Standing::of(worst, explanation.window) {
        section = section.with(Block::Paragraph(beside_the_model(&standing)));
    }
    if let Some(sampler) = worst.evidence.pauses.as_ref().map(|p| &p.sampler) {
        let cost = sampler.cpu_share().map_or(String::new(), |share| {
            format!(" Watching it took {:.2} % of a CPU.", 100.0 * share)
        });
        let text = format!(
            "Throttling was placed by {}; an edge may be off by {}.{cost}",
            sampler.estimator,
            format::time(sampler.edge_error())
        );
        section = section.with(Block::Paragraph(text));
    }
    Some(section)
}

/// The model of CFS bandwidth beside the measurement.
fn beside_the_model(standing: &Standing) -> String {
    let (limit, threads) = (standing.limit, standing.threads);
    let who = match threads {
        1 => "one thread that always has work stands".to_owned(),
        n => format!("{n} threads that always have work stand"),
    };
    format!(
        "Model: with a quota of {} in each {}, {who} {} of each period. Measured: it stood {}, and used {:.2} CPUs while it did not.",
        format::time(limit.quota),
        format::time(limit.period),
        format::time(standing.model),
        format::time(standing.measured),
        standing.demand,
    )
}

fn legend() -> &'static str {
    "Pauses over 50 ms in the measured phase, as the application saw them where it writes them down, else from the GC log and the cgroup. Each row is the median of its trials, the longest pause the longest of all. Throttled time is a sum over CPUs: it may exceed wall time."
}

/// The trial with the longest time in pauses.
pub(crate) fn worst(view: &ResultView) -> Option<(&TrialRecord, Explanation)> {
    let explained = view
        .evidence()
        .filter_map(|t| Some((t, Explanation::of(t)?)));
    explained
        .filter(|(_, e)| !e.pauses.is_empty())
        .max_by_key(|(_, e)| e.total_ns())
}

fn configurations(view: &ResultView) -> Table {
    let mut table = Table::new()
        .wrapping("Configuration")
        .right("Done a second")
        .right("Pauses > 50 ms")
        .right("Longest")
        .right("GC ran")
        .right("GC throttled")
        .right("Threads throttled")
        .right("CPU used")
        .right("Periods throttled")
        .right("Throttled time");
    let names = Names::of(view);
    for group in groups(view) {
        let name = match group.configuration.label.as_str() {
            "" => names.name(group.configuration),
            label => label.to_owned(),
        };
        if let Some(row) = row(&group, name) {
            table.row(row);
        }
    }
    table
}

fn row(group: &Group<'_>, name: String) -> Option<Vec<Cell>> {
    let explained: Vec<(&TrialRecord, Explanation)> = group
        .evidence()
        .filter_map(|t| Some((t, Explanation::of(t)?)))
        .collect();
    let longest = explained.iter().flat_map(|(_, e)| &e.pauses);
    let longest = longest.map(|p| p.pause.len()).max().unwrap_or(0);
    let share = |class| median(explained.iter().map(|(_, e)| e.share(class))).map(format::percent);
    // Of an application without a JVM nobody knows of collections, and there are none.
    let has_jvm = group.evidence().any(|t| t.evidence.gc.is_some());
    let of_gc = |class| share(class).filter(|_| has_jvm);
    let cgroup =
        |get: fn(&TrialRecord) -> Option<f64>| median(explained.iter().filter_map(|(t, _)| get(t)));
    let or_none = |text: Option<String>| Cell::from(text.unwrap_or_else(|| format::NONE.into()));
    let rate = median(explained.iter().filter_map(|(t, e)| rate(t, e.window)));
    let pauses = median(explained.iter().map(|(_, e)| e.pauses.len() as f64))?;
    let seconds = |s: Option<f64>| or_none(s.map(|s| format::time(Duration::from_secs_f64(s))));
    Some(vec![
        name.into(),
        or_none(rate.map(|r| format::number(r.round()))),
        format::number(pauses).into(),
        time(longest).into(),
        or_none(of_gc(Class::Gc)),
        or_none(of_gc(Class::GcThrottled)),
        or_none(share(Class::MutatorThrottled)),
        seconds(cgroup(|t| {
            Some(t.evidence.cgroup.measure_cpu?.as_secs_f64())
        })),
        or_none(cgroup(periods).map(format::number)),
        seconds(cgroup(|t| {
            Some(t.evidence.cgroup.measure_throttled?.as_secs_f64())
        })),
    ])
}

fn periods(trial: &TrialRecord) -> Option<f64> {
    trial.evidence.cgroup.measure_nr_throttled.map(|n| n as f64)
}

/// Operations a second: the application's own where it counts them, else good responses.
fn rate(trial: &TrialRecord, window: Span) -> Option<f64> {
    let application = trial.evidence.pauses.as_ref()?.application.as_ref();
    let counted = application.and_then(|a| a.rate(window));
    counted.or_else(|| trial.evidence.load.last().map(|load| load.achieved_rate))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    spread(values).map(|s| s.median)
}

fn longest(explanation: &Explanation) -> Table {
    let mut table = Table::new()
        .right("At")
        .right("Length")
        .right("Known to")
        .wrapping("What it was");
    for pause in explanation.longest() {
        let at = pause.pause.start.saturating_sub(explanation.window.start);
        table.row([
            Cell::from(time(at)),
            time(pause.pause.len()).into(),
            format!("± {}", time(pause.error_ns)).into(),
            parts(pause).into(),
        ]);
    }
    table
}

fn parts(pause: &Attribution) -> String {
    let parts = Class::ALL
        .iter()
        .filter(|class| pause.of(**class) >= 500_000);
    let parts = parts.map(|class| format!("{} {}", time(pause.of(*class)), words(*class)));
    parts.collect::<Vec<_>>().join(", ")
}

fn time(nanos: u64) -> String {
    format::time(Duration::from_nanos(nanos))
}
