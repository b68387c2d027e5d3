//! One trial in the cluster: made, followed, taken away.
//!
//! Owns the way from the lines of its log to the event log on this machine, and what only the kubelet
//! knows of its end. A trial survives a connection that is cut and an API server that restarts: what
//! was logged is asked for again, and what came twice is dropped by its offset. One whose pod was
//! taken away is INVALID, whatever it had measured.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{AsyncBufReadExt, StreamExt};
use k8s_openapi::api::core::v1::{Event as ClusterEvent, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, WatchEvent, WatchParams};
use loadline_analysis::record::{Evidence, Failure, Invalid, Machine};
use loadline_engine::host::{Delivery, Running};
use loadline_host::{plain, pod};
use loadline_trial::log::{Reader, Record};
use loadline_trial::{Ending, Event, Order, Refusal};
use tokio::time::{sleep, timeout};

use crate::cluster::{Cluster, within};
use crate::manifest::{APPLICATION, OWN};
use crate::nodes::{Nodes, Occupied};
use crate::refused;
use crate::standing::{self, Standing};

/// How often the state of a pod is looked at, which a watch keeps.
const LOOK: Duration = Duration::from_millis(50);

/// A Job without a pod for so long: its controller says why.
const NO_POD: Duration = Duration::from_secs(3);

/// So long a trial waits for a node with room.
const ROOM: Duration = Duration::from_secs(120);

/// So long an API server may be away, and a pod may be silent after it has ended.
const AWAY: Duration = Duration::from_secs(300);

/// From the last event to the kubelet's word on how the application ended.
const KUBELET: Duration = Duration::from_secs(20);

/// Lines of the application's output that a record keeps.
const LINES: i64 = 50;

/// A trial that runs as a pod. Dropping it removes its Job, and with it everything.
pub(crate) struct Trial {
    pub(crate) cluster: Rc<Cluster>,
    pub(crate) job: String,
    pub(crate) events: Receiver<Event>,
    pub(crate) asked: bool,
    pub(crate) is_over: bool,
}

impl Running for Trial {
    fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        if self.asked {
            self.is_over = true;
            return Some(Event::Ended(Ending::Stopped));
        }
        let event = self.events.try_recv().ok()?;
        self.is_over = matches!(event, Event::Ended(_));
        Some(event)
    }

    fn stop(&mut self) {
        self.asked = true;
        self.remove();
    }
}

impl Trial {
    fn remove(&self) {
        // What cannot be removed now is found by the sweep of the next start, or ends by itself.
        let _ = self.cluster.run(remove(&self.cluster, &self.job));
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.asked {
            self.remove();
        }
    }
}

