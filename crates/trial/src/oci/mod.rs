//! An engine's container: an image that podman or docker starts.
//!
//! Owns the engine's arguments, and the order of creation. The cgroup is loadline's: made with its
//! limits before the engine starts anything in it (engines accept an existing group), so it is
//! sampled from before the first process on, and the engine's own account of limits, memory and
//! kills is not used. The processes and their parents:
//!
//! ```text
//! trial-part ── podman start --attach ── conmon ── runc ── application (PID 1 of its container)
//!            └─ docker start --attach ...... dockerd ── shim ── runc ── application
//! ```
//!
//! Facts: podman-create(1), docker create; runc joins a cgroup that exists and is empty (its
//! libcontainer, cgroups/fs). Why, and the differences from a plain command: METHODOLOGY.md.

mod arrived;
pub mod engine;
pub mod image;
mod layers;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use loadline_cgroup::{
    CgroupError, CgroupLayout, CgroupLimits, CgroupSample, ControlGroup, Controller, GroupName,
};
use loadline_protocol::{ContainerEngine, EngineKind, ImageSpec};
use loadline_sizing::Bytes;
use rustix::process::{Resource, Signal, getrlimit};

use crate::container::{
    AppContainer, ContainerBase, ContainerEvent, ContainerNetwork, NetworkNamespace,
    effective_signal,
};
use crate::group::TrialGroup;
use crate::halt::{self, HaltReason, refusal_halt};
use crate::scratch::Scratch;
use crate::{networks, pagecache};
use watch::{StartedContainer, WatchedContainer};

pub use arrived::{missing_options, overruled_options};

/// Every container that loadline makes carries this label, with the name of its cgroup: who made it.
pub const LABEL: &str = "loadline.owner";

const END: Duration = Duration::from_secs(10);

/// Most tasks of a user: podman takes no higher limit where it may not raise its own.
const TASKS: u64 = 32_768;

/// One application in a container of an engine. The fields are dropped in order: watchers before
/// the watched, the container before its group, the group before their files.
pub struct OciContainer {
    watched: Option<WatchedContainer>,
    made: EngineContainer,
    leaf: ControlGroup,
    parent: TrialGroup,
    scratch: Scratch,
    network: ContainerNetwork,
    stop_signal: Option<i32>,
    output: Option<PipeWriter>,
    tell: Option<watch::Tell>,
}

struct EngineContainer {
    engine: ContainerEngine,
    name: String,
    is_removed: bool,
}

impl OciContainer {
    /// Makes everything but the application's process. Its output goes to `output`; remarks for the
    /// record go to `warnings`. Errors: [`HaltReason::Refused`] when the engine or this machine
    /// cannot; everything made so far is removed.
    pub fn prepare_in_engine(
        layout: &CgroupLayout,
        frame: &ContainerBase<'_>,
        image: &ImageSpec,
        output: PipeWriter,
        tell: impl Fn(ContainerEvent) + Send + 'static,
        warnings: &mut Vec<String>,
    ) -> Result<Self, HaltReason> {
        let name = GroupName::new(Path::new("/proc"), frame.name)
            .map_err(|error| halt::cgroup_refusal("naming the trial's cgroup", &error))?;
        let mut scratch = Scratch::make_scratch(frame.scratch, &name)?;
        let name = name.to_string();
        // Before the container: only a noted container can be swept.
        scratch.note_container(&image.engine, &name)?;
        if frame.evict_page_cache {
            evict_image(image, warnings);
        }
        let making =
            |error| halt::cgroup_refusal("making the trial's cgroup with its limits", &error);
        let parent =
            TrialGroup::create_limited(layout, &name, &CgroupLimits::default()).map_err(making)?;
        let given = image.writable.as_ref().map(|writable| {
            let real = scratch.give_files(&writable.below_tmp, &writable.files);
            real.map(|real| (real, writable.seen.clone()))
        });
        let given = given.transpose()?;
        let (made, id) = make_container(layout, (frame, image), &name, (&scratch, given))?;
        let leaf = leaf_name(image.engine.kind, &id);
        let leaf = parent.as_group().create_child(&leaf).map_err(making)?;
        leaf.apply_limits(frame.limits).map_err(making)?;
        Ok(Self {
            watched: None,
            made,
            leaf,
            parent,
            scratch,
            network: frame.network.clone(),
            stop_signal: image.stop_signal,
            output: Some(output),
            tell: Some(Box::new(tell)),
        })
    }
}

