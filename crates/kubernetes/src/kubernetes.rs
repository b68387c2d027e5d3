//! The cluster as a [`Host`].
//!
//! Owns what it refuses, and what is found out before the first trial: the image, the first node, and
//! with `--slots auto` how many there are of its kind.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use loadline_analysis::price::Size;
use loadline_analysis::record::{Cluster as Recorded, Machine};
use loadline_engine::experiment::{Cluster as Wanted, Slots};
use loadline_engine::host::{Delivery, Host, Running};
use loadline_host::monotonic_ns;
use loadline_host::oci::image::Image;
use loadline_host::pod;
use loadline_sizing::Bytes;
use loadline_trial::{Account, Order, Refusal};

use crate::cluster::Cluster;
use crate::gate::Gate;
use crate::generators::Pool;
use crate::look::{Looked, Looks};
use crate::nodes::Nodes;
use crate::trial::{Follow, Trial};
use crate::watched::{Halt, Patience};
use crate::workload::{self, Template};
use crate::{census, manifest, sweep};

/// Longest time between two looks at what came.
const POLL: Duration = Duration::from_millis(50);

/// What trials ask of a node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demand {
    /// What the largest trial gives its application, where that is known before.
    pub largest: Option<Size>,
    /// Memory that the load of a trial mostly takes where it is made.
    pub load: Bytes,
}

/// Trials in a cluster.
pub struct Kubernetes {
    cluster: Rc<Cluster>,
    looks: Arc<Looks>,
    first: Looked,
    nodes: Nodes,
    slots: NonZeroU32,
    pool: Option<Arc<Pool>>,
}

impl Kubernetes {
    /// Finds the cluster, removes what a killed loadline of this machine left there, and looks at the
    /// application's image from inside, on a node with room for a trial.
    ///
    /// # Errors
    /// [`Refusal`] with whatever stands in the way.
    pub fn new(
        wanted: &Wanted,
        image: &str,
        account: Account,
        demand: Demand,
    ) -> Result<Self, Refusal> {
        Self::of(Cluster::connect(wanted)?, image, account, demand)
    }

    pub(crate) fn of(
        cluster: Cluster,
        image: &str,
        account: Account,
        demand: Demand,
    ) -> Result<Self, Refusal> {
        sweep::sweep(&cluster)?;
        let looks = Arc::new(Looks {
            access: cluster.access.clone(),
            wanted: cluster.wanted.clone(),
            image: image.to_owned(),
            account,
            maker: sweep::maker(cluster.inside.as_ref()),
            template: template(&cluster, image)?,
            memory: manifest::memory_for(demand.load),
        });
        let largest = demand.largest;
        let share = cluster.wanted.share_nodes.get() as usize;
        let nodes = Nodes::new(sweep::unique(), share);
        let (first, has_room) = first(&cluster, &looks, &nodes, largest)?;
        if has_room {
            nodes.settle(0, first.node.clone());
        }
        let slots = match (cluster.wanted.slots, largest) {
            (Slots::Number(slots), _) => slots,
            (Slots::Auto, Some(size)) if has_room => {
                cluster.run(census::count(&looks, &nodes, &first.node, size))?
            }
            (Slots::Auto, _) => return Err(uncounted(largest)),
        };
        let number = cluster.wanted.generators;
        let kubernetes = Self {
            pool: number.map(|number| Arc::new(Pool::new(&looks, &nodes, number))),
            cluster: Rc::new(cluster),
            looks,
            first,
            nodes,
            slots,
        };
        kubernetes.make_generators()?;
        Ok(kubernetes)
    }

    /// Those of all slots, before slots take the nodes that are left.
    fn make_generators(&self) -> Result<(), Refusal> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let made = self.cluster.run(pool.fill(self.slots.get() as usize));
        made.map_err(|halt| halt.refusal("starting generators in the cluster"))
    }

    /// The application's image, as the cluster has it.
    pub fn image(&self) -> Image {
        self.first.image.clone()
    }
}

/// The look at the first node, with room for the largest trial where one has it; whether it has.
fn first(
    cluster: &Cluster,
    looks: &Looks,
    nodes: &Nodes,
    largest: Option<Size>,
) -> Result<(Looked, bool), Refusal> {
    let (place, gate) = (nodes.place(0), Gate::default());
    let look = |room: Option<Size>, patience: Patience| {
        cluster.run(looks.look(&place, room, &gate, |_: &str| patience))
    };
    let mut has_room = largest.is_some();
    let looked = match largest.map(|size| look(Some(size), Patience::None)) {
        // Smaller trials may find room, and the largest one a node that comes meanwhile.
        None | Some(Err(Halt::NoRoom(_))) if cluster.wanted.slots != Slots::Auto => {
            has_room = false;
            look(None, Patience::Some)
        }
        None => look(None, Patience::Some),
        Some(looked) => looked,
    };
    let looked = looked.map_err(|halt| halt.refusal("looking into the image in the cluster"))?;
    Ok((looked.enforced()?, has_room))
}

