//! Pieces of a result as config maps of its Job.
//!
//! Owns that no two loadlines write to one result: a piece is made under the next number and never
//! changed, so of two writers one finds its number taken, and ends. Config maps and not secrets: no
//! record holds the value of a credential, and the right to list secrets would let its owner read all of
//! the namespace. Facts: 1 MiB an object (core/v1 ConfigMap), 1.5 MiB a request (etcd).

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use loadline_protocol::RunRefusal;
use loadline_runner::store::is_store_id;
use serde_json::json;

use super::pieces::{self, PieceChunk, ResultPiece};
use crate::cluster::{ConnectedCluster, retry_request};
use crate::labels::{FIRST_PIECE, MANAGED, RESULT, controller_name};
use crate::manifest::owner_reference;
use crate::refused;
use crate::refused::parse_json_value;

/// The annotation of a chunk with its place in its piece, as `1/3`.
const PART: &str = "loadline.dev/part";

/// The label of a chunk with its number, for who looks with kubectl; its name is what counts.
const NUMBER: &str = "loadline.dev/piece";

const BYTES: &str = "piece";

/// Config maps asked for at once: each may have 1 MiB.
const PAGE: u32 = 50;

pub(crate) struct PieceStore {
    cluster: ConnectedCluster,
    result: String,
    /// The Job's uid, which owns the stored objects.
    uid: String,
    next: Cell<u32>,
}

impl fmt::Debug for PieceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what is kept of {}", self.result)
    }
}

impl PieceStore {
    pub(crate) fn new(cluster: ConnectedCluster, result: &str, uid: &str) -> Self {
        Self {
            cluster,
            result: result.to_owned(),
            uid: uid.to_owned(),
            next: Cell::new(0),
        }
    }

    /// Every piece, in order; later additions follow. Errors: [`RunRefusal`]: the cluster, a piece
    /// that is missing or damaged, or a piece of another result.
    pub(crate) fn read(&self) -> Result<Vec<ResultPiece>, RunRefusal> {
        let chunks = read(&self.cluster, (&self.result, &self.uid))?;
        let last = chunks.iter().map(|chunk| chunk.number + 1).max();
        self.next.set(last.unwrap_or_default());
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let job = find_job(&self.cluster, &self.result)?;
        let job = job.filter(|job| job.uid == self.uid).ok_or_else(|| {
            RunRefusal::new(
                format!("reading the stored pieces of the result {}", self.result),
                "the Job of this pod is gone",
                "the result was taken over and continues elsewhere",
            )
        })?;
        pieces::pieces_of_result(&self.result, chunks, job.first_piece.as_deref())
    }

    pub(crate) fn add_piece(&self, piece: &ResultPiece) -> Result<(), RunRefusal> {
        for chunk in pieces::split_piece(piece, self.next.get())? {
            let made = make_chunk(&self.cluster, (&self.result, &self.uid), &chunk);
            self.cluster.run(made)?;
            self.next.set(chunk.number + 1);
        }
        Ok(())
    }
}

async fn make_chunk(
    cluster: &ConnectedCluster,
    (result, uid): (&str, &str),
    chunk: &PieceChunk,
) -> Result<(), RunRefusal> {
    let made: ConfigMap = parse_json_value(chunk_manifest(result, uid, chunk))?;
    let (api, params) = (cluster.access.config_maps(), PostParams::default());
    match retry_request(|| api.create(&params, &made)).await {
        Ok(_) => return Ok(()),
        Err(error) if refused::is_there(&error) => {}
        Err(error) => {
            let what = "keeping a piece of the result in the cluster";
            return Err(refused::request_refusal(what, &error));
        }
    }
    // An earlier try may have been carried out, and its answer lost.
    let name = made.metadata.name.as_deref().unwrap_or_default();
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let there = retry_request(|| api.list(&params)).await;
    let there = there.map_err(|e| refused::request_refusal("looking at the stored pieces", &e))?;
    match there
        .items
        .first()
        .and_then(|map| of_config_map(map, result))
    {
        Some(there) if there == *chunk => Ok(()),
        _ => Err(another_controller_refusal(result)),
    }
}

pub(crate) fn begin_result(
    cluster: &ConnectedCluster,
    of: (&str, &str),
    chunks: &[PieceChunk],
) -> Result<(), RunRefusal> {
    for chunk in chunks {
        cluster.run(make_chunk(cluster, of, chunk))?;
    }
    Ok(())
}

