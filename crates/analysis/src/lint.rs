//! What is wrong with a container's numbers before anything runs.
//!
//! Owns the rules by which a Kubernetes container that runs a JVM is checked on paper. Pure: the
//! caller reads the manifest and, where a result is at hand, gives what was measured. Facts:
//! Kubernetes documentation on QoS classes and probes; HotSpot rounds a CPU quota up to whole
//! processors and takes as many GC threads.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

/// Of the limit, in [0, 1]: a larger heap leaves little for the rest of the JVM.
const MOST_HEAP: f64 = 0.85;

/// What to do about such a heap.
const FULL: &str = "little is left for metaspace, code and threads; run it: loadline judge --manifest FILE -- java ...";

/// Less memory than any JVM starts in, bytes.
const SMALLEST: u64 = 1 << 20;

/// Options that make the heap a share of the limit.
const SHARES: [&str; 3] = [
    "-XX:MaxRAMPercentage=",
    "-XX:MinRAMPercentage=",
    "-XX:MaxRAMFraction=",
];

/// A container as its manifest describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LintedContainer {
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub requests: ContainerResources,
    /// What it may use.
    pub limits: ContainerResources,
    /// Quantities that are none, with their place: `limits.memory `512MB``.
    pub unreadable: Vec<String>,
    /// JVM options from its environment, command and arguments.
    pub jvm: Vec<String>,
    /// Its probes.
    pub probes: Vec<ContainerProbe>,
}

/// CPU and memory; `None` is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainerResources {
    /// CPUs.
    pub cpu: Option<Cpus>,
    /// Memory.
    pub memory: Option<Bytes>,
}

/// A probe and how long it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerProbe {
    /// `livenessProbe`, `readinessProbe` or `startupProbe`.
    pub kind: String,
    /// Time before its first try.
    pub initial_delay: Duration,
    /// Time between tries.
    pub period: Duration,
    /// Failures in a row that count.
    pub failures: u32,
}

impl ContainerProbe {
    /// How long the application may take before this probe gives up on it.
    pub fn patience(&self) -> Duration {
        self.initial_delay + self.period * self.failures
    }
}

/// What a result says about the application, for rules that need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredNeeds {
    /// The longest start that was seen.
    pub start: Option<Duration>,
    /// The highest memory usage that was seen.
    pub memory: Option<Bytes>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It will fail, or take others with it.
    Error,
    /// It may fail, or waste.
    Warning,
    /// Good to know.
    Note,
}

/// Something that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with the numbers.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

