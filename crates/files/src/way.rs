//! The way to a file: name by name, each from the descriptor of the directory before it.
//!
//! Owns which links are followed. The kernel would follow every link, even a link that a
//! directory's user planted to make root write through it. Facts: path_resolution(7), proc(5).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, fstatfs, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use crate::owners::{is_safe, is_safe_link, is_trusted};
use crate::refused::PathRefusal;

/// As many as the kernel follows.
const MOST_LINKS: u32 = 40;

/// PROC_SUPER_MAGIC of statfs(2).
const PROC: u64 = 0x9fa0;

/// Opens a name and nothing behind it: a link itself, a file without reading.
#[cfg(not(target_vendor = "apple"))]
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// O_EVTONLY and O_SYMLINK of open(2) there.
#[cfg(target_vendor = "apple")]
const LOOK: OFlags = OFlags::from_bits_retain(0x20_8000).union(OFlags::CLOEXEC);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkRules {
    /// Requires every directory to be unchangeable by other users, not only those with links.
    pub is_strict: bool,
    /// Makes missing directories, with these permissions.
    pub make: Option<Mode>,
}

#[derive(Debug)]
pub enum PathEnd {
    Free,
    There(OwnedFd, Stat),
    /// A link of the kernel's, such as `/proc/self/fd/1`: it is no text, only the kernel follows it.
    Kernel,
}

#[derive(Debug)]
pub struct PathWalk {
    pub at: OwnedFd,
    pub path: PathBuf,
    rules: WalkRules,
    ahead: VecDeque<PathStep>,
    links: u32,
}

/// A name that is no link to follow, and what has it.
type FoundName = Option<(OsString, PathEnd)>;

#[derive(Debug)]
enum PathStep {
    Root,
    Up,
    Name(OsString),
}

impl PathWalk {
    pub fn to_directory(path: &Path, rules: WalkRules) -> Result<Self, PathRefusal> {
        let mut way = Self::begin_walk(path, rules)?;
        while let Some(step) = way.ahead.pop_front() {
            if let Some((name, last)) = way.take_step(step)? {
                way.enter(&name, last)?;
            }
        }
        Ok(way)
    }

    /// Walks to the directory of a file; gives the file's name there, behind all links, and what
    /// has it.
    pub fn to_file(path: &Path) -> Result<(Self, OsString, PathEnd), PathRefusal> {
        let rules = WalkRules {
            is_strict: false,
            make: None,
        };
        let mut way = Self::begin_walk(path, rules)?;
        while let Some(step) = way.ahead.pop_front() {
            let Some((name, last)) = way.take_step(step)? else {
                continue;
            };
            if way.ahead.is_empty() {
                return Ok((way, name, last));
            }
            way.enter(&name, last)?;
        }
        Err(PathRefusal::from_system(path, Errno::ISDIR))
    }

    fn begin_walk(path: &Path, rules: WalkRules) -> Result<Self, PathRefusal> {
        let absolute = std::path::absolute(path).map_err(|e| PathRefusal::from_system(path, e))?;
        // A relative path starts where the process stands, whatever became of the way there. A
        // strict one is the whole way.
        let (start, path, ahead) = if path.is_absolute() || rules.is_strict {
            ("/", PathBuf::from("/"), absolute.as_path())
        } else {
            (".", std::env::current_dir().unwrap_or_default(), path)
        };
        let flags = LOOK | OFlags::DIRECTORY;
        let at = openat(CWD, start, flags, Mode::empty());
        let way = Self {
            at: at.map_err(|e| PathRefusal::from_system(&path, e))?,
            path,
            rules,
            ahead: steps(ahead),
            links: 0,
        };
        way.check_owners().map(|()| way)
    }

    /// One step. Returns a name that is no link to follow, and its directory.
    fn take_step(&mut self, step: PathStep) -> Result<FoundName, PathRefusal> {
        let flags = LOOK | OFlags::DIRECTORY;
        match step {
            PathStep::Root => {
                let root = openat(CWD, "/", flags, Mode::empty());
                self.at = root.map_err(|e| self.refuse_name(OsStr::new("/"), e))?;
                self.path = PathBuf::from("/");
            }
            PathStep::Up => {
                let up = openat(&self.at, "..", flags, Mode::empty());
                self.at = up.map_err(|e| self.refuse_name(OsStr::new(".."), e))?;
                self.path.pop();
            }
            PathStep::Name(name) => return self.look_up_name(name),
        }
        self.check_owners().map(|()| None)
    }

