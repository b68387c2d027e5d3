//! Copies of directories, so that each run starts from the same files and none changes the user's own.
//!
//! Owns how a tree is copied and what may be copied: links are copied as links and never followed, sockets
//! and devices are left out. The kernel shares the blocks where the file system can (copy_file_range).

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_jvm::beneath;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::program::{ProgramSpec, end_within};

const ENTER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const LARGEST_TREE: u64 = 4 << 30;
const MOST_FILES: u64 = 500_000;
const RESET: Duration = Duration::from_secs(120);

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
    let flags = ENTER.difference(OFlags::NOFOLLOW);
    copy.copy_directory(from, &openat(CWD, from, flags, Mode::empty())?, to)
}

impl TreeCopy<'_> {
    fn copy_directory(&mut self, from: &Path, opened: &OwnedFd, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        let there = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        for entry in fs::read_dir(&there)? {
            let entry = entry?;
            let (name, source) = (entry.file_name(), from.join(entry.file_name()));
            if source == self.without || Some(source.as_path()) == self.without.parent() {
                continue;
            }
            let found = fs::symlink_metadata(entry.path())?;
            self.count_entry(&found)?;
            let target = to.join(&name);
            let (uid, gid) = self.owner;
            if found.is_dir() {
                let below = openat(opened, &name, ENTER, Mode::empty())?;
                self.copy_directory(&source, &below, &target)?;
            } else if found.is_symlink() {
                symlink(fs::read_link(entry.path())?, &target)?;
                lchown(&target, Some(uid), Some(gid))?;
            } else if found.is_file() {
                copy_file(opened, Path::new(&name), found.len(), &target)?;
                chown(&target, Some(uid), Some(gid))?;
            }
        }
        let mode = fs::metadata(&there)?.mode() & 0o7777;
        // Its owner may always change it: a build writes where it reads.
        fs::set_permissions(to, Permissions::from_mode(mode | 0o700))?;
        chown(to, Some(self.owner.0), Some(self.owner.1))
    }

    fn count_entry(&mut self, found: &Metadata) -> io::Result<()> {
        self.files += 1;
        self.bytes += found.len();
        if self.files > MOST_FILES || self.bytes > LARGEST_TREE {
            let most = LARGEST_TREE >> 30;
            let why = format!("it has more than {MOST_FILES} files or {most} GiB");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(())
    }
}

/// Copies a regular file that had this length: whoever may write the directory may have put a link or
/// a FIFO in its place since, and root would read what that leads to.
fn copy_file(directory: &OwnedFd, name: &Path, length: u64, target: &Path) -> io::Result<()> {
    let file = beneath::open_beneath(directory, name)?;
    let permissions = file.metadata()?.permissions();
    let mut copy = File::create_new(target)?;
    io::copy(&mut file.take(length), &mut copy)?;
    copy.set_permissions(permissions)
}

pub(crate) fn run_reset(
    words: &[String],
    directory: &Path,
    program: &ProgramSpec,
) -> io::Result<()> {
    let Some(mut command) = program.side_command(words) else {
        return Ok(());
    };
    // The account may not pass through the directories above: it enters by what root has opened.
    let opened = File::open(directory)?;
    command.current_dir(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    match end_within(&mut command.spawn()?, RESET)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(format!("it ended with {status}"))),
        None => {
            let why = format!("it did not end within {} s", RESET.as_secs());
            Err(io::Error::other(why))
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
    fn what_took_the_place_of_a_file_is_not_copied() {
        let place = tempfile::tempdir().expect("a directory");
        let secret = place.path().join("secret");
        fs::write(&secret, "hunter2").expect("a file");
        let from = place.path().join("from");
        fs::create_dir(&from).expect("a directory");
        symlink(&secret, from.join("was-a-file")).expect("a link");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, from.join("was-one-too"), fifo, Mode::RUSR, 0).expect("a FIFO");
        fs::write(from.join("grows"), "0123456789").expect("a file");
        let opened = openat(CWD, &from, ENTER, Mode::empty()).expect("a directory");
        let to = place.path().join("to");
        for name in ["was-a-file", "was-one-too"] {
            assert!(
                copy_file(&opened, Path::new(name), 7, &to).is_err(),
                "{name}"
            );
            assert!(!to.exists(), "{name}");
        }
        copy_file(&opened, Path::new("grows"), 7, &to).expect("a copy");
        assert_eq!(fs::read(&to).expect("a file"), b"0123456");
    }

    fn program_of_owner(place: &Path) -> ProgramSpec {
        let me = fs::metadata(place).expect("it is there");
        ProgramSpec {
            uid: me.uid(),
            gid: me.gid(),
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            ..ProgramSpec::default()
        }
    }

    #[test]
    fn a_reset_runs_in_the_copy_and_a_failed_one_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir(place.path().join("target")).expect("a directory");
        let program = program_of_owner(place.path());
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

    #[test]
    fn a_reset_leaves_no_process_behind() {
        let place = tempfile::tempdir().expect("a directory");
        let program = program_of_owner(place.path());
        let words = ["/bin/sh", "-c", "sleep 600 & echo $! > left"].map(str::to_owned);
        run_reset(&words, place.path(), &program).expect("it ends well");
        let left = fs::read_to_string(place.path().join("left")).expect("a number");
        let is_gone = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", left.trim()));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        // The kernel takes a moment.
        let looks = (0..500).map(|_| std::thread::sleep(Duration::from_millis(10)));
        assert!(looks.into_iter().any(|()| is_gone()), "{left}");
    }
}
