//! Facts of the machine around the groups: CPUs, memory, kernel, clocks, outer limits.
//!
//! Reads only. The root of /proc is a parameter. Formats: proc(5), kernel
//! Documentation/filesystems/proc.rst and accounting/psi.rst.

mod clock;
mod cpu;
mod kernel;
mod memory;
mod outer;

use std::path::Path;

use loadline_sizing::CpuSet;
use rustix::io::Errno;

use crate::error::CgroupError;
use crate::file;
use crate::sample::{self, PressureSample};

pub use clock::ClockReading;
pub use cpu::MachineCpuTimes;
pub(crate) use cpu::{from_ticks, process_time};
pub(crate) use kernel::{KernelThreads, kernel_threads, work_between};
pub use memory::MachineMemory;
pub(crate) use memory::swapped_in;
pub use outer::{OuterLimit, OuterLimitScope, outer_conflict, outer_limits};
pub(crate) use outer::{groups_around, read_limit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    pub kernel: String,
    /// CPU model as the kernel names it; `None` where it gives no name (some ARM machines).
    pub cpu_model: Option<String>,
    pub cpus_allowed: CpuSet,
    pub memory: MachineMemory,
}

impl HostFacts {
    pub fn read(proc_root: &Path) -> Result<Self, CgroupError> {
        let text = |name: &str| file::read(&proc_root.join(name));
        let status = proc_root.join("self/status");
        let allowed = cpu::allowed_cpus(&file::read(&status)?);
        let unnamed = || CgroupError::malformed(&status, "no Cpus_allowed_list");
        Ok(Self {
            kernel: text("sys/kernel/osrelease")?.trim().to_owned(),
            cpu_model: cpu::cpu_model(&text("cpuinfo")?),
            cpus_allowed: allowed.ok_or_else(unnamed)?,
            memory: MachineMemory::read(proc_root)?,
        })
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) const PARSERS: &[crate::anything::Parser] = &[
    |text| _ = MachineCpuTimes::parse_stat(text).map(MachineCpuTimes::total_time),
    |text| _ = MachineMemory::parse_meminfo(text),
    |text| _ = cpu::allowed_cpus(text),
    |text| _ = cpu::cpu_model(text),
    |text| _ = cpu::process_time(text),
];

/// Stall times of the whole machine; all `None` on a kernel without PSI. Not faster than every
/// 20 ms.
/// Errors: A file that is there but cannot be read.
pub fn host_pressure(proc_root: &Path) -> Result<PressureSample, CgroupError> {
    let read = |name: &str| {
        let path = proc_root.join("pressure").join(name);
        match file::read_optional(&path) {
            Ok(text) => Ok(text.as_deref().and_then(sample::parse_pressure)),
            // PSI compiled in but switched off (psi=0).
            Err(error) if error.is_errno(Errno::OPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    };
    Ok(PressureSample {
        cpu: read("cpu")?,
        memory: read("memory")?,
        io: read("io")?,
    })
}
