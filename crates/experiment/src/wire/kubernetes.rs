//! Trials as pods of a cluster, in a file.
//!
//! Owns the schema of `[kubernetes]`; [`super::super::cluster`] turns it into types.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{Slots, TrialCpu};

/// A cluster of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KubernetesTable {
    /// The context of the kubeconfig; default: its current one.
    pub context: Option<String>,
    /// Where the pods run; default: the namespace of the context.
    pub namespace: Option<String>,
    /// loadline's own image, which measures inside of each pod; default: `localhost/loadline:latest`.
    pub trial_image: Option<String>,
    /// CPU of that image's container which generates the load, in each trial or each generator pod;
    /// default: `1`.
    pub trial_cpu: Option<TrialCpu>,
    /// Labels that nodes must have: trials of unlike nodes are not compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// The RuntimeClass of its pods, as `gvisor`; default: the workload's (`from`), else the
    /// cluster's. Trials with different ones are not compared.
    pub runtime_class: Option<String>,
    /// The running workload that trial pods copy, as `deployment/orders`; `--from` writes it, with
    /// `container` and `app.image`.
    pub from: Option<String>,
    /// The container of that workload that is measured.
    pub container: Option<String>,
    /// Whether trials may use what leads to production in that workload: its secrets, its service
    /// account, its init containers; default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_production: bool,
    /// How many trials run at once, each on a separate node: a number, or `auto` for as many nodes
    /// of one kind as have room, at most 64; default: 1.
    pub slots: Option<Slots>,
    /// How many trials may share a node; default: 1.
    pub share_nodes: Option<NonZeroU32>,
    /// The number of separate pods that generate the load of each trial, on nodes without a trial
    /// (with `share-nodes` above 1 on any); default: the trial's own pod, over localhost.
    pub generators: Option<NonZeroU32>,
}
