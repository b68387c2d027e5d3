//! The application's container next to loadline's own, in a Kubernetes pod or on a remote engine:
//! another program starts it; `trial-part` releases, watches and ends it.
//!
//! Owns how the application is found and reached without extra privileges: the two containers share
//! the PID namespace, the network and a directory, and run as the same user, so that the kernel
//! lets one read the other's `/proc/PID/root` and send it signals. The other program sets limits;
//! they are compared, never set. The client of the trial adds the facts that only the kubelet or
//! the engine knows (the exit code, the output). Facts: ptrace(2), "Ptrace access mode checking";
//! Kubernetes, "Container Lifecycle Hooks" (the next container starts when the hook of the one
//! before has ended).

mod generate;
mod look;
mod reaper;
mod ship;
mod shipped;
mod watch;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use loadline_analysis::record::{InvalidReason, MeasurementFailure};
use loadline_cgroup::{CgroupError, CgroupSample, ControlGroup};
use loadline_protocol::{AppSpec, Readiness, TrialOrder};
use loadline_sizing::{Bytes, Cpus};
use rustix::process::Signal;

use crate::container::{AppContainer, ContainerEvent, effective_signal};
use crate::halt::{HaltReason, failed_for};
use crate::{pagecache, scratch};
use watch::{AppProcess, WatchedProcess};

pub use generate::generate_load;
pub use look::{ImageJdk, ImageReading, MEMORY_MIB, QUOTA_MILLIS, fill_memory, probe_from_inside};
pub use reaper::reap_until_end;
pub use ship::{LINE, LineEffect, LineSplitter, append_line, ship};
pub use shipped::{AS_SHIPPED, ShippedPodContainer};

pub const MARK: &str = "LOADLINE_TRIAL";
pub const TMP: &str = "/tmp";
const ARMING: Duration = Duration::from_millis(10);

/// Where things lie in the container of `trial-part`.
#[derive(Debug, Clone)]
pub struct PodPaths {
    pub order: PathBuf,
    /// A directory for the event log, and for the file that says that the application may start.
    pub work: PathBuf,
    pub tmp: PathBuf,
    /// Whether application and load generator get separate CPUs; otherwise the node's kernel
    /// schedules both.
    pub splits_cpus: bool,
    pub told_to_end: Arc<AtomicBool>,
}

impl PodPaths {
    pub fn armed_file(&self) -> PathBuf {
        self.work.join("armed")
    }

    pub fn is_armed_within(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        while !self.armed_file().exists() {
            if begin.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(ARMING);
        }
        true
    }
}

