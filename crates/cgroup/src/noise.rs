//! What else happened on the machine during a window: the evidence for "this measurement is not
//! valid".
//!
//! Owns the arithmetic between two readings, no thresholds. The window begins with
//! [`NoiseMeter::start_window`] and ends with [`NoiseMeter::finish_window`]; [`NoiseMeter::check_clocks`] in between
//! catches a clock that steps and steps back.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::CgroupError;
use crate::file;
use crate::group::ControlGroup;
use crate::host::{
    ClockReading, KernelThreads, MachineCpuTimes, groups_around, host_pressure, kernel_threads,
    process_time, swapped_in, work_between,
};
use crate::layout::{CgroupLayout, CgroupVersion, Controller};
use crate::reader::{CgroupReader, monotonic_ns};
use crate::sample::{self, CpuSample, PressureSample};

/// What the kernel's threads work at most for one page that a group reads again because its limit
/// had dropped it. Seen on two CPUs and a virtual disk: 0.3 us a page, 0.4 s of 12 s. Without this a
/// size just below the floor is called noise and never found too small.
const PER_REFAULT: Duration = Duration::from_micros(1);

/// What else happened. `None`: this kernel has no such number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Noise {
    pub wall: Duration,
    /// Share of the machine's CPU time that the hypervisor took, in [0, 1].
    pub steal: Option<f64>,
    /// CPU used outside loadline, as a share of the machine's CPUs, in [0, 1]. Work of the kernel's
    /// threads to read dropped pages of the groups again counts as the groups'.
    pub foreign_cpu: Option<f64>,
    /// PSI cpu "some" of the machine, share of the window, in [0, 1]. The throttling of any group
    /// counts as waiting, the trial's own too: high values alone are no sign of noise.
    pub host_cpu_pressure: Option<f64>,
    /// Share of the window in which the first group waited for a CPU that it was entitled to, in
    /// [0, 1]: its PSI cpu "full" less its own throttling and what the kernel read for it.
    pub contention: Option<f64>,
    pub swap_in_pages: Option<u64>,
    /// Largest disagreement of the clocks between two ticks.
    pub clock_jump: Duration,
    /// Throttled time of the groups around loadline and its trials: a sum over CPUs.
    pub outer_throttled: Option<Duration>,
}

#[derive(Debug)]
pub struct NoiseMeter {
    proc_root: PathBuf,
    groups: Vec<CgroupReader>,
    processes: Vec<PathBuf>,
    machine_usage: Option<PathBuf>,
    outer: Vec<(CgroupVersion, PathBuf)>,
    start: NoiseReading,
    clocks: ClockReading,
    clock_jump: Duration,
}

#[derive(Debug, Default)]
struct NoiseReading {
    at_ns: u64,
    cpu: MachineCpuTimes,
    machine_usage: Option<Duration>,
    groups: Vec<(CpuSample, PressureSample)>,
    /// Pages that the groups read again because they had been dropped.
    refaults: u64,
    kernel: KernelThreads,
    own: Duration,
    /// `None`: the process is gone.
    processes: Vec<Option<Duration>>,
    host_pressure: PressureSample,
    swapped_in: Option<u64>,
    outer_throttled: Option<Duration>,
}

impl NoiseMeter {
    /// Begins a window. `groups` are loadline's, the application's first; `processes` are children
    /// of loadline outside these groups, such as the load generator. Errors: A group that is gone,
    /// a file under /proc that cannot be read.
    pub fn start_window(
        layout: &CgroupLayout,
        groups: &[&ControlGroup],
        processes: &[u32],
    ) -> Result<Self, CgroupError> {
        let proc_root = layout.proc_root().to_owned();
        let mut readers = Vec::new();
        for group in groups {
            readers.push(group.open_reader()?);
        }
        let stat_file = |pid: &u32| proc_root.join(pid.to_string()).join("stat");
        let mut meter = Self {
            processes: processes.iter().map(stat_file).collect(),
            proc_root,
            groups: readers,
            machine_usage: machine_usage_file(layout),
            outer: outer_stat_files(layout),
            start: NoiseReading::default(),
            clocks: ClockReading::now(),
            clock_jump: Duration::ZERO,
        };
        meter.start = meter.read()?;
        Ok(meter)
    }

