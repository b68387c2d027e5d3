//! `loadline emit`: the files that ship a recommendation, whole or not at all.

mod cached;
mod existing;
mod foreign;
mod jvm;
mod purposes;
mod run;
mod steps;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use loadline_analysis::deployment::CellResult;
use loadline_analysis::record::ImageIdentity;
use loadline_experiment::Experiment;
use loadline_experiment::advice::image_jdk::{is_image_name, is_latest};
use loadline_files::{Directory, PathRefusal, PendingFile};
use loadline_jvm::cache::application::JavaApplication as Jars;
use loadline_kubernetes::rights;
use loadline_load::LoadTarget;
use loadline_protocol::Readiness;
use loadline_report::emit::{
    Artefact, AutoscalerNeeds, BaseImage, EmitError, ImagePinning, ProductionApplication,
    ReadinessCheck, StartCommand, emit, secret, slug,
};
use loadline_report::{ResultView, answer_doubts, node_sentences, redact};
use loadline_sizing::cache::CacheKind;
use loadline_sizing::options::words::has_word;

use crate::error::{CommandOutcome, Error, FailureKind};
use crate::output::AnswerPrinter;
use crate::result::{ResultFlags, target_node};
use crate::{files, images};

use cached::{asked_for, refuse_cache_of_another_jvm, refuse_cache_of_image};
use existing::PatchFlags;
use foreign::refuse_foreign_commands;
use jvm::JvmIdentity;
use purposes::choose_purposes;
use steps::ShippingSteps;

/// Names of files that the image's directory has already, or the build makes in it.
const OURS: &str = "Dockerfile app.aot app.jsa compose.yaml evidence.md java-tool-options.env jvm.options \
    kubernetes.yaml loadline-launch loadline.profile loadline.xml start-cpu-vpa.yaml \
    start-cpu.yaml";

const NO_JVM: u32 = 0;

const READABLE: u32 = 0o666;

/// Quarkus's runner: it reads these directories next to its jar, and no manifest names them.
const QUARKUS: (&str, [&str; 2]) = (
    "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
    ["app", "quarkus"],
);

/// What the files are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EmitTarget {
    /// Deployment and Service; autoscaler and disruption budget if asked for. Without docker and
    /// compose, the JVM options go into the pod, for use with your own image
    #[value(alias = "k8s")]
    Kubernetes,
    /// Dockerfile and the files it copies
    Docker,
    /// Compose file and the Dockerfile it builds
    Compose,
    /// jvm.options, JAVA_TOOL_OPTIONS and the launcher's profile
    Options,
    /// Prometheus alert rules that fire above the highest values of starts that kept the SLO
    Alerts,
    /// Grafana dashboard of the figures that the alert rules compare
    Grafana,
    /// KEDA ScaledObject instead of the autoscaler; needs --max-replicas
    Keda,
}

