//! The dependencies of an application: checked, and as a trial gets them.
//!
//! Owns the typed form and its rules. What a host does with them is its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::record::CpuSets;
use loadline_jvm::detect::JdkPlaces;
use loadline_protocol::{Account, AppSpec, DependencyScope, ProxiedLink, Readiness, RunRefusal};
use loadline_proxy::Toxic;
use loadline_sizing::{Bytes, Cpus};
use loadline_trial::networks::{self, NetworkMember};

use super::application::check_image;
use super::checked::{self, Checked, check_given};
use super::error::ExperimentSource;
use super::references::{self, FilledEnvironment};
use super::said::Text;
use super::stub::{self, ExperimentStub};
use super::wire::{DependencyTable, ExperimentFile};
use super::{Experiment, ExperimentError, ExperimentImage, toxic};
use crate::error::SurroundingsError;
use crate::program::{CommandError, inherited_variables, locate, locate_for};

const START_DEADLINE: Duration = Duration::from_secs(60);
const LONGEST_NAME: usize = 32;

#[derive(Debug, Clone)]
pub struct ExperimentDependency {
    pub name: String,
    pub command: Vec<String>,
    pub image: Option<ExperimentImage>,
    pub volumes: Vec<(PathBuf, PathBuf)>,
    pub seed: Vec<String>,
    pub scope: DependencyScope,
    /// Runs between two trials that share it; empty is nothing.
    pub reset: Vec<String>,
    /// Working directory, absolute; `None` is the application's.
    pub directory: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    pub readiness: Readiness,
    pub start_deadline: Duration,
    pub account: Option<Account>,
    pub directories: Vec<PathBuf>,
    pub cpu: Option<Cpus>,
    pub cpuset: Option<CpuSets>,
    pub memory: Option<Bytes>,
    pub shm: Option<Bytes>,
    pub port: Option<u16>,
    /// The toxics on its connection, in the order in which bytes meet them.
    pub toxics: Vec<Toxic>,
}

pub struct OrderedDependencies {
    pub dependencies: Vec<loadline_protocol::DependencySpec>,
    pub secrets: Vec<String>,
}

impl Experiment {
    /// Whether programs and references of application and dependencies lead somewhere.
    pub fn check_surroundings(&self, places: &JdkPlaces) -> Result<(), SurroundingsError> {
        references::fill_references(&self.app.env)?;
        // Nobody is started: any account will do.
        let nobody = Account { uid: 1, gid: 1 };
        self.ordered_stubs()?;
        self.ordered_dependencies(places, nobody)?;
        let directory = &self.app.directory;
        for (whose, words) in self.named_commands() {
            // A placeholder is filled in for each trial.
            if let Some(program) = words.first().filter(|word| !word.contains('{')) {
                locate_for(&whose, program, directory, places)?;
            }
        }
        let run = self.app.run.as_ref();
        let mut copies = run.iter().flat_map(|run| &run.copies);
        if let Some(missing) = copies.find(|copy| !directory.join(copy).is_dir()) {
            let what = format!("--fresh {}", missing.display());
            let hint = "name a directory: --fresh .; without one the working directory of a build tool is copied";
            return Err(RunRefusal::new(what, "there is no such directory", hint).into());
        }
        self.check_networks().map_err(SurroundingsError::Refused)
    }

    /// Commands of this machine other than the application, and what each is.
    fn named_commands(&self) -> Vec<(String, &[String])> {
        let spec = &self.load.spec;
        let mut all = vec![("the load command".to_owned(), spec.command.as_slice())];
        for (name, words) in spec.consumer_commands() {
            all.push((format!("the {name} command"), words));
        }
        let probes = self.metrics.iter().flat_map(|metrics| &metrics.probes);
        all.extend(probes.map(|(name, words)| (format!("the probe {name}"), words.as_slice())));
        if let Some(run) = &self.app.run {
            all.push(("the reset command".to_owned(), &run.reset));
        }
        all
    }

