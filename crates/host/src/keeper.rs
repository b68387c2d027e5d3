//! `loadline keeper-part`: holds the dependencies that the trials of a result share.
//!
//! Owns when they start, are seeded, are reset, start anew, and end. loadline starts this process for
//! a slot, asks it before each trial and once after, and the trial joins what it is told of
//! ([`crate::counted::Joined`]). It dies with loadline, and all that it holds dies with it, by the
//! same chain that holds a trial. Between two questions it does nothing. Measures nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use loadline_analysis::record::{DependencyEvidence, Failure, SharedEvidence};
use loadline_trial::{
    Dependency, Kept, KeptDependency, Namespace, Network, Order, Proxied, Refusal, Scope,
};
use serde::{Deserialize, Serialize};

use crate::container::Net;
use crate::cpus::{self, CpuPlan};
use crate::dependencies::{named, without};
use crate::dependency::Running;
use crate::halt::Halt;
use crate::part::die_with;
use crate::site::{Options, Site};
use crate::trial::Stop;

/// What loadline asks, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "request")]
pub enum Request {
    /// A trial is about to begin: have those of its dependencies ready that outlive it.
    Trial(Box<Order>),
    /// It is over: how are they?
    Look,
}

/// What the keeper answers, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// They run.
    Kept(Kept),
    /// One did not start, or never got ready: what is known of each.
    Failed {
        /// Why.
        failure: Failure,
        /// Those that were started.
        dependencies: Vec<DependencyEvidence>,
    },
    /// This machine cannot, or a seed or reset failed.
    Refused(Refusal),
    /// Those that have ended.
    Looked {
        /// Each of them.
        ended: Vec<Ended>,
    },
}

/// A shared dependency that has ended while it was needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// How: `exit code 1`.
    pub how: String,
    /// The last lines that it wrote.
    pub last_output: Vec<String>,
    /// What that makes of a trial.
    pub failure: Failure,
}

