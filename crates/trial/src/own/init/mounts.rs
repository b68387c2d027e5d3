//! The application's view of the file system: its own /proc, /tmp and shared memory, and a way to
//! its files through directories that only others may enter.
//!
//! Owns every mount of a trial. All are made in init's mount namespace and vanish with it; none
//! is ever seen outside. Facts: mount_namespaces(7), mount(2).

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use loadline_sizing::limits::parse_mounts;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};

use super::error::{InitError, StepContext};
use crate::own::protocol::{FilesystemView, VisiblePath};

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Kernel files and directories that reveal or change something about the machine; no container
/// needs them. Source: the list of masked paths that container engines give runc (moby,
/// `oci/defaults.go`).
const HIDDEN: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];

/// What of the kernel may be read and not written. Source: as above.
const FROZEN: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

pub fn make_view(view: &FilesystemView, shm_bytes: u64) -> Result<(), InitError> {
    // Without this the mounts below would appear on the whole machine (systemd makes / shared). The
    // other way stays open: what the machine unmounts must not stay busy because of a trial.
    let inwards = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", inwards).at_step("letting no mount out")?;
    // What stays is opened before anything is covered.
    let replacements = open_handles(view.replaced.iter().map(|(_, real)| real))?;
    let copies = open_handles(view.copied.iter().map(|(_, real)| real))?;
    let kept = view.kept.iter().map(pinned_handle);
    let kept: Vec<OwnedFd> = kept.collect::<Result<_, _>>()?;
    mount_new("proc", "/proc", MountFlags::NOEXEC, None)?;
    for ((seen, _), real) in view.replaced.iter().zip(&replacements) {
        bind(real, seen)?;
    }
    for path in &view.made {
        fs::create_dir_all(path).at_step(format!("making {}", path.display()))?;
    }
    own_memory_files(shm_bytes)?;
    // From the outside in: a hidden directory may lie inside a kept one, and the other way round.
    let masked = view.masked.iter().map(|path| (path, None));
    let kept = view.kept.iter().zip(&kept);
    let kept = kept.map(|(kept, handle)| (&kept.path, Some((handle, kept.read_only))));
    let mut steps: Vec<(&PathBuf, Option<(&OwnedFd, bool)>)> = masked.chain(kept).collect();
    steps.sort_by_key(|(path, _)| *path);
    for (path, kept) in steps {
        match kept {
            None => hide_path(path)?,
            Some((handle, read_only)) => {
                make_mount_point(path, handle)?;
                bind(handle, path)?;
                if read_only {
                    frozen_file(handle, path)?;
                }
            }
        }
    }
    for ((seen, _), copy) in view.copied.iter().zip(&copies) {
        make_mount_point(seen, copy)?;
        bind(copy, seen)?;
    }
    Ok(())
}

fn hide_path(path: &Path) -> Result<(), InitError> {
    const LOCKS: &str = "/run/lock";
    hide(path)?;
    if !Path::new(LOCKS).starts_with(path) {
        return Ok(());
    }
    fs::create_dir_all(LOCKS).at_step(format!("making {LOCKS}"))?;
    let rights = Some(c"mode=1777,size=5m");
    mount_new("tmpfs", LOCKS, MountFlags::NOEXEC, rights)
}

/// Covers a directory with an empty one, a file or socket with the null device. Missing paths
/// (other kernels, other machines) need no cover.
fn hide(path: &Path) -> Result<(), InitError> {
    match fs::metadata(path) {
        Err(_) => Ok(()),
        Ok(metadata) if metadata.is_dir() => {
            mount_new("tmpfs", path, MountFlags::empty(), Some(c"mode=755"))
        }
        Ok(_) => {
            mount_bind_recursive("/dev/null", path).at_step(format!("hiding {}", path.display()))
        }
    }
}

fn open_handles<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<OwnedFd>, InitError> {
    paths.map(|path| open_handle(path)).collect()
}

fn open_handle(path: &Path) -> Result<OwnedFd, InitError> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .at_step(format!("opening {}", path.display()))
}

