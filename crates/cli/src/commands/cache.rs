//! `loadline cache`: trains a start-up cache of the application, puts it in place, and verifies it
//! by pairs of starts with and without it.
//!
//! It is an experiment with one factor (no cache, cache), so trials, records and `resume` work as
//! in `loadline run`; this file makes the experiment and puts the file in place.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use loadline_analysis::record::{Configuration, ImageIdentity};
use loadline_experiment::wire::{ExperimentFile, FactorTable, LevelEntry, LevelTable, ReadyTable};
use loadline_experiment::{Experiment, ValueWithOrigin};
use loadline_jvm::cache::application::JavaApplication;
use loadline_jvm::cache::classes::LoadedClasses;
use loadline_jvm::cache::destination::{FileOwner, OutputDirectory};
use loadline_jvm::cache::manifest::ManifestError;
use loadline_jvm::cache::{self as caches, CacheKind, manifest};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_load::spec::text::TimeOrNone;
use loadline_load::{LoadSpec, LoadTarget};
use loadline_protocol::Account;
use loadline_report::emit::{ImageCache, cached_image};
use loadline_runner::agenda::Agenda;
use loadline_runner::cache::{
    CacheError, InstalledCache, application_of_command, in_image, name_of, use_options,
};
use loadline_runner::command::{assemble, options_variable};
use loadline_runner::store::ResultKind;
use loadline_sizing::Bytes;
use loadline_sizing::cache::SharedCacheInfo;
use loadline_trial::oci;

use crate::error::{CommandOutcome, Error, cache_refused};
use crate::experiment::{LoadedExperiment, check_file, factor, plain_file, split_ready};
use crate::extract::extract_command;
use crate::measuring::{MeasureFlags, MeasuringSession, sudo_caller};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::say::print_text;
use crate::{called, images};

/// The directory of a shared class cache: OpenJ9 and `loadline-launch` both take a directory.
const SHARED: &str = "scc";

const PORT: u16 = 8080;

#[derive(Args)]
pub struct CacheArguments {
    /// Kind of cache: auto, appcds (JDK 13 and later), aot (25 and later), scc (OpenJ9)
    #[arg(long, default_value = "auto", value_name = "KIND")]
    kind: String,

    /// Pairs of starts, with and without the cache; 10 give an interval worth printing
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// URL to request in the training run, e.g. http://localhost:8080/owners; repeat the flag for
    /// more. Without --ready, an answer from the first one also means that the application is ready
    #[arg(long, value_name = "URL")]
    warm: Vec<LoadTarget>,

    /// Requests to each URL; 0 trains the start alone
    #[arg(long, default_value_t = 20, value_name = "N")]
    warm_requests: u64,

    /// JVM option for the training run only, e.g. -Dspring.context.exit=onRefresh
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    train_option: Vec<String>,

    /// Extract a Spring Boot jar first, with its libraries next to it, because no cache can serve
    /// classes from jars inside a jar. The extracted application, in a directory next to the jar or
    /// in -o, is trained and compared
    #[arg(long, conflicts_with = "image")]
    extract: bool,

    /// Directory to write the cache to [default: next to the application's jar; for an image, the
    /// working directory]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Readiness check: a path that answers, tcp:PORT, grpc:PORT, log:TEXT or command:PROGRAM
    /// [default: the first --warm; without one, port 8080 accepts a connection]
    #[arg(long, value_name = "WHEN", value_parser = split_ready)]
    ready: Option<ReadyTable>,

    /// Longest time a start may take, e.g. 60s
    #[arg(long, value_name = "TIME")]
    start_deadline: Option<String>,

    /// CPU limit of the compared starts, e.g. 1 or 500m
    #[arg(long, value_name = "CPUS")]
    cpu: Option<String>,

    /// Memory limit of the compared starts, e.g. 512Mi
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// JDK by name, as listed by `loadline doctor`
    #[arg(long, value_name = "NAME")]
    jdk: Option<String>,

    /// User that the application runs as: uid or uid:gid
    #[arg(long, value_name = "UID")]
    user: Option<String>,

    /// Network of the application: own (loopback only) or host
    #[arg(long)]
    network: Option<String>,

    /// Judge trials even if other programs disturbed them; the result marks these trials
    #[arg(long)]
    accept_noise: bool,

    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,

