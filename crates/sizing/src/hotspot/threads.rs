//! Thread counts: collector workers, JIT compilers, the common pool.

use super::heap::has_generational_z;
use super::{CollectorKind, HotSpotRefusal, MachineSize};
use crate::Bytes;
use crate::jdk::{JavaVersion, JdkRelease};
use crate::options::JvmOptionSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcThreads {
    pub parallel: u32,
    pub concurrent: u32,
    pub refinement: u32,
}

/// Parallel workers for this many processors: all up to 8, then 5 of every 8.
///
/// Source: workerPolicy.cpp, `WorkerPolicy::calc_parallel_worker_threads` (5/8 on x86-64 and
/// aarch64).
pub const fn parallel_workers(cpus: u32) -> u32 {
    if cpus <= 8 {
        cpus
    } else {
        8 + (cpus - 8) * 5 / 8
    }
}

pub fn collector_threads(
    jdk: JdkRelease,
    machine: MachineSize,
    collector: CollectorKind,
    max_heap: Bytes,
    options: &JvmOptionSet,
) -> Result<GcThreads, HotSpotRefusal> {
    let set = |flag: &str| {
        options
            .count_value(flag)
            .and_then(|n| u32::try_from(n).ok())
    };
    let parallel_set = set("ParallelGCThreads");
    let concurrent_set = set("ConcGCThreads");
    let threads = match collector {
        CollectorKind::Serial | CollectorKind::Epsilon => GcThreads {
            parallel: parallel_set.unwrap_or(0),
            concurrent: concurrent_set.unwrap_or(0),
            refinement: set("G1ConcRefinementThreads").unwrap_or(0),
        },
        CollectorKind::Parallel => GcThreads {
            parallel: parallel_set.unwrap_or(parallel_workers(machine.cpus)),
            concurrent: concurrent_set.unwrap_or(0),
            refinement: set("G1ConcRefinementThreads").unwrap_or(0),
        },
        // (3 + workers) / 4, as concurrentMarkSweepGeneration.cpp has it.
        CollectorKind::Cms => {
            let parallel = parallel_set.unwrap_or(parallel_workers(machine.cpus));
            GcThreads {
                parallel,
                concurrent: concurrent_set.unwrap_or(parallel.div_ceil(4)),
                refinement: 0,
            }
        }
        CollectorKind::G1 => {
            let parallel = parallel_set.unwrap_or(parallel_workers(machine.cpus));
            // Zero means "choose for me" to G1's concurrent marking.
            let concurrent = concurrent_set.filter(|n| *n > 0);
            GcThreads {
                parallel,
                concurrent: concurrent.unwrap_or(((parallel + 2) / 4).max(1)),
                refinement: set("G1ConcRefinementThreads").unwrap_or(parallel),
            }
        }
        CollectorKind::Z => z(
            jdk,
            machine,
            max_heap,
            parallel_set,
            concurrent_set,
            options,
        ),
        CollectorKind::Shenandoah => shenandoah(machine, parallel_set, concurrent_set),
    };
    refuse_impossible(jdk, collector, threads, parallel_set.is_some())?;
    Ok(threads)
}

/// ZGC: 60 % and 25 % of the processors, rounded up; relocation may use at most 2 % of the heap
/// with a 2 MiB page a worker.
///
/// Source: zHeuristics.cpp; agrees with the recorded grid on 17 and 25.
fn z(
    jdk: JdkRelease,
    machine: MachineSize,
    max_heap: Bytes,
    parallel: Option<u32>,
    concurrent: Option<u32>,
    options: &JvmOptionSet,
) -> GcThreads {
    let by_heap = (max_heap.as_bytes() as f64 * 0.02 / Bytes::from_mib(2).as_bytes() as f64) as u32;
    let workers = |percent: f64| {
        let by_cpus = (f64::from(machine.cpus) * percent / 100.0).ceil() as u32;
        by_cpus.min(by_heap).max(1)
    };
    let parallel = parallel.unwrap_or(workers(60.0));
    let concurrent = concurrent.unwrap_or_else(|| {
        let own = workers(25.0);
        // Generational ZGC lets the young collection use at most the parallel workers.
        if has_generational_z(jdk, options) {
            own.min(parallel.max(1))
        } else {
            own
        }
    });
    GcThreads {
        parallel,
        concurrent,
        refinement: 0,
    }
}

/// Shenandoah: half and a quarter of the processors; a count that is set bounds the other one.
///
/// Source: shenandoahArguments.cpp.
fn shenandoah(machine: MachineSize, parallel: Option<u32>, concurrent: Option<u32>) -> GcThreads {
    let own_parallel = (machine.cpus / 2).max(1);
    let own_concurrent = (machine.cpus / 4).max(1);
    let (parallel, concurrent) = match (parallel, concurrent) {
        (Some(p), None) => (p, own_concurrent.min(p)),
        (None, Some(c)) => (own_parallel.max(c), c),
        (p, c) => (p.unwrap_or(own_parallel), c.unwrap_or(own_concurrent)),
    };
    GcThreads {
        parallel,
        concurrent,
        refinement: 0,
    }
}

