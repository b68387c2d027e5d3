//! Objects of manifests as the cluster sees them, as far as the same input tells.
//!
//! Owns lists and OpenShift Templates taken apart, the values of variables that come from a
//! ConfigMap or Secret of the input or from the container's own limits, and the defaults of a
//! LimitRange. What comes from elsewhere stays a reference. Sources: Kubernetes API reference, core/v1
//! EnvVarSource, EnvFromSource and LimitRange; OpenShift, "Using templates" (`${NAME}` in a text,
//! `${{NAME}}` for a whole value).

use std::cell::Cell;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use loadline_analysis::lint::{LintFinding, Severity};
use loadline_sizing::Bytes;
use loadline_sizing::options::words;
use serde_json::{Map, Value, json};

use super::fields::{MOST_WORDS, POD_SPECS, list_items, program_texts, scalar_text, text_length};
use super::quantity;

/// How many times longer its parameters may make a template, which is short: a value may be referred
/// to from everywhere.
const MOST_FILLED: usize = 16;
const SHORT: usize = 1 << 10;

/// Most bytes that are copied to where something refers to them: a reference is short, too.
const MOST_COPIED: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// Bytes of a variable besides its name and value.
const VARIABLE: usize = 256;

const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

fn pod_spec_mut(object: &mut Value) -> Option<&mut Value> {
    let place = POD_SPECS
        .iter()
        .find(|place| object.pointer(&format!("{place}/containers")).is_some())?;
    object.pointer_mut(place)
}

fn single_objects(document: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    push_objects(document, false, &mut all);
    all
}

/// A Template within a Template stays as it is: each would multiply the size of the next.
fn push_objects(document: &Value, is_filled: bool, all: &mut Vec<Value>) {
    let list = |name: &str| document.get(name).and_then(Value::as_array);
    let is_template = !is_filled && document["kind"] == "Template";
    // `kubectl get -o json | jq .items` is a list itself.
    let items = document.as_array().or(list("items"));
    match (items, list("objects").filter(|_| is_template)) {
        (Some(items), _) => items
            .iter()
            .for_each(|item| push_objects(item, is_filled, all)),
        (None, Some(objects)) => {
            let mut parameters = TemplateParameters::of_template(document);
            for object in objects {
                let mut object = object.clone();
                parameters.fill_value(&mut object);
                push_objects(&object, true, all);
            }
        }
        (None, None) => all.push(document.clone()),
    }
}

struct TemplateParameters {
    values: BTreeMap<String, String>,
    /// Bytes that values may still add.
    left: usize,
}

impl TemplateParameters {
    fn of_template(template: &Value) -> Self {
        let all = list_items(template, "parameters");
        let parameter = |parameter: &Value| {
            let name = parameter.get("name")?.as_str()?.to_owned();
            Some((name, scalar_text(parameter.get("value")?)))
        };
        Self {
            values: all.filter_map(parameter).collect(),
            left: MOST_FILLED * (template.to_string().len() + SHORT),
        }
    }

    fn take_value(&mut self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        self.left = self.left.checked_sub(value.len())?;
        Some(value)
    }

    fn fill_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains("${") => {
                let whole = text.strip_prefix("${{").and_then(|t| t.strip_suffix("}}"));
                *value = match whole.and_then(|name| self.take_value(name)) {
                    Some(found) => serde_json::from_str(found).unwrap_or_else(|_| json!(found)),
                    None => self.fill_text(text).into(),
                };
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill_value(field)),
            _ => {}
        }
    }

    /// Each reference once: a value that holds one keeps it.
    fn fill_text(&mut self, text: &str) -> String {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let (name, end) = after.split_at(after.find(is_end).unwrap_or(after.len()));
            rest = match end.strip_prefix('}') {
                Some(end) if let Some(value) = self.take_value(name) => {
                    filled.push_str(value);
                    end
                }
                _ => {
                    filled.push_str("${");
                    after
                }
            };
        }
        filled + rest
    }
}

fn is_options_file(name: &str) -> bool {
    let endings = [
        ".options",
        ".vmoptions",
        "bootstrap.conf",
        "jvm.config",
        "java.env",
    ];
    endings.iter().any(|ending| name.ends_with(ending))
}

