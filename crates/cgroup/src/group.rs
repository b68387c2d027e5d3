//! One group of processes: a directory of the same name in every hierarchy that loadline uses.
//!
//! Owns making the directories and saying which files a process joins by. Limits are in
//! [`crate::limits`], ending it in [`crate::kill`]. On a hybrid machine the group has a shadow in
//! the v2 mount without controllers; it gives PSI, cgroup.kill and cgroup.events.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loadline_sizing::{Bytes, Cpus};
use loadline_sys::O_PATH;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::CgroupError;
use crate::file;
use crate::host;
use crate::layout::{
    CgroupHierarchy, CgroupLayout, CgroupVersion, Controller, SUPERVISOR, is_delegated,
};
use crate::name;
use crate::reader::CgroupReader;
use crate::sample::CgroupSample;

/// How often processes are moved out of loadline's own group before it is given up.
const EVACUATION_ATTEMPTS: u32 = 10;

/// A group of processes. Dropping it does not remove it: see [`ControlGroup::remove_dirs`].
#[derive(Debug, Clone)]
pub struct ControlGroup {
    name: String,
    pub(crate) dirs: Vec<(CgroupHierarchy, PathBuf)>,
    controllers: Vec<(Controller, usize)>,
    v2: Option<usize>,
    /// Directories that a container engine makes for it elsewhere; only their end is loadline's.
    others: Vec<PathBuf>,
    /// What keeps the directories of a group that another container shows within reach.
    _held: Arc<[OwnedFd]>,
}

impl ControlGroup {
    /// Makes the group in every hierarchy, without limits. `name` is `loadline-<something>`,
    /// normally a [`crate::GroupName`].
    /// Errors: A name that is not allowed, no permission, or a file operation that failed; what had
    /// been made is gone again. A group of that name that exists already is an error.
    pub fn create_group(layout: &CgroupLayout, name: &str) -> Result<Self, CgroupError> {
        let group = Self::describe_group(layout, name)?;
        group.create_dirs()?;
        Ok(group)
    }

    pub fn create_child(&self, name: &str) -> Result<Self, CgroupError> {
        let group = self.child_handle(name)?;
        group.create_dirs()?;
        Ok(group)
    }

    fn child_handle(&self, name: &str) -> Result<Self, CgroupError> {
        name::check_engine_name(name)?;
        let below = |(place, dir): &(CgroupHierarchy, PathBuf)| (place.clone(), dir.join(name));
        Ok(Self {
            name: format!("{}/{name}", self.name),
            dirs: self.dirs.iter().map(below).collect(),
            others: Vec::new(),
            ..self.clone()
        })
    }

