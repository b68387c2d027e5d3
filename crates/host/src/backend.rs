//! Where trials run: the seam between the phases of a trial and the machinery below.
//!
//! A backend prepares an [`Instance`]; the trial takes it through its phases and collects the
//! evidence. Owns the trait only. `LocalBackend` is cgroups on this machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::record::{
    Configuration, Evidence, Invalid, LoadEvidence, Machine, SecondEvidence, StartEvidence,
};
use loadline_analysis::together;
use loadline_trial::Refusal;

pub use loadline_trial::{Account, LoadPhase, Network, Progress, Readiness, Sampling};

/// All a backend needs to prepare the instances of one trial: one, or as many as the configuration
/// says, all alike.
#[derive(Debug, Clone)]
pub struct InstanceSpec {
    /// UUID of the trial; names cgroups and directories.
    pub trial: String,
    /// Limits, options and environment.
    pub configuration: Configuration,
    /// Program and arguments, JVM options of the configuration already in place.
    pub command: Vec<String>,
    /// Environment of the application, complete: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Its working directory.
    pub directory: PathBuf,
    /// When it counts as ready.
    pub readiness: Readiness,
    /// Which network it gets.
    pub network: Network,
    /// Who it runs as.
    pub account: Account,
    /// Directory for this trial's files, owned by loadline; the backend makes what it needs below.
    pub scratch: PathBuf,
    /// File for the raw samples; see [`crate::samples`].
    pub samples: PathBuf,
    /// The JVM's GC log as the application sees it, below its private `/tmp`; `None` where the
    /// application is no JVM.
    pub gc_log: Option<PathBuf>,
    /// A text in a line of its output, whose time is wanted; not what makes it ready.
    pub log_line: Option<String>,
    /// A file that the application writes below its private `/tmp` and that is kept.
    pub keep: Option<Keep>,
    /// How often the cgroup's counters are read.
    pub sampling: Sampling,
}

impl InstanceSpec {
    /// What one of several instances gets, by its index from 0: the first keeps the trial's names,
    /// the others have a number in theirs.
    pub fn of_instance(&self, index: u32) -> Self {
        let mut spec = self.clone();
        spec.configuration.instances = 1;
        spec.scratch = instance_path(&self.scratch, index);
        spec.samples = instance_path(&self.samples, index);
        if index > 0 {
            spec.trial = format!("{}-{}", self.trial, index + 1);
            // One file is kept, that of the first.
            spec.keep = None;
        }
        let own = |text: &String| {
            let lists: Vec<&str> = text.split(';').collect();
            lists[index as usize % lists.len()].to_owned()
        };
        spec.configuration.cpuset = self.configuration.cpuset.as_ref().map(own);
        spec
    }
}

/// The path of one of several instances beside the trial's: that itself for the first, with `-2`
/// before its extension for the second.
pub fn instance_path(path: &Path, index: u32) -> PathBuf {
    if index == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}-{}", index + 1);
    if let Some(extension) = path.extension() {
        name = format!("{name}.{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}

/// The share of one of several instances in a whole number of things, such as connections: at
/// least 1.
pub fn share_of(whole: u32, index: u32, of: u32) -> u32 {
    (whole / of + u32::from(index < whole % of)).max(1)
}

/// A file of the application that outlives the trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// As the application sees it.
    pub seen: PathBuf,
    /// Where it is copied to, a path that does not exist yet.
    pub to: PathBuf,
}

/// Asked between steps and told what happens; lets a trial be cut short.
pub trait Observer {
    /// Takes a live figure.
    fn progress(&mut self, progress: Progress);

    /// Whether the trial must stop now (Ctrl-C). Checked at least every 100 ms.
    fn interrupted(&self) -> bool;
}

/// A failure of the machinery, never of the application.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// This machine cannot do what the trial needs; nothing was started. Ends the run.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The trial could not be measured; it is INVALID, the run goes on.
    #[error("{detail}")]
    Invalid {
        /// Which verdict it gives.
        cause: Invalid,
        /// What happened, with the path or errno.
        detail: String,
    },
    /// The observer said stop.
    #[error("interrupted")]
    Interrupted,
}

/// Where trials run.
pub trait Backend {
    /// The machine it runs on.
    fn machine(&self) -> Machine;

    /// Now, on the clock of all its times: CLOCK_MONOTONIC, or a simulated one.
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// Makes limits, namespaces and files for the instances of one trial; starts nothing of the
    /// application.
    ///
    /// # Errors
    /// [`BackendError::Refused`] when this machine cannot; what was made is gone again.
    fn prepare(&mut self, spec: &InstanceSpec) -> Result<Box<dyn Instance>, BackendError>;
}

/// One prepared application, or several instances of it. Dropping it removes everything it left.
pub trait Instance {
    /// Starts it and waits until it is ready, has ended, or the deadline has passed.
    /// A start that failed is not an error: the evidence says so (`ready` is `None`).
    fn start(
        &mut self,
        deadline: Duration,
        observer: &mut dyn Observer,
    ) -> Result<StartEvidence, BackendError>;

    /// Addresses it can be reached at, as the load generator sees them.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// Runs one load phase. Ends early when the application has ended.
    fn drive(
        &mut self,
        load: &LoadPhase,
        observer: &mut dyn Observer,
    ) -> Result<Driven, BackendError>;

    /// SIGTERM, grace, kill, clean up; hands over all that was measured. `Evidence::load` and
    /// `Evidence::phases` are filled by the trial. Called once, after any failure too.
    fn stop(&mut self, grace: Duration, observer: &mut dyn Observer) -> Evidence;
}

/// What a load phase gave.
#[derive(Debug, Clone)]
pub struct Driven {
    /// Totals and histograms, of each instance.
    pub load: Vec<LoadEvidence>,
    /// One entry a second, load fields only.
    pub seconds: Vec<SecondEvidence>,
    /// When it began, CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub end_ns: u64,
    /// The application ended during it.
    pub application_ended: bool,
}

/// A phase of several instances: every one's load, the seconds as one series.
pub fn sum_of_parts(parts: Vec<Driven>) -> Driven {
    let ends = |of: fn(&Driven) -> u64| parts.iter().map(of);
    let (start_ns, end_ns) = (
        ends(|d| d.start_ns).min().unwrap_or(0),
        ends(|d| d.end_ns).max().unwrap_or(0),
    );
    let application_ended = parts.iter().any(|d| d.application_ended);
    let (load, seconds): (Vec<_>, Vec<_>) = parts.into_iter().map(|d| (d.load, d.seconds)).unzip();
    Driven {
        load: load.concat(),
        seconds: seconds
            .into_iter()
            .reduce(together::seconds_of_two)
            .unwrap_or_default(),
        start_ns,
        end_ns,
        application_ended,
    }
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