#[derive(Args, Default)]
pub struct EmitArguments {
    #[command(flatten)]
    result: ResultFlags,
    /// Directory to write to; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "rbac")]
    to: Option<PathBuf>,
    /// Only print the Role that `--kubernetes` needs in this namespace and the service account for
    /// `--in-cluster`, as input for kubectl apply -f -
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, default_missing_value = "default")]
    rbac: Option<String>,
    /// What to write files for, separated by commas [default: all but alerts and keda]
    #[arg(long = "for", value_enum, value_delimiter = ',')]
    purposes: Vec<EmitTarget>,
    /// Name of the service [default: the result's title]
    #[arg(long)]
    name: Option<String>,
    /// Image name as the cluster pulls it [default: NAME:latest]
    #[arg(long, value_parser = parse_image_name)]
    image: Option<String>,
    /// Base image of the Dockerfile [default: an image of the measured vendor and build, if one
    /// exists; the Dockerfile says how similar it is to the measured JVM]
    #[arg(long, value_name = "IMAGE")]
    base_image: Option<String>,
    /// Number of pods; 2 or more get a PodDisruptionBudget [default: as found by `size --prices`,
    /// else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replicas: Option<u32>,
    /// Requests a second that one pod can carry, as found by `loadline load --max-rate` [default:
    /// as measured by `size --prices`]
    #[arg(long, value_name = "N", requires = "max_replicas", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    max_rate: Option<u32>,
    /// Most pods that the autoscaler may run; without this flag there is no autoscaler
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_replicas: Option<u32>,
    /// Schedule of a job that ends, in cron syntax, for a CronJob: '0 3 * * *'
    #[arg(long, value_name = "CRON", value_parser = parse_schedule)]
    schedule: Option<String>,
    /// Start java directly, without loadline-launch
    #[arg(long)]
    plain: bool,
    /// Build a start-up cache in the Dockerfile: appcds (JDK 13 and later), aot (25 and later) or
    /// scc (OpenJ9) [default: the recommendation's]
    #[arg(long, value_name = "KIND")]
    cache: Option<CacheKind>,
    /// CPUs of the host it will run on; anything the JVM would choose differently there is pinned
    /// as measured [default: as given to `size --node`, else nothing is pinned]
    #[arg(long, value_name = "CPUS", value_parser = clap::value_parser!(u32).range(1..=8192))]
    node: Option<u32>,
    #[command(flatten)]
    existing: PatchFlags,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

pub(super) fn parse_image_name(text: &str) -> Result<String, String> {
    if is_image_name(text) {
        Ok(text.to_owned())
    } else {
        Err("it is not an image name; write registry.example/orders:1.4".to_owned())
    }
}

/// The form alone: the cluster knows the ranges.
fn parse_schedule(text: &str) -> Result<String, String> {
    let is_field = |c: char| c.is_ascii_alphanumeric() || "*/,-?".contains(c);
    let has_fields = text.split(' ').filter(|field| !field.is_empty()).count() == 5;
    if has_fields && text.chars().all(|c| c == ' ' || is_field(c)) {
        Ok(text.to_owned())
    } else {
        Err(
            "it is not a schedule; write minute, hour, day, month and day of the week: '0 3 * * *'"
                .to_owned(),
        )
    }
}

impl EmitArguments {
    pub fn for_patch(
        (id, state): (String, Option<PathBuf>),
        manifest: PathBuf,
        (workload, container): (String, String),
        to: PathBuf,
    ) -> Self {
        Self {
            result: ResultFlags { id, state },
            to: Some(to),
            existing: PatchFlags::for_container(manifest, workload, container),
            force: true,
            ..Self::default()
        }
    }
}

pub fn run(mut arguments: EmitArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    if let Some(namespace) = &arguments.rbac {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if namespace.is_empty() || !namespace.chars().all(is_part) {
            let problem = format!("--rbac: `{namespace}` is not a namespace name");
            return Err(Error::usage(problem).with_hint("--rbac shop"));
        }
        out.print_answer(&rights::role(namespace))?;
        return Ok(CommandOutcome::Done);
    }
    let to = arguments.to.take().unwrap_or_default();
    let (mut view, mut experiment) = arguments.result.view_and_experiment()?;
    if let Some(recommended) = &view.recommendation {
        experiment.app = experiment.app_of(&recommended.configuration).into_owned();
    }
    if arguments.result.is_from_elsewhere() {
        refuse_foreign_commands(&view, &experiment)?;
    }
    if arguments.node.is_some() {
        view.node = target_node(&experiment, &view.machine, arguments.node);
    }
    if experiment.app.run.is_some() {
        return run::write_run(&arguments, &to, (&view, &experiment), out);
    }
    if arguments.schedule.is_some() {
        let refusal = "--schedule: the application is a service, which runs all the time";
        return Err(Error::usage(refusal).with_hint("leave it out, or size a job that ends: --job"));
    }
    let application = build_application(&arguments, &view, &experiment)?;
    refuse_cache_of_image(&application)?;
    if let Some(patched) = arguments.existing.patch_files(&view, &application)? {
        write(&arguments, &to, &view, &patched.artefacts, out)?;
        for note in &patched.notes {
            say!("warning: {note}");
        }
        let next = arguments.existing.next(&to);
        next.iter().for_each(|line| talk!("next: {line}"));
        return Ok(CommandOutcome::Done);
    }
    let purposes = choose_purposes(&arguments, &experiment, &application)?;
    let artefacts = emit(&view, &application, &purposes).map_err(emit_refused)?;
    write(&arguments, &to, &view, &artefacts, out)?;
    let steps = ShippingSteps {
        to: &to,
        home: &experiment.app.directory,
        application: &application,
        artefacts: &artefacts,
        secret: secret(&view, &application),
        start_cpu: (view.recommendation.as_ref()).and_then(|r| r.configuration.start_cpu),
    };
    for doubt in steps.doubts() {
        say!("warning: {doubt}");
    }
    for line in steps.next() {
        talk!("next: {line}");
    }
    Ok(CommandOutcome::Done)
}