fn namespace(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace")?.as_str()
}

/// References of a variable, and of a whole source of variables, with the kind that each names.
pub(super) const SOURCES: [(&str, &str, &str); 2] = [
    ("ConfigMap", "configMapKeyRef", "configMapRef"),
    ("Secret", "secretKeyRef", "secretRef"),
];

#[derive(Default)]
pub struct ConfigMaps {
    /// By kind and name.
    data: BTreeMap<(&'static str, String), Vec<NamespacedData>>,
    /// What a LimitRange gives to containers: `default` and `defaultRequest`.
    ranges: Vec<(Option<String>, Value)>,
    copied: Cell<usize>,
}

type NamespacedData = (Option<String>, Map<String, Value>);

impl ConfigMaps {
    pub fn from_documents(documents: &[&Value]) -> Self {
        let mut maps = Self::default();
        for object in documents.iter().flat_map(|d| single_objects(d)) {
            let data = object.get("data").and_then(Value::as_object);
            if let (true, Some(data)) = (object["kind"] == "ConfigMap", data) {
                maps.add_data("ConfigMap", &object, data.clone());
            }
            if object["kind"] == "LimitRange" {
                let limits = list_items(&object["spec"], "limits");
                let of_containers = limits.filter(|limit| limit["type"] == "Container");
                let own = namespace(&object).map(str::to_owned);
                maps.ranges
                    .extend(of_containers.map(|limit| (own.clone(), limit.clone())));
            }
        }
        maps
    }

    /// Adds the JVM options in Secrets of the input and nothing else, because emitted files must not
    /// repeat a password.
    pub fn with_secrets(mut self, documents: &[&Value]) -> Self {
        for object in documents.iter().flat_map(|d| single_objects(d)) {
            if object["kind"] == "Secret" {
                self.add_data("Secret", &object, secret_options(&object));
            }
        }
        self
    }

    fn add_data(&mut self, kind: &'static str, object: &Value, data: Map<String, Value>) {
        if let Some(name) = object["metadata"]["name"].as_str() {
            let key = (kind, name.to_owned());
            let own = namespace(object).map(str::to_owned);
            self.data.entry(key).or_default().push((own, data));
        }
    }

    pub fn resolve_objects(&self, document: &Value) -> Vec<Value> {
        let mut objects = single_objects(document);
        for object in &mut objects {
            let namespace = namespace(object).map(str::to_owned);
            let Some(pod) = pod_spec_mut(object) else {
                continue;
            };
            for list in CONTAINERS {
                let all = pod.get_mut(list).and_then(Value::as_array_mut);
                for container in all.into_iter().flatten() {
                    self.fill_resources(container, namespace.as_deref());
                    self.fill_variables(container, namespace.as_deref());
                }
            }
        }
        objects
    }

    /// Whether something of this size may be copied; what may not stays a reference.
    pub(super) fn may_copy(&self, bytes: impl FnOnce() -> usize) -> bool {
        let copied = self.copied.get();
        if copied > MOST_COPIED {
            return false;
        }
        self.copied.set(copied.saturating_add(bytes()));
        self.copied.get() <= MOST_COPIED
    }

    /// What a LimitRange adds: its limit where the container has none, and its request where the
    /// container has neither. Its largest limit is the default without one, and its least request.
    fn fill_resources(&self, container: &mut Value, namespace: Option<&str>) {
        let mut ranges = self.ranges.iter();
        let found = ranges.find(|(other, _)| is_same_namespace(other.as_deref(), namespace));
        let (Some((_, range)), Some(fields)) = (found, container.as_object_mut()) else {
            return;
        };
        let resources = fields.entry("resources").or_insert_with(|| json!({}));
        for name in ["cpu", "memory"] {
            let has = |kind: &str| resources.get(kind).is_some_and(|r| r.get(name).is_some());
            let missing = (!has("limits"), !has("limits") && !has("requests"));
            let of_range = |kind: &str| range.get(kind).and_then(|all| all.get(name));
            let given = |kind: &str| of_range(kind).filter(|value| is_short(value)).cloned();
            let limit = given("default").or_else(|| given("max"));
            let request = given("defaultRequest").or_else(|| limit.clone());
            let request = request.or_else(|| given("min"));
            for (kind, is_missing, value) in [
                ("limits", missing.0, limit),
                ("requests", missing.1, request),
            ] {
                let Some(value) = value.filter(|_| is_missing) else {
                    continue;
                };
                let all = resources.as_object_mut();
                let own = all.map(|all| all.entry(kind).or_insert_with(|| json!({})));
                if let Some(own) = own.and_then(Value::as_object_mut) {
                    own.insert(name.to_owned(), value);
                }
            }
        }
    }

