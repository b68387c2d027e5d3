//! Kubernetes manifests: Deployment and, for what takes requests, Service; [`super::scaling`] adds the objects for several
//! pods.
//!
//! Requests equal limits: QoS class Guaranteed, as measured. The security context follows the Pod
//! Security Standard "restricted". No downward API: the launcher reads its limits from its cgroup.
//! The test checks every document against the schema of the Kubernetes API.

use loadline_analysis::text::join_words;
use serde_json::Value;

use super::application::{ImagePinning, ReadinessCheck};
use super::change::measured_handler;
use super::container::UID;
use super::facts::{EmitFacts, SHM};
use super::given::EnvironmentVariable;
use super::jvm_options::{self, TOOL_OPTIONS};
use super::names::{labels, named_object, secret_name};
use super::patch::annotations;
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use super::{liberty, scaling, start_cpu};
use crate::text;

pub fn manifests(facts: &EmitFacts<'_>) -> String {
    let documents = documents(facts).into_iter().map(Yaml::with_short_comments);
    let documents: Vec<String> = documents.map(|document| document.to_document()).collect();
    facts.header() + &documents.join("---\n")
}

pub(super) fn documents(facts: &EmitFacts<'_>) -> Vec<Yaml> {
    let mut documents = vec![deployment(facts)];
    documents.extend(facts.application.port.map(|port| service(facts, port)));
    if let Some(bounds) = facts.application.scaling.filter(|_| !facts.has_keda) {
        documents.extend(scaling::autoscaler(facts, bounds));
    }
    if facts.application.replicas > 1 {
        documents.push(scaling::disruption_budget(facts));
    }
    documents
}

fn deployment(facts: &EmitFacts<'_>) -> Yaml {
    let selector = yaml_map([yaml_entry("matchLabels", labels(&facts.slug))]);
    let template = yaml_map([
        yaml_entry("metadata", [yaml_entry("labels", labels(&facts.slug))]),
        yaml_entry("spec", pod(facts)),
    ]);
    let mut spec = vec![
        yaml_entry("strategy", scaling::strategy()),
        yaml_entry("selector", selector),
        yaml_entry("template", template),
    ];
    // With an autoscaler the number is its business; set here it would be reset at every apply.
    if facts.application.scaling.is_none() {
        let replicas = yaml_entry("replicas", u64::from(facts.application.replicas));
        spec.insert(0, replicas.because(&*facts.replicas));
    }
    let metadata = [
        yaml_entry("name", facts.slug.clone()),
        yaml_entry("labels", labels(&facts.slug)),
        yaml_entry("annotations", annotations(&facts.result, facts)),
    ];
    yaml_map([
        yaml_entry("apiVersion", "apps/v1"),
        yaml_entry("kind", "Deployment"),
        yaml_entry("metadata", metadata),
        yaml_entry("spec", yaml_map(spec)),
    ])
}

fn pod(facts: &EmitFacts<'_>) -> Yaml {
    let temporary = yaml_map([
        yaml_entry("name", "tmp"),
        yaml_entry("emptyDir", [size_limit(facts)]),
    ]);
    let shm = facts.shm.map(|shm| {
        let size = yaml_entry("sizeLimit", shm.to_string()).because(SHM);
        let memory = yaml_map([yaml_entry("medium", "Memory"), size]);
        yaml_map([yaml_entry("name", "shm"), yaml_entry("emptyDir", memory)])
    });
    let mut entries = vec![
        yaml_entry("automountServiceAccountToken", false),
        yaml_entry("enableServiceLinks", false),
        yaml_entry("terminationGracePeriodSeconds", facts.grace.value.as_secs())
            .because(&*facts.grace.because),
        yaml_entry("securityContext", pod_security(facts)),
        yaml_entry("containers", yaml_list([container_spec(facts)])),
        yaml_entry("volumes", yaml_list([temporary].into_iter().chain(shm))),
    ];
    let most = facts.application.scaling.map_or(1, |s| s.max_replicas);
    if facts.application.replicas.max(most) > 1 {
        entries.push(scaling::spread(facts));
    }
    yaml_map(entries)
}

fn size_limit(facts: &EmitFacts<'_>) -> YamlEntry {
    match facts.application.command.liberty {
        Some(_) => yaml_entry("sizeLimit", "256Mi").because(
            "on OpenJ9 its start script makes a class cache of 80 MiB below WLP_OUTPUT_DIR",
        ),
        None => yaml_entry("sizeLimit", "64Mi"),
    }
}

fn pod_security(facts: &EmitFacts<'_>) -> Yaml {
    let mut entries = match facts.application.measured_image {
        Some(_) => Vec::new(),
        None => vec![
            yaml_entry("runAsNonRoot", true),
            yaml_entry("runAsUser", UID),
            yaml_entry("runAsGroup", UID),
        ],
    };
    let profile = yaml_map([yaml_entry("type", "RuntimeDefault")]);
    entries.push(yaml_entry("seccompProfile", profile));
    yaml_map(entries)
}

