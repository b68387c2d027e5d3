//! The generator pods of a run: each slot has its own, which its trials use one after the other.
//!
//! Owns when they are made, where they may run, and that they go. They are made before the first trial,
//! so that slots find the nodes that are left; a set of which one is gone is made anew for the next
//! trial. What they do is [`loadline_load::remote`]'s.

mod manifest;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use loadline_load::remote::{Generators, Member, PORT};
use loadline_trial::Refusal;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::time::{sleep, timeout};

use crate::cluster::{ANSWER, remove};
use crate::gate::Gate;
use crate::look::Looks;
use crate::making::Requests;
use crate::nodes::Nodes;
use crate::watched::{Halt, LOOK, Patience, Watched, begun};
use crate::{standing, sweep};

/// Those of all slots.
pub(crate) struct Pool {
    looks: Arc<Looks>,
    nodes: Nodes,
    /// For each slot.
    number: NonZeroU32,
    gate: Gate,
    sets: Mutex<BTreeMap<usize, Set>>,
}

/// Those of one slot.
struct Set {
    generators: Generators,
    watched: Vec<(String, Watched)>,
}

impl Set {
    /// Whether none is gone.
    fn is_whole(&self) -> bool {
        let is_there = |watched: &Watched| {
            let pod = watched.pod();
            !watched.is_gone() && pod.as_deref().and_then(standing::taken).is_none()
        };
        self.watched.iter().all(|(_, watched)| is_there(watched))
    }
}

impl Pool {
    pub(crate) fn new(looks: &Arc<Looks>, nodes: &Nodes, number: NonZeroU32) -> Self {
        Self {
            looks: Arc::clone(looks),
            nodes: nodes.clone(),
            number,
            gate: Gate::default(),
            sets: Mutex::default(),
        }
    }

    /// Makes those of so many slots at once.
    ///
    /// # Errors
    /// [`Halt`]: whatever keeps one from running.
    pub(crate) async fn fill(&self, slots: usize) -> Result<(), Halt> {
        let all = (0..slots).map(|slot| self.ready(slot, |_| ()));
        try_join_all(all).await.map(drop)
    }

    /// The generators of a slot; made anew where one is gone. `waits` hears why one has no node yet.
    ///
    /// # Errors
    /// [`Halt`]: whatever keeps one from running.
    pub(crate) async fn ready(
        &self,
        slot: usize,
        waits: impl Fn(&str),
    ) -> Result<Generators, Halt> {
        if let Some(set) = self.sets().get(&slot)
            && set.is_whole()
        {
            return Ok(set.generators.clone());
        }
        self.renew(slot).await;
        let secret = secret().map_err(Halt::Refused)?;
        let made = (0..self.number.get()).map(|_| self.generator(slot, &secret, &waits));
        let (members, watched) = try_join_all(made).await?.into_iter().unzip();
        let generators = Generators { secret, members };
        let set = Set {
            generators: generators.clone(),
            watched,
        };
        self.sets().insert(slot, set);
        Ok(generators)
    }

    /// Removes the generators of a slot: the next trial gets others.
    pub(crate) async fn renew(&self, slot: usize) {
        let Some(set) = self.sets().remove(&slot) else {
            return;
        };
        for (job, _) in &set.watched {
            let removed = self.gate.often(job, || remove(&self.looks.access, job));
            // One that could not be removed is known to the gate.
            if matches!(removed.await, Some(Ok(()))) {
                self.gate.forget(job).await;
            }
        }
    }

    /// Nothing is made any more; gives every Job that may be there.
    pub(crate) async fn close(&self) -> Vec<String> {
        self.sets().clear();
        self.gate.close().await
    }

    fn sets(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Set>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn generator(
        &self,
        slot: usize,
        secret: &str,
        waits: impl Fn(&str),
    ) -> Result<(Member, (String, Watched)), Halt> {
        let job = format!("loadline-generator-{}", sweep::unique());
        let looks = &self.looks;
        let place = self.nodes.place(slot);
        let requests = Requests {
            access: &looks.access,
            gate: &self.gate,
            job: &job,
            of: "a generator",
        };
        let parts = manifest::Parts {
            name: &job,
            slot: &place.slot,
            taken: &self.nodes.taken(),
            cluster: &looks.wanted,
            maker: &looks.maker,
            account: looks.account,
            template: looks.template.as_ref(),
            memory: looks.memory,
        };
        let uid = requests.make_job(manifest::job(parts)).await?;
        let known = manifest::secret(&job, secret, &uid);
        requests.make_secret(known).await?;
        requests.start().await?;
        let watched = Watched::start(looks.access.pods(), &job);
        let mut told = String::new();
        let hears = |why: &str| {
            if told != why {
                why.clone_into(&mut told);
                waits(why);
            }
            Patience::Some
        };
        let begun = begun(&watched, &looks.access, &job, &self.gate, hears).await;
        let pod = begun.map_err(no_room)?;
        let address = address(&watched).await;
        let address = address.ok_or_else(|| Halt::lost("the pod of a generator has no address"))?;
        let member = Member {
            name: pod.name_any(),
            node: standing::node(&pod).unwrap_or_default(),
            address,
        };
        Ok((member, (job, watched)))
    }
}

/// Where a generator listens, once its kubelet has said it.
async fn address(watched: &Watched) -> Option<SocketAddr> {
    let known = async {
        loop {
            if let Some(ip) = watched.pod().as_deref().and_then(ip) {
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

fn no_room(halt: Halt) -> Halt {
    match halt {
        Halt::NoRoom(refusal) => Halt::NoRoom(Refusal::new(
            "finding a node for a generator",
            refusal.why,
            "a generator runs on a node without a trial: fewer --slots, more nodes, or --share-nodes 2 lets both share one, where its CPU is noise for the trial",
        )),
        halt => halt,
    }
}

/// What nobody guesses.
fn secret() -> Result<String, Refusal> {
    let mut bytes = [0; 32];
    let got = getrandom(&mut bytes, GetRandomFlags::empty());
    if got.ok() != Some(bytes.len()) {
        let hint = "the kernel must give random bytes: getrandom(2)";
        return Err(Refusal::new(
            "a secret for generators",
            "there is none",
            hint,
        ));
    }
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Text takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