    /// What a LimitRange refuses: a limit above its largest, a request below its least.
    pub fn find_refused(&self, object: &Value, container: &Value) -> Vec<LintFinding> {
        let own = namespace(object);
        let ranges = self.ranges.iter();
        let mut ranges = ranges.filter(|(other, _)| is_same_namespace(other.as_deref(), own));
        let Some((_, range)) = ranges.next() else {
            return Vec::new();
        };
        let resources = &container["resources"];
        let mut all = Vec::new();
        let mut refuse = |what: String, given: &Value, bound: String| {
            all.push(LintFinding {
                severity: Severity::Error,
                problem: format!(
                    "the {what} {} is {bound} of the LimitRange: the API server refuses the pod",
                    scalar_text(given)
                ),
                hint: "change it, or the LimitRange".to_owned(),
            });
        };
        for name in ["cpu", "memory"] {
            let amount = |value: &Value| resource_amount(name, value);
            let limit = &resources["limits"][name];
            let request = &resources["requests"][name];
            let request = if request.is_null() { limit } else { request };
            let most = &range["max"][name];
            let least = &range["min"][name];
            if amount(most).is_some_and(|most| amount(limit) > Some(most)) {
                let bound = format!("above the max {}", scalar_text(most));
                refuse(format!("{name} limit"), limit, bound);
            }
            if amount(request).is_some_and(|request| Some(request) < amount(least)) {
                let bound = format!("below the min {}", scalar_text(least));
                refuse(format!("{name} request"), request, bound);
            }
        }
        all
    }

    fn find_map(
        &self,
        kind: &'static str,
        reference: &Value,
        own: Option<&str>,
    ) -> Option<&Map<String, Value>> {
        let name = reference.get("name")?.as_str()?.to_owned();
        let mut all = self.data.get(&(kind, name))?.iter();
        let found = all.find(|(other, _)| is_same_namespace(other.as_deref(), own))?;
        Some(&found.1)
    }

    /// Variables of `envFrom` come first: those of `env` win over them.
    fn fill_variables(&self, container: &mut Value, namespace: Option<&str>) {
        let mut own: Vec<Value> = list_items(container, "env").cloned().collect();
        for variable in &mut own {
            let value = variable.get("valueFrom").and_then(|from| {
                self.map_value(from, namespace)
                    .or_else(|| own_limit(from, container))
            });
            if let (Some(value), Some(fields)) = (value, variable.as_object_mut()) {
                fields.insert("value".to_owned(), value.into());
            }
        }
        let sources: Vec<Value> = list_items(container, "envFrom").cloned().collect();
        let (mut all, mut outside) = (Vec::new(), Vec::new());
        for source in sources {
            let map = SOURCES
                .iter()
                .find_map(|(kind, _, whole)| self.find_map(kind, source.get(*whole)?, namespace));
            let prefix = source["prefix"].as_str().unwrap_or_default();
            let length = |(name, value): (&String, &Value)| {
                VARIABLE + prefix.len() + name.len() + text_length(value)
            };
            let map = map.filter(|map| self.may_copy(|| map.iter().map(length).sum()));
            let Some(map) = map else {
                outside.push(source);
                continue;
            };
            let variable = |(name, value): (&String, &Value)| {
                let name = format!("{prefix}{name}");
                let is_own = own.iter().any(|v| v["name"] == name.as_str());
                (!is_own).then(|| json!({"name": name, "value": scalar_text(value)}))
            };
            all.extend(map.iter().filter_map(variable));
        }
        all.append(&mut own);
        let Some(fields) = container.as_object_mut() else {
            return;
        };
        for (name, list) in [("env", all), ("envFrom", outside)] {
            // What is no list stays as it is: the API server refuses it.
            if !list.is_empty() {
                fields.insert(name.to_owned(), list.into());
            } else if fields.get(name).is_some_and(Value::is_array) {
                fields.remove(name);
            }
        }
    }

