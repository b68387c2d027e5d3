//! Prometheus's figures of each workload.
//!
//! Owns the way from pods to their owners, and the figures of a workload. Pods that ended within
//! the window count for peaks and kills, running ones for replicas.

use std::collections::{BTreeMap, BTreeSet};

use loadline_analysis::wire;
use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::prometheus::{PrometheusSample, SeriesLabels};
use crate::questions::{FleetAnswers, FleetQuestion, SeriesSubject};

/// Owners with pods that end or belong to a node: they have no size to choose.
const NO_SERVICE: [&str; 2] = ["Job", "Node"];

/// Letters and digits of the hash in a pod's name (k8s.io/apimachinery/pkg/util/rand).
const HASH: &str = "bcdfghjklmnpqrstvwxz2456789";

const OWN_PATHS: [&str; 5] = ["/actuator", "/metrics", "/health", "/q/", "/livez"];

/// Which container of which workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct FleetContainerKey {
    /// Namespace.
    pub namespace: String,
    /// `Deployment`, `StatefulSet`, ...
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Container.
    pub container: String,
}

impl FleetContainerKey {
    pub fn is_meant_by(&self, text: &str) -> bool {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            [namespace, name] => namespace == self.namespace && name == self.name,
            [namespace, name, container] => {
                namespace == self.namespace && name == self.name && container == self.container
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for FleetContainerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)?;
        if self.container == self.name {
            Ok(())
        } else {
            write!(f, "/{}", self.container)
        }
    }
}

/// CPU and memory of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct InstanceResources {
    /// CPUs.
    #[serde(rename = "cpu_millicpus", with = "wire::cpus_opt")]
    pub cpu: Option<Cpus>,
    /// Memory.
    #[serde(rename = "memory_bytes", with = "wire::bytes_opt")]
    pub memory: Option<Bytes>,
}

/// What its JVM says of itself, the largest of its pods.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct JvmFigures {
    /// Largest heap in use.
    #[serde(rename = "heap_peak_bytes", with = "wire::bytes_opt")]
    pub heap_peak: Option<Bytes>,
    /// Heap that it may use.
    #[serde(rename = "heap_max_bytes", with = "wire::bytes_opt")]
    pub heap_max: Option<Bytes>,
    /// Share of the time that stood still for collections, 0 to 1.
    pub gc_share: Option<f64>,
}

/// Requests of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RequestKind {
    /// HTTP method.
    pub method: String,
    /// Path as its framework names it: `/owners/{ownerId}`.
    pub path: String,
    /// Share of all requests, 0 to 1.
    pub share: f64,
}

/// Requests that came in.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Traffic {
    /// Requests a second to all instances, on average.
    pub mean_per_second: f64,
    /// Requests a second to one instance in its busiest five minutes.
    pub peak_per_second: Option<f64>,
    /// Share with a status of 500 and more, 0 to 1.
    pub errors: f64,
    /// 99 % of the requests to the slowest instance took at most so long, by its histogram.
    pub p99_seconds: Option<f64>,
    /// By method and path, the most frequent first.
    pub mix: Vec<RequestKind>,
}

/// A container of a workload over the window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FleetWorkload {
    /// Which.
    pub name: FleetContainerKey,
    /// Its image.
    pub image: Option<String>,
    /// Instances that run now.
    pub replicas: u32,
    /// What each requests.
    pub request: InstanceResources,
    /// What each may use.
    pub limit: InstanceResources,
    /// The most that one used: CPUs in its busiest five minutes, memory of its working set.
    pub peak: InstanceResources,
    /// CPUs in use by all instances, on average.
    pub cpu_mean: Option<f64>,
    /// Share of CFS periods in which it was throttled, of the worst instance, 0 to 1.
    pub throttled: Option<f64>,
    /// Kills for memory, at least.
    pub oom_kills: u32,
    /// Restarts.
    pub restarts: u32,
    /// What its JVM says; `None` where no series of a JVM has its pods.
    pub jvm: Option<JvmFigures>,
    /// Its traffic; `None` if no series has it.
    pub traffic: Option<Traffic>,
    /// What its manifest has wrong; empty also where it was not asked for.
    pub objections: Vec<Objection>,
}