impl AppContainer for OciContainer {
    fn start_application(&mut self) -> Result<(), HaltReason> {
        let (Some(output), Some(tell)) = (self.output.take(), self.tell.take()) else {
            let why = "the container was started already";
            return Err(halt::measurement_failed(why));
        };
        let starting = "starting the engine's program";
        let error = output.try_clone().map_err(halt::step_failed(starting))?;
        let mut command = engine::engine_command(&self.made.engine);
        command
            .args(["start", "--attach", &self.made.name])
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(error));
        let of = StartedContainer {
            engine: self.made.engine.clone(),
            name: self.made.name.clone(),
        };
        let client = command.spawn().map_err(halt::step_failed(starting))?;
        let watched = WatchedContainer::watch_client(client, self.leaf.clone(), of, tell);
        self.watched = Some(watched.map_err(halt::step_failed(starting))?);
        Ok(())
    }

    fn signal_application(&mut self, signal: Signal) {
        if let Some(watched) = &self.watched {
            watched.signal_process(effective_signal(self.stop_signal, signal));
        }
    }

    fn application_group(&self) -> &ControlGroup {
        &self.leaf
    }

    fn kill_container(&mut self) -> Result<(), CgroupError> {
        // With its first process the kernel ends the whole PID namespace at once, however it forks.
        self.signal_application(Signal::KILL);
        self.leaf.kill_processes(END).map(drop)
    }

    fn shut_down(&mut self) -> bool {
        let is_killed = self.kill_container().is_ok();
        let watched = self.watched.as_ref();
        let is_told = watched.is_none_or(|watched| watched.wait_for_end(END));
        self.made.remove_made() && is_killed && is_told
    }

    fn remove_group(&mut self) -> Result<(), CgroupError> {
        self.parent.kill_and_remove()
    }

    fn at_exec(&self) -> Option<CgroupSample> {
        self.watched.as_ref()?.counters_at_exec()
    }

    fn last_sample(&self) -> Option<CgroupSample> {
        let at_end = || self.watched.as_ref()?.counters_at_end();
        match self.leaf.read() {
            Ok(now) if now.has_oom_kills() => Some(now),
            now => at_end().or(now.ok()),
        }
    }

    fn application_network(&self) -> ContainerNetwork {
        let watched = self.watched.as_ref();
        let process = watched.and_then(WatchedContainer::application_pid);
        // Without a process the network does not exist: opening this fails with that error.
        let path = || PathBuf::from(format!("/proc/{}/ns/net", process.unwrap_or_default()));
        match &self.network {
            ContainerNetwork::Own => ContainerNetwork::Of(NetworkNamespace {
                path: path(),
                container: Some((self.made.engine.kind, self.made.name.clone())),
            }),
            other => other.clone(),
        }
    }

    fn holding_engine(&self) -> Option<(&ContainerEngine, &str)> {
        Some((&self.made.engine, &self.made.name))
    }

    fn open_file(&self, seen: &Path) -> io::Result<File> {
        self.scratch.open_seen(seen)
    }

    fn open_only(&self, seen: &Path) -> io::Result<(OsString, File)> {
        self.scratch.open_only(seen)
    }

    fn written_directories(&self) -> Vec<PathBuf> {
        let mut places = files_on_machine(&self.made.engine, &self.made.name);
        places.push(self.scratch.tmp_directory());
        places
    }
}

impl Drop for OciContainer {
    fn drop(&mut self) {
        // An engine gives a running container seconds to stop; after `end` nothing runs.
        let _ = self.kill_container();
    }
}

impl EngineContainer {
    fn remove_made(&mut self) -> bool {
        self.is_removed = self.is_removed || remove_by_name(&self.engine, &self.name).is_ok();
        self.is_removed
    }
}

impl Drop for EngineContainer {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        self.remove_made();
    }
}

/// Removes a container with its volumes. One that is not there is no error.
pub fn remove_by_name(engine: &ContainerEngine, name: &str) -> Result<(), engine::EngineError> {
    let remove = || match engine::run(engine, &["rm", "--force", "--volumes", name]) {
        Err(error) if !is_unknown(&error.said) => Err(error),
        _ => Ok(()),
    };
    // On a machine that others keep busy podman waits 5 s in vain for the word of the process that
    // watches a container (conmon); by the second time it is there.
    remove().or_else(|_| remove())
}

fn is_unknown(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("no such container") || said.contains("no container with name or id")
}

/// Where on this machine a container's own files are: its layer and its volumes, as far as the
/// engine reports it.
fn files_on_machine(engine: &ContainerEngine, name: &str) -> Vec<PathBuf> {
    let said = engine::run(engine, &["container", "inspect", name]);
    said.map_or_else(|_| Vec::new(), |text| layers::container_directories(&text))
}

