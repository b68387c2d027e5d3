//! `size`: the smallest memory for each combination of the other factors, proven.
//!
//! Owns which trials run and why. The first trial of a search runs at the largest size (R): its memory
//! says which heap ships, its start how long later starts may take, because a size at which the start
//! takes several times as long thrashes and is no answer. The second (A) is squeezed: its wall is the
//! answer's ([`study`]). Where no limit can be lowered the rules are [`min_memory`](super::min_memory)'s.
//! A search for a warm JVM begins again with a longer warm-up as soon as its starts show that they were
//! judged too early: no decision rests on starts of two warm-ups.

mod climb;
pub mod cpu;
mod study;
mod warmer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use super::ahead::{self, SearchMachine};
use super::expected::expected_limit;
use super::min_memory::{MemoryFound, MemoryParameters, MemoryStep, MinMemory};
use super::{
    Next, SeenTrials, TrialAsk, TrialOutcome, TrialSearch, WantedTrials, all_answers, both_answers,
    read_records,
};
use crate::budget::{HeapPolicy, resize_heap, without_pretouch};
use crate::price;
use crate::proof::{ProofCount, ProofStanding, judge_starts};
use crate::record::{Configuration, TrialPurpose, TrialRecord, TrialVerdict};
use climb::{Climb, ProvedBase, conclude_climb};
use cpu::{CpuPolicy, CpuRange};

const START_FACTOR: u32 = 4;
const START_FLOOR: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct SizeSearch {
    pub bases: Vec<SmallestMemory>,
    pub prove: u32,
    pub is_counted: bool,
}

impl SizeSearch {
    pub fn raise_to(&mut self, size: Bytes) {
        for base in &mut self.bases {
            base.parameters.low = base.parameters.low.max(size);
        }
    }

    /// The same search where CPU limits are chosen too.
    pub fn search_cpus(&mut self, cpus: u32, policy: CpuPolicy) {
        for base in &mut self.bases {
            base.cpus = CpuRange::all_of_machine(cpus, policy, base.base.cpu);
        }
    }
}

/// A level with an answer and a proof: a JDK, an application, a CPU limit. Other levels are merely
/// alternatives in the search for the cheapest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizedLevel {
    /// The JDK's name; `None` where one is asked about.
    pub jdk: Option<String>,
    /// The application's label; `None` with only one application.
    pub application: Option<String>,
    /// The CPU limit; `None` where one is asked about.
    pub cpu: Option<Cpus>,
}

#[derive(Debug, Clone)]
pub struct SizeAnswer {
    pub searched: Vec<SearchedBase>,
    /// The cheapest; `None` where no base has an answer.
    pub best: Option<BestSize>,
    /// The cheapest of each level that gets its own answer, in the order of the bases.
    pub by_level: Vec<OfLevel>,
}

#[derive(Debug, Clone)]
pub struct OfLevel {
    pub level: SizedLevel,
    pub best: Result<BestSize, SizeEnd>,
}

#[derive(Debug, Clone)]
pub struct BestSize {
    pub configuration: Configuration,
    pub answer: MemoryFound,
    /// Trials of its search, of the next smaller size and of the proofs at every size tested.
    pub trials: Vec<Arc<TrialRecord>>,
    pub others: Vec<Arc<TrialRecord>>,
    is_proven: bool,
}

impl TrialSearch for SizeSearch {
    type Answer = SizeAnswer;