/// Something that is wrong in a manifest, whatever is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Objection {
    /// The problem, with the numbers.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredWorkload {
    pub name: FleetContainerKey,
    pub request: InstanceResources,
    pub limit: InstanceResources,
    pub is_jvm: bool,
    pub objections: Vec<Objection>,
}

#[derive(Debug, Default)]
pub struct FleetView {
    pub workloads: Vec<FleetWorkload>,
    pub left_out: usize,
    /// Requests a second in series without a pod name.
    pub unattributed: f64,
}

type Pod<'a> = (&'a str, &'a str);

impl FleetView {
    /// Adds the cluster's data of each workload: requests and limits that Prometheus lacks, and
    /// problems in the manifest of a JVM. Returns how many workloads Prometheus does not know.
    pub fn add_declared(&mut self, declared: Vec<DeclaredWorkload>) -> usize {
        let key = |name: &FleetContainerKey| {
            let FleetContainerKey {
                namespace,
                name,
                container,
                ..
            } = name.clone();
            (namespace, name, container)
        };
        let mut by_name: BTreeMap<_, DeclaredWorkload> = declared
            .into_iter()
            .map(|declared| (key(&declared.name), declared))
            .collect();
        for workload in &mut self.workloads {
            let Some(declared) = by_name.remove(&key(&workload.name)) else {
                continue;
            };
            workload.request = workload.request.or(declared.request);
            workload.limit = workload.limit.or(declared.limit);
            if workload.jvm.is_some() || declared.is_jvm {
                workload.objections = declared.objections;
            }
        }
        by_name.len()
    }
}

impl InstanceResources {
    fn or(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
        }
    }
}

impl FleetAnswers {
    pub fn to_fleet(&self) -> FleetView {
        let owners = PodOwners::new(self);
        let mut builders: BTreeMap<FleetContainerKey, WorkloadBuilder<'_>> = BTreeMap::new();
        let mut left_out = BTreeSet::new();
        for sample in self.series_for(FleetQuestion::Running) {
            let labels = &sample.metric;
            match owners.workload_name(labels) {
                Some(name) => builders.entry(name).or_default().replicas += 1,
                None => {
                    left_out.insert((&labels.namespace, &labels.pod));
                }
            }
        }
        self.read_containers(&owners, &mut builders);
        self.read_pods(&owners, &mut builders);
        let asked = self.series_for(FleetQuestion::Requests).iter();
        let unattributed = asked.filter(|s| s.metric.pod.is_empty());
        FleetView {
            unattributed: unattributed
                .filter_map(PrometheusSample::finite_value)
                .sum(),
            left_out: left_out.len(),
            workloads: builders
                .into_iter()
                .map(|(name, builder)| builder.build(name))
                .collect(),
        }
    }

    fn read_containers<'a>(
        &'a self,
        owners: &PodOwners<'a>,
        builders: &mut BTreeMap<FleetContainerKey, WorkloadBuilder<'a>>,
    ) {
        for question in FleetQuestion::about_subject(SeriesSubject::Container) {
            for sample in self.series_for(question) {
                let name = owners.workload_name(&sample.metric);
                let builder = name.and_then(|name| builders.get_mut(&name));
                if let (Some(builder), Some(value)) = (builder, sample.finite_value()) {
                    builder.take_value(question, value, &sample.metric);
                }
            }
        }
    }

    /// The figures of each pod, assigned to its container with most memory, because series of an
    /// application seldom name the container.
    fn read_pods<'a>(
        &'a self,
        owners: &PodOwners<'a>,
        builders: &mut BTreeMap<FleetContainerKey, WorkloadBuilder<'a>>,
    ) {
        let mut largest: BTreeMap<Pod<'_>, (f64, &SeriesLabels)> = BTreeMap::new();
        for sample in self.series_for(FleetQuestion::MemoryPeak) {
            let labels = &sample.metric;
            let value = sample.finite_value().unwrap_or(0.0);
            let held = largest
                .entry((&labels.namespace, &labels.pod))
                .or_insert((value, labels));
            if value > held.0 {
                *held = (value, labels);
            }
        }
        for question in FleetQuestion::about_subject(SeriesSubject::Pod) {
            for sample in self.series_for(question) {
                let labels = &sample.metric;
                let pod: Pod<'_> = (&labels.namespace, &labels.pod);
                let name = largest
                    .get(&pod)
                    .and_then(|(_, labels)| owners.workload_name(labels));
                let builder = name.and_then(|name| builders.get_mut(&name));
                if let (Some(builder), Some(value)) = (builder, sample.finite_value()) {
                    builder.take_value(question, value, labels);
                }
            }
        }
    }
}

