//! Limits of a group: written in an order that the kernel takes, then read back and compared.
//!
//! Sources: kernel Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v1/{memory,cpusets,
//! pids}.rst and admin-guide/cgroup-v2.rst.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_sizing::{Bytes, CpuSet, Cpus};
use rustix::io::Errno;

use crate::error::CgroupError;
use crate::file;
use crate::group::ControlGroup;
use crate::layout::{CgroupVersion, Controller};

/// Default v1 shares of a group (cgroup-v1: NICE_0 weight).
const DEFAULT_SHARES: u64 = 1024;

/// Default v2 weight of a group (CGROUP_WEIGHT_DFL).
const DEFAULT_WEIGHT: u64 = 100;

/// From here on a v1 memory limit means "none": PAGE_COUNTER_MAX pages, less a page or two for
/// rounding.
pub(crate) const V1_UNLIMITED: u64 = i64::MAX as u64 - (1 << 20);

/// What a group may use. `None` is no limit; [`ControlGroup::apply_limits`] also takes an older limit away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupLimits {
    /// CPU time per period, as CPUs. At least 1 ms in a period.
    pub cpu_quota: Option<Cpus>,
    /// CFS period, 1 ms to 1 s, whole microseconds.
    pub cpu_period: Duration,
    /// Unused quota that may be saved up, at most the quota. Needs Linux 5.14.
    pub cpu_burst: Option<Duration>,
    /// Relative weight in v1 shares, 2 to 262144; 1024 is the default.
    pub cpu_shares: Option<u64>,
    pub cpuset: Option<CpuSet>,
    /// Memory, page cache included. The kernel rounds down to pages. Swap is off under a limit.
    pub memory: Option<Bytes>,
    pub pids: Option<u64>,
}

impl Default for CgroupLimits {
    fn default() -> Self {
        Self {
            cpu_quota: None,
            cpu_period: Duration::from_millis(100),
            cpu_burst: None,
            cpu_shares: None,
            cpuset: None,
            memory: None,
            pids: None,
        }
    }
}

/// The v2 weight with the same meaning as v1 shares: 1024 shares are weight 100.
///
/// Source: kernel/sched/core.c `cpu_weight_write_u64`, which computes
/// `shares = weight * 1024 / 100`. Not runc's conversion, which maps 2..262144 to 1..10000 for
/// the sake of the range and changes the ratio between two groups.
pub fn weight_from_shares(shares: u64) -> u64 {
    let scaled = shares.saturating_mul(DEFAULT_WEIGHT) + DEFAULT_SHARES / 2;
    (scaled / DEFAULT_SHARES).clamp(1, 10_000)
}

impl CgroupLimits {
    fn quota_us(&self) -> Option<u64> {
        let millis = u64::from(self.cpu_quota?.as_millis());
        Some(millis * micros(self.cpu_period) / 1000)
    }

    /// Refuses what no kernel takes, before anything is written.
    fn check_ranges(&self) -> Result<(), CgroupError> {
        let period = self.cpu_period;
        let is_whole = period.subsec_nanos().is_multiple_of(1000);
        if !is_whole || period < Duration::from_millis(1) || period > Duration::from_secs(1) {
            let allowed = "it is 1 ms to 1 s, in whole microseconds";
            return out_of_range("cpu period", format!("{period:?}"), allowed);
        }
        if let (Some(cpus), Some(quota)) = (self.cpu_quota, self.quota_us())
            && quota < 1000
        {
            let floor = 1_000_000u64.div_ceil(micros(period));
            let allowed = format!(
                "at a period of {period:?} it is {floor}m at least: the kernel accepts no quota below 1 ms"
            );
            return out_of_range("cpu", cpus.to_string(), &allowed);
        }
        if let Some(burst) = self.cpu_burst {
            let quota = self.quota_us().unwrap_or(0);
            if micros(burst) > quota {
                let allowed = format!("it is at most the quota, {quota} us a period");
                return out_of_range("cpu burst", format!("{burst:?}"), &allowed);
            }
        }
        if let Some(shares) = self.cpu_shares
            && !(2..=262_144).contains(&shares)
        {
            let allowed = "they are 2 to 262144, 1024 by default";
            return out_of_range("cpu shares", shares.to_string(), allowed);
        }
        if let Some(cpus) = &self.cpuset
            && cpus.has_no_cpu()
        {
            return out_of_range("cpuset", "(empty)".to_owned(), "name at least one CPU");
        }
        if let Some(memory) = self.memory
            && !(page_size()..V1_UNLIMITED).contains(&memory.as_bytes())
        {
            let allowed = "it is at least one page; for no limit leave it out";
            return out_of_range("memory", memory.to_string(), allowed);
        }
        if self.pids == Some(0) {
            return out_of_range("pids", "0".to_owned(), "it is at least 1");
        }
        Ok(())
    }
}

