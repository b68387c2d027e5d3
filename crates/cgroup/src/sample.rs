//! What a group has used: counters and gauges, under the kernel's names, with their units.
//!
//! Owns the types and the parsers of the statistics files (pure functions). `None` means that
//! this kernel has no such file or key, never zero. Opening and reading is in [`crate::reader`].

use std::time::Duration;

use loadline_sizing::Bytes;

use crate::proc_text::{keyed_value, visit_keyed_values};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupSample {
    /// Just before the first file was read: CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    pub cpu: CpuSample,
    pub memory: Option<MemorySample>,
    pub pressure: Option<PressureSample>,
    pub pids_current: Option<u64>,
}

impl CgroupSample {
    /// Whether OOM kills were read. While an engine removes a group on v1, the group of the memory
    /// controller may be gone before the others.
    pub fn has_oom_kills(&self) -> bool {
        self.memory.is_some_and(|memory| memory.oom_kill.is_some())
    }
}

/// CPU counters. All but the last two grow for the life of the group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuSample {
    pub usage: Option<Duration>,
    pub user: Option<Duration>,
    pub system: Option<Duration>,
    /// CPU time used on each CPU (v1 only); empty where the kernel does not give it.
    pub usage_percpu: Vec<Duration>,
    /// Periods with runnable tasks. It grows at the period boundary.
    pub nr_periods: Option<u64>,
    /// Of them, throttled. It grows at the period boundary.
    pub nr_throttled: Option<u64>,
    /// Time throttled, **a sum over CPUs: it may exceed wall time**. It grows when a CPU is
    /// let go again, by the whole interval: a pending one is invisible.
    pub throttled_time: Option<Duration>,
    /// Periods in which saved quota was used (Linux 5.14).
    pub nr_bursts: Option<u64>,
    /// CPU time beyond the quota in them (Linux 5.14).
    pub burst_time: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySample {
    pub usage: Option<Bytes>,
    /// Highest usage since the group was made (v2: Linux 5.19).
    pub peak: Option<Bytes>,
    /// Anonymous memory: heap, stacks (v1 `rss`, v2 `anon`).
    pub anon: Option<Bytes>,
    /// Of it, in transparent huge pages (v1 `rss_huge`, v2 `anon_thp`).
    pub anon_huge: Option<Bytes>,
    /// Page cache, tmpfs included (v1 `cache`, v2 `file`).
    pub file: Option<Bytes>,
    pub inactive_file: Option<Bytes>,
    /// Of the page cache what belongs to no file of a disk: tmpfs, and the heap of ZGC.
    pub shmem: Option<Bytes>,
    /// Kernel memory: stacks of threads, page tables, sockets (v1 kmem, v2 Linux 5.18 or the parts
    /// that older ones tell).
    pub kernel: Option<Bytes>,
    /// File pages that had to be read again after reclaim.
    pub refault_file: Option<u64>,
    pub pgmajfault: Option<u64>,
    /// Processes that the kernel killed for memory **in this group itself**.
    pub oom_kill: Option<u64>,
}

impl MemorySample {
    /// Usage less inactive file pages, not below zero: what kubelet and cAdvisor call the working
    /// set.
    pub fn working_set(&self) -> Option<Bytes> {
        Some(self.usage?.saturating_sub(self.inactive_file?))
    }

    /// Unreclaimable memory: anonymous, shared and kernel memory. If the kernel does not report the
    /// last, it counts as zero.
    pub fn unreclaimable(&self) -> Option<Bytes> {
        let pages = self.anon?.saturating_add(self.shmem?);
        Some(pages.saturating_add(self.kernel.unwrap_or_default()))
    }

    pub fn droppable(&self) -> Option<Bytes> {
        Some(self.file?.saturating_sub(self.shmem?))
    }
}

/// Stall time since the group was made. Reading it more often than every 20 ms loses stall time
/// for every reader: the kernel counts non-idle time in whole jiffies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PressureSample {
    pub cpu: Option<Pressure>,
    pub memory: Option<Pressure>,
    pub io: Option<Pressure>,
}

/// The totals of one PSI file (kernel Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    pub some: Duration,
    pub full: Option<Duration>,
}

