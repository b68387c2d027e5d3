//! What a trial ran: its limits, options and environment.
//!
//! Owns the stored form of a configuration and of its JVM options.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuSets, StartCache};
use crate::wire;

/// What a trial ran: one level for each factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Short text that names it in tables; unique within an experiment.
    pub label: String,
    /// How many of it run at once, each with these limits; they share the load.
    #[serde(default = "one_instance", skip_serializing_if = "is_one")]
    pub instances: u32,
    /// The CPU limit; `None` is no limit.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt", default)]
    pub cpu: Option<Cpus>,
    /// CPU that is promised, at most `cpu` (a Kubernetes request): its weight next to a neighbour that
    /// takes all other CPU. `None` is the limit, or nothing.
    #[serde(rename = "cpu_request_millicpus", with = "wire::cpus_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_request: Option<Cpus>,
    /// The CFS period; 100 ms unless the experiment says otherwise.
    #[serde(rename = "cpu_period_ns", with = "wire::nanos")]
    pub cpu_period: Duration,
    /// Quota that idle periods may save up; `None` is none.
    #[serde(rename = "cpu_burst_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_burst: Option<Duration>,
    /// The CPU limit until the application is ready, above `cpu`; `None` is `cpu` from the start.
    #[serde(rename = "start_cpu_millicpus", with = "wire::cpus_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_cpu: Option<Cpus>,
    /// CPUs the application may run on (`0`, `0-1`; `0;1`: one list an instance); `None` is what
    /// the machine's plan gives it.
    #[serde(default)]
    pub cpuset: Option<CpuSets>,
    /// v1 `cpu.shares` (1024 is the default weight); converted where the kernel has weights.
    #[serde(default)]
    pub cpu_shares: Option<u64>,
    /// Busy threads in a cgroup next to the application's, with the default weight; `None` for no
    /// neighbour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour_threads: Option<u32>,
    /// The memory limit; `None` is no limit.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// Largest number of tasks (processes and threads).
    #[serde(default)]
    pub pids: Option<u64>,
    /// Size of `/dev/shm`; `None` is the 64 MiB that container engines give.
    #[serde(rename = "shm_bytes", with = "wire::bytes_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm: Option<Bytes>,
    /// Name of the JDK it ran on, as `loadline doctor` lists it; `None` is the command as given.
    #[serde(default)]
    pub jdk: Option<String>,
    /// JVM options added by the configuration, in order.
    #[serde(default)]
    pub jvm_options: Vec<JvmOption>,
    /// The environment variable that takes them, of a run that starts its JVMs itself; `None` is straight
    /// behind `java`, else `JAVA_TOOL_OPTIONS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options_variable: Option<String>,
    /// Arguments appended to the command by the configuration.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables added by the configuration.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Requests a second offered to all instances together; `None` is the load of the experiment.
    #[serde(rename = "rate_per_second", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The warm-up, if a search for a warm JVM made it longer; `None` for the experiment's.
    #[serde(rename = "warm_up_ns", with = "wire::nanos_opt", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Duration>,
    /// The start-up cache it runs with, built before its first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<StartCache>,
    /// What runs in place of the experiment's application; `None` is that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<LevelApplication>,
}

impl Configuration {
    /// The CPU that it is sure to get, and that is paid for: what it requests, or its limit.
    pub fn sure_cpu(&self) -> Option<Cpus> {
        self.cpu_request.or(self.cpu)
    }

    /// Makes a JVM count the CPUs that it has later: what it derives at its start stays when the
    /// limit changes. An option of the user wins.
    pub fn pin_cpu_count(&mut self, cpu: Cpus) {
        let pinned = "-XX:ActiveProcessorCount=";
        let names_count = |option: &JvmOption| option.text.starts_with(pinned);
        if !self.jvm_options.iter().any(names_count) {
            self.jvm_options.push(JvmOption {
                text: format!("{pinned}{}", cpu.ceil().max(1)),
                provenance: ValueProvenance::Calculated,
            });
        }
    }

    /// The same with more CPU until it is ready.
    #[must_use]
    pub fn with_start_cpu(&self, start: Cpus) -> Self {
        let mut boosted = self.clone();
        boosted.start_cpu = Some(start);
        if let Some(cpu) = self.cpu {
            boosted.pin_cpu_count(cpu);
        }
        boosted
    }

    pub fn heap_option(&self) -> Option<&str> {
        let texts = self.jvm_options.iter().map(|option| option.text.as_str());
        let is_heap =
            |text: &&str| text.starts_with("-Xmx") || text.starts_with("-XX:MaxHeapSize=");
        texts.rev().find(is_heap)
    }
}

/// An application that a level puts in place of the experiment's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LevelApplication {
    /// Program and arguments; of an image its arguments, none for its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The image that is started in place of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// `podman` or `docker`; `None` is whichever has the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
}

/// Default length of a CFS period. Source: the kernel's Documentation/scheduler/sched-bwc.rst,
/// "cpu.cfs_period_us".
pub const CPU_PERIOD: Duration = Duration::from_millis(100);

impl Default for Configuration {
    /// One instance without limits, with the command's own options.
    fn default() -> Self {
        Self {
            label: String::new(),
            instances: 1,
            cpu: None,
            cpu_request: None,
            cpu_period: CPU_PERIOD,
            cpu_burst: None,
            start_cpu: None,
            cpuset: None,
            cpu_shares: None,
            neighbour_threads: None,
            memory: None,
            pids: None,
            shm: None,
            jdk: None,
            jvm_options: Vec::new(),
            options_variable: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            rate: None,
            warm_up: None,
            cache: None,
            application: None,
        }
    }
}

fn one_instance() -> u32 {
    1
}

fn is_one(instances: &u32) -> bool {
    *instances == 1
}

/// A JVM option and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JvmOption {
    /// The option as the JVM reads it, such as `-Xmx64m`.
    pub text: String,
    /// Who chose it.
    pub provenance: ValueProvenance,
}

/// Who chose a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueProvenance {
    /// The JVM's default.
    Default,
    /// From a formula.
    Calculated,
    /// loadline, before any trial: a consumer's JVM ends when it runs out of memory.
    Loadline,
    /// From trials; the recommendation names them.
    Measured,
    /// The user set it.
    User,
}
