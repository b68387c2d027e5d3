//! The changes of a recommendation to a user's container, as input for the patch and Helm's values.
//!
//! Owns which fields change and which stay: it changes limits, JVM options, variables of the
//! recommended configuration, and the startup probe. Probes, variables and limits that were not
//! measured stay; every remaining difference from the measurement is named.

use loadline_analysis::text::join_words;
use loadline_sizing::options::words;
use serde_json::{Value, json};

use super::application::ReadinessCheck;
use super::error::EmitError;
use super::facts::EmitFacts;
use super::jvm_options::TOOL_OPTIONS;
use super::kubernetes::literal;
use super::merge::{HeapRoom, merge_options, replace_in_place, variables};
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_map};
use crate::view::ResultView;
use crate::{redact, text};

const HANDLERS: [&str; 4] = ["httpGet", "tcpSocket", "exec", "grpc"];

/// The defaults of Kubernetes for a probe: period in seconds, failures.
const PROBE: (u64, u64) = (10, 3);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableChange {
    pub name: String,
    pub value: String,
    pub was_reference: bool,
    pub because: String,
}

/// Variables that a value refers to, which must precede it, in their order.
///
/// Kubernetes expands `$(NAME)` of earlier variables, and kustomize puts the patched ones first:
/// required variables must be listed by name.
pub fn needed_variables<'a>(set: &[VariableChange], container: &'a Value) -> Vec<&'a str> {
    let all: Vec<(&str, &Value)> = variables(container).collect();
    let mut texts: Vec<&str> = set.iter().map(|s| s.value.as_str()).collect();
    let mut found = vec![false; all.len()];
    // A variable can only refer to one before it: one look backwards finds all.
    for (at, (name, value)) in all.iter().enumerate().rev() {
        let reference = format!("$({name})");
        // A doubled dollar sign is one, and refers to nothing.
        let refers = |text: &&str| text.replace("$$", "").contains(&reference);
        if texts.iter().any(refers) {
            found[at] = true;
            texts.extend(value.as_str());
        }
    }
    let needed = all.iter().zip(found).filter(|(_, is_needed)| *is_needed);
    let needed = needed.map(|((name, _), _)| *name);
    let is_unset = |name: &&str| set.iter().all(|s| s.name != *name);
    needed.filter(is_unset).collect()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerChange {
    pub variables: Vec<VariableChange>,
    pub notes: Vec<String>,
}

/// The JVM options that the trials had, in order: those of the variable, then the others.
/// Errors: [`EmitError::ToolOptions`] where the trials had a secret in the variable.
pub fn measured_options(facts: &EmitFacts<'_>) -> Result<Vec<String>, EmitError> {
    let mut all = Vec::new();
    for variable in facts.variables.iter().filter(|v| v.name == TOOL_OPTIONS) {
        let value = variable.value.as_ref().ok_or(EmitError::ToolOptions)?;
        all.extend(words::split_environment(value).map_err(|_| EmitError::ToolOptions)?);
    }
    all.extend(facts.options.iter().map(|option| option.value.clone()));
    Ok(all)
}

