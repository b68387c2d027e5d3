//! The cluster as a [`Host`].
//!
//! Owns what it refuses, and the making of a trial's objects.

use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use loadline_analysis::record::{Cluster as Recorded, Machine};
use loadline_engine::experiment::Cluster as Wanted;
use loadline_engine::host::{Delivery, Host, Running};
use loadline_host::oci::image::Image;
use loadline_host::{longest as longest_load, monotonic_ns};
use loadline_trial::{Account, Order, Readiness, Refusal};
use serde_json::json;

use crate::cluster::{Cluster, within};
use crate::look::{Looked, look};
use crate::nodes::{Nodes, Place};
use crate::sweep;
use crate::trial::{Follow, Trial, remove};
use crate::workload::{self, Template};
use crate::{manifest, refused};

/// Longest time between two looks at what came.
const POLL: Duration = Duration::from_millis(50);

/// A Secret holds 1 MiB.
const LARGEST_ORDER: usize = 1 << 20;

/// So often a request is tried that fails as one does that may pass.
const TRIES: u32 = 5;

/// Between two of them: an API server that restarts takes some seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// Trials in a cluster.
pub struct Kubernetes {
    cluster: Rc<Cluster>,
    looked: Looked,
    /// The workload that trials are made after.
    template: Option<Template>,
    nodes: Nodes,
}

impl Kubernetes {
    /// Finds the cluster, removes what a killed loadline of this machine left there, and looks at the
    /// application's image from inside.
    ///
    /// # Errors
    /// [`Refusal`] with whatever stands in the way.
    pub fn new(wanted: &Wanted, image: &str, account: Account) -> Result<Self, Refusal> {
        let cluster = Cluster::connect(wanted)?;
        sweep::sweep(&cluster)?;
        let template = template(&cluster, image)?;
        let looked = look(&cluster, image, account, template.as_ref())?;
        let (slots, share) = (cluster.wanted.slots.get(), cluster.wanted.share_nodes.get());
        Ok(Self {
            cluster: Rc::new(cluster),
            looked,
            template,
            nodes: Nodes::new(sweep::unique(), slots as usize, share as usize),
        })
    }

    /// The application's image, as the cluster has it.
    pub fn image(&self) -> Image {
        self.looked.image.clone()
    }

    fn make(&self, order: &Order, place: &Place) -> Result<String, Refusal> {
        let job = manifest::name(&order.trial);
        self.made(order, place, &job).inspect_err(|_| {
            // Whatever was made goes with it.
            let _ = self.cluster.run(remove(&self.cluster, &job));
        })?;
        Ok(job)
    }

    fn made(&self, order: &Order, place: &Place, job: &str) -> Result<(), Refusal> {
        let cluster = &self.cluster;
        let image = manifest::image(order).ok_or_else(no_image)?;
        let packed = packed(order)?;
        let seconds = longest(order).as_secs();
        let text = manifest::job(manifest::Parts {
            order,
            image,
            cluster: &cluster.wanted,
            maker: &sweep::maker(),
            place,
            template: self.template.as_ref(),
            seconds,
        });
        let wanted = value(text)?;
        let params = PostParams::default();
        let uid = self.try_often("making the Job of a trial", || {
            let (jobs, wanted, params) = (cluster.jobs(), &wanted, &params);
            async move {
                let made = jobs.create(params, wanted).await;
                let made = match made {
                    // An earlier try was carried out, and its answer lost: no other has this name.
                    Err(error) if refused::is_there(&error) => named(&jobs, job).await?,
                    made => Some(made?),
                };
                Ok(made.and_then(|made| made.metadata.uid).unwrap_or_default())
            }
        })?;
        let secret = value(manifest::secret(order, &packed, image, &uid))?;
        self.try_often("making the Secret of a trial", || {
            let (secrets, secret, params) = (cluster.secrets(), &secret, &params);
            async move {
                match secrets.create(params, secret).await {
                    Err(error) if !refused::is_there(&error) => Err(error),
                    _ => Ok(()),
                }
            }
        })?;
        let go = Patch::Merge(json!({ "spec": { "suspend": false } }));
        let params = PatchParams::default();
        self.try_often("starting the Job of a trial", || {
            let (jobs, go, params) = (cluster.jobs(), &go, &params);
            async move { jobs.patch(job, params, go).await }
        })?;
        Ok(())
    }

    fn try_often<T, F>(&self, what: &str, request: impl Fn() -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let mut left = TRIES;
        loop {
            left -= 1;
            match self.cluster.run(within(request())) {
                Ok(answer) => return Ok(answer),
                Err(error) if left > 0 && refused::is_passing(&error) => {
                    self.cluster.run(async { tokio::time::sleep(PAUSE).await });
                }
                Err(error) => return Err(refused::request(what, &error)),
            }
        }
    }
}

