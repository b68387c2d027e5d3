//! A level of a factor: what it changes in a configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::record::{
    Configuration, CpuSets, JvmOption, LevelApplication, StartCache, ValueProvenance,
};
use loadline_sizing::{Bytes, Cpus};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LevelChange {
    pub instances: Option<u32>,
    pub cpu: Option<Cpus>,
    pub cpu_period: Option<Duration>,
    pub cpu_burst: Option<Duration>,
    pub start_cpu: Option<Cpus>,
    pub cpu_shares: Option<u64>,
    pub neighbour_threads: Option<u32>,
    pub cpuset: Option<CpuSets>,
    pub memory: Option<Bytes>,
    pub jdk: Option<String>,
    pub jvm: Vec<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub rate: Option<f64>,
    pub cache: Option<StartCache>,
    pub application: Option<LevelApplication>,
}

#[derive(Debug, Clone)]
pub struct ExperimentFactor {
    pub name: String,
    pub levels: Vec<FactorLevel>,
    pub descend: bool,
}

#[derive(Debug, Clone)]
pub struct FactorLevel {
    pub label: String,
    pub change: LevelChange,
}

impl FactorLevel {
    pub fn apply(&self, base: &Configuration) -> Configuration {
        let mut next = base.clone();
        let change = &self.change;
        next.instances = change.instances.unwrap_or(next.instances);
        next.cpu = change.cpu.or(next.cpu);
        next.cpu_period = change.cpu_period.unwrap_or(next.cpu_period);
        next.cpu_burst = change.cpu_burst.or(next.cpu_burst);
        next.start_cpu = change.start_cpu.or(next.start_cpu);
        next.neighbour_threads = change.neighbour_threads.or(next.neighbour_threads);
        next.cpu_shares = change.cpu_shares.or(next.cpu_shares);
        next.cpuset = change.cpuset.clone().or(next.cpuset);
        next.memory = change.memory.or(next.memory);
        next.jdk = change.jdk.clone().or(next.jdk);
        let options = change.jvm.iter();
        next.jvm_options.extend(options.map(|o| JvmOption {
            text: o.clone(),
            provenance: ValueProvenance::User,
        }));
        next.args.extend(change.args.iter().cloned());
        next.env.extend(change.env.clone());
        next.rate = change.rate.or(next.rate);
        next.cache = change.cache.or(next.cache);
        next.application = change.application.clone().or(next.application);
        next.label = match (next.label.as_str(), self.label.as_str()) {
            ("", label) => label.to_owned(),
            (label, "") => label.to_owned(),
            (before, label) => format!("{before} {label}"),
        };
        next
    }
}
