//! Containers of Kubernetes manifests.
//!
//! Owns which of them run a JVM, as far as a manifest tells, and their reading into
//! `loadline_analysis::lint::Container`. Documents come from [`crate::manifest`]; unknown kinds and
//! fields are passed over: a manifest may hold anything. Source: Kubernetes API reference, core/v1
//! PodSpec.

use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::lint::{ContainerProbe, ContainerResources, LintedContainer};
use serde_json::Value;

use super::quantity;
use crate::manifest::ManifestFile;

const POD_SPECS: [&str; 3] = [
    "/spec/template/spec",
    "/spec/jobTemplate/spec/template/spec",
    "/spec",
];

pub(crate) const OPTION_VARIABLES: [&str; 5] = [
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_OPTIONS",
];

const VARIABLES: [&str; 6] = ["JAVA_", "JDK_", "JVM_", "SPRING_", "QUARKUS_", "BPL_JVM_"];

const IMAGES: [&str; 14] = [
    "java",
    "jdk",
    "jre",
    "temurin",
    "corretto",
    "zulu",
    "liberica",
    "semeru",
    "spring",
    "tomcat",
    "jetty",
    "wildfly",
    "quarkus",
    "openliberty",
];

/// Images and programs that are known to be something else.
const OTHERS: [&str; 24] = [
    "envoy",
    "istio-proxy",
    "proxyv2",
    "linkerd-proxy",
    "proxy",
    "nginx",
    "haproxy",
    "traefik",
    "busybox",
    "pause",
    "fluent-bit",
    "fluentd",
    "filebeat",
    "vector",
    "otelcol",
    "redis",
    "postgres",
    "mysql",
    "mariadb",
    "memcached",
    "python",
    "python3",
    "node",
    "cloud-sql-proxy",
];

#[derive(Debug, Clone, PartialEq)]
pub struct ManifestContainer {
    pub path: PathBuf,
    /// `Deployment/orders`.
    pub workload: String,
    pub container: LintedContainer,
    pub raw: Value,
    /// Why it is not taken for a JVM; `None` where it is.
    pub skipped: Option<&'static str>,
}

pub fn containers(sources: &[ManifestFile]) -> Vec<ManifestContainer> {
    let found = |source: &ManifestFile| {
        let objects = source.documents.iter().flat_map(list_objects);
        let all = objects.flat_map(of_object).map(|found| ManifestContainer {
            path: source.path.clone(),
            ..found
        });
        all.collect::<Vec<_>>()
    };
    sources.iter().flat_map(found).collect()
}

fn list_objects(document: &Value) -> Vec<&Value> {
    match document.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    }
}

fn of_object(object: &Value) -> Vec<ManifestContainer> {
    let containers = POD_SPECS.iter().find_map(|place| {
        let spec = object.pointer(place)?;
        spec.get("containers")?.as_array()
    });
    let word = |place: &str| object.pointer(place).and_then(Value::as_str);
    let workload = format!(
        "{}/{}",
        word("/kind").unwrap_or("Pod"),
        word("/metadata/name").unwrap_or("without-a-name")
    );
    let all = containers.map_or(&[][..], Vec::as_slice);
    let signs: Vec<ContainerSign> = all.iter().map(ContainerSign::from_container).collect();
    let has_jvm = signs.contains(&ContainerSign::Jvm);
    let found = all
        .iter()
        .zip(signs)
        .map(|(value, sign)| ManifestContainer {
            path: PathBuf::new(),
            workload: workload.clone(),
            container: parse_container(value),
            raw: value.clone(),
            skipped: match sign {
                ContainerSign::Other => Some("its image or command is known to be no JVM"),
                ContainerSign::None if has_jvm => {
                    Some("nothing in it says JVM, and another container does")
                }
                ContainerSign::Jvm | ContainerSign::None => None,
            },
        });
    found.collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerSign {
    Jvm,
    Other,
    None,
}

impl ContainerSign {
    fn from_container(value: &Value) -> Self {
        let environment = value.get("env").and_then(Value::as_array);
        let mut names = environment
            .into_iter()
            .flatten()
            .filter_map(|v| v.get("name")?.as_str());
        let words = [list_texts(value, "command"), list_texts(value, "args")].concat();
        let is_java = |word: &String| {
            let mut parts = word.split_whitespace();
            parts.any(|part| {
                last_path_segment(part) == "java"
                    || part.ends_with(".jar")
                    || part.starts_with("-X")
            })
        };
        let image = value
            .get("image")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name = last_path_segment(image)
            .split([':', '@'])
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let program = words
            .first()
            .map(|word| last_path_segment(word))
            .unwrap_or_default();
        let is_variable = |name: &str| {
            OPTION_VARIABLES.contains(&name) || VARIABLES.iter().any(|v| name.starts_with(v))
        };
        if OTHERS.contains(&program) || OTHERS.contains(&name.as_str()) {
            Self::Other
        } else if names.any(is_variable)
            || words.iter().any(is_java)
            || IMAGES.iter().any(|part| name.contains(part))
        {
            Self::Jvm
        } else {
            Self::None
        }
    }
}

fn last_path_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub fn list_texts(value: &Value, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Value::as_array);
    items.map_or_else(Vec::new, |items| items.iter().map(scalar_text).collect())
}

