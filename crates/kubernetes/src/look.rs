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
use loadline_analysis::price::Size;
use loadline_analysis::record::{Enforced, Machine, Node};
use loadline_engine::experiment::Cluster as Wanted;
use loadline_host::oci::image::Image;
use loadline_host::pod::Seen;
use loadline_sizing::Bytes;
use loadline_trial::{Account, Engine, EngineKind, Refusal};

use crate::cluster::{Access, remove};
use crate::gate::Gate;
use crate::kubernetes::value;
use crate::manifest::{self, APPLICATION, FILLS, Maker};
use crate::nodes::Place;
use crate::watched::{Halt, LOOK, Patience, Watched, begun};
use crate::workload::Template;
use crate::{refused, standing, sweep};

/// A look takes two seconds once its images are there.
const TAKES: Duration = Duration::from_secs(120);

/// Exit code of what was ended by signal 9.
const KILLED: i32 = 137;

/// What all looks of a run have in common.
pub(crate) struct Looks {
    pub(crate) access: Access,
    pub(crate) wanted: Wanted,
    pub(crate) image: String,
    pub(crate) account: Account,
    pub(crate) maker: Maker,
    /// The workload that trials are made after.
    pub(crate) template: Option<Template>,
    /// What loadline's container gets that makes the load.
    pub(crate) memory: Bytes,
}

/// What a look gave.
pub(crate) struct Looked {
    pub(crate) machine: Machine,
    pub(crate) node: Node,
    /// A limit that the node did not enforce.
    pub(crate) unenforced: Option<String>,
    pub(crate) image: Image,
}

impl Looked {
    /// # Errors
    /// [`Refusal`] where the node does not enforce limits.
    pub(crate) fn enforced(self) -> Result<Self, Refusal> {
        match &self.unenforced {
            None => Ok(self),
            Some(what) => Err(Refusal::new(
                format!("the node {}", self.node.name),
                format!(
                    "{what}: its runtime ({}) does not enforce the limit",
                    self.node.runtime
                ),
                "choose nodes whose runtime does with --node-selector; gVisor does not",
            )),
        }
    }

    /// Why no trial may run there whose result has its first node so; `None` where one may.
    pub(crate) fn unfit(&self, first: &Node) -> Option<String> {
        let unlike = self.node.unlike(first);
        let why = match (unlike.is_empty(), &self.unenforced) {
            (true, None) => return None,
            (true, Some(what)) => what.clone(),
            (false, _) => format!("it is of another kind: {}", unlike.join("; ")),
        };
        Some(format!("the node {} is not used: {why}", self.node.name))
    }
}

impl Looks {
    /// Looks, and leaves nothing. `waits` as for [`begun`].
    ///
    /// # Errors
    /// [`Halt`]: whatever keeps its pod from running.
    pub(crate) async fn look(
        &self,
        place: &Place,
        room: Option<Size>,
        gate: &Gate,
        mut waits: impl FnMut(&str) -> Patience,
    ) -> Result<Looked, Halt> {
        match self.once(place, room, gate, &mut waits).await {
            // A look asks in one container for what a trial asks for in two, each of which may be allowed.
            Err(Halt::NoRoom(refusal)) if room.is_some() && is_one_too_large(&refusal) => {
                self.once(place, None, gate, &mut waits).await
            }
            looked => looked,
        }
    }

