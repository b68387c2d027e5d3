//! What the kubelet does with a container's pod: its QoS class, and probes that give up.
//!
//! Owns their rules. Facts: Kubernetes documentation on QoS classes and probes.

use super::container::{ContainerNeeds, ContainerProbe, LintedContainer};
use super::{LintFinding, MeasuredNeeds, Severity, finding};

pub fn qos_class(container: &LintedContainer) -> &'static str {
    let all = all_needs(container);
    if all.iter().all(|needs| *needs == ContainerNeeds::default()) {
        "BestEffort"
    } else if all.iter().all(is_guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn all_needs(container: &LintedContainer) -> Vec<ContainerNeeds> {
    let pod = &container.pod;
    match pod.own {
        Some(own) => vec![own],
        None => {
            let others = pod.running.iter().chain(&pod.starting).copied();
            others.chain([container.own_needs()]).collect()
        }
    }
}

/// Whether it has all memory for itself, and a CPU request without a limit: a size of its own
/// (`--cpu-policy request`), which a limit would change.
fn is_sized_by_request(needs: &ContainerNeeds) -> bool {
    let mut limited = *needs;
    limited.limits.cpu = needs.requests.cpu;
    needs.limits.cpu.is_none() && is_guaranteed(&limited)
}

/// Whether requests equal limits; a missing request is the limit.
fn is_guaranteed(needs: &ContainerNeeds) -> bool {
    let ContainerNeeds { requests, limits } = needs;
    limits.cpu.is_some()
        && limits.memory.is_some()
        && requests.cpu.or(limits.cpu) == limits.cpu
        && requests.memory.or(limits.memory) == limits.memory
}

pub(super) fn check_qos(container: &LintedContainer) -> Option<LintFinding> {
    // Said once a pod, of the containers that stay.
    let is_refused = |found: &LintFinding| found.severity == Severity::Error;
    let is_wrong = !container.unreadable.is_empty() || container.malformed.iter().any(is_refused);
    if container.is_init || is_wrong {
        return None;
    }
    let is_meant = |needs: &ContainerNeeds| is_guaranteed(needs) || is_sized_by_request(needs);
    let (severity, problem, hint) = match qos_class(container) {
        "BestEffort" => (
            Severity::Error,
            "QoS class BestEffort: the pod has no requests and no limits",
            "it is the first to be killed on a full node; set requests and limits",
        ),
        "Burstable" if !all_needs(container).iter().all(is_meant) => (
            Severity::Note,
            "QoS class Burstable",
            "give every container of the pod requests equal to its limits: then the pod is Guaranteed and gets the measured resources",
        ),
        _ => return None,
    };
    Some(finding(severity, problem.to_owned(), hint))
}

pub(super) fn check_probes(
    container: &LintedContainer,
    measured: MeasuredNeeds,
) -> Vec<LintFinding> {
    let Some(start) = measured.start else {
        return Vec::new();
    };
    let has_startup = container.probes.iter().any(|p| p.kind == "startupProbe");
    let kills = |probe: &&ContainerProbe| match probe.kind.as_str() {
        "startupProbe" => true,
        // It waits for the startup probe, if there is one.
        "livenessProbe" => !has_startup,
        _ => false,
    };
    let given_up = |probe: &ContainerProbe| {
        let problem = format!(
            "the {} gives up after {:.0} s, but a start took {:.1} s when it was measured",
            probe.kind,
            probe.patience().as_secs_f64(),
            start.as_secs_f64()
        );
        let hint = "it is restarted for ever; raise failureThreshold, or add a startupProbe";
        (probe.patience() < start).then(|| finding(Severity::Error, problem, hint))
    };
    let killing = container.probes.iter().filter(kills);
    killing.filter_map(given_up).collect()
}
