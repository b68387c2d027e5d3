//! A start-up cache next to the application: `app.aot` or `app.jsa` next to `app.jar`.
//!
//! Owns the choice and the checks that spare the JVM a cache it would reject in silence, or abort
//! on: with the manifest that `loadline cache` writes, build, class path, collector, oops, headers
//! and checksum; without one, the archive's header and its age. The JVM checks again and starts
//! without the cache when it disagrees.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use loadline_sizing::cache::{
    CacheKind, CacheManifest, CacheMismatch, ClassPathFile, StartConditions, cpu_features,
    workaround,
};
use loadline_sizing::hotspot::{CollectorKind, HotSpotErgonomics};
use loadline_sizing::options::dimension::OptionDimension;
use loadline_sizing::{JdkRelease, JvmOptionSet};

use crate::command::StartTarget;
use crate::files;
use crate::java::Java;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupCache {
    pub options: Vec<String>,
    pub reason: String,
}

/// First four bytes of an archive, in the machine's byte order (cds.h: static, dynamic).
const MAGIC: [u32; 2] = [0xf00b_aba2, 0xf00b_aba8];
const CPUINFO: u64 = 16 << 10;
/// Where the header names the JDK's build, at the latest.
const HEADER: u64 = 4096;

pub fn find_cache(
    java: &Java,
    target: &StartTarget,
    options: &JvmOptionSet,
    ergonomics: Option<&HotSpotErgonomics>,
    notes: &mut Vec<String>,
) -> Option<StartupCache> {
    let (Some(jdk), StartTarget::Jar(jar)) = (java.jdk, target) else {
        return None;
    };
    let frozen = options.freezing_option(OptionDimension::StartupCache);
    if frozen.is_some() {
        return None;
    }
    let jar = Path::new(jar);
    let start = start_of(java, options, ergonomics);
    for (path, option) in cache_candidates(jdk, jar) {
        if !path.exists() {
            continue;
        }
        match check_cache(java, jar, &path, &start, ergonomics) {
            Ok(how) => {
                let mut given = build_workarounds(option, jdk);
                given.push(format!("{option}{}", path.display()));
                if option.starts_with("-XX:SharedArchiveFile") {
                    given.push("-Xshare:auto".to_owned());
                }
                let reason = format!("{} lies next to the application and {how}", path.display());
                let options = given;
                return Some(StartupCache { options, reason });
            }
            Err(reason) => {
                let path = path.display();
                notes.push(format!("the cache {path} is passed over: {reason}"));
            }
        }
    }
    None
}

fn build_workarounds(option: &str, jdk: JdkRelease) -> Vec<String> {
    let kind = if option.starts_with("-XX:AOTCache=") {
        CacheKind::Aot
    } else {
        CacheKind::AppCds
    };
    let needed = workaround(kind, jdk.version).iter();
    needed.map(|option| (*option).to_owned()).collect()
}

fn cache_candidates(jdk: JdkRelease, jar: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut candidates = Vec::new();
    if jdk.at_least(24) {
        candidates.push((jar.with_extension("aot"), "-XX:AOTCache="));
    }
    if jdk.at_least(13) {
        candidates.push((jar.with_extension("jsa"), "-XX:SharedArchiveFile="));
    }
    candidates
}

fn check_cache(
    java: &Java,
    jar: &Path,
    cache: &Path,
    start: &StartConditions,
    ergonomics: Option<&HotSpotErgonomics>,
) -> Result<String, String> {
    let header = files::read_bytes(cache, HEADER).map_err(|_| "it cannot be read".to_owned())?;
    let magic = header.first_chunk::<4>();
    if !magic.is_some_and(|bytes| MAGIC.contains(&u32::from_ne_bytes(*bytes))) {
        return Err("it is no archive".to_owned());
    }
    let build = java.build.as_deref();
    let build = build.ok_or("the JDK's build is not known")?;
    match files::read_text(&manifest_of(cache)) {
        Ok(text) => {
            let made =
                CacheManifest::parse_manifest(&text).ok_or("its manifest cannot be understood")?;
            by_manifest(&made, jar, cache, build, start).map_err(|m| m.to_string())?;
            Ok(match made.loss(start) {
                Some(loss) => format!("fits; {loss}"),
                None => "fits".to_owned(),
            })
        }
        Err(_) => {
            without_manifest(&header, build, jar, cache)?;
            check_collector(java, ergonomics)?;
            Ok("fits as far as its header says; it has no manifest".to_owned())
        }
    }
}

