//! What the status of a pod says: pure.
//!
//! Owns the meaning of the kubelet's and the scheduler's words. Facts: kubelet's waiting reasons
//! (`pkg/kubelet/images`, `kuberuntime`), pod conditions (`PodScheduled`, `DisruptionTarget`).

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use loadline_protocol::RunRefusal;

use crate::labels::{APPLICATION, CONTROLLER, GENERATOR, OWN};

#[derive(Debug, Clone, PartialEq)]
pub enum PodStanding {
    Waiting(Option<String>),
    /// The scheduler finds no node; its reason. That may pass.
    NoRoom(String),
    Begun,
    Refused(RunRefusal),
    /// Taken away: evicted, preempted, deleted, its node gone.
    Lost(String),
}

/// Reasons of a container that waits and will wait for ever.
const PULL: [&str; 5] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
];
const CREATE: [&str; 4] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];

pub fn standing_of_pod(pod: &Pod) -> PodStanding {
    if let Some(why) = removal_reason(pod) {
        return PodStanding::Lost(why);
    }
    if let Some(refusal) = statuses(pod).find_map(|status| stuck_refusal(pod, status)) {
        return PodStanding::Refused(refusal);
    }
    let has_begun = |status: &ContainerStatus| {
        let state = status.state.as_ref();
        is_own(&status.name) && state.is_some_and(|s| s.running.is_some() || s.terminated.is_some())
    };
    if statuses(pod).any(has_begun) {
        return PodStanding::Begun;
    }
    if let Some(why) = unscheduled_reason(pod) {
        return PodStanding::NoRoom(why);
    }
    let reason = statuses(pod).find_map(|s| s.state.as_ref()?.waiting.as_ref()?.reason.clone());
    PodStanding::Waiting(reason)
}

fn is_own(container: &str) -> bool {
    [OWN, CONTROLLER, GENERATOR].contains(&container)
}

pub fn removal_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_ref().into_iter().flatten();
    let mut disrupted = conditions.filter(|c| c.type_ == "DisruptionTarget" && c.status == "True");
    if let Some(condition) = disrupted.next() {
        let reason = condition.reason.clone().unwrap_or_default();
        let message = condition.message.clone().unwrap_or_default();
        return Some(
            format!("the cluster took the pod away: {reason} {message}")
                .trim()
                .to_owned(),
        );
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some("the pod was deleted".to_owned());
    }
    let reason = status.reason.as_deref()?;
    let is_taken = [
        "Evicted",
        "NodeLost",
        "Preempting",
        "Terminated",
        "UnexpectedAdmissionError",
    ];
    let message = status.message.as_deref().unwrap_or_default();
    is_taken
        .contains(&reason)
        .then(|| format!("{reason}: {message}"))
}

/// Whether all its containers have ended: the scheduler then reuses its resources.
pub fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub fn application_end(pod: &Pod) -> Option<&ContainerStateTerminated> {
    ended_of(pod, APPLICATION)
}

pub fn ended_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStateTerminated> {
    let found = statuses(pod).find(|status| status.name == container)?;
    found.state.as_ref()?.terminated.as_ref()
}

pub fn own_end(pod: &Pod) -> Option<String> {
    let end = ended_of(pod, OWN)?;
    let reason = end.reason.as_deref().unwrap_or("it does not say why");
    Some(format!("exit code {}, {reason}", end.exit_code))
}

pub fn runtime(pod: &Pod) -> Option<String> {
    let id = statuses(pod).find_map(|status| status.container_id.clone())?;
    id.split_once("://").map(|(runtime, _)| runtime.to_owned())
}

pub fn image_id(pod: &Pod) -> Option<String> {
    let application = statuses(pod).find(|status| status.name == APPLICATION)?;
    Some(application.image_id.clone()).filter(|id| !id.is_empty())
}

pub fn node_name(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

pub(crate) fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let first = status.and_then(|s| s.init_container_statuses.as_ref());
    let then = status.and_then(|s| s.container_statuses.as_ref());
    first.into_iter().chain(then).flatten()
}

fn unscheduled_reason(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|c| c.type_ == "PodScheduled")?;
    (scheduled.status == "False").then(|| scheduled.message.clone().unwrap_or_default())
}

