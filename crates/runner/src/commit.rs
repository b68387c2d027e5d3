//! The commit checked out in a directory, and whether its files differ from it.
//!
//! Owns one call of git. loadline may be root and the repository anyone's: a repository names
//! programs in its own configuration (fsmonitor, hooks, filters, remote helpers), so git runs with
//! the rights of the directory's owner, never with root's unless root owns it, and with every such
//! program that can be switched off switched off. Reading the repository without git would need its
//! index, objects, filters and line ends, in every format that git has. Changes nothing: not even
//! the index is refreshed. Facts: git-status(1), "Porcelain Format Version 2"; git-config(1);
//! CVE-2022-24765: git refuses a repository of another user.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use loadline_analysis::record::Commit;
use loadline_trial::program::kill_group;

/// Git reads the size of every file; of a hundred thousand on a cold disk that takes seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first lines say the commit; one more says that something is changed.
const LARGEST: u64 = 64 << 10;

const SETTINGS: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    // A directory inside a checkout may look like a bare repository.
    "safe.bareRepository=explicit",
    // Missing objects of a partial clone are not fetched.
    "protocol.allow=never",
    "submodule.recurse=false",
];

const ARGUMENTS: [&str; 7] = [
    "--no-optional-locks",
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=no",
    "--no-renames",
    "--ignore-submodules=dirty",
];

pub fn find_commit(directory: &Path) -> Option<Commit> {
    let path = std::env::var_os("PATH")?;
    let mut child = git_command(directory, &path)?.spawn().ok()?;
    let text = child.stdout.take().and_then(first_bytes);
    kill_group(&mut child);
    parse_commit(&String::from_utf8_lossy(&text?))
}

fn git_command(directory: &Path, path: &OsStr) -> Option<Command> {
    let owner = fs::metadata(directory).ok()?;
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .args(ARGUMENTS)
        .env_clear()
        .env("PATH", path)
        .env("LC_ALL", "C")
        // The owner's own settings may name programs too.
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    if rustix::process::geteuid().is_root() && owner.uid() != 0 {
        // The groups of root go with this too.
        command.uid(owner.uid()).gid(owner.gid());
    }
    Some(command)
}

/// The first bytes that it writes; `None` when it takes too long. Children of git may hold its
/// output open, so the reader thread is not joined.
fn first_bytes(output: ChildStdout) -> Option<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut text = Vec::new();
        let read = output.take(LARGEST).read_to_end(&mut text);
        // Nobody listens any more where it took too long.
        let _ = sender.send(read.ok().map(|_| text));
    };
    std::thread::Builder::new().spawn(read).ok()?;
    receiver.recv_timeout(PATIENCE).ok()?
}

