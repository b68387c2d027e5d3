//! Removes what killed loadlines left: groups (with whatever still runs in them) and scratch
//! directories. Namespaces and mounts need no sweep: they vanish with their last process.
//!
//! Goes by identity only (boot id, process id, start time of the owner), never by age or guess.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_cgroup::{GroupName, Layout};
use loadline_trial::Refusal;

use crate::site::Site;
use crate::{halt, scratch};

/// How long one group may take to die, and to be removed.
const DEADLINE: Duration = Duration::from_secs(10);

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    /// Groups that are gone now.
    pub groups: Vec<String>,
    /// Processes that still ran in them.
    pub killed: usize,
    /// Scratch directories that are gone now.
    pub directories: Vec<PathBuf>,
    /// What could not be removed, and why.
    pub failures: Vec<String>,
}

impl Swept {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.directories.is_empty() && self.failures.is_empty()
    }
}

impl Site {
    /// Removes leftovers of dead owners; what a living loadline has is not touched. Called at
    /// start and by `loadline clean`.
    ///
    /// # Errors
    /// [`Refusal`] when the cgroups cannot be listed.
    pub fn sweep(&self) -> Result<Swept, Refusal> {
        let proc = Path::new("/proc");
        let mut swept = sweep_groups(&self.layout, proc)?;
        if let Some(root) = &self.options.scratch_root {
            let (directories, failures) = scratch::sweep(root, proc);
            swept.directories = directories;
            swept
                .failures
                .extend(failures.iter().map(ToString::to_string));
        }
        Ok(swept)
    }
}

fn sweep_groups(layout: &Layout, proc: &Path) -> Result<Swept, Refusal> {
    // Unknown is alive.
    let is_dead = |name: &str| {
        name.parse::<GroupName>()
            .and_then(|name| name.is_owner_alive(proc))
            .is_ok_and(|alive| !alive)
    };
    let done = loadline_cgroup::sweep(layout, is_dead, DEADLINE)
        .map_err(|error| halt::cgroup("looking for leftovers of earlier trials", &error))?;
    Ok(Swept {
        groups: done.removed,
        killed: done.killed,
        directories: Vec::new(),
        failures: done
            .failed
            .iter()
            .map(|(name, error)| format!("{name}: {error}"))
            .collect(),
    })
}
