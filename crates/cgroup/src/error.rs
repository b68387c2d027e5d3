//! Errors of cgroups. Every error names its file and, if there is one, the remedy.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::layout::Controller;

pub(crate) const DELEGATION_HINT: &str =
    "run as root, or: systemd-run --user --scope -p Delegate=yes loadline ...";

/// For root on a machine where systemd owns the v2 tree.
pub(crate) const ROOT_DELEGATION_HINT: &str =
    "systemd owns the cgroup tree; run: systemd-run --scope -p Delegate=yes loadline ...";

/// Where the machine's groups are covered by something else.
pub(crate) const HIDDEN_HINT: &str = "run loadline where the cgroup file system is seen: on the machine itself, or from loadline's own image with --privileged --pid=host (docs/guides/images.md)";

/// In most containers the cgroup file system is read-only.
pub(crate) const READ_ONLY_HINT: &str = "run loadline on the machine itself, or in a container with a writable cgroup file system (docker run --privileged)";

/// A failure of the cgroup file system, or a limit that it cannot take.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action: `read`, `write`, `create`, ...
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not in its documented form: {detail}", path.display())]
    Malformed { path: PathBuf, detail: String },
    #[error("no cgroup file system is mounted below {}", root.display())]
    NotMounted { root: PathBuf },
    #[error("not permitted to make a cgroup below {}: {why}", path.display())]
    NotPermitted {
        path: PathBuf,
        why: String,
        hint: String,
    },
    #[error("this machine offers no `{controller}` controller, which {what} needs")]
    NoController {
        controller: Controller,
        what: &'static str,
        hint: String,
    },
    #[error("{what} = {given} is out of range: {allowed}")]
    OutOfRange {
        what: &'static str,
        given: String,
        allowed: String,
    },
    /// A group around the trials has a limit that would act before the trial's own.
    #[error("the group {} around the trials is limited to {limit} ({what}), and the trial asks for {wanted}", dir.display())]
    OuterLimit {
        dir: PathBuf,
        what: &'static str,
        wanted: String,
        limit: String,
    },
    /// The kernel accepted a write, but the file says something else.
    #[error("{} was set to `{wanted}`, but the kernel has `{got}`", file.display())]
    NotTaken {
        file: PathBuf,
        wanted: String,
        got: String,
    },
    #[error(
        "`{name}` is not a name for a group: it must be `loadline-` and letters, digits or hyphens, at most 200 in all"
    )]
    BadName { name: String },
    #[error("{} still has processes after {waited_ms} ms: {processes:?}", path.display())]
    StillPopulated {
        path: PathBuf,
        waited_ms: u128,
        processes: Vec<u32>,
    },
}

impl CgroupError {
    pub(crate) fn for_file(
        action: &'static str,
        path: &Path,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::File {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    pub(crate) fn malformed(path: &Path, detail: impl Into<String>) -> Self {
        let (path, detail) = (path.to_owned(), detail.into());
        Self::Malformed { path, detail }
    }

    pub fn suggested_fix(&self) -> Option<String> {
        match self {
            Self::NotMounted { root } => Some(format!("mount -t cgroup2 none {}", root.display())),
            Self::NotPermitted { hint, .. } | Self::NoController { hint, .. } => Some(hint.clone()),
            Self::OuterLimit { .. } => {
                Some("raise that limit, run loadline outside of it, or stay below it".to_owned())
            }
            Self::StillPopulated { .. } => {
                let fix = "they cannot be killed (uninterruptible I/O, or another PID namespace); see `ps`";
                Some(fix.to_owned())
            }
            _ => None,
        }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self, Self::File { source, .. } if is_gone(source))
    }

    pub(crate) fn is_errno(&self, errno: Errno) -> bool {
        matches!(self, Self::File { source, .. } if Errno::from_io_error(source) == Some(errno))
    }
}

/// ENOENT: never was; ENODEV: the group was removed while its file was open.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NODEV))
}
