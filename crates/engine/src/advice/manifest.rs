//! Containers of a Kubernetes manifest.
//!
//! Owns the reading of documents ([`crate::manifest`]) into `loadline_analysis::lint::Container`. Unknown kinds and fields are passed over: a manifest may
//! hold anything. Source: Kubernetes API reference, core/v1 PodSpec.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::lint::{Container, Probe, Resources};
use serde_json::Value;

use super::{AdviceError, text};
use crate::manifest::documents;

/// Places of the pod template in the kinds that have one, and in a Pod itself.
const POD_SPECS: [&str; 3] = [
    "/spec/template/spec",
    "/spec/jobTemplate/spec/template/spec",
    "/spec",
];

/// Environment variables from which JVMs and common launchers take options.
const OPTION_VARIABLES: [&str; 4] = [
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_OPTIONS",
];

/// All containers of a manifest.
///
/// # Errors
/// [`AdviceError`] when it cannot be read or has none.
pub fn containers(path: &Path) -> Result<Vec<Container>, AdviceError> {
    let found = parse(&text(path)?).map_err(|why| AdviceError::NoAdvice {
        path: path.to_owned(),
        why,
    })?;
    if found.is_empty() {
        return Err(AdviceError::NoAdvice {
            path: path.to_owned(),
            why: "no document in it has spec.template.spec.containers".to_owned(),
        });
    }
    Ok(found)
}

fn parse(text: &str) -> Result<Vec<Container>, String> {
    let documents = documents(text, "it").map_err(|refusal| refusal.why)?;
    let listed = |document: &Value| match document.get("items").and_then(Value::as_array) {
        Some(items) => items.clone(),
        None => vec![document.clone()],
    };
    let objects: Vec<Value> = documents.iter().flat_map(listed).collect();
    Ok(objects.iter().flat_map(of_object).collect())
}

fn of_object(object: &Value) -> Vec<Container> {
    let containers = POD_SPECS.iter().find_map(|place| {
        let spec = object.pointer(place)?;
        spec.get("containers")?.as_array()
    });
    let all = containers.map_or(&[][..], Vec::as_slice);
    all.iter().map(container).collect()
}

fn container(value: &Value) -> Container {
    let name = value.get("name").and_then(Value::as_str);
    Container {
        name: name.unwrap_or_default().to_owned(),
        requests: resources(value.pointer("/resources/requests")),
        limits: resources(value.pointer("/resources/limits")),
        jvm: jvm_options(value),
        probes: ["livenessProbe", "readinessProbe", "startupProbe"]
            .iter()
            .filter_map(|kind| probe(kind, value.get(*kind)?))
            .collect(),
    }
}

fn resources(value: Option<&Value>) -> Resources {
    let quantity = |name: &str| value.and_then(|v| v.get(name)).map(plain);
    Resources {
        cpu: quantity("cpu").and_then(|text| text.parse().ok()),
        memory: quantity("memory").and_then(|text| memory(&text)),
    }
}

/// A memory quantity: Kubernetes also has decimal units, which loadline's own sizes do not.
pub(super) fn memory(text: &str) -> Option<loadline_sizing::Bytes> {
    let decimal = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("", 1.0)];
    if text.ends_with('i') {
        return text.parse().ok();
    }
    decimal.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.parse::<f64>().ok()?;
        let is_sane = (0.0..1e18).contains(&(number * factor));
        is_sane.then(|| loadline_sizing::Bytes::from_bytes((number * factor) as u64))
    })
}

/// A scalar as it is written.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Options that the JVM reads first come first: the last one of a kind counts.
fn jvm_options(value: &Value) -> Vec<String> {
    let texts = |name: &str| -> Vec<String> {
        let items = value.get(name).and_then(Value::as_array);
        items.map_or_else(Vec::new, |items| items.iter().map(plain).collect())
    };
    let environment = value.get("env").and_then(Value::as_array);
    let variables = environment.map_or(&[][..], Vec::as_slice).iter();
    let of_variable = variables.filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        let value = variable.get("value")?;
        OPTION_VARIABLES.contains(&name).then(|| plain(value))
    });
    let words = of_variable
        .flat_map(|text| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .chain(texts("command"))
        .chain(texts("args"));
    words.filter(|word| word.starts_with("-X")).collect()
}

/// A probe with the defaults of Kubernetes.
fn probe(kind: &str, value: &Value) -> Option<Probe> {
    let number = |name: &str, default: u64| value.get(name).map_or(Some(default), Value::as_u64);
    Some(Probe {
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

    #[test]
    fn a_deployment_is_read() {
        let found = parse(DEPLOYMENT).expect("it is YAML");
        let [container] = &found[..] else {
            panic!("{found:?}")
        };
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