    fn check_networks(&self) -> Result<(), RunRefusal> {
        let engine = |image: &Option<ExperimentImage>| {
            let found = image.as_ref()?.found.as_ref();
            found.map(|found| found.engine.kind)
        };
        // Those that trials share have made their networks before the proxy is there.
        let mut all: Vec<&ExperimentDependency> = self.dependencies.iter().collect();
        all.sort_by_key(|dependency| match dependency.scope {
            DependencyScope::Result => u8::from(dependency.proxy_settings().is_some()),
            DependencyScope::Trial => 2,
        });
        let dependencies = all.into_iter().map(|dependency| NetworkMember {
            name: &dependency.name,
            engine: engine(&dependency.image),
            is_proxied: dependency.proxy_settings().is_some(),
        });
        // The proxy answers for them, last and in the application's network.
        let stubs = self.stubs.iter().map(|stub| NetworkMember {
            name: &stub.name,
            engine: None,
            is_proxied: false,
        });
        let members: Vec<NetworkMember<'_>> = dependencies.chain(stubs).collect();
        let all = self.configurations();
        all.iter().try_for_each(|configuration| {
            let app = self.app_of(configuration);
            networks::check_networks(app.network, &members, engine(&app.image))
        })
    }

    pub fn ordered_dependencies(
        &self,
        places: &JdkPlaces,
        account: Account,
    ) -> Result<OrderedDependencies, SurroundingsError> {
        let mut all = OrderedDependencies {
            dependencies: Vec::new(),
            secrets: Vec::new(),
        };
        for dependency in &self.dependencies {
            let directory = dependency.directory.as_ref();
            let directory = directory.unwrap_or(&self.app.directory).clone();
            if !directory.is_dir() {
                return Err(no_directory(&dependency.name, &directory));
            }
            let mut env = match dependency.image {
                None => inherited_variables(),
                Some(_) => BTreeMap::new(),
            };
            env.extend(dependency.env.clone());
            let FilledEnvironment { env, secrets } = references::fill_references(&env)?;
            all.secrets.extend(secrets);
            let found = |command: &[String]| locate_command(command, &directory, places);
            let errand = |command: &[String]| match &dependency.image {
                None => found(command),
                Some(_) => Ok(command.to_vec()),
            };
            let app = match &dependency.image {
                None => AppSpec::Command {
                    command: found(&dependency.command)?,
                    env,
                    directory: directory.clone(),
                },
                Some(image) => {
                    AppSpec::Image(Box::new(dependency.in_image(image, env, &directory)?))
                }
            };
            all.dependencies.push(loadline_protocol::DependencySpec {
                name: dependency.name.clone(),
                seed: errand(&dependency.seed)?,
                scope: dependency.scope,
                reset: errand(&dependency.reset)?,
                app,
                readiness: match &dependency.readiness {
                    Readiness::Command { command } => Readiness::Command {
                        command: errand(command)?,
                    },
                    other => other.clone(),
                },
                start_deadline: dependency.start_deadline,
                account: dependency.account.unwrap_or(account),
                directories: dependency.directories.clone(),
                cpu: dependency.cpu,
                cpuset: dependency.cpuset.clone(),
                memory: dependency.memory,
                shm: dependency.shm,
                proxied: dependency.proxy_settings(),
            });
        }
        // Those that trials share run before a trial begins.
        all.dependencies
            .sort_by_key(|dependency| dependency.scope != DependencyScope::Result);
        Ok(all)
    }
}

impl ExperimentDependency {
    fn proxy_settings(&self) -> Option<ProxiedLink> {
        let port = self.port.filter(|_| !self.toxics.is_empty())?;
        Some(ProxiedLink {
            port,
            toxics: self.toxics.clone(),
            seed: 0,
        })
    }

    fn in_image(
        &self,
        image: &ExperimentImage,
        env: BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<loadline_protocol::ImageSpec, RunRefusal> {
        let found = image.found_image()?;
        Ok(loadline_protocol::ImageSpec {
            engine: found.engine.clone(),
            id: found.id.clone(),
            command: found.full_command(&self.command)?,
            entrypoint: None,
            args: self.command.clone(),
            volumes: seen_by(
                &format!("the dependency {}", self.name),
                &self.volumes,
                directory,
            )?,
            env,
            options: Vec::new(),
            user: self.account,
            stop_signal: found.stop_signal,
            layers: found.layers.clone(),
            writable: None,
        })
    }
}

/// The volumes of an image, relative to a directory, as they are on this machine.
pub fn seen_by(
    whose: &str,
    volumes: &[(PathBuf, PathBuf)],
    directory: &Path,
) -> Result<Vec<(PathBuf, PathBuf)>, RunRefusal> {
    let found = |(source, seen): &(PathBuf, PathBuf)| {
        let source = directory.join(source);
        let found = source.canonicalize();
        let found = found.map_err(|error| {
            let why = format!("its volume {}: {error}", source.display());
            let hint = "volumes are relative to the experiment file: volumes = [\"schema.sql:/seen/in/the/image\"]";
            RunRefusal::new(whose, why, hint)
        });
        Ok((found?, seen.clone()))
    };
    volumes.iter().map(found).collect()
}

fn no_directory(name: &str, directory: &std::path::Path) -> SurroundingsError {
    loadline_protocol::RunRefusal::new(
        format!("the dependency {name}"),
        format!("its directory {} does not exist", directory.display()),
        "directory is relative to the experiment file; without it that of the application is meant",
    )
    .into()
}

fn locate_command(
    command: &[String],
    directory: &std::path::Path,
    places: &JdkPlaces,
) -> Result<Vec<String>, CommandError> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(Vec::new());
    };
    let program = locate(program, directory, places)?.display().to_string();
    Ok([program]
        .into_iter()
        .chain(arguments.iter().cloned())
        .collect())
}

