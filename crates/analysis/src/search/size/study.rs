//! R and A: one start with room and one squeezed start, and how the search continues.
//!
//! Owns when a start with room is repeated, which heap the next start gets, and when its memory
//! wall is an answer. [`crate::budget`] turns a squeeze into a limit.

use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::Bytes;
use loadline_sizing::options::words::TOOL_OPTIONS;

use super::warmer::is_too_early;
use super::{
    START_FACTOR, START_FLOOR, SearchedBase, SizeEnd, SizeSteps, SmallestMemory, at_size, size_end,
};
use crate::budget::{
    Budget, DIRECT_MEMORY, HeapPolicy, MemoryWall, allowed_heap, answer_budget, choose_heap,
    heap_options, live_set, named_heap, need_beside_heap, room_need, study_limit,
};
use crate::record::{
    Configuration, Evidence, InstanceEvidence, SqueezeEnd, TrialPhase, TrialPurpose, TrialRecord,
    TrialVerdict,
};
use crate::search::ahead::SearchMachine;
use crate::search::expected::ExpectedSize;
use crate::search::min_memory::{MemoryFound, MemoryParameters};
use crate::search::{Next, SeenTrials, TrialAsk, TrialOutcome, TrialSearch, read_records};
use crate::verdict::{
    VerdictThresholds, judge_trial, lacked_memory, may_need_memory, why_infeasible,
};

/// Factor on the limit of a squeezed start that missed its SLO before the squeeze, applied once.
const MORE_ROOM: (u64, u64) = (3, 2);
/// Factor on an answer if its aged start missed its SLO.
const AGED_MISS: (u64, u64) = (104, 100);

pub(super) enum Room {
    Measured(Arc<TrialRecord>),
    TooEarly,
    Ended(SizeEnd),
}

enum Study {
    Wall(Arc<TrialRecord>),
    NoWall(Option<Bytes>),
    Ended(SizeEnd),
}

pub(super) struct Course<'a> {
    search: &'a SmallestMemory,
    seen: &'a SeenTrials,
    base: Configuration,
    pub(super) trials: Vec<Arc<TrialRecord>>,
    pub(super) spent: Duration,
    start_deadline: Duration,
    beside_heap: Option<Bytes>,
}

impl TrialSearch for SmallestMemory {
    type Answer = SearchedBase;

    fn next(&self, seen: &SeenTrials) -> Next<SearchedBase> {
        if !self.cpus.is_empty() {
            return self.next_of_cpus(seen);
        }
        let mut course = Course::new(self, seen);
        let room = match course.room()? {
            Room::Measured(room) => room,
            Room::TooEarly => return self.begin_again(course.spent, seen),
            Room::Ended(end) => return Ok(course.ended(end, None)),
        };
        let evidence = self.of_sized_jvm(&room.evidence);
        let heap = match self.heap_of(&evidence) {
            Ok(heap) => heap,
            Err(end) => return Ok(course.ended(end, None)),
        };
        course.set_heap(heap, &evidence, &room);
        if let Some(end) = course.follow_limit(heap, &room)? {
            return Ok(course.ended(end, None));
        }
        let limit = study_limit(&evidence, heap, self.parameters.step);
        let mut passed = Some(room.configuration.memory.unwrap_or(self.parameters.high));
        if let Some(limit) = limit.filter(|_| self.is_squeezable) {
            match course.study(limit, heap, &room)? {
                Study::Wall(squeezed) => return Ok(course.answer(squeezed)),
                Study::Ended(end) => return Ok(course.ended(end, None)),
                Study::NoWall(limit) => passed = limit.or(passed),
            }
        }
        course.bisect(passed, room_need(&evidence, heap))
    }
}

impl SmallestMemory {
    /// Tries one size after the other, from the largest or below one known to pass.
    pub(in crate::search) fn bisect(&self, seen: &SeenTrials) -> Next<SearchedBase> {
        Course::new(self, seen).bisect(None, None)
    }

