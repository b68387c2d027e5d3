//! Faults of a dependency or its connection, in a file.
//!
//! Owns the schema of outages and toxics; [`super::super::toxic`] turns them into types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::said::{Text, ValueWithOrigin};

/// A time in which a dependency is away. One that is slow on a schedule is a `toxic` with `at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutageTable {
    /// Name of the dependency.
    pub dependency: Text,
    /// `down`: connections are refused, open ones are reset (the default); `timeout`: a black hole,
    /// no byte arrives in either direction.
    #[serde(rename = "type")]
    pub kind: Option<Text>,
    /// Begin, from the start of the measured load: `20s`.
    pub at: Text,
    /// How long: `10s`.
    #[serde(rename = "for")]
    pub lasts: Text,
}

/// One toxic, named and shaped as Toxiproxy's; units are written out. The guide about outages lists
/// the keys of each type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToxicTable {
    /// `latency`, `bandwidth`, `slow_close`, `timeout`, `reset_peer`, `slicer`, `limit_data`, `down`.
    #[serde(rename = "type")]
    pub kind: Text,
    /// Which bytes: `upstream` to the dependency, or `downstream` from it (the default).
    pub stream: Option<Text>,
    /// Share of connections that it befalls, above 0 and at most 1; default 1.
    pub toxicity: Option<ValueWithOrigin<f64>>,
    /// Begin, from the start of the measured load: `20s`; default: always.
    pub at: Option<Text>,
    /// How long it lasts then: `10s`.
    #[serde(rename = "for")]
    pub lasts: Option<Text>,
    /// Of `latency`: `20ms`.
    pub latency: Option<Text>,
    /// Of `latency`: how far it varies, `5ms`.
    pub jitter: Option<Text>,
    /// For `latency`: `uniform` (the default with jitter), `normal`, or `pareto`.
    pub distribution: Option<Text>,
    /// Of a Pareto distribution, above 1: smaller is a longer tail; default 2.5.
    pub shape: Option<ValueWithOrigin<f64>>,
    /// Of `latency`, in place of the others: an HdrHistogram interval log (`.hlog`, in ns), relative to the
    /// experiment file, from which is drawn as often as was seen.
    pub recorded: Option<Text>,
    /// What `recorded` holds, once it was read: HdrHistogram V2 deflate, base64, ns.
    pub histogram: Option<String>,
    /// Of `bandwidth`: `100KB/s`.
    pub rate: Option<Text>,
    /// Of `slow_close` and `slicer`: `500ms`.
    pub delay: Option<Text>,
    /// Of `timeout`, after which the connection is closed (default: never), and of `reset_peer`,
    /// after which it is reset (default: at once).
    pub timeout: Option<Text>,
    /// Of `slicer`: bytes of a piece.
    pub average_size: Option<ValueWithOrigin<u64>>,
    /// Of `slicer`: how far that varies, below it; default 0.
    pub size_variation: Option<ValueWithOrigin<u64>>,
    /// Of `limit_data`: bytes after which the connection is closed.
    pub bytes: Option<ValueWithOrigin<u64>>,
}
