//! After the cheapest size is found: collectors, flags and heaps, compared in pairs.
//!
//! Owns the order of the trials: in each round every candidate and the reference run once on one
//! slot, forwards and backwards in turn (A B, B A), so that machine drift affects both sides. After
//! two rounds the worse half of many candidates is dropped (successive halving).
//! [`tuning`](crate::tuning) decides adoption, and the heap by the price rule. The winner needs its
//! own proof; if that fails, nothing is adopted.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::jdk::JdkRelease;
use loadline_sizing::options::JvmOptionSet;

use super::purchase::Purchase;
use super::size::prove_size;
use super::{Next, SeenTrials, TrialAsk, read_records};
use crate::interval::median;
use crate::proof::{ProofCount, why_unproven};
use crate::record::{
    Configuration, JvmOption, TrialPurpose, TrialRecord, TrialVerdict, ValueProvenance,
};
use crate::tuning::{
    ComparedCandidate, OptionCandidate, TuningStage, adopt, candidates, compare_candidate,
    cpu_per_request, heap_by_price,
};

const ROUNDS_BEFORE_HALVING: u32 = 2;

/// So many candidates are never halved.
const FEW: usize = 6;

#[derive(Debug, Clone)]
pub struct TunedOptions {
    /// The configuration with the adopted options, or the given one.
    pub configuration: Configuration,
    pub has_changed: bool,
    pub compared: Vec<ComparedCandidate>,
    pub trials: Vec<Arc<TrialRecord>>,
    pub left_out: Vec<String>,
    pub spent: Duration,
}

/// Cached results of each stage: records never change, and histograms and intervals are expensive.
#[derive(Debug, Default)]
pub struct StageCache([KnownStage; 4]);

#[derive(Debug, Default)]
struct KnownStage {
    dropped: OnceCell<Vec<bool>>,
    ended: OnceCell<EndedStage>,
}

#[derive(Debug, Clone, Default)]
struct EndedStage {
    compared: Vec<ComparedCandidate>,
    adopted: Option<Configuration>,
    trials: Vec<Vec<Arc<TrialRecord>>>,
    left_out: Option<String>,
    spent: Duration,
}

pub(super) struct OptionComparisons<'a> {
    pub purchase: &'a Purchase,
    pub known: &'a StageCache,
    /// Trials of each option.
    pub pairs: u32,
    /// The time already used.
    pub spent: Duration,
    pub seen: &'a SeenTrials,
}