/// Slots that nobody can count.
fn uncounted(largest: Option<Size>) -> Refusal {
    let why = match largest {
        None => "the size of a trial is not known before (with prices it is chosen on the way)",
        Some(_) => "no node has room for a trial",
    };
    Refusal::new("--slots auto", why, "say how many: --slots 3")
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let jobs = self.cluster.run(pool.close());
            self.cluster.remove(jobs);
        }
    }
}

impl Host for Kubernetes {
    fn machine(&self) -> Machine {
        let node = &self.first.node;
        Machine {
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

    fn slots(&self) -> usize {
        self.slots.get() as usize
    }

    fn refuses(&self, order: &Order) -> Option<Refusal> {
        unable(order).map(|what| {
            let hint = "measure it on a machine: without --kubernetes";
            Refusal::new(what, "trials as pods cannot do this yet", hint)
        })
    }

    fn launch(
        &mut self,
        slot: usize,
        order: &Order,
        delivery: &Delivery,
    ) -> Result<Box<dyn Running>, Refusal> {
        let common = (&self.looks, &self.first.node, self.pool.as_ref());
        let follow = Follow::new(common, (&self.nodes, slot), order, delivery)?;
        let gate = follow.gate();
        let events = follow.start(&self.cluster);
        Ok(Box::new(Trial::new(&self.cluster, gate, events)))
    }

    fn wait(&mut self, patience: Duration) {
        self.cluster
            .run(async { tokio::time::sleep(patience.min(POLL)).await });
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// What trials take of the workload that they are made after. It is what it was when it was named: a
/// result has one image.
fn template(cluster: &Cluster, image: &str) -> Result<Option<Template>, Refusal> {
    let Some(from) = &cluster.wanted.from else {
        return Ok(None);
    };
    let wrong = |why: String| Refusal::new("kubernetes.from", why, "for example deployment/orders");
    let name: workload::Name = from.workload.parse().map_err(wrong)?;
    let object = workload::of_cluster(cluster, &name)?;
    let template = workload::take(&name, &object, &from.container)?;
    if template.image != image {
        let why = format!(
            "it runs {} now, this result measures {image}",
            template.image
        );
        return Err(Refusal::new(
            &name,
            why,
            "begin a new one: call it with --from again",
        ));
    }
    Ok(Some(template))
}

/// What an order has that a pod does not do.
fn unable(order: &Order) -> Option<String> {
    let configuration = &order.configuration;
    let is_given = [
        (configuration.cpuset.is_some(), "a cpuset"),
        (configuration.cpu_burst.is_some(), "CFS burst"),
        (configuration.cpu_shares.is_some(), "CPU shares"),
        (configuration.shm.is_some(), "a size of /dev/shm"),
        (configuration.cpu.is_none(), "no CPU limit"),
        (configuration.memory.is_none(), "no memory limit"),
        (
            configuration.cpu_period != Duration::from_millis(100),
            "a CFS period other than the kubelet's 100 ms",
        ),
        (
            manifest::image(order).is_some_and(|image| !image.volumes.is_empty()),
            "volumes of this machine",
        ),
    ];
    let own = is_given.into_iter().find(|(is, _)| *is);
    let first = pod::unable(order).or(own.map(|(_, what)| what))?;
    Some(format!("as a pod: {first}"))
}

pub(crate) fn no_image() -> Refusal {
    let hint = "build an image of it, and name that: --image registry/name:tag";
    Refusal::new(
        "--kubernetes",
        "a cluster runs images, no commands of this machine",
        hint,
    )
}

pub(crate) fn value<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> Result<T, Refusal> {
    serde_json::from_value(json).map_err(|error| {
        let hint = "this is a defect of loadline: please report it";
        Refusal::new("writing the manifest of a trial", error, hint)
    })
}

#[cfg(test)]
mod tests {
    use loadline_trial::Readiness;

    use super::*;
    use crate::testing::order;

    #[test]
    fn what_a_pod_does_not_do_is_refused_by_its_name() {
        assert_eq!(unable(&order()), None);
        let mut other = order();
        other.configuration.memory = None;
        assert_eq!(unable(&other).as_deref(), Some("as a pod: no memory limit"));
        let mut other = order();
        other.configuration.shm = Some(Bytes::from_mib(256));
        let shm = unable(&other);
        assert_eq!(shm.as_deref(), Some("as a pod: a size of /dev/shm"));
        let mut other = order();
        other.readiness = Readiness::LogLine {
            contains: "started".to_owned(),
        };
        assert!(unable(&other).is_some_and(|what| what.contains("a line of the output")));
    }
}
