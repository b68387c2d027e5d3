//! The order of one trial: all that a host needs to carry it out, and nothing that it must look up.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::record::{Configuration, TrialPhase};
use loadline_analysis::slo::Slo;
use loadline_analysis::wire;
use loadline_load::LoadPlan;
use loadline_load::remote::Generators;
use loadline_sizing::Bytes;
use serde::{Deserialize, Serialize};

use crate::{DependencySpec, SharedDependencies, StubSpec};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialOrder {
    /// UUID of the trial; names cgroups and directories.
    pub trial: String,
    /// Limits, options and environment. JVM options and arguments stand in `app` already.
    pub configuration: Configuration,
    pub app: AppSpec,
    /// What it needs beside it, in the order in which they start.
    pub dependencies: Vec<DependencySpec>,
    /// Of them those that run already, because other trials share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<SharedDependencies>,
    /// What loadline stands in for beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stubs: Vec<StubSpec>,
    /// Texts that no file of the trial may hold: values of credentials.
    pub secrets: Vec<String>,
    pub readiness: Readiness,
    pub network: NetworkMode,
    pub account: Account,
    /// Directory of the host for this trial's files, owned by loadline; made and removed by the
    /// host.
    pub scratch: PathBuf,
    /// Directories of the host that the application must not see: loadline's own records, which an
    /// application under the same account could change. What its command names below them stays.
    pub hidden: Vec<PathBuf>,
    /// The JVM's GC log as the application sees it; `None` where the application is no JVM.
    pub gc_log: Option<PathBuf>,
    /// A text in a line of its output, whose time is wanted; not what makes it ready.
    pub log_line: Option<String>,
    /// Files that the application writes and that are handed over when it has ended, as it sees
    /// them. A path that ends in a slash is a directory whose one file is handed over, behind a
    /// line with its name; what was there before the start does not count.
    pub hand_over: Vec<PathBuf>,
    /// How often the cgroup's counters are read.
    pub sampling: SamplingRate,
    pub start_deadline: Duration,
    pub load: Vec<LoadPhase>,
    /// The SLO that a trial must be able to keep to go on; `None` where it runs its full length
    /// whatever happens.
    pub give_up: Option<Slo>,
    /// Time between SIGTERM and kill.
    pub stop_grace: Duration,
    /// A soak: memory in parts is watched over the load.
    #[serde(default)]
    pub soak: Option<SoakSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_study: Option<MemoryStudy>,
    /// Whether its pod is the one that ships: nothing of the application's processes is within reach
    /// then, and no counter of them.
    #[serde(default)]
    pub as_shipped: bool,
    /// Who makes the load, in the place of a process beside the application. They are there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Generators>,
    /// The program that makes the load, in the place of loadline's own generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_command: Option<LoadCommandSpec>,
}

/// A program of the user's that makes the load of a trial, in one run over all phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadCommandSpec {
    /// What runs: a program of the host.
    pub app: AppSpec,
    /// Program and arguments as the experiment says them, for the record.
    pub words: Vec<String>,
    /// Who it runs as.
    pub account: Account,
    /// Where it expects the service, on its loopback.
    pub port: u16,
    /// From its start to its first request: a JVM or Node takes seconds of CPU to get there.
    pub first_request: Duration,
    /// The most memory that it may take.
    #[serde(rename = "memory_bytes", with = "wire::bytes")]
    pub memory: Bytes,
}