impl OptionComparisons<'_> {
    /// Compares the JDK's options.
    pub(super) fn tune(&self, found: &Configuration, jdk: JdkRelease) -> Next<TunedOptions> {
        let pairs = self.pairs;
        let mut tuned = TunedOptions {
            configuration: found.clone(),
            has_changed: false,
            compared: Vec::new(),
            trials: Vec::new(),
            left_out: Vec::new(),
            spent: Duration::ZERO,
        };
        let mut heaps = Vec::new();
        for (index, stage) in (0_u32..).zip(TuningStage::PLANNED) {
            let open = candidates(stage, jdk, &self.known_options(&tuned.configuration));
            let round = StageRounds {
                stage,
                index,
                pairs,
            };
            heaps = self.run_stage(&mut tuned, round, open)?;
        }
        let price = &self.purchase.pricing.offer.price;
        let memory_price = if self.purchase.pricing.offer.bills_any_memory {
            price.gib_hour
        } else {
            0.0
        };
        if let Some(heap) = heap_by_price(&heaps, price.vcpu_hour, memory_price) {
            let candidate = OptionCandidate {
                label: format!("heap {heap} MiB"),
                options: vec![format!("-Xmx{heap}m")],
            };
            let round = StageRounds {
                stage: TuningStage::PriceRule,
                index: TuningStage::PLANNED.len() as u32,
                pairs,
            };
            self.run_stage(&mut tuned, round, vec![candidate])?;
        }
        self.prove_adopted(tuned, found)
    }

    fn known_options(&self, configuration: &Configuration) -> JvmOptionSet {
        let own = configuration.jvm_options.iter().map(|o| o.text.clone());
        let args = configuration.args.iter().cloned();
        let environment = configuration.env.values();
        let words = environment.flat_map(|text| text.split_whitespace().map(str::to_owned));
        let given = self.purchase.words.iter().cloned();
        JvmOptionSet::from_words(given.chain(args).chain(own).chain(words))
    }

    fn run_stage(
        &self,
        tuned: &mut TunedOptions,
        rounds: StageRounds,
        open: Vec<OptionCandidate>,
    ) -> Next<Vec<Vec<Arc<TrialRecord>>>> {
        let known = &self.known.0[rounds.index as usize].ended;
        let ended = match known.get() {
            Some(ended) => ended,
            None => {
                let ended = self.compare_stage(tuned, rounds, open)?;
                known.get_or_init(|| ended)
            }
        };
        tuned.left_out.extend(ended.left_out.clone());
        tuned.compared.extend(ended.compared.iter().cloned());
        tuned.trials.extend(ended.trials.iter().flatten().cloned());
        tuned.spent += ended.spent;
        if let Some(adopted) = &ended.adopted {
            tuned.configuration = adopted.clone();
            tuned.has_changed = true;
        }
        Ok(ended.trials.clone())
    }

    fn compare_stage(
        &self,
        reference: &TunedOptions,
        rounds: StageRounds,
        open: Vec<OptionCandidate>,
    ) -> Next<EndedStage> {
        if open.is_empty() {
            return Ok(EndedStage::default());
        }
        let trials = u32::try_from(open.len() + 1).unwrap_or(u32::MAX);
        let wanted = trials.saturating_mul(rounds.pairs);
        let wanted = wanted.saturating_add(self.purchase.prove);
        let length = self.purchase.trial_length.saturating_mul(wanted);
        let spent = self.spent + reference.spent;
        if !self.purchase.has_room(spent, length) {
            let name = rounds.stage.stage_name();
            let why = format!("{name}: not compared in pairs, the budget was spent");
            return Ok(EndedStage {
                left_out: Some(why),
                ..EndedStage::default()
            });
        }
        let mut racers = racers(&reference.configuration, open);
        let halving = rounds.pairs.min(ROUNDS_BEFORE_HALVING);
        let mut spent = self.run(&mut racers, rounds, 1..=halving)?;
        if rounds.pairs >= ROUNDS_BEFORE_HALVING {
            let known = &self.known.0[rounds.index as usize].dropped;
            let dropped = known.get_or_init(|| worse_half(&racers));
            for (racer, is_dropped) in racers.iter_mut().zip(dropped) {
                racer.is_dropped = *is_dropped;
            }
        }
        spent += self.run(&mut racers, rounds, halving + 1..=rounds.pairs)?;
        Ok(conclude(racers, rounds.stage, self.purchase.seed, spent))
    }

    /// Runs some rounds for the remaining candidates; returns the length of their trials.
    fn run(
        &self,
        racers: &mut [Racer],
        rounds: StageRounds,
        range: std::ops::RangeInclusive<u32>,
    ) -> Next<Duration> {
        let mut asks = Vec::new();
        let mut of = Vec::new();
        for round in range {
            let mut order: Vec<usize> = (0..racers.len()).collect();
            if round % 2 == 0 {
                order.reverse();
            }
            for index in order.into_iter().filter(|i| !racers[*i].is_dropped) {
                let number = rounds.index * rounds.pairs + round;
                of.push(index);
                asks.push(TrialAsk {
                    configuration: racers[index].configuration.clone(),
                    purpose: TrialPurpose::Compare,
                    repeat: number,
                    start_deadline: self.purchase.start_deadline,
                    pair: Some(number),
                });
            }
        }
        let spent = asks.iter().map(|ask| self.seen.spent(ask)).sum();
        for (index, record) in of.into_iter().zip(read_records(self.seen, asks)?) {
            racers[index].trials.push(record);
        }
        Ok(spent)
    }

    fn prove_adopted(&self, mut tuned: TunedOptions, found: &Configuration) -> Next<TunedOptions> {
        if !tuned.has_changed {
            return Ok(tuned);
        }
        let (wanted, deadline) = (self.purchase.prove, self.purchase.start_deadline);
        let (proofs, spent) = prove_size(&tuned.configuration, wanted, deadline, self.seen)?;
        tuned.spent += spent;
        let count = ProofCount::from_verdicts(proofs.iter().map(|t| t.verdict));
        if let Some(why) = why_unproven(wanted, count) {
            tuned.configuration = found.clone();
            tuned.has_changed = false;
            tuned.compared.iter_mut().for_each(|c| c.is_adopted = false);
            let why = format!("of options that were better in pairs none is adopted: {why}");
            tuned.left_out.push(why);
        }
        tuned.trials.extend(proofs);
        Ok(tuned)
    }
}

