//! Kubernetes manifests: Deployment and Service; [`super::scaling`] adds what more pods need.
//!
//! Requests equal limits: QoS class Guaranteed, which is what was measured. The security context is
//! that of the Pod Security Standard "restricted". No downward API: the launcher reads its limits
//! from its cgroup. The test checks every document against the schema of the Kubernetes API.

use super::application::{Pinned, Ready};
use super::container::UID;
use super::facts::{Facts, SHM};
use super::given::Variable;
use super::jvm_options::{self, TOOL_OPTIONS};
use super::liberty;
use super::names::{labels, metadata, secret_name};
use super::scaling;
use super::yaml::{Entry, Yaml, entry, list, map};
use crate::text;

/// All manifests, one document each.
pub fn manifests(facts: &Facts<'_>) -> String {
    let mut documents = vec![deployment(facts), service(facts)];
    if let Some(bounds) = facts.application.scaling {
        documents.push(scaling::autoscaler(facts, bounds));
    }
    if facts.application.replicas > 1 {
        documents.push(scaling::disruption_budget(facts));
    }
    let header: String = facts
        .origin
        .iter()
        .chain(&facts.left_out)
        .map(|line| format!("# {line}\n"))
        .collect();
    let documents: Vec<String> = documents.iter().map(Yaml::document).collect();
    header + &documents.join("---\n")
}

fn deployment(facts: &Facts<'_>) -> Yaml {
    let selector = map([entry("matchLabels", labels(&facts.slug))]);
    let template = map([
        entry("metadata", map([entry("labels", labels(&facts.slug))])),
        entry("spec", pod(facts)),
    ]);
    let mut spec = vec![
        entry("strategy", scaling::strategy()),
        entry("selector", selector),
        entry("template", template),
    ];
    // With an autoscaler the number is its business; set here it would be reset at every apply.
    if facts.application.scaling.is_none() {
        let replicas = u64::from(facts.application.replicas);
        let replicas = entry("replicas", replicas).because(&*facts.replicas);
        spec.insert(0, replicas);
    }
    map([
        entry("apiVersion", "apps/v1"),
        entry("kind", "Deployment"),
        metadata(&facts.slug),
        entry("spec", map(spec)),
    ])
}

fn pod(facts: &Facts<'_>) -> Yaml {
    let temporary = map([
        entry("name", "tmp"),
        entry("emptyDir", map([size_limit(facts)])),
    ]);
    let shm = facts.shm.map(|shm| {
        let size = entry("sizeLimit", shm.to_string()).because(SHM);
        let memory = map([entry("medium", "Memory"), size]);
        map([entry("name", "shm"), entry("emptyDir", memory)])
    });
    let mut entries = vec![
        entry("automountServiceAccountToken", false),
        entry("enableServiceLinks", false),
        entry("terminationGracePeriodSeconds", facts.grace.value.as_secs())
            .because(&*facts.grace.because),
        entry("securityContext", pod_security(facts)),
        entry("containers", list([container(facts)])),
        entry("volumes", list([temporary].into_iter().chain(shm))),
    ];
    let scaling = facts.application.scaling;
    if facts
        .application
        .replicas
        .max(scaling.map_or(1, |s| s.max_replicas))
        > 1
    {
        entries.push(scaling::spread(facts));
    }
    map(entries)
}

/// Of what it writes.
fn size_limit(facts: &Facts<'_>) -> Entry {
    match facts.application.command.liberty {
        Some(_) => entry("sizeLimit", "256Mi").because(
            "on OpenJ9 its start script makes a class cache of 80 MiB below WLP_OUTPUT_DIR",
        ),
        None => entry("sizeLimit", "64Mi"),
    }
}

/// The user of an image that was measured is its own; the emitted Dockerfile has one for it.
fn pod_security(facts: &Facts<'_>) -> Yaml {
    let mut entries = match facts.application.measured_image {
        Some(_) => Vec::new(),
        None => vec![
            entry("runAsNonRoot", true),
            entry("runAsUser", UID),
            entry("runAsGroup", UID),
        ],
    };
    let profile = map([entry("type", "RuntimeDefault")]);
    entries.push(entry("seccompProfile", profile));
    map(entries)
}

