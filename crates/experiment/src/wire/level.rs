//! One level of a factor, as it is written.
//!
//! Owns the two forms: a plain value, or a table of changes with a label.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One level of a factor: a plain value, or a table of changes with a label.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LevelEntry {
    /// A plain value of a factor that loadline knows.
    Plain(String),
    /// A label and what it changes.
    Changes(Box<LevelTable>),
}

// By hand, because an untagged enum hides which key of the table is wrong.
impl<'de> Deserialize<'de> for LevelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = LevelEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"512Mi\", or a table with a label")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LevelEntry, E> {
        Ok(LevelEntry::Plain(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<LevelEntry, E> {
        Ok(LevelEntry::Plain(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<LevelEntry, E> {
        Ok(LevelEntry::Plain(number.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LevelEntry, A::Error> {
        LevelTable::deserialize(de::value::MapAccessDeserializer::new(map))
            .map(|t| LevelEntry::Changes(Box::new(t)))
    }
}

/// What a level changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LevelTable {
    /// Short name for tables.
    pub label: String,
    /// JVM options it adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvm: Vec<String>,
    /// A program that runs in place of the experiment's application, with its directory, environment,
    /// readiness and load; with `image` what replaces that image's own command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// An image that runs in its place.
    pub image: Option<String>,
    /// Which engine starts that image: `podman` or `docker`; default: the engine that has the
    /// image.
    pub engine: Option<String>,
    /// Arguments it appends to the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables it sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How many instances run at once, each with these limits; they share the load.
    pub instances: Option<u32>,
    /// CPU limit.
    pub cpu: Option<String>,
    /// CFS period.
    pub cpu_period: Option<String>,
    /// Busy threads in a separate cgroup next to the application, for the whole trial, with the
    /// default weight of 1024 shares.
    pub neighbour_threads: Option<u8>,
    /// Quota that idle periods may save up, at most the quota of a period: `50ms`.
    pub cpu_burst: Option<String>,
    /// CPU limit until the application is ready, above `cpu`: `2`.
    pub start_cpu: Option<String>,
    /// Relative weight.
    pub cpu_shares: Option<u64>,
    /// CPUs it may run on.
    pub cpuset: Option<String>,
    /// Memory limit.
    pub memory: Option<String>,
    /// Requests a second of the open model, as `150/s`.
    pub rate: Option<String>,
    /// JDK by name, as `loadline doctor` lists it.
    pub jdk: Option<String>,
    /// Start-up cache, built before the first trial: `appcds` or `aot`.
    pub cache: Option<String>,
    /// Requests of its training run to each URL; default 20, 0 trains the start alone.
    pub cache_requests: Option<u64>,
}
