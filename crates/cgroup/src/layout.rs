//! The cgroup hierarchies of this machine, loadline's place in them, and where it may make groups.
//!
//! Owns the decision between v1, v2 and hybrid, controller by controller. Reads
//! /proc/self/mountinfo and /proc/self/cgroup; both roots are parameters, so that a fake tree can
//! replace them. Only mounts below /sys/fs/cgroup count: every distribution and container runtime
//! has them there.
//!
//! Where groups are made: as root below the root of each hierarchy, next to everything else and so
//! only under the container's limit. If systemd owns a v2 tree, and without root, only below
//! loadline's own delegated group (systemd's CGROUP_DELEGATION document).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use loadline_sizing::limits::{
    CgroupMembership, Hierarchy, HierarchyMount, cgroup_memberships, parse_mounts,
};

use crate::error::{
    CgroupError, DELEGATION_HINT, HIDDEN_HINT, READ_ONLY_HINT, ROOT_DELEGATION_HINT,
};
use crate::file;

/// Where cgroups are mounted, and how mountinfo names it whatever the root parameter is.
const STANDARD_ROOT: &str = "/sys/fs/cgroup";

/// loadline moves itself here when its own v2 group must have children with controllers
/// ("no internal processes", cgroup-v2.rst).
pub(crate) const SUPERVISOR: &str = "loadline-supervisor";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    Cpu,
    /// v1 only: CPU usage. On v2 cpu.stat has it in every group.
    Cpuacct,
    Cpuset,
    Memory,
    Pids,
    /// v1 only: freezing. On v2 every group has it.
    Freezer,
}

impl Controller {
    pub const ALL: [Self; 6] = [
        Self::Cpu,
        Self::Cpuacct,
        Self::Cpuset,
        Self::Memory,
        Self::Pids,
        Self::Freezer,
    ];

    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Freezer => "freezer",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.kernel_name() == name)
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.kernel_name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HierarchyMode {
    V1,
    V2,
    /// v1 controllers, and also a v2 mount.
    Hybrid,
}

