//! The client of the generators of a trial: gives each its part, merges what they say.
//!
//! Owns the order of a load: all are there and can reach the application, all are connected, then one
//! instant for all. Judges nothing but whether it was one load: a generator that is lost, late, or
//! whose clock is not known makes it none.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::link::{Link, unexpected};
use super::merged::{self, Part as Made, Seconds, Told};
use super::offset::MOST_ERROR;
use super::{Failed, FromGenerator, Generators, ToGenerator};
use crate::clock::now_ns;
use crate::error::LoadError;
use crate::part::{Message, ResultMessage};
use crate::plan::{Part, Plan, RequestSpec, Users};

/// From the word to begin to the begin: it must arrive everywhere before.
const LEAD_NS: u64 = 100_000_000;

/// How often generators are told that their client is there.
const EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// So long an address of this machine is tried.
const OWN: Duration = Duration::from_secs(1);

/// What ends it without a result.
enum Halt {
    Failed(Failed, String),
    Load(LoadError),
}

impl From<LoadError> for Halt {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

/// What one generator said, or that it is gone.
type Heard = (usize, io::Result<FromGenerator>);

/// Has the generators make the load of a plan; `say` gets the same messages that a load of this process
/// would give.
///
/// # Errors
/// [`LoadError`] when the plan cannot be carried out, or nobody listens.
pub(crate) fn run(
    plan: &Plan,
    generators: &Generators,
    stop: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&Message) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    plan.check()?;
    match drive(plan, generators, stop, say) {
        Ok(result) => say(&Message::Result(Box::new(result))),
        Err(Halt::Load(error)) => Err(error),
        Err(Halt::Failed(how, detail)) => say(&Message::Failed { how, detail }),
    }
}

fn drive(
    plan: &Plan,
    generators: &Generators,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&Message) -> Result<(), LoadError>,
) -> Result<ResultMessage, Halt> {
    let mut links = Vec::new();
    for member in &generators.members {
        let link = Link::open(member, &generators.secret);
        let link = link.map_err(|error| lost(&member.name, &member.node, &error))?;
        if let Some(why) = link.offset.unknown() {
            return Err(Halt::Failed(Failed::Clock, named(&link, &why)));
        }
        links.push(link);
    }
    let plans = plans(plan, &links)?;
    for (link, own) in links.iter().zip(&plans) {
        reach(link, &plan.targets, &own.targets)?;
    }
    let (heard, hears) = channel();
    thread::scope(|scope| {
        for (index, link) in links.iter().enumerate() {
            let heard = heard.clone();
            let listen = move || listen(index, link, &heard);
            let spawned = thread::Builder::new().spawn_scoped(scope, listen);
            if let Err(error) = spawned {
                links.iter().for_each(Link::close);
                return Err(lost_link(link, &error));
            }
        }
        let mut load = Load::new(&links, &hears, stop);
        let made = load.make(plans, say);
        if made.is_err() {
            links.iter().for_each(Link::close);
        }
        made
    })
    .and_then(finish)
}

/// The clocks once more, and the sum.
fn finish(parts: Vec<(&Link<'_>, ResultMessage)>) -> Result<ResultMessage, Halt> {
    let mut made = Vec::new();
    for (link, result) in parts {
        let again = link.measure_again().map_err(|e| lost_link(link, &e))?;
        let drift = link.offset.drift(again);
        made.push(Made {
            member: link.member,
            offset: link.offset,
            drift_ns: drift.map_err(|why| Halt::Failed(Failed::Clock, named(link, &why)))?,
            result,
        });
    }
    Ok(merged::result(made)?)
}

/// A load under way.
struct Load<'a> {
    links: &'a [Link<'a>],
    hears: &'a Receiver<Heard>,
    stop: &'a AtomicBool,
    pinged: Instant,
    is_stopped: bool,
}

