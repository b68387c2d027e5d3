//! The pod of a Job, followed by a watch.
//!
//! Owns the waiting times for a node and for a pod's begin. [`standing`] interprets a pod's status.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Event as ClusterEvent, Pod};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use loadline_analysis::record::{Evidence, InvalidReason, MeasurementFailure};
use loadline_protocol::{RunRefusal, TrialEnding};
use tokio::time::sleep;

use crate::cluster::{NamespaceAccess, within_deadline};
use crate::gate::RequestGate;
use crate::refused;
use crate::standing::{self, PodStanding};

/// How often the state of a pod is looked at, which a watch keeps.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

const NO_POD: Duration = Duration::from_secs(3);

/// A pod that has its node and does not begin for so long: its kubelet says why. A slow pull says nothing.
const NO_BEGIN: Duration = Duration::from_secs(10);

/// Time a trial waits for a node with room, and for a pod with a complaining kubelet.
const ROOM: Duration = Duration::from_secs(120);

pub(crate) const NO_NODE: &str = "finding a node for a trial";

/// So long the pod of a Job that was removed may take to go: its grace, and the kubelet's.
const GOES: Duration = Duration::from_secs(45);

/// The pod of a Job as it was last told; a watch keeps it while this lives.
pub(crate) struct WatchedPod {
    latest: Arc<Mutex<LatestPod>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct LatestPod {
    pod: Option<Arc<Pod>>,
    is_deleted: bool,
}

pub(crate) enum PodHalt {
    Refused(RunRefusal),
    /// No node has room, or the cluster does not allow a pod of this size.
    NoRoom(RunRefusal),
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomPatience {
    Given,
    /// For a while: other trials may end, a node may come.
    Some,
    None,
}

impl PodHalt {
    pub(crate) fn pod_lost(why: impl Into<String>) -> Self {
        Self::Lost(why.into())
    }

    pub(crate) fn into_refusal(self, what: &str) -> RunRefusal {
        match self {
            Self::Refused(refusal) | Self::NoRoom(refusal) => refusal,
            Self::Lost(why) => {
                RunRefusal::new(what, why, "try again; `kubectl get events` shows more")
            }
        }
    }

    pub(crate) fn into_ending(self) -> TrialEnding {
        match self {
            Self::Refused(refusal) | Self::NoRoom(refusal) => TrialEnding::Refused(refusal),
            Self::Lost(detail) => TrialEnding::Measured(Box::new(Evidence::failed(
                MeasurementFailure::new(InvalidReason::RuntimeLost, detail),
            ))),
        }
    }
}

impl WatchedPod {
    pub(crate) fn start_watch(pods: Api<Pod>, job: &str) -> Self {
        let latest = Arc::default();
        let selector = format!("batch.kubernetes.io/job-name={job}");
        let task = tokio::spawn(watch_pod(pods, selector, Arc::clone(&latest)));
        Self { latest, task }
    }

    pub(crate) fn latest_pod(&self) -> Option<Arc<Pod>> {
        lock_latest(&self.latest).pod.clone()
    }

