//! What loadline and its trials could leave on this machine, found by the lab's name.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline_cgroup::GroupName;

use crate::lab::Lab;
use crate::process::{POLL, Running};

/// Running processes of this lab: loadline, what it starts of itself, and the applications.
pub fn processes(lab: &Lab) -> Vec<PathBuf> {
    let name = lab.path().as_os_str().as_bytes();
    let is_ours = |process: &PathBuf| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        let names_it = command.windows(name.len()).any(|part| part == name);
        names_it || program.starts_with(lab.path())
    };
    all_processes().into_iter().filter(is_ours).collect()
}

/// Asserts that no process of the lab is left within this time.
#[track_caller]
pub fn assert_dead(lab: &Lab, within: Duration) {
    let begin = Instant::now();
    loop {
        let left = processes(lab);
        if left.is_empty() {
            return;
        }
        let commands = || {
            let command = |p: &PathBuf| fs::read_to_string(p.join("cmdline")).unwrap_or_default();
            left.iter().map(command).collect::<Vec<_>>()
        };
        assert!(
            begin.elapsed() < within,
            "alive after {within:?}: {left:?} {:?}",
            commands()
        );
        std::thread::sleep(POLL);
    }
}

/// The processes of this lab's loadline that own groups: those of trials, and keepers.
pub fn trials(lab: &Lab) -> Vec<u32> {
    [parts(lab, "trial-part"), parts(lab, "keeper-part")].concat()
}

/// The processes that this lab's loadline started of itself as this part.
pub fn parts(lab: &Lab, part: &str) -> Vec<u32> {
    let is_trial = |process: &PathBuf| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(part.as_bytes())
            && fs::read_link(process.join("exe"))
                .is_ok_and(|program| program.starts_with(lab.path()))
    };
    let trials = all_processes().into_iter().filter(is_trial);
    let pid = |process: PathBuf| process.file_name()?.to_str()?.parse().ok();
    trials.filter_map(pid).collect()
}

/// Network namespaces, and when they were last seen (clock ticks since boot): the kernel gives the number of
/// a namespace that is gone to the next.
pub type SeenNetworks = BTreeMap<PathBuf, u64>;

/// Network namespaces of the lab's processes but the one of this test.
pub fn networks(lab: &Lab) -> SeenNetworks {
    let own = fs::read_link("/proc/self/ns/net").ok();
    let found = processes(lab).into_iter();
    let found = found.filter_map(|process| network(&process));
    let now = ticks_since_start();
    found
        .filter(|namespace| Some(namespace) != own.as_ref())
        .map(|namespace| (namespace, now))
        .collect()
}

fn ticks_since_start() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").expect("a clock");
    let seconds: f64 = uptime
        .split(' ')
        .next()
        .expect("seconds")
        .parse()
        .expect("a number");
    (seconds * 100.0) as u64 + 1
}

/// When a process started, in the same ticks (proc(5): 100 a second).
fn started(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Kills a loadline in the middle of a trial: its processes die with it, and after `clean` no
/// traces are left.
#[track_caller]
pub fn assert_killed_whole(lab: &Lab, mut victim: Running) {
    let (owners, networks) = (trials(lab), networks(lab));
    assert!(!groups(&owners).is_empty(), "it runs a trial in a group");
    victim.kill();
    assert_dead(lab, Duration::from_secs(10));
    lab.call("clean").into_end().expect_code(0);
    assert_nothing_left(lab, &owners, &networks);
}

/// Asserts that the lab has left nothing: processes, mounts, these network namespaces, files of
/// running trials, and the groups of these owners.
#[track_caller]
pub fn assert_nothing_left(lab: &Lab, owners: &[u32], networks: &SeenNetworks) {
    assert_dead(lab, Duration::from_secs(10));
    let table = fs::read_to_string("/proc/self/mountinfo").expect("a mount table");
    let name = lab.path().display().to_string();
    assert!(!table.contains(&name), "mounts are left:\n{table}");
    let holds = |process: &PathBuf| {
        let seen = network(process).and_then(|namespace| networks.get(&namespace));
        seen.is_some_and(|seen| started(process).is_some_and(|at| at <= *seen))
    };
    let held = all_processes().into_iter().find(holds);
    assert_eq!(held, None, "a network namespace is left");
    for namespace in networks.keys() {
        let is_mounted = table.contains(&namespace.display().to_string());
        assert!(!is_mounted, "{} is mounted", namespace.display());
    }
    let trials = entries(&lab.state().join("trials"));
    assert_eq!(trials, Vec::<PathBuf>::new(), "files of trials are left");
    let groups = groups(owners);
    assert_eq!(groups, Vec::<PathBuf>::new(), "control groups are left");
}

/// Groups of trials that these processes own. v1 and hybrid have them below a level of controllers,
/// v2 has not.
pub fn groups(owners: &[u32]) -> Vec<PathBuf> {
    let top = entries(Path::new("/sys/fs/cgroup"));
    let below = top.iter().flat_map(|directory| entries(directory));
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.parse::<GroupName>();
        name.is_ok_and(|name| owners.contains(&name.pid))
    };
    below.chain(top.iter().cloned()).filter(is_ours).collect()
}

fn network(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/net")).ok()
}

fn all_processes() -> Vec<PathBuf> {
    let mut found = entries(Path::new("/proc"));
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        name.iter().all(u8::is_ascii_digit)
    });
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
