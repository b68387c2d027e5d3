//! The answer with its grounds: size, margin, proof, and what the next smaller size breaks.
//!
//! Owns the recommendation and its derivation from records; never runs anything. Everything in it
//! names the trials it rests on, so that a reader can look and a second person can repeat it.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{
    Budget, BurstMemory, LiveSetTrend, MemoryWall, allowed_heap, budget_at, live_set_trend,
};
use crate::deployment::Deployment;
use crate::interval::median;
use crate::offer::{Offer, RunPrice};
use crate::price::{self, InstanceSize};
use crate::proof::{Proof, count_proof, squeezed};
use crate::record::{
    AppKo, Configuration, STORM_REFAULTS, SqueezeEnd, TrialRecord, TrialVerdict, VerdictReason,
};
use crate::search::min_memory::MemoryFound;
use crate::search::size::{OfLevel, SizeEnd};
use crate::startup::ready_seconds;
use crate::text;
use crate::warming::JvmQuestion;
use crate::wire;

/// The configuration to use and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// What to run: limits (the recommended memory is its), JVM options with their provenance,
    /// environment.
    pub configuration: Configuration,
    /// What fills the memory of the configuration; `None` in results from before there were budgets, and
    /// where the parts could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How its live set rises; `None` where it does not, as far as the starts show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_set_trend: Option<LiveSetTrend>,
    /// The smallest limit at which the squeezed start still worked; where none was squeezed, the smallest
    /// memory that passed every confirmation.
    #[serde(rename = "confirmed_bytes", with = "wire::bytes")]
    pub confirmed: Bytes,
    /// The share above it; the lines of the budget explain it.
    pub margin: f64,
    /// Ids of the trials it rests on, in the order they ran.
    pub evidence: Vec<String>,
    /// Which JVM it is for.
    #[serde(default)]
    pub question: JvmQuestion,
    /// Fresh starts at the recommended size.
    pub proof: Proof,
    /// The largest smaller size that failed; `None` when none was seen to fail.
    pub next_smaller: Option<SmallerSize>,
    /// Other configurations that ran, such as the defaults or another tool's advice.
    pub comparisons: Vec<OtherConfiguration>,
    /// The size of each JDK, application and CPU limit, where several were asked about; the
    /// recommended one is among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_level: Vec<LevelSize>,
    /// Replicas and money, where prices were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// What a run that ends costs, the cheapest first; empty for a service, and without a CPU limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_prices: Vec<RunPrice>,
}

/// What one JDK, application or CPU limit of several needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelSize {
    /// The JDK's name; `None` is the command as given.
    #[serde(default)]
    pub jdk: Option<String>,
    /// The application's label; `None` with only one application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// The CPU limit; `None` where one was asked about.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpus>,
    /// What to run with it; `None` where no size keeps the SLO.
    #[serde(default)]
    pub configuration: Option<Configuration>,
    /// The smallest memory that passed every confirmation.
    #[serde(rename = "confirmed_bytes", with = "wire::bytes_opt", default)]
    pub confirmed: Option<Bytes>,
    /// Fresh starts at that size.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// Why there is no size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_none: Option<String>,
    /// There is no size because not even the largest one keeps the SLO.
    #[serde(default, skip_serializing_if = "crate::record::is_false")]
    pub is_infeasible: bool,
}

/// Two independent searches of one service agree within this share (SPECIFICATION.md): a smaller
/// difference between two recommended sizes says nothing.
pub const SAME_SIZE: f64 = 0.08;