    /// Image to start instead of a command: the cache is trained in the image's own container, and
    /// a Dockerfile adds it to the image
    #[arg(long, value_name = "REF")]
    image: Option<String>,

    /// Engine that starts the image: podman or docker [default: whichever has it]
    #[arg(long, value_name = "ENGINE", requires = "image")]
    engine: Option<String>,

    /// The application's command, after --; for an image, its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "image")]
    command: Vec<String>,
}

pub fn run(mut arguments: CacheArguments) -> Result<CommandOutcome, Error> {
    if arguments.extract {
        arguments.command = extract_command(&arguments.command, arguments.out.as_deref())?;
    }
    let here = called::working_directory()?;
    let plain = cache_experiment(&arguments, None);
    let mut plain = check_file(plain, None, &here, String::new())?.experiment;
    images::find_images(&mut plain)?;
    let (jdk, application) = subject(&plain)?;
    let kind = choose_kind(&arguments.kind, &jdk)?;
    let name = match &arguments.image {
        Some(reference) => images::short_name(reference),
        None => stem(application.main()),
    };
    let beside = application.main().parent();
    let beside = beside.filter(|_| arguments.image.is_none());
    let mut directory = match &arguments.out {
        Some(directory) => here.join(directory),
        None => beside.unwrap_or(&here).to_owned(),
    };
    let place = directory.join(&name);
    let is_found = is_found(application.main(), &arguments.command, &place);
    if kind == CacheKind::Scc {
        // Those of two images may have the same name.
        directory.push(match arguments.image {
            Some(_) => format!("{name}.{SHARED}"),
            None => SHARED.to_owned(),
        });
    }
    // Before an application is started for nothing.
    let caller = sudo_caller().map(|Account { uid, gid }| FileOwner { uid, gid });
    let there = OutputDirectory::open_for_caller(&directory, caller)
        .map_err(|e| cache_refused(&CacheError::File(e)))?;
    // OpenJ9 names the file itself.
    let file = (kind != CacheKind::Scc).then(|| format!("{name}.{}", kind.extension()));
    let given = cache_experiment(&arguments, Some(kind));
    let mut given = check_file(given, None, &here, format!("{kind} cache of {name}"))?;
    given.experiment.app.image = plain.app.image;
    verify_cache(given, &arguments, (&there, file), is_found)
}

/// Whether `loadline-launch` finds the cache without an option: next to the jar of `java -jar`.
fn is_found(jar: &Path, command: &[String], place: &Path) -> bool {
    let is_beside = place.parent() == jar.parent();
    is_beside && command.iter().any(|word| word == "-jar")
}

fn verify_cache(
    given: LoadedExperiment,
    arguments: &CacheArguments,
    (there, file): (&OutputDirectory, Option<String>),
    is_found: bool,
) -> Result<CommandOutcome, Error> {
    let mut measuring = MeasuringSession::begin_result(given, ResultKind::Run, &arguments.measure)?;
    let agenda = Agenda::new(&measuring.experiment);
    let with = cached_configuration(&measuring.experiment)?;
    let found = measuring.experiment.app.image.as_ref();
    let found = found.and_then(|image| image.found.clone());
    let image = found.as_ref().map(images::image_record);
    let mut progress = measuring.progress_display(Some(agenda.trial_count()));
    let built = measuring.run(&mut progress, |runner| {
        let Some(built) = runner.ensure_cache(&with)? else {
            return Ok(None);
        };
        // At once: whoever has no patience for the pairs has the cache.
        let file = file.clone().unwrap_or_else(|| name_of(&built.file));
        match &found {
            None => manifest::install(&built.file, there, &file, &built.manifest).map(drop),
            Some(found) => put_beside_dockerfile(&built, found, there, &file),
        }
        .map_err(CacheError::File)?;
        let classes = runner.witness_classes(&with, &built)?;
        runner.run(&agenda.matrix)?;
        Ok(Some((built, classes)))
    })?;
    measuring.note_done()?;
    let Some((built, classes)) = built else {
        return Err(Error::internal("the experiment has no cache"));
    };
    if !arguments.output.json {
        let file = file.unwrap_or_else(|| name_of(&built.file));
        let use_it = match &image {
            None => use_it(&built, &there.file_path(&file), is_found),
            Some(image) => build_it(image, there, &dockerfile(built.manifest.kind, &file)),
        };
        print_text(&summary(&built, &there.file_path(&file), &use_it, classes))?;
    }
    let (store, result) = (&measuring.store, &measuring.result);
    let mut out = AnswerPrinter::default();
    super::show::print_result(store, result, &arguments.output, &mut out)?;
    match classes {
        Some(classes) if !classes.is_used(built.manifest.kind) => {
            say!("warning: the JVM did not use the cache; the application starts without it");
            Ok(CommandOutcome::SloMissed)
        }
        _ => Ok(CommandOutcome::Done),
    }
}