impl TrialOrder {
    /// The names by which the application finds what it needs.
    pub fn peer_names(&self) -> Vec<String> {
        let dependencies = self.dependencies.iter().map(|d| &d.name);
        let stubs = self.stubs.iter().map(|stub| &stub.name);
        dependencies.chain(stubs).cloned().collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakSettings {
    pub every: Duration,
    pub rest: Duration,
}

/// How the memory of one start is studied, behind the judged load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStudy {
    /// Requests after which the ageing burst ends, if its phase does not end before.
    pub burst_requests: u64,
    /// Whether the limit is lowered to the wall after the burst; else the live set is asked for.
    pub is_squeezed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AppSpec {
    Command {
        /// Program (an absolute path) and arguments.
        command: Vec<String>,
        /// Environment, complete: nothing is inherited.
        env: BTreeMap<String, String>,
        /// Working directory, absolute.
        directory: PathBuf,
    },
    /// A container image, started by an engine of the host.
    Image(Box<ImageSpec>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpec {
    pub engine: ContainerEngine,
    /// Its id: a name may come to mean another image while a result is measured.
    pub id: String,
    /// All that it runs, for those who look at commands: entry point and arguments.
    pub command: Vec<String>,
    /// What runs in the place of the image's entry point.
    pub entrypoint: Option<String>,
    /// Arguments behind the entry point; empty is the image's own command.
    pub args: Vec<String>,
    /// Files and directories of the host that it sees and cannot write: (the host's, as it sees it).
    pub volumes: Vec<(PathBuf, PathBuf)>,
    /// Environment on top of the image's.
    pub env: BTreeMap<String, String>,
    /// JVM options that must have arrived, or nothing was measured. They stand in `env` already.
    pub options: Vec<String>,
    /// Who it runs as; `None` is the image's own user.
    pub user: Option<Account>,
    /// What asks it to stop; `None` is SIGTERM.
    pub stop_signal: Option<i32>,
    /// Directories of the host with its files, where they are known.
    pub layers: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable: Option<WritableDirectory>,
}

/// A directory that an image may write, in the place of one of its own. What the image puts into it
/// can be handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableDirectory {
    pub seen: PathBuf,
    pub below_tmp: PathBuf,
    /// Files of the host that are copied into it before the start, and never handed over.
    pub files: Vec<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerEngine {
    pub kind: EngineKind,
    /// Its program, an absolute path.
    pub program: PathBuf,
    /// The environment of its program: where its daemon, its settings and its helpers are.
    pub env: BTreeMap<String, String>,
    /// Why loadline makes no cgroups for its containers and sees none of theirs, where that is so: then
    /// a second container beside the application's carries the trial out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
}

/// Without the environment: it is no part of what was measured, and may hold a secret.
impl fmt::Debug for ContainerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.program.display())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    Podman,
    Docker,
    /// A cluster, whose kubelet starts them beside loadline.
    Kubernetes,
}

impl EngineKind {
    /// Those of a machine, those that need no daemon first.
    pub const ALL: [Self; 2] = [Self::Podman, Self::Docker];

    pub fn program_name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.program_name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|kind| kind.program_name() == text);
        found.ok_or_else(|| format!("`{text}` is no container engine that loadline knows"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Readiness {
    /// `GET` of this path answers with a status below 400.
    Http {
        port: u16,
        /// Path and query, with the leading slash.
        path: String,
    },
    Tcp {
        port: u16,
    },
    /// A line of the application's output contains this text.
    LogLine {
        contains: String,
    },
    /// A command ends with 0, run by the engine in the container. Of images only.
    Command {
        /// Program and arguments, as the image has them.
        command: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// A network of its own with a loopback interface only.
    Own,
    /// The host's network: for applications that need other services. Ports can clash.
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// User id, never 0 unless the user insists.
    pub uid: u32,
    pub gid: u32,
}

/// How often the counters of the application's cgroup are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRate {
    /// Once in each CFS period, just after its boundary: costs next to nothing and sees every
    /// throttled period. Without a CPU limit, every 100 ms; where the limit is all the CPUs there are
    /// and nothing can be throttled, every 10 ms, which shows what elsewhere would be.
    #[default]
    Period,
    /// At this distance, 1 ms or more: places throttling to about a millisecond.
    Every(Duration),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPhase {
    pub phase: TrialPhase,
    /// What is sent, for all instances together. Its targets are the application's own addresses;
    /// parts, CPUs and the moment of its begin are the host's to choose.
    pub plan: LoadPlan,
}
