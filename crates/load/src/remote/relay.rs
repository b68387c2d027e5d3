//! The client of the generators of a trial: gives each its part and merges their results.
//!
//! Owns the order of a load: all are reachable and can reach the application, all are connected,
//! then one instant for all. Judges only whether it was one load: a generator that is lost, late,
//! or without a known clock offset invalidates it.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::link::{GeneratorLink, unexpected_message};
use super::merged::{self, FinishedPart as Made, MergedSeconds};
use super::messages::{FromGenerator, Generators, RemoteLoadFailure, ToGenerator};
use super::offset::MOST_ERROR;
use crate::clock::clock_ns;
use crate::error::LoadError;
use crate::part::{LoadMessage, ResultMessage};
use crate::plan::{LoadPart, LoadPlan, RequestSpec, Users};

/// From the word to begin to the begin: it must arrive everywhere before.
const LEAD_NS: u64 = 100_000_000;

const EVERY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
const OWN: Duration = Duration::from_secs(1);

enum RelayHalt {
    Failed(RemoteLoadFailure, String),
    Load(LoadError),
}

impl From<LoadError> for RelayHalt {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

type Heard = (usize, io::Result<FromGenerator>);

/// Makes the generators run the load of a plan; `say` gets the same messages as for a load of this
/// process. Errors: [`LoadError`] when the plan cannot be carried out, or the output is closed.
pub(crate) fn run(
    plan: &LoadPlan,
    generators: &Generators,
    stop: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&LoadMessage) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    plan.check_plan()?;
    match drive(plan, generators, stop, say) {
        Ok(result) => say(&LoadMessage::Result(Box::new(result))),
        Err(RelayHalt::Load(error)) => Err(error),
        Err(RelayHalt::Failed(how, detail)) => say(&LoadMessage::Failed { how, detail }),
    }
}

fn drive(
    plan: &LoadPlan,
    generators: &Generators,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&LoadMessage) -> Result<(), LoadError>,
) -> Result<ResultMessage, RelayHalt> {
    let mut links = Vec::new();
    for member in &generators.members {
        let link = GeneratorLink::open_link(member, &generators.secret);
        let link = link.map_err(|error| lost_generator(&member.name, &member.node, &error))?;
        if let Some(why) = link.offset.unknown_reason() {
            return Err(failed_link(RemoteLoadFailure::Clock, &link, &why));
        }
        links.push(link);
    }
    let plans = generator_plans(plan, &links)?;
    for (link, own) in links.iter().zip(&plans) {
        check_reachability(link, &plan.targets, &own.targets)?;
    }
    let (heard, hears) = channel();
    thread::scope(|scope| {
        for (index, link) in links.iter().enumerate() {
            let heard = heard.clone();
            let listen = move || listen_to_link(index, link, &heard);
            let spawned = thread::Builder::new().spawn_scoped(scope, listen);
            if let Err(error) = spawned {
                links.iter().for_each(GeneratorLink::close_link);
                return Err(lost_link(link, &error));
            }
        }
        let mut load = RemoteLoad {
            links: &links,
            hears: &hears,
            stop,
            pinged: Instant::now(),
            is_stopped: false,
        };
        let made = load.make_load(plans, say);
        if made.is_err() {
            links.iter().for_each(GeneratorLink::close_link);
        }
        made
    })
    .and_then(merge_finished)
}

fn merge_finished(
    parts: Vec<(&GeneratorLink<'_>, ResultMessage)>,
) -> Result<ResultMessage, RelayHalt> {
    let mut made = Vec::new();
    for (link, result) in parts {
        let again = link.measure_again().map_err(|e| lost_link(link, &e))?;
        let drift = link.offset.drift_since(again);
        made.push(Made {
            member: link.member,
            offset: link.offset,
            drift_ns: drift.map_err(|why| failed_link(RemoteLoadFailure::Clock, link, &why))?,
            result,
        });
    }
    Ok(merged::merge_results(made)?)
}

struct RemoteLoad<'a> {
    links: &'a [GeneratorLink<'a>],
    hears: &'a Receiver<Heard>,
    stop: &'a AtomicBool,
    pinged: Instant,
    is_stopped: bool,
}