/// All findings about a container, worst first.
pub fn lint(container: &LintedContainer, measured: MeasuredNeeds) -> Vec<LintFinding> {
    let mut findings: Vec<LintFinding> = [
        check_memory_limit(container),
        check_heap_size(container),
        check_heap_share(container),
        check_both_heaps(container),
        check_tiny_memory(container),
        check_request(container, measured),
        check_gc_threads(container),
        check_qos(container),
    ]
    .into_iter()
    .flatten()
    .chain(check_quantities(container))
    .chain(check_probes(container, measured))
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The Kubernetes QoS class of a container.
pub fn qos_class(container: &LintedContainer) -> &'static str {
    let LintedContainer {
        requests, limits, ..
    } = container;
    // A missing request is the limit.
    let cpu = requests.cpu.or(limits.cpu);
    let memory = requests.memory.or(limits.memory);
    if cpu.is_none() && memory.is_none() {
        "BestEffort"
    } else if limits.cpu.is_some()
        && limits.memory.is_some()
        && cpu == limits.cpu
        && memory == limits.memory
    {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn finding(severity: Severity, problem: String, hint: &str) -> LintFinding {
    LintFinding {
        severity,
        problem,
        hint: hint.to_owned(),
    }
}

/// A quantity that the API server refuses.
fn check_quantities(container: &LintedContainer) -> impl Iterator<Item = LintFinding> {
    container.unreadable.iter().map(|text| {
        finding(
            Severity::Error,
            format!("{text} is no quantity, and the API server refuses it"),
            "write 512Mi, 1Gi, 1G, 250m or 1.5",
        )
    })
}

/// A quantity with the wrong suffix: `100m` of memory is a tenth of a byte.
fn check_tiny_memory(container: &LintedContainer) -> Option<LintFinding> {
    let limit = container
        .limits
        .memory
        .filter(|limit| limit.as_bytes() < SMALLEST)?;
    Some(finding(
        Severity::Error,
        format!(
            "the memory limit is {} bytes: no JVM starts in it",
            limit.as_bytes()
        ),
        "in Kubernetes m is a thousandth: write 512Mi or 512M",
    ))
}

/// `-Xmx` and a percentage: only one of them counts, wherever they stand (measured on 17 and 25).
fn check_both_heaps(container: &LintedContainer) -> Option<LintFinding> {
    let heap = container
        .jvm
        .iter()
        .rev()
        .find(|o| o.starts_with("-Xmx") || o.starts_with("-XX:MaxHeapSize="))?;
    let is_share = |option: &&String| SHARES.iter().any(|prefix| option.starts_with(prefix));
    let share = container.jvm.iter().find(is_share)?;
    Some(finding(
        Severity::Warning,
        format!("{heap} stands beside {share}: the percentage does nothing"),
        "keep the one that is meant; a percentage follows the limit, -Xmx does not",
    ))
}

/// A percentage of the limit that leaves too little for the rest.
fn check_heap_share(container: &LintedContainer) -> Option<LintFinding> {
    let prefix = "-XX:MaxRAMPercentage=";
    let has_heap = container.jvm.iter().any(|o| o.starts_with("-Xmx"));
    let mut values = container.jvm.iter().filter_map(|o| o.strip_prefix(prefix));
    let percent = values.next_back()?.parse::<f64>().ok()?;
    (percent > 100.0 * MOST_HEAP && !has_heap).then(|| {
        finding(
            Severity::Warning,
            format!("the heap may take {percent} % of the limit"),
            FULL,
        )
    })
}

fn check_memory_limit(container: &LintedContainer) -> Option<LintFinding> {
    let is_given = container
        .unreadable
        .iter()
        .any(|text| text.starts_with("limits.memory"));
    (container.limits.memory.is_none() && !is_given).then(|| {
        finding(
            Severity::Error,
            "no memory limit: the JVM takes a quarter of the node's memory as its heap".to_owned(),
            "set resources.limits.memory; `loadline size` finds it",
        )
    })
}

fn check_heap_size(container: &LintedContainer) -> Option<LintFinding> {
    let limit = container.limits.memory?;
    let heap = option_size(container, "-Xmx")?;
    let message = |what: &str| format!("-Xmx is {heap}, {what} the limit of {limit}");
    if heap >= limit {
        let hint = "the heap alone fills the container and the kernel kills it; leave room for metaspace, code and threads";
        Some(finding(Severity::Error, message("not below"), hint))
    } else if heap.as_mib() > MOST_HEAP * limit.as_mib() {
        Some(finding(
            Severity::Warning,
            message("more than 85 % of"),
            FULL,
        ))
    } else {
        None
    }
}

fn check_request(container: &LintedContainer, measured: MeasuredNeeds) -> Option<LintFinding> {
    let request = container.requests.memory?;
    let initial = option_size(container, "-Xms");
    let hint = "the scheduler counts on the request; on a full node it is the first to be evicted";
    match (measured.memory, initial) {
        (Some(used), _) if request < used => Some(finding(
            Severity::Warning,
            format!("the memory request is {request}, but {used} were used when it was measured"),
            hint,
        )),
        (None, Some(initial)) if request < initial => Some(finding(
            Severity::Warning,
            format!(
                "the memory request is {request}, less than the heap it starts with (-Xms {initial})"
            ),
            hint,
        )),
        _ => None,
    }
}

fn check_gc_threads(container: &LintedContainer) -> Option<LintFinding> {
    let cpu = container.limits.cpu?;
    let is_fractional = cpu.as_millis() % 1000 != 0;
    let decides = |option: &String| {
        [
            "-XX:ParallelGCThreads=",
            "-XX:ActiveProcessorCount=",
            "-XX:+UseSerialGC",
        ]
        .iter()
        .any(|prefix| option.starts_with(prefix))
    };
    let threads = cpu.ceil();
    (is_fractional && threads > 1 && !container.jvm.iter().any(decides)).then(|| {
        finding(
            Severity::Warning,
            format!("the CPU limit is {cpu}: the JVM sees {threads} processors and runs as many GC threads, which use up the quota and stop the application until the next period"),
            "set -XX:ParallelGCThreads to the whole CPUs of the limit, or give whole CPUs",
        )
    })
}

fn check_qos(container: &LintedContainer) -> Option<LintFinding> {
    match qos_class(container) {
        "BestEffort" => Some(finding(
            Severity::Error,
            "QoS class BestEffort: no requests and no limits".to_owned(),
            "it is the first to be killed on a full node; set requests and limits",
        )),
        "Burstable" => Some(finding(
            Severity::Note,
            "QoS class Burstable".to_owned(),
            "equal requests and limits make it Guaranteed: what was measured is then what it gets",
        )),
        _ => None,
    }
}

fn check_probes(container: &LintedContainer, measured: MeasuredNeeds) -> Vec<LintFinding> {
    let Some(start) = measured.start else {
        return Vec::new();
    };
    let has_startup = container.probes.iter().any(|p| p.kind == "startupProbe");
    let kills = |probe: &&ContainerProbe| match probe.kind.as_str() {
        "startupProbe" => true,
        // It waits for the startup probe, where there is one.
        "livenessProbe" => !has_startup,
        _ => false,
    };
    let impatient = container.probes.iter().filter(kills);
    impatient
        .filter(|probe| probe.patience() < start)
        .map(|probe| {
            finding(
                Severity::Error,
                format!(
                    "the {} gives up after {:.0} s, but a start took {:.1} s when it was measured",
                    probe.kind,
                    probe.patience().as_secs_f64(),
                    start.as_secs_f64()
                ),
                "it is restarted for ever; raise failureThreshold, or add a startupProbe",
            )
        })
        .collect()
}

fn option_size(container: &LintedContainer, prefix: &str) -> Option<Bytes> {
    let mut values = container.jvm.iter().filter_map(|o| o.strip_prefix(prefix));
    // The last one counts. A bare number is bytes.
    let value = values.next_back()?;
    match value.parse::<u64>() {
        Ok(bytes) => Some(Bytes::from_bytes(bytes)),
        Err(_) => value.to_lowercase().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> LintedContainer {
        let both = ContainerResources {
            cpu: Some(Cpus::from_whole(1)),
            memory: Some(Bytes::from_mib(512)),
        };
        LintedContainer {
            name: "app".to_owned(),
            requests: both,
            limits: both,
            ..LintedContainer::default()
        }
    }

    fn text(container: &LintedContainer, measured: MeasuredNeeds) -> String {
        let findings = lint(container, measured);
        let line = |f: &LintFinding| format!("{:?}: {}", f.severity, f.problem);
        findings.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_sound_container_has_no_findings() {
        assert_eq!(text(&container(), MeasuredNeeds::default()), "");
        assert_eq!(qos_class(&container()), "Guaranteed");
    }

    #[test]
    fn a_container_without_numbers() {
        let bare = LintedContainer::default();
        insta::assert_snapshot!(text(&bare, MeasuredNeeds::default()), @"
        Error: no memory limit: the JVM takes a quarter of the node's memory as its heap
        Error: QoS class BestEffort: no requests and no limits
        ");
    }

    #[test]
    fn quantities_and_heaps_that_cannot_be_meant_are_named() {
        let mut bad = container();
        bad.limits.memory = Some(Bytes::from_bytes(1));
        bad.requests.memory = bad.limits.memory;
        bad.unreadable = vec!["requests.cpu `1 core`".to_owned()];
        insta::assert_snapshot!(text(&bad, MeasuredNeeds::default()), @"
        Error: the memory limit is 1 bytes: no JVM starts in it
        Error: requests.cpu `1 core` is no quantity, and the API server refuses it
        ");
        let mut heaps = container();
        heaps.jvm = vec!["-XX:MaxRAMPercentage=90".to_owned()];
        insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Warning: the heap may take 90 % of the limit");
        heaps.jvm.push("-Xmx256m".to_owned());
        insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Warning: -Xmx256m stands beside -XX:MaxRAMPercentage=90: the percentage does nothing");
        let unknown = LintedContainer {
            unreadable: vec!["limits.memory `512MB`".to_owned()],
            ..container()
        };
        assert!(!text(&unknown, MeasuredNeeds::default()).contains("no memory limit"));
    }

    #[test]
    fn every_rule_fires_on_what_it_is_for() {
        let mut bad = container();
        bad.limits.cpu = Some(Cpus::from_millis(1500));
        bad.requests.memory = Some(Bytes::from_mib(128));
        bad.jvm = vec!["-Xmx512m".to_owned(), "-Xms256m".to_owned()];
        let probe = |kind: &str| ContainerProbe {
            kind: kind.to_owned(),
            initial_delay: Duration::from_secs(5),
            period: Duration::from_secs(10),
            failures: 3,
        };
        bad.probes = vec![probe("livenessProbe"), probe("readinessProbe")];
        insta::assert_snapshot!(text(&bad, MeasuredNeeds::default()), @"
        Error: -Xmx is 512Mi, not below the limit of 512Mi
        Warning: the memory request is 128Mi, less than the heap it starts with (-Xms 256Mi)
        Warning: the CPU limit is 1500m: the JVM sees 2 processors and runs as many GC threads, which use up the quota and stop the application until the next period
        Note: QoS class Burstable
        ");
        let measured = MeasuredNeeds {
            start: Some(Duration::from_secs(40)),
            memory: Some(Bytes::from_mib(300)),
        };
        bad.jvm = vec!["-Xmx480m".to_owned(), "-XX:ParallelGCThreads=1".to_owned()];
        insta::assert_snapshot!(text(&bad, measured), @"
        Error: the livenessProbe gives up after 35 s, but a start took 40.0 s when it was measured
        Warning: -Xmx is 480Mi, more than 85 % of the limit of 512Mi
        Warning: the memory request is 128Mi, but 300Mi were used when it was measured
        Note: QoS class Burstable
        ");
        bad.probes.push(ContainerProbe {
            failures: 10,
            ..probe("startupProbe")
        });
        assert!(!text(&bad, measured).contains("Probe"));
    }
}
