//! A patch of an existing Deployment or StatefulSet: a strategic merge patch, and the Kustomize
//! component that applies it.
//!
//! Owns the two files. The patch names the workload and the container, and changes only measured
//! fields; it never replaces a whole object. Sources: Kubernetes, "Update API Objects in Place
//! Using kubectl patch" (merge keys `name` of containers and variables; `null` takes a field away);
//! Kustomize, "Components" (kustomize.config.k8s.io/v1alpha1).

use loadline_analysis::lint::{IMAGE_OPTIONS, OUTSIDE_HEAP};
use loadline_analysis::text::join_words;
use loadline_sizing::Bytes;
use serde_json::Value;

use super::application::ImagePinning;
use super::change::{
    VariableChange, changed_container, container_change, kept_limits, needed_variables, probes,
};
use super::error::EmitError;
use super::evidence::evidence;
use super::facts::EmitFacts;
use super::kubernetes::resources;
use super::merge::variables;
use super::purpose::{Artefact, EmitPurpose};
use super::workload::EmittedWorkload;
use super::yaml::{EVIDENCE_FILE, Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use super::{ProductionApplication, start_cpu};
use crate::text;
use crate::view::ResultView;

/// The annotation with the id of the result. `lint` reads two others: what the JVM needs outside its
/// heap, and the options that are in the image.
const ANNOTATION: &str = "loadline/result";

/// What was tested, in a sentence, and the JVM options that the size is nothing without.
const EVIDENCE: &str = "loadline/evidence";

pub(super) fn annotations(id: &str, facts: &EmitFacts<'_>) -> Yaml {
    let rest = facts.outside_heap();
    let rest = rest.map(|rest| yaml_entry(OUTSIDE_HEAP, rest.to_string()));
    let options = join_words(facts.options.iter().map(|o| &o.value), " ");
    let in_image = facts.has_image && !options.is_empty();
    let in_image = in_image.then(|| yaml_entry(IMAGE_OPTIONS, options.clone()));
    let options = if options.is_empty() {
        options
    } else {
        format!(" JVM options: {options}")
    };
    let claim = facts.origin.get(1);
    let claim = claim.map(|claim| yaml_entry(EVIDENCE, format!("{claim}{options}")));
    let id = yaml_entry(ANNOTATION, text::one_line(id));
    yaml_map([id].into_iter().chain(claim).chain(rest).chain(in_image))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFiles {
    pub artefacts: Vec<Artefact>,
    pub notes: Vec<String>,
    pub container: Value,
    /// Everything outside the heap, as it was measured.
    pub rest: Option<Bytes>,
}

/// The patch of a workload, with its component.
/// Errors: [`EmitError`] when the result has no recommendation, or a measured option would not
/// arrive.
pub fn patch(
    view: &ResultView,
    application: &ProductionApplication,
    workload: &EmittedWorkload,
) -> Result<PatchFiles, EmitError> {
    let facts = EmitFacts::from_result(view, application, &[EmitPurpose::Kubernetes])?;
    let change = container_change(view, &facts, &workload.container)?;
    let changed = changed_container(&facts, &workload.container, &change);
    let mut notes = facts.left_out.clone();
    notes.extend(change.notes);
    notes.extend(differences(&facts, &workload.container));
    let resized = "the patch lets the CPU change without a restart";
    notes.extend(start_cpu::left_to_do(&facts, resized));
    let (own, set) = (&workload.container, change.variables);
    let name = workload.container_name().unwrap_or_default();
    let mut container = vec![yaml_entry("name", name)];
    container.extend(measured_image(&facts, own, &mut notes));
    container.push(yaml_entry(
        "resources",
        resources(&facts, &own["resources"]),
    ));
    container.extend(start_cpu::resize_policy(&facts, own));
    if !set.is_empty() {
        container.push(yaml_entry("env", patched_environment(&set, own)));
    }
    let reach = reaches_port(own, application.reached_port());
    container.extend(probes(&facts, own, reach));
    let document = patch_document(view, &facts, workload, yaml_map(container));
    let text = comments(&facts, &notes) + &document.with_short_comments().to_document();
    let patches = yaml_list([yaml_map([yaml_entry("path", "patch.yaml")])]);
    let component = yaml_map([
        yaml_entry("apiVersion", "kustomize.config.k8s.io/v1alpha1"),
        yaml_entry("kind", "Component"),
        yaml_entry("patches", patches),
    ]);
    let artefact = |name, text| Artefact { name, text };
    let component =
        comments(&facts, &[]) + "# components: [this directory]\n" + &component.to_document();
    Ok(PatchFiles {
        artefacts: vec![
            artefact("patch.yaml", text),
            artefact("kustomization.yaml", component),
            artefact(EVIDENCE_FILE, evidence(&facts)),
        ],
        notes,
        container: changed,
        rest: facts.outside_heap(),
    })
}

fn patched_environment(set: &[VariableChange], container: &Value) -> Yaml {
    let place = |name: &str| variables(container).position(|(own, _)| own == name);
    let needed = needed_variables(set, container).into_iter();
    let needed = needed.map(|name| (place(name), yaml_map([yaml_entry("name", name)])));
    let set = set.iter().map(|set| {
        let value = yaml_entry("value", set.value.clone()).because(&*set.because);
        let gone = set
            .was_reference
            .then(|| yaml_entry("valueFrom", Yaml::Null));
        let fields = [yaml_entry("name", set.name.clone()), value].into_iter();
        (place(&set.name), yaml_map(fields.chain(gone)))
    });
    let mut all: Vec<(Option<usize>, Yaml)> = needed.chain(set).collect();
    all.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    yaml_list(all.into_iter().map(|(_, variable)| variable))
}

pub(super) fn comments(facts: &EmitFacts<'_>, notes: &[String]) -> String {
    let lines = facts.origin.iter().chain(notes);
    let lines = lines.map(|line| format!("# {}\n", text::one_line(line)));
    lines.collect()
}

fn patch_document(
    view: &ResultView,
    facts: &EmitFacts<'_>,
    workload: &EmittedWorkload,
    container: Yaml,
) -> Yaml {
    let mut metadata = vec![yaml_entry("name", workload.name.clone())];
    let namespace = workload.namespace.clone();
    metadata.extend(namespace.map(|n| yaml_entry("namespace", n)));
    metadata.push(yaml_entry("annotations", annotations(&view.id, facts)));
    let pod = yaml_map([yaml_entry("containers", yaml_list([container]))]);
    yaml_map([
        yaml_entry("apiVersion", workload.api_version.clone()),
        yaml_entry("kind", workload.kind.clone()),
        yaml_entry("metadata", yaml_map(metadata)),
        yaml_entry("spec", [yaml_entry("template", [yaml_entry("spec", pod)])]),
    ])
}

fn measured_image(
    facts: &EmitFacts<'_>,
    container: &Value,
    notes: &mut Vec<String>,
) -> Option<YamlEntry> {
    let pinned = facts.application.measured_image?;
    let own = container.get("image").and_then(Value::as_str);
    let image = &facts.application.image;
    match pinned {
        ImagePinning::Yes if own == Some(image) => None,
        ImagePinning::Yes => {
            let image = yaml_entry("image", image.clone());
            Some(image.because("the image that was measured, by its digest"))
        }
        ImagePinning::No => {
            notes.push(format!(
                "the image stays {}: {} was measured, which no cluster can pull by its digest before it is pushed.",
                text::label(own.unwrap_or("as it is")),
                text::label(image)
            ));
            None
        }
    }
}

/// Whether the trials' port is one of the container's; a container without named ports may have
/// any.
pub(super) fn reaches_port(container: &Value, port: Option<u16>) -> bool {
    let Some(port) = port else {
        return false;
    };
    let ports = container.get("ports").and_then(Value::as_array);
    let ports = ports.filter(|ports| !ports.is_empty());
    ports.is_none_or(|ports| {
        let number = |p: &Value| p.get("containerPort").and_then(Value::as_u64);
        ports
            .iter()
            .filter_map(number)
            .any(|p| p == u64::from(port))
    })
}

fn differences(facts: &EmitFacts<'_>, container: &Value) -> Vec<String> {
    let application = facts.application;
    let mut all = Vec::new();
    if application.measured_image.is_none() {
        let jdk = text::label(facts.seen.jdk.as_deref().unwrap_or("a JDK of this machine"));
        all.push(format!(
            "the image stays; the trials started the jar without one, on JDK {jdk}."
        ));
    }
    all.extend(kept_limits(facts, &container["resources"]));
    let port = application.reached_port();
    if let Some(port) = port.filter(|_| !reaches_port(container, port)) {
        all.push(format!(
            "the container has no port {port}, where the trials asked: no probe asks there."
        ));
    }
    let own = container.get("args").and_then(Value::as_array);
    let own = own.into_iter().flatten().filter_map(Value::as_str);
    let own: Vec<&str> = own.collect();
    if !facts.arguments.iter().all(|a| own.contains(&a.as_str())) {
        all.push(format!(
            "the application's arguments in the trials were {}; those of the manifest stay.",
            text::one_line(&facts.arguments.join(" "))
        ));
    }
    all
}
