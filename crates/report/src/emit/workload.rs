//! The container of a manifest that a recommendation is for.
//!
//! Owns how it is found in the user's documents, and the names in a refusal. Reads values, never a
//! file. Source: Kubernetes API reference, apps/v1 Deployment and StatefulSet.

use loadline_analysis::text::join_words;
use serde_json::Value;

use super::error::EmitError;
use crate::text;

/// Kinds with long-running pods: the measurement is of a service under load.
const KINDS: [&str; 2] = ["Deployment", "StatefulSet"];

/// Kinds with a pod template (or that are a pod) which no patch is written for.
const OTHERS: [&str; 6] = [
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
    "Pod",
    "ReplicationController",
];

#[derive(Debug, Clone, PartialEq)]
pub struct EmittedWorkload {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
    pub container: Value,
}

impl EmittedWorkload {
    /// The one workload and container that the names leave; `workload` is `NAME` or `KIND/NAME`.
    /// Errors: [`EmitError::Manifest`] when there is none, or more than one: with all that there
    /// are.
    pub fn find_container(
        documents: &[Value],
        workload: Option<&str>,
        container: Option<&str>,
    ) -> Result<Self, EmitError> {
        let all: Vec<Self> = objects(documents).into_iter().flat_map(of_object).collect();
        if all.is_empty() {
            return Err(no_workload_error(documents));
        }
        let is_it = |found: &&Self| {
            let full = format!("{}/{}", found.kind.to_lowercase(), found.name);
            workload.is_none_or(|named| named == found.name || named.to_lowercase() == full)
                && container.is_none_or(|named| Some(named) == found.container_name())
        };
        let fitting: Vec<&Self> = all.iter().filter(is_it).collect();
        match fitting.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(EmitError::Manifest {
                why: format!(
                    "no container in the manifest is {}; there are: {}",
                    flag_words(workload, container),
                    workload_names(all.iter())
                ),
                hint: "give one of them with --workload and --container".to_owned(),
            }),
            several => Err(EmitError::Manifest {
                why: format!(
                    "the manifest has {} containers that it could be: {}",
                    several.len(),
                    workload_names(several.iter().copied())
                ),
                hint: "say which with --workload and --container".to_owned(),
            }),
        }
    }

    pub fn container_name(&self) -> Option<&str> {
        self.container.get("name").and_then(Value::as_str)
    }
}

fn flag_words(workload: Option<&str>, container: Option<&str>) -> String {
    let words = [("--workload", workload), ("--container", container)];
    let words = words.iter().filter_map(|(flag, name)| {
        let name = text::label((*name)?);
        Some(format!("{flag} {name}"))
    });
    join_words(words, " ")
}

/// `Deployment/orders container app, ...`
fn workload_names<'a>(all: impl Iterator<Item = &'a EmittedWorkload>) -> String {
    let one = |w: &EmittedWorkload| {
        let container = w.container_name().unwrap_or("without a name");
        text::label(&format!("{}/{} container {container}", w.kind, w.name))
    };
    join_words(all.map(one), ", ")
}

fn string_field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn objects(documents: &[Value]) -> Vec<&Value> {
    let items = |document| match Value::get(document, "items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![document],
    };
    documents.iter().flat_map(items).collect()
}

fn of_object(object: &Value) -> Vec<EmittedWorkload> {
    let kind = string_field(object, "kind").filter(|kind| KINDS.contains(kind));
    let name = object.get("metadata").and_then(|m| string_field(m, "name"));
    let Some((kind, name)) = kind.zip(name) else {
        return Vec::new();
    };
    let containers = object.pointer("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    let api = string_field(object, "apiVersion").unwrap_or("apps/v1");
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let workload = |container: &Value| EmittedWorkload {
        api_version: api.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
        container: container.clone(),
    };
    containers.filter(|c| c.is_object()).map(workload).collect()
}

fn no_workload_error(documents: &[Value]) -> EmitError {
    let objects = objects(documents).into_iter();
    let kinds: Vec<&str> = objects.filter_map(|o| string_field(o, "kind")).collect();
    let other = kinds.iter().find(|kind| OTHERS.contains(kind));
    let why = match (other, kinds.as_slice()) {
        (Some(kind), _) => format!("it has a {kind}, and no Deployment or StatefulSet"),
        (None, []) => "no document in it has a kind".to_owned(),
        (None, kinds) => format!(
            "it has {}, and no Deployment or StatefulSet with a container",
            text::label(&kinds.join(", "))
        ),
    };
    EmitError::Manifest {
        why,
        hint: "a patch is for pods that serve on and on, as they were measured; of others take the numbers: loadline emit RESULT --to DIR --for options".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(kind: &str, name: &str, containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers.iter().map(|c| json!({"name": c})).collect();
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": containers}}}})
    }

    fn found(documents: &[Value], workload: Option<&str>, container: Option<&str>) -> String {
        match EmittedWorkload::find_container(documents, workload, container) {
            Ok(w) => format!("{}/{} {}", w.kind, w.name, w.container_name().unwrap_or("")),
            Err(error) => format!("{error}\n{}", error.emit_hint()),
        }
    }

    #[test]
    fn the_only_container_is_found_and_others_by_name() {
        let one = deployment("Deployment", "orders", &["app"]);
        assert_eq!(
            found(std::slice::from_ref(&one), None, None),
            "Deployment/orders app"
        );
        let service = json!({"kind": "Service"});
        let two = deployment("StatefulSet", "orders", &["app", "proxy"]);
        let all = [service, json!({"kind": "List", "items": [one, two]})];
        insta::assert_snapshot!(found(&all, None, Some("app")), @"
        the manifest has 2 containers that it could be: Deployment/orders container app, StatefulSet/orders container app
        say which with --workload and --container
        ");
        assert_eq!(
            found(&all, Some("statefulset/orders"), Some("app")),
            "StatefulSet/orders app"
        );
        insta::assert_snapshot!(found(&all, Some("bills"), Some("x")), @"
        no container in the manifest is --workload bills --container x; there are: Deployment/orders container app, StatefulSet/orders container app, StatefulSet/orders container proxy
        give one of them with --workload and --container
        ");
    }

    #[test]
    fn what_there_is_instead_is_said() {
        let text = |document: Value| found(&[document], None, None);
        assert!(text(json!({"kind": "Service"})).contains("it has Service"));
        assert!(text(deployment("CronJob", "x", &["a"])).contains("it has a CronJob"));
        assert!(text(deployment("Deployment", "x", &[])).contains("it has Deployment"));
        assert!(text(json!("text")).contains("no document in it has a kind"));
    }
}
