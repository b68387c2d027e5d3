//! The same container on a host with another number of CPUs: what the JVM and the C library take
//! from the host there, and the options that keep it as it was measured.
//!
//! Owns which limits hide the host. Never knows a node's memory: where nothing limits memory, the
//! heap follows the host and that is said.
//!
//! Sources: cgroupUtil_linux.cpp, `CgroupUtil::processor_count` (the CPUs it may run on, at most the
//! quota rounded up); JDK-8281181 (shares counted until then); glibc's malloc/arena.c,
//! `arena_get2` (at most 8 arenas a CPU of the host on 64 bits, whatever the quota).

use super::{CollectorKind, HotSpotErgonomics, HotSpotRefusal, MachineSize, predict};
use crate::jdk::JdkRelease;
use crate::options::{JvmOptionSet, gate};
use crate::regions::gc_native;
use crate::sight::{counts_shares, without_container_support};
use crate::{Bytes, Cpus};

/// The variable that bounds the arenas of glibc's malloc; other C libraries ignore it.
pub const ARENAS: &str = "MALLOC_ARENA_MAX";

/// Arenas that glibc makes at most for each CPU of the host, on 64 bits.
const ARENAS_A_CPU: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredContainer {
    pub memory: Option<Bytes>,
    pub host_memory: Bytes,
    pub cpu: Option<Cpus>,
    /// v1 `cpu.shares`, 1024 each CPU; a pod's CPU request is one.
    pub shares: Option<u64>,
    pub cpus: u32,
}

impl MeasuredContainer {
    /// Processors as this JVM counts them with `cpus` usable CPUs.
    pub fn counted_processors(&self, jdk: JdkRelease, options: &JvmOptionSet, cpus: u32) -> u32 {
        let cpus = cpus.max(1);
        if without_container_support(jdk, options).is_some() {
            return cpus;
        }
        let by_shares = || {
            let shares = self.shares.filter(|n| *n != 1024 && counts_shares(jdk))?;
            u32::try_from(shares.div_ceil(1024)).ok()
        };
        let limit = self.cpu.map(Cpus::ceil).or_else(by_shares);
        limit.map_or(cpus, |limit| limit.clamp(1, cpus))
    }

