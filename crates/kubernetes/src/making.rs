//! The requests that make a trial, or a generator: its suspended Job, its Secret, and its release.
//!
//! Owns the retries. Each request may have been carried out although its answer was lost: so an
//! existing object with its name comes from an earlier try.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use loadline_protocol::{RunRefusal, TrialOrder};
use loadline_trial::generator_deadline as longest_load;
use serde_json::{Value, json};

use crate::cluster::NamespaceAccess;
use crate::gate::RequestGate;
use crate::look::{NodeInspector, require_answer};
use crate::nodes::PodPlacement;
use crate::refused::{defect_refusal, no_image, parse_json_value};
use crate::watched::PodHalt;
use crate::{manifest, refused};

/// A Secret holds 1 MiB.
const LARGEST_ORDER: usize = 1 << 20;

pub(crate) struct TrialCreation<'a> {
    pub(crate) looks: &'a NodeInspector,
    pub(crate) gate: &'a RequestGate,
    pub(crate) order: &'a TrialOrder,
    pub(crate) place: PodPlacement,
}

impl TrialCreation<'_> {
    pub(crate) async fn create_objects(&self) -> Result<(), PodHalt> {
        let (looks, order) = (self.looks, self.order);
        let image = order
            .app
            .image()
            .ok_or_else(|| PodHalt::Refused(no_image()))?;
        let packed = pack_order(order).map_err(PodHalt::Refused)?;
        let job = manifest::trial_object_name(&order.trial);
        let requests = self.job_requests(&job);
        let wanted = manifest::trial_job(manifest::TrialJobInput {
            order,
            image,
            cluster: &looks.wanted,
            maker: &looks.maker,
            place: &self.place,
            template: looks.template.as_ref(),
            memory: looks.memory,
            seconds: longest_duration(order).as_secs(),
        });
        let uid = requests.make_job(wanted).await?;
        let secret = manifest::trial_secret(order, &packed, image, &uid);
        requests.make_secret(secret).await
    }

    pub(crate) async fn start_pod(&self) -> Result<(), PodHalt> {
        let job = manifest::trial_object_name(&self.order.trial);
        self.job_requests(&job).unsuspend_job().await
    }

    fn job_requests<'a>(&'a self, job: &'a str) -> JobRequests<'a> {
        JobRequests {
            access: &self.looks.access,
            gate: self.gate,
            job,
            of: "a trial",
        }
    }
}

pub(crate) struct JobRequests<'a> {
    pub(crate) access: &'a NamespaceAccess,
    pub(crate) gate: &'a RequestGate,
    pub(crate) job: &'a str,
    pub(crate) of: &'a str,
}

impl JobRequests<'_> {
    pub(crate) async fn make_job(&self, wanted: Value) -> Result<String, PodHalt> {
        let wanted = parse_json_value(wanted).map_err(PodHalt::Refused)?;
        let params = PostParams::default();
        let made = self.retry_through_gate("making the Job of", || {
            let (jobs, wanted, params, job) = (self.access.jobs(), &wanted, &params, self.job);
            async move {
                let made = jobs.create(params, wanted).await;
                let made = match made {
                    // An earlier try was carried out, and its answer lost: no other has this name.
                    Err(error) if refused::is_there(&error) => find_job(&jobs, job).await?,
                    made => Some(made?),
                };
                Ok(made.and_then(|made| made.metadata.uid).unwrap_or_default())
            }
        });
        made.await
    }

    pub(crate) async fn make_secret(&self, secret: Value) -> Result<(), PodHalt> {
        let secret = parse_json_value(secret).map_err(PodHalt::Refused)?;
        let params = PostParams::default();
        let made = self.retry_through_gate("making the Secret of", || {
            let (secrets, secret, params) = (self.access.secrets(), &secret, &params);
            async move {
                match secrets.create(params, secret).await {
                    Err(error) if !refused::is_there(&error) => Err(error),
                    _ => Ok(()),
                }
            }
        });
        made.await
    }

    pub(crate) async fn unsuspend_job(&self) -> Result<(), PodHalt> {
        let go = Patch::Merge(json!({ "spec": { "suspend": false } }));
        let params = PatchParams::default();
        let started = self.retry_through_gate("starting the Job of", || {
            let (jobs, go, params) = (self.access.jobs(), &go, &params);
            async move { jobs.patch(self.job, params, go).await }
        });
        started.await.map(drop)
    }

    async fn retry_through_gate<T, F>(
        &self,
        what: &str,
        request: impl Fn() -> F,
    ) -> Result<T, PodHalt>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let answer = self.gate.pass_with_retries(self.job, request).await;
        require_answer(&format!("{what} {}", self.of), answer)
    }
}

async fn find_job(jobs: &Api<Job>, name: &str) -> Result<Option<Job>, kube::Error> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(jobs.list(&params).await?.items.pop())
}

fn longest_duration(order: &TrialOrder) -> Duration {
    let phases = order.load.iter().map(|load| longest_load(&load.plan));
    phases.sum::<Duration>() + order.start_deadline + order.stop_grace
}

fn pack_order(order: &TrialOrder) -> Result<Vec<u8>, RunRefusal> {
    let what = "sending the order of a trial to the cluster";
    let text = serde_json::to_vec(order).map_err(|error| defect_refusal(what, error))?;
    let packed =
        zstd::encode_all(text.as_slice(), 3).map_err(|error| defect_refusal(what, error))?;
    if packed.len() < LARGEST_ORDER * 3 / 4 {
        return Ok(packed);
    }
    let why = format!(
        "it has {} KiB, and a Secret holds 1 MiB",
        packed.len() >> 10
    );
    Err(RunRefusal::new(
        what,
        why,
        "use smaller bodies, or a profile with fewer intervals",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_order;

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let packed = pack_order(&test_order()).expect("it is small");
        let text = zstd::decode_all(packed.as_slice()).expect("it is packed");
        let back: TrialOrder = serde_json::from_slice(&text).expect("it is an order");
        assert_eq!(back, test_order());
    }
}
