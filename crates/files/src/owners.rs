//! Whom loadline trusts with the way to a file: root, and the user it runs as.
//!
//! Owns the judgement of one directory and of one link in it. Facts: inode(7), user_namespaces(7)
//! "Interaction with system calls that change process UIDs or GIDs", proc_sys_fs(7) "protected_symlinks".

use std::fs;

use rustix::fs::{Mode, Stat};

pub fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == own_user() || hidden_root() == Some(uid)
}

pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub fn is_shared(directory: &Stat) -> bool {
    // A group with the number of its user has that user alone: so adduser and useradd make them.
    let is_private = directory.st_gid == directory.st_uid;
    let mode = Mode::from_raw_mode(directory.st_mode);
    mode.contains(Mode::WOTH) || mode.contains(Mode::WGRP) && !is_private
}

/// With the sticky bit users can remove and rename only their own files.
pub fn is_safe(directory: &Stat) -> bool {
    let is_sticky = Mode::from_raw_mode(directory.st_mode).contains(Mode::SVTX);
    is_trusted(directory.st_uid) && (!is_shared(directory) || is_sticky)
}

pub fn is_safe_link(directory: &Stat, link: &Stat) -> bool {
    is_safe(directory) && (!is_shared(directory) || is_trusted(link.st_uid))
}

/// The user that root's files seem to belong to in a user namespace that root is not part of, such
/// as the one in which loadline runs trials without root. So do those of all other users: there the
/// check is weaker, and the state directory is opened before.
fn hidden_root() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
    hidden_in(&map, &overflow)
}

/// `map` has lines of `first inside, first outside, how many`.
fn hidden_in(map: &str, overflow: &str) -> Option<u32> {
    let mut lines = map.lines();
    let has_root = lines.any(|line| line.split_whitespace().next() == Some("0"));
    (!has_root).then(|| overflow.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_root_is_no_user_its_files_are_those_of_nobody() {
        assert_eq!(
            hidden_in("         0          0 4294967295\n", "65534\n"),
            None
        );
        assert_eq!(
            hidden_in("      1000       1000          1\n", "65534\n"),
            Some(65_534)
        );
    }
}
