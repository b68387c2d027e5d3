//! The flags that put trials into a cluster.

use std::num::NonZeroU32;

use clap::Args;
use loadline_experiment::wire::{ExperimentFile, KubernetesTable};
use loadline_experiment::{ClusterSettings, Slots, TrialCpu, ValueWithOrigin};
use loadline_kubernetes::workload;

use crate::error::Error;
use crate::load_flags::set_if_given;

const EXPERIMENT: &str = "Experiment";
const KUBERNETES: &str = "Kubernetes";

/// Where trials run, if not here.
#[derive(Args, Debug, Default, Clone)]
pub struct ClusterFlags {
    /// Run every trial as a pod of a cluster, which must be able to pull the image
    #[arg(long, help_heading = KUBERNETES)]
    pub kubernetes: bool,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = KUBERNETES)]
    pub context: Option<String>,

    /// Namespace of the pods [default: the context's]
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = KUBERNETES)]
    pub namespace: Option<String>,
}

/// Where loadline itself runs.
#[derive(Args, Debug, Default, Clone)]
pub struct InClusterFlags {
    /// Also run loadline itself in the cluster, as a Job, and return: for searches that take hours.
    /// `loadline resume` fetches the result, or takes over
    #[arg(long, help_heading = KUBERNETES)]
    pub in_cluster: bool,
}

/// The pods of trials.
#[derive(Args, Debug, Default, Clone)]
pub struct PodFlags {
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// loadline's own image, which measures inside each pod [default: localhost/loadline:latest]
    #[arg(long, value_name = "REF", requires = "kubernetes", help_heading = KUBERNETES)]
    pub trial_image: Option<String>,

    /// CPU for loadline's container, which generates the load in each trial or generator pod
    /// [default: 1]
    #[arg(long, value_name = "CPUS", requires = "kubernetes", help_heading = KUBERNETES)]
    pub trial_cpu: Option<TrialCpu>,

    /// Label that nodes must have, e.g. node.kubernetes.io/instance-type=c7i.xlarge; repeat the
    /// flag for more
    #[arg(long, value_name = "LABEL=VALUE", requires = "kubernetes", value_parser = parse_label, help_heading = KUBERNETES)]
    pub node_selector: Vec<(String, String)>,

    /// RuntimeClass of the pods, e.g. gvisor or kata [default: the workload's with --from, else the
    /// cluster's]
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = KUBERNETES)]
    pub runtime_class: Option<String>,

    /// Copy image, variables and config maps for trials from a workload that runs in the cluster,
    /// e.g. deployment/orders or cronjob/report
    #[arg(long, value_name = "KIND/NAME", requires = "kubernetes", conflicts_with = "image", help_heading = KUBERNETES)]
    pub from: Option<workload::WorkloadName>,

    /// Also give trials that workload's secrets, service account and init containers: the load may
    /// reach production
    #[arg(long, requires = "kubernetes", help_heading = KUBERNETES)]
    pub as_production: bool,

    /// Container of that workload [default: the container with a JVM]
    #[arg(long, value_name = "NAME", requires = "from", help_heading = KUBERNETES)]
    pub container: Option<String>,

    /// Trials to run at once in a cluster, each on a separate node; `auto`: as many as nodes of one
    /// kind have room for [default: 1]
    #[arg(long, value_name = "N", help_heading = EXPERIMENT)]
    pub slots: Option<Slots>,

    /// Number of trials that may share a node [default: 1]
    #[arg(long, value_name = "N", requires = "kubernetes", value_parser = at_least_one, help_heading = KUBERNETES)]
    pub share_nodes: Option<NonZeroU32>,

    /// Number of separate pods that generate the load of each trial, on nodes without a trial (on
    /// any node if --share-nodes is above 1) [default: the trial's own pod, over localhost]
    #[arg(long, value_name = "N", requires = "kubernetes", value_parser = at_least_one, help_heading = KUBERNETES)]
    pub generators: Option<NonZeroU32>,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or_else(|| "write LABEL=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .map_err(|_| "it must be a whole number from 1".to_owned())
}

impl ClusterFlags {
    pub fn wanted_cluster(&self) -> Option<ClusterSettings> {
        let mut table = KubernetesTable::default();
        self.kubernetes.then(|| {
            self.fill_table(&mut table);
            ClusterSettings::from(&table)
        })
    }

    fn fill_table(&self, table: &mut KubernetesTable) {
        set_if_given(&mut table.context, &self.context);
        set_if_given(&mut table.namespace, &self.namespace);
    }
}

impl PodFlags {
    pub fn overlay(&self, file: &mut ExperimentFile) -> Result<(), Error> {
        if self.cluster.kubernetes {
            self.fill_table(file.kubernetes.get_or_insert_default());
            return Ok(());
        }
        match (self.slots, &mut file.kubernetes) {
            (None, _) => {}
            (Some(slots), Some(table)) => table.slots = Some(slots),
            (Some(_), None) => {
                let problem = "--slots: trials on this machine run one after the other";
                return Err(Error::usage(problem)
                    .with_hint("leave --slots out, or run trials as pods: --kubernetes"));
            }
        }
        Ok(())
    }

    /// Takes the fields of the named workload that loadline itself needs, and reports unsupported
    /// ones. Pods take the rest by reference. Errors: A cluster that does not answer, a workload that
    /// trials cannot copy.
    pub fn overlay_running(&self, file: &mut ExperimentFile) -> Result<(), Error> {
        let (Some(name), Some(table)) = (&self.from, &file.kubernetes) else {
            return Ok(());
        };
        let object = workload::read(&ClusterSettings::from(table), name)?;
        let (wanted, may_all) = (self.container.as_deref(), table.as_production);
        let container = file.settle_running(&name.to_string(), &object, wanted)?;
        let template = workload::extract_template(name, &object, &container)?;
        template.check_access(name, may_all)?;
        for what in template.production_access() {
            say!("taken from {name}: {what}");
        }
        for what in &template.left_out {
            say!("not taken from {name}: {what}");
        }
        if let (None, Some((uid, gid))) = (&file.app.user, template.user) {
            file.app.user = Some(ValueWithOrigin::from_flag("--from", format!("{uid}:{gid}")));
        }
        if let Some(table) = &mut file.kubernetes {
            table.from = Some(name.to_string());
            table.container = Some(container);
        }
        Ok(())
    }

    fn fill_table(&self, table: &mut KubernetesTable) {
        self.cluster.fill_table(table);
        set_if_given(&mut table.trial_image, &self.trial_image);
        set_if_given(&mut table.runtime_class, &self.runtime_class);
        table.trial_cpu = self.trial_cpu.or(table.trial_cpu);
        table.slots = self.slots.or(table.slots);
        table.share_nodes = self.share_nodes.or(table.share_nodes);
        table.generators = self.generators.or(table.generators);
        table.as_production |= self.as_production;
        if !self.node_selector.is_empty() {
            table.node_selector = self.node_selector.iter().cloned().collect();
        }
    }
}
