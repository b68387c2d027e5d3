//! Problems in a container's settings, found before anything runs.
//!
//! Owns the rules that check a Kubernetes container with a JVM on paper. Pure: the caller reads the
//! manifest and passes measured figures if it has a result. Facts: Kubernetes documentation on QoS
//! classes and probes; HotSpot rounds a CPU quota up to whole processors and takes as many GC
//! threads.

use std::time::Duration;

use loadline_sizing::hotspot::collector::choose;
use loadline_sizing::hotspot::heap::size_heap;
use loadline_sizing::hotspot::refusal::{HotSpotRefusal, check_flags, tiny_percentages};
use loadline_sizing::hotspot::threads::collector_threads;
use loadline_sizing::hotspot::{CollectorKind, HotSpotHeap, MachineSize};
use loadline_sizing::regions::heap::check_container;
use loadline_sizing::sight::without_container_support;
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet};

/// Less memory than any JVM starts in, bytes.
const SMALLEST: u64 = 1 << 20;

/// More CPUs than any node of a cloud has.
const LARGEST_NODE: u32 = 960;

const SHARES: [&str; 3] = ["MaxRAMPercentage", "MinRAMPercentage", "MaxRAMFraction"];

const USUAL_JDK: u32 = 17;

/// Processors of a container without a CPU limit: with fewer the JVM takes another collector.
const USUAL_CPUS: u32 = 2;

/// The annotation of a workload with what its JVM needs outside the heap, as it was measured.
pub const OUTSIDE_HEAP: &str = "loadline/outside-heap";

/// The annotation of a workload with the JVM options in the command of its image.
pub const IMAGE_OPTIONS: &str = "loadline/image-options";

