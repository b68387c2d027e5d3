//! What is wrong with a container's numbers before anything runs.
//!
//! Owns the rules by which a Kubernetes container that runs a JVM is checked on paper. Pure: the
//! caller reads the manifest and, where a result is at hand, gives what was measured. Facts:
//! Kubernetes documentation on QoS classes and probes; HotSpot rounds a CPU quota up to whole
//! processors and takes as many GC threads.

use std::time::Duration;

use loadline_sizing::hotspot::MachineSize;
use loadline_sizing::regions::heap::check_container;
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet};

/// Less memory than any JVM starts in, bytes.
const SMALLEST: u64 = 1 << 20;

const SHARES: [&str; 3] = ["MaxRAMPercentage", "MinRAMPercentage", "MaxRAMFraction"];

/// The JDK if the manifest names none.
const USUAL_JDK: u32 = 17;

/// Processors of a container without a CPU limit: with fewer the JVM takes another collector.
const USUAL_CPUS: u32 = 2;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct LintedContainer {
    pub name: String,
    pub requests: ContainerResources,
    pub limits: ContainerResources,
    /// Quantities that are none, with their place: `limits.memory `512MB``.
    pub unreadable: Vec<String>,
    /// JVM options from its environment, command and arguments.
    pub jvm: Vec<String>,
    pub probes: Vec<ContainerProbe>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainerResources {
    pub cpu: Option<Cpus>,
    pub memory: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerProbe {
    /// `livenessProbe`, `readinessProbe` or `startupProbe`.
    pub kind: String,
    pub initial_delay: Duration,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredNeeds {
    pub start: Option<Duration>,
    /// The highest memory usage that was seen.
    pub memory: Option<Bytes>,
    /// Everything outside the heap, measured and expected.
    pub rest: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    pub severity: Severity,
    pub problem: String,
    pub hint: String,
}

/// All findings about a container, worst first.
pub fn lint(container: &LintedContainer, measured: MeasuredNeeds) -> Vec<LintFinding> {
    let mut findings: Vec<LintFinding> = [
        check_memory_limit(container),
        over_commitment(container, measured),
        heap_options(container),
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

/// Heap options that overrule each other: `-Xmx` twice, or with a percentage, in any order (measured on
/// 17 and 25).
fn heap_options(container: &LintedContainer) -> Option<LintFinding> {
    let named = |option: &&String, names: &[&str]| {
        let own = JvmOptionSet::from_words([option.as_str()]);
        names.iter().any(|name| own.is_set(name))
    };
    let heaps = container.jvm.iter().filter(|o| named(o, &["MaxHeapSize"]));
    let heaps: Vec<&String> = heaps.collect();
    let share = container.jvm.iter().find(|o| named(o, &SHARES));
    let problem = match (heaps.as_slice(), share) {
        ([.., before, last], _) => {
            format!("the heap is set twice: {before}, then {last}; the last one counts")
        }
        ([heap], Some(share)) => {
            format!("{heap} and {share} are both set: the percentage is ignored")
        }
        _ => return None,
    };
    let hint = "keep one; a percentage follows the limit, -Xmx does not";
    Some(finding(Severity::Warning, problem, hint))
}

/// A heap that leaves too little of the limit for everything else.
pub fn over_commitment(
    container: &LintedContainer,
    measured: MeasuredNeeds,
) -> Option<LintFinding> {
    let limit = container
        .limits
        .memory
        .filter(|limit| limit.as_bytes() >= SMALLEST)?;
    let cpus = container.limits.cpu.map_or(USUAL_CPUS, Cpus::ceil).max(1);
    let machine = MachineSize {
        memory: limit,
        cpus,
    };
    let options = JvmOptionSet::from_words(container.jvm.iter().cloned());
    let jdk = JdkRelease::for_hotspot(JavaVersion::from_feature(USUAL_JDK));
    let overrun = check_container(jdk, machine, &options, measured.rest)?;
    let (whose, more) = match measured.rest {
        Some(_) => ("as it was measured, growth included", ""),
        None => (
            "for a typical service",
            "; --measured RESULT takes the service's own",
        ),
    };
    let hint = format!("{}{more}", overrun.suggest_change());
    let problem = format!("over-committed: {overrun} ({whose})");
    Some(finding(Severity::Error, problem, &hint))
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

fn check_request(container: &LintedContainer, measured: MeasuredNeeds) -> Option<LintFinding> {
    let request = container.requests.memory?;
    let options = JvmOptionSet::from_words(container.jvm.iter().cloned());
    let initial = options.size_value("InitialHeapSize");
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
        insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Error: over-committed: the heap may take 462Mi and everything else 248Mi: 710Mi in a limit of 512Mi (for a typical service)");
        heaps.jvm.push("-Xmx256m".to_owned());
        insta::assert_snapshot!(text(&heaps, MeasuredNeeds::default()), @"Warning: -Xmx256m and -XX:MaxRAMPercentage=90 are both set: the percentage is ignored");
        let unknown = LintedContainer {
            unreadable: vec!["limits.memory `512MB`".to_owned()],
            ..container()
        };
        assert!(!text(&unknown, MeasuredNeeds::default()).contains("no memory limit"));
    }

    #[test]
    fn a_heap_and_everything_else_have_to_fit() {
        let problems = |options: &[&str], rest: Option<u64>| {
            let mut of = container();
            of.jvm = options.iter().map(|o| (*o).to_owned()).collect();
            let measured = MeasuredNeeds {
                rest: rest.map(Bytes::from_mib),
                ..MeasuredNeeds::default()
            };
            let found = lint(&of, measured);
            let line =
                |f: &LintFinding| format!("{:?}: {}\n  hint: {}", f.severity, f.problem, f.hint);
            found.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(problems(&["-Xmx256m"], None), "");
        assert_eq!(problems(&["-Xmx370m"], Some(142)), "");
        let said = [
            problems(&["-XX:MaxRAMPercentage=75"], None),
            problems(&["-Xmx371m"], Some(142)),
            problems(&[], Some(500)),
            problems(&["-Xmx128m", "-Xmx200m"], Some(142)),
            problems(&["-Xmx128m", "-XX:MaxRAMPercentage=75"], Some(142)),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        Error: over-committed: the heap may take 384Mi and everything else 248Mi: 632Mi in a limit of 512Mi (for a typical service)
          hint: lower the heap to 264Mi (-Xmx264m) or raise the limit to 632Mi; --measured RESULT takes the service's own
        Error: over-committed: the heap may take 372Mi and everything else 142Mi: 514Mi in a limit of 512Mi (as it was measured, growth included)
          hint: lower the heap to 370Mi (-Xmx370m) or raise the limit to 514Mi
        Error: over-committed: the heap may take 128Mi and everything else 500Mi: 628Mi in a limit of 512Mi (as it was measured, growth included)
          hint: raise the limit to 628Mi; no heap fits into 512Mi
        Warning: the heap is set twice: -Xmx128m, then -Xmx200m; the last one counts
          hint: keep one; a percentage follows the limit, -Xmx does not
        Warning: -Xmx128m and -XX:MaxRAMPercentage=75 are both set: the percentage is ignored
          hint: keep one; a percentage follows the limit, -Xmx does not
        ");
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
        Error: over-committed: the heap may take 512Mi and everything else 248Mi: 760Mi in a limit of 512Mi (for a typical service)
        Warning: the memory request is 128Mi, less than the heap it starts with (-Xms 256Mi)
        Warning: the CPU limit is 1500m: the JVM sees 2 processors and runs as many GC threads, which use up the quota and stop the application until the next period
        Note: QoS class Burstable
        ");
        let measured = MeasuredNeeds {
            start: Some(Duration::from_secs(40)),
            memory: Some(Bytes::from_mib(300)),
            rest: Some(Bytes::from_mib(142)),
        };
        bad.jvm = vec!["-Xmx480m".to_owned(), "-XX:ParallelGCThreads=1".to_owned()];
        insta::assert_snapshot!(text(&bad, measured), @"
        Error: over-committed: the heap may take 480Mi and everything else 142Mi: 622Mi in a limit of 512Mi (as it was measured, growth included)
        Error: the livenessProbe gives up after 35 s, but a start took 40.0 s when it was measured
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
