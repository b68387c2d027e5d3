//! Limits of the groups around loadline and around its trials. A trial inside a tighter outer limit
//! would measure that limit instead of its own.

use std::fmt;
use std::path::{Path, PathBuf};

use loadline_sizing::{Bytes, Cpus};

use crate::error::CgroupError;
use crate::file;
use crate::layout::{CgroupHierarchy, CgroupLayout, CgroupVersion, Controller};
use crate::limits::{CgroupLimits, V1_UNLIMITED};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OuterLimitScope {
    Trials,
    /// On loadline and its load generator only; trials run outside.
    Loadline,
}

impl fmt::Display for OuterLimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trials => "trials",
            Self::Loadline => "loadline",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterLimit {
    pub dir: PathBuf,
    pub scope: OuterLimitScope,
    pub cpu: Option<Cpus>,
    pub memory: Option<Bytes>,
    pub pids: Option<u64>,
}

pub fn outer_limits(layout: &CgroupLayout) -> Result<Vec<OuterLimit>, CgroupError> {
    let mut found: Vec<OuterLimit> = Vec::new();
    for controller in [Controller::Cpu, Controller::Memory, Controller::Pids] {
        let Some(place) = layout.hierarchy_of(controller) else {
            continue;
        };
        for (dir, scope) in groups_around(place) {
            let (cpu, memory, pids) = read_limit(controller, place.version, &dir)?;
            found.push(OuterLimit {
                dir,
                scope,
                cpu,
                memory,
                pids,
            });
        }
    }
    found.retain(|limit| limit.cpu.is_some() || limit.memory.is_some() || limit.pids.is_some());
    Ok(found)
}

pub(crate) fn groups_around(place: &CgroupHierarchy) -> Vec<(PathBuf, OuterLimitScope)> {
    let trials = place.parent().map(|p| place.ancestors(p));
    let trials = trials.unwrap_or_default();
    let mut own = place.ancestors(&place.own);
    own.retain(|dir| !trials.contains(dir));
    let own = own.into_iter().map(|dir| (dir, OuterLimitScope::Loadline));
    let trials = trials.into_iter().map(|dir| (dir, OuterLimitScope::Trials));
    own.chain(trials).collect()
}

pub(crate) type Limit = (Option<Cpus>, Option<Bytes>, Option<u64>);

pub(crate) fn read_limit(
    controller: Controller,
    version: CgroupVersion,
    dir: &Path,
) -> Result<Limit, CgroupError> {
    let text = |name: &str| file::read_optional(&dir.join(name));
    Ok(match (controller, version) {
        (Controller::Cpu, CgroupVersion::V1) => {
            let quota = text("cpu.cfs_quota_us")?.unwrap_or_default();
            let period = text("cpu.cfs_period_us")?.unwrap_or_default();
            (parse_quota(&quota, &period), None, None)
        }
        (Controller::Cpu, CgroupVersion::V2) => {
            let text = text("cpu.max")?.unwrap_or_default();
            let (quota, period) = text.split_once(' ').unwrap_or_default();
            (parse_quota(quota, period), None, None)
        }
        (Controller::Memory, version) => {
            let text = text(match version {
                CgroupVersion::V1 => "memory.limit_in_bytes",
                CgroupVersion::V2 => "memory.max",
            })?;
            let limit = parse_number(text).filter(|b| *b < V1_UNLIMITED);
            (None, limit.map(Bytes::from_bytes), None)
        }
        (Controller::Pids, _) => (None, None, parse_number(text("pids.max")?)),
        _ => (None, None, None),
    })
}

