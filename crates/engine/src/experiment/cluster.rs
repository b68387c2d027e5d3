//! The cluster that trials run in, as an experiment names it.
//!
//! Owns the table's meaning; speaks to none.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::str::FromStr;

use loadline_sizing::Cpus;
use loadline_sizing::units::ParseUnitError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::KubernetesTable;

/// Where trials run as pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The context of the kubeconfig; `None` is its current one.
    pub context: Option<String>,
    /// The namespace; `None` is the context's.
    pub namespace: Option<String>,
    /// loadline's own image, which measures inside of each pod.
    pub trial_image: String,
    /// What its container may take: it generates the load.
    pub trial_cpu: TrialCpu,
    /// Labels that nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// The workload that runs there whose pods are the template of trials.
    pub from: Option<Running>,
    /// How many trials run at once.
    pub slots: NonZeroU32,
    /// How many of them may share a node.
    pub share_nodes: NonZeroU32,
}

/// The CPU of loadline's own container, as `1` or `500m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TrialCpu(pub Cpus);

impl Default for TrialCpu {
    /// Enough for some thousand requests a second.
    fn default() -> Self {
        Self(Cpus::from_whole(1))
    }
}

impl FromStr for TrialCpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cpus: Cpus = text
            .parse()
            .map_err(|error: ParseUnitError| error.to_string())?;
        match cpus.as_millis() {
            0 => Err("its own container needs CPU: at least 100m, to send anything".to_owned()),
            _ => Ok(Self(cpus)),
        }
    }
}

impl TryFrom<String> for TrialCpu {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TrialCpu> for String {
    fn from(of: TrialCpu) -> Self {
        of.0.to_string()
    }
}

/// A container of a workload that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// As `deployment/orders`.
    pub workload: String,
    /// Name of its container.
    pub container: String,
}

/// loadline's own image where none is named: as the Dockerfile's first line builds it.
pub const TRIAL_IMAGE: &str = "localhost/loadline:latest";

impl From<&KubernetesTable> for Cluster {
    fn from(table: &KubernetesTable) -> Self {
        let image = table.trial_image.clone();
        Self {
            context: table.context.clone(),
            namespace: table.namespace.clone(),
            trial_image: image.unwrap_or_else(|| TRIAL_IMAGE.to_owned()),
            trial_cpu: table.trial_cpu.unwrap_or_default(),
            node_selector: table.node_selector.clone(),
            from: table.from.clone().map(|workload| Running {
                workload,
                container: table.container.clone().unwrap_or_default(),
            }),
            slots: table.slots.unwrap_or(NonZeroU32::MIN),
            share_nodes: table.share_nodes.unwrap_or(NonZeroU32::MIN),
        }
    }
}
