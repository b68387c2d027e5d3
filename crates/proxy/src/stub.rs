//! What stands in for an HTTP dependency: recorded answers with recorded latencies.
//!
//! Owns what a stub is told. Which answer a request gets is decided in `answers`, how a connection
//! speaks HTTP/1.1 in `session`, both without a socket; `serve` has the sockets. A stub lives in the
//! process of the proxy, on its one thread: what it was late is in the same figure, and it may have
//! toxics before it as anything else.

pub(crate) mod answers;
pub(crate) mod serve;
pub(crate) mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_load::profile::Pattern;
use serde::{Deserialize, Serialize};

use crate::delay::Delay;

/// Largest file with a body that is read, bytes.
pub const LARGEST_BODY: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubOrder {
    pub name: String,
    /// Its port, on the loopback.
    pub port: u16,
    /// Its answers; of those whose pattern fits, the first counts, with others of the same pattern.
    pub answers: Vec<StubAnswer>,
    pub seed: u64,
    /// Whether something stands before it: then it listens in a network of its own.
    pub is_behind: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubAnswer {
    pub pattern: Pattern,
    /// How often, beside others of the same pattern; above 0.
    pub weight: f64,
    /// Its status, 200 to 599.
    pub status: u16,
    /// Its headers; the length of the body is added.
    pub headers: BTreeMap<String, String>,
    pub body: StubBody,
    /// From the end of the request until it is sent; `None` is at once.
    pub delay: Option<Delay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StubBody {
    Text(String),
    /// What a file holds, up to [`LARGEST_BODY`].
    File(PathBuf),
    /// So many bytes that mean nothing.
    Filler(u64),
}
