//! JDKs of this machine: where they are, what they are, which one a name or command means.
//!
//! Reads the `release` file of each home and looks for its JVM library; starts nothing, so a JDK
//! that lies about itself is believed. What a JVM that was started says of itself is [`words`].
//! Facts: the `release` file of JEP 223 (`JAVA_VERSION`) and the directory layouts of JDK 8
//! (`jre/lib/ARCH`) and 9+ (`lib`).

pub mod places;
mod release;
pub mod words;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use loadline_sizing::Vm;
use loadline_sizing::jdk::OPENJ9_FILES;

use crate::beneath;

pub use places::JdkPlaces;
pub use release::ReleaseFile;

#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    #[error("{home}: no executable bin/java")]
    NoJava { home: PathBuf },
    #[error("{path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: no JAVA_VERSION")]
    NoVersion { path: PathBuf },
    #[error("no JDK `{wanted}` here; there are: {known}")]
    Unknown { wanted: String, known: String },
}

impl DetectError {
    pub fn detect_hint(&self) -> Option<&'static str> {
        match self {
            Self::NoJava { .. } => Some("give the home of a JDK, the directory above bin/java"),
            Self::Unreadable { .. } => None,
            Self::NoVersion { .. } => Some("the JDK is damaged or not a JDK; reinstall it"),
            Self::Unknown { .. } => {
                Some("give a name of the list, a feature version such as 25, or the path of a JDK")
            }
        }
    }
}

/// A JDK version, `17.0.15+6` or `1.8.0_402`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JdkVersion {
    pub feature: u32,
    pub full: String,
}

impl JdkVersion {
    pub fn from_version_text(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let first: u32 = numbers.next()?.parse().ok()?;
        // Until JDK 8 the feature release is the second number (JEP 223).
        let feature = match first {
            1 => numbers.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            n => n,
        };
        Some(Self {
            feature,
            full: text.to_owned(),
        })
    }
}

impl fmt::Display for JdkVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.full)
    }
}

/// The name of an OpenJ9 of unknown vendor, and of any in `openj9-25`.
const OPENJ9: &str = "openj9";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledJdk {
    pub name: String,
    pub home: PathBuf,
    /// Its `java`, below the home.
    pub java: PathBuf,
    pub version: JdkVersion,
    /// Who built it, lower case: `temurin`, `debian`, `semeru`; where it does not say, `openj9` for
    /// an OpenJ9 and else `openjdk`.
    pub vendor: String,
    pub kind: Vm,
    pub modules: Vec<String>,
}

impl InstalledJdk {
    /// Inspects `home` (links are resolved). The name is the feature version. Errors: When there is
    /// no executable `bin/java`, or the `release` file is missing or has no version.
    pub fn inspect(home: &Path) -> Result<Self, DetectError> {
        let no_java = || DetectError::NoJava {
            home: home.to_owned(),
        };
        let home = home.canonicalize().map_err(|_| no_java())?;
        if !places::is_executable(&home.join("bin/java")) {
            return Err(no_java());
        }
        Self::inspect_in_root(Path::new("/"), &home)
    }

    /// The same for foreign files, such as an image's below the directory `root`: no link leads
    /// out. Does not check whether its `java` can be run.
    ///
    /// # Errors
    ///
    /// As [`InstalledJdk::inspect`].
    pub fn inspect_in_root(root: &Path, home: &Path) -> Result<Self, DetectError> {
        let below = home.strip_prefix("/").unwrap_or(home);
        let (seen, java) = (root.join(below), below.join("bin/java"));
        let directory = File::open(root).ok();
        let directory = directory.filter(|root| beneath::is_in_root(root, &java));
        let directory = directory.ok_or_else(|| DetectError::NoJava { home: seen.clone() })?;
        let release = beneath::open_in_root(&directory, &below.join("release"));
        let release = ReleaseFile::read(&seen.join("release"), release)?;
        let kind = kind_of(&release, |file| {
            beneath::is_in_root(&directory, &below.join(file))
        });
        Ok(Self {
            name: release.version.feature.to_string(),
            kind,
            vendor: vendor(&release, kind),
            version: release.version,
            modules: release.modules,
            home: seen,
            java: root.join(java),
        })
    }

    /// Whether `wanted` means this JDK: its name, feature version, full version, `vendor-feature`,
    /// `openj9-feature` for any OpenJ9, or home.
    fn answers_to(&self, wanted: &str) -> bool {
        wanted == self.name
            || wanted == self.version.full
            || wanted == self.version.feature.to_string()
            || wanted == format!("{}-{}", self.vendor, self.version.feature)
            || (self.kind == Vm::OpenJ9 && wanted == format!("{OPENJ9}-{}", self.version.feature))
            || Path::new(wanted)
                .canonicalize()
                .is_ok_and(|path| path == self.home || path == self.java)
    }
}

