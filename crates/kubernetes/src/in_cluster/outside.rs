//! The laptop's end: a result sent to a cluster, looked at, taken over.
//!
//! Owns the order of taking over: first the controller is ended and its pod gone, then what was kept is
//! read, and only when that is safe here the Job goes, and with it all of it. The Job is suspended for
//! that and not deleted: what was kept belongs to it. A taking over that is cut anywhere is begun again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{ListParams, LogParams, Patch, PatchParams, PostParams};
use loadline_engine::experiment::Cluster as Wanted;
use loadline_engine::store::ResultRow;
use loadline_trial::{Account, Refusal};
use serde_json::json;

use super::job::{self, RESULT, name};
use super::kept::{self, ASK};
use super::pieces::{self, Ended, Piece};
use crate::cluster::{Cluster, often, remove, within};
use crate::gate::Gate;
use crate::kubernetes::value;
use crate::manifest::CONTROLLER;
use crate::refused;
use crate::watched::{Halt, NO_NODE, Patience, Watched, begun};

/// So long a controller may take to end when it is told to: its grace, and the kubelet's.
const ENDS: Duration = Duration::from_secs(90);

/// Lines of a controller that ended without a word.
const LINES: i64 = 20;

/// Where a controller stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// It works, or will.
    Works,
    /// Its Job has ended: it said how, or this is why it did not.
    Ended(String),
    /// There is no Job.
    Gone,
}

/// What a controller needs besides the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct With {
    /// Whom it runs as.
    pub account: Account,
    /// The variables that the experiment refers to.
    pub variables: BTreeMap<String, String>,
    /// What `--notify` of its command is: a reference to one of them.
    pub notify: Option<String>,
}

/// What became of a controller that was sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// It has looked at its first node.
    Works,
    /// It ended before: nothing is left of it.
    Ended(Ended),
}

/// A result in a cluster, seen from outside.
pub struct Outside {
    cluster: Cluster,
    result: String,
}

impl Outside {
    /// Finds the cluster.
    ///
    /// # Errors
    /// [`Refusal`]: no kubeconfig, no such context, nobody answers.
    pub fn connect(wanted: &Wanted, result: &str) -> Result<Self, Refusal> {
        Ok(Self::of(Cluster::connect(wanted)?, result))
    }

    /// The same cluster for another result.
    pub fn for_result(self, result: &str) -> Self {
        Self::of(self.cluster, result)
    }

    pub(crate) fn of(cluster: Cluster, result: &str) -> Self {
        Self {
            cluster,
            result: result.to_owned(),
        }
    }

    /// The context and namespace that are meant.
    pub fn place(&self) -> (&str, &str) {
        (&self.cluster.context, &self.cluster.access.namespace)
    }

    /// The name of the Job.
    pub fn job(&self) -> String {
        name(&self.result)
    }

    /// Finds the one result in the namespace whose id, or name of its Job, begins so; `last` is the
    /// only one.
    ///
    /// # Errors
    /// [`Refusal`]: there is none, or several.
    pub fn find(self) -> Result<Self, Refusal> {
        let ids = results(&self.cluster)?;
        let wanted = self.result.trim_start_matches("loadline-result-");
        let fits = |id: &&String| wanted == "last" || id.starts_with(wanted);
        let found: Vec<&String> = ids.iter().filter(fits).collect();
        if let [only] = found.as_slice() {
            return Ok(self.for_result(only));
        }
        let namespace = &self.cluster.access.namespace;
        let what = format!("the result {wanted} in the namespace {namespace}");
        Err(match ids.is_empty() {
            true => Refusal::new(
                what,
                "no loadline works there, and none left a result",
                "is it the right --context and --namespace? What was fetched is in `loadline list`",
            ),
            false => Refusal::new(
                what,
                format!("{} fit it", found.len()),
                format!("there are: {}", ids.join(", ")),
            ),
        })
    }

    /// The result's id.
    pub fn result(&self) -> &str {
        &self.result
    }

