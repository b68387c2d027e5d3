//! A directory held by its descriptor: all operations act on this directory, whatever becomes of
//! its path.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RawMode, fstat, fsync, mkdirat, openat};
use rustix::io::Errno;

use crate::owners;
use crate::refused::PathRefusal;
use crate::way::{PathWalk, WalkRules};

#[derive(Debug)]
pub struct Directory {
    at: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory to put files in, and makes it where it is missing; it may be anybody's.
    /// Errors: [`PathRefusal`]: a link on the way that others can change, or what the system says.
    pub fn open_or_make(path: &Path) -> Result<Self, PathRefusal> {
        Self::walk(path, false, 0o777)
    }

    /// Opens a directory of this user's own, and makes it (0700) where it is missing. Nobody else
    /// but root can change it, or put another in its place: each directory above it belongs to
    /// root or this user, and others may not write there, or only as in `/tmp`.
    /// Errors: [`PathRefusal`], with the directory that is not so.
    pub fn open_own(path: &Path) -> Result<Self, PathRefusal> {
        let opened = Self::walk(path, true, 0o700)?;
        let stat = fstat(&opened.at).map_err(|e| PathRefusal::from_system(&opened.path, e))?;
        if stat.st_uid != owners::own_user() {
            let why = format!("it belongs to user {}, not to you", stat.st_uid);
            let hint = "run loadline as that user".to_owned();
            return Err(PathRefusal::unsafe_place(&opened.path, why, hint));
        }
        if owners::is_shared(&stat) {
            let why = format!("others may write to it ({:03o})", stat.st_mode & 0o7777);
            let hint = format!("chmod go-w {}", opened.path.display());
            return Err(PathRefusal::unsafe_place(&opened.path, why, hint));
        }
        Ok(opened)
    }

    fn walk(path: &Path, is_strict: bool, make: RawMode) -> Result<Self, PathRefusal> {
        let make = Some(Mode::from_raw_mode(make));
        let PathWalk { at, path, .. } =
            PathWalk::to_directory(path, WalkRules { is_strict, make })?;
        Ok(Self { at, path })
    }

    /// Opens a directory that is there, by whatever links lead to it. Only for who writes with no
    /// more rights than each user has who could turn one of those links.
    /// Errors: What the system says, with the directory.
    pub fn open_by_any_way(path: &Path) -> Result<Self, PathRefusal> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let at = openat(CWD, path, flags, Mode::empty())
            .map_err(|e| PathRefusal::from_system(path, e))?;
        Ok(Self {
            at,
            path: path.to_owned(),
        })
    }

    pub(crate) fn from_walk(way: PathWalk) -> Self {
        Self {
            at: way.at,
            path: way.path,
        }
    }

    pub fn real_path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it for this user only (0700), if missing. Errors: What the system says,
    /// with the directory.
    pub fn make_directory(&self, name: &str) -> Result<(), PathRefusal> {
        match mkdirat(&self.at, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(PathRefusal::from_system(&self.path.join(name), errno)),
        }
    }

    /// Makes an empty file in it for this user only (0600), if missing. An existing file is not
    /// opened: closing a database's file drops the locks of all openers in this process. Errors:
    /// What the system says, with the file.
    pub fn make_file(&self, name: &str) -> Result<(), PathRefusal> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat(&self.at, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(_) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(PathRefusal::from_system(&self.path.join(name), errno)),
        }
    }

    pub(crate) fn sync(&self) -> Result<(), PathRefusal> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = openat(&self.at, ".", flags, Mode::empty()).and_then(fsync);
        match synced {
            // A directory that one may write but not read; a file system that has no such thing.
            Ok(()) | Err(Errno::ACCESS | Errno::INVAL) => Ok(()),
            Err(errno) => Err(PathRefusal::from_system(&self.path, errno)),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.at.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    const OTHER: u32 = 64_998;

    fn set(path: &Path, mode: u32, owner: u32) {
        chown(path, Some(owner), Some(owner)).expect("root may");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("root may");
    }

    #[test]
    fn a_new_one_is_made_with_its_parents_for_this_user_only() {
        let place = tempfile::tempdir().expect("a directory");
        symlink("there", place.path().join("link")).expect("a link");
        fs::create_dir(place.path().join("there")).expect("a directory");
        let made = Directory::open_own(&place.path().join("link/../link/a/b")).expect("it is made");
        assert_eq!(made.real_path(), place.path().join("there/a/b"));
        let mode = |name| fs::metadata(place.path().join(name)).expect("made").mode() & 0o777;
        assert_eq!([mode("there/a"), mode("there/a/b")], [0o700, 0o700]);
    }

    #[test]
    fn every_directory_above_must_be_one_that_others_cannot_change() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP every_directory_above_must_be_one_that_others_cannot_change: not root");
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let above = place.path().join("above");
        let state = above.join("on/state");
        Directory::open_own(&state).expect("only the owner can change it");
        let refused = |at: &Path, mode, owner| {
            set(at, mode, owner);
            let refused = Directory::open_own(&state).expect_err("other users can change it");
            assert_eq!(refused.path, at, "{refused}");
            set(at, 0o755, 0);
            Directory::open_own(&state).expect("as it was");
            format!("{}\nhint: {}", refused.why, refused.hint)
        };
        let theirs = "it belongs to user 64998, who could replace it or its contents\nhint: run loadline as that user";
        assert_eq!(refused(&above, 0o755, OTHER), theirs);
        assert_eq!(refused(&above, 0o1777, OTHER), theirs);
        let open = refused(&above, 0o757, 0);
        assert!(
            open.starts_with("its permissions (757) let other users"),
            "{open}"
        );
        assert!(open.contains("hint: chmod go-w /"), "{open}");
        assert!(refused(&state, 0o700, OTHER).contains("belongs to user 64998"));
        assert!(refused(&state, 0o1777, 0).starts_with("others may write to it (1777)"));
        // A group of several.
        chown(&above, Some(0), Some(OTHER)).expect("root may");
        fs::set_permissions(&above, Permissions::from_mode(0o775)).expect("root may");
        Directory::open_own(&state).expect_err("others are in that group");
        // As /tmp, and as a user's directories where each user has a group.
        for mode in [0o1777, 0o775] {
            set(&above, mode, 0);
            Directory::open_own(&state).expect("only the owner can change it");
        }
    }

    #[test]
    fn a_link_that_others_can_turn_is_no_way() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP a_link_that_others_can_turn_is_no_way: not root");
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).expect("a directory");
        symlink(place.path(), theirs.join("state")).expect("a link");
        set(&theirs, 0o1777, 0);
        Directory::open_own(&theirs.join("state")).expect("the link is root's");
        std::os::unix::fs::lchown(theirs.join("state"), Some(OTHER), None).expect("root may");
        let refused = Directory::open_own(&theirs.join("state/x")).expect_err("it is not root's");
        assert_eq!(refused.path, theirs.join("state"));
    }
}
