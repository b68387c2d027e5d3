//! How often `size` is wrong where it chooses the CPU too, and what that costs.
//!
//! Latency grows with the share of time that the CPU is busy. An answer is wrong when it is called proven
//! and fewer than 95 % of its starts keep the SLO with its CPU. Its price is compared with that of the
//! cheapest pair that keeps it, at 9 GiB for a CPU. docs/guides/cpu.md has the figures that this prints.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

#[path = "rig/memory.rs"]
mod memory;

use std::time::Duration;

use loadline_analysis::interval::quantile;
use loadline_analysis::proof::DISTANT_STARTS;
use loadline_analysis::random::RandomStream;
use loadline_analysis::recommend::recommend;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_analysis::search::min_memory::MemoryParameters;
use loadline_analysis::search::size::cpu::CpuPolicy;
use loadline_analysis::search::size::{SizeSearch, SmallestMemory};
use loadline_analysis::search::{SeenTrials, TrialSearch};
use loadline_sizing::Bytes;
use memory::MemoryService;

const SERVICES: u64 = 600;

/// A quota takes more than the same weight does: a period's bursts must fit in it.
const BURSTS: f64 = 1.3;

#[derive(Debug, Default)]
struct Run {
    starts: u32,
    /// The same service with the answer's CPU given.
    starts_with_cpu: u32,
    is_proven: bool,
    is_wrong: bool,
    above_cheapest: f64,
}

/// The search of a machine with 4 CPUs, or with the CPU of an answer.
fn search(policy: CpuPolicy, given: Option<&Configuration>) -> SizeSearch {
    let mut search = SizeSearch {
        bases: vec![SmallestMemory {
            base: Configuration {
                cpu: given.and_then(|given| given.cpu),
                cpu_request: given.and_then(|given| given.cpu_request),
                ..Configuration::default()
            },
            level: None,
            parameters: MemoryParameters {
                retries: 0,
                max: Bytes::from_gib(8),
                ..MemoryParameters::new(Bytes::from_mib(64), Bytes::from_gib(1))
            },
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
    };
    if given.is_none() {
        search.search_cpus(4, policy);
    }
    search
}

fn sized(seed: u64, policy: CpuPolicy, given: Option<&Configuration>) -> Run {
    let mut service = MemoryService::draw(2031, seed);
    let burned = RandomStream::from_seed(seed).uniform_between(0.03_f64.ln(), 1.5_f64.ln());
    service.burned_cpus = Some(burned.exp());
    service.misses = 0.0;
    service.bursts = BURSTS;
    let (search, slo) = (search(policy, given), "p99<250ms".parse().unwrap());
    let (mut seen, mut starts) = (SeenTrials::default(), 0);
    let sized = loop {
        match search.next(&seen) {
            Ok(sized) => break sized,
            Err(open) => {
                let (record, attempts) = service.trial(&open.wanted[0], &slo);
                starts += attempts;
                seen.add_record(&open.wanted[0], record, Duration::ZERO);
            }
        }
    };
    let run = Run {
        starts,
        ..Run::default()
    };
    let Some(best) = sized.best else {
        return run;
    };
    let trials: Vec<TrialRecord> = best.trials.iter().map(|t| (**t).clone()).collect();
    let answer = recommend(best.configuration, &best.answer, &trials, &[]);
    let found = &answer.configuration;
    let sure = found.sure_cpu().unwrap().as_f64();
    let limit = found.cpu.unwrap().as_f64();
    let memory = answer.recommended_memory().as_gib();
    let needed = service.needed_cpus();
    let has_request = found.cpu_request.is_some();
    assert!(sure <= limit);
    let price = |cpus: f64| 9.0 * cpus + memory;
    let starts_with_cpu = match given {
        Some(_) => starts,
        None => self::sized(seed, policy, Some(found)).starts,
    };
    Run {
        starts_with_cpu,
        is_proven: answer.is_proven(),
        is_wrong: answer.is_proven() && (sure < needed || has_request && limit < BURSTS * needed),
        above_cheapest: price(sure) / price(needed.max(0.05)) - 1.0,
        ..run
    }
}

fn shows(policy: CpuPolicy, words: &str) -> Vec<Run> {
    let runs: Vec<Run> = (0..SERVICES)
        .map(|seed| sized(seed, policy, None))
        .collect();
    let share = |of: fn(&Run) -> bool| {
        100.0 * runs.iter().filter(|run| of(run)).count() as f64 / runs.len() as f64
    };
    let above = |share| at(&runs, |run| 100.0 * run.above_cheapest, share);
    let more = |share| at(&runs, Run::more_starts, share);
    println!(
        "{SERVICES} services, {words}: proven {:.1} %, wrong {:.2} %, above the cheapest {:.1} % ({:.1} % in 95 of 100, {:.1} % of all within 5 %), more starts than with its CPU given {:.0} ({:.0} in 95 of 100)",
        share(|run| run.is_proven),
        share(|run| run.is_wrong),
        above(0.5),
        above(0.95),
        share(|run| run.is_proven && run.above_cheapest <= 0.05),
        more(0.5),
        more(0.95),
    );
    runs
}

/// A quantile over the proven runs.
fn at(runs: &[Run], value: impl Fn(&Run) -> f64, share: f64) -> f64 {
    let proven = runs.iter().filter(|run| run.is_proven);
    quantile(&proven.map(value).collect::<Vec<f64>>(), share).unwrap()
}

impl Run {
    fn more_starts(&self) -> f64 {
        f64::from(self.starts) - f64::from(self.starts_with_cpu)
    }
}

fn are_right(runs: &[Run], found: f64) {
    let count = |of: fn(&Run) -> bool| runs.iter().filter(|run| of(run)).count() as f64;
    let all = runs.len() as f64;
    assert!(count(|run| run.is_wrong) <= 0.015 * all);
    assert!(count(|run| run.is_proven) > found * all);
    assert!(at(runs, Run::more_starts, 0.5) <= 12.0);
}

#[test]
fn the_cpu_is_rarely_wrong_and_close_to_the_cheapest() {
    are_right(&shows(CpuPolicy::Limit, "a limit"), 0.9);
}

/// Of some services the limit would have to be larger than the machine.
#[test]
fn so_is_a_request_with_a_limit() {
    are_right(&shows(CpuPolicy::Both, "a request and a limit"), 0.8);
}
