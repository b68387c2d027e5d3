//! One measurement at a time: a lock on the machine, because two runs disturb each other. Who waits
//! gets it in the order of coming.
//!
//! Owns the lock file and the tickets of those who wait. The kernel lets go of both when their holder
//! dies, however it dies; the lock file itself stays and names the last holder, a ticket of a dead
//! one is passed over, and removed by who gets the lock.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

const POLL: Duration = Duration::from_millis(200);

/// Most names next to the lock that are looked at: every user may put files there.
const MOST: usize = 10_000;

#[derive(Debug)]
pub struct MachineLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another loadline is measuring on this machine{}", holder.as_ref().map(|h| format!(": {h}")).unwrap_or_default())]
    Held { holder: Option<String> },
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl MachineLock {
    /// Takes the lock, or says who holds it or waits for it.
    /// Errors: [`LockError::Held`] when another process has it or waits; [`LockError::Io`]
    /// otherwise.
    pub fn acquire() -> Result<Self, LockError> {
        let path = default_path();
        match first_of(&path) {
            None => Self::acquire_at(&path),
            Some(first) => Err(held_by(&first)),
        }
    }

    pub fn wait_for_lock(waiting: impl FnMut(&LockError) -> bool) -> Result<Self, LockError> {
        Self::wait_at(&default_path(), waiting)
    }

    fn wait_at(
        path: &Path,
        mut waiting: impl FnMut(&LockError) -> bool,
    ) -> Result<Self, LockError> {
        let ticket = LockTicket::draw_number(path)?;
        loop {
            let turn = match first_of(path) {
                Some(first) if first != ticket.path => Err(held_by(&first)),
                _ => Self::acquire_at(path),
            };
            match turn {
                Err(held @ LockError::Held { .. }) if waiting(&held) => std::thread::sleep(POLL),
                other => return other,
            }
        }
    }

    fn acquire_at(path: &Path) -> Result<Self, LockError> {
        let io = io_at(path);
        // Rust opens with O_CLOEXEC: a child that kept the descriptor would keep the lock.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        options.truncate(false).mode(0o644);
        let mut file = match open_plain(&mut options, path) {
            // Another user's file, left by an earlier loadline: it can be locked, not written.
            Err(denied) if denied.kind() == ErrorKind::PermissionDenied => {
                let reading = open_plain(OpenOptions::new().read(true), path);
                let mut file = reading.map_err(|_| io(denied))?;
                lock_file(&mut file, path)?;
                return Ok(Self { _file: file });
            }
            opened => opened.map_err(io)?,
        };
        lock_file(&mut file, path)?;
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "{}", holder_line(std::env::args_os())).map_err(io)?;
        remove_dead(path);
        Ok(Self { _file: file })
    }
}

#[derive(Debug)]
struct LockTicket {
    path: PathBuf,
    _file: File,
}

impl LockTicket {
    fn draw_number(lock_path: &Path) -> Result<Self, LockError> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let number = format!("{:010}{:09}", now.tv_sec, now.tv_nsec);
        let mut name = ticket_prefix(lock_path);
        name.push_str(&format!("{number}-{}", std::process::id()));
        let path = lock_path.with_file_name(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o644);
        let mut file = options.open(&path).map_err(io_at(&path))?;
        // Who looks at it holds it for no longer than that takes.
        flock(&file, FlockOperation::LockExclusive).map_err(|e| io_at(&path)(e.into()))?;
        writeln!(file, "{}", holder_line(std::env::args_os())).map_err(io_at(&path))?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for LockTicket {
    fn drop(&mut self) {
        // Another one passes it over as soon as it is no longer locked.
        let _ = fs::remove_file(&self.path);
    }
}

fn ticket_prefix(lock_path: &Path) -> String {
    let name = lock_path.file_name().unwrap_or_default();
    format!("{}.wait-", name.to_string_lossy())
}

fn tickets(lock_path: &Path) -> Vec<PathBuf> {
    let prefix = ticket_prefix(lock_path);
    let beside = lock_path.parent().and_then(|d| fs::read_dir(d).ok());
    let names = beside.into_iter().flatten().take(MOST).flatten();
    let mut tickets: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with(&prefix))
        .map(|name| lock_path.with_file_name(name))
        .collect();
    tickets.sort();
    tickets
}

fn first_of(lock_path: &Path) -> Option<PathBuf> {
    tickets(lock_path).into_iter().find(|t| is_meant(t))
}

