//! The plan as JSON: a stable form with units in the names, and its schema.

use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::Configuration;
use loadline_runner::agenda::Agenda;
use loadline_runner::searches::MachineLattice;
use schemars::JsonSchema;
use serde::Serialize;

use super::outlook::SearchOutlook;

/// What would run: the trials of a matrix, or what a search for the cheapest deployment chooses
/// from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PlanDocument {
    /// A matrix.
    Trials(PlannedTrials),
    /// A search for the smallest memory.
    Search(PlannedSearch),
    /// A search for the cheapest deployment.
    Deployments(DeploymentChoices),
}

/// The trials, in the order they run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedTrials {
    /// Version of this form.
    schema: u32,
    /// In the order they run.
    trials: Vec<PlannedTrial>,
    /// What this machine cannot run.
    left_out: Vec<LeftOut>,
    /// Expected length of one trial.
    trial_seconds: f64,
    /// Expected length of all.
    total_seconds: f64,
}

/// A search for the smallest memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlannedSearch {
    /// Version of this form.
    schema: u32,
    /// The configurations searched, without the memory.
    configurations: Vec<Configuration>,
    /// Starts, its proof included: half of all searches take no more.
    starts: u32,
    /// 95 in 100 searches take no more.
    starts_95: u32,
    /// Expected length of one trial.
    trial_seconds: f64,
    /// Whether that is how long start and stop of this application took before.
    is_from_earlier_trials: bool,
    /// Expected length: half of all searches take no longer.
    total_seconds: f64,
    /// 95 in 100 searches take no longer.
    total_seconds_95: f64,
}

/// One trial.
#[derive(Debug, Serialize, JsonSchema)]
struct PlannedTrial {
    /// What it runs.
    configuration: Configuration,
    /// Ordinal among the trials of its configuration, from 1.
    repeat: u32,
    /// The ladder it is a rung of; null where nothing descends.
    ladder: Option<usize>,
}

/// A configuration that does not run.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftOut {
    /// Its label.
    configuration: String,
    /// Why.
    why: String,
}

/// What a search for the cheapest deployment chooses from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeploymentChoices {
    /// Version of this form.
    schema: u32,
    /// Sizes of one replica, for each variant of the options.
    cells: Vec<CellForm>,
    /// Omissions, in words.
    left_out: Vec<String>,
    /// Expected length of one trial.
    trial_seconds: f64,
    /// Expected length of the search.
    total_seconds: f64,
}

/// One size of one variant.
#[derive(Debug, Serialize, JsonSchema)]
struct CellForm {
    /// Index of the variant, from 0.
    variant: u32,
    /// Its size.
    size: InstanceSize,
    /// Price of one replica.
    usd_per_hour: f64,
}

impl PlanDocument {
    pub fn for_search(told: &SearchOutlook, configurations: Vec<Configuration>) -> Self {
        let outlook = &told.outlook;
        Self::Search(PlannedSearch {
            schema: 1,
            configurations,
            starts: outlook.starts,
            starts_95: outlook.starts_95,
            trial_seconds: outlook.each.as_secs_f64(),
            is_from_earlier_trials: told.is_seen,
            total_seconds: outlook.time.as_secs_f64(),
            total_seconds_95: outlook.time_95.as_secs_f64(),
        })
    }

    pub fn for_matrix(agenda: &Agenda) -> Self {
        let trials = agenda.matrix.cells.iter().map(|t| PlannedTrial {
            configuration: t.configuration.clone(),
            repeat: t.repeat,
            ladder: t.ladder,
        });
        let left_out = agenda.left_out.iter().map(|(label, why)| LeftOut {
            configuration: label.clone(),
            why: why.clone(),
        });
        Self::Trials(PlannedTrials {
            schema: 1,
            trials: trials.collect(),
            left_out: left_out.collect(),
            trial_seconds: agenda.each.as_secs_f64(),
            total_seconds: agenda.matrix_length().as_secs_f64(),
        })
    }

    /// The plan of a search; its trials take `each`, all together `longest` seconds.
    pub fn for_deployments(ground: &MachineLattice, each: f64, longest: f64) -> Self {
        let cells = ground.cells.iter().map(|c| CellForm {
            variant: c.variant,
            size: c.size,
            usd_per_hour: c.per_hour,
        });
        Self::Deployments(DeploymentChoices {
            schema: 1,
            cells: cells.collect(),
            left_out: ground.left_out.clone(),
            trial_seconds: each,
            total_seconds: longest,
        })
    }
}
