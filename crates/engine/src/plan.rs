//! What will run, in which order, and how long it takes: known before anything runs.
//!
//! Owns the order of a matrix. Repeats are outermost, so that drift of the machine falls on all
//! configurations alike; within a repeat the order is shuffled by the seed, unless a factor
//! descends: then the file's order is the meaning.

use std::time::Duration;

use loadline_analysis::random::Random;
use loadline_analysis::record::Configuration;
use loadline_sizing::Cpus;

use crate::experiment::{Experiment, Factor};
use crate::trial::expected_length;

/// Start and stop of an application nobody has seen yet.
const START_GUESS: Duration = Duration::from_secs(12);

/// One trial of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// What it runs.
    pub configuration: Configuration,
    /// Ordinal, from 1.
    pub repeat: u32,
    /// The ladder it is a rung of; a ladder ends after two rungs that fail in a row.
    pub ladder: Option<usize>,
}

/// The trials of an experiment, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order they run.
    pub trials: Vec<PlannedTrial>,
    /// Expected length of one trial.
    pub each: Duration,
    /// Configurations that this machine cannot run, each with the reason.
    pub left_out: Vec<(String, String)>,
}

impl Plan {
    /// The plan of an experiment.
    pub fn new(experiment: &Experiment) -> Self {
        let ladder = experiment.factors.iter().find(|f| f.descend);
        let once = match ladder {
            Some(ladder) => ladders(experiment, ladder),
            None => shuffled(experiment.configurations(), experiment.seed),
        };
        let repeats = (1..=experiment.repeats).flat_map(|repeat| {
            let trial =
                move |(configuration, ladder): (Configuration, Option<usize>)| PlannedTrial {
                    configuration,
                    repeat,
                    ladder,
                };
            once.clone().into_iter().map(trial)
        });
        Self {
            trials: repeats.collect(),
            each: trial_length(experiment),
            left_out: Vec::new(),
        }
    }

    /// Leaves out what a machine with so many CPUs cannot show: a limit above all its CPUs limits
    /// nothing, and would look like an answer about that size.
    pub fn on_machine(mut self, cpus: u32) -> Self {
        let all = Cpus::from_whole(cpus);
        let wanted = |t: &PlannedTrial| {
            let configuration = &t.configuration;
            Some(Cpus::from_millis(
                configuration
                    .cpu?
                    .as_millis()
                    .saturating_mul(configuration.instances),
            ))
        };
        let fits = |t: &PlannedTrial| wanted(t).is_none_or(|cpu| cpu <= all);
        let (trials, too_large) = self.trials.into_iter().partition(fits);
        self.trials = trials;
        for trial in too_large {
            let cpu = wanted(&trial).unwrap_or(all);
            let why = format!("a limit of {cpu} CPUs limits nothing on a machine with {cpus}");
            let one = (trial.configuration.label, why);
            if !self.left_out.contains(&one) {
                self.left_out.push(one);
            }
        }
        self
    }

    /// Expected length of all trials; a ladder that ends early takes less.
    pub fn total(&self) -> Duration {
        self.each * u32::try_from(self.trials.len()).unwrap_or(u32::MAX)
    }
}

/// Expected length of one trial of an experiment.
pub fn trial_length(experiment: &Experiment) -> Duration {
    START_GUESS + experiment.load.warm_up + expected_length(&experiment.load.model)
}

/// The descending factor varies fastest, each combination of the others is one ladder.
fn ladders(experiment: &Experiment, ladder: &Factor) -> Vec<(Configuration, Option<usize>)> {
    let others = experiment
        .factors
        .iter()
        .filter(|f| f.name != ladder.name)
        .cloned()
        .collect();
    let others = Experiment {
        factors: others,
        ..experiment.clone()
    };
    let rungs = |(i, base): (usize, Configuration)| {
        let base = Configuration {
            label: if base.label == "as given" {
                String::new()
            } else {
                base.label.clone()
            },
            ..base
        };
        ladder
            .levels
            .iter()
            .map(move |l| (l.apply(&base), Some(i)))
            .collect::<Vec<_>>()
    };
    others
        .configurations()
        .into_iter()
        .enumerate()
        .flat_map(rungs)
        .collect()
}

fn shuffled(
    mut configurations: Vec<Configuration>,
    seed: u64,
) -> Vec<(Configuration, Option<usize>)> {
    // Fisher and Yates, from the back.
    let mut random = Random::from_seed(seed);
    for last in (1..configurations.len()).rev() {
        configurations.swap(last, random.below(last + 1));
    }
    configurations.into_iter().map(|c| (c, None)).collect()
}