fn container_spec(facts: &EmitFacts<'_>) -> Yaml {
    let application = facts.application;
    let port = |name: &str, port: u16| {
        let number = yaml_entry("containerPort", u64::from(port));
        yaml_map([yaml_entry("name", name), number])
    };
    let asked = application.ready.as_ref().map(ReadinessCheck::asked_port);
    let asked = asked.filter(|asked| application.port != Some(*asked));
    let asked = asked.map(|asked| port("ready", asked));
    let ports = application.port.map(|own| port("http", own));
    let ports: Vec<Yaml> = ports.into_iter().chain(asked).collect();
    let mut entries = vec![yaml_entry("name", facts.slug.clone()), image_entry(facts)];
    if !ports.is_empty() {
        entries.push(yaml_entry("ports", yaml_list(ports)));
    }
    entries.push(yaml_entry("resources", resources(facts, &Value::Null)));
    entries.extend(start_cpu::resize_policy(facts, &Value::Null));
    if application.measured_image.is_some() && !facts.arguments.is_empty() {
        let arguments = facts.arguments.iter().map(|word| Yaml::from(literal(word)));
        entries.push(yaml_entry("args", yaml_list(arguments)).because("as they were measured"));
    }
    let variables = variables(facts);
    if !variables.is_empty() {
        entries.push(yaml_entry("env", yaml_list(variables)));
    }
    entries.extend(probes(facts));
    // An image that was measured ran with its own root file system and the engine's rights.
    if application.measured_image.is_none() {
        entries.push(yaml_entry("securityContext", container_security()));
    }
    let mount = |name: &str, path: &str| {
        yaml_map([yaml_entry("name", name), yaml_entry("mountPath", path)])
    };
    let shm = facts.shm.map(|_| mount("shm", "/dev/shm"));
    let mounts = [mount("tmp", "/tmp")].into_iter().chain(shm);
    entries.push(yaml_entry("volumeMounts", yaml_list(mounts)));
    yaml_map(entries)
}

fn container_security() -> Yaml {
    yaml_map([
        yaml_entry("allowPrivilegeEscalation", false),
        yaml_entry("readOnlyRootFilesystem", true),
        yaml_entry("capabilities", [yaml_entry("drop", yaml_list(["ALL"]))]),
    ])
}

fn image_entry(facts: &EmitFacts<'_>) -> YamlEntry {
    let image = yaml_entry("image", facts.application.image.clone());
    match facts.application.measured_image {
        Some(ImagePinning::Yes) => {
            return image.because("the image that was measured, by its digest");
        }
        Some(ImagePinning::No) => {
            return image.because("the image that was measured; no cluster can pull it by its digest yet: put in what the push prints");
        }
        None => {}
    }
    if facts.options.is_empty() {
        return image;
    }
    let why = if facts.has_image {
        let options: Vec<&str> = facts.options.iter().map(|o| o.value.as_str()).collect();
        format!(
            "built from the Dockerfile of the same `emit`; its command has the JVM options that were measured: {}; for another image: --for kubernetes alone",
            options.join(" ")
        )
    } else {
        format!(
            "any image that starts java without these options; they are in {TOOL_OPTIONS} below; the application's arguments were: {}",
            match facts.arguments.as_slice() {
                [] => "none".to_owned(),
                arguments => arguments.join(" "),
            }
        )
    };
    image.because(text::one_line(&why))
}

/// The environment; with the measured options where the image is not known to have them.
fn variables(facts: &EmitFacts<'_>) -> Vec<Yaml> {
    let options = if facts.has_image || facts.options.is_empty() {
        None
    } else {
        jvm_options::tool_options(facts)
    };
    let others = facts.variables.iter();
    let others = others.filter(|v| options.is_none() || v.name != TOOL_OPTIONS);
    let mut all: Vec<Yaml> = others.map(|v| variable_entry(facts, v)).collect();
    all.extend(options.map(|options| {
        let reasons = facts.options.iter();
        let reasons = reasons.map(|o| format!("{} ({})", o.value, o.because));
        let reasons = format!("part of the size: {}", join_words(reasons, "; "));
        let value = yaml_entry("value", literal(&options)).because(text::one_line(&reasons));
        yaml_map([yaml_entry("name", TOOL_OPTIONS), value])
    }));
    all
}