    /// Compares the clocks with the last tick. Call it once a second.
    pub fn check_clocks(&mut self) {
        let clocks = ClockReading::now();
        self.clock_jump = self.clock_jump.max(clocks.jump_since(self.clocks));
        self.clocks = clocks;
    }

    pub fn finish_window(mut self) -> Result<Noise, CgroupError> {
        self.check_clocks();
        let end = self.read()?;
        let start = &self.start;
        let wall = Duration::from_nanos(end.at_ns.saturating_sub(start.at_ns));
        let cpu = end.cpu.since(start.cpu);
        let served = refault_work(start, &end);
        let foreign = foreign_time(start, &end).saturating_sub(served);
        let swapped_in = end.swapped_in.zip(start.swapped_in);
        let throttled_before = start.outer_throttled.unwrap_or_default();
        let throttled = end.outer_throttled;
        Ok(Noise {
            wall,
            steal: time_share(cpu.steal, cpu.total_time()),
            foreign_cpu: time_share(foreign, cpu.total_time()),
            host_cpu_pressure: pressure_some(&start.host_pressure, &end.host_pressure, wall),
            contention: cpu_contention(start.groups.first(), end.groups.first(), served, wall),
            swap_in_pages: swapped_in.map(|(end, start)| end.saturating_sub(start)),
            clock_jump: self.clock_jump,
            outer_throttled: throttled.map(|time| time.saturating_sub(throttled_before)),
        })
    }

    fn read(&mut self) -> Result<NoiseReading, CgroupError> {
        let at_ns = monotonic_ns();
        let mut groups = Vec::new();
        let mut refaults = 0;
        for reader in &mut self.groups {
            let mut cpu = CpuSample::default();
            reader.read_cpu(&mut cpu)?;
            refaults += reader.read_memory()?.refault_file.unwrap_or(0);
            groups.push((cpu, reader.read_pressure()?));
        }
        let own = file::read(&self.proc_root.join("self/stat"))?;
        let processes = self.processes.iter().map(|stat| {
            let text = file::read_optional(stat).ok().flatten()?;
            process_time(&text)
        });
        let usage = self.machine_usage.as_deref().map(file::read).transpose()?;
        Ok(NoiseReading {
            at_ns,
            cpu: MachineCpuTimes::read(&self.proc_root)?,
            machine_usage: usage.and_then(|u| u.trim().parse().ok().map(Duration::from_nanos)),
            groups,
            refaults,
            kernel: kernel_threads(&self.proc_root),
            own: process_time(&own).unwrap_or_default(),
            processes: processes.collect(),
            host_pressure: host_pressure(&self.proc_root)?,
            swapped_in: swapped_in(&self.proc_root)?,
            outer_throttled: self.read_outer()?,
        })
    }

    fn read_outer(&self) -> Result<Option<Duration>, CgroupError> {
        let mut sum = None;
        for (version, path) in &self.outer {
            let mut cpu = CpuSample::default();
            let text = file::read_optional(path)?.unwrap_or_default();
            match version {
                CgroupVersion::V1 => sample::cpu_stat_v1(&text, &mut cpu),
                CgroupVersion::V2 => sample::cpu_stat_v2(&text, &mut cpu),
            }
            if let Some(time) = cpu.throttled_time {
                sum = Some(time.saturating_add(sum.unwrap_or_default()));
            }
        }
        Ok(sum)
    }
}

/// The exact CPU time of the machine: cpuacct.usage of the v1 root. /proc/stat counts by sampling
/// on most kernels. `cgroup.sane_behavior` exists only in the real root, not in a container's.
fn machine_usage_file(layout: &CgroupLayout) -> Option<PathBuf> {
    let place = layout.hierarchy_of(Controller::Cpuacct)?;
    let is_root = place.mount.join("cgroup.sane_behavior").exists();
    is_root.then(|| place.mount.join("cpuacct.usage"))
}