fn write(
    arguments: &EmitArguments,
    to: &Path,
    view: &ResultView,
    artefacts: &[Artefact],
    out: &mut AnswerPrinter,
) -> Result<(), Error> {
    write_all(to, artefacts, arguments.force)?;
    for doubt in answer_doubts(view) {
        say!("warning: {doubt}");
    }
    for line in node_sentences(view) {
        talk!("{line}");
    }
    for artefact in artefacts {
        out.print_answer(&to.join(artefact.name).display().to_string())?;
    }
    Ok(())
}

fn emit_refused(error: EmitError) -> Error {
    let kind = match &error {
        EmitError::Command { .. }
        | EmitError::OverCommitted(_)
        | EmitError::File { .. }
        | EmitError::Manifest { .. }
        | EmitError::NoTrigger
        | EmitError::ToolOptions => FailureKind::Usage,
        EmitError::NoRecommendation { .. } => FailureKind::Invalid,
    };
    Error::new(kind, &error).with_hint(error.emit_hint())
}

/// Whether a cluster gets just this image by its name. One of `localhost` is on the machine that built
/// it, and gets its digest when it is pushed.
fn is_pinned(image: &str) -> bool {
    image.contains("@sha256:") && !image.starts_with("localhost/")
}

fn build_application(
    arguments: &EmitArguments,
    view: &ResultView,
    experiment: &Experiment,
) -> Result<ProductionApplication, Error> {
    let name = arguments.name.clone().unwrap_or_else(|| view.title.clone());
    let measured = images::measured_image(&view.machine, experiment);
    let jvm = JvmIdentity::from_view(view);
    let command = match measured {
        Some(_) => StartCommand::in_image(&experiment.app.command),
        None => shipped_command(experiment, arguments.result.is_from_elsewhere())?,
    };
    // An image need not have a JVM, and then it gets no options; the JDKs of the machine and of
    // other levels do not apply to it.
    let jdk = match measured {
        Some(_) if !JvmIdentity::is_seen(view) => NO_JVM,
        Some(_) => jdk_feature(&jvm).unwrap_or(NO_JVM),
        None => jdk_feature(&jvm)?,
    };
    let replicas = replicas(arguments, view);
    let scaling = scaling(arguments, (view, experiment), replicas)?;
    refuse_cache_of_another_jvm(arguments.cache, jdk, jvm.is_openj9)?;
    if command.liberty.is_some() && arguments.cache.is_some() {
        let refusal = "--cache: an Open Liberty image with its start script gets no start-up cache";
        return Err(Error::usage(refusal).with_hint(
            "leave --cache out; on OpenJ9 its start script makes a shared class cache",
        ));
    }
    let ready = readiness_probe(experiment);
    if ready.is_none() && arguments.cache.is_some() {
        let refusal = "--cache: the application has no port to tell when the start that fills the cache is done";
        return Err(Error::usage(refusal)
            .with_hint("leave --cache out, or measure with an address: --metrics URL"));
    }
    let pinned = measured.and_then(|image| image.pinned.clone());
    let reference = measured.map(|image| image.reference.clone());
    let image = arguments.image.clone().or(pinned).or(reference);
    let is_pinned = image.as_deref().is_some_and(is_pinned);
    if arguments.name.is_some() && slug(&name) != name {
        say!("warning: --name {name}: the files use {}", slug(&name));
    }
    if image.as_deref().is_none_or(is_latest) {
        say!("warning: :latest changes over time: give --image NAME:VERSION or a digest");
    }
    let metrics = experiment.metrics.as_ref();
    Ok(ProductionApplication {
        image: image.unwrap_or_else(|| format!("{}:latest", slug(&name))),
        name,
        measured_image: measured.map(|_| {
            if is_pinned {
                ImagePinning::Yes
            } else {
                ImagePinning::No
            }
        }),
        base_image: base_image(arguments, &jvm, jdk),
        env: env(experiment, measured),
        port: (!experiment.load.is_timed()).then(|| experiment.load.spec.port()),
        ready,
        replicas,
        scaling,
        jdk,
        launcher: !arguments.plain && measured.is_none() && command.liberty.is_none(),
        command,
        cache: asked_for(arguments.cache, view),
        series: metrics.map_or_else(BTreeMap::new, |m| m.series.clone()),
    })
}