fn subject(experiment: &Experiment) -> Result<(InstalledJdk, JavaApplication), Error> {
    let places = JdkPlaces::of_process();
    let jdks = DetectedJdks::scan_places(&places);
    let configurations = experiment.configurations();
    let base = configurations.first().unwrap_or(&experiment.base);
    let assembled = assemble(experiment, base, &jdks, &places)?;
    if let (Some(image), None) = (&experiment.app.image, &assembled.jdk) {
        let what = format!("the image {} has no JVM", image.reference);
        return Err(Error::usage(what)
            .with_hint("name an image with a JVM. If the engine has no overlay driver (see its `info`), loadline cannot see the files of an image"));
    }
    let no_jdk = || CacheError::NoJdk {
        program: experiment.app.command.first().cloned().unwrap_or_default(),
    };
    let jdk = assembled.jdk.clone().ok_or_else(no_jdk)?;
    let application = application_of_command(&experiment.app, assembled.command_line())
        .map_err(|e| cache_refused(&CacheError::Application(e)))?;
    Ok((jdk, application))
}

fn choose_kind(text: &str, jdk: &InstalledJdk) -> Result<CacheKind, Error> {
    let refused = |e| cache_refused(&CacheError::Kind(e));
    let kind = match text {
        "auto" => caches::best_kind(jdk).map_err(refused)?,
        text => text.parse::<CacheKind>().map_err(|e| {
            Error::usage(format!("--kind: {e}")).with_hint("or auto, what the JDK gains most from")
        })?,
    };
    caches::check_kind(kind, jdk).map_err(refused)?;
    Ok(kind)
}