pub fn labelled_containers(engine: &ContainerEngine) -> Result<Vec<String>, engine::EngineError> {
    let filter = format!("label={LABEL}");
    let arguments = ["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"];
    let names = engine::run(engine, &arguments)?;
    Ok(names.lines().map(str::to_owned).collect())
}

fn evict_image(image: &ImageSpec, warnings: &mut Vec<String>) {
    if image.layers.is_empty() {
        let text = "the image's files were not found, so they stayed in the page cache: a trial may need up to some 20 MiB more on a machine that has not read them";
        warnings.push(text.to_owned());
    }
    let layers = image.layers.iter();
    layers.for_each(|layer| pagecache::evict_from_page_cache(layer, pagecache::WHOLE));
    let volumes = image.volumes.iter();
    volumes.for_each(|(source, _)| pagecache::evict_from_page_cache(source, pagecache::NEAR));
}

fn make_container(
    layout: &CgroupLayout,
    (frame, image): (&ContainerBase<'_>, &ImageSpec),
    name: &str,
    (scratch, writable): (&Scratch, Option<(PathBuf, PathBuf)>),
) -> Result<(EngineContainer, String), HaltReason> {
    let kind = image.engine.kind;
    let network = network_flag(kind, &frame.network)?;
    let variables = scratch.write_env_file(&image.env)?;
    let mut arguments = vec!["create".to_owned(), "--pull=never".to_owned()];
    arguments.extend(["--name".to_owned(), name.to_owned()]);
    arguments.push(format!("--label={LABEL}={name}"));
    arguments.push(format!("--cgroup-parent={}", group_path(layout, name)));
    arguments.push(format!("--network={network}"));
    arguments.extend(host_flags(kind, frame));
    arguments.push(format!("--env-file={}", variables.display()));
    let tmp = scratch.tmp_directory();
    arguments.push(format!("--volume={}:/tmp", tmp.display()));
    // Its output comes by the pipe; a check of the image's own would be load.
    arguments.extend(["--log-driver=none", "--no-healthcheck"].map(str::to_owned));
    let volume = |(source, seen): &(PathBuf, PathBuf)| {
        format!("--volume={}:{}:ro", source.display(), seen.display())
    };
    arguments.extend(image.volumes.iter().map(volume));
    arguments.extend(
        writable.map(|(real, seen)| format!("--volume={}:{}", real.display(), seen.display())),
    );
    arguments.extend(limit_flags(frame.limits));
    arguments.push(shm(frame.shm));
    arguments.extend(ulimits(frame.open_files));
    arguments.extend(image_arguments(image));
    // Already there to be removed: an engine may fail after it has made something.
    let made = EngineContainer {
        engine: image.engine.clone(),
        name: name.to_owned(),
        is_removed: false,
    };
    let id = engine::run(&image.engine, &arguments).map_err(|error| {
        let alone = "try it with the engine alone: it will report the same error";
        let full = engine::full_disk_hint(&image.engine, &error.said);
        let hint = full.as_deref().unwrap_or(alone);
        refusal_halt("making the container", error, hint)
    })?;
    Ok((made, id.trim().to_owned()))
}

fn group_path(layout: &CgroupLayout, name: &str) -> String {
    let place = layout.hierarchy_of(Controller::Memory).or(layout.v2());
    let parent = place.and_then(|place| place.parent().ok()?.strip_prefix(&place.mount).ok());
    let parent = parent.unwrap_or(Path::new(""));
    Path::new("/").join(parent).join(name).display().to_string()
}

fn leaf_name(kind: EngineKind, id: &str) -> String {
    match kind {
        EngineKind::Podman => format!("libpod-{id}"),
        EngineKind::Docker | EngineKind::Kubernetes => id.to_owned(),
    }
}

/// By default a loopback interface only, as for a plain command.
fn network_flag(kind: EngineKind, network: &ContainerNetwork) -> Result<String, HaltReason> {
    let ContainerNetwork::Of(namespace) = network else {
        let is_own = *network == ContainerNetwork::Own;
        return Ok(if is_own { "none" } else { "host" }.to_owned());
    };
    match (kind, &namespace.container) {
        (EngineKind::Podman, _) => Ok(format!("ns:{}", namespace.path.display())),
        (EngineKind::Docker, Some((EngineKind::Docker, name))) => Ok(format!("container:{name}")),
        (EngineKind::Docker | EngineKind::Kubernetes, _) => Err(networks::docker_cannot().into()),
    }
}

/// Names of the loopback. In a network of another of docker's containers that one's list counts.
fn host_flags(kind: EngineKind, frame: &ContainerBase<'_>) -> Vec<String> {
    let has_list = kind == EngineKind::Docker && frame.network.namespace_path().is_some();
    let names = frame.hosts.iter().filter(|_| !has_list);
    let flags = names.map(|name| format!("--add-host={name}:127.0.0.1"));
    flags.collect()
}

pub(crate) fn image_arguments(image: &ImageSpec) -> Vec<String> {
    let user = image.user;
    let user = user.map(|user| format!("--user={}:{}", user.uid, user.gid));
    let entrypoint = image.entrypoint.iter();
    let entrypoint = entrypoint.map(|program| format!("--entrypoint={program}"));
    let flags = user.into_iter().chain(entrypoint);
    let words = flags.chain([image.id.clone()]);
    words.chain(image.args.iter().cloned()).collect()
}

/// The limits as the engine's options: its runtime writes these, or its defaults.
pub(crate) fn limit_flags(limits: &CgroupLimits) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |flag: &str, value: Option<String>| {
        all.extend(value.map(|value| format!("--{flag}={value}")));
    };
    let period = limits.cpu_period.as_micros();
    let millis = limits.cpu_quota.map(|cpus| u128::from(cpus.as_millis()));
    let quota = millis.map(|millis| (millis * period / 1000).to_string());
    let memory = limits.memory.map(|memory| memory.as_bytes().to_string());
    let cpuset = limits.cpuset.as_ref().map(ToString::to_string);
    add("cpu-period", millis.map(|_| period.to_string()));
    add("cpu-quota", quota);
    add("cpu-shares", limits.cpu_shares.map(|n| n.to_string()));
    add("cpuset-cpus", cpuset);
    add("memory", memory.clone());
    // The same: no swap.
    add("memory-swap", memory);
    add("pids-limit", limits.pids.map(|pids| pids.to_string()));
    all
}