pub fn unsupported_feature(order: &TrialOrder) -> Option<&'static str> {
    let configuration = &order.configuration;
    let is_command = matches!(order.app, AppSpec::Command { .. });
    let has_dependencies = !order.dependencies.is_empty();
    let is_busy = configuration.neighbour_threads.is_some() || configuration.cpu_request.is_some();
    let is_given = [
        (is_command, "an application that is not an image"),
        (has_dependencies, "dependencies next to the application"),
        (!order.stubs.is_empty(), "stubs next to the application"),
        (order.soak.is_some(), "a soak"),
        (!order.hand_over.is_empty(), "training a start-up cache"),
        (configuration.cache.is_some(), "a start-up cache"),
        (configuration.instances > 1, "several instances"),
        (is_busy, "a busy neighbour"),
        (order.log_line.is_some(), "waiting for a line of the output"),
        (
            matches!(
                order.readiness,
                Readiness::LogLine { .. } | Readiness::Command { .. } | Readiness::Sample { .. }
            ),
            "readiness by a line of the output or a command",
        ),
    ];
    let first = is_given.into_iter().find(|(is, _)| *is)?;
    Some(first.1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedLimits {
    pub cpu: Option<Cpus>,
    pub memory: Option<Bytes>,
}

pub struct PodContainer {
    watched: WatchedProcess,
    group: ControlGroup,
    root: OwnedFd,
    tmp: PathBuf,
    given: OrderedLimits,
    stop_signal: Option<i32>,
    tampered: Option<String>,
}

impl PodContainer {
    /// Lets the application start and waits until it does: from here on it runs. What its output
    /// would say goes to the kubelet's own log.
    /// Errors: [`HaltReason::Stopped`] when the pod ends before; [`HaltReason::Failed`] when it
    /// runs already, never starts or has other limits than were ordered.
    pub fn prepare_in_pod(
        place: &PodPaths,
        trial: &str,
        (given, stop_signal): (OrderedLimits, Option<i32>),
        tell: impl Fn(ContainerEvent) + Send + 'static,
    ) -> Result<Self, HaltReason> {
        if AppProcess::already_runs(trial) {
            let why = "the application ran before loadline watched it: its kubelet started the containers of the pod in another order, or was restarted between them";
            return Err(failed_for(InvalidReason::RuntimeLost, why));
        }
        fs::write(place.armed_file(), "")
            .map_err(crate::halt::step_failed("letting the application start"))?;
        let application = AppProcess::wait_for_exec(trial, &place.told_to_end)?;
        let group = application.group.clone();
        let (watched, root) = WatchedProcess::watch_application(application, Box::new(tell))
            .map_err(crate::halt::step_failed("watching the application"))?;
        let mut pod = Self {
            watched,
            group,
            root,
            tmp: place.tmp.clone(),
            given,
            stop_signal,
            tampered: None,
        };
        match pod.other_limits() {
            None => Ok(pod),
            Some(detail) => Err(failed_for(InvalidReason::OtherLimits, detail)),
        }
    }

    /// Limits that differ from the ordered ones: a webhook, a policy, a resize. `None` also if the
    /// group is gone.
    fn other_limits(&mut self) -> Option<String> {
        let (cpu, memory) = self.group.in_force().ok()?;
        if self.tampered.is_none() && (cpu, memory) != (self.given.cpu, self.given.memory) {
            let text = |cpu: Option<Cpus>, memory: Option<Bytes>| {
                let cpu = cpu.map_or("no CPU limit".to_owned(), |cpu| format!("{cpu} CPUs"));
                let memory = memory.map_or("no memory limit".to_owned(), |m| m.to_string());
                format!("{cpu} and {memory}")
            };
            self.tampered = Some(format!(
                "its cgroup has {}, ordered were {}",
                text(cpu, memory),
                text(self.given.cpu, self.given.memory)
            ));
        }
        self.tampered.clone()
    }
}

impl AppContainer for PodContainer {
    fn learns_exit_code(&self) -> bool {
        false
    }

    fn signal_application(&mut self, signal: Signal) {
        self.watched
            .signal_process(effective_signal(self.stop_signal, signal));
    }

    fn application_group(&self) -> &ControlGroup {
        &self.group
    }

    fn kill_container(&mut self) -> Result<(), CgroupError> {
        watch::kill_group(&self.group);
        Ok(())
    }

    fn shut_down(&mut self) -> bool {
        watch::kill_group(&self.group);
        self.watched.wait_until_told()
    }

    /// The kubelet does. The image's files leave the node's page cache, so that the next trial pays
    /// for its own as this one did: before a start no container sees them.
    fn remove_group(&mut self) -> Result<(), CgroupError> {
        let root = format!("/proc/self/fd/{}/.", self.root.as_raw_fd());
        pagecache::evict_from_page_cache(Path::new(&root), pagecache::WHOLE);
        Ok(())
    }

    fn at_exec(&self) -> Option<CgroupSample> {
        self.watched.counters_at_exec()
    }

    fn last_sample(&self) -> Option<CgroupSample> {
        match self.group.read() {
            Ok(now) if now.has_oom_kills() => Some(now),
            now => self.watched.counters_at_end().or(now.ok()),
        }
    }

    fn open_file(&self, seen: &Path) -> io::Result<File> {
        open_in_pod(&self.tmp, seen)
    }

    fn outside_interference(&mut self) -> Option<MeasurementFailure> {
        let detail = self.other_limits()?;
        Some(MeasurementFailure::new(InvalidReason::OtherLimits, detail))
    }
}

/// Opens a file of the application by its path there; `tmp` is its [`TMP`].
fn open_in_pod(tmp: &Path, seen: &Path) -> io::Result<File> {
    let name = seen.strip_prefix(TMP).map_err(|_| {
        let why = format!("it is not below {TMP}");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })?;
    scratch::open_beneath(tmp, name)
}

impl Drop for PodContainer {
    fn drop(&mut self) {
        watch::kill_group(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_may_start_once_everything_watches() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = PodPaths {
            order: directory.path().join("order"),
            work: directory.path().to_owned(),
            tmp: directory.path().join("tmp"),
            splits_cpus: false,
            told_to_end: Arc::default(),
        };
        assert!(!place.is_armed_within(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| place.is_armed_within(Duration::from_secs(600)));
            fs::write(place.armed_file(), "").expect("it is written");
            assert!(waiting.join().expect("it ends"));
        });
        assert!(place.is_armed_within(Duration::ZERO));
    }
}
