//! What a cluster does with Jobs, of a test: a Job's controller, a scheduler and the kubelets of nodes
//! that exist on paper.
//!
//! Owns the state. Nothing takes time here but by steps: each step a pod goes on by one stage. What a
//! trial measures is crate `simulated`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use loadline_analysis::record::{
    CgroupEvidence, ExitEvidence, GeneratorEvidence, LoadFrom, MachineDescription, RunEvidence,
    TrialNode,
};
use loadline_load::remote::GeneratorMember;
use loadline_protocol::log::EventLog;
use loadline_protocol::{TrialEnding, TrialEvent, TrialOrder};
use loadline_simulated::{World, carry_out};
use loadline_trial::pod::ship;

use crate::labels::{APPLICATION, CONTROLLER, FILLS, GENERATOR, OWN, SLOT};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(super) struct SimulatedNode {
    pub(super) name: String,
    /// Free for pods, thousandths of a CPU and bytes.
    pub(super) cpu: u64,
    pub(super) memory: u64,
    pub(super) cpu_model: &'static str,
}

impl SimulatedNode {
    fn node_machine(&self) -> MachineDescription {
        MachineDescription {
            kernel: "Linux 6.1.0".to_owned(),
            cpu_model: self.cpu_model.to_owned(),
            cpus: 4,
            cgroup: "v2".to_owned(),
            ..MachineDescription::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodStage {
    Pending,
    Scheduled,
    Running,
    Ended,
    Over,
}

#[derive(Debug)]
pub(super) struct SimulatedPod {
    pub(super) object: Value,
    stage: PodStage,
    node: Option<usize>,
    /// What it asks for, thousandths of a CPU and bytes.
    asks: (u64, u64),
    /// Deleted, and gone after this many steps.
    going: Option<u32>,
    /// The application's output of a look, loadline's own of a trial.
    pub(super) log: String,
}

#[derive(Debug, Default)]
pub(super) struct ApiServerState {
    pub(super) hosts: Vec<SimulatedNode>,
    pub(super) jobs: BTreeMap<String, Value>,
    pub(super) orders: BTreeMap<String, TrialOrder>,
    pub(super) secrets: BTreeMap<String, Value>,
    pub(super) config_maps: BTreeMap<String, Value>,
    /// Lose the answer to this many creations of config maps.
    pub(super) loses_answers: u32,
    /// So many looks at config maps find the server away.
    pub(super) is_away: u32,
    pub(super) pods: BTreeMap<String, SimulatedPod>,
    pub(super) told: BTreeMap<String, Vec<String>>,
    pub(super) placed: Vec<(String, String)>,
    pub(super) unscheduled: BTreeSet<String>,
    /// Jobs with a pod that found no room while another pod of their slot still occupied a node.
    pub(super) behind_their_own: BTreeSet<String>,
    pub(super) evicted: BTreeSet<String>,
    /// One in this many trial pods is evicted; 0 means none.
    pub(super) evicts: u64,
    pub(super) kills_generators: u32,
    pub(super) lingers: u32,
    pub(super) requests: BTreeMap<String, u32>,
    pub(super) verbs: BTreeSet<(String, &'static str)>,
    pub(super) requests_of_nodes: u32,
    pub(super) random: u64,
    /// How the application of a pod in its shipped layout ends: before its pod is deleted, or on
    /// request.
    pub(super) shipped: ShippedEnd,
    pub(super) as_shipped: BTreeSet<String>,
    pub(super) run_end: RunEnd,
}

/// How the application of a trial without load ends by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunEnd {
    pub(super) code: i32,
    pub(super) is_oom: bool,
    pub(super) output: &'static str,
}

#[derive(Debug, Clone, Default)]
pub(super) enum ShippedEnd {
    #[default]
    Told,
    Killed,
    Oom,
}

impl ShippedEnd {
    fn when_measured(&self) -> Value {
        let running = json!({ "running": {} });
        let application = match self {
            Self::Oom => oom(),
            Self::Told | Self::Killed => running,
        };
        of_both(&application)
    }

    fn when_deleted(&self) -> Value {
        match self {
            Self::Told => of_both(&exited_state(143)),
            Self::Killed => of_both(&exited_state(137)),
            Self::Oom => of_both(&oom()),
        }
    }
}

impl ApiServerState {
    /// An inspection replaces the application, a trial runs next to it.
    pub(super) fn is_look(job: &str) -> bool {
        job.starts_with("loadline-look-")
    }

    pub(super) fn is_generator(job: &str) -> bool {
        job.starts_with("loadline-generator-")
    }

    /// loadline's own Job, with a pod that runs until it is stopped.
    fn is_controller(job: &str) -> bool {
        job.starts_with("loadline-result-")
    }

    pub(super) fn jobs_with_status(&self) -> Vec<Value> {
        let shown = self.jobs.iter().map(|(name, job)| {
            let mut job = job.clone();
            let pod = self.pods.get(name);
            let is_going = pod.is_some_and(|pod| pod.going.is_some());
            let is_suspended = job["spec"]["suspend"] == json!(true);
            let suspended = if is_suspended { "True" } else { "False" };
            job["status"] = json!({
                "active": u8::from(pod.is_some() && !is_going),
                "terminating": u8::from(is_going),
                "conditions": [{ "type": "Suspended", "status": suspended }],
            });
            job
        });
        shown.collect()
    }

    pub(super) fn advance_step(&mut self) {
        let suspended = self.jobs.iter().filter(|(name, job)| {
            Self::is_controller(name) && job["spec"]["suspend"] == json!(true)
        });
        let suspended: Vec<String> = suspended.map(|(name, _)| name.clone()).collect();
        for name in suspended {
            self.end_pod(&name);
        }

        let is_let_go = |job: &Value| job["spec"]["suspend"] != json!(true);
        let jobs = self
            .jobs
            .iter()
            .filter(|(name, job)| is_let_go(job) && !self.told.contains_key(*name));
        let new: Vec<(String, Value)> = jobs.map(|(n, j)| (n.clone(), j.clone())).collect();
        for (name, job) in new {
            self.make_pod(&name, &job);
        }
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            self.advance(&name);
        }
    }

    pub(super) fn delete(&mut self, job: &str) -> bool {
        self.orders.remove(job);
        self.end_pod(job);
        let is_there = self.jobs.remove(job).is_some();
        // What belongs to it goes with it.
        let is_its = |of: &Value| of["metadata"]["ownerReferences"][0]["name"] == job;
        self.config_maps.retain(|_, of| !is_its(of));
        self.secrets.retain(|_, of| !is_its(of));
        let its = self.jobs.iter().filter(|(_, of)| is_its(of));
        let its: Vec<String> = its.map(|(name, _)| name.clone()).collect();
        for job in its {
            self.delete(&job);
        }
        is_there
    }

    fn end_pod(&mut self, job: &str) {
        let pod = self.pods.get_mut(job).filter(|pod| pod.going.is_none());
        if let Some(pod) = pod {
            pod.going = Some(self.lingers);
            pod.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            if self.as_shipped.contains(job) && pod.stage == PodStage::Ended {
                pod.object["status"] = self.shipped.when_deleted();
            }
            self.tell_watchers(job, "MODIFIED");
        }
    }

    fn make_pod(&mut self, job: &str, manifest: &Value) {
        let mut object = manifest["spec"]["template"].clone();
        object["metadata"]["name"] = json!(format!("{job}-x"));
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("Pod");
        object["status"] = json!({ "phase": "Pending" });
        if object["spec"]["shareProcessNamespace"] == json!(false) {
            self.as_shipped.insert(job.to_owned());
        }
        let pod = SimulatedPod {
            asks: requested_resources(&object),
            object,
            stage: PodStage::Pending,
            node: None,
            going: None,
            log: String::new(),
        };
        self.pods.insert(job.to_owned(), pod);
        self.tell_watchers(job, "ADDED");
    }

    fn tell_watchers(&mut self, job: &str, what: &str) {
        let Some(pod) = self.pods.get(job) else {
            return;
        };
        let event = json!({ "type": what, "object": pod.object }).to_string();
        self.told.entry(job.to_owned()).or_default().push(event);
    }

    fn advance(&mut self, job: &str) {
        let Some(pod) = self.pods.get_mut(job) else {
            return;
        };
        if let Some(left) = pod.going {
            pod.going = Some(left.saturating_sub(1));
            if left == 0 {
                self.tell_watchers(job, "DELETED");
                self.pods.remove(job);
            }
            return;
        }
        match (pod.stage, Self::is_look(job)) {
            (PodStage::Pending, _) => self.schedule(job),
            (PodStage::Scheduled, _) => self.begin_pod(job),
            (PodStage::Running, _) if Self::is_generator(job) => {
                if self.kills_generators > 0 && !self.orders.is_empty() {
                    self.kills_generators -= 1;
                    self.set_stage(job, PodStage::Over, &evicted_status());
                }
            }
            (PodStage::Running, _) if Self::is_controller(job) => {}
            (PodStage::Running, true) => self.set_stage(job, PodStage::Over, &inspected_status()),
            (PodStage::Running, false) if self.is_evicted(job) => {
                self.evicted.insert(job.to_owned());
                self.set_stage(job, PodStage::Over, &evicted_status());
            }
            (PodStage::Running, false) if self.as_shipped.contains(job) => {
                let status = self.shipped.when_measured();
                self.set_stage(job, PodStage::Ended, &status);
            }
            (PodStage::Running, false) => {
                let is_run = self
                    .orders
                    .get(job)
                    .is_some_and(|order| order.run.is_some());
                let application = match self.run_end {
                    _ if !is_run => exited_state(143),
                    RunEnd { is_oom: true, .. } => oom(),
                    RunEnd { code, .. } => exited_state(code),
                };
                self.set_stage(job, PodStage::Ended, &ended_status(&application));
            }
            (PodStage::Ended | PodStage::Over, _) => {}
        }
    }

    fn set_stage(&mut self, job: &str, stage: PodStage, status: &Value) {
        if let Some(pod) = self.pods.get_mut(job) {
            pod.stage = stage;
            pod.object["status"] = status.clone();
        }
        self.tell_watchers(job, "MODIFIED");
    }

    /// One of [`ApiServerState::evicts`], by the numbers of Knuth's generator.
    fn is_evicted(&mut self, job: &str) -> bool {
        if self.evicts == 0 || Self::is_look(job) {
            return false;
        }
        let next = self.random.wrapping_mul(6_364_136_223_846_793_005);
        self.random = next.wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33).is_multiple_of(self.evicts)
    }

    fn begin_pod(&mut self, job: &str) {
        let Some(host) = self.pods.get(job).and_then(|pod| pod.node) else {
            return;
        };
        let log = match self.orders.get(job) {
            Some(order) => trial_output(order, &self.hosts[host]),
            None => inspection_output(&self.hosts[host]),
        };
        if let Some(pod) = self.pods.get_mut(job) {
            pod.log = log;
        }
        let own = match (Self::is_controller(job), Self::is_generator(job)) {
            (true, _) => CONTROLLER,
            (_, true) => GENERATOR,
            _ => OWN,
        };
        let mut status = running_status(own);
        if own == GENERATOR {
            status["podIP"] = json!(format!("10.0.{host}.2"));
        }
        self.set_stage(job, PodStage::Running, &status);
    }

    /// The first possible node, a preferred one if there is any; the scheduler's rules.
    fn schedule(&mut self, job: &str) {
        let pod = &self.pods[job];
        let mut on: BTreeMap<usize, Vec<&SimulatedPod>> = BTreeMap::new();
        for other in self
            .pods
            .values()
            .filter(|other| other.stage != PodStage::Over)
        {
            if let Some(index) = other.node {
                on.entry(index).or_default().push(other);
            }
        }
        let others = |index: &usize| on.get(index).map_or(&[][..], Vec::as_slice);
        let may = |index: &usize| may_run_on(pod, &self.hosts[*index], others(index));
        let all: Vec<usize> = (0..self.hosts.len()).filter(may).collect();
        let prefers =
            |index: &&usize| keeps_affinity(&pod.object, "preferred", &self.hosts[**index].name);
        let Some(index) = all.iter().find(prefers).or(all.first()).copied() else {
            let slot = |pod: &SimulatedPod| pod.object["metadata"]["labels"][SLOT].clone();
            let mut others = on.values().flatten();
            if others.any(|other| slot(other) == slot(pod)) {
                self.behind_their_own.insert(job.to_owned());
            }
            if self.unscheduled.insert(job.to_owned()) {
                self.set_stage(job, PodStage::Pending, &unschedulable());
            }
            return;
        };
        let name = self.hosts[index].name.clone();
        self.placed.push((job.to_owned(), name.clone()));
        if let Some(pod) = self.pods.get_mut(job) {
            pod.node = Some(index);
            pod.object["spec"]["nodeName"] = json!(name);
        }
        self.set_stage(job, PodStage::Scheduled, &json!({ "phase": "Pending" }));
    }
}

/// Whether a pod may run next to the others on a node, checking anti-affinity in both directions.
fn may_run_on(pod: &SimulatedPod, host: &SimulatedNode, others: &[&SimulatedPod]) -> bool {
    let is_apart = |other: &&SimulatedPod| {
        !has_anti_affinity(&pod.object, &other.object)
            && !has_anti_affinity(&other.object, &pod.object)
    };
    let used = others.iter().map(|other| other.asks);
    let (cpu, memory) = used.fold(pod.asks, |(a, b), (c, d)| (a + c, b + d));
    cpu <= host.cpu
        && memory <= host.memory
        && others.iter().all(is_apart)
        && keeps_affinity(&pod.object, "required", &host.name)
}

fn has_anti_affinity(pod: &Value, other: &Value) -> bool {
    let apart = &pod["spec"]["affinity"]["podAntiAffinity"];
    let terms = &apart["requiredDuringSchedulingIgnoredDuringExecution"];
    let mut terms = terms.as_array().into_iter().flatten();
    terms.any(|term| {
        let all = &term["labelSelector"]["matchExpressions"];
        let mut all = all.as_array().into_iter().flatten();
        all.all(|expression| {
            let name = expression["key"].as_str().unwrap_or_default();
            let label = &other["metadata"]["labels"][name];
            let values = expression["values"].as_array().into_iter().flatten();
            let is_one = values.clone().any(|value| value == label);
            match expression["operator"].as_str() {
                Some("Exists") => label.is_string(),
                Some("In") => is_one,
                Some("NotIn") => !is_one,
                other => panic!("no scheduler of this test knows {other:?}"),
            }
        })
    })
}

fn keeps_affinity(pod: &Value, kind: &str, node: &str) -> bool {
    let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
    let term = match kind {
        "required" => {
            &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
        }
        _ => &affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"],
    };
    let mut fields = term["matchFields"].as_array().into_iter().flatten();
    fields.all(|field| (field["operator"] == "In") == (field["values"][0] == node))
}

/// What a pod asks for: its containers that stay together, or the largest that comes before them.
fn requested_resources(pod: &Value) -> (u64, u64) {
    let list = |name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    let of = |container: &Value| {
        let requests = &container["resources"]["requests"];
        (millis(&requests["cpu"]), memory_bytes(&requests["memory"]))
    };
    let (stay, end): (Vec<Value>, Vec<Value>) = list("initContainers")
        .into_iter()
        .partition(|container| container["restartPolicy"] == "Always");
    let together = stay
        .iter()
        .chain(&list("containers"))
        .map(of)
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    let before = end.iter().map(of);
    before.fold(together, |(a, b), (c, d)| (a.max(c), b.max(d)))
}

fn millis(text: &Value) -> u64 {
    let text = text.as_str().unwrap_or_default();
    let cpus: loadline_sizing::Cpus = text.parse().expect("a quantity");
    u64::from(cpus.as_millis())
}

fn memory_bytes(text: &Value) -> u64 {
    let text = text.as_str().unwrap_or_default();
    let bytes: loadline_sizing::Bytes = text.parse().expect("a quantity");
    bytes.as_bytes()
}

fn container_status(name: &str, state: &Value) -> Value {
    json!({ "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "containerID": "containerd://1", "state": state })
}

fn unschedulable() -> Value {
    json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu." }] })
}

fn running_status(own: &str) -> Value {
    let state = json!({ "running": {} });
    json!({ "phase": "Running", "containerStatuses": [container_status(own, &state)] })
}

fn exited_state(code: i32) -> Value {
    json!({ "terminated": { "exitCode": code } })
}

fn ended_status(application: &Value) -> Value {
    json!({ "phase": "Running", "containerStatuses": [
        container_status(OWN, &json!({ "running": {} })), container_status(APPLICATION, application)] })
}

fn of_both(application: &Value) -> Value {
    json!({ "phase": "Running", "containerStatuses": [
        container_status(OWN, &exited_state(0)), container_status(APPLICATION, application)] })
}

fn oom() -> Value {
    json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } })
}

