//! Removes a directory with everything below it, at any depth.
//!
//! Owns the walk: two descriptors and a path in memory, whatever the depth. Untrusted programs made
//! the tree: a walk that opens a descriptor for each level (as the standard library's) ends at the
//! limit of open files and would never remove it. Follows no link. Facts: unlink(2), openat(2).

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes a directory and what it holds. Nobody may rename in it meanwhile: every process that
/// could is dead.
/// Errors: What cannot be opened or removed; a `path` that is no directory, or is a link.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let mut here = open_with_rights(rustix::fs::open(path, DIRECTORY, Mode::empty()), || {
        rustix::fs::chmod(path, Mode::RWXU)?;
        rustix::fs::open(path, DIRECTORY, Mode::empty())
    })?;
    // The names from `path` to `here`.
    let mut way: Vec<CString> = Vec::new();
    loop {
        if let Some(name) = empty_directory(&here)? {
            here = enter_below(&here, &name)?;
            way.push(name);
            continue;
        }
        let Some(name) = way.pop() else {
            drop(here);
            return Ok(rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?);
        };
        here = rustix::fs::openat(&here, c"..", DIRECTORY, Mode::empty())?;
        rustix::fs::unlinkat(&here, &name, AtFlags::REMOVEDIR)?;
    }
}

fn empty_directory(directory: &OwnedFd) -> Result<Option<CString>, Errno> {
    match empty_as_is(directory) {
        Err(Errno::ACCESS) => {
            // Its own maker may have closed it to itself: without root that counts.
            rustix::fs::fchmod(directory, Mode::RWXU)?;
            empty_as_is(directory)
        }
        emptied => emptied,
    }
}

fn empty_as_is(directory: &OwnedFd) -> Result<Option<CString>, Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if !remove_entry(directory, name)? {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

fn remove_entry(directory: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        // Linux says EISDIR, POSIX EPERM.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn enter_below(directory: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let enter = || rustix::fs::openat(directory, name, DIRECTORY, Mode::empty());
    open_with_rights(enter(), || {
        // Its own maker may have closed it to itself: without root that counts.
        rustix::fs::chmodat(directory, name, Mode::RWXU, AtFlags::empty())?;
        enter()
    })
}

/// The opened entry; if rights are missing, adds them and uses `again`.
fn open_with_rights(
    opened: Result<OwnedFd, Errno>,
    again: impl FnOnce() -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    match opened {
        Err(Errno::ACCESS) => again(),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_deeper_than_any_path_and_any_limit_of_descriptors_goes() {
        let outside = tempfile::tempdir().expect("a directory");
        let root = outside.path().join("root");
        fs::create_dir(&root).expect("a directory");
        let mut here = rustix::fs::open(&root, DIRECTORY, Mode::empty()).expect("it is there");
        // Past the depth at which PATH_MAX ends, and more than 1,024 descriptors.
        for _ in 0..2_100 {
            rustix::fs::mkdirat(&here, c"d", Mode::RWXU).expect("a level");
            here = rustix::fs::openat(&here, c"d", DIRECTORY, Mode::empty()).expect("a level");
        }
        drop(here);
        remove_tree(&root).expect("it goes");
        assert!(!root.exists());
    }

    /// This thread without root's right to write everywhere, as a trial without root.
    fn without_root() {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).expect("less is always allowed");
    }

    #[test]
    fn directories_that_are_closed_to_their_maker_go_without_root() {
        let outside = tempfile::tempdir().expect("a directory");
        for mode in [0o0, 0o100, 0o200, 0o400, 0o500] {
            let root = outside.path().join(format!("{mode:o}"));
            fs::create_dir_all(root.join("a/b")).expect("a directory");
            fs::write(root.join("a/b/file"), "x").expect("a file");
            fs::write(root.join("a/file"), "x").expect("a file");
            for closed in ["a/b", "a", ""] {
                let rights = fs::Permissions::from_mode(mode);
                fs::set_permissions(root.join(closed), rights).expect("closed");
            }
            let removing = root.clone();
            let removed = std::thread::spawn(move || {
                without_root();
                remove_tree(&removing)
            });
            let removed = removed.join().expect("it ends");
            removed.unwrap_or_else(|error| panic!("{mode:o}: {error}"));
            assert!(!root.exists(), "{mode:o}");
        }
    }

    #[test]
    fn links_go_and_what_they_name_stays() {
        let outside = tempfile::tempdir().expect("a directory");
        let (root, kept) = (outside.path().join("root"), outside.path().join("kept"));
        fs::create_dir_all(root.join("a/b")).expect("a directory");
        fs::create_dir(&kept).expect("a directory");
        fs::write(kept.join("file"), "x").expect("a file");
        symlink(&kept, root.join("a/link")).expect("a link");
        symlink(kept.join("file"), root.join("a/b/link")).expect("a link");
        fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(0o0)).expect("closed");
        for number in 0..2_000 {
            fs::write(root.join(format!("a/{number}")), "x").expect("a file");
        }
        assert!(remove_tree(&root.join("a/link")).is_err());
        remove_tree(&root).expect("it goes");
        assert!(!root.exists() && kept.join("file").is_file());
    }
}
