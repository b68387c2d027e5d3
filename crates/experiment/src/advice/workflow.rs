//! Argo Workflows: the pods that a workflow's templates describe.
//!
//! Owns how a template becomes a pod. Its container has no name, so it gets the template's. Source:
//! argo-workflows, "Field Reference" (WorkflowSpec, Template).

use loadline_sizing::options::words::has_word;
use serde_json::{Value, json};

use super::fields::{last_path_segment, list_items, list_texts, text_length};
use super::inlined::ConfigMaps;
use super::malformed::SHELLS;

const TEMPLATES: [&str; 2] = ["/spec/workflowSpec", "/spec"];

/// What the templates of a workflow share.
const SHARED: [&str; 3] = ["templateDefaults", "volumes", "podSpecPatch"];

/// Specifications of the pods, one for each template with containers; none for other objects.
pub(super) fn workflow_pods(object: &Value, maps: &ConfigMaps) -> Vec<Value> {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let mut specs = TEMPLATES.iter().filter_map(|place| object.pointer(place));
    let spec = specs.find(|spec| spec["templates"].is_array());
    match spec.filter(|_| group.starts_with("argoproj.io/")) {
        Some(spec) => {
            let shared = SHARED.iter().map(|key| text_length(&spec[*key])).sum();
            let pod = |template| {
                let is_small = maps.may_copy(|| shared);
                template_pod(if is_small { spec } else { &Value::Null }, template)
            };
            list_items(spec, "templates").filter_map(pod).collect()
        }
        None => Vec::new(),
    }
}

fn template_pod(spec: &Value, template: &Value) -> Option<Value> {
    let defaults = &spec["templateDefaults"];
    let own = ["container", "script"].iter().find_map(|key| {
        let container = template.get(*key).filter(|value| value.is_object())?;
        let mut container = with_defaults(container, &defaults[*key]);
        container["name"] = template["name"].clone();
        read_script(&mut container);
        Some(vec![container])
    });
    let set = || {
        template
            .pointer("/containerSet/containers")?
            .as_array()
            .cloned()
    };
    let containers = own.or_else(set)?;
    let sidecars = list_items(template, "sidecars").cloned();
    let volumes = [spec, template].into_iter();
    let volumes = volumes.flat_map(|of| list_items(of, "volumes"));
    let patches = [template, defaults, spec].map(|of| &of["podSpecPatch"]);
    Some(json!({
        "containers": containers.into_iter().chain(sidecars).collect::<Vec<_>>(),
        "initContainers": list_items(template, "initContainers").collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
        "podSpecPatch": patches.into_iter().find(|patch| !patch.is_null()),
    }))
}

fn with_defaults(container: &Value, defaults: &Value) -> Value {
    let mut whole = container.clone();
    for (key, value) in defaults.as_object().into_iter().flatten() {
        if whole.get(key).is_none() {
            whole[key] = value.clone();
        }
    }
    whole
}

/// Argo gives a shell its source as a file, which does what the same text behind `-c` does.
fn read_script(container: &mut Value) {
    let command = list_texts(container, "command");
    let is_shell = |word: &String| has_word(SHELLS, last_path_segment(word));
    if let Some(source) = container["source"].as_str().map(str::to_owned)
        && command.first().is_some_and(is_shell)
    {
        container["args"] = json!(["-c", source]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(spec: &Value) -> Vec<Value> {
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "spec": spec});
        workflow_pods(&object, &ConfigMaps::default())
    }

    #[test]
    fn a_container_that_is_no_map_is_none() {
        let template = |container: Value| json!({"templates": [{"container": container}]});
        for container in [json!("java"), json!([1]), json!(1), Value::Null] {
            assert_eq!(pods(&template(container)), Vec::<Value>::new());
        }
    }

    #[test]
    fn many_templates_copy_no_more_than_memory_has() {
        let defaults = json!({"container": {"command": ["x".repeat(4 << 10)]}});
        let templates = vec![json!({"container": {}}); 400];
        let all = pods(&json!({"templateDefaults": defaults, "templates": templates}));
        let is_whole = |pod: &&Value| pod["containers"][0]["command"].is_array();
        assert_eq!(all.len(), 400);
        let whole = all.iter().filter(is_whole).count();
        assert!((200..300).contains(&whole), "{whole}");
    }
}
