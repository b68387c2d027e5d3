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
    ContainerNeeds, ContainerProbe, ContainerResources, IMAGE_OPTIONS, LintedContainer,
    OUTSIDE_HEAP, PodNeeds,
};
use loadline_sizing::Bytes;
use loadline_sizing::options::parse_size;
use loadline_sizing::options::words::{self, has_word};
use serde_json::Value;

use super::image_jdk::image_jdk;
use super::image_variables::{
    fill_references, heap_options, named_heap, script_flags, shell_assignments,
};
use super::inlined::{ConfigMaps, SOURCES};
use super::malformed::find_malformed;
use super::option_reader::{JVM_VARIABLES, OptionReader};
use super::quantity;
use crate::manifest::ManifestFile;
use crate::program::build_tool;

/// Places of the pod template in the kinds that have one, and in a Pod itself.
pub(super) const POD_SPECS: [&str; 5] = [
    "/spec/template/spec",
    "/spec/jobTemplate/spec/template/spec",
    // ScaledJob of KEDA.
    "/spec/jobTargetRef/template/spec",
    "/template/spec",
    "/spec",
];

pub(crate) const OPTION_VARIABLES: [&str; 5] = [
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_OPTIONS",
    "_JAVA_OPTIONS",
];

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

pub fn containers(sources: &[ManifestFile]) -> Vec<ManifestContainer> {
    let documents: Vec<&Value> = sources.iter().flat_map(|s| &s.documents).collect();
    let maps = ConfigMaps::from_documents(&documents).with_secrets(&documents);
    let of_source = |source: &ManifestFile| {
        let objects = source.documents.iter();
        let objects = objects.flat_map(|document| maps.resolve_objects(document));
        let found = objects.flat_map(|object| of_object(&object, &source.path, &maps));
        found.collect::<Vec<_>>()
    };
    sources.iter().flat_map(of_source).collect()
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

fn workload_name(object: &Value) -> String {
    let (kind, metadata) = (object["kind"].as_str(), &object["metadata"]);
    let name = metadata["name"].as_str();
    let name = name.or(metadata["generateName"].as_str());
    let name = name.unwrap_or("without-a-name");
    format!("{}/{name}", kind.unwrap_or("Pod"))
}

fn of_object(object: &Value, path: &Path, maps: &ConfigMaps) -> Vec<ManifestContainer> {
    let pods = POD_SPECS.iter().filter_map(|place| object.pointer(place));
    let Some(pod) = pods.into_iter().find(|pod| pod["containers"].is_array()) else {
        return Vec::new();
    };
    let list = |name: &str| list_items(pod, name);
    let keeps_running = |container: &&Value| container["restartPolicy"] == "Always";
    let running = list("containers").chain(list("initContainers").filter(keeps_running));
    let workload = workload_name(object);
    let mut all: Vec<ManifestContainer> = running
        .map(|raw| ManifestContainer {
            path: path.to_owned(),
            workload: workload.clone(),
            container: parse_container(raw, maps.mounted_options(object, raw)),
            raw: raw.clone(),
            skipped: None,
        })
        .collect();
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
    let starting: Vec<ContainerNeeds> = list("initContainers")
        .filter(|c| !keeps_running(c))
        .map(|container| parse_needs(container, &mut Vec::new()))
        .collect();
    let running: Vec<ContainerNeeds> = all.iter().map(|f| f.container.own_needs()).collect();
    for (at, found) in all.iter_mut().enumerate() {
        let mut others = running.clone();
        others.remove(at);
        found.container.pod = PodNeeds {
            own: pod_own,
            running: others,
            starting: starting.clone(),
        };
        found.container.inherit_limits();
        found.container.rest = rest;
    }
    all
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
                Some("nothing in it says JVM, and another container does".to_owned())
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
        let is_java = |word: &String| {
            let mut parts = word.split_whitespace();
            parts.any(|part| last_path_segment(part) == "java" || part.ends_with(".jar"))
        };
        let image = raw["image"].as_str().unwrap_or_default().to_lowercase();
        let base = image_base(&image);
        let program = words.first().map_or("", |word| last_path_segment(word));
        let is_variable = |name: &str| {
            OPTION_VARIABLES.contains(&name) || VARIABLES.iter().any(|v| name.starts_with(v))
        };
        let mut tokens = base.split(|c: char| !c.is_ascii_alphanumeric());
        let other = has_word(OTHERS, program).then(|| program.to_owned());
        let other = other.or_else(|| image_without_jvm(&image));
        let tool = build_tool(&words).and_then(|tool| tool.options_variable);
        let is_launcher = tool.is_some() || program == "spark-submit";
        if !container.jvm.is_empty() || is_launcher || words.iter().any(is_java) {
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

pub(crate) fn list_items<'a>(
    value: &'a Value,
    name: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let items = value.get(name).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn last_path_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub fn list_texts(value: &Value, name: &str) -> Vec<String> {
    match value.get(name) {
        Some(Value::Array(items)) => items.iter().map(scalar_text).collect(),
        // The API server refuses it, which does not hide its options.
        Some(Value::String(text)) => vec![text.clone()],
        _ => Vec::new(),
    }
}

pub(super) fn program_texts(container: &Value) -> Vec<String> {
    [
        list_texts(container, "command"),
        list_texts(container, "args"),
    ]
    .concat()
}

/// A container as it is written, with the JVM options of mounted files; [`containers`] knows its pod too.
pub fn parse_container(value: &Value, mounted: Vec<String>) -> LintedContainer {
    let mut unreadable = Vec::new();
    let ContainerNeeds { requests, limits } = parse_needs(value, &mut unreadable);
    let jvm = jvm_options(value, mounted);
    LintedContainer {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        requests,
        limits,
        unreadable,
        malformed: find_malformed(value),
        unseen: unseen_values(value, &jvm),
        jdk: value["image"].as_str().and_then(image_jdk),
        jvm,
        probes: ["livenessProbe", "readinessProbe", "startupProbe"]
            .iter()
            .filter_map(|kind| parse_probe(kind, value.get(*kind)?))
            .collect(),
        ..LintedContainer::default()
    }
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

pub(super) fn scalar_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Most variables and words of a container that are looked at: each may refer to all before it.
pub(super) const MOST_WORDS: usize = 1000;

pub(crate) fn variables(container: &Value) -> impl Iterator<Item = (&str, Option<String>)> {
    let all = list_items(container, "env").take(MOST_WORDS);
    all.filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        let value = variable.get("value").filter(|value| !value.is_null());
        Some((name, value.map(scalar_text)))
    })
}

/// JVM options of all variables and words of a container, each once, in the order in which the JVM
/// applies them.
fn jvm_options(container: &Value, mounted: Vec<String>) -> Vec<String> {
    let values: Vec<(String, String)> = variables(container)
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    let rank = |name: &str| match OPTION_VARIABLES.iter().position(|own| *own == name) {
        Some(at) if name != "_JAVA_OPTIONS" => at,
        Some(_) => usize::MAX,
        None => OPTION_VARIABLES.len(),
    };
    // Kubernetes fills in what stands before a variable; a script sees all.
    let text = |at: usize, name: &str, value: &str| match JVM_VARIABLES.contains(&name) {
        true => fill_references(value, &values[..at]),
        false => heap_options(name, value).unwrap_or(value.to_owned()),
    };
    let reader = |name: &str| match JVM_VARIABLES.contains(&name) {
        true => OptionReader::Jvm,
        false => OptionReader::Script,
    };
    let variables = values.iter().enumerate();
    let variables =
        variables.map(|(at, (name, value))| (rank(name), reader(name), text(at, name, value)));
    // A script's variable wins over a file that the script reads, and both over the JVM's variables.
    let files = mounted.into_iter();
    let files = files.map(|option| (rank("JAVA_OPTS"), OptionReader::Word, option));
    let mut texts: Vec<(usize, OptionReader, String)> = files.chain(variables).collect();
    let all_words = program_texts(container);
    let assigned = all_words.iter().flat_map(|word| shell_assignments(word));
    let all_values: Vec<(String, String)> = values.iter().cloned().chain(assigned).collect();
    let words = program_words(&all_words).iter().take(MOST_WORDS);
    let is_java = all_words
        .first()
        .is_some_and(|word| last_path_segment(word) == "java");
    let reader = match is_java {
        true => OptionReader::Word,
        false => OptionReader::Script,
    };
    texts.extend(words.map(|word| (OPTION_VARIABLES.len() + 1, reader, word.clone())));
    texts.sort_by_key(|(rank, ..)| *rank);
    let mut found: Vec<String> = Vec::new();
    let mut add = |options: Vec<String>| {
        let again: HashSet<&String> = options.iter().collect();
        found.retain(|old| !again.contains(old));
        found.extend(options);
    };
    let mut has_heap = false;
    for (_, reader, text) in texts {
        let text = match reader {
            OptionReader::Jvm => text,
            _ => fill_references(&text, &all_values),
        };
        let options = reader.find_options(&text);
        let is_heap = |option: &String| option.starts_with("-Xmx");
        has_heap |= !matches!(reader, OptionReader::Jvm) && options.iter().any(is_heap);
        add(options);
    }
    // What a script makes of its variables wins over the variables of the JVM, too.
    let image = container["image"].as_str().unwrap_or_default();
    let named = script_flags(&all_words);
    let named = named.iter().chain(&values);
    let named = named.filter(|(name, _)| heap_options(name, "1g").is_none());
    let named = named.filter_map(|(name, value)| named_heap(name, value, image));
    add(named
        .filter(|option| !has_heap || !option.starts_with("-Xm"))
        .collect());
    sum_heaps(&all_values, &all_words, &mut found);
    found
}

/// The variable of which the image's start script makes this option.
pub fn variable_behind<'a>(container: &'a Value, option: &str) -> Option<&'a str> {
    let image = container["image"].as_str().unwrap_or_default();
    let mut all = variables(container);
    all.find_map(|(name, value)| {
        let value = value?;
        let made = heap_options(name, &value).or_else(|| named_heap(name, &value, image))?;
        made.split(' ').any(|own| own == option).then_some(name)
    })
}

