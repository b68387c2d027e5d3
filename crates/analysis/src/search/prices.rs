//! `size --prices`: the cheapest size times replicas that carries the rate, proven.
//!
//! Owns the order of its parts: the cheapest deployment ([`search_cheapest`](super::cheapest)'s rules),
//! options in pairs where that was asked for ([`tune`](super::tune)), then less memory where less
//! is billed for less ([`refine`](super::refine)); and when the budget ends. One instance runs at a
//! time in a trial, at its share of the rate: replicas do not share a machine.
//!
//! The budget counts the lengths of the trials that were read, in their order, so it ends the
//! search at the same trial wherever it runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::ahead::{self, SearchMachine};
use super::cheapest::{CellQuestion, CheapestEnd, CheapestSearch, CheapestStep};
use super::lattice::CellChoice;
use super::purchase::Purchase;
use super::refine::MemoryRefinement;
use super::size::labelled;
use super::tune::{OptionComparisons, StageCache, TunedOptions};
use super::{Next, SeenTrials, TrialAsk, TrialOutcome, TrialSearch, WantedTrials};
use crate::deployment::AskedTrial;
use crate::record::{Configuration, TrialPurpose};

#[derive(Debug)]
pub struct PriceSearch {
    pub purchase: Purchase,
    compared: StageCache,
}

impl PriceSearch {
    pub fn new(purchase: Purchase) -> Self {
        let compared = StageCache::default();
        Self { purchase, compared }
    }
}

#[derive(Debug, Clone)]
pub struct SearchedPrices {
    pub search: CheapestSearch,
    pub end: CheapestEnd,
    pub asked: Vec<AskedTrial>,
    pub spent: Duration,
}

#[derive(Debug, Clone)]
pub struct PriceAnswer {
    pub searched: SearchedPrices,
    pub found: Option<FoundDeployment>,
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct FoundDeployment {
    pub choice: CellChoice,
    pub is_proven: bool,
    pub configuration: Configuration,
    pub tuned: Option<TunedOptions>,
    pub refined: MemoryRefinement,
}

impl TrialSearch for PriceSearch {
    type Answer = PriceAnswer;

    fn next(&self, seen: &SeenTrials) -> Next<PriceAnswer> {
        let searched = self.search_cheapest(seen)?;
        let mut left_out = self.purchase.left_out.clone();
        let CheapestEnd::Found { choice, is_proven } = searched.end else {
            return Ok(PriceAnswer {
                searched,
                found: None,
                left_out,
            });
        };
        let configuration =
            self.replica_configuration(&searched.search, choice.cell, choice.replicas);
        let mut spent = searched.spent;
        // An unproven deployment gets neither tuning nor a search for less memory.
        let tuned = match (is_proven, self.purchase.pricing.compare) {
            (true, Some(pairs)) => {
                let found = (choice, &configuration);
                self.tune_options(&searched, found, pairs, &mut left_out, seen)?
            }
            (false, Some(_)) => {
                left_out.push("options were not compared: the answer is not proven".to_owned());
                None
            }
            (_, None) => None,
        };
        spent += tuned.as_ref().map_or(Duration::ZERO, |t| t.spent);
        let best = tuned.as_ref().map_or(&configuration, |t| &t.configuration);
        let refined = if is_proven {
            let started = searched.asked.iter().map(|asked| &*asked.record);
            self.purchase.refine(best, started, spent, seen)?
        } else {
            MemoryRefinement::AsFound(None)
        };
        if let MemoryRefinement::AsFound(Some(why)) = &refined {
            left_out.push(why.clone());
        }
        let found = Some(FoundDeployment {
            choice,
            is_proven,
            configuration,
            tuned,
            refined,
        });
        Ok(PriceAnswer {
            searched,
            found,
            left_out,
        })
    }
}

impl PriceSearch {
    pub(super) fn search_cheapest(&self, seen: &SeenTrials) -> Next<SearchedPrices> {
        let bought = &self.purchase;
        let (cells, parameters) = (bought.cells.clone(), bought.pricing.parameters.clone());
        let rules = CheapestSearch::new(cells, parameters, bought.prove);
        let mut steps = PriceSteps {
            prices: self,
            rules,
            repeats: HashMap::new(),
        };
        let (mut asked, mut spent) = (Vec::new(), Duration::ZERO);
        while let CheapestStep::Try(question) = steps.rules.next() {
            let each = self.typical_length(&asked);
            let is_proof = question.purpose == TrialPurpose::Prove;
            // It leaves room for the proof of what it has found; while that is nothing, there is
            // nothing to leave room for.
            let reserve = if is_proof {
                0
            } else {
                steps.rules.proofs_left()
            };
            let needed = each.saturating_mul(reserve + 1);
            let has_room = self.purchase.has_room(spent, needed);
            if !has_room && is_proof {
                break;
            }
            if !has_room {
                steps.rules.close_questions();
                continue;
            }
            let ask = steps.question_ask(&question);
            let Some(record) = seen.record_for(&ask) else {
                return Err(steps.wanted_trials(&question, ask, (spent, each), seen));
            };
            spent += seen.spent(&ask);
            steps.take_outcome(TrialOutcome::from(record.verdict));
            asked.push(AskedTrial {
                question,
                record: Arc::clone(record),
            });
        }
        Ok(SearchedPrices {
            end: steps.rules.current_end(),
            search: steps.rules,
            asked,
            spent,
        })
    }

