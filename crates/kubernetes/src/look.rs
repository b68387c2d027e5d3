//! The look at a node and at the application's image on it, before the first trial there.
//!
//! Owns what follows from it: of which kind the node is, whether it may be used at all, and the image
//! as the rest of loadline knows images. A look gets no node without room for the trial that it is for,
//! so the scheduler's answer to it is also the answer for that trial.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{NodeSystemInfo, Pod};
use kube::ResourceExt;
use kube::api::{LogParams, PostParams};
use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{EnforcedLimits, MachineDescription, TrialNode};
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::{Account, ContainerEngine, EngineKind, RunRefusal};
use loadline_sizing::Bytes;
use loadline_trial::oci::image::EngineImage;
use loadline_trial::pod::ImageReading;

use crate::cluster::{NamespaceAccess, remove_job};
use crate::gate::RequestGate;
use crate::labels::{APPLICATION, FILLS, MakerIdentity};
use crate::nodes::PodPlacement;
use crate::refused::parse_json_value;
use crate::watched::{LOOK, PodHalt, RoomPatience, WatchedPod, wait_until_begun};
use crate::workload::WorkloadTemplate;
use crate::{manifest, refused, standing, sweep};

/// A look takes two seconds once its images are there.
const TAKES: Duration = Duration::from_secs(120);

const KILLED: i32 = 137;

pub(crate) struct NodeInspector {
    pub(crate) access: NamespaceAccess,
    pub(crate) wanted: Wanted,
    pub(crate) image: String,
    pub(crate) account: Account,
    pub(crate) maker: MakerIdentity,
    pub(crate) template: Option<WorkloadTemplate>,
    pub(crate) memory: Bytes,
}

pub(crate) struct NodeInspection {
    pub(crate) machine: MachineDescription,
    pub(crate) node: TrialNode,
    pub(crate) unenforced: Option<String>,
    pub(crate) image: EngineImage,
}

impl NodeInspection {
    /// Errors: [`RunRefusal`] where the node does not enforce limits.
    pub(crate) fn refuse_unenforced(self) -> Result<Self, RunRefusal> {
        match &self.unenforced {
            None => Ok(self),
            Some(what) => Err(RunRefusal::new(
                format!("the node {}", self.node.name),
                format!(
                    "{what}: its runtime ({}) does not enforce the limit",
                    self.node.runtime
                ),
                "choose nodes with a runtime that does, with --node-selector; gVisor does not",
            )),
        }
    }

    /// Why no trial of a result with this first node may run there; `None` if it may.
    pub(crate) fn unfit_reason(&self, first: &TrialNode) -> Option<String> {
        let unlike = self.node.differences_from(first);
        let why = match (unlike.is_empty(), &self.unenforced) {
            (true, None) => return None,
            (true, Some(what)) => what.clone(),
            (false, _) => format!("it is of another kind: {}", unlike.join("; ")),
        };
        Some(format!("the node {} is not used: {why}", self.node.name))
    }
}

impl NodeInspector {
    pub(crate) async fn inspect_node(
        &self,
        place: &PodPlacement,
        room: Option<InstanceSize>,
        gate: &RequestGate,
        mut waits: impl FnMut(&str) -> RoomPatience,
    ) -> Result<NodeInspection, PodHalt> {
        match self.inspect_once(place, room, gate, &mut waits).await {
            // A look asks in one container for what a trial asks for in two, each of which may be allowed.
            Err(PodHalt::NoRoom(RunRefusal { why, .. }))
                if room.is_some() && why.contains("usage per Container") =>
            {
                self.inspect_once(place, None, gate, &mut waits).await
            }
            looked => looked,
        }
    }

    async fn inspect_once(
        &self,
        place: &PodPlacement,
        room: Option<InstanceSize>,
        gate: &RequestGate,
        waits: impl FnMut(&str) -> RoomPatience,
    ) -> Result<NodeInspection, PodHalt> {
        let name = format!("loadline-look-{}", sweep::unique_text());
        let job = parse_json_value(manifest::inspection_job(manifest::InspectionJobInput {
            name: &name,
            image: &self.image,
            account: self.account,
            cluster: &self.wanted,
            maker: &self.maker,
            place,
            template: self.template.as_ref(),
            memory: self.memory,
            room,
        }));
        let (job, params) = (job.map_err(PodHalt::Refused)?, PostParams::default());
        let jobs = self.access.jobs();
        let made = gate.pass_with_retries(&name, || async {
            match jobs.create(&params, &job).await {
                // An earlier try was carried out, and its answer lost.
                Err(error) if !refused::is_there(&error) => Err(error),
                _ => Ok(()),
            }
        });
        require_answer("making a Job in the cluster", made.await)?;
        let looked = self.run(&name, gate, waits).await;
        let removed = gate
            .pass_with_retries(&name, || remove_job(&self.access, &name))
            .await;
        // One that was stopped is removed by whoever stopped it.
        if removed.is_some() {
            gate.forget(&name).await;
        }
        let (pod, text) = looked?;
        require_answer("removing a Job of the cluster", removed)?;
        let seen = self.parse_reading(&text).map_err(PodHalt::Refused)?;
        let name = standing::node_name(&pod).unwrap_or_default();
        let told = self.access.node_info(&name).await;
        Ok(self.interpret_reading(&pod, seen, told))
    }