    /// Sends a result there: makes the Job with all it needs, and waits until it has looked at its first
    /// node, or has ended. `told` hears what it waits for.
    ///
    /// # Errors
    /// [`Refusal`] with whatever stands in the way; nothing is left of it then.
    pub fn send(
        &self,
        row: &ResultRow,
        with: &With,
        told: &mut dyn FnMut(&str),
    ) -> Result<Sent, Refusal> {
        let sent = self.make(row, with).and_then(|()| self.first_look(told));
        if !matches!(sent, Ok(Sent::Works)) {
            // The first error is the one to report; a Job that stays is named by its label.
            let _ = self.remove();
        }
        sent
    }

    fn make(&self, row: &ResultRow, with: &With) -> Result<(), Refusal> {
        let variables = &with.variables;
        let access = &self.cluster.access;
        let wanted: Job = value(job::job(job::Parts {
            result: &self.result,
            title: &row.title,
            cluster: &self.cluster.wanted,
            namespace: &access.namespace,
            context: &self.cluster.context,
            account: with.account,
            has_secret: !variables.is_empty(),
            notify: with.notify.as_deref(),
        }))?;
        let params = PostParams::default();
        let jobs = access.jobs();
        let made = self.run("making the Job", within(jobs.create(&params, &wanted)))?;
        let uid = made.metadata.uid.unwrap_or_default();
        if !variables.is_empty() {
            let secret = value(job::secret(&self.result, variables, &uid))?;
            let made = access.secrets();
            self.run("making the Secret", within(made.create(&params, &secret)))?;
        }
        kept::begin(
            &self.cluster,
            (&self.result, &uid),
            &Piece::Begun(Box::new(row.clone())),
        )?;
        self.suspend(false)
    }

    fn suspend(&self, is_suspended: bool) -> Result<(), Refusal> {
        let patch = Patch::Merge(json!({ "spec": { "suspend": is_suspended } }));
        let (jobs, params) = (self.cluster.access.jobs(), PatchParams::default());
        let job = self.job();
        let what = match is_suspended {
            true => "ending the Job",
            false => "starting the Job",
        };
        let patched = || jobs.patch(&job, &params, &patch);
        self.run(what, often(patched)).map(drop)
    }

    /// Waits for a pod, then for its first word.
    fn first_look(&self, told: &mut dyn FnMut(&str)) -> Result<Sent, Refusal> {
        let (access, job) = (&self.cluster.access, self.job());
        let watched = self
            .cluster
            .run(async { Watched::start(access.pods(), &job) });
        let gate = Gate::default();
        let mut last = String::new();
        let waits = |why: &str| {
            if last != why {
                told(why);
                why.clone_into(&mut last);
            }
            Patience::Some
        };
        let begun = self
            .cluster
            .run(begun(&watched, access, &job, &gate, waits));
        begun.map_err(not_begun)?;
        loop {
            let is_over = watched.is_gone();
            for piece in self.pieces()? {
                match piece {
                    Piece::Machine(_) => return Ok(Sent::Works),
                    Piece::Ended(ended) => return Ok(Sent::Ended(ended)),
                    Piece::Begun(_) | Piece::Trial(_) => {}
                }
            }
            if is_over {
                let pod = watched.pod().map(|pod| pod.name_any());
                return Err(self.without_a_word(&pod.unwrap_or_default()));
            }
            self.cluster.run(async { tokio::time::sleep(ASK).await });
        }
    }

    /// What a pod said that ended and kept nothing.
    fn without_a_word(&self, pod: &str) -> Refusal {
        let params = LogParams {
            container: Some(CONTROLLER.to_owned()),
            tail_lines: Some(LINES),
            ..LogParams::default()
        };
        let pods = self.cluster.access.pods();
        let text = self.cluster.run(within(pods.logs(pod, &params)));
        let text = text.unwrap_or_else(|error| error.to_string());
        let hint = "its service account needs the Role: `loadline emit --rbac NAMESPACE | kubectl apply -f -`";
        Refusal::new("loadline in the cluster", text.trim(), hint)
    }

