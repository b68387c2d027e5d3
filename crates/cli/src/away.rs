//! Results that loadline measures in a cluster instead of here: sending, fetching, taking over; and
//! the other side, the controller.
//!
//! Owns which parts of an experiment are sent (its text and the variables that it refers to) and
//! the result's state in each store. Crate `kubernetes` owns the transport and the objects in the
//! cluster.

mod arriving;
mod carried;
mod consent;

use std::path::Path;

use loadline_analysis::record::MachineDescription;
use loadline_experiment::ClusterSettings;
use loadline_experiment::wire::KubernetesTable;
use loadline_kubernetes::in_cluster::inside::{ControllerPod, ControllerRecords};
use loadline_kubernetes::in_cluster::outside::{
    ClusterResult, ControllerNeeds, ControllerState, SendOutcome,
};
use loadline_kubernetes::in_cluster::pieces::{ControllerEnd, ResultPiece};
use loadline_protocol::RunRefusal;
use loadline_report::text::{clean, one_line};
use loadline_report::{format, redact};
use loadline_runner::store::{
    AwayLocation, FinishedTrial, IncomingResult, NewResult, ResultKind, ResultRow, ResultStatus,
    Store, StoreError, TrialCopies,
};

use crate::called::called_words;
use crate::commands::resume::{ResumeArguments, run_rest};
use crate::error::{CommandOutcome, Error, FailureKind, store_refused};
use crate::experiment::LoadedExperiment;
use crate::images;
use crate::measuring::{MeasureFlags, account, open_store, state_directory, version};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::ui::next::next_command as next;
use crate::ui::text::short;
use arriving::AllowedNames;

pub use consent::{ConsentFlags, confirm_experiment, confirm_run};

/// Sends a result to a cluster and returns; says how to go on.
/// Errors: What cannot go along, and whatever keeps loadline from measuring there.
pub fn send_result(
    mut given: LoadedExperiment,
    kind: ResultKind,
    (flags, output): (&MeasureFlags, &OutputFlags),
) -> Result<CommandOutcome, Error> {
    let wanted = carried::checked_cluster(&given, flags, output)?;
    let mut with = ControllerNeeds {
        account: account(&given.experiment),
        variables: carried::variables(&given)?,
        notify: None,
    };
    images::only_image(&given.experiment)?;
    if let Some(notify) = &flags.notify {
        with.notify = Some(carried::notify(notify, &mut with.variables)?);
    }
    let outside = ClusterResult::connect_for_result(&wanted, "")?;
    let (context, namespace) = outside.context_and_namespace();
    let place = AwayLocation {
        context: context.to_owned(),
        namespace: namespace.to_owned(),
    };
    let text = carried::placed_text(&mut given, &place)?;
    let store = open_store(flags.state.as_deref())?;
    let result = begin_remote_result(&store, kind, (&given, text))?;
    let row = store.result_by_prefix(&result)?;
    let outside = outside.for_result(&result);
    store.set_away(&result, Some(&place))?;
    let AwayLocation { context, namespace } = &place;
    let job = outside.job_name();
    talk!("sending it to the namespace {namespace} ({context}) as the Job {job}");
    let sent = outside.send_result(&row, &with, &mut |why| talk!("waits: {why}"));
    let error = match sent {
        Ok(SendOutcome::Works) => return sent_there(&outside, &result),
        Ok(SendOutcome::Ended(ended)) => end_of(&ended),
        Err(refusal) => Err(Error::from_refusal(&refusal)),
    };
    // As on a machine: what cannot begin is no result.
    store.remove_result(&result)?;
    error
}

fn begin_remote_result(
    store: &Store,
    kind: ResultKind,
    (given, text): (&LoadedExperiment, String),
) -> Result<String, Error> {
    let new = NewResult {
        kind,
        title: given.title.clone(),
        experiment: text,
        directory: "/".into(),
        command: redact::redact_command(&called_words()),
        machine: MachineDescription {
            version: version(given),
            ..MachineDescription::default()
        },
    };
    let result = store.create_result(&new)?;
    store.set_status(&result, ResultStatus::Interrupted, None)?;
    Ok(result)
}

fn sent_there(outside: &ClusterResult, result: &str) -> Result<CommandOutcome, Error> {
    let (context, namespace) = outside.context_and_namespace();
    let (job, id) = (outside.job_name(), short(result));
    let kubectl = format!("kubectl --context {context} -n {namespace}");
    talk!("loadline now runs in the cluster; you can close this terminal");
    talk!("follow it: {kubectl} logs -f job/{job}");
    let (fetch, rest) = (format!("resume {id} --fetch"), format!("resume {id}"));
    talk!("fetch finished trials: {}", next(&fetch));
    talk!("fetch the rest, or take over: {}", next(&rest));
    talk!("stop it and discard its trials: {kubectl} delete job {job}");
    Ok(CommandOutcome::Done)
}

pub enum TakeoverOutcome {
    Over(Result<CommandOutcome, Error>),
    GoesOn,
}

