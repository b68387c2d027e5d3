//! The files of one trial: where they lie, who may write them, and what a killed loadline left.
//!
//! Owns the layout of a scratch directory, which is there while the trial runs: `private/` (its /tmp
//! and /var/tmp), `owner` (who runs it), `container` (what an engine made for it) and `env` (the
//! variables it gives to that). A directory with an `owner` that is dead is a leftover and is removed,
//! its owner last; so is an empty one. Any other without is not ours and never touched.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loadline_cgroup::GroupName;
use loadline_files::remove_tree;
use loadline_jvm::beneath;
use loadline_protocol::{ContainerEngine, RunSpec};
use rustix::fs::{Mode, OFlags};

use crate::halt::{self, HaltReason};
use crate::program::ProgramSpec;
use crate::{copies, oci};

/// In a scratch directory: who runs the trial.
const OWNER: &str = "owner";

const SHARED: [(&str, &str); 2] = [("/tmp", "tmp"), ("/var/tmp", "var-tmp")];

const CONTAINER: &str = "container";
const ACCOUNTS: &str = "/etc/passwd";
const HOSTS: &str = "/etc/hosts";

#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct ScratchError {
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

/// The files of a running trial. Dropping it removes what only the running trial needs.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    given: Vec<OsString>,
    /// Copies of directories: (visible path, copy).
    copies: Vec<(PathBuf, PathBuf)>,
}

impl Scratch {
    pub fn make_scratch(root: &Path, owner: &GroupName) -> Result<Self, ScratchError> {
        mark_owner(root, &owner.to_string())?;
        let scratch = Self {
            root: root.to_owned(),
            given: Vec::new(),
            copies: Vec::new(),
        };
        let private = root.join("private");
        make_directory(&private, 0o700)?;
        for (_, name) in SHARED {
            let path = private.join(name);
            make_directory(&path, 0o700)?;
            // Not by mkdir: the umask would take bits away.
            set_mode(&path, 0o1777)?;
        }
        Ok(scratch)
    }

    pub fn tmp_directory(&self) -> PathBuf {
        self.root.join("private/tmp")
    }

    pub fn private_directory(&self) -> PathBuf {
        self.root.join("private")
    }

    /// Makes a directory below its /tmp that every user may write, with copies of these files that
    /// none but root may; gives where it really is.
    /// Errors: A path that is not below /tmp, a file that cannot be copied.
    pub fn give_files(&mut self, seen: &Path, files: &[PathBuf]) -> Result<PathBuf, ScratchError> {
        let (directory, name) = self.place_of(seen).map_err(file_failed("find", seen))?;
        let place = directory.join(name);
        make_directory(&place, 0o700)?;
        for file in files {
            let name = file.file_name().unwrap_or_default();
            let copy = place.join(name);
            fs::copy(file, &copy).map_err(file_failed("copy", file))?;
            set_mode(&copy, 0o644)?;
            self.given.push(name.to_owned());
        }
        set_mode(&place, 0o1777)?;
        Ok(place)
    }

    pub fn note_container(&self, engine: &ContainerEngine, name: &str) -> Result<(), ScratchError> {
        let text = serde_json::json!({ "engine": engine, "name": name });
        write_new(&self.root.join(CONTAINER), &text.to_string())
    }

    /// Writes variables into a file for an engine, readable by its owner only. Errors: A variable
    /// with a line break, a file that cannot be written.
    pub fn write_env_file(&self, env: &BTreeMap<String, String>) -> Result<PathBuf, ScratchError> {
        let path = self.root.join("env");
        let written = create_new(&path).and_then(|mut file| oci::write_variables(&mut file, env));
        written.map_err(file_failed("write", &path))?;
        Ok(path)
    }

    pub fn replaced_directories(&self) -> Vec<(PathBuf, PathBuf)> {
        let is_directory =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        SHARED
            .iter()
            .map(|(seen, name)| (PathBuf::from(seen), self.root.join("private").join(name)))
            .filter(|(seen, _)| is_directory(seen))
            .collect()
    }

    /// The machine's list of accounts plus the application's, shown in its place; `None` if the
    /// list has it, or does not exist. A JVM with a nameless user keeps no counters (HotSpot,
    /// perfMemory_posix.cpp: `get_user_name`). Errors: A list that cannot be read, a copy that
    /// cannot be made.
    pub fn passwd_with_account(
        &self,
        uid: u32,
        gid: u32,
        home: Option<&Path>,
    ) -> Result<Option<(PathBuf, PathBuf)>, ScratchError> {
        let seen = PathBuf::from(ACCOUNTS);
        if !seen.is_file() {
            return Ok(None);
        }
        // Bytes: names of people may be in any encoding.
        let list = fs::read(&seen).map_err(file_failed("read", &seen))?;
        let Some(list) = with_account(list, uid, gid, home) else {
            return Ok(None);
        };
        let copy = self.write_copy("passwd", list)?;
        Ok(Some((seen, copy)))
    }

