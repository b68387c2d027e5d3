//! Runs that end by themselves: time over memory, and the JVMs that a run had.
//!
//! Owns what a report says of a build, a batch or a test run in the place of latencies. Figures of a size are
//! medians of its runs that ended well.

use std::time::Duration;

use loadline_analysis::budget::named_heap;
use loadline_analysis::offer::RunPrice;
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{Configuration, JvmProcess, RunEvidence, TrialRecord};
use loadline_analysis::sli;
use loadline_sizing::Bytes;
use loadline_sizing::hotspot::heap::DEFAULT_MAX_HEAP;

use super::claim::AnswerClaim;
use super::groups::{self, ConfigurationGroup};
use super::headline::next_smaller;
use super::proven::proven_how;
use super::{Section, SectionBlock, matrix};
use crate::table::{Table, TableCell};
use crate::view::ResultView;
use crate::{figures, format};

/// GitHub bills each started minute of a job (docs.github.com, actions-runner-pricing).
const BILLED: Duration = Duration::from_secs(60);

pub(crate) fn is_of_runs(view: &ResultView) -> bool {
    view.trials.iter().any(|trial| trial.evidence.run.is_some())
}

/// ` under 100 requests/s ...`; a run has no load.
pub(crate) fn under_load(view: &ResultView, load: impl ToString) -> String {
    if is_of_runs(view) {
        String::new()
    } else {
        format!(" under {}", load.to_string())
    }
}

/// Replaces "fresh starts" by "runs" in a text.
pub(crate) fn say_of_runs(text: String, view: &ResultView) -> String {
    if is_of_runs(view) {
        text.replace("fresh start", "run")
    } else {
        text
    }
}

pub(super) fn details(
    view: &ResultView,
    recommendation: &Recommendation,
    claim: &AnswerClaim<'_>,
) -> Vec<String> {
    let runs: Vec<&TrialRecord> = claim.fresh_starts().collect();
    let mut details: Vec<String> = time_sentence(view, &runs).into_iter().collect();
    details.extend(price_sentence(recommendation));
    details.push(say_of_runs(proven_how(claim), view));
    details.extend(next_smaller(view, recommendation));
    details.extend(heaps_sentence(view, recommendation));
    details
}

fn time_sentence(view: &ResultView, runs: &[&TrialRecord]) -> Option<String> {
    let time = median_time(runs.iter().copied())?;
    let cpu = median_cpu(runs.iter().copied());
    let of_cpu = cpu.map_or_else(String::new, |cpu| {
        format!(" and {} of CPU", format::measured_time(cpu))
    });
    let memory = runs.first().and_then(|run| run.configuration.memory);
    let held = memory.map_or_else(String::new, |memory| {
        let amount = format::three_digits(memory.as_gib() * time.as_secs_f64());
        format!(", {amount} GiB-seconds")
    });
    let minutes = time.as_secs_f64() / BILLED.as_secs_f64();
    let billed = match minutes.ceil() as u64 {
        1 => "1 started minute".to_owned(),
        more => format!("{more} started minutes"),
    };
    let ready = view.trials.iter();
    let ready = ready.filter_map(|t| Some((t.configuration.memory, t.evidence.start.ready?)));
    let largest = ready.max_by_key(|(memory, _)| *memory);
    let beside = largest.and_then(|(memory, time)| Some((memory?, time)));
    let beside = beside.map_or_else(String::new, |(memory, time)| {
        format!("; with {memory} it took {}", format::measured_time(time))
    });
    Some(format!(
        "A run took {}{of_cpu} (medians of {}){held}, {billed} if runners are billed by the minute{beside}.",
        format::measured_time(time),
        runs.len(),
    ))
}

/// `A run costs $0.00082 on fargate in us-east-1: 60s of 1 vCPU, 2Gi, list price of 2026-03-10.`
fn price_sentence(recommendation: &Recommendation) -> Option<String> {
    let (cheapest, others) = recommendation.run_prices.split_first()?;
    let usd = |price: &RunPrice| format::three_digits(price.usd);
    let others = others.iter();
    let others = others.map(|price| format!("; in {} it costs ${}", price.billed, usd(price)));
    let others: String = others.collect();
    Some(format!(
        "A run costs ${} on {} in {}: {} of {}, price of {}{others}.",
        usd(cheapest),
        cheapest.offer,
        cheapest.region,
        format::elapsed(cheapest.billed_time),
        cheapest.billed,
        cheapest.price_date,
    ))
}

/// Heaps that do not fit together: each JVM takes its own share of the whole limit.
fn heaps_sentence(view: &ResultView, recommendation: &Recommendation) -> Option<String> {
    let limit = recommendation.configuration.memory?;
    let group = groups::group_of(view, &recommendation.configuration)?;
    let trials = group.evidence_trials();
    let runs = trials.filter_map(|t| t.evidence.run.as_ref());
    let heaps = runs.filter_map(|run| Some((run.heaps_together()?, run)));
    let (heaps, run) = heaps.max_by_key(|(heaps, _)| *heaps)?;
    (run.jvms.len() > 1 && heaps > limit).then(|| {
        format!(
            "Over-committed: the JVMs that were alive together may take {heaps} of heap, and the limit is {limit}. Give each its own heap: MAVEN_OPTS for Maven itself, argLine for its test JVMs, org.gradle.jvmargs for Gradle."
        )
    })
}

