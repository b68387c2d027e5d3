//! What a contained program can see and do, one fact a line: the test compares.

use std::fs::{self, OpenOptions};
use std::path::Path;

use crate::say;

pub(crate) fn report() -> u8 {
    let mut facts = vec![
        format!("descriptors {}", descriptors().join(" ")),
        format!("pid {}", std::process::id()),
        format!("environment {}", environment().join(" ")),
        format!("directory {}", directory()),
        format!("writable-cgroups {}", writable_cgroups().join(" ")),
        format!("interfaces {}", names("/sys/class/net").len()),
        format!("network {}", link("/proc/self/ns/net")),
        format!("tmp {}", names("/tmp").join(" ")),
        format!("shm {}", names("/dev/shm").join(" ")),
        format!("size-of-shm {}", size_of_shm()),
        format!("processes {}", processes()),
        format!("session {}", is_session_leader()),
        format!("services {}", names("/run").join(" ")),
        format!("firmware {}", names("/sys/firmware").join(" ")),
        format!(
            "keys {}",
            fs::read("/proc/keys").map_or(0, |keys| keys.len())
        ),
        format!("user-namespace {}", makes_user_namespace()),
    ];
    facts.extend(status());
    facts.extend(limits());
    for fact in facts {
        say(&format!("{}\n", fact.trim_end()));
    }
    0
}

/// Numbers of open descriptors, but for the one that lists them.
fn descriptors() -> Vec<String> {
    let all = names("/proc/self/fd");
    all.into_iter()
        .filter(|number| fs::read_link(format!("/proc/self/fd/{number}")).is_ok())
        .collect()
}

fn environment() -> Vec<String> {
    std::env::vars_os()
        .map(|(key, _)| key.to_string_lossy().into_owned())
        .collect()
}

fn directory() -> String {
    let path = std::env::current_dir();
    path.map_or_else(|e| e.to_string(), |path| path.display().to_string())
}

/// Files of the own cgroup, of its parent and of the root that can be opened for writing.
pub(crate) fn writable_cgroups() -> Vec<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut writable = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        for mount in names("/sys/fs/cgroup") {
            let is_of_line = controllers.split(',').any(|c| c == mount) || mount == "unified";
            let own = Path::new("/sys/fs/cgroup").join(&mount);
            let own = own.join(path.trim_start_matches('/'));
            if is_of_line {
                writable.extend(own.ancestors().take(2).flat_map(writable_files));
            }
        }
    }
    writable.extend(writable_files(Path::new("/sys/fs/cgroup")));
    writable
}

fn writable_files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_writable = |path: &Path| OpenOptions::new().write(true).open(path).is_ok();
    let mut found: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && is_writable(path))
        .map(|path| path.display().to_string())
        .collect();
    let new = directory.join("loadline-zoo");
    if fs::create_dir(&new).is_ok() {
        let _ = fs::remove_dir(&new);
        found.push(directory.display().to_string());
    }
    found
}

fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn link(path: &str) -> String {
    fs::read_link(path).map_or_else(|e| e.to_string(), |to| to.display().to_string())
}

/// As its mount says it: `size=65536k`. The uppermost one counts, and stands last.
fn size_of_shm() -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = mounts.lines().rfind(|line| line.contains(" /dev/shm "));
    let mut options = own.unwrap_or_default().split([' ', ',']);
    let size = options.find_map(|option| option.strip_prefix("size="));
    size.unwrap_or("unknown").to_owned()
}

fn processes() -> usize {
    let is_process = |name: &&String| name.bytes().all(|b| b.is_ascii_digit());
    names("/proc").iter().filter(is_process).count()
}

/// Whether util-linux can make one for it: without util-linux that is not known.
fn makes_user_namespace() -> String {
    let mut command = std::process::Command::new("/usr/bin/unshare");
    command.args(["--user", "/bin/true"]);
    command.stderr(std::process::Stdio::null());
    let made = command.status();
    made.map_or_else(|e| e.to_string(), |status| status.success().to_string())
}

fn is_session_leader() -> bool {
    let own = rustix::process::getpid();
    rustix::process::getsid(None).is_ok_and(|session| session == own)
}

fn status() -> Vec<String> {
    let wanted = [
        "Uid:",
        "Gid:",
        "Groups:",
        "CapInh:",
        "CapPrm:",
        "CapEff:",
        "CapBnd:",
        "CapAmb:",
        "NoNewPrivs:",
        "Seccomp:",
        "SigIgn:",
        "SigBlk:",
        "Cpus_allowed_list:",
        "Umask:",
    ];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let fields = |line: &str| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    status
        .lines()
        .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
        .map(fields)
        .collect()
}

fn limits() -> Vec<String> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let fields = |line: &str| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    limits
        .lines()
        .filter(|line| line.starts_with("Max core") || line.starts_with("Max open"))
        .map(fields)
        .collect()
}
