//! Start-up caches of a result: trained once for each kind, kept with the result, used by trials.
//!
//! A training run is the application without CPU and memory limits, taken through the same phases
//! as a trial: ready, some requests, a clean stop, at which the JVM writes its cache. Owns where
//! caches lie and what they were made for. Without limits, because the cache's content does not
//! depend on them but for the collector, and writing one takes a second JVM's memory.

mod error;
mod outcome;
mod shared;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::record::{
    CPU_PERIOD, CacheEvidence, Configuration, Evidence, JvmOption, StartCache, ValueProvenance,
};
use loadline_experiment::{AppUnderTest, Experiment};
use loadline_jvm::beneath::{self, open_regular_file};
use loadline_jvm::cache::application::{ApplicationError, JavaApplication};
use loadline_jvm::cache::classes::LoadedClasses;
use loadline_jvm::cache::destination::OutputDirectory;
use loadline_jvm::cache::manifest::{self, ManifestError};
use loadline_jvm::cache::{self, CacheKind, scc};
use loadline_jvm::detect::InstalledJdk;
use loadline_protocol::{LoadPhase, SamplingRate, TrialOrder};
use loadline_sizing::cache::{CacheManifest, cpu_features};
use loadline_sizing::{Bytes, JavaVersion};

use crate::command::{AssembledCommand, CommandError, TOOL_OPTIONS, assemble};
use crate::error::RunError;
use crate::host::Delivery;
use crate::logs::{gc_log_in, output_in};
use crate::measurement::Measurement;
use crate::order;
use crate::store::StoreError;

pub use error::CacheError;
use outcome::{
    collector_of_evidence, has_compressed_oops, is_trained, not_written, training_length,
};
use shared::BaseLayers;
pub(crate) use shared::{CacheRoom, prepare_statistics, statistics_in};

const WRITTEN: &str = "/tmp/loadline-cache";

/// Where an image has its cache: in trials a file of this machine, in the shipped image its own
/// file. A shared class cache lies elsewhere.
const IN_IMAGE: &str = "/jvm-cache";

const CLASSES: &str = "/tmp/loadline-classes";

/// Writing an archive of a large application takes seconds, and a loaded machine takes longer.
const WRITING: Duration = Duration::from_secs(180);

#[derive(Debug, Clone)]
pub struct InstalledCache {
    pub file: PathBuf,
    pub manifest: CacheManifest,
    pub evidence: CacheEvidence,
}

/// Where the cache of a configuration lies: a file for each JDK, kind and set of options; limits,
/// instances and rates do not affect a cache.
pub(crate) fn cache_path(
    of: &Measurement<'_>,
    configuration: &Configuration,
    kind: CacheKind,
) -> PathBuf {
    let plain = Configuration {
        label: String::new(),
        ..alone_without_limits(configuration)
    };
    let text = serde_json::to_string(&plain).unwrap_or_default();
    let name = format!("{kind}-{:08x}", crc32fast::hash(text.as_bytes()));
    let directory = of.store.cache_directory(&of.result).join(name);
    directory.join(file_name(kind))
}

/// A run that is no trial, and where its files go.
#[derive(Debug)]
pub(crate) struct CacheErrand {
    pub configuration: Configuration,
    pub order: TrialOrder,
    pub delivery: Delivery,
}

#[derive(Debug)]
pub(crate) struct CacheTraining {
    pub errand: CacheErrand,
    wanted: StartCache,
    room: CacheRoom,
    base: Option<BaseLayers>,
    pub place: PathBuf,
    raw: PathBuf,
    jdk: InstalledJdk,
    application: JavaApplication,
    has_compact_headers: bool,
}

