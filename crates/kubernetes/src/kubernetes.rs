//! The cluster as a [`TrialHost`].
//!
//! Owns its refusals, and the checks before the first trial: the image, the first node, and with
//! `--slots auto` the number of nodes of its kind.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{ClusterDescription as Recorded, MachineDescription};
use loadline_experiment::{ClusterSettings as Wanted, Slots};
use loadline_protocol::{Account, RunRefusal, TrialOrder};
use loadline_runner::host::{Delivery, TrialHandle, TrialHost};
use loadline_sizing::Bytes;
use loadline_trial::oci::image::EngineImage;
use loadline_trial::pod;

use crate::cluster::ConnectedCluster;
use crate::gate::RequestGate;
use crate::generators::GeneratorPool;
use crate::look::{NodeInspection, NodeInspector};
use crate::nodes::NodeRegistry;
use crate::trial::{PodFollower, PodTrial};
use crate::watched::{PodHalt, RoomPatience};
use crate::workload::{self, WorkloadTemplate};
use crate::{census, manifest, sweep};

/// Longest time between two looks at what came.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, Default)]
pub struct NodeDemand {
    pub largest: Option<InstanceSize>,
    pub load: Bytes,
}

pub struct KubernetesHost {
    cluster: Rc<ConnectedCluster>,
    looks: Arc<NodeInspector>,
    first: NodeInspection,
    nodes: NodeRegistry,
    slots: NonZeroU32,
    pool: Option<Arc<GeneratorPool>>,
}

impl KubernetesHost {
    /// Finds the cluster, removes leftovers of a killed loadline of this machine, and inspects the
    /// application's image from inside, on a node with room for a trial. Errors: [`RunRefusal`]
    /// with the obstacle.
    pub fn new(
        wanted: &Wanted,
        image: &str,
        account: Account,
        demand: NodeDemand,
    ) -> Result<Self, RunRefusal> {
        Self::from_cluster(
            ConnectedCluster::connect_to(wanted)?,
            image,
            account,
            demand,
        )
    }

    pub(crate) fn from_cluster(
        cluster: ConnectedCluster,
        image: &str,
        account: Account,
        demand: NodeDemand,
    ) -> Result<Self, RunRefusal> {
        sweep::sweep_jobs(&cluster)?;
        let looks = Arc::new(NodeInspector {
            access: cluster.access.clone(),
            wanted: cluster.wanted.clone(),
            image: image.to_owned(),
            account,
            maker: sweep::maker_identity(cluster.inside.as_ref()),
            template: workload_template(&cluster, image)?,
            memory: manifest::memory_for(demand.load),
        });
        let largest = demand.largest;
        let share = cluster.wanted.share_nodes.get() as usize;
        let nodes = NodeRegistry::new(sweep::unique_text(), share);
        let (first, has_room) = inspect_first_node(&cluster, &looks, &nodes, largest)?;
        if has_room {
            nodes.assign_node(0, first.node.clone());
        }
        let slots =
            match (cluster.wanted.slots, largest) {
                (Slots::Number(slots), _) => slots,
                (Slots::Auto, Some(size)) if has_room => cluster.run(
                    census::count_fitting_nodes(&looks, &nodes, &first.node, size),
                )?,
                (Slots::Auto, _) => return Err(uncounted_refusal(largest)),
            };
        let number = cluster.wanted.generators;
        let kubernetes = Self {
            pool: number.map(|number| Arc::new(GeneratorPool::new(&looks, &nodes, number))),
            cluster: Rc::new(cluster),
            looks,
            first,
            nodes,
            slots,
        };
        kubernetes.make_generators()?;
        Ok(kubernetes)
    }

    fn make_generators(&self) -> Result<(), RunRefusal> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let made = self.cluster.run(pool.fill_pool(self.slots.get() as usize));
        made.map_err(|halt| halt.into_refusal("starting generators in the cluster"))
    }

    pub fn image_of_application(&self) -> EngineImage {
        self.first.image.clone()
    }
}

/// Inspects the first node, with room for the largest trial if possible; returns whether it has.
fn inspect_first_node(
    cluster: &ConnectedCluster,
    looks: &NodeInspector,
    nodes: &NodeRegistry,
    largest: Option<InstanceSize>,
) -> Result<(NodeInspection, bool), RunRefusal> {
    let (place, gate) = (nodes.placement_for_slot(0), RequestGate::default());
    let look = |room: Option<InstanceSize>, patience: RoomPatience| {
        cluster.run(looks.inspect_node(&place, room, &gate, |_: &str| patience))
    };
    let mut has_room = largest.is_some();
    let looked = match largest.map(|size| look(Some(size), RoomPatience::None)) {
        // Smaller trials may find room, and the largest one a node that comes meanwhile.
        None | Some(Err(PodHalt::NoRoom(_))) if cluster.wanted.slots != Slots::Auto => {
            has_room = false;
            look(None, RoomPatience::Some)
        }
        None => look(None, RoomPatience::Some),
        Some(looked) => looked,
    };
    let looked =
        looked.map_err(|halt| halt.into_refusal("looking into the image in the cluster"))?;
    Ok((looked.refuse_unenforced()?, has_room))
}

