//! The application of a pod in its shipped layout: its processes are invisible.
//!
//! Owns when such an application counts as executed; everything else stays unknown. No counter of
//! its cgroup is read and no signal is sent; the client of the trial removes the pod and asks the
//! kubelet how the application ended. The network and the directory of the pod are still shared:
//! the load comes over localhost, and the JVM's own log is read as usual.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, thread};

use loadline_cgroup::{CgroupError, CgroupSample, ControlGroup};
use rustix::process::Signal;

use super::{PodPaths, open_in_pod};
use crate::clock::monotonic_ns;
use crate::container::{AppContainer, ContainerEvent};
use crate::halt::HaltReason;

const LOOK: Duration = Duration::from_millis(1);

/// A JVM without a log after this long will hardly begin one: its start is probed anyway. The image
/// is on its node already.
const BEGINS: Duration = Duration::from_secs(20);

pub const AS_SHIPPED: &str = "as shipped, without the PID namespace that the containers of other trials share: its CPU, memory and throttling, and what else used CPU on the node, were not counted; a kill of a process that is not its first one was not seen; its start counts from the begin of its JVM's log, and without one from when the kubelet was let start it";

pub struct ShippedPodContainer {
    group: ControlGroup,
    tmp: PathBuf,
}

impl ShippedPodContainer {
    /// Lets the application start, and waits for the begin of its JVM's log where it has one (`gc_log`,
    /// as the application sees it): from here on it counts as executed.
    /// Errors: [`HaltReason::Stopped`] when the pod ends before.
    pub fn prepare_shipped(
        place: &PodPaths,
        gc_log: Option<&Path>,
        tell: impl Fn(ContainerEvent),
    ) -> Result<Self, HaltReason> {
        let container = Self {
            group: ControlGroup::out_of_reach("of an application as shipped"),
            tmp: place.tmp.clone(),
        };
        let (begin, let_ns) = (Instant::now(), monotonic_ns());
        fs::write(place.armed_file(), "")
            .map_err(crate::halt::step_failed("letting the application start"))?;
        let has_begun = |log: &Path| container.open_file(log).is_ok();
        let mut at_ns = let_ns;
        while let Some(log) = gc_log
            && begin.elapsed() < BEGINS
        {
            if has_begun(log) {
                at_ns = monotonic_ns();
                break;
            }
            if place.told_to_end.load(Ordering::Relaxed) {
                return Err(HaltReason::Stopped);
            }
            thread::sleep(LOOK);
        }
        tell(ContainerEvent::Exec { at_ns });
        Ok(container)
    }
}

impl AppContainer for ShippedPodContainer {
    fn signal_application(&mut self, _: Signal) {}

    fn application_group(&self) -> &ControlGroup {
        &self.group
    }

    fn is_within_reach(&self) -> bool {
        false
    }

    fn kill_container(&mut self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn shut_down(&mut self) -> bool {
        true
    }

    fn remove_group(&mut self) -> Result<(), CgroupError> {
        Ok(())
    }

    fn last_sample(&self) -> Option<CgroupSample> {
        None
    }

    fn open_file(&self, seen: &Path) -> io::Result<File> {
        open_in_pod(&self.tmp, seen)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    fn place(directory: &Path) -> PodPaths {
        PodPaths {
            order: directory.join("order"),
            work: directory.to_owned(),
            tmp: directory.to_owned(),
            splits_cpus: false,
            told_to_end: Arc::default(),
        }
    }

    #[test]
    fn it_counts_as_executed_when_its_jvm_begins_its_log() {
        let directory = tempfile::tempdir().expect("a directory");
        let (place, (tell, told)) = (place(directory.path()), channel());
        let begin = monotonic_ns();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !place.armed_file().exists() {
                    thread::sleep(LOOK);
                }
                thread::sleep(Duration::from_millis(200));
                fs::write(directory.path().join("gc.log"), "").expect("it is written");
            });
            let log = Path::new("/tmp/gc.log");
            let tell = move |what| tell.send(what).expect("there is a receiver");
            let container = ShippedPodContainer::prepare_shipped(&place, Some(log), tell);
            let container = container.unwrap_or_else(|_| panic!("it is let"));
            assert!(!container.is_within_reach());
            assert!(
                container.application_group().read().is_err() && container.last_sample().is_none()
            );
            assert_eq!(
                container.application_group().process_ids().ok(),
                Some(Vec::new())
            );
        });
        let ContainerEvent::Exec { at_ns } = told.recv().expect("it was told") else {
            panic!("it says something else");
        };
        assert!(at_ns - begin >= 200_000_000, "{}", at_ns - begin);
        assert!(told.recv().is_err(), "its end is unknown here");
    }

    #[test]
    fn without_a_log_it_counts_from_when_it_was_let_and_a_pod_that_ends_stops_the_wait() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = place(directory.path());
        assert!(ShippedPodContainer::prepare_shipped(&place, None, |_| ()).is_ok());
        place.told_to_end.store(true, Ordering::Relaxed);
        let log = Some(Path::new("/tmp/gc.log"));
        let stopped = ShippedPodContainer::prepare_shipped(&place, log, |_| ());
        assert!(matches!(stopped, Err(HaltReason::Stopped)));
    }
}
