//! `size`: the smallest memory for each combination of the other factors, proven.
//!
//! Owns the driving of the search: which trials run and in which purpose. The rules are
//! `loadline_analysis::search::min_memory`'s. The first trial runs at the largest size; its start
//! sets how long later starts may take, because a size at which the start takes several times as
//! long thrashes and is no answer.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::price;
use loadline_analysis::record::{Configuration, Purpose, TrialRecord, Verdict};
use loadline_analysis::search::Outcome;
use loadline_analysis::search::min_memory::{MemoryFound, MinMemory, Parameters, Step};
use loadline_sizing::Bytes;

use crate::session::{Session, SessionError};

/// A start may take this many times the start with room.
const START_FACTOR: u32 = 4;

/// A start may always take this long: short starts vary more than their length says.
const START_FLOOR: Duration = Duration::from_secs(5);

/// The search over one combination of the other factors.
#[derive(Debug, Clone)]
pub struct Searched {
    /// The configuration without a memory limit of its own.
    pub base: Configuration,
    /// How it ended.
    pub end: End,
    /// Every trial that counted, in order.
    pub trials: Vec<TrialRecord>,
    /// Longest start that counts as one, from the start with room in it: the same holds for its proof.
    pub start_deadline: Duration,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It found the smallest size.
    Found(MemoryFound),
    /// Not even the largest size passes.
    Infeasible {
        /// The largest size.
        largest: Bytes,
        /// What it broke.
        reason: String,
    },
    /// A size could not be measured.
    CouldNotMeasure {
        /// The size.
        size: Bytes,
        /// Why.
        reason: String,
    },
}

/// Configurations whose smallest sizes say nothing about which is cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// The one at the lowest rate would win.
    #[error("the rate varies, and sizes at different rates do not compare")]
    Rates,
    /// What a configuration without a limit takes has no price.
    #[error("some configurations have a CPU limit and some have none: their sizes do not compare")]
    Limits,
}

/// Checks that the cheapest of these configurations means something.
///
/// # Errors
/// [`Incomparable`].
pub fn comparable(bases: &[Configuration]) -> Result<(), Incomparable> {
    let differ = |of: fn(&Configuration, &Configuration) -> bool| {
        bases.windows(2).any(|pair| of(&pair[0], &pair[1]))
    };
    if differ(|a, b| a.rate != b.rate) {
        return Err(Incomparable::Rates);
    }
    if differ(|a, b| a.cpu.is_some() != b.cpu.is_some()) {
        return Err(Incomparable::Limits);
    }
    Ok(())
}

/// What a size weighs beside others: memory and CPUs of all instances.
pub fn cost(base: &Configuration, size: Bytes) -> f64 {
    let cpus = base.cpu.map_or(0.0, |cpu| cpu.as_f64());
    f64::from(base.instances) * price::weight(cpus, size)
}

/// Runs the search for one configuration. Its own memory limit is ignored.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store and is not run again by the next call.
pub fn search(session: &mut Session<'_>, base: &Configuration) -> Result<Searched, SessionError> {
    let wanted = &session.experiment.search;
    let bounds = Parameters::new(wanted.min_memory, wanted.max_memory);
    search_within(session, base, bounds)
}

/// The same within other bounds; step, confirmations and margin are the experiment's.
///
/// # Errors
/// As [`search`].
pub fn search_within(
    session: &mut Session<'_>,
    base: &Configuration,
    bounds: Parameters,
) -> Result<Searched, SessionError> {
    let wanted = &session.experiment.search;
    let mut search = MinMemory::new(Parameters {
        step: wanted.step,
        confirmations: wanted.confirm,
        margin: wanted.margin,
        // The session repeats what could not be measured itself.
        retries: 0,
        ..bounds
    });
    let mut repeats: BTreeMap<(u64, bool), u32> = BTreeMap::new();
    let mut trials = Vec::new();
    session.start_deadline = session.experiment.app.start_deadline;
    let end = loop {
        let (size, purpose) = match search.next() {
            Step::Try(size, purpose) => (size, purpose),
            Step::Done(answer) => break End::Found(answer),
            Step::Infeasible { largest } => {
                let reason = last_failure(&trials);
                break End::Infeasible { largest, reason };
            }
            Step::CouldNotMeasure { size, .. } => {
                let reason = last_failure(&trials);
                break End::CouldNotMeasure { size, reason };
            }
        };
        let repeat = repeats
            .entry((size.as_bytes(), purpose == Purpose::Confirm))
            .or_default();
        *repeat += 1;
        let record = session.trial(&at(base, size), purpose, *repeat)?;
        let first_start = record.evidence.start.ready.filter(|_| trials.is_empty());
        if let Some(start) = first_start {
            session.start_deadline = (start * START_FACTOR)
                .max(START_FLOOR)
                .min(session.start_deadline);
        }
        let recorded = search.record(size, Outcome::from(record.verdict));
        debug_assert!(
            recorded.is_ok(),
            "the search takes the outcome it asked for"
        );
        trials.push(record);
    };
    Ok(Searched {
        base: base.clone(),
        end,
        trials,
        start_deadline: session.start_deadline,
    })
}