impl Host for Kubernetes {
    fn machine(&self) -> Machine {
        Machine {
            cluster: Some(Recorded {
                context: self.cluster.context.clone(),
                namespace: self.cluster.namespace.clone(),
                version: self.cluster.version.clone(),
                node: self.looked.node.clone(),
                runtime: self.looked.runtime.clone(),
                slots: self.cluster.wanted.slots,
                share_nodes: self.cluster.wanted.share_nodes,
            }),
            ..self.looked.machine.clone()
        }
    }

    fn slots(&self) -> usize {
        self.cluster.wanted.slots.get() as usize
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
        let job = manifest::name(&order.trial);
        let looked = &self.looked.machine;
        let follow = Follow::new(&self.cluster, &job, order, delivery, looked)?;
        self.make(order, &self.nodes.place(slot))?;
        Ok(Box::new(Trial {
            cluster: Rc::clone(&self.cluster),
            job,
            events: follow.start(&self.cluster, self.nodes.clone(), slot),
            asked: false,
            is_over: false,
        }))
    }

    fn wait(&mut self, patience: Duration) {
        self.cluster
            .run(async { tokio::time::sleep(patience.min(POLL)).await });
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// A Job by its name, without the right to get one.
async fn named(jobs: &Api<Job>, name: &str) -> Result<Option<Job>, kube::Error> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(jobs.list(&params).await?.items.pop())
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
        (
            manifest::image(order).is_none(),
            "an application that is no image",
        ),
        (
            !order.dependencies.is_empty(),
            "dependencies beside the application",
        ),
        (!order.stubs.is_empty(), "stubs beside the application"),
        (order.soak.is_some(), "a soak"),
        (!order.hand_over.is_empty(), "training a start-up cache"),
        (configuration.cache.is_some(), "a start-up cache"),
        (configuration.instances > 1, "several instances"),
        (
            configuration.neighbour_threads.is_some(),
            "a busy neighbour",
        ),
        (configuration.cpuset.is_some(), "a cpuset"),
        (configuration.cpu_burst.is_some(), "CFS burst"),
        (configuration.cpu_shares.is_some(), "CPU shares"),
        (configuration.cpu.is_none(), "no CPU limit"),
        (configuration.memory.is_none(), "no memory limit"),
        (
            configuration.cpu_period != Duration::from_millis(100),
            "a CFS period other than the kubelet's 100 ms",
        ),
        (order.log_line.is_some(), "waiting for a line of the output"),
        (
            matches!(
                order.readiness,
                Readiness::LogLine { .. } | Readiness::Command { .. }
            ),
            "readiness by a line of the output or a command",
        ),
        (
            manifest::image(order).is_some_and(|image| !image.volumes.is_empty()),
            "volumes of this machine",
        ),
    ];
    let first = is_given.into_iter().find(|(is, _)| *is)?;
    Some(format!("as a pod: {}", first.1))
}

/// How long its phases may take.
fn longest(order: &Order) -> Duration {
    let phases = order.load.iter().map(|load| longest_load(&load.plan));
    phases.sum::<Duration>() + order.start_deadline + order.stop_grace
}

fn packed(order: &Order) -> Result<Vec<u8>, Refusal> {
    let what = "sending the order of a trial to the cluster";
    let failed = |error: &dyn std::fmt::Display| {
        Refusal::new(
            what,
            error,
            "this is a defect of loadline: please report it",
        )
    };
    let text = serde_json::to_vec(order).map_err(|error| failed(&error))?;
    let packed = zstd::encode_all(text.as_slice(), 3).map_err(|error| failed(&error))?;
    if packed.len() < LARGEST_ORDER * 3 / 4 {
        return Ok(packed);
    }
    let why = format!(
        "it has {} KiB, and a Secret holds 1 MiB",
        packed.len() >> 10
    );
    Err(Refusal::new(
        what,
        why,
        "smaller bodies, or a profile of fewer intervals",
    ))
}

fn no_image() -> Refusal {
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
    use super::*;
    use crate::testing::order;

    #[test]
    fn what_a_pod_does_not_do_is_refused_by_its_name() {
        assert_eq!(unable(&order()), None);
        let mut other = order();
        other.configuration.memory = None;
        assert_eq!(unable(&other).as_deref(), Some("as a pod: no memory limit"));
        let mut other = order();
        other.readiness = Readiness::LogLine {
            contains: "started".to_owned(),
        };
        assert!(unable(&other).is_some_and(|what| what.contains("a line of the output")));
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let packed = packed(&order()).expect("it is small");
        let text = zstd::decode_all(packed.as_slice()).expect("it is packed");
        let back: Order = serde_json::from_slice(&text).expect("it is an order");
        assert_eq!(back, order());
    }
}
