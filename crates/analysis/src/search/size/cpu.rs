//! The smallest CPU at which a start with room keeps the SLO; its memory is searched there.
//!
//! Owns which CPU limits and requests are tried; never how their memory is searched ([`study`](super::study)). CPU
//! comes first because it costs most: one CPU costs as much as
//! [`GIB_PER_CPU`](crate::price::GIB_PER_CPU) GiB, so the next step of CPU costs more than a larger
//! CPU saves in memory.

use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use super::study::{Course, Room, ends_search};
use super::warmer::is_too_early;
use super::{SearchedBase, SizeEnd, SmallestMemory, labelled};
use crate::record::{Configuration, ObjectiveResult, TrialPurpose, TrialRecord, TrialVerdict};
use crate::search::{Next, SeenTrials, TrialSearch};
use crate::sli::Sli;
use crate::verdict::was_disturbed;

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
    /// A request, and a limit that is no smaller, both measured next to that neighbour.
    Both,
}

/// The malloc arenas of a pod without a CPU limit: glibc counts the CPUs of the node, eight arenas each.
const MALLOC_ARENAS: &str = "2";

impl CpuPolicy {
    /// The configuration with so much CPU. Without a limit a JVM counts the CPUs of its node, and a start
    /// there would choose other threads and collectors than the one that was measured: what follows from
    /// the count is pinned, unless the configuration already names it. With a limit it counts the limit,
    /// here and there.
    pub fn configure(self, mut base: Configuration, cpu: Cpus) -> Configuration {
        match self {
            Self::Limit => {
                base.cpu = Some(cpu);
                if base.start_cpu.is_some() {
                    base.pin_cpu_count(cpu);
                }
            }
            Self::Both => base.cpu_request = Some(cpu),
            Self::Request => {
                (base.cpu, base.cpu_request) = (None, Some(cpu));
                base.pin_cpu_count(cpu);
                let arenas = base.env.entry("MALLOC_ARENA_MAX".to_owned());
                arenas.or_insert_with(|| MALLOC_ARENAS.to_owned());
            }
        }
        base
    }
}

/// How far from its bound a latency must stay, as a share of the way, on a logarithmic scale, to what it is
/// with the most CPU. The search ends at the edge, where fresh starts that stray would miss. Chosen by
/// tests/cpu_error_rates.rs of crate simulated, with other seeds than it has.
const COMFORT: f64 = 0.15;
/// The same as a share of the bound, for services that are near it with the most CPU too.
const MOST_OF_BOUND: f64 = 2.0 / 3.0;
/// How much nearer a start with a smaller limit may come than the request's own, which may have passed by
/// luck: nodes sell requests, so a limit that is a little larger costs nothing.
const LIMIT_SLACK: f64 = 1.2;
/// How much faster than its bound a service is taken to be with the most CPU where other programs kept
/// that start from showing it: the target is then the lowest that any service here had.
const UNKNOWN_SPEED: f64 = 250.0;

/// CPU limits or requests of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuRange {
    pub policy: CpuPolicy,
    pub low: Cpus,
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
            low: LEAST_CPU,
            high: match policy {
                CpuPolicy::Limit => all,
                // A neighbour that gets nothing is none.
                CpuPolicy::Request | CpuPolicy::Both => Cpus::from_millis(all.as_millis() * 9 / 10),
            },
            at_least: LEAST_CPU,
        }
    }

    /// The ranges searched on a machine, one after the other: with [`CpuPolicy::Both`] the request
    /// first, since a node sells requests, then the limit, unless it is given.
    pub(super) fn all_of_machine(cpus: u32, policy: CpuPolicy, limit: Option<Cpus>) -> Vec<Self> {
        let mut first = Self::of_machine(cpus, policy);
        first.high = limit.map_or(first.high, |limit| limit.min(first.high));
        let is_open = policy == CpuPolicy::Both && limit.is_none();
        let limits = is_open.then(|| Self::of_machine(cpus, CpuPolicy::Limit));
        [first].into_iter().chain(limits).collect()
    }

    /// All limits of the range, the smallest first. Neighbours differ by 3 to 10 %, most by 4 to 6 %.
    fn levels(self) -> Vec<Cpus> {
        let mut levels = Vec::new();
        let mut millis = self.low.as_millis();
        while millis < self.high.as_millis() {
            levels.push(Cpus::from_millis(millis));
            let step = match millis {
                ..80 => 2,
                80..200 => 5,
                200..400 => 10,
                400..800 => 20,
                800..2000 => 50,
                2000..4000 => 100,
                _ => 250,
            };
            millis = (millis * 104 / 100).max(millis + 1).div_ceil(step) * step;
        }
        levels.push(self.high);
        levels
    }

    /// Where the search looks first: a limit as large as the request may do.
    fn first_guess(self, room: &TrialRecord) -> Option<Cpus> {
        if self.low > LEAST_CPU {
            return Some(self.low);
        }
        let used = Sli::from_record(room).ok()?.cpus_used?;
        Some(Cpus::from_millis((used * BESIDE_MEAN * 1e3) as u32))
    }
}