pub(super) fn check_dependencies(
    file: &ExperimentFile,
    source: &ExperimentSource<'_>,
) -> Checked<(Vec<ExperimentDependency>, Vec<ExperimentStub>)> {
    let (mut all, mut stubs) = (Vec::new(), Vec::new());
    let mut known: Vec<(String, Option<u16>)> = Vec::new();
    for table in &file.dependency {
        check_dependency_name(table, source)?;
        let stub = stub::check_stub(table, source)?;
        let port = match stub {
            Some(stub) => {
                let port = stub.port;
                stubs.push(stub);
                Some(port)
            }
            None => {
                let one = check_dependency(table, source)?;
                let port = one.port;
                all.push(one);
                port
            }
        };
        let name = &table.name;
        let at = |problem: String, hint: &str| Err(source.error_at(name, problem, hint));
        if known.iter().any(|(other, _)| *other == **name) {
            let problem = format!("two dependencies are called `{name}`");
            return at(problem, "give each a different name");
        }
        let same = |(_, other): &&(String, Option<u16>)| port.is_some() && *other == port;
        if let (Some((other, _)), Some(port)) = (known.iter().find(same), port) {
            let problem = format!("`{other}` and `{name}` listen on port {port}");
            return at(problem, "they share one network: change one of the ports");
        }
        if port == Some(file.load.port()) {
            let problem = format!("`{name}` listens on the port of the application");
            return at(problem, "they share one network: change one of the ports");
        }
        known.push((name.to_string(), port));
    }
    Ok((all, stubs))
}

pub(super) fn refuse_several_instances(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let mut all = experiment.configurations().into_iter();
    let several = all.any(|c| c.instances > 1);
    let is_alone = experiment.dependencies.is_empty() && experiment.stubs.is_empty();
    if several && !is_alone {
        let problem = "several instances cannot share dependencies: each has its own network";
        let hint = "leave out instances, or [[dependency]]: use a service of the machine with app.network = \"host\"";
        return Err(source.experiment_error(problem, hint));
    }
    Ok(())
}

fn check_dependency_name(table: &DependencyTable, source: &ExperimentSource<'_>) -> Checked<()> {
    let name = &table.name;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        let hint = "letters, digits and -, at most 32: name = \"db\"";
        let problem = format!("`{name}` is not a dependency name");
        return Err(source.error_at(name, problem, hint));
    }
    Ok(())
}

