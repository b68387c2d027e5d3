//! One measurement at a time: a lock on the machine, because two runs disturb each other.
//!
//! Owns the lock file. The kernel lets go of it when its holder dies, however it dies; the file
//! itself stays and names the last holder.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How long to sleep between two looks at a lock that is held.
const POLL: Duration = Duration::from_millis(200);

/// The lock, held until dropped.
#[derive(Debug)]
pub struct MachineLock {
    _file: File,
}

/// Why the lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another loadline measures.
    #[error("another loadline is measuring on this machine{}", holder.as_ref().map(|h| format!(": {h}")).unwrap_or_default())]
    Held {
        /// Its pid and subcommand, when it left them.
        holder: Option<String>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl MachineLock {
    /// Takes the lock, or says who holds it.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process has it; [`LockError::Io`] otherwise.
    pub fn acquire() -> Result<Self, LockError> {
        Self::acquire_at(&default_path())
    }

    /// Waits for the lock. `waiting` is called with the holder before each wait and says whether
    /// to go on waiting.
    ///
    /// # Errors
    /// As [`MachineLock::acquire`].
    pub fn wait(mut waiting: impl FnMut(&LockError) -> bool) -> Result<Self, LockError> {
        loop {
            match Self::acquire() {
                Err(held @ LockError::Held { .. }) if waiting(&held) => std::thread::sleep(POLL),
                other => return other,
            }
        }
    }

    fn acquire_at(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        // Rust opens with O_CLOEXEC: a child that kept the descriptor would keep the lock.
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .custom_flags(libc_nofollow());
        let mut file = match options.open(path) {
            // Another user's file, left by an earlier loadline: it can be locked, not written.
            Err(denied) if denied.kind() == ErrorKind::PermissionDenied => {
                let mut reading = OpenOptions::new();
                reading.read(true).custom_flags(libc_nofollow());
                let mut file = reading.open(path).map_err(|_| io(denied))?;
                lock(&mut file, path)?;
                return Ok(Self { _file: file });
            }
            opened => opened.map_err(io)?,
        };
        lock(&mut file, path)?;
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "{}", holder_line(std::env::args())).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// Who holds the lock. The subcommand only: everybody may read the file, and a command line may
/// hold a password, a token or an address with one.
fn holder_line(mut arguments: impl Iterator<Item = String>) -> String {
    let subcommand = arguments.nth(1).unwrap_or_default();
    format!("pid {}: loadline {subcommand}", std::process::id())
}

fn lock(file: &mut File, path: &Path) -> Result<(), LockError> {
    match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held {
            holder: holder(file),
        }),
        Err(errno) => Err(LockError::Io {
            path: path.to_owned(),
            source: errno.into(),
        }),
    }
}

fn libc_nofollow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(1000).read_to_string(&mut text).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// `/run/lock/loadline.lock` where that is writable, else a file of this user.
fn default_path() -> PathBuf {
    let system = Path::new("/run/lock");
    let is_writable = rustix::fs::access(system, rustix::fs::Access::WRITE_OK).is_ok();
    let name = "loadline.lock";
    if is_writable && fs::metadata(system).is_ok_and(|m| m.is_dir()) {
        return system.join(name);
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    runtime.unwrap_or_else(std::env::temp_dir).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = MachineLock::acquire_at(&path).unwrap();
        let refused = MachineLock::acquire_at(&path).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("pid {}", std::process::id())),
            "{refused}"
        );
        drop(held);
        MachineLock::acquire_at(&path).unwrap();
    }

    #[test]
    fn the_file_that_everybody_may_read_has_no_argument() {
        let words = "/usr/bin/loadline size --url http://a:s3cret@b/ -- java -Dtoken=s3cret";
        let line = holder_line(words.split(' ').map(str::to_owned));
        assert_eq!(line, format!("pid {}: loadline size", std::process::id()));
    }
}
