//! What Prometheus is asked.
//!
//! Owns the queries: one instant query each, aggregated where the series are, so that an answer has a
//! line a container and not one a series. Names of series: cAdvisor (kubelet), kube-state-metrics,
//! Micrometer, the JMX exporter and OpenTelemetry's HTTP metrics; what a fleet lacks is empty.

use std::collections::BTreeMap;

use loadline_protocol::RunRefusal;

use crate::prometheus::{Prometheus, PrometheusSample};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryWindow {
    pub length: String,
    pub step: String,
    pub namespaces: Vec<String>,
}

impl QueryWindow {
    /// Checks the texts, which become part of queries. Errors: Names the flag with an invalid
    /// length of time or namespace.
    pub fn new(length: &str, step: &str, namespaces: &[String]) -> Result<Self, RunRefusal> {
        for (flag, text) in [("--window", length), ("--step", step)] {
            if !is_length(text) {
                return Err(RunRefusal::new(
                    format!("{flag} {text}"),
                    "it is not a length of time as Prometheus writes it",
                    "give 1h, 7d or 15m",
                ));
            }
        }
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        for name in namespaces {
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(RunRefusal::new(
                    format!("--namespace {name}"),
                    "a namespace has lower-case letters, digits and -",
                    "give one as `kubectl get namespaces` lists them",
                ));
            }
        }
        Ok(Self {
            length: length.to_owned(),
            step: step.to_owned(),
            namespaces: namespaces.to_vec(),
        })
    }
}

