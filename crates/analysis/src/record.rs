//! The record of a trial: every setting and every measurement. The only derived value is the
//! judgement, as it was given; everything else is derived again where it is shown.
//!
//! Owns the stored form (JSON, schema [`SCHEMA`]; field names carry the units). Times named `_ns`
//! are durations, or CLOCK_MONOTONIC where the field says it. An `Option` that is `None` means that
//! this kernel, JVM or phase gave no such number; it never means zero.

mod cgroup;
mod configuration;
mod cpus;
mod dependency;
mod gc;
mod instance;
mod load;
mod machine;
mod memory;
mod metric;
mod phase;
mod proxy;
mod reason;
mod run;
mod soak;
mod start;
mod version;

use std::fmt;
use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pauses::PauseEvidence;
use crate::slo::{Objective, Slo, print_peak_objective};
use crate::wire;

pub use cgroup::CgroupEvidence;
pub use configuration::{CPU_PERIOD, Configuration, JvmOption, LevelApplication, ValueProvenance};
pub use cpus::CpuSets;
pub use dependency::{CpuNeighbours, DependencyEvidence, SharedEvidence, StubEvidence};
pub use gc::{GcEvidence, HeapAfter};
pub use instance::{ExitEvidence, InstanceEvidence};
pub use load::{
    DriveEvidence, DueEvidence, GeneratorEvidence, LoadCommandEvidence, LoadEvidence, LoadFrom,
    ObservedModel, ReportedEvidence, ReportedFigures, ReportedScope, RequestEvidence,
};
pub use machine::{
    ClusterDescription, EnforcedLimits, ImageIdentity, MachineDescription, TrialNode,
};
pub use memory::{
    MemoryParts, STORM_PRESSURE, STORM_REFAULTS, SqueezeEnd, SqueezeEvidence, SqueezeStep,
};
pub use metric::MetricEvidence;
pub use phase::{EarlyEnd, PhaseSpan, TrialPhase};
pub use proxy::{LinkEvidence, LinkSecond, OutageEvidence, ProxyEvidence};
pub use reason::VerdictReason;
pub use run::{JvmProcess, RunEvidence, RunReference};
pub use soak::{MOST_POINTS, SoakEvidence, SoakLook, SoakPoint};
pub use start::{CacheEvidence, StartCache, StartEvidence};
pub use version::{ApplicationVersion, Commit, LONGEST_VERSION, version_name};

pub const SCHEMA: u32 = 1;

/// Largest result in memory: a larger one was made to fill it.
pub const MOST_MEMORY: u64 = 2 << 30;

/// About what the records in a JSON text take in memory, in bytes: a short text can hold many.
pub fn memory_of_json(json: &[u8]) -> u64 {
    const OBJECT: u64 = 400;
    const VALUE: u64 = 32;
    let count = |wanted: u8| json.iter().filter(|byte| **byte == wanted).count() as u64;
    json.len() as u64 + count(b'{') * OBJECT + count(b',') * VALUE
}

/// Why a trial ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialPurpose {
    /// A cell of a matrix or sweep.
    Matrix,
    /// A step of a search.
    Search,
    /// A confirmation of a size that a search found.
    Confirm,
    /// A fresh start that proves the recommendation.
    Prove,
    /// The next cheaper neighbour, to see what it breaks.
    Neighbour,
    /// One of a pair: options against each other in turn.
    Compare,
    /// One long start that shows what grows.
    Soak,
    /// The first start of a search, with room: whether it works at all, and where its memory is.
    Room,
    /// A start with the options that ship, aged and squeezed: where the memory wall is.
    Squeeze,
}

/// What a trial says about its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "class", content = "cause")]
pub enum TrialVerdict {
    /// It started, carried the load and kept the SLO.
    Pass,
    /// It carried the load but broke the SLO.
    SloMiss,
    /// The application did not survive; evidence against the configuration.
    AppKo(AppKo),
    /// The measurement is not valid; no evidence at all.
    Invalid(InvalidReason),
}

impl TrialVerdict {
    /// Whether a search may learn from it: PASS, SLO_MISS and APP_KO only.
    pub fn is_evidence(self) -> bool {
        matches!(self, Self::Pass | Self::SloMiss | Self::AppKo(_))
    }
}

impl fmt::Display for TrialVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.pad("PASS"),
            Self::SloMiss => f.pad("SLO_MISS"),
            Self::AppKo(cause) => f.pad(&format!("APP_KO {}", cause.ko_name())),
            Self::Invalid(cause) => f.pad(&format!("INVALID {}", cause.reason_name())),
        }
    }
}