    fn seen_machine(&self, jdk: JdkRelease, options: &JvmOptionSet, cpus: u32) -> MachineSize {
        let is_blind = without_container_support(jdk, options).is_some();
        let limit = self.memory.filter(|_| !is_blind);
        MachineSize {
            memory: limit.unwrap_or(self.host_memory).min(self.host_memory),
            cpus: self.counted_processors(jdk, options, cpus),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostChange {
    pub here: HotSpotErgonomics,
    pub there: HotSpotErgonomics,
    pub arenas: (u32, u32),
    pub heap_follows_host: Option<String>,
}

pub fn predict_move(
    jdk: JdkRelease,
    container: &MeasuredContainer,
    options: &JvmOptionSet,
    node: u32,
) -> Result<HostChange, HotSpotRefusal> {
    let on = |cpus| predict(jdk, container.seen_machine(jdk, options, cpus), options);
    let is_heap_set = options.is_set("MaxHeapSize");
    let why = match without_container_support(jdk, options) {
        Some(why) => Some(why),
        None if container.memory.is_none() => Some("it has no memory limit".to_owned()),
        None => None,
    };
    Ok(HostChange {
        here: on(container.cpus)?,
        there: on(node)?,
        arenas: (
            ARENAS_A_CPU.saturating_mul(container.cpus.max(1)),
            ARENAS_A_CPU.saturating_mul(node.max(1)),
        ),
        heap_follows_host: why.filter(|_| !is_heap_set),
    })
}

impl HostChange {
    pub fn changes_processors(&self) -> bool {
        self.here.machine.cpus != self.there.machine.cpus
    }

    /// The options that keep the JVM as measured; empty if its defaults already do.
    pub fn pins(&self) -> Vec<String> {
        let mut pins = Vec::new();
        if self.heap_follows_host.is_some() {
            pins.push(format!("-XX:MaxHeapSize={}", self.here.heap.max.as_bytes()));
        }
        if !self.changes_processors() {
            return pins;
        }
        let here = &self.here;
        // One count decides collector, threads and pools alike.
        if gate::is_known(here.jdk, "ActiveProcessorCount") {
            pins.push(format!("-XX:ActiveProcessorCount={}", here.machine.cpus));
            return pins;
        }
        pins.push(format!("-XX:+{}", here.collector.flag()));
        if here.collector != CollectorKind::Serial {
            pins.push(format!(
                "-XX:ParallelGCThreads={}",
                here.gc_threads.parallel
            ));
        }
        if here.gc_threads.concurrent > 0 {
            pins.push(format!("-XX:ConcGCThreads={}", here.gc_threads.concurrent));
        }
        pins.push(format!("-XX:CICompilerCount={}", here.compilers.count));
        let pool = "-Djava.util.concurrent.ForkJoinPool.common.parallelism";
        pins.push(format!("{pool}={}", here.common_pool));
        pins
    }

    /// What the collector's own memory grows by there, from its threads and the heap.
    pub fn more_gc_native(&self) -> Bytes {
        let of = |e: &HotSpotErgonomics| {
            let cost = gc_native::collector_cost(e.jdk, e.collector, e.gc_threads.parallel);
            let by_heap = (e.heap.max.as_bytes() as f64 * cost.share) as u64;
            cost.fixed.saturating_add(Bytes::from_bytes(by_heap))
        };
        of(&self.there).saturating_sub(of(&self.here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(memory: u64, cpu: Option<u32>, cpus: u32) -> MeasuredContainer {
        MeasuredContainer {
            memory: Some(Bytes::from_mib(memory)),
            host_memory: Bytes::from_gib(16),
            cpu: cpu.map(Cpus::from_millis),
            shares: None,
            cpus,
        }
    }

    fn on_64(jdk: &str, container: &MeasuredContainer, options: &[&str]) -> HostChange {
        let jdk = JdkRelease::for_hotspot(jdk.parse().unwrap());
        let options = JvmOptionSet::from_words(options.iter().copied());
        predict_move(jdk, container, &options, 64).unwrap()
    }

    #[test]
    fn a_cpu_limit_hides_the_host() {
        for (cpu, cpus) in [(500, 1), (1000, 1), (1500, 2)] {
            let moved = on_64("25", &container(4096, Some(cpu), cpus), &[]);
            assert!(!moved.changes_processors(), "{cpu}");
            assert!(moved.pins().is_empty());
            assert_eq!(moved.here, moved.there);
            assert_eq!(moved.arenas, (8 * cpus, 512));
        }
    }

    #[test]
    fn without_a_cpu_limit_everything_follows_the_host() {
        let moved = on_64("17", &container(2048, None, 2), &[]);
        let (here, there) = (&moved.here, &moved.there);
        assert_eq!((here.machine.cpus, there.machine.cpus), (2, 64));
        // Rows of the recorded grid at N = 2 and 64.
        assert_eq!(
            (here.gc_threads.parallel, there.gc_threads.parallel),
            (2, 43)
        );
        assert_eq!(
            (here.gc_threads.concurrent, there.gc_threads.concurrent),
            (1, 11)
        );
        assert_eq!((here.compilers.count, there.compilers.count), (2, 18));
        assert_eq!((here.common_pool, there.common_pool), (1, 63));
        assert_eq!(moved.pins(), ["-XX:ActiveProcessorCount=2"]);
        // 41 more workers at 2.15 MB.
        assert_eq!(moved.more_gc_native(), Bytes::from_bytes(88_150_000));
    }

    #[test]
    fn what_is_pinned_makes_the_jvm_choose_the_same_everywhere() {
        for jdk in ["8", "8u181", "11", "17", "17.0.3", "21", "25", "27"] {
            for memory in [300, 1792, 8192] {
                let container = container(memory, None, 2);
                let pins = on_64(jdk, &container, &[]).pins();
                let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
                let pinned = on_64(jdk, &container, &pins).there;
                let here = on_64(jdk, &container, &[]).here;
                assert_eq!(pinned.collector, here.collector, "{jdk} {memory}");
                assert_eq!(pinned.heap, here.heap, "{jdk} {memory}");
                assert_eq!(
                    pinned.compilers.count, here.compilers.count,
                    "{jdk} {memory}"
                );
                assert_eq!(pinned.common_pool, here.common_pool, "{jdk} {memory}");
                let threads = (pinned.gc_threads.parallel, pinned.gc_threads.concurrent);
                let own = (here.gc_threads.parallel, here.gc_threads.concurrent);
                assert_eq!(threads, own, "{jdk} {memory}");
            }
        }
    }

    #[test]
    fn a_quota_above_the_cpus_here_shows_more_of_them_there() {
        let moved = on_64("25", &container(4096, Some(4000), 2), &[]);
        assert_eq!((moved.here.machine.cpus, moved.there.machine.cpus), (2, 4));
        assert_eq!(moved.pins(), ["-XX:ActiveProcessorCount=2"]);
    }

    #[test]
    fn old_jdks_count_shares_and_blind_ones_the_host() {
        let by_request = MeasuredContainer {
            shares: Some(1536),
            ..container(512, None, 2)
        };
        for (jdk, processors) in [("17.0.4", 2), ("17.0.5", 64), ("17", 64), ("25", 64)] {
            let there = on_64(jdk, &by_request, &[]).there;
            assert_eq!(there.machine.cpus, processors, "{jdk}");
        }
        let limited = container(512, Some(1000), 1);
        let blind = on_64("17", &limited, &["-XX:-UseContainerSupport"]);
        assert_eq!(blind.there.machine.cpus, 64);
        assert!(blind.heap_follows_host.is_some(), "and its memory");
        assert!(blind.pins()[0].starts_with("-XX:MaxHeapSize="));
        assert_eq!(
            on_64("8u181", &limited, &["-Xmx64m"]).there.machine.cpus,
            64
        );
    }

    #[test]
    fn what_is_pinned_already_stays() {
        let moved = on_64(
            "21",
            &container(2048, None, 2),
            &["-XX:ActiveProcessorCount=2"],
        );
        assert!(!moved.changes_processors() && moved.pins().is_empty());
    }
}
