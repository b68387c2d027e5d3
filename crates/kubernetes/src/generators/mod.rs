//! The generator pods of a run: each slot has its own, which its trials use one after the other.
//!
//! Owns when they are made, where they may run, and their removal. They are made before the first
//! trial, so that slots find the remaining nodes; a set with a lost pod is replaced for the next
//! trial. [`loadline_load::remote`] owns their work.

mod manifest;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use loadline_load::remote::{GeneratorMember, Generators, PORT};
use loadline_protocol::RunRefusal;
use tokio::time::{sleep, timeout};

use crate::cluster::{ANSWER, remove_job};
use crate::gate::RequestGate;
use crate::look::NodeInspector;
use crate::making::JobRequests;
use crate::nodes::NodeRegistry;
use crate::watched::{LOOK, PodHalt, RoomPatience, WatchedPod, wait_until_begun};
use crate::{standing, sweep};

pub(crate) struct GeneratorPool {
    looks: Arc<NodeInspector>,
    nodes: NodeRegistry,
    number: NonZeroU32,
    gate: RequestGate,
    sets: Mutex<BTreeMap<usize, GeneratorSet>>,
}

struct GeneratorSet {
    generators: Generators,
    watched: Vec<(String, WatchedPod)>,
}

impl GeneratorSet {
    fn is_whole(&self) -> bool {
        let is_there = |watched: &WatchedPod| {
            let pod = watched.latest_pod();
            !watched.is_gone() && pod.as_deref().and_then(standing::removal_reason).is_none()
        };
        self.watched.iter().all(|(_, watched)| is_there(watched))
    }
}

impl GeneratorPool {
    pub(crate) fn new(
        looks: &Arc<NodeInspector>,
        nodes: &NodeRegistry,
        number: NonZeroU32,
    ) -> Self {
        Self {
            looks: Arc::clone(looks),
            nodes: nodes.clone(),
            number,
            gate: RequestGate::default(),
            sets: Mutex::default(),
        }
    }

    /// Makes the generators of this many slots at once. Errors: [`PodHalt`]: whatever keeps a pod
    /// from running.
    pub(crate) async fn fill_pool(&self, slots: usize) -> Result<(), PodHalt> {
        let all = (0..slots).map(|slot| self.ready_generators(slot, |_| ()));
        try_join_all(all).await.map(drop)
    }

    /// The generators of a slot, replaced if one is lost. `waits` hears why a pod has no node yet.
    /// Errors: [`PodHalt`]: whatever keeps a pod from running.
    pub(crate) async fn ready_generators(
        &self,
        slot: usize,
        waits: impl Fn(&str),
    ) -> Result<Generators, PodHalt> {
        if let Some(set) = self.sets().get(&slot)
            && set.is_whole()
        {
            return Ok(set.generators.clone());
        }
        self.renew(slot).await;
        let secret = random_secret().map_err(PodHalt::Refused)?;
        let made = (0..self.number.get()).map(|_| self.make_generator(slot, &secret, &waits));
        let (members, watched) = try_join_all(made).await?.into_iter().unzip();
        let generators = Generators { secret, members };
        let set = GeneratorSet {
            generators: generators.clone(),
            watched,
        };
        self.sets().insert(slot, set);
        Ok(generators)
    }

    pub(crate) async fn renew(&self, slot: usize) {
        let Some(set) = self.sets().remove(&slot) else {
            return;
        };
        for (job, _) in &set.watched {
            let removed = self
                .gate
                .pass_with_retries(job, || remove_job(&self.looks.access, job));
            // One that could not be removed is known to the gate.
            if matches!(removed.await, Some(Ok(()))) {
                self.gate.forget(job).await;
            }
        }
    }

    pub(crate) async fn close_pool(&self) -> Vec<String> {
        self.sets().clear();
        self.gate.close_gate().await
    }

    fn sets(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, GeneratorSet>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make_generator(
        &self,
        slot: usize,
        secret: &str,
        waits: impl Fn(&str),
    ) -> Result<(GeneratorMember, (String, WatchedPod)), PodHalt> {
        let job = format!("loadline-generator-{}", sweep::unique_text());
        let looks = &self.looks;
        let place = self.nodes.placement_for_slot(slot);
        let requests = JobRequests {
            access: &looks.access,
            gate: &self.gate,
            job: &job,
            of: "a generator",
        };
        let parts = manifest::GeneratorJobInput {
            name: &job,
            slot: &place.slot,
            taken: &self.nodes.slot_nodes(),
            cluster: &looks.wanted,
            maker: &looks.maker,
            account: looks.account,
            template: looks.template.as_ref(),
            memory: looks.memory,
        };
        let uid = requests.make_job(manifest::generator_job(parts)).await?;
        let known = manifest::generator_secret(&job, secret, &uid);
        requests.make_secret(known).await?;
        requests.unsuspend_job().await?;
        let watched = WatchedPod::start_watch(looks.access.pods(), &job);
        let mut told = String::new();
        let hears = |why: &str| {
            if told != why {
                why.clone_into(&mut told);
                waits(why);
            }
            RoomPatience::Some
        };
        let begun = wait_until_begun(&watched, &looks.access, &job, &self.gate, hears).await;
        let pod = begun.map_err(no_room)?;
        let address = generator_address(&watched).await;
        let address =
            address.ok_or_else(|| PodHalt::pod_lost("the pod of a generator has no address"))?;
        let member = GeneratorMember {
            name: pod.name_any(),
            node: standing::node_name(&pod).unwrap_or_default(),
            address,
        };
        Ok((member, (job, watched)))
    }
}

async fn generator_address(watched: &WatchedPod) -> Option<SocketAddr> {
    let known = async {
        loop {
            if let Some(ip) = watched.latest_pod().as_deref().and_then(ip) {
                return SocketAddr::new(ip, PORT);
            }
            sleep(LOOK).await;
        }
    };
    timeout(ANSWER, known).await.ok()
}

fn ip(pod: &Pod) -> Option<IpAddr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

fn no_room(halt: PodHalt) -> PodHalt {
    match halt {
        PodHalt::NoRoom(refusal) => PodHalt::NoRoom(RunRefusal::new(
            "finding a node for a generator",
            refusal.why,
            "a generator needs a node without a trial: use fewer --slots or more nodes, or let both share one with --share-nodes 2, where its CPU disturbs the trial",
        )),
        halt => halt,
    }
}

fn random_secret() -> Result<String, RunRefusal> {
    let mut bytes = [0; 32];
    loadline_sys::fill_random(&mut bytes).map_err(|error| {
        let hint = "the kernel must give random bytes: getrandom(2)";
        RunRefusal::new("a secret for generators", error, hint)
    })?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Text takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
