//! A dependency of an application: a database, a broker, another service.
//!
//! Owns the type only. A host starts the dependencies of an order before its application, in the
//! application's network, each with its own limits and files, and ends them with the trial.

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
            other => Err(format!("`{other}` is not a scope of a dependency")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DependencySpec {
    /// Its name: letters, digits and `-`; names its cgroup and directory.
    pub name: String,
    pub app: AppSpec,
    pub readiness: Readiness,
    pub start_deadline: Duration,
    /// Runs once when it is ready, before the application starts; program and arguments, empty is
    /// nothing. Environment and directory, or image, are the dependency's.
    pub seed: Vec<String>,
    #[serde(default)]
    pub scope: DependencyScope,
    /// For a shared dependency: runs between two trials, like the seed; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<String>,
    pub account: Account,
    /// Host directories that it sees as empty private ones.
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
    /// Toxics on its connection; `None` for a direct connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<ProxiedLink>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxiedLink {
    /// Where it listens, on the loopback: the proxy listens there in the application's network.
    pub port: u16,
    /// The toxics, in the order in which bytes meet them.
    pub toxics: Vec<Toxic>,
    pub seed: u64,
}

/// A stub, which loadline runs instead of a dependency: it starts after all dependencies and needs
/// none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StubSpec {
    pub name: String,
    pub port: u16,
    pub answers: Vec<StubAnswer>,
    /// The toxics on its connection, in the order in which bytes meet them.
    pub toxics: Vec<Toxic>,
    pub seed: u64,
}

impl DependencySpec {
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

/// The dependencies shared by the trials of a result, for one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SharedDependencies {
    /// The process that holds them. What it uses is loadline's own.
    pub keeper: u32,
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
