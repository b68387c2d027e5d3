//! More pods: a HorizontalPodAutoscaler or a ScaledObject of KEDA on a rate, of a consumer on its
//! metrics, a PodDisruptionBudget, and how pods are replaced and spread.
//!
//! Owns the target: of the largest rate at which one pod was seen to keep the SLO, what leaves room for
//! load that grows until a new pod helps, and never less than each pod of the answer carries. Never scales on CPU or memory: a JVM gives no memory
//! back, and its CPU use says little about its latency.

use std::time::Duration;

use loadline_analysis::record::TrialRecord;
use loadline_analysis::slo::{Objective, RequestObjective, Slo};

use super::application::{AutoscalerNeeds, ProductionApplication};
use super::facts::EmitFacts;
use super::names::{deployment_reference, labels, named_object, pod_pattern, slug};
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use crate::format;

/// How fast load may double without a miss while a new pod starts. A choice: nothing measures it.
const DOUBLING: Duration = Duration::from_secs(300);
/// Until the autoscaler asks for a pod: 15 s for its own loop (--horizontal-pod-autoscaler-sync-period)
/// and 15 s between two readings of the metric.
const REACTION: Duration = Duration::from_secs(30);
/// The autoscaler ignores a smaller distance from its target (--horizontal-pod-autoscaler-tolerance).
const TOLERANCE: f64 = 0.1;
/// The metric that an adapter must serve (custom.metrics.k8s.io).
const METRIC: &str = "http_requests_per_second";
/// What Micrometer and OpenTelemetry count.
const RATE_SERIES: &str =
    "http_server_requests_seconds_count|http_server_request_duration_seconds_count";

/// `None` for a consumer: its metrics need KEDA.
pub fn autoscaler(facts: &EmitFacts<'_>, scaling: AutoscalerNeeds) -> Option<Yaml> {
    let (target, why) = target(facts, scaling)?;
    let reference = deployment_reference(&facts.slug);
    let compared = [
        yaml_entry("type", "AverageValue"),
        yaml_entry("averageValue", quantity(target)).because(why),
    ];
    let pods = [
        yaml_entry("metric", [yaml_entry("name", METRIC)])
            .because("an adapter must serve it, such as prometheus-adapter"),
        yaml_entry("target", compared),
    ];
    let metric = yaml_map([yaml_entry("type", "Pods"), yaml_entry("pods", pods)]);
    let replicas = u64::from(facts.application.replicas);
    let spec = [
        yaml_entry("scaleTargetRef", reference),
        yaml_entry("minReplicas", replicas).because(&*facts.replicas),
        yaml_entry("maxReplicas", u64::from(scaling.max_replicas)).because("as asked for"),
        yaml_entry("metrics", yaml_list([metric])),
    ];
    let kind = "HorizontalPodAutoscaler";
    Some(named_object("autoscaling/v2", kind, &facts.slug, spec))
}

/// The same target for KEDA, which makes its own autoscaler.
pub fn scaled_object(facts: &EmitFacts<'_>, scaling: AutoscalerNeeds) -> String {
    let (triggers, most): (Vec<Yaml>, _) = match target(facts, scaling) {
        Some((target, because)) => {
            let pods = pod_pattern(&facts.slug);
            let requests = MetricTrigger {
                query: format!("sum(rate({{__name__=~\"{RATE_SERIES}\", pod=~\"{pods}\"}}[1m]))"),
                shows: "requests a second of all pods, as Micrometer or OpenTelemetry counts them",
                threshold: target,
                because,
            };
            (vec![trigger(&requests)], "as asked for")
        }
        None => (
            facts.triggers.iter().map(trigger).collect(),
            "as asked for; a consumer of Kafka beyond the number of partitions stays idle",
        ),
    };
    let replicas = u64::from(facts.application.replicas);
    let spec = [
        yaml_entry("scaleTargetRef", [yaml_entry("name", facts.slug.clone())]),
        yaml_entry("minReplicaCount", replicas).because(&*facts.replicas),
        yaml_entry("maxReplicaCount", u64::from(scaling.max_replicas)).because(most),
        yaml_entry("triggers", yaml_list(triggers)),
    ];
    let document = named_object("keda.sh/v1alpha1", "ScaledObject", &facts.slug, spec);
    facts.commented("For KEDA, in the place of a HorizontalPodAutoscaler: two would fight.")
        + &document.to_document()
}

