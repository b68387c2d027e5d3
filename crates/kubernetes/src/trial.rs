//! One trial in the cluster: made, followed, taken away.
//!
//! Owns the way from the lines of its log to the event log on this machine, and what only the kubelet
//! knows of its end. A trial survives a connection that is cut and an API server that restarts: what
//! was logged is asked for again, and what came twice is dropped by its offset. One whose pod was
//! taken away is INVALID, whatever it had measured.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use futures_util::{AsyncBufReadExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::LogParams;
use loadline_analysis::price::Size;
use loadline_analysis::record::{Evidence, Failure, Invalid, LoadFrom, Node};
use loadline_engine::host::{Delivery, Running};
use loadline_host::container::how_it_ended;
use loadline_host::{plain, pod};
use loadline_trial::log::{Reader, Record};
use loadline_trial::{Ending, Event, Order, Refusal};
use tokio::time::{sleep, timeout};

use crate::cluster::{AWAY, Cluster, remove, within};
use crate::gate::Gate;
use crate::generators::Pool;
use crate::look::Looks;
use crate::making::Making;
use crate::manifest::{self, APPLICATION, OWN};
use crate::nodes::{Nodes, Occupied};
use crate::watched::{Halt, LOOK, Patience, Watched, begun};
use crate::{refused, standing};

/// A connection on which nothing came for so long is made anew: a trial tells something every second.
const DEAD: Duration = Duration::from_secs(60);

/// From the last event to the kubelet's word on how the application ended.
pub(crate) const KUBELET: Duration = Duration::from_secs(20);

/// So often a look is tried again whose pod was taken away.
const LOOKS: u32 = 2;

/// Lines of the application's output that a record keeps.
const LINES: i64 = 50;

/// A trial that runs as a pod. Dropping it removes its Job, and with it everything.
pub(crate) struct Trial {
    cluster: Rc<Cluster>,
    gate: Gate,
    events: Receiver<Event>,
    asked: bool,
    is_over: bool,
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
    /// One whose events come.
    pub(crate) fn new(cluster: &Rc<Cluster>, gate: Gate, events: Receiver<Event>) -> Self {
        Self {
            cluster: Rc::clone(cluster),
            gate,
            events,
            asked: false,
            is_over: false,
        }
    }

    fn remove(&self) {
        let jobs = self.cluster.run(self.gate.close());
        self.cluster.remove(jobs);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !self.asked {
            self.remove();
        }
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
        // Nobody could drop the image's files from the page cache behind it: the next look does.
        _ if evidence.as_shipped => nodes.leave(slot),
        _ => {}
    }
}

fn is_lost(ending: &Ending) -> bool {
    let Ending::Measured(evidence) = ending else {
        return false;
    };
    let failure = evidence.failure.as_ref();
    failure.is_some_and(|failure| failure.cause == Invalid::RuntimeLost)
}

fn measured(evidence: Evidence) -> Ending {
    Ending::Measured(Box::new(evidence))
}

/// What one connection gave.
enum Heard {
    /// The last event.
    Ending(Box<Ending>),
    /// All that was written, or all that the node's kubelet gave when it went away.
    Whole,
    /// Not all.
    Cut,
}

/// What a task needs to carry out one trial.
pub(crate) struct Follow {
    looks: Arc<Looks>,
    first: Node,
    pool: Option<Arc<Pool>>,
    nodes: Nodes,
    slot: usize,
    gate: Gate,
    pub(crate) order: Order,
    log: File,
    reading: Reader<File>,
}

impl Follow {
    /// Of an order in a slot.
    ///
    /// # Errors
    /// An event log that cannot be made.
    pub(crate) fn new(
        (looks, first, pool): (&Arc<Looks>, &Node, Option<&Arc<Pool>>),
        (nodes, slot): (&Nodes, usize),
        order: &Order,
        delivery: &Delivery,
    ) -> Result<Self, Refusal> {
        let (log, reading) = make_log(&delivery.log).map_err(|error| {
            Refusal::new(
                format!("making the event log {}", delivery.log.display()),
                error,
                "the state directory must be writable, on a disk with space",
            )
        })?;
        // Where the workload's own pods share their PID namespace, every trial is as shipped.
        let template = looks.template.as_ref();
        let shares = template.is_some_and(|template| template.shares_processes);
        let order = Order {
            as_shipped: order.as_shipped && !shares,
            ..order.clone()
        };
        Ok(Self {
            looks: Arc::clone(looks),
            first: first.clone(),
            pool: pool.cloned(),
            nodes: nodes.clone(),
            slot,
            gate: Gate::default(),
            order,
            log,
            reading: Reader::new(reading),
        })
    }