fn stuck_refusal(pod: &Pod, status: &ContainerStatus) -> Option<RunRefusal> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let message = waiting.message.as_deref().unwrap_or_default();
    let why = format!("{reason}: {message}");
    if PULL.contains(&reason) {
        let (what, hint) = match status.name.as_str() {
            OWN | CONTROLLER => (
                format!("loadline's own image {}", status.image),
                "the nodes must be able to pull it: push your build of it to a registry they use and name it with --trial-image",
            ),
            _ => (
                format!("the image {}", status.image),
                "check the name; for a private registry the namespace's default service account needs imagePullSecrets",
            ),
        };
        return Some(RunRefusal::new(what, why, hint));
    }
    if CREATE.contains(&reason) {
        let what = format!(
            "starting the container {} on {}",
            status.name,
            node_name(pod).unwrap_or_default()
        );
        let hint =
            "if the image needs a certain user: --user UID:GID; `kubectl describe pod` shows more";
        return Some(RunRefusal::new(what, why, hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: Value) -> Pod {
        let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [], "nodeName": "n" }, "status": status });
        serde_json::from_value(pod).expect("it is a pod")
    }

    fn container(name: &str, state: Value) -> Value {
        json!({ "name": name, "image": "orders:1", "imageID": "", "ready": false, "restartCount": 0, "state": state })
    }

    #[test]
    fn a_pod_without_a_node_waits_with_the_scheduler_s_reason() {
        let why = "0/3 nodes are available: 3 Insufficient cpu.";
        let status = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why }] });
        assert_eq!(
            standing_of_pod(&pod(status)),
            PodStanding::NoRoom(why.to_owned())
        );
        assert_eq!(standing_of_pod(&pod(json!({}))), PodStanding::Waiting(None));
    }

    #[test]
    fn an_image_that_cannot_be_pulled_is_a_refusal_that_names_it() {
        let state = json!({ "waiting": { "reason": "ErrImagePull", "message": "not found" } });
        let of_app = standing_of_pod(&pod(
            json!({ "containerStatuses": [container(APPLICATION, state.clone())] }),
        ));
        let PodStanding::Refused(refusal) = of_app else {
            panic!("{of_app:?}");
        };
        assert_eq!(
            refusal.to_string(),
            "the image orders:1: ErrImagePull: not found"
        );
        let of_own = standing_of_pod(&pod(
            json!({ "containerStatuses": [container(OWN, state)] }),
        ));
        let PodStanding::Refused(refusal) = of_own else {
            panic!("{of_own:?}");
        };
        assert!(refusal.hint.contains("--trial-image"), "{refusal:?}");
    }

    #[test]
    fn a_pod_holds_its_place_until_all_of_it_has_ended() {
        for (phase, is) in [
            ("Running", false),
            ("Pending", false),
            ("Failed", true),
            ("Succeeded", true),
        ] {
            assert_eq!(is_over(&pod(json!({ "phase": phase }))), is, "{phase}");
        }
    }

    #[test]
    fn a_pod_that_was_taken_away_is_lost_whatever_else_it_says() {
        let running = container(OWN, json!({ "running": {} }));
        let status = json!({
            "containerStatuses": [running],
            "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted" }],
        });
        let lost = "the cluster took the pod away: PreemptionByScheduler preempted";
        assert_eq!(
            standing_of_pod(&pod(status)),
            PodStanding::Lost(lost.to_owned())
        );
        let evicted = json!({ "reason": "Evicted", "message": "low on memory" });
        assert_eq!(
            standing_of_pod(&pod(evicted)),
            PodStanding::Lost("Evicted: low on memory".to_owned())
        );
    }

    #[test]
    fn the_end_of_the_application_is_read_from_its_container() {
        let own = container(OWN, json!({ "running": {} }));
        let end = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        let all = pod(json!({ "containerStatuses": [own, container(APPLICATION, end.clone())] }));
        assert_eq!(standing_of_pod(&all), PodStanding::Begun);
        assert_eq!(application_end(&all).map(|end| end.exit_code), Some(137));
        assert_eq!(
            (own_end(&all), node_name(&all).as_deref()),
            (None, Some("n"))
        );
        let all = pod(json!({ "containerStatuses": [container(OWN, end)] }));
        assert_eq!(own_end(&all).as_deref(), Some("exit code 137, OOMKilled"));
    }
}
