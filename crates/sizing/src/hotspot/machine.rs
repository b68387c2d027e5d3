//! The machine that HotSpot sizes itself for.

use crate::options::JvmOptionSet;
use crate::{Bytes, Cpus};

/// The memory page on x86-64 and most aarch64 systems.
pub(crate) const PAGE: Bytes = Bytes::from_kib(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSize {
    /// Physical memory: the container's limit, or the host's memory without one.
    pub memory: Bytes,
    /// Processors: what `Runtime.availableProcessors()` would say, at least 1.
    pub cpus: u32,
}

impl MachineSize {
    /// A machine from a memory limit and an amount of CPU: HotSpot rounds a quota up.
    ///
    /// Source: cgroupUtil_linux.cpp, `CgroupUtil::processor_count`; measured: quota 100001 of
    /// period 100000 gives 2.
    pub fn from_limits(memory: Bytes, cpus: Cpus) -> Self {
        let cpus = cpus.ceil().max(1);
        Self { memory, cpus }
    }

    /// The same machine as these options make the JVM see it: `ActiveProcessorCount` replaces the
    /// count, except 0, which means "not set".
    pub fn as_overridden_by(self, options: &JvmOptionSet) -> Self {
        let count = options
            .count_value("ActiveProcessorCount")
            .filter(|n| *n > 0);
        let count = count.and_then(|n| u32::try_from(n).ok());
        Self {
            cpus: count.unwrap_or(self.cpus),
            ..self
        }
    }
}
