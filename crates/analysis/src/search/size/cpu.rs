//! The smallest CPU at which a start with room keeps the SLO; its memory is searched there.
//!
//! Owns which CPU limits are tried; never how their memory is searched ([`study`](super::study)). CPU
//! comes first because it costs most: one CPU costs as much as
//! [`GIB_PER_CPU`](crate::price::GIB_PER_CPU) GiB, so the next step of CPU costs more than a larger
//! CPU saves in memory.

use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use super::study::{Course, Room, could_not_measure};
use super::warmer::is_too_early;
use super::{SearchedBase, SizeEnd, SmallestMemory};
use crate::record::{Configuration, ObjectiveResult, TrialPurpose, TrialRecord, TrialVerdict};
use crate::search::{Next, SeenTrials, TrialSearch};
use crate::sli::Sli;
use crate::slo::Objective;

/// The least CPU that is tried: a JVM below it needs minutes to start.
pub const LEAST_CPU: Cpus = Cpus::from_millis(50);

/// CPU that a JVM needs in addition to its average use, as a share of that use: bursts of requests and
/// collections. Only where the search looks first depends on it.
const BESIDE_MEAN: f64 = 1.6;

/// How a pod is given its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CpuPolicy {
    /// A limit, and a request of the same size.
    #[default]
    Limit,
    /// A request alone, measured while a neighbour takes all other CPU.
    Request,
}

/// The malloc arenas of a pod without a CPU limit: glibc counts the CPUs of the node, eight arenas each.
const MALLOC_ARENAS: &str = "2";

impl CpuPolicy {
    /// The configuration with so much CPU. Without a limit a JVM counts the CPUs of its node, and a start
    /// there would choose other threads and collectors than the one that was measured: what follows from
    /// the count is pinned, unless the configuration already names it.
    pub fn configure(self, mut base: Configuration, cpu: Cpus) -> Configuration {
        if self == Self::Limit {
            base.cpu = Some(cpu);
            if base.start_cpu.is_some() {
                base.pin_cpu_count(cpu);
            }
            return base;
        }
        (base.cpu, base.cpu_request) = (None, Some(cpu));
        base.pin_cpu_count(cpu);
        let arenas = base.env.entry("MALLOC_ARENA_MAX".to_owned());
        arenas.or_insert_with(|| MALLOC_ARENAS.to_owned());
        base
    }
}

/// How far from its bound a latency must stay, as a share of the way, on a logarithmic scale, to what it is
/// with the most CPU. A bisection ends at the edge, where fresh starts that stray would miss. Chosen by
/// tests/cpu_error_rates.rs of crate simulated.
const COMFORT: f64 = 0.3;

/// Whether a start kept its SLO at some distance; `room` is the start with the most CPU.
fn keeps_well(record: &TrialRecord, room: &TrialRecord) -> bool {
    let is_far = |(result, best): (&ObjectiveResult, &ObjectiveResult)| {
        let (Some(measured), Some(best)) = (result.measured, best.measured) else {
            return true;
        };
        let bound = result.objective.bound_value();
        let is_latency = !matches!(result.objective, Objective::Errors { .. });
        !is_latency || measured <= bound * (best / bound).min(1.0).powf(COMFORT)
    };
    let mut pairs = record.objectives.iter().zip(&room.objectives);
    record.verdict == TrialVerdict::Pass && pairs.all(is_far)
}

/// CPU limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRange {
    pub policy: CpuPolicy,
    /// The largest, which is measured first.
    pub high: Cpus,
    /// The answer is no smaller than this, because fresh starts missed below it.
    pub at_least: Cpus,
}

impl CpuRange {
    /// From [`LEAST_CPU`] to the CPUs that leave the load generator CPUs of its own: a quarter of the
    /// machine's, as a trial splits them.
    pub fn of_machine(cpus: u32, policy: CpuPolicy) -> Self {
        let generator = if cpus > 1 { cpus.div_ceil(4) } else { 0 };
        let all = Cpus::from_whole(cpus - generator);
        Self {
            policy,
            high: match policy {
                CpuPolicy::Limit => all,
                // A neighbour that gets nothing is none.
                CpuPolicy::Request => Cpus::from_millis(all.as_millis() * 9 / 10),
            },
            at_least: LEAST_CPU,
        }
    }