/// A number; `None` for `max`.
fn parse_number(text: Option<String>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// Quota and period in microseconds as CPUs; `None` for `-1` and `max`.
fn parse_quota(quota: &str, period: &str) -> Option<Cpus> {
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    let millis = quota.checked_mul(1000)?.checked_div(period)?;
    Some(Cpus::from_millis(u32::try_from(millis).unwrap_or(u32::MAX)))
}

/// Refuses limits that an outer limit would spoil: limits that are not below it. Errors:
/// [`CgroupError::OuterLimit`] with the limiting group.
pub fn outer_conflict(outer: &[OuterLimit], limits: &CgroupLimits) -> Result<(), CgroupError> {
    for around in outer.iter().filter(|o| o.scope == OuterLimitScope::Trials) {
        let conflict = |what, wanted: String, limit: String| CgroupError::OuterLimit {
            dir: around.dir.clone(),
            what,
            wanted,
            limit,
        };
        let text = |o: Option<String>| o.unwrap_or_else(|| "no limit".to_owned());
        if let Some(cpu) = around.cpu
            && limits.cpu_quota.is_none_or(|wanted| wanted >= cpu)
        {
            let wanted = text(limits.cpu_quota.map(|c| c.to_string()));
            return Err(conflict("CPU", wanted, cpu.to_string()));
        }
        if let Some(memory) = around.memory
            && limits.memory.is_none_or(|wanted| wanted >= memory)
        {
            let wanted = text(limits.memory.map(|m| m.to_string()));
            return Err(conflict("memory", wanted, memory.to_string()));
        }
        if let (Some(pids), Some(wanted)) = (around.pids, limits.pids)
            && wanted >= pids
        {
            return Err(conflict("tasks", wanted.to_string(), pids.to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeCgroupTree, ROOT};
    use crate::layout::Privilege;

    fn text(fake: &FakeCgroupTree, limits: &[OuterLimit]) -> String {
        let line = |l: &OuterLimit| {
            let dir = l.dir.strip_prefix(fake.cgroup_root()).unwrap().display();
            format!("/{dir} {} {:?} {:?} {:?}", l.scope, l.cpu, l.memory, l.pids)
        };
        limits.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_delegated_group_on_v2_is_inside_every_limit_above_it() {
        let fake = FakeCgroupTree::new(
            "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/slice/scope\n",
        );
        fake.add_group(
            "slice",
            &[("cpu.max", "150000 100000\n"), ("memory.max", "max\n")],
        );
        let own = [
            ("cgroup.controllers", "cpu memory pids\n"),
            ("cgroup.procs", ""),
            ("cpu.max", "max 100000\n"),
            ("memory.max", "1073741824\n"),
            ("pids.max", "max\n"),
        ];
        fake.add_group("slice/scope", &own);
        let user = Privilege {
            root: false,
            systemd: true,
        };
        let found = outer_limits(&fake.detected_layout(user)).unwrap();
        insta::assert_snapshot!(text(&fake, &found), @r"
        /slice trials Some(Cpus(1500)) None None
        /slice/scope trials None Some(Bytes(1073741824)) None
        ");
        let with = |cpu: u32, mib: u64| CgroupLimits {
            cpu_quota: Some(Cpus::from_millis(cpu)),
            memory: Some(Bytes::from_mib(mib)),
            ..CgroupLimits::default()
        };
        outer_conflict(&found, &with(1499, 1023)).unwrap();
        for limits in [with(1500, 512), with(500, 1024), CgroupLimits::default()] {
            outer_conflict(&found, &limits).unwrap_err();
        }
        let error = outer_conflict(&found, &with(2000, 1024)).unwrap_err();
        let error = format!("{error}\nhint: {}", error.suggested_fix().unwrap())
            .replace(&fake.cgroup_root().display().to_string(), "ROOT");
        insta::assert_snapshot!(error, @r"
        the group ROOT/slice around the trials is limited to 1500m (CPU), and the trial asks for 2
        hint: raise that limit, run loadline outside of it, or stay below it
        ");
    }

    #[test]
    fn on_v1_the_groups_of_root_are_beside_loadline_and_not_inside_its_limit() {
        let fake = FakeCgroupTree::from_captured("hybrid");
        fake.add_group("unified", &[("cgroup.controllers", "")]);
        fake.add_group(
            "cpu",
            &[
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
            ],
        );
        let none = [("memory.limit_in_bytes", "9223372036854771712\n")];
        fake.add_group("memory", &none);
        let some = [("memory.limit_in_bytes", "536870912\n")];
        fake.add_group("memory/example", &some);
        let found = outer_limits(&fake.detected_layout(ROOT)).unwrap();
        insta::assert_snapshot!(
            text(&fake, &found),
            @"/memory/example loadline None Some(Bytes(536870912)) None"
        );
        outer_conflict(&found, &CgroupLimits::default()).unwrap();
    }
}
