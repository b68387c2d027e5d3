//! The cheapest deployment, proven: which cell, how many replicas, and what the neighbours break.
//!
//! Owns the order of trials of `loadline size --prices`: classify the rates that the lattice asks
//! for (MLRsearch, two trials a rate, half may fail), then the neighbours of the answer, then fresh
//! starts at the answer. A neighbour that passes becomes the answer; an answer whose fresh starts
//! fail is refuted, and the search goes on. The same outcomes lead to the same state, so a stopped
//! search is resumed by giving it the recorded outcomes again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::lattice::{Cell, Choice, Lattice, Parameters};
use super::max_rate::{Bound, Goal, Trial, classify};
use crate::proof::{Count, Standing, standing, unproven};
use crate::record::Purpose;

/// All trials of a search have one length; only shares of it count.
const LENGTH: Duration = Duration::from_secs(1);

/// What the search wants next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Run one instance of this cell at the rate of one of so many replicas.
    Try(Question),
    /// The search is over.
    Done(End),
}

/// What a trial would tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// Index of the cell.
    pub cell: usize,
    /// The replicas that share the rate.
    pub replicas: u32,
    /// Requests a second offered to the one instance that runs.
    pub rate: f64,
    /// Why.
    pub purpose: Purpose,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// With an answer.
    Found {
        /// The answer.
        choice: Choice,
        /// Its fresh starts were enough and kept the SLO.
        is_proven: bool,
    },
    /// No cell carries the rate with the replicas that are allowed.
    Infeasible,
    /// Nothing was found, and something was not looked at: the search was closed, or a rate that
    /// decides could not be measured. That is no proof that there is nothing.
    Unknown,
}

/// A dimension in which a neighbour is cheaper.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// One replica less.
    Replicas,
    /// The next smaller memory at the same CPU.
    Memory,
    /// The next smaller CPU, with the memory nearest to the answer's.
    Cpu,
}

/// The next cheaper neighbour of a choice in one dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// In which dimension.
    pub dimension: Dimension,
    /// Index of the cell.
    pub cell: usize,
    /// Replicas.
    pub replicas: u32,
}

/// The search.
#[derive(Debug, Clone)]
pub struct Cheapest {
    lattice: Lattice,
    goal: Goal,
    /// Fresh starts that prove the answer.
    prove: u32,
    rates: BTreeMap<(usize, u32), Vec<Trial>>,
    /// Questions that could not be answered: not asked again.
    unanswered: BTreeSet<(usize, u32)>,
    proofs: BTreeMap<(usize, u32), Count>,
    /// The budget is spent: nothing new is asked but the proof.
    is_closed: bool,
}

impl Cheapest {
    /// A search over these cells; `prove` fresh starts prove the answer.
    pub fn new(cells: Vec<Cell>, parameters: Parameters, prove: u32) -> Self {
        Self {
            lattice: Lattice::new(cells, parameters),
            goal: Goal::of_trials(2, LENGTH),
            prove,
            rates: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            proofs: BTreeMap::new(),
            is_closed: false,
        }
    }

    /// What to do next; the same until an outcome is recorded.
    pub fn next(&self) -> Step {
        if !self.is_closed
            && let Some((cell, replicas)) = self.lattice.next()
        {
            return self.ask(cell, replicas, Purpose::Search);
        }
        let Some(best) = self.lattice.best() else {
            return Step::Done(self.end());
        };
        if !self.is_closed
            && let Some(open) = self.neighbours(best).into_iter().find(|n| self.is_open(n))
        {
            return self.ask(open.cell, open.replicas, Purpose::Neighbour);
        }
        if self.proofs_left() > 0 {
            return self.ask(best.cell, best.replicas, Purpose::Prove);
        }
        Step::Done(self.end())
    }

    /// Where the search stands, were it to end now.
    pub fn end(&self) -> End {
        let Some(choice) = self.lattice.best() else {
            return self.without_answer();
        };
        End::Found {
            choice,
            is_proven: unproven(self.prove, self.proof(choice)).is_none(),
        }
    }

