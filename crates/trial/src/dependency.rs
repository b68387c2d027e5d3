//! What an application needs beside it: a database, a broker, another service.
//!
//! Owns the type only. A host starts the dependencies of an order before its application, in the
//! application's network, each with limits and files of its own, and ends them with the trial.

use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::CpuSets;
use loadline_analysis::wire;
use loadline_proxy::Toxic;
use loadline_proxy::stub::Answer;
use loadline_sizing::{Bytes, Cpus};
use serde::{Deserialize, Serialize};

use crate::{Account, App, Image, Readiness};

/// One dependency, fresh for the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its name: letters, digits and `-`; names its cgroup and directory.
    pub name: String,
    /// What runs.
    pub app: App,
    /// When it counts as ready.
    pub readiness: Readiness,
    /// How long its start, and then its seed, may take.
    pub start_deadline: Duration,
    /// Runs once when it is ready, before the application starts; program and arguments, empty is
    /// nothing. Environment and directory, or image, are the dependency's.
    pub seed: Vec<String>,
    /// Who it runs as.
    pub account: Account,
    /// Directories of the host that it sees as empty ones of its own.
    pub directories: Vec<PathBuf>,
    /// Its CPU limit; `None` is none.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt")]
    pub cpu: Option<Cpus>,
    /// CPUs it may run on; `None` leaves them to the host.
    pub cpuset: Option<CpuSets>,
    /// Its memory limit; `None` is none.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt")]
    pub memory: Option<Bytes>,
    /// What is wrong on the way to it; `None` is that nothing stands in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxied: Option<Proxied>,
}

/// A dependency that the application reaches through the proxy only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proxied {
    /// Where it listens, on the loopback: the proxy listens there in the application's network.
    pub port: u16,
    /// What is wrong, in the order in which bytes meet it.
    pub toxics: Vec<Toxic>,
    /// Of all that is drawn.
    pub seed: u64,
}

/// A dependency that loadline stands in for: it starts after all others and needs nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stub {
    /// Its name.
    pub name: String,
    /// Where it listens, on the loopback.
    pub port: u16,
    /// What it answers.
    pub answers: Vec<Answer>,
    /// What is wrong on the way to it, in the order in which bytes meet it.
    pub toxics: Vec<Toxic>,
    /// Of all that is drawn.
    pub seed: u64,
}

impl Dependency {
    /// Its seed as a program of its own.
    pub fn seeding(&self) -> App {
        match self.app.clone() {
            App::Command { env, directory, .. } => App::Command {
                command: self.seed.clone(),
                env,
                directory,
            },
            App::Image(image) => App::Image(Box::new(Image {
                command: self.seed.clone(),
                entrypoint: self.seed.first().cloned(),
                args: self.seed.iter().skip(1).cloned().collect(),
                ..*image
            })),
        }
    }
}