pub(super) fn section(view: &ResultView) -> Option<Section> {
    if !is_of_runs(view) {
        return None;
    }
    let mut groups = groups::group_trials(view);
    groups.sort_by_key(|group| std::cmp::Reverse(group.configuration.memory));
    let tables = [Some(size_table(view, &groups)), jvm_table(view)];
    let blocks = tables.into_iter().flatten().map(SectionBlock::Table);
    Some(Section::new("runs", "How long does a run take?").with_all(blocks))
}

fn size_table(view: &ResultView, groups: &[ConfigurationGroup<'_>]) -> Table {
    let mut table = Table::new()
        .right("Memory | Heap")
        .left("Verdict")
        .right("Went well | Run time | CPU time | GC of it | Peak memory")
        .wrapping("What happened");
    for group in groups {
        let chosen = groups::is_chosen(view, group.configuration);
        let (verdict, tone) = matrix::group_verdict(group);
        let (passed, of) = group.passes();
        let evidence = || group.evidence_trials();
        let trials = || evidence().filter(|t| t.evidence.start.ready.is_some());
        let share = trials().filter_map(|t| sli::gc_cpu_share(&t.evidence));
        let share = share.reduce(f64::max);
        let peak = evidence().filter_map(|t| t.evidence.cgroup.peak_memory);
        let heap = named_heap(group.configuration).map(|heap| heap.to_string());
        table.add_row([
            groups::memory_words(group.configuration).into(),
            format::or_none(heap).into(),
            TableCell::new(
                if chosen {
                    format!("{verdict}, {}", view.chosen_as())
                } else {
                    verdict
                },
                tone,
            ),
            format!("{passed} of {of}").into(),
            format::time_or(median_time(trials())).into(),
            format::time_or(median_cpu(trials())).into(),
            format::or_none(share.map(format::as_percent)).into(),
            format::bytes_or(peak.max()).into(),
            matrix::what_happened(group).into(),
        ]);
        if chosen {
            table.mark_last();
        }
    }
    table
}

fn jvm_table(view: &ResultView) -> Option<Table> {
    let runs = view.trials.iter();
    let runs = runs.filter_map(|t| Some((&t.configuration, t.evidence.run.as_ref()?)));
    let (configuration, run): (_, &RunEvidence) = runs.max_by_key(|(_, run)| run.jvms.len())?;
    if run.jvms.len() < 2 {
        return None;
    }
    let mut table = Table::new()
        .left("JVM | Started by")
        .right("From | Until | Heap allowed")
        .left("Heap from")
        .right("Heap taken | After GC | Most memory");
    for jvm in &run.jvms {
        table.add_row(jvm_row(jvm, configuration));
    }
    Some(table)
}

/// What allowed a JVM its heap: the configuration's options, an option of the program that started it, or
/// HotSpot's default at the limit, as far as its size tells.
fn heap_origin(jvm: &JvmProcess, configuration: &Configuration) -> String {
    let Some(heap) = jvm.heap_max else {
        return format::NONE.into();
    };
    let is_near = |other: Bytes| {
        let apart = heap.as_bytes().abs_diff(other.as_bytes());
        apart <= (heap.as_bytes() / 50).max(GRAIN.as_bytes())
    };
    if named_heap(configuration).is_some_and(is_near) {
        let variable = configuration.options_variable.clone();
        return variable.unwrap_or_else(|| "options".to_owned());
    }
    if let Some(option) = &jvm.heap_option {
        return option.clone();
    }
    if configuration.memory.map(default_heap).is_some_and(is_near) {
        "default".to_owned()
    } else {
        "not known".to_owned()
    }
}

/// Collectors round the heap.
const GRAIN: Bytes = Bytes::from_mib(2);

/// Half of a small limit and a quarter of a large one (arguments.cpp, `Arguments::set_heap_size`).
fn default_heap(limit: Bytes) -> Bytes {
    let half = limit.mul_ratio(1, 2);
    if half < DEFAULT_MAX_HEAP {
        half
    } else {
        limit.mul_ratio(1, 4).max(DEFAULT_MAX_HEAP)
    }
}

fn jvm_row(jvm: &JvmProcess, configuration: &Configuration) -> [TableCell; 9] {
    let bytes = |bytes: Option<Bytes>| TableCell::from(format::bytes_or(bytes));
    [
        jvm.main.clone().into(),
        format::or_none(jvm.parent.clone()).into(),
        format::measured_time(jvm.from).into(),
        format::measured_time(jvm.until).into(),
        bytes(jvm.heap_max),
        heap_origin(jvm, configuration).into(),
        bytes(jvm.heap_committed),
        bytes(jvm.heap_after),
        bytes(Some(jvm.rss)),
    ]
}

fn median_time<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Option<Duration> {
    figures::spread(trials.filter_map(|t| t.evidence.start.ready)).map(|spread| spread.median)
}

fn median_cpu<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> Option<Duration> {
    figures::spread(trials.filter_map(|t| t.evidence.start.cpu)).map(|spread| spread.median)
}
