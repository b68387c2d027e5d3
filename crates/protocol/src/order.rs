//! The order of one trial: all that a host needs to carry it out, and nothing that it must look up.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::metric_text::MetricSelector;
use loadline_analysis::record::{Configuration, RunReference, TrialPhase};
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
    /// Limits, options and environment. JVM options and arguments are already in `app`.
    pub configuration: Configuration,
    pub app: AppSpec,
    pub dependencies: Vec<DependencySpec>,
    /// Dependencies that run already, because other trials share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<SharedDependencies>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stubs: Vec<StubSpec>,
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
    /// A text in the output; the time of its line is recorded, readiness does not depend on it.
    pub log_line: Option<String>,
    /// Files that the application writes and that are handed over when it has ended, by their paths
    /// inside. A path that ends in a slash is a directory with a single file, handed over after a
    /// line with its name; files from before the start do not count.
    pub hand_over: Vec<PathBuf>,
    pub sampling: SamplingRate,
    pub start_deadline: Duration,
    pub load: Vec<LoadPhase>,
    /// The SLO that a trial must be able to keep to go on; `None` where it runs its full length
    /// whatever happens.
    pub give_up: Option<Slo>,
    pub stop_grace: Duration,
    #[serde(default)]
    pub soak: Option<SoakSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_study: Option<MemoryStudy>,
    /// Whether its pod has the shipped layout: the application's processes and counters are then
    /// out of reach.
    #[serde(default)]
    pub as_shipped: bool,
    /// The generators that make the load, if it is not a process next to the application. They are
    /// running already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<Generators>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_command: Option<LoadCommandSpec>,
    /// Runs to its end before the application starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<LoadCommandSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSpec>,
    /// The expected end of a run; its start deadline is the deadline for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunSpec>,
}

/// Metrics that are read once a second of the measure phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsSpec {
    /// Address on loopback, as the application sees it, that answers with Prometheus text.
    pub url: Option<String>,
    /// By name, its series there.
    pub series: BTreeMap<String, MetricSelector>,
    /// By name, a command outside of the application's limits that prints a number.
    pub probes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub exit: i32,
    pub output: Option<String>,
    /// A file that it must leave behind, not empty, as the application sees it.
    pub file: Option<PathBuf>,
    /// Directories of the host of which each trial gets a copy, at the same path: absolute.
    pub copies: Vec<PathBuf>,
    /// A command that runs in the copy of the working directory before the run, outside its limits.
    pub reset: Vec<String>,
    pub home: Option<PathBuf>,
    pub reference: Option<RunReference>,
}

/// A program of the user's that makes the load of a trial, or other work, in one run over all phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadCommandSpec {
    pub app: AppSpec,
    pub words: Vec<String>,
    pub account: Account,
    /// Where the front times its requests; `None` if what it makes is not HTTP.
    pub port: Option<u16>,
    /// Whether it may end with 0 before the judged phase does.
    #[serde(default)]
    pub may_end: bool,
    /// The exit code with which it says that its own thresholds were missed; `None` where the code is
    /// not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails_with: Option<u8>,
    /// From its start to its first request: a JVM or Node takes seconds of CPU to get there.
    pub first_request: Duration,
    #[serde(rename = "memory_bytes", with = "wire::bytes")]
    pub memory: Bytes,
}