    /// The machine's list of hosts plus these names for its loopback, shown in its place; `None`
    /// without names. Errors: A list that cannot be read, a copy that cannot be made.
    pub fn hosts_with_names(
        &self,
        names: &[String],
    ) -> Result<Option<(PathBuf, PathBuf)>, ScratchError> {
        let seen = PathBuf::from(HOSTS);
        if names.is_empty() || !seen.is_file() {
            return Ok(None);
        }
        let mut list = fs::read(&seen).map_err(file_failed("read", &seen))?;
        // The first line with a name counts.
        list.splice(..0, format!("127.0.0.1 {}\n", names.join(" ")).into_bytes());
        let copy = self.write_copy("hosts", list)?;
        Ok(Some((seen, copy)))
    }

    fn write_copy(&self, name: &str, content: Vec<u8>) -> Result<PathBuf, ScratchError> {
        let copy = self.root.join("private").join(name);
        fs::write(&copy, content).map_err(file_failed("create", &copy))?;
        // Not by open: the umask would take bits away.
        set_mode(&copy, 0o644)?;
        Ok(copy)
    }

    /// Empty directories of this user, each to be seen in the place of one of the machine's.
    pub fn empty_directories(
        &self,
        seen: &[PathBuf],
        uid: u32,
        gid: u32,
    ) -> Result<Vec<(PathBuf, PathBuf)>, ScratchError> {
        let make = |(number, seen): (usize, &PathBuf)| {
            if !seen.is_dir() {
                let missing = io::Error::from(io::ErrorKind::NotFound);
                return Err(file_failed("find", seen)(missing));
            }
            let real = self.root.join(format!("private/directory-{number}"));
            make_directory(&real, 0o700)?;
            std::os::unix::fs::chown(&real, Some(uid), Some(gid))
                .map_err(file_failed("chown", &real))?;
            Ok((seen.clone(), real))
        };
        seen.iter().enumerate().map(make).collect()
    }

    /// Copies what a run is to have for itself, and resets the copy of its working directory; gives each
    /// as it is seen and where it lies.
    /// Errors: A directory that cannot be copied, a reset that fails.
    pub fn restore_copies(
        &mut self,
        run: &RunSpec,
        program: &ProgramSpec,
    ) -> Result<Vec<(PathBuf, PathBuf)>, ScratchError> {
        for (number, seen) in run.copies.iter().enumerate() {
            let real = self.root.join(format!("private/copy-{number}"));
            let owner = (program.uid, program.gid);
            copies::copy_tree(seen, &real, owner, &self.root).map_err(file_failed("copy", seen))?;
            self.copies.push((seen.to_owned(), real));
        }
        let directory = copies::inside_copy(&self.copies, &program.directory);
        let directory = directory.map(|(copy, below)| copy.join(below));
        let directory = directory.as_deref().unwrap_or(&program.directory);
        copies::run_reset(&run.reset, directory, program)
            .map_err(file_failed("run the reset command in", &program.directory))?;
        Ok(self.copies.clone())
    }

    /// Opens a file by its path as the application sees it, below one of its directories. Follows
    /// no link that the application may have planted. Errors: A file that does not exist, is not
    /// below such a directory, has a link on its way or is no regular file.
    pub fn open_seen(&self, seen: &Path) -> io::Result<File> {
        let (directory, name) = self.place_of(seen)?;
        open_beneath(&directory, &name)
    }

    /// The same for the one file of a directory that it was not given, with its name.
    /// Errors: A directory that is not such a one, or holds anything but one regular file.
    pub fn open_only(&self, seen: &Path) -> io::Result<(OsString, File)> {
        let (directory, name) = self.place_of(seen)?;
        beneath::open_only(open_directory(&directory)?, &name, &self.given)
    }

    /// The real directory and the name in it of a path that the application sees.
    fn place_of(&self, seen: &Path) -> io::Result<(PathBuf, PathBuf)> {
        if let Some(inside) = copies::inside_copy(&self.copies, seen) {
            return Ok(inside);
        }
        let mut replaced = self.replaced_directories().into_iter();
        let found = replaced.find_map(|(directory, real)| {
            let name = seen.strip_prefix(directory).ok()?;
            Some((real, name.to_owned()))
        });
        found.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not below /tmp"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Every process of the trial is dead. What cannot be removed now the next sweep tries again.
        let _ = remove_scratch(&self.root);
    }
}

