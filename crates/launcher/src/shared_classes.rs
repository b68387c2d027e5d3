//! OpenJ9's shared class cache: a directory `scc` next to the application, or `/opt/scc`.
//!
//! Owns the choice, and the checks that spare the JVM a cache it would skip in silence, or a
//! damaged one that it answers with dumps. Used read-only and never fatally: the JVM starts without
//! a cache it rejects. A cache may have layers: a bad uppermost layer does not affect those below.
//! Facts: OpenJ9 documentation (-Xshareclasses), tried on an OpenJ9 25: a file that was cut or
//! changed costs a system dump, a Java dump and a trace before the start goes on.

use std::path::{Path, PathBuf};

use loadline_sizing::JvmOptionSet;
use loadline_sizing::cache::shared::{FileName, IN_IMAGE, NAME, named_cache};
use loadline_sizing::cache::{
    CacheKind, CacheManifest, CacheMismatch, SharedCacheInfo, StartConditions,
};
use loadline_sizing::options::dimension::OptionDimension;

use crate::cache::{StartupCache, by_manifest, check_whole, find_damage, manifest_of};
use crate::command::StartTarget;
use crate::files;
use crate::java::Java;

pub fn find_shared_cache(
    java: &Java,
    target: &StartTarget,
    options: &JvmOptionSet,
    notes: &mut Vec<String>,
) -> Option<StartupCache> {
    let jar = match target {
        StartTarget::Jar(jar) => Some(Path::new(jar)),
        _ => None,
    };
    if let Some(given) = options.freezing_option(OptionDimension::StartupCache) {
        // An image's own cache: the user's option counts, and its problems are reported.
        notes.extend(doubt_named_cache(java, jar, given));
        return None;
    }
    let beside = jar.and_then(|jar| Some(jar.parent()?.join("scc")));
    // A layer keeps the whole path of the one below it.
    let beside = beside.map(|path| std::path::absolute(&path).unwrap_or(path));
    let directories = beside.into_iter().chain([PathBuf::from(IN_IMAGE)]);
    directories
        .filter_map(|directory| in_directory(java, jar, &directory, notes))
        .next()
}

/// Problems of the cache that a user's option names.
fn doubt_named_cache(java: &Java, jar: Option<&Path>, given: &str) -> Option<String> {
    let (name, directory) = named_cache(given)?;
    let directory = Path::new(directory);
    let mut why = None;
    for layers in caches_in(directory, Some(name)) {
        let path = directory.join(layers.into_iter().next()?);
        match check_shared_cache(java, jar, &path) {
            // The JVM finds its own file.
            Ok(_) => return None,
            Err(reason) => why = why.or(Some((path, reason))),
        }
    }
    let (path, reason) = why?;
    Some(format!(
        "the cache {} does not fit, and {given} names it: {reason}",
        path.display()
    ))
}

/// The uppermost usable layer of a directory's caches; a cache of another JVM release has the same
/// name and other files.
fn in_directory(
    java: &Java,
    jar: Option<&Path>,
    directory: &Path,
    notes: &mut Vec<String>,
) -> Option<StartupCache> {
    let shown = directory.display();
    for layers in caches_in(directory, None) {
        for (index, file) in layers.iter().enumerate() {
            let path = directory.join(file);
            let Some(FileName { name, layer, .. }) = FileName::parse_name(file) else {
                continue;
            };
            match check_shared_cache(java, jar, &path) {
                Ok(how) => {
                    // Without a number the JVM takes the uppermost.
                    let layer = match index {
                        0 => String::new(),
                        _ => format!(",layer={layer}"),
                    };
                    return Some(StartupCache {
                        options: vec![format!(
                            "-Xshareclasses:name={name},cacheDir={shown}{layer},readonly,nonfatal"
                        )],
                        reason: format!("{shown} holds a shared class cache that {how}"),
                    });
                }
                Err(reason) => notes.push(format!(
                    "the cache {} is passed over: {reason}",
                    path.display()
                )),
            }
        }
    }
    None
}