impl LevelSize {
    pub fn for_level(of: &OfLevel) -> Self {
        let none = Self {
            jdk: of.level.jdk.clone(),
            application: of.level.application.clone(),
            cpu: of.level.cpu,
            configuration: None,
            confirmed: None,
            proof: None,
            why_none: None,
            is_infeasible: false,
        };
        match &of.best {
            Err(end) => Self {
                why_none: Some(end.why_none()),
                is_infeasible: matches!(end, SizeEnd::Infeasible { .. }),
                ..none
            },
            Ok(best) => {
                let trials: Vec<TrialRecord> = best.trials.iter().map(|t| (**t).clone()).collect();
                Self {
                    configuration: Some(best.configuration.clone()),
                    confirmed: Some(best.answer.confirmed),
                    proof: Some(count_proof(best.answer.size, &trials)),
                    ..none
                }
            }
        }
    }

    pub fn is_proven(&self) -> bool {
        self.proof.as_ref().is_some_and(Proof::is_proven)
    }

    /// Whether it is an answer: a size that is proven, or of a CPU limit that none keeps the SLO.
    pub fn is_answered(&self) -> bool {
        self.is_proven() || self.cpu.is_some() && self.is_infeasible
    }
}

/// The CPU limit with the cheapest proven size, by what an answer is chosen by. `None` if fewer than
/// two limits have a proven size, or they differ in more than the limit.
pub fn cpu_knee(levels: &[LevelSize]) -> Option<&LevelSize> {
    let is_alike =
        |of: &&LevelSize| of.jdk == levels[0].jdk && of.application == levels[0].application;
    if !levels.iter().all(|of| is_alike(&of)) {
        return None;
    }
    let weight = |of: &LevelSize| {
        let size = of.configuration.as_ref()?.memory;
        let size = size.filter(|_| of.is_proven())?;
        Some(price::size_weight(of.cpu?.as_f64(), size))
    };
    let proven = levels.iter().filter_map(|of| Some((of, weight(of)?)));
    let (knee, _) = proven.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (proven.count() > 1).then_some(knee)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Conclusion {
    Answer(Box<Recommendation>),
    NoAnswer(NoAnswer),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoAnswer {
    /// Why that is no proof that there is nothing; `None` where it is one.
    pub undecided: Option<String>,
    pub left_out: Vec<String>,
}

/// A smaller size and what it breaks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallerSize {
    /// Its memory limit.
    #[serde(rename = "memory_bytes", with = "wire::bytes")]
    pub memory: Bytes,
    /// The trial that shows it.
    pub trial: String,
    /// Its verdict.
    pub verdict: TrialVerdict,
    /// Its reason, with the numbers.
    pub breaks: VerdictReason,
}

/// An alternative to the recommended configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherConfiguration {
    /// Label of the configuration.
    pub label: String,
    /// The trial.
    pub trial: String,
    /// Its memory limit; `None` is none.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// Its memory as a multiple of the recommended.
    pub memory_ratio: Option<f64>,
    /// Its verdict.
    pub verdict: TrialVerdict,
    /// Its reason.
    pub reason: String,
}

/// Derives the recommendation.
///
/// `configuration` is the one at the answer's size; `trials` are all trials of the search, its
/// confirmations, neighbours and proofs; `others` are trials to compare with.
pub fn recommend(
    configuration: Configuration,
    answer: &MemoryFound,
    trials: &[TrialRecord],
    others: &[TrialRecord],
) -> Recommendation {
    let size = answer.size;
    let compared = others.iter().map(|t| compare_trial(size, t));
    Recommendation {
        budget: budget(size, trials),
        live_set_trend: squeezed(trials).and_then(trend),
        confirmed: answer.confirmed,
        margin: answer.margin,
        next_smaller: next_smaller(size, trials).or_else(|| storm(size, trials)),
        comparisons: compared.collect(),
        ..size_alone(configuration, size, trials)
    }
}

fn size_alone(configuration: Configuration, size: Bytes, trials: &[TrialRecord]) -> Recommendation {
    let evidence = trials.iter().filter(|t| t.verdict.is_evidence());
    Recommendation {
        configuration: Configuration {
            memory: Some(size),
            ..configuration
        },
        budget: None,
        live_set_trend: None,
        confirmed: size,
        margin: 0.0,
        evidence: evidence.map(|trial| trial.id.clone()).collect(),
        question: JvmQuestion::Start,
        proof: count_proof(size, trials),
        next_smaller: None,
        comparisons: Vec::new(),
        by_level: Vec::new(),
        deployment: None,
        run_prices: Vec::new(),
    }
}

