//! `loadline schema NAME`: the form of what a command prints with `--json`, and of experiment files.
//!
//! Owns the list of forms; each follows from the type that the command writes. The test
//! `tests/json` runs the commands and compares.

use clap::{Args, ValueEnum};
use loadline_analysis::record::TrialRecord;
use loadline_experiment::ExperimentFile;
use loadline_jvm::gclog::report::GcReport;
use loadline_load::max_rate::MaxRateResult;
use loadline_load::summary::LoadSummary;

use super::{doctor, explain, fleet, footprint, judge, plan, predict, profile, store};
use crate::error::CommandOutcome;
use crate::output::AnswerPrinter;
use crate::say::schema_of;

#[derive(Args)]
pub struct SchemaArguments {
    /// Document to describe
    #[arg(value_enum, value_name = "FORM")]
    form: SchemaForm,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SchemaForm {
    /// A result: size, run, drill, judge, cache, soak, resume, show and export
    Result,
    /// Whether the shipped size still holds: verify
    Verify,
    /// Manifests checked on paper: lint
    Judge,
    /// A trial: show TRIAL
    Trial,
    /// What changed between two results: compare
    Compare,
    /// What would run: plan
    Plan,
    /// A load: load and merge
    Load,
    /// The highest rates: load --max-rate
    MaxRate,
    /// A load profile: profile
    Profile,
    /// Why a trial paused: explain
    Explain,
    /// A GC log: gc
    Gc,
    /// What the JVM would choose: predict
    Predict,
    /// Where a JVM's memory goes: footprint
    Footprint,
    /// Workloads of a cluster, or results compared with production: fleet
    Fleet,
    /// The results: list
    List,
    /// What this machine can measure: doctor
    Doctor,
    /// An experiment file
    Experiment,
}

impl SchemaForm {
    fn schema(self) -> String {
        match self {
            Self::Experiment => ExperimentFile::schema(),
            Self::Result => schema_of::<loadline_report::ExportedResult>(),
            Self::Verify => schema_of::<loadline_report::verified::VerifyStatement>(),
            Self::Judge => schema_of::<judge::paper::PaperDocument>(),
            Self::Trial => schema_of::<TrialRecord>(),
            Self::Compare => schema_of::<loadline_report::compare::ExportedComparison>(),
            Self::Plan => schema_of::<plan::json::PlanDocument>(),
            Self::Load => schema_of::<LoadSummary>(),
            Self::MaxRate => schema_of::<MaxRateResult>(),
            Self::Profile => schema_of::<profile::json::ProfileDocument>(),
            Self::Explain => schema_of::<explain::json::ExplainDocument>(),
            Self::Gc => schema_of::<GcReport>(),
            Self::Predict => schema_of::<predict::PredictDocument>(),
            Self::Footprint => schema_of::<footprint::FootprintDocument>(),
            Self::Fleet => schema_of::<fleet::FleetDocument>(),
            Self::List => schema_of::<store::ResultList>(),
            Self::Doctor => schema_of::<doctor::DoctorDocument>(),
        }
    }
}

pub fn run(
    arguments: &SchemaArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, crate::error::Error> {
    out.print_answer(&arguments.form.schema())?;
    Ok(CommandOutcome::Done)
}