/// v2 cpu.stat: microseconds. Without the cpu controller only the first three.
pub(crate) fn cpu_stat_v2(text: &str, cpu: &mut CpuSample) {
    let micros = |v| Some(Duration::from_micros(v));
    visit_keyed_values(text, |key, value| match key {
        "usage_usec" => cpu.usage = micros(value),
        "user_usec" => cpu.user = micros(value),
        "system_usec" => cpu.system = micros(value),
        "nr_periods" => cpu.nr_periods = Some(value),
        "nr_throttled" => cpu.nr_throttled = Some(value),
        "throttled_usec" => cpu.throttled_time = micros(value),
        "nr_bursts" => cpu.nr_bursts = Some(value),
        "burst_usec" => cpu.burst_time = micros(value),
        _ => {}
    });
}

/// v1 cpu.stat: nanoseconds.
pub(crate) fn cpu_stat_v1(text: &str, cpu: &mut CpuSample) {
    let nanos = |v| Some(Duration::from_nanos(v));
    visit_keyed_values(text, |key, value| match key {
        "nr_periods" => cpu.nr_periods = Some(value),
        "nr_throttled" => cpu.nr_throttled = Some(value),
        "throttled_time" => cpu.throttled_time = nanos(value),
        "nr_bursts" => cpu.nr_bursts = Some(value),
        "burst_time" => cpu.burst_time = nanos(value),
        _ => {}
    });
}

/// v1 cpuacct.usage_percpu: nanoseconds on each CPU, one line. The sum is the usage.
pub(crate) fn usage_percpu(text: &str, cpu: &mut CpuSample) {
    let parse = |v: &str| v.parse().ok().map(Duration::from_nanos);
    let each = &mut cpu.usage_percpu;
    each.clear();
    each.extend(text.split_ascii_whitespace().map_while(parse));
    let sum = each
        .iter()
        .try_fold(Duration::ZERO, |sum, v| sum.checked_add(*v));
    cpu.usage = sum.filter(|_| !each.is_empty());
}

/// v1 memory.stat. The `total_` keys include sub-groups, as memory.usage_in_bytes does.
pub(crate) fn memory_stat_v1(text: &str, memory: &mut MemorySample) {
    let bytes = |v| Some(Bytes::from_bytes(v));
    visit_keyed_values(text, |key, value| match key {
        "total_rss" => memory.anon = bytes(value),
        "total_rss_huge" => memory.anon_huge = bytes(value),
        "total_cache" => memory.file = bytes(value),
        "total_inactive_file" => memory.inactive_file = bytes(value),
        "total_shmem" => memory.shmem = bytes(value),
        // Before Linux 5.9 there was one counter for both kinds of pages.
        "total_workingset_refault_file" | "total_workingset_refault" => {
            memory.refault_file = Some(value);
        }
        "total_pgmajfault" => memory.pgmajfault = Some(value),
        _ => {}
    });
}

pub(crate) fn memory_stat_v2(text: &str, memory: &mut MemorySample) {
    let bytes = |v| Some(Bytes::from_bytes(v));
    let (mut whole, mut parts, mut sockets) = (None, None, 0);
    visit_keyed_values(text, |key, value| match key {
        "anon" => memory.anon = bytes(value),
        "anon_thp" => memory.anon_huge = bytes(value),
        "file" => memory.file = bytes(value),
        "inactive_file" => memory.inactive_file = bytes(value),
        "shmem" => memory.shmem = bytes(value),
        "kernel" => whole = Some(value),
        "kernel_stack" | "pagetables" | "percpu" | "slab" => {
            parts = Some(parts.unwrap_or(0u64).saturating_add(value));
        }
        "sock" => sockets = value,
        "workingset_refault_file" | "workingset_refault" => memory.refault_file = Some(value),
        "pgmajfault" => memory.pgmajfault = Some(value),
        _ => {}
    });
    // Buffers of sockets are charged, but not part of `kernel`.
    memory.kernel = whole
        .or(parts)
        .map(|kernel| Bytes::from_bytes(kernel.saturating_add(sockets)));
}

/// memory.oom_control (v1), memory.events and memory.events.local (v2): the count of kills.
pub(crate) fn oom_kill(text: &str) -> Option<u64> {
    keyed_value(text, "oom_kill")
}