    /// JVM options of mounted files, such as Elasticsearch's `jvm.options.d` and Trino's
    /// `jvm.config`, and of scripts that the words of the container name.
    pub fn mounted_options(&self, object: &Value, container: &Value) -> Vec<String> {
        let pods = POD_SPECS.iter().filter_map(|place| object.pointer(place));
        let Some(pod) = pods.into_iter().find(|pod| pod["volumes"].is_array()) else {
            return Vec::new();
        };
        let own = namespace(object);
        let words = program_texts(container);
        let is_called = |name: &str| {
            let mut parts = words.iter().flat_map(|word| word.split_whitespace());
            parts.any(|part| part.rsplit('/').next() == Some(name))
        };
        let mut texts = Vec::new();
        for mount in list_items(container, "volumeMounts") {
            let mut volumes = list_items(pod, "volumes");
            let Some(volume) = volumes.find(|volume| volume["name"] == mount["name"]) else {
                continue;
            };
            let sources = list_items(&volume["projected"], "sources").chain([volume]);
            for source in sources.filter_map(|source| source.get("configMap")) {
                let map = self.find_map("ConfigMap", source, own);
                for (key, text) in map.into_iter().flatten() {
                    // The file may have another name than the key.
                    let mut items = list_items(source, "items");
                    let item = items.find(|item| item["key"] == key.as_str());
                    let path =
                        item.map_or(key.as_str(), |item| item["path"].as_str().unwrap_or(key));
                    let path = match mount["subPath"].as_str() {
                        Some(part) if part != path => continue,
                        Some(_) => mount["mountPath"].as_str().unwrap_or(path),
                        None => path,
                    };
                    let name = path.rsplit('/').next().unwrap_or(path);
                    if is_options_file(name) || is_called(name) {
                        texts.extend(text.as_str());
                    }
                }
            }
        }
        let options = texts.into_iter().flat_map(words::find_jvm_options);
        options.take(MOST_WORDS).map(str::to_owned).collect()
    }

    fn map_value(&self, from: &Value, namespace: Option<&str>) -> Option<String> {
        SOURCES.iter().find_map(|(kind, one, _)| {
            let reference = from.get(*one)?;
            let map = self.find_map(kind, reference, namespace)?;
            let value = map.get(reference.get("key")?.as_str()?)?;
            let may_copy = self.may_copy(|| text_length(value));
            may_copy.then(|| scalar_text(value))
        })
    }
}

/// Thousandths of a CPU, or bytes.
fn resource_amount(name: &str, value: &Value) -> Option<u64> {
    let text = Some(value)
        .filter(|value| !value.is_null())
        .map(scalar_text)?;
    match name {
        "cpu" => quantity::parse_cpu_quantity(&text).map(|cpu| cpu.as_millis().into()),
        _ => quantity::parse_memory_quantity(&text).map(Bytes::as_bytes),
    }
}

/// Whether it may be a quantity.
fn is_short(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| text.len() <= SHORT)
}

/// Whether two objects may be of one namespace: a manifest need not say it.
fn is_same_namespace(other: Option<&str>, own: Option<&str>) -> bool {
    other.zip(own).is_none_or(|(other, own)| other == own)
}

/// The JVM options in the values of a Secret: base64 in `data`, plain in `stringData`.
fn secret_options(secret: &Value) -> Map<String, Value> {
    let values = |name: &str| secret.get(name).and_then(Value::as_object).cloned();
    let decode = |value: &Value| {
        let bytes = STANDARD.decode(value.as_str()?.trim()).ok()?;
        String::from_utf8(bytes).ok()
    };
    let packed = values("data").unwrap_or_default();
    let packed = packed
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), decode(value)?)));
    let plain = values("stringData").unwrap_or_default();
    let plain = plain
        .iter()
        .map(|(name, value)| (name.clone(), scalar_text(value)));
    let only_options = |text: String| words::find_jvm_options(&text).join(" ");
    packed
        .chain(plain)
        .map(|(name, text)| (name, only_options(text).into()))
        .collect()
}

