//! CPUs of the machine: /proc/stat, /proc/cpuinfo, /proc/self/status, /proc/PID/stat.

use std::path::Path;
use std::time::Duration;

use loadline_sizing::CpuSet;

use crate::error::CgroupError;
use crate::file;
use crate::proc_text::stat_field;

/// CPU time since boot, summed over CPUs (first line of /proc/stat). The kernel counts it in
/// ticks of 10 ms, on most kernels by sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineCpuTimes {
    pub busy: Duration,
    /// Not used: idle, iowait.
    pub idle: Duration,
    /// Taken by the hypervisor while a task wanted to run.
    pub steal: Duration,
}

impl MachineCpuTimes {
    /// Reads /proc/stat.
    /// Errors: A file that cannot be read or is not in its documented form.
    pub fn read(proc_root: &Path) -> Result<Self, CgroupError> {
        let path = proc_root.join("stat");
        let text = file::read(&path)?;
        let detail = "no `cpu` line with eight numbers";
        Self::parse_stat(&text).ok_or_else(|| CgroupError::malformed(&path, detail))
    }

    pub(super) fn parse_stat(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (_, line) = lines.find(|(first, _)| *first == "cpu")?;
        let fields = line.split_ascii_whitespace();
        let ticks: Vec<u64> = fields.map_while(|v| v.parse().ok()).collect();
        // Linux 2.6.11 and later; guest times, at the end, are part of user and nice.
        let [user, nice, system, idle, iowait, irq, softirq, steal] = *ticks.first_chunk()?;
        let sum = |values: &[u64]| values.iter().fold(0u64, |a, b| a.saturating_add(*b));
        Some(Self {
            busy: from_ticks(sum(&[user, nice, system, irq, softirq])),
            idle: from_ticks(sum(&[idle, iowait])),
            steal: from_ticks(steal),
        })
    }

    /// Growth since an earlier reading. idle and iowait may step back a little; that counts as 0.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    pub fn total_time(self) -> Duration {
        let used = self.busy.saturating_add(self.steal);
        used.saturating_add(self.idle)
    }
}

pub(crate) fn from_ticks(ticks: u64) -> Duration {
    let hz = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_secs(ticks / hz) + Duration::from_nanos(ticks % hz * 1_000_000_000 / hz)
}

/// CPU time of one process and of those of its children that have ended and were waited for, from
/// the text of /proc/PID/stat (fields 14 to 17).
pub(crate) fn process_time(stat: &str) -> Option<Duration> {
    let mut ticks = 0u64;
    for field in 14..=17 {
        ticks = ticks.checked_add(stat_field(stat, field)?)?;
    }
    Some(from_ticks(ticks))
}

/// `Cpus_allowed_list` of /proc/PID/status.
pub(super) fn allowed_cpus(status: &str) -> Option<CpuSet> {
    let mut lines = status.lines();
    let list = lines.find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    list.parse().ok()
}

pub(super) fn cpu_model(cpuinfo: &str) -> Option<String> {
    let named = |wanted: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, value)| key.trim() == wanted && !value.trim().is_empty())
    };
    let names = ["model name", "cpu", "Processor", "Model"];
    let (_, model) = names.into_iter().find_map(named)?;
    Some(model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_and_subtracted() {
        let hz = rustix::param::clock_ticks_per_second();
        let before = MachineCpuTimes::parse_stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0\n").unwrap();
        assert_eq!(before.busy, Duration::from_nanos(19 * 1_000_000_000 / hz));
        let text = format!("cpu  {0} 0 0 {0} 0 0 0 {0} 0 0\n", 100 * hz);
        let growth = MachineCpuTimes::parse_stat(&text)
            .unwrap()
            .since(MachineCpuTimes::default());
        assert_eq!(growth.total_time(), Duration::from_secs(300));
        assert_eq!(MachineCpuTimes::parse_stat("cpu 1 2 3\n"), None);
        assert_eq!(MachineCpuTimes::parse_stat(""), None);
    }

    #[test]
    fn allowed_and_model_are_found() {
        let status = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(allowed_cpus(status).unwrap().to_string(), "0-1");
        let info = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n";
        assert_eq!(cpu_model(info).unwrap(), "Some CPU @ 2 GHz");
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