    fn create_dirs(&self) -> Result<(), CgroupError> {
        for (made, (place, dir)) in self.dirs.iter().enumerate() {
            if let Err(error) = create_dir(place, dir, &self.controllers_at(made)) {
                // The directory of the failed step may exist already: rmdir tells.
                for (_, dir) in self.dirs[..made].iter().rev() {
                    let _ = fs::remove_dir(dir);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// A group that exists already in at least one hierarchy, such as a leftover; by its name, or
    /// by the name of a group [below](ControlGroup::create_child) it, as [`ControlGroup::name`]
    /// gives them. Errors: A name that is not allowed, no permission.
    pub fn open_existing(layout: &CgroupLayout, name: &str) -> Result<Self, CgroupError> {
        match name.split_once('/') {
            None => Self::describe_group(layout, name),
            Some((above, name)) => Self::describe_group(layout, above)?.child_handle(name),
        }
    }

    fn describe_group(layout: &CgroupLayout, name: &str) -> Result<Self, CgroupError> {
        name::check_name(name)?;
        layout.check_permission()?;
        let mut dirs = Vec::new();
        for place in layout.hierarchies() {
            dirs.push((place.clone(), place.parent()?.join(name)));
        }
        let others = layout.engine_only_mounts().iter();
        Ok(Self {
            others: others.map(|m| m.join(name)).collect(),
            ..Self::from_dirs(name, layout, dirs)
        })
    }

    fn from_dirs(name: &str, layout: &CgroupLayout, dirs: Vec<(CgroupHierarchy, PathBuf)>) -> Self {
        let index = |place: &CgroupHierarchy| dirs.iter().position(|(p, _)| p.mount == place.mount);
        let controllers = layout.controller_hierarchies();
        Self {
            controllers: controllers
                .filter_map(|(c, place)| Some((c, index(place)?)))
                .collect(),
            v2: layout.v2().and_then(index),
            dirs,
            ..Self::out_of_reach(name)
        }
    }

    /// The group of a process of another container, as that container shows it: to be read only. It
    /// stays within reach when the process has ended, until the group is removed.
    /// Errors: A process that may not be looked at (another user's, or one with more rights) or has
    /// ended.
    pub fn of_process(proc_root: &Path, pid: u32) -> Result<Self, CgroupError> {
        let layout = CgroupLayout::of_process(proc_root, pid)?;
        let (mut dirs, mut held) = (Vec::new(), Vec::new());
        for place in layout.hierarchies() {
            let flags = O_PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&place.own, flags, Mode::empty())
                .map_err(|errno| CgroupError::for_file("open", &place.own, errno))?;
            let dir = format!("/proc/self/fd/{}", directory.as_raw_fd());
            dirs.push((place.clone(), PathBuf::from(dir)));
            held.push(directory);
        }
        Ok(Self {
            _held: held.into(),
            ..Self::from_dirs(&format!("of process {pid}"), &layout, dirs)
        })
    }

    /// A group that this process may not inspect: it has no directory, no process and no counter.
    pub fn out_of_reach(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            dirs: Vec::new(),
            controllers: Vec::new(),
            v2: None,
            others: Vec::new(),
            _held: Arc::default(),
        }
    }

    /// The CPU quota and the memory limit in force; `None` for no limit. Errors: A group that is
    /// gone.
    pub fn in_force(&self) -> Result<(Option<Cpus>, Option<Bytes>), CgroupError> {
        let of = |controller| match self.controller_dir(controller) {
            Some((version, dir)) => host::read_limit(controller, version, dir),
            None => Ok((None, None, None)),
        };
        let limits = (of(Controller::Cpu)?.0, of(Controller::Memory)?.1);
        // Of a group that is gone no file says that it has no limit.
        for dir in self.hierarchy_dirs() {
            file::read(&dir.join("cgroup.procs"))?;
        }
        Ok(limits)
    }

    pub fn group_name(&self) -> &str {
        &self.name
    }

    pub fn controller_dir(&self, controller: Controller) -> Option<(CgroupVersion, &Path)> {
        let (_, index) = self.controllers.iter().find(|(c, _)| *c == controller)?;
        let (place, dir) = &self.dirs[*index];
        Some((place.version, dir))
    }

    /// Its directory in the v2 mount, if there is one (controllers or not).
    pub fn v2_dir(&self) -> Option<&Path> {
        self.v2.map(|index| self.dirs[index].1.as_path())
    }

    pub fn hierarchy_dirs(&self) -> impl Iterator<Item = &Path> {
        self.dirs.iter().map(|(_, dir)| dir.as_path())
    }

    pub(crate) fn engine_made_dirs(&self) -> &[PathBuf] {
        &self.others
    }

    pub(crate) fn first_dir(&self) -> &Path {
        let mut dirs = self.hierarchy_dirs();
        dirs.next().unwrap_or(Path::new(&self.name))
    }

    fn controllers_at(&self, index: usize) -> Vec<Controller> {
        let there = self.controllers.iter().filter(|(_, i)| *i == index);
        there.map(|(c, _)| *c).collect()
    }

    /// The files into which a process writes `0` to join, before it executes the application. v1
    /// cpuset refuses (ENOSPC) until [`ControlGroup::create_group`] has filled it.
    pub fn join_files(&self) -> Vec<PathBuf> {
        let dirs = self.hierarchy_dirs();
        dirs.map(|dir| dir.join("cgroup.procs")).collect()
    }

    pub fn open_reader(&self) -> Result<CgroupReader, CgroupError> {
        CgroupReader::open_files(self)
    }

    /// Reads everything once. It opens every file: use a [`CgroupReader`] to read often. PSI is among
    /// them, which must not be read faster than every 20 ms.
    /// Errors: A group that is gone.
    pub fn read(&self) -> Result<CgroupSample, CgroupError> {
        self.open_reader()?.read()
    }
}

fn create_dir(
    place: &CgroupHierarchy,
    dir: &Path,
    controllers: &[Controller],
) -> Result<(), CgroupError> {
    if place.version == CgroupVersion::V2 && !controllers.is_empty() {
        enable_controllers(place, parent_of(dir), controllers)?;
    }
    fs::create_dir(dir).map_err(|e| CgroupError::for_file("create", dir, e))?;
    if place.version == CgroupVersion::V1 && controllers.contains(&Controller::Cpuset) {
        fill_cpuset(dir).inspect_err(|_| {
            let _ = fs::remove_dir(dir);
        })?;
    }
    Ok(())
}

/// A new v1 cpuset group is empty and refuses processes; it gets its parent's values.
fn fill_cpuset(dir: &Path) -> Result<(), CgroupError> {
    let parent = parent_of(dir);
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let value = file::read(&parent.join(name))?;
        file::write(&dir.join(name), value.trim())?;
    }
    Ok(())
}

fn enable_controllers(
    place: &CgroupHierarchy,
    parent: &Path,
    controllers: &[Controller],
) -> Result<(), CgroupError> {
    let control = parent.join("cgroup.subtree_control");
    let enabled = file::read(&control)?;
    let enabled: Vec<&str> = enabled.split_ascii_whitespace().collect();
    let mut missing = controllers.to_vec();
    missing.retain(|c| !enabled.contains(&c.kernel_name()));
    let missing: Vec<String> = missing.iter().map(|c| format!("+{c}")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    let mut attempts = 0;
    loop {
        match file::write(&control, &missing) {
            // "No internal processes": a group with processes cannot give controllers to
            // children. A process that forks while it is moved leaves a child behind.
            Err(e) if e.is_errno(Errno::BUSY) && attempts < EVACUATION_ATTEMPTS => {
                evacuate(place, parent)?;
            }
            other => return other,
        }
        attempts += 1;
    }
}

fn parent_of(dir: &Path) -> &Path {
    dir.parent().unwrap_or(dir)
}

/// Moves the processes of loadline's own group into a child, so that it can have other children.
/// Done only where these processes are loadline's to move: itself alone, a delegated group, or
/// the topmost group of a container.
fn evacuate(place: &CgroupHierarchy, parent: &Path) -> Result<(), CgroupError> {
    let procs = parent.join("cgroup.procs");
    let pids = file::read(&procs)?;
    let own = std::process::id().to_string();
    let is_alone = pids.lines().all(|pid| pid == own);
    let is_container = parent == place.mount;
    if !(is_alone || is_container || is_delegated(parent)) {
        return Err(CgroupError::NotPermitted {
            path: parent.to_owned(),
            why: "it has other processes, and a cgroup v2 with processes cannot be divided"
                .to_owned(),
            hint: crate::error::DELEGATION_HINT.to_owned(),
        });
    }
    let supervisor = parent.join(SUPERVISOR);
    if let Err(error) = fs::create_dir(&supervisor)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(CgroupError::for_file("create", &supervisor, error));
    }
    for pid in pids.lines() {
        match file::write(&supervisor.join("cgroup.procs"), pid) {
            // It ended meanwhile.
            Err(error) if error.is_errno(Errno::SRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeCgroupTree, ROOT};

    #[test]
    fn a_step_that_fails_removes_what_was_made() {
        let fake = FakeCgroupTree::from_captured("v1");
        let layout = fake.detected_layout(ROOT);
        fs::remove_dir(fake.cgroup_root().join("freezer")).unwrap();
        let error = ControlGroup::create_group(&layout, "loadline-x").unwrap_err();
        assert!(error.to_string().contains("freezer/loadline-x"), "{error}");
        for hierarchy in ["cpu,cpuacct", "memory", "pids"] {
            let left = fs::read_dir(fake.cgroup_root().join(hierarchy))
                .unwrap()
                .count();
            assert_eq!(left, 0, "{hierarchy}");
        }
    }

    #[test]
    fn the_files_to_join_by_are_one_for_each_hierarchy() {
        let fake = FakeCgroupTree::from_captured("v1");
        let group = ControlGroup::create_group(&fake.detected_layout(ROOT), "loadline-x").unwrap();
        let files = group.join_files();
        let wanted = ["cpu,cpuacct", "memory", "pids", "freezer"]
            .map(|h| fake.cgroup_root().join(h).join("loadline-x/cgroup.procs"));
        assert_eq!(files, wanted);
    }

    #[test]
    fn a_group_of_another_process_stays_within_reach() {
        let proc = Path::new("/proc");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let group = ControlGroup::of_process(proc, child.id());
        let (limits, processes) = match &group {
            Ok(group) => (group.in_force(), group.process_ids().unwrap()),
            Err(error) => {
                println!("SKIP a group of another process: {error}");
                child.kill().unwrap();
                child.wait().unwrap();
                return;
            }
        };
        assert!(processes.contains(&child.id()), "{processes:?}");
        limits.unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!Path::new(&format!("/proc/{}/root/proc", child.id())).exists());
        group.unwrap().read().expect("its directories are held");
    }

    #[test]
    fn a_group_that_is_gone_is_not_one_without_limits() {
        let fake = FakeCgroupTree::from_captured("v1");
        let group = ControlGroup::create_group(&fake.detected_layout(ROOT), "loadline-x").unwrap();
        group.in_force().unwrap_err();
    }

    #[test]
    fn controllers_are_enabled_for_children_once() {
        let fake = FakeCgroupTree::from_captured("v2");
        let files = [
            ("cgroup.controllers", "cpu io memory pids\n"),
            ("cgroup.subtree_control", "cpu\n"),
        ];
        fake.add_group("", &files);
        ControlGroup::create_group(&fake.detected_layout(ROOT), "loadline-x").unwrap();
        assert_eq!(fake.read_text("cgroup.subtree_control"), "+memory +pids");
    }

    #[test]
    fn names_that_could_leave_the_parent_are_refused() {
        let fake = FakeCgroupTree::from_captured("v1");
        for name in [
            "x",
            "loadline-",
            "loadline-../x",
            "loadline-a/b",
            "loadline-\n",
        ] {
            ControlGroup::create_group(&fake.detected_layout(ROOT), name).unwrap_err();
        }
    }
}
