//! How often `size` is wrong once it goes on until a size is proven, beside one proof that decides.
//!
//! The worlds are those of `min_memory_error_rates` and some in which a share of the starts misses
//! whatever the memory. An answer is wrong when it is called proven and fewer than 95 % of starts
//! pass there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

use loadline_analysis::interval::quantile;
use loadline_analysis::proof::{Standing, is_proof};
use loadline_analysis::random::Random;
use loadline_analysis::search::Outcome;
use loadline_analysis::search::ascent::Ascent;
use loadline_analysis::search::min_memory::{MemoryFound, MinMemory, Parameters, Step};
use loadline_simulated::world::MemoryWall;
use loadline_sizing::Bytes;

/// Shares of starts that miss at every size, and worlds with each.
const FLOORS: [(f64, u64); 5] = [(0.0, 1500), (0.02, 75), (0.1, 75), (0.2, 75), (0.4, 75)];
const PROVE: u32 = 20;

/// What came of one service.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The size that was called proven.
    proven: Option<Bytes>,
    starts: u32,
    is_wrong: bool,
    oversize: f64,
}

/// The starts of one service.
struct Service {
    wall: MemoryWall,
    /// Share of starts that miss whatever their memory, in [0, 1].
    floor: f64,
    random: Random,
    tried: Vec<(Bytes, Outcome)>,
}

impl Service {
    fn draw(service: u64, floor: f64) -> Self {
        let mut random = Random::from_seed(2026).derive(service);
        Self {
            wall: MemoryWall::draw(&mut random),
            floor,
            random,
            tried: Vec::new(),
        }
    }

    fn passes(&self, size: Bytes) -> f64 {
        (1.0 - self.floor) * self.wall.pass_probability(size.as_mib())
    }

    fn start(&mut self, size: Bytes) -> Outcome {
        let passes = self.passes(size);
        let outcome = match self.random.chance(passes) {
            true => Outcome::Pass,
            false => Outcome::Fail,
        };
        self.tried.push((size, outcome));
        outcome
    }

    fn found(&mut self) -> Option<MemoryFound> {
        let mut search = MinMemory::new(parameters());
        loop {
            match search.next() {
                Step::Try(size, _) => search.record(size, self.start(size)).unwrap(),
                Step::Done(found) => return Some(found),
                Step::Infeasible { .. } => return None,
                Step::CouldNotMeasure { .. } => unreachable!("every trial counts here"),
            }
        }
    }

    fn ends(self, proven: Option<Bytes>) -> Run {
        let over = |size: Bytes| size.as_mib() / self.wall.memory_for(0.95) - 1.0;
        Run {
            proven,
            starts: self.tried.len() as u32,
            is_wrong: proven.is_some_and(|size| self.passes(size) < 0.95),
            oversize: proven.map_or(0.0, over),
        }
    }
}

fn parameters() -> Parameters {
    Parameters::new(Bytes::from_mib(64), Bytes::from_mib(1024))
}

/// As `size` was: so many starts, and what they show ends it.
fn one_proof(mut service: Service) -> Run {
    let found = service.found();
    let proven = found.filter(|found| {
        let passes = (0..PROVE).filter(|_| service.start(found.size) == Outcome::Pass);
        is_proof(passes.count() as u64, PROVE.into())
    });
    service.ends(proven.map(|found| found.size))
}

/// As `size` is: until a size is proven, or the largest is refuted.
fn until_proven(mut service: Service) -> Run {
    let Some(found) = service.found() else {
        return service.ends(None);
    };
    let mut ascent = Ascent::new(parameters(), PROVE, found.size, service.tried.clone());
    while let Standing::More(_) = ascent.standing() {
        let outcome = service.start(ascent.size());
        ascent.record(outcome);
    }
    let proven = (ascent.standing() == Standing::Proven).then(|| ascent.size());
    service.ends(proven)
}

fn share(runs: &[Run], of: impl Fn(&Run) -> bool) -> f64 {
    runs.iter().filter(|run| of(run)).count() as f64 / runs.len() as f64
}

fn mean_starts(runs: &[Run]) -> f64 {
    runs.iter().map(|run| f64::from(run.starts)).sum::<f64>() / runs.len() as f64
}

fn line(name: &str, runs: &[Run]) -> String {
    let starts: Vec<f64> = runs.iter().map(|run| f64::from(run.starts)).collect();
    let over = runs.iter().filter(|run| run.proven.is_some());
    let over: Vec<f64> = over.map(|run| run.oversize).collect();
    format!(
        "{name}: {:.1} starts (95 % within {:.0}), proven {:.1} %, wrong {:.2} %, oversize {:.1} %",
        mean_starts(runs),
        quantile(&starts, 0.95).unwrap(),
        100.0 * share(runs, |run| run.proven.is_some()),
        100.0 * share(runs, |run| run.is_wrong),
        100.0 * quantile(&over, 0.5).unwrap_or(f64::NAN),
    )
}

#[test]
fn going_on_until_a_size_is_proven_is_hardly_ever_wrong() {
    let (mut before, mut now) = (Vec::new(), Vec::new());
    let mut first = 0;
    for (floor, services) in FLOORS {
        let of = |run: fn(Service) -> Run| -> Vec<Run> {
            let services = first..first + services;
            services.map(|s| run(Service::draw(s, floor))).collect()
        };
        let (one, until) = (of(one_proof), of(until_proven));
        let name = format!("{:.0} % miss at every size", floor * 100.0);
        println!(
            "{}\n{}",
            line(&format!("{name}, one proof"), &one),
            line(&format!("{name}, until proven"), &until)
        );
        if floor == 0.0 {
            assert!(share(&until, |run| run.is_wrong) <= 0.01);
            assert!(share(&until, |run| run.proven.is_some()) >= 0.999);
        }
        before.extend(one);
        now.extend(until);
        first += services;
    }
    println!(
        "{}\n{}",
        line("all, one proof", &before),
        line("all, until proven", &now)
    );
    let wrong = share(&now, |run| run.is_wrong);
    assert!(wrong <= 0.01, "{wrong}");
    let more = mean_starts(&now) / mean_starts(&before);
    assert!(more <= 1.5, "{more}");
}
