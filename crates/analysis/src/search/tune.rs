//! After the cheapest size is found: collectors, flags and heaps in it, compared in pairs.
//!
//! Owns the order of the trials: in each round every candidate and what it would replace run once
//! on one slot, forwards and backwards in turn (A B, B A), so that a drift of the machine falls on
//! both sides. After two rounds the worse half of many candidates is dropped (successive halving).
//! What is adopted, and the heap by the price rule, are [`tuning`](crate::tuning)'s. The winner has
//! a proof of its own; where it fails, nothing is adopted.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use loadline_sizing::jdk::Jdk;
use loadline_sizing::options::Options;

use super::purchase::Purchase;
use super::size::prove;
use super::{Ask, Next, Seen, each};
use crate::interval::median;
use crate::proof::{Count, unproven};
use crate::record::{Configuration, JvmOption, Provenance, Purpose, TrialRecord, Verdict};
use crate::tuning::{
    Candidate, Compared, Stage, adopt, candidates, compare, cpu_per_request, heap_by_price,
};

/// Rounds before the worse half is dropped.
const ROUNDS_BEFORE_HALVING: u32 = 2;

/// So many candidates are never halved.
const FEW: usize = 6;

/// What the comparisons came to.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// The configuration with what was adopted; the one that was given where nothing was.
    pub configuration: Configuration,
    /// Whether anything was.
    pub has_changed: bool,
    /// Every candidate.
    pub compared: Vec<Compared>,
    /// The trials of the comparisons and of the proof.
    pub trials: Vec<Arc<TrialRecord>>,
    /// Stages that did not run, and why.
    pub left_out: Vec<String>,
    /// Length of the trials with all their attempts.
    pub spent: Duration,
}

/// What was computed of each stage: records never change, and histograms and intervals take long.
#[derive(Debug, Default)]
pub struct Stages([Known; 4]);

/// What is known of a stage.
#[derive(Debug, Default)]
struct Known {
    /// Which of its racers stop after the first rounds.
    dropped: OnceCell<Vec<bool>>,
    ended: OnceCell<Ended>,
}

/// A stage at its end.
#[derive(Debug, Clone, Default)]
struct Ended {
    compared: Vec<Compared>,
    adopted: Option<Configuration>,
    /// Of the reference and of each candidate.
    trials: Vec<Vec<Arc<TrialRecord>>>,
    left_out: Option<String>,
    spent: Duration,
}

/// The comparisons of one search.
pub(super) struct Comparisons<'a> {
    /// What the search is asked.
    pub purchase: &'a Purchase,
    /// What was computed before.
    pub known: &'a Stages,
}