/// The latencies that starts with less CPU must keep; `room` is the start with the most.
#[derive(Debug, Clone, Copy)]
struct LatencyTarget<'a> {
    room: &'a TrialRecord,
}

impl LatencyTarget<'_> {
    /// The largest latency of a start as a share of what it must keep, above 1 where it does not.
    fn share_of_target(self, record: &TrialRecord) -> Option<f64> {
        let is_disturbed = was_disturbed(&self.room.evidence);
        let share = |(result, best): (&ObjectiveResult, &ObjectiveResult)| {
            let bound = result.objective.bound_value();
            let (measured, mut best) = (result.measured?, best.measured?);
            if is_disturbed {
                best = best.min(bound / UNKNOWN_SPEED);
            }
            let target = bound * (best / bound).powf(COMFORT).min(MOST_OF_BOUND);
            result.objective.is_time().then(|| measured / target)
        };
        let pairs = record.objectives.iter().zip(&self.room.objectives);
        pairs.filter_map(share).reduce(f64::max)
    }

    fn is_kept(self, record: &TrialRecord, slack: f64) -> bool {
        let share = self.share_of_target(record);
        record.verdict == TrialVerdict::Pass && share.is_none_or(|share| share <= slack)
    }

    /// The CPU at which it would be kept just so, if latency grows with the share of time that a CPU is
    /// busy as in a queue with one server. Only where the search looks next depends on it.
    fn expected_cpu(self, record: &TrialRecord) -> Option<Cpus> {
        let used = Sli::from_record(self.room).ok()?.cpus_used?;
        let given = record.configuration.sure_cpu()?.as_f64();
        let idle = (1.0 - used / given) * self.share_of_target(record)?;
        (given > used && idle < 1.0)
            .then(|| Cpus::from_millis((used / (1.0 - idle) * 1e3) as u32 + 1))
    }
}

/// Starts with latencies that say where to look next. Then the remaining range is halved.
const EXPECTED_STARTS: u32 = 4;

/// A search over the levels: the largest passes, and each is passed by all above it.
#[derive(Debug)]
struct CpuSteps {
    levels: Vec<Cpus>,
    /// Levels below it miss, or were not tried and are not wanted.
    from: usize,
    /// The smallest that passes.
    passes: usize,
    expected: Option<usize>,
    tried: u32,
}

impl CpuSteps {
    fn new(range: CpuRange, expected: Option<Cpus>) -> Self {
        let levels = range.levels();
        let mut steps = Self {
            from: 0,
            passes: levels.len() - 1,
            levels,
            expected: None,
            tried: 0,
        };
        steps.expect_cpu(expected);
        steps
    }

    fn expect_cpu(&mut self, cpu: Option<Cpus>) {
        let level = |cpu| self.levels.partition_point(|level| *level < cpu);
        self.expected = cpu.filter(|_| self.tried < EXPECTED_STARTS).map(level);
    }

    fn next_level(&self) -> Option<usize> {
        let (from, last) = (self.from, self.passes.checked_sub(1)?);
        if from > last {
            return None;
        }
        // Steps double until a level on the other side is known.
        let step = 1_usize << self.tried.min(16);
        let next = match self.expected {
            Some(expected) => expected,
            None if self.from == 0 => self.passes.saturating_sub(step),
            None if self.passes + 1 == self.levels.len() => self.from + step - 1,
            None => usize::midpoint(self.from, self.passes),
        };
        Some(next.clamp(from, last))
    }

    fn record_level(&mut self, level: usize, has_passed: bool, expected: Option<Cpus>) {
        self.tried += 1;
        if has_passed {
            self.passes = level
        } else {
            self.from = level + 1
        }
        self.expect_cpu(expected);
    }

