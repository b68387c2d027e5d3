//! `size`: the smallest memory for each combination of the other factors, proven.
//!
//! Owns which trials run and why; the rules are [`min_memory`](super::min_memory)'s. The first
//! trial of a search runs at the largest size; its start sets how long later starts may take,
//! because a size at which the start takes several times as long thrashes and is no answer. A search
//! for a warm JVM begins again with a longer warm-up as soon as its starts show that they were judged
//! too early: no decision rests on starts of two warm-ups.

mod climb;
mod warmer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use super::ahead::{self, Machine};
use super::expected::{Expected, expected};
use super::min_memory::{MemoryFound, MinMemory, Parameters, Step};
use super::{Ask, Next, Open, Outcome, Search, Seen, all, both, each};
use crate::price;
use crate::proof::{Count, Standing, standing};
use crate::record::{Configuration, Purpose, TrialRecord, Verdict};
use climb::{Climb, Proved, proved};
use warmer::is_too_early;

/// A start may take this many times the start with room.
const START_FACTOR: u32 = 4;

/// A start may always take this long: short starts vary more than their length says.
const START_FLOOR: Duration = Duration::from_secs(5);

/// The smallest memory of each base, the cheapest of them that can be proven.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// A search for each combination of the factors but memory.
    pub bases: Vec<Smallest>,
    /// Fresh starts that prove a size when none misses.
    pub prove: u32,
}

/// A level that is a question of its own, with a size that is proven, and not one more way to the
/// cheapest: a JDK, an application, a CPU limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// The JDK's name; `None` where one is asked about.
    pub jdk: Option<String>,
    /// The application's label; `None` where there is one.
    pub application: Option<String>,
    /// The CPU limit; `None` where one is asked about.
    pub cpu: Option<Cpus>,
}

/// What [`Sizes`] comes to.
#[derive(Debug, Clone)]
pub struct Sized {
    /// Every base's search.
    pub searched: Vec<Searched>,
    /// The cheapest; `None` where no base has an answer.
    pub best: Option<Best>,
    /// The cheapest of each level that is a question of its own, in the order of the bases.
    pub by_level: Vec<OfLevel>,
}

/// What one level comes to.
#[derive(Debug, Clone)]
pub struct OfLevel {
    /// Which one.
    pub level: Level,
    /// Its cheapest size; how its search ended where none of its bases has an answer.
    pub best: Result<Best, End>,
}

/// The cheapest size and its grounds.
#[derive(Debug, Clone)]
pub struct Best {
    /// The configuration at its size.
    pub configuration: Configuration,
    /// How it was found.
    pub answer: MemoryFound,
    /// Trials of its search, of the next smaller size and of the proofs at every size tested.
    pub trials: Vec<Arc<TrialRecord>>,
    /// Trials of the other bases.
    pub others: Vec<Arc<TrialRecord>>,
    is_proven: bool,
}

impl Search for Sizes {
    type Answer = Sized;

