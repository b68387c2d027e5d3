//! The cheapest deployment, proven: which cell, how many replicas, and why cheaper neighbours fail.
//!
//! Owns the order of trials of `loadline size --prices`: classify the rates that the lattice asks
//! for (MLRsearch, two trials a rate, half may fail), then the neighbours of the answer, then fresh
//! starts at the answer. A neighbour that passes becomes the answer; an answer with failing fresh
//! starts is refuted, and the search goes on. The same outcomes lead to the same state, so a
//! stopped search resumes from the recorded outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TrialOutcome;
use super::lattice::{CellChoice, Lattice, LatticeCell, LatticeParameters};
use super::max_rate::{RateBound, RateGoal, RateSample, classify_trials};
use crate::price::InstanceSize;
use crate::proof::{ProofCount, ProofStanding, judge_starts, why_unproven};
use crate::record::TrialPurpose;

/// All trials of a search have one length; only their ratio counts.
const LENGTH: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CheapestStep {
    /// Run one instance of this cell at one replica's share of the rate.
    Try(CellQuestion),
    Done(CheapestEnd),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellQuestion {
    pub cell: usize,
    pub replicas: u32,
    /// Requests a second offered to the one instance that runs.
    pub rate: f64,
    pub purpose: TrialPurpose,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CheapestEnd {
    Found {
        choice: CellChoice,
        is_proven: bool,
    },
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
pub enum CheaperDimension {
    /// One replica less.
    Replicas,
    /// The next smaller memory at the same CPU.
    Memory,
    /// The next smaller CPU, with the memory nearest to the answer's.
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheaperNeighbour {
    pub dimension: CheaperDimension,
    pub cell: usize,
    pub replicas: u32,
}

#[derive(Debug, Clone)]
pub struct CheapestSearch {
    lattice: Lattice,
    goal: RateGoal,
    prove: u32,
    rates: BTreeMap<(usize, u32), Vec<RateSample>>,
    unanswered: BTreeSet<(usize, u32)>,
    proofs: BTreeMap<(usize, u32), ProofCount>,
    is_closed: bool,
}

impl CheapestSearch {
    pub fn new(cells: Vec<LatticeCell>, parameters: LatticeParameters, prove: u32) -> Self {
        Self {
            lattice: Lattice::new(cells, parameters),
            goal: RateGoal::of_trials(2, LENGTH),
            prove,
            rates: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            proofs: BTreeMap::new(),
            is_closed: false,
        }
    }

    pub fn next(&self) -> CheapestStep {
        if !self.is_closed
            && let Some((cell, replicas)) = self.lattice.next()
        {
            return self.ask_cell(cell, replicas, TrialPurpose::Search);
        }
        let Some(best) = self.lattice.best() else {
            return CheapestStep::Done(self.current_end());
        };
        if !self.is_closed
            && let Some(open) = self.neighbours(best).into_iter().find(|n| self.is_open(n))
        {
            return self.ask_cell(open.cell, open.replicas, TrialPurpose::Neighbour);
        }
        if self.proofs_left() > 0 {
            return self.ask_cell(best.cell, best.replicas, TrialPurpose::Prove);
        }
        CheapestStep::Done(self.current_end())
    }

    pub fn current_end(&self) -> CheapestEnd {
        let Some(choice) = self.lattice.best() else {
            return self.without_answer();
        };
        CheapestEnd::Found {
            choice,
            is_proven: why_unproven(self.prove, self.proof_count(choice)).is_none(),
        }
    }

    pub fn record_outcome(&mut self, outcome: TrialOutcome) {
        let CheapestStep::Try(asked) = self.next() else {
            return;
        };
        let key = (asked.cell, asked.replicas);
        match (asked.purpose, outcome) {
            (TrialPurpose::Prove, _) => self.count_proof_start(key, outcome),
            (purpose, TrialOutcome::Invalid) => {
                self.unanswered.insert(key);
                if purpose != TrialPurpose::Neighbour {
                    self.lattice.could_not_measure(asked.cell, asked.rate);
                }
            }
            _ => self.classify_rate(key, asked.rate, outcome),
        }
    }

    /// Nothing new is asked from now on but the proof of the best so far: the budget is spent.
    pub fn close_questions(&mut self) {
        self.is_closed = true;
    }

    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub fn proofs_left(&self) -> u32 {
        let count = self.lattice.best().map(|best| self.proof_count(best));
        match count.map(|count| judge_starts(self.prove, count, false)) {
            Some(ProofStanding::More(more)) => more,
            _ => 0,
        }
    }

    pub fn neighbours(&self, of: CellChoice) -> Vec<CheaperNeighbour> {
        let parameters = self.lattice.parameters();
        let fewer = of.replicas - 1;
        let is_enough = fewer >= parameters.min_replicas && fewer > parameters.spare;
        let neighbour = |dimension, cell: Option<usize>, replicas| {
            cell.map(|cell| CheaperNeighbour {
                dimension,
                cell,
                replicas,
            })
        };
        let (memory, cpu) = (self.smaller_memory(of.cell), self.smaller_cpu(of.cell));
        let cell = is_enough.then_some(of.cell);
        let all = [
            neighbour(CheaperDimension::Replicas, cell, fewer),
            neighbour(CheaperDimension::Memory, memory, of.replicas),
            neighbour(CheaperDimension::Cpu, cpu, of.replicas),
        ];
        all.into_iter().flatten().collect()
    }

    fn without_answer(&self) -> CheapestEnd {
        let lattice = &self.lattice;
        let is_unmeasured = |cell| lattice.unmeasured(cell).is_some();
        if !lattice.open_cells().is_empty() || (0..lattice.cells().len()).any(is_unmeasured) {
            CheapestEnd::Unknown
        } else {
            CheapestEnd::Infeasible
        }
    }

    fn ask_cell(&self, cell: usize, replicas: u32, purpose: TrialPurpose) -> CheapestStep {
        CheapestStep::Try(CellQuestion {
            cell,
            replicas,
            rate: self.lattice.parameters().rate_of_each(replicas),
            purpose,
        })
    }

    fn classify_rate(&mut self, key: (usize, u32), rate: f64, outcome: TrialOutcome) {
        let loss = f64::from(u8::from(outcome != TrialOutcome::Pass));
        let trials = self.rates.entry(key).or_default();
        let duration = LENGTH;
        trials.push(RateSample { duration, loss });
        match classify_trials(trials, &self.goal) {
            RateBound::Lower => self.lattice.record_rates(key.0, Some(rate), None),
            RateBound::Upper => self.lattice.record_rates(key.0, None, Some(rate)),
            // Touched, so that the next question is the same one.
            RateBound::Undecided => self.lattice.record_rates(key.0, None, None),
        }
    }

    fn count_proof_start(&mut self, key: (usize, u32), outcome: TrialOutcome) {
        let count = self.proofs.entry(key).or_default();
        count.add_outcome(outcome);
        if judge_starts(self.prove, *count, false) == ProofStanding::Refuted {
            let rate = self.lattice.parameters().rate_of_each(key.1);
            self.lattice.record_rates(key.0, None, Some(rate));
        }
    }

    fn proof_count(&self, choice: CellChoice) -> ProofCount {
        let key = (choice.cell, choice.replicas);
        self.proofs.get(&key).copied().unwrap_or_default()
    }

    fn is_open(&self, neighbour: &CheaperNeighbour) -> bool {
        let key = (neighbour.cell, neighbour.replicas);
        let trials = self.rates.get(&key).map_or(&[][..], Vec::as_slice);
        let known = self.lattice.known_rates(neighbour.cell);
        let rate = self.lattice.parameters().rate_of_each(neighbour.replicas);
        let is_shown = known.too_high <= rate && trials.iter().any(|t| t.loss > 0.0);
        let is_refuted = self.proofs.contains_key(&key);
        !is_shown
            && !is_refuted
            && !self.unanswered.contains(&key)
            && classify_trials(trials, &self.goal) == RateBound::Undecided
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
        let cpus = self.same_variant(of).map(|cell| size(cell).cpu);
        let cpu = cpus.filter(|cpu| *cpu < own.size.cpu).max()?;
        let row = self.same_variant(of).filter(|cell| size(*cell).cpu == cpu);
        let cheaper = row.filter(|cell| self.lattice.cells()[*cell].per_hour < own.per_hour);
        let memory = |size: InstanceSize| size.memory.as_bytes();
        cheaper.min_by_key(|cell| memory(size(*cell)).abs_diff(memory(own.size)))
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
    use crate::price::InstanceSize;

    /// Three CPU rows of two memories; a CPU costs 9 times what a GiB does.
    fn cells() -> Vec<LatticeCell> {
        let size = |millis, gib| InstanceSize {
            cpu: Cpus::from_millis(millis),
            memory: Bytes::from_gib(gib),
        };
        let cell = |(millis, gib)| LatticeCell {
            size: size(millis, gib),
            per_hour: f64::from(millis) * 0.009 + gib as f64,
            variant: 0,
            regime: 0,
        };
        [(250, 1), (250, 2), (500, 1), (500, 2), (1000, 2), (1000, 4)]
            .map(cell)
            .to_vec()
    }

    fn parameters() -> LatticeParameters {
        LatticeParameters {
            min_replicas: 1,
            max_replicas: 8,
            ..LatticeParameters::new(300.0)
        }
    }

    /// Runs a search in a world where `carries` decides; what it asked, and how it ended.
    fn story(
        prove: u32,
        mut outcome: impl FnMut(&LatticeCell, &CellQuestion) -> TrialOutcome,
    ) -> (String, CheapestEnd) {
        let mut search = CheapestSearch::new(cells(), parameters(), prove);
        let mut text = String::new();
        loop {
            match search.next() {
                CheapestStep::Try(ask) => {
                    let cell = search.lattice().cells()[ask.cell];
                    let outcome = outcome(&cell, &ask);
                    let mark = match outcome {
                        TrialOutcome::Pass => '+',
                        TrialOutcome::Invalid => '?',
                        TrialOutcome::Fail | TrialOutcome::Crash => '-',
                    };
                    let purpose = match ask.purpose {
                        TrialPurpose::Prove => "!",
                        TrialPurpose::Neighbour => "~",
                        _ => "",
                    };
                    let (cpu, gib) = (cell.size.cpu.as_f64(), cell.size.memory.as_gib());
                    text += &format!("{purpose}{}x({cpu},{gib}){mark} ", ask.replicas);
                    search.record_outcome(outcome);
                }
                CheapestStep::Done(end) => return (text.trim_end().to_owned(), end),
            }
        }
    }

    fn is_proven(end: &CheapestEnd) -> bool {
        matches!(end, CheapestEnd::Found { is_proven, .. } if *is_proven)
    }

    /// 100 requests a second of each CPU; 2 GiB are needed above a quarter CPU.
    fn truth(cell: &LatticeCell, ask: &CellQuestion) -> TrialOutcome {
        let fits =
            cell.size.cpu <= Cpus::from_millis(250) || cell.size.memory >= Bytes::from_gib(2);
        if fits && ask.rate <= 100.0 * cell.size.cpu.as_f64() {
            TrialOutcome::Pass
        } else {
            TrialOutcome::Fail
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
        let (story, end) = story(2, |_, _| TrialOutcome::Fail);
        assert_eq!(end, CheapestEnd::Infeasible);
        insta::assert_snapshot!(story, @"2x(1,4)- 2x(1,4)- 4x(1,4)- 4x(1,4)- 6x(1,4)- 6x(1,4)- 7x(1,4)- 7x(1,4)- 8x(1,4)- 8x(1,4)-");
    }

    #[test]
    fn what_cannot_be_measured_is_no_answer_and_no_evidence() {
        let (_, end) = story(2, |cell, ask| match cell.size.cpu.as_millis() {
            1000 => TrialOutcome::Invalid,
            _ => truth(cell, ask),
        });
        let CheapestEnd::Found { choice, .. } = end else {
            panic!("{end:?}")
        };
        assert_eq!(cells()[choice.cell].size.cpu, Cpus::from_millis(500));
    }

    /// The generator cannot make the rate of fewer than five replicas.
    #[test]
    fn a_rate_that_cannot_be_measured_leaves_what_was_carried() {
        let cell = cells()[4];
        let parameters = LatticeParameters {
            min_replicas: 2,
            max_replicas: 16,
            ..LatticeParameters::new(300.0)
        };
        let mut search = CheapestSearch::new(vec![cell], parameters, 2);
        let mut asked = Vec::new();
        while let CheapestStep::Try(ask) = search.next() {
            asked.push(ask.replicas);
            let outcome = if ask.replicas < 5 {
                TrialOutcome::Invalid
            } else {
                TrialOutcome::Pass
            };
            search.record_outcome(outcome);
        }
        let CheapestEnd::Found { choice, is_proven } = search.current_end() else {
            panic!("{:?} {asked:?}", search.current_end())
        };
        assert_eq!((choice.replicas, is_proven), (5, true), "{asked:?}");
        assert_eq!(search.lattice().unmeasured(0), Some(75.0));
    }

    #[test]
    fn not_found_is_not_the_same_as_there_is_none() {
        let (_, end) = story(2, |cell, ask| match cell.size.cpu.as_millis() {
            1000 => TrialOutcome::Invalid,
            _ if ask.purpose == TrialPurpose::Prove => TrialOutcome::Pass,
            _ => TrialOutcome::Fail,
        });
        assert_eq!(
            end,
            CheapestEnd::Unknown,
            "what may carry it could not be measured"
        );
        let mut search = CheapestSearch::new(cells(), parameters(), 2);
        search.record_outcome(TrialOutcome::Fail);
        assert_eq!(search.proofs_left(), 0, "there is nothing to prove");
        search.close_questions();
        assert_eq!(search.next(), CheapestStep::Done(CheapestEnd::Unknown));
    }

    #[test]
    fn an_answer_that_fails_its_proof_is_refuted() {
        let mut proofs = 0;
        let (_, end) = story(5, |cell, ask| {
            if ask.purpose == TrialPurpose::Prove && cell.size.cpu == Cpus::from_whole(1) {
                proofs += 1;
                return TrialOutcome::Fail;
            }
            truth(cell, ask)
        });
        let CheapestEnd::Found { choice, is_proven } = end else {
            panic!("{end:?}")
        };
        assert!(is_proven && choice.replicas > 3, "{choice:?}");
        assert!(proofs >= 2);
    }

    #[test]
    fn one_failed_start_of_five_asks_for_fifteen_more() {
        let mut starts = 0;
        let (_, end) = story(5, |cell, ask| {
            if ask.purpose == TrialPurpose::Prove {
                starts += 1;
                return if starts == 3 {
                    TrialOutcome::Fail
                } else {
                    TrialOutcome::Pass
                };
            }
            truth(cell, ask)
        });
        assert_eq!(starts, 20);
        assert!(is_proven(&end), "{end:?}");
    }

    #[test]
    fn a_closed_search_proves_what_it_has() {
        let mut search = CheapestSearch::new(cells(), parameters(), 1);
        while search.lattice().best().is_none() {
            let CheapestStep::Try(ask) = search.next() else {
                panic!("there is more to ask")
            };
            let cell = search.lattice().cells()[ask.cell];
            search.record_outcome(truth(&cell, &ask));
        }
        search.close_questions();
        let CheapestStep::Try(ask) = search.next() else {
            panic!("the proof is missing")
        };
        assert_eq!(
            (ask.purpose, search.proofs_left()),
            (TrialPurpose::Prove, 1)
        );
        search.record_outcome(TrialOutcome::Pass);
        assert!(matches!(
            search.next(),
            CheapestStep::Done(CheapestEnd::Found {
                is_proven: true,
                ..
            })
        ));
        assert!(!search.lattice().open_cells().is_empty());
    }

    #[test]
    fn the_neighbours_of_a_choice_are_the_next_smaller_in_each_dimension() {
        let search = CheapestSearch::new(cells(), parameters(), 2);
        let of = |millis: u32, gib: u64, replicas: u32| {
            let is_it = |cell: &LatticeCell| {
                (cell.size.cpu, cell.size.memory)
                    == (Cpus::from_millis(millis), Bytes::from_gib(gib))
            };
            let cell = search
                .lattice()
                .cells()
                .iter()
                .position(is_it)
                .expect("it is one");
            let choice = CellChoice {
                cell,
                replicas,
                per_hour: 0.0,
            };
            let told = |n: CheaperNeighbour| {
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
            let parameters = LatticeParameters {
                min_replicas,
                spare,
                ..parameters()
            };
            let choice = CellChoice {
                cell: 0,
                replicas,
                per_hour: 0.0,
            };
            let neighbours = CheapestSearch::new(cells(), parameters, 2).neighbours(choice);
            let of = neighbours
                .iter()
                .find(|n| n.dimension == CheaperDimension::Replicas);
            of.map(|n| n.replicas)
        };
        assert_eq!((fewer(1, 0, 3), fewer(1, 0, 1)), (Some(2), None));
        assert_eq!((fewer(2, 0, 3), fewer(2, 0, 2)), (Some(2), None));
        assert_eq!((fewer(1, 1, 3), fewer(1, 1, 2)), (Some(2), None));
    }

    #[test]
    fn a_search_says_whether_it_was_closed() {
        let mut search = CheapestSearch::new(cells(), parameters(), 2);
        assert!(!search.is_closed());
        search.close_questions();
        assert!(search.is_closed());
    }

    #[test]
    fn less_cpu_for_the_same_price_is_no_neighbour() {
        let less = |per_hour: f64| {
            let mut cells = cells();
            for cell in &mut cells[2..4] {
                cell.per_hour = per_hour;
            }
            let search = CheapestSearch::new(cells, parameters(), 2);
            let own = 4;
            assert_eq!(search.lattice().cells()[own].size.cpu, Cpus::from_whole(1));
            search.smaller_cpu(own).is_some()
        };
        let own = cells()[4].per_hour;
        assert!(less(own - 0.01));
        assert!(!less(own));
    }
}
