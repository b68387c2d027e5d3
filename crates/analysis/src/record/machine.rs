//! Where trials ran: the machine of a result, the node of a trial, the image that was started.
//!
//! Owns what of a machine makes trials comparable.

use std::num::NonZeroU32;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ApplicationVersion;
use crate::wire;

/// The machine a result was measured on: what a reader needs to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct MachineDescription {
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
    /// The kernel's word for it, as `x86_64`; empty in older results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// The JDKs that were used, name and full version.
    pub jdks: Vec<String>,
    /// loadline's version.
    pub loadline: String,
    /// The image that was started, where the application is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageIdentity>,
    /// The images of levels that put one in the application's place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub level_images: Vec<ImageIdentity>,
    /// The cluster, where trials ran as pods; the machine is then the node that was looked at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterDescription>,
    /// Why a second container ran the trials, if it did: loadline had no cgroup there and could not
    /// read one. The machine described is then the engine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// Which version of the application was measured, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ApplicationVersion>,
}

/// A cluster of Kubernetes as a result has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterDescription {
    /// The context of the kubeconfig.
    pub context: String,
    /// Where its pods ran.
    pub namespace: String,
    /// The API server's version.
    pub version: String,
    /// The node that was looked at first.
    pub node: String,
    /// What starts its containers, as `containerd`; with its version where the API server says it.
    pub runtime: String,
    /// The RuntimeClass of its pods, where they had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// The operating system of the node, where the API server says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// How the node held limits, before the first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<EnforcedLimits>,
    /// How many trials ran at once, at most.
    #[serde(default = "one_slot")]
    pub slots: NonZeroU32,
    /// Most trials that shared a node at the same time.
    #[serde(default = "one_slot")]
    pub share_nodes: NonZeroU32,
    /// From how many generator pods the load of a trial came; `None` is from its own pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generators: Option<NonZeroU32>,
}

fn one_slot() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// How a node held containers that wanted more than their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnforcedLimits {
    /// CFS periods in which a container was throttled although it used more than its CPU limit;
    /// `None` if no counter showed it and it got no more than its limit.
    pub throttled_periods: Option<u64>,
    /// Exit code of a container that took more than its memory limit: 137 is killed.
    pub memory_exit_code: i32,
}

/// The node that a trial ran on, as the trial saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TrialNode {
    /// Its name.
    pub name: String,
    /// What started the containers, as `containerd`; with its version where the API server says it.
    pub runtime: String,
    /// The RuntimeClass of its pod, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Its operating system, where the API server says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Operating system and kernel release.
    pub kernel: String,
    /// The kernel's word for it, as `x86_64`; empty in older results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs that the application may use.
    pub cpus: u32,
    /// `v1`, `v2` or `hybrid`.
    pub cgroup: String,
    /// How it held limits, before its first trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<EnforcedLimits>,
}

impl MachineDescription {
    pub fn first_node(&self) -> Option<TrialNode> {
        let cluster = self.cluster.as_ref()?;
        Some(TrialNode {
            runtime: cluster.runtime.clone(),
            runtime_class: cluster.runtime_class.clone(),
            os: cluster.os.clone(),
            enforced: cluster.enforced.clone(),
            ..TrialNode::from_machine(self, &cluster.node)
        })
    }

    /// Without the properties of one node or one inspection: results from equal machines can then
    /// be compared.
    pub fn machine_kind(&self) -> Self {
        let mut kind = self.clone();
        if let Some(cluster) = &mut kind.cluster {
            cluster.node.clear();
            cluster.enforced = None;
        }
        kind
    }
}