    /// The smallest that passed, and a clearly larger one if the range has it.
    fn answer(&self, at_least: Cpus) -> (Cpus, Option<Cpus>) {
        let last = self.levels.len() - 1;
        let needed = self.levels.partition_point(|level| *level < at_least);
        let chosen = self.passes.max(needed).min(last);
        let more = self.levels[(chosen + CLEARLY_MORE).min(last)];
        (self.levels[chosen], (chosen < last).then_some(more))
    }
}

/// Steps up where starts refute a CPU: the next level does not differ enough.
const CLEARLY_MORE: usize = 2;

/// Trials that missed although they had memory to spare.
struct TooLittleCpu {
    trials: Vec<Arc<TrialRecord>>,
    spent: Duration,
}

impl SmallestMemory {
    /// The same search with one amount of CPU of its first range. A limit is no smaller than the request.
    fn with_cpu(&self, cpu: Cpus) -> Self {
        let base = Configuration {
            label: labelled(&self.base.label, &format!("{}cpu", cpu.as_f64())),
            ..self.base.clone()
        };
        let mut ranges = self.cpus.iter().copied();
        let policy = ranges.next().map_or(CpuPolicy::Limit, |range| range.policy);
        let mut with = Self {
            base: policy.configure(base, cpu),
            cpus: ranges.collect(),
            ..self.clone()
        };
        for range in &mut with.cpus {
            range.low = cpu.max(range.at_least);
        }
        with
    }

    /// The same search with the most CPU of every range.
    fn with_most_cpu(&self) -> Self {
        match self.cpus.first() {
            Some(range) => self.with_cpu(range.high).with_most_cpu(),
            None => self.clone(),
        }
    }