/// All chunks of a result with a Job of this uid. Only config maps with exactly loadline's names
/// count: any user may write a label.
pub(crate) fn read(
    cluster: &ConnectedCluster,
    of: (&str, &str),
) -> Result<Vec<PieceChunk>, RunRefusal> {
    let (result, _) = of;
    refuse_odd_id(result)?;
    let api = cluster.access.config_maps();
    let mut params = ListParams::default()
        .labels(&format!("{RESULT}={result},{NUMBER}"))
        .limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = cluster.run(retry_request(|| api.list(&params)));
        let page =
            page.map_err(|e| refused::request_refusal("reading what the cluster kept", &e))?;
        for map in &page.items {
            all.extend(owned_chunk(map, of)?);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// The chunk in a config map; `None` without the name of a chunk of this result. Errors:
/// [`RunRefusal`] if it has such a name and does not belong to the Job.
fn owned_chunk(
    map: &ConfigMap,
    (result, uid): (&str, &str),
) -> Result<Option<PieceChunk>, RunRefusal> {
    let Some(number) = chunk_number(map, result) else {
        return Ok(None);
    };
    let owners = map.metadata.owner_references.iter().flatten();
    let job = controller_name(result);
    let is_owned = owners
        .into_iter()
        .any(|owner| owner.kind == "Job" && owner.name == job && owner.uid == uid);
    if is_owned {
        Ok(of_config_map(map, result))
    } else {
        Err(RunRefusal::new(
            format!("piece {number} of what the cluster kept of the result"),
            format!(
                "the config map {} does not belong to the Job {job}",
                chunk_name(result, number)
            ),
            "loadline did not make it: find out who did, and remove it with kubectl delete configmap",
        ))
    }
}

fn chunk_number(map: &ConfigMap, result: &str) -> Option<u32> {
    let found = map.metadata.name.as_deref()?;
    let number = found.rsplit_once('-')?.1.parse().ok()?;
    (found == chunk_name(result, number)).then_some(number)
}

fn chunk_name(result: &str, number: u32) -> String {
    format!("{}-{number:05}", controller_name(result))
}

/// Facts about the Job of a result that are needed before any stored piece counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultJob {
    pub(crate) uid: String,
    pub(crate) first_piece: Option<String>,
}

impl ResultJob {
    /// Of a Job that has this result's name and its label.
    /// Errors: [`RunRefusal`]: its label names another result.
    pub(crate) fn of_job(job: &Job, result: &str) -> Result<Self, RunRefusal> {
        let labels = job.metadata.labels.as_ref();
        let label = labels.and_then(|labels| labels.get(RESULT));
        if label.map(String::as_str) != Some(result) {
            return Err(foreign_job(
                &controller_name(result),
                &format!("its label {RESULT} is not {result}"),
            ));
        }
        let annotations = job.metadata.annotations.as_ref();
        Ok(Self {
            uid: job.metadata.uid.clone().unwrap_or_default(),
            first_piece: annotations.and_then(|all| all.get(FIRST_PIECE)).cloned(),
        })
    }
}

pub(crate) fn foreign_job(job: &str, why: &str) -> RunRefusal {
    RunRefusal::new(
        format!("the Job {}", job.escape_debug()),
        why,
        "loadline did not make it like that: find out who did, and remove it with kubectl delete job",
    )
}

/// Refuses an id that no loadline makes: it becomes part of names and of paths.
/// Errors: [`RunRefusal`] with the id.
pub(crate) fn refuse_odd_id(result: &str) -> Result<(), RunRefusal> {
    if is_store_id(result) {
        Ok(())
    } else {
        Err(RunRefusal::new(
            format!("the result {}", result.escape_debug()),
            "its id is not a UUID",
            "loadline makes no such id: find out who made its Job, and remove it with kubectl delete job",
        ))
    }
}

pub(crate) fn find_job(
    cluster: &ConnectedCluster,
    result: &str,
) -> Result<Option<ResultJob>, RunRefusal> {
    refuse_odd_id(result)?;
    let job = named_job(cluster, &controller_name(result))?;
    job.map(|job| ResultJob::of_job(&job, result)).transpose()
}

pub(crate) fn named_job(cluster: &ConnectedCluster, name: &str) -> Result<Option<Job>, RunRefusal> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let jobs = cluster.access.jobs();
    let found = cluster.run(retry_request(|| jobs.list(&params)));
    let what = format!("looking for the Job {name}");
    let found = found.map_err(|error| refused::request_refusal(&what, &error))?;
    let mut items = found.items.into_iter();
    Ok(items.find(|job| job.metadata.name.as_deref() == Some(name)))
}

pub(crate) const ASK: Duration = Duration::from_secs(1);

fn another_controller_refusal(result: &str) -> RunRefusal {
    RunRefusal::new(
        format!("keeping a piece of the result {result}"),
        "another loadline is working on it: it has written the next piece",
        "that one continues; `kubectl get pods -l loadline.dev/result` shows it",
    )
}

fn chunk_manifest(result: &str, uid: &str, chunk: &PieceChunk) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "immutable": true,
        "metadata": {
            "name": chunk_name(result, chunk.number),
            "labels": { MANAGED.0: MANAGED.1, RESULT: result, NUMBER: chunk.number.to_string() },
            "annotations": { PART: format!("{}/{}", chunk.part, chunk.parts) },
            "ownerReferences": [owner_reference(&controller_name(result), uid)],
        },
        "binaryData": { BYTES: ByteString(chunk.bytes.clone()) },
    })
}

fn of_config_map(map: &ConfigMap, result: &str) -> Option<PieceChunk> {
    let part = map.metadata.annotations.as_ref()?.get(PART)?;
    let (part, parts) = part.split_once('/')?;
    Some(PieceChunk {
        number: chunk_number(map, result)?,
        part: part.parse().ok()?,
        parts: parts.parse().ok()?,
        bytes: map.binary_data.as_ref()?.get(BYTES)?.0.clone(),
    })
}
