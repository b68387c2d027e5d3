//! What will run, in which order, and how long it takes: known before anything runs.
//!
//! Owns the order of a matrix. Repeats are outermost, so that drift of the machine falls on all
//! configurations alike; within a repeat the order is shuffled by the seed, unless a factor
//! descends: then the file's order is the meaning.

use std::time::Duration;

use loadline_analysis::random::RandomStream;
use loadline_analysis::record::Configuration;
use loadline_analysis::search::matrix::{Matrix, MatrixCell};
use loadline_sizing::Cpus;

use loadline_experiment::{Experiment, ExperimentFactor};

const RUN_GUESS: Duration = Duration::from_secs(30);

/// Start and stop of an application before the first trial.
pub const START_GUESS: Duration = Duration::from_secs(12);

#[derive(Debug, Clone, PartialEq)]
pub struct Agenda {
    pub matrix: Matrix,
    pub each: Duration,
    pub left_out: Vec<(String, String)>,
}

impl Agenda {
    pub fn new(experiment: &Experiment) -> Self {
        let ladder = experiment.factors.iter().find(|f| f.descend);
        let once = match ladder {
            Some(ladder) => ladders(experiment, ladder),
            None => shuffle_configurations(experiment.configurations(), experiment.seed),
        };
        // Two configurations are a comparison: both of a repeat have the same surroundings.
        let are_pairs = once.len() == 2 && ladder.is_none();
        let repeats = (1..=experiment.repeats).flat_map(|repeat| {
            let cell = move |(configuration, ladder): (Configuration, Option<usize>)| MatrixCell {
                configuration,
                repeat,
                ladder,
                pair: are_pairs.then_some(repeat),
            };
            once.clone().into_iter().map(cell)
        });
        Self {
            matrix: Matrix {
                cells: repeats.collect(),
                start_deadline: experiment.app.start_deadline,
            },
            each: trial_length(experiment),
            left_out: Vec::new(),
        }
    }

    /// Leaves out limits that a machine with this many CPUs cannot enforce: a limit above all its
    /// CPUs limits nothing, and would look like an answer about that size.
    pub fn on_machine(mut self, cpus: u32) -> Self {
        let all = Cpus::from_whole(cpus);
        let wanted = |cell: &MatrixCell| {
            let configuration = &cell.configuration;
            let one = configuration.cpu?.as_millis();
            let all = one.saturating_mul(configuration.instances);
            Some(Cpus::from_millis(all))
        };
        let fits = |cell: &MatrixCell| wanted(cell).is_none_or(|cpu| cpu <= all);
        let (cells, too_large) = self.matrix.cells.into_iter().partition(fits);
        self.matrix.cells = cells;
        for cell in too_large {
            let cpu = wanted(&cell).unwrap_or(all);
            let why = format!("a limit of {cpu} CPUs limits nothing on a machine with {cpus}");
            let one = (cell.configuration.label, why);
            if !self.left_out.contains(&one) {
                self.left_out.push(one);
            }
        }
        self
    }

    /// Expected length of all trials, one after the other; a ladder that ends early takes less.
    pub fn matrix_length(&self) -> Duration {
        self.each * self.trial_count()
    }

    pub fn trial_count(&self) -> u32 {
        u32::try_from(self.matrix.cells.len()).unwrap_or(u32::MAX)
    }
}

pub fn trial_length(experiment: &Experiment) -> Duration {
    let guess = match experiment.app.run {
        Some(_) => experiment.app.start_deadline.min(RUN_GUESS),
        None => START_GUESS,
    };
    trial_length_with(experiment, guess)
}

pub fn trial_length_with(experiment: &Experiment, start_and_stop: Duration) -> Duration {
    if experiment.app.run.is_some() {
        return start_and_stop;
    }
    let load = &experiment.load;
    let peak = load.spec.peak.map(|peak| peak.duration);
    // A closed phase of requests is guessed.
    let scheduled = load.model.scheduled_duration();
    let scheduled = scheduled.unwrap_or(Duration::from_secs(10));
    start_and_stop + load.spec.warm_up() + scheduled + peak.unwrap_or_default()
}

/// The descending factor varies fastest, each combination of the others is one ladder.
fn ladders(
    experiment: &Experiment,
    ladder: &ExperimentFactor,
) -> Vec<(Configuration, Option<usize>)> {
    let others = experiment.factors.iter().filter(|f| f.name != ladder.name);
    let others = Experiment {
        factors: others.cloned().collect(),
        ..experiment.clone()
    };
    let rungs = |(i, mut base): (usize, Configuration)| {
        if base.label == "as given" {
            base.label.clear();
        }
        let levels = ladder.levels.iter();
        levels.map(move |level| (level.apply(&base), Some(i)))
    };
    let bases = others.configurations().into_iter().enumerate();
    bases.flat_map(rungs).collect()
}

fn shuffle_configurations(
    mut configurations: Vec<Configuration>,
    seed: u64,
) -> Vec<(Configuration, Option<usize>)> {
    // Fisher and Yates, from the back.
    let mut random = RandomStream::from_seed(seed);
    for last in (1..configurations.len()).rev() {
        configurations.swap(last, random.uniform_below(last + 1));
    }
    configurations.into_iter().map(|c| (c, None)).collect()
}