fn container(facts: &Facts<'_>) -> Yaml {
    let application = facts.application;
    let port =
        |name: &str, port: u16| map([entry("name", name), entry("containerPort", u64::from(port))]);
    let mut ports = vec![port("http", application.port)];
    if ready_port(facts) != "http" {
        ports.push(port("ready", probed(&application.ready)));
    }
    let mut entries = vec![
        entry("name", facts.slug.clone()),
        image(facts),
        entry("ports", list(ports)),
        entry("resources", resources(facts)),
    ];
    if application.measured_image.is_some() && !facts.arguments.is_empty() {
        let arguments = facts.arguments.iter().map(|word| Yaml::from(literal(word)));
        entries.push(entry("args", list(arguments)).because("as they were measured"));
    }
    let variables = variables(facts);
    if !variables.is_empty() {
        entries.push(entry("env", list(variables)));
    }
    entries.extend(probes(facts));
    // An image that was measured ran with its own root file system and the engine's rights.
    if application.measured_image.is_none() {
        entries.push(entry("securityContext", container_security()));
    }
    let mount = map([entry("name", "tmp"), entry("mountPath", "/tmp")]);
    let shm = facts
        .shm
        .map(|_| map([entry("name", "shm"), entry("mountPath", "/dev/shm")]));
    entries.push(entry("volumeMounts", list([mount].into_iter().chain(shm))));
    map(entries)
}

fn container_security() -> Yaml {
    map([
        entry("allowPrivilegeEscalation", false),
        entry("readOnlyRootFilesystem", true),
        entry(
            "capabilities",
            map([entry("drop", list([Yaml::from("ALL")]))]),
        ),
    ])
}

/// The image, and where the measured options are: a size is worth nothing without them.
fn image(facts: &Facts<'_>) -> Entry {
    let image = entry("image", facts.application.image.clone());
    match facts.application.measured_image {
        Some(Pinned::Yes) => return image.because("the image that was measured, by its digest"),
        Some(Pinned::No) => {
            return image.because("the image that was measured, which no cluster can pull by its digest before it is pushed: put in what the push prints");
        }
        None => {}
    }
    if facts.options.is_empty() {
        return image;
    }
    let why = match facts.has_image {
        true => {
            let options: Vec<&str> = facts.options.iter().map(|o| o.value.as_str()).collect();
            format!(
                "built from the Dockerfile of the same `emit`, whose command has the JVM options that were measured: {}. For another image: --for kubernetes alone",
                options.join(" ")
            )
        }
        false => format!(
            "any image that starts java without these options: they are in {TOOL_OPTIONS} below. The application's arguments were: {}",
            match facts.arguments.as_slice() {
                [] => "none".to_owned(),
                arguments => arguments.join(" "),
            }
        ),
    };
    image.because(text::one_line(&why))
}

/// The environment; with the measured options where the image is not known to have them.
fn variables(facts: &Facts<'_>) -> Vec<Yaml> {
    let options = match facts.has_image || facts.options.is_empty() {
        true => None,
        false => jvm_options::tool_options(facts),
    };
    let others = facts.variables.iter();
    let others = others.filter(|v| options.is_none() || v.name != TOOL_OPTIONS);
    let mut all: Vec<Yaml> = others.map(|v| variable(facts, v)).collect();
    all.extend(options.map(|options| {
        let reasons = facts.options.iter();
        let reasons = reasons.map(|o| format!("{} ({})", o.value, o.because));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        map([
            entry("name", TOOL_OPTIONS),
            entry("value", literal(&options))
                .because(text::one_line(&format!("part of the size: {reasons}"))),
        ])
    }));
    all
}

