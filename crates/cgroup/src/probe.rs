//! What cgroups can do on this machine, found by doing it: a group is made, limited, filled with
//! a child that exceeds each limit, looked at, killed and removed.
//!
//! Owns the list of checks for `loadline doctor` and the preflight of a run. Never prints.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loadline_sizing::{Bytes, Cpus};

use crate::error::CgroupError;
use crate::file;
use crate::group::ControlGroup;
use crate::host::{HostFacts, MachineMemory, OuterLimit, OuterLimitScope, outer_limits};
use crate::layout::{CgroupHierarchy, CgroupLayout, CgroupVersion, Controller};
use crate::limits::CgroupLimits;
use crate::name::GroupName;

const PATIENCE: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    Works,
    Missing,
    Broken,
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Works => "works",
            Self::Missing => "missing",
            Self::Broken => "broken",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightCheck {
    pub name: &'static str,
    pub status: CheckStatus,
    pub detail: String,
    pub fix: Option<String>,
}

impl PreflightCheck {
    fn new(name: &'static str, status: CheckStatus, detail: impl Into<String>) -> Self {
        Self {
            name,
            status,
            detail: detail.into(),
            fix: None,
        }
    }

    pub fn works(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Works, detail)
    }

    pub fn missing(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Missing, detail)
    }

    pub fn broken(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Broken, detail)
    }

    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn from_error(name: &'static str, error: &CgroupError) -> Self {
        Self {
            name,
            status: CheckStatus::Broken,
            detail: error.to_string(),
            fix: error.suggested_fix(),
        }
    }

    fn from_result(name: &'static str, result: Result<Self, CgroupError>) -> Self {
        result.unwrap_or_else(|error| Self::from_error(name, &error))
    }
}

/// Tries everything; takes a second or two. `root` is normally `/sys/fs/cgroup`, `proc_root`
/// normally `/proc`.
pub fn probe_cgroups(root: &Path, proc_root: &Path) -> Vec<PreflightCheck> {
    let layout = match CgroupLayout::detect(root, proc_root) {
        Ok(layout) => layout,
        Err(error) => return vec![PreflightCheck::from_error("cgroups", &error)],
    };
    let mut checks = vec![check_cgroups(&layout)];
    let group = layout
        .check_permission()
        .and_then(|()| GroupName::new(proc_root, "probe"))
        .and_then(|name| ControlGroup::create_group(&layout, &name.to_string()));
    match group {
        Ok(group) => {
            let place = describe_place(&group);
            checks.push(PreflightCheck::works("make a group", place));
            checks.extend(group_checks().map(|(name, check)| {
                let of = GroupProbe {
                    name,
                    group: &group,
                    proc_root,
                };
                PreflightCheck::from_result(name, check(&of))
            }));
            // Also where a check has left a child behind.
            let killed = group.kill_processes(DEADLINE);
            let removed = killed.and_then(|_| group.remove_dirs(DEADLINE));
            let name = "remove a group";
            let removed = removed.map(|()| PreflightCheck::works(name, "nothing is left"));
            checks.push(PreflightCheck::from_result(name, removed));
        }
        Err(error) => checks.push(PreflightCheck::from_error("make a group", &error)),
    }
    let outer = check_outer_limits(&layout);
    checks.push(PreflightCheck::from_result(OUTER_LIMITS, outer));
    checks
}

fn check_cgroups(layout: &CgroupLayout) -> PreflightCheck {
    let name = |(c, place): (Controller, &CgroupHierarchy)| match place.version {
        CgroupVersion::V1 => format!("{c} (v1)"),
        CgroupVersion::V2 => format!("{c} (v2)"),
    };
    let controllers: Vec<String> = layout.controller_hierarchies().map(name).collect();
    let detail = format!("{}: {}", layout.mode(), controllers.join(", "));
    PreflightCheck::works("cgroups", detail)
}

fn describe_place(group: &ControlGroup) -> String {
    let parent = |dir: &Path| Some(dir.parent()?.display().to_string());
    let dirs: Vec<String> = group.hierarchy_dirs().filter_map(parent).collect();
    format!("below {}", dirs.join(", "))
}

struct InGroup(Child);

impl InGroup {
    fn spawn_script(group: &ControlGroup, script: &str) -> Result<Self, CgroupError> {
        // The files are arguments, so that no path is ever read as shell text.
        let join = "for f do echo 0 > \"$f\" || exit 99; done; ";
        Command::new("/bin/sh")
            .args(["-c", &format!("{join}{script}"), "sh"])
            .args(group.join_files())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .map_err(|e| CgroupError::for_file("start a child by", Path::new("/bin/sh"), e))
    }

