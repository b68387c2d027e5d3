//! More CPU until a pod is ready: what gives it, and what allows it.
//!
//! Owns the objects of the two controllers that change the CPU of a starting pod. Sources: README of
//! google/kube-startup-cpu-boost; AEP-7862 of kubernetes/autoscaler.

use loadline_sizing::Cpus;
use serde_json::Value;

use super::facts::EmitFacts;
use super::names::{deployment_reference, labels, metadata, named_object};
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};

/// A change of CPU must not restart the container. The list is one value, so it keeps the container's
/// policies for other resources.
pub(super) fn resize_policy(facts: &EmitFacts<'_>, container: &Value) -> Option<YamlEntry> {
    let start = facts.start_cpu?;
    let cpu = yaml_map([
        yaml_entry("resourceName", "cpu"),
        yaml_entry("restartPolicy", "NotRequired"),
    ]);
    let own = container["resizePolicy"].as_array();
    let others = own.into_iter().flatten();
    let others = others.filter(|policy| policy["resourceName"] != "cpu");
    let policies = others.map(Yaml::from).chain([cpu]);
    let why = format!("Kubernetes 1.33 or later; start-cpu.yaml gives {start} CPU until ready");
    Some(yaml_entry("resizePolicy", yaml_list(policies)).because(&*why))
}

/// What files over a manifest or chart of others leave to be done.
pub(super) fn left_to_do(facts: &EmitFacts<'_>, place: &str) -> Option<String> {
    let start = facts.start_cpu?;
    Some(format!(
        "{start} CPU until ready: {place}; what gives it is start-cpu.yaml of `loadline emit RESULT --to DIR --for kubernetes`, with the labels of your pods"
    ))
}

/// Names and texts of two files, of which one is applied: both change the same pods.
pub(super) fn boosts(facts: &EmitFacts<'_>) -> Vec<(&'static str, String)> {
    let Some(start) = facts.start_cpu else {
        return Vec::new();
    };
    let file =
        |name, purpose, object: Yaml| (name, facts.commented(purpose) + &object.to_document());
    vec![
        file(
            "start-cpu.yaml",
            "For kube-startup-cpu-boost with REMOVE_LIMITS=false, on Kubernetes 1.33 or later; not with start-cpu-vpa.yaml.",
            startup_cpu_boost(facts, start),
        ),
        file(
            "start-cpu-vpa.yaml",
            "For VerticalPodAutoscaler 1.7 or later (CPUStartupBoost) on Kubernetes 1.33 or later; not with start-cpu.yaml.",
            vertical_pod_autoscaler(facts, start),
        ),
    ]
}

fn startup_cpu_boost(facts: &EmitFacts<'_>, start: Cpus) -> Yaml {
    let resources = yaml_map([
        yaml_entry("requests", start.to_string()),
        yaml_entry("limits", start.to_string()),
    ]);
    let ready = yaml_map([yaml_entry("type", "Ready"), yaml_entry("status", "True")]);
    let spec = [
        container_policy(facts, yaml_entry("fixedResources", resources)),
        yaml_entry("durationPolicy", [yaml_entry("podCondition", ready)]),
    ];
    yaml_map([
        yaml_entry("apiVersion", "autoscaling.x-k8s.io/v1alpha1"),
        yaml_entry("kind", "StartupCPUBoost"),
        metadata(&facts.slug),
        yaml_entry("selector", [yaml_entry("matchLabels", labels(&facts.slug))]),
        yaml_entry("spec", spec),
    ])
}

fn vertical_pod_autoscaler(facts: &EmitFacts<'_>, start: Cpus) -> Yaml {
    let cpu = [
        yaml_entry("type", "Quantity"),
        yaml_entry("quantity", start.to_string()),
    ];
    let boost = yaml_map([yaml_entry("cpu", cpu)]);
    let spec = [
        yaml_entry("targetRef", deployment_reference(&facts.slug)),
        yaml_entry("updatePolicy", [yaml_entry("updateMode", "Off")])
            .because("the size is measured: it only boosts"),
        container_policy(facts, yaml_entry("startupBoost", boost)),
    ];
    let kind = "VerticalPodAutoscaler";
    named_object("autoscaling.k8s.io/v1", kind, &facts.slug, spec)
}

fn container_policy(facts: &EmitFacts<'_>, policy: YamlEntry) -> YamlEntry {
    let name = yaml_entry("containerName", facts.slug.clone());
    let policies = yaml_list([yaml_map([name, policy])]);
    yaml_entry(
        "resourcePolicy",
        [yaml_entry("containerPolicies", policies)],
    )
}