impl<'a> Load<'a> {
    fn new(links: &'a [Link<'a>], hears: &'a Receiver<Heard>, stop: &'a AtomicBool) -> Self {
        Self {
            links,
            hears,
            stop,
            pinged: Instant::now(),
            is_stopped: false,
        }
    }

    /// Makes it; gives each generator's result, in their order.
    fn make(
        &mut self,
        plans: Vec<Plan>,
        say: &mut dyn FnMut(&Message) -> Result<(), LoadError>,
    ) -> Result<Vec<(&'a Link<'a>, ResultMessage)>, Halt> {
        for (link, plan) in self.links.iter().zip(plans) {
            self.tell(link, &ToGenerator::Load { plan: plan.into() })?;
        }
        let mut connected = 0;
        while connected < self.links.len() {
            match self.next()? {
                Some((_, FromGenerator::Connected)) => connected += 1,
                Some((of, _)) => return Err(lost_link(&self.links[of], &unexpected())),
                None => {}
            }
        }
        let start = now_ns() + LEAD_NS;
        for link in self.links {
            let start_ns = link.offset.there(start);
            self.tell(link, &ToGenerator::Begin { start_ns })?;
        }
        self.gather(start, say)
    }

    /// Takes seconds and results until all have theirs.
    fn gather(
        &mut self,
        start: u64,
        say: &mut dyn FnMut(&Message) -> Result<(), LoadError>,
    ) -> Result<Vec<(&'a Link<'a>, ResultMessage)>, Halt> {
        let mut results = Vec::new();
        let mut seconds = Seconds::of(self.links.len());
        while results.len() < self.links.len() {
            match self.next()? {
                None => {}
                Some((
                    of,
                    FromGenerator::Second {
                        index,
                        at_ns,
                        is_warmup,
                        totals,
                    },
                )) => {
                    let told = Told {
                        index,
                        at_ns: self.links[of].offset.here(at_ns),
                        is_warmup,
                        totals,
                    };
                    seconds.take(of, &told)?;
                }
                Some((of, FromGenerator::Result { result })) => {
                    let link = &self.links[of];
                    let late = link.offset.here(result.start_ns).saturating_sub(start);
                    if u128::from(late) > MOST_ERROR.as_nanos() {
                        let why = format!("it began {} ms after the others", late / 1_000_000);
                        return Err(Halt::Failed(Failed::Lost, named(link, &why)));
                    }
                    seconds.end(of);
                    results.push((of, *result));
                }
                Some((of, _)) => return Err(lost_link(&self.links[of], &unexpected())),
            }
            while let Some(second) = seconds.next() {
                say(&Message::Second(second))?;
            }
        }
        results.sort_by_key(|(of, _)| *of);
        let links = self.links;
        let all = results.into_iter();
        Ok(all.map(|(of, result)| (&links[of], result)).collect())
    }

    /// The next word of any of them; now and then none. Tells them meanwhile that their client is there.
    fn next(&mut self) -> Result<Option<(usize, FromGenerator)>, Halt> {
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
                return Err(Halt::Failed(Failed::Lost, "all generators".to_owned()));
            }
        };
        let link = &self.links[index];
        match word {
            Ok(FromGenerator::Clock { .. }) => Ok(None),
            Ok(FromGenerator::Failed { why }) => Err(Halt::Load(LoadError::Generator {
                name: link.member.name.clone(),
                why,
            })),
            Ok(word) => Ok(Some((index, word))),
            Err(error) => Err(lost_link(link, &error)),
        }
    }

    fn tell_all(&self, message: &ToGenerator) -> Result<(), Halt> {
        self.links
            .iter()
            .try_for_each(|link| self.tell(link, message))
    }

    fn tell(&self, link: &Link<'_>, message: &ToGenerator) -> Result<(), Halt> {
        link.say(message).map_err(|error| lost_link(link, &error))
    }
}

/// Hears one generator until its result, or its end.
fn listen(index: usize, link: &Link<'_>, heard: &Sender<Heard>) {
    loop {
        let word = link.hear();
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
fn plans(plan: &Plan, links: &[Link<'_>]) -> Result<Vec<Plan>, Halt> {
    let of = u32::try_from(links.len()).unwrap_or(u32::MAX);
    let host = plan.targets.first().map(SocketAddr::to_string);
    let plans = links.iter().zip(0..).map(|(link, index)| {
        let part = Part { index, of };
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
        Ok(Plan {
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
fn reach(link: &Link<'_>, own: &[SocketAddr], from_there: &[SocketAddr]) -> Result<(), Halt> {
    let why = link.reach(from_there).map_err(|e| lost_link(link, &e))?;
    let Some(why) = why else { return Ok(()) };
    let answers = |target| TcpStream::connect_timeout(target, OWN).is_ok();
    match own.iter().all(answers) {
        true => Err(Halt::Failed(Failed::Unreachable, named(link, &why))),
        false => Ok(()),
    }
}

fn named(link: &Link<'_>, why: &str) -> String {
    name(&link.member.name, &link.member.node) + ": " + why
}

fn name(name: &str, node: &str) -> String {
    format!("the generator {name} on {node}")
}

fn lost_link(link: &Link<'_>, error: &io::Error) -> Halt {
    lost(&link.member.name, &link.member.node, error)
}

fn lost(of: &str, node: &str, error: &io::Error) -> Halt {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    Halt::Failed(Failed::Lost, name(of, node) + ": " + &why)
}
