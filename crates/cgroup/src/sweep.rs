//! Finding and removing groups that a dead loadline left behind. Only directories with the prefix
//! `loadline-` are ever looked at; the caller decides which are leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::error::{CgroupError, is_gone};
use crate::group::ControlGroup;
use crate::layout::{CgroupLayout, SUPERVISOR};
use crate::name::{self, PREFIX};

#[derive(Debug, Default)]
pub struct GroupSweep {
    pub removed: Vec<String>,
    pub killed: usize,
    pub failed: Vec<(String, CgroupError)>,
}

/// The groups for which `is_ours` says yes to the name, in the places where loadline makes groups.
/// Errors: A directory that cannot be listed, or no permission to make groups at all.
pub fn find_groups(
    layout: &CgroupLayout,
    is_ours: impl Fn(&str) -> bool,
) -> Result<Vec<ControlGroup>, CgroupError> {
    let mut names = BTreeSet::new();
    let parents = layout.hierarchies().into_iter().map(|place| place.parent());
    let others = layout.engine_only_mounts().iter();
    let others = others.map(|mount| Ok(mount.as_path()));
    for parent in parents.chain(others) {
        let parent = parent?;
        let entries = match fs::read_dir(parent) {
            Ok(entries) => entries,
            Err(e) if is_gone(&e) => continue,
            Err(e) => return Err(CgroupError::for_file("list", parent, e)),
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && name.starts_with(PREFIX) && name != SUPERVISOR {
                names.insert(name.to_owned());
            }
        }
    }
    names
        .iter()
        .filter(|name| name::check_name(name).is_ok() && is_ours(name))
        .map(|name| ControlGroup::open_existing(layout, name))
        .collect()
}

/// Kills the processes of the groups that `is_ours` accepts, and removes these groups. Each group
/// gets `deadline` for each step. Normally `is_ours` parses a [`crate::GroupName`] and checks
/// whether its owner is alive. Errors: As [`find_groups`]; a group that cannot be removed is
/// reported in [`GroupSweep::failed`].
pub fn sweep_cgroups(
    layout: &CgroupLayout,
    is_ours: impl Fn(&str) -> bool,
    deadline: Duration,
) -> Result<GroupSweep, CgroupError> {
    let mut done = GroupSweep::default();
    for group in find_groups(layout, is_ours)? {
        let ended = group.kill_processes(deadline).and_then(|killed| {
            done.killed += killed;
            group.remove_dirs(deadline)
        });
        match ended {
            Ok(()) => done.removed.push(group.group_name().to_owned()),
            Err(error) => done.failed.push((group.group_name().to_owned(), error)),
        }
    }
    Ok(done)
}
