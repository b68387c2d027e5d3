//! The experiment as a file: TOML, kebab-case keys, unknown keys refused.
//!
//! Owns the schema people write (and its documentation, from the comments below). Values are texts
//! with units that keep their origin ([`ValueWithOrigin`]), so that a message shows the line or
//! flag of a wrong one; [`super::resolve`] turns them into types.

mod broken;
mod kubernetes;
mod level;
mod short;
mod stub;

use std::collections::BTreeMap;
use std::path::PathBuf;

use loadline_analysis::record::Configuration;
use loadline_load::{LoadSpec, LoadTarget};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::said::{Text, ValueWithOrigin};
pub use broken::{OutageTable, ToxicTable};
pub use kubernetes::KubernetesTable;
pub use level::{LevelEntry, LevelTable};
pub use stub::{AnswerTable, StubFile};

/// An experiment: one application, one load, one SLO, limits, and factors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExperimentFile {
    /// The question that the experiment answers, for the report.
    pub question: Option<String>,
    /// How to read the answer: factors, omissions, reasons.
    pub analysis: Option<String>,
    /// What "it works" means: `p99<50ms,errors<0.1%`; also `max<1s`, `start<20s`, for one
    /// request of a mix `POST /orders: p99<200ms`, for a metric `lag: max<1000`, and around an outage of a dependency
    /// `recovers<10s` and `errors<5% during`.
    pub slo: Text,
    /// The application under test.
    #[serde(default)]
    pub app: AppTable,
    /// Services of a compose file: the application, what it needs, or both. They become a part of the
    /// experiment; services that `[[dependency]]` adds start after them.
    pub compose: Option<ComposeTable>,
    /// The manifest that ships it: limits, JVM options, environment and probes are read from it, so
    /// that each has one source. A file, or a table that names the container.
    pub manifest: Option<ManifestTable>,
    /// The cluster in which its trials run as pods; without it they run on this machine.
    pub kubernetes: Option<KubernetesTable>,
    /// Its dependencies, each fresh for every trial, in start order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependency: Vec<DependencyTable>,
    /// Times in which a dependency is away: what `loadline drill` is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage: Vec<OutageTable>,
    /// The load; a run has none.
    #[serde(default)]
    pub load: LoadSpec,
    /// Metrics of the application that the SLO may name.
    pub metrics: Option<MetricsTable>,
    /// Limits that hold for every configuration unless a factor changes them.
    #[serde(default)]
    pub limits: LimitsTable,
    /// How trials are ordered and repeated.
    #[serde(default)]
    pub run: RunTable,
    /// The search of `loadline size`.
    #[serde(default)]
    pub search: SearchTable,
    /// How start-up caches are trained, for levels that ask for one.
    #[serde(default)]
    pub cache: CacheTable,
    /// Factors; configurations are all combinations of their levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor: Vec<FactorTable>,
    /// Exactly these configurations, as records hold them, in place of limits and factors: what
    /// `judge` and `explain --try` run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configuration: Vec<Configuration>,
}

/// Metrics that are read once a second of the measure phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MetricsTable {
    /// Address that answers with Prometheus or OpenMetrics text: `http://localhost:8080/metrics`.
    pub url: Option<Text>,
    /// By name, its series there, added up, or the largest: `lag = 'max(records_lag{topic="orders"})'`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Text>,
    /// By name, a command outside of the application's limits, in its network and under its account; the
    /// last number that it prints is the sample: `depth = ["redis-cli", "llen", "jobs"]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probe: BTreeMap<String, Vec<String>>,
}

/// Services taken from a compose file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComposeTable {
    /// The file, relative to the experiment file.
    pub file: PathBuf,
    /// The service that is the application; all that it depends on comes with it.
    pub service: Option<String>,
    /// Services to run next to the application, with all their dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// How long the other services live, as `scope` of a dependency: `trial` or `result`.
    pub scope: Option<Text>,
    /// By name of the service, a command that fills it, as `seed` of a dependency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seed: BTreeMap<String, Vec<String>>,
    /// By name of the service, what runs between two trials, as `reset` of a dependency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reset: BTreeMap<String, Vec<String>>,
}

/// A Kubernetes manifest; a text is its `file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ManifestTable {
    /// The file, relative to the experiment file.
    pub file: PathBuf,
    /// The workload: `Deployment/orders`, or its name; default: the only one with a JVM.
    pub workload: Option<String>,
    /// The container; default: the only one with a JVM.
    pub container: Option<String>,
}

