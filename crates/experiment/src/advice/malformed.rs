//! Keys of a container that the API server refuses or drops, because they have a wrong place or
//! a wrong form.
//!
//! Owns what people bring from compose files and other notations. Source: Kubernetes API reference,
//! core/v1 Container; unknown fields are refused by `kubectl apply` (server-side field validation).

use loadline_analysis::lint::{LintFinding, Severity};
use serde_json::Value;

const RESOURCES: &str = "write resources: {limits: {memory: 512Mi}, requests: {memory: 512Mi}}";

/// A finding for each such key, in the order of the API reference.
pub fn find_malformed(container: &Value) -> Vec<LintFinding> {
    let resources = container.get("resources");
    let has = |value: Option<&Value>, key: &str| value.is_some_and(|v| v.get(key).is_some());
    let is = |key: &str, form: fn(&Value) -> bool| container.get(key).is_some_and(form);
    let outside = ["limits", "requests"]
        .into_iter()
        .filter(|key| has(Some(container), key))
        .map(|key| (format!("`{key}` stands outside `resources`"), RESOURCES));
    let without_kind = ["cpu", "memory"]
        .into_iter()
        .filter(|key| has(resources, key))
        .map(|key| {
            let problem = format!("`resources.{key}` is neither a limit nor a request");
            (problem, RESOURCES)
        });
    let texts = ["command", "args"]
        .into_iter()
        .filter(|key| is(key, Value::is_string))
        .map(|key| {
            let hint = "write a list: [sh, -c, \"exec java -jar app.jar\"]";
            (format!("`{key}` is one text and no list"), hint)
        });
    let map = is("env", Value::is_object).then(|| {
        let hint = "write a list: - {name: JAVA_TOOL_OPTIONS, value: -Xmx512m}";
        ("`env` is no list".to_owned(), hint)
    });
    let all = outside.chain(without_kind).chain(texts).chain(map);
    all.map(|(problem, hint)| LintFinding {
        severity: Severity::Error,
        problem: format!("{problem}: the API server does not take it"),
        hint: hint.to_owned(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_wrong_places_are_named() {
        let found = |container: Value| {
            let found = find_malformed(&container).into_iter();
            let problems = found.map(|finding| finding.problem);
            problems.collect::<Vec<_>>().join("; ")
        };
        let container = serde_json::json!({
            "limits": {"memory": "1Gi"}, "resources": {"memory": "1Gi"},
            "command": "java -jar a.jar", "env": {"JAVA_OPTS": "-Xmx1g"},
        });
        let said = found(container);
        for part in [
            "`limits` stands outside",
            "`resources.memory` is neither",
            "`command` is one text",
            "`env` is no list",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let sound = serde_json::json!({
            "resources": {"limits": {"memory": "1Gi"}}, "command": ["a"], "env": [],
        });
        assert_eq!(found(sound), "");
    }
}
