//! The objects made in the cluster for a controller: pure values.
//!
//! Owns its Job and the Secret with its variables. Its pod keeps the `restricted` profile, is
//! Guaranteed and small, and has the token of the service account that `emit --rbac` makes. The Job
//! replaces a pod that ended without a stored end: it was killed or its node went away. Every
//! object that the controller made belongs to the Job, including its trials: one deletion removes
//! all.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadline_experiment::ClusterSettings;
use loadline_protocol::Account;
use loadline_sizing::{Bytes, Cpus};
use serde_json::{Value, json};

use super::identity;
use crate::labels::{CONTROLLER, FIRST_PIECE, MANAGED, RESULT, SHARE, controller_name};
use crate::manifest::{
    self, container_resources, container_security_context, owner_reference, pod_security_context,
    quiet_annotations,
};

/// The service account of controllers, as `emit --rbac` makes it.
pub const ACCOUNT: &str = "loadline";

/// What its container may take: it sends requests, follows logs and judges.
const CPU: Cpus = Cpus::from_millis(200);
const MEMORY: Bytes = Bytes::from_mib(256);

/// No search takes longer, s.
const DEADLINE: u64 = 7 * 24 * 3600;

const KEPT: u64 = 30 * 24 * 3600;

const PODS: u32 = 20;

/// Silence of a node after which its controller counts as lost, s; the cluster's default is 300.
const NODE_AWAY: u64 = 60;

const STATE: &str = "/state";

#[derive(Debug, Clone, Copy)]
pub struct ControllerJobInput<'a> {
    pub result: &'a str,
    pub title: &'a str,
    pub first_piece: &'a str,
    pub cluster: &'a ClusterSettings,
    pub namespace: &'a str,
    pub context: &'a str,
    pub account: Account,
    pub has_secret: bool,
    pub notify: Option<&'a str>,
}

/// The Job; it waits (`suspend`) until what it needs is there.
pub fn controller_job(of: ControllerJobInput<'_>) -> Value {
    let labels = json!({ MANAGED.0: MANAGED.1, RESULT: of.result });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": controller_name(of.result),
            "labels": labels,
            "annotations": { "loadline.dev/title": of.title, FIRST_PIECE: of.first_piece },
        },
        "spec": {
            "suspend": true,
            "backoffLimit": PODS,
            // A pod on a silent node is replaced before that node reports its end.
            "podReplacementPolicy": "TerminatingOrFailed",
            "activeDeadlineSeconds": DEADLINE,
            "ttlSecondsAfterFinished": KEPT,
            "template": {
                "metadata": { "labels": labels, "annotations": quiet_annotations() },
                "spec": controller_pod(of),
            },
        },
    })
}

fn controller_pod(of: ControllerJobInput<'_>) -> Value {
    let away = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NODE_AWAY });
    json!({
        "restartPolicy": "Never",
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": true,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": manifest::GRACE,
        "tolerations": [away("node.kubernetes.io/unreachable"), away("node.kubernetes.io/not-ready")],
        "affinity": controller_affinity(of.cluster),
        "securityContext": pod_security_context(of.account),
        "volumes": [{ "name": "state", "emptyDir": { "sizeLimit": manifest::FILES } }],
        "containers": [controller_container(of)],
    })
}

/// Rather not where trials run: it is small, and still noise.
fn controller_affinity(cluster: &ClusterSettings) -> Value {
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let trials = json!([{ "weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": { "matchExpressions": [{ "key": SHARE, "operator": "Exists" }] },
    } }]);
    let mut affinity = json!({ "podAntiAffinity": { preferred: trials } });
    let others = cluster.node_selector.iter().map(|(label, value)| {
        let other = json!({ "key": label, "operator": "NotIn", "values": [value] });
        json!({ "weight": 50, "preference": { "matchExpressions": [other] } })
    });
    let others: Vec<Value> = others.collect();
    if !others.is_empty() {
        affinity["nodeAffinity"] = json!({ preferred: others });
    }
    affinity
}

fn controller_container(of: ControllerJobInput<'_>) -> Value {
    let name = controller_name(of.result);
    let words = ["/loadline", "resume", of.result, "--kubernetes"];
    let place = ["--context", of.context, "--namespace", of.namespace];
    let command: Vec<&str> = words
        .into_iter()
        .chain(place)
        .chain(of.notify.iter().flat_map(|notify| ["--notify", notify]))
        .collect();
    let field = |variable: &str, path: &str| json!({ "name": variable, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let uid = "metadata.labels['batch.kubernetes.io/controller-uid']";
    let limits = json!({ "cpu": format!("{}m", CPU.as_millis()), "memory": MEMORY.to_string() });
    let from = if of.has_secret {
        json!([{ "secretRef": { "name": name } }])
    } else {
        json!([])
    };
    json!({
        "name": CONTROLLER,
        "image": of.cluster.trial_image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "envFrom": from,
        "env": [
            { "name": "LOADLINE_IMAGE", "value": "" },
            { "name": "HOME", "value": STATE },
            { "name": "LOADLINE_STATE", "value": format!("{STATE}/loadline") },
            { "name": "SQLITE_TMPDIR", "value": STATE },
            { "name": identity::OF_RESULT, "value": of.result },
            field(identity::OF_UID, uid),
            field(identity::OF_POD, "metadata.name"),
        ],
        "securityContext": container_security_context(),
        "resources": container_resources(&limits),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{ "name": "state", "mountPath": STATE }],
    })
}

pub fn controller_secret(result: &str, variables: &BTreeMap<String, String>, uid: &str) -> Value {
    let data = variables.iter();
    let data: BTreeMap<&str, String> = data
        .map(|(name, value)| (name.as_str(), STANDARD.encode(value)))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "immutable": true,
        "metadata": {
            "name": controller_name(result),
            "labels": { MANAGED.0: MANAGED.1, RESULT: result },
            "ownerReferences": [owner_reference(&controller_name(result), uid)],
        },
        "data": data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::Secret;

    const ID: &str = "019aaa00-0000-7000-8000-000000000001";

    fn of(cluster: &ClusterSettings) -> ControllerJobInput<'_> {
        ControllerJobInput {
            result: ID,
            title: "orders",
            first_piece: "sha256:00",
            cluster,
            namespace: "sizing",
            context: "staging",
            account: testing::test_order().account,
            has_secret: true,
            notify: None,
        }
    }

    #[test]
    fn the_job_of_a_controller() {
        let job = controller_job(of(&testing::test_cluster()));
        let text = serde_json::to_string_pretty(&job).expect("it is JSON");
        insta::assert_snapshot!("controller", text);
        let job: Job = serde_json::from_value(job).expect("the API knows it");
        let name = job.metadata.name.unwrap_or_default();
        // Its pods have a suffix of six characters.
        assert!(name.len() + 6 <= 63, "{name}");
    }

    #[test]
    fn values_of_variables_stand_in_the_secret_alone() {
        let variables = [("DB_PASSWORD".to_owned(), "hunter2".to_owned())].into();
        let secret = controller_secret(ID, &variables, "uid-1");
        let secret: Secret = serde_json::from_value(secret).expect("the API knows it");
        let data = secret.data.unwrap_or_default();
        assert_eq!(data["DB_PASSWORD"].0, b"hunter2");
        let job = controller_job(of(&testing::test_cluster())).to_string();
        assert!(!job.contains("hunter2"));
    }
}