/// The application under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AppTable {
    /// Program and arguments, as one would start it: `["java", "-jar", "app.jar"]`; with `image`
    /// what replaces the image's own command, behind its entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// An image that podman or docker starts, in place of a program: `registry/orders:1.4`.
    pub image: Option<Text>,
    /// What its version is called: `1.4.2`. Results have the commit and the image's labels too.
    pub version: Option<Text>,
    /// Which engine starts the image: `podman` or `docker`; default: the engine that has the image.
    pub engine: Option<Text>,
    /// Files and directories, relative to the experiment file, that an image sees and cannot write:
    /// `["application.yaml:/config/application.yaml"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Text>,
    /// Whether the program ends: a build, a batch, a test run. It is then judged by its exit, its
    /// time and its memory, and needs no load.
    pub ends: Option<bool>,
    /// Of a run that ends: directories, relative to the working directory, of which each trial gets a
    /// copy at the same path. Default: the working directory of build tools and with `reset`.
    pub fresh: Option<Vec<PathBuf>>,
    /// Of a run that ends: a command that each trial begins with, outside of its limits and its time, in
    /// the copy of the working directory: `["rm", "-rf", "target"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
    /// Of a run that starts its JVMs itself: where loadline's JVM options go, with a heap that it then
    /// chooses. `launcher` is the variable that the start script of Maven, Gradle, sbt or Ant reads,
    /// `all` every JVM (`JAVA_TOOL_OPTIONS`); or another variable.
    pub options_to: Option<Text>,
    /// For a program that ends: files it must leave behind, besides its exit code.
    pub expect: Option<ExpectTable>,
    /// Working directory, relative to the experiment file; default: where loadline is called.
    pub directory: Option<PathBuf>,
    /// Environment variables. Nothing is inherited but PATH, LANG and TZ. In a value `{env:NAME}`
    /// is a variable of loadline's own environment, `{file:PATH}` the content of a file, relative
    /// to the experiment file, and `{env-file:PATH#NAME}` a variable of an environment file: for
    /// credentials, which no record may hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// When it is ready; default: the URL of the load answers with a status below 400, or its port
    /// takes a connection where the load is more than a plain GET (a mix, a login, https).
    pub ready: Option<ReadyTable>,
    /// A text in the output; the time until it appears is recorded as well as the start time.
    pub log_line: Option<String>,
    /// How long a start may take: `60s`.
    pub start_deadline: Option<Text>,
    /// How long it may take to stop after SIGTERM before it is killed: `3s`.
    pub stop_grace: Option<Text>,
    /// `own` (default): a private network, loopback only. `host`: the machine's.
    pub network: Option<Text>,
    /// Who it runs as, `uid` or `uid:gid`; default: 64999, which owns nothing; without root the
    /// caller; of an image its own user.
    pub user: Option<Text>,
}

/// Files that a program that ends must leave behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExpectTable {
    /// A text that a line of its output contains: `BUILD SUCCESS`.
    pub output: Option<String>,
    /// A file that is there at its end and not empty, relative to the working directory.
    pub file: Option<PathBuf>,
}

/// When the application, or a dependency, is ready: exactly one of `http`, `tcp`, `grpc`, `log`,
/// `command`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReadyTable {
    /// Path that answers with a status below 400.
    pub http: Option<Text>,
    /// A port that accepts connections.
    pub tcp: Option<u16>,
    /// A port at which `grpc.health.v1` says that the server is SERVING.
    pub grpc: Option<u16>,
    /// A text in a line of its output.
    pub log: Option<String>,
    /// A command that runs again and again until it ends with 0: `["pg_isready"]`. An engine runs it in
    /// the container of an image; of a program it runs in its network, outside of its limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Port for `http`; default: the port of the load's URL. A dependency has no default.
    pub port: Option<u16>,
}