impl TrialOrder {
    /// Whether its load phases last for their time, without a request.
    pub fn is_timed(&self) -> bool {
        let mut load = self.load.iter();
        load.any(|load| !load.plan.sends_requests())
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStudy {
    /// Requests after which the ageing burst ends, if its phase does not end before.
    pub burst_requests: u64,
    pub goal: StudyGoal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyGoal {
    /// The live set behind the burst.
    LiveSet,
    /// The memory wall: the limit is lowered behind the burst.
    Wall,
    /// Whether the limit suffices for the burst and for the compilers behind it.
    Burst,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AppSpec {
    Command {
        /// Program (an absolute path) and arguments.
        command: Vec<String>,
        env: BTreeMap<String, String>,
        directory: PathBuf,
    },
    Image(Box<ImageSpec>),
}

impl AppSpec {
    pub fn image(&self) -> Option<&ImageSpec> {
        match self {
            Self::Image(image) => Some(image),
            Self::Command { .. } => None,
        }
    }

    pub fn command_line(&self) -> &[String] {
        match self {
            Self::Command { command, .. } => command,
            Self::Image(image) => &image.command,
        }
    }

    pub fn app_environment(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Command { env, .. } => env,
            Self::Image(image) => &image.env,
        }
    }
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
    pub args: Vec<String>,
    /// Files and directories of the host that it sees and cannot write: (the host's, as it sees it).
    pub volumes: Vec<(PathBuf, PathBuf)>,
    pub env: BTreeMap<String, String>,
    /// JVM options that must have arrived, or nothing was measured. They are already in `env`.
    pub options: Vec<String>,
    /// Who it runs as; `None` is the image's own user.
    pub user: Option<Account>,
    /// What asks it to stop; `None` is SIGTERM.
    pub stop_signal: Option<i32>,
    pub layers: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable: Option<WritableDirectory>,
}

/// A writable directory that replaces one of the image. Its new content can be handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableDirectory {
    pub seen: PathBuf,
    pub below_tmp: PathBuf,
    pub files: Vec<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerEngine {
    pub kind: EngineKind,
    pub program: PathBuf,
    /// The environment of its program: where its daemon, its settings and its helpers are.
    pub env: BTreeMap<String, String>,
    /// Why loadline cannot make its containers' cgroups and does not see them, if so: then a second
    /// container next to the application's carries the trial out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
}

/// Without the environment: it does not affect the measurement, and may hold a secret.
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
    Kubernetes,
}

impl EngineKind {
    /// The engines of a machine, daemonless ones first.
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
        let mut all = Self::ALL.into_iter();
        let found = all.find(|kind| kind.program_name() == text);
        found.ok_or_else(|| format!("`{text}` is not a container engine that loadline knows"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Readiness {
    /// `GET` of this path answers with a status below 400.
    Http {
        port: u16,
        path: String,
    },
    Tcp {
        port: u16,
    },
    /// `grpc.health.v1` says that the whole server is SERVING, over HTTP/2 without TLS.
    Grpc {
        port: u16,
    },
    /// A line of the application's output contains this text.
    LogLine {
        contains: String,
    },
    /// A command ends with 0. The engine runs it in the container of an image; for a program it runs
    /// outside of the limits.
    Command {
        command: Vec<String>,
    },
    /// It ended as its [`RunSpec`] expects. Of runs only.
    Exit,
    /// Each of its metrics has a sample. The port is that of their address.
    Sample {
        port: Option<u16>,
    },
}

impl Readiness {
    /// The port that it asks; `None` where it asks none.
    pub fn asked_port(&self) -> Option<u16> {
        match self {
            Self::Http { port, .. } | Self::Tcp { port } | Self::Grpc { port } => Some(*port),
            Self::Sample { port } => *port,
            Self::LogLine { .. } | Self::Command { .. } | Self::Exit => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// A separate network with a loopback interface only.
    Own,
    /// The host's network: for applications that need other services. Ports can clash.
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingRate {
    /// Once in each CFS period, just after its boundary: costs next to nothing and sees every
    /// throttled period. Every 100 ms without a CPU limit, or where it covers all the CPUs there are,
    /// so that nothing can be throttled.
    #[default]
    Period,
    /// At this distance, 1 ms or more: places throttling to about a millisecond.
    Every(Duration),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPhase {
    pub phase: TrialPhase,
    /// The load, for all instances together. Its targets are the application's own addresses; the
    /// host chooses parts, CPUs and the moment of its begin.
    pub plan: LoadPlan,
}
