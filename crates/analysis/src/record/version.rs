//! Which version of the application a result is of.
//!
//! Owns the stored form, what such a name may be, and which of several names is the short one.
//! Reads nothing: the commit is `loadline_runner::commit`'s, an image's labels are its engine's.
//! Facts: image-spec annotations.md (`org.opencontainers.image.version`, `.revision`).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MachineDescription;

pub const LONGEST_VERSION: usize = 100;
/// How much of a commit or of a digest people type.
const SHORT: usize = 7;
/// How much of an image's digest engines show.
const SHORT_DIGEST: usize = 12;

/// What whoever measured says of the version, and where the experiment's directory stood.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationVersion {
    /// What the user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The commit that the directory of the experiment stood at when the result was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

/// A commit of git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    /// Its whole id, hexadecimal.
    pub id: String,
    /// Whether a tracked file was not as the commit has it.
    #[serde(rename = "dirty")]
    pub is_dirty: bool,
}

/// `4d14a3e`, `4d14a3e-dirty`.
impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dirty = if self.is_dirty { "-dirty" } else { "" };
        write!(f, "{}{dirty}", abbreviate_commit(&self.id))
    }
}

/// A valid name of a version; `None` if empty, too long, or with control characters.
pub fn version_name(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_name = !text.is_empty()
        && text.chars().count() <= LONGEST_VERSION
        && !text.chars().any(char::is_control);
    is_name.then_some(text)
}

impl MachineDescription {
    /// The version that was measured in a word, by what says most: its name, the image's labels, the
    /// commit, the image's digest.
    pub fn short_version(&self) -> Option<String> {
        self.all_names().into_iter().next()
    }

    /// The full version: `1.4.2, commit 4d14a3e`.
    pub fn version_in_words(&self) -> Option<String> {
        let names = self.all_names();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn all_names(&self) -> Vec<String> {
        let (own, image) = (self.version.as_ref(), self.image.as_ref());
        let labels = image.map(|i| (i.version.clone(), i.revision.as_deref()));
        let (version, revision) = labels.unwrap_or_default();
        // The image says what it was built from; the directory only where it was measured from.
        let commit = match revision {
            Some(revision) => Some(abbreviate_commit(revision).to_owned()),
            None => own.and_then(|v| Some(v.commit.as_ref()?.to_string())),
        };
        let digest = image.and_then(|image| {
            let known = image.pinned.as_ref().unwrap_or(&image.id);
            let digest = known.rsplit('@').next()?;
            let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
            // A cluster may not have said it; then its id is the name that was asked for.
            let is_hex = hex.bytes().all(|b| b.is_ascii_hexdigit());
            is_hex.then(|| hex.get(..SHORT_DIGEST).unwrap_or(hex).to_owned())
        });
        let named = own.and_then(|v| v.name.clone());
        let all = [
            ("", named),
            ("image's version ", version),
            ("commit ", commit),
            ("image ", digest),
        ];
        let known = all.into_iter().filter_map(|(what, of)| Some((what, of?)));
        let told = |(i, (what, name)): (usize, (&str, String))| match i {
            0 => name,
            _ => format!("{what}{name}"),
        };
        known.enumerate().map(told).collect()
    }
}

/// A commit in the short form that people type; other text stays as it is.
fn abbreviate_commit(revision: &str) -> &str {
    let is_whole = revision.len() >= 40 && revision.bytes().all(|b| b.is_ascii_hexdigit());
    if is_whole {
        revision.get(..SHORT).unwrap_or(revision)
    } else {
        revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ImageIdentity;

    const COMMIT: &str = "4d14a3e0000000000000000000000000000000ff";

    fn machine(
        name: Option<&str>,
        commit: Option<bool>,
        image: Option<ImageIdentity>,
    ) -> MachineDescription {
        let commit = commit.map(|is_dirty| Commit {
            id: COMMIT.to_owned(),
            is_dirty,
        });
        let name = name.map(str::to_owned);
        MachineDescription {
            version: Some(ApplicationVersion { name, commit }),
            image,
            ..MachineDescription::default()
        }
    }

    fn image(version: Option<&str>, revision: Option<&str>) -> ImageIdentity {
        ImageIdentity {
            engine: "podman".to_owned(),
            reference: "orders:1".to_owned(),
            id: "sha256:be55aaaaaaaaaaaaaaaa".to_owned(),
            version: version.map(str::to_owned),
            revision: revision.map(str::to_owned),
            ..ImageIdentity::default()
        }
    }

    #[test]
    fn what_says_most_is_the_short_name_and_all_of_it_is_told() {
        let told = |m: &MachineDescription| (m.short_version(), m.version_in_words());
        let both = |short: &str, all: &str| (Some(short.to_owned()), Some(all.to_owned()));
        let plain = machine(None, Some(false), None);
        assert_eq!(told(&plain), both("4d14a3e", "4d14a3e"));
        let named = machine(Some("1.4.2"), Some(true), None);
        assert_eq!(told(&named), both("1.4.2", "1.4.2, commit 4d14a3e-dirty"));
        let labelled = machine(None, Some(false), Some(image(Some("1.5"), Some("v1.5-3"))));
        assert_eq!(
            told(&labelled),
            both("1.5", "1.5, commit v1.5-3, image be55aaaaaaaa")
        );
        let bare = MachineDescription {
            image: Some(image(None, None)),
            ..MachineDescription::default()
        };
        assert_eq!(told(&bare), both("be55aaaaaaaa", "be55aaaaaaaa"));
        assert_eq!(told(&MachineDescription::default()), (None, None));
    }

    #[test]
    fn a_name_is_short_and_has_no_control_characters() {
        assert_eq!(version_name(" 1.4.2\n"), Some("1.4.2"));
        for wrong in ["", " ", "a\u{1b}[2J", &"x".repeat(101)] {
            assert_eq!(version_name(wrong), None, "{wrong:?}");
        }
    }
}
