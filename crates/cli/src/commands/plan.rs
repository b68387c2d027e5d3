//! `loadline plan`: what would run and how long it takes, before anything runs.

use clap::Args;
use loadline_engine::experiment::ExperimentFile;
use loadline_engine::plan::Plan;
use loadline_report::table::{Cell, Table};
use serde_json::json;

use super::print;
use crate::error::{Error, Outcome};
use crate::experiment::{ExperimentFlags, given};
use crate::ui::text::span;

/// Show what `run` would do, and how long it takes
#[derive(Args)]
pub struct PlanArguments {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT", conflicts_with = "file")]
    experiment: Option<std::path::PathBuf>,
    #[command(flatten)]
    flags: ExperimentFlags,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of experiment files
    #[arg(long, exclusive = true)]
    schema: bool,
}

/// Prints the plan.
pub fn run(mut arguments: PlanArguments) -> Result<Outcome, Error> {
    if arguments.schema {
        print(&ExperimentFile::schema())?;
        return Ok(Outcome::Done);
    }
    arguments.flags.file = arguments.flags.file.or(arguments.experiment);
    let given = given(&arguments.flags, None)?;
    let plan = Plan::new(&given.experiment);
    print(&if arguments.json {
        as_json(&plan)
    } else {
        as_text(&plan)
    })?;
    Ok(Outcome::Done)
}

fn as_json(plan: &Plan) -> String {
    let trial = |t: &loadline_engine::plan::PlannedTrial| json!({ "configuration": t.configuration, "repeat": t.repeat, "ladder": t.ladder });
    let trials: Vec<_> = plan.trials.iter().map(trial).collect();
    json!({ "schema": 1, "trials": trials, "trial_seconds": plan.each.as_secs_f64(), "total_seconds": plan.total().as_secs_f64() }).to_string()
}

fn as_text(plan: &Plan) -> String {
    let mut table = Table::new()
        .right("#")
        .left("configuration")
        .right("cpu")
        .right("memory")
        .left("jdk")
        .wrapping("JVM options");
    for (i, trial) in plan.trials.iter().enumerate() {
        let c = &trial.configuration;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let options: Vec<&str> = c.jvm_options.iter().map(|o| o.text.as_str()).collect();
        let label = if trial.repeat > 1 {
            format!("{} #{}", c.label, trial.repeat)
        } else {
            c.label.clone()
        };
        table.row([
            Cell::from((i + 1).to_string()),
            Cell::from(label),
            Cell::from(or_none(c.cpu.map(|c| c.to_string()))),
            Cell::from(or_none(c.memory.map(|m| m.to_string()))),
            Cell::from(or_none(c.jdk.clone())),
            Cell::from(options.join(" ")),
        ]);
    }
    let ladders = if plan.trials.iter().any(|t| t.ladder.is_some()) {
        "at most "
    } else {
        ""
    };
    let total = format!(
        "{ladders}{} trials, about {} each, {ladders}{} in all",
        plan.trials.len(),
        span(plan.each),
        span(plan.total())
    );
    format!("{}\n{total}", table.terminal(super::width()))
}
