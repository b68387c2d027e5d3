//! Removes what killed loadlines left: containers of engines, groups (with whatever still runs in them)
//! and scratch directories. Namespaces and mounts need no sweep: they vanish with their last process.
//!
//! Goes by identity only (boot id, process id, start time of the owner), never by age or guess.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_cgroup::{CgroupLayout, GroupName};
use loadline_protocol::{ContainerEngine, RunRefusal};

use crate::site::Site;
use crate::{halt, oci, scratch};

const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct SiteSweep {
    pub groups: Vec<String>,
    pub killed: usize,
    pub containers: Vec<String>,
    pub directories: Vec<PathBuf>,
    pub failures: Vec<String>,
}

impl Site {
    /// Removes leftovers of dead owners; what a living loadline has is not touched. Called at
    /// start and by `loadline clean`.
    pub fn sweep_leftovers(&self) -> Result<SiteSweep, RunRefusal> {
        let proc = Path::new("/proc");
        // First: an engine that is still starting one would make the groups again.
        let root = self.options.scratch_root.as_deref();
        let containers = root.map(|root| scratch::sweep_containers(root, proc));
        let mut swept = sweep_groups(&self.layout, proc)?;
        let failures = containers.iter().flatten().map(ToString::to_string);
        swept.failures.extend(failures);
        if let Some(root) = &self.options.scratch_root {
            let (directories, failures) = scratch::sweep_scratch(root, proc);
            swept.directories = directories;
            let failures = failures.iter().map(ToString::to_string);
            swept.failures.extend(failures);
        }
        Ok(swept)
    }

    /// The same, and every container of these engines that a dead loadline of this machine made,
    /// whichever state directory it had: if it was killed while an engine worked for it, the
    /// container may not be noted anywhere.
    pub fn sweep_with(&self, engines: &[ContainerEngine]) -> Result<SiteSweep, RunRefusal> {
        let (mut containers, mut failures) = (Vec::new(), Vec::new());
        for engine in engines {
            // One that does not answer has nothing that could be found.
            let names = oci::labelled_containers(engine).unwrap_or_default();
            for name in names.into_iter().filter(|name| is_dead_of_ours(name)) {
                match oci::remove_by_name(engine, &name) {
                    Ok(()) => containers.push(name),
                    Err(error) => failures.push(format!("{name}: {error}")),
                }
            }
        }
        let mut swept = self.sweep_leftovers()?;
        swept.containers = containers;
        swept.failures.append(&mut failures);
        Ok(swept)
    }
}

/// This machine, in sixteen hexadecimal digits: marks its objects elsewhere.
pub fn client_id() -> String {
    let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    let mut hasher = DefaultHasher::new();
    (id, name).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Whether the owner in a name was a process of this machine since boot, and is dead: only such
/// objects may be removed from a place shared with other machines. Objects from before the boot
/// cannot be distinguished from a clone's.
pub fn is_dead_of_ours(name: &str) -> bool {
    let proc = Path::new("/proc");
    let owner = name.parse::<GroupName>();
    owner.is_ok_and(|owner| owner.is_of_this_boot(proc)) && is_dead(name, proc)
}

pub fn is_dead(name: &str, proc: &Path) -> bool {
    name.parse::<GroupName>()
        .and_then(|name| name.is_owner_alive(proc))
        .is_ok_and(|alive| !alive)
}

fn sweep_groups(layout: &CgroupLayout, proc: &Path) -> Result<SiteSweep, RunRefusal> {
    let done = loadline_cgroup::sweep_cgroups(layout, |name| is_dead(name, proc), DEADLINE)
        .map_err(|error| halt::cgroup_refusal("looking for leftovers of earlier trials", &error))?;
    let failures = done.failed.iter();
    let failures = failures.map(|(name, error)| format!("{name}: {error}"));
    Ok(SiteSweep {
        groups: done.removed,
        killed: done.killed,
        failures: failures.collect(),
        ..SiteSweep::default()
    })
}