fn refuse_impossible(
    jdk: JdkRelease,
    collector: CollectorKind,
    threads: GcThreads,
    parallel_is_set: bool,
) -> Result<(), HotSpotRefusal> {
    let needs_workers = !matches!(collector, CollectorKind::Serial | CollectorKind::Epsilon);
    if needs_workers && threads.parallel == 0 && parallel_is_set {
        return Err(HotSpotRefusal::NoGcThreads { collector });
    }
    let is_checked = match collector {
        // Measured: 17 dies, 25 accepts.
        CollectorKind::G1 => !jdk.at_least(18),
        CollectorKind::Shenandoah => true,
        _ => false,
    };
    if is_checked && threads.concurrent > threads.parallel {
        return Err(HotSpotRefusal::ConcurrentAboveParallel {
            concurrent: threads.concurrent,
            parallel: threads.parallel,
        });
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSpotJit {
    pub is_tiered: bool,
    pub stop_at_level: u32,
    pub count: u32,
    pub c1: u32,
    pub c2: u32,
    /// Set up like the former client VM: C1 alone, one thread, a small code cache.
    pub is_client: bool,
}

impl HotSpotJit {
    pub const fn has_both_compilers(self) -> bool {
        self.is_tiered && self.stop_at_level >= 4 && !self.is_client
    }
}

/// The number of compiler threads for this many processors, before any minimum.
///
/// Source: compilationPolicy.cpp, `CompilationPolicy::initialize`.
pub fn compiler_threads(cpus: u32) -> u32 {
    let log = cpus.max(1).ilog2();
    log * log.max(1).ilog2() * 3 / 2
}

/// The JIT compilers.
///
/// `NeverActAsServerClassMachine` emulates the client VM (measured on 17 and 25).
pub fn choose_compilers(
    jdk: JdkRelease,
    machine: MachineSize,
    options: &JvmOptionSet,
) -> Result<HotSpotJit, HotSpotRefusal> {
    let stop_at_level = options.count_value("TieredStopAtLevel").unwrap_or(4).min(4) as u32;
    if stop_at_level == 0 {
        return Ok(interpreter_only(jdk, options));
    }
    let is_tiered = options.switch_value("TieredCompilation").unwrap_or(true);
    let is_client = is_tiered && options.switch_value("NeverActAsServerClassMachine") == Some(true);
    let is_c1_only = is_tiered && (stop_at_level < 4 || is_client);
    let both = is_tiered && !is_c1_only;
    // Measured: with one compiler 25 starts one thread, 17 still two.
    let least = if both || !jdk.at_least(18) { 2 } else { 1 };
    let own = if is_client {
        1
    } else {
        compiler_threads(machine.cpus).max(least)
    };
    let count = options
        .count_value("CICompilerCount")
        .map_or(own, |n| n as u32);
    let needed = if both { 2 } else { 1 };
    if count < needed {
        return Err(HotSpotRefusal::TooFewCompilers { count, needed });
    }
    let (c1, c2) = match (is_tiered, is_c1_only) {
        (_, true) => (count, 0),
        (false, _) => (0, count),
        _ => {
            let c1 = (count / 3).max(1);
            (c1, count - c1)
        }
    };
    Ok(HotSpotJit {
        is_tiered,
        stop_at_level,
        count,
        c1,
        c2,
        is_client,
    })
}

/// No JIT at all. Measured: 17 still counts two threads, 25 none; the flag keeps level 4 with -Xint.
fn interpreter_only(jdk: JdkRelease, options: &JvmOptionSet) -> HotSpotJit {
    let is_by_xint = options
        .setting("TieredStopAtLevel")
        .is_some_and(|s| s.text == "-Xint");
    HotSpotJit {
        is_tiered: false,
        stop_at_level: if is_by_xint { 4 } else { 0 },
        count: if jdk.at_least(18) { 0 } else { 2 },
        c1: 0,
        c2: 0,
        is_client: false,
    }
}

/// Parallelism of the common fork-join pool.
///
/// Source: ForkJoinPool.java: `max(N-1, 1)`. `makeCommonPool` of 8 to 16 ended in
/// `if ((parallelism = availableProcessors() - 1) <= 0) parallelism = 1`; 17 lost that and got it
/// back in 17.0.2 (JDK-8274349), so at one processor 17.0.0 and 17.0.1 have 0 (each task then gets
/// a thread). A bare `17` stands for its current update.
pub fn common_pool(jdk: JdkRelease, machine: MachineSize, options: &JvmOptionSet) -> u32 {
    let property = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=";
    let set = options.with_prefix(property).last();
    let set = set.and_then(|text| text.strip_prefix(property)?.parse().ok());
    let least = u32::from(jdk.version != JavaVersion::new(17, 1));
    set.unwrap_or((machine.cpus - 1).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_pool_has_a_worker_except_on_17_0_1() {
        let pool = |version: &str, cpus| {
            let machine = MachineSize {
                memory: Bytes::from_gib(1),
                cpus,
            };
            let jdk = JdkRelease::for_hotspot(version.parse().unwrap());
            common_pool(jdk, machine, &JvmOptionSet::none())
        };
        for version in ["8", "8u402", "11.0.20", "16.0.2", "17", "17.0.2", "25.0.3"] {
            assert_eq!(pool(version, 1), 1, "{version}");
            assert_eq!(pool(version, 4), 3, "{version}");
        }
        assert_eq!(pool("17.0.1", 1), 0);
    }
}
