//! Kinds and causes of pauses: splits a pause's text into them, once for each different text.
//!
//! Owns the list of words that are part of the kind. What a log can make this remember is
//! bounded; beyond that everything is `other`.

use std::collections::HashMap;
use std::sync::Arc;

/// Real logs have less than 40 different texts.
const TEXTS_LIMIT: usize = 256;
const TEXT_LENGTH: usize = 200;

/// Parentheses that say which kind of pause it is; any other one is the cause.
const SUBKINDS: &str = "Normal|Concurrent Start|Prepare Mixed|Mixed|Major|Minor|Young|Global|Old|\
    unload classes|process weakrefs|update refs|Mark|Evacuation|Update Refs|Roots|Outside of Cycle";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PauseName {
    /// `Young (Normal)`, `Full`, `Remark`, `Mark Start`, `Degenerated GC (Mark)`.
    pub kind: Arc<str>,
    /// `G1 Evacuation Pause`, `System.gc()`; `None` where the collector gives none.
    pub cause: Option<Arc<str>>,
}

impl PauseName {
    pub fn is_full_collection(&self) -> bool {
        // OpenJ9's word is `Global`; `Global Final` ends a concurrent mark.
        self.kind.starts_with("Full") || &*self.kind == "Global"
    }

    /// From `Pause Young (Normal) (G1 Evacuation Pause)`, with the prefix of generational ZGC.
    fn from_pause_text(text: &str) -> (Self, bool) {
        let (prefix, rest) = match text.split_once(": ") {
            Some((prefix @ ("Y" | "O" | "y"), rest)) => (prefix, rest),
            _ => ("", text),
        };
        let rest = rest.strip_prefix("Pause ").unwrap_or(rest);
        let (base, mut rest) = rest.split_at(rest.find(" (").unwrap_or(rest.len()));
        let mut kind = String::new();
        if !prefix.is_empty() {
            kind.push_str(prefix);
            kind.push_str(": ");
        }
        kind.push_str(base.trim());
        let (mut cause, mut failed) = (None, false);
        while let Some((group, after)) = take_group(rest) {
            if SUBKINDS.split('|').any(|kind| kind == group) {
                kind.push_str(&format!(" ({group})"));
            } else if group.starts_with("Evacuation Failure") {
                failed = true;
            } else {
                cause = Some(Arc::from(group));
            }
            rest = after;
        }
        let kind = Arc::from(kind);
        (Self { kind, cause }, failed)
    }
}

/// The next parenthesis and the rest. Causes may have parentheses: `(System.gc())`.
fn take_group(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('(')?;
    let mut depth = 1;
    let close = inner.bytes().position(|b| {
        depth += i32::from(b == b'(') - i32::from(b == b')');
        depth == 0
    })?;
    Some((&inner[..close], &inner[close + 1..]))
}

#[derive(Debug, Default)]
pub(super) struct PauseNames {
    by_text: HashMap<Vec<u8>, (PauseName, bool)>,
}

impl PauseNames {
    pub(super) fn name_for(&mut self, text: &[u8]) -> (PauseName, bool) {
        if let Some(known) = self.by_text.get(text) {
            return known.clone();
        }
        if self.by_text.len() >= TEXTS_LIMIT || text.len() > TEXT_LENGTH {
            let kind = Arc::from("other");
            return (PauseName { kind, cause: None }, false);
        }
        let printable: String = String::from_utf8_lossy(text)
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let name = PauseName::from_pause_text(&printable);
        self.by_text.insert(text.to_vec(), name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, Option<String>, bool) {
        let (name, failed) = PauseNames::default().name_for(text.as_bytes());
        (
            name.kind.to_string(),
            name.cause.map(|c| c.to_string()),
            failed,
        )
    }

    #[test]
    fn kinds_and_causes_are_told_apart() {
        for (text, kind, cause, failed) in [
            (
                "Pause Young (Normal) (G1 Evacuation Pause)",
                "Young (Normal)",
                Some("G1 Evacuation Pause"),
                false,
            ),
            (
                "Pause Young (Allocation Failure)",
                "Young",
                Some("Allocation Failure"),
                false,
            ),
            (
                "Pause Full (System.gc())",
                "Full",
                Some("System.gc()"),
                false,
            ),
            (
                "Y: Pause Mark Start (Major)",
                "Y: Mark Start (Major)",
                None,
                false,
            ),
            (
                "Pause Degenerated GC (Outside of Cycle)",
                "Degenerated GC (Outside of Cycle)",
                None,
                false,
            ),
            (
                "Pause Init Mark (Young) (unload classes)",
                "Init Mark (Young) (unload classes)",
                None,
                false,
            ),
            (
                "Pause Young (Mixed) (G1 Evacuation Pause) (Evacuation Failure: Allocation/Pinned)",
                "Young (Mixed)",
                Some("G1 Evacuation Pause"),
                true,
            ),
            ("Pause Cleanup", "Cleanup", None, false),
        ] {
            assert_eq!(
                of(text),
                (kind.to_owned(), cause.map(str::to_owned), failed),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut names = PauseNames::default();
        for i in 0..1000 {
            names.name_for(format!("Pause Young (cause {i})").as_bytes());
        }
        assert_eq!(names.by_text.len(), TEXTS_LIMIT);
        assert_eq!(&*names.name_for(b"Pause Young (another)").0.kind, "other");
        assert_eq!(&*names.name_for(b"Pause Young (cause 1)").0.kind, "Young");
    }
}