fn inspected_status() -> Value {
    json!({ "phase": "Failed", "initContainerStatuses": [container_status(OWN, &exited_state(0))],
        "containerStatuses": [container_status(APPLICATION, &exited_state(0)), container_status(FILLS, &exited_state(137))] })
}

fn evicted_status() -> Value {
    json!({ "phase": "Failed", "conditions": [{ "type": "DisruptionTarget", "status": "True",
        "reason": "EvictionByEvictionAPI", "message": "drained" }] })
}

fn inspection_output(host: &SimulatedNode) -> String {
    json!({ "machine": host.node_machine(), "env": {}, "jdk": null, "is_limited": true,
        "throttled_periods": 1 })
    .to_string()
        + "\n"
}

fn trial_output(order: &TrialOrder, host: &SimulatedNode) -> String {
    let file = tempfile::tempfile().expect("a file");
    let reading = file.try_clone().expect("it is open");
    let log = EventLog::begin_log(file).expect("a log");
    for (_, event) in carry_out(&World::default(), 7, order, 1_000_000_000) {
        let event = match event {
            TrialEvent::Ended(TrialEnding::Measured(mut evidence)) => {
                evidence.node = Some(TrialNode::from_machine(&host.node_machine(), &host.name));
                if let Some(generators) = &order.generators {
                    let members = &generators.members;
                    let from = LoadFrom::Generators {
                        generators: members.iter().map(generator_evidence).collect(),
                    };
                    for load in &mut evidence.load {
                        load.load_from = Some(from.clone());
                    }
                }
                if let Some(run) = &order.run {
                    // As trial-part leaves it: any end counts, and the code is the kubelet's.
                    evidence.exit = ExitEvidence {
                        before_stop: true,
                        ..ExitEvidence::default()
                    };
                    evidence.run = Some(RunEvidence {
                        expected_exit: run.exit,
                        ..RunEvidence::default()
                    });
                }
                if order.as_shipped {
                    // As trial-part leaves it.
                    (evidence.as_shipped, evidence.exit) = (true, ExitEvidence::default());
                    (evidence.cgroup, evidence.pauses) = (CgroupEvidence::default(), None);
                }
                TrialEvent::Ended(TrialEnding::Measured(evidence))
            }
            other => other,
        };
        log.append_event(&event).expect("it is written");
    }
    let mut lines = Vec::new();
    ship(&reading, &mut lines, || false, &true.into()).expect("it is shipped");
    lines.flush().expect("it is memory");
    String::from_utf8(lines).expect("it is text")
}

fn generator_evidence(member: &GeneratorMember) -> GeneratorEvidence {
    GeneratorEvidence {
        name: member.name.clone(),
        node: member.node.clone(),
        scheduled: 1,
        offset_ns: 0,
        offset_error: Duration::ZERO,
        drift_ns: 0,
        send_lag_p99: Duration::ZERO,
        cpu: Duration::ZERO,
        saturated: None,
    }
}
