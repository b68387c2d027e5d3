//! After the cheapest size is found: collectors, flags and heaps in it, compared in pairs.
//!
//! Owns the order of the trials: in each round every candidate and what it would replace run once,
//! forwards and backwards in turn (A B, B A), so that a drift of the machine falls on both sides.
//! After two rounds the worse half of many candidates is dropped (successive halving). What is
//! adopted, and the heap by the price rule, are `loadline_analysis::tuning`'s. The winner has a
//! proof of its own; where it fails, nothing is adopted.

use std::time::Duration;

use loadline_analysis::interval::median;
use loadline_analysis::record::{
    Configuration, JvmOption, Provenance, Purpose, TrialRecord, Verdict,
};
use loadline_analysis::tuning::{
    Candidate, Compared, Stage, adopt, candidates, compare, cpu_per_request, heap_by_price,
};
use loadline_sizing::jdk::Jdk;
use loadline_sizing::options::Options;

use crate::experiment::Pricing;
use crate::plan::trial_length;
use crate::refine::unproven;
use crate::session::{Session, SessionError};
use crate::size::prove;

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
    pub trials: Vec<TrialRecord>,
    /// Stages that did not run, and why.
    pub left_out: Vec<String>,
}

/// Compares what the JDK offers in so many pairs each.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store and is not run again by the next call.
pub fn tune(
    session: &mut Session<'_>,
    pricing: &Pricing,
    found: &Configuration,
    jdk: Jdk,
    pairs: u32,
) -> Result<Tuned, SessionError> {
    let mut tuned = Tuned {
        configuration: found.clone(),
        has_changed: false,
        compared: Vec::new(),
        trials: Vec::new(),
        left_out: Vec::new(),
    };
    let mut heaps = Vec::new();
    let mut first = 0;
    for stage in Stage::PLANNED {
        let open = candidates(stage, jdk, &options(session, &tuned.configuration));
        let round = Round {
            stage,
            first,
            pairs,
        };
        first += pairs;
        let trials = tuned.stage(session, pricing.budget, round, open)?;
        if stage == Stage::Heap {
            heaps = trials;
        }
    }
    let memory_price = match pricing.offer.bills_any_memory {
        true => pricing.offer.price.gib_hour,
        false => 0.0,
    };
    if let Some(heap) = heap_by_price(&heaps, pricing.offer.price.vcpu_hour, memory_price) {
        let candidate = Candidate {
            label: format!("heap {heap} MiB"),
            options: vec![format!("-Xmx{heap}m")],
        };
        let round = Round {
            stage: Stage::PriceRule,
            first,
            pairs,
        };
        tuned.stage(session, pricing.budget, round, vec![candidate])?;
    }
    tuned.proven(session, found)
}

/// The options that the user gave or that were adopted before.
fn options(session: &Session<'_>, configuration: &Configuration) -> Options {
    let app = &session.experiment.app;
    let own = configuration.jvm_options.iter().map(|o| o.text.clone());
    let command = app.command.iter().chain(&configuration.args).cloned();
    let environment = app.env.values().chain(configuration.env.values());
    let words = environment.flat_map(|text| text.split_whitespace().map(str::to_owned));
    Options::from_words(command.chain(own).chain(words))
}

/// One stage: repeats are numbered on from those of the stages before.
#[derive(Debug, Clone, Copy)]
struct Round {
    stage: Stage,
    first: u32,
    pairs: u32,
}

/// A candidate on its way; the first is the reference.
struct Runner {
    candidate: Candidate,
    configuration: Configuration,
    trials: Vec<TrialRecord>,
    is_dropped: bool,
}

impl Tuned {
    /// Runs a stage and adopts its winner; the trials of the reference and of each candidate.
    fn stage(
        &mut self,
        session: &mut Session<'_>,
        budget: Option<Duration>,
        round: Round,
        open: Vec<Candidate>,
    ) -> Result<Vec<Vec<TrialRecord>>, SessionError> {
        if open.is_empty() {
            return Ok(Vec::new());
        }
        if !has_room(session, budget, open.len(), round.pairs) {
            let name = round.stage.name();
            let why = format!("{name}: not compared in pairs, the budget was spent");
            self.left_out.push(why);
            return Ok(Vec::new());
        }
        let mut runners = self.runners(open);
        for repeat in 1..=round.pairs {
            let forwards = repeat % 2 == 1;
            let mut order: Vec<usize> = (0..runners.len()).collect();
            if !forwards {
                order.reverse();
            }
            for index in order {
                let runner = &mut runners[index];
                if runner.is_dropped {
                    continue;
                }
                let number = round.first + repeat;
                let record = session.trial(&runner.configuration, Purpose::Compare, number)?;
                runner.trials.push(record);
            }
            if repeat == ROUNDS_BEFORE_HALVING {
                halve(&mut runners);
            }
        }
        self.conclude(&runners, round.stage, session.experiment.seed);
        Ok(runners.into_iter().map(|r| r.trials).collect())
    }