pub fn container_change(
    view: &ResultView,
    facts: &EmitFacts<'_>,
    container: &Value,
) -> Result<ContainerChange, EmitError> {
    let options = measured_options(facts)?;
    let room = HeapRoom {
        machine: facts.machine(),
        rest: facts.outside_heap(),
    };
    let (replaced, notes) = replace_in_place(container, &options, room)?;
    let own = replaced.iter().map(|(name, value)| VariableChange {
        name: name.clone(),
        value: value.clone(),
        was_reference: is_reference(container, name),
        because: "JVM options as in the trials".to_owned(),
    });
    let mut change = ContainerChange {
        variables: own.collect(),
        notes,
    };
    change.notes.extend(foreign_parts(container));
    change.notes.extend(facts.shm.map(|shm| format!(
        "the /dev/shm of the trials had {shm}; what the pod has there stays: give it an emptyDir with medium Memory and that sizeLimit."
    )));
    let chosen = view.recommendation.as_ref();
    let chosen = chosen.map(|r| &r.configuration.env);
    let is_done = |name: &String| replaced.iter().any(|(own, _)| own == name);
    let others = facts.variables.iter().filter(|v| v.name != TOOL_OPTIONS);
    for variable in others.filter(|v| !is_done(&v.name)) {
        let there = variables(container).find(|(name, _)| *name == variable.name);
        let is_chosen = chosen.is_some_and(|env| env.contains_key(&variable.name));
        let name = text::label(&variable.name);
        let value = variable.value.as_deref().map(literal);
        match (value, there) {
            (None, None) => change.notes.push(format!(
                "{name} was set in the trials and is a secret: the manifest has to set it."
            )),
            (None, Some(_)) => {}
            (Some(value), Some((_, own))) if own.as_str() == Some(&value) => {}
            (Some(_), Some(_)) if !is_chosen => change.notes.push(format!(
                "{name} stays as it is; it had another value in the trials."
            )),
            (Some(value), there) => {
                if there.is_some() {
                    change.notes.push(format!(
                        "{name} gets the value that was recommended; it had another one."
                    ));
                }
                change.variables.push(VariableChange {
                    name: variable.name.clone(),
                    value,
                    was_reference: is_reference(container, &variable.name),
                    because: "as in the trials".to_owned(),
                });
            }
        }
    }
    let has_own = variables(container).any(|(name, own)| name == TOOL_OPTIONS && !own.is_null());
    if !options.is_empty() || has_own {
        let there = variables(container).find(|(name, _)| *name == TOOL_OPTIONS);
        let there = match there {
            Some((_, Value::Null)) => {
                return Err(EmitError::Manifest {
                    why: format!(
                        "{TOOL_OPTIONS} comes from elsewhere (valueFrom), so what it says cannot be merged with what was measured"
                    ),
                    hint: format!(
                        "write its value into the manifest; a variable of another name can come from elsewhere, and {TOOL_OPTIONS} say $(NAME)"
                    ),
                });
            }
            Some((_, own)) => own.as_str().unwrap_or_default(),
            None => "",
        };
        let merged = merge_options(there, &options, room, literal)?;
        change.notes.extend(merged.notes);
        if merged.value != there {
            change.variables.push(VariableChange {
                name: TOOL_OPTIONS.to_owned(),
                value: merged.value,
                was_reference: is_reference(container, TOOL_OPTIONS),
                because: reasons(facts),
            });
        }
    }
    Ok(change)
}

/// Whether a variable takes its value from elsewhere, which must go when it gets one.
fn is_reference(container: &Value, name: &str) -> bool {
    let all = container.get("env").and_then(Value::as_array);
    let mut all = all.into_iter().flatten();
    all.any(|v| v["name"] == name && v.get("valueFrom").is_some())
}

fn reasons(facts: &EmitFacts<'_>) -> String {
    let reasons = facts.options.iter();
    let reasons = reasons.map(|o| format!("{} ({})", o.value, o.because));
    text::one_line(&format!("part of the size: {}", join_words(reasons, "; ")))
}

/// What in the container is beyond what can be looked at, or differs from the trials.
fn foreign_parts(container: &Value) -> Option<String> {
    let from = container.get("envFrom").and_then(Value::as_array)?;
    (!from.is_empty()).then(|| {
        format!("the container takes variables from elsewhere (envFrom), which were not looked at; {TOOL_OPTIONS} of the patch wins over one there.")
    })
}

pub fn kept_limits(facts: &EmitFacts<'_>, resources: &Value) -> Option<String> {
    let cpu = resources.pointer("/limits/cpu")?;
    let end = if facts.is_without_limit {
        "is removed: the CPU request was measured without a limit."
    } else {
        "stays; the trials had none."
    };
    let cpu = text::label(cpu.as_str().unwrap_or(&cpu.to_string()));
    (facts.cpu.is_none()).then(|| format!("the CPU limit {cpu} {end}"))
}

pub fn changed_container(
    facts: &EmitFacts<'_>,
    container: &Value,
    change: &ContainerChange,
) -> Value {
    let mut changed = container.clone();
    for place in ["/resources", "/resources/requests", "/resources/limits"] {
        let field = changed.pointer_mut(place);
        // The API server refuses whatever is no map there.
        if let Some(field) = field.filter(|field| !field.is_object()) {
            *field = json!({});
        }
    }
    let sizes = facts.cpu.iter().map(|cpu| ("cpu", cpu.value.to_string()));
    for (name, size) in sizes.chain([("memory", facts.memory.value.to_string())]) {
        for kind in ["requests", "limits"] {
            changed["resources"][kind][name] = size.clone().into();
        }
    }
    let env = container.get("env").and_then(Value::as_array);
    let mut env = env.cloned().unwrap_or_default();
    for set in &change.variables {
        env.retain(|own| own["name"] != set.name.as_str());
        env.push(json!({"name": set.name, "value": set.value}));
    }
    if let Some(request) = &facts.cpu_request {
        changed["resources"]["requests"]["cpu"] = request.value.to_string().into();
    }
    let limits = changed["resources"]["limits"].as_object_mut();
    if let Some(limits) = limits.filter(|_| facts.is_without_limit) {
        limits.remove("cpu");
    }
    changed["env"] = env.into();
    changed
}