fn outer_stat_files(layout: &CgroupLayout) -> Vec<(CgroupVersion, PathBuf)> {
    let Some(place) = layout.hierarchy_of(Controller::Cpu) else {
        return Vec::new();
    };
    let around = groups_around(place).into_iter();
    around
        .map(|(dir, _)| (place.version, dir.join("cpu.stat")))
        .collect()
}

fn foreign_time(start: &NoiseReading, end: &NoiseReading) -> Duration {
    let busy = match (start.machine_usage, end.machine_usage) {
        (Some(start), Some(end)) => end.saturating_sub(start),
        _ => end.cpu.since(start.cpu).busy,
    };
    let mut ours = end.own.saturating_sub(start.own);
    for ((before, _), (after, _)) in start.groups.iter().zip(&end.groups) {
        let (Some(before), Some(after)) = (before.usage, after.usage) else {
            continue;
        };
        ours += after.saturating_sub(before);
    }
    for (before, after) in start.processes.iter().zip(&end.processes) {
        match (before, after) {
            (Some(before), Some(after)) => ours += after.saturating_sub(*before),
            // It ended, and loadline's own time has grown by all that it ever used.
            (Some(before), None) => ours = ours.saturating_sub(*before),
            (None, _) => {}
        }
    }
    busy.saturating_sub(ours)
}

/// What the kernel's threads worked to read the groups' dropped pages again.
fn refault_work(start: &NoiseReading, end: &NoiseReading) -> Duration {
    let pages = end.refaults.saturating_sub(start.refaults);
    let most = PER_REFAULT.saturating_mul(u32::try_from(pages).unwrap_or(u32::MAX));
    work_between(&start.kernel, &end.kernel).min(most)
}

fn time_share(part: Duration, whole: Duration) -> Option<f64> {
    (!whole.is_zero()).then(|| (part.as_secs_f64() / whole.as_secs_f64()).clamp(0.0, 1.0))
}

fn pressure_some(start: &PressureSample, end: &PressureSample, wall: Duration) -> Option<f64> {
    time_share(end.cpu?.some.saturating_sub(start.cpu?.some), wall)
}

/// PSI cpu "full" is the share of time in which no task of the group ran although some could,
/// averaged over the CPUs it was not idle on. Throttled time is a sum over CPUs, so it is divided
/// by the number of CPUs that the group used, weighted by their usage; `served`, the work of kernel
/// threads for it, is such a sum too. Measured on two CPUs with busy and bursty groups, throttled
/// or not: 0.00 to 0.03 undisturbed, 0.09 to 0.28 next to one or two endless loops.
fn cpu_contention(
    start: Option<&(CpuSample, PressureSample)>,
    end: Option<&(CpuSample, PressureSample)>,
    served: Duration,
    wall: Duration,
) -> Option<f64> {
    let ((cpu_start, psi_start), (cpu_end, psi_end)) = (start?, end?);
    let full = psi_end.cpu?.full?.saturating_sub(psi_start.cpu?.full?);
    let throttled = match (cpu_start.throttled_time, cpu_end.throttled_time) {
        (Some(start), Some(end)) => end.saturating_sub(start),
        _ => Duration::ZERO,
    };
    let cpus = cpus_used(cpu_start, cpu_end);
    let waited =
        time_share(full, wall)? - (throttled + served).as_secs_f64() / cpus / wall.as_secs_f64();
    Some(waited.clamp(0.0, 1.0))
}

/// (sum of u)^2 / (sum of u^2) over the CPUs: 1 when one CPU did all, n when n shared it evenly.
/// Without per-CPU usage (v2) it is 1, the cautious end: contention is never overestimated.
fn cpus_used(start: &CpuSample, end: &CpuSample) -> f64 {
    let both = start.usage_percpu.iter().zip(&end.usage_percpu);
    let used = both.map(|(a, b)| b.saturating_sub(*a).as_secs_f64());
    let used: Vec<f64> = used.collect();
    let squares: f64 = used.iter().map(|u| u * u).sum();
    let sum: f64 = used.iter().sum();
    if squares > 0.0 {
        (sum * sum / squares).max(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests;