impl CacheTraining {
    pub fn prepare_training(
        of: &Measurement<'_>,
        configuration: &Configuration,
        wanted: StartCache,
        room: CacheRoom,
    ) -> Result<Self, RunError> {
        let app = of.experiment.app_of(configuration);
        let plain = alone_without_limits(configuration);
        let plain = assemble(of.experiment, &plain, of.jdks, of.places)?;
        let build = plain.jdk.map(|jdk| jdk.version.full).unwrap_or_default();
        if let Some(option) = shared::own_option(&app).filter(|_| wanted.kind == CacheKind::Scc) {
            let option = option.clone();
            return Err(CacheError::OwnCache { option }.into());
        }
        let place = cache_path(of, configuration, wanted.kind);
        let directory = place.parent().unwrap_or(&place);
        make_cache_directory(directory)?;
        // The image's layers below a new shared class cache.
        let image = app.image.as_ref().and_then(|image| image.found.as_ref());
        let base = match image.filter(|_| wanted.kind == CacheKind::Scc) {
            Some(image) => BaseLayers::from_image(image, &place).map_err(CacheError::from)?,
            None => None,
        };
        let options = match &base {
            Some(base) => scc::populate_options(&base.place, room.limits, true),
            None => {
                let written = Path::new(WRITTEN);
                cache::training_options(wanted.kind, written, version_of_build(&build), room.limits)
            }
        };
        let training = training_configuration(of.experiment, configuration, wanted, options);
        let assembled = assemble(of.experiment, &training, of.jdks, of.places)?;
        let application = self::application_of_command(&app, assembled.command_line())
            .map_err(CacheError::from)?;
        let jdk = assembled.jdk.clone().ok_or_else(|| CacheError::NoJdk {
            program: app.command.first().cloned().unwrap_or_default(),
        })?;
        cache::check_kind(wanted.kind, &jdk).map_err(CacheError::from)?;
        let raw = directory.join("raw");
        // Left over from a run that was killed.
        let _ = fs::remove_file(&raw);
        let load = &of.experiment.load;
        let load = load.training_phases(&of.experiment.training, wanted.requests)?;
        let has_compact_headers = has_compact_headers(&jvm_words(&assembled));
        let written = match wanted.kind {
            // The one file in it.
            CacheKind::Scc => format!("{WRITTEN}/"),
            CacheKind::AppCds | CacheKind::Aot => WRITTEN.to_owned(),
        };
        let mut errand = prepare_errand(of, training, assembled, load, (Some(&written), &raw))?;
        if let loadline_protocol::AppSpec::Image(image) = &mut errand.order.app {
            image.writable = base.as_ref().map(BaseLayers::writable_layer);
        }
        Ok(Self {
            has_compact_headers,
            errand,
            wanted,
            room,
            base,
            place,
            raw,
            jdk,
            application,
        })
    }

    pub fn discard(self) {
        // What stays is removed before the next training.
        let _ = fs::remove_file(&self.errand.delivery.log);
        let _ = fs::remove_file(&self.raw);
    }

    pub fn install(self, evidence: &Evidence) -> Result<InstalledCache, RunError> {
        let events = &self.errand.delivery.log;
        let log = gc_log_in(events).unwrap_or_default();
        // Nothing of a training run is evidence for a size.
        let _ = fs::remove_file(events);
        if !is_trained(evidence) || !self.raw.is_file() {
            // A cache of a run that failed would be an archive of the failure.
            let _ = fs::remove_file(&self.raw);
            return Err(not_written(self.wanted, evidence).into());
        }
        let file = match self.wanted.kind {
            CacheKind::Scc => {
                shared::take_file_name(&self.raw, &self.place).map_err(CacheError::from)?
            }
            CacheKind::AppCds | CacheKind::Aot => self.place.clone(),
        };
        let made = CacheManifest {
            kind: self.wanted.kind,
            build: self.jdk.version.full,
            collector: collector_of_evidence(evidence),
            compressed_oops: has_compressed_oops(&log, evidence),
            compact_headers: self.has_compact_headers,
            size: 0,
            checksum: 0,
            cpu: cpu_features(&cpuinfo()),
            class_path: self.application.class_path().map_err(CacheError::from)?,
            shared: match self.wanted.kind {
                CacheKind::Scc => {
                    let made = shared::describe_cache(self.room.limits, self.base.as_ref(), &file);
                    Some(made.map_err(CacheError::from)?)
                }
                CacheKind::AppCds | CacheKind::Aot => None,
            },
        };
        let directory = file.parent().unwrap_or(&file);
        let there = OutputDirectory::open_own(directory).map_err(CacheError::from)?;
        let name = name_of(&file);
        let installed =
            manifest::install(&self.raw, &there, &name, &made).map_err(CacheError::from)?;
        let _ = fs::remove_file(&self.raw);
        let evidence = CacheEvidence {
            kind: self.wanted.kind,
            archive: Bytes::from_bytes(installed.size),
            training: training_length(evidence),
        };
        // Last, so that a cache cut short by a crash is made again.
        if self.room.is_final {
            write_evidence(&evidence, evidence_of(&self.place))?;
        }
        Ok(InstalledCache {
            file,
            manifest: installed,
            evidence,
        })
    }
}

