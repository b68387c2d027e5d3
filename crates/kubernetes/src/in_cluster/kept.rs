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
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use loadline_protocol::RunRefusal;
use serde_json::json;

use super::job::{RESULT, controller_name};
use super::pieces::{self, PieceChunk, ResultPiece};
use crate::cluster::{ConnectedCluster, retry_request};
use crate::kubernetes::parse_json_value;
use crate::manifest::{MANAGED, owner_reference};
use crate::refused;

/// The annotation of a chunk with its place in its piece, as `1/3`.
const PART: &str = "loadline.dev/part";

/// The label of a chunk with its number.
const NUMBER: &str = "loadline.dev/piece";

/// The key of its bytes.
const BYTES: &str = "piece";

/// Config maps asked for at once: each may have 1 MiB.
const PAGE: u32 = 50;

/// What of a result is kept in a cluster.
pub(crate) struct PieceStore {
    cluster: ConnectedCluster,
    result: String,
    /// The Job's uid: what is kept belongs to it.
    uid: String,
    next: Cell<u32>,
}

impl fmt::Debug for PieceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what is kept of {}", self.result)
    }
}

impl PieceStore {
    /// Of a Job with this uid; nothing is asked yet.
    pub(crate) fn new(cluster: ConnectedCluster, result: &str, uid: &str) -> Self {
        Self {
            cluster,
            result: result.to_owned(),
            uid: uid.to_owned(),
            next: Cell::new(0),
        }
    }

    /// Every piece, in its order; what is added from now on comes behind them.
    ///
    /// # Errors
    /// [`RunRefusal`]: the cluster, or a piece that is missing or damaged.
    pub(crate) fn read(&self) -> Result<Vec<ResultPiece>, RunRefusal> {
        let chunks = read(&self.cluster, &self.result)?;
        let last = chunks.iter().map(|chunk| chunk.number + 1).max();
        self.next.set(last.unwrap_or_default());
        pieces::pieces_from_chunks(chunks)
    }

    /// Adds one; it is safe when this returns.
    ///
    /// # Errors
    /// [`RunRefusal`]: the cluster, or another loadline that works on the result.
    pub(crate) fn add_piece(&self, piece: &ResultPiece) -> Result<(), RunRefusal> {
        for chunk in pieces::split_piece(piece, self.next.get())? {
            let made = make_chunk(&self.cluster, (&self.result, &self.uid), &chunk);
            self.cluster.run(made)?;
            self.next.set(chunk.number + 1);
        }
        Ok(())
    }
}

/// Makes one chunk, again and again while the API server is away.
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
    let there = there.map_err(|e| refused::request_refusal("looking at what is kept", &e))?;
    match there.items.first().and_then(of_config_map) {
        Some(there) if there == *chunk => Ok(()),
        _ => Err(another_controller_refusal(result)),
    }
}

/// Keeps the first piece of a result.
pub(crate) fn begin_result(
    cluster: &ConnectedCluster,
    of: (&str, &str),
    piece: &ResultPiece,
) -> Result<(), RunRefusal> {
    for chunk in pieces::split_piece(piece, 0)? {
        cluster.run(make_chunk(cluster, of, &chunk))?;
    }
    Ok(())
}

/// All chunks of a result.
pub(crate) fn read(
    cluster: &ConnectedCluster,
    result: &str,
) -> Result<Vec<PieceChunk>, RunRefusal> {
    let api = cluster.access.config_maps();
    let mut params = ListParams::default()
        .labels(&format!("{RESULT}={result},{NUMBER}"))
        .limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = cluster.run(retry_request(|| api.list(&params)));
        let page =
            page.map_err(|e| refused::request_refusal("reading what the cluster kept", &e))?;
        all.extend(page.items.iter().filter_map(of_config_map));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// So often it is asked whether something new was kept.
pub(crate) const ASK: Duration = Duration::from_secs(1);

fn another_controller_refusal(result: &str) -> RunRefusal {
    RunRefusal::new(
        format!("keeping a piece of the result {result}"),
        "another loadline works on it: it has written the next piece",
        "that one goes on; `kubectl get pods -l loadline.dev/result` shows which",
    )
}

fn chunk_manifest(result: &str, uid: &str, chunk: &PieceChunk) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "immutable": true,
        "metadata": {
            "name": format!("{}-{:05}", controller_name(result), chunk.number),
            "labels": { MANAGED.0: MANAGED.1, RESULT: result, NUMBER: chunk.number.to_string() },
            "annotations": { PART: format!("{}/{}", chunk.part, chunk.parts) },
            "ownerReferences": [owner_reference(&controller_name(result), uid)],
        },
        "binaryData": { BYTES: ByteString(chunk.bytes.clone()) },
    })
}

fn of_config_map(map: &ConfigMap) -> Option<PieceChunk> {
    let number = map.metadata.labels.as_ref()?.get(NUMBER)?;
    let part = map.metadata.annotations.as_ref()?.get(PART)?;
    let (part, parts) = part.split_once('/')?;
    Some(PieceChunk {
        number: number.parse().ok()?,
        part: part.parse().ok()?,
        parts: parts.parse().ok()?,
        bytes: map.binary_data.as_ref()?.get(BYTES)?.0.clone(),
    })
}
