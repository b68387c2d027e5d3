//! Fields of a container, and of its pod, as a manifest writes them.
//!
//! Owns how a list, a text and a variable are read, of any type. Never knows what they mean.

use serde_json::Value;

/// Places of the pod template in the kinds that have one, and in a Pod itself.
pub(super) const POD_SPECS: [&str; 5] = [
    "/spec/template/spec",
    "/spec/jobTemplate/spec/template/spec",
    // ScaledJob of KEDA.
    "/spec/jobTargetRef/template/spec",
    "/template/spec",
    "/spec",
];

pub(crate) fn list_items<'a>(
    value: &'a Value,
    name: &str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    let items = value.get(name).and_then(Value::as_array);
    items.into_iter().flatten()
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

pub(super) fn scalar_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn text_length(value: &Value) -> usize {
    value
        .as_str()
        .map_or_else(|| value.to_string().len(), str::len)
}

pub(super) fn last_path_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_without_end_are_not_all_looked_at() {
        let variable = serde_json::json!({"name": "A", "value": "$(A)"});
        let container = serde_json::json!({ "env": vec![variable; MOST_WORDS + 1] });
        assert_eq!(variables(&container).count(), MOST_WORDS);
    }
}
