//! One application on a host: what a trial needs of whatever holds it.
//!
//! Owns the trait, and nothing of how it is done. The trial makes the containers of its instances,
//! starts and stops them all by the same code, samples their cgroups and reads what they wrote.
//! Kinds: [`crate::own`], namespaces and a cgroup that loadline makes itself; [`crate::oci`], an image
//! that podman or docker starts; [`crate::pod`], what a kubelet or an engine apart starts beside
//! loadline's own container.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use loadline_analysis::record::MeasurementFailure;
use loadline_cgroup::{CgroupError, CgroupLimits, CgroupSample, ControlGroup};
use loadline_protocol::ContainerEngine;
pub use loadline_protocol::NetworkNamespace;
use loadline_sizing::Bytes;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::halt::HaltReason;

/// What a container tells of its application, on a thread of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerEvent {
    Exec {
        /// CLOCK_MONOTONIC, ns.
        at_ns: u64,
    },
    /// It did not come to that: the process that was to become the application ended before.
    NotExecuted,
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The command could not be executed; nothing of it runs.
    Failed {
        detail: String,
    },
    Gone,
}

/// What every container is made of, whatever holds it.
#[derive(Debug, Clone)]
pub struct ContainerBase<'a> {
    /// Names its cgroup, and the container where an engine has names for them.
    pub name: &'a str,
    pub limits: &'a CgroupLimits,
    pub shm: Bytes,
    pub network: ContainerNetwork,
    /// Names that mean this machine's loopback in it: those of the trial's dependencies.
    pub hosts: &'a [String],
    /// Directory for its files; made, and gone with the container.
    pub scratch: &'a Path,
    /// Open files it may have; lowered to what loadline itself may have.
    pub open_files: u64,
    /// Whether its files leave the page cache first.
    pub evict_page_cache: bool,
}

/// The `/dev/shm` of a container that says nothing of it: what podman and docker give.
pub const SHM: Bytes = Bytes::from_mib(64);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerNetwork {
    Host,
    Own,
    Of(NetworkNamespace),
}

impl ContainerNetwork {
    /// The file of its namespace; `None` is the machine's own, or one that is not made yet.
    pub fn namespace_path(&self) -> Option<&Path> {
        match self {
            Self::Of(namespace) => Some(&namespace.path),
            Self::Host | Self::Own => None,
        }
    }
}

/// How an application ended whose container has this code: its own code or a signal.
pub fn how_it_ended(code: Option<i32>) -> (Option<i32>, Option<i32>) {
    // What ends a process that cannot help it; others a program may give as its own code, as a JVM
    // gives 143 when it was asked to stop.
    const FATAL: [i32; 6] = [4, 6, 7, 8, 9, 11];
    let signal = code.map(|code| code - 128);
    let signal = signal.filter(|signal| FATAL.contains(signal));
    (code.filter(|_| signal.is_none()), signal)
}

/// What is sent for a signal to an image that has a stop signal of its own.
pub(crate) fn effective_signal(own: Option<i32>, signal: Signal) -> Signal {
    let own = own.filter(|_| signal == Signal::TERM);
    own.and_then(Signal::from_named_raw).unwrap_or(signal)
}

/// One prepared application. It is made with its limits, its network and its files, and with what
/// takes its output and its [`ContainerEvent`]s. Dropping it ends the application and removes all of it.
pub trait AppContainer {
    /// Starts the application; [`ContainerEvent::Exec`] or [`ContainerEvent::Failed`] follows.
    /// Errors: [`HaltReason`] when the machinery is not there any more.
    fn start_application(&mut self) -> Result<(), HaltReason>;

    /// Sends the application's process a signal. One that has ended does not mind.
    fn signal_application(&mut self, signal: Signal);

    /// The cgroup that holds the application, and nothing else.
    fn application_group(&self) -> &ControlGroup;

    /// Whether its processes and its cgroup are within reach. One that is not is neither counted nor
    /// signalled from here: whoever ordered the trial ends it, and says how it ended.
    fn is_within_reach(&self) -> bool {
        true
    }

    /// Kills every process in the container, now; [`ContainerEvent::Exited`] still follows.
    /// Errors: Processes that do not die.
    fn kill_container(&mut self) -> Result<(), CgroupError>;

    /// Ends what is around the application too, and waits until all of it is dead; `false` when
    /// something was still there after 10 s.
    fn shut_down(&mut self) -> bool;

    /// Removes the cgroup, once everything is dead.
    /// Errors: A group that cannot be removed.
    fn remove_group(&mut self) -> Result<(), CgroupError>;

    /// The counters of its cgroup when the application was executed, where something else ran in it
    /// before: a runtime takes a tenth of a second of CPU.
    fn at_exec(&self) -> Option<CgroupSample>;

    /// The counters of its cgroup now; where an engine has removed it, as they were when the
    /// application ended.
    fn last_sample(&self) -> Option<CgroupSample>;

    fn application_network(&self) -> ContainerNetwork;

    /// The engine that holds it, and its name there; `None` where there is no engine.
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

    /// What was done to it from outside, which makes the trial INVALID; asked before it is ended.
    fn outside_interference(&mut self) -> Option<MeasurementFailure> {
        None
    }

    /// Whether the application is a JVM as far as its command tells, and its JDK where that is known.
    fn jdk_path(&self) -> Option<&Path> {
        None
    }
}
