//! Where trials ran: the machine of a result, the node of a trial, the image that was started.
//!
//! Owns what of a machine makes trials comparable.

use std::num::NonZeroU32;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Version;
use crate::wire;

/// The machine a result was measured on: what a reader needs to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct Machine {
    /// Operating system and kernel release.
    pub kernel: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs that loadline may use.
    pub cpus: u32,
    /// Memory of the machine.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt", default)]
    pub memory: Option<Bytes>,
    /// `v1`, `v2` or `hybrid`.
    pub cgroup: String,
    /// The JDKs that were used, name and full version.
    pub jdks: Vec<String>,
    /// loadline's version.
    pub loadline: String,
    /// The image that was started, where the application is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The images of levels that put one in the application's place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub level_images: Vec<Image>,
    /// The cluster, where trials ran as pods; the machine is then the node that was looked at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Which version of the application was measured, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// A cluster of Kubernetes as a result has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// The context of the kubeconfig.
    pub context: String,
    /// Where its pods ran.
    pub namespace: String,
    /// The API server's version.
    pub version: String,
    /// The node that was looked at first.
    pub node: String,
    /// What starts its containers, as `containerd`.
    pub runtime: String,
    /// How many trials ran at once, at most.
    #[serde(default = "one")]
    pub slots: NonZeroU32,
    /// How many of them shared a node, at most.
    #[serde(default = "one")]
    pub share_nodes: NonZeroU32,
}

/// As clusters were used before they had slots.
fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// The node that a trial ran on, as the trial saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What started the containers, as `containerd`.
    pub runtime: String,
    /// Operating system and kernel release.
    pub kernel: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs that the application may use.
    pub cpus: u32,
    /// `v1`, `v2` or `hybrid`.
    pub cgroup: String,
}

impl Node {
    /// The part of a machine that a trial depends on.
    pub fn of(machine: &Machine, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            runtime: String::new(),
            kernel: machine.kernel.clone(),
            cpu_model: machine.cpu_model.clone(),
            cpus: machine.cpus,
            cgroup: machine.cgroup.clone(),
        }
    }

    /// Whether trials of both may be compared.
    pub fn is_like(&self, machine: &Machine) -> bool {
        let Self {
            kernel,
            cpu_model,
            cpus,
            cgroup,
            ..
        } = Self::of(machine, "");
        let own = (&self.kernel, &self.cpu_model, self.cpus, &self.cgroup);
        own == (&kernel, &cpu_model, cpus, &cgroup)
    }
}

/// An image as its engine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// `podman` or `docker`.
    pub engine: String,
    /// Its name as it was asked for.
    pub reference: String,
    /// Its id.
    pub id: String,
    /// Its name with its digest, where a registry or the engine gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Its own `JAVA_TOOL_OPTIONS`, with which the trials began theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_options: Option<String>,
    /// Its version, as its label `org.opencontainers.image.version` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it was built from, as its label `org.opencontainers.image.revision` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}
