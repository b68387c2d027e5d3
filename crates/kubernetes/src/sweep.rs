//! What a killed loadline left in a cluster.
//!
//! Owns who made what. Only what a process of this machine made that is dead is removed: a cluster
//! has other users, whose processes nobody can see from here. Theirs ends by itself
//! (`activeDeadlineSeconds`, `ttlSecondsAfterFinished`).

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::api::ListParams;
use loadline_cgroup::GroupName;
use loadline_engine::experiment::Cluster as Wanted;
use loadline_host::{client, is_dead};
use loadline_trial::Refusal;

use crate::cluster::{Cluster, remove, within};
use crate::in_cluster::inside::Inside;
use crate::in_cluster::{job, outside};
use crate::manifest::{CLIENT, MANAGED, Maker, OWNER};
use crate::refused;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// Jobs that are gone now.
    pub jobs: Vec<String>,
    /// Results with a Job of their own, in which loadline works or has worked: they are left alone.
    pub results: Vec<String>,
}

impl Swept {
    /// Removes what dead processes of this machine left in a cluster.
    ///
    /// # Errors
    /// [`Refusal`] when the cluster does not answer or does not let it.
    pub fn of(wanted: &Wanted) -> Result<Self, Refusal> {
        let cluster = Cluster::connect(wanted)?;
        Ok(Self {
            results: outside::results(&cluster)?,
            ..sweep(&cluster)?
        })
    }
}

/// This process. Of the pods of a controller one lives: what another one made is left over.
pub(crate) fn maker(inside: Option<&Inside>) -> Maker {
    if let Some(inside) = inside {
        return Maker {
            client: format!("result-{}", inside.result),
            owner: inside.pod.clone(),
            within: Some((job::name(&inside.result), inside.uid.clone())),
        };
    }
    let owner = GroupName::new(Path::new("/proc"), &unique());
    Maker {
        client: client(),
        owner: owner.map(|name| name.to_string()).unwrap_or_default(),
        within: None,
    }
}

/// A text that no other object of this process has, and hardly one of another.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number}", loadline_host::monotonic_ns())
}

pub(crate) fn sweep(cluster: &Cluster) -> Result<Swept, Refusal> {
    let own = maker(cluster.inside.as_ref());
    let is_left = |owner: &String| match &own.within {
        Some(_) => *owner != own.owner,
        None => is_dead(owner, Path::new("/proc")),
    };
    let labels = format!("{}={},{CLIENT}={}", MANAGED.0, MANAGED.1, own.client);
    let params = ListParams::default().labels(&labels);
    let jobs = cluster.access.jobs();
    let listed = cluster.run(within(jobs.list(&params)));
    let listed = listed.map_err(|e| refused::request("listing Jobs of earlier trials", &e))?;
    let mut swept = Swept::default();
    for job in listed.items {
        let owner = job.metadata.annotations.as_ref().and_then(|a| a.get(OWNER));
        let name = job.metadata.name.clone().unwrap_or_default();
        if !owner.is_some_and(is_left) {
            continue;
        }
        let removed = cluster.run(remove(&cluster.access, &name));
        removed.map_err(|e| refused::request("removing a Job of an earlier trial", &e))?;
        swept.jobs.push(name);
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_and_a_text_that_is_none_are_left_alone() {
        let proc = Path::new("/proc");
        assert!(!is_dead(&maker(None).owner, proc));
        assert!(!is_dead("somebody", proc));
        assert_eq!(client().len(), 16);
    }
}
