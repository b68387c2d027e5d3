//! `size --prices`: the cheapest size times replicas that carries the rate, proven.
//!
//! Owns the order of its parts: the cheapest deployment ([`cheapest`](super::cheapest)'s rules),
//! options in pairs where that was asked for ([`tune`](super::tune)), then less memory where less
//! is billed for less ([`refine`](super::refine)); and when the budget ends. One instance runs at a
//! time in a trial, at its share of the rate: replicas do not share a machine.
//!
//! The budget counts the lengths of the trials that were read, in their order, so it ends the
//! search at the same trial wherever it runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::ahead::{self, Machine};
use super::cheapest::{Cheapest, End, Question, Step};
use super::lattice::Choice;
use super::purchase::Purchase;
use super::refine::Refined;
use super::tune::{Comparisons, Stages, Tuned};
use super::{Ask, Next, Open, Outcome, Search, Seen};
use crate::deployment::Asked;
use crate::record::{Configuration, Purpose};

/// The whole search.
#[derive(Debug)]
pub struct Prices {
    /// What it is asked.
    pub purchase: Purchase,
    /// Stages of comparisons that have ended.
    compared: Stages,
}

impl Prices {
    /// A search that has seen nothing.
    pub fn new(purchase: Purchase) -> Self {
        let compared = Stages::default();
        Self { purchase, compared }
    }
}

/// The search for the cheapest deployment, or as far as the budget went.
#[derive(Debug, Clone)]
pub struct Searched {
    /// The search at its end.
    pub search: Cheapest,
    /// How it ended.
    pub end: End,
    /// Every trial, in order.
    pub asked: Vec<Asked>,
    /// Length of its trials with all their attempts.
    pub spent: Duration,
}

/// What [`Prices`] comes to.
#[derive(Debug, Clone)]
pub struct Priced {
    /// The search for the cheapest deployment.
    pub searched: Searched,
    /// What was found; `None` where nothing was.
    pub found: Option<Found>,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
}

/// The cheapest deployment, and what came of it.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub choice: Choice,
    /// Its fresh starts were enough and kept the SLO.
    pub is_proven: bool,
    /// The configuration of one replica as the search found it.
    pub configuration: Configuration,
    /// The comparison of options in it, where there was one.
    pub tuned: Option<Tuned>,
    /// The search for less memory in it.
    pub refined: Refined,
}

impl Search for Prices {
    type Answer = Priced;

    fn next(&self, seen: &Seen) -> Next<Priced> {
        let searched = self.cheapest(seen)?;
        let mut left_out = self.purchase.left_out.clone();
        let End::Found { choice, is_proven } = searched.end else {
            let found = None;
            return Ok(Priced {
                searched,
                found,
                left_out,
            });
        };
        let configuration = self.configuration(&searched.search, choice.cell, choice.replicas);
        let mut spent = searched.spent;
        // What is not proven as it was found is neither tuned nor searched with less memory.
        let tuned = match (is_proven, self.purchase.pricing.compare) {
            (true, Some(pairs)) => self.tuned(
                &searched,
                choice,
                &configuration,
                pairs,
                &mut left_out,
                seen,
            )?,
            (false, Some(_)) => {
                left_out.push("options were not compared: the answer is not proven".to_owned());
                None
            }
            (_, None) => None,
        };
        spent += tuned.as_ref().map_or(Duration::ZERO, |t| t.spent);
        let best = tuned.as_ref().map_or(&configuration, |t| &t.configuration);
        let refined = match is_proven {
            true => {
                let started = searched.asked.iter().map(|asked| &*asked.record);
                self.purchase.refine(best, started, spent, seen)?
            }
            false => Refined::AsFound(None),
        };
        if let Refined::AsFound(Some(why)) = &refined {
            left_out.push(why.clone());
        }
        let found = Some(Found {
            choice,
            is_proven,
            configuration,
            tuned,
            refined,
        });
        Ok(Priced {
            searched,
            found,
            left_out,
        })
    }
}

impl Prices {
    /// The search for the cheapest deployment alone.
    pub(super) fn cheapest(&self, seen: &Seen) -> Next<Searched> {
        let rules = Cheapest::new(
            self.purchase.cells.clone(),
            self.purchase.pricing.parameters.clone(),
            self.purchase.prove,
        );
        let mut steps = Steps {
            prices: self,
            rules,
            repeats: HashMap::new(),
        };
        let (mut asked, mut spent) = (Vec::new(), Duration::ZERO);
        while let Step::Try(question) = steps.rules.next() {
            let each = self.typical_length(&asked);
            let is_proof = question.purpose == Purpose::Prove;
            // It leaves room for the proof of what it has found; while that is nothing, there is
            // nothing to leave room for.
            let reserve = if is_proof {
                0
            } else {
                steps.rules.proofs_left()
            };
            if !self
                .purchase
                .has_room(spent, each.saturating_mul(reserve + 1))
            {
                if is_proof {
                    break;
                }
                steps.rules.close();
                continue;
            }
            let ask = steps.ask(&question);
            let Some(record) = seen.get(&ask) else {
                return Err(steps.open(&question, ask, (spent, each), seen));
            };
            spent += seen.spent(&ask);
            steps.take(Outcome::from(record.verdict));
            asked.push(Asked {
                question,
                record: Arc::clone(record),
            });
        }
        Ok(Searched {
            end: steps.rules.end(),
            search: steps.rules,
            asked,
            spent,
        })
    }