fn is_length(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_positive = text[..text.len() - unit.len()]
        .parse::<u32>()
        .is_ok_and(|n| n > 0);
    is_positive && matches!(unit, "s" | "m" | "h" | "d" | "w")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesSubject {
    Cluster,
    Container,
    /// A pod: series of an application seldom say in which container it runs.
    Pod,
}

macro_rules! fleet_questions {
    ($($(#[$doc:meta])* $name:ident of $subject:ident: $query:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FleetQuestion {
            $($(#[$doc])* $name,)*
        }

        impl FleetQuestion {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn series_subject(self) -> SeriesSubject {
                match self {
                    $(Self::$name => SeriesSubject::$subject,)*
                }
            }

            fn query_template(self) -> &'static str {
                match self {
                    $(Self::$name => $query,)*
                }
            }
        }
    };
}

// PromQL, where `$length` and `$step` are those of the window and `$container` is [`CONTAINER`]; the
// namespaces of the window are added to each selector. What cAdvisor says of a cgroup without a memory
// limit is 0, or all that a counter holds; a pool of a heap without a maximum says -1.
fleet_questions! {
    Owner of Cluster: "max by (namespace, pod, owner_kind, owner_name) (max_over_time(kube_pod_owner{}[$length]))";
    ReplicaSetOwner of Cluster: "max by (namespace, replicaset, owner_kind, owner_name) (max_over_time(kube_replicaset_owner{}[$length]))";
    Running of Cluster: "max by (namespace, pod, container) (container_memory_working_set_bytes{$container})";
    Image of Container: "max by (namespace, pod, container, image) (kube_pod_container_info{})";
    MemoryLimit of Container: "max by (namespace, pod, container) (kube_pod_container_resource_limits{resource=\"memory\"}) or max by (namespace, pod, container) (container_spec_memory_limit_bytes{$container} > 0 < 1e15)";
    MemoryRequest of Container: "max by (namespace, pod, container) (kube_pod_container_resource_requests{resource=\"memory\"})";
    CpuLimit of Container: "max by (namespace, pod, container) (kube_pod_container_resource_limits{resource=\"cpu\"}) or max by (namespace, pod, container) (container_spec_cpu_quota{$container} > 0) / max by (namespace, pod, container) (container_spec_cpu_period{$container})";
    CpuRequest of Container: "max by (namespace, pod, container) (kube_pod_container_resource_requests{resource=\"cpu\"})";
    /// Largest working set, bytes.
    MemoryPeak of Container: "max by (namespace, pod, container) (max_over_time(container_memory_working_set_bytes{$container}[$length]))";
    CpuMean of Container: "sum by (namespace, pod, container) (rate(container_cpu_usage_seconds_total{$container}[$length]))";
    /// CPU in use in the busiest five minutes, cores.
    CpuPeak of Container: "max_over_time((sum by (namespace, pod, container) (rate(container_cpu_usage_seconds_total{$container}[5m])))[$length:$step])";
    /// Share of CFS periods in which it was throttled.
    Throttled of Container: "sum by (namespace, pod, container) (increase(container_cpu_cfs_throttled_periods_total{$container}[$length])) / sum by (namespace, pod, container) (increase(container_cpu_cfs_periods_total{$container}[$length]))";
    OomKills of Container: "sum by (namespace, pod, container) (increase(container_oom_events_total{$container}[$length]))";
    OomKilled of Container: "max by (namespace, pod, container) (max_over_time(kube_pod_container_status_last_terminated_reason{reason=\"OOMKilled\"}[$length]))";
    Restarts of Container: "sum by (namespace, pod, container) (increase(kube_pod_container_status_restarts_total{}[$length]))";
    /// Largest heap in use, bytes, of a pod.
    HeapPeak of Pod: "max_over_time((sum by (namespace, pod) ({__name__=~\"jvm_memory_used_bytes|jvm_memory_bytes_used\",area=\"heap\"}))[$length:$step])";
    /// Heap that the JVM may use, bytes, of a pod.
    HeapMax of Pod: "sum by (namespace, pod) ({__name__=~\"jvm_memory_max_bytes|jvm_memory_bytes_max\",area=\"heap\"} > 0)";
    /// Share of the time in collections, of a pod.
    GcShare of Pod: "sum by (namespace, pod) (rate({__name__=~\"jvm_gc_pause_seconds_sum|jvm_gc_collection_seconds_sum\"}[$length]))";
    /// Requests a second on average, by method, path and status, of a pod; OpenTelemetry's labels get
    /// Micrometer's names.
    Requests of Pod: "sum by (namespace, pod, method, uri, status) (rate(http_server_requests_seconds_count{}[$length])) or label_replace(label_replace(label_replace(sum by (namespace, pod, http_request_method, http_route, http_response_status_code) (rate(http_server_request_duration_seconds_count{}[$length])), \"method\", \"$1\", \"http_request_method\", \"(.*)\"), \"uri\", \"$1\", \"http_route\", \"(.*)\"), \"status\", \"$1\", \"http_response_status_code\", \"(.*)\")";
    /// Requests a second in the busiest five minutes, of a pod.
    RequestPeak of Pod: "max_over_time((sum by (namespace, pod) (rate({__name__=~\"http_server_requests_seconds_count|http_server_request_duration_seconds_count\"}[5m])))[$length:$step])";
    /// 99 % of the requests took at most so long, seconds, of a pod.
    P99 of Pod: "histogram_quantile(0.99, sum by (namespace, pod, le) (rate({__name__=~\"http_server_requests_seconds_bucket|http_server_request_duration_seconds_bucket\"}[$length])))";
}

/// A container of a pod: the pause container has no name, or `POD` with dockershim.
const CONTAINER: &str = "container!=\"\",container!=\"POD\"";

impl FleetQuestion {
    pub fn about_subject(subject: SeriesSubject) -> impl Iterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |question| question.series_subject() == subject)
    }

    pub fn to_promql(self, window: &QueryWindow) -> String {
        let query = self.query_template().replace("$container", CONTAINER);
        let query = query.replace("$length", &window.length);
        let query = query.replace("$step", &window.step);
        if window.namespaces.is_empty() {
            return query;
        }
        let matcher = format!(",namespace=~\"{}\"}}", window.namespaces.join("|"));
        query.replace('}', &matcher).replace("{,", "{")
    }
}

#[derive(Debug, Default)]
pub struct FleetAnswers(BTreeMap<FleetQuestion, Vec<PrometheusSample>>);

impl FleetAnswers {
    pub fn series_for(&self, question: FleetQuestion) -> &[PrometheusSample] {
        self.0.get(&question).map_or(&[], Vec::as_slice)
    }
}

pub fn ask_everything(
    prometheus: &Prometheus,
    window: &QueryWindow,
) -> Result<FleetAnswers, RunRefusal> {
    let mut asked = FleetAnswers::default();
    for question in FleetQuestion::ALL {
        let samples = prometheus.query_instant(&question.to_promql(window))?;
        asked.0.insert(*question, samples);
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(length: &str, namespace: &str) -> String {
        let refusal =
            QueryWindow::new(length, "15m", &[namespace.to_owned()]).expect_err("refused");
        format!("{refusal}; {}", refusal.hint)
    }

    #[test]
    fn what_becomes_a_part_of_a_query_is_checked() {
        insta::assert_snapshot!(refused("7d]) or vector(1", "shop"), @"--window 7d]) or vector(1: it is not a length of time as Prometheus writes it; give 1h, 7d or 15m");
        insta::assert_snapshot!(refused("0d", "shop"), @"--window 0d: it is not a length of time as Prometheus writes it; give 1h, 7d or 15m");
        insta::assert_snapshot!(refused("7d", "a\"}"), @r#"--namespace a"}: a namespace has lower-case letters, digits and -; give one as `kubectl get namespaces` lists them"#);
    }

    #[test]
    fn a_namespace_is_in_every_query() {
        let window = QueryWindow::new("7d", "15m", &["shop".to_owned()]).expect("a window");
        for question in FleetQuestion::ALL {
            let promql = question.to_promql(&window);
            let braces = promql.matches('{').count();
            let named = promql.matches("namespace=~\"shop\"").count();
            assert_eq!(braces, named, "{promql}");
        }
    }
}