    /// As of the JVM that the heap is for. Options of all JVMs give each the same heap, which has to hold
    /// the largest live set.
    fn of_sized_jvm(&self, room: &Evidence) -> Evidence {
        let mut evidence = of_one_instance(room);
        let jvms = room.run.iter().flat_map(|run| &run.jvms);
        let live = jvms.filter_map(|jvm| jvm.heap_after).max();
        let is_for_all = self.base.options_variable.as_deref() == Some(TOOL_OPTIONS);
        if let (true, Some(gc)) = (is_for_all, &mut evidence.gc) {
            gc.heap_after_max = gc.heap_after_max.max(live);
        }
        evidence
    }

    /// With a longer warm-up.
    pub(super) fn begin_again(&self, spent: Duration, seen: &SeenTrials) -> Next<SearchedBase> {
        let Some(longer) = self.with_longer_warm_up() else {
            unreachable!("a start is too early only where a longer warm-up is left");
        };
        let mut searched = longer.next(seen)?;
        searched.spent += spent;
        Ok(searched)
    }

    fn heap_of(&self, room: &Evidence) -> Result<Option<Bytes>, SizeEnd> {
        match (self.heap, live_set(room)) {
            (HeapPolicy::Keep, _) => Ok(None),
            (HeapPolicy::Auto | HeapPolicy::Grow, _) => Ok(choose_heap(room)),
            (HeapPolicy::Fixed(heap), Some(live)) if heap < live => Err(SizeEnd::Refused {
                reason: format!("a heap of {heap} does not hold the live set of {live}"),
                hint: format!(
                    "give it more, as --heap {}, or let loadline choose: --heap auto",
                    choose_heap(room).unwrap_or(live)
                ),
            }),
            (HeapPolicy::Fixed(heap), _) => Ok(Some(heap)),
        }
    }
}

impl<'a> Course<'a> {
    pub(super) fn new(search: &'a SmallestMemory, seen: &'a SeenTrials) -> Self {
        Self {
            search,
            seen,
            base: search.base.clone(),
            trials: Vec::new(),
            spent: Duration::ZERO,
            start_deadline: search.start_deadline,
            beside_heap: None,
        }
    }

    pub(super) fn start(
        &mut self,
        size: Bytes,
        purpose: TrialPurpose,
        repeat: u32,
    ) -> Next<Arc<TrialRecord>> {
        let configuration = at_size(&self.base, self.beside_heap, size);
        let ask = TrialAsk::new(configuration, purpose, repeat, self.start_deadline);
        let record = read_records(self.seen, vec![ask.clone()])?.remove(0);
        self.spent += self.seen.spent(&ask);
        self.take(&record);
        Ok(record)
    }

    fn take(&mut self, record: &Arc<TrialRecord>) {
        if self.trials.is_empty()
            && let Some(ready) = record.evidence.start.ready
        {
            let several = (ready * START_FACTOR).max(START_FLOOR);
            self.start_deadline = several.min(self.start_deadline);
        }
        self.trials.push(Arc::clone(record));
    }

    /// R: the largest size, twice as much where memory may be what lacks. What fails twice for another
    /// reason would fail at every size.
    pub(super) fn room(&mut self) -> Next<Room> {
        let parameters = &self.search.parameters;
        let max = parameters.max.max(parameters.high);
        if let HeapPolicy::Fixed(heap) = self.search.heap
            && heap >= max
        {
            return Ok(Room::Ended(SizeEnd::Refused {
                reason: format!("a heap of {heap} does not fit a limit of {max}"),
                hint: "give a smaller heap, or measure on a machine with more memory".to_owned(),
            }));
        }
        let has_longer = self.search.with_longer_warm_up().is_some();
        let (mut size, mut repeat, mut failed) = (parameters.high.round_up(parameters.step), 1, 0);
        loop {
            let record = self.start(size, TrialPurpose::Room, repeat)?;
            if has_longer && is_too_early(std::slice::from_ref(&record)) {
                return Ok(Room::TooEarly);
            }
            match record.verdict {
                TrialVerdict::Pass => return Ok(Room::Measured(record)),
                TrialVerdict::Invalid(_) if record.evidence.memory.is_some() => {
                    return Ok(Room::Measured(record));
                }
                TrialVerdict::Invalid(_) => {
                    return Ok(Room::Ended(could_not_measure(size, &record)));
                }
                TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => {}
            }
            let is_last = size >= max;
            failed += u32::from(is_last || !may_need_memory(&record));
            if failed > 1 {
                return Ok(Room::Ended(infeasible(size, &record)));
            }
            repeat = if is_last { repeat + 1 } else { 1 };
            size = size.mul_ratio(2, 1).min(max);
        }
    }

