//! The objects made in the cluster for a trial, and for an inspection: pure values.
//!
//! Owns the Job, its pod and the Secret with the order. The pod keeps the `restricted` profile of
//! Pod Security, has no rights, and is Guaranteed: requests are limits in both containers. One
//! deletion of the Job removes everything: the Secret belongs to it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadline_analysis::price::InstanceSize;
use loadline_experiment::ClusterSettings;
use loadline_protocol::{Account, ImageSpec, TrialOrder};
use loadline_sizing::{Bytes, Cpus};
use loadline_trial::part::NODE;
use loadline_trial::pod::{MARK, MEMORY_MIB, QUOTA_MILLIS};
use serde_json::{Value, json};

use crate::labels::{APPLICATION, CLIENT, FILLS, MANAGED, MakerIdentity, OWN, OWNER};
use crate::nodes::PodPlacement;
use crate::workload::{self, WorkloadTemplate};

/// Memory of loadline's own container where generators make the load, and the least where it does.
const OWN_MEMORY: Bytes = Bytes::from_mib(256);

/// CPU of loadline's own container where generators make the load, thousandths: it samples,
/// forwards their messages, and must not be throttled in the CFS period in which it reads a log.
const WITHOUT_LOAD: u32 = 500;

/// Lifetime of a trial's pod beyond its phases, s: for images to be pulled.
const AROUND: u64 = 900;

/// Time the cluster keeps a finished Job that was not removed, s.
const KEPT: u32 = 3600;

pub(crate) const GRACE: u64 = 30;

/// What a container may leave on the disk of its node, its output and each directory of the pod's
/// included: beyond it the kubelet evicts the pod, before the node's other pods.
pub(crate) const FILES: &str = "10Gi";

/// What of it a node must have free, so that a pod finds the nodes that it found without a limit.
const FILES_ASKED: &str = "64Mi";

pub fn trial_object_name(trial: &str) -> String {
    format!("loadline-{trial}")
}

#[derive(Debug, Clone, Copy)]
pub struct TrialJobInput<'a> {
    pub order: &'a TrialOrder,
    pub image: &'a ImageSpec,
    pub cluster: &'a ClusterSettings,
    pub maker: &'a MakerIdentity,
    pub place: &'a PodPlacement,
    pub template: Option<&'a WorkloadTemplate>,
    pub memory: Bytes,
    /// How long its phases may take, s.
    pub seconds: u64,
}

/// Memory of loadline's container for a load that usually takes `load`: twice that. A node must
/// have it to spare, so the generator's strict upper bound would be too much; a generator that
/// reaches this limit is killed, and the trial is INVALID with that reason.
pub fn memory_for(load: Bytes) -> Bytes {
    OWN_MEMORY.max(load.mul_ratio(2, 1).round_up(Bytes::from_mib(1)))
}

pub fn trial_job(of: TrialJobInput<'_>) -> Value {
    let TrialJobInput {
        order,
        image,
        cluster,
        maker,
        place,
        template,
        memory,
        seconds,
    } = of;
    let name = trial_object_name(&order.trial);
    let user = pod_security_context(image.user.unwrap_or(order.account));
    let mut pod = json!({
        "restartPolicy": "Never",
        "shareProcessNamespace": !order.as_shipped,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": grace(order),
        "nodeSelector": cluster.node_selector,
        "affinity": place.affinity(),
        "securityContext": user,
        "volumes": [
            { "name": "loadline-order", "secret": { "secretName": name } },
            { "name": "loadline-work", "emptyDir": { "sizeLimit": FILES } },
            { "name": "loadline-tmp", "emptyDir": { "sizeLimit": FILES } },
        ],
        "containers": [loadline_container(cluster, memory), application_container(order, image, &name, template)],
    });
    if let Some(template) = template {
        extend(&mut pod["volumes"], &template.volumes);
        pod["initContainers"] = json!(template.before);
    }
    settle_pod(&mut pod, cluster, template);
    label_pods(
        wrap_in_job(&name, maker, pod, seconds + AROUND, true),
        place,
    )
}

