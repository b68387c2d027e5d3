//! A result that loadline measures in a cluster instead of here: sent there, fetched, taken over; and
//! the other end of it, the controller.
//!
//! Owns what of an experiment can go along (its text and the variables that it refers to) and what a
//! result becomes in which store. How it travels, and what is made in the cluster, is crate
//! `kubernetes`'s.

mod carried;

use std::path::Path;

use loadline_analysis::record::Machine;
use loadline_engine::experiment::Cluster;
use loadline_engine::experiment::wire::KubernetesTable;
use loadline_engine::store::{
    Away, Copies, Finished, NewResult, ResultKind, Status, Store, StoreError,
};
use loadline_kubernetes::in_cluster::inside::{Inside, Keeping};
use loadline_kubernetes::in_cluster::outside::{Outside, Sent, Stands, With};
use loadline_kubernetes::in_cluster::pieces::{Ended, Piece};
use loadline_report::format;
use loadline_report::redact;
use loadline_trial::Refusal;

use crate::commands::{OutputFlags, ResumeArguments, rest};
use crate::error::{Error, ErrorKind, Outcome};
use crate::experiment::Given;
use crate::images;
use crate::measuring::{
    MeasureFlags, account, open_store, state_directory, store_refused, version,
};
use crate::ui::next::command as next;
use crate::ui::text::short;

/// Sends a result to a cluster and returns; says how to go on.
///
/// # Errors
/// What cannot go along, and whatever keeps loadline from measuring there.
pub fn send(
    mut given: Given,
    kind: ResultKind,
    (flags, output): (&MeasureFlags, &OutputFlags),
) -> Result<Outcome, Error> {
    let wanted = carried::cluster(&given, flags, output)?;
    let mut with = With {
        account: account(&given.experiment),
        variables: carried::variables(&given)?,
        notify: None,
    };
    images::only(&given.experiment)?;
    if let Some(notify) = &flags.notify {
        with.notify = Some(carried::notify(notify, &mut with.variables)?);
    }
    let outside = Outside::connect(&wanted, "").map_err(|e| Error::refused(&e))?;
    let (context, namespace) = outside.place();
    let place = Away {
        context: context.to_owned(),
        namespace: namespace.to_owned(),
    };
    let text = carried::text(&mut given, &place)?;
    let store = open_store(flags.state.as_deref())?;
    let result = begin(&store, kind, (&given, text))?;
    let row = store.result(&result).map_err(|e| store_refused(&e))?;
    let outside = outside.for_result(&result);
    let noted = store.set_away(&result, Some(&place));
    noted.map_err(|e| store_refused(&e))?;
    talk!(
        "sending it to the namespace {namespace} ({context}) as the Job {}",
        outside.job(),
        namespace = place.namespace,
        context = place.context
    );
    let sent = outside.send(&row, &with, &mut |why| talk!("waits: {why}"));
    let error = match sent {
        Ok(Sent::Works) => return sent_there(&outside, &result),
        Ok(Sent::Ended(ended)) => end_of(&ended),
        Err(refusal) => Err(Error::refused(&refusal)),
    };
    // As on a machine: what cannot begin is no result.
    store
        .remove_result(&result)
        .map_err(|e| store_refused(&e))?;
    error
}

/// The result as it is begun: measured by nobody yet.
fn begin(
    store: &Store,
    kind: ResultKind,
    (given, text): (&Given, String),
) -> Result<String, Error> {
    let command: Vec<String> = std::env::args().collect();
    let new = NewResult {
        kind,
        title: given.title.clone(),
        experiment: text,
        directory: "/".into(),
        command: redact::command(&command),
        machine: Machine {
            version: version(given),
            ..Machine::default()
        },
    };
    let result = store.create_result(&new).map_err(|e| store_refused(&e))?;
    let noted = store.set_status(&result, Status::Interrupted, None);
    noted.map_err(|e| store_refused(&e))?;
    Ok(result)
}

fn sent_there(outside: &Outside, result: &str) -> Result<Outcome, Error> {
    let (context, namespace) = outside.place();
    let (job, id) = (outside.job(), short(result));
    let kubectl = format!("kubectl --context {context} -n {namespace}");
    talk!("loadline works there now; nothing here needs to stay");
    talk!("see it work: {kubectl} logs -f job/{job}");
    talk!(
        "fetch what is finished: {}",
        next(&format!("resume {id} --fetch"))
    );
    talk!(
        "fetch its end, or take over: {}",
        next(&format!("resume {id}"))
    );
    talk!("stop it, and drop what it has: {kubectl} delete job {job}");
    Ok(Outcome::Done)
}

