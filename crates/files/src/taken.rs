//! Disk usage of a tree of files.
//!
//! Owns the walk, and its bounds: two descriptors at any depth, and a maximum number of entries.
//! Untrusted programs made the files. Follows no link and stays on its disk. Counts blocks, not
//! sizes: a file may be sparse. Facts: stat(2), openat(2).

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dev, Dir, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::tree::DIRECTORY;

/// Bytes of a block in what stat(2) says, on every disk.
const BLOCK: u64 = 512;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeUsage {
    pub bytes: u64,
    /// Whether the count is complete: false with too many entries, or unreadable ones.
    pub is_all: bool,
}

/// What a directory and all below it take of the disk that it lies on, looking at `most` entries. A
/// file with several names counts in parts, one for each.
/// Errors: A `path` that is no directory, is a link or cannot be opened.
pub fn measure_tree(path: &Path, most: usize) -> io::Result<TreeUsage> {
    let mut here = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?;
    let disk = rustix::fs::fstat(&here)?.st_dev;
    let mut count = UsageCounter {
        disk,
        left: most,
        taken: TreeUsage {
            bytes: 0,
            is_all: true,
        },
    };
    // Of each directory from `path` to `here`: those in it that are still to be entered.
    let mut way = vec![count.count_entries(&here)];
    while let Some(waiting) = way.last_mut() {
        if let Some(name) = waiting.pop() {
            match rustix::fs::openat(&here, &name, DIRECTORY, Mode::empty()) {
                Ok(below) => {
                    here = below;
                    way.push(count.count_entries(&here));
                }
                Err(_) => count.taken.is_all = false,
            }
            continue;
        }
        way.pop();
        if !way.is_empty() {
            here = rustix::fs::openat(&here, c"..", DIRECTORY, Mode::empty())?;
        }
    }
    Ok(count.taken)
}

struct UsageCounter {
    disk: Dev,
    left: usize,
    taken: TreeUsage,
}

impl UsageCounter {
    /// Counts the entries of a directory; returns its subdirectories.
    fn count_entries(&mut self, directory: &OwnedFd) -> Vec<CString> {
        let mut below = Vec::new();
        let Ok(entries) = Dir::read_from(directory) else {
            self.taken.is_all = false;
            return below;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.taken.is_all = false;
                break;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.left == 0 {
                self.taken.is_all = false;
                break;
            }
            self.left -= 1;
            match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => {
                    if self.count_entry(&found) {
                        below.push(name.to_owned());
                    }
                }
                // It went meanwhile.
                Err(Errno::NOENT) => {}
                Err(_) => self.taken.is_all = false,
            }
        }
        below
    }

    /// Adds one entry; returns whether it has entries below it.
    fn count_entry(&mut self, found: &Stat) -> bool {
        if found.st_dev != self.disk {
            return false;
        }
        let blocks = u64::try_from(found.st_blocks).unwrap_or(0);
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let names = if is_directory {
            1
        } else {
            as_count(found.st_nlink).max(1)
        };
        let bytes = blocks.saturating_mul(BLOCK) / names;
        self.taken.bytes = self.taken.bytes.saturating_add(bytes);
        is_directory
    }
}

/// Systems count names in numbers of their own width.
fn as_count(names: impl Into<u64>) -> u64 {
    names.into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::OFlags;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn root() -> (tempfile::TempDir, std::path::PathBuf) {
        let outside = tempfile::tempdir().expect("a directory");
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("a/b")).expect("a directory");
        (outside, root)
    }

    #[test]
    fn blocks_count_and_holes_links_and_second_names_do_not() {
        let (outside, root) = root();
        fs::write(root.join("a/b/file"), vec![1; 3 << 20]).expect("a file");
        let hole = fs::File::create(root.join("hole")).expect("a file");
        hole.set_len(1 << 40).expect("a hole");
        fs::hard_link(root.join("a/b/file"), root.join("a/again")).expect("a name");
        fs::write(outside.path().join("others"), vec![1; 5 << 20]).expect("a file");
        symlink(outside.path(), root.join("a/way")).expect("a link");
        symlink(outside.path().join("others"), root.join("others")).expect("a link");
        let found = measure_tree(&root, 100).expect("it is there");
        assert!(found.is_all);
        let some = 3 * MIB..=3 * MIB + MIB / 4;
        assert!(some.contains(&found.bytes), "{found:?}");
        assert!(measure_tree(&root.join("a/way"), 100).is_err());
    }

    #[test]
    fn deeper_than_any_path_is_counted_and_more_entries_than_allowed_are_not() {
        let (_outside, root) = root();
        let mut here =
            rustix::fs::openat(CWD, &root, DIRECTORY, Mode::empty()).expect("it is there");
        for _ in 0..2_100 {
            rustix::fs::mkdirat(&here, c"d", Mode::RWXU).expect("a level");
            here = rustix::fs::openat(&here, c"d", DIRECTORY, Mode::empty()).expect("a level");
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = rustix::fs::openat(&here, c"file", flags, Mode::RWXU).expect("a file");
        rustix::io::write(&file, &[1; 1 << 20]).expect("written");
        let found = measure_tree(&root, 10_000).expect("it is there");
        assert!(found.is_all && found.bytes >= MIB, "{found:?}");
        let found = measure_tree(&root, 1_000).expect("it is there");
        assert!(!found.is_all && found.bytes < MIB * 5, "{found:?}");
    }
}