    /// Everything that is kept of it.
    ///
    /// # Errors
    /// [`Refusal`]: the cluster, or a piece that is missing or damaged.
    pub fn pieces(&self) -> Result<Vec<Piece>, Refusal> {
        pieces::pieces(kept::read(&self.cluster, &self.result)?)
    }

    /// Where its controller stands.
    ///
    /// # Errors
    /// [`Refusal`]: the cluster.
    pub fn stands(&self) -> Result<Stands, Refusal> {
        let Some(job) = self.look()? else {
            return Ok(Stands::Gone);
        };
        let conditions = job.status.and_then(|status| status.conditions);
        let ended = conditions.into_iter().flatten().find(|condition| {
            condition.status == "True" && ["Complete", "Failed"].contains(&condition.type_.as_str())
        });
        Ok(match ended {
            Some(condition) => {
                let words = [condition.reason, condition.message];
                let words: Vec<String> = words.into_iter().flatten().collect();
                Stands::Ended(words.join(": "))
            }
            None => Stands::Works,
        })
    }

    fn look(&self) -> Result<Option<Job>, Refusal> {
        let params = ListParams::default().fields(&format!("metadata.name={}", self.job()));
        let jobs = self.cluster.access.jobs();
        let found = often(|| jobs.list(&params));
        let mut found = self.run("looking for the Job", found)?;
        Ok(found.items.pop())
    }

    /// Ends the controller and waits until its pod is gone; what it kept stays.
    ///
    /// # Errors
    /// [`Refusal`]: the cluster, or a pod that does not go.
    pub fn end(&self) -> Result<(), Refusal> {
        self.suspend(true)?;
        let begin = Instant::now();
        while begin.elapsed() < ENDS {
            match self.look()? {
                Some(job) if is_working(&job) => {}
                _ => return Ok(()),
            }
            self.cluster.run(async { tokio::time::sleep(ASK).await });
        }
        let (context, namespace) = self.place();
        Err(Refusal::new(
            format!("ending the Job {}", self.job()),
            format!(
                "its pod did not go within {} s: its node may be away",
                ENDS.as_secs()
            ),
            format!(
                "when that pod surely runs no more: kubectl --context {context} -n {namespace} delete pods --force -l {RESULT}={}; then again",
                self.result
            ),
        ))
    }

    /// Removes the Job and with it everything that is kept; it must be safe elsewhere.
    ///
    /// # Errors
    /// [`Refusal`]: the cluster.
    pub fn remove(&self) -> Result<(), Refusal> {
        let removed = self.cluster.run(remove(&self.cluster.access, &self.job()));
        removed.map_err(|error| refused::request("removing the Job", &error))
    }

    fn run<T>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Refusal> {
        let answer = self.cluster.run(request);
        let what = format!("{what} {}", self.job());
        answer.map_err(|error| refused::request(&what, &error))
    }
}

/// Why the first pod of a controller did not begin.
fn not_begun(halt: Halt) -> Refusal {
    match halt {
        Halt::Refused(refusal) => refusal,
        Halt::NoRoom(refusal) if refusal.what == NO_NODE => {
            let hint = "it waited two minutes; loadline's own pod needs 200m CPU and 256Mi on any node of the cluster: smaller trials, or a larger node";
            Refusal::new("finding a node for loadline", refusal.why, hint)
        }
        Halt::NoRoom(refusal) => refusal,
        Halt::Lost(why) => Refusal::new(
            "starting loadline in the cluster",
            why,
            "try again; `kubectl get events` says more",
        ),
    }
}

/// Whether a Job may still have a pod. A cluster that does not count those that end has no such number.
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

/// The results that have a Job in the namespace.
pub(crate) fn results(cluster: &Cluster) -> Result<Vec<String>, Refusal> {
    let params = ListParams::default().labels(RESULT);
    let listed = cluster.run(within(cluster.access.jobs().list(&params)));
    let listed = listed.map_err(|e| refused::request("listing Jobs of results", &e))?;
    let of = |job: &Job| job.metadata.labels.as_ref()?.get(RESULT).cloned();
    Ok(listed.items.iter().filter_map(of).collect())
}