/// The base image: the requested one, else the nearest to the JVM of the trials.
fn base_image(arguments: &EmitArguments, jvm: &JvmIdentity, feature: u32) -> BaseImage {
    match &arguments.base_image {
        Some(name) => BaseImage::from_user(name, &jvm.vendor, &jvm.version),
        None => BaseImage::nearest(&jvm.vendor, &jvm.version, feature),
    }
}

/// The environment; with the image's own JVM options, which a manifest's would take the place of.
fn env(experiment: &Experiment, image: Option<&ImageIdentity>) -> BTreeMap<String, String> {
    let mut env = experiment.app.env.clone();
    if let Some(own) = image.and_then(|image| image.tool_options.clone()) {
        env.entry("JAVA_TOOL_OPTIONS".to_owned()).or_insert(own);
    }
    env
}

fn replicas(arguments: &EmitArguments, view: &ResultView) -> u32 {
    let found = view.recommendation.as_ref();
    let found = found.and_then(|r| r.deployment.as_ref());
    let found = found.map(|deployment| deployment.chosen.replicas);
    arguments.replicas.or(found).unwrap_or(1)
}

fn scaling(
    arguments: &EmitArguments,
    (view, experiment): (&ResultView, &Experiment),
    replicas: u32,
) -> Result<Option<AutoscalerNeeds>, Error> {
    let Some(max_replicas) = arguments.max_replicas else {
        return if arguments.purposes.contains(&EmitTarget::Keda) {
            Err(Error::usage("--for keda needs a maximum number of pods")
                .with_hint("add --max-replicas 10"))
        } else {
            Ok(None)
        };
    };
    if max_replicas < replicas {
        let refusal = format!("--max-replicas {max_replicas} is below the {replicas} pods");
        return Err(Error::usage(refusal).with_hint("give --replicas with fewer pods"));
    }
    if experiment.load.is_timed() {
        return match arguments.max_rate {
            None => Ok(Some(AutoscalerNeeds {
                max_rate: None,
                is_measured: true,
                max_replicas,
            })),
            Some(_) => Err(
                Error::usage("--max-rate: the application takes no requests")
                    .with_hint("leave it out: KEDA compares the metrics of the SLO"),
            ),
        };
    }
    let measured = carried_rate(view).map(|rate| rate.min(10_000_000.0) as u32);
    let measured = measured.filter(|rate| *rate > 0);
    let Some(max_rate) = arguments.max_rate.or(measured) else {
        let refusal = "--max-replicas: this result does not say how much one pod can carry";
        return Err(Error::usage(refusal).with_hint(
            "find it with `loadline load --max-rate` and give it as --max-rate, or emit a result of `loadline size --prices`",
        ));
    };
    Ok(Some(AutoscalerNeeds {
        max_rate: Some(max_rate),
        is_measured: arguments.max_rate.is_none(),
        max_replicas,
    }))
}

