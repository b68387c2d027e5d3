//! The look at the application's image before the first trial.
//!
//! Owns what follows from it: whether the cluster may be used at all, and the image as the rest of
//! loadline knows images.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{LogParams, PostParams};
use loadline_analysis::record::Machine;
use loadline_host::oci::image::Image;
use loadline_host::pod::Seen;
use loadline_trial::{Account, Engine, EngineKind, Refusal};

use crate::cluster::{Cluster, within};
use crate::kubernetes::value;
use crate::manifest::{self, APPLICATION, FILLS};
use crate::trial::{Halt, Watched, begun, remove};
use crate::workload::Template;
use crate::{refused, standing, sweep};

/// A look takes two seconds once its images are there.
const TAKES: Duration = Duration::from_secs(120);

/// Exit code of what was ended by signal 9.
const KILLED: i32 = 137;

/// What a look gave.
pub(crate) struct Looked {
    pub(crate) machine: Machine,
    pub(crate) node: String,
    pub(crate) runtime: String,
    pub(crate) image: Image,
}

/// Looks, and leaves nothing.
///
/// # Errors
/// [`Refusal`]: whatever keeps its pod from running, and a node that does not enforce limits.
pub(crate) fn look(
    cluster: &Cluster,
    image: &str,
    account: Account,
    template: Option<&Template>,
) -> Result<Looked, Refusal> {
    let maker = sweep::maker();
    let name = format!("loadline-look-{}", sweep::unique());
    let job = manifest::look(&name, image, account, &cluster.wanted, &maker, template);
    let job = value(job)?;
    let looked = cluster.run(async {
        let (jobs, params) = (cluster.jobs(), PostParams::default());
        let made = within(jobs.create(&params, &job)).await;
        made.map_err(|error| refused::request("making a Job in the cluster", &error))?;
        run(cluster, &name).await
    });
    let removed = cluster.run(remove(cluster, &name));
    let (pod, text) = looked?;
    removed.map_err(|error| refused::request("removing a Job of the cluster", &error))?;
    let seen: Seen = serde_json::from_str(text.trim()).map_err(|error| {
        let why = format!(
            "it said `{}`: {error}",
            text.lines().last().unwrap_or_default()
        );
        let hint =
            "--trial-image must be an image of this version of loadline, and a static program";
        Refusal::new(format!("looking into the image {image}"), why, hint)
    })?;
    understood(image, &pod, seen)
}

/// Waits for the end of the look; gives the pod and what it printed.
async fn run(cluster: &Cluster, name: &str) -> Result<(Pod, String), Refusal> {
    let watched = Watched::start(cluster.pods(), name);
    let begun = begun(&watched, &cluster.events(), name, |_| false).await;
    begun.map_err(|halt| match halt {
        Halt::Refused(refusal) => refusal,
        Halt::Lost(why) => gone(why),
    })?;
    let begin = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Some(pod) = watched.pod() else { continue };
        let has_ended = |container| standing::ended_of(&pod, container).is_some();
        if has_ended(APPLICATION) && has_ended(FILLS) {
            let params = LogParams {
                container: Some(APPLICATION.to_owned()),
                ..LogParams::default()
            };
            let pod_name = pod.metadata.name.clone().unwrap_or_default();
            let text = within(cluster.pods().logs(&pod_name, &params)).await;
            let text = text.map_err(|e| refused::request("reading the log of a pod", &e))?;
            return Ok((pod, text));
        }
        match standing::of(&pod) {
            standing::Standing::Refused(refusal) => return Err(refusal),
            standing::Standing::Lost(why) => return Err(gone(why)),
            _ if begin.elapsed() > TAKES => {
                return Err(gone(format!("it did not end within {} s", TAKES.as_secs())));
            }
            _ => {}
        }
    }
}

fn gone(why: String) -> Refusal {
    Refusal::new(
        "looking into the image in the cluster",
        why,
        "try again; `kubectl get events` says more",
    )
}

/// A limit of the look's pod that held nothing.
fn unenforced(pod: &Pod, seen: &Seen) -> Option<String> {
    if seen.is_limited == Some(false) {
        let why = "a container that used more than its CPU limit was not throttled";
        return Some(why.to_owned());
    }
    let end = standing::ended_of(pod, FILLS)?;
    (end.exit_code != KILLED).then(|| {
        format!(
            "a container that took more than its memory limit was not killed (exit code {})",
            end.exit_code
        )
    })
}

fn understood(reference: &str, pod: &Pod, seen: Seen) -> Result<Looked, Refusal> {
    let node = standing::node(pod).unwrap_or_default();
    let runtime = standing::runtime(pod).unwrap_or_default();
    if let Some(what) = unenforced(pod, &seen) {
        return Err(Refusal::new(
            format!("the node {node}"),
            format!("{what}: its runtime ({runtime}) does not enforce the limit"),
            "choose nodes whose runtime does with --node-selector; gVisor does not",
        ));
    }
    let id = standing::image_id(pod).unwrap_or_default();
    let pinned = id.contains("@sha256:").then(|| id.clone());
    let image = Image {
        engine: Engine {
            kind: EngineKind::Kubernetes,
            program: "kubernetes".into(),
            env: Default::default(),
        },
        reference: reference.to_owned(),
        // A name may come to mean another image while a result is measured.
        id: pinned.clone().unwrap_or_else(|| reference.to_owned()),
        pinned,
        entrypoint: Vec::new(),
        cmd: Vec::new(),
        directory: "/".into(),
        env: seen.env.clone(),
        ports: Default::default(),
        stop_signal: None,
        layers: Vec::new(),
        version: None,
        revision: None,
        jdk: seen.jdk.as_ref().and_then(|jdk| jdk.jdk()),
    };
    Ok(Looked {
        machine: seen.machine,
        node,
        runtime,
        image,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(is_limited: Value, filled: i32) -> String {
        let ended = |name: &str, code: i32| {
            json!({ "name": name, "image": "i:1", "imageID": "", "ready": false, "restartCount": 0,
                "containerID": "runsc://1", "state": { "terminated": { "exitCode": code } } })
        };
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": { "containers": [], "nodeName": "n1" },
            "status": { "containerStatuses": [ended(APPLICATION, 0), ended(FILLS, filled)] },
        });
        let seen = json!({ "machine": Machine::default(), "env": {}, "jdk": null, "is_limited": is_limited });
        let pod = serde_json::from_value(pod).expect("it is a pod");
        let seen = serde_json::from_value(seen).expect("it was seen");
        match understood("orders:1", &pod, seen) {
            Ok(looked) => looked.node,
            Err(refusal) => format!("{refusal}"),
        }
    }

    #[test]
    fn a_node_that_enforces_no_limit_is_refused() {
        assert_eq!(said(json!(true), 137), "n1");
        // A node that was too busy to tell.
        assert_eq!(said(json!(null), 137), "n1");
        insta::assert_snapshot!(said(json!(false), 137), @"the node n1: a container that used more than its CPU limit was not throttled: its runtime (runsc) does not enforce the limit");
        insta::assert_snapshot!(said(json!(true), 0), @"the node n1: a container that took more than its memory limit was not killed (exit code 0): its runtime (runsc) does not enforce the limit");
        let never_ran = said(json!(true), 128);
        assert!(never_ran.contains("exit code 128"), "{never_ran}");
    }
}