    async fn once(
        &self,
        place: &Place,
        room: Option<Size>,
        gate: &Gate,
        waits: impl FnMut(&str) -> Patience,
    ) -> Result<Looked, Halt> {
        let name = format!("loadline-look-{}", sweep::unique());
        let job = value(manifest::look(manifest::Look {
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
        let (job, params) = (job.map_err(Halt::Refused)?, PostParams::default());
        let jobs = self.access.jobs();
        let made = gate.often(&name, || async {
            match jobs.create(&params, &job).await {
                // An earlier try was carried out, and its answer lost.
                Err(error) if !refused::is_there(&error) => Err(error),
                _ => Ok(()),
            }
        });
        answered("making a Job in the cluster", made.await)?;
        let looked = self.run(&name, gate, waits).await;
        let removed = gate.often(&name, || remove(&self.access, &name)).await;
        // One that was stopped is removed by whoever stopped it.
        if removed.is_some() {
            gate.forget(&name).await;
        }
        let (pod, text) = looked?;
        answered("removing a Job of the cluster", removed)?;
        let seen = self.seen(&text).map_err(Halt::Refused)?;
        let name = standing::node(&pod).unwrap_or_default();
        let told = self.access.node(&name).await;
        Ok(self.understood(&pod, seen, told))
    }

    /// Waits for the end of the look; gives the pod and what it printed.
    async fn run(
        &self,
        name: &str,
        gate: &Gate,
        waits: impl FnMut(&str) -> Patience,
    ) -> Result<(Arc<Pod>, String), Halt> {
        let watched = Watched::start(self.access.pods(), name);
        begun(&watched, &self.access, name, gate, waits).await?;
        let begin = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(pod) = watched.pod() else { continue };
            let has_ended = |container| standing::ended_of(&pod, container).is_some();
            if has_ended(APPLICATION) && has_ended(FILLS) {
                let text = self.log(name, &pod, gate).await?;
                return Ok((pod, text));
            }
            match standing::of(&pod) {
                standing::Standing::Refused(refusal) => return Err(Halt::Refused(refusal)),
                standing::Standing::Lost(why) => return Err(gone(why)),
                _ if begin.elapsed() > TAKES => {
                    return Err(gone(format!("it did not end within {} s", TAKES.as_secs())));
                }
                _ => {}
            }
        }
    }

    async fn log(&self, job: &str, pod: &Pod, gate: &Gate) -> Result<String, Halt> {
        let params = LogParams {
            container: Some(APPLICATION.to_owned()),
            ..LogParams::default()
        };
        let (name, pods) = (pod.name_any(), self.access.pods());
        let text = gate.often(job, || pods.logs(&name, &params)).await;
        answered("reading the log of a pod", text)
    }

    fn seen(&self, text: &str) -> Result<Seen, Refusal> {
        serde_json::from_str(text.trim()).map_err(|error| {
            let last = text.lines().last().unwrap_or_default();
            Refusal::new(
                format!("looking into the image {}", self.image),
                format!("it said `{last}`: {error}"),
                "--trial-image must be an image of this version of loadline, and a static program",
            )
        })
    }

    fn understood(&self, pod: &Pod, seen: Seen, told: Option<NodeSystemInfo>) -> Looked {
        let exit = standing::ended_of(pod, FILLS).map(|end| end.exit_code);
        let name = standing::node(pod).unwrap_or_default();
        let runtime = told.as_ref().map(|told| &told.container_runtime_version);
        let runtime = runtime.filter(|text| !text.is_empty());
        let node = Node {
            runtime: match runtime {
                Some(text) => text.replace("://", " "),
                None => standing::runtime(pod).unwrap_or_default(),
            },
            runtime_class: manifest::runtime_class(&self.wanted, self.template.as_ref()),
            os: told
                .map(|told| told.os_image)
                .filter(|text| !text.is_empty()),
            enforced: exit.map(|memory_exit_code| Enforced {
                throttled_periods: seen.throttled_periods,
                memory_exit_code,
            }),
            ..Node::of(&seen.machine, &name)
        };
        Looked {
            node,
            unenforced: unenforced(&seen, exit),
            image: self.image(pod, &seen),
            machine: seen.machine,
        }
    }

    fn image(&self, pod: &Pod, seen: &Seen) -> Image {
        let id = standing::image_id(pod).unwrap_or_default();
        let pinned = id.contains("@sha256:").then(|| id.clone());
        Image {
            engine: Engine {
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
            jdk: seen.jdk.as_ref().and_then(|jdk| jdk.jdk()),
        }
    }
}

/// What a request gave; `None` is that of a trial that was stopped.
fn answered<T>(what: &str, answer: Option<Result<T, kube::Error>>) -> Result<T, Halt> {
    let answer = answer.ok_or_else(|| Halt::lost("it was stopped"))?;
    answer.map_err(|error| Halt::Refused(refused::request(what, &error)))
}

/// Whether a LimitRange allows no container of that size.
fn is_one_too_large(refusal: &Refusal) -> bool {
    refusal.why.contains("usage per Container")
}

fn gone(why: String) -> Halt {
    Halt::Lost(format!("looking at its node: {why}"))
}

/// A limit of the look's pod that held nothing.
fn unenforced(seen: &Seen, exit: Option<i32>) -> Option<String> {
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

    /// A pod of a look on a node, whose second container ended so.
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

    fn looked(pod: &Pod, is_limited: Value, told: Option<Value>) -> Looked {
        let seen = json!({
            "machine": Machine { cpus: 4, ..Machine::default() }, "env": {}, "jdk": null,
            "is_limited": is_limited, "throttled_periods": 1,
        });
        let seen = serde_json::from_value(seen).expect("it was seen");
        let told = told.map(|told| serde_json::from_value(told).expect("the API knows it"));
        testing::looks().understood(pod, seen, told)
    }

    #[test]
    fn a_node_that_enforces_no_limit_is_refused() {
        let said = |is_limited: Value, filled: i32| {
            let looked = looked(&pod("runsc", filled), is_limited, None);
            match looked.enforced() {
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
        let enforced = Enforced {
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
            looked.unfit(&first)
        };
        assert_eq!(unfit("containerd", json!(true)), None);
        insta::assert_snapshot!(unfit("cri-o", json!(true)).expect("it is another"), @"the node n1 is not used: it is of another kind: runtime cri-o, not containerd");
        insta::assert_snapshot!(unfit("containerd", json!(false)).expect("it holds nothing"), @"the node n1 is not used: a container that used more than its CPU limit was not throttled");
    }
}
