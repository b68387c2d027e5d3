//! A running workload, as the template of trials.
//!
//! Owns which parts its trials copy. They copy the container with everything that it refers to
//! (config maps, secrets, projected volumes: by reference, so no value comes here), its init
//! containers, account, and scheduling rules. They do not copy parts that a trial sets itself
//! (limits, probes, affinity) or that would disturb (other containers, hooks); these are reported.
//! Parts that lead to production need the user's consent ([`WorkloadTemplate::check_access`]).
//! A volume that belongs to one pod is refused: two pods must not write to it. Facts: Kubernetes
//! API reference, apps/v1 Deployment and StatefulSet, core/v1 PodSpec.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::RunRefusal;
use serde_json::{Map, Value, json};

use crate::cluster::{self, ConnectedCluster, within_deadline};
use crate::refused::{self, defect_refusal};

#[derive(Debug, PartialEq, Eq)]
struct WorkloadKind {
    name: &'static str,
    words: &'static [&'static str],
    group: &'static str,
    /// Where the object has the spec of its pods.
    pod: &'static str,
}

static SERVICES: [WorkloadKind; 2] = [
    WorkloadKind {
        name: "Deployment",
        words: &["deployment", "deployments", "deploy"],
        group: "apps",
        pod: "/spec/template/spec",
    },
    WorkloadKind {
        name: "StatefulSet",
        words: &["statefulset", "statefulsets", "sts"],
        group: "apps",
        pod: "/spec/template/spec",
    },
];

static RUNS: [WorkloadKind; 2] = [
    WorkloadKind {
        name: "Job",
        words: &["job", "jobs"],
        group: "batch",
        pod: "/spec/template/spec",
    },
    WorkloadKind {
        name: "CronJob",
        words: &["cronjob", "cronjobs", "cj"],
        group: "batch",
        pod: "/spec/jobTemplate/spec/template/spec",
    },
];

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

const SHARES: &str = "shareProcessNamespace";

const OF_CONTAINER: [&str; 4] = ["command", "args", "workingDir", "envFrom"];

/// Omitted parts of a container, and why that is right for a trial.
const NOT_OF_CONTAINER: [(&str, &str); 2] = [
    ("lifecycle", "its hooks: a trial ends by SIGTERM"),
    (
        "livenessProbe",
        "its liveness probe: a slow application is measured, not restarted",
    ),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadName {
    kind: &'static WorkloadKind,
    name: String,
}

impl FromStr for WorkloadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a workload: write deployment/NAME, statefulset/NAME, job/NAME or cronjob/NAME"
            )
        };
        let (kind, name) = text.split_once('/').ok_or_else(wrong)?;
        let word = kind.to_lowercase();
        let mut kinds = SERVICES.iter().chain(&RUNS);
        let known = kinds.find(|kind| kind.words.contains(&word.as_str()));
        let known = known.ok_or_else(wrong)?;
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

impl WorkloadName {
    /// Whether its pods end by themselves.
    pub fn is_run(&self) -> bool {
        RUNS.contains(self.kind)
    }
}

impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name.to_lowercase(), self.name)
    }
}

/// The whole object of a workload, as the API server has it now.
/// Errors: [`RunRefusal`] when the cluster does not answer or has no such workload.
pub fn read(wanted: &Wanted, name: &WorkloadName) -> Result<Value, RunRefusal> {
    of_cluster(&ConnectedCluster::connect_to(wanted)?, name)
}

/// Every service of these namespaces, all without one, as the API server has them now. Needs no more
/// than the right to list them.
/// Errors: [`RunRefusal`] when the cluster does not answer, or lists nothing for this user.
pub fn list_workloads(
    context: Option<&str>,
    namespaces: &[String],
) -> Result<Vec<Value>, RunRefusal> {
    let kinds = SERVICES.each_ref().map(workload_resource);
    let found = cluster::list_cluster_objects(context, namespaces, &kinds)?;
    let value = |object: DynamicObject| serde_json::to_value(object).map_err(defect);
    found.into_iter().map(value).collect()
}