/// The vendor, by the virtual machine where the file names none: a bare build or a runtime that
/// `jlink` made has only `JAVA_VERSION` and `MODULES`.
fn vendor(release: &ReleaseFile, kind: Vm) -> String {
    match (release.vendor(), kind) {
        (None, Vm::OpenJ9) => OPENJ9.to_owned(),
        (None, Vm::HotSpot) => "openjdk".to_owned(),
        (Some(vendor), _) => vendor,
    }
}

/// Builds with a vendor have the kind in their `release` file since JDK 9; otherwise the library
/// shows it.
fn kind_of(release: &ReleaseFile, has_file: impl Fn(&str) -> bool) -> Vm {
    let is_openj9 = match release.plain_value("JVM_VARIANT") {
        Some(variant) => variant.eq_ignore_ascii_case("openj9"),
        None => OPENJ9_FILES.iter().any(|file| has_file(file)),
    };
    if is_openj9 { Vm::OpenJ9 } else { Vm::HotSpot }
}

#[derive(Debug)]
pub struct DetectedJdks {
    pub jdks: Vec<InstalledJdk>,
    pub unusable: Vec<DetectError>,
}

impl DetectedJdks {
    pub fn scan_places(places: &JdkPlaces) -> Self {
        let mut found = Self {
            jdks: Vec::new(),
            unusable: Vec::new(),
        };
        for home in places.homes() {
            match InstalledJdk::inspect(&home) {
                Ok(jdk) if found.jdks.iter().any(|known| known.home == jdk.home) => {}
                Ok(jdk) => found.jdks.push(jdk),
                Err(error) => found.unusable.push(error),
            }
        }
        name_apart(&mut found.jdks);
        found
    }

    /// The JDK for `wanted`: a name, a feature version, a full version or a path, also outside the
    /// known places. Errors: [`DetectError::Unknown`] with the known names; for a path, its
    /// problem.
    pub fn select(&self, wanted: &str) -> Result<InstalledJdk, DetectError> {
        let answering = || self.jdks.iter().filter(|jdk| jdk.answers_to(wanted));
        // A bare version prefers HotSpot, as before an OpenJ9 was installed.
        let named = answering().find(|jdk| jdk.name == wanted);
        let hotspot = || answering().find(|jdk| jdk.kind == Vm::HotSpot);
        if let Some(jdk) = named.or_else(hotspot).or_else(|| answering().next()) {
            return Ok(jdk.clone());
        }
        if wanted.contains('/') {
            return InstalledJdk::inspect(Path::new(wanted));
        }
        let names: Vec<&str> = self.jdks.iter().map(|jdk| jdk.name.as_str()).collect();
        Err(DetectError::Unknown {
            wanted: wanted.to_owned(),
            known: if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            },
        })
    }
}

/// Makes names unique: the feature version, with the vendor where two share it, with the whole
/// version where two share that too, and with a number as the last resort. An OpenJ9 leaves the
/// feature version to a HotSpot, so that one which is installed later changes no name.
fn name_apart(jdks: &mut [InstalledJdk]) {
    let hotspots = jdks.iter().filter(|jdk| jdk.kind == Vm::HotSpot);
    let has_hotspot: Vec<u32> = hotspots.map(|jdk| jdk.version.feature).collect();
    let short = |jdk: &InstalledJdk| match jdk.kind {
        Vm::OpenJ9 if has_hotspot.contains(&jdk.version.feature) => {
            format!("{}-{}", jdk.vendor, jdk.version.feature)
        }
        _ => jdk.version.feature.to_string(),
    };
    let forms: [&dyn Fn(&InstalledJdk) -> String; 3] = [
        &short,
        &|jdk| format!("{}-{}", jdk.vendor, jdk.version.feature),
        &|jdk| format!("{}-{}", jdk.vendor, jdk.version.full),
    ];
    let names: Vec<String> = jdks
        .iter()
        .enumerate()
        .map(|(index, jdk)| {
            let unique = forms
                .iter()
                .find(|form| jdks.iter().filter(|other| form(other) == form(jdk)).count() == 1);
            match unique {
                Some(form) => form(jdk),
                None => format!("{}#{}", forms[2](jdk), index + 1),
            }
        })
        .collect();
    for (jdk, name) in jdks.iter_mut().zip(names) {
        jdk.name = name;
    }
}

#[cfg(test)]
mod tests;
