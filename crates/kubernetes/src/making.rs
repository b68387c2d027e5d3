//! The requests that make a trial, or a generator: its Job, which waits, its Secret, and the word that
//! lets it go.
//!
//! Owns what is tried again. Each request may have been carried out although its answer was lost: so
//! what is there already under its name is that of an earlier try.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use loadline_host::longest as longest_load;
use loadline_trial::{Order, Refusal};
use serde_json::{Value, json};

use crate::cluster::Access;
use crate::gate::Gate;
use crate::kubernetes::{no_image, value};
use crate::look::Looks;
use crate::manifest;
use crate::nodes::Place;
use crate::refused;
use crate::watched::Halt;

/// A Secret holds 1 MiB.
const LARGEST_ORDER: usize = 1 << 20;

/// What a trial is made of.
pub(crate) struct Making<'a> {
    pub(crate) looks: &'a Looks,
    pub(crate) gate: &'a Gate,
    pub(crate) order: &'a Order,
    pub(crate) place: Place,
}

impl Making<'_> {
    /// Makes everything; nothing runs yet.
    ///
    /// # Errors
    /// [`Halt`]; what was made is known to the gate.
    pub(crate) async fn make(&self) -> Result<(), Halt> {
        let (looks, order) = (self.looks, self.order);
        let image = manifest::image(order).ok_or_else(|| Halt::Refused(no_image()))?;
        let packed = packed(order).map_err(Halt::Refused)?;
        let job = manifest::name(&order.trial);
        let requests = self.requests(&job);
        let wanted = manifest::job(manifest::Parts {
            order,
            image,
            cluster: &looks.wanted,
            maker: &looks.maker,
            place: &self.place,
            template: looks.template.as_ref(),
            memory: looks.memory,
            seconds: longest(order).as_secs(),
        });
        let uid = requests.make_job(wanted).await?;
        let secret = manifest::secret(order, &packed, image, &uid);
        requests.make_secret(secret).await
    }

    /// Lets its pod be made.
    ///
    /// # Errors
    /// [`Halt`].
    pub(crate) async fn start(&self) -> Result<(), Halt> {
        let job = manifest::name(&self.order.trial);
        self.requests(&job).start().await
    }

    fn requests<'a>(&'a self, job: &'a str) -> Requests<'a> {
        Requests {
            access: &self.looks.access,
            gate: self.gate,
            job,
            of: "a trial",
        }
    }
}

/// The requests about one Job.
pub(crate) struct Requests<'a> {
    pub(crate) access: &'a Access,
    pub(crate) gate: &'a Gate,
    pub(crate) job: &'a str,
    /// Whose Job it is, in words.
    pub(crate) of: &'a str,
}

impl Requests<'_> {
    /// Makes the Job; gives its uid.
    ///
    /// # Errors
    /// [`Halt`]; what was made is known to the gate.
    pub(crate) async fn make_job(&self, wanted: Value) -> Result<String, Halt> {
        let wanted = value(wanted).map_err(Halt::Refused)?;
        let params = PostParams::default();
        let made = self.often("making the Job of", || {
            let (jobs, wanted, params, job) = (self.access.jobs(), &wanted, &params, self.job);
            async move {
                let made = jobs.create(params, wanted).await;
                let made = match made {
                    // An earlier try was carried out, and its answer lost: no other has this name.
                    Err(error) if refused::is_there(&error) => named(&jobs, job).await?,
                    made => Some(made?),
                };
                Ok(made.and_then(|made| made.metadata.uid).unwrap_or_default())
            }
        });
        made.await
    }

    /// Makes its Secret.
    ///
    /// # Errors
    /// [`Halt`].
    pub(crate) async fn make_secret(&self, secret: Value) -> Result<(), Halt> {
        let secret = value(secret).map_err(Halt::Refused)?;
        let params = PostParams::default();
        let made = self.often("making the Secret of", || {
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

    /// Lets its pod be made.
    ///
    /// # Errors
    /// [`Halt`].
    pub(crate) async fn start(&self) -> Result<(), Halt> {
        let go = Patch::Merge(json!({ "spec": { "suspend": false } }));
        let params = PatchParams::default();
        let started = self.often("starting the Job of", || {
            let (jobs, go, params) = (self.access.jobs(), &go, &params);
            async move { jobs.patch(self.job, params, go).await }
        });
        started.await.map(drop)
    }

    async fn often<T, F>(&self, what: &str, request: impl Fn() -> F) -> Result<T, Halt>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let answer = self.gate.often(self.job, request).await;
        let answer = answer.ok_or_else(|| Halt::lost("it was stopped"))?;
        let what = format!("{what} {}", self.of);
        answer.map_err(|error| Halt::Refused(refused::request(&what, &error)))
    }
}

/// A Job by its name, without the right to get one.
async fn named(jobs: &Api<Job>, name: &str) -> Result<Option<Job>, kube::Error> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(jobs.list(&params).await?.items.pop())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let packed = packed(&order()).expect("it is small");
        let text = zstd::decode_all(packed.as_slice()).expect("it is packed");
        let back: Order = serde_json::from_slice(&text).expect("it is an order");
        assert_eq!(back, order());
    }
}
