//! Limits of the groups around loadline and around its trials. A trial inside a tighter outer
//! limit would measure that limit instead of its own.

use std::fmt;
use std::path::{Path, PathBuf};

use loadline_sizing::{Bytes, Cpus};

use crate::error::CgroupError;
use crate::file;
use crate::layout::{Controller, Layout, Place, Version};
use crate::limits::{Limits, V1_UNLIMITED};

/// What an outer limit acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On trials.
    Trials,
    /// On loadline and its load generator only; trials run beside it.
    Loadline,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trials => "trials",
            Self::Loadline => "loadline",
        })
    }
}

/// A group around loadline or its trials that has a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterLimit {
    /// Its directory.
    pub dir: PathBuf,
    /// What it acts on.
    pub scope: Scope,
    /// CPU quota, rounded down to a thousandth of a CPU.
    pub cpu: Option<Cpus>,
    /// Memory limit.
    pub memory: Option<Bytes>,
    /// Largest number of tasks.
    pub pids: Option<u64>,
}

/// The limits of every group around trials and around loadline.
///
/// # Errors
/// A file that is there but cannot be read.
pub fn outer_limits(layout: &Layout) -> Result<Vec<OuterLimit>, CgroupError> {
    let mut found: Vec<OuterLimit> = Vec::new();
    for controller in [Controller::Cpu, Controller::Memory, Controller::Pids] {
        let Some(place) = layout.place(controller) else {
            continue;
        };
        for (dir, scope) in around(place) {
            let limit = read_limit(controller, place.version, &dir)?;
            match limit {
                (None, None, None) => {}
                (cpu, memory, pids) => found.push(OuterLimit {
                    dir,
                    scope,
                    cpu,
                    memory,
                    pids,
                }),
            }
        }
    }
    Ok(found)
}

/// The groups around trials, and those around loadline only.
pub(crate) fn around(place: &Place) -> Vec<(PathBuf, Scope)> {
    let trials = place.parent().map(|p| place.ancestors(p));
    let trials = trials.unwrap_or_default();
    let own = place.ancestors(&place.own);
    let own_only = own.into_iter().filter(|dir| !trials.contains(dir));
    own_only
        .map(|dir| (dir, Scope::Loadline))
        .chain(trials.iter().map(|dir| (dir.clone(), Scope::Trials)))
        .collect()
}

type Limit = (Option<Cpus>, Option<Bytes>, Option<u64>);

fn read_limit(controller: Controller, version: Version, dir: &Path) -> Result<Limit, CgroupError> {
    let text = |name: &str| file::read_optional(&dir.join(name));
    Ok(match (controller, version) {
        (Controller::Cpu, Version::V1) => {
            let quota = text("cpu.cfs_quota_us")?.unwrap_or_default();
            let period = text("cpu.cfs_period_us")?.unwrap_or_default();
            (cpus(&quota, &period), None, None)
        }
        (Controller::Cpu, Version::V2) => {
            let text = text("cpu.max")?.unwrap_or_default();
            let (quota, period) = text.split_once(' ').unwrap_or_default();
            (cpus(quota, period), None, None)
        }
        (Controller::Memory, version) => {
            let text = text(match version {
                Version::V1 => "memory.limit_in_bytes",
                Version::V2 => "memory.max",
            })?;
            (
                None,
                number(text)
                    .filter(|b| *b < V1_UNLIMITED)
                    .map(Bytes::from_bytes),
                None,
            )
        }
        (Controller::Pids, _) => (None, None, number(text("pids.max")?)),
        _ => (None, None, None),
    })
}

/// A number; `None` for `max`.
fn number(text: Option<String>) -> Option<u64> {
    text?.trim().parse().ok()
}

/// Quota and period in microseconds as CPUs; `None` for `-1` and `max`.
fn cpus(quota: &str, period: &str) -> Option<Cpus> {
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    let millis = quota.checked_mul(1000)?.checked_div(period)?;
    Some(Cpus::from_millis(u32::try_from(millis).unwrap_or(u32::MAX)))
}

/// Refuses limits that an outer limit would spoil: those that are not below it.
///
/// # Errors
/// [`CgroupError::OuterLimit`] with the group whose limit is in the way.
pub fn outer_conflict(outer: &[OuterLimit], limits: &Limits) -> Result<(), CgroupError> {
    for around in outer.iter().filter(|o| o.scope == Scope::Trials) {
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