pub(crate) fn manifest_of(cache: &Path) -> PathBuf {
    let mut name = cache.as_os_str().to_owned();
    name.push(".manifest");
    PathBuf::from(name)
}

/// Everything that would cost a silent slow start, or a JVM that aborts.
pub(crate) fn by_manifest(
    made: &CacheManifest,
    jar: &Path,
    cache: &Path,
    build: &str,
    start: &StartConditions,
) -> Result<(), CacheMismatch> {
    if let Some(mismatch) = made.mismatch(build, start) {
        return Err(mismatch);
    }
    let home = jar.parent().unwrap_or(Path::new(""));
    for (index, file) in made.class_path.iter().enumerate() {
        // The first is the application itself, whatever it is called now.
        let path = match index {
            0 => jar.to_owned(),
            _ => home.join(&file.path),
        };
        if let Some(what) = find_change(&path, file) {
            return Err(CacheMismatch::ClassPath {
                path: path.display().to_string(),
                what,
            });
        }
    }
    check_whole(made, cache)
}

/// Damage would end a JVM, or make an OpenJ9 write its dumps before it goes on.
pub(crate) fn check_whole(made: &CacheManifest, cache: &Path) -> Result<(), CacheMismatch> {
    match find_damage(cache, made.size, made.checksum) {
        Some(what) => Err(CacheMismatch::Damaged { what }),
        None => Ok(()),
    }
}

pub(crate) fn find_damage(file: &Path, size: u64, checksum: u64) -> Option<&'static str> {
    let length = file.metadata().map(|metadata| metadata.len()).ok();
    if length != Some(size) {
        return Some("its length differs from its manifest");
    }
    (files::checksum(file) != Some(checksum)).then_some("its checksum differs from its manifest")
}

fn find_change(path: &Path, file: &ClassPathFile) -> Option<&'static str> {
    let Ok(metadata) = path.metadata() else {
        return Some("is not there");
    };
    let modified = metadata.modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    match modified.map(|since| since.as_secs()) {
        _ if metadata.len() != file.size => Some("has another length"),
        Some(modified) if modified != file.modified => Some("has another time of modification"),
        _ => None,
    }
}

fn without_manifest(header: &[u8], build: &str, jar: &Path, cache: &Path) -> Result<(), String> {
    let name = format!("({build})");
    let mut windows = header.windows(name.len());
    if !windows.any(|window| window == name.as_bytes()) {
        return Err(format!("it was made by another build than {build}"));
    }
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    if modified(cache) < modified(jar) {
        return Err("it is older than the jar".to_owned());
    }
    Ok(())
}

/// What this start has, as far as it is known before the JVM runs.
fn start_of(
    java: &Java,
    options: &JvmOptionSet,
    ergonomics: Option<&HotSpotErgonomics>,
) -> StartConditions {
    let feature = java.jdk.map_or(0, |jdk| jdk.version.feature);
    let headers = options.switch_value("UseCompactObjectHeaders");
    StartConditions {
        is_z: ergonomics.map(|e| e.collector == CollectorKind::Z),
        collector: ergonomics.map(|e| e.collector.to_string()),
        compressed_oops: ergonomics.map(|e| e.heap.compressed_oops),
        // On by default from 27 on (JEP 534); there the JVM's word is not guessed.
        compact_headers: headers.or((feature < 27).then_some(false)),
        feature,
        cpu: read_cpu_features(),
    }
}