    fn set_heap(&mut self, heap: Option<Bytes>, evidence: &Evidence, room: &TrialRecord) {
        self.base = self.search.base.clone();
        if let Some(heap) = heap {
            let mut options = heap_options(heap, evidence, room.configuration.memory);
            if self.search.keeps_direct {
                options.retain(|option| !option.text.contains(DIRECT_MEMORY));
            }
            self.base.jvm_options.extend(options);
        }
    }

    /// One more run with the chosen heap, fully touched: it shows whether a JVM took it, and if one JVM
    /// runs at a time, its memory outside the heap. From then on such a heap is the rest of each size.
    fn follow_limit(&mut self, heap: Option<Bytes>, room: &TrialRecord) -> Next<Option<SizeEnd>> {
        let is_chosen = matches!(self.search.heap, HeapPolicy::Auto | HeapPolicy::Grow);
        let run = room.evidence.run.as_ref();
        let (Some(heap), Some(run)) = (heap.filter(|_| is_chosen), run) else {
            return Ok(None);
        };
        let variable = self.base.options_variable.clone();
        let is_alone = run.jvms_together() <= 1;
        if !is_alone && variable.is_none() {
            return Ok(None);
        }
        let size = room.configuration.memory;
        let size = size.unwrap_or(self.search.parameters.high);
        let pinned = self.start(size, TrialPurpose::Room, 1)?;
        if let Some(variable) = variable
            && let Some(largest) = other_heap(&pinned.evidence, heap)
        {
            return Ok(Some(SizeEnd::Refused {
                reason: format!(
                    "no JVM of the run took the heap of {heap} from {variable}: the largest allowed itself {largest}"
                ),
                hint: "name the variable that its start script reads, or leave --options-to out: its heaps then stay as they are".to_owned(),
            }));
        }
        if is_alone {
            self.beside_heap = need_beside_heap(&pinned.evidence, heap);
        }
        Ok(None)
    }

    fn study(&mut self, limit: Bytes, heap: Option<Bytes>, room: &TrialRecord) -> Next<Study> {
        let most = room.configuration.memory.unwrap_or(limit);
        let (mut limit, mut repeat) = (limit.min(most), 1);
        loop {
            let record = self.start(limit, TrialPurpose::Squeeze, repeat)?;
            let squeeze = record.evidence.squeeze.as_ref();
            let has_wall = MemoryWall::of_start(&record.evidence).is_some();
            // A kill in the squeeze is expected.
            let was_killed = squeeze.is_some_and(|squeeze| squeeze.end == SqueezeEnd::Killed);
            let has_missed = match record.verdict {
                TrialVerdict::Pass | TrialVerdict::Invalid(_) => false,
                TrialVerdict::SloMiss => true,
                TrialVerdict::AppKo(_) => !was_killed && !has_wall,
            };
            if !has_missed && has_wall {
                return Ok(Study::Wall(record));
            }
            if !has_missed {
                let passed = record.verdict == TrialVerdict::Pass;
                return Ok(Study::NoWall(passed.then_some(limit)));
            }
            if repeat > 1 || self.search.has_more_cpu && !lacked_memory(&record) {
                return Ok(Study::Ended(infeasible(limit, &record)));
            }
            repeat += 1;
            limit = more(limit).min(most);
            let own = room.evidence.gc.as_ref().and_then(|gc| gc.heap_max);
            if let (Some(heap), HeapPolicy::Auto | HeapPolicy::Grow) = (heap, self.search.heap) {
                let larger = more(heap).min(own.unwrap_or(Bytes::from_bytes(u64::MAX)));
                let larger = larger.max(heap).round_up(Bytes::from_mib(4));
                let sized = self.search.of_sized_jvm(&room.evidence);
                self.set_heap(Some(larger), &sized, room);
            }
        }
    }

