//! The CPUs that this process may use. CPU 0 may be missing.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// All allowed CPUs.
pub fn allowed() -> Vec<usize> {
    let allowed = sched_getaffinity(None).expect("a process may ask for its CPUs");
    let cpus = 0..CpuSet::MAX_CPU;
    cpus.filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// The first one, as a plan names it.
pub fn first() -> u32 {
    let first = allowed().first().copied().expect("it runs somewhere");
    first as u32
}

/// Keeps the calling thread on one CPU.
pub fn pin(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).expect("the CPU is allowed");
}