/// A limit or request of the container itself, in the unit of the variable's divisor.
fn own_limit(from: &Value, container: &Value) -> Option<String> {
    let reference = from.get("resourceFieldRef")?;
    let (kind, name) = reference.get("resource")?.as_str()?.split_once('.')?;
    let limit = container.pointer(&format!("/resources/{kind}/{name}"))?;
    let divisor = reference.get("divisor").map_or("1".to_owned(), scalar_text);
    let bytes = |text: &str| quantity::parse_memory_quantity(text).map(|size| size.as_bytes());
    let (limit, divisor) = (bytes(&scalar_text(limit))?, bytes(&divisor)?);
    (name == "memory" && divisor > 0).then(|| limit.div_ceil(divisor).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_get_the_values_that_the_input_has() {
        let documents = [
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"X": "1", "Y": "2"}}),
            json!({"kind": "Pod", "spec": {"containers": [{
            "resources": {"limits": {"memory": "1Gi"}},
            "envFrom": [{"configMapRef": {"name": "a"}, "prefix": "P_"}, {"secretRef": {"name": "s"}}],
            "env": [
                {"name": "P_X", "value": "own"},
                {"name": "K", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "Y"}}},
                {"name": "M", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
                {"name": "N", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "Y"}}},
            ]}]}}),
        ];
        let [map, pod] = &documents;
        let object = ConfigMaps::from_documents(&[map, pod])
            .resolve_objects(pod)
            .remove(0);
        let container = &object["spec"]["containers"][0];
        let values = container["env"].as_array().into_iter().flatten();
        let values: Vec<_> = values
            .map(|v| (v["name"].clone(), v["value"].clone()))
            .collect();
        assert_eq!(
            json!(values),
            json!([
                ["P_Y", "2"],
                ["P_X", "own"],
                ["K", "2"],
                ["M", "1024"],
                ["N", null]
            ])
        );
        assert_eq!(container["envFrom"], json!([{"secretRef": {"name": "s"}}]));
    }

    #[test]
    fn secrets_give_their_options_and_limit_ranges_their_defaults() {
        let documents = [
            // "-Xmx1g -Dpassword=x"
            json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"A": "LVhteDFnIC1EcGFzc3dvcmQ9eA=="}, "stringData": {"B": "geheim"}}),
            json!({"kind": "LimitRange", "metadata": {"namespace": "shop"}, "spec": {"limits": [
                {"type": "Pod", "max": {"memory": "9Gi"}},
                {"type": "Container", "default": {"memory": "512Mi", "cpu": 1}, "defaultRequest": {"memory": "256Mi"}}]}}),
            json!({"kind": "Pod", "spec": {"containers": [
                {"envFrom": [{"secretRef": {"name": "s"}}], "resources": {"limits": {"cpu": 2}}},
                {"resources": {"requests": {"memory": "1Gi"}}}]}}),
        ];
        let all: Vec<&Value> = documents.iter().collect();
        let maps = ConfigMaps::from_documents(&all).with_secrets(&all);
        let object = maps.resolve_objects(&documents[2]).remove(0);
        let [one, other] = [0, 1].map(|at| &object["spec"]["containers"][at]);
        let named = |name, value| json!({"name": name, "value": value});
        assert_eq!(one["env"], json!([named("A", "-Xmx1g"), named("B", "")]));
        assert_eq!(
            one["resources"],
            json!({"limits": {"cpu": 2, "memory": "512Mi"}, "requests": {"memory": "256Mi"}})
        );
        assert_eq!(
            other["resources"],
            json!({"limits": {"cpu": 1, "memory": "512Mi"}, "requests": {"cpu": 1, "memory": "1Gi"}})
        );
        let plain = ConfigMaps::from_documents(&all);
        let object = plain.resolve_objects(&documents[2]).remove(0);
        assert_eq!(object["spec"]["containers"][0]["env"], Value::Null);
    }

    #[test]
    fn what_a_limit_range_bounds_is_filled_in_and_refused() {
        let range = json!({"kind": "LimitRange", "spec": {"limits": [
            {"type": "Container", "max": {"memory": "1Gi", "cpu": 2}, "min": {"memory": "256Mi"}}]}});
        let maps = ConfigMaps::from_documents(&[&range]);
        for (resources, limit, wanted) in [
            (json!({}), json!("1Gi"), ""),
            (
                json!({"limits": {"memory": "2Gi", "cpu": "1"}}),
                json!("2Gi"),
                "the memory limit 2Gi is above the max 1Gi of the LimitRange",
            ),
            (
                json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "128Mi"}}),
                json!("1Gi"),
                "the memory request 128Mi is below the min 256Mi",
            ),
            (
                json!({"limits": {"memory": "512Mi", "cpu": "2500m"}}),
                json!("512Mi"),
                "the cpu limit 2500m is above the max 2",
            ),
        ] {
            let pod = json!({"kind": "Pod", "spec": {"containers": [{"resources": resources}]}});
            let filled = maps.resolve_objects(&pod).remove(0);
            let container = &filled["spec"]["containers"][0];
            assert_eq!(container["resources"]["limits"]["memory"], limit);
            let found = maps.find_refused(&filled, container);
            let said = found.first().map_or("", |finding| &finding.problem);
            assert!(
                said.contains(wanted) && wanted.is_empty() == said.is_empty(),
                "{said}"
            );
        }
    }

    #[test]
    fn a_template_is_its_objects_with_its_parameters() {
        let template = json!({"kind": "Template",
            "parameters": [{"name": "N", "value": "orders"}, {"name": "C", "value": 2}, {"name": "S"}],
            "objects": [{"kind": "List", "items": [{"a": "${N}-x", "b": "${{C}}", "c": "${S}"}]}]});
        assert_eq!(
            single_objects(&template),
            [json!({"a": "orders-x", "b": 2, "c": "${S}"})]
        );
        assert_eq!(single_objects(&json!([{"a": 1}, {"a": 2}])).len(), 2);
    }

    #[test]
    fn parameters_that_double_each_other_are_filled_in_once() {
        let parameter = |n: u32| {
            let next = format!("${{P{}}}", n + 1);
            json!({"name": format!("P{n}"), "value": next.repeat(2)})
        };
        let parameters: Vec<Value> = (10..99).map(parameter).collect();
        let template = json!({"kind": "Template", "parameters": parameters,
            "objects": [{"a": "${P10}, ${", "b": "${P98}"}]});
        assert_eq!(
            single_objects(&template),
            [json!({"a": "${P11}${P11}, ${", "b": "${P99}${P99}"})]
        );
        let long = "x".repeat(SHORT);
        let template = json!({"kind": "Template", "parameters": [{"name": "A", "value": long}],
            "objects": [vec!["${A}"; 10 * SHORT]]});
        let filled = json!(single_objects(&template)).to_string();
        let most = 20 * template.to_string().len();
        assert!((most / 2..most).contains(&filled.len()), "{}", filled.len());
    }

    #[test]
    fn short_references_copy_no_more_than_memory_has() {
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"X": "x".repeat(4 * SHORT)}});
        let whole = json!({"configMapRef": {"name": "a"}});
        let one = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "X"}}});
        let pod = json!({"kind": "Pod", "spec": {"containers": [{"envFrom": vec![whole; 200], "env": vec![one; 200]}]}});
        let object = ConfigMaps::from_documents(&[&map, &pod])
            .resolve_objects(&pod)
            .remove(0);
        let length = object.to_string().len();
        assert!(
            (MOST_COPIED / 2..MOST_COPIED * 2).contains(&length),
            "{length}"
        );
        let range = json!({"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "default": {"memory": "1".repeat(2 * SHORT)}}]}});
        let object = ConfigMaps::from_documents(&[&range])
            .resolve_objects(&pod)
            .remove(0);
        assert_eq!(object["spec"]["containers"][0]["resources"], json!({}));
    }
}