/// From the wish to end its pod to the kill, s: loadline's own, where trial-part ends the application
/// itself, and the application's, where the kubelet does.
fn grace(order: &TrialOrder) -> u64 {
    if order.as_shipped {
        order.stop_grace.as_secs().max(1)
    } else {
        GRACE
    }
}

/// Which runtime starts a pod, and whatever else of a workload is its pods'.
fn settle_pod(pod: &mut Value, cluster: &ClusterSettings, template: Option<&WorkloadTemplate>) {
    if let Some(template) = template {
        workload::lay_under(&template.pod, pod);
    }
    if let Some(class) = runtime_class(cluster, template) {
        pod["runtimeClassName"] = json!(class);
    }
}

/// The RuntimeClass of all pods: what the user says, else what the workload has.
pub fn runtime_class(
    cluster: &ClusterSettings,
    template: Option<&WorkloadTemplate>,
) -> Option<String> {
    let of_workload = || template?.pod.get("runtimeClassName")?.as_str();
    let class = cluster.runtime_class.as_deref().or_else(of_workload);
    class.map(str::to_owned)
}

fn label_pods(mut job: Value, place: &PodPlacement) -> Value {
    for (label, value) in place.labels() {
        job["spec"]["template"]["metadata"]["labels"][label] = json!(value);
    }
    job
}

fn extend(list: &mut Value, more: &[Value]) {
    if let Some(list) = list.as_array_mut() {
        list.extend(more.iter().cloned());
    }
}

#[derive(Debug, Clone, Copy)]
pub struct InspectionJobInput<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub account: Account,
    pub cluster: &'a ClusterSettings,
    pub maker: &'a MakerIdentity,
    pub place: &'a PodPlacement,
    pub template: Option<&'a WorkloadTemplate>,
    pub memory: Bytes,
    pub room: Option<InstanceSize>,
}

/// A look from inside an image: loadline's copy of itself runs in it in the place of its program.
/// Beside it runs a container that must be killed for memory. It gets no node that has no room for the
/// trial: a pod needs what the largest of its first containers asks for.
pub fn inspection_job(of: InspectionJobInput<'_>) -> Value {
    let cluster = of.cluster;
    let limits = json!({ "cpu": format!("{QUOTA_MILLIS}m"), "memory": format!("{MEMORY_MIB}Mi") });
    let mount = json!([{ "name": "loadline", "mountPath": "/loadline" }]);
    let container = |name: &str, image: &str, command: Value| {
        json!({
            "name": name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            "env": [{ "name": MARK, "value": "look" }, { "name": "LOADLINE_IMAGE", "value": "" }],
            "securityContext": container_security_context(),
            "resources": container_resources(&limits),
            "volumeMounts": mount,
        })
    };
    let copy = json!(["/loadline", "pod-look", "--copy-to", "/copy/loadline"]);
    let mut copies = container(OWN, &cluster.trial_image, copy);
    if let Some(size) = of.room {
        let cpu = size.cpu.as_millis() + own_cpu(cluster).as_millis();
        let memory = size.memory.as_bytes() + own_memory(cluster, of.memory).as_bytes();
        let room = json!({ "cpu": format!("{cpu}m"), "memory": memory.to_string() });
        copies["resources"] = container_resources(&room);
    }
    let fill = json!(["/loadline", "pod-look", "--fill"]);
    let mut fills = container(FILLS, &cluster.trial_image, fill);
    // The image has a file of that name.
    for own in [&mut copies, &mut fills] {
        own["volumeMounts"][0]["mountPath"] = json!("/copy");
    }
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "nodeSelector": cluster.node_selector,
        "affinity": of.place.affinity(),
        "securityContext": pod_security_context(of.account),
        "volumes": [{ "name": "loadline", "emptyDir": { "sizeLimit": FILES } }],
        "initContainers": [copies],
        "containers": [
            container(APPLICATION, of.image, json!(["/loadline/loadline", "pod-look"])),
            fills,
        ],
    });
    settle_pod(&mut pod, cluster, of.template);
    label_pods(wrap_in_job(of.name, of.maker, pod, AROUND, false), of.place)
}