    fn replica_configuration(
        &self,
        search: &CheapestSearch,
        cell: usize,
        replicas: u32,
    ) -> Configuration {
        let cell = search.lattice().cells()[cell];
        let base = &self.purchase.variants[cell.variant as usize].configuration;
        let size = cell.size;
        Configuration {
            label: labelled(&base.label, &format!("{} {}", size.cpu, size.memory)),
            cpu: Some(size.cpu),
            memory: Some(size.memory),
            rate: Some(self.purchase.pricing.parameters.rate_of_each(replicas)),
            ..base.clone()
        }
    }

    fn tune_options(
        &self,
        searched: &SearchedPrices,
        (choice, found): (CellChoice, &Configuration),
        pairs: u32,
        left_out: &mut Vec<String>,
        seen: &SeenTrials,
    ) -> Next<Option<TunedOptions>> {
        let cell = searched.search.lattice().cells()[choice.cell];
        let Some(jdk) = self.purchase.variants[cell.variant as usize].jdk else {
            let why = "options were not compared: loadline does not know which HotSpot JVM this command starts";
            left_out.push(why.to_owned());
            return Ok(None);
        };
        let comparisons = OptionComparisons {
            purchase: &self.purchase,
            known: &self.compared,
            pairs,
            spent: searched.spent,
            seen,
        };
        let tuned = comparisons.tune(found, jdk)?;
        left_out.extend(tuned.left_out.iter().cloned());
        Ok(Some(tuned))
    }

    /// Length of one trial: the mean so far, a guess before the first.
    fn typical_length(&self, asked: &[AskedTrial]) -> Duration {
        let all: Duration = asked.iter().map(|a| a.record.total_length()).sum();
        match u32::try_from(asked.len()) {
            Ok(n) if n > 0 => all / n,
            _ => self.purchase.trial_length,
        }
    }
}

#[derive(Debug, Clone)]
struct PriceSteps<'a> {
    prices: &'a PriceSearch,
    rules: CheapestSearch,
    repeats: HashMap<(usize, u32, TrialPurpose), u32>,
}

impl PriceSteps<'_> {
    fn question_ask(&self, question: &CellQuestion) -> TrialAsk {
        let (cell, replicas, purpose) = (question.cell, question.replicas, question.purpose);
        let known = self.repeats.get(&(cell, replicas, purpose));
        let repeat = known.copied().unwrap_or(0) + 1;
        let prices = self.prices;
        let configuration = prices.replica_configuration(&self.rules, cell, replicas);
        let deadline = prices.purchase.start_deadline;
        TrialAsk::new(configuration, purpose, repeat, deadline)
    }

    /// `budget` holds the time spent and the expected length of one more trial.
    fn wanted_trials(
        &self,
        question: &CellQuestion,
        ask: TrialAsk,
        (spent, one): (Duration, Duration),
        seen: &SeenTrials,
    ) -> WantedTrials {
        let more = match question.purpose {
            TrialPurpose::Prove => self.rules.proofs_left().max(1),
            _ => 1,
        };
        let purchase = &self.prices.purchase;
        let has_room = |n: &u32| *n == 0 || purchase.has_room(spent, one.saturating_mul(n + 1));
        let affordable = (0..more).take_while(has_room).count();
        let mut open = WantedTrials::missing(ask.repeats(affordable as u32), seen);
        // A guess that was wrong is time of a machine, and so is the budget.
        if purchase.pricing.budget.is_none() {
            open.guesses = ahead::guesses(self, seen, &open.wanted);
        }
        open
    }
}

impl SearchMachine for PriceSteps<'_> {
    fn wanted_ask(&self) -> Option<TrialAsk> {
        match self.rules.next() {
            CheapestStep::Try(question) => Some(self.question_ask(&question)),
            CheapestStep::Done(_) => None,
        }
    }

    fn take_outcome(&mut self, outcome: TrialOutcome) {
        let CheapestStep::Try(question) = self.rules.next() else {
            return;
        };
        let key = (question.cell, question.replicas, question.purpose);
        *self.repeats.entry(key).or_default() += 1;
        self.rules.record_outcome(outcome);
    }

    fn pass_chance(&self) -> f64 {
        match self.rules.next() {
            CheapestStep::Try(question) if question.purpose == TrialPurpose::Prove => 0.9,
            _ => 0.5,
        }
    }
}
