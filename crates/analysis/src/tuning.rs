//! Options compared in pairs: the candidates, and when one is adopted.
//!
//! Owns the candidates and the rule. A candidate is compared with the option it would replace in
//! alternating trials, by the application's CPU time per good response: CPU time determines the
//! size, and it varies less than latencies do. It is adopted only if it misses the SLO no more
//! often and the whole interval of the ratio lies below 1 by more than [`EFFECT`]. The intervals of
//! one stage hold together with 95 % (Bonferroni): the best of twenty useless candidates looks
//! better than a single one. User settings are never varied: an option freezes its own dimension.
//! Options that bound memory without changing the footprint (metaspace, stacks, direct buffers) are
//! no candidates: they follow from the footprint, not from a comparison.

use std::sync::Arc;

use loadline_sizing::jdk::JdkRelease;
use loadline_sizing::options::dimension::{OptionDimension, of_flag};
use loadline_sizing::options::{JvmOptionSet, gate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::heap::{self, HeapLaw, HeapProbe};
use crate::interval::{Bootstrap, median};
use crate::record::{TrialRecord, TrialVerdict};
use crate::sli::Sli;
use crate::startup::{ConfigurationStarts, compare_paired};

pub const EFFECT: f64 = 0.02;

/// Options compared together; the winner of a stage is the reference of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuningStage {
    /// The collectors that the JDK has.
    Collector,
    /// Threads, compilers, code cache, headers, the shape of the heap.
    Flags,
    /// The share of the memory limit that is heap: the probes of the price rule.
    Heap,
    /// The heap that the price rule names.
    PriceRule,
}

impl TuningStage {
    /// The stages with candidates known beforehand, in order.
    pub const PLANNED: [Self; 3] = [Self::Collector, Self::Flags, Self::Heap];