fn write_evidence(evidence: &CacheEvidence, path: PathBuf) -> Result<(), CacheError> {
    let text = serde_json::to_string(evidence).unwrap_or_default();
    loadline_files::write(&path, text.as_bytes()).map_err(|refused| {
        CacheError::File(ManifestError {
            action: "write",
            path,
            source: refused.into(),
        })
    })
}

/// The CPU that the cache is made on, from the kernel; an empty text is not compared.
fn cpuinfo() -> String {
    fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

fn version_of_build(build: &str) -> JavaVersion {
    build.parse().unwrap_or(JavaVersion::from_feature(0))
}

fn make_cache_directory(directory: &Path) -> Result<(), StoreError> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(directory);
    made.map_err(|e| StoreError::Directory {
        path: directory.to_owned(),
        why: e.to_string(),
    })
}

fn training_configuration(
    experiment: &Experiment,
    configuration: &Configuration,
    wanted: StartCache,
    options: Vec<String>,
) -> Configuration {
    let mut training = alone_without_limits(configuration);
    training.label = format!("training {}", wanted.kind);
    let own = experiment.training.jvm.iter().cloned();
    let options = own.chain(options);
    training.jvm_options.extend(options.map(calculated_option));
    training
}

/// Starts the application with its cache and the JVM's own log of classes: proof of use without
/// counters.
pub(crate) fn prepare_witness(
    of: &Measurement<'_>,
    configuration: &Configuration,
    built: &InstalledCache,
) -> Result<CacheErrand, RunError> {
    let mut with = alone_without_limits(configuration);
    with.label = format!("verifying {}", built.manifest.kind);
    if built.manifest.kind == CacheKind::Scc {
        return shared::prepare_saying(of, with, built, scc::witness_options);
    }
    let option = format!("-Xlog:class+load:file={CLASSES}");
    with.jvm_options.push(calculated_option(option));
    let assembled = assemble_with(of, &with, built)?;
    let log = built.file.with_file_name("classes.log");
    // Left over from a run that was killed.
    let _ = fs::remove_file(&log);
    prepare_errand(of, with, assembled, Vec::new(), (Some(CLASSES), &log))
}

/// The classes that a witness logged; `None` when the JVM wrote no such log.
pub(crate) fn witnessed_classes(delivery: &Delivery) -> Option<LoadedClasses> {
    let said = output_in(&delivery.log).unwrap_or_default();
    let _ = fs::remove_file(&delivery.log);
    let Some(log) = delivery.files.first() else {
        return LoadedClasses::of_shared(&said);
    };
    let text = read_class_log(log);
    let _ = fs::remove_file(log);
    LoadedClasses::from_class_log(&text)
}

/// Longest class log that is read; with 50,000 classes a log has 10 MiB. The application wrote it.
const CLASS_LOG: u64 = 64 << 20;

