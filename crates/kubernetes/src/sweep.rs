//! Leftovers of a killed loadline in a cluster.
//!
//! Owns who made which object. Only objects of dead processes of this machine since its boot are
//! removed: a cluster has other users with processes that cannot be seen from here, and a clone of
//! this machine has its machine-id and its host name. Their objects expire
//! (`activeDeadlineSeconds`, `ttlSecondsAfterFinished`).

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::api::ListParams;
use loadline_cgroup::GroupName;
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::RunRefusal;
use loadline_trial::{client_id, is_dead_of_ours};

use crate::cluster::{ConnectedCluster, remove_job, within_deadline};
use crate::in_cluster::identity::ControllerPod;
use crate::in_cluster::outside;
use crate::labels::{CLIENT, MANAGED, MakerIdentity, OWNER, controller_name};
use crate::refused;

#[derive(Debug, Default)]
pub struct ClusterSweep {
    pub jobs: Vec<String>,
    /// Results with their own Job, in which loadline works or has worked: they are left alone.
    pub results: Vec<String>,
}

impl ClusterSweep {
    pub fn remove_leftovers(wanted: &Wanted) -> Result<Self, RunRefusal> {
        let cluster = ConnectedCluster::connect_to(wanted)?;
        Ok(Self {
            results: outside::list_results(&cluster)?,
            ..sweep_jobs(&cluster)?
        })
    }
}

/// This process. Of the pods of a controller one lives: what another one made is left over.
pub(crate) fn maker_identity(inside: Option<&ControllerPod>) -> MakerIdentity {
    if let Some(inside) = inside {
        return MakerIdentity {
            client: format!("result-{}", inside.result),
            owner: inside.pod.clone(),
            within: Some((controller_name(&inside.result), inside.uid.clone())),
        };
    }
    let owner = GroupName::new(Path::new("/proc"), &unique_text());
    MakerIdentity {
        client: client_id(),
        owner: owner.map(|name| name.to_string()).unwrap_or_default(),
        within: None,
    }
}

/// A text that no other object of this process has, and hardly one of another.
pub(crate) fn unique_text() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number}", loadline_trial::monotonic_ns())
}

pub(crate) fn sweep_jobs(cluster: &ConnectedCluster) -> Result<ClusterSweep, RunRefusal> {
    let own = maker_identity(cluster.inside.as_ref());
    let is_left = |owner: &String| match &own.within {
        Some(_) => *owner != own.owner,
        None => is_dead_of_ours(owner),
    };
    let labels = format!("{}={},{CLIENT}={}", MANAGED.0, MANAGED.1, own.client);
    let params = ListParams::default().labels(&labels);
    let jobs = cluster.access.jobs();
    let listed = cluster.run(within_deadline(jobs.list(&params)));
    let listed =
        listed.map_err(|e| refused::request_refusal("listing Jobs of earlier trials", &e))?;
    let mut swept = ClusterSweep::default();
    for job in listed.items {
        let owner = job.metadata.annotations.as_ref().and_then(|a| a.get(OWNER));
        let name = job.metadata.name.clone().unwrap_or_default();
        if !owner.is_some_and(is_left) {
            continue;
        }
        let removed = cluster.run(remove_job(&cluster.access, &name));
        removed.map_err(|e| refused::request_refusal("removing a Job of an earlier trial", &e))?;
        swept.jobs.push(name);
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_and_a_text_that_is_none_are_left_alone() {
        let owner = maker_identity(None).owner;
        assert!(!is_dead_of_ours(&owner) && !is_dead_of_ours("somebody"));
        // A clone has our machine-id and host name, and a different boot.
        let clone = "loadline-ffffffff-4026531836-4242-777-x";
        assert!(!is_dead_of_ours(clone));
        let process = format!("-{}-", std::process::id());
        assert!(
            is_dead_of_ours(&owner.replacen(&process, "-4000000000-", 1)),
            "{owner}"
        );
        assert_eq!(client_id().len(), 16);
    }
}
