//! loadline in its own image: it leaves its container for the host, and goes on there as a program
//! of the host.
//!
//! Owns that step. The image has neither an engine nor the host's cgroups; the host (on a laptop
//! the engine's virtual machine) has both. It needs to see the process that holds its container in
//! the host's PID namespace (`--pid=host`; conmon with podman, a shim with docker), and the right
//! to enter its namespaces (`--privileged`). The program moves in memory, so it leaves no file
//! there. Facts: setns(2), pid_namespaces(7), memfd_create(2).

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_protocol::RunRefusal;
use loadline_sys::{LinkNameSpaceType, MemfdFlags, memfd_create, move_into_link_name_space};
use rustix::fs::{Timespec, Timestamps, futimens};
use rustix::io::Errno;

pub const VARIABLE: &str = "LOADLINE_IMAGE";

/// `MFD_EXEC`: memory that may be executed, whatever the kernel's default is.
const EXECUTABLE: MemfdFlags = MemfdFlags::from_bits_retain(0x10);

/// Where programs are found there: what the image has is not the machine's.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const LINE: &str = "podman run --rm --privileged --pid=host --network=host --cgroupns=host --pids-limit=-1 IMAGE size --image ...";

/// Namespaces of the host, the mount namespace last: after it everything else is out of sight.
const NAMESPACES: [(&str, LinkNameSpaceType); 5] = [
    ("cgroup", LinkNameSpaceType::ControlGroup),
    ("ipc", LinkNameSpaceType::InterProcessCommunication),
    ("uts", LinkNameSpaceType::HostNameAndNISDomainName),
    ("net", LinkNameSpaceType::Network),
    ("mnt", LinkNameSpaceType::Mount),
];

/// Whether this process was started in loadline's own image, and is not to stay in it: a pod empties
/// the variable.
pub fn is_in_image() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
}

/// Goes on as a program of the machine, with the same arguments. The process must have one thread.
pub fn step_out() -> Result<Infallible, RunRefusal> {
    let refused = |why: String| {
        let hint = format!("it needs access to the host: {LINE}");
        RunRefusal::new("running from loadline's own image", why, hint)
    };
    let holder =
        find_holder().ok_or_else(|| refused("it sees no process of the host".to_owned()))?;
    let program = File::open("/proc/self/exe").and_then(|mut program| in_memory(&mut program));
    let program = program.map_err(|e| refused(format!("its own program: {e}")))?;
    enter_namespaces(&holder).map_err(|e| refused(format!("entering the machine: {e}")))?;
    leave_its_groups();
    let error = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .args(std::env::args_os().skip(1))
        .env_remove(VARIABLE)
        .env("PATH", PATH)
        .exec();
    Err(refused(format!("executing it there: {error}")))
}

fn find_holder() -> Option<PathBuf> {
    let files = |namespaces: &Path| fs::read_link(namespaces.join("mnt")).ok();
    let own = files(Path::new("/proc/self/ns"))?;
    let mut process = rustix::process::getppid()?.as_raw_nonzero().to_string();
    loop {
        let namespaces = PathBuf::from(format!("/proc/{process}/ns"));
        if files(&namespaces)? != own {
            return Some(namespaces);
        }
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        process = parent.trim().to_owned();
    }
}

fn enter_namespaces(holder: &Path) -> io::Result<()> {
    let open = |(name, kind): &(&str, LinkNameSpaceType)| {
        File::open(holder.join(name)).map(|file| (file, *kind))
    };
    let all: Vec<_> = NAMESPACES.iter().map(open).collect::<io::Result<_>>()?;
    for (file, kind) in &all {
        move_into_link_name_space(file.as_fd(), Some(*kind))?;
    }
    Ok(())
}

/// The container's limits are not the machine's. A hierarchy that it cannot leave is seen later, as
/// any limit around loadline is.
fn leave_its_groups() {
    let mount = Path::new("/sys/fs/cgroup");
    let below = fs::read_dir(mount).into_iter().flatten().flatten();
    let hierarchies = below.map(|entry| entry.path()).chain([mount.to_owned()]);
    let own = std::process::id().to_string();
    for hierarchy in hierarchies {
        let _ = fs::write(hierarchy.join("cgroup.procs"), &own);
    }
}

/// The program in memory, without a name that could be left behind or changed. It keeps the image's
/// time stamp, so that a result continues with the same program.
fn in_memory(program: &mut File) -> io::Result<OwnedFd> {
    // Kernels before 6.3 do not know the flag, and make every memfd executable.
    let create = |flags| memfd_create("loadline", MemfdFlags::CLOEXEC | flags);
    let made = match create(EXECUTABLE) {
        Err(Errno::INVAL) => create(MemfdFlags::empty()),
        made => made,
    };
    let mut copy = File::from(made?);
    io::copy(program, &mut copy)?;
    let built = Timespec {
        tv_sec: program.metadata()?.mtime(),
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: built,
        last_modification: built,
    };
    futimens(&copy, &times)?;
    Ok(copy.into())
}