fn carried_rate(view: &ResultView) -> Option<f64> {
    let deployment = view.recommendation.as_ref()?.deployment.as_ref()?;
    let chosen = &deployment.chosen;
    let is_it = |cell: &&CellResult| cell.limits == chosen.limits && cell.variant == chosen.variant;
    let cell = deployment.cells.iter().find(is_it);
    let highest = cell.and_then(|cell| cell.carried).unwrap_or(0.0);
    Some(highest.max(deployment.each))
}

/// Of a record from elsewhere only a jar below the working directory is opened.
fn shipped_command(experiment: &Experiment, is_foreign: bool) -> Result<StartCommand, Error> {
    let mut command = StartCommand::read(&experiment.app.command).map_err(emit_refused)?;
    if command.liberty.is_some() {
        return Ok(command);
    }
    let jar = experiment.app.directory.join(&command.jar);
    // Elsewhere than on the machine that measured there is no jar, and nothing to read in it.
    let words = ["-jar".to_owned(), jar.display().to_string()];
    let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let is_named_only = is_foreign && !jar.components().all(is_below);
    if !is_named_only && let Ok(application) = Jars::from_arguments(&words, Path::new(".")) {
        command.is_read = true;
        command.extracted_from = application.extracted_from.clone();
        for name in files_beside(&jar, &application)? {
            if !command.beside.contains(&name) {
                command.beside.push(name);
            }
        }
    }
    if let Some(name) = command.beside.iter().find(|n| has_word(OURS, n)) {
        let refusal = format!(
            "{} needs {name}, but loadline writes a file of that name",
            jar.display()
        );
        return Err(Error::usage(refusal)
            .with_hint("rename it, also in the jar's manifest, and measure again"));
    }
    Ok(command)
}

/// Files that the image needs next to a jar: names in the jar's directory.
fn files_beside(jar: &Path, application: &Jars) -> Result<Vec<String>, Error> {
    let home = jar.parent().unwrap_or(Path::new("."));
    let mut all: Vec<String> = Vec::new();
    for file in application.files.iter().skip(1) {
        let name = file.strip_prefix(home).ok();
        let name = name.filter(|name| name.components().all(|c| matches!(c, Component::Normal(_))));
        let Some(name) = name.and_then(Path::to_str) else {
            let refusal = format!(
                "the manifest of {} names {}, which is not below the jar's directory",
                jar.display(),
                file.display()
            );
            return Err(Error::usage(refusal)
                .with_hint("an image needs the jar and what it names in one directory"));
        };
        // A directory is copied whole: `lib`, not each of a hundred jars.
        let directory = name.split_once('/');
        let name = directory.map_or(name, |(directory, _)| directory);
        all.push(name.to_owned());
    }
    let (entry_point, folders) = QUARKUS;
    if application.main_class.as_deref() == Some(entry_point) {
        let there = folders.iter().filter(|name| home.join(name).is_dir());
        all.extend(there.map(|name| (*name).to_owned()));
    }
    Ok(all)
}