    /// All limits of the range, the smallest first. Neighbours differ by 5 to 20 %, from 200m on by
    /// 5 to 12 %: starts at closer ones do not differ.
    fn levels(self) -> Vec<Cpus> {
        let mut levels = Vec::new();
        let mut millis = LEAST_CPU.as_millis();
        while millis < self.high.as_millis() {
            levels.push(Cpus::from_millis(millis));
            millis += match millis {
                ..200 => 10,
                200..500 => 25,
                500..1000 => 50,
                1000..2000 => 100,
                _ => 250,
            };
        }
        levels.push(self.high);
        levels
    }
}

/// A bisection over the levels: the largest passes, and each is passed by all above it.
#[derive(Debug)]
struct CpuSteps {
    levels: Vec<Cpus>,
    /// Levels below it miss, or were not tried and are not wanted.
    from: usize,
    /// The smallest that passes.
    passes: usize,
    expected: Option<usize>,
}

impl CpuSteps {
    fn new(range: CpuRange, used: Option<f64>) -> Self {
        let levels = range.levels();
        let expected = used.map(|used| {
            let wanted = Cpus::from_millis((used * BESIDE_MEAN * 1e3) as u32);
            levels.partition_point(|level| *level < wanted)
        });
        Self {
            from: 0,
            passes: levels.len() - 1,
            levels,
            expected,
        }
    }

    fn next_level(&self) -> Option<usize> {
        let open = self.from..self.passes;
        if open.is_empty() {
            return None;
        }
        let expected = self.expected.filter(|level| open.contains(level));
        Some(expected.unwrap_or(usize::midpoint(self.from, self.passes)))
    }

    fn record_level(&mut self, level: usize, has_passed: bool) {
        self.expected = None;
        match has_passed {
            true => self.passes = level,
            false => self.from = level + 1,
        }
    }

    /// The smallest that passed, and one step of reserve: what passed once may miss the next time.
    /// There is none where nothing smaller misses.
    fn answer(&self, at_least: Cpus) -> usize {
        let reserve = usize::from(self.from > 0);
        let last = self.levels.len() - 1;
        let needed = self.levels.partition_point(|level| *level < at_least);
        (self.passes + reserve).max(needed).min(last)
    }
}

/// Trials that missed although they had memory to spare.
struct TooLittleCpu {
    trials: Vec<Arc<TrialRecord>>,
    spent: Duration,
}

impl SmallestMemory {
    /// The same search with one amount of CPU.
    fn with_cpu(&self, cpu: Cpus, policy: CpuPolicy) -> Self {
        let given = match self.base.label.as_str() {
            "as given" => "",
            label => label,
        };
        let label = format!("{given} {}cpu", cpu.as_f64());
        let base = Configuration {
            label: label.trim().to_owned(),
            ..self.base.clone()
        };
        Self {
            base: policy.configure(base, cpu),
            cpu: None,
            ..self.clone()
        }
    }

    /// The smallest memory at the smallest CPU of the range.
    pub(super) fn next_of_cpus(&self, range: CpuRange, seen: &SeenTrials) -> Next<SearchedBase> {
        let largest = self.with_cpu(range.high, range.policy);
        let mut course = Course::new(&largest, seen);
        let room = match course.room()? {
            Room::Measured(room) => room,
            Room::Ended(end) => return Ok(course.ended(end, None)),
            Room::TooEarly => {
                let spent = course.spent;
                let Some(longer) = self.with_longer_warm_up() else {
                    unreachable!("a start is too early only where a longer warm-up is left");
                };
                let mut searched = longer.next(seen)?;
                searched.spent += spent;
                return Ok(searched);
            }
        };
        let size = room.configuration.memory.unwrap_or(self.parameters.high);
        let used = Sli::from_record(&room).ok().and_then(|sli| sli.cpus_used);
        let mut steps = CpuSteps::new(range, used);
        let (mut trials, mut spent) = (course.trials, course.spent);
        while let Some(level) = steps.next_level() {
            let cpu = steps.levels[level];
            let smaller = self.with_cpu(cpu, range.policy);
            let (record, length) = smaller.start_with_room(size, seen)?;
            spent += length;
            if let TrialVerdict::Invalid(_) = record.verdict {
                let mut unknown = Course::new(&largest, seen);
                unknown.spent = spent;
                unknown.trials = trials;
                return Ok(unknown.ended(could_not_measure(size, &record), None));
            }
            steps.record_level(level, keeps_well(&record, &room));
            trials.push(record);
        }
        let (mut chosen, mut more) = (steps.answer(range.at_least), 1);
        let last = steps.levels.len() - 1;
        loop {
            let mut smallest = self.with_cpu(steps.levels[chosen], range.policy);
            smallest.parameters.high = size;
            smallest.has_more_cpu = chosen < last;
            match smallest.search_memory(size, seen)? {
                Ok(mut searched) => {
                    searched.spent += spent;
                    searched.of_other_cpus = trials;
                    // Fresh starts that refute a CPU need clearly more, not the next step.
                    searched.more_cpu = (chosen < last).then(|| {
                        let at_least = steps.levels[(chosen + 2).min(last)];
                        Box::new(Self {
                            cpu: Some(CpuRange { at_least, ..range }),
                            ..self.clone()
                        })
                    });
                    return Ok(searched);
                }
                // Starts vary: what passed once may miss. Each miss takes a longer step.
                Err(mut short) => {
                    trials.append(&mut short.trials);
                    spent += short.spent;
                    chosen = (chosen + more).min(last);
                    more *= 2;
                }
            }
        }
    }

