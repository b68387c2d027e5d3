//! Which JVM: version and virtual machine, from a `release` file or from text such as `17.0.15`.
//!
//! Owns the comparison of versions that every version gate of this crate uses. Never looks for a
//! JDK: the caller reads the `release` file and hands in its text.

use std::fmt;
use std::str::FromStr;

use crate::options::words::has_word;

/// Files or directories that only OpenJ9 has below a JDK's home: its own library next to the
/// launcher's, since JDK 9 and in JDK 8. Builds without a vendor and `jlink` runtimes have no other
/// mark.
pub const OPENJ9_FILES: [&str; 3] = ["lib/j9vm", "lib/default/libj9vm29.so", "jre/lib/amd64/j9vm"];

/// Vendors of HotSpot builds, and other words before a version.
const HOTSPOT_WORDS: &str = "\
    amazon azul bellsoft ce community corretto debian dragonwell eclipse graalce graalvm \
    java jdk liberica microsoft openjdk oracle sapmachine temurin zulu";

fn starts_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Vm {
    #[default]
    HotSpot,
    /// Eclipse OpenJ9 (IBM Semeru): other options, other defaults.
    OpenJ9,
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HotSpot => "HotSpot",
            Self::OpenJ9 => "OpenJ9",
        })
    }
}

/// A JDK version: feature release and update, e.g. 17 and 15 for `17.0.15`, 8 and 412 for
/// `1.8.0_412`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JavaVersion {
    pub feature: u32,
    /// Update (security) number; 0 for a first release.
    pub update: u32,
}

impl JavaVersion {
    pub const fn from_feature(feature: u32) -> Self {
        Self { feature, update: 0 }
    }

    pub const fn new(feature: u32, update: u32) -> Self {
        Self { feature, update }
    }
}

impl fmt::Display for JavaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.feature, self.update) {
            (feature, 0) => f.pad(&feature.to_string()),
            (8, update) => f.pad(&format!("8u{update}")),
            (feature, update) => f.pad(&format!("{feature}.0.{update}")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseVersionError {
    pub text: String,
}

impl fmt::Display for ParseVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a JDK version from 8 on, such as 17, 17.0.15, 8u412 or 1.8.0_412",
            self.text
        )
    }
}

impl std::error::Error for ParseVersionError {}

impl FromStr for JavaVersion {
    type Err = ParseVersionError;

    /// Accepts `17`, `17.0.15`, `17.0.15+6`, `25-ea`, `8u412`, `1.8.0_412`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseVersionError {
            text: text.to_owned(),
        };
        let bare = text.trim();
        let end = bare.find(['+', '-', ' ']).unwrap_or(bare.len());
        let bare = &bare[..end];
        let numbers: Vec<u32> = bare
            .split(['.', '_', 'u'])
            .map(|part| part.parse().map_err(|_| error()))
            .collect::<Result<_, _>>()?;
        let version = match numbers.as_slice() {
            [1, 8] | [1, 8, 0] => Self::from_feature(8),
            [1, 8, 0, update, ..] => Self::new(8, *update),
            [8, 0, update] => Self::new(8, *update),
            [feature] => Self::from_feature(*feature),
            [8, update] => Self::new(8, *update),
            [feature, _] => Self::from_feature(*feature),
            [feature, _, update, ..] => Self::new(*feature, *update),
            [] => return Err(error()),
        };
        if (8..1000).contains(&version.feature) {
            Ok(version)
        } else {
            Err(error())
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JdkRelease {
    pub version: JavaVersion,
    pub vm: Vm,
}

impl JdkRelease {
    pub const fn for_hotspot(version: JavaVersion) -> Self {
        Self {
            version,
            vm: Vm::HotSpot,
        }
    }

    /// From the text of `$JAVA_HOME/release`. `None` without a readable `JAVA_VERSION`.
    ///
    /// The virtual machine is OpenJ9 if `JVM_VARIANT` has it (Semeru and AdoptOpenJDK builds write
    /// it) or `IMPLEMENTOR_VERSION`/`SEMANTIC_VERSION` name it.
    pub fn from_release(text: &str) -> Option<Self> {
        let value = |key: &str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once('=')?;
                (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
            })
        };
        let version = value("JAVA_VERSION")?.parse().ok()?;
        let is_openj9 = value("JVM_VARIANT").is_some_and(|v| v.eq_ignore_ascii_case("openj9"))
            || text.contains("openj9")
            || value("IMPLEMENTOR").is_some_and(|v| v.contains("IBM"));
        let vm = if is_openj9 { Vm::OpenJ9 } else { Vm::HotSpot };
        Some(Self { version, vm })
    }

    pub const fn at_least(self, feature: u32) -> bool {
        self.version.feature >= feature
    }

    /// Whether it is at least this feature release *and*, when it is exactly this one, has this
    /// update: the way fixes are backported.
    pub fn has_fix(self, fixes: &[(u32, u32)], since: u32) -> bool {
        self.at_least(since)
            || fixes.iter().any(|(feature, update)| {
                self.version.feature == *feature && self.version.update >= *update
            })
    }
}