/// Derives the recommendation of a search for the cheapest deployment.
///
/// `configuration` describes one replica; `own` are the trials of exactly this deployment, and of
/// the search for its memory if there was one.
pub fn recommend_deployment(
    configuration: Configuration,
    deployment: Deployment,
    own: &[TrialRecord],
) -> Recommendation {
    let size = deployment.chosen.limits.memory;
    Recommendation {
        deployment: Some(deployment),
        ..size_alone(configuration, size, own)
    }
}

pub fn recommend_refined(
    configuration: Configuration,
    deployment: Deployment,
    answer: &MemoryFound,
    own: &[TrialRecord],
) -> Recommendation {
    Recommendation {
        confirmed: answer.confirmed,
        margin: answer.margin,
        next_smaller: next_smaller(answer.size, own),
        ..recommend_deployment(configuration, deployment, own)
    }
}

pub fn next_smaller(size: Bytes, trials: &[TrialRecord]) -> Option<SmallerSize> {
    let failed = trials.iter().filter_map(|trial| {
        let memory = trial.configuration.memory.filter(|memory| *memory < size)?;
        let is_failure = trial.verdict.is_evidence() && trial.verdict != TrialVerdict::Pass;
        is_failure.then_some((memory, trial))
    });
    // `max_by_key` takes the last of equals: the latest trial.
    let (memory, trial) = failed.max_by_key(|(memory, _)| *memory)?;
    Some(SmallerSize {
        memory,
        trial: trial.id.clone(),
        verdict: trial.verdict,
        breaks: trial.reason.clone(),
    })
}

fn budget(size: Bytes, trials: &[TrialRecord]) -> Option<Budget> {
    let squeezed = squeezed(trials)?;
    let bursts = BurstMemory::from_starts(squeezed, trials);
    let heap = allowed_heap(squeezed);
    budget_at(&squeezed.evidence, heap, size, bursts.as_ref())?.ok()
}

fn trend(trial: &TrialRecord) -> Option<LiveSetTrend> {
    live_set_trend(&trial.evidence, allowed_heap(trial))
}

fn storm(size: Bytes, trials: &[TrialRecord]) -> Option<SmallerSize> {
    let squeezed = squeezed(trials)?;
    let squeeze = squeezed.evidence.squeeze.as_ref()?;
    let storm = MemoryWall::of_start(&squeezed.evidence)?.storm;
    let storm = storm.filter(|storm| storm.limit < size)?;
    let was_killed = squeeze.end == SqueezeEnd::Killed && squeeze.steps.last() == Some(storm);
    let waited = storm.full_pressure;
    let waited = waited.filter(|_| storm.refaults_per_second <= STORM_REFAULTS);
    let sign = waited.map_or_else(
        || {
            let pages = text::short_count(storm.refaults_per_second as u64);
            format!("the kernel re-read {pages} file pages a second")
        },
        |share| {
            let share = text::short_percent(share);
            format!("all its threads waited for memory {share} of the time")
        },
    );
    let answered = storm.achieved.zip(storm.offered);
    let answered = answered
        .map(|(achieved, offered)| format!("{achieved} of {offered} requests were answered"));
    let killed = was_killed.then(|| "the kernel killed it".to_owned());
    Some(SmallerSize {
        // Steps of a squeeze are whole pages; people ask for whole MiB.
        memory: Bytes::from_mib(storm.limit.as_mib() as u64),
        trial: squeezed.id.clone(),
        verdict: if was_killed {
            TrialVerdict::AppKo(AppKo::CgroupOom)
        } else {
            TrialVerdict::SloMiss
        },
        breaks: killed.into_iter().chain([sign]).chain(answered).collect(),
    })
}

