//! Containers of Kubernetes manifests.
//!
//! Owns which containers run a JVM, as far as a manifest shows, and how they become
//! `loadline_analysis::lint::Container`. Documents come from [`crate::manifest`]; unknown kinds and
//! fields are skipped: a manifest may hold anything. Source: Kubernetes API reference, core/v1
//! PodSpec.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::lint::{
    ContainerNeeds, ContainerProbe, ContainerResources, IMAGE_OPTIONS, ImageHeap, LintFinding,
    LintedContainer, OUTSIDE_HEAP, PodNeeds, Severity,
};
use loadline_sizing::options::words::{self, has_word};
use serde_json::{Value, json};

use super::container_options::{OPTION_VARIABLES, jvm_options, long_options, unseen_values};
use super::fields::{
    POD_SPECS, last_path_segment, list_items, program_texts, scalar_text, variables,
};
use super::image_jdk::image_jdk;
use super::image_variables::image_heap;
use super::inlined::ConfigMaps;
use super::java_command::find_misplaced;
use super::malformed::find_malformed;
use super::memory_use::{calculator_settings, memory_volumes};
use super::quantity;
use super::workflow::workflow_pods;
use crate::manifest::ManifestFile;
use crate::program::build_tool;

const VARIABLES: [&str; 6] = ["JAVA_", "JDK_", "JVM_", "SPRING_", "QUARKUS_", "BPL_JVM_"];

/// Words in the names of images that have a JVM; trailing digits do not count.
const IMAGES: &str = "\
    java jdk jre openjdk openjre temurin corretto zulu liberica semeru graalvm spring \
    springboot tomcat jetty wildfly jboss payara glassfish quarkus micronaut openliberty \
    liberty kafka zookeeper cassandra elasticsearch opensearch logstash solr keycloak nexus \
    jenkins sonarqube activemq artemis pulsar neo4j flink spark hbase graylog \
    debezium trino nifi strimzi";

const OTHERS: &str = "\
    envoy istio-proxy proxyv2 linkerd-proxy proxy nginx nginx-unprivileged haproxy traefik \
    httpd caddy oauth2-proxy busybox alpine debian ubuntu pause curl kubectl git-sync \
    aws-cli fluent-bit fluentd filebeat metricbeat promtail vector logrotate otelcol \
    otel-collector opentelemetry-collector opentelemetry-collector-contrib otelcol-contrib \
    jaeger-agent statsd telegraf redis valkey memcached postgres postgresql pgbouncer \
    pgadmin4 mysql mariadb percona mongo mongodb clickhouse-server influxdb rabbitmq nats \
    mosquitto etcd consul vault vault-k8s minio mc grafana prometheus alertmanager \
    node-exporter kube-state-metrics metrics-server coredns cloud-sql-proxy gce-proxy python \
    python3 node ruby php golang dotnet k8s-sidecar kibana opensearch-dashboards \
    elastic-agent apm-server heartbeat packetbeat elastalert elasticsearch-curator loki tempo \
    thanos jaeger-collector jaeger-query external-dns openresty kong kminion redpanda \
    superset airflow wordpress mailhog k6 locust helm git bash";

/// Groups and kinds of custom resources without pods.
const WITHOUT_PODS: &str = "\
    bitnami.com cert-manager.io external-secrets.io keda.sh kyverno.io monitoring.coreos.com \
    networking.istio.io security.istio.io telemetry.istio.io traefik.containo.us traefik.io \
    secrets-store.csi.x-k8s.io cilium.io crd.projectcalico.org cloud.google.com karpenter.sh \
    networking.gke.io elbv2.k8s.aws metallb.io velero.io grafana.integreatly.org \
    KafkaTopic KafkaUser KafkaRebalance KafkaConnector Application ApplicationSet AppProject \
    AnalysisTemplate ClusterAnalysisTemplate";

/// Ends of the names of images without a JVM. Most operators are programs in Go.
const HELPERS: [&str; 5] = ["exporter", "proxy", "sidecar", "operator", "native"];

const JAVA_HELPERS: &str = "keycloak-operator flink-kubernetes-operator mc-proxy";

#[derive(Debug, Clone, PartialEq)]
pub struct ManifestContainer {
    pub path: PathBuf,
    pub workload: String,
    pub container: LintedContainer,
    pub raw: Value,
    pub skipped: Option<String>,
}