/// How an application failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppKo {
    /// No good response before the deadline.
    NeverReady,
    /// The kernel killed it at its memory limit.
    CgroupOom,
    /// The JVM ran out of heap, metaspace, direct memory or threads.
    JavaOom,
    /// It ended by a signal or with an exit code before it was stopped.
    Crash,
    /// It stopped answering and did not come back.
    Hang,
    /// The JVM refused its options.
    BadFlags,
    /// It filled the disk.
    Disk,
}

impl AppKo {
    pub fn ko_name(self) -> &'static str {
        match self {
            Self::NeverReady => "never_ready",
            Self::CgroupOom => "cgroup_oom",
            Self::JavaOom => "java_oom",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::BadFlags => "bad_flags",
            Self::Disk => "disk",
        }
    }
}

/// Why a measurement is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvalidReason {
    /// Something else used the machine.
    Noise,
    /// The load generator could not keep its own schedule.
    GeneratorSaturated,
    /// The proxy before the dependencies could not keep its own schedule.
    ProxySaturated,
    /// The generator ran out of local ports or descriptors.
    PortExhausted,
    /// A clock jumped or the machine was suspended.
    ClockJump,
    /// A limit around loadline itself throttled the trial.
    OuterThrottle,
    /// The disk was full.
    DiskFull,
    /// What the application depends on was the bottleneck, ended, or never got ready.
    Dependency,
    /// The container runtime went away, or in a cluster the pod of the trial or of a generator.
    RuntimeLost,
    /// The load command ended early, sent nothing, or spoke what cannot be timed.
    LoadCommand,
    /// A metric never appeared, or its address gave something else.
    Metrics,
    /// The JVM in an image did not run with the options of the configuration.
    OtherOptions,
    /// A limit differed from the ordered one, or changed during the trial: a webhook, a policy, a
    /// resize.
    OtherLimits,
    /// It ran on a node that differs from the result's node: kernel, CPU model, CPUs or cgroups.
    OtherNode,
    /// The time given to the search was over before it ran. Never stored.
    OutOfTime,
    /// loadline itself failed.
    ToolError,
}

impl InvalidReason {
    /// Whether a search goes on without such a trial: nothing is wrong but the moment.
    pub fn is_passed_over(self) -> bool {
        self.is_disturbance() || self == Self::OutOfTime
    }

    /// Whether a quieter machine is the remedy.
    pub fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::Noise | Self::GeneratorSaturated | Self::ProxySaturated | Self::OuterThrottle
        )
    }

    pub fn reason_name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::GeneratorSaturated => "generator_saturated",
            Self::ProxySaturated => "proxy_saturated",
            Self::PortExhausted => "port_exhausted",
            Self::ClockJump => "clock_jump",
            Self::OuterThrottle => "outer_throttle",
            Self::DiskFull => "disk_full",
            Self::Dependency => "dependency",
            Self::RuntimeLost => "runtime_lost",
            Self::LoadCommand => "load_command",
            Self::Metrics => "metrics",
            Self::OtherOptions => "other_options",
            Self::OtherLimits => "other_limits",
            Self::OtherNode => "other_node",
            Self::OutOfTime => "out_of_time",
            Self::ToolError => "tool_error",
        }
    }
}

/// The record of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// [`SCHEMA`] at the time of writing.
    pub schema: u32,
    /// UUIDv7 of the trial.
    pub id: String,
    /// UUIDv7 of the result (one run of an experiment) it belongs to.
    pub result: String,
    /// Why it ran.
    pub purpose: TrialPurpose,
    /// What it ran.
    pub configuration: Configuration,
    /// Ordinal among the trials of the same configuration and purpose, from 1.
    pub repeat: u32,
    /// Wall clock at the start, milliseconds since 1970-01-01 UTC; for people only.
    pub started_at_unix_ms: u64,
    /// The SLO it was judged by.
    pub slo: Slo,
    /// The judgement.
    pub verdict: TrialVerdict,
    /// Why, in words.
    pub reason: VerdictReason,
    /// Each objective with its measured value; empty when nothing was measured.
    pub objectives: Vec<ObjectiveResult>,
    /// The measurements.
    pub evidence: Evidence,
}

impl TrialRecord {
    /// Whether it stands for a trial that never ran, because the time of its search was over.
    pub fn is_left_out(&self) -> bool {
        self.verdict == TrialVerdict::Invalid(InvalidReason::OutOfTime)
    }

    pub fn total_length(&self) -> Duration {
        self.evidence.length_of_phases()
    }
}

/// One objective and its measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// The request of the mix that it is about; `None` for all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whether it is about the burst behind the judged load.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_peak: bool,
    /// The objective.
    pub objective: Objective,
    /// The measured value: seconds for latencies and start, a fraction for errors. `None` when
    /// the quantile lies in requests that failed, or nothing was measured.
    pub measured: Option<f64>,
    /// Whether it was met.
    pub met: bool,
}