fn compare_trial(size: Bytes, trial: &TrialRecord) -> OtherConfiguration {
    let memory = trial.configuration.memory;
    OtherConfiguration {
        label: trial.configuration.label.clone(),
        trial: trial.id.clone(),
        memory,
        memory_ratio: memory.map(|m| m.as_bytes() as f64 / size.as_bytes().max(1) as f64),
        verdict: trial.verdict,
        reason: trial.reason.to_string(),
    }
}

impl Recommendation {
    /// Prices a run by the median time of the answer's own.
    pub fn price_runs(&mut self, offer: &Offer, trials: &[TrialRecord]) {
        let answer = &self.configuration;
        let is_own = |t: &&TrialRecord| {
            t.verdict == TrialVerdict::Pass && t.configuration.memory == answer.memory
        };
        let own = trials.iter().filter(is_own);
        let times: Vec<f64> = own.filter_map(ready_seconds).collect();
        let limits = answer.sure_cpu().zip(answer.memory);
        if let (Some((cpu, memory)), Some(time)) = (limits, median(&times)) {
            let time = Duration::from_secs_f64(time);
            self.run_prices = offer.run_prices(InstanceSize { cpu, memory }, time);
        }
    }

    pub fn recommended_memory(&self) -> Bytes {
        self.configuration.memory.unwrap_or(self.confirmed)
    }

    /// The heap in words: the option, or the size that the command sets. `None` if unknown or
    /// without a heap.
    pub fn heap_words(&self) -> Option<String> {
        let option = self.configuration.heap_option().map(|option| {
            match &self.configuration.options_variable {
                Some(variable) => format!("{option} in {variable}"),
                None => option.to_owned(),
            }
        });
        let heap = self.budget.as_ref().map(Budget::heap_need);
        let heap = heap.filter(|heap| heap.as_bytes() > 0);
        option.or_else(|| Some(format!("a heap of {}", heap?)))
    }

    /// Whether its fresh starts prove it; those of a deployment must also have been enough.
    pub fn is_proven(&self) -> bool {
        match &self.deployment {
            Some(deployment) => deployment.is_proven,
            None => self.proof.is_proven(),
        }
    }
}