impl Comparisons<'_> {
    /// Compares what the JDK offers in so many pairs each; `spent` was spent before.
    pub(super) fn tune(
        &self,
        found: &Configuration,
        jdk: Jdk,
        pairs: u32,
        spent: Duration,
        seen: &Seen,
    ) -> Next<Tuned> {
        let mut tuned = Tuned {
            configuration: found.clone(),
            has_changed: false,
            compared: Vec::new(),
            trials: Vec::new(),
            left_out: Vec::new(),
            spent: Duration::ZERO,
        };
        let mut heaps = Vec::new();
        for (index, stage) in (0_u32..).zip(Stage::PLANNED) {
            let open = candidates(stage, jdk, &self.options(&tuned.configuration));
            let round = Rounds::new(stage, index, pairs);
            heaps = self.stage(&mut tuned, round, open, spent, seen)?;
        }
        let price = &self.purchase.pricing.offer.price;
        let memory_price = match self.purchase.pricing.offer.bills_any_memory {
            true => price.gib_hour,
            false => 0.0,
        };
        if let Some(heap) = heap_by_price(&heaps, price.vcpu_hour, memory_price) {
            let candidate = Candidate {
                label: format!("heap {heap} MiB"),
                options: vec![format!("-Xmx{heap}m")],
            };
            let index = Stage::PLANNED.len() as u32;
            let round = Rounds::new(Stage::PriceRule, index, pairs);
            self.stage(&mut tuned, round, vec![candidate], spent, seen)?;
        }
        self.proven(tuned, found, seen)
    }

    /// The options that the user gave or that were adopted before.
    fn options(&self, configuration: &Configuration) -> Options {
        let own = configuration.jvm_options.iter().map(|o| o.text.clone());
        let args = configuration.args.iter().cloned();
        let environment = configuration.env.values();
        let words = environment.flat_map(|text| text.split_whitespace().map(str::to_owned));
        Options::from_words(
            self.purchase
                .words
                .iter()
                .cloned()
                .chain(args)
                .chain(own)
                .chain(words),
        )
    }

    /// Runs a stage and adopts its winner; the trials of the reference and of each candidate.
    fn stage(
        &self,
        tuned: &mut Tuned,
        rounds: Rounds,
        open: Vec<Candidate>,
        spent: Duration,
        seen: &Seen,
    ) -> Next<Vec<Vec<Arc<TrialRecord>>>> {
        let known = &self.known.0[rounds.index as usize].ended;
        let ended = match known.get() {
            Some(ended) => ended,
            None => {
                let spent = spent + tuned.spent;
                let ended = self.ended(&tuned.configuration, rounds, open, spent, seen)?;
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

    fn ended(
        &self,
        reference: &Configuration,
        rounds: Rounds,
        open: Vec<Candidate>,
        spent: Duration,
        seen: &Seen,
    ) -> Next<Ended> {
        if open.is_empty() {
            return Ok(Ended::default());
        }
        let trials = u32::try_from(open.len() + 1).unwrap_or(u32::MAX);
        let wanted = trials
            .saturating_mul(rounds.pairs)
            .saturating_add(self.purchase.prove);
        if !self
            .purchase
            .has_room(spent, self.purchase.trial_length.saturating_mul(wanted))
        {
            let name = rounds.stage.name();
            let why = format!("{name}: not compared in pairs, the budget was spent");
            return Ok(Ended {
                left_out: Some(why),
                ..Ended::default()
            });
        }
        let mut racers = racers(reference, open);
        let mut spent = Duration::ZERO;
        let halving = rounds.pairs.min(ROUNDS_BEFORE_HALVING);
        spent += self.run(&mut racers, rounds, 1..=halving, seen)?;
        if rounds.pairs >= ROUNDS_BEFORE_HALVING {
            let known = &self.known.0[rounds.index as usize].dropped;
            let dropped = known.get_or_init(|| worse_half(&racers));
            for (racer, is_dropped) in racers.iter_mut().zip(dropped) {
                racer.is_dropped = *is_dropped;
            }
        }
        spent += self.run(&mut racers, rounds, halving + 1..=rounds.pairs, seen)?;
        Ok(conclude(racers, rounds.stage, self.purchase.seed, spent))
    }

    /// Runs some rounds of those that are not dropped; the length of their trials.
    fn run(
        &self,
        racers: &mut [Racer],
        rounds: Rounds,
        range: std::ops::RangeInclusive<u32>,
        seen: &Seen,
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
                asks.push(Ask {
                    configuration: racers[index].configuration.clone(),
                    purpose: Purpose::Compare,
                    repeat: number,
                    start_deadline: self.purchase.start_deadline,
                    pair: Some(number),
                });
            }
        }
        let spent = asks.iter().map(|ask| seen.spent(ask)).sum();
        for (index, record) in of.into_iter().zip(each(seen, asks)?) {
            racers[index].trials.push(record);
        }
        Ok(spent)
    }

    /// What was adopted is proven by fresh starts, or given up.
    fn proven(&self, mut tuned: Tuned, found: &Configuration, seen: &Seen) -> Next<Tuned> {
        if !tuned.has_changed {
            return Ok(tuned);
        }
        let Purchase {
            prove: wanted,
            start_deadline,
            ..
        } = *self.purchase;
        let (proofs, spent) = prove(&tuned.configuration, wanted, start_deadline, seen)?;
        tuned.spent += spent;
        let count = Count::of(proofs.iter().map(|t| t.verdict));
        if let Some(why) = unproven(wanted, count) {
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

/// The rounds of one stage: repeats are numbered on from those of the stages before.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    stage: Stage,
    index: u32,
    pairs: u32,
}

impl Rounds {
    fn new(stage: Stage, index: u32, pairs: u32) -> Self {
        Self {
            stage,
            index,
            pairs,
        }
    }
}

/// A candidate on its way; the first is the reference.
struct Racer {
    candidate: Candidate,
    configuration: Configuration,
    trials: Vec<Arc<TrialRecord>>,
    is_dropped: bool,
}

fn racers(base: &Configuration, open: Vec<Candidate>) -> Vec<Racer> {
    let reference = Candidate {
        label: String::new(),
        options: Vec::new(),
    };
    let racer = |candidate: Candidate| Racer {
        configuration: with(base, &candidate),
        candidate,
        trials: Vec::new(),
        is_dropped: false,
    };
    [reference].into_iter().chain(open).map(racer).collect()
}

fn conclude(racers: Vec<Racer>, stage: Stage, seed: u64, spent: Duration) -> Ended {
    let Some((reference, others)) = racers.split_first() else {
        return Ended::default();
    };
    let among = (stage, others.len());
    let compared = |r: &Racer| compare(among, &r.candidate, &r.trials, &reference.trials, seed);
    let mut compared: Vec<Compared> = others.iter().map(compared).collect();
    let best = adopt(&mut compared);
    Ended {
        compared,
        adopted: best.map(|best| others[best].configuration.clone()),
        trials: racers.into_iter().map(|r| r.trials).collect(),
        left_out: None,
        spent,
    }
}

/// Which are the worse half of many: those that failed first, then by the CPU they took. A trial
/// that could not be measured says nothing of its candidate.
fn worse_half(racers: &[Racer]) -> Vec<bool> {
    let others = racers.len().saturating_sub(1);
    let mut dropped = vec![false; racers.len()];
    if others <= FEW {
        return dropped;
    }
    let cost = |r: &Racer| {
        let counted = || r.trials.iter().filter(|t| t.verdict.is_evidence());
        let costs: Vec<f64> = counted().filter_map(|t| cpu_per_request(t)).collect();
        match counted().all(|t| t.verdict == Verdict::Pass) {
            // Nothing measured: before those that failed, behind those that are known.
            true => median(&costs).unwrap_or(f64::MAX),
            false => f64::INFINITY,
        }
    };
    let mut order: Vec<(usize, f64)> = (1..racers.len()).map(|i| (i, cost(&racers[i]))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    for (index, _) in order.into_iter().skip(others.div_ceil(2)) {
        dropped[index] = true;
    }
    dropped
}

/// The configuration with a candidate's options behind its own.
fn with(base: &Configuration, candidate: &Candidate) -> Configuration {
    let mut next = base.clone();
    let option = |text: &String| JvmOption {
        text: text.clone(),
        provenance: Provenance::Measured,
    };
    next.jvm_options
        .extend(candidate.options.iter().map(option));
    if !candidate.label.is_empty() {
        next.label = format!("{} {}", base.label, candidate.label);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::Invalid;

    #[test]
    fn a_disturbed_candidate_is_dropped_after_those_that_failed() {
        let (pass, noise) = (Verdict::Pass, Verdict::Invalid(Invalid::Noise));
        let trial = |verdict| Arc::new(fixture::trial("t", Purpose::Compare, 256, verdict));
        let racer = |second: Verdict| Racer {
            candidate: Candidate {
                label: String::new(),
                options: Vec::new(),
            },
            configuration: fixture::configuration(256),
            trials: vec![trial(pass), trial(second)],
            is_dropped: false,
        };
        // The reference, four that failed, then four of which one trial each was disturbed.
        let miss = Verdict::SloMiss;
        let verdicts = [pass, miss, miss, miss, miss, noise, noise, noise, noise];
        let racers: Vec<Racer> = verdicts.into_iter().map(racer).collect();
        let (t, f) = (true, false);
        assert_eq!(worse_half(&racers), [f, t, t, t, t, f, f, f, f]);
    }
}
