//! A container of a pod as its manifest describes it: amounts, JVM options, probes.
//!
//! Owns what its JVM takes for granted where the manifest is silent. Facts: the kubelet sets a pod's
//! own limits in its cgroup.

use std::time::Duration;

use loadline_sizing::hotspot::MachineSize;
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, JvmOptionSet};

use super::LintFinding;

/// Less memory than any JVM starts in, bytes.
pub(super) const SMALLEST: u64 = 1 << 20;
const USUAL_JDK: JavaVersion = JavaVersion::from_feature(17);

/// Processors of a container without a CPU limit: with fewer the JVM takes another collector.
const USUAL_CPUS: u32 = 2;
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
    /// Where nothing in the manifest chooses one.
    pub image_heap: Option<ImageHeap>,
    /// Options of two dashes, such as `--add-opens`, which have no effect on the size.
    pub long_options: Vec<String>,
    /// Values from outside the input that may hold JVM options: `ConfigMap orders-env`.
    pub unseen: Vec<String>,
    /// The JDK, where the name of its image has it.
    pub jdk: Option<JdkRelease>,
    pub probes: Vec<ContainerProbe>,
    pub pod: PodNeeds,
    /// Everything outside the heap, as [`super::OUTSIDE_HEAP`] says.
    pub rest: Option<Bytes>,
    /// Whether it ends before the others of its pod start.
    pub is_init: bool,
    /// Volumes in memory that it writes to: each page counts as the container's.
    pub memory_volumes: Vec<MemoryVolume>,
    /// The memory calculator of Paketo's images, which chooses the heap.
    pub calculator: Option<CalculatorSettings>,
}

/// The heap that the start script of an image takes if its variable is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeap {
    pub variable: &'static str,
    pub options: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryVolume {
    pub name: String,
    /// `None`: up to the limit of the pod.
    pub most: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalculatorSettings {
    pub classes: u64,
    pub threads: u64,
    /// Percentage kept free.
    pub headroom_percent: u64,
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
            // Nodes sell requests; a missing one is the limit.
            let cpu = requests.cpu.or(limits.cpu);
            (cpu, limits.memory.or(requests.memory))
        };
        if let Some(own) = &self.pod.own {
            return paid(own);
        }
        let own = [self.own_needs()];
        let (running, starting) = if self.is_init {
            (&[][..], &own[..])
        } else {
            (&own[..], &[][..])
        };
        let all = || self.pod.running.iter().chain(running).copied();
        let cpu = all().filter_map(|needs| paid(&needs).0.map(Cpus::as_millis));
        let memory = all().filter_map(|needs| paid(&needs).1);
        // Containers that end before the others start need their room alone.
        let before = || self.pod.starting.iter().chain(starting).map(paid);
        let cpu = cpu.reduce(u32::saturating_add).map(Cpus::from_millis);
        let memory = memory.reduce(Bytes::saturating_add);
        (
            cpu.map(|all| before().filter_map(|(cpu, _)| cpu).fold(all, Cpus::max)),
            memory.map(|all| {
                before()
                    .filter_map(|(_, memory)| memory)
                    .fold(all, Bytes::max)
            }),
        )
    }

    pub(super) fn jdk(&self) -> JdkRelease {
        self.jdk.unwrap_or(JdkRelease::for_hotspot(USUAL_JDK))
    }

    pub(super) fn options(&self) -> JvmOptionSet {
        let of_image = self.image_heap.map_or("", |heap| heap.options);
        let of_image = of_image.split_whitespace().map(str::to_owned);
        JvmOptionSet::from_words(self.jvm.iter().cloned().chain(of_image))
    }

    /// The memory limit, if a JVM can start in it.
    pub(super) fn sound_limit(&self) -> Option<Bytes> {
        let limit = self.limits.memory;
        limit.filter(|limit| limit.as_bytes() >= SMALLEST)
    }

    /// The machine as its JVM sees it, with an ample one where a limit is missing.
    pub(super) fn machine(&self) -> MachineSize {
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
