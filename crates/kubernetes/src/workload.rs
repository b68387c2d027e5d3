//! A workload that runs, as the template of trials.
//!
//! Owns what its trials take of it and what not. Taken are the container with everything that it
//! refers to (config maps, secrets, projected volumes: by reference, so no value of them comes here),
//! its init containers, account, and where it may run. Not taken is what a trial gives itself (limits,
//! probes, affinity) and what would disturb (other containers, hooks); that is said. A volume that
//! belongs to one pod is a refusal: two pods must not write to it. Facts: Kubernetes API reference,
//! apps/v1 Deployment and StatefulSet, core/v1 PodSpec.

use std::fmt;
use std::str::FromStr;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use loadline_engine::experiment::ClusterSettings as Wanted;
use loadline_protocol::RunRefusal;
use serde_json::{Map, Value, json};

use crate::cluster::{self, ConnectedCluster, within_deadline};
use crate::refused;

/// Kinds that have a pod template, with the short names that kubectl knows.
const KINDS: [(&str, &[&str]); 2] = [
    ("Deployment", &["deployment", "deployments", "deploy"]),
    ("StatefulSet", &["statefulset", "statefulsets", "sts"]),
];

/// Volumes that several pods may have.
const SHARED: [&str; 5] = [
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "emptyDir",
];

/// What its pods are given besides containers and volumes.
const OF_POD: [&str; 11] = [
    "serviceAccountName",
    "automountServiceAccountToken",
    "imagePullSecrets",
    "nodeSelector",
    "tolerations",
    "hostAliases",
    "dnsPolicy",
    "dnsConfig",
    "runtimeClassName",
    "priorityClassName",
    "enableServiceLinks",
];

/// What makes its pods' containers see each other's processes, as those of trials do.
const SHARES: &str = "shareProcessNamespace";

/// What its container is given besides image, environment and volumes.
const OF_CONTAINER: [&str; 4] = ["command", "args", "workingDir", "envFrom"];

/// What is left out of a container, and why that is right for a trial.
const NOT_OF_CONTAINER: [(&str, &str); 2] = [
    ("lifecycle", "its hooks: a trial ends by SIGTERM"),
    (
        "livenessProbe",
        "its liveness probe: a slow application is measured, not restarted",
    ),
];

/// A workload of a namespace: `deployment/orders`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadName {
    kind: &'static str,
    name: String,
}

impl FromStr for WorkloadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no workload: write deployment/NAME or statefulset/NAME");
        let (kind, name) = text.split_once('/').ok_or_else(wrong)?;
        let (known, _) = KINDS
            .iter()
            .find(|(_, words)| words.contains(&kind.to_lowercase().as_str()))
            .ok_or_else(wrong)?;
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(wrong());
        }
        Ok(Self {
            kind: known,
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name)
    }
}

/// The whole object of a workload, as the API server has it now.
/// Errors: [`RunRefusal`] when the cluster does not answer or has no such workload.
pub fn read(wanted: &Wanted, name: &WorkloadName) -> Result<Value, RunRefusal> {
    of_cluster(&ConnectedCluster::connect_to(wanted)?, name)
}

/// Every workload of these namespaces, all without one, as the API server has them now. Needs no more
/// than the right to list them.
/// Errors: [`RunRefusal`] when the cluster does not answer, or lists nothing for this user.
pub fn list_workloads(
    context: Option<&str>,
    namespaces: &[String],
) -> Result<Vec<Value>, RunRefusal> {
    let kinds = KINDS.map(|(kind, _)| workload_resource(kind));
    let found = cluster::list_cluster_objects(context, namespaces, &kinds)?;
    let value = |object: DynamicObject| serde_json::to_value(object).map_err(defect);
    found.into_iter().map(value).collect()
}

fn workload_resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind))
}

fn defect(error: serde_json::Error) -> RunRefusal {
    let hint = "this is a defect of loadline: please report it";
    RunRefusal::new("reading a workload", error, hint)
}

