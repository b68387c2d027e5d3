//! The shared class cache of OpenJ9: filled with room, then rebuilt at the size of its content.
//!
//! Owns the directory in which the JVM looks for the file by its own naming, the layers that an
//! image already has, and the starts that only report on the cache. `loadline_jvm::cache::scc` owns
//! options and statistics.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loadline_analysis::record::Configuration;
use loadline_experiment::AppUnderTest;
use loadline_jvm::cache::CacheKind;
use loadline_jvm::cache::manifest::{ManifestError, length_and_checksum};
use loadline_jvm::cache::scc::{self, SharedCacheLimits, SharedCachePlace, SharedCacheStatistics};
use loadline_protocol::WritableDirectory;
use loadline_sizing::Bytes;
use loadline_sizing::cache::SharedCacheInfo;
use loadline_sizing::cache::shared::{CacheLayer, FileName, IN_IMAGE};
use loadline_trial::oci::image::EngineImage;

use super::outcome::last_lines;
use super::{
    CacheErrand, CacheError, InstalledCache, WRITTEN, alone_without_limits, assemble_by, name_of,
    prepare_errand,
};
use crate::command::JVM_VARIABLES;
use crate::error::RunError;
use crate::host::Delivery;
use crate::logs::output_in;
use crate::measurement::Measurement;

const DIRECTORY: &str = "scc";

/// What an OpenJ9 says where the disk has no room for the whole of a cache: it looks before it begins.
pub(super) const NO_ROOM: &str = "JVMSHRC561E";

const NAME: u64 = 256;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheRoom {
    /// How much it may hold; 0 where it takes what it needs.
    pub limits: SharedCacheLimits,
    pub is_final: bool,
}

impl CacheRoom {
    pub const ANY: Self = Self {
        limits: SharedCacheLimits {
            hard: Bytes::from_mib(0),
            soft: Bytes::from_mib(0),
        },
        is_final: true,
    };
}

/// The option of a command that names another shared class cache: it follows loadline's, so the JVM
/// would fill that one and use it in trials without a cache, too.
pub(super) fn own_option(app: &AppUnderTest) -> Option<&String> {
    let words = app.command.iter().skip(1);
    let mut options = words.take_while(|word| word.starts_with('-') && *word != "-jar");
    options.find(|word| word.starts_with("-Xshareclasses") && app.image.is_none())
}

#[derive(Debug)]
pub(super) struct BaseLayers {
    pub place: SharedCachePlace,
    files: Vec<PathBuf>,
}

impl BaseLayers {
    /// Copies of the layers that an image starts with, or that loadline put into it. `None` if it
    /// has none.
    pub fn from_image(image: &EngineImage, beside: &Path) -> Result<Option<Self>, ManifestError> {
        let mut options = JVM_VARIABLES.iter().filter_map(|name| image.env.get(*name));
        let last = options.next_back();
        let place = last.and_then(|options| scc::from_options(options));
        let place =
            place.unwrap_or_else(|| SharedCachePlace::in_own_directory(Path::new(IN_IMAGE)));
        let mut names = image.names_in(&place.directory);
        names.retain(|name| FileName::parse_name(name).is_some_and(|file| file.name == place.name));
        names.sort_unstable();
        // A colon would end the directory in an engine's option.
        let is_plain = |path: &Path| path.is_absolute() && !path.to_string_lossy().contains(':');
        if names.is_empty() || !is_plain(&place.directory) {
            return Ok(None);
        }
        let below = beside.with_file_name("below");
        make_anew(&below).map_err(manifest_failure("make", &below))?;
        let copy = |name: &String| {
            let seen = place.directory.join(name);
            let copy = below.join(name);
            let from = image.open_in_layers(&seen);
            let from = from.ok_or(io::ErrorKind::NotFound.into());
            let copied = from.and_then(|mut from| io::copy(&mut from, &mut File::create(&copy)?));
            copied.map_err(manifest_failure("copy", &seen))?;
            Ok(copy)
        };
        let files = names.iter().map(copy).collect::<Result<_, _>>()?;
        Ok(Some(Self { place, files }))
    }

    pub fn writable_layer(&self) -> WritableDirectory {
        WritableDirectory {
            seen: self.place.directory.clone(),
            below_tmp: PathBuf::from(WRITTEN),
            files: self.files.clone(),
        }
    }

    fn layers_below(&self, above: &str) -> Result<Vec<CacheLayer>, ManifestError> {
        let Some(above) = FileName::parse_name(above) else {
            return Ok(Vec::new());
        };
        let is_below = |file: &&PathBuf| {
            let name = name_of(file);
            FileName::parse_name(&name)
                .is_some_and(|it| it.is_layer_of(&above) && it.layer < above.layer)
        };
        let layer = |file: &PathBuf| {
            let (size, checksum) = length_and_checksum(file)?;
            let name = name_of(file);
            Ok(CacheLayer {
                name,
                size,
                checksum,
            })
        };
        self.files.iter().filter(is_below).map(layer).collect()
    }
}

pub(super) fn describe_cache(
    limits: SharedCacheLimits,
    base: Option<&BaseLayers>,
    file: &Path,
) -> Result<SharedCacheInfo, ManifestError> {
    let below = base.map_or(Ok(Vec::new()), |base| base.layers_below(&name_of(file)))?;
    let directory = base.map(|base| base.place.directory.display().to_string());
    Ok(SharedCacheInfo {
        hard_limit: limits.hard.as_bytes(),
        soft_limit: limits.soft.as_bytes(),
        directory: directory.filter(|_| !below.is_empty()),
        below,
    })
}

