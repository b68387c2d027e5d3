//! `loadline emit`: the files that ship a recommendation, whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use loadline_engine::backend::Readiness;
use loadline_engine::experiment::Experiment;
use loadline_report::ResultView;
use loadline_report::emit::{
    Application, Artefact, Command, EmitError, Purpose, Ready, Scaling, emit, slug,
};
use loadline_sizing::cache::Kind as CacheKind;
use loadline_sizing::jdk::Version;

use super::print;
use crate::error::{Error, Kind, Outcome};
use crate::result::{self, ResultFlags};

/// What the files are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum For {
    /// Deployment, Service; autoscaler and disruption budget when asked for
    Kubernetes,
    /// Dockerfile with what it copies
    Docker,
    /// Compose file, and the Dockerfile that it builds
    Compose,
    /// jvm.options, JAVA_TOOL_OPTIONS, the launcher's profile
    Options,
}

/// Write the files that ship a recommendation
#[derive(Args)]
pub struct EmitArguments {
    #[command(flatten)]
    result: ResultFlags,
    /// Directory to write to; made when it is not there
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// What for; several with commas [default: all]
    #[arg(long = "for", value_enum, value_delimiter = ',')]
    purposes: Vec<For>,
    /// Name of the service [default: the result's title]
    #[arg(long)]
    name: Option<String>,
    /// Image, as the cluster pulls it [default: NAME:latest]
    #[arg(long)]
    image: Option<String>,
    /// Image that the Dockerfile builds on [default: eclipse-temurin:JDK-jre of the measured JDK]
    #[arg(long, value_name = "IMAGE")]
    base_image: Option<String>,
    /// Pods; from 2 on with a PodDisruptionBudget
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    replicas: u32,
    /// Requests a second one pod can carry, as `loadline load --max-rate` finds it; with
    /// --max-replicas it makes an autoscaler
    #[arg(long, value_name = "N", requires = "max_replicas", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    max_rate: Option<u32>,
    /// Most pods of the autoscaler
    #[arg(long, value_name = "N", requires = "max_rate", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_replicas: Option<u32>,
    /// Start java directly, without loadline-launch
    #[arg(long)]
    plain: bool,
    /// Let the Dockerfile build a start-up cache: appcds (JDK 13 and later) or aot (25 and later)
    #[arg(long, value_name = "KIND")]
    cache: Option<CacheKind>,
    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
}

/// Writes them and says what to do next.
pub fn run(arguments: EmitArguments) -> Result<Outcome, Error> {
    let view = arguments.result.view()?;
    let application = application(&arguments, &view)?;
    let purposes = purposes(&arguments.purposes);
    let artefacts = emit(&view, &application, &purposes).map_err(refused)?;
    write_all(&arguments.to, &artefacts, arguments.force)?;
    for artefact in &artefacts {
        print(&arguments.to.join(artefact.name).display().to_string())?;
    }
    for line in next_steps(&arguments.to, &application, &artefacts) {
        eprintln!("next: {line}");
    }
    Ok(Outcome::Done)
}

fn refused(error: EmitError) -> Error {
    let text = error.to_string();
    let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
    let kind = match error {
        EmitError::Command { .. } => Kind::Usage,
        EmitError::NoRecommendation { .. } | EmitError::NoMemory { .. } => Kind::Invalid,
    };
    Error::new(kind, message).hint(hint)
}

fn purposes(given: &[For]) -> Vec<Purpose> {
    let purpose = |wanted: &For| match wanted {
        For::Kubernetes => Purpose::Kubernetes,
        For::Docker => Purpose::Docker,
        For::Compose => Purpose::Compose,
        For::Options => Purpose::Options,
    };
    if given.is_empty() {
        Purpose::ALL.to_vec()
    } else {
        given.iter().map(purpose).collect()
    }
}

fn application(arguments: &EmitArguments, view: &ResultView) -> Result<Application, Error> {
    let experiment = result::experiment(view)?;
    let name = arguments.name.clone().unwrap_or_else(|| view.title.clone());
    let jdk = feature(view)?;
    if arguments
        .max_replicas
        .is_some_and(|most| most < arguments.replicas)
    {
        return Err(Error::new(
            Kind::Usage,
            "--max-replicas is smaller than --replicas",
        ));
    }
    let least = match arguments.cache {
        Some(CacheKind::Aot) => 25,
        _ => 13,
    };
    if arguments.cache == Some(CacheKind::Scc) || arguments.cache.is_some() && jdk < least {
        let refusal = format!(
            "--cache: the image's JDK {jdk} has no such cache that an image build can make"
        );
        return Err(
            Error::new(Kind::Usage, refusal).hint("appcds from JDK 13 on, aot from JDK 25 on")
        );
    }
    let scaling = arguments.max_rate.zip(arguments.max_replicas);
    let image = arguments.image.clone();
    let base_image = arguments.base_image.clone();
    Ok(Application {
        image: image.unwrap_or_else(|| format!("{}:latest", slug(&name))),
        name,
        base_image: base_image.unwrap_or_else(|| format!("eclipse-temurin:{jdk}-jre")),
        command: Command::read(&experiment.app.command).map_err(refused)?,
        env: experiment.app.env.clone(),
        port: experiment.load.port,
        ready: ready(&experiment),
        replicas: arguments.replicas,
        scaling: scaling.map(|(max_rate, max_replicas)| Scaling {
            max_rate,
            max_replicas,
        }),
        jdk,
        launcher: !arguments.plain,
        cache: arguments.cache,
    })
}

