//! The two containers of a trial on a remote engine: made, started, inspected, removed.
//!
//! Owns the engine's arguments. Both run as one user, so that the kernel lets one see the other;
//! loadline's has no privilege that the application's lacks.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use loadline_analysis::foreign_text::indented_line;
use loadline_cgroup::CgroupLimits;
use loadline_load::LoadPart;
use loadline_protocol::{
    Account, AppSpec, ContainerEngine, EngineKind, ImageSpec, NetworkMode, RunRefusal, TrialOrder,
};
use loadline_sizing::{Bytes, CpuSet};

use super::own_image::{self, PROGRAM};
use super::tar::TarArchive;
use super::{TMP, WORK, labels, owned_name, remove_containers};
use crate::container::{SHM, how_it_ended};
use crate::cpus::{CpuPlan, format_cpu_list};
use crate::generator;
use crate::group::TASKS;
use crate::instance::{GENERATOR_SHARES, START_HINT};
use crate::oci::{self, engine};
use crate::pod::{self, ImageReading, MARK};
use crate::sweep::is_dead;

pub(super) const OWN: &str = "-own";
const ORDER: &str = "/order";

/// Memory of loadline's own container in addition to the load generator's.
const OWN_MEMORY: Bytes = Bytes::from_mib(192);

const LINES: &str = "--tail=50";

#[derive(Debug)]
pub struct ApartContainers {
    engine: ContainerEngine,
    own: String,
    application: String,
    volume: String,
    is_removed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerEnd {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub is_oom: bool,
}

pub fn unsupported_apart(order: &TrialOrder) -> Option<&'static str> {
    let image = order.app.image();
    let has_files = image.is_some_and(|image| !image.volumes.is_empty());
    let own = [
        (has_files, "volumes of this machine"),
        (order.configuration.cpu_burst.is_some(), "CFS burst"),
        (order.configuration.start_cpu.is_some(), "start-cpu"),
    ];
    let own = own.into_iter().find(|(is, _)| *is).map(|(_, what)| what);
    pod::unsupported_feature(order).or(own)
}

impl ApartContainers {
    /// Makes both; starts none. `seen` is what the look into the image saw.
    /// Errors: [`RunRefusal`] with the engine's words, after cleaning up.
    pub fn make_both(
        engine: &ContainerEngine,
        order: &TrialOrder,
        seen: &ImageReading,
    ) -> Result<Self, RunRefusal> {
        let AppSpec::Image(image) = &order.app else {
            let hint = "build an image and name it: --image name:tag";
            let why = "it runs images, not commands of this machine";
            return Err(RunRefusal::new("an engine apart", why, hint));
        };
        let own_image = own_image::ensure_image(engine)?;
        let name = owned_name(&order.trial)?;
        let pair = Self {
            engine: engine.clone(),
            own: format!("{name}{OWN}"),
            volume: name.clone(),
            application: name,
            is_removed: false,
        };
        let account = image.user.or(seen.account).unwrap_or(order.account);
        let has_cpuset = has_cpuset(engine);
        let plan = plan_apart_cpus(order, seen, has_cpuset)?;
        let cpuset = has_cpuset.then(|| plan.application.iter().copied().collect());
        let mut volume = ["volume", "create"].map(str::to_owned).to_vec();
        volume.extend(labels("trial"));
        volume.push(pair.volume.clone());
        pair.run(&volume)?;
        let mut own = pair.own_arguments(order, account, &plan, &own_image);
        own.extend(has_cpuset.then(|| "--split-cpus".to_owned()));
        pair.run(&own)?;
        let order_file = packed_order(order, account).map_err(|e| pair.apart_refusal(&e))?;
        let given = engine::unpack_into(engine, &pair.own, "/", &order_file);
        given.map_err(|e| pair.apart_refusal(&e))?;
        let variables = VariablesFile::write(order, image).map_err(|e| pair.apart_refusal(&e))?;
        let arguments = pair.application_arguments(order, image, cpuset, &variables.0);
        pair.run(&arguments)?;
        pair.run(&["start".to_owned(), pair.own.clone()])?;
        Ok(pair)
    }

