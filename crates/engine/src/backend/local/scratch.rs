//! The files of one trial: where they lie, who may write them, and what a killed loadline left.
//!
//! Owns the layout of a scratch directory:
//! `app/` (the application's: GC log, heap dumps), `output.log`, and while the trial runs
//! `private/` (its /tmp and /var/tmp) and `owner` (who runs it). A directory with an `owner` that
//! is dead is a leftover and is removed; one without is evidence and is never touched.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use loadline_cgroup::GroupName;
use rustix::fs::OFlags;

use crate::backend::Account;

/// The directory that the application may write, below the scratch directory of a trial.
pub fn app_directory(scratch: &Path) -> PathBuf {
    scratch.join("app")
}

/// Where the JVM of a trial is told to log its collections; collected when the trial stops.
pub fn gc_log(scratch: &Path) -> PathBuf {
    app_directory(scratch).join("gc.log")
}

/// The application's output, control characters and all, up to [`super::output::LOG_CAP`].
pub fn output_log(scratch: &Path) -> PathBuf {
    scratch.join("output.log")
}

/// Directories that every user may write, and the trial's own in their place.
const SHARED: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct ScratchError {
    /// What was tried.
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

/// The files of a running trial. Dropping it removes what only the running trial needs.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// Makes the directories for a trial.
    ///
    /// # Errors
    /// A directory or file that cannot be made.
    pub fn make(root: &Path, account: Account, owner: &GroupName) -> Result<Self, ScratchError> {
        make_directory(root, 0o700)?;
        // The owner first: whatever comes after it can be swept.
        write_new(&root.join("owner"), &owner.to_string())?;
        let scratch = Self {
            root: root.to_owned(),
        };
        let app = app_directory(root);
        make_directory(&app, 0o700)?;
        chown(&app, Some(account.uid), Some(account.gid)).map_err(failed("chown", &app))?;
        let private = root.join("private");
        make_directory(&private, 0o700)?;
        for (_, name) in SHARED {
            let path = private.join(name);
            make_directory(&path, 0o700)?;
            // Not by mkdir: the umask would take bits away.
            fs::set_permissions(&path, Permissions::from_mode(0o1777))
                .map_err(failed("chmod", &path))?;
        }
        Ok(scratch)
    }

    /// The shared directories of this machine, each with the trial's own in its place.
    pub fn replaced(&self) -> Vec<(PathBuf, PathBuf)> {
        let is_directory =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        SHARED
            .iter()
            .map(|(seen, name)| (PathBuf::from(seen), self.root.join("private").join(name)))
            .filter(|(seen, _)| is_directory(seen))
            .collect()
    }

    /// A new file for the application's output.
    ///
    /// # Errors
    /// A file that is there already or cannot be made.
    pub fn create_output_log(&self) -> Result<File, ScratchError> {
        let path = output_log(&self.root);
        create_new(&path).map_err(failed("create", &path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Every process of the trial is dead. Failing here leaves the owner file as well: the
        // next sweep tries again.
        if fs::remove_dir_all(self.root.join("private")).is_ok() {
            let _ = fs::remove_file(self.root.join("owner"));
        }
    }
}

/// Removes the scratch directories below `root` whose owner is dead. Returns their paths, and
/// those that could not be removed with the reason.
pub fn sweep(root: &Path, proc_root: &Path) -> (Vec<PathBuf>, Vec<ScratchError>) {
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    // No directory, no leftovers.
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for directory in entries.map(|entry| entry.path()) {
        if !is_leftover(&directory, proc_root) {
            continue;
        }
        match fs::remove_dir_all(&directory) {
            Ok(()) => removed.push(directory),
            Err(source) => failures.push(failed("remove", &directory)(source)),
        }
    }
    (removed, failures)
}

fn is_leftover(directory: &Path, proc_root: &Path) -> bool {
    let owner = read_regular(&directory.join("owner"), 4096).ok();
    let owner = owner.and_then(|bytes| String::from_utf8(bytes).ok());
    let owner = owner.and_then(|text| text.parse::<GroupName>().ok());
    // Unknown is alive: never remove by guess.
    owner.is_some_and(|owner| matches!(owner.is_owner_alive(proc_root), Ok(false)))
}

/// Reads a file that the application may have written: no link is followed, nothing but a regular
/// file is opened, and no more than `cap` bytes are read.
///
/// # Errors
/// A file that is not there, is a link (ELOOP) or no regular file (InvalidInput).
pub fn read_regular(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(cap).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn make_directory(path: &Path, mode: u32) -> Result<(), ScratchError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path);
    made.map_err(failed("create", path))
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn write_new(path: &Path, text: &str) -> Result<(), ScratchError> {
    create_new(path)
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(failed("create", path))
}

fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> ScratchError + 'a {
    move |source| ScratchError {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_account() -> Account {
        Account {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    fn owner() -> GroupName {
        GroupName::new(Path::new("/proc"), "0193a1b2-0000-7000-8000-000000000001")
            .expect("this process")
    }

    #[test]
    fn a_finished_trial_keeps_its_evidence_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("trial");
        let scratch = Scratch::make(&root, own_account(), &owner()).expect("it is made");
        let (_, tmp) = scratch.replaced().remove(0);
        let mode = fs::metadata(&tmp).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o1777);
        fs::write(tmp.join("x"), "x").expect("it is writable");
        drop(scratch.create_output_log().expect("it is made"));
        assert!(scratch.create_output_log().is_err(), "it must not be overwritten");
        drop(scratch);
        let mut left: Vec<_> = fs::read_dir(&root)
            .expect("it is there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["app", "output.log"]);
    }

    #[test]
    fn only_directories_of_dead_owners_are_swept() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let running = root.join("running");
        let _scratch = Scratch::make(&running, own_account(), &owner()).expect("it is made");
        let dead = GroupName {
            start_time: owner().start_time + 1,
            ..owner()
        };
        for (name, text) in [
            ("dead", dead.to_string()),
            ("odd", "no owner at all".to_owned()),
        ] {
            fs::create_dir_all(root.join(name).join("private/tmp")).expect("a directory");
            fs::write(root.join(name).join("owner"), text).expect("a file");
        }
        fs::create_dir(root.join("finished")).expect("a directory");
        std::os::unix::fs::symlink("/dev/zero", root.join("finished/owner")).expect("a link");
        let (removed, failures) = sweep(root, Path::new("/proc"));
        assert_eq!(removed, [root.join("dead")]);
        assert!(failures.is_empty(), "{failures:?}");
        assert!(running.is_dir() && root.join("odd").is_dir());
    }

    #[test]
    fn planted_files_are_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::write(path("plain"), "0123456789").expect("a file");
        std::os::unix::fs::symlink("/etc/passwd", path("link")).expect("a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a FIFO");
        assert_eq!(read_regular(&path("plain"), 4).ok(), Some(b"0123".to_vec()));
        for name in ["link", "fifo", "missing"] {
            assert!(read_regular(&path(name), 4).is_err(), "{name}");
        }
        assert!(read_regular(Path::new("/dev/zero"), 4).is_err());
    }
}