/// The containers that stay while their pods run.
pub fn containers(sources: &[ManifestFile]) -> Vec<ManifestContainer> {
    let all = every_container(sources).into_iter();
    all.filter(|found| !found.container.is_init).collect()
}

/// The same, and init containers that run a JVM.
pub fn every_container(sources: &[ManifestFile]) -> Vec<ManifestContainer> {
    let documents: Vec<&Value> = sources.iter().flat_map(|s| &s.documents).collect();
    let maps = ConfigMaps::from_documents(&documents).with_secrets(&documents);
    let objects = sources.iter().flat_map(|source| {
        let all = source
            .documents
            .iter()
            .map(|document| maps.resolve_objects(document));
        all.flatten()
            .map(|object| (source.path.as_path(), object))
            .collect::<Vec<_>>()
    });
    let objects: Vec<(&Path, Value)> = objects.collect();
    let named = |(_, object): &(&Path, Value)| workload_name(object);
    let names: HashSet<String> = objects.iter().map(named).collect();
    // A dump of a cluster has the ReplicaSets and Pods of its Deployments, too.
    let is_own = |(_, object): &&(&Path, Value)| {
        let mut owners = list_items(&object["metadata"], "ownerReferences");
        let name = |own: &Value| workload_name(&json!({"kind": own["kind"], "metadata": own}));
        !owners.any(|owner| names.contains(&name(owner)))
    };
    let own = objects.iter().filter(is_own);
    own.flat_map(|(path, object)| of_object(object, path, &maps))
        .collect()
}

/// Objects of kinds outside Kubernetes, which list no containers: `Kafka/my-cluster`.
pub fn custom_resources(sources: &[ManifestFile]) -> Vec<String> {
    let documents: Vec<&Value> = sources.iter().flat_map(|s| &s.documents).collect();
    let maps = ConfigMaps::from_documents(&documents);
    let objects = documents.iter().flat_map(|d| maps.resolve_objects(d));
    let is_custom = |object: &Value| {
        let group = object["apiVersion"].as_str().unwrap_or_default();
        let group = group.split('/').next().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_other = group.ends_with(".x-k8s.io") || group == "sparkoperator.k8s.io";
        let is_own = group.ends_with(".k8s.io") && !is_other || group.ends_with(".openshift.io");
        let is_own = is_own || has_word(WITHOUT_PODS, group) || has_word(WITHOUT_PODS, kind);
        // An Argo Rollout may take its pods from a Deployment, which is looked at itself.
        let is_own = is_own || object.pointer("/spec/workloadRef/name").is_some();
        group.contains('.') && !is_own && of_object(object, Path::new(""), &maps).is_empty()
    };
    let found = objects.filter(is_custom);
    found.map(|object| workload_name(&object)).collect()
}

/// An object of Kubernetes with containers that are not a list, or not where its pods have them.
pub fn misplaced_containers(sources: &[ManifestFile]) -> Option<String> {
    let objects = sources.iter().flat_map(|source| &source.documents);
    let mut own = objects.filter(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split('/').next();
        !group.is_some_and(|group| group.contains('.'))
    });
    let is_misplaced = |object: &&Value| {
        let mut pods = POD_SPECS.iter().filter_map(|place| object.pointer(place));
        let template = object.pointer("/spec/template");
        pods.any(|pod| pod["containers"].is_object() || pod["container"].is_array())
            || template.is_some_and(|template| template["containers"].is_array())
    };
    own.find(is_misplaced).map(workload_name)
}

fn workload_name(object: &Value) -> String {
    let (kind, metadata) = (object["kind"].as_str(), &object["metadata"]);
    let name = metadata["name"].as_str();
    let name = name.or(metadata["generateName"].as_str());
    let name = name.unwrap_or("without-a-name");
    format!("{}/{name}", kind.unwrap_or("Pod"))
}

fn of_object(object: &Value, path: &Path, maps: &ConfigMaps) -> Vec<ManifestContainer> {
    let mut pods = POD_SPECS.iter().filter_map(|place| object.pointer(place));
    if let Some(pod) = pods.find(|pod| pod["containers"].is_array()) {
        return of_pod(object, pod, path, maps);
    }
    let templates = workflow_pods(object, maps).into_iter();
    let found = templates.flat_map(|pod| {
        let mut found = of_pod(object, &pod, path, maps);
        for container in found.iter_mut().filter(|_| !pod["podSpecPatch"].is_null()) {
            container.skipped = Some("a podSpecPatch changes it".to_owned());
        }
        found
    });
    found.collect()
}