const USUAL_NODE: Bytes = Bytes::from_gib(16);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct LintedContainer {
    pub name: String,
    pub requests: ContainerResources,
    pub limits: ContainerResources,
    /// Quantities that are none, with their place: `limits.memory `512MB``.
    pub unreadable: Vec<String>,
    /// Keys that the API server does not take.
    pub malformed: Vec<LintFinding>,
    /// JVM options from its environment, command and arguments, in the order in which the JVM applies them.
    pub jvm: Vec<String>,
    /// Values from outside the input that may hold JVM options: `ConfigMap orders-env`.
    pub unseen: Vec<String>,
    pub probes: Vec<ContainerProbe>,
    pub pod: PodNeeds,
    /// Everything outside the heap, as [`OUTSIDE_HEAP`] says.
    pub rest: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainerNeeds {
    pub requests: ContainerResources,
    pub limits: ContainerResources,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodNeeds {
    pub own: Option<ContainerNeeds>,
    pub running: Vec<ContainerNeeds>,
    pub starting: Vec<ContainerNeeds>,
}

impl LintedContainer {
    pub fn own_needs(&self) -> ContainerNeeds {
        ContainerNeeds {
            requests: self.requests,
            limits: self.limits,
        }
    }

    /// The limits of the pod are its own where it states none: the kubelet sets them in its cgroup.
    pub fn inherit_limits(&mut self) {
        let pod = self.pod.own.unwrap_or_default().limits;
        self.limits.cpu = self.limits.cpu.or(pod.cpu);
        self.limits.memory = self.limits.memory.or(pod.memory);
    }

    pub fn pod_size(&self) -> (Option<Cpus>, Option<Bytes>) {
        let paid = |needs: &ContainerNeeds| {
            let ContainerNeeds { requests, limits } = needs;
            (
                limits.cpu.or(requests.cpu),
                limits.memory.or(requests.memory),
            )
        };
        if let Some(own) = &self.pod.own {
            return paid(own);
        }
        let all = || self.pod.running.iter().copied().chain([self.own_needs()]);
        let cpu = all().filter_map(|needs| paid(&needs).0.map(Cpus::as_millis));
        let memory = all().filter_map(|needs| paid(&needs).1);
        (
            cpu.reduce(u32::saturating_add).map(Cpus::from_millis),
            memory.reduce(Bytes::saturating_add),
        )
    }

    fn options(&self) -> JvmOptionSet {
        JvmOptionSet::from_words(self.jvm.iter().cloned())
    }

    /// The memory limit, if a JVM can start in it.
    fn sound_limit(&self) -> Option<Bytes> {
        self.limits
            .memory
            .filter(|limit| limit.as_bytes() >= SMALLEST)
    }

    /// The machine as its JVM sees it, with an ample one where a limit is missing.
    fn machine(&self) -> MachineSize {
        MachineSize {
            memory: self.sound_limit().unwrap_or(USUAL_NODE),
            cpus: self.limits.cpu.map_or(USUAL_CPUS, Cpus::ceil).max(1),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContainerResources {
    pub cpu: Option<Cpus>,
    pub memory: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerProbe {
    pub kind: String,
    pub initial_delay: Duration,
    pub period: Duration,
    pub failures: u32,
}

impl ContainerProbe {
    pub fn patience(&self) -> Duration {
        self.initial_delay + self.period * self.failures
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredNeeds {
    pub start: Option<Duration>,
    pub memory: Option<Bytes>,
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

pub fn lint(container: &LintedContainer, measured: MeasuredNeeds) -> Vec<LintFinding> {
    let mut findings: Vec<LintFinding> = [
        check_memory_limit(container),
        over_commitment(container, measured),
        heap_options(container),
        check_refused_options(container),
        check_container_support(container),
        check_request(container, measured),
        check_gc_threads(container),
        check_qos(container),
        check_unseen(container),
    ]
    .into_iter()
    .flatten()
    .chain(container.malformed.iter().cloned())
    .chain(check_quantities(container))
    .chain(check_amounts(container))
    .chain(check_shares(container))
    .chain(check_order(container))
    .chain(check_probes(container, measured))
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

pub fn qos_class(container: &LintedContainer) -> &'static str {
    let pod = &container.pod;
    let all: Vec<ContainerNeeds> = match pod.own {
        Some(own) => vec![own],
        None => {
            let others = pod.running.iter().chain(&pod.starting).copied();
            others.chain([container.own_needs()]).collect()
        }
    };
    if all.iter().all(|needs| *needs == ContainerNeeds::default()) {
        "BestEffort"
    } else if all.iter().all(is_guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Whether requests equal limits; a missing request is the limit.
fn is_guaranteed(needs: &ContainerNeeds) -> bool {
    let ContainerNeeds { requests, limits } = needs;
    limits.cpu.is_some()
        && limits.memory.is_some()
        && requests.cpu.is_none_or(|cpu| Some(cpu) == limits.cpu)
        && requests
            .memory
            .is_none_or(|memory| Some(memory) == limits.memory)
}

fn finding(severity: Severity, problem: String, hint: &str) -> LintFinding {
    LintFinding {
        severity,
        problem,
        hint: hint.to_owned(),
    }
}

/// Options that no JVM starts with, such as `-Xmx80%`. Which flags it knows depends on its version.
fn check_refused_options(container: &LintedContainer) -> Option<LintFinding> {
    if container.jvm.is_empty() {
        return None;
    }
    let known = container.jvm.iter().filter(|option| !option.contains('$'));
    let options = JvmOptionSet::from_words(known.cloned());
    let (jdk, machine) = (usual_jdk(), container.machine());
    let refused = match check_flags(jdk, &options).and(choose(jdk, machine, &options).map(|_| ())) {
        Err(HotSpotRefusal::UnknownFlag { .. }) | Ok(()) => {
            size_heap(jdk, machine, CollectorKind::Serial, &options).err()
        }
        Err(refusal) => Some(refusal),
    };
    Some(finding(
        Severity::Error,
        format!("the JVM does not start with these options: {}", refused?),
        "write -Xmx512m or -XX:MaxRAMPercentage=75.0",
    ))
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

/// Amounts with a wrong suffix or none: `100m` of memory is a tenth of a byte, `1000` are as many CPUs.
fn check_amounts(container: &LintedContainer) -> Vec<LintFinding> {
    let ContainerNeeds { requests, limits } = container.own_needs();
    let both = || [("limit", limits), ("request", requests)].into_iter();
    let tiny = |(kind, amount): (&str, ContainerResources)| {
        let bytes = amount.memory?.as_bytes();
        let plural = if bytes == 1 { "" } else { "s" };
        (bytes < SMALLEST).then(|| {
            finding(
                Severity::Error,
                format!("the memory {kind} is {bytes} byte{plural}: no JVM starts in it"),
                "a number without a unit is bytes, and m a thousandth of one: write 512Mi or 512M",
            )
        })
    };
    let huge = |(kind, amount): (&str, ContainerResources)| {
        let cpus = amount.cpu?.as_millis() / 1000;
        (cpus > LARGEST_NODE).then(|| {
            finding(
                Severity::Warning,
                format!("the CPU {kind} is {cpus} CPUs, more than any node has"),
                &format!("a thousandth of a CPU is m: write {cpus}m"),
            )
        })
    };
    both()
        .filter_map(tiny)
        .chain(both().filter_map(huge))
        .collect()
}

/// Percentages that were meant as shares: `-XX:MaxRAMPercentage=0.75`.
fn check_shares(container: &LintedContainer) -> Vec<LintFinding> {
    let options = container.options();
    let all = tiny_percentages(&options).into_iter();
    all.map(|(option, meant)| {
        finding(
            Severity::Warning,
            format!("{option} is less than one percent of the memory"),
            &format!("it is a percentage: write {meant}"),
        )
    })
    .collect()
}

/// A JVM that does not look at the limit takes the node for its own.
fn check_container_support(container: &LintedContainer) -> Option<LintFinding> {
    let options = container.options();
    let why = without_container_support(usual_jdk(), &options)?;
    let is_bounded = options.is_set("MaxHeapSize") || options.is_set("MaxRAM");
    container.limits.memory.filter(|_| !is_bounded)?;
    Some(finding(
        Severity::Error,
        format!(
            "{why}: the JVM takes a share of the node's memory as its heap, whatever the limit is"
        ),
        "leave the option out, or set -Xmx",
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

pub fn over_commitment(
    container: &LintedContainer,
    measured: MeasuredNeeds,
) -> Option<LintFinding> {
    let limit = container.sound_limit()?;
    let machine = MachineSize {
        memory: limit,
        ..container.machine()
    };
    let jdk = usual_jdk();
    let options = container.options();
    let rest = measured.rest.or(container.rest);
    let overrun = check_container(jdk, machine, &options, rest)?;
    let (whose, more) = match rest {
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

fn usual_jdk() -> JdkRelease {
    JdkRelease::for_hotspot(JavaVersion::from_feature(USUAL_JDK))
}

fn check_memory_limit(container: &LintedContainer) -> Option<LintFinding> {
    let is_given = container
        .unreadable
        .iter()
        .any(|text| text.starts_with("limits.memory"));
    if container.limits.memory.is_some() || is_given {
        return None;
    }
    let options = container.options();
    let text = |name: &str| options.setting(name).map(|setting| setting.text.as_str());
    let share = SHARES.iter().find_map(|name| text(name));
    let (severity, heap) = match (text("MaxHeapSize").or(text("MaxRAM")), share) {
        (Some(heap), _) => (
            Severity::Warning,
            format!("{heap} bounds the heap, and nothing bounds the rest"),
        ),
        (None, Some(share)) => (
            Severity::Error,
            format!("{share} is a share of the node's memory"),
        ),
        (None, None) if !container.unseen.is_empty() => (
            Severity::Warning,
            "whether an option bounds the heap is not to be seen here".to_owned(),
        ),
        (None, None) => (
            Severity::Error,
            "the JVM takes a quarter of the node's memory as its heap".to_owned(),
        ),
    };
    Some(finding(
        severity,
        format!("no memory limit: {heap}"),
        "set resources.limits.memory; `loadline size` finds it",
    ))
}

fn check_unseen(container: &LintedContainer) -> Option<LintFinding> {
    (!container.unseen.is_empty()).then(|| {
        finding(
            Severity::Note,
            format!("not looked at: {}", container.unseen.join(", ")),
            "JVM options in it count too: give it with the manifest, such as by kubectl get -o yaml",
        )
    })
}

fn check_order(container: &LintedContainer) -> Vec<LintFinding> {
    let above = |what: &str, request: String, limit: String| {
        finding(
            Severity::Error,
            format!(
                "the {what} request {request} is above the limit {limit}: the API server refuses the pod"
            ),
            "lower the request to the limit",
        )
    };
    let ContainerNeeds { requests, limits } = container.own_needs();
    let cpu = requests
        .cpu
        .zip(limits.cpu)
        .filter(|(request, limit)| request > limit);
    let memory = requests
        .memory
        .zip(limits.memory)
        .filter(|(request, limit)| request > limit);
    let cpu = cpu.map(|(r, l)| above("CPU", r.to_string(), l.to_string()));
    let memory = memory.map(|(r, l)| above("memory", r.to_short(), l.to_short()));
    cpu.into_iter().chain(memory).collect()
}

fn check_request(container: &LintedContainer, measured: MeasuredNeeds) -> Option<LintFinding> {
    let request = container.requests.memory?;
    let hint = "the scheduler counts on the request; on a full node it is the first to be evicted";
    match (measured.memory, initial_heap(container)) {
        (Some(used), _) if request < used => Some(finding(
            Severity::Warning,
            format!("the memory request is {request}, but {used} were used when it was measured"),
            hint,
        )),
        (None, Some((initial, option))) if request < initial => Some(finding(
            Severity::Warning,
            format!(
                "the memory request is {request}, less than the heap of {initial} it starts with ({option})"
            ),
            hint,
        )),
        _ => None,
    }
}

fn initial_heap(container: &LintedContainer) -> Option<(Bytes, String)> {
    let options = container.options();
    let named = [
        "InitialHeapSize",
        "InitialRAMPercentage",
        "InitialRAMFraction",
    ];
    let setting = named.iter().find_map(|name| options.setting(name))?;
    let heap = heap_of(container, &options)?;
    Some((heap.initial, setting.text.clone()))
}

fn heap_of(container: &LintedContainer, options: &JvmOptionSet) -> Option<HotSpotHeap> {
    let (jdk, machine) = (usual_jdk(), container.machine());
    let collector = choose(jdk, machine, options).unwrap_or(CollectorKind::G1);
    size_heap(jdk, machine, collector, options).ok()
}

/// As `predict` has it: with one collector thread nothing runs in parallel.
fn check_gc_threads(container: &LintedContainer) -> Option<LintFinding> {
    let cpu = container.limits.cpu?;
    let machine = container.machine();
    let options = container.options();
    let jdk = usual_jdk();
    let collector = choose(jdk, machine, &options).ok()?;
    let heap = size_heap(jdk, machine, collector, &options).ok()?;
    let threads = collector_threads(jdk, machine, collector, heap.max, &options)
        .ok()?
        .parallel;
    let is_above = threads > 1 && u64::from(threads) * 1000 > u64::from(cpu.as_millis());
    (is_above && cpu.as_millis() % 1000 != 0).then(|| {
        finding(
            Severity::Warning,
            format!("the CPU limit is {cpu}: the JVM sees {} processors and {collector} runs {threads} GC threads, which use up the quota and stop the application until the next period", machine.cpus),
            "set -XX:ParallelGCThreads to the whole CPUs of the limit, or give whole CPUs",
        )
    })
}

fn check_qos(container: &LintedContainer) -> Option<LintFinding> {
    if !container.unreadable.is_empty() || !container.malformed.is_empty() {
        return None;
    }
    match qos_class(container) {
        "BestEffort" => Some(finding(
            Severity::Error,
            "QoS class BestEffort: the pod has no requests and no limits".to_owned(),
            "it is the first to be killed on a full node; set requests and limits",
        )),
        "Burstable" => Some(finding(
            Severity::Note,
            "QoS class Burstable".to_owned(),
            "give every container of the pod requests equal to its limits: then the pod is Guaranteed and gets the measured resources",
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
        // It waits for the startup probe, if there is one.
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
    fn options_that_no_jvm_starts_with_are_errors() {
        for (options, said) in [
            (&["-Xmx80%"][..], Some("-Xmx80%: expected an amount")),
            (&["-XX:MaxRAMPercentage=75%"], Some("expected a percentage")),
            (&["-Xms512m", "-Xmx256m"], Some("larger than the largest")),
            (&["-Xmx$HEAP", "-XX:+UseConcMarkSweepGC"], None),
            (&["-XX:MaxRAMPercentage=75"], None),
            (&["-XX:+UseG1GC", "-XX:+UseZGC"], Some("one collector only")),
            (
                &["-XX:MaxRamPercentage=75"],
                Some("did you mean -XX:MaxRAM"),
            ),
            (&["-XMX512m"], Some("did you mean -Xmx512m")),
        ] {
            let linted = LintedContainer {
                jvm: options.iter().map(|o| (*o).to_owned()).collect(),
                ..container()
            };
            let found = check_refused_options(&linted).map(|found| found.problem);
            let holds = match (&found, said) {
                (Some(found), Some(said)) => found.contains(said),
                (found, said) => found.is_none() && said.is_none(),
            };
            assert!(holds, "{options:?}: {found:?}");
        }
    }

    #[test]
    fn amounts_in_wrong_units_and_switched_off_support_are_told() {
        let of = |memory: u64, cpu: u32, options: &[&str]| {
            let limits = ContainerResources {
                cpu: Some(Cpus::from_millis(cpu)),
                memory: Some(Bytes::from_bytes(memory)),
            };
            let linted = LintedContainer {
                jvm: options.iter().map(|o| (*o).to_owned()).collect(),
                requests: limits,
                limits,
                ..container()
            };
            text(&linted, MeasuredNeeds::default())
        };
        let gib = 1 << 30;
        for (said, wanted) in [
            (of(1, 1000, &["-Xmx1g"]), "limit is 1 byte: no JVM starts"),
            (of(1024, 1000, &[]), "request is 1024 bytes: no JVM starts"),
            (of(gib, 1_000_000, &[]), "is 1000 CPUs, more than any node"),
            (
                of(gib, 1000, &["-XX:MaxRAMPercentage=0.75"]),
                "less than one percent",
            ),
            (
                of(gib, 1000, &["-XX:-UseContainerSupport"]),
                "whatever the limit is",
            ),
        ] {
            assert!(said.contains(wanted), "{said}");
        }
        let tiny = of(1, 1000, &["-Xmx1g"]);
        assert!(!tiny.contains("does not start with"), "{tiny}");
        let bounded = of(gib, 1000, &["-XX:-UseContainerSupport", "-Xmx256m"]);
        assert!(!bounded.contains("whatever"), "{bounded}");
    }

    #[test]
    fn a_sound_container_has_no_findings() {
        assert_eq!(text(&container(), MeasuredNeeds::default()), "");
        assert_eq!(qos_class(&container()), "Guaranteed");
    }

    #[test]
    fn the_class_is_that_of_the_whole_pod() {
        let sound = container();
        let class = |pod: PodNeeds| {
            let of = LintedContainer {
                pod,
                ..sound.clone()
            };
            qos_class(&of)
        };
        let none = vec![ContainerNeeds::default()];
        let running = PodNeeds {
            running: none.clone(),
            ..PodNeeds::default()
        };
        let starting = PodNeeds {
            starting: none,
            ..PodNeeds::default()
        };
        assert_eq!([class(running.clone()), class(starting)], ["Burstable"; 2]);
        let own = PodNeeds {
            own: Some(sound.own_needs()),
            ..running
        };
        assert_eq!(class(own.clone()), "Guaranteed");
        let mut bare = LintedContainer {
            pod: own,
            ..LintedContainer::default()
        };
        bare.inherit_limits();
        assert_eq!(text(&bare, MeasuredNeeds::default()), "");
        assert_eq!(bare.pod_size().1, Some(Bytes::from_mib(512)));
    }

    #[test]
    fn a_heap_without_a_limit_is_what_its_options_say() {
        let problem = |options: &[&str], unseen: &[&str]| {
            let of = LintedContainer {
                jvm: options.iter().map(|o| (*o).to_owned()).collect(),
                unseen: unseen.iter().map(|o| (*o).to_owned()).collect(),
                ..LintedContainer::default()
            };
            text(&of, MeasuredNeeds::default())
        };
        let said = [
            problem(&["-Xmx256m"], &[]),
            problem(&["-XX:MaxRAMPercentage=75"], &[]),
            problem(&[], &["ConfigMap env"]),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        Error: QoS class BestEffort: the pod has no requests and no limits
        Warning: no memory limit: -Xmx256m bounds the heap, and nothing bounds the rest
        Error: no memory limit: -XX:MaxRAMPercentage=75 is a share of the node's memory
        Error: QoS class BestEffort: the pod has no requests and no limits
        Error: QoS class BestEffort: the pod has no requests and no limits
        Warning: no memory limit: whether an option bounds the heap is not to be seen here
        Note: not looked at: ConfigMap env
        ");
    }

    #[test]
    fn requests_above_limits_and_initial_heaps_are_seen() {
        let mut of = container();
        of.requests.cpu = Some(Cpus::from_whole(2));
        of.requests.memory = Some(Bytes::from_gib(1));
        let mut small = container();
        small.requests.memory = Some(Bytes::from_mib(64));
        small.jvm = vec![
            "-XX:InitialRAMPercentage=25".to_owned(),
            "-XX:+UseConcMarkSweepGC".to_owned(),
        ];
        let mut gone = container();
        gone.jvm = vec!["-Xmx1g".to_owned(), "-XX:+UseConcMarkSweepGC".to_owned()];
        // Of 1500m a JVM with 1Gi takes Serial, and one with 4Gi G1.
        let mut threads = container();
        threads.requests.cpu = Some(Cpus::from_millis(1500));
        threads.limits = ContainerResources {
            memory: Some(Bytes::from_gib(4)),
            ..threads.requests
        };
        threads.requests = threads.limits;
        let all = [of, small, gone, threads].map(|of| text(&of, MeasuredNeeds::default()));
        insta::assert_snapshot!(all.join("\n"), @"
        Error: the CPU request 2 is above the limit 1: the API server refuses the pod
        Error: the memory request 1Gi is above the limit 512Mi: the API server refuses the pod
        Note: QoS class Burstable
        Warning: the memory request is 64Mi, less than the heap of 128Mi it starts with (-XX:InitialRAMPercentage=25)
        Note: QoS class Burstable
        Error: over-committed: the heap may take 1Gi and everything else 250Mi: 1274Mi in a limit of 512Mi (for a typical service)
        Warning: the CPU limit is 1500m: the JVM sees 2 processors and G1 runs 2 GC threads, which use up the quota and stop the application until the next period
        ");
    }

    #[test]
    fn a_container_without_numbers() {
        let bare = LintedContainer::default();
        insta::assert_snapshot!(text(&bare, MeasuredNeeds::default()), @"
        Error: no memory limit: the JVM takes a quarter of the node's memory as its heap
        Error: QoS class BestEffort: the pod has no requests and no limits
        ");
    }

    #[test]
    fn quantities_and_heaps_that_cannot_be_meant_are_named() {
        let mut bad = container();
        bad.limits.memory = Some(Bytes::from_bytes(1));
        bad.requests.memory = bad.limits.memory;
        bad.unreadable = vec!["requests.cpu `1 core`".to_owned()];
        insta::assert_snapshot!(text(&bad, MeasuredNeeds::default()), @"
        Error: requests.cpu `1 core` is no quantity, and the API server refuses it
        Error: the memory limit is 1 byte: no JVM starts in it
        Error: the memory request is 1 byte: no JVM starts in it
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
        Warning: the memory request is 128Mi, less than the heap of 256Mi it starts with (-Xms256m)
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