fn out_of_range(what: &'static str, given: String, allowed: &str) -> Result<(), CgroupError> {
    Err(CgroupError::OutOfRange {
        what,
        given,
        allowed: allowed.to_owned(),
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

impl ControlGroup {
    /// Sets the limits and checks that the kernel took them. Can be called again with others.
    /// Errors: A limit out of range, a controller that is missing, a file that cannot be written,
    /// or a value that the kernel changed by more than rounding memory down to a page.
    pub fn apply_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        limits.check_ranges()?;
        self.apply_quota(limits)?;
        self.apply_shares(limits)?;
        self.apply_cpuset(limits)?;
        self.apply_memory(limits)?;
        self.apply_pids(limits)
    }

    /// The directory for a limit; `None` when there is no controller and no limit is asked for.
    fn dir_for(
        &self,
        controller: Controller,
        what: &'static str,
        is_wanted: bool,
    ) -> Result<Option<(CgroupVersion, PathBuf)>, CgroupError> {
        match self.controller_dir(controller) {
            Some((version, dir)) => Ok(Some((version, dir.to_owned()))),
            None if !is_wanted => Ok(None),
            None => Err(CgroupError::NoController {
                controller,
                what,
                hint: format!(
                    "enable it in the kernel (cgroup_enable={controller} on its command line) or have it delegated; `loadline doctor` shows what is there"
                ),
            }),
        }
    }

    fn apply_quota(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        let wanted = limits.cpu_quota.is_some() || limits.cpu_burst.is_some();
        let Some((version, dir)) = self.dir_for(Controller::Cpu, "the CPU quota", wanted)? else {
            return Ok(());
        };
        let burst_file = dir.join(match version {
            CgroupVersion::V1 => "cpu.cfs_burst_us",
            CgroupVersion::V2 => "cpu.max.burst",
        });
        // The kernel refuses a quota below the burst, so the burst goes first and comes back last.
        let has_burst = file::read_optional(&burst_file)?.is_some();
        if has_burst {
            file::write(&burst_file, "0")?;
        }
        let period = micros(limits.cpu_period);
        match version {
            CgroupVersion::V1 => {
                let quota_file = dir.join("cpu.cfs_quota_us");
                file::write(&quota_file, "-1")?;
                write_checked(&dir.join("cpu.cfs_period_us"), &period.to_string())?;
                if let Some(quota) = limits.quota_us() {
                    write_checked(&quota_file, &quota.to_string())?;
                }
            }
            CgroupVersion::V2 => {
                let quota = limits.quota_us();
                let quota = quota.map_or("max".to_owned(), |q| q.to_string());
                write_checked(&dir.join("cpu.max"), &format!("{quota} {period}"))?;
            }
        }
        match limits.cpu_burst {
            Some(burst) => write_checked(&burst_file, &micros(burst).to_string()),
            None => Ok(()),
        }
    }

    fn apply_shares(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        let wanted = limits.cpu_shares;
        let place = self.dir_for(Controller::Cpu, "the CPU shares", wanted.is_some())?;
        let Some((version, dir)) = place else {
            return Ok(());
        };
        let shares = wanted.unwrap_or(DEFAULT_SHARES);
        let (name, value) = match version {
            CgroupVersion::V1 => ("cpu.shares", shares),
            CgroupVersion::V2 => ("cpu.weight", weight_from_shares(shares)),
        };
        write_checked(&dir.join(name), &value.to_string())
    }

    fn apply_cpuset(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        let wanted = limits.cpuset.as_ref();
        let place = self.dir_for(Controller::Cpuset, "the cpuset", wanted.is_some())?;
        let Some((version, dir)) = place else {
            return Ok(());
        };
        let path = dir.join("cpuset.cpus");
        let value = match (wanted, version) {
            (Some(cpus), _) => cpus.to_string(),
            // An empty v2 list means "as the parent"; the kernel takes an empty line for it.
            (None, CgroupVersion::V2) => "\n".to_owned(),
            (None, CgroupVersion::V1) => {
                let parent = dir.parent().unwrap_or(&dir).join("cpuset.cpus");
                file::read(&parent)?.trim().to_owned()
            }
        };
        file::write(&path, &value)?;
        let is_same = |wanted: &str, got: &str| {
            let parse = |text: &str| text.parse::<CpuSet>().ok();
            parse(wanted).is_some() && parse(wanted) == parse(got)
        };
        compare_readback(&path, value.trim(), is_same)?;
        match (wanted, version) {
            // v2 takes CPUs that the parent does not have, and ignores them.
            (Some(_), CgroupVersion::V2) => {
                compare_readback(&dir.join("cpuset.cpus.effective"), value.trim(), is_same)
            }
            _ => Ok(()),
        }
    }

    fn apply_memory(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        let wanted = limits.memory;
        match self.dir_for(Controller::Memory, "the memory limit", wanted.is_some())? {
            Some((CgroupVersion::V1, dir)) => apply_memory_v1(&dir, wanted),
            Some((CgroupVersion::V2, dir)) => apply_memory_v2(&dir, wanted),
            None => Ok(()),
        }
    }

    fn apply_pids(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        let wanted = limits.pids;
        match self.dir_for(Controller::Pids, "the limit of tasks", wanted.is_some())? {
            Some((_, dir)) => {
                let value = wanted.map_or("max".to_owned(), |n| n.to_string());
                write_checked(&dir.join("pids.max"), &value)
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitChange {
    Taken,
    /// It cannot be: more than that is in use and cannot be reclaimed.
    Busy,
}

impl ControlGroup {
    /// Sets the CPU quota of a living group, with its period and burst, and leaves the other limits
    /// alone. Errors: as [`ControlGroup::apply_limits`].
    pub fn set_cpu_quota(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        limits.check_ranges()?;
        self.apply_quota(limits)
    }

    /// Sets the memory limit of a living group and leaves the other limits alone. Nothing is killed
    /// for it: what does not fit makes it [`LimitChange::Busy`], and then the limit is what it was.
    /// Errors: No memory controller, or a file that cannot be written.
    pub fn set_memory_limit(&self, limit: Bytes) -> Result<LimitChange, CgroupError> {
        let Some((version, dir)) = self.dir_for(Controller::Memory, "the memory limit", true)?
        else {
            return Ok(LimitChange::Busy);
        };
        if version == CgroupVersion::V1 {
            return unless_busy(apply_memory_v1(&dir, Some(limit)));
        }
        // memory.max kills what it cannot reclaim, memory.high does not: it goes first.
        let soft = dir.join("memory.high");
        file::write(&soft, &limit.as_bytes().to_string())?;
        let is_at_most = |name: &str| -> Result<bool, CgroupError> {
            let now = file::read(&dir.join(name))?.trim().parse::<u64>();
            Ok(now.is_ok_and(|now| now <= limit.as_bytes()))
        };
        let change = if is_at_most("memory.current")? || is_at_most("memory.max")? {
            apply_memory_v2(&dir, Some(limit)).map(|()| LimitChange::Taken)
        } else {
            Ok(LimitChange::Busy)
        };
        file::write(&soft, "max")?;
        change
    }

    /// Lowers what memory may be used, in a way that reclaims and does not kill: v1 by the limit
    /// itself, v2 by memory.high. [`ControlGroup::set_memory_limit`] ends it.
    pub fn press_memory(&self, limit: Bytes) -> Result<LimitChange, CgroupError> {
        match self.controller_dir(Controller::Memory) {
            Some((CgroupVersion::V2, dir)) => {
                file::write(&dir.join("memory.high"), &limit.as_bytes().to_string())?;
                let used = file::read(&dir.join("memory.current"))?.trim().parse();
                // Charges are counted in batches for each CPU: a little above is not too much.
                let allowed = limit.as_bytes().saturating_add(limit.as_bytes() / 64);
                Ok(match used {
                    Ok(used) if allowed < used => LimitChange::Busy,
                    _ => LimitChange::Taken,
                })
            }
            _ => self.set_memory_limit(limit),
        }
    }

    /// Makes processes that find no memory wait instead of being killed, or ends that. `false`: this
    /// kernel cannot (v2 has no such switch). To be ended only once the limit has been raised.
    /// Errors: A file that cannot be written.
    pub fn forbid_oom_kill(&self, is_forbidden: bool) -> Result<bool, CgroupError> {
        let Some((CgroupVersion::V1, dir)) = self.controller_dir(Controller::Memory) else {
            return Ok(false);
        };
        let control = dir.join("memory.oom_control");
        file::write(&control, if is_forbidden { "1" } else { "0" })?;
        Ok(true)
    }

    /// Whether its processes wait for unavailable memory (v1, kills forbidden).
    pub fn is_under_oom(&self) -> bool {
        let Some((CgroupVersion::V1, dir)) = self.controller_dir(Controller::Memory) else {
            return false;
        };
        let text = file::read(&dir.join("memory.oom_control"));
        text.is_ok_and(|text| text.lines().any(|line| line == "under_oom 1"))
    }
}

/// EBUSY is an answer, not a failure.
fn unless_busy(written: Result<(), CgroupError>) -> Result<LimitChange, CgroupError> {
    match written {
        Ok(()) => Ok(LimitChange::Taken),
        Err(error) if error.is_errno(Errno::BUSY) => Ok(LimitChange::Busy),
        Err(error) => Err(error),
    }
}

/// Memory and memory+swap are equal, so that nothing can be swapped. The kernel keeps
/// memory <= memory+swap at every moment, so the order depends on the direction.
fn apply_memory_v1(dir: &Path, wanted: Option<Bytes>) -> Result<(), CgroupError> {
    let memory = dir.join("memory.limit_in_bytes");
    let both = dir.join("memory.memsw.limit_in_bytes");
    let value = wanted.map_or("-1".to_owned(), |b| b.as_bytes().to_string());
    let is_same = |_: &str, got: &str| match (wanted, got.parse()) {
        (Some(wanted), Ok(got)) => is_page_rounded(wanted.as_bytes(), got),
        (None, Ok(got)) => got >= V1_UNLIMITED,
        (_, Err(_)) => false,
    };
    let both_now = file::read_optional(&both)?.and_then(|text| text.trim().parse::<u64>().ok());
    let is_raise = both_now.is_some_and(|now| wanted.is_none_or(|b| b.as_bytes() > now));
    let mut order = vec![&memory];
    if both_now.is_some() {
        order.insert(if is_raise { 0 } else { 1 }, &both);
    }
    for file in order {
        file::write(file, &value)?;
        compare_readback(file, &value, is_same)?;
    }
    // Without swap accounting (no memsw file) swappiness is all that keeps the group off swap.
    let swappiness = dir.join("memory.swappiness");
    if wanted.is_some() && file::read_optional(&swappiness)?.is_some() {
        write_checked(&swappiness, "0")?;
    }
    Ok(())
}

fn apply_memory_v2(dir: &Path, wanted: Option<Bytes>) -> Result<(), CgroupError> {
    let value = wanted.map_or("max".to_owned(), |b| b.as_bytes().to_string());
    let memory = dir.join("memory.max");
    file::write(&memory, &value)?;
    compare_readback(&memory, &value, |wanted, got| {
        match (wanted.parse(), got.parse()) {
            (Ok(wanted), Ok(got)) => is_page_rounded(wanted, got),
            _ => wanted == got,
        }
    })?;
    // Kernels without swap accounting have no swap file; those before 4.19 no oom.group.
    for (name, limited, free) in [
        ("memory.swap.max", "0", "max"),
        ("memory.oom.group", "1", "0"),
    ] {
        let path = dir.join(name);
        if file::read_optional(&path)?.is_some() {
            write_checked(&path, if wanted.is_some() { limited } else { free })?;
        }
    }
    Ok(())
}

/// The kernel counts pages and rounds down.
fn is_page_rounded(wanted: u64, got: u64) -> bool {
    let page = page_size();
    got == wanted || got == wanted / page * page
}

fn write_checked(path: &Path, value: &str) -> Result<(), CgroupError> {
    file::write(path, value)?;
    compare_readback(path, value, |wanted, got| wanted == got)
}

fn compare_readback(
    path: &Path,
    wanted: &str,
    is_same: impl Fn(&str, &str) -> bool,
) -> Result<(), CgroupError> {
    let got = file::read(path)?;
    let got = got.trim();
    if is_same(wanted, got) {
        return Ok(());
    }
    Err(CgroupError::NotTaken {
        file: path.to_owned(),
        wanted: wanted.to_owned(),
        got: got.to_owned(),
    })
}

#[cfg(test)]
mod tests;
