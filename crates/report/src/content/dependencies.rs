//! Dependencies of the application: how near databases and brokers were to their limits.
//!
//! Owns the words and the table; `loadline_analysis::dependency` finds the bottleneck. Results
//! without dependencies have no such section.

use std::collections::BTreeMap;

use loadline_analysis::dependency::busy_share;
use loadline_analysis::record::{DependencyEvidence, StubEvidence, TrialRecord};

use super::section::Section;
use super::toxics;
use crate::figures::unique;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

const NAMED: usize = 5;

type Seen<'a> = (&'a TrialRecord, &'a DependencyEvidence);

pub fn dependencies_section(view: &ResultView) -> Option<Section> {
    let (all, names) = all_dependencies(view);
    names.first()?;
    let whose = match shared_sentence(view.trials.iter()) {
        Some(said) => format!("{said} They are outside the application's limits."),
        None => "Fresh for each trial, outside the application's limits.".to_owned(),
    };
    let words = "Each figure is the largest of all trials, in the measured phase; share is of the CPU time that it could have had. A trial that fails while one of them is at its limit says nothing about the application: it is INVALID.";
    let section = Section::new("dependencies", "What it depended on")
        .with_paragraph(format!("{whose} {words}"))
        .with_table(dependency_table(&names, &all));
    let mut lines = stubs(&names, &all);
    // A dependency with toxics is described there.
    if !lines.is_empty() && all.iter().all(|(_, d)| d.link.is_none()) {
        lines.push(toxics::proxy_overhead(view));
    }
    let section = section.with_paragraph(lines.join(" "));
    Some(match first_failed(view, &all) {
        Some((lead, lines)) => section.with_paragraph(lead).with_verbatim(lines),
        None => section,
    })
}

fn all_dependencies(view: &ResultView) -> (Vec<Seen<'_>>, Vec<&str>) {
    let all: Vec<Seen<'_>> = view
        .trials
        .iter()
        .flat_map(|trial| trial.evidence.dependencies.iter().map(move |d| (trial, d)))
        .collect();
    let names = unique(all.iter().map(|(_, dependency)| dependency.name.as_str()));
    (all, names)
}

pub fn shared_sentence<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Option<String> {
    let (mut names, mut anew) = (Vec::new(), Vec::new());
    let (mut most, mut restarts, mut is_reset) = (0, 0, false);
    for trial in trials {
        let all = trial.evidence.dependencies.iter();
        let mut restarted = false;
        for (one, shared) in all.filter_map(|d| Some((d, d.shared.as_ref()?))) {
            names.push(one.name.as_str());
            most = most.max(shared.trials + 1);
            is_reset |= shared.reset.is_some();
            restarted |= shared.anew.is_some();
            anew.extend(shared.anew.as_deref());
        }
        restarts += usize::from(restarted);
    }
    names.first()?;
    let all = unique(names).join(", ");
    let between = if is_reset {
        "reset"
    } else {
        "left as they were"
    };
    let mut said = format!(
        "The trials share {all}: seeded once, {between} between two of them, up to {most} starts of the application on one. A fresh start is one of the application: what earlier ones left there (caches, tables that grew) is part of it."
    );
    if restarts > 0 {
        let times = format::count_of(restarts, "time");
        let why = unique(anew).join("; ");
        said += &format!(" Started again, and seeded again, {times}: {why}.");
    }
    Some(said)
}

/// Sentences for the headline: whether fresh starts share dependencies, and which requests a stub
/// did not know, which may be why a trial failed.
pub(super) fn dependency_sentences(view: &ResultView) -> Vec<String> {
    let shared = shared_sentence(view.trials.iter());
    let (all, names) = all_dependencies(view);
    let of = |name: &&str| {
        let said = unanswered_sentence(&stubs_of(name, &all))?;
        Some(format!("Of the stub {name}: {said}"))
    };
    let of_stubs = names.iter().filter_map(of);
    shared.into_iter().chain(of_stubs).collect()
}