/// Fetches the finished trials of a remote result. Without `only_fetch` the result then lives only
/// here: a working controller is stopped first, and before that the user must confirm an experiment
/// that came from the cluster. Errors: The cluster, the store, a piece that is missing, damaged or
/// of another result; a Job that has gone; a user who says no.
pub fn take_over(
    store: &Store,
    row: &ResultRow,
    place: &AwayLocation,
    (only_fetch, consent): (bool, ConsentFlags),
) -> Result<TakeoverOutcome, Error> {
    let result = row.id.as_str();
    let outside = ClusterResult::connect_for_result(&cluster_for_place(place), result)?;
    let stands = outside.controller_state()?;
    match &stands {
        ControllerState::Gone => return handle_gone_job(store, result, &outside),
        ControllerState::Works if !only_fetch => {
            confirm_run(store, row, consent)?;
            talk!("stopping loadline in the cluster to continue here");
            outside.end_controller()?;
        }
        ControllerState::Works | ControllerState::Ended(_) => {}
    }
    let incoming = store.incoming_result(result)?;
    let allowed = AllowedNames::of_experiment(&row.experiment)?;
    let pieces = outside.kept_pieces()?;
    let (new, ended) = store_pieces(&incoming, &allowed, &pieces)?;
    let came = format::count_of(new, "finished trial");
    talk!("{came} came from the cluster");
    if stands == ControllerState::Works && only_fetch && ended.is_none() {
        talk!("it continues there");
        return Ok(TakeoverOutcome::Over(Ok(CommandOutcome::Done)));
    }
    match (&ended, &stands) {
        (Some(ended), _) => {
            incoming.take_end(ended.status, ended.outcome.as_deref())?;
        }
        // It continues here: the user confirms before the Job, which holds all data, is removed.
        (None, ControllerState::Ended(_)) if !only_fetch => confirm_run(store, row, consent)?,
        (None, _) => {}
    }
    // Only now: all data are safe here.
    outside.remove_result_job()?;
    store.set_away(result, None)?;
    match (ended, stands) {
        (Some(ended), _) => Ok(TakeoverOutcome::Over(end_of(&ended))),
        (None, ControllerState::Ended(why)) => {
            let why = one_line(&why);
            say!("warning: the Job in the cluster ended without a report: {why}");
            if only_fetch {
                Ok(TakeoverOutcome::Over(Ok(CommandOutcome::Done)))
            } else {
                Ok(TakeoverOutcome::GoesOn)
            }
        }
        (None, _) => Ok(TakeoverOutcome::GoesOn),
    }
}

fn handle_gone_job(
    store: &Store,
    result: &str,
    outside: &ClusterResult,
) -> Result<TakeoverOutcome, Error> {
    store.set_away(result, None)?;
    let row = store.result_by_prefix(result)?;
    let (context, namespace) = outside.context_and_namespace();
    let what = format!(
        "the Job {} is gone from the namespace {namespace} ({context}), with its trials: it was deleted, or taken over from another machine",
        outside.job_name()
    );
    let fetched = format::count_of(usize::try_from(row.trials).unwrap_or_default(), "trial");
    Err(Error::environment(what).with_hint(format!(
        "{fetched} were fetched before; run the rest here: {}",
        next(&format!("resume {}", short(result)))
    )))
}

/// Finds a result in a cluster that this store may not know, adds it, and returns its id. Errors:
/// There is none, or several; the cluster; a result that is not accepted from there.
pub fn find_remote_result(
    wanted: &ClusterSettings,
    id: &str,
    state: Option<&Path>,
) -> Result<String, Error> {
    let found =
        ClusterResult::connect_for_result(wanted, id).and_then(ClusterResult::find_by_prefix);
    let outside = found?;
    let pieces = outside.kept_pieces()?;
    let store = open_store(state)?;
    let row = pieces.iter().find_map(|piece| match piece {
        ResultPiece::Begun(row) => Some(row),
        _ => None,
    });
    let Some(row) = row else {
        let what = format!("the Job {} has stored nothing", outside.job_name());
        return Err(Error::environment(what).with_hint(
            "the loadline that created it was killed; remove it with kubectl delete job",
        ));
    };
    let (context, namespace) = outside.context_and_namespace();
    let place = AwayLocation {
        context: context.to_owned(),
        namespace: namespace.to_owned(),
    };
    let accepted = arriving::accepted_row(row, &place)?;
    store.take_from_cluster(&accepted, &place)?;
    Ok(accepted.id)
}

fn cluster_for_place(place: &AwayLocation) -> ClusterSettings {
    ClusterSettings::from(&KubernetesTable {
        context: Some(place.context.clone()),
        namespace: Some(place.namespace.clone()),
        ..KubernetesTable::default()
    })
}