    /// Waits until something is seen or the child has ended. `None` when neither came in time.
    fn watch_until<T>(
        &mut self,
        mut look: impl FnMut() -> Result<Option<T>, CgroupError>,
    ) -> Result<Option<T>, CgroupError> {
        let start = Instant::now();
        loop {
            let has_ended = matches!(self.0.try_wait(), Ok(Some(_)));
            let seen = look()?;
            if seen.is_some() || has_ended || start.elapsed() > PATIENCE {
                return Ok(seen);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for InGroup {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One check of a group.
struct GroupProbe<'a> {
    name: &'static str,
    group: &'a ControlGroup,
    proc_root: &'a Path,
}

const CPU_QUOTA: &str = "CPU quota";

type GroupCheck<'a> = fn(&GroupProbe<'a>) -> Result<PreflightCheck, CgroupError>;

fn group_checks<'a>() -> [(&'static str, GroupCheck<'a>); 7] {
    [
        (CPU_QUOTA, GroupProbe::check_cpu_quota),
        ("CPU pinning", GroupProbe::check_cpuset),
        ("memory limit", GroupProbe::check_memory_limit),
        ("no swap", GroupProbe::check_swap_off),
        ("task limit", GroupProbe::check_task_limit),
        ("pressure (PSI)", GroupProbe::check_pressure),
        ("kill a group", GroupProbe::check_kill),
    ]
}

impl GroupProbe<'_> {
    fn check_cpu_quota(&self) -> Result<PreflightCheck, CgroupError> {
        self.group.apply_limits(&CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(200)),
            ..CgroupLimits::default()
        })?;
        let mut child = InGroup::spawn_script(self.group, "while :; do :; done")?;
        let mut reader = self.group.open_reader()?;
        let begin = Instant::now();
        let seen = child.watch_until(|| {
            let cpu = reader.read()?.cpu;
            let has_grown = cpu.throttled_time.is_some_and(|t| !t.is_zero());
            Ok(has_grown.then_some((cpu.nr_throttled.unwrap_or(0), cpu.nr_periods.unwrap_or(0))))
        })?;
        Ok(match seen {
            Some((throttled, periods)) => {
                let seen =
                    format!("a busy child was throttled in {throttled} of {periods} periods");
                PreflightCheck::works(self.name, format!("20 ms in 100 ms: {seen}"))
            }
            None => never_throttled(reader.read()?.cpu.usage, begin.elapsed()),
        })
    }

    fn check_cpuset(&self) -> Result<PreflightCheck, CgroupError> {
        if self.group.controller_dir(Controller::Cpuset).is_none() {
            return Ok(PreflightCheck::missing(self.name, "no cpuset controller"));
        }
        let allowed = HostFacts::read(self.proc_root)?.cpus_allowed;
        let first = allowed.iter().take(1).collect();
        let detail = format!("pinned to CPU {first} of {allowed}");
        self.group.apply_limits(&CgroupLimits {
            cpuset: Some(first),
            ..CgroupLimits::default()
        })?;
        Ok(PreflightCheck::works(self.name, detail))
    }

    fn check_memory_limit(&self) -> Result<PreflightCheck, CgroupError> {
        self.group.apply_limits(&CgroupLimits {
            memory: Some(Bytes::from_mib(16)),
            ..CgroupLimits::default()
        })?;
        // dd fills one block of 64 MiB in its own memory.
        let mut child = InGroup::spawn_script(
            self.group,
            "exec dd if=/dev/zero of=/dev/null bs=64M count=1",
        )?;
        let mut reader = self.group.open_reader()?;
        let kills = child.watch_until(|| Ok(reader.read_memory()?.oom_kill.filter(|k| *k > 0)))?;
        let seen = "a child that used 64 MiB under 16 MiB was killed, and the kernel counted it";
        let unseen = "a child that used 64 MiB under 16 MiB was not seen to be killed";
        let fix = "an OOM kill cannot be told from a crash here; Linux 4.13 and later count it";
        Ok(match kills {
            Some(_) => PreflightCheck::works(self.name, seen),
            None => PreflightCheck::broken(self.name, unseen).with_fix(fix),
        })
    }

    fn check_swap_off(&self) -> Result<PreflightCheck, CgroupError> {
        let swap = MachineMemory::read(self.proc_root)?.swap_total;
        let has_file = |(version, dir): (CgroupVersion, &Path)| match version {
            CgroupVersion::V1 => dir.join("memory.memsw.limit_in_bytes").exists(),
            CgroupVersion::V2 => dir.join("memory.swap.max").exists(),
        };
        let memory = self.group.controller_dir(Controller::Memory);
        let has_limit = memory.is_some_and(has_file);
        Ok(match (swap.as_bytes(), has_limit) {
            (0, _) => PreflightCheck::works(self.name, "this machine has no swap"),
            (_, true) => PreflightCheck::works(self.name, format!("{swap} of swap, forbidden to the group")),
            (_, false) => PreflightCheck::broken(self.name, format!("{swap} of swap that the group may use"))
                .with_fix("swapoff -a, or boot with swapaccount=1: an application that swaps instead of being killed seems to fit"),
        })
    }

    fn check_task_limit(&self) -> Result<PreflightCheck, CgroupError> {
        if self.group.controller_dir(Controller::Pids).is_none() {
            return Ok(PreflightCheck::missing(self.name, "no pids controller"));
        }
        self.group.apply_limits(&CgroupLimits {
            pids: Some(1),
            ..CgroupLimits::default()
        })?;
        // The shell is the one task; its fork fails, and the kernel counts that.
        let mut child = InGroup::spawn_script(self.group, "(sleep 60); sleep 60")?;
        let events = self.group.controller_dir(Controller::Pids);
        let events = events.map(|(_, dir)| dir.join("pids.events"));
        let refused = child.watch_until(|| {
            let text = events.as_deref().map(file::read_optional).transpose()?;
            let text = text.flatten().unwrap_or_default();
            let count = text.trim().strip_prefix("max ");
            Ok(count.and_then(|c| c.parse::<u64>().ok()).filter(|c| *c > 0))
        })?;
        let unseen = "a child under a limit of 1 was not seen to be kept from forking";
        Ok(match refused {
            Some(_) => {
                PreflightCheck::works(self.name, "a child could not fork under a limit of 1")
            }
            None => PreflightCheck::broken(self.name, unseen),
        })
    }

    fn check_pressure(&self) -> Result<PreflightCheck, CgroupError> {
        let pressure = self.group.read()?.pressure.unwrap_or_default();
        let none = "no cpu.pressure in the group: waiting for other programs is seen less well";
        let fix = "boot with psi=1; needs a cgroup v2 mount and CONFIG_PSI";
        Ok(match pressure.cpu {
            Some(_) => PreflightCheck::works(self.name, "cpu, memory and io of the group"),
            None => PreflightCheck::missing(self.name, none).with_fix(fix),
        })
    }

    fn check_kill(&self) -> Result<PreflightCheck, CgroupError> {
        self.group.apply_limits(&CgroupLimits::default())?;
        let mut child = InGroup::spawn_script(self.group, "(sleep 60 & sleep 60 & wait) & wait")?;
        let all_there =
            child.watch_until(|| Ok((self.group.process_ids()?.len() >= 3).then_some(())))?;
        let start = Instant::now();
        let killed = self.group.kill_processes(DEADLINE)?;
        let took = start.elapsed().as_millis();
        let how = match self.group.v2_dir() {
            Some(dir) if dir.join("cgroup.kill").exists() => "cgroup.kill",
            _ => "freezer or signals",
        };
        let gone = format!("{killed} processes gone in {took} ms by {how}");
        Ok(match all_there {
            Some(()) => PreflightCheck::works(self.name, gone),
            None => PreflightCheck::broken(self.name, "children did not start in the group"),
        })
    }
}

