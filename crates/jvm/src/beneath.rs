//! Files below a directory that another user may write: opened without following links, without
//! waiting, and without endless reads.
//!
//! Source: openat2(2), Linux 5.6; open(2) on O_NONBLOCK with FIFOs, devices and leases.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use loadline_sys::{O_PATH, ResolveFlags, openat2};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags};

const MOST_NAMES: usize = 1 << 16;
const LINKED: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);
const UNLINKED: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::DIRECTORY);

/// Opens a regular file by a path below the directory; no link is followed, not even on the way.
/// Errors: A file that is not there, has a link on its way or is no regular file.
pub fn open_beneath(directory: impl AsFd, name: &Path) -> io::Result<File> {
    open_by(directory, name, UNLINKED)
}

/// The same, where links are the rule: they lead where they lead for a process that has the
/// directory as its root.
/// Errors: A file that is not there or is no regular file.
pub fn open_in_root(root: impl AsFd, name: &Path) -> io::Result<File> {
    open_by(root, name, LINKED)
}

/// Opens the one file of a directory below the directory, and says its name; no link is followed.
/// These names do not count.
/// Errors: A directory that is not there, or holds anything but one regular file.
pub fn open_only(
    directory: impl AsFd,
    name: &Path,
    known: &[OsString],
) -> io::Result<(OsString, File)> {
    let inner = openat2(directory, name, LIST, Mode::empty(), UNLINKED)?;
    let mut names = Vec::new();
    // Two are too many already, so it ends however many there are.
    for entry in Dir::read_from(&inner)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && !known.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        if names.len() > 1 {
            let text = "it holds more than one file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    let name = names.pop();
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is empty"))?;
    let file = open_beneath(&inner, Path::new(&name))?;
    Ok((name, file))
}

/// Opens a regular file by an untrusted path of this machine.
///
/// # Errors
///
/// A file that does not exist or is no regular file.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    open_by(CWD, path, ResolveFlags::empty())
}

/// Whether something has this path below the directory; links on the way lead as in
/// [`open_in_root`], and nothing is opened.
pub fn is_in_root(root: impl AsFd, name: &Path) -> bool {
    let flags = O_PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(root, name, flags, Mode::empty(), LINKED).is_ok()
}

/// Names and kinds in a directory, where links lead where they lead for a process that has the
/// directory `root` as its root; the first [`MOST_NAMES`].
///
/// # Errors
/// A directory that is not there.
pub fn list_in_root(root: impl AsFd, name: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let inner = openat2(root, name, LIST, Mode::empty(), LINKED)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&inner)?.take(MOST_NAMES) {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            entries.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(entries)
}

fn open_by(directory: impl AsFd, name: &Path, resolve: ResolveFlags) -> io::Result<File> {
    // Looked at first: to open a device may be to use it. Then not blocking: it may have become a FIFO.
    let look = O_PATH | OFlags::CLOEXEC;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| {
        let file = File::from(openat2(&directory, name, flags, Mode::empty(), resolve)?);
        let text = "it is no regular file";
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    };
    open(look).and_then(|_| open(flags))
}

pub fn read(file: File, cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(cap).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_one_file_of_a_directory_is_opened_and_no_link() {
        let place = tempfile::tempdir().expect("a directory");
        let root = File::open(place.path()).expect("it is there");
        let inner = place.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        let only = |name: &str| open_only(&root, Path::new(name), &[]);
        assert!(only("inner").is_err(), "it is empty");
        symlink("/etc/passwd", inner.join("link")).expect("a link");
        assert!(only("inner").is_err(), "a link");
        fs::remove_file(inner.join("link")).expect("a link");
        fs::write(inner.join("cache"), "bytes").expect("a file");
        let (name, file) = only("inner/").expect("one file");
        assert_eq!(name, "cache");
        assert_eq!(read(file, 100).expect("it is read"), b"bytes");
        fs::write(inner.join("other"), "bytes").expect("a file");
        assert!(only("inner").is_err(), "two");
        let known = [OsString::from("cache")];
        let (name, _) = open_only(&root, Path::new("inner"), &known).expect("one is known");
        assert_eq!(name, "other");
        symlink(&inner, place.path().join("turned")).expect("a link");
        assert!(only("turned").is_err(), "a link on the way");
    }

    #[test]
    fn links_lead_nowhere_or_stay_below_the_root() {
        let place = tempfile::tempdir().expect("a directory");
        let root = File::open(place.path()).expect("it is there");
        fs::create_dir(place.path().join("etc")).expect("a directory");
        fs::write(place.path().join("etc/passwd"), "own").expect("a file");
        symlink("/etc/passwd", place.path().join("link")).expect("a link");
        symlink("../../../..", place.path().join("up")).expect("a link");
        let text = |file: io::Result<File>| read(file.ok()?, 2).ok();
        let own = Some(b"ow".to_vec());
        assert_eq!(text(open_beneath(&root, Path::new("etc/passwd"))), own);
        for name in ["link", "up/etc/passwd"] {
            let name = Path::new(name);
            assert_eq!(text(open_beneath(&root, name)), None);
            assert_eq!(text(open_in_root(&root, name)), own);
        }
        let device = File::open("/dev").expect("it is everywhere");
        assert!(open_in_root(device, Path::new("zero")).is_err());
    }
}