    /// The configuration of one replica: the variant at a cell's size and its share of the rate.
    fn configuration(&self, search: &Cheapest, cell: usize, replicas: u32) -> Configuration {
        let cell = search.lattice().cells()[cell];
        let base = &self.purchase.variants[cell.variant as usize].configuration;
        let size = cell.size;
        let label = match base.label.as_str() {
            "" | "as given" => format!("{} {}", size.cpu, size.memory),
            label => format!("{label} {} {}", size.cpu, size.memory),
        };
        Configuration {
            label,
            cpu: Some(size.cpu),
            memory: Some(size.memory),
            rate: Some(self.purchase.pricing.parameters.rate_of_each(replicas)),
            ..base.clone()
        }
    }

    /// The comparison of options in the size that was found, where the JVM's options are known.
    fn tuned(
        &self,
        searched: &Searched,
        choice: Choice,
        found: &Configuration,
        pairs: u32,
        left_out: &mut Vec<String>,
        seen: &Seen,
    ) -> Next<Option<Tuned>> {
        let cell = searched.search.lattice().cells()[choice.cell];
        let Some(jdk) = self.purchase.variants[cell.variant as usize].jdk else {
            let why = "options were not compared: loadline does not know which HotSpot JVM this command starts";
            left_out.push(why.to_owned());
            return Ok(None);
        };
        let comparisons = Comparisons {
            purchase: &self.purchase,
            known: &self.compared,
        };
        let tuned = comparisons.tune(found, jdk, pairs, searched.spent, seen)?;
        left_out.extend(tuned.left_out.iter().cloned());
        Ok(Some(tuned))
    }

    /// Length of one trial: the mean of those that ran, a guess before.
    fn typical_length(&self, asked: &[Asked]) -> Duration {
        let all: Duration = asked.iter().map(|a| a.record.length()).sum();
        match u32::try_from(asked.len()) {
            Ok(n) if n > 0 => all / n,
            _ => self.purchase.trial_length,
        }
    }
}

/// The search for the cheapest deployment between two trials.
#[derive(Debug, Clone)]
struct Steps<'a> {
    prices: &'a Prices,
    rules: Cheapest,
    repeats: HashMap<(usize, u32, Purpose), u32>,
}

impl Steps<'_> {
    fn ask(&self, question: &Question) -> Ask {
        let key = (question.cell, question.replicas, question.purpose);
        let prices = self.prices;
        Ask {
            configuration: prices.configuration(&self.rules, question.cell, question.replicas),
            purpose: question.purpose,
            repeat: self.repeats.get(&key).copied().unwrap_or(0) + 1,
            start_deadline: prices.purchase.start_deadline,
            pair: None,
        }
    }

    /// `budget` is what was spent and what one more trial takes.
    fn open(
        &self,
        question: &Question,
        ask: Ask,
        (spent, one): (Duration, Duration),
        seen: &Seen,
    ) -> Open {
        let more = match question.purpose {
            Purpose::Prove => self.rules.proofs_left().max(1),
            _ => 1,
        };
        let again = |n| Ask {
            repeat: ask.repeat + n,
            ..ask.clone()
        };
        let has_room = |n: &u32| {
            *n == 0
                || self
                    .prices
                    .purchase
                    .has_room(spent, one.saturating_mul(n + 1))
        };
        let wanted = (0..more).take_while(has_room).map(again);
        let wanted: Vec<Ask> = wanted.filter(|a| seen.get(a).is_none()).collect();
        // A guess that was wrong is time of a machine, and so is the budget.
        let guesses = match self.prices.purchase.pricing.budget {
            Some(_) => Vec::new(),
            None => ahead::guesses(self, seen, &wanted),
        };
        Open { wanted, guesses }
    }
}

impl Machine for Steps<'_> {
    fn wants(&self) -> Option<Ask> {
        match self.rules.next() {
            Step::Try(question) => Some(self.ask(&question)),
            Step::Done(_) => None,
        }
    }

    fn take(&mut self, outcome: Outcome) {
        let Step::Try(question) = self.rules.next() else {
            return;
        };
        let key = (question.cell, question.replicas, question.purpose);
        *self.repeats.entry(key).or_default() += 1;
        self.rules.record(outcome);
    }

    fn chance(&self) -> f64 {
        match self.rules.next() {
            Step::Try(question) if question.purpose == Purpose::Prove => 0.9,
            _ => 0.5,
        }
    }
}