fn remove_dead(lock_path: &Path) {
    let is_written = |ticket: &PathBuf| fs::symlink_metadata(ticket).is_ok_and(|m| m.len() > 0);
    let written = tickets(lock_path).into_iter().filter(is_written);
    for dead in written.filter(|ticket| !is_meant(ticket)) {
        let _ = fs::remove_file(dead);
    }
}

fn is_meant(ticket: &Path) -> bool {
    let file = open_plain(OpenOptions::new().read(true), ticket);
    // Shared, so that two who look at once do not take each other for its holder.
    let tried = file.map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
    matches!(tried, Ok(Err(Errno::WOULDBLOCK)))
}

fn held_by(ticket: &Path) -> LockError {
    let file = open_plain(OpenOptions::new().read(true), ticket).ok();
    LockError::Held {
        holder: file.and_then(|mut file| holder(&mut file)),
    }
}

fn io_at(path: &Path) -> impl Fn(std::io::Error) -> LockError + Copy + '_ {
    |source| LockError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Who holds the lock. The subcommand only: everybody may read the file, and a command line may
/// hold a password, a token or an address with one.
fn holder_line(mut arguments: impl Iterator<Item = OsString>) -> String {
    let subcommand = arguments.nth(1).unwrap_or_default();
    let pid = std::process::id();
    format!("pid {pid}: loadline {}", subcommand.display())
}

fn lock_file(file: &mut File, path: &Path) -> Result<(), LockError> {
    match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held {
            holder: holder(file),
        }),
        Err(errno) => Err(io_at(path)(errno.into())),
    }
}

/// A regular file, which every user may have put there: no link is followed, no FIFO waited for.
fn open_plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a file; remove it"))
    }
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
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute());
    runtime.unwrap_or_else(std::env::temp_dir).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fifo_and_no_link_of_others_is_waited_for_or_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("loadline.lock");
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).expect("a FIFO");
        let (sender, ended) = std::sync::mpsc::channel();
        let there = path.clone();
        std::thread::spawn(move || {
            let held = held_by(&there).to_string();
            let locked = MachineLock::acquire_at(&there);
            sender.send((held, locked.map(drop).map_err(|e| e.to_string())))
        });
        let ended = ended.recv_timeout(Duration::from_secs(20));
        let (held, locked) = ended.expect("it waits for nobody");
        assert_eq!(held, "another loadline is measuring on this machine");
        assert!(locked.is_err_and(|why| why.contains("it is not a file")));
        fs::remove_file(&path).expect("its own");
        fs::write(directory.path().join("secret"), "hunter2").expect("a file");
        std::os::unix::fs::symlink(directory.path().join("secret"), &path).expect("a link");
        assert_eq!(held_by(&path).to_string(), held);
    }

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
    fn who_waits_gets_it_in_the_order_of_coming() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = MachineLock::acquire_at(&path).unwrap();
        // Left by a killed process: it is first, but unlocked.
        fs::write(directory.path().join("lock.wait-0000-1"), "pid 1: dead").unwrap();
        // Made and not yet locked: its owner is unknown.
        let made = directory.path().join("lock.wait-0001-2");
        fs::write(&made, "").unwrap();
        let came = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (path, came, before) = (&path, &came, first_tickets(&path));
                scope.spawn(move || {
                    let lock = MachineLock::wait_at(path, |_| true).unwrap();
                    came.lock().unwrap().push(n);
                    drop(lock);
                });
                while first_tickets(path) == before {
                    std::thread::yield_now();
                }
            }
            assert!(first_of(&path).is_some_and(|first| !first.ends_with("lock.wait-0000-1")));
            drop(held);
        });
        assert_eq!(*came.lock().unwrap(), [0, 1, 2, 3]);
        assert_eq!(first_of(&path), None);
        let left = tickets(&path);
        assert_eq!(left, [made], "a dead one is taken away, not another's");
    }

    fn first_tickets(path: &Path) -> usize {
        let beside = fs::read_dir(path.parent().unwrap()).unwrap().flatten();
        let names = beside.map(|e| e.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("lock.wait-")).count()
    }

    #[test]
    fn the_file_that_everybody_may_read_has_no_argument() {
        let words = "/usr/bin/loadline size --url http://a:s3cret@b/ -- java -Dtoken=s3cret";
        let line = holder_line(words.split(' ').map(OsString::from));
        assert_eq!(line, format!("pid {}: loadline size", std::process::id()));
    }
}