    /// Takes the outcome of the trial that [`Cheapest::next`] asked for.
    pub fn record(&mut self, outcome: Outcome) {
        let Step::Try(asked) = self.next() else {
            return;
        };
        let key = (asked.cell, asked.replicas);
        match (asked.purpose, outcome) {
            (Purpose::Prove, _) => self.prove(key, outcome),
            (purpose, Outcome::Invalid) => {
                self.unanswered.insert(key);
                if purpose != Purpose::Neighbour {
                    self.lattice.could_not_measure(asked.cell, asked.rate);
                }
            }
            _ => self.classify(key, asked.rate, outcome),
        }
    }

    /// Nothing new is asked from now on but the proof of the best so far: the budget is spent.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// The lattice and what is known about it.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Whether [`Cheapest::close`] ended it before everything was asked.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Trials that the proof of the best so far still needs; 0 while there is nothing to prove.
    pub fn proofs_left(&self) -> u32 {
        match self.lattice.best().map(|best| self.standing(best)) {
            Some(Standing::More(more)) => more,
            _ => 0,
        }
    }

    /// The next cheaper neighbours of a choice, one for each dimension that has one.
    pub fn neighbours(&self, of: Choice) -> Vec<Neighbour> {
        let parameters = self.lattice.parameters();
        let fewer = of.replicas - 1;
        let fewer = (fewer >= parameters.min_replicas && fewer > parameters.spare).then_some((
            Dimension::Replicas,
            of.cell,
            fewer,
        ));
        let memory = self.smaller_memory(of.cell);
        let cpu = self.smaller_cpu(of.cell);
        let sizes = [(Dimension::Memory, memory), (Dimension::Cpu, cpu)];
        let sizes = sizes
            .into_iter()
            .filter_map(|(dimension, cell)| Some((dimension, cell?, of.replicas)));
        let all = fewer.into_iter().chain(sizes);
        all.map(|(dimension, cell, replicas)| Neighbour {
            dimension,
            cell,
            replicas,
        })
        .collect()
    }

    fn without_answer(&self) -> End {
        let lattice = &self.lattice;
        let is_unmeasured = |cell| lattice.unmeasured(cell).is_some();
        match !lattice.open().is_empty() || (0..lattice.cells().len()).any(is_unmeasured) {
            true => End::Unknown,
            false => End::Infeasible,
        }
    }

    fn ask(&self, cell: usize, replicas: u32, purpose: Purpose) -> Step {
        Step::Try(Question {
            cell,
            replicas,
            rate: self.lattice.parameters().rate_of_each(replicas),
            purpose,
        })
    }

    fn classify(&mut self, key: (usize, u32), rate: f64, outcome: Outcome) {
        let loss = f64::from(u8::from(outcome != Outcome::Pass));
        let trials = self.rates.entry(key).or_default();
        trials.push(Trial {
            duration: LENGTH,
            loss,
        });
        match classify(trials, &self.goal) {
            Bound::Lower => self.lattice.record(key.0, Some(rate), None),
            Bound::Upper => self.lattice.record(key.0, None, Some(rate)),
            // Touched, so that the next question is the same one.
            Bound::Undecided => self.lattice.record(key.0, None, None),
        }
    }

    fn prove(&mut self, key: (usize, u32), outcome: Outcome) {
        let count = self.proofs.entry(key).or_default();
        count.add(outcome);
        if standing(self.prove, *count, false) == Standing::Refuted {
            let rate = self.lattice.parameters().rate_of_each(key.1);
            self.lattice.record(key.0, None, Some(rate));
        }
    }

    fn standing(&self, choice: Choice) -> Standing {
        standing(self.prove, self.proof(choice), false)
    }

    fn proof(&self, choice: Choice) -> Count {
        let key = (choice.cell, choice.replicas);
        self.proofs.get(&key).copied().unwrap_or_default()
    }