pub(super) fn file_of(place: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(place.with_file_name(DIRECTORY)).ok()?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files = files.filter(|file| FileName::parse_name(&name_of(file)).is_some());
    let file = files.next()?;
    files.next().is_none().then_some(file)
}

/// Moves the file, with the name that the JVM gave it, to `place`, a directory with nothing else in
/// it.
pub(super) fn take_file_name(raw: &Path, place: &Path) -> Result<PathBuf, ManifestError> {
    let directory = place.with_file_name(DIRECTORY);
    let name = without_name(raw).map_err(manifest_failure("take", raw))?;
    make_anew(&directory).map_err(manifest_failure("make", &directory))?;
    Ok(directory.join(name))
}

fn manifest_failure(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ManifestError {
    let path = path.to_owned();
    move |source| ManifestError {
        action,
        path,
        source,
    }
}

fn make_anew(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o755).create(directory)?,
    }
    // Not by create: the umask would take bits away, and the JVM is another user.
    fs::set_permissions(directory, Permissions::from_mode(0o755))
}

fn without_name(raw: &Path) -> io::Result<String> {
    let mut from = BufReader::new(File::open(raw)?);
    let mut name = String::new();
    from.by_ref().take(NAME).read_line(&mut name)?;
    let name = name.trim_end_matches('\n').to_owned();
    if FileName::parse_name(&name).is_none() {
        let text = "the JVM gave its shared class cache a name that loadline does not know";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let rest = raw.with_extension("rest");
    io::copy(&mut from, &mut File::create(&rest)?)?;
    fs::rename(&rest, raw)?;
    Ok(name)
}

pub(crate) fn prepare_statistics(
    of: &Measurement<'_>,
    configuration: &Configuration,
    built: &InstalledCache,
) -> Result<CacheErrand, RunError> {
    let mut with = alone_without_limits(configuration);
    with.label = "reading scc".to_owned();
    prepare_saying(of, with, built, |place| vec![scc::print_statistics(place)])
}

pub(crate) fn statistics_in(delivery: &Delivery) -> Result<SharedCacheStatistics, CacheError> {
    let said = output_in(&delivery.log).unwrap_or_default();
    let _ = fs::remove_file(&delivery.log);
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    SharedCacheStatistics::from_print_stats(&said).ok_or_else(|| CacheError::NotWritten {
        kind: CacheKind::Scc,
        why: "the JVM does not say what it holds".to_owned(),
        output: last_lines(&lines),
        hint: "the JVM must be an OpenJ9 with shared classes (module openj9.sharedclasses)",
    })
}

/// A start for what the JVM says with these options.
pub(super) fn prepare_saying(
    of: &Measurement<'_>,
    with: Configuration,
    built: &InstalledCache,
    options: impl Fn(&SharedCachePlace) -> Vec<String>,
) -> Result<CacheErrand, RunError> {
    let options = |seen: &Path| options(&SharedCachePlace::from_cache_file(seen));
    let assembled = assemble_by(of, &with, built, options)?;
    let directory = built.file.parent().unwrap_or(&built.file);
    let to = directory.with_file_name("said");
    prepare_errand(of, with, assembled, Vec::new(), (None, &to))
}

#[cfg(test)]
mod tests {
    use super::*;

    use loadline_experiment::Experiment;

    #[test]
    fn a_name_that_no_jvm_gives_is_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let (raw, place) = (
            directory.path().join("raw"),
            directory.path().join("app.scc"),
        );
        fs::write(&raw, "../../etc/passwd\nroot").expect("a file");
        assert!(take_file_name(&raw, &place).is_err());
        fs::write(&raw, "no line at all").expect("a file");
        assert!(take_file_name(&raw, &place).is_err());
        let name = "C290M25F1A64P_loadline_G45L00";
        fs::write(&raw, format!("{name}\ncache\nbytes")).expect("a file");
        let file = take_file_name(&raw, &place).expect("a name");
        assert_eq!(file, directory.path().join("scc").join(name));
        assert_eq!(fs::read(&raw).expect("the rest"), b"cache\nbytes");
        assert_eq!(file_of(&place), None);
        fs::write(&file, "cache").expect("it is ours");
        fs::write(file.with_extension("manifest"), "").expect("it is ours");
        assert_eq!(file_of(&place), Some(file));
    }

    #[test]
    fn a_command_with_a_shared_class_cache_of_its_own_is_told_apart() {
        let own = |command: &str| {
            let text = format!(
                "slo = \"p99<50ms\"\napp.command = {command}\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n"
            );
            let parsed = Experiment::from_file_text(&text, Path::new("test.toml"), Path::new("/"));
            own_option(&parsed.expect("it is valid").app).cloned()
        };
        let named = "-Xshareclasses:name=a,cacheDir=/a";
        let command = format!(r#"["java", "-Xmx64m", "{named}", "-jar", "a.jar"]"#);
        assert_eq!(own(&command).as_deref(), Some(named));
        let of_the_application = format!(r#"["java", "-jar", "a.jar", "{named}"]"#);
        assert_eq!(own(&of_the_application), None);
        let error = CacheError::OwnCache {
            option: named.to_owned(),
        };
        assert!(error.to_string().ends_with(named), "{error}");
        assert!(error.cache_hint().contains("only an image"), "{error:?}");
    }
}
