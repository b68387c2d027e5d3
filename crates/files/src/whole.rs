//! A file that exists whole or not at all, also after a power loss: written under an unguessable
//! name, synchronised, renamed, and its directory synchronised. The writer holds a lock on it: a
//! file left by a killed writer is unlocked, and the next writer in that directory removes it.
//!
//! A device, a pipe and a path to a descriptor are written to directly, never renamed over.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, flock, fstat, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::owners::{self, is_trusted};
use crate::refused::PathRefusal;
use crate::way::{PathEnd, PathWalk};

const READABLE: u32 = 0o666;
const BEGIN: &str = ".loadline-";
const END: &str = ".part";

/// Writes a file that the user named. A target that cannot be replaced by rename, such as
/// `/dev/stdout`, is written to directly. Errors: [`PathRefusal`]: a link on the way that others
/// can change, a pipe that others planted, or what the system says; the old file then remains.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), PathRefusal> {
    let place = WriteTarget::find_target(path)?;
    if let Some(mut file) = place.open_stream()? {
        return file.write_all(bytes).map_err(|e| place.refuse_write(e));
    }
    let fill = |file: &mut File| file.write_all(bytes);
    let part = place.directory.write_pending(&place.name, READABLE, fill)?;
    part.put_in_place()
}

/// Opens a file that the user named, empty, for streaming; an existing file is replaced by a new
/// one, anything else is written to directly.
pub fn create(path: &Path) -> Result<File, PathRefusal> {
    let place = WriteTarget::find_target(path)?;
    if let Some(file) = place.open_stream()? {
        return Ok(file);
    }
    let part = place
        .directory
        .write_pending(&place.name, READABLE, |_| Ok(()))?;
    let file = part.held.try_clone().map_err(|e| place.refuse_write(e))?;
    part.put_in_place().map(|()| file)
}

struct WriteTarget {
    directory: Directory,
    name: OsString,
    last: PathEnd,
}

impl WriteTarget {
    fn find_target(path: &Path) -> Result<Self, PathRefusal> {
        let (way, name, last) = PathWalk::to_file(path).map_err(|e| e.on_the_way_to(path))?;
        let directory = Directory::from_walk(way);
        Ok(Self {
            directory,
            name,
            last,
        })
    }

    /// The stream for direct writing; `None` for a regular file.
    fn open_stream(&self) -> Result<Option<File>, PathRefusal> {
        let (found, stat) = match &self.last {
            PathEnd::Free => return Ok(None),
            PathEnd::There(found, stat) => (found, stat),
            PathEnd::Kernel => {
                // At the end: standard output may be a file that already has something.
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file = openat(&self.directory, &self.name, flags, Mode::empty());
                let file = file.map_err(|e| self.refuse_write(e.into()))?;
                return Ok(Some(file.into()));
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(None),
            FileType::Directory => Err(self.refuse_write(Errno::ISDIR.into())),
            _ if !is_trusted(stat.st_uid) => {
                let why = format!("it is not a file, and user {} put it there", stat.st_uid);
                let hint = "remove it, or give another path".to_owned();
                Err(PathRefusal::unsafe_place(&self.full_path(), why, hint))
            }
            _ => {
                // The very thing that was looked at, whatever has its name by now.
                let this = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
                let file = OpenOptions::new().write(true).open(this);
                file.map(Some).map_err(|e| self.refuse_write(e))
            }
        }
    }

    fn full_path(&self) -> PathBuf {
        self.directory.real_path().join(&self.name)
    }

    fn refuse_write(&self, error: io::Error) -> PathRefusal {
        PathRefusal::from_system(&self.full_path(), error)
    }
}

/// A new file next to its final place, complete and on disk. Removed if dropped before the rename.
#[derive(Debug)]
pub struct PendingFile<'a> {
    directory: &'a Directory,
    temporary: String,
    name: OsString,
    /// Locked, so that it is not taken for a dead writer's.
    held: File,
}

impl Directory {
    /// Writes a file next to its final place in this directory. The umask applies to `mode`.
    /// Errors: What the system says, with the file.
    pub fn write_pending(
        &self,
        name: impl AsRef<OsStr>,
        mode: u32,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<PendingFile<'_>, PathRefusal> {
        let name = name.as_ref().to_owned();
        let refuse =
            |error: io::Error| PathRefusal::from_system(&self.real_path().join(&name), error);
        self.remove_dead();
        let (temporary, held) = self.create_locked(mode).map_err(refuse)?;
        // From here on it goes away with its owner.
        let mut part = PendingFile {
            directory: self,
            temporary,
            name: name.clone(),
            held,
        };
        let filled = fill(&mut part.held).and_then(|()| part.held.sync_all());
        filled.map_err(refuse).map(|()| part)
    }

    fn create_locked(&self, mode: u32) -> io::Result<(String, File)> {
        let mode = Mode::from_raw_mode(mode as RawMode);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        loop {
            let random = RandomState::new().hash_one(0);
            let temporary = format!("{BEGIN}{random:016x}{END}");
            let file = openat(self, &temporary, flags, mode)?;
            // Where files cannot be locked, none is ever taken for a dead one's.
            let _ = flock(&file, FlockOperation::LockExclusive);
            // Another writer may have come before the lock, and taken it for one.
            if fstat(&file)?.st_nlink > 0 {
                return Ok((temporary, file.into()));
            }
        }
    }

    fn remove_dead(&self) {
        // The descriptor that holds the directory does not read it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(names) = openat(self, ".", flags, Mode::empty()).and_then(Dir::new) else {
            return;
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        for entry in names.flatten() {
            let name = entry.file_name().to_bytes();
            if !name.starts_with(BEGIN.as_bytes()) || !name.ends_with(END.as_bytes()) {
                continue;
            }
            let Ok(file) = openat(self, entry.file_name(), flags, Mode::empty()) else {
                continue;
            };
            let is_own = fstat(&file).is_ok_and(|stat| {
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                is_file && stat.st_uid == owners::own_user()
            });
            if is_own && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                // A failed removal does no harm.
                let _ = unlinkat(self, entry.file_name(), AtFlags::empty());
            }
        }
    }
}

impl PendingFile<'_> {
    /// Puts it in its place; what had the name is replaced, a link too.
    /// Errors: What the system says, with the file.
    pub fn put_in_place(self) -> Result<(), PathRefusal> {
        let place = self.directory.real_path().join(&self.name);
        let renamed = renameat(self.directory, &self.temporary, self.directory, &self.name);
        renamed.map_err(|e| PathRefusal::from_system(&place, e))?;
        self.directory.sync()
    }
}

impl Drop for PendingFile<'_> {
    fn drop(&mut self) {
        // It is gone when it was renamed.
        let _ = unlinkat(self.directory, &self.temporary, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests;
