//! The cluster that trials run in, as an experiment names it.
//!
//! Owns the table's meaning; speaks to none.

use std::collections::BTreeMap;

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
    /// Labels that nodes must have.
    pub node_selector: BTreeMap<String, String>,
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
            node_selector: table.node_selector.clone(),
        }
    }
}