pub(crate) fn of_cluster(
    cluster: &ConnectedCluster,
    name: &WorkloadName,
) -> Result<Value, RunRefusal> {
    let api: Api<DynamicObject> = cluster.access.dynamic(&workload_resource(name.kind));
    let found = cluster.run(within_deadline(api.get(&name.name)));
    let found =
        found.map_err(|error| refused::request_refusal(&format!("reading {name}"), &error))?;
    serde_json::to_value(found).map_err(defect)
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkloadTemplate {
    pub pod: Map<String, Value>,
    pub volumes: Vec<Value>,
    /// Containers that run to their end before the application.
    pub before: Vec<Value>,
    pub container: Map<String, Value>,
    pub env: Vec<Value>,
    pub mounts: Vec<Value>,
    pub user: Option<(u32, u32)>,
    /// Whether the containers of its own pods share their PID namespace.
    pub shares_processes: bool,
    pub image: String,
    pub left_out: Vec<String>,
}

/// Takes what trials need of a workload's object.
/// Errors: [`RunRefusal`] for what no second pod may have.
pub fn extract_template(
    name: &WorkloadName,
    object: &Value,
    container: &str,
) -> Result<WorkloadTemplate, RunRefusal> {
    let spec = object.pointer("/spec/template/spec");
    let spec = spec
        .and_then(Value::as_object)
        .ok_or_else(|| missing_container(name, container))?;
    let all = list_field(spec, "containers");
    let of = all
        .iter()
        .find(|c| text_field(c, "name") == Some(container));
    let of = of
        .and_then(Value::as_object)
        .ok_or_else(|| missing_container(name, container))?;
    let mut template = WorkloadTemplate {
        image: of
            .get("image")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        env: list_field(of, "env"),
        container: pick_fields(of, &OF_CONTAINER),
        pod: pick_fields(spec, &OF_POD),
        user: container_user(spec, of),
        shares_processes: spec.get(SHARES).and_then(Value::as_bool).unwrap_or(false),
        ..WorkloadTemplate::default()
    };
    template.add_mounts(name, spec, of)?;
    template.note_left_out(spec, of, &all);
    Ok(template)
}

impl WorkloadTemplate {
    fn add_mounts(
        &mut self,
        name: &WorkloadName,
        spec: &Map<String, Value>,
        of: &Map<String, Value>,
    ) -> Result<(), RunRefusal> {
        let inits = list_field(spec, "initContainers");
        let (stay, end): (Vec<_>, Vec<_>) = inits
            .into_iter()
            .partition(|c| text_field(c, "restartPolicy") == Some("Always"));
        self.left_out.extend(stay.iter().map(describe_sidecar));
        self.before = end;
        self.mounts = list_field(of, "volumeMounts");
        // It has a directory of its own there, which loadline reads.
        let before = self.mounts.len();
        self.mounts.retain(|m| {
            text_field(m, "mountPath").map(|p| p.trim_end_matches('/')) != Some("/tmp")
        });
        if self.mounts.len() < before {
            self.left_out
                .push("its volume at /tmp: a trial has one of its own there".to_owned());
        }
        let of_inits = self.before.iter().filter_map(Value::as_object);
        let mut used: Vec<Value> = of_inits
            .flat_map(|c| list_field(c, "volumeMounts"))
            .collect();
        used.extend(self.mounts.iter().cloned());
        for volume in list_field(spec, "volumes") {
            let is_used = used
                .iter()
                .any(|m| text_field(m, "name") == text_field(&volume, "name"));
            let is_shared = SHARED.iter().any(|kind| volume.get(kind).is_some());
            match (is_used, is_shared) {
                (false, _) => {}
                (true, true) => self.volumes.push(volume),
                (true, false) => return Err(not_shared(name, &volume)),
            }
        }
        Ok(())
    }

    fn note_left_out(&mut self, spec: &Map<String, Value>, of: &Map<String, Value>, all: &[Value]) {
        let others = all.iter().filter(|c| c.get("name") != of.get("name"));
        self.left_out.extend(others.map(describe_sidecar));
        let not = NOT_OF_CONTAINER
            .iter()
            .filter(|(field, _)| of.contains_key(*field));
        self.left_out
            .extend(not.map(|(_, what)| (*what).to_owned()));
        if spec.contains_key("affinity") || spec.contains_key("topologySpreadConstraints") {
            let what =
                "its affinity: trials are kept apart by their own; --node-selector chooses nodes";
            self.left_out.push(what.to_owned());
        }
        if list_field(of, "envFrom")
            .iter()
            .any(|from| from.get("configMapRef").is_some())
        {
            let what = "a JAVA_TOOL_OPTIONS of a config map, if it has one: trials give their own";
            self.left_out.push(what.to_owned());
        }
    }
}

fn describe_sidecar(container: &Value) -> String {
    let name = text_field(container, "name").unwrap_or_default();
    format!("the container {name}, which runs beside the application")
}

fn container_user(spec: &Map<String, Value>, of: &Map<String, Value>) -> Option<(u32, u32)> {
    let contexts = [of.get("securityContext"), spec.get("securityContext")];
    let field = |name: &str| {
        let mut found = contexts
            .iter()
            .flatten()
            .filter_map(|c| c.get(name)?.as_u64());
        u32::try_from(found.next()?).ok()
    };
    let uid = field("runAsUser")?;
    Some((uid, field("runAsGroup").unwrap_or(uid)))
}

fn pick_fields(of: &Map<String, Value>, fields: &[&str]) -> Map<String, Value> {
    let is_some = |(name, _): &(&String, &Value)| fields.contains(&name.as_str());
    let found = of.iter().filter(is_some);
    found
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn list_field(of: &Map<String, Value>, name: &str) -> Vec<Value> {
    let list = of.get(name).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

fn text_field<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

fn missing_container(name: &WorkloadName, container: &str) -> RunRefusal {
    let why = format!("its pods have no container {container} any more");
    RunRefusal::new(name, why, "name one that it has with --container")
}

fn not_shared(name: &WorkloadName, volume: &Value) -> RunRefusal {
    let kinds = volume.as_object().into_iter().flatten();
    let kind = kinds
        .map(|(kind, _)| kind.as_str())
        .find(|kind| *kind != "name");
    let why = format!(
        "its container mounts the volume {}, a {}, which a second pod must not use",
        text_field(volume, "name").unwrap_or_default(),
        kind.unwrap_or("volume of unknown kind")
    );
    let hint =
        "measure the image by itself: --image in place of --from, with what it needs in --env";
    RunRefusal::new(name, why, hint)
}

/// Puts variables of a trial behind those of the template, in whose place they stand.
pub(crate) fn override_variables(template: &[Value], own: Vec<Value>) -> Vec<Value> {
    let is_own = |v: &&Value| own.iter().any(|o| o.get("name") == v.get("name"));
    let kept = template.iter().filter(|v| !is_own(v)).cloned();
    kept.chain(own.iter().cloned()).collect()
}

/// Lays fields over an object; of a map that both have, what is there already wins.
pub(crate) fn lay_under(fields: &Map<String, Value>, under: &mut Value) {
    for (name, value) in fields {
        match (under.get_mut(name), value) {
            (Some(Value::Object(own)), Value::Object(more)) => {
                for (key, value) in more {
                    own.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
            _ => under[name.as_str()] = json!(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Value {
        json!({ "kind": "Deployment", "metadata": { "name": "orders" }, "spec": { "template": { "spec": {
            "serviceAccountName": "orders",
            "nodeSelector": { "pool": "blue", "zone": "a" },
            "securityContext": { "runAsUser": 1000 },
            "affinity": {},
            "initContainers": [
                { "name": "proxy", "restartPolicy": "Always" },
                { "name": "migrate", "volumeMounts": [{ "name": "scripts", "mountPath": "/s" }] },
            ],
            "containers": [
                { "name": "istio-proxy", "image": "envoy" },
                {
                    "name": "app", "image": "registry/orders:1.4", "command": ["java", "-jar", "/app.jar"],
                    "env": [{ "name": "A", "value": "b" }, { "name": "P", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
                    "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }, { "name": "config", "mountPath": "/etc/orders" }],
                    "livenessProbe": {}, "resources": { "limits": { "cpu": "2" } },
                },
            ],
            "volumes": [
                { "name": "tmp", "emptyDir": {} },
                { "name": "config", "configMap": { "name": "orders" } },
                { "name": "scripts", "configMap": { "name": "scripts" } },
                { "name": "unused", "hostPath": { "path": "/" } },
            ],
        } } } })
    }

    fn name() -> WorkloadName {
        "deploy/orders".parse().expect("a name")
    }

    #[test]
    fn a_workload_is_named_as_kubectl_names_it() {
        assert_eq!(name().to_string(), "deployment/orders");
        for wrong in [
            "orders",
            "pod/orders",
            "deployment/",
            "deployment/a/b",
            "deployment/A",
        ] {
            let said = wrong.parse::<WorkloadName>().expect_err(wrong);
            assert!(said.contains("deployment/NAME"), "{said}");
        }
    }

    #[test]
    fn a_trial_takes_what_its_container_needs_and_says_what_it_leaves() {
        let template = extract_template(&name(), &orders(), "app").expect("it can be taken");
        let names = |values: &[Value]| {
            let all = values.iter().filter_map(|v| text_field(v, "name"));
            all.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(template.image, "registry/orders:1.4");
        assert_eq!(template.user, Some((1000, 1000)));
        assert_eq!(names(&template.env), ["A", "P"]);
        assert_eq!(names(&template.mounts), ["config"]);
        assert_eq!(names(&template.volumes), ["config", "scripts"]);
        assert_eq!(names(&template.before), ["migrate"]);
        assert!(!template.container.contains_key("resources"));
        assert_eq!(template.pod["serviceAccountName"], json!("orders"));
        insta::assert_snapshot!(template.left_out.join("\n"), @r"
        the container proxy, which runs beside the application
        its volume at /tmp: a trial has one of its own there
        the container istio-proxy, which runs beside the application
        its liveness probe: a slow application is measured, not restarted
        its affinity: trials are kept apart by their own; --node-selector chooses nodes
        ");
    }

    #[test]
    fn it_is_known_whether_its_own_pods_share_their_processes() {
        let shares = |value: Value| {
            let mut object = orders();
            object["spec"]["template"]["spec"][SHARES] = value;
            let taken = extract_template(&name(), &object, "app").expect("it can be taken");
            assert!(!taken.pod.contains_key(SHARES), "a trial says that itself");
            taken.shares_processes
        };
        assert!(shares(json!(true)));
        assert!(!shares(json!(false)) && !shares(json!(null)));
    }

    #[test]
    fn a_volume_of_one_pod_is_refused_by_its_name() {
        let mut object = orders();
        let volumes = object
            .pointer_mut("/spec/template/spec/volumes/1")
            .expect("it is there");
        *volumes = json!({ "name": "config", "persistentVolumeClaim": { "claimName": "data" } });
        let refusal = extract_template(&name(), &object, "app").expect_err("it is one pod's");
        insta::assert_snapshot!(refusal, @"deployment/orders: its container mounts the volume config, a persistentVolumeClaim, which a second pod must not use");
        let gone = extract_template(&name(), &orders(), "web").expect_err("there is none");
        assert!(gone.to_string().contains("no container web"), "{gone}");
    }

    #[test]
    fn what_a_trial_says_wins() {
        let own = vec![json!({ "name": "A", "value": "c" })];
        let env = override_variables(
            &[
                json!({ "name": "A", "value": "b" }),
                json!({ "name": "B", "value": "b" }),
            ],
            own,
        );
        assert_eq!(
            env,
            [
                json!({ "name": "B", "value": "b" }),
                json!({ "name": "A", "value": "c" })
            ]
        );
        let mut pod =
            json!({ "nodeSelector": { "pool": "green" }, "automountServiceAccountToken": false });
        let template = extract_template(&name(), &orders(), "app").expect("it can be taken");
        lay_under(&template.pod, &mut pod);
        assert_eq!(pod["nodeSelector"], json!({ "pool": "green", "zone": "a" }));
        assert_eq!(pod["serviceAccountName"], json!("orders"));
    }
}