    /// Waits until its pod occupies no node, or too long without news. The scheduler counts a pod
    /// until it is deleted or all its containers have ended.
    pub(crate) async fn wait_until_gone(&self) {
        let begin = Instant::now();
        while begin.elapsed() < GOES && !self.is_gone() {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        lock_latest(&self.latest).is_deleted
    }

    pub(crate) fn is_gone(&self) -> bool {
        let latest = lock_latest(&self.latest);
        latest.is_deleted || latest.pod.as_deref().is_none_or(standing::is_over)
    }
}

impl Drop for WatchedPod {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock_latest(latest: &Mutex<LatestPod>) -> MutexGuard<'_, LatestPod> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch_pod(pods: Api<Pod>, selector: String, latest: Arc<Mutex<LatestPod>>) {
    let params = WatchParams::default().labels(&selector).timeout(240);
    loop {
        if let Ok(stream) = pods.watch(&params, "0").await {
            let mut stream = std::pin::pin!(stream);
            while let Some(Ok(event)) = stream.next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        lock_latest(&latest).pod = Some(Arc::new(pod));
                    }
                    WatchEvent::Deleted(mut pod) => {
                        let at = pod.metadata.creation_timestamp.clone();
                        pod.metadata.deletion_timestamp = pod.metadata.deletion_timestamp.or(at);
                        *lock_latest(&latest) = LatestPod {
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

/// Waits until loadline's container of a Job's pod has begun. `waits` hears why it has no node yet,
/// and decides how long to wait. Errors: The obstacle, or that the pod was removed before.
pub(crate) async fn wait_until_begun(
    watched: &WatchedPod,
    access: &NamespaceAccess,
    job: &str,
    gate: &RequestGate,
    mut waits: impl FnMut(&str) -> RoomPatience,
) -> Result<Arc<Pod>, PodHalt> {
    let events = access.events();
    let mut begin = Instant::now();
    let mut asked = Duration::ZERO;
    let mut placed = PlacedPod::default();
    loop {
        let pod = watched.latest_pod();
        match pod.as_deref().map(standing::standing_of_pod) {
            Some(PodStanding::Begun) => {
                return pod.ok_or_else(|| PodHalt::pod_lost("its pod vanished"));
            }
            Some(PodStanding::Refused(refusal)) => return Err(PodHalt::Refused(refusal)),
            Some(PodStanding::Lost(why)) => return Err(PodHalt::pod_lost(why)),
            Some(PodStanding::NoRoom(why)) => {
                let patience = waits(&why);
                if patience == RoomPatience::Given {
                    begin = Instant::now();
                }
                if patience == RoomPatience::None || begin.elapsed() > ROOM {
                    return Err(PodHalt::NoRoom(no_room(&why, begin.elapsed())));
                }
            }
            None if gate.is_closed() => return Err(PodHalt::pod_lost("it was stopped")),
            None if begin.elapsed() > asked + NO_POD => {
                asked = begin.elapsed();
                if let Some(refusal) = never_made(&events, job).await {
                    return Err(PodHalt::NoRoom(refusal));
                }
                if asked > ROOM {
                    return Err(PodHalt::pod_lost(
                        "its Job made no pod, and gives no reason",
                    ));
                }
            }
            Some(PodStanding::Waiting(_)) => {
                if let Some(pod) = pod.filter(|pod| standing::node_name(pod).is_some()) {
                    placed.ask_kubelet(&events, &pod, &mut waits).await?;
                }
            }
            None => {}
        }
        sleep(LOOK).await;
    }
}

#[derive(Default)]
struct PlacedPod {
    since: Option<Instant>,
    asked: Duration,
    complains: Option<Instant>,
}

impl PlacedPod {
    async fn ask_kubelet(
        &mut self,
        events: &Api<ClusterEvent>,
        pod: &Pod,
        waits: &mut impl FnMut(&str) -> RoomPatience,
    ) -> Result<(), PodHalt> {
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
            let node = standing::node_name(pod).unwrap_or_default();
            let what = format!("starting a pod on the node {node}");
            return Err(PodHalt::Refused(refused::server_refusal(&what, &why, 0)));
        }
        Ok(())
    }
}

fn no_room(why: &str, waited: Duration) -> RunRefusal {
    let hint = format!(
        "it waited {} s; a node needs room for the application's limits and 1 CPU, 256Mi (more for a large load) for loadline's own container: use smaller sizes, larger nodes, or another --node-selector",
        waited.as_secs()
    );
    RunRefusal::new(NO_NODE, why, hint)
}

async fn never_made(events: &Api<ClusterEvent>, job: &str) -> Option<RunRefusal> {
    let message = said_of(events, job, "reason=FailedCreate").await?;
    Some(refused::server_refusal(
        "making the pod of a trial",
        &message,
        403,
    ))
}

async fn said_of(events: &Api<ClusterEvent>, name: &str, which: &str) -> Option<String> {
    let fields = format!("involvedObject.name={name},{which}");
    let params = ListParams::default().fields(&fields);
    let list = within_deadline(events.list(&params));
    // Without the right to read events it waits for its time-out.
    list.await.ok()?.items.pop()?.message
}