/// Adds pieces to the result to which they belong; how many trials are new there, and the end if it has
/// come.
fn store_pieces(
    incoming: &IncomingResult<'_>,
    allowed: &AllowedNames,
    pieces: &[ResultPiece],
) -> Result<(usize, Option<ControllerEnd>), Error> {
    // All or nothing: a manipulated result is rejected whole.
    pieces
        .iter()
        .try_for_each(|piece| allowed.check_piece(piece))?;
    let (mut new, mut ended) = (0, None);
    for piece in pieces {
        match piece {
            // The row is here: sent from here, found, or begun by the controller.
            ResultPiece::Begun(_) => Ok(()),
            ResultPiece::Machine(ground) => {
                incoming.take_machine(&ground.machine, ground.fingerprint.as_deref())
            }
            ResultPiece::Trial(finished) => incoming
                .take_trial(finished)
                .map(|is_new| new += usize::from(is_new)),
            ResultPiece::Ended(end) => {
                ended = Some(end.clone());
                Ok(())
            }
        }?;
    }
    Ok((new, ended))
}

fn end_of(ended: &ControllerEnd) -> Result<CommandOutcome, Error> {
    let Some(error) = &ended.error else {
        return Ok(match ended.code {
            1 => CommandOutcome::SloMissed,
            _ => CommandOutcome::Done,
        });
    };
    // Untrusted text: it must not contain terminal control sequences.
    let error = Error::new(FailureKind::of_code(ended.code), clean(error));
    let hints = ended.hints.iter().map(|hint| clean(hint));
    Err(hints.fold(error, Error::with_hint))
}

/// Copies of a controller: once a record is copied its log is deleted, because the disk is small.
#[derive(Debug)]
struct ControllerCopies {
    keeping: ControllerRecords,
    store: Store,
}

impl TrialCopies for ControllerCopies {
    fn keep_trial(&self, finished: &FinishedTrial) -> Result<(), RunRefusal> {
        self.keeping.keep_trial(finished)?;
        // What stays takes room and does no harm.
        let _ = std::fs::remove_file(self.store.trial_log_path(&finished.record.id));
        Ok(())
    }

    fn stand_on(
        &self,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Result<(), RunRefusal> {
        self.keeping.stand_on(machine, fingerprint)
    }
}

/// The row that a controller runs, checked like a row that arrives on a laptop: it runs where this
/// pod's own command says. Returns the variables that it reads, which its Secret holds.
fn begun_row(
    pieces: &[ResultPiece],
    inside: &ControllerPod,
    wanted: &ClusterSettings,
) -> Result<ResultRow, Error> {
    let Some(ResultPiece::Begun(row)) = pieces.first() else {
        let what = format!("the Job of the result {} has stored nothing", inside.result);
        return Err(Error::environment(what).with_hint(
            "the loadline that created it was killed; remove it with kubectl delete job",
        ));
    };
    let place = AwayLocation {
        context: wanted.context.clone().unwrap_or_default(),
        namespace: wanted.namespace.clone().unwrap_or_default(),
    };
    let row = arriving::accepted_row(row, &place)?;
    let variables = arriving::referenced_variables(&row.experiment)?;
    if !variables.is_empty() {
        talk!("it reads the variables {}", variables.join(", "));
    }
    Ok(row)
}

/// Runs the controller: continues from the trials that earlier pods stored, and stores how it ends.
/// Its exit code is 0 once that is stored, so its Job makes another pod only after a silent end.
/// Errors: Whatever prevents that, and a requested stop.
pub fn run_controller(
    inside: &ControllerPod,
    arguments: ResumeArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let wanted = arguments.cluster.wanted_cluster().ok_or_else(|| {
        Error::internal("a controller is told its cluster")
            .with_hint("this is a defect of loadline: please report it")
    })?;
    let (keeping, pieces) = ControllerRecords::open_records(&wanted, inside)?;
    let directory = state_directory(arguments.state.as_deref());
    let open = || Store::open_alone(&directory).map_err(|e: StoreError| store_refused(&e));
    let mut store = open()?;
    let row = begun_row(&pieces, inside, &wanted)?;
    let incoming = store.take_result(&row)?;
    let allowed = AllowedNames::of_experiment(&row.experiment)?;
    let (before, ended) = store_pieces(&incoming, &allowed, &pieces)?;
    if ended.is_some() {
        return Ok(CommandOutcome::Done);
    }
    if before > 0 {
        let kept = format::count_of(before, "finished trial");
        talk!("continuing: {kept} were kept");
    }
    store.copy_to(Box::new(ControllerCopies {
        keeping: keeping.clone(),
        store: open()?,
    }));
    let row = store.result_by_prefix(&inside.result)?;
    let end = run_rest(&row, store, &arguments, out);
    if let Err(error) = &end
        && matches!(error.failure_kind(), FailureKind::Interrupted(_))
    {
        return end;
    }
    let row = open()?.result_by_prefix(&inside.result)?;
    let ended = end.as_ref();
    let error = ended.err();
    let kept = keeping.keep_end(ControllerEnd {
        status: match row.status {
            ResultStatus::Done => ResultStatus::Done,
            _ => ResultStatus::Failed,
        },
        outcome: row.outcome,
        code: ended.map_or_else(Error::code, |outcome| outcome.code()),
        error: error.map(|error| error.message().to_owned()),
        hints: error.map_or_else(Vec::new, |error| error.hints().to_vec()),
    });
    if let Err(error) = end {
        // Its log is what people look at.
        let _ = error.report();
    }
    kept?;
    Ok(CommandOutcome::Done)
}
