//! The `release` file in the home of a JDK: `KEY="value"` lines.
//!
//! Owns its text form and the vendor's short name. Facts: files of OpenJDK 8-25 builds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use super::{DetectError, JdkVersion};
use crate::beneath;

/// Larger files are no `release` file; real ones have 1-3 KiB.
const SIZE_LIMIT: u64 = 1 << 20;

/// Implementor texts and their short names, in order: the first that occurs wins.
const VENDORS: [(&str, &str); 13] = [
    ("adoptium", "temurin"),
    ("temurin", "temurin"),
    ("semeru", "semeru"),
    ("ibm", "semeru"),
    ("amazon", "corretto"),
    ("azul", "zulu"),
    ("bellsoft", "liberica"),
    ("sap se", "sapmachine"),
    ("microsoft", "microsoft"),
    ("alibaba", "dragonwell"),
    ("red hat", "redhat"),
    ("graalvm", "graalvm"),
    ("oracle", "oracle"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseFile {
    pub version: JdkVersion,
    pub modules: Vec<String>,
    entries: BTreeMap<String, String>,
}

impl ReleaseFile {
    /// Reads the file from `path`.
    ///
    /// # Errors
    ///
    /// When it cannot be read or names no version.
    pub fn read(path: &Path, file: io::Result<File>) -> Result<Self, DetectError> {
        let bytes = file.and_then(|file| beneath::read(file, SIZE_LIMIT));
        let bytes = bytes.map_err(|source| DetectError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let text = String::from_utf8_lossy(&bytes);
        Self::from_release_text(&text).ok_or_else(|| DetectError::NoVersion {
            path: path.to_owned(),
        })
    }

    pub fn from_release_text(text: &str) -> Option<Self> {
        let lines = text.lines().filter_map(|line| line.trim().split_once('='));
        let entry =
            |(key, value): (&str, &str)| (key.to_owned(), value.trim_matches('"').to_owned());
        // The first of equals counts.
        let entries: BTreeMap<String, String> = lines.rev().map(entry).collect();
        let version = |key: &str| JdkVersion::from_version_text(entries.get(key)?);
        let version = version("JAVA_RUNTIME_VERSION").or_else(|| version("JAVA_VERSION"))?;
        let modules = entries.get("MODULES").map_or("", String::as_str);
        Some(Self {
            version,
            modules: modules.split_whitespace().map(str::to_owned).collect(),
            entries,
        })
    }

    pub fn plain_value(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(String::as_str)
    }

    pub fn vendor(&self) -> Option<String> {
        let texts = ["IMPLEMENTOR_VERSION", "IMPLEMENTOR"].map(|key| self.plain_value(key));
        let texts: Vec<&str> = texts.into_iter().flatten().collect();
        let lower = texts.join(" ").to_ascii_lowercase();
        if let Some((_, name)) = VENDORS.iter().find(|(text, _)| lower.contains(text)) {
            return Some((*name).to_owned());
        }
        let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        let word = words.find(|w| !w.is_empty());
        // "N/A" in builds without a vendor.
        word.filter(|word| *word != "n").map(str::to_owned)
    }
}
