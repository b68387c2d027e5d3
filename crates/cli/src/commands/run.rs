//! `loadline run`: a matrix or sweep; every configuration, its verdict and its figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use loadline_analysis::record::{TrialRecord, TrialVerdict};
use loadline_runner::agenda::Agenda;
use loadline_runner::store::ResultKind;

use crate::error::{CommandOutcome, Error, not_measured};
use crate::experiment::{
    ExperimentFlags, ExtraFlags, InClusterFlags, LoadedExperiment, MatrixFlags, load_experiment,
};
use crate::measuring::{MeasureFlags, MeasuringSession};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::{away, enough};

const BY_CHANCE: &str = "single slow requests decide the verdict of a trial";

#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    matrix: MatrixFlags,
    #[command(flatten)]
    in_cluster: InClusterFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl RunArguments {
    pub(super) fn read_experiment(&self) -> Result<LoadedExperiment, Error> {
        let more = ExtraFlags {
            search: None,
            matrix: Some(&self.matrix),
        };
        load_experiment(&self.flags, more)
    }
}

pub fn run(arguments: RunArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let given = arguments.read_experiment()?;
    measure(given, &arguments, out)
}

pub(super) fn measure(
    given: LoadedExperiment,
    arguments: &RunArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    for note in enough::notes(&given, BY_CHANCE) {
        talk!("{note}");
    }
    if arguments.in_cluster.in_cluster {
        let flags = (&arguments.measure, &arguments.output);
        return away::send_result(given, ResultKind::Run, flags);
    }
    let measuring = MeasuringSession::begin_result(given, ResultKind::Run, &arguments.measure)?;
    run_matrix(measuring, &arguments.output, out)
}

pub fn run_matrix(
    mut measuring: MeasuringSession,
    output: &OutputFlags,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let agenda = Agenda::new(&measuring.experiment).on_machine(measuring.host.host_machine().cpus);
    for (label, why) in &agenda.left_out {
        say!("left out: {label}: {why}");
    }
    if agenda.matrix.cells.is_empty() {
        let why = "no configuration is left that this machine can run";
        return Err(Error::environment(why)
            .with_hint("give smaller limits; `loadline doctor` shows what this machine has"));
    }
    let records = measuring.run_agenda(&agenda)?;
    super::show::print_result(&measuring.store, &measuring.result, output, out)?;
    outcome(&records)
}

/// A matrix is a study: failing cells are answers. It fails as a whole when no configuration kept
/// the SLO in every valid trial; with one configuration that means each of its starts.
pub(super) fn outcome(records: &[Arc<TrialRecord>]) -> Result<CommandOutcome, Error> {
    let mut has_kept = BTreeMap::new();
    for record in records.iter().filter(|r| r.verdict.is_evidence()) {
        let kept = has_kept.entry(&record.configuration.label).or_insert(true);
        *kept &= record.verdict == TrialVerdict::Pass;
    }
    if has_kept.is_empty() {
        return Err(not_measured(records.last().map(|r| &**r))
            .unwrap_or_else(|| Error::invalid("no trial could be measured")));
    }
    Ok(CommandOutcome::for_slo(has_kept.values().any(|kept| *kept)))
}