#[derive(Debug, Clone, Copy)]
struct StageRounds {
    stage: TuningStage,
    index: u32,
    pairs: u32,
}

struct Racer {
    candidate: OptionCandidate,
    configuration: Configuration,
    trials: Vec<Arc<TrialRecord>>,
    is_dropped: bool,
}

fn racers(base: &Configuration, open: Vec<OptionCandidate>) -> Vec<Racer> {
    let reference = OptionCandidate {
        label: String::new(),
        options: Vec::new(),
    };
    let racer = |candidate: OptionCandidate| Racer {
        configuration: with_candidate(base, &candidate),
        candidate,
        trials: Vec::new(),
        is_dropped: false,
    };
    [reference].into_iter().chain(open).map(racer).collect()
}

fn conclude(racers: Vec<Racer>, stage: TuningStage, seed: u64, spent: Duration) -> EndedStage {
    let Some((reference, others)) = racers.split_first() else {
        return EndedStage::default();
    };
    let among = (stage, others.len());
    let compared =
        |r: &Racer| compare_candidate(among, &r.candidate, &r.trials, &reference.trials, seed);
    let mut compared: Vec<ComparedCandidate> = others.iter().map(compared).collect();
    let best = adopt(&mut compared);
    EndedStage {
        compared,
        adopted: best.map(|best| others[best].configuration.clone()),
        trials: racers.into_iter().map(|r| r.trials).collect(),
        left_out: None,
        spent,
    }
}

/// The worse half of many candidates: failed ones first, then by CPU time. A trial that could not
/// be measured does not count.
fn worse_half(racers: &[Racer]) -> Vec<bool> {
    let others = racers.len().saturating_sub(1);
    let mut dropped = vec![false; racers.len()];
    if others <= FEW {
        return dropped;
    }
    let cost = |r: &Racer| {
        let counted = || r.trials.iter().filter(|t| t.verdict.is_evidence());
        let costs: Vec<f64> = counted().filter_map(|t| cpu_per_request(t)).collect();
        if counted().all(|t| t.verdict == TrialVerdict::Pass) {
            // Nothing measured: before the failed ones, after the known ones.
            median(&costs).unwrap_or(f64::MAX)
        } else {
            f64::INFINITY
        }
    };
    let mut order: Vec<(usize, f64)> = (1..racers.len()).map(|i| (i, cost(&racers[i]))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    for (index, _) in order.into_iter().skip(others.div_ceil(2)) {
        dropped[index] = true;
    }
    dropped
}

fn with_candidate(base: &Configuration, candidate: &OptionCandidate) -> Configuration {
    let mut next = base.clone();
    let option = |text: &String| JvmOption {
        text: text.clone(),
        provenance: ValueProvenance::Measured,
    };
    let options = candidate.options.iter().map(option);
    next.jvm_options.extend(options);
    if !candidate.label.is_empty() {
        next.label = format!("{} {}", base.label, candidate.label);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::InvalidReason;

    #[test]
    fn a_disturbed_candidate_is_dropped_after_those_that_failed() {
        let (pass, noise) = (
            TrialVerdict::Pass,
            TrialVerdict::Invalid(InvalidReason::Noise),
        );
        let trial = |verdict| {
            Arc::new(fixture::trial_record(
                "t",
                TrialPurpose::Compare,
                256,
                verdict,
            ))
        };
        let racer = |second: TrialVerdict| Racer {
            candidate: OptionCandidate {
                label: String::new(),
                options: Vec::new(),
            },
            configuration: fixture::configuration(256),
            trials: vec![trial(pass), trial(second)],
            is_dropped: false,
        };
        // The reference, four that failed, then four of which one trial each was disturbed.
        let miss = TrialVerdict::SloMiss;
        let verdicts = [pass, miss, miss, miss, miss, noise, noise, noise, noise];
        let racers: Vec<Racer> = verdicts.into_iter().map(racer).collect();
        let (t, f) = (true, false);
        assert_eq!(worse_half(&racers), [f, t, t, t, t, f, f, f, f]);
    }
}
