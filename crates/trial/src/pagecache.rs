//! Evicts the application's files from the page cache, so that each trial pays for its own.
//!
//! Page cache is charged to the first cgroup that touches it: with a warm cache a search for the
//! smallest memory ends about 20 MB too low (facts: applications.md, rule 1). Owns the walk and the
//! eviction; the container names the trees. Facts: posix_fadvise(2): only clean unmapped pages go.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use loadline_sys::{Advice, fadvise};
use rustix::fs::OFlags;

#[derive(Debug, Clone, Copy)]
pub struct WalkExtent {
    files: usize,
    depth: usize,
}

/// What lies around a jar: that may be a home.
pub const NEAR: WalkExtent = WalkExtent {
    files: 20_000,
    depth: 6,
};

pub const WHOLE: WalkExtent = WalkExtent {
    files: 200_000,
    depth: 24,
};

pub fn evict_from_page_cache(root: &Path, extent: WalkExtent) {
    let files = files_below(root, extent);
    files.iter().for_each(|path| evict_file(path));
}

/// Regular files below a path, links not followed; the path itself if it is one.
pub fn files_below(root: &Path, extent: WalkExtent) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_file() {
            files.push(path);
        } else if metadata.is_dir() && depth < extent.depth {
            let entries = fs::read_dir(&path).into_iter().flatten();
            open.extend(entries.filter_map(|entry| Some((entry.ok()?.path(), depth + 1))));
        } else if depth == 0 && path.is_file() {
            files.extend(path.canonicalize());
        }
        if files.len() >= extent.files {
            break;
        }
    }
    files
}

/// Written back first: pages of a jar that was just built are dirty, and would stay.
fn evict_file(path: &Path) {
    // The file may have become a FIFO or a link.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let Ok(file) = open else { return };
    // It only matters for files that are dirty; then a failure leaves them cached.
    let _ = File::sync_data(&file);
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a file in the cache, by mincore(2) through the tool of util-linux.
    fn cached_pages(path: &Path) -> Option<u64> {
        let output = std::process::Command::new("fincore")
            .args(["--noheadings", "--raw", "--output", "PAGES"])
            .arg(path)
            .output()
            .ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn a_jar_and_its_neighbours_leave_the_cache() {
        let directory = tempfile::tempdir().expect("a directory");
        let jar = directory.path().join("a.jar");
        let neighbour = directory.path().join("lib/b.jar");
        fs::create_dir(directory.path().join("lib")).expect("a directory");
        for path in [&jar, &neighbour] {
            fs::write(path, vec![7; 1 << 20]).expect("a file");
        }
        let Some(before) = cached_pages(&neighbour) else {
            println!("SKIP a_jar_and_its_neighbours_leave_the_cache: no fincore here");
            return;
        };
        assert!(before > 0);
        evict_from_page_cache(directory.path(), NEAR);
        assert_eq!(
            (cached_pages(&jar), cached_pages(&neighbour)),
            (Some(0), Some(0))
        );
    }
}