/// A handle to the kept path, refused if another file has replaced it since its rights were
/// checked.
fn pinned_handle(kept: &VisiblePath) -> Result<OwnedFd, InitError> {
    let handle = open_handle(&kept.path)?;
    let step = || format!("looking at {}", kept.path.display());
    let stat = rustix::fs::fstat(&handle).at_step(step())?;
    if (stat.st_dev, stat.st_ino) != (kept.device, kept.inode) {
        let changed = std::io::Error::other("it is another one than a moment ago");
        return Err(changed).at_step(step());
    }
    Ok(handle)
}

/// A file that its user could not reach without loadline: to be read, not to be written. What else
/// its file system forbids stays forbidden: in a user namespace it must (mount_namespaces(7)).
fn frozen_file(handle: &OwnedFd, path: &Path) -> Result<(), InitError> {
    let step = || format!("making {} read-only", path.display());
    let there = rustix::fs::fstatvfs(handle).at_step(step())?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY | PLAIN;
    for (is, flag) in [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, there.contains(is));
    }
    rustix::mount::mount_remount(path, flags, c"").at_step(step())
}

fn bind(handle: &OwnedFd, onto: &Path) -> Result<(), InitError> {
    let source = format!("/proc/self/fd/{}", handle.as_raw_fd());
    mount_bind_recursive(source, onto).at_step(format!("binding {}", onto.display()))
}

fn mount_new(
    kind: &str,
    onto: impl AsRef<Path>,
    more: MountFlags,
    data: Option<&CStr>,
) -> Result<(), InitError> {
    let onto = onto.as_ref();
    mount(kind, onto, kind, PLAIN | more, data)
        .at_step(format!("mounting {kind} on {}", onto.display()))
}

fn own_memory_files(shm_bytes: u64) -> Result<(), InitError> {
    let shm = CString::new(format!("mode=1777,size={shm_bytes}"));
    let shm = shm.map_err(std::io::Error::from);
    let shm = shm.at_step("writing the size of /dev/shm")?;
    for (kind, onto, data) in [
        ("tmpfs", "/dev/shm", Some(shm.as_c_str())),
        ("mqueue", "/dev/mqueue", None),
    ] {
        let is_directory = fs::symlink_metadata(onto).is_ok_and(|m| m.is_dir());
        if is_directory {
            mount_new(kind, onto, MountFlags::NOEXEC, data)?;
        }
    }
    Ok(())
}

fn make_mount_point(path: &Path, handle: &OwnedFd) -> Result<(), InitError> {
    let step = || format!("making a place for {}", path.display());
    let stat = rustix::fs::fstat(handle).at_step(step())?;
    let is_directory = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    if is_directory {
        return fs::create_dir_all(path).at_step(step());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).at_step(step())?;
    }
    File::create(path).map(drop).at_step(step())
}

/// Makes every cgroup file system and the kernel's settings read-only for this mount namespace: the
/// application can read its limits and never change one, not even with uid 0. Called by the
/// application's process, when loadline has nothing more to write there.
pub fn freeze() -> Result<(), InitError> {
    let table = "/proc/self/mountinfo";
    let text = fs::read_to_string(table).at_step(format!("reading {table}"))?;
    for mount in parse_mounts(&text) {
        mount_read_only(Path::new(&mount.point))?;
    }
    for path in FROZEN.map(Path::new).into_iter().filter(|p| p.exists()) {
        mount_bind_recursive(path, path).at_step(format!("binding {}", path.display()))?;
        mount_read_only(path)?;
    }
    HIDDEN.map(Path::new).into_iter().try_for_each(hide)
}

fn mount_read_only(point: &Path) -> Result<(), InitError> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOEXEC | PLAIN;
    rustix::mount::mount_remount(point, flags, c"")
        .at_step(format!("making {} read-only", point.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_to_the_place_of_a_kept_file_is_not_shown() {
        use std::os::unix::fs::MetadataExt;

        let file = tempfile::NamedTempFile::new().expect("a file");
        let metadata = file.as_file().metadata().expect("it is open");
        let kept = |more: u64| VisiblePath {
            path: file.path().to_owned(),
            device: metadata.dev(),
            inode: metadata.ino() + more,
            read_only: true,
        };
        assert!(pinned_handle(&kept(0)).is_ok());
        let error = pinned_handle(&kept(1)).expect_err("it is another");
        assert!(error.to_string().contains("another one"), "{error}");
    }
}
