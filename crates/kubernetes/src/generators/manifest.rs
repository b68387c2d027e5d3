//! The objects made in the cluster for a generator: pure values.
//!
//! Owns the Job, its pod and the Secret shared with its client. The pod keeps the `restricted`
//! profile of Pod Security and has no rights, like a trial's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadline_experiment::ClusterSettings;
use loadline_load::remote::PORT;
use loadline_protocol::Account;
use loadline_sizing::Bytes;
use serde_json::{Value, json};

use crate::labels::{GENERATOR, MakerIdentity, SLOT};
use crate::manifest::{
    container_resources, container_security_context, owned_secret, pod_security_context,
    wrap_in_job,
};
use crate::workload::WorkloadTemplate;

const GENERATES: &str = "loadline.dev/generates";

/// A generator without a client for this long ends, s: its loadline was killed. If a client comes
/// later, it gets a new one.
const IDLE: u64 = 3600;

/// However busy, no longer than this, s.
const LONGEST: u64 = 7 * 24 * 3600;

#[derive(Debug, Clone, Copy)]
pub(crate) struct GeneratorJobInput<'a> {
    pub(crate) name: &'a str,
    pub(crate) slot: &'a str,
    pub(crate) taken: &'a [String],
    pub(crate) cluster: &'a ClusterSettings,
    pub(crate) maker: &'a MakerIdentity,
    pub(crate) account: Account,
    pub(crate) template: Option<&'a WorkloadTemplate>,
    pub(crate) memory: Bytes,
}

/// The Job of a generator; it waits (`suspend`) until its Secret is there.
pub(crate) fn generator_job(of: GeneratorJobInput<'_>) -> Value {
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        // Requests after the stop have no receiver.
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": of.cluster.node_selector,
        "affinity": generator_affinity(of),
        "securityContext": pod_security_context(of.account),
        "volumes": [{ "name": "secret", "secret": { "secretName": of.name } }],
        "containers": [generator_container(of)],
    });
    // What lets the image be pulled, and the nodes be used, of those whom trials are made after.
    for field in ["imagePullSecrets", "tolerations"] {
        if let Some(value) = of.template.and_then(|template| template.pod.get(field)) {
            pod[field] = value.clone();
        }
    }
    let mut job = wrap_in_job(of.name, of.maker, pod, LONGEST, true);
    job["spec"]["template"]["metadata"]["labels"][GENERATES] = json!(of.slot);
    job
}

pub(crate) fn generator_secret(name: &str, secret: &str, job_uid: &str) -> Value {
    owned_secret(name, json!({ "secret": STANDARD.encode(secret) }), job_uid)
}

fn generator_container(of: GeneratorJobInput<'_>) -> Value {
    let cpu = format!("{}m", of.cluster.trial_cpu.0.as_millis());
    let limits = json!({ "cpu": cpu, "memory": of.memory.to_string() });
    json!({
        "name": GENERATOR,
        "image": of.cluster.trial_image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/loadline",
            "pod-generator",
            "--secret=/secret/secret",
            format!("--port={PORT}"),
            format!("--idle={IDLE}"),
        ],
        "env": [{ "name": "LOADLINE_IMAGE", "value": "" }],
        "ports": [{ "containerPort": PORT }],
        "securityContext": container_security_context(),
        "resources": container_resources(&limits),
        "volumeMounts": [{ "name": "secret", "mountPath": "/secret", "readOnly": true }],
    })
}

/// Never on a node with a trial of any run, nor on a node that a slot of this run returns to; only
/// a preference if trials may share their node. Generators stay together: a node with a generator
/// has no trial.
fn generator_affinity(of: GeneratorJobInput<'_>) -> Value {
    let term = |key: &str| {
        json!({
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchExpressions": [{ "key": key, "operator": "Exists" }] },
        })
    };
    let (required, preferred) = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    );
    let together = json!([{ "weight": 50, "podAffinityTerm": term(GENERATES) }]);
    let mut affinity = json!({ "podAffinity": { preferred: together } });
    let not =
        |node: &String| json!({ "key": "metadata.name", "operator": "NotIn", "values": [node] });
    let fields: Vec<Value> = of.taken.iter().map(not).collect();
    match of.cluster.share_nodes.get() {
        1 => {
            affinity["podAntiAffinity"] = json!({ required: [term(SLOT)] });
            if !fields.is_empty() {
                let terms = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
                affinity["nodeAffinity"] = json!({ required: terms });
            }
        }
        _ => {
            let apart = json!([{ "weight": 100, "podAffinityTerm": term(SLOT) }]);
            affinity["podAntiAffinity"] = json!({ preferred: apart });
            if !fields.is_empty() {
                let rather = json!([{ "weight": 100, "preference": { "matchFields": fields } }]);
                affinity["nodeAffinity"] = json!({ preferred: rather });
            }
        }
    }
    affinity
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::Secret;

    use super::*;
    use crate::testing::{test_cluster, test_order};

    fn made(share_nodes: u32, taken: &[String]) -> Value {
        let cluster = ClusterSettings {
            share_nodes: NonZeroU32::new(share_nodes).expect("some"),
            ..test_cluster()
        };
        generator_job(GeneratorJobInput {
            name: "loadline-generator-1",
            slot: "r-0",
            taken,
            cluster: &cluster,
            maker: &MakerIdentity {
                client: "c".to_owned(),
                owner: "o".to_owned(),
                within: None,
            },
            account: test_order().account,
            template: None,
            memory: Bytes::from_mib(256),
        })
    }

    #[test]
    fn a_generator_is_restricted_and_has_no_token() {
        let job = made(1, &[]);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], json!(false));
        assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true));
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"], container_security_context());
        let resources = &container["resources"];
        assert_eq!(
            resources["requests"]["memory"],
            resources["limits"]["memory"]
        );
        assert!(
            !job.to_string().contains("hunter2"),
            "no part from the order"
        );
        serde_json::from_value::<Job>(job).expect("the API knows it");
        let secret = generator_secret("loadline-generator-1", "words", "uid");
        serde_json::from_value::<Secret>(secret).expect("the API knows it");
    }

    #[test]
    fn it_is_on_no_node_of_a_trial_unless_nodes_are_shared() {
        let taken = ["a".to_owned()];
        let affinity = |share| made(share, &taken)["spec"]["template"]["spec"]["affinity"].clone();
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let must = affinity(1);
        let key = |of: &Value| of["labelSelector"]["matchExpressions"][0]["key"].clone();
        assert_eq!(key(&must["podAntiAffinity"][required][0]), json!(SLOT));
        let field = &must["nodeAffinity"][required]["nodeSelectorTerms"][0]["matchFields"][0];
        assert_eq!(field["values"], json!(["a"]));
        let rather = affinity(2);
        for kind in ["podAntiAffinity", "nodeAffinity"] {
            assert_eq!(rather[kind][required], json!(null), "{kind}");
        }
    }
}
