//! Keys of a container that the API server refuses or drops, because they have a wrong place or
//! a wrong form, and variables that keep java from starting.
//!
//! Owns what people bring from compose files and other notations. Source: Kubernetes API reference,
//! core/v1 Container; unknown fields are refused by `kubectl apply` (server-side field validation).

use loadline_analysis::lint::{LintFinding, Severity};
use loadline_sizing::options::words::{misread_word, split_environment};
use serde_json::Value;

use super::manifest::variables;
use super::option_reader::JVM_VARIABLES;

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
    let is_text = |value: &Value| value.is_string() || value.is_null();
    let list = |key| {
        container
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let values =
        list("env").filter_map(|variable| Some((&variable["name"], variable.get("value")?)));
    let words = ["command", "args"].into_iter().flat_map(list);
    let words = words.map(|word| (&Value::Null, word));
    let plain = values.chain(words).filter(|(_, value)| !is_text(value));
    let plain = plain.map(|(name, value)| {
        let name = name
            .as_str()
            .map_or_else(String::new, |name| format!("{name}: "));
        let hint = "write it in quotes: \"8080\", \"true\"";
        (format!("{name}{value} is no text"), hint)
    });
    let texts = texts.chain(plain);
    let map = is("env", Value::is_object).then(|| {
        let hint = "write a list: - {name: JAVA_TOOL_OPTIONS, value: -Xmx512m}";
        ("`env` is no list".to_owned(), hint)
    });
    let all = outside.chain(without_kind).chain(texts).chain(map);
    let all = all.map(|(problem, hint)| {
        let problem = format!("{problem}: the API server does not take it");
        (problem, hint)
    });
    let unstartable = variables(container).filter_map(|(name, value)| {
        let (what, hint) = unstartable_value(name, &value?)?;
        Some((format!("{name}: {what}"), hint))
    });
    all.chain(unstartable)
        .map(|(problem, hint)| LintFinding {
            severity: Severity::Error,
            problem,
            hint: hint.to_owned(),
        })
        .collect()
}

/// The fault in a variable that the JVM reads, and the remedy.
fn unstartable_value(name: &str, value: &str) -> Option<(String, &'static str)> {
    if !JVM_VARIABLES.contains(&name) {
        return None;
    }
    let words = match split_environment(value) {
        Ok(words) => words,
        Err(quote) => {
            let what = format!("{quote}: java does not start with it");
            return Some((what, "close the quote"));
        }
    };
    // Options are judged elsewhere; `JDK_JAVA_OPTIONS` may have a class path or an @file.
    let is_read = |word: &&String| !word.starts_with('-') && !word.contains('$');
    let others = words.iter().filter(is_read);
    let mut wrong = others.filter_map(|word| misread_word(word, name != "JDK_JAVA_OPTIONS"));
    wrong.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_keep_java_from_starting_are_named() {
        for (name, value, wanted) in [
            (
                "JAVA_TOOL_OPTIONS",
                "-Dx='a -Xmx1g",
                "a quote ' is never closed",
            ),
            (
                "_JAVA_OPTIONS",
                "-Dx=my app",
                "a word in it does not begin with -",
            ),
            ("JAVA_TOOL_OPTIONS", "-Dx='my app' $(MORE)", ""),
            ("JDK_JAVA_OPTIONS", "-Xmx1g @/app/args", ""),
            ("JAVA_OPTS", "it's", ""),
        ] {
            let container = serde_json::json!({"env": [{"name": name, "value": value}]});
            let found = find_malformed(&container);
            let said = found.first().map_or("", |finding| &finding.problem);
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{said}"
            );
        }
    }

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