impl ObjectiveResult {
    pub fn objective_text(&self) -> String {
        match &self.request {
            Some(request) => format!("{request}: {}", self.objective),
            None if self.is_peak => print_peak_objective(&self.objective),
            None => self.objective.to_string(),
        }
    }
}

/// Everything a backend measured in one trial. The judgement is a pure function of the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct Evidence {
    /// The phases that took place.
    pub phases: Vec<PhaseSpan>,
    /// How the application became ready, or did not.
    pub start: StartEvidence,
    /// The start-up cache it ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheEvidence>,
    /// Load phases in order: warm-up, then measure. Empty when the application never got ready.
    pub load: Vec<LoadEvidence>,
    /// Counters of the application's cgroup over the whole trial and over the measure phase.
    pub cgroup: CgroupEvidence,
    /// What the JVM's own log says; `None` where the application is no JVM or wrote no log.
    pub gc: Option<GcEvidence>,
    /// When the application stood still; `None` where nothing ran.
    #[serde(default)]
    pub pauses: Option<PauseEvidence>,
    /// How the application ended.
    pub exit: ExitEvidence,
    /// Evidence of a run; `None` for an application that loadline stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunEvidence>,
    /// What it had written when the disk ran short, and it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskEvidence>,
    /// Each instance separately, if the trial ran several; the other fields then hold the totals
    /// ([`crate::together`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceEvidence>,
    /// How long the command took that restored the backlog before the start; `None` without one.
    #[serde(rename = "backlog_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Duration>,
    /// The command that drove a consumer; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveEvidence>,
    /// Exit code of the command that made the load or the work, if the SLO judges it; `None` if
    /// loadline ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_exit: Option<i32>,
    /// Metrics that the SLO may name, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricEvidence>,
    /// What it depended on, in the order in which they started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<DependencyEvidence>,
    /// The proxy in front of the dependencies, which also answers for stubs; `None` without toxics
    /// and stubs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyEvidence>,
    /// When a dependency was slow or away on a schedule, in the order of the begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageEvidence>,
    /// The node that it ran on; `None` is the machine of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<TrialNode>,
    /// Whether its pod was made as the application ships, without the PID namespace that the
    /// containers of other trials share: what needs that namespace is absent then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub as_shipped: bool,
    /// Other activity on the machine in the measure phase, or in the last phase if the trial ended
    /// before it.
    pub noise: NoiseEvidence,
    /// The same until it was ready; `None` in older records and where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_noise: Option<NoiseEvidence>,
    /// One entry a second, from start to stop; of a soak the first hour.
    pub seconds: Vec<SecondEvidence>,
    /// What grew; of soaks only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<SoakEvidence>,
    /// Its memory by part right after the judged load; `None` if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryParts>,
    /// What lowering its limit under load showed; of squeezes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squeeze: Option<SqueezeEvidence>,
    /// The last lines the application wrote, control characters removed.
    pub last_output: Vec<String>,
    /// Thread dump lines when it hung or never got ready.
    pub thread_dump: Vec<String>,
    /// Remarks that do not change the verdict.
    pub warnings: Vec<String>,
    /// That it was ended before its time, and why; `None` is a trial of full length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EarlyEnd>,
    /// A failure of the measurement itself; it makes the trial INVALID.
    pub failure: Option<MeasurementFailure>,
}