/// Whether there is anything left to run here.
pub enum Here {
    /// No; how the command ends.
    Over(Result<Outcome, Error>),
    /// Yes: it goes on here.
    GoesOn,
}

/// Fetches what is finished of a result that is away. Without `only_fetch` it is here then and nowhere
/// else: a controller that works is ended first.
///
/// # Errors
/// The cluster, the store, a piece that is missing or damaged; a Job that is gone.
pub fn take_over(
    store: &Store,
    result: &str,
    place: &Away,
    only_fetch: bool,
) -> Result<Here, Error> {
    let outside = Outside::connect(&there(place), result).map_err(|e| Error::refused(&e))?;
    let refused = |refusal: Refusal| Error::refused(&refusal);
    let stands = outside.stands().map_err(refused)?;
    match &stands {
        Stands::Gone => return gone(store, result, &outside),
        Stands::Works if !only_fetch => {
            talk!("ending loadline in the cluster, to go on here");
            outside.end().map_err(refused)?;
        }
        Stands::Works | Stands::Ended(_) => {}
    }
    let (new, ended) = take(store, &outside.pieces().map_err(refused)?)?;
    talk!(
        "{} came from the cluster",
        format::count(new, "finished trial")
    );
    if stands == Stands::Works && only_fetch && ended.is_none() {
        talk!("it goes on there");
        return Ok(Here::Over(Ok(Outcome::Done)));
    }
    if let Some(ended) = &ended {
        let set = store.set_status(result, ended.status, ended.outcome.as_deref());
        set.map_err(|e| store_refused(&e))?;
    }
    // Only now: all of it is safe here.
    outside.remove().map_err(refused)?;
    store
        .set_away(result, None)
        .map_err(|e| store_refused(&e))?;
    match (ended, stands) {
        (Some(ended), _) => Ok(Here::Over(end_of(&ended))),
        (None, Stands::Ended(why)) => {
            eprintln!("warning: the Job in the cluster ended without having said how: {why}");
            match only_fetch {
                true => Ok(Here::Over(Ok(Outcome::Done))),
                false => Ok(Here::GoesOn),
            }
        }
        (None, _) => Ok(Here::GoesOn),
    }
}

/// Somebody removed the Job, or took over.
fn gone(store: &Store, result: &str, outside: &Outside) -> Result<Here, Error> {
    store
        .set_away(result, None)
        .map_err(|e| store_refused(&e))?;
    let row = store.result(result).map_err(|e| store_refused(&e))?;
    let (context, namespace) = outside.place();
    let what = format!(
        "the Job {} is gone from the namespace {namespace} ({context}), and with it what it kept: somebody deleted it, or took over from another machine",
        outside.job()
    );
    let fetched = format::count(usize::try_from(row.trials).unwrap_or_default(), "trial");
    Err(Error::new(ErrorKind::Environment, what).hint(format!(
        "{fetched} of it were fetched before; to run the rest from here: {}",
        next(&format!("resume {}", short(result)))
    )))
}

/// Finds a result in a cluster that this store may not know; gives its id, and from now on it does.
///
/// # Errors
/// There is none, or several; the cluster.
pub fn find(wanted: &Cluster, id: &str, state: Option<&Path>) -> Result<String, Error> {
    let found = Outside::connect(wanted, id).and_then(Outside::find);
    let outside = found.map_err(|e| Error::refused(&e))?;
    let pieces = outside.pieces().map_err(|e| Error::refused(&e))?;
    let store = open_store(state)?;
    let row = pieces.iter().find_map(|piece| match piece {
        Piece::Begun(row) => Some(row),
        _ => None,
    });
    let Some(row) = row else {
        let what = format!("the Job {} has not kept what it measures", outside.job());
        return Err(Error::new(ErrorKind::Environment, what)
            .hint("whoever made it was killed before; kubectl delete job removes it"));
    };
    let (context, namespace) = outside.place();
    let place = Away {
        context: context.to_owned(),
        namespace: namespace.to_owned(),
    };
    let taken = store.take_result(row);
    let noted = taken.and_then(|()| store.set_away(&row.id, Some(&place)));
    noted.map_err(|e| store_refused(&e))?;
    Ok(row.id.clone())
}

