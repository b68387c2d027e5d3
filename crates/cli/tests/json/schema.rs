//! Checks a document against a JSON schema: the part of the language that schemars writes.
//!
//! Stricter than the standard in one way: a key that the schema does not name is a fault, because
//! an undocumented field is what the test is there to find. An unknown keyword of the schema is a
//! fault too, so that nothing passes because it was not looked at.

use serde_json::Value;

/// Keywords that say nothing about whether a document fits.
const REMARKS: [&str; 5] = ["$schema", "$defs", "title", "description", "default"];

/// The same for everything that a command printed, one document after the other; nothing at all is
/// a fault.
pub fn faults_of(schema: &Value, printed: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    let mut count = 0;
    for document in serde_json::Deserializer::from_slice(printed).into_iter() {
        count += 1;
        match document {
            Ok(document) => all.extend(faults(schema, &document)),
            Err(error) => all.push(format!("no JSON: {error}")),
        }
    }
    if count == 0 {
        all.push("nothing was printed".to_owned());
    }
    all
}

/// Where and how a document breaks the schema; empty when it follows it.
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, schema, document, "$", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else {
        if schema != &Value::Bool(true) {
            faults.push(format!("{at}: nothing is allowed here"));
        }
        return;
    };
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$ref" => {
                let pointer = wanted.as_str().unwrap_or_default().trim_start_matches('#');
                match root.pointer(pointer) {
                    Some(target) => check(root, target, value, at, faults),
                    None => faults.push(format!("{at}: {wanted} leads nowhere")),
                }
            }
            "type" => {
                if !one_or_many(wanted).iter().any(|t| is_a(value, t)) {
                    faults.push(format!("{at}: {value} is not {wanted}"));
                }
            }
            "enum" if !wanted.as_array().is_some_and(|all| all.contains(value)) => {
                faults.push(format!("{at}: {value} is not one of {wanted}"));
            }
            "const" if wanted != value => faults.push(format!("{at}: {value} is not {wanted}")),
            "anyOf" | "oneOf" => {
                let fits = |one: &&Value| {
                    let mut inner = Vec::new();
                    check(root, one, value, at, &mut inner);
                    inner.is_empty()
                };
                if !wanted
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|one| fits(&one))
                {
                    faults.push(format!("{at}: {value} does not fit {wanted}"));
                }
            }
            "properties" => properties(root, wanted, value, at, faults),
            "required" => {
                for key in wanted
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                {
                    if value.is_object() && value.get(key).is_none() {
                        faults.push(format!("{at}: {key} is missing"));
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}[{index}]"), faults);
                }
            }
            "prefixItems" => {
                let rules = wanted.as_array().into_iter().flatten();
                let items = value.as_array().into_iter().flatten();
                for (index, (rule, item)) in rules.zip(items).enumerate() {
                    check(root, rule, item, &format!("{at}[{index}]"), faults);
                }
            }
            // What has named keys is strict anyway; what has none is a map.
            "additionalProperties" if !rules.contains_key("properties") => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    check(root, wanted, inner, &format!("{at}.{key}"), faults);
                }
            }
            "minimum" => {
                if value.as_f64() < wanted.as_f64() && value.is_number() {
                    faults.push(format!("{at}: {value} is below {wanted}"));
                }
            }
            "minItems" | "maxItems" => {
                let length = value.as_array().map(|a| a.len() as u64);
                let bound = wanted.as_u64();
                let breaks = match rule.as_str() {
                    "minItems" => length < bound,
                    _ => length > bound,
                };
                if length.is_some() && breaks {
                    faults.push(format!("{at}: {length:?} items, {rule} is {wanted}"));
                }
            }
            "format" | "enum" | "const" | "additionalProperties" => {}
            remark if REMARKS.contains(&remark) => {}
            unknown => faults.push(format!("{at}: the schema's `{unknown}` is not checked")),
        }
    }
}

fn properties(root: &Value, known: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        match known.get(key) {
            Some(schema) => check(root, schema, inner, &format!("{at}.{key}"), faults),
            None => faults.push(format!("{at}: {key} is not documented")),
        }
    }
}

fn one_or_many(wanted: &Value) -> Vec<&str> {
    match wanted {
        Value::String(one) => vec![one],
        many => many
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect(),
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[test]
fn the_checker_finds_faults() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "a": { "type": ["integer", "null"], "minimum": 0 },
            "b": { "type": "array", "items": { "$ref": "#/$defs/B" }, "maxItems": 2 },
            "m": { "type": "object", "additionalProperties": { "type": "integer" } },
            "p": { "type": "array", "prefixItems": [{ "type": "integer" }, { "type": "string" }] },
        },
        "required": ["a"],
        "$defs": { "B": { "anyOf": [{ "type": "string" }, { "const": 7 }] } },
    });
    let count = |document: Value| faults(&schema, &document).len();
    assert_eq!(count(serde_json::json!({ "a": 1, "b": ["x", 7] })), 0);
    assert_eq!(count(serde_json::json!({ "a": null })), 0);
    assert_eq!(count(serde_json::json!({ "a": -1 })), 1);
    assert_eq!(count(serde_json::json!({ "a": "x", "c": 1 })), 2);
    assert_eq!(count(serde_json::json!({ "b": [8, "x", "y"] })), 3);
    assert_eq!(
        count(serde_json::json!({ "a": 1, "m": { "x": 1, "y": "z" } })),
        1
    );
    assert_eq!(count(serde_json::json!({ "a": 1, "p": [1, "z"] })), 0);
    assert_eq!(count(serde_json::json!({ "a": 1, "p": ["z", 1] })), 2);
    assert_eq!(faults_of(&schema, b"").len(), 1);
    assert_eq!(faults_of(&schema, b"{\"a\":1}\n{\"a\":-1}\n{").len(), 2);
    assert_eq!(
        faults(&serde_json::json!({ "pattern": "x" }), &Value::Null).len(),
        1
    );
}