fn parse_container(value: &Value) -> LintedContainer {
    let name = value.get("name").and_then(Value::as_str);
    let mut unreadable = Vec::new();
    let requests = parse_resources(value, "requests", &mut unreadable);
    let limits = parse_resources(value, "limits", &mut unreadable);
    LintedContainer {
        name: name.unwrap_or_default().to_owned(),
        requests,
        limits,
        unreadable,
        jvm: jvm_options(value),
        probes: ["livenessProbe", "readinessProbe", "startupProbe"]
            .iter()
            .filter_map(|kind| parse_probe(kind, value.get(*kind)?))
            .collect(),
    }
}

fn parse_resources(value: &Value, kind: &str, unreadable: &mut Vec<String>) -> ContainerResources {
    let found = value.get("resources").and_then(|r| r.get(kind));
    let quantity = |name: &str| {
        found
            .and_then(|v| v.get(name))
            .filter(|v| !v.is_null())
            .map(scalar_text)
    };
    let mut read = ContainerResources::default();
    if let Some(text) = quantity("cpu") {
        read.cpu = quantity::parse_cpu_quantity(&text);
        unreadable.extend(read.cpu.is_none().then(|| format!("{kind}.cpu `{text}`")));
    }
    if let Some(text) = quantity("memory") {
        read.memory = quantity::parse_memory_quantity(&text);
        unreadable.extend(
            read.memory
                .is_none()
                .then(|| format!("{kind}.memory `{text}`")),
        );
    }
    read
}

fn scalar_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Options that the JVM reads first come first: the last one of a kind counts.
fn jvm_options(value: &Value) -> Vec<String> {
    let environment = value.get("env").and_then(Value::as_array);
    let variables = environment.map_or(&[][..], Vec::as_slice).iter();
    let of_variable = variables.filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        let value = variable.get("value")?;
        OPTION_VARIABLES.contains(&name).then(|| scalar_text(value))
    });
    let words = of_variable
        .flat_map(|text| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .chain(list_texts(value, "command"))
        .chain(list_texts(value, "args"));
    words.filter(|word| word.starts_with("-X")).collect()
}

/// A probe with the defaults of Kubernetes.
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
    fn what_is_no_quantity_is_named() {
        let text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, resources: {limits: {memory: 512MB, cpu: 1e0}}}]}";
        let found = of(text).remove(0).container;
        assert_eq!(found.unreadable, ["limits.memory `512MB`"]);
        assert_eq!(found.limits.cpu.map(|c| c.as_millis()), Some(1000));
    }

    #[test]
    fn a_deployment_is_read() {
        let found = of(DEPLOYMENT);
        let [one] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (one.workload.as_str(), one.skipped),
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