/// What a busy child that was never throttled says, by the CPU time that it used meanwhile.
fn never_throttled(used: Option<Duration>, within: Duration) -> PreflightCheck {
    // A group with less CPU than the quota proves nothing; a child that ended before used none
    // either.
    let starved = used.filter(|used| within >= PATIENCE && *used < within / 5);
    let Some(used) = starved.map(|used| used.as_millis()) else {
        let detail = "a busy child under a quota of 20 ms in 100 ms was not throttled";
        let fix = "the kernel needs CONFIG_CFS_BANDWIDTH";
        return PreflightCheck::broken(CPU_QUOTA, detail).with_fix(fix);
    };
    let within = within.as_secs();
    let detail = format!(
        "a busy child got {used} ms of CPU time in {within} s: other programs hold the CPUs"
    );
    PreflightCheck::broken(CPU_QUOTA, detail).with_fix("try again when they are done")
}

const OUTER_LIMITS: &str = "outer limits";

fn check_outer_limits(layout: &CgroupLayout) -> Result<PreflightCheck, CgroupError> {
    let describe = |l: &OuterLimit| {
        let cpu = l.cpu.map(|c| format!(" CPU {c}"));
        let memory = l.memory.map(|m| format!(" memory {m}"));
        let pids = l.pids.map(|p| format!(" tasks {p}"));
        let all: String = [cpu, memory, pids].into_iter().flatten().collect();
        format!("{}:{all}", l.dir.display())
    };
    let limits = outer_limits(layout)?;
    let around = limits.iter().filter(|l| l.scope == OuterLimitScope::Trials);
    let around: Vec<String> = around.map(describe).collect();
    let detail = if around.is_empty() {
        "no limit around trials".to_owned()
    } else {
        format!("trials must stay below {}", around.join("; "))
    };
    Ok(PreflightCheck::works(OUTER_LIMITS, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_others_starve_says_nothing_of_the_quota() {
        let said = |ms| never_throttled(Some(Duration::from_millis(ms)), PATIENCE).detail;
        assert_eq!(
            said(1_999),
            "a busy child got 1999 ms of CPU time in 10 s: other programs hold the CPUs"
        );
        let broken = "a busy child under a quota of 20 ms in 100 ms was not throttled";
        assert_eq!(said(2_000), broken);
        assert_eq!(never_throttled(None, PATIENCE).detail, broken);
        let ended = never_throttled(Some(Duration::ZERO), Duration::from_millis(20));
        assert_eq!(ended.detail, broken);
    }
}