/// The caches of a name in a directory, each as the files of its layers, the uppermost first: several
/// where several JVMs have one of that name. Without a name those of loadline's, else of the only
/// other.
fn caches_in(directory: &Path, name: Option<&str>) -> Vec<Vec<String>> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = files
        .filter(|file| FileName::parse_name(file).is_some())
        .collect();
    files.sort_unstable();
    let parsed = files.iter().filter_map(|file| FileName::parse_name(file));
    let parsed: Vec<FileName<'_>> = parsed.collect();
    let names = || parsed.iter().map(|file| file.name);
    let own = || names().find(|name| *name == NAME);
    let only = || {
        names()
            .next()
            .filter(|first| names().all(|name| name == *first))
    };
    let Some(name) = name.or_else(own).or_else(only) else {
        return Vec::new();
    };
    let mut of_name: Vec<(FileName<'_>, &String)> = parsed.iter().copied().zip(&files).collect();
    of_name.retain(|(file, _)| file.name == name);
    // Of a newer format first, and in each the uppermost first.
    of_name.sort_by_key(|(file, _)| std::cmp::Reverse((file.generation, file.version, file.layer)));
    let caches = of_name.chunk_by(|(a, _), (b, _)| a.is_layer_of(b));
    caches
        .map(|layers| layers.iter().map(|(_, file)| (*file).clone()).collect())
        .collect()
}

fn check_shared_cache(
    java: &Java,
    jar: Option<&Path>,
    file: &Path,
) -> Result<&'static str, String> {
    of_this_release(java, file)?;
    let begin = files::read_bytes(file, 1).map_err(|_| "it cannot be read".to_owned())?;
    if begin.is_empty() {
        return Err("it is empty".to_owned());
    }
    let Ok(text) = files::read_text(&manifest_of(file)) else {
        return Ok("has no manifest: the JVM checks it");
    };
    let made = CacheManifest::parse_manifest(&text).filter(|made| made.kind == CacheKind::Scc);
    let made = made.ok_or("its manifest cannot be understood")?;
    let build = java.build.as_deref();
    let build = build.ok_or("the JDK's build is not known")?;
    // The file's name has the rest: release, reference width, generation.
    let start = StartConditions::default();
    let fits = match jar {
        // Of an image it has no class path: that stays as it is while the image does.
        Some(jar) => by_manifest(&made, jar, file, build, &start),
        None => match made.mismatch(build, &start) {
            Some(mismatch) => Err(mismatch),
            None => check_whole(&made, file),
        },
    };
    let fits = fits.and_then(|()| {
        made.shared
            .as_ref()
            .map_or(Ok(()), |made| check_layers_below(made, file))
    });
    let how = if made.shared.is_some_and(|made| !made.below.is_empty()) {
        "fits, with the layers below it"
    } else {
        "fits"
    };
    fits.map(|()| how).map_err(|mismatch| mismatch.to_string())
}

fn of_this_release(java: &Java, file: &Path) -> Result<(), String> {
    let name = file.file_name().and_then(|name| name.to_str());
    let made = name
        .and_then(FileName::parse_name)
        .and_then(|file| file.feature_release());
    let own = java.jdk.map(|jdk| jdk.version.feature);
    match made.zip(own) {
        Some((made, own)) if made != own => {
            Err(format!("it is of an OpenJ9 {made}, and this is {own}"))
        }
        _ => Ok(()),
    }
}