fn there(place: &Away) -> Cluster {
    Cluster::from(&KubernetesTable {
        context: Some(place.context.clone()),
        namespace: Some(place.namespace.clone()),
        ..KubernetesTable::default()
    })
}

/// Puts pieces into a store; how many trials are new there, and the end if it has come.
fn take(store: &Store, pieces: &[Piece]) -> Result<(usize, Option<Ended>), Error> {
    let (mut new, mut ended, mut result) = (0, None, "");
    for piece in pieces {
        let taken = match piece {
            Piece::Begun(row) => {
                result = &row.id;
                store.take_result(row)
            }
            Piece::Machine(ground) => {
                store.stand_on(result, &ground.machine, ground.fingerprint.as_deref())
            }
            Piece::Trial(finished) => store
                .take_trial(finished)
                .map(|is_new| new += usize::from(is_new)),
            Piece::Ended(end) => {
                ended = Some(end.clone());
                Ok(())
            }
        };
        taken.map_err(|e| store_refused(&e))?;
    }
    Ok((new, ended))
}

/// How the command ends that the controller ran.
fn end_of(ended: &Ended) -> Result<Outcome, Error> {
    let Some(error) = &ended.error else {
        return Ok(match ended.code {
            1 => Outcome::SloMissed,
            _ => Outcome::Done,
        });
    };
    let error = Error::new(ErrorKind::of_code(ended.code), error);
    Err(ended.hints.iter().fold(error, Error::hint))
}

/// Copies of a controller: a log whose record is kept is not needed any more, and its disk is small.
#[derive(Debug)]
struct Copying {
    keeping: Keeping,
    store: Store,
}

impl Copies for Copying {
    fn keep(&self, finished: &Finished) -> Result<(), Refusal> {
        self.keeping.keep(finished)?;
        // What stays takes room and does no harm.
        let _ = std::fs::remove_file(self.store.log(&finished.record.id));
        Ok(())
    }

    fn stand_on(&self, machine: &Machine, fingerprint: Option<&str>) -> Result<(), Refusal> {
        self.keeping.stand_on(machine, fingerprint)
    }
}

/// What a controller does: goes on with what pods before it kept, and keeps how it ends. Its exit code is
/// 0 where that is kept, so its Job makes another pod only where one ended without a word.
///
/// # Errors
/// Whatever keeps it from saying so, and an end that somebody asked for.
pub fn controller(inside: &Inside, arguments: ResumeArguments) -> Result<Outcome, Error> {
    let wanted = arguments.cluster().ok_or_else(|| {
        Error::new(ErrorKind::Internal, "a controller is told its cluster")
            .hint("this is a defect of loadline: please report it")
    })?;
    let (keeping, pieces) = Keeping::begin(&wanted, inside).map_err(|e| Error::refused(&e))?;
    let directory = state_directory(arguments.state());
    let open = || Store::open_alone(&directory).map_err(|e: StoreError| store_refused(&e));
    let mut store = open()?;
    let (before, ended) = take(&store, &pieces)?;
    if ended.is_some() {
        return Ok(Outcome::Done);
    }
    if before > 0 {
        talk!(
            "going on: {} were kept",
            format::count(before, "finished trial")
        );
    }
    store.copy_to(Box::new(Copying {
        keeping: keeping.clone(),
        store: open()?,
    }));
    let row = store
        .result(&inside.result)
        .map_err(|e| store_refused(&e))?;
    let end = rest(&row, store, &arguments);
    if let Err(error) = &end
        && matches!(error.kind(), ErrorKind::Interrupted(_))
    {
        return end;
    }
    let row = open()?.result(&inside.result);
    let row = row.map_err(|e| store_refused(&e))?;
    let kept = keeping.ended(Ended {
        status: match row.status {
            Status::Done => Status::Done,
            _ => Status::Failed,
        },
        outcome: row.outcome,
        code: end
            .as_ref()
            .map_or_else(Error::code, |outcome| outcome.code()),
        error: end.as_ref().err().map(|error| error.message().to_owned()),
        hints: end
            .as_ref()
            .err()
            .map_or_else(Vec::new, |error| error.hints().to_vec()),
    });
    if let Err(error) = end {
        // Its log is what people look at.
        let _ = error.report();
    }
    kept.map_err(|e| Error::refused(&e))?;
    Ok(Outcome::Done)
}
