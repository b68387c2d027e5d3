//! Every parser of the crate on one text: for its tests and the fuzzer. None may panic.

use loadline_sizing::CpuSet;

use crate::name::GroupName;
use crate::sample::{self, CpuSample, MemorySample};
use crate::{host, proc_text};

/// Reads the text as each file that the crate knows.
pub fn parse_anything(text: &str) {
    let mut cpu = CpuSample::default();
    sample::cpu_stat_v1(text, &mut cpu);
    sample::cpu_stat_v2(text, &mut cpu);
    sample::usage_percpu(text, &mut cpu);
    let mut memory = MemorySample::default();
    sample::memory_stat_v1(text, &mut memory);
    sample::memory_stat_v2(text, &mut memory);
    let _ = memory.working_set();
    let _ = sample::oom_kill(text);
    let _ = sample::pressure(text);
    let _ = proc_text::cgroup_mounts(text);
    let _ = proc_text::memberships(text);
    let _ = proc_text::stat_start_time(text);
    let _ = text.parse::<GroupName>();
    let _ = text.parse::<CpuSet>();
    host::parse_anything(text);
}