fn of_pod(object: &Value, pod: &Value, path: &Path, maps: &ConfigMaps) -> Vec<ManifestContainer> {
    let list = |name: &str| list_items(pod, name);
    let keeps_running = |container: &&Value| container["restartPolicy"] == "Always";
    let running = list("containers").chain(list("initContainers").filter(keeps_running));
    let workload = workload_name(object);
    let parse = |raw: &Value| {
        let mut container = parse_container(raw, maps.mounted_options(object, raw));
        let volumes = memory_volumes(pod, raw, &mut container.unreadable);
        let refused = maps.find_refused(object, raw);
        container.malformed.extend(refused);
        ManifestContainer {
            path: path.to_owned(),
            workload: workload.clone(),
            container: LintedContainer {
                memory_volumes: volumes,
                ..container
            },
            raw: raw.clone(),
            skipped: None,
        }
    };
    let mut all: Vec<ManifestContainer> = running.map(parse).collect();
    let first = list("initContainers").filter(|c| !keeps_running(c));
    let mut first: Vec<ManifestContainer> = first.map(parse).collect();
    refuse_same_names(all.iter_mut().chain(&mut first));
    let annotations = object.pointer("/metadata/annotations");
    let in_image = annotations.and_then(|a| a.get(IMAGE_OPTIONS)?.as_str());
    if let (Some(options), Some(first)) = (in_image, all.first_mut()) {
        // Everything in the manifest wins over the image.
        let options = words::find_jvm_options(options);
        let options = options.into_iter().map(str::to_owned);
        first.container.jvm.splice(..0, options);
    }
    skip_others(&mut all);
    let rest = annotations.and_then(|a| a.get(OUTSIDE_HEAP)?.as_str());
    let rest = rest.and_then(quantity::parse_memory_quantity);
    let pod_own = pod_needs(pod);
    let needs = |all: &[ManifestContainer]| -> Vec<ContainerNeeds> {
        all.iter().map(|f| f.container.own_needs()).collect()
    };
    let (running, starting) = (needs(&all), needs(&first));
    let others = |all: &[ContainerNeeds], at: usize| [&all[..at], &all[at + 1..]].concat();
    for (at, found) in all.iter_mut().enumerate() {
        found.container.pod = PodNeeds {
            own: pod_own,
            running: others(&running, at),
            starting: starting.clone(),
        };
        found.container.rest = rest;
    }
    for (at, mut found) in first
        .into_iter()
        .enumerate()
        .filter(|(_, found)| is_clearly_jvm(found))
    {
        found.container.is_init = true;
        found.container.pod = PodNeeds {
            own: pod_own,
            running: running.clone(),
            starting: others(&starting, at),
        };
        all.push(found);
    }
    for found in &mut all {
        found.container.inherit_limits();
    }
    all
}

fn refuse_same_names<'a>(containers: impl Iterator<Item = &'a mut ManifestContainer>) {
    let mut names = HashSet::new();
    for ManifestContainer { container, .. } in containers {
        let name = &container.name;
        if name.is_empty() || names.insert(name.clone()) {
            continue;
        }
        container.malformed.push(LintFinding {
            severity: Severity::Error,
            problem: format!(
                "another container of the pod is named {name}: the API server rejects it"
            ),
            hint: "give each container another name".to_owned(),
        });
    }
}

/// Programs of containers that prepare something, and in which variables of the JVM mean nothing.
const PREPARING: &str = "\
    sh bash ash cp mv ln rm cat chmod chown mkdir touch tar echo sleep test true nc wget psql";

/// Whether java is its program, or its options are for the program of an image that has a JVM.
fn is_clearly_jvm(found: &ManifestContainer) -> bool {
    let words = program_texts(&found.raw);
    let image = found.raw["image"].as_str().unwrap_or_default();
    let program = words.first().map_or("", |word| last_path_segment(word));
    let is_other = has_word(PREPARING, program) || has_word(OTHERS, program);
    let is_other = is_other || image_without_jvm(image).is_some();
    // A jar alone may be one that it copies.
    let mut parts = words.iter().flat_map(|word| word.split_whitespace());
    let runs_java = parts.any(|part| last_path_segment(part) == "java" || part == "-jar");
    runs_java || !found.container.jvm.is_empty() && !is_other
}

