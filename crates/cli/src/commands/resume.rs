//! `loadline resume`: a result that was stopped goes on, here or where it was sent.

use std::path::PathBuf;

use clap::Args;
use loadline_kubernetes::in_cluster::inside::ControllerPod;
use loadline_runner::store::{ResultKind, ResultRow, Store};

use crate::away::{self, ConsentFlags, TakeoverOutcome};
use crate::error::{CommandOutcome, Error};
use crate::experiment::ClusterFlags;
use crate::measuring::{MeasuringSession, open_store, open_store_to_read};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::result::of_store;
use crate::ui::text::short;

#[derive(Args)]
pub struct ResumeArguments {
    /// Id of the result, or a unique prefix
    #[arg(default_value = "last")]
    id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Wait while another loadline is measuring, instead of refusing
    #[arg(long)]
    wait: bool,
    /// Webhook to send the outcome of the run to: a URL, or {env:NAME} or @FILE containing it
    #[arg(long, value_name = "URL")]
    notify: Option<String>,
    /// Only fetch the finished trials of a run in a cluster; the run continues there
    #[arg(long)]
    fetch: bool,
    #[command(flatten)]
    consent: ConsentFlags,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(
    mut arguments: ResumeArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    if let Some(inside) = ControllerPod::of_process() {
        return away::run_controller(&inside, arguments, out);
    }
    of_store(&arguments.id)?;
    if let Some(wanted) = arguments.cluster.wanted_cluster() {
        arguments.id =
            away::find_remote_result(&wanted, &arguments.id, arguments.state.as_deref())?;
    }
    // Creates no store if there is nothing to resume.
    let looked = open_store_to_read(arguments.state.as_deref())?;
    let row = looked.result_by_prefix(&arguments.id)?;
    drop(looked);
    if row.kind == ResultKind::Verify {
        let what = "a verify cannot be resumed; it takes only a few starts";
        return Err(Error::usage(what).with_hint("loadline verify"));
    }
    let store = open_store(arguments.state.as_deref())?;
    if let Some(place) = store.away_location(&row.id)? {
        let how = (arguments.fetch, arguments.consent);
        let here = away::take_over(&store, &row, &place, how)?;
        if let TakeoverOutcome::Over(end) = here {
            super::show::print_result(&store, &row.id, &arguments.output, out)?;
            return end;
        }
    } else if arguments.fetch {
        let what = format!("the result {} is not in a cluster", short(&row.id));
        return Err(Error::usage(what).with_hint("without --fetch the rest runs from here"));
    } else {
        away::confirm_run(&store, &row, arguments.consent)?;
    }
    let row = store.result_by_prefix(&row.id)?;
    run_rest(&row, store, &arguments, out)
}

pub fn run_rest(
    row: &ResultRow,
    store: Store,
    arguments: &ResumeArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    super::soak::salvage_records(&store, row)?;
    let measuring =
        MeasuringSession::resume_result(row, store, arguments.wait, arguments.notify.as_deref())?;
    match row.kind {
        ResultKind::Soak => super::soak::run_soak(measuring, &arguments.output, out),
        ResultKind::Run | ResultKind::Verify => {
            super::run::run_matrix(measuring, &arguments.output, out)
        }
        ResultKind::Size => super::size::run_size_search(measuring, &arguments.output, out),
    }
}