/// The process itself: answers until `requests` end, then ends all that it holds. `parent` is the
/// process that ends this one by its death.
///
/// # Errors
/// When the other end is not loadline, or not there any more.
pub fn keeper_part(
    requests: impl Read + Send + 'static,
    mut answers: impl Write,
    parent: Option<i32>,
) -> io::Result<()> {
    die_with(parent).map_err(io::Error::other)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let requests = listen(requests, Arc::clone(&is_over))?;
    let stop = || is_over.load(Ordering::Relaxed);
    let mut keeper = Keeper::default();
    for request in requests {
        let answer = match request {
            Request::Trial(order) => keeper.ready(&order, &stop),
            Request::Look => keeper.look(),
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        answers.write_all(&line)?;
        answers.flush()?;
    }
    keeper.end();
    Ok(())
}

/// Reads on a thread of its own: a start under way must see that nobody waits for it any more.
fn listen(
    requests: impl Read + Send + 'static,
    is_over: Arc<AtomicBool>,
) -> io::Result<Receiver<Request>> {
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

/// What is held, and why it is to be started anew.
#[derive(Default)]
struct Keeper {
    held: Option<Held>,
    anew: Option<String>,
}

struct Held {
    wanted: Wanted,
    running: Vec<Running>,
    /// Starts of the application that it served.
    trials: u32,
}

/// What two trials must have in common to share dependencies.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    dependencies: Vec<Dependency>,
    /// Where each may run, as the kernel lists CPUs.
    cpus: Vec<String>,
    network: Network,
    hosts: Vec<String>,
}

/// A start that came to nothing, and what is known of each that had begun.
struct Failed(Halt, Vec<DependencyEvidence>);

impl<T: Into<Halt>> From<T> for Failed {
    fn from(halt: T) -> Self {
        Self(halt.into(), Vec::new())
    }
}

impl Keeper {
    fn ready(&mut self, order: &Order, stop: Stop<'_>) -> Answer {
        match self.prepare(order, stop) {
            Ok(kept) => Answer::Kept(kept),
            Err(Failed(Halt::Refused(refusal), _)) => Answer::Refused(refusal),
            Err(Failed(Halt::Failed(failure), dependencies)) => Answer::Failed {
                failure,
                dependencies,
            },
            // Nobody reads it.
            Err(Failed(Halt::Stopped, _)) => Answer::Looked { ended: Vec::new() },
        }
    }

    fn prepare(&mut self, order: &Order, stop: Stop<'_>) -> Result<Kept, Failed> {
        let site = Site::find(Options::default())?;
        let plan = site.plan_cpus(order, 0)?;
        let wanted = Wanted::of(&site, order, &plan)?;
        if let Some(why) = self.held.as_mut().and_then(|held| held.unfit(&wanted)) {
            self.anew = Some(why);
            self.end();
        }
        let (mut held, resets) = match self.held.take() {
            None => (start((&site, order), wanted, &plan, stop)?, Vec::new()),
            Some(mut held) => {
                let resets = held.reset((&site, order), &plan, stop)?;
                (held, resets)
            }
        };
        let kept = held.kept(&resets, self.anew.take());
        held.trials += 1;
        self.held = Some(held);
        Ok(kept)
    }

    fn look(&mut self) -> Answer {
        let running = self.held.iter_mut().flat_map(|held| &mut held.running);
        let ended = running.filter_map(Running::ended);
        Answer::Looked {
            ended: ended.collect(),
        }
    }

    fn end(&mut self) {
        if let Some(held) = self.held.take() {
            end(held.running);
        }
    }
}

/// Ends them, the last started first, and says what is known of each, in their order.
fn end(running: Vec<Running>) -> Vec<DependencyEvidence> {
    let mut all: Vec<_> = running.into_iter().rev().map(Running::end).collect();
    all.reverse();
    all
}

/// Starts each, waits until it is ready, and seeds it, before the next.
fn start(
    (site, order): (&Site, &Order),
    wanted: Wanted,
    plan: &CpuPlan,
    stop: Stop<'_>,
) -> Result<Held, Failed> {
    let mut running: Vec<Running> = Vec::new();
    for (index, dependency) in wanted.dependencies.iter().enumerate() {
        let begin = |running: &mut Vec<Running>| {
            let network = network(order, &wanted.dependencies[..index], running, dependency);
            running.push(Running::start(site, order, dependency, plan, network)?);
            let Some(one) = running.last_mut() else {
                return Ok(());
            };
            one.await_ready(dependency, &plan.generator, stop)?;
            one.seed((site, order), dependency, plan, stop)
        };
        if let Err(halt) = begin(&mut running) {
            return Err(Failed(named(halt, &dependency.name), end(running)));
        }
    }
    Ok(Held {
        wanted,
        running,
        trials: 0,
    })
}

/// The network of the next: those with toxics are in another one than those without, and the first
/// of either makes it.
fn network(order: &Order, before: &[Dependency], running: &[Running], next: &Dependency) -> Net {
    let is_like = |d: &Dependency| d.proxied.is_some() == next.proxied.is_some();
    let mut both = before.iter().zip(running);
    match both.find(|(dependency, _)| is_like(dependency)) {
        Some((_, first)) => first.network(),
        None if next.proxied.is_some() => Net::Own,
        None => without(order),
    }
}

impl Held {
    /// Why the next trial cannot have them as they are.
    fn unfit(&mut self, wanted: &Wanted) -> Option<String> {
        let ended = self.running.iter_mut().find_map(Running::ended);
        if let Some(ended) = ended {
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

    /// Runs the reset of each.
    fn reset(
        &mut self,
        of: (&Site, &Order),
        plan: &CpuPlan,
        stop: Stop<'_>,
    ) -> Result<Vec<Option<std::time::Duration>>, Halt> {
        let both = self.running.iter_mut().zip(&self.wanted.dependencies);
        let reset = |(running, dependency): (&mut Running, &Dependency)| {
            let took = running.reset(of, dependency, plan, stop);
            took.map_err(|halt| named(halt, &dependency.name))
        };
        both.map(reset).collect()
    }

    fn kept(&self, resets: &[Option<std::time::Duration>], anew: Option<String>) -> Kept {
        let of = |(index, running): (usize, &Running)| KeptDependency {
            group: running.group().name().to_owned(),
            network: match running.network() {
                Net::Of(namespace) => Some(namespace),
                Net::Host | Net::Own => None::<Namespace>,
            },
            evidence: DependencyEvidence {
                shared: Some(SharedEvidence {
                    trials: self.trials,
                    reset: resets.get(index).copied().flatten(),
                    anew: anew.clone(),
                }),
                ..running.evidence().clone()
            },
        };
        Kept {
            keeper: std::process::id(),
            dependencies: self.running.iter().enumerate().map(of).collect(),
        }
    }
}

impl Wanted {
    fn of(site: &Site, order: &Order, plan: &CpuPlan) -> Result<Self, Refusal> {
        let shared = order.dependencies.iter();
        let shared = shared.filter(|dependency| dependency.scope == Scope::Result);
        // What is drawn on the way to it is each trial's own.
        let plain = |dependency: &Dependency| Dependency {
            proxied: (dependency.proxied.clone()).map(|proxied| Proxied { seed: 0, ..proxied }),
            ..dependency.clone()
        };
        let dependencies: Vec<Dependency> = shared.map(plain).collect();
        let cpus = dependencies.iter().map(|dependency| {
            let cpus = site.dependency_cpus(dependency, plan)?;
            Ok(cpus::list(&cpus))
        });
        Ok(Self {
            cpus: cpus.collect::<Result<_, Refusal>>()?,
            dependencies,
            network: order.network,
            hosts: order.hosts(),
        })
    }
}
