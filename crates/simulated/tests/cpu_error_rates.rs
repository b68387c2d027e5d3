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

use std::time::Duration;

use loadline_analysis::interval::quantile;
use loadline_analysis::proof::DISTANT_STARTS;
use loadline_analysis::random::RandomStream;
use loadline_analysis::recommend::recommend;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_analysis::search::min_memory::MemoryParameters;
use loadline_analysis::search::size::cpu::{CpuPolicy, CpuRange};
use loadline_analysis::search::size::{SizeSearch, SmallestMemory};
use loadline_analysis::search::{SeenTrials, TrialSearch};
use loadline_simulated::memory::MemoryService;
use loadline_sizing::{Bytes, Cpus};

const SERVICES: u64 = 600;

#[derive(Debug, Default)]
struct Run {
    starts: u32,
    /// The same service with the answer's CPU given.
    starts_with_cpu: u32,
    is_proven: bool,
    is_wrong: bool,
    above_cheapest: f64,
}

fn search(cpu: Option<Cpus>) -> SizeSearch {
    let range = CpuRange::of_machine(4, CpuPolicy::Limit);
    SizeSearch {
        bases: vec![SmallestMemory {
            base: Configuration {
                cpu,
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
            is_squeezable: true,
            has_one_jvm: false,
            cpu: cpu.is_none().then_some(range),
            has_more_cpu: false,
        }],
        prove: DISTANT_STARTS,
        is_counted: false,
    }
}

fn sized(seed: u64, cpu: Option<Cpus>) -> Run {
    let mut service = MemoryService::draw(2031, seed);
    let burned = RandomStream::from_seed(seed).uniform_between(0.03_f64.ln(), 1.5_f64.ln());
    service.burned_cpus = Some(burned.exp());
    service.misses = 0.0;
    let (search, slo) = (search(cpu), "p99<250ms".parse().unwrap());
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
    let given = answer.configuration.cpu.unwrap();
    let memory = answer.recommended_memory().as_gib();
    let needed = service.needed_cpus();
    let price = |cpus: f64| 9.0 * cpus + memory;
    let starts_with_cpu = match cpu {
        Some(_) => starts,
        None => self::sized(seed, Some(given)).starts,
    };
    Run {
        starts_with_cpu,
        is_proven: answer.is_proven(),
        is_wrong: answer.is_proven() && given.as_f64() < needed,
        above_cheapest: price(given.as_f64()) / price(needed.max(0.05)) - 1.0,
        ..run
    }
}

#[test]
fn the_cpu_is_rarely_wrong_and_close_to_the_cheapest() {
    let runs: Vec<Run> = (0..SERVICES).map(|seed| sized(seed, None)).collect();
    let share =
        |of: fn(&Run) -> bool| runs.iter().filter(|run| of(run)).count() as f64 / runs.len() as f64;
    let proven: Vec<&Run> = runs.iter().filter(|run| run.is_proven).collect();
    let above: Vec<f64> = proven.iter().map(|run| run.above_cheapest).collect();
    let more = |run: &&Run| f64::from(run.starts) - f64::from(run.starts_with_cpu);
    let more: Vec<f64> = proven.iter().map(more).collect();
    let at = |values: &[f64], share| quantile(values, share).unwrap();
    let (wrong, found) = (share(|run| run.is_wrong), share(|run| run.is_proven));
    println!(
        "{SERVICES} services: proven {:.1} %, wrong {:.2} %, above the cheapest pair {:.1} % ({:.1} % in 95 of 100), more starts than with its CPU given {:.0} ({:.0} in 95 of 100)",
        100.0 * found,
        100.0 * wrong,
        100.0 * at(&above, 0.5),
        100.0 * at(&above, 0.95),
        at(&more, 0.5),
        at(&more, 0.95),
    );
    assert!(wrong <= 0.02, "{wrong}");
    assert!(found > 0.85, "{found}");
    assert!(at(&more, 0.5) <= 12.0, "{more:?}");
}