/// The resources of a container that has these now; null for a new one.
pub(super) fn resources(facts: &EmitFacts<'_>, own: &Value) -> Yaml {
    let memory = facts.memory.value.to_string();
    let mut limits = vec![yaml_entry("memory", memory.clone()).because(&*facts.memory.because)];
    let mut requests = vec![
        yaml_entry("memory", memory).because("the limit: memory that is promised must be there"),
    ];
    if let Some(request) = &facts.cpu_request {
        requests.push(yaml_entry("cpu", request.value.to_string()).because(&*request.because));
    }
    if let Some(cpu) = &facts.cpu {
        let value = cpu.value.to_string();
        limits.push(yaml_entry("cpu", value.clone()).because(&*cpu.because));
        let why = if cpu.value.as_millis() % 1000 == 0 {
            "the limit: QoS class Guaranteed; whole CPUs are pinned, not throttled, by a static CPU manager"
        } else {
            "the limit: QoS class Guaranteed"
        };
        if facts.cpu_request.is_none() {
            requests.push(yaml_entry("cpu", value).because(why));
        }
    } else if facts.is_without_limit && own.pointer("/limits/cpu").is_some() {
        limits.push(yaml_entry("cpu", Yaml::Null).because("measured without a limit"));
    }
    yaml_map([
        yaml_entry("requests", requests),
        yaml_entry("limits", limits),
    ])
}

fn variable_entry(facts: &EmitFacts<'_>, variable: &EnvironmentVariable) -> Yaml {
    let name = yaml_entry("name", variable.name.clone());
    let value = match &variable.value {
        Some(value) => yaml_entry("value", literal(value)),
        None => {
            let secret = yaml_entry("name", secret_name(&facts.slug))
                .because("make this Secret; its value is not in any loadline file");
            let key = yaml_entry("key", variable.name.clone());
            yaml_entry("valueFrom", [yaml_entry("secretKeyRef", [secret, key])])
        }
    };
    yaml_map([name, value])
}

/// A value of a variable. Kubernetes expands `$(NAME)`; a doubled dollar sign stays one.
pub(super) fn literal(value: &str) -> String {
    value.replace("$(", "$$(")
}

/// Start, readiness and liveness, if anything answers. Liveness asks for a connection only, where no
/// path is made for it: a slow answer under load must not kill the pod that carries it.
fn probes(facts: &EmitFacts<'_>) -> Vec<YamlEntry> {
    let application = facts.application;
    let Some(check) = &application.ready else {
        return Vec::new();
    };
    let ready_port = if application.port == Some(check.asked_port()) {
        "http"
    } else {
        "ready"
    };
    let port = || yaml_entry("port", application.port.map_or(ready_port, |_| "http"));
    let ready = || {
        let port = yaml_entry("port", ready_port);
        match check {
            ReadinessCheck::Http { path, .. } => {
                yaml_entry("httpGet", [yaml_entry("path", path.clone()), port])
            }
            ReadinessCheck::Tcp { .. } => yaml_entry("tcpSocket", [port]),
            grpc @ ReadinessCheck::Grpc { .. } => measured_handler(grpc),
        }
    };
    let (alive, patient) = match liberty::liveness_path(&application.command, check) {
        Some(path) => {
            let port = yaml_entry("port", ready_port);
            let get = yaml_entry("httpGet", [yaml_entry("path", path), port]);
            (
                get,
                "a minute without an answer; one slow answer restarts nothing",
            )
        }
        None => (
            yaml_entry("tcpSocket", [port()]),
            "a minute without a connection; a slow answer alone restarts nothing",
        ),
    };
    let probes = facts.probes.value;
    let patience = probes.startup_period * probes.startup_failures;
    let probe = |name: &str, ask: YamlEntry, (period, timeout): (u64, u64), failures: YamlEntry| {
        let period = yaml_entry("periodSeconds", period);
        let timeout = yaml_entry("timeoutSeconds", timeout);
        yaml_entry(name, [ask, period, timeout, failures])
    };
    let failures = |count: u64| yaml_entry("failureThreshold", count);
    let startup = (probes.startup_period, probes.timeout);
    let readiness = (probes.readiness_period, probes.timeout);
    let why = format!("{patience} s: {}", facts.probes.because);
    let slow = failures(probes.startup_failures).because(why);
    let unready = failures(probes.readiness_failures);
    let dead = failures(6).because(patient);
    vec![
        probe("startupProbe", ready(), startup, slow),
        probe("readinessProbe", ready(), readiness, unready),
        probe("livenessProbe", alive, (10, 5), dead),
    ]
}

fn service(facts: &EmitFacts<'_>, port: u16) -> Yaml {
    let port = yaml_map([
        yaml_entry("name", "http"),
        yaml_entry("port", u64::from(port)),
        yaml_entry("targetPort", "http"),
    ]);
    let spec = [
        yaml_entry("selector", labels(&facts.slug)),
        yaml_entry("ports", yaml_list([port])),
    ];
    named_object("v1", "Service", &facts.slug, spec)
}