pub(crate) fn parse_pressure(text: &str) -> Option<Pressure> {
    let total = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name))?;
        let total = line.rsplit_once("total=")?.1.trim();
        total.parse().ok().map(Duration::from_micros)
    };
    Some(Pressure {
        some: total("some ")?,
        full: total("full "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_counters_are_nanoseconds_and_usage_is_the_sum_over_cpus() {
        let mut cpu = CpuSample::default();
        cpu_stat_v1(include_str!("../tests/data/hybrid/cpu.stat"), &mut cpu);
        usage_percpu(
            include_str!("../tests/data/hybrid/cpuacct.usage_percpu"),
            &mut cpu,
        );
        assert_eq!(cpu.nr_periods, Some(26));
        assert_eq!(cpu.nr_throttled, Some(25));
        assert_eq!(
            cpu.throttled_time,
            Some(Duration::from_nanos(1_413_240_901))
        );
        assert_eq!(cpu.usage_percpu.len(), 2);
        assert_eq!(
            cpu.usage,
            Some(Duration::from_nanos(665_293_615 + 104_982_782))
        );
    }

    #[test]
    fn v2_counters_are_microseconds_and_some_may_be_missing() {
        let mut cpu = CpuSample::default();
        cpu_stat_v2(include_str!("../tests/data/v2/cpu.stat"), &mut cpu);
        assert_eq!(cpu.usage, Some(Duration::from_millis(800)));
        assert_eq!(cpu.throttled_time, Some(Duration::from_millis(1730)));
        assert_eq!(cpu.nr_bursts, Some(0));
        let mut bare = CpuSample::default();
        cpu_stat_v2(
            include_str!("../tests/data/hybrid/unified/cpu.stat"),
            &mut bare,
        );
        assert_eq!(bare.user, Some(Duration::from_micros(762_469)));
        assert_eq!((bare.nr_periods, bare.throttled_time), (None, None));
    }

    #[test]
    fn memory_has_the_same_meaning_on_both() {
        let mut v1 = MemorySample::default();
        memory_stat_v1(include_str!("../tests/data/hybrid/memory.stat"), &mut v1);
        assert_eq!(v1.anon, Some(Bytes::from_bytes(28_672)));
        assert_eq!(v1.anon_huge, Some(Bytes::from_bytes(0)));
        assert_eq!(v1.file, Some(Bytes::from_bytes(2_998_272)));
        assert_eq!(v1.refault_file, Some(732));
        let mut v2 = MemorySample::default();
        memory_stat_v2(include_str!("../tests/data/v2/memory.stat"), &mut v2);
        assert_eq!(v2.anon, Some(Bytes::from_bytes(28_672)));
        assert_eq!(v2.anon_huge, None, "this kernel has no huge pages");
        assert_eq!(v2.pgmajfault, Some(6));
        assert_eq!(v2.working_set(), None);
        let kernel = (v1.kernel, v2.kernel, v2.unreclaimable());
        let bytes = |n| Some(Bytes::from_bytes(n));
        assert_eq!(kernel, (None, bytes(4096), bytes(28_672 + 4096)));
        assert_eq!((v1.shmem, v1.droppable()), (bytes(0), v1.file));
        let older = "kernel_stack 10\npagetables 200\nsock 3000\nslab 40000\n";
        memory_stat_v2(older, &mut v2);
        assert_eq!(v2.kernel, bytes(43_210));
        v2.usage = Some(Bytes::from_bytes(180_224));
        assert_eq!(v2.working_set(), v2.usage);
    }

    #[test]
    fn kills_and_pressure_are_found() {
        for text in [
            include_str!("../tests/data/hybrid/memory.oom_control"),
            include_str!("../tests/data/v2/memory.events.local"),
        ] {
            assert_eq!(oom_kill(text), Some(1));
        }
        assert_eq!(oom_kill("oom_kill_disable 0\nunder_oom 0\n"), None);
        let cpu =
            parse_pressure(include_str!("../tests/data/hybrid/unified/cpu.pressure")).unwrap();
        assert_eq!(cpu.some, Duration::from_micros(1_348_686));
        assert_eq!(cpu.full, Some(Duration::from_micros(1_347_491)));
        let old = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure(old).unwrap().full, None);
    }
}