/// Several JVMs in one container: SonarQube's three have a variable of options each, and 512 MiB without
/// it (docs.sonarsource.com, "Environment variables"); others run in the background of a shell.
fn sum_heaps(values: &[(String, String)], words: &[String], found: &mut Vec<String>) {
    let names = ["WEB", "CE", "SEARCH"].map(|part| format!("SONAR_{part}_JAVAOPTS"));
    let given = |name: &String| values.iter().rfind(|(known, _)| known == name);
    let own = |name| given(name).map_or("-Xmx512m".to_owned(), |(_, value)| value.clone());
    let own: Vec<String> = match names.iter().any(|name| given(name).is_some()) {
        true => names.iter().map(own).collect(),
        false => Vec::new(),
    };
    let commands = words.iter().map(|word| word.replace("&&", ";"));
    let together: Vec<String> = commands
        .flat_map(|text| text.split('&').map(str::to_owned).collect::<Vec<_>>())
        .filter(|text| {
            words::find_jvm_options(text)
                .iter()
                .any(|o| o.starts_with("-Xmx"))
        })
        .collect();
    let is_shell = words.iter().any(|word| word.contains('&'));
    let texts = match (own.is_empty(), is_shell && together.len() > 1) {
        (false, _) => own,
        (true, true) => together,
        (true, false) => return,
    };
    let sizes = texts.iter().filter_map(|value| {
        let options = words::find_jvm_options(value);
        let heap = options.iter().rev().find_map(|o| o.strip_prefix("-Xmx"))?;
        parse_size(heap)
    });
    let heap = sizes.reduce(Bytes::saturating_add).unwrap_or_default();
    found.retain(|option| !option.starts_with("-Xm"));
    found.push(format!("-Xmx{}", heap.to_jvm_size()));
}