impl TrialNode {
    pub fn from_machine(machine: &MachineDescription, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kernel: machine.kernel.clone(),
            architecture: machine.architecture.clone(),
            cpu_model: machine.cpu_model.clone(),
            cpus: machine.cpus,
            cgroup: machine.cgroup.clone(),
            ..Self::default()
        }
    }

    /// Differences between two nodes that affect trials, with both values; empty if they are of the
    /// same kind. A property that one of the nodes lacks is ignored.
    pub fn differences_from(&self, other: &Self) -> Vec<String> {
        let class = |node: &Self| node.runtime_class.clone().unwrap_or_default();
        let system = |node: &Self| node.os.clone().unwrap_or_default();
        let part = |what, of: fn(&Self) -> String, is_always_known| {
            (what, of(self), of(other), is_always_known)
        };
        let (own, others) = known_runtimes(&self.runtime, &other.runtime);
        let parts = [
            ("runtime", own.to_owned(), others.to_owned(), false),
            part("runtime class", class, true),
            part("operating system", system, false),
            part("architecture", |n| n.architecture.clone(), false),
            part("kernel", |n| n.kernel.clone(), true),
            part("CPU model", |n| n.cpu_model.clone(), true),
            part("CPUs", |n| n.cpus.to_string(), true),
            part("cgroup", |n| n.cgroup.clone(), true),
        ];
        let differs = |(_, one, two, is_always_known): &(&str, String, String, bool)| {
            one != two && (*is_always_known || !(one.is_empty() || two.is_empty()))
        };
        let words = |text: String| {
            if text.is_empty() {
                "none".to_owned()
            } else {
                text
            }
        };
        let different = parts.into_iter().filter(differs);
        let said = different
            .map(|(what, one, two, _)| format!("{what} {}, not {}", words(one), words(two)));
        said.collect()
    }
}

/// Two runtimes in the detail that both have: `containerd` may be any version.
fn known_runtimes<'a>(one: &'a str, two: &'a str) -> (&'a str, &'a str) {
    let name = |text: &'a str| text.split(' ').next().unwrap_or_default();
    if one.contains(' ') && two.contains(' ') {
        (one, two)
    } else {
        (name(one), name(two))
    }
}

/// An image as its engine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ImageIdentity {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(change: impl Fn(&mut TrialNode)) -> TrialNode {
        let mut node = TrialNode {
            name: "a".to_owned(),
            runtime: "containerd 1.6.20".to_owned(),
            os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
            kernel: "Linux 6.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: "Xeon".to_owned(),
            cpus: 4,
            cgroup: "v2".to_owned(),
            ..TrialNode::default()
        };
        change(&mut node);
        node
    }

    #[test]
    fn whatever_trials_depend_on_makes_another_kind() {
        let unlike =
            |change: fn(&mut TrialNode)| node(change).differences_from(&node(|_| {})).join("; ");
        let all = [
            unlike(|n| n.name = "b".to_owned()),
            unlike(|n| n.runtime = "containerd 2.0.0".to_owned()),
            unlike(|n| n.runtime = "cri-o".to_owned()),
            unlike(|n| n.runtime_class = Some("gvisor".to_owned())),
            unlike(|n| n.os = Some("Ubuntu 24.04".to_owned())),
            unlike(|n| n.architecture = "aarch64".to_owned()),
            unlike(|n| n.kernel = "Linux 5.10.0".to_owned()),
            unlike(|n| n.cpu_model = "EPYC".to_owned()),
            unlike(|n| n.cpus = 8),
            unlike(|n| n.cgroup = "v1".to_owned()),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        runtime containerd 2.0.0, not containerd 1.6.20
        runtime cri-o, not containerd
        runtime class gvisor, not none
        operating system Ubuntu 24.04, not Debian GNU/Linux 12 (bookworm)
        architecture aarch64, not x86_64
        kernel Linux 5.10.0, not Linux 6.1.0
        CPU model EPYC, not Xeon
        CPUs 8, not 4
        cgroup v1, not v2
        ");
    }

    #[test]
    fn what_nobody_may_ask_for_makes_no_other_kind() {
        let less = node(|n| {
            n.runtime = "containerd".to_owned();
            n.os = None;
            n.architecture = String::new();
        });
        assert_eq!(less.differences_from(&node(|_| {})), [""; 0]);
        assert_eq!(node(|_| {}).differences_from(&less), [""; 0]);
    }
}