/// Fresh starts of an answer. Each may take as long as those of the search that found it, which is
/// not always the last one that ran.
///
/// # Errors
/// As [`search`].
pub fn prove(
    session: &mut Session<'_>,
    configuration: &Configuration,
    start_deadline: Duration,
) -> Result<Vec<TrialRecord>, SessionError> {
    session.start_deadline = start_deadline;
    (1..=session.experiment.search.prove)
        .map(|repeat| session.trial(configuration, Purpose::Prove, repeat))
        .collect()
}

/// The next smaller size and what it breaks: a trial of the search that failed just below the
/// confirmed size, or, where none was run, one that is run now.
///
/// # Errors
/// As [`search`].
pub fn next_smaller(
    session: &mut Session<'_>,
    searched: &Searched,
    answer: &MemoryFound,
) -> Result<Option<TrialRecord>, SessionError> {
    let broke = |t: &&TrialRecord| t.verdict.is_evidence() && t.verdict != Verdict::Pass;
    let below = searched
        .trials
        .iter()
        .filter(broke)
        .filter(|t| t.configuration.memory < Some(answer.confirmed));
    if let Some(record) = below.max_by_key(|t| t.configuration.memory) {
        return Ok(Some(record.clone()));
    }
    let step = session.experiment.search.step;
    let size = answer.confirmed.saturating_sub(step);
    if size < step {
        return Ok(None);
    }
    session.start_deadline = searched.start_deadline;
    let record = session.trial(&at(&searched.base, size), Purpose::Neighbour, 1)?;
    Ok(broke(&&record).then_some(record))
}

/// The configuration at a size; the label says so.
pub fn at(base: &Configuration, size: Bytes) -> Configuration {
    let label = if base.label.is_empty() || base.label == "as given" {
        size.to_string()
    } else {
        format!("{} {size}", base.label)
    };
    Configuration {
        memory: Some(size),
        label,
        ..base.clone()
    }
}

fn last_failure(trials: &[TrialRecord]) -> String {
    trials
        .last()
        .map(|t| format!("{}: {}", t.verdict, t.reason))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::Experiment;

    fn bases(factor: &str) -> Vec<Configuration> {
        let text = format!(
            "slo = \"p99<50ms\"\napp.command = [\"sh\"]\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n[[factor]]\n{factor}\n"
        );
        let parsed = Experiment::parse(&text, Path::new("test.toml"), Path::new("/"));
        parsed.expect("it is valid").configurations()
    }

    #[test]
    fn what_does_not_compare_is_refused() {
        let of = |factor| comparable(&bases(factor));
        let rates = of("name = \"rate\"\nlevels = [\"300/s\", \"10/s\"]");
        assert_eq!(rates, Err(Incomparable::Rates));
        let limits = "name = \"x\"\nlevels = [{ label = \"one\", cpu = \"1\" }, { label = \"all\", args = [\"a\"] }]";
        assert_eq!(of(limits), Err(Incomparable::Limits));
        let cpus = of("name = \"cpu\"\nlevels = [\"1\", \"2\"]");
        assert_eq!(cpus, Ok(()));
    }

    #[test]
    fn four_instances_cost_four_times_one() {
        let of = |cpu: &str| bases(&format!("name = \"cpu\"\nlevels = [\"{cpu}\"]")).remove(0);
        let one = of("500m");
        let four = Configuration {
            instances: 4,
            ..one.clone()
        };
        let cost_of_four = cost(&four, Bytes::from_mib(160));
        assert!(cost_of_four > cost(&one, Bytes::from_mib(256)));
        assert_eq!(cost_of_four, 4.0 * cost(&one, Bytes::from_mib(160)));
    }
}