    fn runners(&self, open: Vec<Candidate>) -> Vec<Runner> {
        let reference = Candidate {
            label: String::new(),
            options: Vec::new(),
        };
        let runner = |candidate: Candidate| Runner {
            configuration: with(&self.configuration, &candidate),
            candidate,
            trials: Vec::new(),
            is_dropped: false,
        };
        [reference].into_iter().chain(open).map(runner).collect()
    }

    fn conclude(&mut self, runners: &[Runner], stage: Stage, seed: u64) {
        let Some((reference, others)) = runners.split_first() else {
            return;
        };
        let mut compared: Vec<Compared> = others
            .iter()
            .map(|r| {
                compare(
                    (stage, others.len()),
                    &r.candidate,
                    &r.trials,
                    &reference.trials,
                    seed,
                )
            })
            .collect();
        if let Some(best) = adopt(&mut compared) {
            self.configuration = others[best].configuration.clone();
            self.has_changed = true;
        }
        self.compared.extend(compared);
        let trials = runners.iter().flat_map(|r| r.trials.iter().cloned());
        self.trials.extend(trials);
    }

    /// What was adopted is proven by fresh starts, or given up.
    fn proven(
        mut self,
        session: &mut Session<'_>,
        found: &Configuration,
    ) -> Result<Self, SessionError> {
        if !self.has_changed {
            return Ok(self);
        }
        let deadline = session.start_deadline;
        let proofs = prove(session, &self.configuration, deadline)?;
        if let Some(why) = unproven(proofs.iter().map(|t| t.verdict)) {
            self.configuration = found.clone();
            self.has_changed = false;
            self.compared.iter_mut().for_each(|c| c.is_adopted = false);
            let why = format!("of options that were better in pairs none is adopted: {why}");
            self.left_out.push(why);
        }
        self.trials.extend(proofs);
        Ok(self)
    }
}

/// Drops the worse half of many: those that failed first, then by the CPU they took. A trial that
/// could not be measured says nothing of its candidate.
fn halve(runners: &mut [Runner]) {
    let others = runners.len().saturating_sub(1);
    if others <= FEW {
        return;
    }
    let cost = |r: &Runner| {
        let counted = || r.trials.iter().filter(|t| t.verdict.is_evidence());
        let costs: Vec<f64> = counted().filter_map(cpu_per_request).collect();
        match counted().all(|t| t.verdict == Verdict::Pass) {
            // Nothing measured: before those that failed, behind those that are known.
            true => median(&costs).unwrap_or(f64::MAX),
            false => f64::INFINITY,
        }
    };
    let mut order: Vec<(usize, f64)> = (1..runners.len()).map(|i| (i, cost(&runners[i]))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    for (index, _) in order.into_iter().skip(others.div_ceil(2)) {
        runners[index].is_dropped = true;
    }
}

fn has_room(
    session: &Session<'_>,
    budget: Option<Duration>,
    candidates: usize,
    pairs: u32,
) -> bool {
    let trials = u32::try_from(candidates + 1).unwrap_or(u32::MAX);
    let wanted = trials
        .saturating_mul(pairs)
        .saturating_add(session.experiment.search.prove);
    let needed = trial_length(session.experiment).saturating_mul(wanted);
    budget.is_none_or(|budget| session.spent + needed <= budget)
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
    use loadline_analysis::record::{Evidence, Invalid, SCHEMA};

    use super::*;

    fn plain() -> Configuration {
        let text = "slo = \"p99<50ms\"\napp.command = [\"sh\"]\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n";
        let here = std::path::Path::new("/");
        let parsed = crate::experiment::Experiment::parse(text, here, here);
        parsed.expect("it is valid").base
    }

    fn trial(verdict: Verdict) -> TrialRecord {
        TrialRecord {
            schema: SCHEMA,
            id: String::new(),
            result: String::new(),
            purpose: Purpose::Compare,
            configuration: plain(),
            repeat: 1,
            started_at_unix_ms: 0,
            slo: "p99<50ms".parse().expect("an SLO"),
            verdict,
            reason: String::new().into(),
            objectives: Vec::new(),
            evidence: Evidence::default(),
        }
    }

    #[test]
    fn a_disturbed_candidate_is_dropped_after_those_that_failed() {
        let (pass, noise) = (Verdict::Pass, Verdict::Invalid(Invalid::Noise));
        let runner = |second: Verdict| Runner {
            candidate: Candidate {
                label: String::new(),
                options: Vec::new(),
            },
            configuration: plain(),
            trials: vec![trial(pass), trial(second)],
            is_dropped: false,
        };
        // The reference, four that failed, then four of which one trial each was disturbed.
        let miss = Verdict::SloMiss;
        let verdicts = [pass, miss, miss, miss, miss, noise, noise, noise, noise];
        let mut runners: Vec<Runner> = verdicts.into_iter().map(runner).collect();
        halve(&mut runners);
        let dropped: Vec<bool> = runners.iter().map(|r| r.is_dropped).collect();
        let (t, f) = (true, false);
        assert_eq!(dropped, [f, t, t, t, t, f, f, f, f]);
    }
}