    fn run(&self, arguments: &[String]) -> Result<(), RunRefusal> {
        let done = engine::run(&self.engine, arguments);
        done.map(drop).map_err(|error| self.apart_refusal(&error))
    }

    fn apart_refusal(&self, why: &dyn ToString) -> RunRefusal {
        let alone = "try it with the engine alone: it will report the same error";
        let why = why.to_string();
        let full = engine::full_disk_hint(&self.engine, &why);
        let hint = full.as_deref().unwrap_or(alone);
        RunRefusal::new("making the containers of a trial", &why, hint)
    }

    fn own_arguments(
        &self,
        order: &TrialOrder,
        account: Account,
        plan: &CpuPlan,
        own_image: &str,
    ) -> Vec<String> {
        let mut all = vec!["create".to_owned(), "--pull=never".to_owned()];
        all.extend(["--name".to_owned(), self.own.clone()]);
        all.extend(labels("trial"));
        let network = match order.network {
            NetworkMode::Own => "none",
            NetworkMode::Host => "host",
        };
        all.push(format!("--network={network}"));
        all.extend(log_flags(self.engine.kind, OWN_LOG));
        all.push(format!("--user={}:{}", account.uid, account.gid));
        all.push("--security-opt=no-new-privileges".to_owned());
        if account.uid != 0 {
            // root's application has its engine's: only who has them, too, may look at it.
            all.push("--cap-drop=ALL".to_owned());
        }
        let memory = |load| generator::generator_memory(load, LoadPart::default());
        let generator = order.load.iter().map(memory).max();
        let generator = generator.unwrap_or_default().as_bytes();
        all.extend(oci::limit_flags(&CgroupLimits {
            cpu_shares: plan.generator_competes().then_some(GENERATOR_SHARES),
            memory: Some(Bytes::from_bytes(OWN_MEMORY.as_bytes() + generator)),
            ..CgroupLimits::default()
        }));
        all.push(format!("--volume={}:{TMP}", self.volume));
        all.extend(oci::ulimits(crate::site::SiteOptions::default().open_files));
        all.push(own_image.to_owned());
        all.extend([PROGRAM, "pod-part"].map(str::to_owned));
        all.push(format!("--order={ORDER}"));
        all.push(format!("--work={WORK}"));
        all.push(format!("--tmp={TMP}"));
        all
    }

    fn application_arguments(
        &self,
        order: &TrialOrder,
        image: &ImageSpec,
        cpuset: Option<CpuSet>,
        variables: &Path,
    ) -> Vec<String> {
        let configuration = &order.configuration;
        let limits = CgroupLimits {
            cpu_quota: configuration.cpu,
            cpu_period: configuration.cpu_period,
            cpu_burst: None,
            cpu_shares: configuration.cpu_shares,
            cpuset,
            memory: configuration.memory,
            pids: Some(configuration.pids.unwrap_or(TASKS)),
        };
        let mut all = vec!["create".to_owned(), "--pull=never".to_owned()];
        all.extend(["--name".to_owned(), self.application.clone()]);
        all.extend(labels("trial"));
        all.push(format!("--pid=container:{}", self.own));
        all.push(format!("--network=container:{}", self.own));
        all.push(format!("--volume={}:/tmp:nocopy", self.volume));
        all.push(format!("--env-file={}", variables.display()));
        all.extend(log_flags(self.engine.kind, APPLICATION_LOG));
        all.push("--no-healthcheck".to_owned());
        all.extend(oci::limit_flags(&limits));
        all.push(oci::shm(configuration.shm.unwrap_or(SHM)));
        all.extend(oci::ulimits(crate::site::SiteOptions::default().open_files));
        all.extend(oci::image_arguments(image));
        all
    }

    /// Runs a program with the output of loadline's own container from its begin; it ends with the
    /// container. Errors: An engine's program that does not start.
    pub fn follow_output(&self) -> io::Result<Child> {
        use std::os::unix::process::CommandExt;
        let mut command = engine::engine_command(&self.engine);
        command.args(["logs", "--follow", &self.own]);
        // A Ctrl-C is for loadline, which tells the trial.
        command.process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        crate::spawn_command(command)
    }