/// What a container asks for and may use: the same.
pub(super) fn resources(facts: &Facts<'_>) -> Yaml {
    let memory = facts.memory.value.to_string();
    let mut limits = vec![entry("memory", memory.clone()).because(&*facts.memory.because)];
    let mut requests =
        vec![entry("memory", memory).because("the limit: memory that is promised must be there")];
    if let Some(cpu) = &facts.cpu {
        let value = cpu.value.to_string();
        limits.push(entry("cpu", value.clone()).because(&*cpu.because));
        let why = if cpu.value.as_millis() % 1000 == 0 {
            "the limit: QoS class Guaranteed; whole CPUs are pinned and never throttled where the kubelet's CPU manager is static"
        } else {
            "the limit: QoS class Guaranteed"
        };
        requests.push(entry("cpu", value).because(why));
    }
    map([
        entry("requests", map(requests)),
        entry("limits", map(limits)),
    ])
}

fn variable(facts: &Facts<'_>, variable: &Variable) -> Yaml {
    match &variable.value {
        Some(value) => map([
            entry("name", variable.name.clone()),
            entry("value", literal(value)),
        ]),
        None => map([
            entry("name", variable.name.clone()),
            entry(
                "valueFrom",
                map([entry(
                    "secretKeyRef",
                    map([
                        entry("name", secret_name(&facts.slug))
                            .because("make this Secret; its value is not in any loadline file"),
                        entry("key", variable.name.clone()),
                    ]),
                )]),
            ),
        ]),
    }
}

/// A value of a variable. Kubernetes expands `$(NAME)`; a doubled dollar sign stays one.
pub(super) fn literal(value: &str) -> String {
    value.replace("$(", "$$(")
}

/// The port that readiness is asked at.
fn probed(ready: &Ready) -> u16 {
    match ready {
        Ready::Http { port, .. } | Ready::Tcp { port } => *port,
    }
}

/// Its name in the manifest.
fn ready_port(facts: &Facts<'_>) -> &'static str {
    if probed(&facts.application.ready) == facts.application.port {
        "http"
    } else {
        "ready"
    }
}

/// Start, readiness and liveness. Liveness asks for a connection only, where no path is made for it:
/// a slow answer under load must not kill the pod that carries it.
fn probes(facts: &Facts<'_>) -> Vec<Entry> {
    let port = || entry("port", "http");
    let ready = || {
        let port = entry("port", ready_port(facts));
        match &facts.application.ready {
            Ready::Http { path, .. } => entry("httpGet", map([entry("path", path.clone()), port])),
            Ready::Tcp { .. } => entry("tcpSocket", map([port])),
        }
    };
    let application = facts.application;
    let (alive, patient) = match liberty::alive(&application.command, &application.ready) {
        Some(path) => {
            let port = entry("port", ready_port(facts));
            let get = entry("httpGet", map([entry("path", path), port]));
            (
                get,
                "a minute without an answer; one slow answer restarts nothing",
            )
        }
        None => (
            entry("tcpSocket", map([port()])),
            "a minute without a connection; a slow answer alone restarts nothing",
        ),
    };
    let probes = facts.probes.value;
    let patience = probes.startup_period * probes.startup_failures;
    vec![
        entry(
            "startupProbe",
            map([
                ready(),
                entry("periodSeconds", probes.startup_period),
                entry("timeoutSeconds", probes.timeout),
                entry("failureThreshold", probes.startup_failures)
                    .because(format!("{patience} s: {}", facts.probes.because)),
            ]),
        ),
        entry(
            "readinessProbe",
            map([
                ready(),
                entry("periodSeconds", probes.readiness_period),
                entry("timeoutSeconds", probes.timeout),
                entry("failureThreshold", probes.readiness_failures),
            ]),
        ),
        entry(
            "livenessProbe",
            map([
                alive,
                entry("periodSeconds", 10_u64),
                entry("timeoutSeconds", 5_u64),
                entry("failureThreshold", 6_u64).because(patient),
            ]),
        ),
    ]
}

fn service(facts: &Facts<'_>) -> Yaml {
    let port = map([
        entry("name", "http"),
        entry("port", u64::from(facts.application.port)),
        entry("targetPort", "http"),
    ]);
    map([
        entry("apiVersion", "v1"),
        entry("kind", "Service"),
        metadata(&facts.slug),
        entry(
            "spec",
            map([
                entry("selector", labels(&facts.slug)),
                entry("ports", list([port])),
            ]),
        ),
    ])
}