    /// What is made of it.
    pub(crate) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Carries it out; what happens is told. The slot is given back when the pod is gone.
    pub(crate) fn start(mut self, cluster: &Cluster) -> Receiver<Event> {
        let (tell, events) = channel();
        cluster.spawn(async move {
            let mut pod = None;
            let ending = match self.until_it_ends(&tell, &mut pod).await {
                Ok(ending) => ending,
                Err(halt) => halt.ending(),
            };
            learn(&self.nodes, self.slot, &ending);
            if let (Some(pool), true) = (&self.pool, is_lost(&ending)) {
                // It may have been one of them.
                pool.renew(self.slot).await;
            }
            // Nobody listens to a trial that was stopped.
            let _ = tell.send(Event::Ended(ending));
            if let Some((watched, _occupied)) = pod {
                watched.gone().await;
            }
        });
        events
    }

    async fn until_it_ends(
        &mut self,
        tell: &Sender<Event>,
        pod: &mut Option<(Watched, Occupied)>,
    ) -> Result<Ending, Halt> {
        if self.nodes.place(self.slot).node.is_none() {
            // A look needs room, too, and a pod as shipped leaves its slot without a node.
            self.until_free().await;
        }
        self.find_node(tell).await?;
        if let Some(pool) = &self.pool {
            let waits = |why: &str| {
                // Nobody listens to a trial that was stopped.
                let _ = tell.send(Event::Waits(why.to_owned()));
            };
            self.order.generators = Some(pool.ready(self.slot, waits).await?);
        }
        let making = Making {
            looks: &self.looks,
            gate: &self.gate,
            order: &self.order,
            place: self.nodes.place(self.slot),
        };
        making.make().await?;
        self.until_free().await;
        making.start().await?;
        let job = manifest::name(&self.order.trial);
        let access = self.looks.access.clone();
        let watched = Watched::start(access.pods(), &job);
        let waits = waits(tell, &self.nodes);
        let begun = begun(&watched, &access, &job, &self.gate, waits).await?;
        let (watched, _) = pod.insert((watched, self.nodes.occupy(self.slot)));
        let name = begun.name_any();
        match self.tail(watched, &name, tell).await? {
            Ending::Measured(evidence) if self.order.as_shipped => {
                Ok(measured(self.stop(watched, &name, *evidence).await))
            }
            Ending::Measured(evidence) => Ok(self.complete(watched, &name, *evidence).await),
            other => Ok(other),
        }
    }

    /// Waits until the last pod of the slot holds its node no more: the scheduler puts a pod that finds no
    /// room back for a second.
    async fn until_free(&self) {
        while self.nodes.is_busy(self.slot) && !self.gate.is_closed() {
            sleep(LOOK).await;
        }
    }

    /// Finds a node for the slot where it has none, and looks at it. One that became another slot's
    /// while the look waited is kept only where there is no other.
    async fn find_node(&self, tell: &Sender<Event>) -> Result<(), Halt> {
        let (mut lost, mut of_another) = (0, None);
        loop {
            let place = self.nodes.place(self.slot);
            if place.node.is_some() {
                return Ok(());
            }
            let (room, gate) = (room(&self.order), &self.gate);
            let looked = match &of_another {
                None => {
                    let waits = waits(tell, &self.nodes);
                    self.looks.look(&place, room, gate, waits).await
                }
                Some(_) => {
                    let place = place.elsewhere();
                    self.looks
                        .look(&place, room, gate, |_| Patience::None)
                        .await
                }
            };
            let looked = match (looked, of_another.take()) {
                (Err(Halt::NoRoom(_)), Some(node)) => {
                    self.nodes.settle(self.slot, node);
                    continue;
                }
                (Err(Halt::Lost(_)), node) if lost < LOOKS && !gate.is_closed() => {
                    (lost, of_another) = (lost + 1, node);
                    continue;
                }
                (looked, _) => looked?,
            };
            let name = &looked.node.name;
            if let Some(why) = looked.unfit(&self.first) {
                self.nodes.avoid(self.slot, name);
                // Nobody listens to a trial that was stopped.
                let _ = tell.send(Event::Waits(why));
            } else if self.nodes.place(self.slot).taken.contains(name) {
                of_another = Some(looked.node);
            } else {
                self.nodes.settle(self.slot, looked.node);
            }
        }
    }