/// What a probe asks. A file to ship holds no secret, so a path with one in it is not asked for.
fn readiness_probe(experiment: &Experiment) -> Option<ReadinessCheck> {
    Some(match &experiment.app.readiness {
        Readiness::Http { port, path } if holds_secret(path) => {
            say!(
                "warning: the readiness path {} holds a secret: probes only open port {port}",
                redact::redact_line(path)
            );
            ReadinessCheck::Tcp { port: *port }
        }
        Readiness::Http { port, path } => ReadinessCheck::Http {
            port: *port,
            path: path.clone(),
        },
        Readiness::Tcp { port } => ReadinessCheck::Tcp { port: *port },
        Readiness::Grpc { port } => ReadinessCheck::Grpc { port: *port },
        // A probe cannot read the log; the port that takes the load, or tells the metrics, is what there
        // is.
        _ => {
            let metrics = experiment.metrics.as_ref();
            let metrics = || metrics?.url.as_ref()?.parse().ok();
            let target: Option<LoadTarget> = experiment.load.spec.url.clone().or_else(metrics);
            ReadinessCheck::Tcp { port: target?.port }
        }
    })
}

fn holds_secret(text: &str) -> bool {
    redact::redact_line(text) != text || text.contains(redact::REDACTED)
}

fn jdk_feature(jvm: &JvmIdentity) -> Result<u32, Error> {
    jvm.feature.ok_or_else(|| {
        Error::environment("the records do not say which JDK was measured")
            .with_hint("measure with a JDK that `loadline doctor` lists")
    })
}

fn write_all(to: &Path, artefacts: &[Artefact], force: bool) -> Result<(), Error> {
    let places: Vec<PathBuf> = artefacts.iter().map(|a| to.join(a.name)).collect();
    let there = places.iter().filter(|p| p.symlink_metadata().is_ok());
    let there: Vec<String> = there.map(|p| p.display().to_string()).collect();
    if !there.is_empty() && !force {
        let refusal = format!("files already exist: {}", there.join(", "));
        return Err(
            Error::usage(refusal).with_hint("give another directory, or --force to overwrite them")
        );
    }
    if let Some(folder) = places.iter().find(|p| p.is_dir()) {
        let refusal = format!("{} is a directory", folder.display());
        return Err(Error::environment(refusal).with_hint("give another directory with --to"));
    }
    let written = || -> Result<(), PathRefusal> {
        let directory = Directory::open_or_make(to)?;
        let part = |artefact: &Artefact| {
            let text = artefact.text.as_bytes();
            directory.write_pending(artefact.name, READABLE, |file| file.write_all(text))
        };
        let parts: Result<Vec<_>, _> = artefacts.iter().map(part).collect();
        parts?.into_iter().try_for_each(PendingFile::put_in_place)
    };
    written().map_err(|e| files::cannot_write(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_cluster_can_pull_by_its_digest_is_pinned() {
        assert!(is_pinned("registry.example/orders@sha256:2dfd"));
        assert!(!is_pinned("registry.example/orders:1.4"));
        assert!(!is_pinned("localhost/orders@sha256:2dfd"));
    }

    #[test]
    fn a_record_from_elsewhere_names_no_jar_to_open() {
        let home = tempfile::tempdir().expect("a directory");
        let jar = include_bytes!("../../../jvm/tests/data/cache/class-path.jar");
        std::fs::write(home.path().join("app.jar"), jar).expect("a file");
        let place = home.path().display();
        for (directory, named) in [
            ("/srv", format!("{place}/app.jar")),
            (&*place.to_string(), "app.jar".to_owned()),
        ] {
            let text = format!(
                "slo = \"p99<50ms\"\n[app]\ndirectory = \"{directory}\"\ncommand = [\"java\", \"-jar\", \"{named}\"]\n\
                 [limits]\nmemory = \"64Mi\"\n[load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n"
            );
            let read = Experiment::from_record_text(&text, Path::new("a"), Path::new("."));
            let experiment = read.expect("an experiment");
            let is_read = |is_foreign| shipped_command(&experiment, is_foreign).map(|c| c.is_read);
            assert!(is_read(false).is_ok_and(|is_read| is_read), "{directory}");
            assert!(is_read(true).is_ok_and(|is_read| !is_read), "{directory}");
        }
    }
}