fn stubs_of<'a>(name: &str, all: &[Seen<'a>]) -> Vec<&'a StubEvidence> {
    let mine = all.iter().filter(|(_, d)| d.name == name);
    mine.filter_map(|(_, d)| d.stub.as_ref()).collect()
}

fn dependency_table(names: &[&str], all: &[Seen<'_>]) -> Table {
    let mut table = Table::new()
        .left("Dependency")
        .right("Trials | Ready in | CPU | Share | Throttled | Peak memory")
        .left("CPUs");
    for name in names {
        let of = all.iter().filter(|(_, d)| d.name == *name);
        let of: Vec<Seen<'_>> = of.copied().collect();
        let largest =
            |value: &dyn Fn(&Seen<'_>) -> Option<f64>| of.iter().filter_map(value).reduce(f64::max);
        let ready = of.iter().filter_map(|(_, d)| d.ready).max();
        let cpu = largest(&|(_, d)| Some(d.cpu?.as_secs_f64() / d.window?.as_secs_f64()));
        let share = largest(&|(trial, d)| busy_share(d, &trial.evidence));
        let limited = of.iter().filter(|(_, d)| d.cpu_limit.is_some());
        let throttled = limited.filter_map(|(_, d)| d.throttled).max();
        table.add_row([
            (*name).to_owned().into(),
            of.len().to_string().into(),
            format::time_or(ready).into(),
            format::or_none(cpu.map(|cpu| format!("{:.0}m", cpu * 1000.0))).into(),
            format::or_none(share.map(format::as_percent)).into(),
            format::time_or(throttled).into(),
            format::bytes_or(of.iter().filter_map(|(_, d)| d.peak_memory).max()).into(),
            format::or_none(of.first().map(|(_, d)| d.cpus.clone())).into(),
        ]);
    }
    table
}

fn stubs(names: &[&str], all: &[Seen<'_>]) -> Vec<String> {
    let of = |name: &&str| {
        let mine = stubs_of(name, all);
        mine.first()?;
        let requests: u64 = mine.iter().map(|stub| stub.requests).sum();
        let mut said = format!(
            "{name} is a stub: loadline answered {requests} requests in its place, in all trials together."
        );
        if let Some(unanswered) = unanswered_sentence(&mine) {
            said += &format!(" {unanswered}");
        }
        Some(said)
    };
    names.iter().filter_map(of).collect()
}

/// `12 requests had no answer, and got a 404: GET /x (11), GET /y (1).`
fn unanswered_sentence(stubs: &[&StubEvidence]) -> Option<String> {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in stubs.iter().flat_map(|stub| &stub.unanswered) {
        *by_name.entry(name).or_default() += count;
    }
    let all: u64 = by_name.values().sum();
    let mut named: Vec<_> = by_name.into_iter().collect();
    named.sort_by_key(|(name, count)| (u64::MAX - count, *name));
    let rest = named.len().saturating_sub(NAMED);
    let texts = named.iter().take(NAMED);
    let texts = texts.map(|(name, count)| format!("{name} ({count})"));
    let mut texts: Vec<String> = texts.collect();
    if rest > 0 {
        texts.push(format!("{rest} others"));
    }
    let requests = if all == 1 { "request" } else { "requests" };
    (all > 0).then(|| {
        format!(
            "{all} {requests} had no answer, and got a 404: {}.",
            texts.join(", ")
        )
    })
}

fn first_failed(view: &ResultView, all: &[Seen<'_>]) -> Option<(String, String)> {
    let (trial, dependency) = all.iter().find(|(_, d)| !d.last_output.is_empty())?;
    let number = view.trial_number(&trial.id).unwrap_or(0);
    let how = match &dependency.ended {
        Some(how) => format!("ended before the trial did ({how})"),
        None if dependency.ready.is_none() => "was never ready".to_owned(),
        None => "was killed for lack of memory".to_owned(),
    };
    let name = &dependency.name;
    let lead = format!("In trial {number} {name} {how}; its last lines:");
    Some((lead, dependency.last_output.join("\n")))
}
