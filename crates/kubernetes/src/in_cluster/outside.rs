//! The laptop's side: sending a result to a cluster, looking at it, taking it over.
//!
//! Owns the order of taking over: first the controller is stopped and its pod gone, then the stored
//! pieces are read, and only when they are safe here the Job is removed, with all its objects. For
//! that the Job is suspended, not deleted: the pieces belong to it. An interrupted take-over can be
//! repeated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams, Patch, PatchParams, PostParams};
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::{Account, RunRefusal};
use loadline_runner::store::{ResultRow, is_store_id};
use serde_json::json;

use super::job;
use super::kept::{self, ASK};
use super::pieces::{self, ControllerEnd, ResultPiece};
use crate::cluster::{ConnectedCluster, remove_job, retry_request, within_deadline};
use crate::gate::RequestGate;
use crate::labels::{CONTROLLER, RESULT, controller_name};
use crate::refused;
use crate::refused::parse_json_value;
use crate::watched::{NO_NODE, PodHalt, RoomPatience, WatchedPod, wait_until_begun};

/// Time for a controller to end after a stop: its grace, and the kubelet's.
const ENDS: Duration = Duration::from_secs(90);

const LINES: i64 = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerState {
    Works,
    /// Its Job has ended: the stored end, or the reason that there is none.
    Ended(String),
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerNeeds {
    pub account: Account,
    pub variables: BTreeMap<String, String>,
    pub notify: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum SendOutcome {
    Works,
    Ended(ControllerEnd),
}

pub struct ClusterResult {
    cluster: ConnectedCluster,
    result: String,
}

impl ClusterResult {
    pub fn connect_for_result(wanted: &Wanted, result: &str) -> Result<Self, RunRefusal> {
        Ok(Self::for_cluster(
            ConnectedCluster::connect_to(wanted)?,
            result,
        ))
    }

    pub fn for_result(self, result: &str) -> Self {
        Self::for_cluster(self.cluster, result)
    }

    pub(crate) fn for_cluster(cluster: ConnectedCluster, result: &str) -> Self {
        Self {
            cluster,
            result: result.to_owned(),
        }
    }

    pub fn context_and_namespace(&self) -> (&str, &str) {
        (&self.cluster.context, &self.cluster.access.namespace)
    }

    pub fn job_name(&self) -> String {
        controller_name(&self.result)
    }

    /// Finds the one result in the namespace by a prefix of its id or its Job's name; `last` is the
    /// only one. Errors: [`RunRefusal`]: there is none, or several.
    pub fn find_by_prefix(self) -> Result<Self, RunRefusal> {
        let jobs = labelled_jobs(&self.cluster)?;
        let wanted = self.result.trim_start_matches("loadline-result-");
        let fits = |(_, id): &&(String, String)| wanted == "last" || id.starts_with(wanted);
        let found: Vec<&(String, String)> = jobs.iter().filter(fits).collect();
        if let [(job, only)] = found.as_slice() {
            kept::refuse_odd_id(only)?;
            if *job != controller_name(only) {
                let why =
                    format!("its label {RESULT} is {only}, and the Job of that has another name");
                return Err(kept::foreign_job(job, &why));
            }
            return Ok(self.for_result(only));
        }
        let shown = |(_, id): &(String, String)| id.escape_debug().to_string();
        let ids: Vec<String> = jobs.iter().map(shown).collect();
        let namespace = &self.cluster.access.namespace;
        let what = format!("the result {wanted} in the namespace {namespace}");
        Err(if ids.is_empty() {
            RunRefusal::new(
                what,
                "no loadline works there, and no result is stored",
                "is it the right --context and --namespace? `loadline list` shows the fetched part",
            )
        } else {
            RunRefusal::new(
                what,
                format!("{} fit it", found.len()),
                format!("there are: {}", ids.join(", ")),
            )
        })
    }

    /// Sends a result there: makes the Job with all it needs, and waits until it has inspected its
    /// first node, or has ended. `told` hears the waiting reasons. Errors: [`RunRefusal`] with the
    /// obstacle; no objects are left behind.
    pub fn send_result(
        &self,
        row: &ResultRow,
        with: &ControllerNeeds,
        told: &mut dyn FnMut(&str),
    ) -> Result<SendOutcome, RunRefusal> {
        let sent = self
            .make_controller(row, with)
            .and_then(|()| self.first_look(told));
        if !matches!(sent, Ok(SendOutcome::Works)) {
            // The first error is the one to report; a Job that stays is named by its label.
            let _ = self.remove_result_job();
        }
        sent
    }

    fn make_controller(&self, row: &ResultRow, with: &ControllerNeeds) -> Result<(), RunRefusal> {
        let variables = &with.variables;
        let access = &self.cluster.access;
        let first = pieces::split_piece(&ResultPiece::Begun(Box::new(row.clone())), 0)?;
        let wanted: Job = parse_json_value(job::controller_job(job::ControllerJobInput {
            result: &self.result,
            title: &row.title,
            first_piece: &pieces::piece_digest(&first),
            cluster: &self.cluster.wanted,
            namespace: &access.namespace,
            context: &self.cluster.context,
            account: with.account,
            has_secret: !variables.is_empty(),
            notify: with.notify.as_deref(),
        }))?;
        let params = PostParams::default();
        let jobs = access.jobs();
        let made = self.run(
            "making the Job",
            within_deadline(jobs.create(&params, &wanted)),
        )?;
        let uid = made.metadata.uid.unwrap_or_default();
        if !variables.is_empty() {
            let secret = parse_json_value(job::controller_secret(&self.result, variables, &uid))?;
            let made = access.secrets();
            self.run(
                "making the Secret",
                within_deadline(made.create(&params, &secret)),
            )?;
        }
        kept::begin_result(&self.cluster, (&self.result, &uid), &first)?;
        self.suspend(false)
    }

    fn suspend(&self, is_suspended: bool) -> Result<(), RunRefusal> {
        let patch = Patch::Merge(json!({ "spec": { "suspend": is_suspended } }));
        let (jobs, params) = (self.cluster.access.jobs(), PatchParams::default());
        let job = self.job_name();
        let what = if is_suspended {
            "ending the Job"
        } else {
            "starting the Job"
        };
        let patched = || jobs.patch(&job, &params, &patch);
        self.run(what, retry_request(patched)).map(drop)
    }

    fn first_look(&self, told: &mut dyn FnMut(&str)) -> Result<SendOutcome, RunRefusal> {
        let (access, job) = (&self.cluster.access, self.job_name());
        let watched = self
            .cluster
            .run(async { WatchedPod::start_watch(access.pods(), &job) });
        let gate = RequestGate::default();
        let mut last = String::new();
        let waits = |why: &str| {
            if last != why {
                told(why);
                why.clone_into(&mut last);
            }
            RoomPatience::Some
        };
        let begun = self
            .cluster
            .run(wait_until_begun(&watched, access, &job, &gate, waits));
        begun.map_err(not_begun)?;
        loop {
            let is_over = watched.is_gone();
            for piece in self.kept_pieces()? {
                match piece {
                    ResultPiece::Machine(_) => return Ok(SendOutcome::Works),
                    ResultPiece::Ended(ended) => return Ok(SendOutcome::Ended(ended)),
                    ResultPiece::Begun(_) | ResultPiece::Trial(_) => {}
                }
            }
            if is_over {
                let pod = watched.latest_pod().map(|pod| pod.name_any());
                return Err(self.without_a_word(&pod.unwrap_or_default()));
            }
            self.cluster.run(async { tokio::time::sleep(ASK).await });
        }
    }

    fn without_a_word(&self, pod: &str) -> RunRefusal {
        let params = LogParams {
            container: Some(CONTROLLER.to_owned()),
            tail_lines: Some(LINES),
            ..LogParams::default()
        };
        let pods = self.cluster.access.pods();
        let text = self.cluster.run(within_deadline(pods.logs(pod, &params)));
        let text = text.unwrap_or_else(|error| error.to_string());
        let hint = "its service account needs the Role: `loadline emit --rbac NAMESPACE | kubectl apply -f -`";
        RunRefusal::new("loadline in the cluster", text.trim(), hint)
    }

    /// All stored pieces that belong to its Job. Errors: [`RunRefusal`]: the cluster, a piece that
    /// is missing or damaged, or a piece of another result.
    pub fn kept_pieces(&self) -> Result<Vec<ResultPiece>, RunRefusal> {
        let job = kept::find_job(&self.cluster, &self.result)?;
        let job = job.ok_or_else(|| {
            RunRefusal::new(
                format!("the Job {}", self.job_name()),
                "it is gone, with everything it stored",
                "it was deleted, or taken over; `loadline list` has the local results",
            )
        })?;
        let chunks = kept::read(&self.cluster, (&self.result, &job.uid))?;
        pieces::pieces_of_result(&self.result, chunks, job.first_piece.as_deref())
    }

    pub fn controller_state(&self) -> Result<ControllerState, RunRefusal> {
        let Some(job) = self.read_job()? else {
            return Ok(ControllerState::Gone);
        };
        let conditions = job.status.and_then(|status| status.conditions);
        let ended = conditions.into_iter().flatten().find(|condition| {
            condition.status == "True" && ["Complete", "Failed"].contains(&condition.type_.as_str())
        });
        Ok(match ended {
            Some(condition) => {
                let words = [condition.reason, condition.message];
                let words: Vec<String> = words.into_iter().flatten().collect();
                ControllerState::Ended(words.join(": "))
            }
            None => ControllerState::Works,
        })
    }

    fn read_job(&self) -> Result<Option<Job>, RunRefusal> {
        kept::refuse_odd_id(&self.result)?;
        kept::named_job(&self.cluster, &self.job_name())
    }

    pub fn end_controller(&self) -> Result<(), RunRefusal> {
        self.suspend(true)?;
        let begin = Instant::now();
        while begin.elapsed() < ENDS {
            match self.read_job()? {
                Some(job) if is_working(&job) => {}
                _ => return Ok(()),
            }
            self.cluster.run(async { tokio::time::sleep(ASK).await });
        }
        let (context, namespace) = self.context_and_namespace();
        Err(RunRefusal::new(
            format!("ending the Job {}", self.job_name()),
            format!(
                "its pod did not stop within {} s: its node may be down",
                ENDS.as_secs()
            ),
            format!(
                "once that pod has certainly stopped: kubectl --context {context} -n {namespace} delete pods --force -l {RESULT}={}; then again",
                self.result
            ),
        ))
    }

    pub fn remove_result_job(&self) -> Result<(), RunRefusal> {
        let removed = self
            .cluster
            .run(remove_job(&self.cluster.access, &self.job_name()));
        removed.map_err(|error| refused::request_refusal("removing the Job", &error))
    }

    fn run<T>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RunRefusal> {
        let answer = self.cluster.run(request);
        let what = format!("{what} {}", self.job_name());
        answer.map_err(|error| refused::request_refusal(&what, &error))
    }
}

fn not_begun(halt: PodHalt) -> RunRefusal {
    match halt {
        PodHalt::NoRoom(refusal) if refusal.what == NO_NODE => {
            let hint = "it waited two minutes; loadline's own pod needs 200m CPU and 256Mi on any node of the cluster: use smaller trials, or a larger node";
            RunRefusal::new("finding a node for loadline", refusal.why, hint)
        }
        halt => halt.into_refusal("starting loadline in the cluster"),
    }
}

/// Whether a Job may still have a pod. Old clusters do not count terminating pods.
fn is_working(job: &Job) -> bool {
    let Some(status) = &job.status else {
        return true;
    };
    let is_suspended = |condition: &k8s_openapi::api::batch::v1::JobCondition| {
        condition.status == "True"
            && ["Suspended", "Complete", "Failed"].contains(&condition.type_.as_str())
    };
    let is_told = status.conditions.iter().flatten().any(is_suspended);
    let pods = status.active.unwrap_or_default() + status.terminating.unwrap_or_default();
    !is_told || pods > 0
}

pub(crate) fn list_results(cluster: &ConnectedCluster) -> Result<Vec<String>, RunRefusal> {
    let jobs = labelled_jobs(cluster)?.into_iter();
    let own = jobs.filter(|(job, id)| is_store_id(id) && *job == controller_name(id));
    Ok(own.map(|(_, id)| id).collect())
}

fn labelled_jobs(cluster: &ConnectedCluster) -> Result<Vec<(String, String)>, RunRefusal> {
    let params = ListParams::default().labels(RESULT);
    let listed = cluster.run(within_deadline(cluster.access.jobs().list(&params)));
    let listed = listed.map_err(|e| refused::request_refusal("listing Jobs of results", &e))?;
    let of = |job: &Job| {
        let id = job.metadata.labels.as_ref()?.get(RESULT)?.clone();
        Some((job.name_any(), id))
    };
    Ok(listed.items.iter().filter_map(of).collect())
}
