//! Ending a group: its processes, killing all, removing its directories.
//!
//! A single pass of kill over cgroup.procs misses children that are born meanwhile (it failed in 1
//! of 10 fork bombs when measured). In order of preference: cgroup.kill, which the kernel does at
//! once; the v1 freezer, which stops the forking first; pids.max = 0 and a loop.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{CgroupError, is_gone};
use crate::file;
use crate::group::ControlGroup;
use crate::layout::{CgroupVersion, Controller};

/// Pause between two looks at a group that is ending. An empty group was seen after 6 to 40 ms.
const POLL: Duration = Duration::from_millis(2);

/// How long the v1 freezer may take before the loop goes on without it.
const FREEZE: Duration = Duration::from_millis(500);

impl ControlGroup {
    /// Ids of all processes in the group and its sub-groups, in every hierarchy; a group that is
    /// gone has none. 0 stands for a process of another PID namespace.
    /// Errors: A directory that cannot be read.
    pub fn process_ids(&self) -> Result<Vec<u32>, CgroupError> {
        let mut found = BTreeSet::new();
        for dir in self.hierarchy_dirs() {
            for dir in dirs_bottom_up(dir)? {
                // EOPNOTSUPP: a threaded sub-group; its processes are listed by its parent.
                let text = file::read_optional(&dir.join("cgroup.procs")).unwrap_or_default();
                let pids = text.unwrap_or_default();
                found.extend(pids.lines().filter_map(|line| line.parse::<u32>().ok()));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Kills every process in the group and its sub-groups, and waits until it is empty. Returns
    /// how many were there at the first look.
    /// Errors: [`CgroupError::StillPopulated`] when processes were left at the deadline.
    pub fn kill_processes(&self, deadline: Duration) -> Result<usize, CgroupError> {
        let start = Instant::now();
        let first = self.process_ids()?;
        if first.is_empty() {
            return Ok(0);
        }
        let thaw = if self.kill_at_once() {
            None
        } else {
            self.stop_forking()
        };
        let mut left = first.clone();
        while !left.is_empty() {
            for pid in &left {
                kill_pid(*pid);
            }
            // A frozen process dies only when it is thawed.
            if let Some(state) = &thaw {
                let _ = file::write(state, "THAWED");
            }
            if start.elapsed() > deadline {
                return Err(CgroupError::StillPopulated {
                    path: self.first_dir().to_owned(),
                    waited_ms: start.elapsed().as_millis(),
                    processes: left,
                });
            }
            thread::sleep(POLL);
            left = self.process_ids()?;
        }
        Ok(first.len())
    }

    /// cgroup.kill (Linux 5.14), sub-groups included. `false` if the kernel lacks it.
    fn kill_at_once(&self) -> bool {
        self.v2_dir()
            .is_some_and(|dir| file::write(&dir.join("cgroup.kill"), "1").is_ok())
    }

    /// Freezes the group where v1 can, else forbids new tasks. Returns the file that thaws it.
    fn stop_forking(&self) -> Option<PathBuf> {
        if let Some((CgroupVersion::V1, dir)) = self.controller_dir(Controller::Freezer) {
            let state = dir.join("freezer.state");
            let start = Instant::now();
            while file::write(&state, "FROZEN").is_ok() && start.elapsed() < FREEZE {
                match file::read(&state) {
                    Ok(text) if text.trim() == "FROZEN" => return Some(state),
                    // FREEZING: writing again helps a process that was in a vfork.
                    Ok(_) => thread::sleep(POLL),
                    Err(_) => break,
                }
            }
            let _ = file::write(&state, "THAWED");
        }
        if let Some((_, dir)) = self.controller_dir(Controller::Pids) {
            let _ = file::write(&dir.join("pids.max"), "0");
        }
        None
    }

    /// Removes the directories of the group and its sub-groups. Gives cached pages back first:
    /// a group that is removed with pages in it stays in the kernel until they are reclaimed.
    /// A group that is gone already is no error.
    /// Errors: A directory that could not be removed before the deadline, as a rule because of a
    /// process that is left in it.
    pub fn remove_dirs(&self, deadline: Duration) -> Result<(), CgroupError> {
        let start = Instant::now();
        for (place, dir) in &self.dirs {
            for dir in dirs_bottom_up(dir)? {
                if self.controller_dir(Controller::Memory) == Some((place.version, &*dir)) {
                    give_pages_back(place.version, &dir);
                }
                remove_dir(&dir, start, deadline)?;
            }
        }
        for dir in self.engine_made_dirs() {
            for dir in dirs_bottom_up(dir)? {
                remove_dir(&dir, start, deadline)?;
            }
        }
        Ok(())
    }

    pub fn exists(&self) -> bool {
        let others = self.engine_made_dirs().iter().map(PathBuf::as_path);
        self.hierarchy_dirs().chain(others).any(Path::exists)
    }
}

fn kill_pid(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Best effort: pages that stay keep an invisible group alive, no more.
fn give_pages_back(version: CgroupVersion, dir: &Path) {
    let _ = match version {
        CgroupVersion::V1 => file::write_io(&dir.join("memory.force_empty"), "0"),
        CgroupVersion::V2 => match file::read(&dir.join("memory.current")) {
            // EAGAIN when only a part could be reclaimed. Linux 5.19 and later.
            Ok(current) => file::write_io(&dir.join("memory.reclaim"), current.trim()),
            Err(_) => Ok(()),
        },
    };
}

/// rmdir until it works: the kernel says EBUSY for a moment after the last process has ended.
fn remove_dir(dir: &Path, start: Instant, deadline: Duration) -> Result<(), CgroupError> {
    let mut pause = Duration::from_millis(1);
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(e) if is_gone(&e) => return Ok(()),
            Err(e) if e.kind() != io::ErrorKind::ResourceBusy || start.elapsed() > deadline => {
                return Err(CgroupError::for_file("remove", dir, e));
            }
            Err(_) => thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn dirs_bottom_up(dir: &Path) -> Result<Vec<PathBuf>, CgroupError> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if is_gone(&e) => continue,
            Err(e) => return Err(CgroupError::for_file("list", &dir, e)),
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                todo.push(entry.path());
            }
        }
        found.push(dir);
    }
    found.reverse();
    Ok(found)
}