pub fn trial_secret(order: &TrialOrder, packed: &[u8], image: &ImageSpec, job_uid: &str) -> Value {
    let name = trial_object_name(&order.trial);
    let mut data: BTreeMap<String, String> = [("order".to_owned(), STANDARD.encode(packed))].into();
    for (variable, value) in secret_variables(order, image) {
        data.insert(format!("env.{variable}"), STANDARD.encode(value));
    }
    owned_secret(&name, json!(data), job_uid)
}

/// A Secret that goes with the Job of its name; the values of `data` are base64.
pub(crate) fn owned_secret(name: &str, data: Value, job_uid: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "immutable": true,
        "metadata": {
            "name": name,
            "labels": { MANAGED.0: MANAGED.1 },
            "ownerReferences": [owner_reference(name, job_uid)],
        },
        "data": data,
    })
}

pub(crate) fn wrap_in_job(
    name: &str,
    maker: &MakerIdentity,
    pod: Value,
    deadline: u64,
    suspend: bool,
) -> Value {
    let labels = json!({ MANAGED.0: MANAGED.1, CLIENT: maker.client });
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": { OWNER: maker.owner },
        },
        "spec": {
            "suspend": suspend,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": { "rules": [{
                "action": "FailJob",
                "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }],
            }] },
            "activeDeadlineSeconds": deadline,
            "ttlSecondsAfterFinished": KEPT,
            "template": {
                "metadata": { "labels": labels, "annotations": quiet_annotations() },
                "spec": pod,
            },
        },
    });
    if let Some((name, uid)) = &maker.within {
        job["metadata"]["ownerReferences"] = json!([owner_reference(name, uid)]);
    }
    job
}

pub(crate) fn owner_reference(job: &str, uid: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid })
}

/// What tells autoscalers to leave a pod's node alone, and a mesh not to inject.
pub(crate) fn quiet_annotations() -> Value {
    json!({
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "sidecar.istio.io/inject": "false",
    })
}