fn read_class_log(log: &Path) -> String {
    let read = open_regular_file(log).and_then(|file| beneath::read(file, CLASS_LOG));
    String::from_utf8_lossy(&read.unwrap_or_default()).into_owned()
}

/// For one file or for its output alone: `wanted` is the file's path inside, and its destination.
fn prepare_errand(
    of: &Measurement<'_>,
    configuration: Configuration,
    assembled: AssembledCommand,
    load: Vec<LoadPhase>,
    (seen, to): (Option<&str>, &Path),
) -> Result<CacheErrand, RunError> {
    let id = uuid::Uuid::now_v7().to_string();
    let deadline = of.experiment.app.start_deadline;
    let order = TrialOrder {
        log_line: None,
        hand_over: seen.map(PathBuf::from).into_iter().collect(),
        sampling: SamplingRate::Period,
        load,
        stop_grace: WRITING,
        ..order::order_without_load(of, &id, &configuration, assembled, deadline)?
    };
    let delivery = Delivery {
        log: to.with_extension("events"),
        files: seen.map(|_| to.to_owned()).into_iter().collect(),
    };
    // Left over from a run that was killed.
    let _ = fs::remove_file(&delivery.log);
    Ok(CacheErrand {
        configuration,
        order,
        delivery,
    })
}

pub(crate) fn assemble_with(
    of: &Measurement<'_>,
    configuration: &Configuration,
    built: &InstalledCache,
) -> Result<AssembledCommand, CommandError> {
    let options = |seen: &Path| use_options(&built.manifest, seen);
    assemble_by(of, configuration, built, options)
}

fn assemble_by(
    of: &Measurement<'_>,
    configuration: &Configuration,
    built: &InstalledCache,
    options: impl Fn(&Path) -> Vec<String>,
) -> Result<AssembledCommand, CommandError> {
    let is_image = of.experiment.app_of(configuration).image.is_some();
    let seen = if is_image {
        in_image(built)
    } else {
        built.file.clone()
    };
    let mut with = configuration.clone();
    let options = options(&seen).into_iter().map(calculated_option);
    with.jvm_options.extend(options);
    let mut assembled = assemble(of.experiment, &with, of.jdks, of.places)?;
    if let loadline_protocol::AppSpec::Image(image) = &mut assembled.app {
        image.volumes.push((built.file.clone(), seen));
    }
    Ok(assembled)
}

pub fn use_options(made: &CacheManifest, place: &Path) -> Vec<String> {
    cache::use_options(made.kind, place, version_of_build(&made.build))
}

pub fn in_image(built: &InstalledCache) -> PathBuf {
    let above = built.manifest.shared.as_ref();
    let above = above.and_then(|shared| shared.directory.as_deref());
    let directory = match built.manifest.kind {
        CacheKind::Scc => above.unwrap_or(loadline_sizing::cache::shared::IN_IMAGE),
        CacheKind::AppCds | CacheKind::Aot => IN_IMAGE,
    };
    Path::new(directory).join(name_of(&built.file))
}

pub fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The start of an application with another command (program and arguments): in its image, if it
/// has one. Errors: [`ApplicationError`] for a program that is no java, or a class path that cannot
/// be cached. An image's program is not checked.
pub fn application_of_command(
    app: &AppUnderTest,
    command: &[String],
) -> Result<JavaApplication, ApplicationError> {
    let arguments = command.get(1..).unwrap_or_default();
    match app.image.as_ref().and_then(|image| image.found.as_ref()) {
        Some(found) => Ok(JavaApplication::in_image(arguments, |seen| {
            found.open_in_layers(seen)
        })),
        None => JavaApplication::from_arguments(arguments, &app.directory),
    }
}

fn jvm_words(assembled: &AssembledCommand) -> Vec<String> {
    let variable = assembled.app.app_environment().get(TOOL_OPTIONS);
    let words = variable.map_or("", String::as_str).split_whitespace();
    let line = assembled.command_line().iter().cloned();
    words.map(str::to_owned).chain(line).collect()
}

