//! More pods: a HorizontalPodAutoscaler on a rate, a PodDisruptionBudget, and how pods are replaced
//! and spread.
//!
//! Owns the target: a share of the largest rate at which one pod was seen to keep the SLO, and never
//! less than each pod of the answer carries. Never scales on CPU or memory: a JVM gives no memory
//! back, and its CPU use says little about its latency.

use loadline_analysis::deployment::Deployment;

use super::application::Scaling;
use super::facts::Facts;
use super::names::{labels, metadata};
use super::yaml::{Entry, Yaml, entry, list, map};
use crate::format;

/// Share of the largest rate that a pod is asked to carry, percent. What is left carries the growth
/// while a new pod starts.
const TARGET_PERCENT: u32 = 70;
/// The metric that an adapter must serve (custom.metrics.k8s.io).
const METRIC: &str = "http_requests_per_second";

/// The autoscaler: metric type Pods, average of the pods' rates.
pub fn autoscaler(facts: &Facts<'_>, scaling: Scaling) -> Yaml {
    let (target, why) = target(facts, scaling);
    let reference = map([
        entry("apiVersion", "apps/v1"),
        entry("kind", "Deployment"),
        entry("name", facts.slug.clone()),
    ]);
    let metric = map([
        entry("type", "Pods"),
        entry(
            "pods",
            map([
                entry("metric", map([entry("name", METRIC)]))
                    .because("an adapter must serve it, such as prometheus-adapter"),
                entry(
                    "target",
                    map([
                        entry("type", "AverageValue"),
                        entry("averageValue", target).because(why),
                    ]),
                ),
            ]),
        ),
    ]);
    map([
        entry("apiVersion", "autoscaling/v2"),
        entry("kind", "HorizontalPodAutoscaler"),
        metadata(&facts.slug),
        entry(
            "spec",
            map([
                entry("scaleTargetRef", reference),
                entry("minReplicas", u64::from(facts.application.replicas))
                    .because(&*facts.replicas),
                entry("maxReplicas", u64::from(scaling.max_replicas)).because("as asked for"),
                entry("metrics", list([metric])),
            ]),
        ),
    ])
}

/// Requests a second that a pod is asked to carry, and why.
fn target(facts: &Facts<'_>, scaling: Scaling) -> (String, String) {
    let share = (scaling.max_rate * TARGET_PERCENT / 100).max(1);
    let highest = if scaling.is_measured {
        "the highest rate that was tried with one pod and kept the SLO"
    } else {
        "what one pod can carry (given, --max-rate)"
    };
    let chosen = facts.deployment.filter(|_| scaling.is_measured);
    let each = chosen.map(|d| (d, d.rate / f64::from(d.chosen.replicas.max(1))));
    match each {
        // Less would ask for more pods than the answer has, at the very rate of the answer.
        Some((deployment, each)) if each > f64::from(share) => (
            quantity(each),
            format!(
                "{} over {}, the deployment that was found: its room to grow (headroom {}, spare {}) is in it; {TARGET_PERCENT} % of {}/s, {highest}, would ask for more pods at that rate",
                format::rate(deployment.rate),
                format::count(deployment.chosen.replicas as usize, "pod"),
                format::percent(deployment.headroom),
                deployment.spare,
                scaling.max_rate,
            ),
        ),
        _ => (
            share.to_string(),
            format!(
                "{TARGET_PERCENT} % of {}/s, {highest}; the rest carries the growth while a pod starts: {}",
                scaling.max_rate, facts.probes.because
            ),
        ),
    }
}

/// A rate as a quantity of Kubernetes; thousandths are rounded up.
fn quantity(rate: f64) -> String {
    let thousandths = (rate * 1000.0 - 1e-6).ceil().max(1.0) as u64;
    match thousandths % 1000 {
        0 => (thousandths / 1000).to_string(),
        _ => format!("{thousandths}m"),
    }
}

/// How a new version replaces the pods.
pub fn strategy() -> Yaml {
    map([
        entry("type", "RollingUpdate"),
        entry(
            "rollingUpdate",
            map([entry("maxUnavailable", 0_u64).because(
                "no pod goes before a new one is ready: fewer would have to carry the rate",
            )]),
        ),
    ])
}

/// One pod a node, as far as there are nodes.
pub fn spread(facts: &Facts<'_>) -> Entry {
    let constraint = map([
        entry("maxSkew", 1_u64),
        entry("topologyKey", "kubernetes.io/hostname"),
        entry("whenUnsatisfiable", "ScheduleAnyway"),
        entry(
            "labelSelector",
            map([entry("matchLabels", labels(&facts.slug))]),
        ),
    ]);
    entry("topologySpreadConstraints", list([constraint]))
        .because("a node that is lost takes as few pods as possible")
}

/// Whether the other pods carry the rate while one is away, in words.
fn without_one(facts: &Facts<'_>) -> String {
    let left = facts.application.replicas.saturating_sub(1);
    let Some(Deployment {
        rate,
        headroom,
        each,
        ..
    }) = facts.deployment
    else {
        return "whether the others carry the load meanwhile was not measured".to_owned();
    };
    let carried = each * f64::from(left) * (1.0 + 1e-9);
    let rate_in_words = format::rate(*rate);
    if carried >= *rate && *headroom <= 0.0 {
        format!("the others carry the {rate_in_words} meanwhile")
    } else if carried >= rate * (1.0 + headroom) {
        let headroom = format::percent(*headroom);
        format!("the others carry the {rate_in_words} with its headroom ({headroom}) meanwhile")
    } else if carried >= *rate {
        format!("the others carry the {rate_in_words} meanwhile, with less than its headroom")
    } else {
        format!(
            "the others then get more than the {} each that was measured; `size --spare 1` finds a deployment that can lose one",
            format::rate(*each)
        )
    }
}

/// At most one pod away at a time.
pub fn disruption_budget(facts: &Facts<'_>) -> Yaml {
    map([
        entry("apiVersion", "policy/v1"),
        entry("kind", "PodDisruptionBudget"),
        metadata(&facts.slug),
        entry(
            "spec",
            map([
                entry("maxUnavailable", 1_u64).because(format!(
                    "a drained node takes one pod at a time; {}",
                    without_one(facts)
                )),
                entry("selector", map([entry("matchLabels", labels(&facts.slug))])),
            ]),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_quantity_and_never_less() {
        assert_eq!(quantity(50.0), "50");
        assert_eq!(quantity(100.0 / 3.0), "33334m");
        assert_eq!(quantity(0.0), "1m");
    }
}
