//! OpenJ9's shared class cache: a directory `scc` beside the application, or `/opt/scc`.
//!
//! Owns the choice, and the checks that spare the JVM a cache it would pass over in silence, or one
//! whose damage it answers with dumps. Used read-only and never fatally: the JVM starts without a
//! cache it rejects. Facts: OpenJ9 documentation (-Xshareclasses), tried on an OpenJ9 25: a file
//! that was cut or changed costs a system dump, a Java dump and a trace before the start goes on.

use std::path::{Path, PathBuf};

use loadline_sizing::Options;
use loadline_sizing::cache::{CacheKind, Manifest, Start};
use loadline_sizing::options::dimension::Dimension;

use crate::cache::{Cache, by_manifest, manifest_of, whole};
use crate::command::Target;
use crate::files;
use crate::java::Java;

/// The name that loadline gives its caches; part of the file's name.
const NAME: &str = "loadline";

/// Finds a cache for what starts. Every cache passed over leaves a note.
pub fn find(
    java: &Java,
    target: &Target,
    options: &Options,
    notes: &mut Vec<String>,
) -> Option<Cache> {
    if options.freezing(Dimension::StartupCache).is_some() {
        return None;
    }
    let jar = match target {
        Target::Jar(jar) => Some(Path::new(jar)),
        _ => None,
    };
    let beside = jar.and_then(|jar| Some(jar.parent()?.join("scc")));
    for directory in beside.into_iter().chain([PathBuf::from("/opt/scc")]) {
        let Some(file) = cache_in(&directory) else {
            continue;
        };
        let directory = directory.display();
        match usable(java, jar, &file) {
            Ok(how) => {
                return Some(Cache {
                    options: vec![format!(
                        "-Xshareclasses:name={NAME},cacheDir={directory},readonly,nonfatal"
                    )],
                    reason: format!("{directory} holds a shared class cache that {how}"),
                });
            }
            Err(reason) => notes.push(format!(
                "the cache {} is passed over: {reason}",
                file.display()
            )),
        }
    }
    None
}

/// A file such as `C290M25F1A64P_loadline_G45L00` in it.
fn cache_in(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let needle = format!("_{NAME}_");
    let is_cache = |name: &str| name.contains(&needle) && !name.contains('.');
    let entry = entries
        .into_iter()
        .find(|entry| is_cache(&entry.file_name().to_string_lossy()));
    entry.map(|entry| entry.path())
}

/// Why it may be used, or why not.
fn usable(java: &Java, jar: Option<&Path>, file: &Path) -> Result<&'static str, String> {
    let begin = files::read_bytes(file, 1).map_err(|_| "it cannot be read".to_owned())?;
    if begin.is_empty() {
        return Err("it is empty".to_owned());
    }
    let Ok(text) = files::read_text(&manifest_of(file)) else {
        return Ok("has no manifest: the JVM checks it");
    };
    let made = Manifest::parse(&text).filter(|made| made.kind == CacheKind::Scc);
    let made = made.ok_or("its manifest cannot be understood")?;
    let build = java.build.as_deref();
    let build = build.ok_or("the JDK's build is not known")?;
    // The file's name has the rest: release, reference width, generation.
    let start = Start::default();
    let fits = match jar {
        Some(jar) => by_manifest(&made, jar, file, build, &start),
        None => match made.mismatch(build, &start) {
            Some(mismatch) => Err(mismatch),
            None => whole(&made, file),
        },
    };
    fits.map(|()| "fits")
        .map_err(|mismatch| mismatch.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "C290M25F1A64P_loadline_G45L00";

    struct Shipped {
        directory: tempfile::TempDir,
    }

    impl Shipped {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            std::fs::create_dir(directory.path().join("scc")).unwrap();
            Self { directory }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.directory.path().join("scc").join(name), text).unwrap();
        }

        /// A cache and its manifest.
        fn ship(&self, build: &str) {
            self.write(FILE, "classes");
            let made = Manifest {
                kind: CacheKind::Scc,
                build: build.to_owned(),
                collector: "gencon".to_owned(),
                compressed_oops: true,
                compact_headers: false,
                size: 7,
                checksum: files::checksum(&self.directory.path().join("scc").join(FILE)).unwrap(),
                cpu: Vec::new(),
                class_path: Vec::new(),
            };
            self.write(&format!("{FILE}.manifest"), &made.to_text());
        }

        fn found(&self, options: &Options) -> (Option<Cache>, String) {
            let java = Java {
                path: PathBuf::from("/none"),
                jdk: None,
                build: Some("25.0.1+8".to_owned()),
            };
            let target = Target::Jar(self.directory.path().join("app.jar").into());
            let mut notes = Vec::new();
            let cache = find(&java, &target, options, &mut notes);
            (cache, notes.concat())
        }
    }

    #[test]
    fn a_cache_beside_the_application_is_used_unless_the_user_chose() {
        let shipped = Shipped::new();
        assert_eq!(shipped.found(&Options::none()), (None, String::new()));
        shipped.write(FILE, "classes");
        let (cache, notes) = shipped.found(&Options::none());
        let scc = shipped.directory.path().join("scc");
        let expected = format!(
            "-Xshareclasses:name=loadline,cacheDir={},readonly,nonfatal",
            scc.display()
        );
        let cache = cache.unwrap();
        assert_eq!((cache.options, notes.as_str()), (vec![expected], ""));
        assert!(cache.reason.contains("no manifest"), "{}", cache.reason);
        let user = Options::from_words(["-Xshareclasses:none"]);
        assert_eq!(shipped.found(&user).0, None);
    }

    #[test]
    fn a_cache_that_does_not_fit_is_passed_over_and_said_so() {
        let shipped = Shipped::new();
        let why = || {
            let (cache, notes) = shipped.found(&Options::none());
            assert_eq!(cache, None, "{notes}");
            notes
        };
        shipped.ship("25.0.1+8");
        let (cache, _) = shipped.found(&Options::none());
        assert!(cache.unwrap().reason.ends_with("fits"));
        shipped.write(FILE, "classer");
        assert!(why().contains("checksum"), "{}", why());
        shipped.write(FILE, "class");
        assert!(why().contains("length"), "{}", why());
        shipped.write(FILE, "");
        assert!(why().contains("empty"), "{}", why());
        shipped.ship("25.0.2+1");
        assert!(why().contains("another build"), "{}", why());
        shipped.write(&format!("{FILE}.manifest"), "kind scc");
        assert!(why().contains("manifest cannot be"), "{}", why());
    }
}