    async fn run(
        &self,
        name: &str,
        gate: &RequestGate,
        waits: impl FnMut(&str) -> RoomPatience,
    ) -> Result<(Arc<Pod>, String), PodHalt> {
        let watched = WatchedPod::start_watch(self.access.pods(), name);
        wait_until_begun(&watched, &self.access, name, gate, waits).await?;
        let begin = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(pod) = watched.latest_pod() else {
                continue;
            };
            let has_ended = |container| standing::ended_of(&pod, container).is_some();
            if has_ended(APPLICATION) && has_ended(FILLS) {
                let params = LogParams {
                    container: Some(APPLICATION.to_owned()),
                    ..LogParams::default()
                };
                let (of, pods) = (pod.name_any(), self.access.pods());
                let text = gate.pass_with_retries(name, || pods.logs(&of, &params));
                let text = require_answer("reading the log of a pod", text.await)?;
                return Ok((pod, text));
            }
            match standing::standing_of_pod(&pod) {
                standing::PodStanding::Refused(refusal) => return Err(PodHalt::Refused(refusal)),
                standing::PodStanding::Lost(why) => return Err(gone_halt(why)),
                _ if begin.elapsed() > TAKES => {
                    return Err(gone_halt(format!(
                        "it did not end within {} s",
                        TAKES.as_secs()
                    )));
                }
                _ => {}
            }
        }
    }

    fn parse_reading(&self, text: &str) -> Result<ImageReading, RunRefusal> {
        serde_json::from_str(text.trim()).map_err(|error| {
            let last = text.lines().last().unwrap_or_default();
            RunRefusal::new(
                format!("looking into the image {}", self.image),
                format!("it said `{last}`: {error}"),
                "--trial-image must be an image of this version of loadline, and a static program",
            )
        })
    }

    fn interpret_reading(
        &self,
        pod: &Pod,
        seen: ImageReading,
        told: Option<NodeSystemInfo>,
    ) -> NodeInspection {
        let exit = standing::ended_of(pod, FILLS).map(|end| end.exit_code);
        let name = standing::node_name(pod).unwrap_or_default();
        let runtime = told.as_ref().map(|told| &told.container_runtime_version);
        let runtime = runtime.filter(|text| !text.is_empty());
        let node = TrialNode {
            runtime: match runtime {
                Some(text) => text.replace("://", " "),
                None => standing::runtime(pod).unwrap_or_default(),
            },
            runtime_class: manifest::runtime_class(&self.wanted, self.template.as_ref()),
            os: told
                .map(|told| told.os_image)
                .filter(|text| !text.is_empty()),
            enforced: exit.map(|memory_exit_code| EnforcedLimits {
                throttled_periods: seen.throttled_periods,
                memory_exit_code,
            }),
            ..TrialNode::from_machine(&seen.machine, &name)
        };
        NodeInspection {
            node,
            unenforced: limit_not_enforced(&seen, exit),
            image: self.image_from_reading(pod, &seen),
            machine: seen.machine,
        }
    }

    fn image_from_reading(&self, pod: &Pod, seen: &ImageReading) -> EngineImage {
        let id = standing::image_id(pod).unwrap_or_default();
        let pinned = id.contains("@sha256:").then(|| id.clone());
        EngineImage {
            engine: ContainerEngine {
                kind: EngineKind::Kubernetes,
                program: "kubernetes".into(),
                env: Default::default(),
                apart: None,
            },
            reference: self.image.clone(),
            // A name may come to mean another image while a result is measured.
            id: pinned.clone().unwrap_or_else(|| self.image.clone()),
            pinned,
            entrypoint: Vec::new(),
            cmd: Vec::new(),
            directory: "/".into(),
            env: seen.env.clone(),
            ports: Default::default(),
            stop_signal: None,
            layers: Vec::new(),
            version: None,
            seen: None,
            revision: None,
            jdk: seen.jdk.as_ref().and_then(|jdk| jdk.to_jdk()),
        }
    }
}