    fn answer(self, squeezed: Arc<TrialRecord>) -> SearchedBase {
        let end = self.found(&squeezed);
        self.ended(end, Some(squeezed))
    }

    fn found(&self, squeezed: &TrialRecord) -> SizeEnd {
        let parameters = &self.search.parameters;
        let evidence = &squeezed.evidence;
        let wall = MemoryWall::of_start(evidence);
        let heap = allowed_heap(squeezed);
        let budget = answer_budget(evidence, heap, parameters.step);
        let (Some(wall), Some(budget)) = (wall, budget) else {
            unreachable!("only a start that found its wall is an answer");
        };
        let followed = follow_limit(&budget, squeezed, self.trials.first());
        let mut size = followed.unwrap_or(budget.limit());
        if has_missed_aged(squeezed) {
            size = size.mul_ratio(AGED_MISS.0, AGED_MISS.1);
        }
        let size = size.max(parameters.low).round_up(parameters.step);
        let max = parameters.max.max(parameters.high);
        if size > max {
            return SizeEnd::Infeasible {
                largest: max,
                reason: format!("the parts of its memory add up to {size}"),
            };
        }
        // Steps of a squeeze are whole pages; people ask for whole MiB.
        let calm = wall.calm.limit.round_up(Bytes::from_mib(1));
        let trials = self.trials.iter();
        let counted = trials.filter(|trial| trial.verdict.is_evidence()).count();
        SizeEnd::Found(MemoryFound {
            size,
            confirmed: calm,
            failed: wall.storm.map_or(Bytes::default(), |storm| storm.limit),
            margin: size.as_bytes() as f64 / calm.as_bytes().max(1) as f64 - 1.0,
            starts: counted as u32,
            invalid: (self.trials.len() - counted) as u32,
        })
    }

    /// Without a way to lower limits: one size after the other, below one known to pass.
    fn bisect(mut self, passed: Option<Bytes>, need: Option<Bytes>) -> Next<SearchedBase> {
        let own = &self.search.parameters;
        let parameters = MemoryParameters {
            high: passed.unwrap_or(own.high),
            high_passed: own.high_passed || passed.is_some(),
            expected: need.map(ExpectedSize::of_a_budget).or(own.expected),
            ..*own
        };
        let base = self.base.clone();
        let mut steps = SizeSteps::new((&base, self.beside_heap), parameters, self.start_deadline);
        let is_room = |trial: &&Arc<TrialRecord>| trial.purpose == TrialPurpose::Room;
        for trial in self.trials.iter().filter(is_room) {
            steps.learn_memory(trial);
        }
        let first = self.trials.len();
        let longer = self.search.with_longer_warm_up();
        while let Some(ask) = steps.wanted_ask() {
            let Some(record) = self.seen.record_for(&ask) else {
                return Err(steps.wanted_trials(ask, self.trials.is_empty(), self.seen));
            };
            self.spent += self.seen.spent(&ask);
            if let Some(end) = ends_search(record) {
                self.take(record);
                return Ok(self.ended(end, None));
            }
            steps.take_outcome(TrialOutcome::from(record.verdict));
            steps.learn_memory(record);
            self.take(record);
            steps.start_deadline = self.start_deadline;
            if longer.is_some() && is_too_early(&self.trials[first..]) {
                return self.search.begin_again(self.spent, self.seen);
            }
        }
        let end = size_end(steps.rules.next(), &self.trials);
        Ok(self.ended(end, None))
    }

