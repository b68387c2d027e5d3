//! Parsers of the texts under /proc that say where loadline's own groups are. Pure functions.
//!
//! Formats: proc(5), /proc/pid/mountinfo and /proc/pid/cgroup.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupMount {
    pub root: String,
    pub mount_point: String,
    pub is_v2: bool,
    /// Super options of a v1 mount; the controllers are among them.
    pub options: Vec<String>,
}

pub(crate) fn cgroup_mounts(text: &str) -> Vec<CgroupMount> {
    text.lines().filter_map(cgroup_mount).collect()
}

fn cgroup_mount(line: &str) -> Option<CgroupMount> {
    // 36 35 98:0 /root /mount/point rw,noatime shared:1 - cgroup cgroup rw,cpu
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let is_v2 = match after.next()? {
        "cgroup" => false,
        "cgroup2" => true,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3);
    Some(CgroupMount {
        root: unescape_mountinfo(before.next()?),
        mount_point: unescape_mountinfo(before.next()?),
        is_v2,
        options: after.nth(1)?.split(',').map(str::to_owned).collect(),
    })
}

fn unescape_mountinfo(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The controllers of a v1 hierarchy; empty for v2.
    pub controllers: Vec<String>,
    pub path: String,
}

pub(crate) fn cgroup_memberships(text: &str) -> Vec<Membership> {
    text.lines().filter_map(parse_membership).collect()
}

fn parse_membership(line: &str) -> Option<Membership> {
    // 4:cpu,cpuacct:/user.slice    0::/user.slice
    let mut fields = line.splitn(3, ':');
    let id = fields.next()?;
    let controllers = fields.next()?;
    let path = fields.next()?.to_owned();
    if !path.starts_with('/') || controllers.starts_with("name=") {
        return None;
    }
    if controllers.is_empty() && id != "0" {
        return None;
    }
    let controllers = controllers
        .split(',')
        .filter(|c| !c.is_empty())
        .map(str::to_owned)
        .collect();
    Some(Membership { controllers, path })
}

/// Field 22 of /proc/pid/stat: start time in clock ticks after boot. `None` for a process that
/// has ended and was not yet waited for (state Z or X).
pub(crate) fn stat_start_time(text: &str) -> Option<u64> {
    let state = text[text.rfind(')')? + 1..].trim_start().chars().next()?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    stat_field(text, 22)
}

/// A numeric field of /proc/pid/stat, counted from 1 as proc(5) does, after the name (2), which
/// may hold spaces and parentheses.
pub(crate) fn stat_field(text: &str, field: usize) -> Option<u64> {
    let after_name = &text[text.rfind(')')? + 1..];
    after_name
        .split_ascii_whitespace()
        .nth(field.checked_sub(3)?)?
        .parse()
        .ok()
}

/// `key value` lines (cpu.stat, memory.stat, vmstat): the value of each wanted key, in one pass.
pub(crate) fn visit_keyed_values(text: &str, mut found: impl FnMut(&str, u64)) {
    for line in text.lines() {
        if let Some((key, value)) = line.split_once(' ')
            && let Ok(value) = value.trim().parse()
        {
            found(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_lines_are_told_apart() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                    33 31 0:30 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:9 - cgroup cgroup rw,cpu,cpuacct\n\
                    41 31 0:38 / /mnt/with\\040space rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let mounts = cgroup_mounts(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].root, "/docker/ab");
        assert_eq!(mounts[0].options, ["rw", "cpu", "cpuacct"]);
        assert_eq!(mounts[1].mount_point, "/mnt/with space");
        assert!(mounts[1].is_v2);
    }

    #[test]
    fn own_paths_are_read() {
        let text = "9:name=systemd:/x\n4:cpu,cpuacct:/a:b\n0::/user.slice\n1::/odd\nbad\n";
        let found = cgroup_memberships(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(found[0].path, "/a:b");
        assert_eq!(found[1].path, "/user.slice");
    }

    #[test]
    fn start_time_is_found_after_any_name() {
        let text = "4242 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20";
        assert_eq!(stat_start_time(text), Some(987_654));
        assert_eq!(stat_start_time(&text.replace(" S ", " Z ")), None);
        assert_eq!(stat_start_time("no name"), None);
    }
}