fn calculated_option(text: String) -> JvmOption {
    JvmOption {
        text,
        provenance: ValueProvenance::Calculated,
    }
}

fn alone_without_limits(configuration: &Configuration) -> Configuration {
    Configuration {
        instances: 1,
        cpu: None,
        cpu_period: CPU_PERIOD,
        cpu_burst: None,
        start_cpu: None,
        cpuset: None,
        cpu_shares: None,
        neighbour_threads: None,
        memory: None,
        rate: None,
        ..configuration.clone()
    }
}

fn file_name(kind: CacheKind) -> String {
    format!("app.{}", kind.extension())
}

fn evidence_of(place: &Path) -> PathBuf {
    place.with_file_name("training.json")
}

pub(crate) fn read(place: &Path, wanted: StartCache) -> Option<InstalledCache> {
    let file = match wanted.kind {
        CacheKind::Scc => shared::file_of(place)?,
        CacheKind::AppCds | CacheKind::Aot => place.to_owned(),
    };
    let text = fs::read_to_string(manifest::path_of(&file)).ok()?;
    let made = CacheManifest::parse_manifest(&text)?;
    let evidence = fs::read_to_string(evidence_of(place)).ok()?;
    let evidence: CacheEvidence = serde_json::from_str(&evidence).ok()?;
    let is_whole = manifest::length_and_checksum(&file).ok()? == (made.size, made.checksum);
    (is_whole && made.kind == wanted.kind).then_some(InstalledCache {
        file,
        manifest: made,
        evidence,
    })
}

fn has_compact_headers(words: &[String]) -> bool {
    let mut named = words.iter().rev();
    // The last one counts.
    let last = named.find(|word| word.ends_with("UseCompactObjectHeaders"));
    last.is_some_and(|word| word.starts_with("-XX:+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPCDS: StartCache = StartCache {
        kind: CacheKind::AppCds,
        requests: 20,
    };

    #[test]
    fn a_class_log_is_read_up_to_its_bound() {
        let place = tempfile::tempdir().expect("a directory");
        let log = place.path().join("classes");
        let line = "A source: jrt:/java.base\n";
        fs::write(&log, line).expect("a file");
        assert_eq!(read_class_log(&log), line);
        let file = fs::File::options().append(true).open(&log).expect("a file");
        // Sparse: it takes no disk.
        file.set_len(1 << 40).expect("a hole");
        let read = read_class_log(&log);
        assert!(read.starts_with(line) && read.len() as u64 == CLASS_LOG);
    }

    #[test]
    fn a_cache_is_trained_by_one_instance_without_limits_and_for_all_rates_at_once() {
        let text = "slo = \"p99<50ms\"\napp.command = [\"java\", \"-jar\", \"a.jar\"]\n[limits]\ncpu = \"500m\"\ncpu-period = \"50ms\"\ninstances = 4\nmemory = \"512Mi\"\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n[[factor]]\nname = \"rate\"\nlevels = [{ label = \"one\", rate = \"10/s\", cpu-burst = \"20ms\" }, { label = \"two\", rate = \"20/s\" }]\n";
        let parsed = Experiment::from_file_text(text, Path::new("test.toml"), Path::new("/"));
        let experiment = parsed.expect("it is valid");
        let all = experiment.configurations();
        let plain = |configuration: &Configuration| {
            let training = training_configuration(
                &experiment,
                configuration,
                APPCDS,
                vec!["-XX:ArchiveClassesAtExit=a".to_owned()],
            );
            assert_eq!((training.instances, training.rate), (1, None));
            assert_eq!((training.cpu, training.cpu_burst), (None, None));
            assert_eq!((training.memory, training.cpu_period), (None, CPU_PERIOD));
            training
        };
        assert_eq!(all.len(), 2);
        assert_eq!(plain(&all[0]), plain(&all[1]), "one training serves both");
    }
}