impl Evidence {
    /// Of a trial that could not be measured.
    pub fn failed(failure: MeasurementFailure) -> Self {
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    /// Up to when the application is judged, CLOCK_MONOTONIC: where its memory is studied behind the
    /// judged load, that is its end, and whatever happens later is no fault of the application.
    pub fn judged_until(&self) -> u64 {
        let span = |phase| self.span_of(phase);
        let is_studied = span(TrialPhase::Age).or(span(TrialPhase::Squeeze));
        let judged = span(TrialPhase::Peak).or(span(TrialPhase::Measure));
        let judged = judged.filter(|_| is_studied.is_some());
        judged.map_or(u64::MAX, |span| span.end)
    }

    pub fn span_of(&self, phase: TrialPhase) -> Option<&PhaseSpan> {
        self.phases.iter().find(|span| span.phase == phase)
    }

    fn length_of_phases(&self) -> Duration {
        self.length_until(u64::MAX)
    }

    /// The time that counters over a whole trial cover: where its memory is studied behind the judged load,
    /// they end with that load.
    pub fn counted_length(&self) -> Duration {
        self.length_until(self.judged_until())
    }

    fn length_until(&self, until_ns: u64) -> Duration {
        let start = self.phases.iter().map(|p| p.start).min().unwrap_or(0);
        let end = self.phases.iter().map(|p| p.end.min(until_ns)).max();
        Duration::from_nanos(end.unwrap_or(0).saturating_sub(start))
    }

    pub fn load_in(&self, phase: TrialPhase) -> impl Iterator<Item = &LoadEvidence> {
        self.load.iter().filter(move |load| load.phase == phase)
    }

    /// Whether the kernel killed the application because its limit was lowered on purpose.
    pub fn is_squeezed_to_death(&self) -> bool {
        let squeeze = self.squeeze.as_ref();
        squeeze.is_some_and(|squeeze| squeeze.end == SqueezeEnd::Killed)
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// A disk that an application filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskEvidence {
    /// What its files had taken.
    #[serde(rename = "written_bytes", with = "wire::bytes")]
    pub written: Bytes,
    /// Free space on the disk.
    #[serde(rename = "left_bytes", with = "wire::bytes")]
    pub left: Bytes,
}

/// A failure of the measurement, found by the backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementFailure {
    /// Which.
    pub cause: InvalidReason,
    /// What happened, with the path, errno or number.
    pub detail: String,
}

impl MeasurementFailure {
    pub fn new(cause: InvalidReason, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: detail.into(),
        }
    }
}

/// What else happened on the machine, over the load phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct NoiseEvidence {
    /// Share of CPU time the hypervisor took, in [0, 1].
    pub steal: Option<f64>,
    /// CPU used outside loadline's trial, as a share of the machine's CPUs, in [0, 1].
    pub foreign_cpu: Option<f64>,
    /// PSI "some" of the machine's CPU over the window, in [0, 1].
    pub host_cpu_pressure: Option<f64>,
    /// Wait of the application's cgroup for a CPU that was not its own throttling, in [0, 1].
    pub contention: Option<f64>,
    /// Pages swapped in.
    pub swap_in_pages: Option<u64>,
    /// Largest disagreement of the clocks over the window.
    #[serde(rename = "clock_jump_ns", with = "wire::nanos_opt", default)]
    pub clock_jump: Option<Duration>,
    /// Throttling of a cgroup around loadline.
    #[serde(rename = "outer_throttled_ns", with = "wire::nanos_opt", default)]
    pub outer_throttled: Option<Duration>,
}

/// One second of a trial. Counters are growth within the second; gauges are at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct SecondEvidence {
    /// Its end, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Requests scheduled in it; `None` outside the load phases, as the next five.
    pub offered: Option<u64>,
    /// Good responses in it.
    pub achieved: Option<u64>,
    /// Failed requests in it.
    pub errors: Option<u64>,
    /// Median latency of the requests that ended in it, failed ones infinitely slow if a generator
    /// measured it; `None` is infinite, or no request ended.
    #[serde(rename = "p50_ns", with = "wire::nanos_opt", default)]
    pub p50: Option<Duration>,
    /// 99th percentile, the same.
    #[serde(rename = "p99_ns", with = "wire::nanos_opt", default)]
    pub p99: Option<Duration>,
    /// The largest of the good ones.
    #[serde(rename = "max_ns", with = "wire::nanos_opt", default)]
    pub max: Option<Duration>,
    /// CPU time of the application's cgroup.
    #[serde(rename = "cpu_ns", with = "wire::nanos_opt", default)]
    pub cpu: Option<Duration>,
    /// Throttled periods.
    pub nr_throttled: Option<u64>,
    /// Throttled time, a sum over CPUs.
    #[serde(rename = "throttled_ns", with = "wire::nanos_opt", default)]
    pub throttled: Option<Duration>,
    /// Memory usage, page cache included.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// Working set.
    #[serde(rename = "working_set_bytes", with = "wire::bytes_opt", default)]
    pub working_set: Option<Bytes>,
    /// Anonymous memory.
    #[serde(rename = "anon_bytes", with = "wire::bytes_opt", default)]
    pub anon: Option<Bytes>,
    /// Stop-the-world time of the collector that ended in it.
    #[serde(rename = "gc_pause_ns", with = "wire::nanos_opt", default)]
    pub gc_pause: Option<Duration>,
    /// Threads of its processes, looked at once a second of the measured load around an outage; `None`
    /// elsewhere, as the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Their sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u64>,
    /// Heap that is committed.
    #[serde(rename = "heap_committed_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_committed: Option<Bytes>,
    /// The least heap in use after a collection in it; `None` without collection.
    #[serde(rename = "heap_after_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_after: Option<Bytes>,
}