/// The words before those of the application itself: `java -jar a.jar -Xmx1g` gives it an argument.
fn program_words(words: &[String]) -> &[String] {
    let jar = words.iter().position(|word| word == "-jar");
    &words[..jar.unwrap_or(words.len())]
}

fn unseen_values(container: &Value, options: &[String]) -> Vec<String> {
    let place = |source: &Value| {
        SOURCES.iter().find_map(|(kind, one, whole)| {
            let reference = source.get(*one).or(source.get(*whole))?;
            Some(format!("{kind} {}", reference.get("name")?.as_str()?))
        })
    };
    let variables = list_items(container, "env").filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        let is_option = ["OPT", "JAVA", "JVM", "HEAP", "MEM", "ARGS"]
            .iter()
            .any(|part| name.contains(part));
        let found = variable
            .get("valueFrom")
            .filter(|_| variable.get("value").is_none())?;
        place(found).filter(|place| is_option || place.starts_with("ConfigMap"))
    });
    // A path or an address changes no memory.
    let sizes = ["-Xm", "-Xs", "-XX:M", "-XX:I", "-XX:R"];
    let is_size = |option: &&String| sizes.iter().any(|begin| option.starts_with(begin));
    let computed = options.iter().filter(|option| option.contains(['$', '{']));
    let computed = computed.filter(is_size);
    let computed = computed.map(|option| format!("the value in {option}"));
    let all = variables.chain(list_items(container, "envFrom").filter_map(place));
    let files = option_files(container, options);
    let mut all: Vec<String> = all.chain(computed).chain(files).collect();
    all.sort();
    all.dedup();
    all
}