    /// Takes lines until the last event, over as many connections as it needs.
    async fn tail(
        &mut self,
        watched: &Watched,
        name: &str,
        tell: &Sender<Event>,
    ) -> Result<Ending, Halt> {
        let (mut written, mut silent) = (0, Instant::now());
        let params = LogParams {
            container: Some(OWN.to_owned()),
            follow: true,
            ..LogParams::default()
        };
        loop {
            // Before its log is read: what it wrote before is in it.
            let own_end = watched.pod().as_deref().and_then(standing::own_end);
            match within(self.looks.access.pods().log_stream(name, &params)).await {
                Ok(stream) => {
                    let lines = std::pin::pin!(stream.lines());
                    let all = (&mut written, &mut silent);
                    match (self.lines(lines, watched, all, tell).await?, own_end) {
                        (Heard::Ending(ending), _) => return Ok(*ending),
                        (Heard::Whole, Some(how)) => return Err(ended_early(&how)),
                        (Heard::Whole | Heard::Cut, _) => {}
                    }
                }
                // A kubelet that has just been started does not know its pods yet.
                Err(error) if refused::is_gone(&error) => {
                    if watched.is_gone() || silent.elapsed() > DEAD {
                        return Err(Halt::lost("its pod is gone"));
                    }
                }
                Err(_) => {}
            }
            if let Some(why) = watched.pod().as_deref().and_then(standing::taken) {
                return Err(Halt::Lost(why));
            }
            if silent.elapsed() > AWAY {
                return Err(Halt::lost("the API server gave nothing of it any more"));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Takes the lines of one connection.
    async fn lines(
        &mut self,
        mut lines: impl Stream<Item = std::io::Result<String>> + Unpin,
        watched: &Watched,
        (written, silent): (&mut u64, &mut Instant),
        tell: &Sender<Event>,
    ) -> Result<Heard, Halt> {
        loop {
            let line = match timeout(LOOK, lines.next()).await {
                Ok(Some(Ok(line))) => line,
                Ok(Some(Err(_))) => return Ok(Heard::Cut),
                Ok(None) => return Ok(Heard::Whole),
                Err(_) if is_silent(watched, *silent) => return Ok(Heard::Cut),
                Err(_) => continue,
            };
            *silent = Instant::now();
            pod::take(&mut self.log, &line, written).map_err(Halt::Lost)?;
            if let Some(ending) = self.events(tell)? {
                return Ok(Heard::Ending(Box::new(ending)));
            }
        }
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
        while begin.elapsed() < KUBELET && !watched.pod().as_deref().is_some_and(has_ended) {
            sleep(LOOK).await;
        }
        if let Some(pod) = watched.pod() {
            self.add(&pod, &mut evidence);
        }
        let is_clean = evidence.start.ready.is_some() && !evidence.exit.before_stop;
        if !is_clean {
            evidence.last_output = self.output(name).await;
        }
        measured(evidence)
    }

    /// Adds what the status of its pod says.
    pub(crate) fn add(&self, pod: &Pod, evidence: &mut Evidence) {
        let known = standing::node(pod).and_then(|name| self.nodes.looked(&name));
        add(pod, &self.first, known.as_ref(), evidence);
    }

    /// Removes its Job, and with it the pod.
    pub(crate) async fn remove(&self) {
        let job = manifest::name(&self.order.trial);
        // One that was stopped, and one that cannot be asked, is removed by whoever stopped it or next.
        let _ = self
            .gate
            .often(&job, || remove(&self.looks.access, &job))
            .await;
    }

    /// The last lines of the application.
    pub(crate) async fn output(&self, name: &str) -> Vec<String> {
        let params = LogParams {
            container: Some(APPLICATION.to_owned()),
            tail_lines: Some(LINES),
            limit_bytes: Some(64 << 10),
            ..LogParams::default()
        };
        let text = within(self.looks.access.pods().logs(name, &params)).await;
        let mut text = text.unwrap_or_default();
        for secret in self
            .order
            .secrets
            .iter()
            .filter(|secret| !secret.is_empty())
        {
            text = text.replace(secret, "***");
        }
        text.lines().map(plain).collect()
    }
}

/// Whether nothing will come any more on a connection: the pod was taken away, or the connection died
/// without a word.
fn is_silent(watched: &Watched, since: Instant) -> bool {
    let is_taken = |pod: &Pod| standing::taken(pod).is_some();
    since.elapsed() > DEAD
        || (since.elapsed() > KUBELET && watched.pod().as_deref().is_some_and(is_taken))
}

fn ended_early(how: &str) -> Halt {
    Halt::Lost(format!(
        "loadline's own container ended in the middle of it ({how})"
    ))
}

/// Tells why a pod has no node yet, once for each reason.
fn waits(tell: &Sender<Event>, nodes: &Nodes) -> impl FnMut(&str) -> Patience {
    let mut told = String::new();
    move |why| {
        if told != why {
            why.clone_into(&mut told);
            // Nobody listens to a trial that was stopped.
            let _ = tell.send(Event::Waits(told.clone()));
        }
        match nodes.is_any_occupied() {
            true => Patience::Given,
            false => Patience::Some,
        }
    }
}

/// What a trial asks for.
fn room(order: &Order) -> Option<Size> {
    let (cpu, memory) = (order.configuration.cpu?, order.configuration.memory?);
    Some(Size { cpu, memory })
}

/// What a pod's status adds to the evidence of its trial, and what a look at its node did.
pub(crate) fn add(pod: &Pod, first: &Node, looked: Option<&Node>, evidence: &mut Evidence) {
    add_end(pod, evidence);
    for load in &mut evidence.load {
        // Generators say it themselves.
        load.load_from.get_or_insert(LoadFrom::OwnPod);
    }
    if let Some(node) = &mut evidence.node {
        node.runtime = standing::runtime(pod).unwrap_or_default();
        if let Some(looked) = looked {
            node.runtime.clone_from(&looked.runtime);
            node.runtime_class.clone_from(&looked.runtime_class);
            node.os.clone_from(&looked.os);
            node.enforced.clone_from(&looked.enforced);
        }
        let unlike = node.unlike(first);
        if !unlike.is_empty() {
            let detail = format!(
                "it ran on {}, which is unlike the result's first node {}: {}; --node-selector keeps trials on nodes that are alike",
                node.name,
                first.name,
                unlike.join("; ")
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

/// How the application ended, where the kubelet says so already.
pub(crate) fn add_end(pod: &Pod, evidence: &mut Evidence) {
    let Some(end) = standing::ended(pod) else {
        return;
    };
    (evidence.exit.code, evidence.exit.signal) = how_it_ended(Some(end.exit_code));
    if end.reason.as_deref() == Some("OOMKilled") {
        let seen = evidence.cgroup.oom_kills.unwrap_or_default();
        evidence.cgroup.oom_kills = Some(seen.max(1));
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
    use loadline_analysis::record::Enforced;
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
    fn how_it_ended_comes_from_the_kubelet() {
        let of = |state| {
            let mut evidence = Evidence::default();
            add(&ended(state), &Node::default(), None, &mut evidence);
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
        let node = |name: &str, cpus| Node {
            name: name.to_owned(),
            runtime: "containerd".to_owned(),
            cpus,
            ..Node::default()
        };
        let judged = |cpus, class: Option<&str>| {
            let mut evidence = Evidence {
                node: Some(node("b", cpus)),
                ..Evidence::default()
            };
            let looked = Node {
                runtime_class: class.map(str::to_owned),
                ..node("b", 4)
            };
            let (pod, first) = (ended(json!({ "exitCode": 143 })), node("a", 4));
            add(&pod, &first, Some(&looked), &mut evidence);
            evidence
        };
        let failure = |cpus, class| judged(cpus, class).failure.map(|failure| failure.cause);
        assert_eq!(failure(4, None), None);
        assert_eq!(failure(8, None), Some(Invalid::OtherNode));
        assert_eq!(failure(4, Some("gvisor")), Some(Invalid::OtherNode));
    }

    #[test]
    fn how_a_node_held_limits_stands_in_the_record_of_its_trials() {
        let looked = Node {
            runtime: "containerd 1.6.20".to_owned(),
            os: Some("Debian GNU/Linux 12".to_owned()),
            enforced: Some(Enforced {
                throttled_periods: Some(1),
                memory_exit_code: 137,
            }),
            ..Node::default()
        };
        let mut evidence = Evidence {
            node: Some(Node::default()),
            ..Evidence::default()
        };
        let pod = ended(json!({ "exitCode": 143 }));
        add(&pod, &looked, Some(&looked), &mut evidence);
        assert_eq!((evidence.node, evidence.failure), (Some(looked), None));
    }
}