/// A database, a broker or another service: a program that runs next to the application for the
/// length of a trial, in its network, with its own cgroup and files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DependencyTable {
    /// Its name in results: letters, digits and `-`.
    pub name: Text,
    /// Program and arguments; it stays in the foreground. With `image` what replaces the image's own
    /// command, behind its entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// An image that an engine starts, in place of a program: `postgres:17`.
    pub image: Option<Text>,
    /// A file with answers, relative to the experiment file: loadline itself answers in its place, and
    /// nothing is started. Such a file may also stand here, as `[[dependency.answer]]`.
    pub stub: Option<Text>,
    /// What a stub answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<AnswerTable>,
    /// Which engine starts the image: `podman` or `docker`; default: the application's, else the
    /// engine that has the image.
    pub engine: Option<Text>,
    /// Files and directories, relative to the experiment file, that the image sees and cannot write:
    /// `["schema.sql:/docker-entrypoint-initdb.d/schema.sql"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Text>,
    /// When it is ready; the application starts after that.
    pub ready: Option<ReadyTable>,
    /// A command that runs when it is ready, in its environment and network (for an image in one
    /// more container): tables, test data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seed: Vec<String>,
    /// How long it lives: `trial`, the default, is a fresh instance for each trial; with `result`
    /// all trials of a result share an instance, seeded once.
    pub scope: Option<Text>,
    /// With `scope = "result"` a command that runs between two trials, as the seed does, and takes
    /// away what the trial before left: `["redis-cli", "flushall"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
    /// Working directory, relative to the experiment file; default: the application's.
    pub directory: Option<PathBuf>,
    /// Environment variables, with references as the application's; a value that a name such as
    /// `PASSWORD` makes a credential must be one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How long its start may take, and its seed again: `60s`.
    pub start_deadline: Option<Text>,
    /// Who it runs as, `uid` or `uid:gid`, never root; default: as the application, an image as its
    /// own user.
    pub user: Option<Text>,
    /// Host directories that it sees as empty private ones, removed with the trial:
    /// `["/var/lib/redis"]`. Its `/tmp` always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<Text>,
    /// CPU limit: `1.5` or `250m`; default: none.
    pub cpu: Option<Text>,
    /// CPUs it may run on, which nothing else of the trial then gets; default: CPUs that the
    /// application's quota leaves, else the load generator's.
    pub cpuset: Option<Text>,
    /// Memory limit: `512Mi`; default: none.
    pub memory: Option<Text>,
    /// Size of its /dev/shm: `256Mi`; default 64Mi.
    pub shm: Option<Text>,
    /// The port on which the application reaches it; needed of a stub, and with toxics where `ready`
    /// names none.
    pub port: Option<ValueWithOrigin<u16>>,
    /// Faults on its connection; with at least one, loadline's proxy sits in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toxic: Vec<ToxicTable>,
}

/// Limits on the application's cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitsTable {
    /// How many instances run at once, each with these limits and in its own network; they share
    /// the load: 1 (default).
    pub instances: Option<ValueWithOrigin<u32>>,
    /// CPU limit: `1.5` or `250m`; `auto` lets `size` choose it, as it does without this key; `none`
    /// leaves the CPU unlimited.
    pub cpu: Option<Text>,
    /// CFS period: `100ms` (default).
    pub cpu_period: Option<Text>,
    /// CPU limit until the application is ready, above `cpu`: `2`; `auto` lets `size` choose it.
    pub start_cpu: Option<Text>,
    /// Relative weight, 1024 is the default weight (v1 cpu.shares).
    pub cpu_shares: Option<ValueWithOrigin<u64>>,
    /// CPUs it may run on: `0` or `0-1`; `0;1` is one list for each of two instances.
    pub cpuset: Option<Text>,
    /// Memory limit: `512Mi`.
    pub memory: Option<Text>,
    /// Largest number of processes and threads; default 4096.
    pub pids: Option<ValueWithOrigin<u64>>,
    /// Size of /dev/shm, as the engines' `--shm-size`: `256Mi`; default 64Mi. What lies there counts
    /// towards the memory limit.
    pub shm: Option<Text>,
}

/// The training run of a start-up cache: the application without limits, ready, some requests, a
/// clean stop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CacheTable {
    /// The requests; default: the requests of the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warm: Vec<LoadTarget>,
    /// JVM options of the training run only: `-Dspring.context.exit=onRefresh` ends a Spring
    /// application before it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvm: Vec<String>,
}

