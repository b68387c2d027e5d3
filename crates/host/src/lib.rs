//! Trials on this machine: real cgroup limits, namespaces of their own, nothing left behind.
//!
//! Owns the containment of local trials. What a trial's processes are and who starts whom:
//!
//! ```text
//! loadline ── holder ── init (PID 1) ── application     the cgroup holds the application only
//!     └────── load generator, on CPUs of its own
//! ```
//!
//! Read in this order: [`prepare`] (what a trial is made of), [`init`] (the processes),
//! [`instance`] (the phases), [`fleet`] (several at once), [`stop`] (the end). Facts and measurements behind the design:
//! ARCHITECTURE.md, "Containment".

pub mod application_pauses;
mod at_ready;
pub mod backend;
mod cpus;
mod errors;
mod fleet;
mod gc;
pub mod gc_evidence;
mod generator;
mod group;
pub mod init;
mod instance;
mod listener;
mod neighbour;
mod output;
mod pagecache;
mod preflight;
mod prepare;
mod probe;
mod protocol;
mod reach;
mod recording;
pub mod rootless;
mod samplefile;
pub mod samples;
mod sandbox;
mod scratch;
mod sight;
mod spawner;
mod stop;
mod sweep;
pub mod trial;
mod watching;

use std::path::{Path, PathBuf};

use loadline_analysis::record::Machine;
use loadline_cgroup::Layout;
use loadline_cgroup::host::Host;
use loadline_sizing::Bytes;

pub use generator::load_part;
pub use neighbour::neighbour;
pub use output::plain;
pub use preflight::preflight;
pub use scratch::{gc_log, output_log};
pub use sight::blindness;
pub use sweep::Swept;

use backend::{Backend, BackendError, Instance, InstanceSpec};
use errors::cgroup_unable;
use fleet::{Fleet, Place};
use pagecache::PageCache;

/// What can be chosen about local trials.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program with the subcommands `init` and `load-part`; loadline itself.
    pub program: PathBuf,
    /// Directory with the scratch directories of trials, for [`LocalBackend::sweep`].
    pub scratch_root: Option<PathBuf>,
    /// Whether the application's files leave the page cache before each trial.
    pub evict_page_cache: bool,
    /// Open files the application may have; lowered to what loadline itself may have.
    pub open_files: u64,
    /// Memory of the machine that trials must leave alone.
    pub memory_reserve: Bytes,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Not its path: the file may be replaced or moved while trials run.
            program: PathBuf::from("/proc/self/exe"),
            scratch_root: None,
            evict_page_cache: true,
            // What most container engines give at least.
            open_files: 65_536,
            memory_reserve: Bytes::from_mib(256),
        }
    }
}

/// Trials on this machine.
#[derive(Debug)]
pub struct LocalBackend {
    options: Options,
    layout: Layout,
    cpus: Vec<u32>,
    page_cache: PageCache,
}

impl LocalBackend {
    /// Looks at the machine's cgroups and CPUs; makes nothing.
    ///
    /// # Errors
    /// [`BackendError::Refused`] when no cgroup may be made.
    pub fn new(options: Options) -> Result<Self, BackendError> {
        let what = "finding the cgroups of this machine";
        let layout = Layout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))
            .map_err(|error| cgroup_unable(what, &error))?;
        layout
            .check_permission()
            .map_err(|error| cgroup_unable("making a cgroup for trials", &error))?;
        let cpus = cpus::available()
            .map_err(|errno| errors::unable("finding the CPUs of this machine", errno, ""))?;
        Ok(Self {
            options,
            layout,
            cpus,
            page_cache: PageCache::default(),
        })
    }
}

impl Backend for LocalBackend {
    fn machine(&self) -> Machine {
        let host = Host::read(Path::new("/proc")).ok();
        let model = host.as_ref().and_then(|host| host.cpu_model.clone());
        Machine {
            kernel: host
                .as_ref()
                .map_or_else(String::new, |host| format!("Linux {}", host.kernel)),
            cpu_model: model.unwrap_or_default(),
            cpus: u32::try_from(self.cpus.len()).unwrap_or(u32::MAX),
            memory: host.map(|host| host.memory.total),
            cgroup: self.layout.mode().to_string(),
            jdks: Vec::new(),
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn prepare(&mut self, spec: &InstanceSpec) -> Result<Box<dyn Instance>, BackendError> {
        if spec.configuration.instances > 1 {
            return Ok(Box::new(Fleet::prepare(self, spec)?));
        }
        let alone = Place { index: 0, of: 1 };
        Ok(Box::new(prepare::prepare(self, spec, alone)?))
    }
}

/// `java` without limits: unit tests fill in what they are about.
#[cfg(test)]
pub(crate) fn test_spec() -> InstanceSpec {
    InstanceSpec {
        trial: String::new(),
        configuration: loadline_analysis::record::Configuration {
            label: String::new(),
            cpu: None,
            cpu_period: std::time::Duration::from_millis(100),
            cpuset: None,
            cpu_burst: None,
            instances: 1,
            neighbour_threads: None,
            cpu_shares: None,
            memory: None,
            pids: None,
            jdk: None,
            jvm_options: Vec::new(),
            args: Vec::new(),
            rate: None,
            env: Default::default(),
            cache: None,
        },
        command: vec!["java".to_owned()],
        env: Default::default(),
        directory: PathBuf::from("/"),
        readiness: crate::backend::Readiness::Tcp { port: 1 },
        network: crate::backend::Network::Own,
        account: crate::backend::Account { uid: 1, gid: 1 },
        scratch: PathBuf::new(),
        samples: PathBuf::new(),
        gc_log: None,
        log_line: None,
        keep: None,
        sampling: crate::backend::Sampling::Period,
    }
}