impl fmt::Display for HierarchyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
            Self::Hybrid => "hybrid",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupVersion {
    V1,
    V2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupHierarchy {
    pub version: CgroupVersion,
    pub mount: PathBuf,
    pub own: PathBuf,
    parent: Result<PathBuf, NoParentReason>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NoParentReason {
    why: &'static str,
    hint: &'static str,
}

impl CgroupHierarchy {
    pub fn parent(&self) -> Result<&Path, CgroupError> {
        let refused = |refusal: &NoParentReason| CgroupError::NotPermitted {
            path: self.own.clone(),
            why: refusal.why.to_owned(),
            hint: refusal.hint.to_owned(),
        };
        self.parent.as_deref().map_err(refused)
    }

    /// Every directory with limits that act on `dir`: from `dir` up to the mount, both included.
    pub fn ancestors(&self, dir: &Path) -> Vec<PathBuf> {
        let below = dir.ancestors().take_while(|d| d.starts_with(&self.mount));
        below.map(Path::to_owned).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Privilege {
    pub root: bool,
    pub systemd: bool,
}

impl Privilege {
    fn for_this_process() -> Self {
        Self {
            root: rustix::process::geteuid().is_root(),
            // sd_booted(3): the documented test for "systemd is the init of this machine".
            systemd: Path::new("/run/systemd/system").is_dir(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct CgroupLayout {
    mode: HierarchyMode,
    places: BTreeMap<Controller, CgroupHierarchy>,
    v2: Option<CgroupHierarchy>,
    /// Hierarchies of v1 that loadline does not use, but container engines do.
    others: Vec<PathBuf>,
    proc_root: PathBuf,
}

impl CgroupLayout {
    /// Finds the hierarchies.
    ///
    /// `root` is normally `/sys/fs/cgroup`, `proc_root` normally `/proc`.
    /// Errors: A file under `proc_root` that cannot be read; [`CgroupError::NotMounted`] when there
    /// is no cgroup mount. A machine where groups may not be made is no error here, see
    /// [`CgroupLayout::check_permission`].
    pub fn detect(root: &Path, proc_root: &Path) -> Result<Self, CgroupError> {
        let privilege = Privilege::for_this_process();
        Self::detect_from(&proc_root.join("self"), root, proc_root, privilege)
    }

    /// The hierarchies as a process of another container sees them; groups are never made there.
    /// Errors: As [`CgroupLayout::detect`], and when that process may not be looked at or has
    /// ended.
    pub fn of_process(proc_root: &Path, pid: u32) -> Result<Self, CgroupError> {
        let process = proc_root.join(pid.to_string());
        let root = process.join("root").join(&STANDARD_ROOT[1..]);
        Self::detect_from(&process, &root, proc_root, Privilege::for_this_process())
    }

    pub(crate) fn detect_from(
        process: &Path,
        root: &Path,
        proc_root: &Path,
        privilege: Privilege,
    ) -> Result<Self, CgroupError> {
        let mounts = parse_mounts(&file::read(&process.join("mountinfo"))?);
        let own = cgroup_memberships(&file::read(&process.join("cgroup"))?);
        let mut places = BTreeMap::new();
        let mut v2 = None;
        let mut others = Vec::new();
        for mount in &mounts {
            let Some(mount_point) = reroot_mount(&mount.point, root) else {
                continue;
            };
            if mount.hierarchy == Hierarchy::V2 {
                let own = own.iter().find(|m| m.controllers.is_empty());
                let own = own_dir(&mount_point, mount, own);
                v2.get_or_insert((mount_point, own));
                continue;
            }
            let controllers = mount.controllers.iter();
            let controllers = controllers.filter_map(|o| Controller::from_name(o));
            let controllers: Vec<Controller> = controllers.collect();
            for controller in &controllers {
                let has_it = |c: &String| c == controller.kernel_name();
                let own = own.iter().find(|m| m.controllers.iter().any(has_it));
                let own = own_dir(&mount_point, mount, own);
                let place = || place_v1(&mount_point, own, privilege);
                places.entry(*controller).or_insert_with(place);
            }
            if controllers.is_empty() {
                others.push(mount_point);
            }
        }
        let is_hybrid = !places.is_empty();
        let v2 = v2.map(|(mount, own)| place_v2(mount, own, is_hybrid, privilege));
        if let Some(v2) = &v2 {
            for controller in offered_controllers(v2)? {
                places.entry(controller).or_insert_with(|| v2.clone());
            }
        }
        let mode = match (&v2, is_hybrid) {
            (Some(_), true) => HierarchyMode::Hybrid,
            (Some(_), false) => HierarchyMode::V2,
            (None, true) => HierarchyMode::V1,
            (None, false) => {
                return Err(CgroupError::NotMounted {
                    root: root.to_owned(),
                });
            }
        };
        Ok(Self {
            mode,
            places,
            v2,
            others,
            proc_root: proc_root.to_owned(),
        })
    }

    pub fn mode(&self) -> HierarchyMode {
        self.mode
    }

    pub fn hierarchy_of(&self, controller: Controller) -> Option<&CgroupHierarchy> {
        self.places.get(&controller)
    }

    pub fn controller_hierarchies(&self) -> impl Iterator<Item = (Controller, &CgroupHierarchy)> {
        self.places.iter().map(|(c, p)| (*c, p))
    }

    /// The v2 mount, with or without controllers. It gives cgroup.kill, PSI and cgroup.events.
    pub fn v2(&self) -> Option<&CgroupHierarchy> {
        self.v2.as_ref()
    }

    /// Mounts of v1 hierarchies in which only container engines make groups.
    pub(crate) fn engine_only_mounts(&self) -> &[PathBuf] {
        &self.others
    }

    pub fn proc_root(&self) -> &Path {
        &self.proc_root
    }

    pub fn check_permission(&self) -> Result<(), CgroupError> {
        for place in self.hierarchies() {
            place.parent()?;
        }
        Ok(())
    }

    pub(crate) fn hierarchies(&self) -> Vec<&CgroupHierarchy> {
        let mut found: Vec<&CgroupHierarchy> = Vec::new();
        for place in self.places.values().chain(&self.v2) {
            if !found.iter().any(|p| p.mount == place.mount) {
                found.push(place);
            }
        }
        found
    }
}

fn reroot_mount(mount_point: &str, root: &Path) -> Option<PathBuf> {
    let below = Path::new(mount_point).strip_prefix(STANDARD_ROOT).ok()?;
    Some(root.join(below).components().collect())
}

/// Directory of loadline's own group below a mount. The membership path starts at the root of the
/// hierarchy (or of the cgroup namespace), the mount may show only a part of that tree.
fn own_dir(mount_point: &Path, mount: &HierarchyMount, own: Option<&CgroupMembership>) -> PathBuf {
    let path = own.map_or("/", |m| m.path.as_str());
    let below = Path::new(path).strip_prefix(&mount.root);
    let below = below.unwrap_or(Path::new(""));
    let is_plain = |c| matches!(c, std::path::Component::Normal(_));
    let mut dir = mount_point.to_owned();
    if below.components().all(is_plain) {
        dir.extend(below.components());
    }
    if dir.file_name().is_some_and(|name| name == SUPERVISOR) {
        dir.pop();
    }
    dir
}

fn place_v1(mount: &Path, own: PathBuf, privilege: Privilege) -> CgroupHierarchy {
    // systemd never disables a v1 controller below a directory that it did not make, so the root
    // of the hierarchy is safe for root even where systemd runs.
    let parent = if privilege.root {
        writable_mount(mount)
    } else {
        own_if_writable(&own)
    };
    CgroupHierarchy {
        version: CgroupVersion::V1,
        mount: mount.to_owned(),
        own,
        parent,
    }
}

fn place_v2(
    mount: PathBuf,
    own: PathBuf,
    is_hybrid: bool,
    privilege: Privilege,
) -> CgroupHierarchy {
    let parent = match privilege {
        Privilege { root: false, .. } => own_if_writable(&own),
        // In a hybrid layout systemd only tracks processes here; there is no controller to lose.
        Privilege { systemd: true, .. } if !is_hybrid => own_if_delegated(&own),
        _ => writable_mount(&mount),
    };
    CgroupHierarchy {
        version: CgroupVersion::V2,
        mount,
        own,
        parent,
    }
}

fn own_if_writable(own: &Path) -> Result<PathBuf, NoParentReason> {
    require_writable(&own.join("cgroup.procs")).and(require_writable(own))
}

fn writable_mount(mount: &Path) -> Result<PathBuf, NoParentReason> {
    if !mount.exists() {
        return Err(NoParentReason {
            why: "it is mounted, and something covers it",
            hint: HIDDEN_HINT,
        });
    }
    require_writable(mount)
}

fn require_writable(path: &Path) -> Result<PathBuf, NoParentReason> {
    let (why, hint) = match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
        Ok(()) => return Ok(path.to_owned()),
        Err(rustix::io::Errno::ROFS) => ("it is mounted read-only", READ_ONLY_HINT),
        Err(_) => ("it is not writable for this user", DELEGATION_HINT),
    };
    Err(NoParentReason { why, hint })
}

fn own_if_delegated(own: &Path) -> Result<PathBuf, NoParentReason> {
    if is_delegated(own) {
        return Ok(own.to_owned());
    }
    Err(NoParentReason {
        why: "systemd manages it and has not delegated it",
        hint: ROOT_DELEGATION_HINT,
    })
}

/// systemd marks delegated groups with an extended attribute (CGROUP_DELEGATION).
pub(crate) fn is_delegated(own: &Path) -> bool {
    ["trusted.delegate", "user.delegate"].iter().any(|name| {
        let mut value = [0u8; 4];
        matches!(loadline_sys::getxattr(own, *name, &mut value[..]), Ok(1) if value[0] == b'1')
    })
}

/// The controllers that groups made below a v2 place can have.
fn offered_controllers(v2: &CgroupHierarchy) -> Result<Vec<Controller>, CgroupError> {
    let dir = v2.parent.as_deref().unwrap_or(&v2.own);
    let text = file::read_optional(&dir.join("cgroup.controllers"))?.unwrap_or_default();
    let names = text.split_ascii_whitespace();
    Ok(names.filter_map(Controller::from_name).collect())
}

#[cfg(test)]
mod tests;
