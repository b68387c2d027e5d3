//! Argo Workflows: the pods that a workflow's templates describe.
//!
//! Owns how a template becomes a pod. Its container has no name, so it gets the template's. Source:
//! argo-workflows, "Field Reference" (WorkflowSpec, Template).

use loadline_sizing::options::words::has_word;
use serde_json::{Value, json};

use super::fields::{last_path_segment, list_items, list_texts};
use super::malformed::SHELLS;

const TEMPLATES: [&str; 2] = ["/spec/workflowSpec", "/spec"];

/// Specifications of the pods, one for each template with containers; none for other objects.
pub(super) fn workflow_pods(object: &Value) -> Vec<Value> {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    let mut specs = TEMPLATES.iter().filter_map(|place| object.pointer(place));
    let spec = specs.find(|spec| spec["templates"].is_array());
    match spec.filter(|_| group.starts_with("argoproj.io/")) {
        Some(spec) => list_items(spec, "templates")
            .filter_map(|template| template_pod(spec, template))
            .collect(),
        None => Vec::new(),
    }
}

fn template_pod(spec: &Value, template: &Value) -> Option<Value> {
    let defaults = &spec["templateDefaults"];
    let own = ["container", "script"].iter().find_map(|key| {
        let mut container = with_defaults(template.get(*key)?, &defaults[*key]);
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
