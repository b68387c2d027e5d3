//! The one clock: CLOCK_MONOTONIC in ns, as the JVM's log and the cgroup sampler use it.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

pub fn clock_ns() -> u64 {
    timespec_nanos(clock_gettime(ClockId::Monotonic))
}

pub fn process_cpu() -> Duration {
    Duration::from_nanos(timespec_nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

pub(crate) fn to_timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

fn timespec_nanos(t: Timespec) -> u64 {
    // Neither clock is ever negative.
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