impl SmallerSize {
    pub fn smaller_sentence(&self) -> String {
        format!("{} fails: {}", self.memory, self.breaks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{configuration, trial_record};
    use crate::record::{AppKo, InvalidReason, TrialPurpose};

    fn answer() -> MemoryFound {
        MemoryFound {
            size: Bytes::from_mib(324),
            confirmed: Bytes::from_mib(300),
            failed: Bytes::from_mib(296),
            margin: 0.08,
            starts: 13,
            invalid: 0,
        }
    }

    #[test]
    fn it_rests_on_trials_that_count_and_names_them() {
        let ko = TrialVerdict::AppKo(AppKo::CgroupOom);
        let noise = TrialVerdict::Invalid(InvalidReason::Noise);
        let mut trials = vec![
            trial_record("t1", TrialPurpose::Search, 256, ko),
            trial_record("t2", TrialPurpose::Search, 296, TrialVerdict::SloMiss),
            trial_record("t3", TrialPurpose::Search, 300, TrialVerdict::Pass),
            trial_record("t4", TrialPurpose::Confirm, 300, noise),
            trial_record("t5", TrialPurpose::Neighbour, 296, ko),
        ];
        let proofs = (0..19).map(|i| {
            trial_record(
                &format!("p{i}"),
                TrialPurpose::Prove,
                324,
                TrialVerdict::Pass,
            )
        });
        trials.extend(proofs);
        trials.push(trial_record(
            "p19",
            TrialPurpose::Prove,
            324,
            TrialVerdict::SloMiss,
        ));
        trials.push(trial_record("p20", TrialPurpose::Prove, 324, noise));
        let others = [trial_record(
            "d1",
            TrialPurpose::Matrix,
            648,
            TrialVerdict::Pass,
        )];
        let got = recommend(configuration(300), &answer(), &trials, &others);
        assert_eq!(got.configuration.memory, Some(Bytes::from_mib(324)));
        assert_eq!(got.evidence.len(), 24);
        assert!(!got.evidence.contains(&"t4".to_owned()));
        assert_eq!(
            got.proof.failures,
            [("p19".to_owned(), "reason of p19".to_owned())]
        );
        assert_eq!(got.proof.not_measured, 1);
        assert_eq!(got.comparisons[0].memory_ratio, Some(2.0));
        let smaller = got.next_smaller.as_ref().unwrap();
        assert_eq!(smaller.trial, "t5");
        insta::assert_snapshot!(
            format!("{}\n{}", got.proof.proof_sentence(), smaller.smaller_sentence()),
            @"
        1 of 20 fresh starts failed; up to 1 in 4 could still (95 % confidence); 1 could not be measured
        296Mi fails: reason of t5
        "
        );
        let stored = serde_json::to_string(&got).unwrap();
        assert_eq!(
            serde_json::from_str::<Recommendation>(&stored).unwrap(),
            got
        );
    }

    #[test]
    fn without_proof_it_says_so() {
        let got = recommend(configuration(324), &answer(), &[], &[]);
        assert_eq!(
            (got.proof.failure_upper_bound, got.next_smaller),
            (1.0, None)
        );
        assert_eq!(
            got.proof.proof_sentence(),
            "not tested: no fresh start ran at this size"
        );
    }

    fn limit(cpu: u32, memory: Option<u64>) -> LevelSize {
        let proofs: Vec<_> = (0..20)
            .map(|i| {
                trial_record(
                    &format!("p{i}"),
                    TrialPurpose::Prove,
                    memory.unwrap_or(1),
                    TrialVerdict::Pass,
                )
            })
            .collect();
        LevelSize {
            jdk: None,
            application: None,
            cpu: Some(Cpus::from_millis(cpu)),
            configuration: memory.map(configuration),
            confirmed: memory.map(Bytes::from_mib),
            proof: memory.map(|m| count_proof(Bytes::from_mib(m), &proofs)),
            why_none: None,
            is_infeasible: memory.is_none(),
        }
    }

    #[test]
    fn the_knee_is_the_cheapest_size() {
        let of = |levels: &[(u32, Option<u64>)]| {
            let levels: Vec<_> = levels.iter().map(|(cpu, m)| limit(*cpu, *m)).collect();
            cpu_knee(&levels)
                .and_then(|of| of.cpu)
                .map(|cpu| cpu.as_millis())
        };
        // Half a CPU costs as much as 4608 MiB.
        for (small, knee) in [(300, 500), (4819, 500), (4821, 1000)] {
            let levels = [(500, Some(small)), (1000, Some(212)), (2000, Some(204))];
            assert_eq!(of(&levels), Some(knee), "{small}");
            let turned = [levels[2], levels[0], levels[1]];
            assert_eq!(of(&turned), Some(knee), "{small}");
        }
        assert_eq!(
            of(&[(500, None), (1000, Some(212)), (2000, Some(204))]),
            Some(1000)
        );
        assert_eq!(of(&[(500, None), (1000, Some(212))]), None);
        assert_eq!(of(&[]), None);
        let mut jdks = [limit(500, Some(300)), limit(1000, Some(212))];
        jdks[1].jdk = Some("25".to_owned());
        assert_eq!(cpu_knee(&jdks), None, "they differ in more than the limit");
        assert!(limit(500, None).is_answered() && limit(500, Some(300)).is_answered());
        let without = LevelSize {
            cpu: None,
            ..limit(500, None)
        };
        assert!(!without.is_answered());
    }
}