impl FromStr for JdkRelease {
    type Err = ParseVersionError;

    /// A version is HotSpot's, also behind a vendor (`temurin-21`, `graalvm-jdk-21`); `openj9-25` and `semeru-21` are
    /// OpenJ9's, as in experiment files.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        let (mut vm, mut rest) = (Vm::HotSpot, lower.as_str());
        let mut is_vendor = |word: &str| {
            let is_openj9 = ["ibm", "openj9", "semeru"].contains(&word);
            vm = if is_openj9 { Vm::OpenJ9 } else { vm };
            is_openj9 || has_word(HOTSPOT_WORDS, word)
        };
        // GraalVM's own versions stand before the one of Java: 22.3.0-java17.
        if let Some((_, java)) = rest.rsplit_once("-java").filter(|(_, v)| starts_number(v)) {
            rest = java;
        }
        while let Some((_, tail)) = rest.split_once('-').filter(|(word, _)| is_vendor(word)) {
            rest = tail;
        }
        let number = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
        let (word, joined) = rest.split_at(number);
        let joined = is_vendor(word).then_some(joined);
        let version = joined.unwrap_or(rest).parse();
        let version = version.map_err(|_| ParseVersionError {
            text: text.to_owned(),
        })?;
        Ok(Self { version, vm })
    }
}

impl fmt::Display for JdkRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vm {
            Vm::HotSpot => write!(f, "HotSpot {}", self.version),
            Vm::OpenJ9 => write!(f, "OpenJ9 {}", self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_in_every_notation() {
        for (text, feature, update) in [
            ("17", 17, 0),
            ("17.0.15", 17, 15),
            ("17.0.15+6-Debian-1deb12u1", 17, 15),
            ("1.8.0_412", 8, 412),
            ("8u412", 8, 412),
            ("8", 8, 0),
            ("25-ea", 25, 0),
            ("11.0.16.1", 11, 16),
        ] {
            assert_eq!(
                text.parse(),
                Ok(JavaVersion::new(feature, update)),
                "{text}"
            );
        }
        for text in ["", "x", "7", "17.x", "-1", "1.7.0_80"] {
            assert!(text.parse::<JavaVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_jdk_is_named_as_in_experiment_files() {
        let of = |text: &str| text.parse::<JdkRelease>().map(|jdk| jdk.to_string());
        assert_eq!(of("17.0.15").as_deref(), Ok("HotSpot 17.0.15"));
        assert_eq!(of("openj9-25").as_deref(), Ok("OpenJ9 25"));
        for text in ["semeru-21", "ibm-semeru-21", "semeru21", "ibm-21"] {
            assert_eq!(of(text).as_deref(), Ok("OpenJ9 21"), "{text}");
        }
        assert_eq!(of("temurin-21").as_deref(), Ok("HotSpot 21"));
        for text in [
            "graalvm-21",
            "graalvm-jdk-21",
            "jdk21",
            "java-21-openjdk",
            "21-graalce",
            "temurin21",
            "JDK21",
            "amazon-corretto-21",
        ] {
            assert_eq!(of(text).as_deref(), Ok("HotSpot 21"), "{text}");
        }
        for text in ["22.3.0-java17", "graalvm-ce-java17-22.3.0"] {
            assert_eq!(of(text).as_deref(), Ok("HotSpot 17"), "{text}");
        }
        for text in ["openj9", "openjdk:17-jdk-slim", "jdk", "latest"] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_release_file_names_version_and_vm() {
        let temurin = "IMPLEMENTOR=\"Eclipse Adoptium\"\nJAVA_VERSION=\"25.0.3\"\n";
        let jdk = JdkRelease::from_release(temurin).unwrap();
        assert_eq!(jdk, JdkRelease::for_hotspot(JavaVersion::new(25, 3)));
        let semeru =
            "JAVA_VERSION=\"17.0.9\"\nJVM_VARIANT=\"Openj9\"\nIMPLEMENTOR=\"IBM Corporation\"\n";
        assert_eq!(JdkRelease::from_release(semeru).unwrap().vm, Vm::OpenJ9);
        assert_eq!(JdkRelease::from_release("no version here"), None);
    }

    #[test]
    fn a_backported_fix_counts_from_its_update_on() {
        let jdk = |text: &str| JdkRelease::for_hotspot(text.parse().unwrap());
        let fixes = [(11, 16), (8, 372)];
        assert!(!jdk("11.0.15").has_fix(&fixes, 15));
        assert!(jdk("11.0.16").has_fix(&fixes, 15));
        assert!(!jdk("12").has_fix(&fixes, 15));
        assert!(jdk("15").has_fix(&fixes, 15));
    }
}