/// Files of the image that hold options: `java @jvm.args`, `-XX:Flags=`, `-XX:VMOptionsFile=`.
fn option_files(container: &Value, options: &[String]) -> Vec<String> {
    let words = program_texts(container);
    let values = variables(container).filter(|(name, _)| OPTION_VARIABLES.contains(name));
    let values = values.filter_map(|(_, value)| value);
    let words = program_words(&words).iter().cloned();
    let texts: Vec<String> = words.chain(values).collect();
    // Jib's files hold the class path and the main class.
    let is_file =
        |word: &&str| word.len() > 1 && word.starts_with('@') && !word.starts_with("@/app/jib-");
    let named = ["-XX:Flags=", "-XX:VMOptionsFile="];
    let by_option = options
        .iter()
        .filter_map(|option| named.iter().find_map(|name| option.strip_prefix(name)));
    let by_word = texts.iter().flat_map(|text| text.split_whitespace());
    let all = by_word.filter(is_file).chain(by_option);
    all.map(|file| format!("the file {file}")).collect()
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
mod tests {
    use super::*;

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
    fn variables_without_end_are_not_all_looked_at() {
        let variable = serde_json::json!({"name": "A", "value": "$(A)"});
        let container = serde_json::json!({ "env": vec![variable; MOST_WORDS + 1] });
        assert_eq!(variables(&container).count(), MOST_WORDS);
    }

    #[test]
    fn every_place_of_an_option_is_read() {
        let options = |container: &str| {
            let text = format!(
                "{{kind: ConfigMap, metadata: {{name: c}}, data: {{HEAP: 1g, OPTS: -Xmx3g, NOTE: '{{{{ .Values.x }}}}'}}}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}]}}"
            );
            let found = of(&text).remove(0).container;
            [found.jvm, found.unseen].concat().join(" ")
        };
        let said = [
            options("env: [{name: KAFKA_HEAP_OPTS, value: '-Xmx1g -Xms1g'}]"),
            options("envFrom: [{configMapRef: {name: c}}]"),
            options("env: [{name: JAVA_OPTS, valueFrom: {configMapKeyRef: {name: c, key: OPTS}}}]"),
            options("args: ['-Xmx$(HEAP)'], envFrom: [{configMapRef: {name: c}}]"),
            options(
                "command: [sh, -c], args: ['exec java -Xmx${HEAP} -jar a.jar -Xmx9g'], env: [{name: HEAP, value: 2g}]",
            ),
            options("command: [java, -jar, a.jar, -Xmx9g]"),
            options(
                "command: [sh, -c, \"# -Xmx9g\\nexec java -Xmx'$(HEAP)' a\"], envFrom: [{configMapRef: {name: c}}]",
            ),
            options(
                "command: [sh, -c, 'java $JAVA_OPTS x'], env: [{name: JAVA_OPTS, value: -Xmx1g}]",
            ),
            options(
                "env: [{name: _JAVA_OPTIONS, value: -Xmx1g}, {name: JAVA_TOOL_OPTIONS, value: -Xmx2g}], args: [-Xmx3g]",
            ),
            options(
                "envFrom: [{secretRef: {name: s}}, {configMapRef: {name: orders-env}}], env: [{name: JAVA_OPTS, valueFrom: {secretKeyRef: {name: t, key: k}}}, {name: DB, valueFrom: {secretKeyRef: {name: u, key: k}}}]",
            ),
            options(
                "command: [java, '@/app/jvm.args', -jar, a.jar], env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:Flags=/app/f'}]",
            ),
            options("args: 'java -Xmx1g -jar a.jar'"),
            options("command: [sh, -c, 'java -Xmx1g -jar a.jar & java -Xmx512m -jar b.jar; wait']"),
            options(
                "args: ['-Xmx$(M)m'], resources: {limits: {memory: 512Mi}}, env: [{name: M, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xmx1g -Xms1g
        -Xmx3g
        -Xmx3g
        -Xmx3g -Xmx1g
        -Xmx2g

        -Xmx3g -Xmx1g
        -Xmx1g
        -Xmx2g -Xmx3g -Xmx1g
        ConfigMap orders-env Secret s Secret t
        -XX:Flags=/app/f the file /app/f the file @/app/jvm.args
        -Xmx1g
        -Xmx1536m
        -Xmx512m
        ");
    }

    #[test]
    fn options_are_taken_apart_as_their_reader_does() {
        let options = |container: &str| {
            let text = format!(
                "kind: ConfigMap\nmetadata: {{name: c}}\ndata: {{jvm.config: '-Xmx3g', run.sh: 'exec java -Xmx2g -jar a.jar'}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}], volumes: [{{name: v, projected: {{sources: [{{configMap: {{name: c}}}}]}}}}]}}"
            );
            let found = of(&text).remove(0).container;
            let jdk = found.jdk.map(|jdk| jdk.to_string());
            [found.jvm, found.unseen, jdk.into_iter().collect()]
                .concat()
                .join(", ")
        };
        let said = [
            options("command: [java, '-Xms1g -Xmx1g', -jar, a.jar], image: 'eclipse-temurin:21'"),
            options("command: [run.sh, '-Xms1g -Xmx1g']"),
            options(
                "env: [{name: JAVA_TOOL_OPTIONS, value: '\"-Xmx1g -Xss1m\" -Dx=\"-Xmx9g y\"'}]",
            ),
            options("env: [{name: JAVA_OPTS, value: '\"-Xmx1g -Xss1m\"'}]"),
            options(
                "env: [{name: A, value: 1g}, {name: JAVA_TOOL_OPTIONS, value: '-Xmx$(A) -Xss$(B)'}, {name: B, value: 1m}]",
            ),
            options(
                "command: [sh, /scripts/run.sh], volumeMounts: [{name: v, mountPath: /scripts}]",
            ),
            options("volumeMounts: [{name: v, mountPath: /etc/trino}]"),
            options(
                "volumeMounts: [{name: v, mountPath: /config/jvm.options, subPath: run.sh}, {name: w, mountPath: /x}]",
            ),
            options(
                "volumeMounts: [{name: v, mountPath: /etc/trino}], env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx1g}, {name: JAVA_OPTS, value: -Xmx2g}]",
            ),
            options(
                "command: [java, -cp, '@/app/jib-classpath-file', x], env: [{name: JAVA_TOOL_OPTIONS, value: '-XX:HeapDumpPath=/d/$(POD)'}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xms1g -Xmx1g, HotSpot 21
        -Xms1g, -Xmx1g
        -Xmx1g -Xss1m
        -Xmx1g, -Xss1m
        -Xmx1g, -Xss$(B), the value in -Xss$(B)
        -Xmx3g, -Xmx2g
        -Xmx3g
        -Xmx2g
        -Xmx1g, -Xmx3g, -Xmx2g
        -XX:HeapDumpPath=/d/$(POD)
        ");
    }

    #[test]
    fn heaps_of_well_known_images_and_scripts_are_read() {
        let options = |container: &str| {
            let text = format!(
                "kind: ConfigMap\nmetadata: {{name: c}}\ndata: {{heap.options: \"# -Xmx9g\\n-Xmx2g\", notes.txt: -Xmx8g}}\n---\n\
                 kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: a, {container}}}], volumes: [{{name: v, configMap: {{name: c}}}}, {{name: w, configMap: {{name: gone}}}}]}}"
            );
            let found = of(&text).remove(0).container;
            [found.jvm, found.unseen].concat().join(" ")
        };
        let said = [
            options("env: [{name: MAX_HEAP_SIZE, value: 2G}, {name: HEAP_NEWSIZE, value: 100M}]"),
            options("env: [{name: ZOO_HEAP_SIZE, value: '1024'}, {name: JVMFLAGS, value: -Xss1m}]"),
            options(
                "env: [{name: SONAR_WEB_JAVAOPTS, value: '-Xmx1G -Xms128m'}, {name: SONAR_CE_JAVAOPTS, value: -Xmx2G}]",
            ),
            options(
                "command: [sh, -c, 'export HEAP=3g; exec java -Xmx$HEAP -Xss${STACK:-1m} -jar a.jar']",
            ),
            options("command: [sh, -c, 'exec java -Xmx$(($LIMIT * 75 / 100))m -jar a.jar']"),
            options(
                "env: [{name: ZK_SERVER_HEAP, value: '1000'}, {name: ZK_CLIENT_HEAP, value: '256'}, {name: JAVA_TOOL_OPTIONS, value: -Xmx1g}]",
            ),
            options(
                "command: [sh, -c, \"start-zookeeper --servers=3 \\\\\\n --heap=512M --log=x\"]",
            ),
            options("command: [spark-submit, --driver-memory, 4g]"),
            options("command: [spark-submit, --deploy-mode, cluster, --driver-memory, 4g]"),
            options("image: itzg/minecraft-server, env: [{name: MEMORY, value: 2G}]"),
            options(
                "env: [{name: MEMORY, value: 2G}, {name: JVM_HEAP, value: 1g}, {name: JAVA_OPTS, value: -Xmx2g}]",
            ),
            options(
                "volumeMounts: [{name: v, mountPath: /c}, {name: w, mountPath: /d}], env: [{name: ES_JAVA_OPTS, value: -Xms1g}]",
            ),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        -Xms2G -Xmx2G -Xmn100M
        -Xms1024m -Xmx1024m -Xss1m
        -Xmx3584m
        -Xmx3g -Xss1m
        -Xmx$(($LIMIT the value in -Xmx$(($LIMIT
        -Xmx1g -Xmx1000m
        -Xmx512M
        -Xmx4g

        -Xmx2G
        -Xmx2g
        -Xmx2g -Xms1g
        ");
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