fn workload_resource(kind: &WorkloadKind) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group, "v1", kind.name))
}

fn defect(error: serde_json::Error) -> RunRefusal {
    defect_refusal("reading a workload", error)
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
    pub before: Vec<Value>,
    pub container: Map<String, Value>,
    pub env: Vec<Value>,
    pub mounts: Vec<Value>,
    pub user: Option<(u32, u32)>,
    /// Whether the containers of its original pods share their PID namespace.
    pub shares_processes: bool,
    pub image: String,
    pub left_out: Vec<String>,
}

pub fn extract_template(
    name: &WorkloadName,
    object: &Value,
    container: &str,
) -> Result<WorkloadTemplate, RunRefusal> {
    let spec = object.pointer(name.kind.pod);
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
    /// What would give a trial the rights of production: its secrets, its account, and programs that
    /// run before it.
    pub fn production_access(&self) -> Vec<String> {
        let mut all: Vec<String> = secret_names(&self.env, &self.container, &self.volumes);
        let account = self.pod.get("serviceAccountName").and_then(Value::as_str);
        let account = account.filter(|name| *name != "default");
        all.extend(account.map(|name| format!("the service account {name}")));
        let token = "automountServiceAccountToken";
        if self.pod.get(token) == Some(&json!(true)) {
            all.push("the token of its service account".to_owned());
        }
        let names = self.before.iter().filter_map(|c| text_field(c, "name"));
        all.extend(names.map(|name| format!("the init container {name}")));
        all
    }

    /// Refuses what leads to production where the user has not said that it may.
    /// Errors: [`RunRefusal`] that names all of it.
    pub fn check_access(&self, name: &WorkloadName, is_allowed: bool) -> Result<(), RunRefusal> {
        let all = self.production_access();
        if is_allowed || all.is_empty() {
            return Ok(());
        }
        let why = format!(
            "trials like its pods would have {}: the load could change production data",
            all.join(", ")
        );
        let hint = "if that is acceptable: --as-production (as-production = true in [kubernetes]); else name a workload of a test environment, or only the image: --image with --env";
        Err(RunRefusal::new(name, why, hint))
    }

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
        // It has a separate directory there, which loadline reads.
        let before = self.mounts.len();
        self.mounts.retain(|m| {
            text_field(m, "mountPath").map(|p| p.trim_end_matches('/')) != Some("/tmp")
        });
        if self.mounts.len() < before {
            self.left_out
                .push("its volume at /tmp: a trial has its own there".to_owned());
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

/// The secrets that a container refers to, each once.
fn secret_names(env: &[Value], container: &Map<String, Value>, volumes: &[Value]) -> Vec<String> {
    let named = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let variables = env
        .iter()
        .filter_map(|v| named(v.pointer("/valueFrom/secretKeyRef/name")));
    let all_of_one = list_field(container, "envFrom");
    let all_of_one = all_of_one
        .iter()
        .filter_map(|from| named(from.pointer("/secretRef/name")));
    let mounted = volumes
        .iter()
        .filter_map(|v| named(v.pointer("/secret/secretName")));
    let projected = volumes
        .iter()
        .filter_map(|v| v.pointer("/projected/sources"));
    let projected: Vec<&Value> = projected.filter_map(Value::as_array).flatten().collect();
    let of_sources = projected
        .iter()
        .filter_map(|source| named(source.pointer("/secret/name")));
    let names: BTreeSet<String> = variables
        .chain(all_of_one)
        .chain(mounted)
        .chain(of_sources)
        .collect();
    let tokens = projected
        .iter()
        .filter(|source| source.get("serviceAccountToken").is_some());
    let token = tokens.take(1).map(|_| "a token in a volume".to_owned());
    let secrets = names.into_iter().map(|name| format!("the secret {name}"));
    secrets.chain(token).collect()
}

fn describe_sidecar(container: &Value) -> String {
    let name = text_field(container, "name").unwrap_or_default();
    format!("the container {name}, which runs next to the application")
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
    let why = format!("its pods no longer have a container {container}");
    RunRefusal::new(name, why, "name an existing one with --container")
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
    let hint = "measure only the image: --image instead of --from, with what it needs in --env";
    RunRefusal::new(name, why, hint)
}

pub(crate) fn override_variables(template: &[Value], own: Vec<Value>) -> Vec<Value> {
    let is_own = |v: &&Value| own.iter().any(|o| o.get("name") == v.get("name"));
    let kept = template.iter().filter(|v| !is_own(v)).cloned();
    kept.chain(own.iter().cloned()).collect()
}

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
        let cron: WorkloadName = "cj/report".parse().expect("a name");
        assert_eq!(cron.to_string(), "cronjob/report");
        assert!(cron.is_run() && !name().is_run());
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
        the container proxy, which runs next to the application
        its volume at /tmp: a trial has its own there
        the container istio-proxy, which runs next to the application
        its liveness probe: a slow application is measured, not restarted
        its affinity: trials are kept apart by their own; --node-selector chooses nodes
        ");
    }

    #[test]
    fn the_pods_of_a_cron_job_are_those_of_its_jobs() {
        let template = orders()["spec"]["template"].clone();
        let job = json!({ "spec": { "template": template } });
        let cron = json!({ "spec": { "jobTemplate": job } });
        for (name, object) in [("job/report", &job), ("cronjob/report", &cron)] {
            let name = name.parse().expect("a name");
            let template = extract_template(&name, object, "app").expect("it can be taken");
            assert_eq!(template.image, "registry/orders:1.4", "{name}");
        }
    }

    #[test]
    fn what_leads_to_production_needs_a_word_of_the_user() {
        let template = extract_template(&name(), &orders(), "app").expect("it can be taken");
        assert_eq!(template.check_access(&name(), true), Ok(()));
        let refusal = template.check_access(&name(), false);
        let refusal = refusal.expect_err("it has a secret").to_string();
        insta::assert_snapshot!(refusal, @"deployment/orders: trials like its pods would have the secret s, the service account orders, the init container migrate: the load could change production data");
    }

    #[test]
    fn each_way_to_a_secret_counts() {
        let access = |container: Value, pod: Value| {
            let mut object = orders();
            let mut own = json!({ "name": "app", "image": "orders:1" });
            own.as_object_mut()
                .unwrap()
                .extend(container.as_object().unwrap().clone());
            let mut spec = json!({ "containers": [own] });
            spec.as_object_mut()
                .unwrap()
                .extend(pod.as_object().unwrap().clone());
            object["spec"]["template"]["spec"] = spec;
            let template = extract_template(&name(), &object, "app").expect("it can be taken");
            template.production_access().join(", ")
        };
        let none = json!({});
        let mounts = json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] });
        let volume = |of: Value| json!({ "volumes": [of] });
        assert_eq!(access(none.clone(), none.clone()), "");
        let config = json!({ "envFrom": [{ "configMapRef": { "name": "c" } }] });
        assert_eq!(
            access(config, json!({ "serviceAccountName": "default" })),
            ""
        );
        let all = json!({ "envFrom": [{ "secretRef": { "name": "s" } }] });
        assert_eq!(access(all, none.clone()), "the secret s");
        let mounted = json!({ "name": "v", "secret": { "secretName": "s" } });
        assert_eq!(
            access(mounts.clone(), volume(mounted.clone())),
            "the secret s"
        );
        assert_eq!(access(none.clone(), volume(mounted)), "", "it mounts none");
        let sources =
            json!([{ "secret": { "name": "s" } }, { "serviceAccountToken": { "path": "t" } }]);
        let projected = volume(json!({ "name": "v", "projected": { "sources": sources } }));
        assert_eq!(
            access(mounts, projected),
            "the secret s, a token in a volume"
        );
        let token = json!({ "automountServiceAccountToken": true });
        assert_eq!(access(none, token), "the token of its service account");
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
        assert!(
            gone.to_string().contains("no longer have a container web"),
            "{gone}"
        );
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
