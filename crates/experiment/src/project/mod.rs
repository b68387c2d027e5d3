//! Guesses from a service's own directory: its start command, its address, its shipped limits.
//!
//! Owns the guesses of `loadline init`, each with its source. Reads files of known names in the
//! directory and in a few known subdirectories, each up to a bound; runs nothing, builds nothing,
//! writes nothing. Facts: the default layouts of Maven ("Introduction to the Standard Directory
//! Layout"), Gradle ("The Java Plugin", `build/libs`) and Quarkus ("Maven tooling",
//! `quarkus-app/quarkus-run.jar`); Spring Boot, "Common Application Properties".

mod built;
mod deployed;
mod served;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loadline_protocol::RunRefusal;
use loadline_sizing::options::words;

pub use built::BuildTool;
pub use deployed::{ComposedApp, DeployedManifest};

const LARGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectGuess<T> {
    pub value: T,
    /// The file that says it, or `default` with why.
    pub from: String,
}

impl<T> ProjectGuess<T> {
    pub fn new(value: T, from: impl Into<String>) -> Self {
        Self {
            value,
            from: from.into(),
        }
    }
}

pub type Limits = (ProjectGuess<String>, ProjectGuess<String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartMethod {
    Command(Vec<String>),
    Image(String),
}

#[derive(Debug, Clone, Default)]
pub struct ProjectOverrides {
    pub starts: Option<StartMethod>,
    pub url: Option<String>,
    pub ready: Option<String>,
    pub rate: Option<String>,
    pub slo: Option<String>,
    pub cpu: Option<String>,
    pub memory: Option<String>,
    pub manifest: Option<PathBuf>,
    /// Whether the application runs to its end.
    pub ends: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLoad {
    pub url: ProjectGuess<String>,
    /// Requests a second.
    pub rate: ProjectGuess<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub tool: Option<ProjectGuess<BuildTool>>,
    pub starts: ProjectGuess<StartMethod>,
    /// `None` for a job, which nothing calls.
    pub load: Option<ProjectLoad>,
    /// The path that answers when it is ready; `None` uses the load's.
    pub ready: Option<ProjectGuess<String>>,
    pub slo: ProjectGuess<String>,
    pub limits: Option<Limits>,
    pub manifest: Option<ProjectGuess<DeployedManifest>>,
    pub needs: Option<ProjectGuess<ComposedApp>>,
    pub left_out: Vec<String>,
}

const RATE: &str = "50/s";
const SLO: &str = "p99<250ms,errors<1%";
/// The default SLO of a job.
pub const JOB_SLO: &str = "exit=0";
const CPU: &str = "1";
const MEMORY: &str = "512Mi";

impl Project {
    /// Looks at a directory.
    /// Errors: [`RunRefusal`] when nothing in it can be started, or what the caller named cannot be
    /// read.
    pub fn inspect_directory(
        directory: &Path,
        told: &ProjectOverrides,
    ) -> Result<Self, RunRefusal> {
        let place = ProjectDirectory { directory };
        let mut left_out = Vec::new();
        let tool = built::find_tool(&place);
        let composed = deployed::read_compose(&place, &mut left_out);
        // A service that is built here may have a Job next to it, to migrate its database.
        let takes_jobs = told.ends || tool.is_none() && composed.is_none();
        let given = told.manifest.as_deref();
        let manifest = deployed::find_manifest(&place, given, takes_jobs, &mut left_out)?;
        let starts = match &told.starts {
            Some(starts) => ProjectGuess::new(starts.clone(), "given"),
            None => guess_start(&place, tool.as_ref(), manifest.as_ref(), composed.as_ref())
                .map_err(|refusal| with_left_out(refusal, &left_out))?,
        };
        let ends = told.ends || manifest.as_ref().is_some_and(|m| m.value.ends);
        if ends {
            refuse_load(told, manifest.as_ref())?;
        }
        let served = served::find_endpoint(&place, manifest.as_ref(), composed.as_ref());
        let ready = match &told.ready {
            Some(path) => Some(ProjectGuess::new(path.clone(), "given")),
            None => served.ready.clone().filter(|_| !ends),
        };
        let load = (!ends).then(|| ProjectLoad {
            url: guess_url(told, &served),
            rate: given_or(told.rate.as_ref(), RATE, "write what your users send"),
        });
        let limits = guess_limits(&place, told, manifest.as_ref(), composed.as_ref())?;
        Ok(Self {
            load,
            slo: guess_slo(told, ends),
            needs: needed_services(&starts.value, composed),
            tool,
            starts,
            ready,
            limits,
            manifest,
            left_out,
        })
    }
}

fn given_or(told: Option<&String>, default: &str, what: &str) -> ProjectGuess<String> {
    match told {
        Some(text) => ProjectGuess::new(text.clone(), "given"),
        None => ProjectGuess::new(default.to_owned(), format!("default: {what}")),
    }
}

fn guess_slo(told: &ProjectOverrides, ends: bool) -> ProjectGuess<String> {
    let (slo, more) = if ends {
        (
            JOB_SLO,
            "add time<10m, or slower<10% than with the most memory",
        )
    } else {
        (SLO, "write what you promise them")
    };
    given_or(told.slo.as_ref(), slo, more)
}

fn refuse_load(
    told: &ProjectOverrides,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
) -> Result<(), RunRefusal> {
    let given = [
        ("--url", &told.url),
        ("--ready", &told.ready),
        ("--rate", &told.rate),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((flag, _)) => Err(RunRefusal::new(
            manifest.map_or("the job".to_owned(), |m| m.value.workload.clone()),
            format!("it runs to its end, and nothing calls it: {flag} is for a service"),
            format!("leave out {flag}, or name the manifest of a service: --manifest FILE"),
        )),
        None => Ok(()),
    }
}

/// The refusal, with the parts that were found and cannot be used: one of them may have been meant.
fn with_left_out(refusal: RunRefusal, left_out: &[String]) -> RunRefusal {
    let parts = [&[refusal.why][..], left_out].concat();
    RunRefusal {
        why: parts.join("; "),
        ..refusal
    }
}

fn guess_start(
    place: &ProjectDirectory<'_>,
    tool: Option<&ProjectGuess<BuildTool>>,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
    composed: Option<&ProjectGuess<ComposedApp>>,
) -> Result<ProjectGuess<StartMethod>, RunRefusal> {
    if let Some(jar) = built::find_jar(place, tool)? {
        let options = dockerfile_options(place);
        let from = if options.is_empty() {
            jar.from
        } else {
            format!("{}, with the JVM options of the Dockerfile", jar.from)
        };
        let mut command = vec!["java".to_owned()];
        command.extend(options);
        command.extend(["-jar".to_owned(), jar.value]);
        return Ok(ProjectGuess::new(StartMethod::Command(command), from));
    }
    let of_manifest = manifest.and_then(|m| Some((m.value.image.clone()?, &m.from)));
    let of_compose = composed.and_then(|c| Some((c.value.image.clone()?, &c.from)));
    // A project that builds a jar is measured by its own build, not by an earlier image.
    if let (Some((image, from)), None) = (of_manifest.or(of_compose), tool) {
        return Ok(ProjectGuess::new(StartMethod::Image(image), from.clone()));
    }
    if let (Some(manifest), None) = (manifest, tool) {
        return Err(RunRefusal::new(
            place.directory_name(),
            format!("{} names no image that can be pulled", manifest.from),
            "name it: loadline init --image NAME",
        ));
    }
    if place.has_file("Dockerfile") && tool.is_none() {
        return Err(RunRefusal::new(
            place.directory_name(),
            "it has a Dockerfile, but nothing names the image",
            "build it and name it: docker build -t NAME . && loadline init --image NAME",
        ));
    }
    Err(match tool {
        Some(tool) => RunRefusal::new(
            place.directory_name(),
            format!(
                "{} builds it, and no jar is built yet",
                tool.value.tool_name()
            ),
            format!(
                "{}, then loadline init again; or say what starts it: loadline init -- java -jar PATH",
                tool.value.build_command(place)
            ),
        ),
        None if let Some((file, services)) = deployed::compose_services(place) => RunRefusal::new(
            place.directory_name(),
            format!(
                "several services of {file} may be the application: {}",
                services.join(", ")
            ),
            format!(
                "say which: loadline size --compose {file} --service {}",
                services.first().map_or("NAME", String::as_str)
            ),
        ),
        None => RunRefusal::new(
            place.directory_name(),
            "no jar, image, manifest or build file was found in it",
            "go to the service's own directory, or say what starts it: loadline init -- java -jar PATH, or --image NAME",
        ),
    })
}

/// JVM options of what a Dockerfile starts, and of its environment.
fn dockerfile_options(place: &ProjectDirectory<'_>) -> Vec<String> {
    let text = place.read_small_text("Dockerfile").unwrap_or_default();
    let text = text.replace("\\\n", " ");
    // The options of an earlier stage are those of the build.
    let begins_stage = |line: &str| {
        line.trim_start()
            .get(..5)
            .is_some_and(|w| w.eq_ignore_ascii_case("FROM "))
    };
    let mut lines = text.lines().collect::<Vec<_>>().into_iter();
    let from = lines.rposition(begins_stage).unwrap_or_default();
    let counts = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        ["ENTRYPOINT", "CMD", "ENV"]
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known))
    };
    let lines = text.lines().skip(from).filter(counts);
    let options = lines
        .flat_map(words::find_jvm_options)
        .filter(|option| !option.contains('$'));
    options.map(str::to_owned).collect()
}