/// The CPU's features from the kernel; the first CPU is at the begin of a text that can be long.
fn read_cpu_features() -> Option<Vec<String>> {
    let text = files::read_bytes(Path::new("/proc/cpuinfo"), CPUINFO).ok()?;
    let features = cpu_features(&String::from_utf8_lossy(&text));
    (!features.is_empty()).then_some(features)
}

/// Measured on 25: with ZGC or without compressed oops the whole cache is rejected. From 26 on
/// (JEP 516) caches fit every collector.
fn check_collector(java: &Java, ergonomics: Option<&HotSpotErgonomics>) -> Result<(), String> {
    let Some(ergonomics) = ergonomics else {
        return Ok(());
    };
    let any_collector = java.jdk.is_some_and(|jdk| jdk.at_least(26));
    if ergonomics.collector == CollectorKind::Z && !any_collector {
        return Err("ZGC rejects it".to_owned());
    }
    if !ergonomics.heap.compressed_oops && !any_collector {
        let heap = ergonomics.heap.max;
        return Err(format!("a heap of {heap} has no compressed oops"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn java(build: &str) -> Java {
        Java {
            path: PathBuf::from("/none"),
            jdk: Some(JdkRelease::for_hotspot("25.0.3".parse().unwrap())),
            build: Some(build.to_owned()),
        }
    }

    fn archive(build: &str) -> Vec<u8> {
        let mut bytes = MAGIC[0].to_ne_bytes().to_vec();
        bytes.extend(format!("OpenJDK VM ({build}) for linux").into_bytes());
        bytes
    }

    fn find_beside(content: &[u8], build: &str) -> (Option<StartupCache>, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let jar = directory.path().join("app.jar");
        std::fs::write(&jar, "").unwrap();
        std::fs::write(directory.path().join("app.aot"), content).unwrap();
        let mut notes = Vec::new();
        let target = StartTarget::Jar(jar.into());
        let cache = find_cache(
            &java(build),
            &target,
            &JvmOptionSet::none(),
            None,
            &mut notes,
        );
        (cache, notes)
    }

    #[test]
    fn a_cache_of_this_build_is_used() {
        let (cache, notes) = find_beside(&archive("25.0.3+9"), "25.0.3+9");
        let options = cache.unwrap().options;
        assert!(options.last().unwrap().starts_with("-XX:AOTCache="));
        assert!(
            options.contains(&"-XX:-AOTAdapterCaching".to_owned()),
            "{options:?}"
        );
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

    /// A jar and a cache for it, with their manifest.
    struct Shipped {
        directory: tempfile::TempDir,
    }

    impl Shipped {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let shipped = Self { directory };
            std::fs::create_dir(shipped.path("lib")).unwrap();
            std::fs::write(shipped.path("app.jar"), "jar").unwrap();
            std::fs::write(shipped.path("lib/a.jar"), "library").unwrap();
            // Older than the jar: with a manifest only what it says counts.
            std::fs::write(shipped.path("app.aot"), archive("25.0.3+9")).unwrap();
            let made = CacheManifest {
                kind: loadline_sizing::cache::CacheKind::Aot,
                build: "25.0.3+9".to_owned(),
                collector: "G1".to_owned(),
                compressed_oops: true,
                compact_headers: false,
                size: shipped.path("app.aot").metadata().unwrap().len(),
                checksum: files::checksum(&shipped.path("app.aot")).unwrap(),
                cpu: read_cpu_features().unwrap_or_default(),
                class_path: ["app.jar", "lib/a.jar"].map(|n| shipped.file(n)).into(),
                shared: None,
            };
            std::fs::write(shipped.path("app.aot.manifest"), made.to_text()).unwrap();
            shipped
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn file(&self, name: &str) -> ClassPathFile {
            let metadata = self.path(name).metadata().unwrap();
            let modified = metadata.modified().unwrap();
            ClassPathFile {
                path: name.to_owned(),
                size: metadata.len(),
                modified: modified.duration_since(UNIX_EPOCH).unwrap().as_secs(),
            }
        }

        fn found(&self, build: &str, options: &[&str]) -> Result<String, String> {
            let mut notes = Vec::new();
            let target = StartTarget::Jar(self.path("app.jar").into());
            let options = JvmOptionSet::from_words(options.iter().copied());
            let machine = loadline_sizing::hotspot::MachineSize::from_limits(
                loadline_sizing::Bytes::from_gib(2),
                loadline_sizing::Cpus::from_whole(2),
            );
            let java = java(build);
            let ergonomics =
                loadline_sizing::hotspot::predict(java.jdk.unwrap(), machine, &options).unwrap();
            let cache = find_cache(&java, &target, &options, Some(&ergonomics), &mut notes);
            cache.map(|c| c.reason).ok_or_else(|| notes.concat())
        }
    }

    #[test]
    fn a_cache_with_its_manifest_is_used_and_said_so() {
        let shipped = Shipped::new();
        let reason = shipped.found("25.0.3+9", &[]).unwrap();
        assert!(
            reason.ends_with("app.aot lies next to the application and fits"),
            "{reason}"
        );
        let reason = shipped.found("25.0.3+9", &["-XX:+UseSerialGC"]).unwrap();
        assert!(
            reason.contains("made with G1, this start has Serial"),
            "{reason}"
        );
    }

    #[test]
    fn each_reason_for_a_slow_start_is_named() {
        let shipped = Shipped::new();
        let why = |build: &str, options: &[&str]| shipped.found(build, options).unwrap_err();
        assert!(why("25.0.4+7", &[]).contains("another build"));
        let said = why("25.0.3+9", &["-XX:+UseZGC"]);
        assert!(said.contains("uncompressed ones (ZGC)"), "{said}");
        let said = why("25.0.3+9", &["-XX:-UseCompressedOops"]);
        assert!(said.contains("uncompressed"), "{said}");
        let said = why("25.0.3+9", &["-XX:+UseCompactObjectHeaders"]);
        assert!(
            said.contains("without -XX:+UseCompactObjectHeaders"),
            "{said}"
        );
    }

    #[test]
    fn a_cache_of_a_larger_cpu_is_passed_over() {
        let shipped = Shipped::new();
        let path = shipped.path("app.aot.manifest");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut made = CacheManifest::parse_manifest(&text).unwrap();
        made.cpu.push("avx1024".to_owned());
        std::fs::write(&path, made.to_text()).unwrap();
        let said = shipped.found("25.0.3+9", &[]);
        match read_cpu_features() {
            Some(_) => assert!(
                said.unwrap_err()
                    .contains("CPU with avx1024, which this one lacks")
            ),
            None => assert!(said.is_ok(), "the CPU's features are unknown"),
        }
    }

    #[test]
    fn a_changed_class_path_is_named_with_its_file() {
        let shipped = Shipped::new();
        std::fs::write(shipped.path("lib/a.jar"), "other library").unwrap();
        let said = shipped.found("25.0.3+9", &[]).unwrap_err();
        assert!(said.contains("lib/a.jar has another length"), "{said}");
        std::fs::remove_file(shipped.path("lib/a.jar")).unwrap();
        let said = shipped.found("25.0.3+9", &[]).unwrap_err();
        assert!(said.contains("lib/a.jar is not there"), "{said}");
    }

    #[test]
    fn a_damaged_file_never_reaches_the_jvm() {
        let shipped = Shipped::new();
        let mut bytes = archive("25.0.3+9");
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(shipped.path("app.aot"), &bytes).unwrap();
        let said = shipped.found("25.0.3+9", &[]).unwrap_err();
        assert!(said.contains("damaged: its checksum"), "{said}");
        bytes.pop();
        std::fs::write(shipped.path("app.aot"), &bytes).unwrap();
        let said = shipped.found("25.0.3+9", &[]).unwrap_err();
        assert!(said.contains("damaged: its length"), "{said}");
        std::fs::write(shipped.path("app.aot.manifest"), "no manifest").unwrap();
        let said = shipped.found("25.0.3+9", &[]).unwrap_err();
        assert!(said.contains("manifest cannot be understood"), "{said}");
    }
}