    pub fn start_app_container(&self) -> Result<(), RunRefusal> {
        let started = engine::run(&self.engine, &["start", &self.application]);
        started
            .map(drop)
            .map_err(|error| RunRefusal::new("starting the application", error, START_HINT))
    }

    pub fn ask_to_end(&self) {
        // One that has ended does not mind.
        let _ = engine::run(&self.engine, &["kill", "--signal=TERM", &self.own]);
    }

    /// Whether loadline's own container runs; `None` where the engine does not answer.
    pub fn is_running(&self) -> Option<bool> {
        let said = self.inspect_container(&self.own, "{{.State.Running}}")?;
        Some(said.trim() == "true")
    }

    pub fn container_end(&self) -> Option<ContainerEnd> {
        let format = "{{.State.Running}} {{.State.ExitCode}} {{.State.OOMKilled}}";
        parse_container_end(&self.inspect_container(&self.application, format)?)
    }

    fn inspect_container(&self, name: &str, format: &str) -> Option<String> {
        engine::run(&self.engine, &["inspect", "--format", format, name]).ok()
    }

    pub fn last_lines(&self, secrets: &[String]) -> Vec<String> {
        let text = engine::call_for_both(&self.engine, &["logs", LINES, &self.application]);
        let mut text = text.unwrap_or_default();
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "***");
        }
        text.lines().map(indented_line).collect()
    }

    /// Reads the application's output from its begin; the engine keeps at most [`APPLICATION_LOG`].
    pub fn read_output(&self, take_line: impl FnMut(&str)) -> Result<(), engine::EngineError> {
        let text = engine::call_for_both(&self.engine, &["logs", &self.application])?;
        text.lines().for_each(take_line);
        Ok(())
    }

    pub fn own_words(&self) -> Option<String> {
        let text = engine::call_for_both(&self.engine, &["logs", LINES, &self.own]).ok()?;
        let is_word = |line: &&str| !line.starts_with(pod::LINE) && !line.trim().is_empty();
        text.lines().rfind(is_word).map(indented_line)
    }

    pub fn remove_both(&mut self) -> Result<(), engine::EngineError> {
        if !self.is_removed {
            let containers = [self.application.as_str(), &self.own];
            remove_containers(&self.engine, &containers, Some(&self.volume))?;
            self.is_removed = true;
        }
        Ok(())
    }
}

impl Drop for ApartContainers {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next sweep.
        let _ = self.remove_both();
    }
}

fn parse_container_end(said: &str) -> Option<ContainerEnd> {
    let mut words = said.split_whitespace();
    if words.next()? != "false" {
        return None;
    }
    let (code, signal) = how_it_ended(words.next()?.parse().ok());
    Some(ContainerEnd {
        code,
        signal,
        is_oom: words.next() == Some("true"),
    })
}

/// The CPUs of the application and of the generator, as on a machine of loadline's own; its own
/// container comes to the same.
fn plan_apart_cpus(
    order: &TrialOrder,
    seen: &ImageReading,
    has_cpuset: bool,
) -> Result<CpuPlan, RunRefusal> {
    if !has_cpuset {
        return Ok(CpuPlan::unsplit(&seen.cpus));
    }
    let sets = order.configuration.cpuset.as_ref();
    let wanted: Option<Vec<u32>> = sets.map(|sets| sets.all_cpus().iter().collect());
    if let Some(wanted) = &wanted
        && wanted.iter().any(|cpu| !seen.cpus.contains(cpu))
    {
        let cpus = format_cpu_list(&seen.cpus);
        let why = format!("the engine's containers may use CPUs {cpus}");
        let hint = "choose among these CPUs";
        return Err(RunRefusal::new("the cpuset", why, hint));
    }
    let quota = order.configuration.cpu;
    Ok(CpuPlan::new(&seen.cpus, quota, wanted.as_deref(), 1))
}

