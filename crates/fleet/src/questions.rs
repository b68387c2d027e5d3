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

    fn select_series(&self, series: &str, matchers: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        if !matchers.is_empty() {
            all.push(matchers.to_owned());
        }
        if !self.namespaces.is_empty() {
            all.push(format!("namespace=~\"{}\"", self.namespaces.join("|")));
        }
        format!("{series}{{{}}}", all.join(","))
    }
}

fn is_length(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_positive = text[..text.len() - unit.len()]
        .parse::<u32>()
        .is_ok_and(|n| n > 0);
    is_positive && matches!(unit, "s" | "m" | "h" | "d" | "w")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FleetQuestion {
    Owner,
    ReplicaSetOwner,
    Running,
    Image,
    MemoryLimit,
    MemoryRequest,
    CpuLimit,
    CpuRequest,
    /// Largest working set, bytes.
    MemoryPeak,
    CpuMean,
    /// CPU in use in the busiest five minutes, cores.
    CpuPeak,
    /// Share of CFS periods in which it was throttled.
    Throttled,
    OomKills,
    OomKilled,
    Restarts,
    /// Largest heap in use, bytes, of a pod.
    HeapPeak,
    /// Heap that the JVM may use, bytes, of a pod.
    HeapMax,
    /// Share of the time in collections, of a pod.
    GcShare,
    /// Requests a second on average, by method, path and status, of a pod.
    Requests,
    /// Requests a second in the busiest five minutes, of a pod.
    RequestPeak,
    /// 99 % of the requests took at most so long, seconds, of a pod.
    P99,
}

pub const ALL: [FleetQuestion; 21] = [
    FleetQuestion::Owner,
    FleetQuestion::ReplicaSetOwner,
    FleetQuestion::Running,
    FleetQuestion::Image,
    FleetQuestion::MemoryLimit,
    FleetQuestion::MemoryRequest,
    FleetQuestion::CpuLimit,
    FleetQuestion::CpuRequest,
    FleetQuestion::MemoryPeak,
    FleetQuestion::CpuMean,
    FleetQuestion::CpuPeak,
    FleetQuestion::Throttled,
    FleetQuestion::OomKills,
    FleetQuestion::OomKilled,
    FleetQuestion::Restarts,
    FleetQuestion::HeapPeak,
    FleetQuestion::HeapMax,
    FleetQuestion::GcShare,
    FleetQuestion::Requests,
    FleetQuestion::RequestPeak,
    FleetQuestion::P99,
];

/// A container of a pod: the pause container has no name, or `POD` with dockershim.
const CONTAINER: &str = "container!=\"\",container!=\"POD\"";
const BY_CONTAINER: &str = "by (namespace, pod, container)";
const BY_POD: &str = "by (namespace, pod)";

/// What cAdvisor says of a cgroup without a memory limit is 0, or all that a counter holds.
const NO_LIMIT: &str = "1e15";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesSubject {
    Cluster,
    Container,
    /// A pod: series of an application seldom say in which container it runs.
    Pod,
}

impl FleetQuestion {
    pub fn series_subject(self) -> SeriesSubject {
        match self {
            Self::Owner | Self::ReplicaSetOwner | Self::Running => SeriesSubject::Cluster,
            Self::HeapPeak
            | Self::HeapMax
            | Self::GcShare
            | Self::Requests
            | Self::RequestPeak
            | Self::P99 => SeriesSubject::Pod,
            _ => SeriesSubject::Container,
        }
    }

    pub fn about_subject(subject: SeriesSubject) -> impl Iterator<Item = Self> {
        ALL.into_iter()
            .filter(move |q| q.series_subject() == subject)
    }

    pub fn to_promql(self, window: &QueryWindow) -> String {
        let length = &window.length;
        let step = &window.step;
        let container = |series: &str| window.select_series(series, CONTAINER);
        let plain = |series: &str| window.select_series(series, "");
        let resource = |what: &str, resource: &str| {
            let series = format!("kube_pod_container_resource_{what}");
            let matchers = format!("resource=\"{resource}\"");
            format!(
                "max {BY_CONTAINER} ({})",
                window.select_series(&series, &matchers)
            )
        };
        match self {
            Self::Owner => format!(
                "max by (namespace, pod, owner_kind, owner_name) (max_over_time({}[{length}]))",
                plain("kube_pod_owner")
            ),
            Self::ReplicaSetOwner => format!(
                "max by (namespace, replicaset, owner_kind, owner_name) (max_over_time({}[{length}]))",
                plain("kube_replicaset_owner")
            ),
            Self::Running => format!(
                "max {BY_CONTAINER} ({})",
                container("container_memory_working_set_bytes")
            ),
            Self::Image => format!(
                "max by (namespace, pod, container, image) ({})",
                plain("kube_pod_container_info")
            ),
            Self::MemoryLimit => format!(
                "{} or max {BY_CONTAINER} ({} > 0 < {NO_LIMIT})",
                resource("limits", "memory"),
                container("container_spec_memory_limit_bytes")
            ),
            Self::MemoryRequest => resource("requests", "memory"),
            Self::CpuLimit => format!(
                "{} or max {BY_CONTAINER} ({} > 0) / max {BY_CONTAINER} ({})",
                resource("limits", "cpu"),
                container("container_spec_cpu_quota"),
                container("container_spec_cpu_period")
            ),
            Self::CpuRequest => resource("requests", "cpu"),
            Self::MemoryPeak => format!(
                "max {BY_CONTAINER} (max_over_time({}[{length}]))",
                container("container_memory_working_set_bytes")
            ),
            Self::CpuMean => format!(
                "sum {BY_CONTAINER} (rate({}[{length}]))",
                container("container_cpu_usage_seconds_total")
            ),
            Self::CpuPeak => format!(
                "max_over_time((sum {BY_CONTAINER} (rate({}[5m])))[{length}:{step}])",
                container("container_cpu_usage_seconds_total")
            ),
            Self::Throttled => format!(
                "sum {BY_CONTAINER} (increase({}[{length}])) / sum {BY_CONTAINER} (increase({}[{length}]))",
                container("container_cpu_cfs_throttled_periods_total"),
                container("container_cpu_cfs_periods_total")
            ),
            Self::OomKills => format!(
                "sum {BY_CONTAINER} (increase({}[{length}]))",
                container("container_oom_events_total")
            ),
            Self::OomKilled => format!(
                "max {BY_CONTAINER} (max_over_time({}[{length}]))",
                window.select_series(
                    "kube_pod_container_status_last_terminated_reason",
                    "reason=\"OOMKilled\""
                )
            ),
            Self::Restarts => format!(
                "sum {BY_CONTAINER} (increase({}[{length}]))",
                plain("kube_pod_container_status_restarts_total")
            ),
            Self::HeapPeak => format!(
                "max_over_time((sum {BY_POD} ({}))[{length}:{step}])",
                window.select_series(
                    "",
                    "__name__=~\"jvm_memory_used_bytes|jvm_memory_bytes_used\",area=\"heap\""
                )
            ),
            // A pool without a maximum says -1.
            Self::HeapMax => format!(
                "sum {BY_POD} ({} > 0)",
                window.select_series(
                    "",
                    "__name__=~\"jvm_memory_max_bytes|jvm_memory_bytes_max\",area=\"heap\""
                )
            ),
            Self::GcShare => format!(
                "sum {BY_POD} (rate({}[{length}]))",
                window.select_series(
                    "",
                    "__name__=~\"jvm_gc_pause_seconds_sum|jvm_gc_collection_seconds_sum\""
                )
            ),
            Self::Requests => format!(
                "sum by (namespace, pod, method, uri, status) (rate({}[{length}])) or {}",
                plain("http_server_requests_seconds_count"),
                opentelemetry_query(&plain("http_server_request_duration_seconds_count"), length)
            ),
            Self::RequestPeak => format!(
                "max_over_time((sum {BY_POD} (rate({}[5m])))[{length}:{step}])",
                window.select_series("", &format!("__name__=~\"{COUNTS}\""))
            ),
            Self::P99 => format!(
                "histogram_quantile(0.99, sum by (namespace, pod, le) (rate({}[{length}])))",
                window.select_series("", &format!("__name__=~\"{BUCKETS}\""))
            ),
        }
    }
}

const COUNTS: &str =
    "http_server_requests_seconds_count|http_server_request_duration_seconds_count";
const BUCKETS: &str =
    "http_server_requests_seconds_bucket|http_server_request_duration_seconds_bucket";

/// OpenTelemetry's labels under Micrometer's names.
fn opentelemetry_query(series: &str, length: &str) -> String {
    let mut query = format!(
        "sum by (namespace, pod, http_request_method, http_route, http_response_status_code) (rate({series}[{length}]))"
    );
    for (from, to) in [
        ("http_request_method", "method"),
        ("http_route", "uri"),
        ("http_response_status_code", "status"),
    ] {
        query = format!("label_replace({query}, \"{to}\", \"$1\", \"{from}\", \"(.*)\")");
    }
    query
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
    for question in ALL {
        let samples = prometheus.query_instant(&question.to_promql(window))?;
        asked.0.insert(question, samples);
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
        for question in ALL {
            let promql = question.to_promql(&window);
            let braces = promql.matches('{').count();
            let named = promql.matches("namespace=~\"shop\"").count();
            assert_eq!(braces, named, "{promql}");
        }
    }
}