/// Whether its lower layer is unchanged: OpenJ9 compares only that file's path, length and time.
fn check_layers_below(made: &SharedCacheInfo, file: &Path) -> Result<(), CacheMismatch> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    if let Some(made) = &made.directory
        && Path::new(made) != directory
    {
        let made = made.clone();
        return Err(CacheMismatch::Directory { made });
    }
    for layer in &made.below {
        if let Some(what) = find_damage(&directory.join(&layer.name), layer.size, layer.checksum) {
            let name = layer.name.clone();
            return Err(CacheMismatch::Layer { name, what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use loadline_sizing::cache::shared::CacheLayer;
    use loadline_sizing::{JavaVersion, JdkRelease, Vm};

    const FILE: &str = "C290M25F1A64P_loadline_G45L00";
    const ABOVE: &str = "C290M25F1A64P_loadline_G45L01";

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

        fn ship(&self, build: &str) {
            self.layer(FILE, build, None);
        }

        fn layer(&self, file: &str, build: &str, shared: Option<SharedCacheInfo>) {
            self.write(file, "classes");
            let made = CacheManifest {
                kind: CacheKind::Scc,
                build: build.to_owned(),
                collector: "gencon".to_owned(),
                compressed_oops: true,
                compact_headers: false,
                size: 7,
                checksum: files::checksum(&self.scc().join(file)).unwrap(),
                cpu: Vec::new(),
                class_path: Vec::new(),
                shared,
            };
            self.write(&format!("{file}.manifest"), &made.to_text());
        }

        fn scc(&self) -> PathBuf {
            self.directory.path().join("scc")
        }

        /// What a layer says that lies above the first one, made for this directory.
        fn above(&self, directory: &Path) -> Option<SharedCacheInfo> {
            Some(SharedCacheInfo {
                hard_limit: 7,
                soft_limit: 7,
                directory: Some(directory.display().to_string()),
                below: vec![CacheLayer {
                    name: FILE.to_owned(),
                    size: 7,
                    checksum: files::checksum(&self.scc().join(FILE)).unwrap(),
                }],
            })
        }

        fn found(&self, options: &JvmOptionSet) -> (Option<StartupCache>, String) {
            let java = Java {
                path: PathBuf::from("/none"),
                jdk: Some(JdkRelease {
                    version: JavaVersion::from_feature(25),
                    vm: Vm::OpenJ9,
                }),
                build: Some("25.0.1+8".to_owned()),
            };
            let target = StartTarget::Jar(self.directory.path().join("app.jar").into());
            let mut notes = Vec::new();
            let cache = find_shared_cache(&java, &target, options, &mut notes);
            (cache, notes.concat())
        }
    }

    #[test]
    fn a_cache_beside_the_application_is_used_unless_the_user_chose() {
        let shipped = Shipped::new();
        assert_eq!(shipped.found(&JvmOptionSet::none()), (None, String::new()));
        shipped.write(FILE, "classes");
        let (cache, notes) = shipped.found(&JvmOptionSet::none());
        let scc = shipped.directory.path().join("scc");
        let expected = format!(
            "-Xshareclasses:name=loadline,cacheDir={},readonly,nonfatal",
            scc.display()
        );
        let cache = cache.unwrap();
        assert_eq!((cache.options, notes.as_str()), (vec![expected], ""));
        assert!(cache.reason.contains("no manifest"), "{}", cache.reason);
        let user = JvmOptionSet::from_words(["-Xshareclasses:none"]);
        assert_eq!(shipped.found(&user).0, None);
    }

    #[test]
    fn a_cache_that_does_not_fit_is_passed_over_and_said_so() {
        let shipped = Shipped::new();
        let why = || {
            let (cache, notes) = shipped.found(&JvmOptionSet::none());
            assert_eq!(cache, None, "{notes}");
            notes
        };
        shipped.ship("25.0.1+8");
        let (cache, _) = shipped.found(&JvmOptionSet::none());
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

    #[test]
    fn the_uppermost_layer_is_used_where_all_below_it_are_whole() {
        let shipped = Shipped::new();
        let none = JvmOptionSet::none();
        shipped.ship("25.0.1+8");
        let scc = shipped.scc();
        let option = |layer: &str| {
            let scc = scc.display();
            format!("-Xshareclasses:name=loadline,cacheDir={scc}{layer},readonly,nonfatal")
        };
        let given = |cache: Option<StartupCache>| cache.map(|cache| cache.options.concat());
        shipped.layer(ABOVE, "25.0.1+8", shipped.above(&scc));
        let (cache, notes) = shipped.found(&none);
        let cache = cache.unwrap();
        assert!(cache.reason.ends_with("the layers below it"), "{cache:?}");
        assert_eq!((cache.options.concat(), notes.as_str()), (option(""), ""));
        // Moved to another directory, the uppermost is of no use; the other is.
        shipped.layer(ABOVE, "25.0.1+8", shipped.above(Path::new("/opt/scc")));
        let (cache, notes) = shipped.found(&none);
        assert_eq!(given(cache), Some(option(",layer=0")));
        assert!(notes.contains("for the directory /opt/scc"), "{notes}");
        shipped.layer(ABOVE, "25.0.1+8", shipped.above(&scc));
        shipped.write(FILE, "classer");
        let (cache, notes) = shipped.found(&none);
        assert_eq!(given(cache), None);
        let layer = format!("the layer below it, {FILE}, its checksum");
        assert!(notes.contains(&layer), "{notes}");
        std::fs::remove_file(scc.join(FILE)).unwrap();
        let (cache, notes) = shipped.found(&none);
        assert_eq!(given(cache), None);
        assert!(notes.contains("its length"), "{notes}");
    }

    #[test]
    fn what_is_wrong_with_a_cache_that_the_user_names_is_said() {
        let shipped = Shipped::new();
        shipped.ship("25.0.1+8");
        let scc = shipped.scc();
        let own = format!("-Xshareclasses:name=loadline,cacheDir={}", scc.display());
        let user = JvmOptionSet::from_words([own.as_str()]);
        assert_eq!(shipped.found(&user), (None, String::new()));
        shipped.write(FILE, "class");
        let (cache, notes) = shipped.found(&user);
        assert_eq!(cache, None);
        assert!(notes.contains("names it: the file is damaged"), "{notes}");
    }

    #[test]
    fn a_cache_of_another_name_is_used_where_it_is_the_only_one() {
        let shipped = Shipped::new();
        let name = |name: &str| format!("C290M25F1A64P_{name}_G45L00");
        let given = || {
            let (cache, _) = shipped.found(&JvmOptionSet::none());
            cache.map(|cache| cache.options.concat())
        };
        shipped.write(&name("openj9_system_scc"), "classes");
        let option = given().unwrap();
        assert!(option.contains(":name=openj9_system_scc,"), "{option}");
        shipped.write(&name("other"), "classes");
        assert_eq!(given(), None, "unknown");
        shipped.write(FILE, "classes");
        let option = given().unwrap();
        assert!(option.contains(":name=loadline,"), "{option}");
    }

    #[test]
    fn of_the_caches_of_several_releases_the_one_of_this_jvm_is_used() {
        const OTHER: &str = "C290M21F1A64P_loadline_G44L00";
        let shipped = Shipped::new();
        let none = JvmOptionSet::none();
        shipped.layer(OTHER, "21.0.5+11", None);
        let (cache, notes) = shipped.found(&none);
        assert_eq!(cache, None);
        assert!(
            notes.ends_with("passed over: it is of an OpenJ9 21, and this is 25"),
            "{notes}"
        );
        // An older release sorts first, a newer format comes first.
        for other in [OTHER, "C290M26F1A64P_loadline_G46L00"] {
            shipped.layer(other, "other", None);
            shipped.ship("25.0.1+8");
            let (cache, _) = shipped.found(&none);
            let option = cache.unwrap().options.concat();
            assert!(option.contains(":name=loadline,"), "{option}");
            assert!(!option.contains("layer="), "{option}");
        }
        // Of one release, two formats: the manifest says which.
        shipped.layer("C290M25F1A64P_loadline_G46L00", "25.0.2+1", None);
        let (cache, notes) = shipped.found(&none);
        assert!(cache.is_some(), "{notes}");
        assert!(notes.contains("another build"), "{notes}");
        let scc = shipped.scc();
        let own = format!("-Xshareclasses:name=loadline,cacheDir={}", scc.display());
        let user = JvmOptionSet::from_words([own.as_str()]);
        assert_eq!(shipped.found(&user), (None, String::new()));
    }
}
