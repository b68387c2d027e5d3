//! The directory of a cache: often the application's, where its user may put anything, while
//! loadline is root and the cache's bytes are the application's.
//!
//! Owns the choice of rights there, and that a cache and its manifest appear together. Never
//! writes with root's rights if another user could have chosen the place. Crate `files` makes files
//! appear whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loadline_files::{Directory, PathRefusal, PendingFile};
use rustix::fs::{AtFlags, unlinkat};

use super::manifest::{ManifestError, manifest_error};
use crate::rights::with_rights_of;

/// The group of a user with unknown groups; it has only public rights. Source: the kernel's
/// overflowgid, Documentation/admin-guide/sysctl/kernel.rst.
const NO_GROUP: u32 = 65_534;

/// The user who writes, and who owns the written files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOwner {
    pub uid: u32,
    pub gid: u32,
}

impl FileOwner {
    fn current_user() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }
}

#[derive(Debug)]
pub struct OutputDirectory {
    directory: Directory,
    writer: FileOwner,
}

impl OutputDirectory {
    pub fn open_own(path: &Path) -> Result<Self, ManifestError> {
        Self::for_owner(path, FileOwner::current_user())
    }

    /// Opens or creates any other directory, and tests whether it accepts files. Root writes with
    /// the rights of `caller` (who called sudo) if they suffice; else with those of the user who
    /// could have redirected the path; as root only if no other user could. Errors: With the
    /// directory and the system's answer.
    pub fn open_for_caller(path: &Path, caller: Option<FileOwner>) -> Result<Self, ManifestError> {
        let caller = caller.filter(|_| FileOwner::current_user().uid == 0);
        let keeper = keeper_of(path, caller).map_err(manifest_error("find", path))?;
        let make = with_rights_of(keeper.uid, keeper.gid, || fs::create_dir_all(path));
        make.and_then(|made| made)
            .map_err(manifest_error("make", path))?;
        if let Some(caller) = caller {
            let by_caller = Self::for_owner(path, caller)?;
            if by_caller.try_writing().is_ok() {
                return Ok(by_caller);
            }
        }
        let by_keeper = Self::for_owner(path, keeper)?;
        let tried = by_keeper.try_writing();
        tried.map_err(|error| manifest_error("write in", path)(as_user(keeper, error)))?;
        Ok(by_keeper)
    }

    fn for_owner(path: &Path, writer: FileOwner) -> Result<Self, ManifestError> {
        // By any way: `writer` is who could have turned it.
        let directory = Directory::open_by_any_way(path);
        Ok(Self {
            directory: directory.map_err(|e| manifest_error("open", path)(e.into()))?,
            writer,
        })
    }

    pub fn directory(&self) -> &Path {
        self.directory.real_path()
    }

    pub fn file_path(&self, name: &str) -> PathBuf {
        self.directory.real_path().join(name)
    }

    fn try_writing(&self) -> io::Result<()> {
        let probe = |file: &mut File| file.write_all(b"x");
        let name = ".loadline-cache-probe";
        self.write(|| Ok(self.create_part_file(name, probe).map(drop)?))
    }

    /// Puts two files in place, the first one first; neither while `second` is still the one of
    /// before. After a failure each is what it was, or not there.
    /// Errors: With the first file and the system's answer.
    pub fn put_pair(
        &self,
        first: (&str, impl Read + Send),
        second: (&str, impl Read + Send),
    ) -> Result<(), ManifestError> {
        let put = || {
            let part = self.create_part_file(first.0, copy_content(first.1))?;
            let last = self.create_part_file(second.0, copy_content(second.1))?;
            match unlinkat(&self.directory, second.0, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
            part.put_in_place()?;
            Ok(last.put_in_place()?)
        };
        self.write(put)
            .map_err(manifest_error("write", &self.file_path(first.0)))
    }

    pub fn put_one(
        &self,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<()> + Send,
    ) -> Result<(), ManifestError> {
        let put = || Ok(self.create_part_file(name, fill)?.put_in_place()?);
        self.write(put)
            .map_err(manifest_error("write", &self.file_path(name)))
    }

    fn create_part_file(
        &self,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<PendingFile<'_>, PathRefusal> {
        self.directory.write_pending(name, 0o600, |file| {
            fill(file)?;
            // Not by open: the umask would take bits away.
            file.set_permissions(Permissions::from_mode(0o644))
        })
    }

    fn write<T: Send>(&self, task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        with_rights_of(self.writer.uid, self.writer.gid, task)?
    }
}

fn copy_content(mut content: impl Read) -> impl FnOnce(&mut File) -> io::Result<()> {
    move |file| io::copy(&mut content, file).map(drop)
}

/// Who can make a path lead elsewhere: the first owner other than root of a directory or link on
/// the way, as it is written and as it is resolved.
fn keeper_of(path: &Path, caller: Option<FileOwner>) -> io::Result<FileOwner> {
    let own = FileOwner::current_user();
    if own.uid != 0 {
        return Ok(own);
    }
    let written = std::path::absolute(path)?;
    // Missing directories are made below the nearest existing one.
    let there = written.ancestors().find(|p| p.symlink_metadata().is_ok());
    let resolved = fs::canonicalize(there.unwrap_or(&written))?;
    let way = |path: &Path| -> Vec<PathBuf> { path.ancestors().map(Path::to_owned).collect() };
    let (written, resolved) = (way(&written), way(&resolved));
    let steps = written.iter().rev().chain(resolved.iter().rev());
    let owners = steps.filter_map(|step| Some(step.symlink_metadata().ok()?.uid()));
    Ok(match owners.into_iter().find(|uid| *uid != 0) {
        None => own,
        Some(uid) => caller
            .filter(|caller| caller.uid == uid)
            .unwrap_or(FileOwner { uid, gid: NO_GROUP }),
    })
}

fn as_user(writer: FileOwner, error: io::Error) -> io::Error {
    if writer == FileOwner::current_user() {
        return error;
    }
    let text = format!("{error} (as user {}, who can change this path)", writer.uid);
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    const USER: u32 = 64_998;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let mut names: Vec<_> = entries
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// A disk that gets full in the middle.
    struct Full(u32);

    impl Read for Full {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(buffer.len())
        }
    }