/// Whether it can say on which CPUs a container runs: a user's podman has no cpusets where none were
/// delegated.
fn has_cpuset(engine: &ContainerEngine) -> bool {
    let format = match engine.kind {
        EngineKind::Podman => "{{.Host.CgroupControllers}}",
        EngineKind::Docker | EngineKind::Kubernetes => return true,
    };
    let said = engine::run(engine, &["info", "--format", format]);
    said.is_ok_and(|said| said.contains("cpuset"))
}

/// Most of the engine's disk that a log takes: of a trial's events, hours of which are less, and of the
/// application's output, of which the last lines are read. Both can be written to by the application.
const OWN_LOG: &str = "1g";
const APPLICATION_LOG: &str = "16m";

/// A log that `logs` reads, whatever the engine's default is, of at most this size.
fn log_flags(kind: EngineKind, most: &str) -> [String; 2] {
    let driver = match kind {
        EngineKind::Podman => "k8s-file",
        EngineKind::Docker | EngineKind::Kubernetes => "json-file",
    };
    [
        format!("--log-driver={driver}"),
        format!("--log-opt=max-size={most}"),
    ]
}

/// An order as [`crate::part::run_in_pod`] reads it, for its user alone. What the engine's program
/// needs here is nothing to it.
fn packed_order(order: &TrialOrder, account: Account) -> io::Result<Vec<u8>> {
    let mut order = order.clone();
    if let AppSpec::Image(image) = &mut order.app {
        image.engine.env.clear();
    }
    let text = serde_json::to_vec(&order)?;
    let packed = zstd::encode_all(text.as_slice(), 0)?;
    let mut tar = TarArchive::default();
    tar.add_file(ORDER, 0o400, (account.uid, account.gid), &packed)?;
    Ok(tar.finish_archive())
}

const VARIABLES: &str = "variables";

pub(super) fn sweep_variables(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_own =
            |m: fs::Metadata| m.is_file() && m.uid() == rustix::process::geteuid().as_raw();
        let is_left = name.contains(VARIABLES) && is_dead(&name, Path::new("/proc"));
        if is_left && entry.metadata().is_ok_and(is_own) {
            // It is tried again at the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The application's variables in a file that an engine's program reads; gone when dropped.
struct VariablesFile(PathBuf);

impl VariablesFile {
    fn write(order: &TrialOrder, image: &ImageSpec) -> io::Result<Self> {
        let mut env = image.env.clone();
        env.insert(MARK.to_owned(), order.trial.clone());
        // The name tells its owner: the file of a killed one is swept.
        let name = owned_name(&format!("{VARIABLES}-{}", order.trial));
        let name = name.map_err(|refusal| io::Error::other(refusal.to_string()))?;
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path)?;
        let variables = Self(path);
        oci::write_variables(&mut file, &env)?;
        Ok(variables)
    }
}

impl Drop for VariablesFile {
    fn drop(&mut self) {
        // It lies in a directory that is emptied anyway.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_a_killed_loadline_left_are_swept_and_no_others() {
        let place = tempfile::tempdir().expect("a directory");
        let own = owned_name("variables-trial").expect("a name");
        let process = format!("-{}-", std::process::id());
        let dead = own.replacen(&process, "-4000000000-", 1);
        let other = dead.replace(VARIABLES, "something");
        for name in [&own, &dead, &other, "variables"] {
            std::fs::write(place.path().join(name), "TOKEN=x").expect("a file");
        }
        sweep_variables(place.path());
        let left = |name: &str| place.path().join(name).exists();
        assert!(!left(&dead), "{dead}");
        assert!(left(&own) && left(&other) && left("variables"));
    }

    #[test]
    fn how_a_container_ended_is_what_its_engine_says() {
        assert_eq!(parse_container_end("true 0 false\n"), None);
        assert_eq!(parse_container_end(""), None);
        let killed = parse_container_end("false 137 true\n").expect("it has ended");
        assert_eq!(
            (killed.code, killed.signal, killed.is_oom),
            (None, Some(9), true)
        );
        let asked = parse_container_end("false 143 false").expect("it has ended");
        assert_eq!(
            (asked.code, asked.signal, asked.is_oom),
            (Some(143), None, false)
        );
    }
}
