//! Copies of directories, so that each run starts from the same files and none changes the user's own.
//!
//! Owns how a tree is copied and what may be copied: links are copied as links, sockets and devices are left
//! out. The kernel shares the blocks where the file system can (copy_file_range).

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::ProgramSpec;

const LARGEST_TREE: u64 = 4 << 30;
const MOST_FILES: u64 = 500_000;

const RESET: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(20);

struct TreeCopy<'a> {
    /// The trial's own directory; it and those of other trials next to it are not copied.
    without: &'a Path,
    owner: (u32, u32),
    bytes: u64,
    files: u64,
}

/// Copies a directory to a new place; everything belongs to `owner` (uid, gid). Errors: A file that
/// cannot be read or written, a tree that is too large.
pub(crate) fn copy_tree(
    from: &Path,
    to: &Path,
    owner: (u32, u32),
    without: &Path,
) -> io::Result<()> {
    let mut copy = TreeCopy {
        without,
        owner,
        bytes: 0,
        files: 0,
    };
    copy.copy_directory(from, to)
}

impl TreeCopy<'_> {
    fn copy_directory(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (source, target) = (entry.path(), to.join(entry.file_name()));
            if source == self.without || Some(source.as_path()) == self.without.parent() {
                continue;
            }
            self.copy_entry(&source, &target)?;
        }
        let mode = fs::metadata(from)?.mode() & 0o7777;
        // Its owner may always change it: a build writes where it reads.
        fs::set_permissions(to, Permissions::from_mode(mode | 0o700))?;
        chown(to, Some(self.owner.0), Some(self.owner.1))
    }

    fn copy_entry(&mut self, source: &Path, target: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(source)?;
        self.files += 1;
        self.bytes += metadata.len();
        if self.files > MOST_FILES || self.bytes > LARGEST_TREE {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "it has more than {MOST_FILES} files or {} GiB",
                    LARGEST_TREE >> 30
                ),
            ));
        }
        let (uid, gid) = self.owner;
        if metadata.is_dir() {
            self.copy_directory(source, target)
        } else if metadata.is_symlink() {
            symlink(fs::read_link(source)?, target)?;
            lchown(target, Some(uid), Some(gid))
        } else if metadata.is_file() {
            fs::copy(source, target)?;
            chown(target, Some(uid), Some(gid))
        } else {
            Ok(())
        }
    }
}

pub(crate) fn run_reset(
    words: &[String],
    directory: &Path,
    program: &ProgramSpec,
) -> io::Result<()> {
    let Some((name, arguments)) = words.split_first() else {
        return Ok(());
    };
    // The account may not pass through the directories above: it enters by what root has opened.
    let opened = fs::File::open(directory)?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .current_dir(format!("/proc/self/fd/{}", opened.as_raw_fd()))
        .env_clear()
        .envs(&program.env)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if rustix::process::geteuid().is_root() {
        // Root's supplementary groups go with its id (std::process).
        command.uid(program.uid).gid(program.gid);
    }
    let mut child = command.spawn()?;
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("it ended with {status}"))),
            None if begin.elapsed() > RESET => {
                let group = i32::try_from(child.id())
                    .ok()
                    .and_then(rustix::process::Pid::from_raw);
                if let Some(group) = group {
                    let _ =
                        rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                child.wait()?;
                return Err(io::Error::other(format!(
                    "it did not end within {} s",
                    RESET.as_secs()
                )));
            }
            None => std::thread::sleep(TICK),
        }
    }
}

pub(crate) fn inside_copy(
    copies: &[(PathBuf, PathBuf)],
    path: &Path,
) -> Option<(PathBuf, PathBuf)> {
    copies.iter().find_map(|(seen, real)| {
        let below = path.strip_prefix(seen).ok()?;
        Some((real.clone(), below.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_files_links_and_rights_and_leaves_out_what_is_the_trials_own() {
        let place = tempfile::tempdir().expect("a directory");
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("src/own/trial")).expect("directories");
        fs::write(from.join("src/run.sh"), "echo").expect("a file");
        fs::set_permissions(from.join("src/run.sh"), Permissions::from_mode(0o750))
            .expect("a mode");
        symlink("src/run.sh", from.join("link")).expect("a link");
        let me = fs::metadata(place.path()).expect("it is there");
        let own = from.join("src/own/trial");
        copy_tree(&from, &to, (me.uid(), me.gid()), &own).expect("it is copied");
        assert_eq!(fs::read(to.join("src/run.sh")).expect("a file"), b"echo");
        let mode = fs::metadata(to.join("src/run.sh")).expect("a file").mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(
            fs::read_link(to.join("link")).expect("a link"),
            Path::new("src/run.sh")
        );
        assert!(
            !to.join("src/own").exists(),
            "the trial's own files are copied"
        );
    }

    #[test]
    fn a_reset_runs_in_the_copy_and_a_failed_one_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir(place.path().join("target")).expect("a directory");
        let me = fs::metadata(place.path()).expect("it is there");
        let program = ProgramSpec {
            uid: me.uid(),
            gid: me.gid(),
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            ..ProgramSpec::default()
        };
        let reset = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            run_reset(&words, place.path(), &program).map_err(|e| e.to_string())
        };
        assert_eq!(reset("/bin/rm -rf target"), Ok(()));
        assert!(!place.path().join("target").exists());
        assert_eq!(
            reset("/bin/false"),
            Err("it ended with exit status: 1".to_owned())
        );
    }
}