impl<'a> RemoteLoad<'a> {
    fn make_load(
        &mut self,
        plans: Vec<LoadPlan>,
        say: &mut dyn FnMut(&LoadMessage) -> Result<(), LoadError>,
    ) -> Result<Vec<(&'a GeneratorLink<'a>, ResultMessage)>, RelayHalt> {
        for (link, plan) in self.links.iter().zip(plans) {
            self.tell_link(link, &ToGenerator::Load { plan: plan.into() })?;
        }
        let mut connected = 0;
        while connected < self.links.len() {
            match self.next()? {
                Some((_, FromGenerator::Connected)) => connected += 1,
                Some((of, _)) => return Err(lost_link(&self.links[of], &unexpected_message())),
                None => {}
            }
        }
        let start = clock_ns() + LEAD_NS;
        for link in self.links {
            let start_ns = link.offset.to_remote_ns(start);
            self.tell_link(link, &ToGenerator::Begin { start_ns })?;
        }
        self.gather_results(start, say)
    }

    fn gather_results(
        &mut self,
        start: u64,
        say: &mut dyn FnMut(&LoadMessage) -> Result<(), LoadError>,
    ) -> Result<Vec<(&'a GeneratorLink<'a>, ResultMessage)>, RelayHalt> {
        let mut results = Vec::new();
        let mut seconds = MergedSeconds::for_generators(self.links.len());
        while results.len() < self.links.len() {
            match self.next()? {
                None => {}
                Some((of, FromGenerator::Second(mut second))) => {
                    second.at_ns = self.links[of].offset.to_local_ns(second.at_ns);
                    seconds.add_generator_second(of, &second);
                }
                Some((of, FromGenerator::Result { result })) => {
                    let link = &self.links[of];
                    let late = link
                        .offset
                        .to_local_ns(result.start_ns)
                        .saturating_sub(start);
                    if u128::from(late) > MOST_ERROR.as_nanos() {
                        let why = format!("it began {} ms after the others", late / 1_000_000);
                        return Err(failed_link(RemoteLoadFailure::Lost, link, &why));
                    }
                    seconds.end_generator(of);
                    results.push((of, *result));
                }
                Some((of, _)) => return Err(lost_link(&self.links[of], &unexpected_message())),
            }
            while let Some(second) = seconds.next() {
                say(&LoadMessage::Second(second))?;
            }
        }
        results.sort_by_key(|(of, _)| *of);
        let links = self.links;
        let all = results.into_iter();
        Ok(all.map(|(of, result)| (&links[of], result)).collect())
    }

    /// The next message of any generator; at intervals none. Meanwhile sends them the client's sign
    /// of life.
    fn next(&mut self) -> Result<Option<(usize, FromGenerator)>, RelayHalt> {
        if self.pinged.elapsed() >= EVERY {
            self.pinged = Instant::now();
            self.tell_all(&ToGenerator::Clock { echo: 0 })?;
        }
        if !self.is_stopped && self.stop.load(Ordering::Relaxed) {
            self.is_stopped = true;
            self.tell_all(&ToGenerator::Stop)?;
        }
        let (index, word) = match self.hears.recv_timeout(LOOK) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RelayHalt::Failed(
                    RemoteLoadFailure::Lost,
                    "all generators".to_owned(),
                ));
            }
        };
        let link = &self.links[index];
        match word {
            Ok(FromGenerator::Clock { .. }) => Ok(None),
            Ok(FromGenerator::Failed { why }) => Err(RelayHalt::Load(LoadError::Generator {
                name: link.member.name.clone(),
                why,
            })),
            Ok(word) => Ok(Some((index, word))),
            Err(error) => Err(lost_link(link, &error)),
        }
    }

    fn tell_all(&self, message: &ToGenerator) -> Result<(), RelayHalt> {
        self.links
            .iter()
            .try_for_each(|link| self.tell_link(link, message))
    }

    fn tell_link(&self, link: &GeneratorLink<'_>, message: &ToGenerator) -> Result<(), RelayHalt> {
        link.say_to_generator(message)
            .map_err(|error| lost_link(link, &error))
    }
}