fn check_dependency(
    table: &DependencyTable,
    source: &ExperimentSource<'_>,
) -> Checked<ExperimentDependency> {
    let name = &table.name;
    let at = |problem: String, hint: &str| source.error_at(name, problem, hint);
    let image = check_image((table.image.as_ref(), table.engine.as_ref()), source)?;
    if image.is_none() && table.command.first().is_none_or(String::is_empty) {
        let hint = "command = [\"redis-server\", \"--port\", \"6379\"], or image = \"redis:7\", or stub = \"prices.toml\"";
        return Err(at(format!("the command of `{name}` is empty"), hint));
    }
    if let (Some(_), Some(first)) = (&image, table.directories.first()) {
        let problem = format!("`{name}` is an image, which has its own files");
        let hint =
            "leave out directories; use volumes to mount host paths: volumes = [\"PATH:/seen\"]";
        return Err(source.error_at(first, problem, hint));
    }
    let whose = format!("`{name}`");
    let volumes = check_volumes(&table.volumes, image.is_some(), &whose, source)?;
    let literal = |(name, value): &(&String, &String)| references::is_literal_secret(name, value);
    if let Some((variable, _)) = table.env.iter().find(literal) {
        let problem = format!(
            "{variable} of `{name}` holds a credential, which would be stored with the result"
        );
        let hint = "refer to it instead: {env:NAME} or {file:PATH}";
        return Err(without_excerpt(at(problem, hint)));
    }
    let Some(ready) = &table.ready else {
        let hint =
            "write ready = { tcp = 5432 }, or log = \"ready\", or http = \"/health\" with a port";
        return Err(at(format!("`{name}` does not say when it is ready"), hint));
    };
    let readiness = checked::check_readiness(ready, None, &whose, source)?;
    let port = port_of(table, &readiness, source)?;
    let toxics = toxic::check_toxics(&table.toxic, source)?;
    if port.is_none() && !toxics.is_empty() {
        let problem = format!("`{name}` has toxics, but no port");
        return Err(at(problem, "name it: port = 5432"));
    }
    let scope = check_given(&table.scope, |text| {
        source.parse_text::<DependencyScope>(
            text,
            "write trial (the default: each trial has a fresh one) or result (all trials share it)",
        )
    })?;
    let scope = scope.unwrap_or_default();
    if scope == DependencyScope::Trial && !table.reset.is_empty() {
        let problem = format!("`{name}` has a reset, and each trial has a fresh one");
        let hint = "leave out reset, or let trials share it: scope = \"result\"";
        return Err(at(problem, hint));
    }
    Ok(ExperimentDependency {
        name: name.to_string(),
        scope,
        reset: table.reset.clone(),
        command: table.command.clone(),
        image,
        volumes,
        seed: table.seed.clone(),
        directory: table.directory.clone(),
        env: table.env.clone(),
        readiness,
        port,
        toxics,
        start_deadline: source.positive_time(
            table.start_deadline.as_ref(),
            START_DEADLINE,
            "start-deadline",
        )?,
        account: check_given(&table.user, |t| checked::check_account(t, source))?,
        directories: (table.directories.iter())
            .map(|text| check_absolute_path(text, source))
            .collect::<Checked<_>>()?,
        cpu: check_given(&table.cpu, |t| checked::check_cpu(t, source))?,
        cpuset: check_given(&table.cpuset, |t| checked::check_cpu_sets(t, source))?,
        memory: check_given(&table.memory, |t| checked::check_memory(t, source))?,
        shm: check_given(&table.shm, |t| checked::check_memory(t, source))?,
    })
}

fn check_absolute_path(text: &Text, source: &ExperimentSource<'_>) -> Checked<PathBuf> {
    let path = PathBuf::from(text.as_str());
    if !path.is_absolute() {
        let hint = "name a directory of this machine: directories = [\"/var/lib/redis\"]";
        return Err(source.error_at(text, format!("`{text}` is not an absolute path"), hint));
    }
    Ok(path)
}

pub(super) fn check_volumes(
    texts: &[Text],
    is_image: bool,
    whose: &str,
    source: &ExperimentSource<'_>,
) -> Checked<Vec<(PathBuf, PathBuf)>> {
    if let (false, Some(first)) = (is_image, texts.first()) {
        let problem = format!("{whose} is a program of this machine and already sees its files");
        let hint = "leave out volumes; use directories for empty private directories: directories = [\"/var/lib/x\"]";
        return Err(source.error_at(first, problem, hint));
    }
    texts
        .iter()
        .map(|text| check_volume(text, source))
        .collect()
}

/// `PATH:/SEEN`, with `:ro` or without: nothing else is possible, a trial changes no other.
fn check_volume(text: &Text, source: &ExperimentSource<'_>) -> Checked<(PathBuf, PathBuf)> {
    let given = text.strip_suffix(":ro").unwrap_or(text);
    let is_plain = |path: &str| !path.is_empty() && !path.contains(':');
    match given.rsplit_once(':') {
        Some((path, seen)) if is_plain(path) && seen.starts_with('/') => {
            Ok((PathBuf::from(path), PathBuf::from(seen)))
        }
        _ => {
            let hint = "write PATH:/SEEN, the second as the image sees it: \"schema.sql:/init/schema.sql\"";
            Err(source.error_at(text, format!("`{text}` is not a volume"), hint))
        }
    }
}

/// Where it listens: its own port, else the port of its readiness check.
fn port_of(
    table: &DependencyTable,
    readiness: &Readiness,
    source: &ExperimentSource<'_>,
) -> Checked<Option<u16>> {
    match &table.port {
        Some(port) if **port == 0 => {
            let hint = "the port on which the application reaches it: port = 5432";
            Err(source.error_at(port, "0 is not a port", hint))
        }
        Some(port) => Ok(Some(**port)),
        None => Ok(readiness.asked_port()),
    }
}

/// Messages end up in logs of others.
fn without_excerpt(error: ExperimentError) -> ExperimentError {
    ExperimentError {
        excerpt: None,
        ..error
    }
}