    fn next(&self, seen: &Seen) -> Next<Sized> {
        let searched = self.search(seen)?;
        let lots = self.lots();
        let proved = all(lots.iter().map(|lot| self.prove(lot, &searched, seen)))?;
        if let Some(warmer) = self.warmer(&proved, &searched) {
            return warmer.next(seen);
        }
        let answer = |proved: Option<Proved>| {
            let best = proved.map(|proved| self.answer(proved, &searched, seen));
            best.transpose()
        };
        let answers = all(proved.into_iter().map(answer))?;
        let cost = |best: &&Best| {
            let size = best.answer.size;
            (!best.is_proven, cost(&best.configuration, size))
        };
        let best = answers.iter().flatten().min_by(|a, b| {
            let (a, b) = (cost(a), cost(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let best = best.cloned();
        let by_level = self.by_level(&lots, &searched, answers);
        Ok(Sized {
            searched,
            best,
            by_level,
        })
    }
}

impl Sizes {
    /// Bases that are ways to one answer: all of them, or those of each level that is a question.
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

    /// Every base's search. What was found with one JDK tells where to begin with the next: half as
    /// much again, and that is then what a start with room is. Of another application it tells nothing.
    fn search(&self, seen: &Seen) -> Next<Vec<Searched>> {
        let is_first = |s: &&Smallest| s.level.is_none() || s.base.jdk == self.bases[0].base.jdk;
        let first = self.bases.iter().filter(is_first);
        let first = all(first.map(|search| search.next(seen)))?;
        let from = |search: &Smallest| first.iter().find(|f| differ_in_jdk(&f.base, &search.base));
        let next = |search: &Smallest| match first.iter().find(|f| f.base == search.base) {
            Some(searched) => Ok(searched.clone()),
            None => search.begun_at(from(search)).next(seen),
        };
        all(self.bases.iter().map(next))
    }

    /// The same searches with longer warm-ups, where what was found turned out to be judged too early;
    /// `None` where nothing was.
    fn warmer(&self, proved: &[Option<Proved>], searched: &[Searched]) -> Option<Self> {
        let mut bases = self.bases.clone();
        let mut is_any = false;
        for proved in proved.iter().flatten().filter(|p| p.is_cold) {
            if let Some(longer) = &searched[proved.base].longer {
                bases[proved.base] = Smallest::clone(longer);
                is_any = true;
            }
        }
        is_any.then_some(Self { bases, ..*self })
    }

    /// What was proven with its grounds.
    fn answer(&self, proved: Proved, searched: &[Searched], seen: &Seen) -> Next<Best> {
        let own = &searched[proved.base];
        let mut trials = own.trials.clone();
        add_neighbour(&mut trials, own.next_smaller(&proved.answer, seen)?);
        trials.extend(proved.trials);
        let others = searched.iter().enumerate();
        let others = others.filter(|(i, _)| *i != proved.base);
        Ok(Best {
            configuration: at(&own.base, proved.answer.size),
            answer: proved.answer,
            trials,
            others: others.flat_map(|(_, s)| s.trials.clone()).collect(),
            is_proven: proved.is_proven,
        })
    }
}

fn differ_in_jdk(a: &Configuration, b: &Configuration) -> bool {
    let rest = |c: &Configuration| Configuration {
        jdk: None,
        label: String::new(),
        ..c.clone()
    };
    rest(a) == rest(b)
}

impl Sizes {
    fn by_level(
        &self,
        lots: &[Vec<usize>],
        searched: &[Searched],
        answers: Vec<Option<Best>>,
    ) -> Vec<OfLevel> {
        let own = |(lot, best): (&Vec<usize>, Option<Best>)| {
            let first = lot[0];
            Some(OfLevel {
                level: self.bases[first].level.clone()?,
                best: best.ok_or_else(|| searched[first].end.clone()),
            })
        };
        lots.iter().zip(answers).filter_map(own).collect()
    }

    /// Tests the cheapest size of a lot until one is proven: one that is refuted moves up, and may then
    /// no longer be the cheapest. Where none is proven, the one that was cheapest at first.
    fn prove(&self, lot: &[usize], searched: &[Searched], seen: &Seen) -> Next<Option<Proved>> {
        let climbs = self.bases.iter().zip(searched);
        let mut climbs: Vec<Option<Climb>> = climbs
            .map(|(search, of)| Climb::of(search, of, self.prove))
            .collect();
        let cost_of = |climbs: &[Option<Climb>], base: usize| {
            let size = climbs[base].as_ref().map(|c| c.ascent.size());
            size.map(|size| cost(&searched[base].base, size))
        };
        let cheapest = |climbs: &[Option<Climb>], bases: &[usize]| {
            let costs = bases
                .iter()
                .filter_map(|b| Some((*b, cost_of(climbs, *b)?)));
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
            both(climb.test(&searched[base], seen), below)?;
            if climb.is_cold {
                return Ok(proved(base, climbs));
            }
            match climb.ascent.standing() {
                Standing::Refuted => left.retain(|other| *other != base),
                Standing::More(_) => {}
                Standing::Proven | Standing::NotMeasured => return Ok(proved(base, climbs)),
            }
        }
        Ok(first.and_then(|base| proved(base, climbs)))
    }
}

/// The smallest memory of one configuration, whose own memory limit is ignored.
#[derive(Debug, Clone)]
pub struct Smallest {
    /// The configuration without a memory limit of its own.
    pub base: Configuration,
    /// Where its level is a question of its own.
    pub level: Option<Level>,
    /// What to search and how carefully. The runner repeats what could not be measured, the search
    /// does not: `retries` is 0.
    pub parameters: Parameters,
    /// How long the first start may take.
    pub start_deadline: Duration,
    /// Where the answer is for a JVM that is warm: the warm-up to begin with. `None` judges starts as
    /// they come.
    pub warm_up: Option<Duration>,
}

/// The search over one combination of the other factors.
#[derive(Debug, Clone)]
pub struct Searched {
    /// The configuration without a memory limit of its own.
    pub base: Configuration,
    /// How it ended.
    pub end: End,
    /// Every trial that counted, in order.
    pub trials: Vec<Arc<TrialRecord>>,
    /// Longest start that counts as one, from the start with room in it: the same holds for its
    /// proof.
    pub start_deadline: Duration,
    /// Length of its trials with all their attempts, those with a shorter warm-up too.
    pub spent: Duration,
    step: Bytes,
    /// The same search with a longer warm-up, for fresh starts that turn out to be judged too early.
    longer: Option<Box<Smallest>>,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It found the smallest size.
    Found(MemoryFound),
    /// Not even the largest size passes.
    Infeasible {
        /// The largest size.
        largest: Bytes,
        /// What it broke.
        reason: String,
    },
    /// A size could not be measured.
    CouldNotMeasure {
        /// The size.
        size: Bytes,
        /// Why.
        reason: String,
    },
}

impl End {
    /// Why there is no size; empty where there is one.
    pub fn why_none(&self) -> String {
        match self {
            Self::Found(_) => String::new(),
            Self::Infeasible { largest, reason } => format!("{largest} fails too: {reason}"),
            Self::CouldNotMeasure { size, reason } => {
                format!("{size} could not be measured: {reason}")
            }
        }
    }
}

impl Smallest {
    /// The same search, begun where another one ended: at its answer and half as much, and then
    /// where that one's smallest lay.
    fn begun_at(&self, other: Option<&Searched>) -> Self {
        let mut search = self.clone();
        if let Some(End::Found(found)) = other.map(|o| &o.end) {
            let more = found.size.mul_ratio(3, 2).round_up(self.parameters.step);
            search.parameters.high = more.min(self.parameters.high);
            search.parameters.expected = Some(Expected::of_a_search(found.confirmed));
        }
        search
    }
}

impl Search for Smallest {
    type Answer = Searched;

    fn next(&self, seen: &Seen) -> Next<Searched> {
        let mut steps = Steps::new(self);
        let (mut trials, mut spent) = (Vec::new(), Duration::ZERO);
        let longer = self.longer();
        while let Some(ask) = steps.wants() {
            let Some(record) = seen.get(&ask) else {
                return Err(steps.open(ask, trials.is_empty(), seen));
            };
            spent += seen.spent(&ask);
            if trials.is_empty() {
                steps.learn_start(record);
            }
            steps.take(Outcome::from(record.verdict));
            steps.learn_memory(record);
            trials.push(Arc::clone(record));
            if let Some(longer) = &longer
                && is_too_early(&trials)
            {
                let mut searched = longer.next(seen)?;
                searched.spent += spent;
                return Ok(searched);
            }
        }
        Ok(Searched {
            base: self.base.clone(),
            end: end(steps.rules.next(), &trials),
            trials,
            start_deadline: steps.start_deadline,
            spent,
            step: self.parameters.step,
            longer: longer.map(Box::new),
        })
    }
}

/// A search between two trials.
#[derive(Debug, Clone)]
struct Steps<'a> {
    base: &'a Configuration,
    rules: MinMemory,
    repeats: BTreeMap<(u64, bool), u32>,
    start_deadline: Duration,
}

impl<'a> Steps<'a> {
    fn new(search: &'a Smallest) -> Self {
        Self {
            base: &search.base,
            rules: MinMemory::new(search.parameters),
            repeats: BTreeMap::new(),
            start_deadline: search.start_deadline,
        }
    }

    /// What the trial with room teaches: how long a start may take.
    fn learn_start(&mut self, first: &TrialRecord) {
        if let Some(start) = first.evidence.start.ready {
            let several = (start * START_FACTOR).max(START_FLOOR);
            self.start_deadline = several.min(self.start_deadline);
        }
    }

    /// What every trial that passed teaches: where to look first.
    fn learn_memory(&mut self, record: &TrialRecord) {
        if record.verdict == Verdict::Pass
            && let Some(expected) = expected(&record.evidence)
        {
            self.rules.expect(expected);
        }
    }

    fn open(&self, ask: Ask, is_first: bool, seen: &Seen) -> Open {
        let more = match ask.purpose {
            // Every confirmation is needed if this one passes, and most do.
            Purpose::Confirm => self.rules.confirmations_left(),
            _ => 1,
        };
        let again = |n| Ask {
            repeat: ask.repeat + n,
            ..ask.clone()
        };
        let wanted: Vec<Ask> = (0..more).map(again).collect();
        let wanted: Vec<Ask> = wanted
            .into_iter()
            .filter(|a| seen.get(a).is_none())
            .collect();
        // How long other starts may take is not known before the first.
        let guesses = match is_first {
            true => Vec::new(),
            false => ahead::guesses(self, seen, &wanted),
        };
        Open { wanted, guesses }
    }
}

impl Machine for Steps<'_> {
    fn wants(&self) -> Option<Ask> {
        let Step::Try(size, purpose) = self.rules.next() else {
            return None;
        };
        let key = (size.as_bytes(), purpose == Purpose::Confirm);
        Some(Ask {
            configuration: at(self.base, size),
            purpose,
            repeat: self.repeats.get(&key).copied().unwrap_or(0) + 1,
            start_deadline: self.start_deadline,
            pair: None,
        })
    }

    fn take(&mut self, outcome: Outcome) {
        let Step::Try(size, purpose) = self.rules.next() else {
            return;
        };
        let key = (size.as_bytes(), purpose == Purpose::Confirm);
        *self.repeats.entry(key).or_default() += 1;
        let taken = self.rules.record(size, outcome);
        debug_assert!(taken.is_ok(), "it takes the outcome it asked for");
    }

    fn chance(&self) -> f64 {
        match self.rules.next() {
            Step::Try(_, Purpose::Confirm) => 0.9,
            _ => 0.5,
        }
    }
}

impl Searched {
    /// The next smaller size and what it breaks: a trial of the search that failed just below the
    /// confirmed size, or, where none was run, one that is run now.
    pub(super) fn next_smaller(
        &self,
        answer: &MemoryFound,
        seen: &Seen,
    ) -> Next<Option<Arc<TrialRecord>>> {
        let broke = |t: &&Arc<TrialRecord>| t.verdict.is_evidence() && t.verdict != Verdict::Pass;
        let below = self.trials.iter().filter(broke);
        let below = below.filter(|t| t.configuration.memory < Some(answer.confirmed));
        if let Some(record) = below.max_by_key(|t| t.configuration.memory) {
            return Ok(Some(Arc::clone(record)));
        }
        let size = answer.confirmed.saturating_sub(self.step);
        if size < self.step {
            return Ok(None);
        }
        let ask = Ask {
            configuration: at(&self.base, size),
            purpose: Purpose::Neighbour,
            repeat: 1,
            start_deadline: self.start_deadline,
            pair: None,
        };
        let run = each(seen, vec![ask])?;
        Ok(run.into_iter().find(|record| broke(&record)))
    }
}

/// A trial of the search that is shown again as neighbour is evidence once.
pub(super) fn add_neighbour(trials: &mut Vec<Arc<TrialRecord>>, below: Option<Arc<TrialRecord>>) {
    if let Some(below) = below.filter(|b| trials.iter().all(|t| t.id != b.id)) {
        trials.push(below);
    }
}

/// Fresh starts at one size until they prove or refute it ([`standing`]); `wanted` prove it if none
/// misses; with the length of all their attempts. Each may take as long as those of the search that
/// found it.
pub(super) fn prove(
    configuration: &Configuration,
    wanted: u32,
    start_deadline: Duration,
    seen: &Seen,
) -> Next<(Vec<Arc<TrialRecord>>, Duration)> {
    let start = |repeat| proof(configuration, repeat, start_deadline);
    let (mut starts, mut spent) = (Vec::new(), Duration::ZERO);
    let count = |starts: &[Arc<TrialRecord>]| Count::of(starts.iter().map(|t| t.verdict));
    while let Standing::More(more) = standing(wanted, count(&starts), false) {
        let repeat = starts.len() as u32 + 1;
        let Some(record) = seen.get(&start(repeat)) else {
            let asks = (repeat..repeat + more).map(start);
            return Err(Open {
                wanted: asks.filter(|a| seen.get(a).is_none()).collect(),
                guesses: Vec::new(),
            });
        };
        spent += seen.spent(&start(repeat));
        starts.push(Arc::clone(record));
    }
    Ok((starts, spent))
}

fn proof(configuration: &Configuration, repeat: u32, start_deadline: Duration) -> Ask {
    Ask {
        configuration: configuration.clone(),
        purpose: Purpose::Prove,
        repeat,
        start_deadline,
        pair: None,
    }
}

/// Configurations whose smallest sizes say nothing about which is cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// The one at the lowest rate would win.
    #[error("the rate varies, and sizes at different rates do not compare")]
    Rates,
    /// What a configuration without a limit takes has no price.
    #[error("some configurations have a CPU limit and some have none: their sizes do not compare")]
    Limits,
}

/// Checks that the cheapest of these configurations means something.
///
/// # Errors
/// [`Incomparable`].
pub fn comparable(bases: &[Configuration]) -> Result<(), Incomparable> {
    let differ = |of: fn(&Configuration, &Configuration) -> bool| {
        bases.windows(2).any(|pair| of(&pair[0], &pair[1]))
    };
    if differ(|a, b| a.rate != b.rate) {
        return Err(Incomparable::Rates);
    }
    if differ(|a, b| a.cpu.is_some() != b.cpu.is_some()) {
        return Err(Incomparable::Limits);
    }
    Ok(())
}

/// The configuration at a size; the label says so.
pub fn at(base: &Configuration, size: Bytes) -> Configuration {
    let label = if base.label.is_empty() || base.label == "as given" {
        size.to_string()
    } else {
        format!("{} {size}", base.label)
    };
    Configuration {
        memory: Some(size),
        label,
        ..base.clone()
    }
}

/// What a size weighs beside others: memory and CPUs of all instances.
fn cost(base: &Configuration, size: Bytes) -> f64 {
    let cpus = base.cpu.map_or(0.0, |cpu| cpu.as_f64());
    f64::from(base.instances) * price::weight(cpus, size)
}

fn end(step: Step, trials: &[Arc<TrialRecord>]) -> End {
    let last = trials
        .last()
        .map(|t| format!("{}: {}", t.verdict, t.reason));
    let reason = last.unwrap_or_default();
    match step {
        Step::Done(answer) => End::Found(answer),
        Step::Infeasible { largest } => End::Infeasible { largest, reason },
        Step::CouldNotMeasure { size, .. } | Step::Try(size, _) => {
            End::CouldNotMeasure { size, reason }
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
            comparable(&[fixture::configuration(256), other])
        };
        assert_eq!(of(|c| c.rate = Some(10.0)), Err(Incomparable::Rates));
        assert_eq!(of(|c| c.cpu = None), Err(Incomparable::Limits));
        assert_eq!(of(|c| c.cpu = Some(Cpus::from_whole(2))), Ok(()));
    }

    #[test]
    fn four_instances_cost_four_times_one() {
        let one = fixture::configuration(256);
        let four = Configuration {
            instances: 4,
            ..one.clone()
        };
        let cost_of_four = cost(&four, Bytes::from_mib(160));
        assert!(cost_of_four > cost(&one, Bytes::from_mib(256)));
        assert!(cost(&one, Bytes::from_mib(256)) > cost(&one, Bytes::from_mib(160)));
        assert_eq!(cost_of_four, 4.0 * cost(&one, Bytes::from_mib(160)));
    }

    /// Answers asks up to a size; what is wanted and guessed then.
    fn after(sizes_that_pass: &[(u64, bool)]) -> (Vec<String>, Vec<String>) {
        let mib = Bytes::from_mib;
        let search = Smallest {
            base: Configuration {
                label: String::new(),
                memory: None,
                ..fixture::configuration(1)
            },
            level: None,
            parameters: Parameters {
                retries: 0,
                ..Parameters::new(mib(64), mib(1024))
            },
            start_deadline: Duration::from_secs(60),
            warm_up: None,
        };
        let mut seen = Seen::default();
        for (size, passes) in sizes_that_pass {
            let Err(open) = search.next(&seen) else { break };
            let ask = open.wanted[0].clone();
            assert_eq!(ask.configuration.memory, Some(mib(*size)));
            let verdict = if *passes {
                Verdict::Pass
            } else {
                Verdict::SloMiss
            };
            let record = fixture::trial("t", ask.purpose, *size, verdict);
            seen.add(&ask, record, Duration::ZERO);
        }
        let open = search.next(&seen).expect_err("it is open");
        let text = |a: Ask| format!("{} #{}", a.configuration.label, a.repeat);
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
            let record = fixture::trial(id, Purpose::Search, size, Verdict::SloMiss);
            Arc::new(record)
        };
        let searched = Searched {
            base: fixture::configuration(1),
            end: End::Found(answer),
            trials: vec![miss("far", 128), miss("near", 248), miss("itself", 256)],
            start_deadline: Duration::from_secs(60),
            spent: Duration::ZERO,
            step: mib(4),
            longer: None,
        };
        let below = searched.next_smaller(&answer, &Seen::default());
        let id = below.map(|below| below.map(|trial| trial.id.clone()));
        assert_eq!(id.ok().flatten().as_deref(), Some("near"));
    }
}
