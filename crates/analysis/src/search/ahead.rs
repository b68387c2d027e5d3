//! Trials that a search may need next: for slots that would be idle.
//!
//! Owns the tree of what may come out of a trial that runs, best first. A guess changes no answer:
//! the search reads the records in its own order, and a guess that was wrong is never read.

use super::{SeenTrials, TrialAsk, TrialOutcome};

/// Most guesses at a time: both trials after the deciding one, and two after those.
const FEW: usize = 4;
const UNLIKELY: f64 = 0.2;

pub(super) trait SearchMachine: Clone {
    fn wanted_ask(&self) -> Option<TrialAsk>;

    fn take_outcome(&mut self, outcome: TrialOutcome);

    fn pass_chance(&self) -> f64;
}

pub(super) fn guesses(
    machine: &impl SearchMachine,
    seen: &SeenTrials,
    wanted: &[TrialAsk],
) -> Vec<TrialAsk> {
    let mut guesses: Vec<TrialAsk> = Vec::new();
    let mut branches = vec![(1.0, machine.clone())];
    while guesses.len() < FEW
        && let Some((probability, branch)) = likeliest(&mut branches)
    {
        let Some(ask) = branch.wanted_ask() else {
            continue;
        };
        if let Some(record) = seen.record_for(&ask) {
            let outcome = TrialOutcome::from(record.verdict);
            branches.push((probability, after_outcome(&branch, outcome)));
            continue;
        }
        let passes = branch.pass_chance();
        for (share, outcome) in [
            (passes, TrialOutcome::Pass),
            (1.0 - passes, TrialOutcome::Fail),
        ] {
            let probability = probability * share;
            if probability >= UNLIKELY {
                branches.push((probability, after_outcome(&branch, outcome)));
            }
        }
        if !wanted.iter().chain(&guesses).any(|a| a.is_same(&ask)) {
            guesses.push(ask);
        }
    }
    guesses
}

fn likeliest<M>(branches: &mut Vec<(f64, M)>) -> Option<(f64, M)> {
    let best = |best: usize, index: usize| {
        if branches[index].0 > branches[best].0 {
            index
        } else {
            best
        }
    };
    let index = (0..branches.len()).reduce(best)?;
    Some(branches.remove(index))
}

fn after_outcome<M: SearchMachine>(branch: &M, outcome: TrialOutcome) -> M {
    let mut next = branch.clone();
    next.take_outcome(outcome);
    next
}