    pub fn stage_name(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Flags => "flags",
            Self::Heap => "heap",
            Self::PriceRule => "heap by price",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionCandidate {
    pub label: String,
    pub options: Vec<String>,
}

/// The stage's name, the label and the options of each.
const CANDIDATES: &str = "\
collector: serial: -XX:+UseSerialGC
collector: parallel: -XX:+UseParallelGC
collector: g1: -XX:+UseG1GC
collector: zgc: -XX:+UseZGC
collector: shenandoah: -XX:+UseShenandoahGC
flags: one GC thread: -XX:ParallelGCThreads=1 -XX:ConcGCThreads=1
flags: two GC threads: -XX:ParallelGCThreads=2
flags: one CPU: -XX:ActiveProcessorCount=1
flags: two CPUs: -XX:ActiveProcessorCount=2
flags: C1 only: -XX:TieredStopAtLevel=1
flags: two compilers: -XX:CICompilerCount=2
flags: small code cache: -XX:ReservedCodeCacheSize=48m
flags: compact headers: -XX:+UseCompactObjectHeaders
flags: heap as large as it gets: -XX:InitialRAMPercentage=75.0 -XX:MaxRAMPercentage=75.0
flags: heap that shrinks: -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20
heap: heap 30 %: -XX:MaxRAMPercentage=30.0 -XX:MinRAMPercentage=30.0
heap: heap 45 %: -XX:MaxRAMPercentage=45.0 -XX:MinRAMPercentage=45.0
heap: heap 60 %: -XX:MaxRAMPercentage=60.0 -XX:MinRAMPercentage=60.0
heap: heap 75 %: -XX:MaxRAMPercentage=75.0 -XX:MinRAMPercentage=75.0";

/// The candidates of a stage for a JDK, except dimensions that the user has set, and options
/// already present.
pub fn candidates(
    stage: TuningStage,
    jdk: JdkRelease,
    given: &JvmOptionSet,
) -> Vec<OptionCandidate> {
    // A heap of the user's own leaves no share of the limit to choose.
    if stage == TuningStage::Heap && given.freezing_option(OptionDimension::Heap).is_some() {
        return Vec::new();
    }
    let is_free = |flag: &str| match of_flag(flag) {
        Some(dimension) => given.freezing_option(dimension).is_none(),
        None => !given.is_set(flag),
    };
    let candidate = |row: &str| {
        let row = row.strip_prefix(stage.stage_name())?;
        let (label, options) = row.strip_prefix(": ")?.split_once(": ")?;
        let mut flags = options.split(' ').map(flag_name);
        flags
            .all(|flag| is_free(flag) && gate::is_known(jdk, flag))
            .then(|| OptionCandidate {
                label: label.to_owned(),
                options: options.split(' ').map(str::to_owned).collect(),
            })
    };
    CANDIDATES.lines().filter_map(candidate).collect()
}

/// `UseSerialGC` of `-XX:+UseSerialGC`.
fn flag_name(option: &str) -> &str {
    let name = option.strip_prefix("-XX:").unwrap_or(option);
    let name = name.trim_start_matches(['+', '-']);
    name.split('=').next().unwrap_or(name)
}

/// A candidate after its pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCandidate {
    /// What it was compared among.
    pub stage: TuningStage,
    /// Its label.
    pub label: String,
    /// Its options.
    pub options: Vec<String>,
    /// Pairs of trials in turn.
    pub pairs: usize,
    /// Trials of the candidate that kept the SLO.
    pub passes: usize,
    /// Its trials that count.
    pub trials: usize,
    /// CPU time per good response against the reference, median of the pairs; `None` without a pair.
    pub ratio: Option<f64>,
    /// The interval of the ratio; those of all candidates of a stage hold together with 95 %.
    pub interval: Option<(f64, f64)>,
    /// Whether it replaces the reference.
    pub is_adopted: bool,
}

/// CPU time per good response, seconds.
pub fn cpu_per_request(record: &TrialRecord) -> Option<f64> {
    let sli = Sli::from_record(record).ok()?;
    sli.cpu_per_request.map(|d| d.as_secs_f64())
}

/// Compares a candidate's trials with the reference's by their repeats. Says whether it might be
/// adopted, not that it is: of several the best is. `among` is the number of candidates of its stage.
pub fn compare_candidate(
    (stage, among): (TuningStage, usize),
    candidate: &OptionCandidate,
    own: &[Arc<TrialRecord>],
    reference: &[Arc<TrialRecord>],
    seed: u64,
) -> ComparedCandidate {
    let (mine, theirs) = (counted_starts(own), counted_starts(reference));
    let bootstrap = Bootstrap {
        resamples: 2000,
        confidence: 1.0 - ERROR / among.max(1) as f64,
        seed,
    };
    let both = mine.zip(theirs);
    let pairs =
        both.and_then(|(mine, theirs)| compare_paired(&mine, &theirs, cpu_per_request, bootstrap));
    let (passes, trials) = passed_and_counted(own);
    let (their_passes, their_trials) = passed_and_counted(reference);
    let keeps = trials > 0 && passes * their_trials >= their_passes * trials;
    let is_better = pairs.is_some_and(|p| p.ratio.high < 1.0 - EFFECT);
    ComparedCandidate {
        stage,
        label: candidate.label.clone(),
        options: candidate.options.clone(),
        pairs: pairs.map_or(0, |p| p.pairs),
        passes,
        trials,
        ratio: pairs.map(|p| p.ratio.estimate),
        interval: pairs.map(|p| (p.ratio.low, p.ratio.high)),
        // The interval of few pairs is their range: anything may look better.
        is_adopted: keeps && is_better && pairs.is_some_and(|p| p.pairs >= FEWEST_PAIRS),
    }
}

/// Share of stages without a better candidate in which one may look better.
const ERROR: f64 = 0.05;

/// Fewer pairs adopt nothing: the median of a useless candidate lies within the range of four pairs
/// in only 87.5 % of cases, of six in 96.9 %.
pub const FEWEST_PAIRS: usize = 6;

fn counted_starts(records: &[Arc<TrialRecord>]) -> Option<ConfigurationStarts<'_>> {
    let counted = records.iter().filter(|t| t.verdict.is_evidence());
    let counted: Vec<&TrialRecord> = counted.map(|t| &**t).collect();
    Some(ConfigurationStarts {
        configuration: &counted.first()?.configuration,
        trials: counted,
    })
}

fn passed_and_counted(records: &[Arc<TrialRecord>]) -> (usize, usize) {
    let counted = || records.iter().filter(|t| t.verdict.is_evidence());
    let passed = counted().filter(|t| t.verdict == TrialVerdict::Pass);
    (passed.count(), counted().count())
}

pub fn adopt(compared: &mut [ComparedCandidate]) -> Option<usize> {
    let ratio = |c: &ComparedCandidate| c.ratio.unwrap_or(f64::MAX);
    let candidates = compared.iter().enumerate().filter(|(_, c)| c.is_adopted);
    let best = candidates.min_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1)));
    let best = best.map(|(index, _)| index);
    for (index, one) in compared.iter_mut().enumerate() {
        one.is_adopted = Some(index) == best;
    }
    best
}

