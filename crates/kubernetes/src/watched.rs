//! The pod of a Job, as a watch tells of it.
//!
//! Owns how long is waited for a node and for a pod's begin. What a pod's status means is
//! [`standing`]'s.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Event as ClusterEvent, Pod};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use loadline_analysis::record::{Evidence, Failure, Invalid};
use loadline_trial::{Ending, Refusal};
use tokio::time::sleep;

use crate::cluster::{Access, within};
use crate::gate::Gate;
use crate::refused;
use crate::standing::{self, Standing};

/// How often the state of a pod is looked at, which a watch keeps.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A Job without a pod for so long: its controller says why.
const NO_POD: Duration = Duration::from_secs(3);

/// A pod that has its node and does not begin for so long: its kubelet says why. A slow pull says nothing.
const NO_BEGIN: Duration = Duration::from_secs(10);

/// So long a trial waits for a node with room, and for a pod whose kubelet complains.
const ROOM: Duration = Duration::from_secs(120);

/// What is refused where no node has room.
pub(crate) const NO_NODE: &str = "finding a node for a trial";

/// So long the pod of a Job that was removed may take to go: its grace, and the kubelet's.
const GOES: Duration = Duration::from_secs(45);

/// The pod of a Job as it was last told; a watch keeps it while this lives.
pub(crate) struct Watched {
    latest: Arc<Mutex<Latest>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Latest {
    pod: Option<Arc<Pod>>,
    is_deleted: bool,
}

/// What ends a trial before its log does.
pub(crate) enum Halt {
    /// Nothing of it can be.
    Refused(Refusal),
    /// No node has room, or nobody may make its pod as large.
    NoRoom(Refusal),
    /// Its pod was taken away.
    Lost(String),
}

/// Whether it is worth waiting for a node that has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// One will be given back.
    Given,
    /// For a while: other trials may end, a node may come.
    Some,
    /// Not at all.
    None,
}

impl Halt {
    pub(crate) fn lost(why: impl Into<String>) -> Self {
        Self::Lost(why.into())
    }

    /// The same of what is done before the first trial.
    pub(crate) fn refusal(self, what: &str) -> Refusal {
        match self {
            Self::Refused(refusal) | Self::NoRoom(refusal) => refusal,
            Self::Lost(why) => Refusal::new(what, why, "try again; `kubectl get events` says more"),
        }
    }

    /// The end of a trial by it.
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Refused(refusal) | Self::NoRoom(refusal) => Ending::Refused(refusal),
            Self::Lost(detail) => Ending::Measured(Box::new(Evidence {
                failure: Some(Failure {
                    cause: Invalid::RuntimeLost,
                    detail,
                }),
                ..Evidence::default()
            })),
        }
    }
}

impl Watched {
    pub(crate) fn start(pods: Api<Pod>, job: &str) -> Self {
        let latest = Arc::default();
        let selector = format!("batch.kubernetes.io/job-name={job}");
        let task = tokio::spawn(watch(pods, selector, Arc::clone(&latest)));
        Self { latest, task }
    }

    pub(crate) fn pod(&self) -> Option<Arc<Pod>> {
        lock(&self.latest).pod.clone()
    }

    /// Waits until its pod holds no node any more, or nobody says so for too long. The scheduler
    /// counts a pod until it is deleted or all of it has ended.
    pub(crate) async fn gone(&self) {
        let begin = Instant::now();
        while begin.elapsed() < GOES && !self.is_gone() {
            sleep(LOOK).await;
        }
    }

    /// Whether its pod is there no more: nothing more is told of it.
    pub(crate) fn is_deleted(&self) -> bool {
        lock(&self.latest).is_deleted
    }