fn trigger(of: &MetricTrigger) -> Yaml {
    let threshold = ((of.threshold * 1000.0).ceil() / 1000.0).to_string();
    let server = "http://prometheus-operated.monitoring.svc:9090";
    let metadata = [
        yaml_entry("serverAddress", server).because("where your Prometheus is"),
        yaml_entry("query", of.query.clone()).because(of.shows),
        yaml_entry("threshold", threshold).because(&*of.because),
    ];
    yaml_map([
        yaml_entry("type", "prometheus"),
        yaml_entry("metricType", "AverageValue"),
        yaml_entry("metadata", metadata),
    ])
}

/// A figure of all pods, and one pod's share, which KEDA compares.
pub struct MetricTrigger {
    query: String,
    shows: &'static str,
    threshold: f64,
    because: String,
}

/// Of a consumer: each metric with an upper bound, a lag, and each counter with a lower one.
pub fn metric_triggers(
    slo: &Slo,
    application: &ProductionApplication,
    trials: &[&TrialRecord],
    start: Duration,
) -> Vec<MetricTrigger> {
    let share = share_until_help(start);
    let pods = pod_pattern(&slug(&application.name));
    let part = format::as_percent(share);
    let one = |of: &RequestObjective| {
        let Objective::Metric(objective) = of.objective else {
            return None;
        };
        let series = application.series.get(&of.request)?.of_pods(&pods);
        if objective.is_ceiling() {
            return Some(MetricTrigger {
                query: format!("sum({series})"),
                shows: "of all pods",
                threshold: objective.bound * share,
                because: format!(
                    "{part} of the bound that one pod kept, {of}: until another helps"
                ),
            });
        }
        let kept = trials.iter().filter_map(|trial| {
            let mut metrics = trial.evidence.metrics.iter();
            let metric = metrics.find(|metric| metric.name == of.request)?;
            objective.value(&metric.values, &[])
        });
        let least = kept.reduce(f64::min);
        let least = least.filter(|_| objective.is_rate_floor())?;
        Some(MetricTrigger {
            query: format!("sum(rate({series}[1m]))"),
            shows: "a second, of all pods",
            threshold: least * share,
            because: format!(
                "{part} of the {} that one pod worked off at least: until another helps",
                format::as_rate(least)
            ),
        })
    };
    slo.by_request.iter().filter_map(one).collect()
}

/// The rate of one pod at which another is asked for; `None` for a consumer.
fn target(facts: &EmitFacts<'_>, scaling: AutoscalerNeeds) -> Option<(f64, String)> {
    let share = share_until_help(facts.slowest_start.value);
    let max_rate = scaling.max_rate?;
    let rate = (f64::from(max_rate) * share).floor().max(1.0);
    let highest = if scaling.is_measured {
        "the highest rate that was tried with one pod and kept the SLO"
    } else {
        "what one pod can carry (given, --max-rate)"
    };
    let chosen = facts.deployment.filter(|_| scaling.is_measured);
    let each = chosen.map(|d| (d, d.rate / f64::from(d.chosen.replicas.max(1))));
    Some(match each {
        // Less would ask for more pods than the answer has, at the very rate of the answer.
        Some((deployment, each)) if each > rate => (
            each,
            format!(
                "{} over {}, the deployment that was found: its room to grow (headroom {}, spare {}) is in it; {} of {}/s, {highest}, would ask for more pods at that rate",
                format::as_rate(deployment.rate),
                format::count_of(deployment.chosen.replicas as usize, "pod"),
                format::as_percent(deployment.headroom),
                deployment.spare,
                format::as_percent(share),
                max_rate,
            ),
        ),
        _ => (
            rate,
            format!(
                "{} of {}/s, {highest}: load that doubles in {} min is carried until a new pod helps, {} s for metric and autoscaler and then {}",
                format::as_percent(share),
                max_rate,
                DOUBLING.as_secs() / 60,
                REACTION.as_secs(),
                facts.slowest_start.because
            ),
        ),
    })
}