/// The result of a request; `None` means that its trial was stopped.
pub(crate) fn require_answer<T>(
    what: &str,
    answer: Option<Result<T, kube::Error>>,
) -> Result<T, PodHalt> {
    let answer = answer.ok_or_else(|| PodHalt::pod_lost("it was stopped"))?;
    answer.map_err(|error| PodHalt::Refused(refused::request_refusal(what, &error)))
}

fn gone_halt(why: String) -> PodHalt {
    PodHalt::Lost(format!("looking at its node: {why}"))
}

fn limit_not_enforced(seen: &ImageReading, exit: Option<i32>) -> Option<String> {
    if seen.is_limited == Some(false) {
        let why = "a container that used more than its CPU limit was not throttled";
        return Some(why.to_owned());
    }
    exit.filter(|code| *code != KILLED).map(|code| {
        format!(
            "a container that took more than its memory limit was not killed (exit code {code})"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    use crate::testing;

    /// An inspection pod on a node, with this end of its second container.
    fn pod(runtime: &str, filled: i32) -> Pod {
        let ended = |name: &str, code: i32| {
            json!({ "name": name, "image": "i:1", "imageID": "", "ready": false, "restartCount": 0,
                "containerID": format!("{runtime}://1"), "state": { "terminated": { "exitCode": code } } })
        };
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": { "containers": [], "nodeName": "n1" },
            "status": { "containerStatuses": [ended(APPLICATION, 0), ended(FILLS, filled)] },
        });
        serde_json::from_value(pod).expect("it is a pod")
    }

    fn looked(pod: &Pod, is_limited: Value, told: Option<Value>) -> NodeInspection {
        let seen = json!({
            "machine": MachineDescription { cpus: 4, ..MachineDescription::default() }, "env": {}, "jdk": null,
            "is_limited": is_limited, "throttled_periods": 1,
        });
        let seen = serde_json::from_value(seen).expect("it was seen");
        let told = told.map(|told| serde_json::from_value(told).expect("the API knows it"));
        testing::test_inspector().interpret_reading(pod, seen, told)
    }

    #[test]
    fn a_node_that_enforces_no_limit_is_refused() {
        let said = |is_limited: Value, filled: i32| {
            let looked = looked(&pod("runsc", filled), is_limited, None);
            match looked.refuse_unenforced() {
                Ok(looked) => looked.node.name,
                Err(refusal) => refusal.to_string(),
            }
        };
        assert_eq!(said(json!(true), 137), "n1");
        // A node that was too busy to tell.
        assert_eq!(said(json!(null), 137), "n1");
        insta::assert_snapshot!(said(json!(false), 137), @"the node n1: a container that used more than its CPU limit was not throttled: its runtime (runsc) does not enforce the limit");
        insta::assert_snapshot!(said(json!(true), 0), @"the node n1: a container that took more than its memory limit was not killed (exit code 0): its runtime (runsc) does not enforce the limit");
        let never_ran = said(json!(true), 128);
        assert!(never_ran.contains("exit code 128"), "{never_ran}");
    }

    #[test]
    fn what_was_seen_and_what_the_api_server_tells_make_the_node() {
        let told = json!({
            "containerRuntimeVersion": "containerd://1.6.20", "osImage": "Debian GNU/Linux 12",
            "architecture": "amd64", "bootID": "", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": "", "machineID": "", "operatingSystem": "linux", "systemUUID": "",
        });
        let node = looked(&pod("containerd", 137), json!(true), Some(told)).node;
        assert_eq!(node.runtime, "containerd 1.6.20");
        assert_eq!(node.os.as_deref(), Some("Debian GNU/Linux 12"));
        let enforced = EnforcedLimits {
            throttled_periods: Some(1),
            memory_exit_code: 137,
        };
        assert_eq!((node.cpus, node.enforced), (4, Some(enforced)));
        let untold = looked(&pod("containerd", 137), json!(true), None).node;
        assert_eq!((untold.runtime.as_str(), untold.os), ("containerd", None));
    }

    #[test]
    fn a_later_node_is_used_if_it_is_of_the_first_one_s_kind_and_enforces_limits() {
        let first = looked(&pod("containerd", 137), json!(true), None).node;
        let unfit = |runtime: &str, is_limited: Value| {
            let looked = looked(&pod(runtime, 137), is_limited, None);
            looked.unfit_reason(&first)
        };
        assert_eq!(unfit("containerd", json!(true)), None);
        insta::assert_snapshot!(unfit("cri-o", json!(true)).expect("it is another"), @"the node n1 is not used: it is of another kind: runtime cri-o, not containerd");
        insta::assert_snapshot!(unfit("containerd", json!(false)).expect("it holds nothing"), @"the node n1 is not used: a container that used more than its CPU limit was not throttled");
    }
}