fn listen_to_link(index: usize, link: &GeneratorLink<'_>, heard: &Sender<Heard>) {
    loop {
        let word = link.next_message();
        let is_last = matches!(
            word,
            Err(_) | Ok(FromGenerator::Result { .. } | FromGenerator::Failed { .. })
        );
        // Nobody hears any more when another one is lost.
        if heard.send((index, word)).is_err() || is_last {
            return;
        }
    }
}

/// What each generator is to do: its slots of one schedule, its share of connections and users, the
/// application by the address of its machine and as the same host.
fn generator_plans(
    plan: &LoadPlan,
    links: &[GeneratorLink<'_>],
) -> Result<Vec<LoadPlan>, RelayHalt> {
    let of = u32::try_from(links.len()).unwrap_or(u32::MAX);
    let host = plan.targets.first().map(SocketAddr::to_string);
    let plans = links.iter().zip(0..).map(|(link, index)| {
        let part = LoadPart { index, of };
        let own = link.own_address().map_err(|e| lost_link(link, &e))?;
        let target = |target: &SocketAddr| SocketAddr::new(own, target.port());
        let users = plan.users.as_ref().map(|users| {
            let present = users.present.iter().zip(0..);
            let present = present.filter(|(_, nth)| nth % of == index);
            Users {
                present: present.map(|(user, _)| user.clone()).collect(),
                ..users.clone()
            }
        });
        let as_host = |request: &RequestSpec| RequestSpec {
            host: request.host.clone().or_else(|| host.clone()),
            ..request.clone()
        };
        Ok(LoadPlan {
            targets: plan.targets.iter().map(target).collect(),
            request: as_host(&plan.request),
            mix: plan
                .mix
                .iter()
                .cloned()
                .map(|mut of| {
                    of.request = as_host(&of.request);
                    of
                })
                .collect(),
            connections: part.share_of(plan.connections),
            part,
            users,
            start_ns: None,
            cpus: Vec::new(),
            ..plan.clone()
        })
    });
    plans.collect()
}

/// Refuses an application that answers its own machine and not the generator. One that answers neither
/// is what the load will tell.
fn check_reachability(
    link: &GeneratorLink<'_>,
    own: &[SocketAddr],
    from_there: &[SocketAddr],
) -> Result<(), RelayHalt> {
    let why = link
        .unreachable_reason(from_there)
        .map_err(|e| lost_link(link, &e))?;
    let Some(why) = why else { return Ok(()) };
    let answers = |target| TcpStream::connect_timeout(target, OWN).is_ok();
    if own.iter().all(answers) {
        Err(failed_link(RemoteLoadFailure::Unreachable, link, &why))
    } else {
        Ok(())
    }
}

fn failed_link(how: RemoteLoadFailure, link: &GeneratorLink<'_>, why: &str) -> RelayHalt {
    let of = generator_name(&link.member.name, &link.member.node);
    RelayHalt::Failed(how, of + ": " + why)
}

fn generator_name(name: &str, node: &str) -> String {
    format!("the generator {name} on {node}")
}

fn lost_link(link: &GeneratorLink<'_>, error: &io::Error) -> RelayHalt {
    lost_generator(&link.member.name, &link.member.node, error)
}

fn lost_generator(of: &str, node: &str, error: &io::Error) -> RelayHalt {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    RelayHalt::Failed(
        RemoteLoadFailure::Lost,
        generator_name(of, node) + ": " + &why,
    )
}