/// The probes of a container that change: the start time is measured; how a probe asks stays the
/// container's own if it has a probe. A longer wait and a custom readiness probe stay. `reach`
/// tells whether the trials' port belongs to the container.
pub fn probes(facts: &EmitFacts<'_>, container: &Value, reach: bool) -> Vec<YamlEntry> {
    let own = |kind: &str| container.get(kind).unwrap_or(&Value::Null);
    let ready = facts.application.ready.as_ref().filter(|_| reach);
    let asked = || ready.map(measured_handler);
    let others = [own("readinessProbe"), own("livenessProbe")];
    let startup = startup(facts, own("startupProbe"), || {
        let mut others = others.iter();
        others.find_map(|probe| handler(probe)).or_else(asked)
    });
    let startup = startup.map(|probe| yaml_entry("startupProbe", probe));
    let readiness = asked().filter(|_| !own("readinessProbe").is_object());
    let readiness = readiness.map(|asked| {
        let probes = facts.probes.value;
        let fields = [
            asked,
            yaml_entry("periodSeconds", probes.readiness_period),
            yaml_entry("timeoutSeconds", probes.timeout),
            yaml_entry("failureThreshold", probes.readiness_failures),
        ];
        yaml_entry("readinessProbe", yaml_map(fields))
    });
    startup.into_iter().chain(readiness).collect()
}

/// The startup probe; `None` if its own waits as long, or if no way to ask is known.
fn startup(
    facts: &EmitFacts<'_>,
    own: &Value,
    handler: impl Fn() -> Option<YamlEntry>,
) -> Option<Yaml> {
    let probes = facts.probes.value;
    let patience = probes.startup_period * probes.startup_failures;
    if own.is_object() && wait_seconds(own) >= patience {
        return None;
    }
    let mut entries = Vec::new();
    if !HANDLERS.iter().any(|name| own.get(*name).is_some()) {
        entries.push(handler()?);
    }
    entries.push(yaml_entry("periodSeconds", probes.startup_period));
    if own.get("timeoutSeconds").is_none() {
        entries.push(yaml_entry("timeoutSeconds", probes.timeout));
    }
    let failures = yaml_entry("failureThreshold", probes.startup_failures);
    entries.push(failures.because(format!("{patience} s: {}", facts.probes.because)));
    Some(yaml_map(entries))
}

pub(super) fn measured_handler(ready: &ReadinessCheck) -> YamlEntry {
    let asked = |port: u16| yaml_entry("port", u64::from(port));
    match ready {
        ReadinessCheck::Http { port, path } => {
            let fields = [yaml_entry("path", path.clone()), asked(*port)];
            yaml_entry("httpGet", yaml_map(fields))
        }
        ReadinessCheck::Tcp { port } => yaml_entry("tcpSocket", [asked(*port)]),
        // Kubernetes takes no port by its name there.
        ReadinessCheck::Grpc { port } => yaml_entry("grpc", [asked(*port)]),
    }
}

/// How a probe of the container asks; never with a secret.
fn handler(probe: &Value) -> Option<YamlEntry> {
    let mut names = HANDLERS.iter();
    let (name, value) = names.find_map(|name| Some((*name, probe.get(*name)?)))?;
    let shown = value.to_string();
    let is_open = redact::redact_line(&shown) == shown;
    is_open.then(|| yaml_entry(name, value))
}

fn wait_seconds(probe: &Value) -> u64 {
    let number =
        |name: &str, default: u64| probe.get(name).and_then(Value::as_u64).unwrap_or(default);
    let tries =
        number("periodSeconds", PROBE.0).saturating_mul(number("failureThreshold", PROBE.1));
    tries.saturating_add(number("initialDelaySeconds", 0))
}