/// The share of the largest rate at which another pod must be asked for.
fn share_until_help(start: Duration) -> f64 {
    let wait = (REACTION + start).as_secs_f64() / DOUBLING.as_secs_f64();
    wait.exp2().recip() / (1.0 + TOLERANCE)
}

fn quantity(rate: f64) -> String {
    let thousandths = (rate * 1000.0 - 1e-6).ceil().max(1.0) as u64;
    match thousandths % 1000 {
        0 => (thousandths / 1000).to_string(),
        _ => format!("{thousandths}m"),
    }
}

pub fn strategy() -> Yaml {
    let kept = yaml_entry("maxUnavailable", 0_u64)
        .because("no pod goes before a new one is ready: fewer would have to carry the rate");
    yaml_map([
        yaml_entry("type", "RollingUpdate"),
        yaml_entry("rollingUpdate", [kept]),
    ])
}

/// One pod a node, as far as there are nodes.
pub fn spread(facts: &EmitFacts<'_>) -> YamlEntry {
    let selector = [yaml_entry("matchLabels", labels(&facts.slug))];
    let constraint = yaml_map([
        yaml_entry("maxSkew", 1_u64),
        yaml_entry("topologyKey", "kubernetes.io/hostname"),
        yaml_entry("whenUnsatisfiable", "ScheduleAnyway"),
        yaml_entry("labelSelector", selector),
    ]);
    yaml_entry("topologySpreadConstraints", yaml_list([constraint]))
        .because("a node that is lost takes as few pods as possible")
}

fn without_one(facts: &EmitFacts<'_>) -> String {
    let left = facts.application.replicas.saturating_sub(1);
    let Some(deployment) = facts.deployment else {
        return "whether the others carry the load meanwhile was not measured".to_owned();
    };
    let (rate, headroom) = (&deployment.rate, &deployment.headroom);
    let each = &deployment.each;
    let carried = each * f64::from(left) * (1.0 + 1e-9);
    let rate_in_words = format::as_rate(*rate);
    if carried >= *rate && *headroom <= 0.0 {
        format!("the others carry the {rate_in_words} meanwhile")
    } else if carried >= rate * (1.0 + headroom) {
        let headroom = format::as_percent(*headroom);
        format!("the others carry the {rate_in_words} with its headroom ({headroom}) meanwhile")
    } else if carried >= *rate {
        format!("the others carry the {rate_in_words} meanwhile, with less than its headroom")
    } else {
        format!(
            "the others then get more than the {} each that was measured; `size --spare 1` finds a deployment that can lose one",
            format::as_rate(*each)
        )
    }
}

pub fn disruption_budget(facts: &EmitFacts<'_>) -> Yaml {
    let why = without_one(facts);
    let why = format!("a drained node takes one pod at a time; {why}");
    let spec = [
        yaml_entry("maxUnavailable", 1_u64).because(why),
        yaml_entry("selector", [yaml_entry("matchLabels", labels(&facts.slug))]),
    ];
    named_object("policy/v1", "PodDisruptionBudget", &facts.slug, spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_leaves_more_room() {
        let share = |seconds| share_until_help(Duration::from_secs(seconds));
        assert!((share(0) - 0.848).abs() < 1e-3, "{}", share(0));
        assert!((share(270) - 0.4545).abs() < 1e-3, "{}", share(270));
    }

    #[test]
    fn a_rate_is_a_quantity_and_never_less() {
        assert_eq!(quantity(50.0), "50");
        assert_eq!(quantity(100.0 / 3.0), "33334m");
        assert_eq!(quantity(0.0), "1m");
    }
}