fn stem(jar: &Path) -> String {
    let stem = jar.file_stem();
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Puts the cache of an image in place, with the Dockerfile that puts it into the image. A manifest
/// has a shared class cache only, for `loadline-launch` in the image: what any other fits stays as it
/// is while the image's id does.
fn put_beside_dockerfile(
    built: &InstalledCache,
    found: &oci::image::EngineImage,
    there: &OutputDirectory,
    file: &str,
) -> Result<(), ManifestError> {
    let place = in_image(built);
    let variable = options_variable(found.jdk.as_ref());
    let own = found.env.get(variable).map(String::as_str);
    let is_shared = built.manifest.kind == CacheKind::Scc;
    let manifest = manifest::path_of(Path::new(file)).display().to_string();
    let (files, to) = if is_shared {
        let directory = place.parent().unwrap_or(&place).display();
        (vec![file.to_owned(), manifest], format!("{directory}/"))
    } else {
        (vec![file.to_owned()], place.display().to_string())
    };
    let cache = ImageCache {
        files: &files,
        place: &to,
        variable: (variable, own),
        options: &use_options(&built.manifest, &place),
    };
    let text = cached_image(&images::image_record(found), &cache);
    let dockerfile = dockerfile(built.manifest.kind, file);
    if is_shared {
        manifest::install(&built.file, there, file, &built.manifest)?;
        return there.put_one(&dockerfile, |file| file.write_all(text.as_bytes()));
    }
    let content = std::fs::File::open(&built.file).map_err(|source| ManifestError {
        action: "read",
        path: built.file.clone(),
        source,
    })?;
    there.put_pair((file, content), (&dockerfile, text.as_bytes()))
}

/// The Dockerfile of a cache: a name that no build has yet, or in a directory with nothing else in
/// it.
fn dockerfile(kind: CacheKind, file: &str) -> String {
    match kind {
        CacheKind::Scc => "Dockerfile".to_owned(),
        CacheKind::AppCds | CacheKind::Aot => format!("{file}.Dockerfile"),
    }
}

fn cache_experiment(arguments: &CacheArguments, kind: Option<CacheKind>) -> ExperimentFile {
    let optional = |flag, text: &Option<String>| {
        let text = text.clone();
        text.map(|text| ValueWithOrigin::from_flag(flag, text))
    };
    let limit = arguments.start_deadline.as_deref().unwrap_or("60s");
    let slo = ValueWithOrigin::from_flag("--start-deadline", format!("start<{limit}"));
    let mut file = plain_file(slo, arguments.command.clone());
    let app = &mut file.app;
    app.image = optional("--image", &arguments.image);
    app.engine = optional("--engine", &arguments.engine);
    app.start_deadline = optional("--start-deadline", &arguments.start_deadline);
    app.user = optional("--user", &arguments.user);
    app.network = optional("--network", &arguments.network);
    app.ready = ready_table(arguments);
    if let Some(jdk) = &arguments.jdk {
        let levels = vec![LevelEntry::Plain(jdk.clone())];
        file.factor.push(factor("jdk", "--jdk", levels));
    }
    let classes = kind.map(|kind| classes_factor(kind, arguments.warm_requests));
    file.factor.extend(classes);
    file.question = Some("How much faster is a start with a cache?".to_owned());
    file.load = start_load(arguments);
    file.limits.cpu = optional("--cpu", &arguments.cpu);
    file.limits.memory = optional("--memory", &arguments.memory);
    file.run.repeats = Some(ValueWithOrigin::from_flag("--runs", arguments.runs));
    file.run.accept_noise = arguments.accept_noise.then_some(true);
    file.cache.warm.clone_from(&arguments.warm);
    file.cache.jvm.clone_from(&arguments.train_option);
    file
}

/// Only the start is judged; a few requests show that it serves.
fn start_load(arguments: &CacheArguments) -> LoadSpec {
    let own = LoadTarget {
        host: "localhost".to_owned(),
        is_tls: false,
        port: PORT,
        path: "/".to_owned(),
        authority: format!("localhost:{PORT}"),
    };
    LoadSpec {
        url: Some(arguments.warm.first().cloned().unwrap_or(own)),
        requests: Some(20),
        connections: Some(2),
        warm_up: Some(TimeOrNone(Duration::ZERO)),
        ..LoadSpec::default()
    }
}

fn ready_table(arguments: &CacheArguments) -> Option<ReadyTable> {
    let at_port = || ReadyTable {
        tcp: Some(PORT),
        ..ReadyTable::default()
    };
    let otherwise = arguments.warm.is_empty().then(at_port);
    arguments.ready.clone().or(otherwise)
}

fn classes_factor(kind: CacheKind, requests: u64) -> FactorTable {
    let level = |label: &str, cache: Option<CacheKind>| {
        LevelEntry::Changes(Box::new(LevelTable {
            label: label.to_owned(),
            cache: cache.map(|kind| kind.to_string()),
            cache_requests: cache.map(|_| requests),
            ..LevelTable::default()
        }))
    };
    let levels = vec![level("without", None), level(kind.kind_name(), Some(kind))];
    factor("classes", "--kind", levels)
}

fn cached_configuration(experiment: &Experiment) -> Result<Configuration, Error> {
    let all = experiment.configurations();
    let with = all.into_iter().find(|c| c.cache.is_some());
    with.ok_or_else(|| Error::internal("the experiment has no cache"))
}

fn summary(
    built: &InstalledCache,
    place: &Path,
    use_it: &str,
    classes: Option<LoadedClasses>,
) -> String {
    let made = &built.manifest;
    let mut text = format!(
        "{} ({:.1}Mi), trained in {:.1} s with {}\n",
        place.display(),
        built.evidence.archive.as_mib(),
        built.evidence.training.as_secs_f64(),
        made.collector,
    );
    let references = if made.compressed_oops {
        "compressed"
    } else {
        "uncompressed"
    };
    let headers = if made.compact_headers {
        "compact"
    } else {
        "ordinary"
    };
    let files = match made.class_path.len() {
        0 => "the class path of the image".to_owned(),
        1 => "the one file of the class path".to_owned(),
        n => format!("the {n} files of the class path"),
    };
    text += &format!(
        "It fits JDK build {}, {references} references, {headers} object headers, and {files}.\n",
        made.build
    );
    if let Some(shared) = &made.shared {
        text += &limits_and_layers(shared);
    }
    text += &format!("Use it: {use_it}.\n");
    if let Some(classes) = classes {
        text += &format!(
            "{} of {} classes ({:.1} %) come from it{}.\n",
            classes.archived,
            classes.loaded,
            classes.archived as f64 * 100.0 / classes.loaded as f64,
            match made.kind {
                // OpenJ9 has no base archive; the JDK's classes are in this cache.
                CacheKind::Scc => "",
                CacheKind::AppCds | CacheKind::Aot => " and the JDK's archive",
            }
        );
    }
    text + "\n"
}

fn limits_and_layers(made: &SharedCacheInfo) -> String {
    let mib = |bytes: u64| Bytes::from_bytes(bytes).as_mib();
    let (hard, soft) = (mib(made.hard_limit), mib(made.soft_limit));
    let mut text = format!("Its hard limit is {hard:.0}Mi, its soft limit {soft:.0}Mi.\n");
    if let Some(directory) = &made.directory {
        let below: Vec<&str> = made.below.iter().map(|layer| layer.name.as_str()).collect();
        let below = below.join(", ");
        text += &format!("It is a layer above {below} of the image, usable only in {directory}.\n");
    }
    text
}

fn use_it(built: &InstalledCache, place: &Path, is_found: bool) -> String {
    let options = use_options(&built.manifest, place).join(" ");
    format!("java {options} ...{}", found_by(is_found))
}

fn build_it(image: &ImageIdentity, there: &OutputDirectory, dockerfile: &str) -> String {
    format!(
        "{} build -t {}:cached -f {} {}",
        image.engine,
        images::short_name(&image.reference),
        there.file_path(dockerfile).display(),
        there.directory().display(),
    )
}

fn found_by(is_found: bool) -> &'static str {
    if is_found {
        "; loadline-launch finds it next to the jar"
    } else {
        "; loadline-launch looks next to the jar of `java -jar` only, pass the option there too"
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: CacheArguments,
    }

    fn file(line: &str) -> Experiment {
        let words = std::iter::once("x").chain(line.split(' '));
        let arguments = Line::parse_from(words).arguments;
        let file = cache_experiment(&arguments, Some(CacheKind::Aot));
        let given = check_file(file, None, Path::new("/"), String::new()).expect("it is valid");
        // `resume` must be able to read the stored text.
        Experiment::from_file_text(&given.text, Path::new("stored"), Path::new("/"))
            .expect("it is stored")
    }

    #[test]
    fn the_pairs_are_an_experiment_that_can_be_resumed() {
        let line = "--runs 12 --jdk 25 --cpu 1 --warm http://localhost:81/a --warm http://localhost:81/b --warm-requests 7 -- java -jar app.jar";
        let experiment = file(line);
        assert_eq!(experiment.repeats, 12);
        let all = experiment.configurations();
        let labels: Vec<&str> = all.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(labels, ["jdk25 without", "jdk25 aot"]);
        assert_eq!(all[1].cache.map(|c| c.requests), Some(7));
        assert_eq!(
            experiment.training.warm,
            ["http://localhost:81/a", "http://localhost:81/b"]
                .map(|url| url.parse().expect("a URL"))
        );
    }

    #[test]
    fn the_launcher_finds_it_only_beside_the_jar_of_java_jar() {
        let is_found = |command: &str, place: &str| {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            super::is_found(Path::new("/app/a.jar"), &command, Path::new(place))
        };
        assert!(is_found("java -jar /app/a.jar", "/app/a.aot"));
        assert!(!is_found("java -jar /app/a.jar", "/other/a.aot"));
        assert!(!is_found(
            "java -cp /app/a.jar:/app/b.jar Main",
            "/app/a.aot"
        ));
        assert!(found_by(false).contains("pass the option"));
    }

    #[test]
    fn without_a_url_a_connection_is_enough() {
        use loadline_protocol::Readiness;
        let experiment = file("-- java -jar app.jar");
        assert_eq!(experiment.app.readiness, Readiness::Tcp { port: 8080 });
        let experiment = file("--ready /health -- java -jar app.jar");
        let path = "/health".to_owned();
        assert_eq!(
            experiment.app.readiness,
            Readiness::Http { port: 8080, path }
        );
    }
}
