//! Start-up caches of a JVM: their kinds, the options that write and use them, their dependencies.
//!
//! Owns the option texts and the manifest next to a cache ([`manifest`]). Starts no process. Facts:
//! JEP 350 (dynamic archive), JEP 483, 514 and 515 (AOT cache), measured on 17.0.15 and 25.0.3:
//! each is written when SIGTERM ends the JVM; a class is archived when one of the JDK's own class
//! loaders loads it, so not from jars inside a jar.

pub mod application;
pub mod classes;
pub mod destination;
pub mod extracted;
pub mod jar;
pub mod manifest;
pub mod scc;
mod zip;

use std::path::Path;

pub use loadline_sizing::cache::CacheKind;

use loadline_sizing::cache::workaround;
use loadline_sizing::{JavaVersion, Vm};

use crate::detect::InstalledJdk;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// The JVM is too old, or another one.
    #[error("JDK {jdk} has no {kind} cache")]
    Unsupported {
        kind: CacheKind,
        jdk: String,
        hint: &'static str,
    },
}

/// The kind that a JVM gains most from: AOT from 25 on (24 has it without profiles and needs two
/// runs), AppCDS from 13 on, the shared class cache on OpenJ9.
/// Errors: For a HotSpot before 13.
pub fn best_kind(jdk: &InstalledJdk) -> Result<CacheKind, KindError> {
    let kind = match jdk.kind {
        Vm::OpenJ9 => CacheKind::Scc,
        Vm::HotSpot if jdk.version.feature >= 25 => CacheKind::Aot,
        Vm::HotSpot => CacheKind::AppCds,
    };
    check_kind(kind, jdk).map(|()| kind)
}

pub fn check_kind(kind: CacheKind, jdk: &InstalledJdk) -> Result<(), KindError> {
    let feature = jdk.version.feature;
    let hint = match (kind, jdk.kind) {
        (CacheKind::Aot, Vm::HotSpot) if feature < 25 => {
            "an AOT cache needs JDK 25; use --kind appcds"
        }
        (CacheKind::AppCds, Vm::HotSpot) if feature < 13 => "an application archive needs JDK 13",
        (CacheKind::Scc, Vm::HotSpot) => "a shared class cache is OpenJ9's; use --kind auto",
        (CacheKind::Aot | CacheKind::AppCds, Vm::OpenJ9) => {
            "OpenJ9 has a shared class cache: --kind scc"
        }
        _ => return Ok(()),
    };
    Err(KindError::Unsupported {
        kind,
        jdk: format!("{} ({})", jdk.version, jdk.kind),
        hint,
    })
}

/// Options of a training run that writes the cache to `file` when the application ends. A shared
/// class cache has these limits; `file` is its directory.
pub fn training_options(
    kind: CacheKind,
    file: &Path,
    jdk: JavaVersion,
    limits: scc::SharedCacheLimits,
) -> Vec<String> {
    let options = match kind {
        CacheKind::AppCds => vec![format!("-XX:ArchiveClassesAtExit={}", file.display())],
        CacheKind::Aot => vec![format!("-XX:AOTCacheOutput={}", file.display())],
        CacheKind::Scc => {
            let place = scc::SharedCachePlace::in_own_directory(file);
            scc::populate_options(&place, limits, false)
        }
    };
    with_workaround(kind, jdk, options)
}

/// Behind what a build needs that does not check the CPU.
fn with_workaround(kind: CacheKind, jdk: JavaVersion, options: Vec<String>) -> Vec<String> {
    let needed = workaround(kind, jdk).iter().map(|o| (*o).to_owned());
    needed.chain(options).collect()
}

pub fn use_options(kind: CacheKind, file: &Path, jdk: JavaVersion) -> Vec<String> {
    let options = match kind {
        CacheKind::AppCds => vec![format!("-XX:SharedArchiveFile={}", file.display())],
        CacheKind::Aot => vec![format!("-XX:AOTCache={}", file.display())],
        // It finds the file by its own name for it.
        CacheKind::Scc => scc::attach_options(&scc::SharedCachePlace::from_cache_file(file)),
    };
    with_workaround(kind, jdk, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::JdkVersion;

    fn jdk(version: &str, kind: Vm) -> InstalledJdk {
        InstalledJdk {
            name: version.to_owned(),
            home: "/jdk".into(),
            java: "/jdk/bin/java".into(),
            version: JdkVersion::from_version_text(version).expect("a version"),
            vendor: "openjdk".to_owned(),
            kind,
            modules: Vec::new(),
        }
    }

    fn told(error: KindError) -> String {
        let KindError::Unsupported { hint, .. } = &error;
        format!("{error}\nhint: {hint}")
    }

    #[test]
    fn each_jvm_gets_the_kind_it_gains_most_from() {
        let best = |version, kind| best_kind(&jdk(version, kind)).map_err(told);
        assert_eq!(best("25.0.3+9", Vm::HotSpot), Ok(CacheKind::Aot));
        assert_eq!(best("24.0.1", Vm::HotSpot), Ok(CacheKind::AppCds));
        assert_eq!(best("17.0.15+6", Vm::HotSpot), Ok(CacheKind::AppCds));
        assert_eq!(best("17.0.15+6", Vm::OpenJ9), Ok(CacheKind::Scc));
        insta::assert_snapshot!(best("1.8.0_402", Vm::HotSpot).unwrap_err(), @r"
        JDK 1.8.0_402 (HotSpot) has no appcds cache
        hint: an application archive needs JDK 13
        ");
    }

    #[test]
    fn a_kind_of_another_jvm_is_refused_with_what_to_use() {
        let refused = |kind, version, vm| told(check_kind(kind, &jdk(version, vm)).unwrap_err());
        assert!(refused(CacheKind::Aot, "17.0.15", Vm::HotSpot).contains("--kind appcds"));
        assert!(refused(CacheKind::Scc, "25", Vm::HotSpot).contains("OpenJ9's"));
        assert!(refused(CacheKind::Aot, "25", Vm::OpenJ9).contains("--kind scc"));
        assert_eq!(
            check_kind(CacheKind::AppCds, &jdk("25", Vm::HotSpot)),
            Ok(())
        );
    }
}
