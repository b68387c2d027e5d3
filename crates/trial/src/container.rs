//! The interface between a trial and the container of an application.
//!
//! Owns the trait, not its implementations. The trial makes the containers of its instances, starts
//! and stops them all by the same code, samples their cgroups and reads their output. Kinds:
//! [`crate::own`], namespaces and a cgroup that loadline makes; [`crate::oci`], an image that
//! podman or docker starts; [`crate::pod`], an application that a kubelet or a remote engine starts
//! next to loadline's own container.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use loadline_analysis::record::MeasurementFailure;
use loadline_cgroup::{CgroupError, CgroupLimits, CgroupSample, ControlGroup};
pub use loadline_protocol::NetworkNamespace;
use loadline_protocol::{AppSpec, ContainerEngine, RunSpec};
use loadline_sizing::Bytes;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::halt::HaltReason;
use crate::program::ProgramSpec;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerEvent {
    Exec {
        at_ns: u64,
    },
    /// It did not come to that: the process that was to become the application ended before.
    NotExecuted,
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// A stage failed; no process of the application runs.
    Failed {
        detail: String,
    },
    Gone,
}

#[derive(Debug, Clone)]
pub struct ContainerBase<'a> {
    pub name: &'a str,
    pub limits: &'a CgroupLimits,
    pub shm: Bytes,
    pub network: ContainerNetwork,
    pub hosts: &'a [String],
    pub scratch: &'a Path,
    pub open_files: u64,
    pub evict_page_cache: bool,
}

pub struct ContainedProgram<'a> {
    pub frame: ContainerBase<'a>,
    pub app: &'a AppSpec,
    pub trial: &'a str,
    pub program: &'a ProgramSpec,
    pub cpus: &'a [u32],
    /// Directories that it sees as empty private ones.
    pub directories: &'a [PathBuf],
    pub hidden: &'a [PathBuf],
    pub gc_log: Option<&'a Path>,
    pub as_shipped: bool,
    pub run: Option<&'a RunSpec>,
}

/// Default size of `/dev/shm`, as in podman and docker.
pub const SHM: Bytes = Bytes::from_mib(64);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerNetwork {
    Host,
    Own,
    Of(NetworkNamespace),
}

impl ContainerNetwork {
    /// The file of its namespace; `None` for the machine's own, or one not made yet.
    pub fn namespace_path(&self) -> Option<&Path> {
        match self {
            Self::Of(namespace) => Some(&namespace.path),
            Self::Host | Self::Own => None,
        }
    }
}

/// How an application ended, from its container's code: an exit code or a signal.
pub fn how_it_ended(code: Option<i32>) -> (Option<i32>, Option<i32>) {
    // What ends a process that cannot help it; others a program may give as its own code, as a JVM
    // gives 143 when it was asked to stop.
    const FATAL: [i32; 6] = [4, 6, 7, 8, 9, 11];
    let signal = code.map(|code| code - 128);
    let signal = signal.filter(|signal| FATAL.contains(signal));
    (code.filter(|_| signal.is_none()), signal)
}

pub(crate) fn effective_signal(own: Option<i32>, signal: Signal) -> Signal {
    let own = own.filter(|_| signal == Signal::TERM);
    own.and_then(Signal::from_named_raw).unwrap_or(signal)
}

/// One prepared application. It is made with its limits, its network, its files, and the receivers
/// of its output and its [`ContainerEvent`]s. Dropping it ends the application and removes
/// everything.
pub trait AppContainer {
    /// Starts what waits in it; in a pod that is the kubelet's work.
    fn start_application(&mut self) -> Result<(), HaltReason> {
        Ok(())
    }

    fn signal_application(&mut self, signal: Signal);

    fn application_group(&self) -> &ControlGroup;

    /// Whether its processes and its cgroup are within reach. One that is not is neither counted nor
    /// signalled from here: whoever ordered the trial ends it, and says how it ended.
    fn is_within_reach(&self) -> bool {
        true
    }

    /// Whether [`ContainerEvent::Exited`] has the exit code, and the output is read here. Of a pod its
    /// kubelet or engine has both: whoever ordered the trial adds them ([`crate::run_output::RunOutput`]).
    fn learns_exit_code(&self) -> bool {
        true
    }

    /// Kills every process in the container, now; [`ContainerEvent::Exited`] still follows.
    /// Errors: Processes that do not die.
    fn kill_container(&mut self) -> Result<(), CgroupError>;

    /// Ends the helper processes too, and waits until all are dead; `false` if one is left after 10
    /// s.
    fn shut_down(&mut self) -> bool;

    fn remove_group(&mut self) -> Result<(), CgroupError>;

    /// The counters of its cgroup when the application was executed, where something else ran in it
    /// before: a runtime takes a tenth of a second of CPU.
    fn at_exec(&self) -> Option<CgroupSample> {
        None
    }

    /// The counters of its cgroup now; where an engine has removed it, as they were when the
    /// application ended.
    fn last_sample(&self) -> Option<CgroupSample>;

    /// A pod's containers share theirs with loadline's own.
    fn application_network(&self) -> ContainerNetwork {
        ContainerNetwork::Host
    }

    /// The engine that runs it, and its name there; `None` without an engine.
    fn holding_engine(&self) -> Option<(&ContainerEngine, &str)> {
        None
    }

    /// Opens a file that the application wrote, by its path as the application sees it. No link it
    /// may have planted is followed.
    /// Errors: A file that is not there, is no regular one, or is not the application's own.
    fn open_file(&self, seen: &Path) -> io::Result<File>;

    /// The same for the one file of a directory, with its name.
    /// Errors: A directory that holds anything but one regular file; a container that is elsewhere.
    fn open_only(&self, _seen: &Path) -> io::Result<(OsString, File)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The directories that hold what it has written, on this machine; none where they are elsewhere.
    fn written_directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Outside interference, which makes the trial INVALID; checked before it is ended.
    fn outside_interference(&mut self) -> Option<MeasurementFailure> {
        None
    }

    fn jdk_path(&self) -> Option<&Path> {
        None
    }
}
