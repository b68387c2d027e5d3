//! Tables of which one key is enough: a text stands for the table with that key.
//!
//! Owns their reading. By hand, because an untagged enum hides which key of the table is wrong.

use std::fmt;
use std::path::PathBuf;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::ManifestTable;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FullManifestTable {
    file: PathBuf,
    #[serde(default)]
    workload: Option<String>,
    #[serde(default)]
    container: Option<String>,
}

impl<'de> Deserialize<'de> for ManifestTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ManifestVisitor)
    }
}

struct ManifestVisitor;

impl<'de> Visitor<'de> for ManifestVisitor {
    type Value = ManifestTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest's path such as \"deploy.yaml\", or a table with its file")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ManifestTable, E> {
        Ok(PathBuf::from(text).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ManifestTable, A::Error> {
        let full = FullManifestTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ManifestTable {
            file: full.file,
            workload: full.workload,
            container: full.container,
        })
    }
}
