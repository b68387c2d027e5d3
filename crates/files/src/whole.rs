//! A file that is there whole or not at all, also after a power loss: written under a name that
//! nobody can know, synchronised, renamed, and its directory synchronised.
//!
//! A device, a pipe and what a descriptor names are written to as they are, never renamed over.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::owners::is_trusted;
use crate::refused::Refused;
use crate::way::{Last, Way};

/// What the umask leaves of it.
const READABLE: u32 = 0o666;

/// Writes a file that the user named. What cannot be renamed to, such as `/dev/stdout`, is written
/// to as it is.
///
/// # Errors
/// [`Refused`]: a link on the way that others can change, a pipe that others planted, or what the
/// system says; then what was there still is.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Refused> {
    let (way, name, last) = Way::to_file(path)?;
    let directory = Directory::of(way);
    let refuse = |error: io::Error| Refused::system(&directory.path().join(&name), error);
    match last {
        Last::Kernel => {
            // At the end: standard output may be a file that already has something.
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = openat(&directory, &name, flags, Mode::empty());
            let mut file = File::from(file.map_err(|e| refuse(e.into()))?);
            file.write_all(bytes).map_err(refuse)
        }
        Last::There(found, stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => replace(&directory, &name, bytes),
            FileType::Directory => Err(refuse(Errno::ISDIR.into())),
            _ if !is_trusted(stat.st_uid) => {
                let why = format!("it is no file, and user {} put it there", stat.st_uid);
                let hint = "remove it, or give another path".to_owned();
                let path = directory.path().join(&name);
                Err(Refused::unsafe_place(&path, why, hint))
            }
            _ => {
                // The very thing that was looked at, whatever has its name by now.
                let this = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
                let file = OpenOptions::new().write(true).open(this);
                file.and_then(|mut file| file.write_all(bytes))
                    .map_err(refuse)
            }
        },
        Last::Free => replace(&directory, &name, bytes),
    }
}

fn replace(directory: &Directory, name: &OsStr, bytes: &[u8]) -> Result<(), Refused> {
    let part = directory.part(name, READABLE, |file| file.write_all(bytes))?;
    part.put()
}

/// A new file beside its place, complete and on disk. Removed when it is dropped before it is put
/// there.
#[derive(Debug)]
pub struct Part<'a> {
    directory: &'a Directory,
    temporary: String,
    name: OsString,
}

impl Directory {
    /// Writes a file beside its place in this directory. The umask takes from `mode`.
    ///
    /// # Errors
    /// What the system says, with the file.
    pub fn part(
        &self,
        name: impl AsRef<OsStr>,
        mode: u32,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Part<'_>, Refused> {
        let name = name.as_ref().to_owned();
        let temporary = format!(".loadline-{:016x}.part", RandomState::new().hash_one(0));
        let refuse = |error: io::Error| Refused::system(&self.path().join(&name), error);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let file = openat(self, &temporary, flags, Mode::from_raw_mode(mode));
        let mut file = File::from(file.map_err(|e| refuse(e.into()))?);
        // From here on it goes away with its owner.
        let part = Part {
            directory: self,
            temporary,
            name: name.clone(),
        };
        fill(&mut file)
            .and_then(|()| file.sync_all())
            .map_err(refuse)?;
        Ok(part)
    }
}

impl Part<'_> {
    /// Puts it in its place; what had the name is replaced, a link too.
    ///
    /// # Errors
    /// What the system says, with the file.
    pub fn put(self) -> Result<(), Refused> {
        let place = self.directory.path().join(&self.name);
        let renamed = renameat(self.directory, &self.temporary, self.directory, &self.name);
        renamed.map_err(|e| Refused::system(&place, e))?;
        self.directory.sync()
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        // It is gone when it was renamed.
        let _ = unlinkat(self.directory, &self.temporary, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests;