/// The heap by the price rule, whole MiB: trials of at least four heaps give GC cost over the heap;
/// the optimum balances `memory_price` (of a GiB-hour, 0 if the size is billed whole) against
/// `cpu_price` (of a vCPU-hour). Never outside the heaps that kept the SLO. `None` if the log has
/// no CPU times or the law does not fit.
pub fn heap_by_price(
    heaps: &[Vec<Arc<TrialRecord>>],
    cpu_price: f64,
    memory_price: f64,
) -> Option<u64> {
    let probes = heaps.iter().filter_map(|trials| heap_probe(trials));
    let probes: Vec<HeapProbe> = probes.collect();
    let law = HeapLaw::fit_probes(&probes)?;
    let rate = |t: &Arc<TrialRecord>| Sli::from_record(t).ok()?.achieved_rate;
    let rates = heaps.iter().flatten().filter_map(rate);
    let rate = median(&rates.collect::<Vec<_>>())?;
    // Cost is GC CPU seconds per 1000 responses here, so responses take the place of allocation.
    let cheapest = law.cheapest_heap(rate / 1000.0, cpu_price, memory_price / 1024.0);
    let chosen = heap::choose(&law, &probes, cheapest);
    chosen.is_finite().then_some(chosen.round() as u64)
}

fn heap_probe(trials: &[Arc<TrialRecord>]) -> Option<HeapProbe> {
    let passed = trials.iter().filter(|t| t.verdict == TrialVerdict::Pass);
    let of = |t: &Arc<TrialRecord>| {
        let gc = t.evidence.gc.as_ref()?;
        let heap = gc.heap_max?.as_mib();
        let sli = Sli::from_record(t).ok()?;
        let cost = sli.cpu_per_request?.as_secs_f64() * sli.gc_cpu_share? * 1000.0;
        Some((heap, cost))
    };
    let seen: Vec<(f64, f64)> = passed.filter_map(of).collect();
    let middle = |of: fn(&(f64, f64)) -> f64| median(&seen.iter().map(of).collect::<Vec<_>>());
    Some(HeapProbe {
        heap: middle(|s| s.0)?,
        cost: middle(|s| s.1)?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixture;
    use crate::random::RandomStream;
    use crate::record::TrialPurpose;

    fn jdk(feature: u32) -> JdkRelease {
        JdkRelease::for_hotspot(loadline_sizing::JavaVersion::from_feature(feature))
    }

    fn labels(stage: TuningStage, feature: u32, given: &[&str]) -> Vec<String> {
        let given = JvmOptionSet::from_words(given.iter().copied());
        let all = candidates(stage, jdk(feature), &given);
        all.into_iter().map(|c| c.label).collect()
    }

    #[test]
    fn candidates_are_those_that_the_jdk_knows_and_the_user_left_open() {
        let collectors = |feature, given| labels(TuningStage::Collector, feature, given);
        assert_eq!(
            collectors(17, &[]),
            ["serial", "parallel", "g1", "zgc", "shenandoah"]
        );
        assert_eq!(collectors(8, &[]), ["serial", "parallel", "g1"]);
        assert!(collectors(25, &["-XX:+UseParallelGC"]).is_empty());
        assert_eq!(labels(TuningStage::Flags, 25, &[]).len(), 10);
        let older = labels(TuningStage::Flags, 17, &["-XX:TieredStopAtLevel=1"]);
        assert!(
            !older
                .iter()
                .any(|l| l.contains("C1") || l.contains("compilers"))
        );
        assert!(!older.iter().any(|l| l == "compact headers"));
        assert_eq!(labels(TuningStage::Heap, 17, &[]).len(), 4);
        assert!(labels(TuningStage::Heap, 17, &["-Xmx64m"]).is_empty());
    }

    /// Trials with the fixture's CPU time per response times a factor, with noise.
    fn trials(
        factor: f64,
        noise: f64,
        pairs: u32,
        random: &mut RandomStream,
    ) -> Vec<Arc<TrialRecord>> {
        (1..=pairs)
            .map(|repeat| {
                let mut trial =
                    fixture::trial_record("t", TrialPurpose::Compare, 240, TrialVerdict::Pass);
                trial.repeat = repeat;
                let error = (noise * random.normal()).exp();
                let cpu = trial.evidence.cgroup.measure_cpu.unwrap_or_default();
                trial.evidence.cgroup.measure_cpu = Some(cpu.mul_f64(factor * error));
                Arc::new(trial)
            })
            .collect()
    }

    fn compared(factor: f64, pairs: u32, seed: u64) -> ComparedCandidate {
        let mut random = RandomStream::from_seed(seed);
        let reference = trials(1.0, 0.03, pairs, &mut random);
        let own = trials(factor, 0.03, pairs, &mut random);
        let candidate = OptionCandidate {
            label: "x".to_owned(),
            options: Vec::new(),
        };
        compare_candidate((TuningStage::Flags, 1), &candidate, &own, &reference, 1)
    }

    #[test]
    fn an_option_that_helps_is_adopted_and_one_that_does_nothing_is_not() {
        let adopted = |factor| {
            (0..100)
                .filter(|s| compared(factor, 6, *s).is_adopted)
                .count()
        };
        assert!(adopted(0.85) >= 90, "{}", adopted(0.85));
        assert!(adopted(1.0) <= 5, "{}", adopted(1.0));
        assert_eq!(adopted(1.2), 0);
        assert!(!compared(0.5, 5, 1).is_adopted, "five pairs say too little");
    }

    /// Ten candidates that do nothing against one reference, as a stage runs them.
    #[test]
    fn of_many_that_do_nothing_none_is_adopted() {
        let candidate = OptionCandidate {
            label: "x".to_owned(),
            options: Vec::new(),
        };
        let adopts = |noise: f64, seed: u64| {
            let mut random = RandomStream::from_seed(seed);
            let reference = trials(1.0, noise, 6, &mut random);
            (0..10).any(|_| {
                let own = trials(1.0, noise, 6, &mut random);
                compare_candidate((TuningStage::Flags, 10), &candidate, &own, &reference, seed)
                    .is_adopted
            })
        };
        let adopted = (0..30).filter(|seed| adopts(0.06, *seed)).count();
        assert!(adopted <= 3, "{adopted} of 30 stages");
    }

    #[test]
    fn cheaper_but_worse_is_not_adopted_and_of_several_only_the_best() {
        let mut random = RandomStream::from_seed(1);
        let reference = trials(1.0, 0.0, 6, &mut random);
        let mut own = trials(0.5, 0.0, 6, &mut random);
        Arc::make_mut(&mut own[2]).verdict = TrialVerdict::SloMiss;
        let candidate = OptionCandidate {
            label: "x".to_owned(),
            options: Vec::new(),
        };
        let worse = compare_candidate((TuningStage::Flags, 1), &candidate, &own, &reference, 1);
        assert_eq!(
            (worse.passes, worse.trials, worse.is_adopted),
            (5, 6, false)
        );
        let mut all = [
            compared(0.8, 6, 1),
            compared(0.6, 6, 2),
            compared(1.0, 6, 3),
        ];
        assert_eq!(adopt(&mut all), Some(1));
        assert_eq!(all.map(|c| c.is_adopted), [false, true, false]);
    }

    /// G1's law from the tests of `heap`: the rule stays inside the probed range.
    #[test]
    fn the_heap_by_price_falls_with_the_price_of_memory() {
        let law = |heap: f64| 0.0 + 65.5 / (heap - 60.0);
        let heaps: Vec<Vec<Arc<TrialRecord>>> = [80.0, 120.0, 200.0, 400.0]
            .map(|heap| {
                let mut trial =
                    fixture::trial_record("t", TrialPurpose::Compare, 512, TrialVerdict::Pass);
                let requests = trial.evidence.load[0].ok as f64;
                let seconds = law(heap) * requests / 1000.0;
                trial.evidence.cgroup.measure_cpu = Some(Duration::from_secs_f64(seconds * 2.0));
                let mut gc = fixture::empty_gc_log();
                gc.heap_max = Some(loadline_sizing::Bytes::from_mib(heap as u64));
                gc.measure_gc_cpu = Some(Duration::from_secs_f64(seconds));
                trial.evidence.gc = Some(gc);
                vec![Arc::new(trial)]
            })
            .into();
        let at = |memory_price| heap_by_price(&heaps, 0.04, memory_price);
        assert_eq!(
            at(0.0),
            Some(400),
            "where memory is free, the largest probe"
        );
        let cheap = at(0.0044).expect("it fits");
        let dear = at(0.44).expect("it fits");
        assert!((80..=400).contains(&dear) && dear < cheap, "{dear} {cheap}");
        assert_eq!(heap_by_price(&heaps[..3], 0.04, 0.0), None);
    }
}