/// Removes the containers noted in directories below `root` with a dead owner. Returns the
/// failures.
pub fn sweep_containers(root: &Path, proc_root: &Path) -> Vec<ScratchError> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let directories = entries.map(|entry| entry.path());
    let leftovers = directories.filter(|directory| is_leftover(directory, proc_root));
    let removed = leftovers.map(|directory| {
        remove_container(&directory).map_err(file_failed("remove the container of", &directory))
    });
    removed.filter_map(Result::err).collect()
}

/// Removes the scratch directories below `root` with a dead owner. Returns their paths, and the
/// failures with reasons.
pub fn sweep_scratch(root: &Path, proc_root: &Path) -> (Vec<PathBuf>, Vec<ScratchError>) {
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    // No directory, no leftovers.
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for directory in entries.map(|entry| entry.path()) {
        if !is_leftover(&directory, proc_root) {
            // Killed before the owner stood in it, or after it did not any more: then it is empty,
            // and only an empty one is removed by this call.
            removed.extend(fs::remove_dir(&directory).is_ok().then_some(directory));
            continue;
        }
        if directory.join(CONTAINER).exists() {
            // Its container could not be removed, and only this says which one it is.
            continue;
        }
        match remove_scratch(&directory) {
            Ok(()) => removed.push(directory),
            Err(source) => failures.push(file_failed("remove", &directory)(source)),
        }
    }
    (removed, failures)
}

fn with_account(mut list: Vec<u8>, id: u32, gid: u32, home: Option<&Path>) -> Option<Vec<u8>> {
    let uid = id.to_string();
    let has = |line: &[u8]| line.split(|b| *b == b':').nth(2) == Some(uid.as_bytes());
    if list.split(|b| *b == b'\n').any(has) {
        return None;
    }
    if !list.is_empty() && !list.ends_with(b"\n") {
        list.push(b'\n');
    }
    let home = home.unwrap_or(Path::new("/")).display();
    let line = format!("loadline-{uid}:*:{uid}:{gid}::{home}:/sbin/nologin\n");
    list.extend(line.into_bytes());
    Some(list)
}

