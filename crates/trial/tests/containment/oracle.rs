//! What must be the same before and after: the leak oracle.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything that a trial could leave behind on this machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Traces {
    /// Processes of the applications' user, or with a trial's mark, by command line.
    processes: BTreeSet<String>,
    /// Children of this process that were not waited for, or still run.
    children: BTreeSet<String>,
    /// Directories of the groups of this process's trials, in every hierarchy.
    groups: BTreeSet<PathBuf>,
    /// Lines of this process's mount table.
    pub mounts: BTreeSet<String>,
    /// Open descriptors, by what they are.
    descriptors: Vec<String>,
    /// Files of the applications' user in directories where everybody may write.
    strays: BTreeSet<PathBuf>,
    /// That user's objects of System V, outside of all trials.
    system_v: BTreeSet<String>,
    /// That user's keys.
    keys: i64,
    /// Directories of trials in the scratch directory: none stays.
    scratch: BTreeSet<PathBuf>,
}

impl Traces {
    /// Looks now. `uid` is the user that only applications of this test run as.
    pub fn now(uid: u32, scratch: &Path) -> Self {
        Self {
            processes: processes(uid),
            children: children(),
            groups: groups(std::process::id()),
            mounts: lines(&read("/proc/self/mountinfo")),
            descriptors: descriptors(),
            strays: strays(uid),
            system_v: system_v(uid),
            keys: keys(uid),
            scratch: unfinished(scratch),
        }
    }
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// Groups that exist in the kernel, removed ones with pages included; the memory controller's.
pub fn num_cgroups() -> i64 {
    let table = read("/proc/cgroups");
    let memory = table.lines().find(|line| line.starts_with("memory"));
    let count = memory.and_then(|line| line.split_ascii_whitespace().nth(2)?.parse().ok());
    count.unwrap_or(0)
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn process_ids() -> Vec<PathBuf> {
    let mut found = entries("/proc");
    found.retain(|path| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    });
    found
}

pub fn processes(uid: u32) -> BTreeSet<String> {
    let is_ours = |path: &PathBuf| {
        let status = read(path.join("status"));
        let owner = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let has_uid = owner.is_some_and(|ids| {
            ids.split_ascii_whitespace().next() == Some(uid.to_string().as_str())
        });
        // The environment of another process is only readable when it is there.
        let marked = fs::read(path.join("environ")).unwrap_or_default();
        has_uid || marked.starts_with(b"LOADLINE_TRIAL=containment-")
    };
    let describe = |path: PathBuf| {
        let command = read(path.join("cmdline")).replace('\0', " ");
        format!("{} {command}", path.display())
    };
    process_ids()
        .into_iter()
        .filter(is_ours)
        .map(describe)
        .collect()
}

fn children() -> BTreeSet<String> {
    let own = format!("PPid:\t{}", std::process::id());
    let is_child = |path: &PathBuf| read(path.join("status")).lines().any(|line| line == own);
    let describe = |path: PathBuf| format!("{} {}", path.display(), read(path.join("stat")));
    process_ids()
        .into_iter()
        .filter(is_child)
        .map(describe)
        .collect()
}

/// Directories `loadline-...-containment-<owner>-<number>`, of who has started the trial, two levels below the cgroup root: v1
/// and hybrid have one level of controllers, v2 has none.
pub fn groups(owner: u32) -> BTreeSet<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mark = format!("-containment-{owner}-");
    let is_ours = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        name.starts_with("loadline-") && name.contains(&mark)
    };
    let below = entries(root).into_iter().flat_map(entries);
    entries(root)
        .into_iter()
        .chain(below)
        .filter(is_ours)
        .collect()
}

fn descriptors() -> Vec<String> {
    let target = |path: PathBuf| fs::read_link(path).ok().map(|to| to.display().to_string());
    let mut all: Vec<String> = entries("/proc/self/fd")
        .into_iter()
        .filter_map(target)
        .collect();
    // The listing process itself.
    all.retain(|target| !target.starts_with("/proc/"));
    all.sort();
    all
}

/// The uppermost ones: what lies below one of another user is that user's.
fn strays(uid: u32) -> BTreeSet<PathBuf> {
    let is_of_user = |path: &PathBuf| path.symlink_metadata().is_ok_and(|file| file.uid() == uid);
    [
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/dev/mqueue",
        "/run/lock",
        "/run/user",
    ]
    .iter()
    .flat_map(entries)
    .filter(is_of_user)
    .collect()
}

/// Lines of /proc/sysvipc with this user as the owner, by kind, key and number.
fn system_v(uid: u32) -> BTreeSet<String> {
    let uid = uid.to_string();
    let kinds = ["msg", "sem", "shm"].map(|kind| (kind, read(format!("/proc/sysvipc/{kind}"))));
    let of_user = |(kind, table): (&str, String)| {
        let lines = table.lines().skip(1);
        let of_user = lines.filter(|line| line.split_ascii_whitespace().any(|word| word == uid));
        let objects = of_user.map(|line| line.split_ascii_whitespace().take(2).collect::<Vec<_>>());
        objects
            .map(|words| format!("{kind} {}", words.join(" ")))
            .collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_user).collect()
}

/// Keys of a user that the kernel keeps, by /proc/key-users.
pub fn keys(uid: u32) -> i64 {
    let table = read("/proc/key-users");
    let own = format!("{uid}:");
    let line = table
        .lines()
        .find(|line| line.trim_start().starts_with(&own));
    let count = line.and_then(|line| {
        line.split_ascii_whitespace()
            .nth(2)?
            .split('/')
            .next()?
            .parse()
            .ok()
    });
    count.unwrap_or(0)
}

fn unfinished(scratch: &Path) -> BTreeSet<PathBuf> {
    let name = |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let is_trial = |path: &PathBuf| {
        let name = name(path);
        path.is_dir() && name.is_some_and(|name| name.starts_with("containment-"))
    };
    entries(scratch).into_iter().filter(is_trial).collect()
}