    /// Whether a neighbour's own trials do not show yet what it breaks. Where a lower rate was too
    /// high for the cell already, one trial shows it.
    fn is_open(&self, neighbour: &Neighbour) -> bool {
        let key = (neighbour.cell, neighbour.replicas);
        let trials = self.rates.get(&key).map_or(&[][..], Vec::as_slice);
        let known = self.lattice.known(neighbour.cell);
        let rate = self.lattice.parameters().rate_of_each(neighbour.replicas);
        let is_shown = known.too_high <= rate && trials.iter().any(|t| t.loss > 0.0);
        let is_refuted = self.proofs.contains_key(&key);
        !is_shown
            && !is_refuted
            && !self.unanswered.contains(&key)
            && classify(trials, &self.goal) == Bound::Undecided
    }

    fn smaller_memory(&self, of: usize) -> Option<usize> {
        let own = self.lattice.cells()[of];
        let smaller = self.same_variant(of).filter(|cell| {
            let size = self.lattice.cells()[*cell].size;
            size.cpu == own.size.cpu && size.memory < own.size.memory
        });
        smaller.max_by_key(|cell| self.lattice.cells()[*cell].size.memory)
    }

    fn smaller_cpu(&self, of: usize) -> Option<usize> {
        let own = self.lattice.cells()[of];
        let size = |cell: usize| self.lattice.cells()[cell].size;
        let cpu = self
            .same_variant(of)
            .map(|cell| size(cell).cpu)
            .filter(|cpu| *cpu < own.size.cpu)
            .max()?;
        let row = self.same_variant(of).filter(|cell| size(*cell).cpu == cpu);
        row.filter(|cell| self.lattice.cells()[*cell].per_hour < own.per_hour)
            .min_by_key(|cell| {
                size(*cell)
                    .memory
                    .as_bytes()
                    .abs_diff(own.size.memory.as_bytes())
            })
    }

