//! A start-up cache beside the application: `app.aot` or `app.jsa` beside `app.jar`.
//!
//! Owns the choice and the checks that spare the JVM a cache it would reject: right kind of file,
//! made by this build of the JDK, not older than the jar, collector and oops that fit. The JVM
//! checks again and starts without the cache when it disagrees.

use std::path::{Path, PathBuf};

use loadline_sizing::hotspot::{Collector, Ergonomics};
use loadline_sizing::options::dimension::Dimension;
use loadline_sizing::{Jdk, Options};

use crate::command::Target;
use crate::files;
use crate::java::Java;

/// A cache that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// The options to add.
    pub options: Vec<String>,
    /// Why it is used, in plain words.
    pub reason: String,
}

/// First four bytes of an archive, in the machine's byte order (cds.h: static, dynamic).
const MAGIC: [u32; 2] = [0xf00b_aba2, 0xf00b_aba8];
/// Where the header names the JDK's build, at the latest.
const HEADER: u64 = 4096;

/// Finds a cache for what starts. Every cache passed over leaves a note.
pub fn find(
    java: &Java,
    target: &Target,
    options: &Options,
    ergonomics: Option<&Ergonomics>,
    notes: &mut Vec<String>,
) -> Option<Cache> {
    let (Some(jdk), Target::Jar(jar)) = (java.jdk, target) else { return None };
    if options.freezing(Dimension::StartupCache).is_some() {
        return None;
    }
    let jar = Path::new(jar);
    for (path, option) in candidates(jdk, jar) {
        if !path.exists() {
            continue;
        }
        match usable(java, jar, &path, ergonomics) {
            Ok(()) => {
                let mut given = vec![format!("{option}{}", path.display())];
                if option.starts_with("-XX:SharedArchiveFile") {
                    given.push("-Xshare:auto".to_owned());
                }
                let reason = format!("{} lies beside the application and fits", path.display());
                return Some(Cache {
                    options: given,
                    reason,
                });
            }
            Err(reason) => notes.push(format!("the cache {} is passed over: {reason}", path.display())),
        }
    }
    None
}

fn candidates(jdk: Jdk, jar: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut candidates = Vec::new();
    if jdk.at_least(24) {
        candidates.push((jar.with_extension("aot"), "-XX:AOTCache="));
    }
    if jdk.at_least(13) {
        candidates.push((jar.with_extension("jsa"), "-XX:SharedArchiveFile="));
    }
    candidates
}

fn usable(
    java: &Java,
    jar: &Path,
    cache: &Path,
    ergonomics: Option<&Ergonomics>,
) -> Result<(), String> {
    let header = files::read_bytes(cache, HEADER).map_err(|_| "it cannot be read".to_owned())?;
    let magic = header.first_chunk::<4>().map(|bytes| u32::from_ne_bytes(*bytes));
    if !magic.is_some_and(|magic| MAGIC.contains(&magic)) {
        return Err("it is no archive".to_owned());
    }
    let build = java.build.as_deref().ok_or("the JDK's build is not known")?;
    let name = format!("({build})");
    if !header.windows(name.len()).any(|window| window == name.as_bytes()) {
        return Err(format!("it was made by another build than {build}"));
    }
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    if modified(cache) < modified(jar) {
        return Err("it is older than the jar".to_owned());
    }
    fits(java, ergonomics)
}

/// Measured on 25: with ZGC or without compressed oops the whole cache is rejected. From 26 on
/// (JEP 516) caches fit every collector.
fn fits(java: &Java, ergonomics: Option<&Ergonomics>) -> Result<(), String> {
    let Some(ergonomics) = ergonomics else { return Ok(()) };
    let any_collector = java.jdk.is_some_and(|jdk| jdk.at_least(26));
    if ergonomics.collector == Collector::Z && !any_collector {
        return Err("ZGC rejects it".to_owned());
    }
    if !ergonomics.heap.compressed_oops && !any_collector {
        return Err(format!("a heap of {} has no compressed oops", ergonomics.heap.max));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn java(build: &str) -> Java {
        Java {
            path: PathBuf::from("/none"),
            jdk: Some(Jdk::hotspot("25.0.3".parse().unwrap())),
            build: Some(build.to_owned()),
        }
    }

    fn archive(build: &str) -> Vec<u8> {
        let mut bytes = MAGIC[0].to_ne_bytes().to_vec();
        bytes.extend(format!("OpenJDK VM ({build}) for linux").into_bytes());
        bytes
    }

    fn find_beside(content: &[u8], build: &str) -> (Option<Cache>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let jar = directory.path().join("app.jar");
        std::fs::write(&jar, "").unwrap();
        std::fs::write(directory.path().join("app.aot"), content).unwrap();
        let mut notes = Vec::new();
        let target = Target::Jar(jar.into());
        let cache = find(&java(build), &target, &Options::none(), None, &mut notes);
        (cache, notes)
    }

    #[test]
    fn a_cache_of_this_build_is_used() {
        let (cache, notes) = find_beside(&archive("25.0.3+9"), "25.0.3+9");
        assert!(cache.unwrap().options[0].starts_with("-XX:AOTCache="));
        assert!(notes.is_empty());
    }

    #[test]
    fn other_builds_and_flipped_bytes_are_passed_over() {
        let (cache, notes) = find_beside(&archive("25.0.2+8"), "25.0.3+9");
        assert!(cache.is_none());
        assert!(notes[0].contains("another build"), "{notes:?}");
        let mut flipped = archive("25.0.3+9");
        flipped[0] ^= 0xff;
        assert!(find_beside(&flipped, "25.0.3+9").0.is_none());
        assert!(find_beside(b"", "25.0.3+9").0.is_none());
    }
}