fn parse_commit(text: &str) -> Option<Commit> {
    let id = text
        .lines()
        .find_map(|line| line.strip_prefix("# branch.oid "))?;
    // `(initial)`: there is no commit yet.
    let is_id = id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| Commit {
        id: id.to_owned(),
        is_dirty: text.lines().any(|line| !line.starts_with('#')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owner that tests give to foreign repositories.
    const OTHER: u32 = 64_321;

    /// git in a directory of this user, without settings; `None` where it is not installed.
    fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let git = git.args(arguments).current_dir(directory);
        let git = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().ok()?;
        assert!(git.status.success(), "{arguments:?}: {git:?}");
        Some(String::from_utf8_lossy(&git.stdout).trim().to_owned())
    }

    /// A repository with one committed file below `sub`.
    fn repository() -> Option<(tempfile::TempDir, String)> {
        let place = tempfile::tempdir().expect("a directory");
        git(place.path(), &["init", "-q"])?;
        fs::create_dir(place.path().join("sub")).expect("a directory");
        fs::write(place.path().join("sub/a"), "one").expect("a file");
        git(place.path(), &["add", "."])?;
        git(place.path(), &["commit", "-qm", "first"])?;
        let id = git(place.path(), &["rev-parse", "HEAD"])?;
        Some((place, id))
    }

    #[test]
    fn the_commit_and_whether_files_are_as_it_has_them() {
        let Some((place, id)) = repository() else {
            eprintln!("SKIP the_commit_and_whether_files_are_as_it_has_them: git is not installed");
            return;
        };
        let commit = |is_dirty| {
            Some(Commit {
                id: id.clone(),
                is_dirty,
            })
        };
        let sub = place.path().join("sub");
        assert_eq!(find_commit(&sub), commit(false), "from a directory below");
        fs::write(place.path().join("new"), "x").expect("a file");
        assert_eq!(
            find_commit(&sub),
            commit(false),
            "what git does not track is none"
        );
        let index = fs::read(place.path().join(".git/index")).expect("an index");
        fs::write(sub.join("a"), "two").expect("a file");
        assert_eq!(find_commit(place.path()), commit(true));
        let now = fs::read(place.path().join(".git/index")).expect("an index");
        assert_eq!(index, now, "the repository is unchanged");
    }

    #[test]
    fn no_repository_has_no_commit() {
        let place = tempfile::tempdir().expect("a directory");
        assert_eq!(find_commit(place.path()), None);
        assert_eq!(find_commit(&place.path().join("none")), None);
        if git(place.path(), &["init", "-q"]).is_some() {
            assert_eq!(find_commit(place.path()), None, "nothing is committed yet");
        }
    }

    /// A repository that names programs for everything that git may start, each of which leaves its
    /// user behind.
    fn trap(place: &Path) {
        let program = place.join("trap");
        let trap = format!("#!/bin/sh\nid -u >> {}/ran\ncat\n", place.display());
        fs::write(&program, trap).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).expect("a mode");
        let program = program.display().to_string();
        for key in [
            "core.fsmonitor",
            "filter.trap.clean",
            "core.alternateRefsCommand",
        ] {
            git(place, &["config", key, &program]);
        }
        let hooks = place.join(".git/hooks");
        fs::create_dir_all(&hooks).expect("a directory");
        fs::copy(place.join("trap"), hooks.join("post-index-change")).expect("a hook");
        fs::write(place.join(".gitattributes"), "* filter=trap\n").expect("a file");
        // It is as long as it was: git has to ask the filter whether it is the same.
        fs::write(place.join("sub/a"), "two").expect("a file");
    }

    #[test]
    fn what_a_foreign_repository_names_never_runs_as_root() {
        let is_root = rustix::process::geteuid().is_root();
        let Some((place, id)) = repository().filter(|_| is_root) else {
            eprintln!(
                "SKIP what_a_foreign_repository_names_never_runs_as_root: it needs root and git"
            );
            return;
        };
        trap(place.path());
        let mut chown = Command::new("chown");
        let chown = chown.args(["-R", &format!("{OTHER}:{OTHER}")]);
        let chown = chown.arg(place.path()).status().expect("chown");
        assert!(chown.success());
        let commit = find_commit(place.path()).expect("the owner may read it");
        assert_eq!((commit.id, commit.is_dirty), (id, true));
        let ran = fs::read_to_string(place.path().join("ran")).unwrap_or_default();
        assert!(!ran.is_empty(), "the filter cannot be switched off");
        assert!(ran.lines().all(|user| user == OTHER.to_string()), "{ran}");
        // The directory of the experiment is root's, the repository around it is not.
        std::os::unix::fs::chown(place.path().join("sub"), Some(0), Some(0)).expect("root's");
        fs::remove_file(place.path().join("ran")).expect("a file");
        assert_eq!(
            find_commit(&place.path().join("sub")),
            None,
            "git refuses it"
        );
        assert!(!place.path().join("ran").exists(), "nothing ran");
    }

    #[test]
    fn only_what_git_says_is_read() {
        let id = "a".repeat(40);
        let parsed = parse_commit(&format!("# branch.oid {id}\n# branch.head main\n"));
        assert_eq!(parsed.map(|c| c.is_dirty), Some(false));
        let parsed = parse_commit(&format!("# branch.oid {id}\n1 .M N... 100644 a\n"));
        assert_eq!(parsed.map(|c| c.is_dirty), Some(true));
        for none in [
            "",
            "# branch.oid (initial)\n",
            "# branch.oid ../x\n",
            "fatal",
        ] {
            assert_eq!(parse_commit(none), None);
        }
    }
}
