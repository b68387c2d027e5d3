//! What an application needs beside it: a database, a broker, another service.
//!
//! Owns the type only. A host starts the dependencies of an order before its application, in the
//! application's network, each with limits and files of its own, and ends them with the trial.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::record::{CpuSets, DependencyEvidence};
use loadline_analysis::wire;
use loadline_proxy::Toxic;
use loadline_proxy::stub::StubAnswer;
use loadline_sizing::{Bytes, Cpus};
use serde::{Deserialize, Serialize};

use crate::{Account, AppSpec, EngineKind, ImageSpec, Readiness};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyScope {
    /// One trial: the next begins with a fresh one.
    #[default]
    Trial,
    Result,
}

impl FromStr for DependencyScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "trial" => Ok(Self::Trial),
            "result" => Ok(Self::Result),
            other => Err(format!("`{other}` is no scope of a dependency")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DependencySpec {
    /// Its name: letters, digits and `-`; names its cgroup and directory.
    pub name: String,
    pub app: AppSpec,
    pub readiness: Readiness,
    /// How long its start, and then its seed, may take.
    pub start_deadline: Duration,
    /// Runs once when it is ready, before the application starts; program and arguments, empty is
    /// nothing. Environment and directory, or image, are the dependency's.
    pub seed: Vec<String>,
    #[serde(default)]
    pub scope: DependencyScope,
    /// Of one that trials share: runs between two of them, as the seed does; empty is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
    pub account: Account,
    /// Directories of the host that it sees as empty ones of its own.
    pub directories: Vec<PathBuf>,
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt")]
    pub cpu: Option<Cpus>,
    /// CPUs it may run on; `None` leaves them to the host.
    pub cpuset: Option<CpuSets>,
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt")]
    pub memory: Option<Bytes>,
    /// Size of its `/dev/shm`; `None` is the 64 MiB that container engines give.
    #[serde(rename = "shm_bytes", with = "wire::bytes_opt", default)]
    pub shm: Option<Bytes>,
    /// What is wrong on the way to it; `None` is that nothing stands in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<ProxiedLink>,
}

/// A dependency that the application reaches through the proxy only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxiedLink {
    /// Where it listens, on the loopback: the proxy listens there in the application's network.
    pub port: u16,
    /// What is wrong, in the order in which bytes meet it.
    pub toxics: Vec<Toxic>,
    pub seed: u64,
}

/// A dependency that loadline stands in for: it starts after all others and needs nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubSpec {
    pub name: String,
    /// Where it listens, on the loopback.
    pub port: u16,
    pub answers: Vec<StubAnswer>,
    /// What is wrong on the way to it, in the order in which bytes meet it.
    pub toxics: Vec<Toxic>,
    pub seed: u64,
}

impl DependencySpec {
    /// Its seed or reset as a program of its own.
    pub fn with_command(&self, command: &[String]) -> AppSpec {
        match self.app.clone() {
            AppSpec::Command { env, directory, .. } => AppSpec::Command {
                command: command.to_vec(),
                env,
                directory,
            },
            AppSpec::Image(image) => AppSpec::Image(Box::new(ImageSpec {
                command: command.to_vec(),
                entrypoint: command.first().cloned(),
                args: command.iter().skip(1).cloned().collect(),
                ..*image
            })),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkNamespace {
    pub path: PathBuf,
    /// Name of its container with the engine that made it: docker joins no other.
    pub container: Option<(EngineKind, String)>,
}

/// The dependencies that the trials of a result share, as one of them joins them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedDependencies {
    /// The process that holds them. What it uses is loadline's own.
    pub keeper: u32,
    /// Each, in the order in which they started.
    pub dependencies: Vec<SharedDependency>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedDependency {
    pub group: String,
    /// Its network; `None` is the machine's.
    pub network: Option<NetworkNamespace>,
    /// What its record says before anything of this trial is measured.
    pub evidence: DependencyEvidence,
}