struct PodOwners<'a> {
    pods: BTreeMap<Pod<'a>, (&'a str, &'a str)>,
    replica_sets: BTreeMap<Pod<'a>, (&'a str, &'a str)>,
}

impl<'a> PodOwners<'a> {
    fn new(asked: &'a FleetAnswers) -> Self {
        let of = |question, key: fn(&SeriesLabels) -> Pod<'_>| {
            let samples = asked.series_for(question).iter();
            samples
                .map(|s| {
                    (
                        key(&s.metric),
                        (&*s.metric.owner_kind, &*s.metric.owner_name),
                    )
                })
                .collect()
        };
        Self {
            pods: of(FleetQuestion::Owner, |l| (&l.namespace, &l.pod)),
            replica_sets: of(FleetQuestion::ReplicaSetOwner, |l| {
                (&l.namespace, &l.replicaset)
            }),
        }
    }

    fn workload_name(&self, labels: &SeriesLabels) -> Option<FleetContainerKey> {
        let pod: Pod<'_> = (&labels.namespace, &labels.pod);
        let (kind, name) = match self.pods.get(&pod) {
            Some(("ReplicaSet", set)) => match self.replica_sets.get(&(pod.0, set)) {
                Some((kind, name)) if !name.is_empty() => (*kind, *name),
                _ => ("Deployment", without_hash(set)),
            },
            Some((kind, name)) if !name.is_empty() => (*kind, *name),
            _ => owner_by_name(&labels.pod),
        };
        (!NO_SERVICE.contains(&kind)).then(|| FleetContainerKey {
            namespace: labels.namespace.clone(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            container: labels.container.clone(),
        })
    }
}

fn owner_by_name(pod: &str) -> (&'static str, &str) {
    let Some((front, last)) = pod.rsplit_once('-') else {
        return ("Pod", pod);
    };
    if !last.is_empty() && last.chars().all(|c| c.is_ascii_digit()) {
        return ("StatefulSet", front);
    }
    let set = without_hash(front);
    if last.len() == 5 && is_hash(last) && set != front {
        ("Deployment", set)
    } else {
        ("Pod", pod)
    }
}

fn without_hash(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((front, last)) if (5..=10).contains(&last.len()) && is_hash(last) => front,
        _ => name,
    }
}

fn is_hash(text: &str) -> bool {
    text.chars().all(|c| HASH.contains(c))
}

#[derive(Default)]
struct WorkloadBuilder<'a> {
    replicas: u32,
    image: Option<&'a str>,
    largest: BTreeMap<FleetQuestion, f64>,
    sums: BTreeMap<FleetQuestion, f64>,
    requests: BTreeMap<(&'a str, &'a str), f64>,
    errors: f64,
}

impl<'a> WorkloadBuilder<'a> {
    fn take_value(&mut self, question: FleetQuestion, value: f64, labels: &'a SeriesLabels) {
        match question {
            FleetQuestion::Image => self.image = Some(&labels.image),
            FleetQuestion::Requests => {
                *self
                    .requests
                    .entry((&labels.method, &labels.uri))
                    .or_default() += value;
                if labels.status.starts_with('5') {
                    self.errors += value;
                }
            }
            _ => {
                *self.sums.entry(question).or_default() += value;
                let largest = self.largest.entry(question).or_insert(value);
                *largest = largest.max(value);
            }
        }
    }

