//! Control groups, v1, v2 and hybrid: limits (write), statistics (read), sampling, and the facts of
//! the machine around them.
//!
//! Owns every write below the cgroup file system. Knows no trials, load or JVMs, and never prints.
//! Counters are converted to types with units when they are read. Facts come from the kernel's
//! Documentation/admin-guide/cgroup-v1, cgroup-v2.rst, accounting/psi.rst and
//! scheduler/sched-bwc.rst.
//!
//! Read [`CgroupLayout`] first (the machine), then [`ControlGroup`] (one group of processes and its
//! limits), [`CgroupSample`] (its counters) and [`CgroupSampler`] (its counters over time).

#[cfg(any(test, fuzzing))]
mod anything;
#[cfg(test)]
mod arbitrary;
mod busy;
mod error;
#[cfg(test)]
mod fake;
mod file;
mod group;
pub mod host;
mod kill;
mod layout;
mod limits;
mod name;
mod noise;
mod probe;
mod proc_text;
mod reader;
mod sample;
mod sampler;
mod sweep;

#[cfg(fuzzing)]
pub use anything::{Parser, parsers};
pub use busy::{BusyProgram, CpuUse, CpuWatch};
pub use error::CgroupError;
pub use group::ControlGroup;
pub use layout::{CgroupHierarchy, CgroupLayout, CgroupVersion, Controller, HierarchyMode};
pub use limits::{CgroupLimits, LimitChange, weight_from_shares};
pub use name::GroupName;
pub use noise::{Noise, NoiseMeter};
pub use probe::{CheckStatus, PreflightCheck, probe_cgroups};
pub use reader::CgroupReader;
pub use sample::{CgroupSample, CpuSample, MemorySample, Pressure, PressureSample};
pub use sampler::{CgroupSampler, Pace, PhaseLock, SampleGap, SamplerOptions, SamplerReport};
pub use sweep::{GroupSweep, find_groups, sweep_cgroups};