    fn look_up_name(&mut self, name: OsString) -> Result<FoundName, PathRefusal> {
        let open = || openat(&self.at, &name, LOOK, Mode::empty());
        let found = match (open(), self.rules.make) {
            (Err(Errno::NOENT), Some(mode)) => match mkdirat(&self.at, &name, mode) {
                // Another process may have been faster: its result is judged like any other.
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(errno) => Err(errno),
            },
            (Err(Errno::NOENT), None) => return Ok(Some((name, PathEnd::Free))),
            (found, _) => found,
        };
        let found = found.map_err(|e| self.refuse_name(&name, e))?;
        let stat = fstat(&found).map_err(|e| self.refuse_name(&name, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Ok(Some((name, PathEnd::There(found, stat))));
        }
        self.follow(name, &stat)
    }

    fn follow(&mut self, name: OsString, link: &Stat) -> Result<FoundName, PathRefusal> {
        let directory = fstat(&self.at).map_err(|e| self.refuse_name(&name, e))?;
        let target = readlinkat(&self.at, &name, Vec::new());
        let target = target.map_err(|e| self.refuse_name(&name, e))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if !is_safe_link(&directory, link) {
            let why = "it is a link that users other than you and root can redirect";
            let hint = format!("give its target, not the link ({})", target.display());
            let at = self.path.join(&name);
            return Err(PathRefusal::unsafe_place(&at, why.to_owned(), hint));
        }
        if is_proc(&self.at) {
            return Ok(Some((name, PathEnd::Kernel)));
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(self.refuse_name(&name, Errno::LOOP));
        }
        let mut ahead = steps(&target);
        ahead.append(&mut self.ahead);
        self.ahead = ahead;
        Ok(None)
    }

    fn enter(&mut self, name: &OsStr, last: PathEnd) -> Result<(), PathRefusal> {
        let found = match last {
            PathEnd::Free => Err(Errno::NOENT),
            PathEnd::There(found, _) => Ok(found),
            PathEnd::Kernel => {
                let flags = LOOK.difference(OFlags::NOFOLLOW) | OFlags::DIRECTORY;
                openat(&self.at, name, flags, Mode::empty())
            }
        };
        let found = found.map_err(|e| self.refuse_name(name, e))?;
        let stat = fstat(&found).map_err(|e| self.refuse_name(name, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(self.refuse_name(name, Errno::NOTDIR));
        }
        self.at = found;
        self.path.push(name);
        self.check_owners()
    }

    /// StrictModes: every directory of the way has a trusted owner, and no other user can replace
    /// the next one.
    fn check_owners(&self) -> Result<(), PathRefusal> {
        let stat = fstat(&self.at).map_err(|e| PathRefusal::from_system(&self.path, e))?;
        if !self.rules.is_strict || is_safe(&stat) {
            return Ok(());
        }
        let path = self.path.display();
        let (user, mode) = (stat.st_uid, stat.st_mode & 0o7777);
        let (why, hint) = if is_trusted(user) {
            let why =
                format!("its permissions ({mode:03o}) let other users replace it or its contents");
            (why, format!("chmod go-w {path}"))
        } else {
            let why = format!("it belongs to user {user}, who could replace it or its contents");
            (why, "run loadline as that user".to_owned())
        };
        Err(PathRefusal::unsafe_place(&self.path, why, hint))
    }

    fn refuse_name(&self, name: &OsStr, errno: Errno) -> PathRefusal {
        PathRefusal::from_system(&self.path.join(name), errno)
    }
}

fn is_proc(directory: impl AsFd) -> bool {
    fstatfs(directory).is_ok_and(|found| u64::try_from(found.f_type) == Ok(PROC))
}

fn steps(path: &Path) -> VecDeque<PathStep> {
    let step = |component| match component {
        Component::RootDir | Component::Prefix(_) => Some(PathStep::Root),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Name(name.to_owned())),
        Component::CurDir => None,
    };
    path.components().filter_map(step).collect()
}
