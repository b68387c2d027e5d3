//! Error rates and cost of `size` with memory known part by part, compared with the search that
//! varied the limit alone and counted twenty starts.
//!
//! An answer is wrong when it is called proven and fewer than 95 % of its starts live on at its
//! limit and heap, however many requests come. It is over-committed when the JVM's allowed heap and
//! the rest exceed the limit. METHODOLOGY has the figures that this prints.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

#[path = "rig/memory.rs"]
mod memory;

use std::time::Duration;

use loadline_analysis::interval::quantile;
use loadline_analysis::proof::{DISTANT_STARTS, ProofStanding, squeezed};
use loadline_analysis::recommend::{Recommendation, recommend};
use loadline_analysis::record::{Configuration, TrialPurpose, TrialRecord};
use loadline_analysis::search::ascent::Ascent;
use loadline_analysis::search::min_memory::{MemoryParameters, MemoryStep, MinMemory};
use loadline_analysis::search::size::{SizeSearch, SmallestMemory};
use loadline_analysis::search::{SeenTrials, TrialAsk, TrialOutcome, TrialSearch, floor};
use loadline_analysis::slo::Slo;
use loadline_sizing::Bytes;
use memory::MemoryService;

const SERVICES: u64 = 2000;

/// What came of one service.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    starts: u32,
    is_proven: bool,
    is_wrong: bool,
    is_over_committed: bool,
    oversize: f64,
    was_squeezed: bool,
    leaks: bool,
    tells_leak: bool,
}

fn slo() -> Slo {
    "p99<250ms".parse().unwrap()
}

fn parameters() -> MemoryParameters {
    MemoryParameters {
        retries: 0,
        max: Bytes::from_gib(8),
        ..MemoryParameters::new(Bytes::from_mib(64), Bytes::from_gib(1))
    }
}

fn sizes() -> SizeSearch {
    SizeSearch {
        bases: vec![SmallestMemory {
            base: Configuration::default(),
            level: None,
            parameters: parameters(),
            start_deadline: Duration::from_secs(60),
            warm_up: None,
            heap: Default::default(),
            keeps_direct: false,
            is_squeezable: true,
            cpus: Vec::new(),
            has_more_cpu: false,
        }],
        prove: DISTANT_STARTS,
        is_counted: false,
    }
}

/// How an answer of this limit and heap fares.
fn judged(service: &MemoryService, limit: f64, heap: f64, run: Run) -> Run {
    let needed = service.needed_limit(heap);
    let is_short = heap < 1.35 * service.live;
    Run {
        is_wrong: run.is_proven && (limit < needed || is_short),
        oversize: limit / needed - 1.0,
        ..run
    }
}

fn squeezed_run(mut service: MemoryService) -> Run {
    let (search, slo) = (sizes(), slo());
    let (mut seen, mut starts) = (SeenTrials::default(), 0);
    let sized = loop {
        match search.next(&seen) {
            Ok(sized) => break sized,
            Err(open) => {
                let ask = &open.wanted[0];
                let (record, attempts) = service.trial(ask, &slo);
                starts += attempts;
                seen.add_record(ask, record, Duration::ZERO);
            }
        }
    };
    let leaks = service.leak > 0.0;
    let Some(best) = sized.best else {
        return Run {
            starts,
            leaks,
            ..Run::default()
        };
    };
    let trials: Vec<TrialRecord> = best.trials.iter().map(|t| (**t).clone()).collect();
    let answer: Recommendation = recommend(best.configuration, &best.answer, &trials, &[]);
    let options = &answer.configuration.jvm_options;
    let heap = options
        .iter()
        .find_map(|o| o.text.strip_prefix("-Xmx")?.parse::<Bytes>().ok());
    let (limit, heap) = (answer.recommended_memory().as_mib(), heap.unwrap().as_mib());
    let was_squeezed = squeezed(&trials).is_some();
    let run = Run {
        starts,
        is_proven: answer.is_proven(),
        is_over_committed: was_squeezed && answer.budget.is_none(),
        was_squeezed,
        leaks,
        tells_leak: answer.live_set_trend.is_some(),
        ..Run::default()
    };
    judged(&service, limit, heap, run)
}