/// Order and repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunTable {
    /// Trials of each configuration; default 1.
    pub repeats: Option<ValueWithOrigin<u32>>,
    /// Seed of the order of trials and of the statistics; default 1.
    pub seed: Option<u64>,
    /// Judge trials although other programs disturbed them; each disturbed trial has a warning. For
    /// trying things out on a busy machine; default false.
    pub accept_noise: Option<bool>,
    /// How often the CPU counters of the application's cgroup are read: `period` (default), once
    /// in each CFS period, or a time from `1ms`, which places throttling more exactly and costs
    /// about 4 % of a CPU outside the application's cgroup.
    pub samples: Option<Text>,
}

/// The search for the smallest memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SearchTable {
    /// Smallest memory to try: `64Mi` (default).
    pub min_memory: Option<Text>,
    /// Largest memory to try; default: `1Gi` or `heap` plus `512Mi`, doubled while it fails, up to 4/5
    /// of the machine's memory.
    pub max_memory: Option<Text>,
    /// Which JVM the answer is for: `start` (default), fresh starts judged after the given warm-up,
    /// as after a deployment; `steady`, a warm JVM: the warm-up is lengthened, up to 2 minutes,
    /// while requests still get cheaper when they are judged.
    pub question: Option<Text>,
    /// Soak the answer for so long, two cycles of the load: `30m`.
    pub soak: Option<Text>,
    /// CPUs of the host that the answer is to run on, if it differs from this one: loadline reports
    /// what the JVM chooses there, and emits the options that keep it as measured.
    pub node: Option<ValueWithOrigin<u32>>,
    /// Sizes are multiples of this: `4Mi` (default).
    pub step: Option<Text>,
    /// Passes in a row that confirm a size, after the search's own: 2 (default).
    pub confirm: Option<ValueWithOrigin<u32>>,
    /// Margin on top of the confirmed size, where no limit can be lowered under a running trial and
    /// sizes are tried one by one: `16%` (default).
    pub margin: Option<Text>,
    /// Fresh starts that prove a size when none misses. Default: 3, and more while they are near a
    /// bound; 20 if sizes are tried one by one; 5 with prices. A given number counts: at least 19
    /// of 20 must keep the SLO; a start that misses asks for more or moves the size up.
    pub prove: Option<u32>,
    /// The Java heap: `auto` (default) chooses one from the live set and ships it as -Xms and -Xmx;
    /// `keep` leaves it to the application's own options; `grow` ships -Xmx alone, so that memory is
    /// given back; or a size: `96m`.
    pub heap: Option<Text>,
    /// How the pod gets its CPU: `limit` (default), with a request of the same size; `request` gives no
    /// limit, and every trial runs next to a neighbour that takes all other CPU; `both` searches a
    /// request next to that neighbour, and a limit that is no smaller, unless `cpu` gives it.
    pub cpu_policy: Option<Text>,
    /// Search the cheapest deployment at these prices, not the smallest memory: `fargate`,
    /// `fargate-arm`, `fargate-eks`, `gke-autopilot`, `gke-autopilot-spot`,
    /// `azure-container-apps`, `own-nodes`, `own-nodes-spot`.
    pub prices: Option<Text>,
    /// Region of the price; default: the first of the list.
    pub region: Option<Text>,
    /// Your own price list (a CSV file with the built-in list's columns), which replaces it.
    pub price_list: Option<Text>,
    /// Sizes to choose from, CPUs and memory, instead of the offer's: `1/2Gi`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Text>,
    /// Extra on top of the rate: `0%` (default).
    pub headroom: Option<Text>,
    /// Fewest and most replicas: `2..16` (default).
    pub replicas: Option<Text>,
    /// Compare collectors, flags and heaps at the size found, with this number of trial pairs each,
    /// at least 6; default: none.
    pub compare: Option<ValueWithOrigin<u32>>,
    /// Replicas that may be lost while the rest still carries the rate: 0 (default).
    pub spare: Option<u32>,
    /// Longest time of all trials, the proof included: `20m`; default: none.
    pub budget: Option<Text>,
}

/// One thing that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FactorTable {
    /// The name. `cpu`, `memory`, `instances`, `rate`, `cpu-period`, `cpu-shares`, `cpuset`, `jdk`
    /// and `cache` take plain levels; any other name takes levels that are tables.
    pub name: Text,
    /// Its levels, in order.
    pub levels: Vec<ValueWithOrigin<LevelEntry>>,
    /// Walk the levels in order and stop after two that fail in a row.
    pub descend: Option<bool>,
}
