//! One trial in the cluster: made, followed, removed.
//!
//! Owns the way from the lines of its log to the event log on this machine, and the facts that only
//! the kubelet knows about its end. A trial survives a lost connection and a restart of the API
//! server: the log is requested again, and duplicates are dropped by offset. A trial with a removed
//! pod is INVALID, whatever it had measured.

use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use futures_util::{AsyncReadExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::LogParams;
use loadline_analysis::foreign_text::indented_line;
use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{Evidence, InvalidReason, LoadFrom, MeasurementFailure, TrialNode};
use loadline_protocol::log::{EventLogReader, LogEntry};
use loadline_protocol::{RunRefusal, TrialEnding, TrialEvent, TrialOrder};
use loadline_runner::host::{Delivery, TrialHandle};
use loadline_trial::container::how_it_ended;
use loadline_trial::pod;
use loadline_trial::run_output::RunOutput;
use tokio::time::{sleep, timeout};

use crate::cluster::{AWAY, ConnectedCluster, remove_job, within_deadline};
use crate::gate::RequestGate;
use crate::generators::GeneratorPool;
use crate::labels::{APPLICATION, OWN};
use crate::log_lines::bounded_lines;
use crate::look::NodeInspector;
use crate::making::TrialCreation;
use crate::nodes::{NodeRegistry, OccupiedNode};
use crate::watched::{LOOK, PodHalt, RoomPatience, WatchedPod, wait_until_begun};
use crate::{manifest, refused, standing};

/// A silent connection is replaced after this time: a trial sends an event every second.
const DEAD: Duration = Duration::from_secs(60);

/// From the last event to the kubelet's word on how the application ended.
pub(crate) const KUBELET: Duration = Duration::from_secs(20);

const NO_OUTPUT: &str = "the kubelet did not return the output of the run";

const LOOKS: u32 = 2;

const LINES: i64 = 50;

pub(crate) struct PodTrial {
    cluster: Rc<ConnectedCluster>,
    gate: RequestGate,
    events: Receiver<TrialEvent>,
    asked: bool,
    is_over: bool,
}

impl TrialHandle for PodTrial {
    fn next(&mut self) -> Option<TrialEvent> {
        if self.is_over {
            return None;
        }
        if self.asked {
            self.is_over = true;
            return Some(TrialEvent::Ended(TrialEnding::Stopped));
        }
        let event = self.events.try_recv().ok()?;
        self.is_over = matches!(event, TrialEvent::Ended(_));
        Some(event)
    }

    fn stop_trial(&mut self) {
        self.asked = true;
        self.remove_all_jobs();
    }
}

impl PodTrial {
    pub(crate) fn new(
        cluster: &Rc<ConnectedCluster>,
        gate: RequestGate,
        events: Receiver<TrialEvent>,
    ) -> Self {
        Self {
            cluster: Rc::clone(cluster),
            gate,
            events,
            asked: false,
            is_over: false,
        }
    }

    fn remove_all_jobs(&self) {
        let jobs = self.cluster.run(self.gate.close_gate());
        self.cluster.remove_jobs(jobs);
    }
}

impl Drop for PodTrial {
    fn drop(&mut self) {
        if !self.asked {
            self.remove_all_jobs();
        }
    }
}

fn learn_from_ending(nodes: &NodeRegistry, slot: usize, ending: &TrialEnding) {
    let TrialEnding::Measured(evidence) = ending else {
        return;
    };
    let cause = evidence.failure.as_ref().map(|failure| failure.cause);
    match (cause, &evidence.node) {
        (Some(InvalidReason::OtherNode), Some(node)) => nodes.avoid(slot, &node.name),
        (Some(InvalidReason::RuntimeLost), _) => nodes.leave_node(slot),
        // Nobody could drop the image's files from the page cache behind it: the next look does.
        _ if evidence.as_shipped => nodes.leave_node(slot),
        _ => {}
    }
}

fn is_lost(ending: &TrialEnding) -> bool {
    let TrialEnding::Measured(evidence) = ending else {
        return false;
    };
    let failure = evidence.failure.as_ref();
    failure.is_some_and(|failure| failure.cause == InvalidReason::RuntimeLost)
}

fn measured_ending(evidence: Evidence) -> TrialEnding {
    TrialEnding::Measured(Box::new(evidence))
}

enum LogConnectionEnd {
    Ending(Box<TrialEnding>),
    /// All that was written, or all that the node's kubelet gave when it went away.
    Whole,
    Cut,
}

pub(crate) struct PodFollower {
    looks: Arc<NodeInspector>,
    first: TrialNode,
    pool: Option<Arc<GeneratorPool>>,
    nodes: NodeRegistry,
    slot: usize,
    gate: RequestGate,
    pub(crate) order: TrialOrder,
    log: File,
    reading: EventLogReader<File>,
}

impl PodFollower {
    pub(crate) fn new(
        (looks, first, pool): (&Arc<NodeInspector>, &TrialNode, Option<&Arc<GeneratorPool>>),
        (nodes, slot): (&NodeRegistry, usize),
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Self, RunRefusal> {
        let (log, reading) = delivery.make_log()?;
        // Where the workload's own pods share their PID namespace, every trial is as shipped.
        let template = looks.template.as_ref();
        let shares = template.is_some_and(|template| template.shares_processes);
        let order = TrialOrder {
            as_shipped: order.as_shipped && !shares,
            ..order.clone()
        };
        Ok(Self {
            looks: Arc::clone(looks),
            first: first.clone(),
            pool: pool.cloned(),
            nodes: nodes.clone(),
            slot,
            gate: RequestGate::default(),
            order,
            log,
            reading: EventLogReader::new(reading),
        })
    }

    pub(crate) fn gate(&self) -> RequestGate {
        self.gate.clone()
    }

    /// Carries it out; sends events. The slot is free when the pod is gone.
    pub(crate) fn start_following(mut self, cluster: &ConnectedCluster) -> Receiver<TrialEvent> {
        let (tell, events) = channel();
        cluster.spawn(async move {
            let mut pod = None;
            let ending = match self.until_it_ends(&tell, &mut pod).await {
                Ok(ending) => ending,
                Err(halt) => halt.into_ending(),
            };
            learn_from_ending(&self.nodes, self.slot, &ending);
            if let (Some(pool), true) = (&self.pool, is_lost(&ending)) {
                // The lost pod may be one of the generators.
                pool.renew(self.slot).await;
            }
            // Nobody listens to a trial that was stopped.
            let _ = tell.send(TrialEvent::Ended(ending));
            if let Some((watched, _occupied)) = pod {
                watched.wait_until_gone().await;
            }
        });
        events
    }

    async fn until_it_ends(
        &mut self,
        tell: &Sender<TrialEvent>,
        pod: &mut Option<(WatchedPod, OccupiedNode)>,
    ) -> Result<TrialEnding, PodHalt> {
        if self.nodes.placement_for_slot(self.slot).node.is_none() {
            // A look needs room, too, and a pod as shipped leaves its slot without a node.
            self.until_free().await;
        }
        self.find_node(tell).await?;
        if let Some(pool) = &self.pool {
            let waits = |why: &str| {
                // Nobody listens to a trial that was stopped.
                let _ = tell.send(TrialEvent::Waits(why.to_owned()));
            };
            self.order.generators = Some(pool.ready_generators(self.slot, waits).await?);
        }
        let making = TrialCreation {
            looks: &self.looks,
            gate: &self.gate,
            order: &self.order,
            place: self.nodes.placement_for_slot(self.slot),
        };
        making.create_objects().await?;
        self.until_free().await;
        making.start_pod().await?;
        let job = manifest::trial_object_name(&self.order.trial);
        let access = self.looks.access.clone();
        let watched = WatchedPod::start_watch(access.pods(), &job);
        let waits = tell_waits(tell, &self.nodes);
        let begun = wait_until_begun(&watched, &access, &job, &self.gate, waits).await?;
        let (watched, _) = pod.insert((watched, self.nodes.occupy(self.slot)));
        let name = begun.name_any();
        match self.tail(watched, &name, tell).await? {
            TrialEnding::Measured(evidence) if self.order.as_shipped => Ok(measured_ending(
                self.stop_and_complete(watched, &name, *evidence).await,
            )),
            TrialEnding::Measured(evidence) => {
                Ok(self.complete_pod_evidence(watched, &name, *evidence).await)
            }
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

    /// Finds a node for the slot if it has none, and inspects it. A node that another slot took
    /// meanwhile is used only if there is no other.
    async fn find_node(&self, tell: &Sender<TrialEvent>) -> Result<(), PodHalt> {
        let (mut lost, mut of_another) = (0, None);
        loop {
            let place = self.nodes.placement_for_slot(self.slot);
            if place.node.is_some() {
                return Ok(());
            }
            let (room, gate) = (needed_room(&self.order), &self.gate);
            let looked = match &of_another {
                None => {
                    let waits = tell_waits(tell, &self.nodes);
                    self.looks.inspect_node(&place, room, gate, waits).await
                }
                Some(_) => {
                    let place = place.without_taken_nodes();
                    self.looks
                        .inspect_node(&place, room, gate, |_| RoomPatience::None)
                        .await
                }
            };
            let looked = match (looked, of_another.take()) {
                (Err(PodHalt::NoRoom(_)), Some(node)) => {
                    self.nodes.assign_node(self.slot, node);
                    continue;
                }
                (Err(PodHalt::Lost(_)), node) if lost < LOOKS && !gate.is_closed() => {
                    (lost, of_another) = (lost + 1, node);
                    continue;
                }
                (looked, _) => looked?,
            };
            let name = &looked.node.name;
            if let Some(why) = looked.unfit_reason(&self.first) {
                self.nodes.avoid(self.slot, name);
                // Nobody listens to a trial that was stopped.
                let _ = tell.send(TrialEvent::Waits(why));
            } else if self
                .nodes
                .placement_for_slot(self.slot)
                .taken
                .contains(name)
            {
                of_another = Some(looked.node);
            } else {
                self.nodes.assign_node(self.slot, looked.node);
            }
        }
    }

    /// Takes lines until the last event, over as many connections as it needs.
    async fn tail(
        &mut self,
        watched: &WatchedPod,
        name: &str,
        tell: &Sender<TrialEvent>,
    ) -> Result<TrialEnding, PodHalt> {
        let (mut written, mut silent) = (0, Instant::now());
        let params = LogParams {
            container: Some(OWN.to_owned()),
            follow: true,
            ..LogParams::default()
        };
        loop {
            // Before its log is read: what it wrote before is in it.
            let own_end = watched.latest_pod().as_deref().and_then(standing::own_end);
            match within_deadline(self.looks.access.pods().log_stream(name, &params)).await {
                Ok(stream) => {
                    let stream = std::pin::pin!(stream);
                    let lines = std::pin::pin!(bounded_lines(stream));
                    let all = (&mut written, &mut silent);
                    match (self.follow_lines(lines, watched, all, tell).await?, own_end) {
                        (LogConnectionEnd::Ending(ending), _) => return Ok(*ending),
                        (LogConnectionEnd::Whole, Some(how)) => return Err(ended_early(&how)),
                        (LogConnectionEnd::Whole | LogConnectionEnd::Cut, _) => {}
                    }
                }
                // A kubelet that has just been started does not know its pods yet.
                Err(error) if refused::is_gone(&error) => {
                    if watched.is_gone() || silent.elapsed() > DEAD {
                        return Err(PodHalt::pod_lost("its pod is gone"));
                    }
                }
                Err(_) => {}
            }
            if let Some(why) = watched
                .latest_pod()
                .as_deref()
                .and_then(standing::removal_reason)
            {
                return Err(PodHalt::Lost(why));
            }
            if silent.elapsed() > AWAY {
                return Err(PodHalt::pod_lost("the API server no longer returned it"));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn follow_lines(
        &mut self,
        mut lines: impl Stream<Item = std::io::Result<String>> + Unpin,
        watched: &WatchedPod,
        (written, silent): (&mut u64, &mut Instant),
        tell: &Sender<TrialEvent>,
    ) -> Result<LogConnectionEnd, PodHalt> {
        loop {
            let line = match timeout(LOOK, lines.next()).await {
                Ok(Some(Ok(line))) => line,
                Ok(Some(Err(_))) => return Ok(LogConnectionEnd::Cut),
                Ok(None) => return Ok(LogConnectionEnd::Whole),
                Err(_) if is_silent(watched, *silent) => return Ok(LogConnectionEnd::Cut),
                Err(_) => continue,
            };
            *silent = Instant::now();
            pod::append_line(&mut self.log, &line, written).map_err(PodHalt::Lost)?;
            if let Some(ending) = self.forward_pod_events(tell)? {
                return Ok(LogConnectionEnd::Ending(Box::new(ending)));
            }
        }
    }

    fn forward_pod_events(
        &mut self,
        tell: &Sender<TrialEvent>,
    ) -> Result<Option<TrialEnding>, PodHalt> {
        loop {
            let record = self.reading.next_entry();
            match record.map_err(|error| PodHalt::Lost(error.to_string()))? {
                Some(LogEntry::Event(TrialEvent::Ended(ending))) => return Ok(Some(ending)),
                Some(LogEntry::Event(event)) => {
                    // Nobody listens to a trial that was stopped.
                    let _ = tell.send(event);
                }
                Some(LogEntry::Piece(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Adds what only the kubelet knows, and what makes it INVALID after all.
    async fn complete_pod_evidence(
        &self,
        watched: &WatchedPod,
        name: &str,
        mut evidence: Evidence,
    ) -> TrialEnding {
        let begin = Instant::now();
        let has_ended = |pod: &Pod| {
            standing::application_end(pod).is_some() || standing::removal_reason(pod).is_some()
        };
        while begin.elapsed() < KUBELET && !watched.latest_pod().as_deref().is_some_and(has_ended) {
            sleep(LOOK).await;
        }
        if let Some(pod) = watched.latest_pod() {
            self.add_status(&pod, &mut evidence);
        }
        let is_clean = evidence.start.ready.is_some() && !evidence.exit.before_stop;
        if !is_clean {
            evidence.last_output = self.application_output(name).await;
        }
        self.settle_run(name, &mut evidence).await;
        measured_ending(evidence)
    }

    /// Judges the end of a run by its code and its whole output.
    async fn settle_run(&self, name: &str, evidence: &mut Evidence) {
        if evidence.failure.is_some() {
            return;
        }
        let begin = Instant::now();
        while let Some(mut output) = RunOutput::for_order(&self.order) {
            if self.read_output(name, &mut output).await.is_some() {
                return output.settle_end(evidence);
            }
            if begin.elapsed() > KUBELET {
                let lost = MeasurementFailure::new(InvalidReason::RuntimeLost, NO_OUTPUT);
                evidence.failure = Some(lost);
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// `None` if the kubelet does not return the whole output.
    async fn read_output(&self, name: &str, output: &mut RunOutput<'_>) -> Option<()> {
        let params = LogParams {
            container: Some(APPLICATION.to_owned()),
            ..LogParams::default()
        };
        let pods = self.looks.access.pods();
        let log = within_deadline(pods.log_stream(name, &params)).await;
        // Its last line may lack the end of a line.
        let log = std::pin::pin!(log.ok()?.chain(&b"\n"[..]));
        let mut lines = std::pin::pin!(bounded_lines(log));
        while let Some(line) = timeout(DEAD, lines.next()).await.ok()? {
            output.take_line(&line.ok()?);
        }
        Some(())
    }

    pub(crate) fn add_status(&self, pod: &Pod, evidence: &mut Evidence) {
        let known = standing::node_name(pod).and_then(|name| self.nodes.inspected_node(&name));
        add_pod_status(pod, &self.first, known.as_ref(), evidence);
    }

    pub(crate) async fn remove_pod_job(&self) {
        let job = manifest::trial_object_name(&self.order.trial);
        // A stopped trial, and an unreachable one, is removed by the stopping code or next.
        let _ = self
            .gate
            .pass_with_retries(&job, || remove_job(&self.looks.access, &job))
            .await;
    }

    pub(crate) async fn application_output(&self, name: &str) -> Vec<String> {
        let params = LogParams {
            container: Some(APPLICATION.to_owned()),
            tail_lines: Some(LINES),
            limit_bytes: Some(64 << 10),
            ..LogParams::default()
        };
        let text = within_deadline(self.looks.access.pods().logs(name, &params)).await;
        let mut text = text.unwrap_or_default();
        for secret in self
            .order
            .secrets
            .iter()
            .filter(|secret| !secret.is_empty())
        {
            text = text.replace(secret, "***");
        }
        text.lines().map(indented_line).collect()
    }
}

/// Whether nothing will come any more on a connection: the pod was taken away, or the connection died
/// without a word.
fn is_silent(watched: &WatchedPod, since: Instant) -> bool {
    let is_taken = |pod: &Pod| standing::removal_reason(pod).is_some();
    since.elapsed() > DEAD
        || (since.elapsed() > KUBELET && watched.latest_pod().as_deref().is_some_and(is_taken))
}

fn ended_early(how: &str) -> PodHalt {
    PodHalt::Lost(format!("loadline's own container ended midway ({how})"))
}

fn tell_waits(tell: &Sender<TrialEvent>, nodes: &NodeRegistry) -> impl FnMut(&str) -> RoomPatience {
    let mut told = String::new();
    move |why| {
        if told != why {
            why.clone_into(&mut told);
            // Nobody listens to a trial that was stopped.
            let _ = tell.send(TrialEvent::Waits(told.clone()));
        }
        if nodes.is_any_occupied() {
            RoomPatience::Given
        } else {
            RoomPatience::Some
        }
    }
}

fn needed_room(order: &TrialOrder) -> Option<InstanceSize> {
    let (cpu, memory) = (order.configuration.cpu?, order.configuration.memory?);
    Some(InstanceSize { cpu, memory })
}

pub(crate) fn add_pod_status(
    pod: &Pod,
    first: &TrialNode,
    looked: Option<&TrialNode>,
    evidence: &mut Evidence,
) {
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
        let unlike = node.differences_from(first);
        if !unlike.is_empty() {
            let detail = format!(
                "it ran on {}, which is unlike the result's first node {}: {}; --node-selector keeps trials on nodes that are alike",
                node.name,
                first.name,
                unlike.join("; ")
            );
            evidence.failure = Some(MeasurementFailure::new(InvalidReason::OtherNode, detail));
        }
    }
    if let Some(detail) = standing::removal_reason(pod) {
        evidence.failure = Some(MeasurementFailure::new(InvalidReason::RuntimeLost, detail));
    }
}

pub(crate) fn add_end(pod: &Pod, evidence: &mut Evidence) {
    let Some(end) = standing::application_end(pod) else {
        return;
    };
    (evidence.exit.code, evidence.exit.signal) = how_it_ended(Some(end.exit_code));
    if end.reason.as_deref() == Some("OOMKilled") {
        let seen = evidence.cgroup.oom_kills.unwrap_or_default();
        evidence.cgroup.oom_kills = Some(seen.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_analysis::record::EnforcedLimits;
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
            add_pod_status(&ended(state), &TrialNode::default(), None, &mut evidence);
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
        let node = |name: &str, cpus| TrialNode {
            name: name.to_owned(),
            runtime: "containerd".to_owned(),
            cpus,
            ..TrialNode::default()
        };
        let judged = |cpus, class: Option<&str>| {
            let mut evidence = Evidence {
                node: Some(node("b", cpus)),
                ..Evidence::default()
            };
            let looked = TrialNode {
                runtime_class: class.map(str::to_owned),
                ..node("b", 4)
            };
            let (pod, first) = (ended(json!({ "exitCode": 143 })), node("a", 4));
            add_pod_status(&pod, &first, Some(&looked), &mut evidence);
            evidence
        };
        let failure = |cpus, class| judged(cpus, class).failure.map(|failure| failure.cause);
        assert_eq!(failure(4, None), None);
        assert_eq!(failure(8, None), Some(InvalidReason::OtherNode));
        assert_eq!(failure(4, Some("gvisor")), Some(InvalidReason::OtherNode));
    }

    #[test]
    fn how_a_node_held_limits_stands_in_the_record_of_its_trials() {
        let looked = TrialNode {
            runtime: "containerd 1.6.20".to_owned(),
            os: Some("Debian GNU/Linux 12".to_owned()),
            enforced: Some(EnforcedLimits {
                throttled_periods: Some(1),
                memory_exit_code: 137,
            }),
            ..TrialNode::default()
        };
        let mut evidence = Evidence {
            node: Some(TrialNode::default()),
            ..Evidence::default()
        };
        let pod = ended(json!({ "exitCode": 143 }));
        add_pod_status(&pod, &looked, Some(&looked), &mut evidence);
        assert_eq!((evidence.node, evidence.failure), (Some(looked), None));
    }
}