/// The search before: the limit alone, the heap as the JVM takes it, 20 starts.
fn counted_run(seed: u64) -> Run {
    let mut service = MemoryService::draw(2027, seed);
    let slo = slo();
    let mut starts = 0;
    let mut outcome = |size: Bytes, purpose| {
        let ask = TrialAsk {
            configuration: Configuration {
                memory: Some(size),
                ..Configuration::default()
            },
            purpose,
            repeat: 1,
            start_deadline: Duration::from_secs(60),
            pair: None,
        };
        let (record, attempts) = service.trial(&ask, &slo);
        starts += attempts;
        (TrialOutcome::from(record.verdict), floor(&record.evidence))
    };
    let mut search = MinMemory::new(parameters());
    let mut tried = Vec::new();
    let found = loop {
        match search.next() {
            MemoryStep::Try(size, purpose) => {
                let (outcome, expected) = outcome(size, purpose);
                search.record_trial(size, outcome).unwrap();
                expected
                    .filter(|_| outcome == TrialOutcome::Pass)
                    .into_iter()
                    .for_each(|e| search.expect_size(e));
                tried.push((size, outcome));
            }
            MemoryStep::Done(found) => break Some(found.size),
            _ => break None,
        }
    };
    let Some(found) = found else {
        return Run {
            starts,
            ..Run::default()
        };
    };
    let mut ascent = Ascent::new(parameters(), 20, found, tried);
    while let ProofStanding::More(_) = ascent.size_standing() {
        let (outcome, _) = outcome(ascent.current_size(), TrialPurpose::Prove);
        ascent.record_start(outcome);
    }
    let limit = ascent.current_size().as_mib();
    let heap = MemoryService::default_heap(limit);
    let run = Run {
        starts,
        is_proven: ascent.size_standing() == ProofStanding::Proven,
        ..Run::default()
    };
    let run = judged(&service, limit, heap, run);
    Run {
        is_over_committed: run.is_wrong && heap >= 1.35 * service.live,
        ..run
    }
}

fn share(runs: &[Run], of: impl Fn(&Run) -> bool) -> f64 {
    runs.iter().filter(|run| of(run)).count() as f64 / runs.len().max(1) as f64
}

fn mean_starts(runs: &[Run]) -> f64 {
    runs.iter().map(|run| f64::from(run.starts)).sum::<f64>() / runs.len() as f64
}

fn oversize(runs: &[Run], at: f64) -> f64 {
    let over = runs
        .iter()
        .filter(|run| run.is_proven)
        .map(|run| run.oversize);
    quantile(&over.collect::<Vec<_>>(), at).unwrap_or(f64::NAN)
}

fn line(name: &str, runs: &[Run]) -> String {
    let starts: Vec<f64> = runs.iter().map(|run| f64::from(run.starts)).collect();
    format!(
        "{name}: {:.2} starts ({:.0}), proven {:.1} %, wrong {:.2} %, over-committed {:.2} %, oversize {:.1} % ({:.1})",
        mean_starts(runs),
        quantile(&starts, 0.95).unwrap(),
        100.0 * share(runs, |run| run.is_proven),
        100.0 * share(runs, |run| run.is_wrong),
        100.0 * share(runs, |run| run.is_over_committed),
        100.0 * oversize(runs, 0.5),
        100.0 * oversize(runs, 0.9),
    )
}

#[test]
fn five_starts_are_hardly_ever_wrong_and_never_over_committed() {
    let runs = |draw: fn(u64, u64) -> MemoryService| -> Vec<Run> {
        (0..SERVICES)
            .map(|seed| squeezed_run(draw(2027, seed)))
            .collect()
    };
    let now = runs(MemoryService::draw);
    let before: Vec<Run> = (0..SERVICES).map(counted_run).collect();
    println!("{}", line("R, A, F", &now));
    let part = |name: &str, of: fn(&Run) -> bool| {
        let own: Vec<Run> = now.iter().copied().filter(of).collect();
        println!("{}", line(name, &own));
        own
    };
    let squeezed = part("  squeezed", |run| run.was_squeezed);
    part("  tried one by one", |run| !run.was_squeezed);
    println!("{}", line("the limit alone, 20 starts", &before));
    let compiled = runs(MemoryService::draw_compiled);
    println!("{}", line("starts that compile differently", &compiled));
    let bursting = runs(MemoryService::draw_bursting);
    println!("{}", line("bursts that differ", &bursting));
    let wrong = bursting.iter().filter(|run| run.is_wrong);
    let missing: Vec<f64> = wrong.map(|run| -run.oversize).collect();
    let missing = quantile(&missing, 0.5).unwrap_or_default();
    println!("  too small by {:.1} % in the median", 100.0 * missing);
    let leaking = part("  rising live sets", |run| run.leaks);
    let told = share(&leaking, |run| run.tells_leak);
    let false_alarms = share(&now, |run| run.tells_leak && !run.leaks);
    println!(
        "warned: {:.1} %, others {:.1} %",
        100.0 * told,
        100.0 * false_alarms
    );
    assert!(share(&now, |run| run.is_wrong) <= 0.005);
    assert!(share(&compiled, |run| run.is_wrong) <= 0.005);
    assert!(oversize(&compiled, 0.5) <= 0.08);
    assert_eq!(share(&now, |run| run.is_over_committed), 0.0);
    assert!(mean_starts(&squeezed) <= 6.0);
    assert!(oversize(&now, 0.5) <= 0.08);
    assert!(share(&squeezed, |run| run.is_proven) >= 0.97);
    assert!(told >= 0.8 && false_alarms == 0.0);
    assert!(mean_starts(&before) >= 3.0 * mean_starts(&now));
}
