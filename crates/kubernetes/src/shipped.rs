//! The end of a trial with a pod in its shipped layout: the kubelet stops the application and
//! reports how it ended.
//!
//! Owns the order of the steps. Evidence is on this machine before anything is stopped. Then
//! loadline's own container exits, and the kubelet's status about that also shows the application
//! at that moment: if it has ended by then, it ended unprompted. Otherwise the pod is deleted, as
//! in production, and its last status has the exit code. Facts: Kubernetes, "Termination of Pods"
//! (the kubelet reports the end of every container before the pod is gone).

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use loadline_analysis::record::Evidence;
use tokio::time::sleep;

use crate::standing;
use crate::trial::{KUBELET, PodFollower, add_end};
use crate::watched::{LOOK, WatchedPod};

const KILL: i32 = 9;

const NOT_TOLD: &str = "the kubelet did not say how the application ended";

impl PodFollower {
    pub(crate) async fn stop_and_complete(
        &self,
        watched: &WatchedPod,
        name: &str,
        mut evidence: Evidence,
    ) -> Evidence {
        let is_settled =
            |pod: &Pod| standing::own_end(pod).is_some() || standing::removal_reason(pod).is_some();
        wait_for_status(watched, KUBELET, is_settled).await;
        let has_ended = |pod: &Pod| standing::application_end(pod).is_some();
        if let Some(pod) = watched.latest_pod() {
            evidence.exit.before_stop = has_ended(&pod);
            self.add_status(&pod, &mut evidence);
        }
        if evidence.start.ready.is_none() || evidence.exit.before_stop {
            // With its pod its log goes.
            evidence.last_output = self.application_output(name).await;
        }
        if evidence.exit.before_stop || evidence.failure.is_some() {
            return evidence;
        }
        self.remove_pod_job().await;
        wait_for_status(watched, self.order.stop_grace + KUBELET, has_ended).await;
        match watched.latest_pod().filter(|pod| has_ended(pod)) {
            Some(pod) => add_stopped(&pod, &mut evidence),
            None => evidence.warnings.push(NOT_TOLD.to_owned()),
        }
        evidence
    }
}

/// The end of an application that was stopped: it was killed if it exceeded its grace.
fn add_stopped(pod: &Pod, evidence: &mut Evidence) {
    add_end(pod, evidence);
    let is_oom = evidence.cgroup.oom_kills.is_some_and(|kills| kills > 0);
    evidence.exit.unclean_stop = evidence.exit.signal == Some(KILL) && !is_oom;
}

/// Waits until a status of the pod has it, or no further one will come.
async fn wait_for_status(watched: &WatchedPod, patience: Duration, says: impl Fn(&Pod) -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < patience && !watched.latest_pod().as_deref().is_some_and(&says) {
        if watched.is_deleted() {
            return;
        }
        sleep(LOOK).await;
    }
}
