//! The start in a record: how the application became ready, what it had then, its start-up cache.

use std::time::Duration;

use loadline_sizing::Bytes;
use loadline_sizing::cache::CacheKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// A start-up cache: what kind, and how it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartCache {
    /// What kind.
    #[serde(with = "wire::cache_kind")]
    pub kind: CacheKind,
    /// Requests of the training run; 0 trains the start alone.
    pub requests: u64,
}

/// The start of the application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct StartEvidence {
    /// Exec to the first good response; `None` when it never came.
    #[serde(rename = "ready_ns", with = "wire::nanos_opt", default)]
    pub ready: Option<Duration>,
    /// How long was waited at most.
    #[serde(rename = "deadline_ns", with = "wire::nanos")]
    pub deadline: Duration,
    /// CPU time used until ready.
    #[serde(rename = "cpu_ns", with = "wire::nanos_opt", default)]
    pub cpu: Option<Duration>,
    /// Throttled time until ready: a sum over CPUs, it may exceed wall time.
    #[serde(rename = "throttled_ns", with = "wire::nanos_opt", default)]
    pub throttled: Option<Duration>,
    /// The last thing the readiness probe saw: `HTTP 503`, `connection refused`.
    pub last_probe: String,
    /// Exec to the line of the output that the experiment names; it may come after ready.
    #[serde(rename = "log_line_ns", with = "wire::nanos_opt", default)]
    pub log_line: Option<Duration>,
    /// Classes loaded until ready, by the JVM's own counters.
    #[serde(default)]
    pub classes: Option<u64>,
    /// Of them, taken from a class archive, the JDK's own included.
    #[serde(default)]
    pub classes_archived: Option<u64>,
    /// RSS of the application's processes when it was ready, transparent huge pages included.
    #[serde(rename = "rss_bytes", with = "wire::bytes_opt", default)]
    pub rss: Option<Bytes>,
    /// The same, but a page that n processes share counts 1/n.
    #[serde(rename = "pss_bytes", with = "wire::bytes_opt", default)]
    pub pss: Option<Bytes>,
    /// Pages of hugetlbfs when it was ready; RSS does not count them.
    #[serde(rename = "hugetlb_bytes", with = "wire::bytes_opt", default)]
    pub hugetlb: Option<Bytes>,
}

/// The start-up cache of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheEvidence {
    /// What kind.
    #[serde(with = "wire::cache_kind")]
    pub kind: CacheKind,
    /// Size of its file.
    #[serde(rename = "archive_bytes", with = "wire::bytes")]
    pub archive: Bytes,
    /// How long the training run and the writing took.
    #[serde(rename = "training_ns", with = "wire::nanos")]
    pub training: Duration,
}