fn names_java(words: &[String]) -> bool {
    let is_java = |word: &String| {
        let mut parts = word.split_whitespace();
        parts.any(|part| last_path_segment(part) == "java" || part.ends_with(".jar"))
    };
    let tool = build_tool(words).and_then(|tool| tool.options_variable);
    let program = words.first().map_or("", |word| last_path_segment(word));
    tool.is_some() || program == "spark-submit" || words.iter().any(is_java)
}

/// Decides over the whole pod: an unknown container is skipped only if another container clearly
/// runs the JVM and is not the smaller one.
fn skip_others(all: &mut [ManifestContainer]) {
    let sign = |found: &ManifestContainer| ContainerSign::from_container(found);
    let signs: Vec<ContainerSign> = all.iter().map(sign).collect();
    let has_jvm = signs.contains(&ContainerSign::Jvm);
    let memory = |found: &ManifestContainer| found.container.limits.memory;
    let jvms = all.iter().zip(&signs);
    let jvms = jvms.filter(|(_, sign)| **sign == ContainerSign::Jvm);
    let largest = jvms.filter_map(|(found, _)| memory(found)).max();
    for (found, sign) in all.iter_mut().zip(signs) {
        let name = found.workload.rsplit('/').next();
        let is_main = name == Some(&found.container.name) || memory(found) > largest;
        found.skipped = match sign {
            ContainerSign::Other(image) => Some(format!("{image} has no JVM")),
            ContainerSign::Unknown if has_jvm && !is_main => {
                Some("nothing in it suggests a JVM, but another container does".to_owned())
            }
            _ => None,
        };
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ContainerSign {
    /// Its options or its command show a JVM.
    Jvm,
    Likely,
    Unknown,
    Other(String),
}

impl ContainerSign {
    fn from_container(found: &ManifestContainer) -> Self {
        let (raw, container) = (&found.raw, &found.container);
        let mut names = variables(raw).map(|(name, _)| name);
        let words = program_texts(raw);
        let image = raw["image"].as_str().unwrap_or_default().to_lowercase();
        let base = image_base(&image);
        let program = words.first().map_or("", |word| last_path_segment(word));
        let is_variable = |name: &str| {
            OPTION_VARIABLES.contains(&name) || VARIABLES.iter().any(|v| name.starts_with(v))
        };
        let mut tokens = base.split(|c: char| !c.is_ascii_alphanumeric());
        let other = has_word(OTHERS, program).then(|| program.to_owned());
        let other = other.or_else(|| image_without_jvm(&image));
        if !container.jvm.is_empty() || names_java(&words) {
            Self::Jvm
        } else if let Some(other) = other {
            Self::Other(other)
        } else if names.any(is_variable)
            || tokens.any(|t| has_word(IMAGES, t.trim_end_matches(|c: char| c.is_ascii_digit())))
            || image.contains("strimzi/")
        {
            Self::Likely
        } else {
            Self::Unknown
        }
    }
}

fn image_base(image: &str) -> &str {
    let name = last_path_segment(image.split('@').next().unwrap_or_default());
    name.split(':').next().unwrap_or_default()
}

pub fn image_without_jvm(image: &str) -> Option<String> {
    let image = image.to_lowercase();
    let base = image_base(&image);
    let is_helper = |name: &str| {
        let end = name.rsplit_once('-').map(|(_, end)| end);
        end.is_some_and(|end| HELPERS.contains(&end)) && !has_word(JAVA_HELPERS, name)
    };
    // A native executable may say so in its tag.
    let is_helper = is_helper(base) || is_helper(&image);
    (has_word(OTHERS, base) || is_helper).then(|| base.to_owned())
}

/// A container as it is written, with the JVM options of mounted files; [`containers`] knows its pod too.
pub fn parse_container(value: &Value, mounted: Vec<String>) -> LintedContainer {
    let mut unreadable = Vec::new();
    let ContainerNeeds { requests, limits } = parse_needs(value, &mut unreadable);
    let jvm = jvm_options(value, mounted);
    let mut malformed = find_malformed(value);
    malformed.extend(find_misplaced(value));
    let calculator = calculator_settings(value, &mut malformed);
    LintedContainer {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        requests,
        limits,
        unreadable,
        malformed,
        calculator,
        image_heap: own_heap(value, &jvm),
        unseen: unseen_values(value, &jvm),
        long_options: long_options(value),
        jdk: value["image"].as_str().and_then(image_jdk),
        jvm,
        probes: ["livenessProbe", "readinessProbe", "startupProbe"]
            .iter()
            .filter_map(|kind| parse_probe(kind, value.get(*kind)?))
            .collect(),
        ..LintedContainer::default()
    }
}

/// The heap of the image, if the container runs its start script and sets no heap, nor may do so in what
/// is not to be seen. Java gets it on the command line, which wins over `JAVA_TOOL_OPTIONS`.
fn own_heap(value: &Value, jvm: &[String]) -> Option<ImageHeap> {
    let heap = image_heap(value["image"].as_str()?)?;
    let is_own =
        |(name, text): (&str, Option<String>)| name == heap.variable && text.as_deref() != Some("");
    let is_set = variables(value).any(is_own);
    let weaker = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"];
    let weaker = variables(value).filter(|(name, _)| weaker.contains(name));
    let weaker: Vec<String> = weaker.filter_map(|(_, text)| text).collect();
    let is_weaker = |option: &String| {
        let mut words = weaker.iter().flat_map(|text| text.split_whitespace());
        words.any(|word| word == option)
    };
    let names = ["-Xmx", "-XX:MaxHeapSize", "-XX:MaxRAM"];
    let is_heap =
        |option: &String| names.iter().any(|name| option.starts_with(name)) && !is_weaker(option);
    let is_other = is_set || jvm.iter().any(is_heap) || value.get("command").is_some();
    (!is_other && unseen_values(value, jvm).is_empty()).then_some(heap)
}

/// What the pod itself asks for, from Kubernetes 1.34 on; `None` where it says nothing.
fn pod_needs(pod: &Value) -> Option<ContainerNeeds> {
    pod.get("resources")?;
    let needs = parse_needs(pod, &mut Vec::new());
    (needs != ContainerNeeds::default()).then_some(needs)
}

fn parse_needs(value: &Value, unreadable: &mut Vec<String>) -> ContainerNeeds {
    ContainerNeeds {
        requests: parse_resources(value, "requests", unreadable),
        limits: parse_resources(value, "limits", unreadable),
    }
}

fn parse_resources(value: &Value, kind: &str, unreadable: &mut Vec<String>) -> ContainerResources {
    let mut read = ContainerResources::default();
    for name in ["cpu", "memory"] {
        let text = match &value["resources"][kind][name] {
            Value::Null => continue,
            found => scalar_text(found),
        };
        let (cpu, memory) = match name {
            "cpu" => (quantity::parse_cpu_quantity(&text), None),
            _ => (None, quantity::parse_memory_quantity(&text)),
        };
        if cpu.is_none() && memory.is_none() {
            unreadable.push(format!("{kind}.{name} `{text}`"));
        }
        // An amount of zero is none: Kubernetes sets no limit then, and counts no request.
        read.cpu = read.cpu.or(cpu.filter(|cpu| cpu.as_millis() > 0));
        read.memory = memory.filter(|memory| memory.as_bytes() > 0);
    }
    read
}

fn parse_probe(kind: &str, value: &Value) -> Option<ContainerProbe> {
    let number = |name: &str, default: u64| value.get(name).map_or(Some(default), Value::as_u64);
    Some(ContainerProbe {
        kind: kind.to_owned(),
        initial_delay: Duration::from_secs(number("initialDelaySeconds", 0)?),
        period: Duration::from_secs(number("periodSeconds", 10)?),
        failures: u32::try_from(number("failureThreshold", 3)?).ok()?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The findings of a pod with a service in 1Gi: `NAME: problem`.
    pub(in crate::advice) fn linted(service: &str, pod: &str) -> String {
        let text = format!(
            "kind: Pod\nmetadata: {{name: a}}\nspec: {{{pod} containers: [{{name: orders, image: orders, resources: {{limits: {{memory: 1Gi, cpu: 1}}, requests: {{memory: 1Gi, cpu: 1}}}}, {service}}}]}}"
        );
        let documents = crate::manifest::documents(&text, "x").expect("it is YAML");
        let path = PathBuf::from("x.yaml");
        let found = every_container(&[ManifestFile { path, documents }]);
        let checked = found.iter().filter(|found| found.skipped.is_none());
        let said = checked.flat_map(|found| {
            let name = found.container.name.clone();
            let all = loadline_analysis::lint::lint(&found.container, Default::default());
            all.into_iter()
                .map(move |f| format!("{name}: {}", f.problem))
        });
        said.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn jvms_that_run_before_the_service_are_judged() {
        let service = "command: [java, -Xmx512m, -jar, a.jar]";
        let limits =
            "resources: {limits: {memory: 512Mi, cpu: 1}, requests: {memory: 512Mi, cpu: 1}}";
        for (first, wanted) in [
            (
                "image: flyway, env: [{name: JAVA_ARGS, value: -Xmx1g}]",
                "first: over-committed: the heap may take 1Gi",
            ),
            (
                "image: orders, command: [java, -Xmx2g, -jar, m.jar]",
                "first: over-committed: the heap may take 2Gi",
            ),
            (
                "image: 'eclipse-temurin:21', command: [java, '-XX:+UseG1GC', '-XX:+UseZGC', A]",
                "first: the JVM does not start",
            ),
            (
                "image: 'keycloak', args: [build], env: [{name: JAVA_OPTS, value: '-Xmx80%'}]",
                "first: the JVM does not start",
            ),
            ("image: orders, command: [java, -Xmx256m, -jar, m.jar]", ""),
            ("image: orders, command: [java, -jar, m.jar]", ""),
            (
                "image: orders, command: [sh, -c, 'until nc -z db 1; do sleep 1; done'], env: [{name: JAVA_OPTS, value: -Xmx1g}]",
                "",
            ),
            (
                "image: 'busybox:1', env: [{name: JAVA_OPTS, value: -Xmx1g}]",
                "",
            ),
            ("image: agent, command: [cp, /agent.jar, /x/]", ""),
        ] {
            let said = linted(
                service,
                &format!("initContainers: [{{name: first, {first}, {limits}}}],"),
            );
            assert!(
                said.starts_with(wanted) && wanted.is_empty() == said.is_empty(),
                "{first}: {said}"
            );
        }
        let found = of(&format!(
            "kind: Pod\nspec: {{initContainers: [{{name: b, command: [java, -Xmx1g, A]}}], containers: [{{name: a, {service}}}]}}"
        ));
        assert_eq!(found.len(), 1, "only what stays is measured");
    }

    #[test]
    fn an_image_has_its_own_heap_unless_something_stronger_sets_one() {
        let own = "without KAFKA_HEAP_OPTS the image takes -Xms1G -Xmx1G";
        for (container, wanted) in [
            ("env: [{name: KAFKA_OPTS, value: -Xss1m}]", own),
            ("env: [{name: KAFKA_HEAP_OPTS, value: ''}]", own),
            ("env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx256m}]", own),
            ("args: [x]", own),
            ("env: [{name: KAFKA_HEAP_OPTS, value: -Xmx256m}]", ""),
            ("env: [{name: _JAVA_OPTIONS, value: -Xmx256m}]", ""),
            ("command: [sleep, '9']", ""),
        ] {
            let service = format!("{container}, image: 'apache/kafka:3.7.0'");
            let text = format!(
                "{{kind: Pod, spec: {{containers: [{{name: a, {service}, resources: {{limits: {{memory: 1Gi, cpu: 1}}}}}}]}}}}"
            );
            let found = of(&text).remove(0).container;
            let said = loadline_analysis::lint::over_commitment(&found, Default::default());
            let said = said.map_or(String::new(), |finding| finding.problem);
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{container}: {said}"
            );
        }
        let unseen = "{kind: Pod, spec: {containers: [{image: 'apache/kafka:1', envFrom: [{secretRef: {name: s}}]}]}}";
        assert_eq!(of(unseen).remove(0).container.image_heap, None);
    }

    const DEPLOYMENT: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: petclinic}
spec:
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    spec:
      containers:
        - name: petclinic
          env:
            - name: JAVA_TOOL_OPTIONS
              value: "-Xmx512m -Dsecret=x"
          args: ["-XX:ParallelGCThreads=1", "--server.port=8080"]
          resources:
            requests: {cpu: 250m, memory: 256M}
            limits: {cpu: 1, memory: 1Gi}
          livenessProbe:
            httpGet: {path: /health, port: 8080}
            initialDelaySeconds: 30
            periodSeconds: 5
"#;

    fn of(text: &str) -> Vec<ManifestContainer> {
        let documents = crate::manifest::documents(text, "x").expect("it is YAML");
        let path = PathBuf::from("x.yaml");
        containers(&[ManifestFile { path, documents }])
    }

    #[test]
    fn containers_that_are_no_jvm_are_told() {
        let pod = |containers: &str| {
            let text =
                format!("kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{containers}]}}");
            of(&text)
                .iter()
                .map(|f| f.skipped.is_none())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            pod("{name: a, image: 'registry:5000/shop/orders:1'}"),
            [true]
        );
        assert_eq!(
            pod("{name: a, image: 'docker.io/istio/proxyv2:1.2'}"),
            [false]
        );
        for (image, is_jvm) in [
            ("acme/orders-native:1", false),
            ("acme/orders:1.0-native", false),
            ("acme/cloud-native-orders:1", true),
            ("ghcr.io/kubeflow/spark-operator:2", false),
            ("quay.io/keycloak/keycloak-operator:26", true),
            ("opensearchproject/opensearch-dashboards:2", false),
            ("docker.elastic.co/kibana/kibana:8.15.0", false),
        ] {
            assert_eq!(
                pod(&format!("{{name: a, image: '{image}'}}")),
                [is_jvm],
                "{image}"
            );
        }
        let real = "{name: b, image: orders, resources: {limits: {memory: 2Gi}}}, {name: s, image: x, command: [java, -jar, a.jar], resources: {limits: {memory: 64Mi}}}";
        assert_eq!(pod(real), [true, true]);
        let looks = "{name: b, image: orders}, {name: s, image: 'javascript-proxy:1'}, {name: t, image: spring-config}";
        assert_eq!(pod(looks), [true, false, true]);
        let heap = "{name: n, image: nexus-custom, env: [{name: INSTALL4J_ADD_VM_PARAMS, value: '-Xmx1g'}]}, {name: p, image: docker-nexus-proxy}";
        assert_eq!(pod(heap), [true, false]);
        let both = "{name: a, image: orders, env: [{name: JAVA_OPTS, value: -Xmx1g}]}, {name: b, image: logs}";
        assert_eq!(pod(both), [true, false]);
        assert_eq!(
            pod("{name: a, command: [/opt/jre/bin/java, -jar, a.jar]}, {name: b}"),
            [true, false]
        );
        assert_eq!(
            pod("{name: a, command: [sh, -c, 'exec java -jar a.jar']}, {name: b}"),
            [true, false]
        );
        assert_eq!(pod("{name: a}, {name: b}"), [true, true]);
        let job = of(
            "kind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}",
        );
        assert_eq!(job[0].workload, "CronJob/nightly");
    }

    #[test]
    fn containers_that_keep_running_are_read_and_custom_resources_named() {
        let text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}], initContainers: [{name: b, restartPolicy: Always, args: [-Xmx1g]}, {name: c, args: [-Xmx2g]}]}\n---\n\
                    apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: k}\n---\n\
                    apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {template: {spec: {containers: [{name: d}]}}}\n---\n\
                    apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata: {name: t}\n---\n\
                    apiVersion: secrets-store.csi.x-k8s.io/v1\nkind: SecretProviderClass\nmetadata: {name: p}\n---\n\
                    apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n---\n\
                    apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\n---\n\
                    apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: s}\n---\n\
                    apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: j}\nspec: {jobTargetRef: {template: {spec: {containers: [{name: e}]}}}}";
        let names: Vec<String> = of(text).into_iter().map(|f| f.container.name).collect();
        assert_eq!(names, ["a", "b", "d", "e"]);
        let documents = crate::manifest::documents(text, "x").expect("it is YAML");
        let path = PathBuf::from("x.yaml");
        assert_eq!(
            custom_resources(&[ManifestFile { path, documents }]),
            ["Kafka/k", "SparkApplication/s"]
        );
    }

    #[test]
    fn the_pods_of_workflows_are_read() {
        let steps = "steps: [[{name: a, template: main}]]";
        let script = "script: {image: a, command: [bash], source: 'java -Xmx2g -jar a.jar'}";
        let set = "containerSet: {containers: [{name: c, args: [-Xmx3g]}]}, podSpecPatch: '{}'";
        let spec = format!(
            "{{templateDefaults: {{container: {{resources: {{limits: {{memory: 1Gi}}}}}}}}, templates: [{{name: s, {steps}}}, {{name: main, container: {{args: [-Xmx1g]}}, sidecars: [{{name: m, image: nginx}}]}}, {{name: t, {script}}}, {{name: u, {set}}}]}}"
        );
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{generateName: n-}}\nspec: {spec}\n---\n\
             apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {{name: o}}\nspec: {{workflowSpec: {spec}}}\n---\n\
             apiVersion: other.io/v1\nkind: Workflow\nmetadata: {{name: p}}\nspec: {spec}"
        );
        let shown = |found: &ManifestContainer| {
            let one = &found.container;
            let memory = one.limits.memory.map(|memory| memory.to_string());
            let skipped = found.skipped.as_deref().unwrap_or_default();
            let (name, jvm) = (&one.name, one.jvm.join(" "));
            let line = format!("{} {name}: {memory:?} {jvm} {skipped}", found.workload);
            line.trim_end().to_owned()
        };
        let said: Vec<String> = of(&text).iter().map(shown).collect();
        assert_eq!(said.len(), 8);
        insta::assert_snapshot!(said[..5].join("\n"), @r#"
        Workflow/n- main: Some("1Gi") -Xmx1g
        Workflow/n- m: None  nginx has no JVM
        Workflow/n- t: None -Xmx2g
        Workflow/n- c: None -Xmx3g a podSpecPatch changes it
        CronWorkflow/o main: Some("1Gi") -Xmx1g
        "#);
        let documents = crate::manifest::documents(&text, "x").expect("it is YAML");
        let path = PathBuf::from("x.yaml");
        let custom = custom_resources(&[ManifestFile { path, documents }]);
        assert_eq!(custom, ["Workflow/p"]);
    }

    #[test]
    fn containers_in_a_wrong_place_are_seen() {
        for (object, is_misplaced) in [
            (
                "apiVersion: apps/v1, spec: {template: {spec: {containers: {app: {}}}}}",
                true,
            ),
            (
                "apiVersion: apps/v1, spec: {template: {containers: [{name: a}]}}",
                true,
            ),
            ("apiVersion: v1, spec: {container: [{name: a}]}", true),
            ("apiVersion: v1, spec: {containers: [{name: a}]}", false),
            ("apiVersion: a.io/v1, spec: {containers: {app: {}}}", false),
        ] {
            let text = format!("{{kind: K, metadata: {{name: n}}, {object}}}");
            let documents = crate::manifest::documents(&text, "x").expect("it is YAML");
            let path = PathBuf::from("x.yaml");
            let found = misplaced_containers(&[ManifestFile { path, documents }]);
            assert_eq!(found.is_some(), is_misplaced, "{object}");
        }
    }

    #[test]
    fn what_another_object_of_the_input_owns_is_left_out() {
        let owned = |kind: &str, name: &str, owner: &str| {
            format!(
                "{{kind: {kind}, metadata: {{name: {name}, ownerReferences: [{owner}]}}, spec: {{template: {{spec: {{containers: [{{name: c}}]}}}}, containers: [{{name: c}}]}}}}"
            )
        };
        let text = format!(
            "kind: List\nitems: [{}, {}, {}, {}]",
            owned("Deployment", "d", ""),
            owned("ReplicaSet", "d-1", "{kind: Deployment, name: d}"),
            owned("Pod", "d-1-x", "{kind: ReplicaSet, name: d-1}"),
            owned("Pod", "e-0", "{kind: StatefulSet, name: e}"),
        );
        let names: Vec<String> = of(&text).into_iter().map(|found| found.workload).collect();
        assert_eq!(names, ["Deployment/d", "Pod/e-0"]);
    }

    #[test]
    fn what_is_no_quantity_is_named() {
        let text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, resources: {limits: {memory: 512MB, cpu: 1e0}}}]}";
        let found = of(text).remove(0).container;
        assert_eq!(found.unreadable, ["limits.memory `512MB`"]);
        assert_eq!(found.limits.cpu.map(|c| c.as_millis()), Some(1000));
        let zero = of(
            "kind: Pod\nspec: {containers: [{name: a, resources: {limits: {memory: 0, cpu: '0'}}}]}",
        );
        assert_eq!(zero[0].container.limits, ContainerResources::default());
    }

    #[test]
    fn a_deployment_is_read() {
        let found = of(DEPLOYMENT);
        let [one] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (one.workload.as_str(), one.skipped.clone()),
            ("Deployment/shop", None)
        );
        let container = &one.container;
        assert_eq!(container.jvm, ["-Xmx512m", "-XX:ParallelGCThreads=1"]);
        assert_eq!(
            container.limits.memory.map(|m| m.to_string()).as_deref(),
            Some("1Gi")
        );
        assert_eq!(
            container.requests.memory.map(|m| m.as_bytes()),
            Some(256_000_000)
        );
        assert_eq!(container.requests.cpu.map(|c| c.as_millis()), Some(250));
        assert_eq!(container.probes[0].patience(), Duration::from_secs(45));
    }
}