    #[test]
    fn a_directory_that_takes_no_files_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let new = directory.path().join("new/er");
        OutputDirectory::open_for_caller(&new, None).expect("it is made");
        assert!(names(&new).is_empty());
        // Not even root makes files in /proc.
        let error = OutputDirectory::open_for_caller(Path::new("/proc/self"), None)
            .expect_err("no files there");
        assert!(error.to_string().contains("write in /proc/self"), "{error}");
        assert!(!error.is_disk_full());
    }

    #[test]
    fn a_full_disk_leaves_what_was_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let there = OutputDirectory::open_for_caller(directory.path(), None).expect("it is ours");
        there
            .put_pair(("a", &b"old"[..]), ("b", &b"old"[..]))
            .expect("it is written");
        let error = there
            .put_pair(("a", Full(3)), ("b", &b"new"[..]))
            .expect_err("no space");
        assert!(error.is_disk_full(), "{error}");
        assert!(error.to_string().contains("/a: "), "{error}");
        assert_eq!(names(directory.path()), ["a", "b"]);
        assert_eq!(fs::read(there.file_path("b")).expect("it is there"), b"old");
    }

    #[test]
    fn files_in_the_directory_of_a_user_are_that_users_and_links_are_replaced() {
        let test = "files_in_the_directory_of_a_user_are_that_users_and_links_are_replaced";
        if !rustix::process::geteuid().is_root() {
            println!("SKIP {test}: not root");
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let (home, victim) = (
            directory.path().join("home"),
            directory.path().join("victim"),
        );
        fs::create_dir(&home).expect("a directory");
        chown(&home, Some(USER), Some(USER)).expect("it is ours");
        fs::write(&victim, "root's").expect("it is ours");
        // The fixed names of before and those of now.
        for name in ["a", "b", "a.part", "b.part", ".loadline-cache-probe"] {
            symlink(&victim, home.join(name)).expect("a link");
        }
        let there =
            OutputDirectory::open_for_caller(&home, None).expect("its user may write there");
        assert_eq!((there.writer.uid, there.writer.gid), (USER, NO_GROUP));
        there
            .put_pair(("a", &b"1"[..]), ("b", &b"2"[..]))
            .expect("it is written");
        assert_eq!(fs::read(&victim).expect("it is ours"), b"root's");
        for name in ["a", "b"] {
            let file = home.join(name).symlink_metadata().expect("it is there");
            assert!(file.is_file(), "{name} is a link");
            assert_eq!((file.uid(), file.mode() & 0o7777), (USER, 0o644));
        }
    }

    #[test]
    fn a_path_that_a_user_can_redirect_is_no_way_into_roots_directories() {
        let test = "a_path_that_a_user_can_redirect_is_no_way_into_roots_directories";
        if !rustix::process::geteuid().is_root() {
            println!("SKIP {test}: not root");
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let roots = directory.path().join("roots");
        let home = directory.path().join("home");
        for path in [&roots, &home] {
            fs::create_dir(path).expect("a directory");
        }
        chown(&home, Some(USER), Some(USER)).expect("it is ours");
        symlink(&roots, home.join("app")).expect("a link");
        let caller = FileOwner {
            uid: USER + 1,
            gid: USER + 1,
        };
        for caller in [None, Some(caller)] {
            let refused = OutputDirectory::open_for_caller(&home.join("app"), caller);
            let refused = refused.expect_err("root's directory").to_string();
            assert!(refused.contains("(as user 64998, who can"), "{refused}");
            assert!(names(&roots).is_empty());
        }
        let own = OutputDirectory::open_for_caller(&roots, Some(caller)).expect("it is root's");
        assert_eq!(own.writer.uid, 0, "the caller may not write there");
        chown(&roots, None, Some(caller.gid)).expect("it is ours");
        fs::set_permissions(&roots, Permissions::from_mode(0o775)).expect("it is ours");
        let own =
            OutputDirectory::open_for_caller(&roots, Some(caller)).expect("it is its group's");
        assert_eq!(own.writer, caller);
    }
}