    fn same_variant(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let cells = self.lattice.cells();
        let variant = cells[of].variant;
        (0..cells.len()).filter(move |cell| cells[*cell].variant == variant)
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::{Bytes, Cpus};

    use super::*;
    use crate::price::Size;

    /// Three CPU rows of two memories; a CPU costs 9 times what a GiB does.
    fn cells() -> Vec<Cell> {
        let size = |millis, gib| Size {
            cpu: Cpus::from_millis(millis),
            memory: Bytes::from_gib(gib),
        };
        let cell = |(millis, gib)| Cell {
            size: size(millis, gib),
            per_hour: f64::from(millis) * 0.009 + gib as f64,
            variant: 0,
            regime: 0,
        };
        [(250, 1), (250, 2), (500, 1), (500, 2), (1000, 2), (1000, 4)]
            .map(cell)
            .to_vec()
    }

    fn parameters() -> Parameters {
        Parameters {
            min_replicas: 1,
            max_replicas: 8,
            ..Parameters::new(300.0)
        }
    }

    /// Runs a search in a world where `carries` decides; what it asked, and how it ended.
    fn story(prove: u32, mut outcome: impl FnMut(&Cell, &Question) -> Outcome) -> (String, End) {
        let mut search = Cheapest::new(cells(), parameters(), prove);
        let mut text = String::new();
        loop {
            match search.next() {
                Step::Try(ask) => {
                    let cell = search.lattice().cells()[ask.cell];
                    let outcome = outcome(&cell, &ask);
                    let mark = match outcome {
                        Outcome::Pass => '+',
                        Outcome::Invalid => '?',
                        Outcome::Fail | Outcome::Crash => '-',
                    };
                    let purpose = match ask.purpose {
                        Purpose::Prove => "!",
                        Purpose::Neighbour => "~",
                        _ => "",
                    };
                    let (cpu, gib) = (cell.size.cpu.as_f64(), cell.size.memory.as_gib());
                    text += &format!("{purpose}{}x({cpu},{gib}){mark} ", ask.replicas);
                    search.record(outcome);
                }
                Step::Done(end) => return (text.trim_end().to_owned(), end),
            }
        }
    }

    fn is_proven(end: &End) -> bool {
        matches!(end, End::Found { is_proven, .. } if *is_proven)
    }

    /// 100 requests a second of each CPU; 2 GiB are needed above a quarter CPU.
    fn truth(cell: &Cell, ask: &Question) -> Outcome {
        let fits =
            cell.size.cpu <= Cpus::from_millis(250) || cell.size.memory >= Bytes::from_gib(2);
        if fits && ask.rate <= 100.0 * cell.size.cpu.as_f64() {
            Outcome::Pass
        } else {
            Outcome::Fail
        }
    }

    #[test]
    fn it_asks_what_decides_then_the_neighbours_then_proves() {
        let (story, end) = story(2, truth);
        insta::assert_snapshot!(story, @"2x(1,4)- 2x(1,4)- 4x(1,4)+ 3x(1,4)+ 5x(0.5,2)- 5x(0.5,2)- 8x(0.25,2)- 8x(0.25,2)- 7x(0.5,1)- 7x(0.5,1)- 3x(1,2)+ ~2x(1,2)- ~2x(1,2)- ~3x(0.5,2)- !3x(1,2)+ !3x(1,2)+");
        assert!(is_proven(&end), "{end:?}");
    }

    #[test]
    fn nothing_feasible_is_said_so() {
        let (story, end) = story(2, |_, _| Outcome::Fail);
        assert_eq!(end, End::Infeasible);
        insta::assert_snapshot!(story, @"2x(1,4)- 2x(1,4)- 4x(1,4)- 4x(1,4)- 6x(1,4)- 6x(1,4)- 7x(1,4)- 7x(1,4)- 8x(1,4)- 8x(1,4)-");
    }

    #[test]
    fn what_cannot_be_measured_is_no_answer_and_no_evidence() {
        let (_, end) = story(2, |cell, ask| match cell.size.cpu.as_millis() {
            1000 => Outcome::Invalid,
            _ => truth(cell, ask),
        });
        let End::Found { choice, .. } = end else {
            panic!("{end:?}")
        };
        assert_eq!(cells()[choice.cell].size.cpu, Cpus::from_millis(500));
    }

    /// The generator cannot make the rate of fewer than five replicas.
    #[test]
    fn a_rate_that_cannot_be_measured_leaves_what_was_carried() {
        let cell = cells()[4];
        let parameters = Parameters {
            min_replicas: 2,
            max_replicas: 16,
            ..Parameters::new(300.0)
        };
        let mut search = Cheapest::new(vec![cell], parameters, 2);
        let mut asked = Vec::new();
        while let Step::Try(ask) = search.next() {
            asked.push(ask.replicas);
            let outcome = match ask.replicas < 5 {
                true => Outcome::Invalid,
                false => Outcome::Pass,
            };
            search.record(outcome);
        }
        let End::Found { choice, is_proven } = search.end() else {
            panic!("{:?} {asked:?}", search.end())
        };
        assert_eq!((choice.replicas, is_proven), (5, true), "{asked:?}");
        assert_eq!(search.lattice().unmeasured(0), Some(75.0));
    }

    #[test]
    fn not_found_is_not_the_same_as_there_is_none() {
        let (_, end) = story(2, |cell, ask| match cell.size.cpu.as_millis() {
            1000 => Outcome::Invalid,
            _ if ask.purpose == Purpose::Prove => Outcome::Pass,
            _ => Outcome::Fail,
        });
        assert_eq!(end, End::Unknown, "what may carry it could not be measured");
        let mut search = Cheapest::new(cells(), parameters(), 2);
        search.record(Outcome::Fail);
        assert_eq!(search.proofs_left(), 0, "there is nothing to prove");
        search.close();
        assert_eq!(search.next(), Step::Done(End::Unknown));
    }

    #[test]
    fn an_answer_that_fails_its_proof_is_refuted() {
        let mut proofs = 0;
        let (_, end) = story(5, |cell, ask| {
            if ask.purpose == Purpose::Prove && cell.size.cpu == Cpus::from_whole(1) {
                proofs += 1;
                return Outcome::Fail;
            }
            truth(cell, ask)
        });
        let End::Found { choice, is_proven } = end else {
            panic!("{end:?}")
        };
        assert!(is_proven && choice.replicas > 3, "{choice:?}");
        assert!(proofs >= 2);
    }

    #[test]
    fn one_failed_start_of_five_asks_for_fifteen_more() {
        let mut starts = 0;
        let (_, end) = story(5, |cell, ask| {
            if ask.purpose == Purpose::Prove {
                starts += 1;
                return if starts == 3 {
                    Outcome::Fail
                } else {
                    Outcome::Pass
                };
            }
            truth(cell, ask)
        });
        assert_eq!(starts, 20);
        assert!(is_proven(&end), "{end:?}");
    }

    #[test]
    fn a_closed_search_proves_what_it_has() {
        let mut search = Cheapest::new(cells(), parameters(), 1);
        while search.lattice().best().is_none() {
            let Step::Try(ask) = search.next() else {
                panic!("there is more to ask")
            };
            let cell = search.lattice().cells()[ask.cell];
            search.record(truth(&cell, &ask));
        }
        search.close();
        let Step::Try(ask) = search.next() else {
            panic!("the proof is missing")
        };
        assert_eq!((ask.purpose, search.proofs_left()), (Purpose::Prove, 1));
        search.record(Outcome::Pass);
        assert!(matches!(
            search.next(),
            Step::Done(End::Found {
                is_proven: true,
                ..
            })
        ));
        assert!(!search.lattice().open().is_empty());
    }

    #[test]
    fn the_neighbours_of_a_choice_are_the_next_smaller_in_each_dimension() {
        let search = Cheapest::new(cells(), parameters(), 2);
        let of = |millis: u32, gib: u64, replicas: u32| {
            let is_it = |cell: &Cell| {
                (cell.size.cpu, cell.size.memory)
                    == (Cpus::from_millis(millis), Bytes::from_gib(gib))
            };
            let cell = search
                .lattice()
                .cells()
                .iter()
                .position(is_it)
                .expect("it is one");
            let choice = Choice {
                cell,
                replicas,
                per_hour: 0.0,
            };
            let told = |n: Neighbour| {
                let size = search.lattice().cells()[n.cell].size;
                let dimension = format!("{:?}", n.dimension);
                format!("{dimension} {}x{size}", n.replicas)
            };
            let all: Vec<String> = search.neighbours(choice).into_iter().map(told).collect();
            all.join(", ")
        };
        let all = [
            of(1000, 4, 3),
            of(1000, 2, 1),
            of(500, 2, 2),
            of(250, 1, 2),
            of(250, 2, 1),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn fewer_replicas_are_as_many_as_are_wanted_and_more_than_may_fail() {
        let fewer = |min_replicas, spare, replicas| {
            let parameters = Parameters {
                min_replicas,
                spare,
                ..parameters()
            };
            let choice = Choice {
                cell: 0,
                replicas,
                per_hour: 0.0,
            };
            let neighbours = Cheapest::new(cells(), parameters, 2).neighbours(choice);
            let of = neighbours
                .iter()
                .find(|n| n.dimension == Dimension::Replicas);
            of.map(|n| n.replicas)
        };
        assert_eq!((fewer(1, 0, 3), fewer(1, 0, 1)), (Some(2), None));
        assert_eq!((fewer(2, 0, 3), fewer(2, 0, 2)), (Some(2), None));
        assert_eq!((fewer(1, 1, 3), fewer(1, 1, 2)), (Some(2), None));
    }

    #[test]
    fn a_search_says_whether_it_was_closed() {
        let mut search = Cheapest::new(cells(), parameters(), 2);
        assert!(!search.is_closed());
        search.close();
        assert!(search.is_closed());
    }

    #[test]
    fn less_cpu_for_the_same_price_is_no_neighbour() {
        let less = |per_hour: f64| {
            let mut cells = cells();
            for cell in &mut cells[2..4] {
                cell.per_hour = per_hour;
            }
            let search = Cheapest::new(cells, parameters(), 2);
            let own = 4;
            assert_eq!(search.lattice().cells()[own].size.cpu, Cpus::from_whole(1));
            search.smaller_cpu(own).is_some()
        };
        let own = cells()[4].per_hour;
        assert!(less(own - 0.01));
        assert!(!less(own));
    }
}