fn remove_container(directory: &Path) -> io::Result<()> {
    #[derive(serde::Deserialize)]
    struct ContainerNote {
        engine: ContainerEngine,
        name: String,
    }
    let bytes = match open_beneath(directory, Path::new(CONTAINER)) {
        Ok(file) => beneath::read(file, 1 << 20)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // Half a note was written before there was a container.
    if let Ok(note) = serde_json::from_slice::<ContainerNote>(&bytes) {
        oci::remove_by_name(&note.engine, &note.name).map_err(io::Error::other)?;
    }
    fs::remove_file(directory.join(CONTAINER))
}

impl From<ScratchError> for HaltReason {
    fn from(error: ScratchError) -> Self {
        let hint = match error.source.kind() {
            io::ErrorKind::FileTooLarge => {
                "name only what a run changes: --fresh DIR; Gradle works without its directory too: --env GRADLE_USER_HOME=/tmp/gradle"
            }
            _ => "the state directory must be on a disk with space, writable for loadline",
        };
        halt::refusal_halt("making the trial's files", error, hint)
    }
}

/// Makes the directory with its owner in it. The owner is the target of a link, because a link is
/// there whole or not at all; a file would be there, and empty, for a moment.
fn mark_owner(root: &Path, owner: &str) -> Result<(), ScratchError> {
    let link = root.join(OWNER);
    loop {
        make_directory(root, 0o700)?;
        match std::os::unix::fs::symlink(owner, &link) {
            // A sweep took it for a leftover: it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            made => return made.map_err(file_failed("create", &link)),
        }
    }
}

/// Removes a scratch directory, its owner file last: after an interruption it still has an owner.
/// Errors: The path that cannot be removed; it stays with its owner, for the next sweep.
pub fn remove_scratch(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        match entry.file_name() == OWNER {
            true => {}
            false if entry.file_type()?.is_dir() => remove_tree(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_file(root.join(OWNER))?;
    fs::remove_dir(root)
}

fn is_leftover(directory: &Path, proc_root: &Path) -> bool {
    let owner = fs::read_link(directory.join(OWNER)).ok();
    let owner = owner.and_then(|owner| owner.to_str()?.parse::<GroupName>().ok());
    // Unknown is alive: never remove by guess.
    owner.is_some_and(|owner| matches!(owner.is_owner_alive(proc_root), Ok(false)))
}

pub(crate) fn open_beneath(directory: &Path, name: &Path) -> io::Result<File> {
    beneath::open_beneath(open_directory(directory)?, name)
}

fn open_directory(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    Ok(rustix::fs::open(directory, flags, Mode::empty())?)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), ScratchError> {
    let set = fs::set_permissions(path, Permissions::from_mode(mode));
    set.map_err(file_failed("chmod", path))
}

fn make_directory(path: &Path, mode: u32) -> Result<(), ScratchError> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(mode).create(path);
    made.map_err(file_failed("create", path))
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn write_new(path: &Path, text: &str) -> Result<(), ScratchError> {
    create_new(path)
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(file_failed("create", path))
}

fn file_failed<'a>(
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
    use std::io::Read;

    use super::*;

    fn owner() -> GroupName {
        GroupName::new(Path::new("/proc"), "0193a1b2-0000-7000-8000-000000000001")
            .expect("this process")
    }

    #[test]
    fn nothing_is_left_of_a_trial_that_is_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("trial");
        let scratch = Scratch::make_scratch(&root, &owner()).expect("it is made");
        let (_, tmp) = scratch.replaced_directories().remove(0);
        let mode = fs::metadata(&tmp)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o1777);
        fs::write(tmp.join("x"), "x").expect("it is writable");
        drop(scratch);
        assert!(!root.exists());
    }

    #[test]
    fn what_is_too_large_to_copy_is_not_called_a_full_disk() {
        let hint =
            |kind: io::ErrorKind| match HaltReason::from(file_failed("copy", Path::new("/x"))(
                kind.into(),
            )) {
                HaltReason::Refused(refusal) => refusal.hint,
                _ => String::new(),
            };
        assert!(hint(io::ErrorKind::FileTooLarge).contains("--fresh DIR"));
        assert!(hint(io::ErrorKind::StorageFull).contains("a disk with space"));
    }

    #[test]
    fn a_user_without_a_name_gets_one_and_nobody_else_is_changed() {
        let text = |list: &[u8]| {
            let list = with_account(list.to_vec(), 7, 8, None)?;
            Some(String::from_utf8_lossy(&list).into_owned())
        };
        // Neither a group nor a part of a number is the user's.
        let before = "root:x:0:7:root:/root:/bin/sh\nx:x:77:7::/:/bin/sh";
        let expected = format!("{before}\nloadline-7:*:7:8::/:/sbin/nologin\n");
        assert_eq!(text(before.as_bytes()), Some(expected));
        assert_eq!(
            text(b""),
            Some("loadline-7:*:7:8::/:/sbin/nologin\n".to_owned())
        );
        assert_eq!(text(b"a:x:0:0\nseven:x:7:1::/home/seven:/bin/sh\n"), None);
    }

    #[test]
    fn only_directories_of_dead_owners_are_swept() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        let running = root.join("running");
        let _scratch = Scratch::make_scratch(&running, &owner()).expect("it is made");
        let dead = GroupName {
            start_time: owner().start_time + 1,
            ..owner()
        };
        for (name, text) in [
            ("dead", dead.to_string()),
            ("odd", "no owner at all".to_owned()),
        ] {
            fs::create_dir_all(root.join(name).join("private/tmp")).expect("a directory");
            let link = root.join(name).join(OWNER);
            std::os::unix::fs::symlink(text, link).expect("a link");
        }
        // Killed between two calls of the kernel.
        fs::create_dir(root.join("empty")).expect("a directory");
        let (mut removed, failures) = sweep_scratch(root, Path::new("/proc"));
        removed.sort();
        assert_eq!(removed, [root.join("dead"), root.join("empty")]);
        assert!(failures.is_empty(), "{failures:?}");
        assert!(running.is_dir() && root.join("odd").is_dir());
    }

    #[test]
    fn planted_files_are_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let scratch =
            Scratch::make_scratch(&directory.path().join("trial"), &owner()).expect("made");
        let (_, tmp) = scratch.replaced_directories().remove(0);
        fs::create_dir(tmp.join("logs")).expect("a directory");
        fs::write(tmp.join("logs/plain"), "0123456789").expect("a file");
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("/etc/passwd", tmp.join("link")).expect("a link");
        link("/etc", tmp.join("etc")).expect("a link");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, tmp.join("fifo"), fifo, Mode::RUSR, 0)
            .expect("a FIFO");
        let read = |name: &str| {
            let mut text = String::new();
            scratch
                .open_seen(Path::new(name))
                .ok()?
                .read_to_string(&mut text)
                .ok()?;
            Some(text)
        };
        assert_eq!(read("/tmp/logs/plain").as_deref(), Some("0123456789"));
        for name in ["/tmp/link", "/tmp/etc/passwd", "/tmp/fifo", "/tmp/missing"] {
            assert_eq!(read(name), None, "{name}");
        }
        for name in ["/etc/passwd", "/tmp/../etc/passwd", "/tmp/logs", "/tmp"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
