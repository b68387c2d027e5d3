//! More pods: a HorizontalPodAutoscaler on a rate, and a PodDisruptionBudget.
//!
//! Owns the target: a share of the largest rate at which one pod keeps the SLO. Never scales on CPU
//! or memory: a JVM gives no memory back, and its CPU use says little about its latency.

use super::Scaling;
use super::facts::Facts;
use super::kubernetes::{labels, metadata};
use super::yaml::{Yaml, entry, list, map};

/// Share of the largest rate that a pod is asked to carry, percent. What is left carries the growth
/// while a new pod starts.
const TARGET_PERCENT: u32 = 70;
/// The metric that an adapter must serve (custom.metrics.k8s.io).
const METRIC: &str = "http_requests_per_second";

/// The autoscaler: metric type Pods, average of the pods' rates.
pub fn autoscaler(facts: &Facts<'_>, scaling: Scaling) -> Yaml {
    let target = (scaling.max_rate * TARGET_PERCENT / 100).max(1);
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
                        entry("averageValue", target.to_string()).because(format!(
                            "{TARGET_PERCENT} % of {}/s, the largest rate one pod keeps the SLO at (given, --max-rate); the rest carries the growth while a pod starts: {}",
                            scaling.max_rate, facts.start.because
                        )),
                    ]),
                ),
            ]),
        ),
    ]);
    map([
        entry("apiVersion", "autoscaling/v2"),
        entry("kind", "HorizontalPodAutoscaler"),
        metadata(facts),
        entry(
            "spec",
            map([
                entry("scaleTargetRef", reference),
                entry("minReplicas", u64::from(facts.application.replicas)).because("as asked for"),
                entry("maxReplicas", u64::from(scaling.max_replicas)).because("as asked for"),
                entry("metrics", list([metric])),
            ]),
        ),
    ])
}

/// At most one pod away at a time.
pub fn disruption_budget(facts: &Facts<'_>) -> Yaml {
    map([
        entry("apiVersion", "policy/v1"),
        entry("kind", "PodDisruptionBudget"),
        metadata(facts),
        entry(
            "spec",
            map([
                entry("maxUnavailable", 1_u64).because("a drained node takes one pod at a time"),
                entry("selector", map([entry("matchLabels", labels(facts))])),
            ]),
        ),
    ])
}