fn ready(experiment: &Experiment) -> Ready {
    match &experiment.app.readiness {
        Readiness::Http { port, path } => Ready::Http {
            port: *port,
            path: path.clone(),
        },
        Readiness::Tcp { port } => Ready::Tcp { port: *port },
        // A probe cannot read the log; the port that takes the load is what there is.
        Readiness::LogLine { .. } => Ready::Tcp {
            port: experiment.load.port,
        },
    }
}

/// The feature release of the JDK that was measured, from its own log, else from the machine.
fn feature(view: &ResultView) -> Result<u32, Error> {
    let logged = view.trials.iter().rev();
    let logged = logged.filter_map(|t| t.evidence.gc.as_ref()?.jdk.clone());
    // `17 debian 17.0.15+6-Debian-1deb12u1`: name, vendor, version.
    let listed = view.machine.jdks.iter();
    let listed = listed.filter_map(|jdk| jdk.split(' ').next_back().map(str::to_owned));
    logged
        .chain(listed)
        .find_map(|text| text.parse::<Version>().ok())
        .map(|version| version.feature)
        .ok_or_else(|| {
            Error::new(
                Kind::Environment,
                "the records do not say which JDK was measured",
            )
            .hint("measure with a JDK that `loadline doctor` lists")
        })
}

/// Writes all files, or none: first beside their places, then each is renamed.
fn write_all(directory: &Path, artefacts: &[Artefact], force: bool) -> Result<(), Error> {
    let places: Vec<PathBuf> = artefacts.iter().map(|a| directory.join(a.name)).collect();
    let there: Vec<String> = places
        .iter()
        .filter(|p| p.symlink_metadata().is_ok())
        .map(|p| p.display().to_string())
        .collect();
    if !there.is_empty() && !force {
        return Err(Error::new(
            Kind::Usage,
            format!("files are already there: {}", there.join(", ")),
        )
        .hint("give another directory, or --force to overwrite them"));
    }
    if let Some(folder) = places.iter().find(|p| p.is_dir()) {
        return Err(Error::new(
            Kind::Environment,
            format!("{} is a directory", folder.display()),
        )
        .hint("give another directory with --to"));
    }
    let cannot = |path: &Path, e: std::io::Error| {
        Error::new(
            Kind::Environment,
            format!("cannot write {}: {e}", path.display()),
        )
    };
    fs::create_dir_all(directory).map_err(|e| cannot(directory, e))?;
    let part = |name: &str| directory.join(format!(".{name}.part"));
    let written = artefacts.iter().try_for_each(|artefact| {
        let path = part(artefact.name);
        fs::write(&path, &artefact.text).map_err(|e| cannot(&path, e))
    });
    let placed = written.and_then(|()| {
        artefacts
            .iter()
            .zip(&places)
            .try_for_each(|(artefact, place)| {
                fs::rename(part(artefact.name), place).map_err(|e| cannot(place, e))
            })
    });
    if placed.is_err() {
        // The error above is the one to report; what is half written is of no use.
        for artefact in artefacts {
            let _ = fs::remove_file(part(artefact.name));
        }
    }
    placed
}

fn next_steps(directory: &Path, application: &Application, artefacts: &[Artefact]) -> Vec<String> {
    let has = |name: &str| artefacts.iter().any(|a| a.name == name);
    let to = directory.display();
    let mut steps = Vec::new();
    if has("Dockerfile") {
        let launcher = if application.launcher {
            " $(command -v loadline-launch)"
        } else {
            ""
        };
        steps.push(format!("cp {}{launcher} {to}", application.command.jar));
        steps.push(format!("docker build -t {} {to}", application.image));
    }
    if has("compose.yaml") {
        steps.push(format!("docker compose -f {to}/compose.yaml up"));
    }
    if has("kubernetes.yaml") {
        steps.push(format!("kubectl apply -f {to}/kubernetes.yaml"));
    }
    steps
}
