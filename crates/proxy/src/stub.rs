//! Stubs of HTTP dependencies: recorded answers with recorded latencies.
//!
//! Owns a stub's order. `answers` chooses the answer to a request, `session` speaks HTTP/1.1 on a
//! connection, both without a socket; `serve` has the sockets. A stub runs in the process of the
//! proxy, on its one thread: its delay is in the same figure, and it may have toxics like any
//! dependency.

pub(crate) mod answers;
pub(crate) mod serve;
pub(crate) mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_load::profile::Pattern;
use serde::{Deserialize, Serialize};

use crate::delay::Delay;

pub const LARGEST_BODY: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubOrder {
    pub name: String,
    pub port: u16,
    /// Its answers; the first matching pattern counts, together with answers of the same pattern.
    pub answers: Vec<StubAnswer>,
    pub seed: u64,
    /// Whether toxics precede it: then it listens in a separate network.
    pub is_behind: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubAnswer {
    pub pattern: Pattern,
    /// How often, relative to others of the same pattern; above 0.
    pub weight: f64,
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: StubBody,
    /// From the end of the request until it is sent; `None` is at once.
    pub delay: Option<Delay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StubBody {
    Text(String),
    File(PathBuf),
    /// So many bytes that mean nothing.
    Filler(u64),
}