/// Removes a Job with all that is its; one that is not there is no error.
pub(crate) async fn remove(cluster: &Cluster, job: &str) -> Result<(), kube::Error> {
    let (jobs, params) = (cluster.jobs(), DeleteParams::background());
    match within(jobs.delete(job, &params)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

/// The pod of a Job as it was last told; a watch keeps it while this lives.
pub(crate) struct Watched {
    latest: Arc<Mutex<Option<Pod>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watched {
    pub(crate) fn start(pods: Api<Pod>, job: &str) -> Self {
        let latest = Arc::new(Mutex::new(None));
        let selector = format!("batch.kubernetes.io/job-name={job}");
        let task = tokio::spawn(watch(pods, selector, Arc::clone(&latest)));
        Self { latest, task }
    }

    pub(crate) fn pod(&self) -> Option<Pod> {
        let latest = self.latest.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(pods: Api<Pod>, selector: String, latest: Arc<Mutex<Option<Pod>>>) {
    let params = WatchParams::default().labels(&selector).timeout(240);
    let put = |pod| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(pod);
    loop {
        if let Ok(stream) = pods.watch(&params, "0").await {
            let mut stream = std::pin::pin!(stream);
            while let Some(Ok(event)) = stream.next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => put(pod),
                    WatchEvent::Deleted(mut pod) => {
                        let at = pod.metadata.creation_timestamp.clone();
                        pod.metadata.deletion_timestamp = pod.metadata.deletion_timestamp.or(at);
                        put(pod);
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
/// says whether a node will be given back.
///
/// # Errors
/// What stands in the way, or [`Failure`] when the pod was taken away before.
pub(crate) async fn begun(
    watched: &Watched,
    events: &Api<ClusterEvent>,
    job: &str,
    mut waits: impl FnMut(&str) -> bool,
) -> Result<Pod, Halt> {
    let mut begin = Instant::now();
    let mut asked = Duration::ZERO;
    loop {
        let pod = watched.pod();
        match pod.as_ref().map(standing::of) {
            Some(Standing::Begun) => return pod.ok_or_else(|| Halt::lost("its pod vanished")),
            Some(Standing::Refused(refusal)) => return Err(Halt::Refused(refusal)),
            Some(Standing::Lost(why)) => return Err(Halt::lost(why)),
            Some(Standing::NoRoom(why)) => {
                if waits(&why) {
                    begin = Instant::now();
                }
                if begin.elapsed() > ROOM {
                    return Err(Halt::Refused(no_room(&why)));
                }
            }
            None if begin.elapsed() > asked + NO_POD => {
                asked = begin.elapsed();
                if let Some(refusal) = never_made(events, job).await {
                    return Err(Halt::Refused(refusal));
                }
                if asked > ROOM {
                    return Err(Halt::lost("its Job made no pod, and nobody says why"));
                }
            }
            Some(Standing::Waiting(_)) | None => {}
        }
        sleep(LOOK).await;
    }
}

/// What the end of a trial says of the node of its slot.
fn learn(nodes: &Nodes, slot: usize, ending: &Ending) {
    let Ending::Measured(evidence) = ending else {
        return;
    };
    let cause = evidence.failure.as_ref().map(|failure| failure.cause);
    match (cause, &evidence.node) {
        (Some(Invalid::OtherNode), Some(node)) => nodes.avoid(slot, &node.name),
        (Some(Invalid::RuntimeLost), _) => nodes.leave(slot),
        _ => {}
    }
}

/// What ends a trial before its log does.
pub(crate) enum Halt {
    Refused(Refusal),
    Lost(String),
}

impl Halt {
    fn lost(why: impl Into<String>) -> Self {
        Self::Lost(why.into())
    }

    fn ending(self) -> Ending {
        match self {
            Self::Refused(refusal) => Ending::Refused(refusal),
            Self::Lost(detail) => measured(Evidence {
                failure: Some(Failure {
                    cause: Invalid::RuntimeLost,
                    detail,
                }),
                ..Evidence::default()
            }),
        }
    }
}

fn measured(evidence: Evidence) -> Ending {
    Ending::Measured(Box::new(evidence))
}

fn no_room(why: &str) -> Refusal {
    let hint = format!(
        "it waited {} s; a node needs room for the application's limits and 1 CPU, 256Mi for loadline's own container: smaller sizes, larger nodes, or another --node-selector",
        ROOM.as_secs()
    );
    Refusal::new("finding a node for a trial", why, hint)
}

/// Why the Job's controller made no pod, if it said so.
async fn never_made(events: &Api<ClusterEvent>, job: &str) -> Option<Refusal> {
    let fields = format!("involvedObject.name={job},reason=FailedCreate");
    let params = ListParams::default().fields(&fields);
    let list = within(events.list(&params));
    // Without the right to read events it waits for its time-out.
    let message = list.await.ok()?.items.pop()?.message?;
    Some(refused::said("making the pod of a trial", &message, 403))
}

/// What a task needs to follow one trial.
pub(crate) struct Follow {
    pub(crate) pods: Api<Pod>,
    pub(crate) events: Api<ClusterEvent>,
    pub(crate) job: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) log: File,
    pub(crate) reading: Reader<File>,
}

impl Follow {
    /// Of an order whose Job is there.
    ///
    /// # Errors
    /// An event log that cannot be made.
    pub(crate) fn new(
        cluster: &Cluster,
        job: &str,
        order: &Order,
        delivery: &Delivery,
        machine: &Machine,
    ) -> Result<Self, Refusal> {
        let (log, reading) = make_log(&delivery.log).map_err(|error| {
            Refusal::new(
                format!("making the event log {}", delivery.log.display()),
                error,
                "the state directory must be writable, on a disk with space",
            )
        })?;
        Ok(Self {
            pods: cluster.pods(),
            events: cluster.events(),
            job: job.to_owned(),
            secrets: order.secrets.clone(),
            machine: machine.clone(),
            log,
            reading: Reader::new(reading),
        })
    }

    /// Follows it; what happens is told.
    pub(crate) fn start(self, cluster: &Cluster, nodes: Nodes, slot: usize) -> Receiver<Event> {
        let (tell, events) = channel();
        cluster.spawn(async move {
            let ending = self.until_it_ends(&tell, &nodes, slot).await;
            learn(&nodes, slot, &ending);
            // Nobody listens to a trial that was stopped.
            let _ = tell.send(Event::Ended(ending));
        });
        events
    }

    async fn until_it_ends(mut self, tell: &Sender<Event>, nodes: &Nodes, slot: usize) -> Ending {
        let watched = Watched::start(self.pods.clone(), &self.job);
        let mut told = String::new();
        let waits = |why: &str| {
            if told != why {
                why.clone_into(&mut told);
                // Nobody listens to a trial that was stopped.
                let _ = tell.send(Event::Waits(told.clone()));
            }
            nodes.is_any_occupied()
        };
        let pod = match begun(&watched, &self.events, &self.job, waits).await {
            Ok(pod) => pod,
            Err(halt) => return halt.ending(),
        };
        let _occupied: Occupied = nodes.occupy(slot, standing::node(&pod));
        let name = pod.metadata.name.unwrap_or_default();
        match self.tail(&watched, &name, tell).await {
            Ok(Ending::Measured(evidence)) => self.complete(&watched, &name, *evidence).await,
            Ok(other) => other,
            Err(halt) => halt.ending(),
        }
    }

    /// Takes lines until the last event.
    async fn tail(
        &mut self,
        watched: &Watched,
        name: &str,
        tell: &Sender<Event>,
    ) -> Result<Ending, Halt> {
        let (mut written, mut silent) = (0, Instant::now());
        loop {
            let params = LogParams {
                container: Some(OWN.to_owned()),
                follow: true,
                ..LogParams::default()
            };
            if let Ok(stream) = within(self.pods.log_stream(name, &params)).await {
                let stream = std::pin::pin!(stream);
                let mut lines = stream.lines();
                loop {
                    let line = match timeout(LOOK, lines.next()).await {
                        Ok(Some(Ok(line))) => line,
                        Ok(Some(Err(_)) | None) => break,
                        Err(_) if is_silent(watched, silent) => break,
                        Err(_) => continue,
                    };
                    silent = Instant::now();
                    self.take(&line, &mut written)?;
                    if let Some(ending) = self.events(tell)? {
                        return Ok(ending);
                    }
                }
            }
            let pod = watched.pod();
            if let Some(why) = pod.as_ref().and_then(standing::taken) {
                return Err(Halt::Lost(why));
            }
            if pod.as_ref().is_some_and(|pod| standing::restarts(pod) > 0) {
                return Err(Halt::lost(
                    "loadline's own container was killed in the middle of it",
                ));
            }
            if silent.elapsed() > AWAY {
                return Err(Halt::lost("the API server gave nothing of it any more"));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Appends what a line has of the log.
    fn take(&mut self, line: &str, written: &mut u64) -> Result<(), Halt> {
        append(&mut self.log, line, written)
    }

    /// Tells the events that are new; gives the last one.
    fn events(&mut self, tell: &Sender<Event>) -> Result<Option<Ending>, Halt> {
        loop {
            let record = self.reading.next_record();
            match record.map_err(|error| Halt::Lost(error.to_string()))? {
                Some(Record::Event(Event::Ended(ending))) => return Ok(Some(ending)),
                Some(Record::Event(event)) => {
                    // Nobody listens to a trial that was stopped.
                    let _ = tell.send(event);
                }
                Some(Record::Piece(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Adds what only the kubelet knows, and what makes it INVALID after all.
    async fn complete(&self, watched: &Watched, name: &str, mut evidence: Evidence) -> Ending {
        let begin = Instant::now();
        let has_ended =
            |pod: &Pod| standing::ended(pod).is_some() || standing::taken(pod).is_some();
        while begin.elapsed() < KUBELET && !watched.pod().as_ref().is_some_and(has_ended) {
            sleep(LOOK).await;
        }
        if let Some(pod) = watched.pod() {
            add(&pod, &self.machine, &mut evidence);
        }
        let is_clean = evidence.start.ready.is_some() && !evidence.exit.before_stop;
        if !is_clean {
            evidence.last_output = self.output(name).await;
        }
        measured(evidence)
    }

    /// The last lines of the application.
    async fn output(&self, name: &str) -> Vec<String> {
        let params = LogParams {
            container: Some(APPLICATION.to_owned()),
            tail_lines: Some(LINES),
            limit_bytes: Some(64 << 10),
            ..LogParams::default()
        };
        let text = within(self.pods.logs(name, &params)).await;
        let mut text = text.unwrap_or_default();
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "***");
        }
        text.lines().map(plain).collect()
    }
}

/// Appends what a line has of a log that has `written` bytes. What came before is dropped.
fn append(log: &mut impl Write, line: &str, written: &mut u64) -> Result<(), Halt> {
    match pod::line(line) {
        Some(pod::Line::Lost(why)) => Err(Halt::Lost(format!("the trial was lost: {why}"))),
        Some(pod::Line::Part { offset, bytes }) => {
            let end = offset + bytes.len() as u64;
            if end <= *written {
                return Ok(());
            }
            let Some(new) = usize::try_from(written.wrapping_sub(offset))
                .ok()
                .and_then(|n| bytes.get(n..))
            else {
                let why = "the kubelet has thrown the begin of its log away (containerLogMaxSize): shorter trials, or coarser samples";
                return Err(Halt::lost(why));
            };
            log.write_all(new).map_err(|error| {
                Halt::Lost(format!("writing the event log on this machine: {error}"))
            })?;
            *written = end;
            Ok(())
        }
        None => Ok(()),
    }
}

/// Whether nothing will come any more from a pod that was taken away.
fn is_silent(watched: &Watched, since: Instant) -> bool {
    let is_taken = |pod: &Pod| standing::taken(pod).is_some();
    since.elapsed() > KUBELET && watched.pod().as_ref().is_some_and(is_taken)
}

/// What a pod's status adds to the evidence of its trial.
pub(crate) fn add(pod: &Pod, machine: &Machine, evidence: &mut Evidence) {
    if let Some(end) = standing::ended(pod) {
        // What ends a process that cannot help it; others a program may give as its own code.
        const FATAL: [i32; 6] = [4, 6, 7, 8, 9, 11];
        let signal = Some(end.exit_code - 128).filter(|signal| FATAL.contains(signal));
        evidence.exit.signal = signal;
        evidence.exit.code = Some(end.exit_code).filter(|_| signal.is_none());
        if end.reason.as_deref() == Some("OOMKilled") {
            let seen = evidence.cgroup.oom_kills.unwrap_or_default();
            evidence.cgroup.oom_kills = Some(seen.max(1));
        }
    }
    if let Some(node) = &mut evidence.node {
        node.runtime = standing::runtime(pod).unwrap_or_default();
        if !node.is_like(machine) {
            let detail = format!(
                "it ran on {} ({}, {}, {} CPUs), the result's node has {}, {}, {} CPUs; --node-selector keeps trials on nodes that are alike",
                node.name,
                node.kernel,
                node.cpu_model,
                node.cpus,
                machine.kernel,
                machine.cpu_model,
                machine.cpus
            );
            evidence.failure = Some(Failure {
                cause: Invalid::OtherNode,
                detail,
            });
        }
    }
    if let Some(detail) = standing::taken(pod) {
        evidence.failure = Some(Failure {
            cause: Invalid::RuntimeLost,
            detail,
        });
    }
}

fn make_log(path: &Path) -> std::io::Result<(File, File)> {
    let mut options = File::options();
    let log = options
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    Ok((log, File::open(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_analysis::record::Node;
    use serde_json::json;

    fn ended(state: serde_json::Value) -> Pod {
        let pod = json!({
            "metadata": { "name": "p" },
            "status": { "containerStatuses": [{
                "name": APPLICATION, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "containerID": "containerd://abc", "state": { "terminated": state },
            }] },
        });
        serde_json::from_value(pod).expect("it is a pod")
    }

    #[test]
    fn a_log_is_put_together_whatever_comes_twice_and_a_gap_is_lost() {
        let mut lines = Vec::new();
        let mut file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..15_000_u32).map(|n| (n % 251) as u8).collect();
        file.write_all(&bytes).expect("it is written");
        pod::ship(&file, &mut lines, &true.into()).expect("it is shipped");
        let text = String::from_utf8(lines).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let (mut log, mut written) = (Vec::new(), 0);
        for index in [0, 1, 0, 1, 2] {
            let taken = append(&mut log, lines[index], &mut written);
            assert!(taken.is_ok(), "line {index}");
        }
        assert!(append(&mut log, "Picked up JAVA_TOOL_OPTIONS", &mut written).is_ok());
        assert_eq!(log, bytes);
        let gap = append(&mut Vec::new(), lines[1], &mut 0);
        assert!(matches!(gap, Err(Halt::Lost(why)) if why.contains("containerLogMaxSize")));
    }

    #[test]
    fn how_it_ended_comes_from_the_kubelet() {
        let of = |state| {
            let mut evidence = Evidence::default();
            add(&ended(state), &Machine::default(), &mut evidence);
            (
                evidence.exit.code,
                evidence.exit.signal,
                evidence.cgroup.oom_kills,
            )
        };
        assert_eq!(of(json!({ "exitCode": 143 })), (Some(143), None, None));
        assert_eq!(of(json!({ "exitCode": 134 })), (None, Some(6), None));
        let oom = json!({ "exitCode": 137, "reason": "OOMKilled" });
        assert_eq!(of(oom), (None, Some(9), Some(1)));
    }

    #[test]
    fn a_trial_on_another_kind_of_node_is_no_evidence() {
        let machine = |cpus| Machine {
            cpus,
            ..Machine::default()
        };
        let failure = |cpus| {
            let mut evidence = Evidence {
                node: Some(Node::of(&machine(cpus), "b")),
                ..Evidence::default()
            };
            add(
                &ended(json!({ "exitCode": 143 })),
                &machine(4),
                &mut evidence,
            );
            evidence.failure.map(|failure| failure.cause)
        };
        assert_eq!(failure(4), None);
        assert_eq!(failure(8), Some(Invalid::OtherNode));
    }
}
