//! Names of groups. A name carries the identity of its owner, so that a leftover of a dead
//! loadline can be told from the group of a live one.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::CgroupError;
use crate::file;
use crate::proc_text::stat_start_time;

pub(crate) const PREFIX: &str = "loadline-";

/// Longest name: NAME_MAX is 255, and sub-groups and container engines add to it.
const MAX_NAME: usize = 200;

/// `loadline-<boot id, 8 hex digits>-<PID namespace>-<pid>-<start time>-<trial>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupName {
    pub boot: String,
    /// Number of the PID namespace that the process id counts in: two containers that share a
    /// cgroup tree or a state directory both have a process 7.
    pub namespace: u64,
    pub pid: u32,
    /// Start time of the owner, clock ticks after boot: tells it from a later process with the
    /// same id.
    pub start_time: u64,
    pub trial: String,
}

impl GroupName {
    /// The name of a group that this process owns.
    /// Errors: [`CgroupError::BadName`] for a trial that is no UUID-like text; unreadable files
    /// below `proc_root` (normally `/proc`).
    pub fn new(proc_root: &Path, trial: &str) -> Result<Self, CgroupError> {
        let stat_path = proc_root.join("self/stat");
        let stat = file::read(&stat_path)?;
        let begin: String = stat.chars().take(120).collect();
        let malformed = || CgroupError::malformed(&stat_path, begin.as_str());
        let pid = stat.split_ascii_whitespace().next();
        let name = Self {
            boot: boot_id(proc_root)?,
            namespace: pid_namespace(proc_root)?,
            pid: pid.and_then(|p| p.parse().ok()).ok_or_else(malformed)?,
            start_time: stat_start_time(&stat).ok_or_else(malformed)?,
            trial: trial.to_owned(),
        };
        check_name(&name.to_string())?;
        Ok(name)
    }

    /// Whether the process that made the group still runs. A process of another PID namespace
    /// cannot be seen from here: it counts as alive until the machine reboots. Errors: Unreadable
    /// files below `proc_root` (normally `/proc`); a process that is gone is no error.
    pub fn is_owner_alive(&self, proc_root: &Path) -> Result<bool, CgroupError> {
        if boot_id(proc_root)? != self.boot {
            return Ok(false);
        }
        if pid_namespace(proc_root)? != self.namespace {
            return Ok(true);
        }
        let stat = proc_root.join(self.pid.to_string()).join("stat");
        match file::read_optional(&stat) {
            Ok(text) => Ok(text.and_then(|t| stat_start_time(&t)) == Some(self.start_time)),
            // It ended between open and read.
            Err(error) if error.is_errno(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether this machine made the name since it was started: the only thing that tells it from
    /// another one, which may be a clone with the same machine-id and host name.
    pub fn is_of_this_boot(&self, proc_root: &Path) -> bool {
        boot_id(proc_root).is_ok_and(|boot| boot == self.boot)
    }
}

/// First eight hex digits of the boot id.
fn boot_id(proc_root: &Path) -> Result<String, CgroupError> {
    let path = proc_root.join("sys/kernel/random/boot_id");
    let id = file::read(&path)?;
    match id.get(..8) {
        Some(boot) if is_boot(boot) => Ok(boot.to_owned()),
        _ => Err(CgroupError::malformed(
            &path,
            id.chars().take(40).collect::<String>(),
        )),
    }
}

/// Number of the own PID namespace. Source: namespaces(7), `pid:[4026531836]`.
fn pid_namespace(proc_root: &Path) -> Result<u64, CgroupError> {
    let path = proc_root.join("self/ns/pid");
    let link = std::fs::read_link(&path);
    let link = link.map_err(|e| CgroupError::for_file("read", &path, e))?;
    let name = link.to_string_lossy();
    let number = name
        .strip_prefix("pid:[")
        .and_then(|rest| rest.strip_suffix(']'));
    let number = number.and_then(|number| number.parse().ok());
    let begin: String = name.chars().take(40).collect();
    number.ok_or_else(|| CgroupError::malformed(&path, begin))
}

fn is_boot(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses names that could leave the parent directory, clash with kernel files, or escape the
/// sweep.
pub(crate) fn check_name(name: &str) -> Result<(), CgroupError> {
    match name.strip_prefix(PREFIX) {
        Some(rest) if !rest.is_empty() => check_engine_name(name),
        _ => Err(bad_name(name)),
    }
}

/// The same for a group below one of loadline's own: its name is an engine's.
pub(crate) fn check_engine_name(name: &str) -> Result<(), CgroupError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain) {
        Ok(())
    } else {
        Err(bad_name(name))
    }
}

fn bad_name(name: &str) -> CgroupError {
    CgroupError::BadName {
        name: name.to_owned(),
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            boot,
            namespace,
            pid,
            start_time,
            trial,
        } = self;
        write!(f, "{PREFIX}{boot}-{namespace}-{pid}-{start_time}-{trial}")
    }
}

impl FromStr for GroupName {
    type Err = CgroupError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || bad_name(text);
        check_name(text)?;
        let mut fields = text[PREFIX.len()..].splitn(5, '-');
        let mut next = || fields.next().filter(|f| !f.is_empty()).ok_or_else(error);
        let name = Self {
            boot: next()?.to_owned(),
            namespace: next()?.parse().map_err(|_| error())?,
            pid: next()?.parse().map_err(|_| error())?,
            start_time: next()?.parse().map_err(|_| error())?,
            trial: next()?.to_owned(),
        };
        if is_boot(&name.boot) && name.to_string() == text {
            Ok(name)
        } else {
            Err(error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIAL: &str = "0193a1b2-0000-7000-8000-000000000001";

    #[test]
    fn a_name_prints_and_parses_back_and_knows_its_owner() {
        let proc = Path::new("/proc");
        let name = GroupName::new(proc, TRIAL).unwrap();
        assert_eq!(name.pid, std::process::id());
        assert_eq!(name.to_string().parse::<GroupName>().unwrap(), name);
        assert!(name.is_owner_alive(proc).unwrap());
        for other in [
            GroupName {
                start_time: name.start_time + 1,
                ..name.clone()
            },
            GroupName {
                boot: "ffffffff".into(),
                ..name.clone()
            },
            GroupName {
                pid: 4_000_000_000,
                ..name.clone()
            },
        ] {
            assert!(!other.is_owner_alive(proc).unwrap(), "{other}");
        }
        let elsewhere = GroupName {
            namespace: name.namespace + 1,
            pid: 4_000_000_000,
            ..name
        };
        assert!(elsewhere.is_owner_alive(proc).unwrap() && elsewhere.is_of_this_boot(proc));
    }

    #[test]
    fn foreign_names_are_refused() {
        for text in [
            "loadline-",
            "loadline-supervisor",
            "loadline-0123abcd-4-1-2",
            "loadline-0123abcd-4-1-2-",
            "loadline-0123ABCD-4-1-2-x",
            "loadline-0123abcd-4-01-2-x",
            "docker-0123abcd-4-1-2-x",
            "loadline-0123abcd-4-1-2-../x",
        ] {
            assert!(text.parse::<GroupName>().is_err(), "{text}");
        }
        assert!(GroupName::new(Path::new("/proc"), "../../etc").is_err());
    }
}
