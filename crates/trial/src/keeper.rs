//! `loadline keeper-part`: holds the dependencies that the trials of a result share.
//!
//! Owns when they start, are seeded, are reset, restart, and end. loadline starts this process for
//! a slot, asks it before each trial and once after, and the trial joins the dependencies in its
//! answer ([`crate::counted::JoinedDependency`]). It dies with loadline, and its dependencies die
//! with it, by the same chain as in a trial. Between two questions it does nothing. Measures
//! nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use loadline_analysis::record::{DependencyEvidence, MeasurementFailure, SharedEvidence};
use loadline_protocol::{
    DependencyScope, DependencySpec, NetworkMode, NetworkNamespace, ProxiedLink, RunRefusal,
    SharedDependencies, SharedDependency, TrialOrder,
};
use serde::{Deserialize, Serialize};

use crate::container::ContainerNetwork;
use crate::cpus;
use crate::dependencies::{end_in_reverse, name_dependency, network_without_dependencies};
use crate::dependency::{DependencySite, RESET, RunningDependency};
use crate::halt::{HaltReason, Stop};
use crate::site::{Site, SiteOptions};
use crate::spawner::die_with;

pub use crate::dependency::DependencyEnd;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum KeeperRequest {
    /// A trial is about to begin: prepare its shared dependencies.
    Trial(Box<TrialOrder>),
    Look,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum KeeperAnswer {
    Kept(SharedDependencies),
    /// A dependency did not start, or never became ready: the evidence of each.
    Failed {
        failure: MeasurementFailure,
        dependencies: Vec<DependencyEvidence>,
    },
    Refused(RunRefusal),
    Looked {
        ended: Vec<DependencyEnd>,
    },
}

/// The process itself: answers until `requests` end, then ends all that it holds. `parent` is the
/// process that ends this one by its death.
pub fn run_keeper_process(
    requests: impl Read + Send + 'static,
    mut answers: impl Write,
    parent: Option<i32>,
) -> io::Result<()> {
    die_with(parent).map_err(io::Error::other)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let requests = read_requests(requests, Arc::clone(&is_over))?;
    let stop = || is_over.load(Ordering::Relaxed);
    let mut keeper = KeeperState::default();
    for request in requests {
        let answer = match request {
            KeeperRequest::Trial(order) => keeper.prepare_for_trial(&order, &stop),
            KeeperRequest::Look => keeper.report_ended(),
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        answers.write_all(&line)?;
        answers.flush()?;
    }
    keeper.end_held();
    Ok(())
}

/// Reads on a separate thread: a start under way must notice that its client has gone.
fn read_requests(
    requests: impl Read + Send + 'static,
    is_over: Arc<AtomicBool>,
) -> io::Result<Receiver<KeeperRequest>> {
    let (queue, taken) = channel();
    std::thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || {
            let lines = BufReader::new(requests).lines().map_while(Result::ok);
            let all = lines.map_while(|line| serde_json::from_str(&line).ok());
            // Nobody who takes them: the process is about to end.
            all.for_each(|request| drop(queue.send(request)));
            is_over.store(true, Ordering::Relaxed);
        })?;
    Ok(taken)
}

#[derive(Default)]
struct KeeperState {
    held: Option<HeldDependencies>,
    anew: Option<String>,
}

struct HeldDependencies {
    wanted: SharingTerms,
    running: Vec<RunningDependency>,
    trials: u32,
}

/// What two trials must have in common to share dependencies.
#[derive(Debug, Clone, PartialEq)]
struct SharingTerms {
    dependencies: Vec<DependencySpec>,
    /// Where each may run, as the kernel lists CPUs.
    cpus: Vec<String>,
    network: NetworkMode,
    hosts: Vec<String>,
}

struct SharedStartFailure(HaltReason, Vec<DependencyEvidence>);

impl<T: Into<HaltReason>> From<T> for SharedStartFailure {
    fn from(halt: T) -> Self {
        Self(halt.into(), Vec::new())
    }
}

impl KeeperState {
    fn prepare_for_trial(&mut self, order: &TrialOrder, stop: Stop<'_>) -> KeeperAnswer {
        let SharedStartFailure(halt, dependencies) = match self.reuse_or_start(order, stop) {
            Ok(kept) => return KeeperAnswer::Kept(kept),
            Err(failed) => failed,
        };
        match halt {
            HaltReason::Refused(refusal) => KeeperAnswer::Refused(refusal),
            HaltReason::Failed(failure) => KeeperAnswer::Failed {
                failure,
                dependencies,
            },
            // It has no reader any more.
            HaltReason::Stopped => KeeperAnswer::Looked { ended: Vec::new() },
        }
    }

    fn reuse_or_start(
        &mut self,
        order: &TrialOrder,
        stop: Stop<'_>,
    ) -> Result<SharedDependencies, SharedStartFailure> {
        let site = Site::detect_site(SiteOptions::default())?;
        let plan = site.plan_cpus(order, 0)?;
        let at = DependencySite {
            site: &site,
            order,
            plan: &plan,
            stop,
        };
        let wanted = SharingTerms::from_order(at)?;
        let held = self.held.as_mut();
        if let Some(why) = held.and_then(|held| held.mismatch_reason(&wanted)) {
            self.anew = Some(why);
            self.end_held();
        }
        let (mut held, resets) = match self.held.take() {
            None => (start_dependencies(at, wanted)?, Vec::new()),
            Some(mut held) => {
                let resets = held.reset_all(at)?;
                (held, resets)
            }
        };
        let kept = held.shared_dependencies(&resets, self.anew.take());
        held.trials += 1;
        self.held = Some(held);
        Ok(kept)
    }

    fn report_ended(&mut self) -> KeeperAnswer {
        let running = self.held.iter_mut().flat_map(|held| &mut held.running);
        let ended = running.filter_map(RunningDependency::poll_end);
        KeeperAnswer::Looked {
            ended: ended.collect(),
        }
    }

    fn end_held(&mut self) {
        if let Some(held) = self.held.take() {
            end_dependencies(held.running);
        }
    }
}

fn end_dependencies(running: Vec<RunningDependency>) -> Vec<DependencyEvidence> {
    end_in_reverse(running, RunningDependency::end_dependency)
}

fn start_dependencies(
    at: DependencySite<'_>,
    wanted: SharingTerms,
) -> Result<HeldDependencies, SharedStartFailure> {
    let mut running: Vec<RunningDependency> = Vec::new();
    for dependency in &wanted.dependencies {
        let begin = |running: &mut Vec<RunningDependency>| {
            let network = network_for_next(at.order, running, dependency);
            let one = RunningDependency::start_dependency(at, dependency, network)?;
            running.push(one);
            let last = running.last_mut();
            last.map_or(Ok(()), |one| one.await_seeded(at))
        };
        if let Err(halt) = begin(&mut running) {
            return Err(SharedStartFailure(
                name_dependency(halt, &dependency.name),
                end_dependencies(running),
            ));
        }
    }
    Ok(HeldDependencies {
        wanted,
        running,
        trials: 0,
    })
}

/// The network of the next: dependencies with toxics use a separate one, and the first of either
/// kind makes it.
fn network_for_next(
    order: &TrialOrder,
    running: &[RunningDependency],
    next: &DependencySpec,
) -> ContainerNetwork {
    let is_like = |one: &&RunningDependency| one.spec.proxied.is_some() == next.proxied.is_some();
    match running.iter().find(is_like) {
        Some(first) => first.dependency_network(),
        None if next.proxied.is_some() => ContainerNetwork::Own,
        None => network_without_dependencies(order),
    }
}

impl HeldDependencies {
    fn mismatch_reason(&mut self, wanted: &SharingTerms) -> Option<String> {
        let mut running = self.running.iter_mut();
        if let Some(ended) = running.find_map(RunningDependency::poll_end) {
            return Some(format!("{} had ended ({})", ended.name, ended.how));
        }
        let is_same = self.wanted == *wanted;
        let was = &self.wanted;
        match (is_same, was.cpus == wanted.cpus) {
            (true, _) => None,
            (false, true) => Some("it was to be another".to_owned()),
            (false, false) => Some(format!(
                "CPUs {} were left to it, and are {} now",
                was.cpus.join("; "),
                wanted.cpus.join("; ")
            )),
        }
    }

    fn reset_all(
        &mut self,
        at: DependencySite<'_>,
    ) -> Result<Vec<Option<std::time::Duration>>, HaltReason> {
        let reset = |running: &mut RunningDependency| {
            let took = running.run_side_command(at, &RESET);
            took.map_err(|halt| name_dependency(halt, &running.spec.name))
        };
        self.running.iter_mut().map(reset).collect()
    }

    fn shared_dependencies(
        &self,
        resets: &[Option<std::time::Duration>],
        anew: Option<String>,
    ) -> SharedDependencies {
        let of = |(index, running): (usize, &RunningDependency)| SharedDependency {
            group: running.counted.group.group_name().to_owned(),
            network: match running.dependency_network() {
                ContainerNetwork::Of(namespace) => Some(namespace),
                ContainerNetwork::Host | ContainerNetwork::Own => None::<NetworkNamespace>,
            },
            evidence: DependencyEvidence {
                shared: Some(SharedEvidence {
                    trials: self.trials,
                    reset: resets.get(index).copied().flatten(),
                    anew: anew.clone(),
                }),
                ..running.counted.evidence.clone()
            },
        };
        SharedDependencies {
            keeper: std::process::id(),
            dependencies: self.running.iter().enumerate().map(of).collect(),
        }
    }
}

impl SharingTerms {
    fn from_order(at: DependencySite<'_>) -> Result<Self, RunRefusal> {
        let DependencySite { site, order, .. } = at;
        let shared = order.dependencies.iter();
        let shared = shared.filter(|dependency| dependency.scope == DependencyScope::Result);
        // Random numbers of toxics differ per trial.
        let plain = |dependency: &DependencySpec| DependencySpec {
            proxied: (dependency.proxied.clone()).map(|proxied| ProxiedLink { seed: 0, ..proxied }),
            ..dependency.clone()
        };
        let dependencies: Vec<DependencySpec> = shared.map(plain).collect();
        let cpus = dependencies.iter().map(|dependency| {
            let cpus = site.dependency_cpus(dependency, at.plan)?;
            Ok(cpus::format_cpu_list(&cpus))
        });
        Ok(Self {
            cpus: cpus.collect::<Result<_, RunRefusal>>()?,
            dependencies,
            network: order.network,
            hosts: order.peer_names(),
        })
    }
}