    pub(super) fn ended(self, end: SizeEnd, squeezed: Option<Arc<TrialRecord>>) -> SearchedBase {
        SearchedBase {
            base: self.base,
            end,
            trials: self.trials,
            start_deadline: self.start_deadline,
            spent: self.spent,
            squeezed,
            step: self.search.parameters.step,
            heap: self.search.heap,
            beside_heap: self.beside_heap,
            longer: self.search.with_longer_warm_up().map(Box::new),
            of_other_cpus: Vec::new(),
            more_cpu: None,
        }
    }
}

fn more(size: Bytes) -> Bytes {
    size.mul_ratio(MORE_ROOM.0, MORE_ROOM.1)
}

/// The largest heap of a run, if no JVM has this one. Collectors round by whole regions.
fn other_heap(evidence: &Evidence, heap: Bytes) -> Option<Bytes> {
    let jvms = &evidence.run.as_ref()?.jvms;
    let heaps: Option<Vec<Bytes>> = jvms.iter().map(|jvm| jvm.heap_max).collect();
    let heaps = heaps?;
    let near = heap.mul_ratio(9, 10)..=heap.mul_ratio(11, 10).saturating_add(Bytes::from_mib(4));
    let has_it = heaps.iter().any(|own| near.contains(own));
    heaps.into_iter().max().filter(|_| !has_it)
}

fn of_one_instance(evidence: &Evidence) -> Evidence {
    let live = |instance: &&InstanceEvidence| instance.gc.as_ref().and_then(|gc| gc.heap_after_max);
    let Some(most) = evidence.instances.iter().max_by_key(live) else {
        return evidence.clone();
    };
    Evidence {
        gc: most.gc.clone(),
        memory: None,
        ..evidence.clone()
    }
}

/// The limit where the user's own options let the heap follow it, and it would outgrow the squeezed
/// start's: need = rest / (1 − share).
fn follow_limit(
    budget: &Budget,
    squeezed: &TrialRecord,
    room: Option<&Arc<TrialRecord>>,
) -> Option<Bytes> {
    if named_heap(&squeezed.configuration).is_some() {
        return None;
    }
    let (own, other) = (allowed_heap(squeezed)?, allowed_heap(room?)?);
    let limit = squeezed.configuration.memory?;
    let share = own.as_bytes() as f64 / limit.as_bytes() as f64;
    let rest = budget.total_need().saturating_sub(own).as_bytes() as f64;
    let is_larger = own != other && budget.limit() > limit;
    (is_larger && share < 1.0).then(|| Bytes::from_bytes((rest / (1.0 - share)) as u64))
}

/// Whether the load behind the squeeze, at the answer less its growth, was not carried.
fn has_missed_aged(squeezed: &TrialRecord) -> bool {
    let evidence = &squeezed.evidence;
    let again: Vec<_> = evidence.load_in(TrialPhase::Again).cloned().collect();
    if again.is_empty() {
        return false;
    }
    let mut alone = Evidence {
        load: again,
        squeeze: None,
        phases: Vec::new(),
        noise: Default::default(),
        seconds: Vec::new(),
        ..evidence.clone()
    };
    for load in &mut alone.load {
        load.phase = TrialPhase::Measure;
    }
    let (configuration, slo) = (&squeezed.configuration, &squeezed.slo);
    let judged = judge_trial(configuration, slo, &alone, &VerdictThresholds::default());
    judged.verdict.is_evidence() && judged.verdict != TrialVerdict::Pass
}

/// What no quieter moment cures would come back at every size.
pub(super) fn ends_search(record: &TrialRecord) -> Option<SizeEnd> {
    let TrialVerdict::Invalid(reason) = record.verdict else {
        return None;
    };
    let size = record.configuration.memory?;
    (!reason.is_passed_over()).then(|| could_not_measure(size, record))
}

fn could_not_measure(size: Bytes, record: &TrialRecord) -> SizeEnd {
    SizeEnd::CouldNotMeasure {
        size,
        reason: format!("{}: {}", record.verdict, record.reason),
    }
}

fn infeasible(largest: Bytes, record: &TrialRecord) -> SizeEnd {
    SizeEnd::Infeasible {
        largest,
        reason: format!("{}: {}", record.verdict, why_infeasible(record)),
    }
}
