//! Where trials run: the seam between the runner and the machines.
//!
//! Owns the traits, and how the log of a delivery is made. A host carries out orders in slots, each a whole trial with one clock; the
//! runner fills the slots and stores what comes back. There are four: this machine, a container
//! engine out of loadline's sight, a cluster, and a simulation with known truth and virtual time.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::MachineDescription;
pub use loadline_cgroup::CpuUse;
use loadline_protocol::{RunRefusal, TrialEvent, TrialOrder};
use loadline_trial::monotonic_ns;

/// Longest time between two looks at what came.
pub(crate) const POLL: Duration = Duration::from_millis(25);

pub trait TrialHost {
    fn host_machine(&self) -> MachineDescription;

    /// How many trials it runs at once, at least 1.
    fn slot_count(&self) -> usize;

    fn order_refusal(&self, order: &TrialOrder) -> Option<RunRefusal>;

    /// Starts a trial in a free slot. Errors: [`RunRefusal`] when it cannot; the trial leaves
    /// nothing behind then.
    fn launch_trial(
        &mut self,
        slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal>;

    /// Waits until a running trial may have news, at most `patience`. Virtual time passes here and
    /// nowhere else.
    fn wait_for_events(&mut self, patience: Duration) {
        std::thread::sleep(patience.min(POLL));
    }

    /// Now, on a clock of the host that never goes back, in ns: what [`TrialHost::wait_for_events`] waits by.
    fn host_clock_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// What the machine's CPUs do while no trial runs; asked again and again until it is known.
    fn machine_use(&mut self) -> MachineUse {
        MachineUse::Unknown
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum MachineUse {
    /// This host cannot know.
    Unknown,
    NotYet,
    Seen(CpuUse),
}

/// Where a host puts the output of a trial, on this machine. The files are complete at the trial's
/// last event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The raw evidence: samples and what the application wrote. It does not exist yet.
    pub log: PathBuf,
    pub files: Vec<PathBuf>,
}

impl Delivery {
    /// Makes the event log: to append to, and to read.
    pub fn make_log(&self) -> Result<(File, File), RunRefusal> {
        let mut options = File::options();
        options.append(true).read(true).create_new(true).mode(0o600);
        let log = options.open(&self.log);
        let both = log.and_then(|log| Ok((log, File::open(&self.log)?)));
        both.map_err(|error| {
            let making = format!("making the event log {}", self.log.display());
            RunRefusal::new(making, error, WRITABLE)
        })
    }
}

pub(crate) const WRITABLE: &str = "the state directory must be writable, on a disk with space";

/// A trial that runs. Dropping it ends the trial and removes everything it left.
pub trait TrialHandle {
    /// The next thing that happened; `None` when there is nothing new yet. Nothing follows
    /// [`TrialEvent::Ended`], which also comes when the machinery around the trial is lost.
    fn next(&mut self) -> Option<TrialEvent>;

    fn stop_trial(&mut self);
}