    /// The smallest memory with this CPU, or what showed that the CPU is too little.
    fn search_memory(
        &self,
        size: Bytes,
        seen: &SeenTrials,
    ) -> Next<Result<SearchedBase, TooLittleCpu>> {
        if !self.has_more_cpu {
            return self.next(seen).map(Ok);
        }
        let (room, spent) = self.start_with_room(size, seen)?;
        if room.verdict != TrialVerdict::Pass {
            let trials = vec![room];
            return Ok(Err(TooLittleCpu { trials, spent }));
        }
        let searched = self.next(seen)?;
        Ok(match searched.end {
            SizeEnd::Infeasible { .. } => Err(TooLittleCpu {
                trials: searched.trials,
                spent: searched.spent,
            }),
            _ => Ok(searched),
        })
    }

    /// A start with room, with a longer warm-up where it was judged too early.
    fn start_with_room(
        &self,
        size: Bytes,
        seen: &SeenTrials,
    ) -> Next<(Arc<TrialRecord>, Duration)> {
        let mut search = self.clone();
        let mut spent = Duration::ZERO;
        loop {
            let mut course = Course::new(&search, seen);
            let record = course.start(size, TrialPurpose::Room, 1)?;
            spent += course.spent;
            let has_passed = record.verdict == TrialVerdict::Pass;
            let longer = search.with_longer_warm_up();
            match longer.filter(|_| !has_passed && is_too_early(std::slice::from_ref(&record))) {
                Some(longer) => search = longer,
                None => return Ok((record, spent)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> Cpus {
        text.parse().unwrap()
    }

    /// The levels that are tried, and the answer, where all from `needed` on pass.
    fn tried(machine: u32, used: Option<f64>, needed: Cpus) -> (Vec<Cpus>, Cpus) {
        let mut steps = CpuSteps::new(CpuRange::of_machine(machine, CpuPolicy::Limit), used);
        let mut tried = Vec::new();
        while let Some(level) = steps.next_level() {
            tried.push(steps.levels[level]);
            steps.record_level(level, steps.levels[level] >= needed);
        }
        (tried, steps.levels[steps.answer(LEAST_CPU)])
    }

    #[test]
    fn the_answer_is_one_step_above_the_smallest_that_passes() {
        let (levels, answer) = tried(2, Some(0.2), cpus("400m"));
        assert_eq!(answer, cpus("425m"));
        assert!(levels.len() <= 6, "{levels:?}");
        let (_, all) = tried(8, None, cpus("6"));
        assert_eq!(all, cpus("6"), "nothing is above it");
        let (_, least) = tried(2, Some(0.01), cpus("10m"));
        assert_eq!(least, LEAST_CPU, "nothing smaller misses");
    }

    #[test]
    fn every_need_is_found_within_nine_starts() {
        for machine in [1, 2, 4, 8, 16] {
            let range = CpuRange::of_machine(machine, CpuPolicy::Limit);
            for needed in range.levels() {
                for used in [None, Some(0.02), Some(needed.as_f64() / 2.0), Some(20.0)] {
                    let (levels, answer) = tried(machine, used, needed);
                    assert!(levels.len() <= 9, "{machine} {needed}: {levels:?}");
                    let above = answer.as_f64() / needed.as_f64();
                    assert!((1.0..1.25).contains(&above), "{machine} {needed}: {answer}");
                }
            }
        }
    }
}