    /// Whether its pod was deleted, or all of it has ended.
    pub(crate) fn is_gone(&self) -> bool {
        let latest = lock(&self.latest);
        latest.is_deleted || latest.pod.as_deref().is_none_or(standing::is_over)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(latest: &Mutex<Latest>) -> MutexGuard<'_, Latest> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(pods: Api<Pod>, selector: String, latest: Arc<Mutex<Latest>>) {
    let params = WatchParams::default().labels(&selector).timeout(240);
    loop {
        if let Ok(stream) = pods.watch(&params, "0").await {
            let mut stream = std::pin::pin!(stream);
            while let Some(Ok(event)) = stream.next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        lock(&latest).pod = Some(Arc::new(pod));
                    }
                    WatchEvent::Deleted(mut pod) => {
                        let at = pod.metadata.creation_timestamp.clone();
                        pod.metadata.deletion_timestamp = pod.metadata.deletion_timestamp.or(at);
                        *lock(&latest) = Latest {
                            pod: Some(Arc::new(pod)),
                            is_deleted: true,
                        };
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
            }
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until loadline's container of a Job's pod has begun. `waits` hears why it has no node yet, and
/// says how long that is worth it.
///
/// # Errors
/// What stands in the way, or that the pod was taken away before.
pub(crate) async fn begun(
    watched: &Watched,
    access: &Access,
    job: &str,
    gate: &Gate,
    mut waits: impl FnMut(&str) -> Patience,
) -> Result<Arc<Pod>, Halt> {
    let events = access.events();
    let mut begin = Instant::now();
    let mut asked = Duration::ZERO;
    let mut placed = Placed::default();
    loop {
        let pod = watched.pod();
        match pod.as_deref().map(standing::of) {
            Some(Standing::Begun) => return pod.ok_or_else(|| Halt::lost("its pod vanished")),
            Some(Standing::Refused(refusal)) => return Err(Halt::Refused(refusal)),
            Some(Standing::Lost(why)) => return Err(Halt::lost(why)),
            Some(Standing::NoRoom(why)) => {
                let patience = waits(&why);
                if patience == Patience::Given {
                    begin = Instant::now();
                }
                if patience == Patience::None || begin.elapsed() > ROOM {
                    return Err(Halt::NoRoom(no_room(&why, begin.elapsed())));
                }
            }
            None if gate.is_closed() => return Err(Halt::lost("it was stopped")),
            None if begin.elapsed() > asked + NO_POD => {
                asked = begin.elapsed();
                if let Some(refusal) = never_made(&events, job).await {
                    return Err(Halt::NoRoom(refusal));
                }
                if asked > ROOM {
                    return Err(Halt::lost("its Job made no pod, and nobody says why"));
                }
            }
            Some(Standing::Waiting(_)) => {
                if let Some(pod) = pod.filter(|pod| standing::node(pod).is_some()) {
                    placed.look(&events, &pod, &mut waits).await?;
                }
            }
            None => {}
        }
        sleep(LOOK).await;
    }
}

/// A pod that has a node and has not begun.
#[derive(Default)]
struct Placed {
    since: Option<Instant>,
    asked: Duration,
    /// Since when its kubelet complains.
    complains: Option<Instant>,
}

impl Placed {
    /// Asks now and then what the kubelet says.
    async fn look(
        &mut self,
        events: &Api<ClusterEvent>,
        pod: &Pod,
        waits: &mut impl FnMut(&str) -> Patience,
    ) -> Result<(), Halt> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited < self.asked + NO_BEGIN {
            return Ok(());
        }
        self.asked = waited;
        let Some(why) = said_of(events, &pod.name_any(), "type=Warning").await else {
            return Ok(());
        };
        waits(&why);
        let since = self.complains.get_or_insert_with(Instant::now);
        if refused::never_passes(&why) || since.elapsed() > ROOM {
            let node = standing::node(pod).unwrap_or_default();
            let what = format!("starting a pod on the node {node}");
            return Err(Halt::Refused(refused::said(&what, &why, 0)));
        }
        Ok(())
    }
}

fn no_room(why: &str, waited: Duration) -> Refusal {
    let hint = format!(
        "it waited {} s; a node needs room for the application's limits and 1 CPU, 256Mi (more for a large load) for loadline's own container: smaller sizes, larger nodes, or another --node-selector",
        waited.as_secs()
    );
    Refusal::new(NO_NODE, why, hint)
}

/// Why the Job's controller made no pod, if it said so.
async fn never_made(events: &Api<ClusterEvent>, job: &str) -> Option<Refusal> {
    let message = said_of(events, job, "reason=FailedCreate").await?;
    Some(refused::said("making the pod of a trial", &message, 403))
}

/// What the cluster last said of an object.
async fn said_of(events: &Api<ClusterEvent>, name: &str, which: &str) -> Option<String> {
    let fields = format!("involvedObject.name={name},{which}");
    let params = ListParams::default().fields(&fields);
    let list = within(events.list(&params));
    // Without the right to read events it waits for its time-out.
    list.await.ok()?.items.pop()?.message
}