fn guess_url(told: &ProjectOverrides, served: &served::ServedEndpoint) -> ProjectGuess<String> {
    let port = served.port.value;
    let from = &served.port.from;
    match (&told.url, &served.ready) {
        (Some(url), _) if url.starts_with('/') => ProjectGuess::new(
            format!("http://localhost:{port}{url}"),
            format!("path given, port {port}: {from}"),
        ),
        (Some(url), _) => ProjectGuess::new(url.clone(), "given"),
        (None, ready) => {
            // Readiness on a separate port is no request of the load.
            let path = ready.as_ref().map(|ready| ready.value.as_str());
            let path = path.filter(|path| path.starts_with('/'));
            let root = format!("{}/", served.root);
            let path = path.unwrap_or(&root);
            ProjectGuess::new(
                format!("http://localhost:{port}{path}"),
                format!(
                    "port {port}: {from}; the path is not a request of your users: give theirs, or a profile of your access log"
                ),
            )
        }
    }
}

/// Those that are given, else none where a manifest has them, else a beginning.
fn guess_limits(
    place: &ProjectDirectory<'_>,
    told: &ProjectOverrides,
    manifest: Option<&ProjectGuess<DeployedManifest>>,
    composed: Option<&ProjectGuess<ComposedApp>>,
) -> Result<Option<Limits>, RunRefusal> {
    let of_compose = composed.map(|c| (&c.value.limits, &c.value.file));
    let of = |told: Option<&String>, at: usize, default: &str| match (told, of_compose) {
        (Some(text), _) => ProjectGuess::new(text.clone(), "given"),
        (None, Some((limits, file))) if let Some(limit) = &limits[at] => {
            ProjectGuess::new(limit.clone(), format!("the limit in {file}"))
        }
        _ => ProjectGuess::new(
            default.to_owned(),
            "default: nothing says what is shipped; `loadline size` finds it",
        ),
    };
    let shipped = manifest.filter(|m| m.value.has_memory);
    let is_given = told.cpu.is_some() || told.memory.is_some();
    match shipped {
        Some(manifest) if is_given => Err(RunRefusal::new(
            place.directory_name(),
            format!("limits are given, but {} already sets them", manifest.from),
            "leave out --cpu and --memory: two copies would drift apart",
        )),
        Some(_) => Ok(None),
        None => Ok(Some((
            of(told.cpu.as_ref(), 0, CPU),
            of(told.memory.as_ref(), 1, MEMORY),
        ))),
    }
}

/// The other services, unless the application is one of that compose file.
fn needed_services(
    starts: &StartMethod,
    composed: Option<ProjectGuess<ComposedApp>>,
) -> Option<ProjectGuess<ComposedApp>> {
    let is_needed = |c: &ProjectGuess<ComposedApp>| !c.value.needs.is_empty();
    composed.filter(is_needed).map(|mut composed| {
        if matches!(starts, StartMethod::Command(_)) {
            composed.value.application = None;
        }
        composed
    })
}

struct ProjectDirectory<'a> {
    directory: &'a Path,
}

impl ProjectDirectory<'_> {
    fn has_file(&self, name: &str) -> bool {
        self.directory.join(name).is_file()
    }

    fn read_small_text(&self, name: &str) -> Option<String> {
        // Opening a FIFO would wait for its writer.
        if !self.has_file(name) {
            return None;
        }
        let mut text = String::new();
        let file = File::open(self.directory.join(name)).ok()?;
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn directory_name(&self) -> String {
        format!("the project in {}", self.directory.display())
    }
}

#[cfg(test)]
mod tests;
