//! OpenJ9's shared class cache: a directory `scc` beside the application, or `/opt/scc`.
//!
//! Owns the choice, and the checks that spare the JVM a cache it would pass over in silence, or one
//! whose damage it answers with dumps. Used read-only and never fatally: the JVM starts without a
//! cache it rejects. A cache may have layers: what is wrong with the uppermost leaves those below it.
//! Facts: OpenJ9 documentation (-Xshareclasses), tried on an OpenJ9 25: a file that was cut or changed
//! costs a system dump, a Java dump and a trace before the start goes on.

use std::path::{Path, PathBuf};

use loadline_sizing::Options;
use loadline_sizing::cache::shared::{FileName, IN_IMAGE, NAME, named};
use loadline_sizing::cache::{CacheKind, Manifest, Mismatch, Shared, Start};
use loadline_sizing::options::dimension::Dimension;

use crate::cache::{Cache, by_manifest, damage, manifest_of, whole};
use crate::command::Target;
use crate::files;
use crate::java::Java;

/// Finds a cache for what starts. Every cache passed over leaves a note.
pub fn find(
    java: &Java,
    target: &Target,
    options: &Options,
    notes: &mut Vec<String>,
) -> Option<Cache> {
    let jar = match target {
        Target::Jar(jar) => Some(Path::new(jar)),
        _ => None,
    };
    if let Some(given) = options.freezing(Dimension::StartupCache) {
        // Of an image that has a cache: the user's word counts, and what is wrong with it is said.
        notes.extend(doubt(java, jar, given));
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

/// What is wrong with the cache that an option of the user's names.
fn doubt(java: &Java, jar: Option<&Path>, given: &str) -> Option<String> {
    let (name, directory) = named(given)?;
    let directory = Path::new(directory);
    let (file, _) = layers_in(directory, Some(name)).into_iter().next()?;
    let path = directory.join(file);
    let reason = usable(java, jar, &path).err()?;
    Some(format!(
        "the cache {} does not fit, and {given} names it: {reason}",
        path.display()
    ))
}

/// The uppermost layer of a directory's cache that may be used.
fn in_directory(
    java: &Java,
    jar: Option<&Path>,
    directory: &Path,
    notes: &mut Vec<String>,
) -> Option<Cache> {
    let shown = directory.display();
    let layers = layers_in(directory, None);
    for (index, (file, layer)) in layers.iter().enumerate() {
        let name = FileName::parse(file).map_or(NAME, |file| file.name);
        let path = directory.join(file);
        match usable(java, jar, &path) {
            Ok(how) => {
                // Without a number the JVM takes the uppermost.
                let layer = match index {
                    0 => String::new(),
                    _ => format!(",layer={layer}"),
                };
                return Some(Cache {
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
    None
}

/// The layers of the cache of a name in it, the uppermost first; without one, of loadline's name, else
/// of the only other.
fn layers_in(directory: &Path, name: Option<&str>) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut all: Vec<String> = names
        .filter(|name| FileName::parse(name).is_some())
        .collect();
    all.sort_unstable();
    if let Some(wanted) = name {
        all.retain(|name| FileName::parse(name).is_some_and(|file| file.name == wanted));
    }
    let of = |name: &str, other: &str| match (FileName::parse(name), FileName::parse(other)) {
        (Some(name), Some(other)) => name.is_of(&other),
        _ => false,
    };
    let is_ours = |name: &&String| FileName::parse(name).is_some_and(|file| file.name == NAME);
    let Some(first) = all.iter().find(is_ours).or(all.first()).cloned() else {
        return Vec::new();
    };
    let is_ambiguous = !is_ours(&&first) && all.iter().any(|name| !of(name, &first));
    if is_ambiguous {
        return Vec::new();
    }
    all.retain(|name| of(name, &first));
    let layer = |name: String| {
        let layer = FileName::parse(&name)?.layer;
        Some((name, layer))
    };
    let mut layers: Vec<(String, u32)> = all.into_iter().filter_map(layer).collect();
    layers.sort_by_key(|(_, layer)| std::cmp::Reverse(*layer));
    layers
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
        // Of an image it has no class path: that stays as it is while the image does.
        Some(jar) => by_manifest(&made, jar, file, build, &start),
        None => match made.mismatch(build, &start) {
            Some(mismatch) => Err(mismatch),
            None => whole(&made, file),
        },
    };
    let fits = fits.and_then(|()| {
        made.shared
            .as_ref()
            .map_or(Ok(()), |made| stands(made, file))
    });
    let how = match made.shared.is_some_and(|made| !made.below.is_empty()) {
        true => "fits, with the layers below it",
        false => "fits",
    };
    fits.map(|()| how).map_err(|mismatch| mismatch.to_string())
}

/// Whether it lies on what it was made above: OpenJ9 compares only the path, the length and the time
/// of what is below.
fn stands(made: &Shared, file: &Path) -> Result<(), Mismatch> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    if let Some(made) = &made.directory
        && Path::new(made) != directory
    {
        let made = made.clone();
        return Err(Mismatch::Directory { made });
    }
    for layer in &made.below {
        if let Some(what) = damage(&directory.join(&layer.name), layer.size, layer.checksum) {
            let name = layer.name.clone();
            return Err(Mismatch::Layer { name, what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use loadline_sizing::cache::shared::Layer;

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

        /// A cache and its manifest.
        fn ship(&self, build: &str) {
            self.layer(FILE, build, None);
        }

        /// One layer of it.
        fn layer(&self, file: &str, build: &str, shared: Option<Shared>) {
            self.write(file, "classes");
            let made = Manifest {
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
        fn above(&self, directory: &Path) -> Option<Shared> {
            Some(Shared {
                hard_limit: 7,
                soft_limit: 7,
                directory: Some(directory.display().to_string()),
                below: vec![Layer {
                    name: FILE.to_owned(),
                    size: 7,
                    checksum: files::checksum(&self.scc().join(FILE)).unwrap(),
                }],
            })
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

    #[test]
    fn the_uppermost_layer_is_used_where_all_below_it_are_whole() {
        let shipped = Shipped::new();
        let none = Options::none();
        shipped.ship("25.0.1+8");
        let scc = shipped.scc();
        let option = |layer: &str| {
            let scc = scc.display();
            format!("-Xshareclasses:name=loadline,cacheDir={scc}{layer},readonly,nonfatal")
        };
        let given = |cache: Option<Cache>| cache.map(|cache| cache.options.concat());
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
        let user = Options::from_words([own.as_str()]);
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
            let (cache, _) = shipped.found(&Options::none());
            cache.map(|cache| cache.options.concat())
        };
        shipped.write(&name("openj9_system_scc"), "classes");
        let option = given().unwrap();
        assert!(option.contains(":name=openj9_system_scc,"), "{option}");
        shipped.write(&name("other"), "classes");
        assert_eq!(given(), None, "nobody knows which");
        shipped.write(FILE, "classes");
        let option = given().unwrap();
        assert!(option.contains(":name=loadline,"), "{option}");
    }
}
