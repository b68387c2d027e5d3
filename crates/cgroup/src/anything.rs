//! A parser for each file that the crate knows, which takes any text: for its tests and the fuzzer.

use loadline_sizing::{CpuSet, limits};

use crate::name::GroupName;
use crate::sample::{self, CpuSample, MemorySample};
use crate::{host, proc_text};

pub type Parser = fn(&str);

pub fn parsers() -> impl Iterator<Item = Parser> {
    OF_GROUPS.iter().chain(host::PARSERS).copied()
}

const OF_GROUPS: &[Parser] = &[
    |text| sample::cpu_stat_v1(text, &mut CpuSample::default()),
    |text| sample::cpu_stat_v2(text, &mut CpuSample::default()),
    |text| sample::usage_percpu(text, &mut CpuSample::default()),
    |text| {
        let mut memory = MemorySample::default();
        sample::memory_stat_v1(text, &mut memory);
        let _ = memory.working_set();
    },
    |text| {
        let mut memory = MemorySample::default();
        sample::memory_stat_v2(text, &mut memory);
        let _ = memory.working_set();
    },
    |text| _ = sample::oom_kill(text),
    |text| _ = sample::parse_pressure(text),
    |text| _ = limits::parse_mounts(text),
    |text| _ = limits::cgroup_memberships(text),
    |text| _ = proc_text::stat_start_time(text),
    |text| _ = text.parse::<GroupName>(),
    |text| _ = text.parse::<CpuSet>(),
];