fn uncounted_refusal(largest: Option<InstanceSize>) -> RunRefusal {
    let why = match largest {
        None => "the size of a trial is not known in advance (with prices the search chooses it)",
        Some(_) => "no node has room for a trial",
    };
    RunRefusal::new("--slots auto", why, "set a number: --slots 3")
}

impl Drop for KubernetesHost {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let jobs = self.cluster.run(pool.close_pool());
            self.cluster.remove_jobs(jobs);
        }
    }
}

impl TrialHost for KubernetesHost {
    fn host_machine(&self) -> MachineDescription {
        let node = &self.first.node;
        MachineDescription {
            cluster: Some(Recorded {
                context: self.cluster.context.clone(),
                namespace: self.cluster.access.namespace.clone(),
                version: self.cluster.version.clone(),
                node: node.name.clone(),
                runtime: node.runtime.clone(),
                runtime_class: node.runtime_class.clone(),
                os: node.os.clone(),
                enforced: node.enforced.clone(),
                slots: self.slots,
                share_nodes: self.cluster.wanted.share_nodes,
                generators: self.cluster.wanted.generators,
            }),
            ..self.first.machine.clone()
        }
    }

    fn slot_count(&self) -> usize {
        self.slots.get() as usize
    }

    fn order_refusal(&self, order: &TrialOrder) -> Option<RunRefusal> {
        unsupported_reason(order).map(|what| {
            let hint = "measure on this machine, without --kubernetes";
            RunRefusal::new(what, "trials as pods cannot do this yet", hint)
        })
    }

    fn launch_trial(
        &mut self,
        slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal> {
        let common = (&self.looks, &self.first.node, self.pool.as_ref());
        let follow = PodFollower::new(common, (&self.nodes, slot), order, delivery)?;
        let gate = follow.gate();
        let events = follow.start_following(&self.cluster);
        Ok(Box::new(PodTrial::new(&self.cluster, gate, events)))
    }

    fn wait_for_events(&mut self, patience: Duration) {
        self.cluster
            .run(async { tokio::time::sleep(patience.min(POLL)).await });
    }
}

/// The trials' part of their workload. It is the state when it was named: a result has one image.
fn workload_template(
    cluster: &ConnectedCluster,
    image: &str,
) -> Result<Option<WorkloadTemplate>, RunRefusal> {
    let Some(from) = &cluster.wanted.from else {
        return Ok(None);
    };
    let wrong =
        |why: String| RunRefusal::new("kubernetes.from", why, "for example deployment/orders");
    let name: workload::WorkloadName = from.workload.parse().map_err(wrong)?;
    let object = workload::of_cluster(cluster, &name)?;
    let template = workload::extract_template(&name, &object, &from.container)?;
    template.check_access(&name, from.as_production)?;
    if template.image != image {
        let why = format!(
            "it runs {} now, this result measures {image}",
            template.image
        );
        return Err(RunRefusal::new(
            &name,
            why,
            "start a new result with --from",
        ));
    }
    Ok(Some(template))
}

fn unsupported_reason(order: &TrialOrder) -> Option<String> {
    let configuration = &order.configuration;
    let is_given = [
        (configuration.cpuset.is_some(), "a cpuset"),
        (configuration.cpu_burst.is_some(), "CFS burst"),
        (configuration.start_cpu.is_some(), "start-cpu"),
        (configuration.cpu_shares.is_some(), "CPU shares"),
        (configuration.shm.is_some(), "a size of /dev/shm"),
        (configuration.cpu.is_none(), "no CPU limit"),
        (configuration.memory.is_none(), "no memory limit"),
        (
            configuration.cpu_period != Duration::from_millis(100),
            "a CFS period other than the kubelet's 100 ms",
        ),
        (
            order
                .app
                .image()
                .is_some_and(|image| !image.volumes.is_empty()),
            "volumes of this machine",
        ),
    ];
    let own = is_given.into_iter().find(|(is, _)| *is);
    let first = pod::unsupported_feature(order).or(own.map(|(_, what)| what))?;
    Some(format!("as a pod: {first}"))
}

#[cfg(test)]
mod tests {
    use loadline_protocol::Readiness;

    use super::*;
    use crate::testing::test_order;

    #[test]
    fn what_a_pod_does_not_do_is_refused_by_its_name() {
        assert_eq!(unsupported_reason(&test_order()), None);
        let mut other = test_order();
        other.configuration.memory = None;
        assert_eq!(
            unsupported_reason(&other).as_deref(),
            Some("as a pod: no memory limit")
        );
        let mut other = test_order();
        other.configuration.shm = Some(Bytes::from_mib(256));
        let shm = unsupported_reason(&other);
        assert_eq!(shm.as_deref(), Some("as a pod: a size of /dev/shm"));
        let mut other = test_order();
        other.readiness = Readiness::LogLine {
            contains: "started".to_owned(),
        };
        assert!(
            unsupported_reason(&other).is_some_and(|what| what.contains("a line of the output"))
        );
    }
}