    fn next(&self, seen: &SeenTrials) -> Next<SizeAnswer> {
        let searched = all_answers(self.bases.iter().map(|search| search.next(seen)))?;
        let lots = self.lots();
        let proofs = lots.iter();
        let proofs = proofs.map(|lot| self.prove_cheapest(lot, &searched, seen));
        let proved = all_answers(proofs)?;
        if let Some(again) = self.with_other_bases(&proved, &searched) {
            return again.next(seen);
        }
        let answer = |proved: Option<ProvedBase>| {
            let best = proved.map(|proved| self.best_answer(proved, &searched, seen));
            best.transpose()
        };
        let answers = all_answers(proved.into_iter().map(answer))?;
        let cost = |best: &&BestSize| {
            let size = best.answer.size;
            (!best.is_proven, base_weight(&best.configuration, size))
        };
        let best = answers.iter().flatten().min_by(|a, b| {
            let (a, b) = (cost(a), cost(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let best = best.cloned();
        let by_level = self.by_level(&lots, &searched, answers);
        Ok(SizeAnswer {
            searched,
            best,
            by_level,
        })
    }
}

impl SizeSearch {
    /// Groups of bases that share one answer: all bases, or those of each level.
    fn lots(&self) -> Vec<Vec<usize>> {
        let mut lots: Vec<Vec<usize>> = Vec::new();
        for (index, search) in self.bases.iter().enumerate() {
            let is_own = |lot: &&mut Vec<usize>| self.bases[lot[0]].level == search.level;
            match lots.iter_mut().find(is_own) {
                Some(lot) => lot.push(index),
                None => lots.push(vec![index]),
            }
        }
        lots
    }

    /// The same searches with longer warm-ups where the starts turned out to be judged too early, and
    /// with more CPU where they missed for lack of it; `None` where neither was.
    fn with_other_bases(
        &self,
        proved: &[Option<ProvedBase>],
        searched: &[SearchedBase],
    ) -> Option<Self> {
        let mut bases = self.bases.clone();
        let mut is_any = false;
        for proved in proved.iter().flatten() {
            let own = &searched[proved.base];
            let other = match (proved.is_cold, proved.lacks_cpu) {
                (true, _) => own.longer.as_deref(),
                (false, true) => own.more_cpu.as_deref(),
                (false, false) => None,
            };
            if let Some(other) = other {
                bases[proved.base] = other.clone();
                is_any = true;
            }
        }
        is_any.then_some(Self { bases, ..*self })
    }

    fn best_answer(
        &self,
        proved: ProvedBase,
        searched: &[SearchedBase],
        seen: &SeenTrials,
    ) -> Next<BestSize> {
        let own = &searched[proved.base];
        let mut trials = own.trials.clone();
        add_neighbour(&mut trials, own.next_smaller(&proved.answer, seen)?);
        trials.extend(proved.trials);
        let others = searched.iter().enumerate();
        let others = others.filter(|(i, _)| *i != proved.base);
        let others = others.flat_map(|(_, s)| s.trials.clone());
        Ok(BestSize {
            configuration: own.ships(proved.answer.size),
            answer: proved.answer,
            trials,
            others: own.of_other_cpus.iter().cloned().chain(others).collect(),
            is_proven: proved.is_proven,
        })
    }

    fn by_level(
        &self,
        lots: &[Vec<usize>],
        searched: &[SearchedBase],
        answers: Vec<Option<BestSize>>,
    ) -> Vec<OfLevel> {
        let own = |(lot, best): (&Vec<usize>, Option<BestSize>)| {
            let first = lot[0];
            Some(OfLevel {
                level: self.bases[first].level.clone()?,
                best: best.ok_or_else(|| searched[first].end.clone()),
            })
        };
        lots.iter().zip(answers).filter_map(own).collect()
    }

    /// Tests the cheapest size of a group until a size is proven: a refuted size moves up, and may
    /// then no longer be the cheapest. If none is proven, returns the first cheapest.
    fn prove_cheapest(
        &self,
        lot: &[usize],
        searched: &[SearchedBase],
        seen: &SeenTrials,
    ) -> Next<Option<ProvedBase>> {
        let climbs = self.bases.iter().zip(searched);
        let climbs = climbs.map(|(search, of)| Climb::from_search(search, of, self));
        let mut climbs: Vec<Option<Climb>> = climbs.collect();
        let cheapest = |climbs: &[Option<Climb>], bases: &[usize]| {
            let cost = |base: &usize| {
                let size = climbs[*base].as_ref()?.ascent.current_size();
                Some((*base, base_weight(&searched[*base].base, size)))
            };
            let costs = bases.iter().filter_map(cost);
            let least = costs.min_by(|a, b| a.1.total_cmp(&b.1));
            least.map(|(base, _)| base)
        };
        let mut left = lot.to_vec();
        let first = cheapest(&climbs, &left);
        while let Some(base) = cheapest(&climbs, &left) {
            let Some(climb) = &mut climbs[base] else {
                break;
            };
            let below = searched[base].next_smaller(&climb.found, seen);
            both_answers(climb.test_size(&searched[base], seen), below)?;
            if climb.is_cold {
                return Ok(conclude_climb(base, climbs));
            }
            match climb.standing() {
                ProofStanding::Refuted => left.retain(|other| *other != base),
                ProofStanding::More(_) => {}
                ProofStanding::Proven | ProofStanding::NotMeasured => {
                    return Ok(conclude_climb(base, climbs));
                }
            }
        }
        Ok(first.and_then(|base| conclude_climb(base, climbs)))
    }
}

#[derive(Debug, Clone)]
pub struct SmallestMemory {
    pub base: Configuration,
    pub level: Option<SizedLevel>,
    /// What to search and how carefully. The runner repeats what could not be measured, the search
    /// does not: `retries` is 0.
    pub parameters: MemoryParameters,
    pub start_deadline: Duration,
    pub warm_up: Option<Duration>,
    pub heap: HeapPolicy,
    /// Whether the user bounds direct memory; the answer then adds no bound.
    pub keeps_direct: bool,
    /// Whether the host can lower the limit of a running trial; a host that cannot records it.
    pub is_squeezable: bool,
    /// The CPU limits or requests to choose from, one range after the other.
    pub cpus: Vec<CpuRange>,
    /// Whether a miss with memory to spare ends it, because more CPU can be tried.
    pub has_more_cpu: bool,
}

#[derive(Debug, Clone)]
pub struct SearchedBase {
    pub base: Configuration,
    pub end: SizeEnd,
    pub trials: Vec<Arc<TrialRecord>>,
    /// Longest start that counts as one, from the start with room in it: the same holds for its
    /// proof.
    pub start_deadline: Duration,
    pub spent: Duration,
    /// The start that found the memory wall; `None` where sizes were tried one by one.
    pub squeezed: Option<Arc<TrialRecord>>,
    step: Bytes,
    heap: HeapPolicy,
    /// A run's memory outside its heap; the rest of each size is heap. `None` keeps the base's
    /// heap.
    beside_heap: Option<Bytes>,
    /// The same search with a longer warm-up, for fresh starts that turn out to be judged too early.
    longer: Option<Box<SmallestMemory>>,
    /// Where the CPU limit was searched too: the trials at other limits.
    of_other_cpus: Vec<Arc<TrialRecord>>,
    /// The same search with at least the next CPU limit, for fresh starts that miss with memory to spare.
    more_cpu: Option<Box<SmallestMemory>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SizeEnd {
    Found(MemoryFound),
    Infeasible { largest: Bytes, reason: String },
    CouldNotMeasure { size: Bytes, reason: String },
    Refused { reason: String, hint: String },
}

impl SizeEnd {
    pub fn why_none(&self) -> String {
        match self {
            Self::Found(_) => String::new(),
            Self::Infeasible { largest, reason } => format!("{largest} fails too: {reason}"),
            Self::CouldNotMeasure { size, reason } => {
                format!("{size} could not be measured: {reason}")
            }
            Self::Refused { reason, .. } => reason.clone(),
        }
    }
}

#[derive(Debug, Clone)]
struct SizeSteps<'a> {
    base: &'a Configuration,
    beside_heap: Option<Bytes>,
    rules: MinMemory,
    repeats: BTreeMap<(u64, bool), u32>,
    start_deadline: Duration,
}

impl<'a> SizeSteps<'a> {
    fn new(
        (base, beside_heap): (&'a Configuration, Option<Bytes>),
        parameters: MemoryParameters,
        start_deadline: Duration,
    ) -> Self {
        Self {
            base,
            beside_heap,
            rules: MinMemory::new(parameters),
            repeats: BTreeMap::new(),
            start_deadline,
        }
    }

    fn learn_memory(&mut self, record: &TrialRecord) {
        if record.verdict == TrialVerdict::Pass
            && let Some(expected) = expected_limit(&record.evidence)
        {
            self.rules.expect_size(expected);
        }
    }

    fn wanted_trials(&self, ask: TrialAsk, is_first: bool, seen: &SeenTrials) -> WantedTrials {
        let more = match ask.purpose {
            // Every confirmation is needed if this one passes, and most do.
            TrialPurpose::Confirm => self.rules.confirmations_left(),
            _ => 1,
        };
        let mut open = WantedTrials::missing(ask.repeats(more), seen);
        // How long other starts may take is not known before the first.
        if !is_first {
            open.guesses = ahead::guesses(self, seen, &open.wanted);
        }
        open
    }
}

impl SearchMachine for SizeSteps<'_> {
    fn wanted_ask(&self) -> Option<TrialAsk> {
        let MemoryStep::Try(size, purpose) = self.rules.next() else {
            return None;
        };
        let key = (size.as_bytes(), purpose == TrialPurpose::Confirm);
        let repeat = self.repeats.get(&key).copied().unwrap_or(0) + 1;
        let configuration = at_size(self.base, self.beside_heap, size);
        let deadline = self.start_deadline;
        Some(TrialAsk::new(configuration, purpose, repeat, deadline))
    }

    fn take_outcome(&mut self, outcome: TrialOutcome) {
        let MemoryStep::Try(size, purpose) = self.rules.next() else {
            return;
        };
        let key = (size.as_bytes(), purpose == TrialPurpose::Confirm);
        *self.repeats.entry(key).or_default() += 1;
        let taken = self.rules.record_trial(size, outcome);
        debug_assert!(taken.is_ok(), "it takes the outcome it asked for");
    }

    fn pass_chance(&self) -> f64 {
        match self.rules.next() {
            MemoryStep::Try(_, TrialPurpose::Confirm) => 0.9,
            _ => 0.5,
        }
    }
}

impl SearchedBase {
    pub(super) fn at_size(&self, size: Bytes) -> Configuration {
        at_size(&self.base, self.beside_heap, size)
    }

    pub(super) fn ships(&self, size: Bytes) -> Configuration {
        let configuration = self.at_size(size);
        match self.heap {
            HeapPolicy::Grow => without_pretouch(configuration),
            HeapPolicy::Auto | HeapPolicy::Keep | HeapPolicy::Fixed(_) => configuration,
        }
    }

    /// The next smaller size and how it fails: a failed trial of the search just below the
    /// confirmed size, or a new trial if none ran. A squeeze has shown it already.
    pub(super) fn next_smaller(
        &self,
        answer: &MemoryFound,
        seen: &SeenTrials,
    ) -> Next<Option<Arc<TrialRecord>>> {
        if self.squeezed.is_some() {
            return Ok(None);
        }
        let broke =
            |t: &&Arc<TrialRecord>| t.verdict.is_evidence() && t.verdict != TrialVerdict::Pass;
        let below = self.trials.iter().filter(broke);
        let below = below.filter(|t| t.configuration.memory < Some(answer.confirmed));
        if let Some(record) = below.max_by_key(|t| t.configuration.memory) {
            return Ok(Some(Arc::clone(record)));
        }
        let size = answer.confirmed.saturating_sub(self.step);
        if size < self.step {
            return Ok(None);
        }
        let (purpose, deadline) = (TrialPurpose::Neighbour, self.start_deadline);
        let ask = TrialAsk::new(self.at_size(size), purpose, 1, deadline);
        let run = read_records(seen, vec![ask])?;
        Ok(run.into_iter().find(|record| broke(&record)))
    }
}

pub(super) fn add_neighbour(trials: &mut Vec<Arc<TrialRecord>>, below: Option<Arc<TrialRecord>>) {
    if let Some(below) = below.filter(|b| trials.iter().all(|t| t.id != b.id)) {
        trials.push(below);
    }
}

/// Fresh starts at one size until they prove or refute it ([`judge_starts`]); `wanted` prove it if none
/// misses; with the length of all their attempts. Each may take as long as those of the search that
/// found it.
pub(super) fn prove_size(
    configuration: &Configuration,
    wanted: u32,
    start_deadline: Duration,
    seen: &SeenTrials,
) -> Next<(Vec<Arc<TrialRecord>>, Duration)> {
    let start = |repeat| proof_ask(configuration, repeat, start_deadline);
    let (mut starts, mut spent) = (Vec::new(), Duration::ZERO);
    let count =
        |starts: &[Arc<TrialRecord>]| ProofCount::from_verdicts(starts.iter().map(|t| t.verdict));
    while let ProofStanding::More(more) = judge_starts(wanted, count(&starts), false) {
        let ask = start(starts.len() as u32 + 1);
        let Some(record) = seen.record_for(&ask) else {
            return Err(WantedTrials::missing(ask.repeats(more), seen));
        };
        spent += seen.spent(&ask);
        starts.push(Arc::clone(record));
    }
    Ok((starts, spent))
}

pub(super) fn proof_ask(
    configuration: &Configuration,
    repeat: u32,
    start_deadline: Duration,
) -> TrialAsk {
    let purpose = TrialPurpose::Prove;
    TrialAsk::new(configuration.clone(), purpose, repeat, start_deadline)
}

/// Configurations with incomparable smallest sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IncomparableBases {
    #[error("the rate varies, and sizes at different rates do not compare")]
    Rates,
    #[error("some configurations have a CPU limit and some have none: their sizes do not compare")]
    Limits,
}

pub fn check_comparable(bases: &[Configuration]) -> Result<(), IncomparableBases> {
    let differ = |of: fn(&Configuration, &Configuration) -> bool| {
        bases.windows(2).any(|pair| of(&pair[0], &pair[1]))
    };
    if differ(|a, b| a.rate != b.rate) {
        return Err(IncomparableBases::Rates);
    }
    if differ(|a, b| a.cpu.is_some() != b.cpu.is_some()) {
        return Err(IncomparableBases::Limits);
    }
    Ok(())
}

pub fn at_size(base: &Configuration, beside_heap: Option<Bytes>, size: Bytes) -> Configuration {
    Configuration {
        memory: Some(size),
        label: labelled(&base.label, &size.to_string()),
        jvm_options: match beside_heap {
            Some(beside) => resize_heap(&base.jvm_options, size.saturating_sub(beside)),
            None => base.jvm_options.clone(),
        },
        ..base.clone()
    }
}

/// A configuration's label with a word behind it; the one of the command as given is left out.
pub(super) fn labelled(label: &str, word: &str) -> String {
    match label {
        "" | "as given" => word.to_owned(),
        label => format!("{label} {word}"),
    }
}

fn base_weight(base: &Configuration, size: Bytes) -> f64 {
    let cpus = base.sure_cpu().map_or(0.0, |cpu| cpu.as_f64());
    f64::from(base.instances) * price::size_weight(cpus, size)
}

fn size_end(step: MemoryStep, trials: &[Arc<TrialRecord>]) -> SizeEnd {
    let last = trials.last();
    let reason = last.map(|t| format!("{}: {}", t.verdict, t.reason));
    let reason = reason.unwrap_or_default();
    match step {
        MemoryStep::Done(answer) => SizeEnd::Found(answer),
        MemoryStep::Infeasible { largest } => SizeEnd::Infeasible { largest, reason },
        MemoryStep::CouldNotMeasure { size, .. } | MemoryStep::Try(size, _) => {
            SizeEnd::CouldNotMeasure { size, reason }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_does_not_compare_is_refused() {
        let of = |change: fn(&mut Configuration)| {
            let mut other = fixture::configuration(256);
            change(&mut other);
            check_comparable(&[fixture::configuration(256), other])
        };
        assert_eq!(of(|c| c.rate = Some(10.0)), Err(IncomparableBases::Rates));
        assert_eq!(of(|c| c.cpu = None), Err(IncomparableBases::Limits));
        assert_eq!(of(|c| c.cpu = Some(Cpus::from_whole(2))), Ok(()));
    }

    #[test]
    fn four_instances_cost_four_times_one() {
        let one = fixture::configuration(256);
        let four = Configuration {
            instances: 4,
            ..one.clone()
        };
        let cost_of_four = base_weight(&four, Bytes::from_mib(160));
        assert!(cost_of_four > base_weight(&one, Bytes::from_mib(256)));
        assert!(base_weight(&one, Bytes::from_mib(256)) > base_weight(&one, Bytes::from_mib(160)));
        assert_eq!(cost_of_four, 4.0 * base_weight(&one, Bytes::from_mib(160)));
    }

    /// Answers asks up to a size; returns the asks and guesses that follow.
    fn after(sizes_that_pass: &[(u64, bool)]) -> (Vec<String>, Vec<String>) {
        let mib = Bytes::from_mib;
        let search = SmallestMemory {
            base: Configuration {
                label: String::new(),
                memory: None,
                ..fixture::configuration(1)
            },
            level: None,
            parameters: MemoryParameters {
                retries: 0,
                ..MemoryParameters::new(mib(64), mib(1024))
            },
            start_deadline: Duration::from_secs(60),
            warm_up: None,
            heap: HeapPolicy::Auto,
            keeps_direct: false,
            is_squeezable: true,
            cpus: Vec::new(),
            has_more_cpu: false,
        };
        let mut seen = SeenTrials::default();
        for (size, passes) in sizes_that_pass {
            let Err(open) = search.next(&seen) else { break };
            let ask = open.wanted[0].clone();
            assert_eq!(ask.configuration.memory, Some(mib(*size)));
            let verdict = if *passes {
                TrialVerdict::Pass
            } else {
                TrialVerdict::SloMiss
            };
            let record = fixture::trial_record("t", ask.purpose, *size, verdict);
            seen.add_record(&ask, record, Duration::ZERO);
        }
        let open = search.next(&seen).expect_err("it is open");
        let text = |a: TrialAsk| format!("{} #{}", a.configuration.label, a.repeat);
        (
            open.wanted.into_iter().map(text).collect(),
            open.guesses.into_iter().map(text).collect(),
        )
    }

    #[test]
    fn it_asks_for_what_decides_and_guesses_both_sides_of_it() {
        let (wanted, guesses) = after(&[]);
        assert_eq!(wanted, ["1Gi #1"]);
        assert!(
            guesses.is_empty(),
            "the deadline of a start is not known yet"
        );
        let (wanted, guesses) = after(&[(1024, true)]);
        assert_eq!(wanted, ["256Mi #1"]);
        assert_eq!(guesses, ["128Mi #1", "512Mi #1", "92Mi #1", "184Mi #1"]);
    }

    #[test]
    fn confirmations_are_asked_for_at_once() {
        let bisection = [
            (1024, true),
            (256, true),
            (128, false),
            (184, false),
            (220, false),
            (240, false),
            (248, false),
        ];
        let (wanted, guesses) = after(&bisection);
        assert_eq!(wanted, ["256Mi #1", "256Mi #2"]);
        assert!(guesses.is_empty(), "{guesses:?}");
    }

    #[test]
    fn the_next_smaller_size_is_the_largest_below_that_failed() {
        let mib = Bytes::from_mib;
        let answer = MemoryFound {
            size: mib(288),
            confirmed: mib(256),
            failed: mib(248),
            margin: 0.125,
            starts: 5,
            invalid: 0,
        };
        let miss = |id: &str, size| {
            let record =
                fixture::trial_record(id, TrialPurpose::Search, size, TrialVerdict::SloMiss);
            Arc::new(record)
        };
        let searched = SearchedBase {
            base: fixture::configuration(1),
            end: SizeEnd::Found(answer),
            trials: vec![miss("far", 128), miss("near", 248), miss("itself", 256)],
            start_deadline: Duration::from_secs(60),
            spent: Duration::ZERO,
            squeezed: None,
            step: mib(4),
            heap: HeapPolicy::Keep,
            beside_heap: None,
            longer: None,
            of_other_cpus: Vec::new(),
            more_cpu: None,
        };
        let below = searched.next_smaller(&answer, &SeenTrials::default());
        let id = below.map(|below| below.map(|trial| trial.id.clone()));
        assert_eq!(id.ok().flatten().as_deref(), Some("near"));
    }
}