    /// The smallest memory at the smallest CPU of its ranges.
    pub(super) fn next_of_cpus(&self, seen: &SeenTrials) -> Next<SearchedBase> {
        let largest = self.with_most_cpu();
        let mut course = Course::new(&largest, seen);
        let room = match course.room()? {
            Room::Measured(room) => room,
            Room::Ended(end) => return Ok(course.ended(end, None)),
            Room::TooEarly => return self.begin_again(course.spent, seen),
        };
        let size = room.configuration.memory.unwrap_or(self.parameters.high);
        let target = LatencyTarget { room: &room };
        // Fresh starts do not tell which of several amounts was too little: each moves up.
        let (mut search, mut raised, mut has_more) = (self.clone(), self.clone(), false);
        for raised in &mut raised.cpus {
            let range = search.cpus[0];
            let mut steps = CpuSteps::new(range, range.first_guess(&room));
            while let Some(level) = steps.next_level() {
                let smaller = search.with_cpu(steps.levels[level]);
                let (record, length) = smaller.start_with_room(size, TrialPurpose::Search, seen)?;
                course.spent += length;
                if let Some(end) = ends_search(&record) {
                    return Ok(course.ended(end, None));
                }
                // A limit above a request is no share of time.
                let (slack, expected) = if range.low > LEAST_CPU {
                    (LIMIT_SLACK, None)
                } else {
                    (1.0, target.expected_cpu(&record))
                };
                // An amount that noise kept from being measured counts as too little.
                steps.record_level(level, target.is_kept(&record, slack), expected);
                course.trials.push(record);
            }
            let (cpu, more) = steps.answer(range.at_least);
            raised.at_least = more.unwrap_or(cpu);
            has_more |= more.is_some();
            search = search.with_cpu(cpu);
        }
        search.parameters.high = size;
        search.has_more_cpu = has_more;
        match search.search_memory(size, seen)? {
            Ok(mut searched) => {
                searched.spent += course.spent;
                let is_own =
                    |t: &Arc<TrialRecord>| searched.trials.iter().any(|own| own.id == t.id);
                course.trials.retain(|trial| !is_own(trial));
                searched.of_other_cpus = course.trials;
                searched.more_cpu = has_more.then(|| Box::new(raised));
                Ok(searched)
            }
            // Starts vary: what passed once may miss.
            Err(short) => {
                let mut searched = raised.next(seen)?;
                searched.spent += short.spent;
                searched.of_other_cpus.extend(short.trials);
                Ok(searched)
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
        let (room, spent) = self.start_with_room(size, TrialPurpose::Room, seen)?;
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

    /// A start with room, with a longer warm-up where it was judged too early. It ages, which takes up to a
    /// minute, only for [`TrialPurpose::Room`].
    fn start_with_room(
        &self,
        size: Bytes,
        purpose: TrialPurpose,
        seen: &SeenTrials,
    ) -> Next<(Arc<TrialRecord>, Duration)> {
        let mut search = self.with_most_cpu();
        let mut spent = Duration::ZERO;
        loop {
            let mut course = Course::new(&search, seen);
            let record = course.start(size, purpose, 1)?;
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
    use crate::fixture;
    use crate::slo::Slo;

    fn cpus(text: &str) -> Cpus {
        text.parse().unwrap()
    }

    /// The levels that are tried, and the answer, where all from `needed` on pass.
    fn tried(machine: u32, guess: Option<Cpus>, needed: Cpus) -> (Vec<Cpus>, Cpus) {
        let range = CpuRange::of_machine(machine, CpuPolicy::Limit);
        let mut steps = CpuSteps::new(range, guess);
        let mut tried = Vec::new();
        while let Some(level) = steps.next_level() {
            tried.push(steps.levels[level]);
            steps.record_level(level, steps.levels[level] >= needed, None);
        }
        (tried, steps.answer(LEAST_CPU).0)
    }

    #[test]
    fn the_answer_is_the_smallest_that_passes() {
        let (levels, answer) = tried(2, Some(cpus("320m")), cpus("400m"));
        assert_eq!(answer, cpus("400m"));
        assert!(levels.len() <= 8, "{levels:?}");
        let (_, all) = tried(8, None, cpus("6"));
        assert_eq!(all, cpus("6"), "nothing is above it");
        let (_, least) = tried(2, Some(cpus("10m")), cpus("10m"));
        assert_eq!(least, LEAST_CPU, "nothing smaller misses");
    }

    #[test]
    fn every_need_is_found_within_fourteen_starts() {
        for machine in [1, 2, 4, 8, 16] {
            let range = CpuRange::of_machine(machine, CpuPolicy::Limit);
            for needed in range.levels() {
                let half = Cpus::from_millis(needed.as_millis() / 2);
                for guess in [None, Some(cpus("20m")), Some(half), Some(cpus("20"))] {
                    let (levels, answer) = tried(machine, guess, needed);
                    assert!(levels.len() <= 14, "{machine} {needed}: {levels:?}");
                    assert_eq!(answer, needed, "{machine}: {levels:?}");
                }
            }
        }
    }

    fn start(cpu: &str, latency: f64) -> TrialRecord {
        let mut record = fixture::trial_record("t", TrialPurpose::Room, 256, TrialVerdict::Pass);
        record.configuration.cpu = Some(cpus(cpu));
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs(2));
        let slo: Slo = "p99<250ms".parse().unwrap();
        record.objectives = vec![ObjectiveResult {
            request: None,
            is_peak: false,
            objective: slo.objectives[0],
            measured: Some(latency),
            met: true,
        }];
        record
    }

    /// With the most CPU it takes 10 ms, so that less CPU must keep 154 ms of the 250 ms.
    #[test]
    fn a_latency_near_its_bound_is_not_kept() {
        let room = start("1", 0.01);
        let target = LatencyTarget { room: &room };
        assert!(target.is_kept(&start("500m", 0.15), 1.0));
        assert!(!target.is_kept(&start("500m", 0.16), 1.0));
        let mut missed = start("500m", 0.1);
        missed.verdict = TrialVerdict::SloMiss;
        assert!(!target.is_kept(&missed, 1.0));
    }

    #[test]
    fn a_latency_says_which_cpu_to_look_at() {
        let room = start("1", 0.01);
        let target = LatencyTarget { room: &room };
        let used = Sli::from_record(&room).unwrap().cpus_used.unwrap();
        let expected = |cpu, latency| target.expected_cpu(&start(cpu, latency));
        let (less, same, more) = (
            expected("500m", 0.05).unwrap(),
            expected("500m", 0.1543).unwrap(),
            expected("500m", 0.16).unwrap(),
        );
        assert!(same >= cpus("499m") && same <= cpus("502m"), "{same}");
        assert!(
            less < same && less.as_f64() > used && same < more,
            "{less} {more}"
        );
        assert_eq!(expected("500m", 9.0), None, "no CPU would be enough");
        assert_eq!(expected("50m", 0.1), None, "it burns more than that");
    }
}