pub(crate) fn shm(size: Bytes) -> String {
    format!("--shm-size={}", size.as_bytes())
}

/// Given in any case: the defaults of podman are refused where loadline may not raise its own.
pub(crate) fn ulimits(open_files: u64) -> [String; 2] {
    let allowed = |resource, wanted: u64| {
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX).min(wanted);
        format!("{most}:{most}")
    };
    let files = allowed(Resource::Nofile, open_files);
    let tasks = allowed(Resource::Nproc, TASKS);
    [("nofile", files), ("nproc", tasks)].map(|(name, most)| format!("--ulimit={name}={most}"))
}

pub(crate) fn write_variables(
    file: &mut impl Write,
    env: &std::collections::BTreeMap<String, String>,
) -> io::Result<()> {
    for (name, value) in env {
        if value.contains('\n') {
            let problem =
                format!("the variable {name} has a line break, which no engine accepts in a file");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        writeln!(file, "{name}={value}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_sizing::Cpus;

    #[test]
    fn an_engine_is_told_the_limits_in_its_own_words() {
        let own = CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(1500)),
            cpu_period: Duration::from_millis(20),
            memory: Some(Bytes::from_mib(256)),
            pids: Some(4096),
            cpuset: "0-1".parse().ok(),
            ..CgroupLimits::default()
        };
        let text = limit_flags(&own).join(" ");
        let wanted = "--cpu-period=20000 --cpu-quota=30000 --cpuset-cpus=0-1 --memory=268435456 --memory-swap=268435456 --pids-limit=4096";
        assert_eq!(text, wanted);
        assert_eq!(limit_flags(&CgroupLimits::default()), Vec::<String>::new());
        assert_eq!(shm(Bytes::from_mib(64)), "--shm-size=67108864");
    }

    #[test]
    fn a_variable_with_a_line_break_is_refused_by_its_name() {
        let env = |value: &str| [("A".to_owned(), value.to_owned())].into();
        let mut file = Vec::new();
        write_variables(&mut file, &env("b \"c\"")).expect("it is plain");
        assert_eq!(file, b"A=b \"c\"\n");
        let error = write_variables(&mut file, &env("b\nLD_PRELOAD=x")).expect_err("it is not");
        assert!(error.to_string().contains("variable A"), "{error}");
    }

    #[test]
    fn a_container_that_is_gone_is_removed() {
        for said in [
            "Error: No such container: loadline-1",
            "Error: no container with name or ID \"x\" found: no such container",
        ] {
            assert!(is_unknown(said), "{said}");
        }
        assert!(!is_unknown("permission denied"));
    }
}
