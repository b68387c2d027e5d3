//! The flags that put trials into a cluster.

use clap::Args;
use loadline_engine::experiment::Cluster;
use loadline_engine::experiment::wire::{ExperimentFile, KubernetesTable};

/// Trials as pods.
const KUBERNETES: &str = "Kubernetes";

/// Where trials run, if not here.
#[derive(Args, Debug, Default, Clone)]
pub struct ClusterFlags {
    /// Run every trial as a pod of a cluster, which must have the image
    #[arg(long, help_heading = KUBERNETES)]
    pub kubernetes: bool,

    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = KUBERNETES)]
    pub context: Option<String>,

    /// Where the pods run [default: the namespace of the context]
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = KUBERNETES)]
    pub namespace: Option<String>,

    /// loadline's own image, which measures inside of each pod [default: localhost/loadline:latest]
    #[arg(long, value_name = "REF", requires = "kubernetes", help_heading = KUBERNETES)]
    pub trial_image: Option<String>,

    /// A label that nodes must have, as node.kubernetes.io/instance-type=c7i.xlarge; several times
    /// for several
    #[arg(long, value_name = "LABEL=VALUE", requires = "kubernetes", value_parser = label, help_heading = KUBERNETES)]
    pub node_selector: Vec<(String, String)>,
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| "it is LABEL=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

impl ClusterFlags {
    /// The cluster that they name by themselves.
    pub fn wanted(&self) -> Option<Cluster> {
        let mut table = KubernetesTable::default();
        self.kubernetes.then(|| {
            self.fill(&mut table);
            Cluster::from(&table)
        })
    }

    /// Lays them over a file's table; says whether any is given.
    pub fn overlay(&self, file: &mut ExperimentFile) -> bool {
        if !self.kubernetes {
            return false;
        }
        self.fill(file.kubernetes.get_or_insert_with(KubernetesTable::default));
        true
    }

    fn fill(&self, table: &mut KubernetesTable) {
        let set = |to: &mut Option<String>, flag: &Option<String>| {
            if flag.is_some() {
                to.clone_from(flag);
            }
        };
        set(&mut table.context, &self.context);
        set(&mut table.namespace, &self.namespace);
        set(&mut table.trial_image, &self.trial_image);
        if !self.node_selector.is_empty() {
            table.node_selector = self.node_selector.iter().cloned().collect();
        }
    }
}