    fn build(self, name: FleetContainerKey) -> FleetWorkload {
        use FleetQuestion::{
            CpuLimit, CpuMean, CpuPeak, CpuRequest, GcShare, HeapMax, HeapPeak, MemoryLimit,
            MemoryPeak, MemoryRequest, OomKilled, OomKills, Restarts, Throttled,
        };
        let largest = |question| self.largest.get(&question).copied();
        let sum = |question| self.sums.get(&question).copied();
        let resources = |cpu, memory| InstanceResources {
            cpu: largest(cpu).map(to_cpus),
            memory: largest(memory).map(to_bytes),
        };
        let count = |question| sum(question).unwrap_or(0.0).round() as u32;
        let jvm = JvmFigures {
            heap_peak: largest(HeapPeak).map(to_bytes),
            heap_max: largest(HeapMax).map(to_bytes),
            gc_share: largest(GcShare),
        };
        FleetWorkload {
            image: self.image.filter(|i| !i.is_empty()).map(str::to_owned),
            replicas: self.replicas,
            request: resources(CpuRequest, MemoryRequest),
            limit: resources(CpuLimit, MemoryLimit),
            peak: resources(CpuPeak, MemoryPeak),
            cpu_mean: sum(CpuMean),
            throttled: largest(Throttled),
            oom_kills: count(OomKills).max(count(OomKilled)),
            restarts: count(Restarts),
            jvm: (jvm != JvmFigures::default()).then_some(jvm),
            traffic: self.traffic(),
            objections: Vec::new(),
            name,
        }
    }

    fn traffic(&self) -> Option<Traffic> {
        let total: f64 = self.requests.values().sum();
        let is_own = |path: &str| OWN_PATHS.iter().any(|own| path.starts_with(own));
        let kinds = self.requests.iter();
        let users = kinds.filter(|((_, path), rate)| !is_own(path) && **rate > 0.0);
        let asked: f64 = users.clone().map(|(_, rate)| rate).sum();
        if asked <= 0.0 {
            return None;
        }
        let mut mix: Vec<RequestKind> = users
            .map(|((method, path), rate)| RequestKind {
                method: (*method).to_owned(),
                path: (*path).to_owned(),
                share: rate / asked,
            })
            .collect();
        mix.sort_by(|a, b| b.share.total_cmp(&a.share));
        let largest = |question| self.largest.get(&question).copied();
        Some(Traffic {
            mean_per_second: asked,
            // Probes are included, as a share that does not grow with the traffic.
            peak_per_second: largest(FleetQuestion::RequestPeak).map(|peak| peak * asked / total),
            errors: self.errors / total,
            p99_seconds: largest(FleetQuestion::P99),
            mix,
        })
    }
}

fn to_bytes(value: f64) -> Bytes {
    Bytes::from_bytes(value.max(0.0) as u64)
}

fn to_cpus(value: f64) -> Cpus {
    Cpus::from_millis((value.max(0.0) * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_an_owner_is_told_by_its_name() {
        assert_eq!(
            owner_by_name("orders-7d4b9c6f5d-x2x4k"),
            ("Deployment", "orders")
        );
        assert_eq!(owner_by_name("kafka-0"), ("StatefulSet", "kafka"));
        assert_eq!(owner_by_name("one-off"), ("Pod", "one-off"));
        assert_eq!(owner_by_name("debug"), ("Pod", "debug"));
    }

    #[test]
    fn a_container_is_meant_by_its_workload_or_by_itself() {
        let name = FleetContainerKey {
            namespace: "shop".to_owned(),
            kind: "Deployment".to_owned(),
            name: "orders".to_owned(),
            container: "app".to_owned(),
        };
        assert!(name.is_meant_by("shop/orders") && name.is_meant_by("shop/orders/app"));
        assert!(!name.is_meant_by("orders") && !name.is_meant_by("shop/orders/istio-proxy"));
        assert_eq!(name.to_string(), "shop/orders/app");
    }
}