/// Who both containers are. The kernel shows the one to the other only if they are the same.
pub(crate) fn pod_security_context(account: Account) -> Value {
    json!({
        "runAsNonRoot": account.uid != 0,
        "runAsUser": account.uid,
        "runAsGroup": account.gid,
        "fsGroup": account.gid,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// Requests are limits, but for files, which make no pod Guaranteed.
pub(crate) fn container_resources(limits: &impl serde::Serialize) -> Value {
    let mut resources = json!({ "requests": limits, "limits": limits });
    resources["requests"]["ephemeral-storage"] = json!(FILES_ASKED);
    resources["limits"]["ephemeral-storage"] = json!(FILES);
    resources
}

pub(crate) fn container_security_context() -> Value {
    json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

/// loadline's own container. The kubelet starts a pod's containers in their order, and the next one when
/// the hook of the one before has ended: so the application is held back until everything watches. A
/// native sidecar does the same by its startup probe, and costs the kubelet's looks, one a second, at
/// three places: that it runs, that it has started, that it ends when the application has.
fn loadline_container(cluster: &ClusterSettings, memory: Bytes) -> Value {
    let command = |last: &[&'static str]| {
        let words = [
            "/loadline",
            "pod-part",
            "--order=/order/order",
            "--work=/work",
            "--tmp=/application-tmp",
        ];
        words.iter().chain(last).copied().collect::<Vec<_>>()
    };
    let cpu = format!("{}m", own_cpu(cluster).as_millis());
    let memory = own_memory(cluster, memory);
    let limits = json!({ "cpu": cpu, "memory": memory.to_string() });
    json!({
        "name": OWN,
        "image": cluster.trial_image,
        "imagePullPolicy": "IfNotPresent",
        "command": command(&[]),
        "env": [
            { "name": NODE, "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
            { "name": "LOADLINE_IMAGE", "value": "" },
        ],
        "securityContext": container_security_context(),
        "resources": container_resources(&limits),
        "lifecycle": { "postStart": { "exec": { "command": command(&["--armed"]) } } },
        "volumeMounts": [
            { "name": "loadline-order", "mountPath": "/order", "readOnly": true },
            { "name": "loadline-work", "mountPath": "/work" },
            { "name": "loadline-tmp", "mountPath": "/application-tmp" },
        ],
    })
}

fn own_cpu(cluster: &ClusterSettings) -> Cpus {
    match cluster.generators {
        None => cluster.trial_cpu.0,
        Some(_) => Cpus::from_millis(WITHOUT_LOAD),
    }
}

/// Memory of loadline's own container, `with_load` if it makes the load.
fn own_memory(cluster: &ClusterSettings, with_load: Bytes) -> Bytes {
    match cluster.generators {
        None => with_load,
        Some(_) => OWN_MEMORY,
    }
}

fn application_container(
    order: &TrialOrder,
    image: &ImageSpec,
    secret: &str,
    template: Option<&WorkloadTemplate>,
) -> Value {
    let hidden: Vec<&str> = secret_variables(order, image)
        .map(|(name, _)| name)
        .collect();
    let mut env = vec![json!({ "name": MARK, "value": order.trial })];
    env.extend(image.env.iter().map(|(name, value)| {
        if hidden.contains(&name.as_str()) {
            let key = json!({ "name": secret, "key": format!("env.{name}") });
            return json!({ "name": name, "valueFrom": { "secretKeyRef": key } });
        }
        // `$(X)` would be replaced.
        json!({ "name": name, "value": value.replace("$(", "$$(") })
    }));
    let mut limits = BTreeMap::new();
    let configuration = &order.configuration;
    if let Some(cpu) = configuration.cpu {
        limits.insert("cpu", format!("{}m", cpu.as_millis()));
    }
    if let Some(memory) = configuration.memory {
        limits.insert("memory", memory.as_bytes().to_string());
    }
    let args: Vec<String> = image
        .args
        .iter()
        .map(|arg| arg.replace("$(", "$$("))
        .collect();
    let mut container = json!({
        "name": APPLICATION,
        "image": image.id,
        "imagePullPolicy": "IfNotPresent",
        "env": env,
        "securityContext": container_security_context(),
        "resources": container_resources(&limits),
        "volumeMounts": [{ "name": "loadline-tmp", "mountPath": "/tmp" }],
    });
    if let Some(template) = template {
        workload::lay_under(&template.container, &mut container);
        container["env"] = workload::override_variables(&template.env, env).into();
        extend(&mut container["volumeMounts"], &template.mounts);
    }
    if !args.is_empty() {
        container["args"] = json!(args);
    }
    container
}

fn secret_variables<'a>(
    order: &'a TrialOrder,
    image: &'a ImageSpec,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let holds = |value: &str| {
        order
            .secrets
            .iter()
            .any(|s| !s.is_empty() && value.contains(s.as_str()))
    };
    let all = image.env.iter();
    all.filter(move |(_, value)| holds(value))
        .map(|(name, value)| (name.as_str(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::SLOT;
    use crate::testing::{test_cluster, test_order};
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::Secret;
    use loadline_sizing::Cpus;

    fn maker() -> MakerIdentity {
        MakerIdentity {
            client: "0123456789abcdef".to_owned(),
            owner: "loadline-1-2-3-4-x".to_owned(),
            within: None,
        }
    }

    fn place() -> PodPlacement {
        PodPlacement {
            slot: "7b-0-1".to_owned(),
            share: "0".to_owned(),
            node: None,
            taken: Vec::new(),
            unlike: Vec::new(),
        }
    }

    fn job_of(order: &TrialOrder, template: Option<&WorkloadTemplate>) -> Value {
        job_in(&test_cluster(), order, template)
    }

    fn job_in(
        cluster: &ClusterSettings,
        order: &TrialOrder,
        template: Option<&WorkloadTemplate>,
    ) -> Value {
        trial_job(TrialJobInput {
            order,
            image: order.app.image().expect("it has one"),
            cluster,
            maker: &maker(),
            place: &place(),
            template,
            memory: Bytes::from_mib(300),
            seconds: 90,
        })
    }

    #[test]
    fn the_job_of_a_trial() {
        let order = test_order();
        let job = job_of(&order, None);
        serde_json::from_value::<Job>(job.clone()).expect("the API knows it");
        let text = serde_json::to_string_pretty(&job).expect("it is JSON");
        insta::assert_snapshot!("job", text);
    }

    #[test]
    fn the_job_of_a_trial_after_a_workload() {
        let order = test_order();
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let template = WorkloadTemplate {
            pod: object(json!({ "serviceAccountName": "orders", "nodeSelector": { "zone": "a" } })),
            volumes: vec![json!({ "name": "config", "configMap": { "name": "orders" } })],
            before: vec![json!({ "name": "migrate", "image": "migrate:1" })],
            container: object(json!({ "command": ["java"], "args": ["-jar", "/app.jar"] })),
            env: vec![
                json!({ "name": "A", "value": "theirs" }),
                json!({ "name": "B", "value": "b" }),
            ],
            mounts: vec![json!({ "name": "config", "mountPath": "/etc/orders" })],
            ..WorkloadTemplate::default()
        };
        let job = job_of(&order, Some(&template));
        serde_json::from_value::<Job>(job.clone()).expect("the API knows it");
        let pod = &job["spec"]["template"]["spec"];
        let names = |list: &Value| {
            let all = list.as_array().into_iter().flatten();
            all.map(|v| v["name"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(&pod["initContainers"]), "migrate");
        assert_eq!(names(&pod["containers"]), "trial-part application");
        assert_eq!(
            names(&pod["volumes"]),
            "loadline-order loadline-work loadline-tmp config"
        );
        assert_eq!(
            pod["nodeSelector"],
            json!({ "pool": "sizing", "zone": "a" })
        );
        assert_eq!(pod["serviceAccountName"], json!("orders"));
        let application = &pod["containers"][1];
        assert_eq!(application["command"], json!(["java"]));
        // Arguments of the experiment win.
        assert_eq!(application["args"], json!(["serve"]));
        assert_eq!(names(&application["env"]), "B LOADLINE_TRIAL A PASSWORD");
        assert_eq!(names(&application["volumeMounts"]), "loadline-tmp config");
    }

    #[test]
    fn a_credential_stands_in_the_secret_alone() {
        let order = test_order();
        let image = order.app.image().expect("it has one");
        let job = job_of(&order, None).to_string();
        assert!(!job.contains("hunter2"), "{job}");
        let secret = trial_secret(&order, b"order", image, "uid-1");
        let secret: Secret = serde_json::from_value(secret).expect("the API knows it");
        let data = secret.data.unwrap_or_default();
        assert_eq!(
            data.get("env.PASSWORD").map(|v| v.0.as_slice()),
            Some(&b"hunter2"[..])
        );
        let owners = secret.metadata.owner_references.unwrap_or_default();
        assert_eq!(
            owners.first().map(|owner| owner.uid.as_str()),
            Some("uid-1")
        );
    }

    fn look_of(cluster: &ClusterSettings, room: Option<InstanceSize>) -> Value {
        inspection_job(InspectionJobInput {
            name: "loadline-look-1",
            image: "orders:1",
            account: test_order().account,
            cluster,
            maker: &maker(),
            place: &place(),
            template: None,
            memory: Bytes::from_mib(300),
            room,
        })
    }

    #[test]
    fn a_look_is_a_job_that_starts_at_once() {
        let look = look_of(&test_cluster(), None);
        assert_eq!(look["spec"]["suspend"], json!(false));
        let template = &look["spec"]["template"];
        assert_eq!(template["metadata"]["labels"][SLOT], json!("7b-0-1"));
        let pod = &template["spec"];
        assert_eq!(pod["containers"][0]["command"][1], json!("pod-look"));
        assert_eq!(pod["containers"][1]["command"][2], json!("--fill"));
        serde_json::from_value::<Job>(look).expect("the API knows it");
    }

    #[test]
    fn the_container_that_makes_the_load_has_room_for_it() {
        assert_eq!(memory_for(Bytes::from_mib(128)), OWN_MEMORY);
        let odd = Bytes::from_bytes(300 << 20 | 1);
        assert_eq!(memory_for(odd), Bytes::from_mib(601));
        let order = test_order();
        let of = |generators: u32| {
            let cluster = ClusterSettings {
                generators: std::num::NonZeroU32::new(generators),
                ..test_cluster()
            };
            let job = job_in(&cluster, &order, None);
            let own = &job["spec"]["template"]["spec"]["containers"][0];
            own["resources"]["limits"]["memory"].clone()
        };
        assert_eq!((of(0), of(2)), (json!("300Mi"), json!("256Mi")));
    }

    #[test]
    fn a_look_needs_the_room_of_a_trial() {
        let size = InstanceSize {
            cpu: Cpus::from_millis(500),
            memory: Bytes::from_mib(200),
        };
        let look = look_of(&test_cluster(), Some(size));
        let pod = &look["spec"]["template"]["spec"];
        let room = &pod["initContainers"][0]["resources"];
        let both = json!({ "cpu": "1500m", "memory": (500 << 20).to_string() });
        assert_eq!(room, &container_resources(&both));
        // What it shows, it shows by the limits of a look.
        assert_eq!(
            pod["containers"][0]["resources"]["limits"]["cpu"],
            json!("200m")
        );
        serde_json::from_value::<Job>(look).expect("the API knows it");
    }

    #[test]
    fn no_pod_fills_the_disk_of_its_node() {
        let pods = [job_of(&test_order(), None), look_of(&test_cluster(), None)];
        for job in pods {
            let pod = &job["spec"]["template"]["spec"];
            let all = |list: &str| pod[list].as_array().cloned().unwrap_or_default();
            let containers = [all("initContainers"), all("containers")].concat();
            for container in containers {
                let resources = &container["resources"];
                assert_eq!(resources["limits"]["ephemeral-storage"], json!(FILES));
                assert_eq!(
                    resources["requests"]["ephemeral-storage"],
                    json!(FILES_ASKED)
                );
            }
            for volume in all("volumes") {
                let room = volume.get("emptyDir").map(|dir| dir["sizeLimit"].clone());
                assert!(room.is_none_or(|room| room == json!(FILES)), "{volume}");
            }
        }
    }

    #[test]
    fn a_pod_as_it_ships_shares_no_processes_and_has_the_grace_of_its_application() {
        let of = |as_shipped| {
            let order = TrialOrder {
                as_shipped,
                ..test_order()
            };
            let job = job_of(&order, None);
            let pod = &job["spec"]["template"]["spec"];
            (
                pod["shareProcessNamespace"].clone(),
                pod["terminationGracePeriodSeconds"].clone(),
            )
        };
        assert_eq!(of(false), (json!(true), json!(30)));
        assert_eq!(of(true), (json!(false), json!(3)));
    }

    #[test]
    fn the_runtime_class_is_that_of_the_user_else_that_of_the_workload() {
        let class = |of_user: Option<&str>, of_workload: Option<&str>| {
            let mut cluster = test_cluster();
            cluster.runtime_class = of_user.map(str::to_owned);
            let class = of_workload.map(|name| ("runtimeClassName".to_owned(), json!(name)));
            let template = WorkloadTemplate {
                pod: class.into_iter().collect(),
                ..WorkloadTemplate::default()
            };
            let order = test_order();
            let job = job_in(&cluster, &order, Some(&template));
            let class = job["spec"]["template"]["spec"]["runtimeClassName"].clone();
            let recorded = json!(runtime_class(&cluster, Some(&template)));
            assert_eq!(class, recorded, "the record equals the request");
            class
        };
        assert_eq!(class(None, None), json!(null));
        assert_eq!(class(None, Some("kata")), json!("kata"));
        assert_eq!(class(Some("gvisor"), Some("kata")), json!("gvisor"));
        let mut cluster = test_cluster();
        cluster.runtime_class = Some("gvisor".to_owned());
        let look = look_of(&cluster, None);
        let class = &look["spec"]["template"]["spec"]["runtimeClassName"];
        assert_eq!(class, &json!("gvisor"));
    }
}
