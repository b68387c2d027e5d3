//! An engine apart as a host: each trial is two containers there, and what comes out of the first is
//! the trial.
//!
//! Owns the way from the lines of a log to the event log on this machine, when the application may
//! start, and what only the engine knows of its end. What runs there is [`loadline_host::apart`]'s. A
//! connection that is cut is made again: the log is asked for anew, and what came twice is dropped by
//! its offset.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_analysis::record::{
    Evidence, ExitEvidence, Failure, Invalid, Machine, Phase, StartEvidence,
};
use loadline_host::apart::{self, Ended, Pair};
use loadline_host::monotonic_ns;
use loadline_host::oci::image::Image;
use loadline_host::pod::{self, Seen, Taken};
use loadline_trial::log::{Reader, Record};
use loadline_trial::{App, Ending, Engine, Event, Order, Refusal};

use crate::host::{Delivery, Host, Running};

/// Longest time between two looks at what came.
const POLL: Duration = Duration::from_millis(50);

/// An application that was started and of which nothing was seen for so long is asked for.
const UNSEEN: Duration = Duration::from_secs(10);

/// So long an engine may be away.
const AWAY: Duration = Duration::from_secs(60);

/// From the last event to the engine's word on how the application ended.
const LAST: Duration = Duration::from_secs(20);

/// From the wish to stop to the removal of what is there.
const STOPPING: Duration = Duration::from_secs(20);

/// Trials by an engine apart.
#[derive(Debug)]
pub struct Apart {
    engine: Engine,
    images: Vec<(String, Seen)>,
    machine: Machine,
}

impl Apart {
    /// Removes what a killed loadline of this machine left there. The images were looked into when
    /// they were found; all are of one engine.
    ///
    /// # Errors
    /// [`Refusal`] for images of several engines.
    pub fn new(images: &[&Image]) -> Result<(Self, apart::Swept), Refusal> {
        let refused = |why: &str| {
            let hint = "name one for all: --engine podman or docker";
            Refusal::new("an engine apart", why, hint)
        };
        let first = images.first().ok_or_else(|| refused("there is no image"))?;
        if images.iter().any(|image| image.engine != first.engine) {
            return Err(refused("the images are those of several engines"));
        }
        let looked = |image: &&Image| Some((image.id.clone(), image.seen.as_deref()?.clone()));
        let images: Vec<_> = images.iter().filter_map(looked).collect();
        let (_, seen) = images
            .first()
            .ok_or_else(|| refused("nobody looked into the image"))?;
        let host = Self {
            engine: first.engine.clone(),
            machine: Machine {
                apart: first.engine.apart.clone(),
                ..seen.machine.clone()
            },
            images,
        };
        let swept = apart::sweep(&host.engine);
        Ok((host, swept))
    }
}

impl Host for Apart {
    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn slots(&self) -> usize {
        1
    }

    fn refuses(&self, order: &Order) -> Option<Refusal> {
        let what = apart::unable(order)?;
        let why = match &self.engine.apart {
            Some(why) => format!(
                "trials beside containers of {} cannot do this yet ({why})",
                self.engine.kind
            ),
            None => "trials beside its containers cannot do this yet".to_owned(),
        };
        let hint = "measure it where the engine runs, as root: docs/guides/images.md";
        Some(Refusal::new(what, why, hint))
    }

    fn launch(
        &mut self,
        _slot: usize,
        order: &Order,
        delivery: &Delivery,
    ) -> Result<Box<dyn Running>, Refusal> {
        let id = match &order.app {
            App::Image(image) => image.id.as_str(),
            App::Command { .. } => "",
        };
        let seen = self.images.iter().find(|(known, _)| known == id);
        let (_, seen) = seen.ok_or_else(|| {
            Refusal::new(
                "starting the image",
                "nobody looked into it",
                "call loadline again",
            )
        })?;
        let failed = |error: std::io::Error| {
            Refusal::new(
                format!("making the event log {}", delivery.log.display()),
                error,
                "the state directory must be writable, on a disk with space",
            )
        };
        let mut options = File::options();
        let options = options.append(true).create_new(true).mode(0o600);
        let log = options.open(&delivery.log).map_err(failed)?;
        let reading = Reader::new(File::open(&delivery.log).map_err(failed)?);
        let (tell, events) = channel();
        let asked = Arc::new(AtomicBool::new(false));
        let follow = Follow {
            engine: self.engine.clone(),
            seen: seen.clone(),
            order: order.clone(),
            asked: Arc::clone(&asked),
            log,
            reading,
            written: 0,
            is_seen: false,
        };
        let thread = std::thread::Builder::new().name("apart".to_owned());
        let thread = thread.spawn(move || {
            let ending = follow.carry_out(&tell);
            // Nobody listens to a trial that was dropped.
            let _ = tell.send(Event::Ended(ending));
        });
        Ok(Box::new(Trial {
            events,
            asked,
            thread: Some(thread.map_err(failed)?),
            is_over: false,
        }))
    }

    fn wait(&mut self, patience: Duration) {
        std::thread::sleep(patience.min(POLL));
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// A trial that runs. Dropping it ends the trial and waits until it is removed.
#[derive(Debug)]
struct Trial {
    events: Receiver<Event>,
    asked: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
}

impl Running for Trial {
    fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let event = match self.events.try_recv() {
            Ok(event) => event,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Event::Ended(lost("the thread of the trial died".to_owned(), None))
            }
        };
        self.is_over = matches!(event, Event::Ended(_));
        Some(event)
    }

    fn stop(&mut self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // One that died has removed its containers on its way.
            let _ = thread.join();
        }
    }
}

/// What the thread of a trial needs.
struct Follow {
    engine: Engine,
    seen: Seen,
    order: Order,
    asked: Arc<AtomicBool>,
    log: File,
    reading: Reader<File>,
    written: u64,
    /// Whether its own container has seen the application.
    is_seen: bool,
}

impl Follow {
    fn carry_out(mut self, tell: &Sender<Event>) -> Ending {
        let mut pair = match Pair::make(&self.engine, &self.order, &self.seen) {
            Ok(pair) => pair,
            Err(refusal) => return Ending::Refused(refusal),
        };
        let mut ending = match self.until_it_ends(&pair, tell) {
            Ok(Ending::Measured(evidence)) => self.complete(&pair, *evidence),
            Ok(ending) => ending,
            Err(why) => lost(why, pair.own_words()),
        };
        if let (Err(error), Ending::Measured(evidence)) = (pair.remove(), &mut ending) {
            let text = format!("not removed, the next start tries it again: {error}");
            evidence.warnings.push(text);
        }
        ending
    }

    fn until_it_ends(&mut self, pair: &Pair, tell: &Sender<Event>) -> Result<Ending, String> {
        let (mut started, mut asked, mut heard) = (None, None, Instant::now());
        loop {
            let follow = pair.follow().map_err(|e| e.to_string())?;
            let lines = Lines::of(follow)?;
            loop {
                match lines.next() {
                    Ok(line) => {
                        heard = Instant::now();
                        let taken = pod::take(&mut self.log, &line, &mut self.written)?;
                        if taken == Taken::Armed && started.is_none() {
                            started = Some(Instant::now());
                            if let Err(refusal) = pair.start() {
                                return Ok(Ending::Refused(refusal));
                            }
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if let Some(ending) = self.events(tell)? {
                    return Ok(ending);
                }
                if self.asked.load(Ordering::Relaxed) && asked.is_none() {
                    asked = Some(Instant::now());
                    pair.ask_to_end();
                }
                if asked.is_some_and(|asked: Instant| asked.elapsed() > STOPPING) {
                    return Ok(Ending::Stopped);
                }
                if started.is_some_and(|at: Instant| at.elapsed() > UNSEEN) && !self.is_seen {
                    return self.unseen(pair);
                }
            }
            match pair.is_running() {
                Some(false) => {
                    return Err("loadline's own container ended in the middle of it".to_owned());
                }
                None if heard.elapsed() > AWAY => {
                    return Err("the engine does not answer any more".to_owned());
                }
                _ => std::thread::sleep(POLL * 10),
            }
        }
    }

    /// Tells the events that are new; gives the last one.
    fn events(&mut self, tell: &Sender<Event>) -> Result<Option<Ending>, String> {
        loop {
            match self.reading.next_record().map_err(|e| e.to_string())? {
                Some(Record::Event(Event::Ended(ending))) => return Ok(Some(ending)),
                Some(Record::Event(event)) => {
                    self.is_seen |= matches!(
                        event,
                        Event::Phase {
                            phase: Phase::Start,
                            ..
                        }
                    );
                    // Nobody listens to a trial that was dropped.
                    let _ = tell.send(event);
                }
                Some(Record::Piece(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// An application that was over before its own container saw it, or that it cannot see.
    fn unseen(&self, pair: &Pair) -> Result<Ending, String> {
        let Some(ended) = pair.ended() else {
            let why = "it runs, and a second container of the same user cannot look at it: a security module, user namespaces or a virtual machine for each container stand between them";
            let hint = "measure it where the engine runs, as root: docs/guides/images.md";
            let what = "reading the counters of the application's container";
            return Ok(Ending::Refused(Refusal::new(what, why, hint)));
        };
        let evidence = Evidence {
            start: StartEvidence {
                deadline: self.order.start_deadline,
                ..StartEvidence::default()
            },
            exit: ExitEvidence {
                before_stop: true,
                ..ExitEvidence::default()
            },
            ..Evidence::default()
        };
        Ok(Ending::Measured(Box::new(Evidence {
            last_output: pair.last_lines(&self.order.secrets),
            ..add(ended, evidence)
        })))
    }

    /// Adds what only the engine knows.
    fn complete(&self, pair: &Pair, mut evidence: Evidence) -> Ending {
        let begin = Instant::now();
        while begin.elapsed() < LAST {
            if let Some(ended) = pair.ended() {
                evidence = add(ended, evidence);
                break;
            }
            std::thread::sleep(POLL);
        }
        // It is the engine's machine, whichever: there is but one.
        evidence.node = None;
        let is_clean = evidence.start.ready.is_some() && !evidence.exit.before_stop;
        if !is_clean {
            evidence.last_output = pair.last_lines(&self.order.secrets);
        }
        Ending::Measured(Box::new(evidence))
    }
}

/// How the application ended, from its engine; the cgroup's own counters come first.
fn add(ended: Ended, mut evidence: Evidence) -> Evidence {
    (evidence.exit.code, evidence.exit.signal) = (ended.code, ended.signal);
    if ended.is_oom {
        let seen = evidence.cgroup.oom_kills.unwrap_or_default();
        evidence.cgroup.oom_kills = Some(seen.max(1));
    }
    evidence
}

fn lost(why: String, said: Option<String>) -> Ending {
    let said = said.map_or_else(String::new, |said| format!("; it said: {said}"));
    Ending::Measured(Box::new(Evidence {
        failure: Some(Failure {
            cause: Invalid::RuntimeLost,
            detail: format!("{why}{said}"),
        }),
        ..Evidence::default()
    }))
}

/// The lines of a program that ends with its container, or is ended with this.
struct Lines {
    program: Child,
    lines: Receiver<String>,
}

impl Lines {
    fn of(mut program: Child) -> Result<Self, String> {
        let output = program.stdout.take().ok_or("it has no output")?;
        let (tell, lines) = channel();
        let reading = std::thread::Builder::new().name("lines".to_owned());
        let reading = reading.spawn(move || {
            let mut all = BufReader::new(output).lines().map_while(Result::ok);
            // Until nobody wants more.
            while all.next().is_some_and(|line| tell.send(line).is_ok()) {}
        });
        reading.map_err(|e| e.to_string())?;
        Ok(Self { program, lines })
    }

    fn next(&self) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(POLL)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // One that has ended is only reaped.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_says_of_the_end_is_added_to_what_the_counters_said() {
        let ended = Ended {
            code: None,
            signal: Some(9),
            is_oom: true,
        };
        let judged = add(ended, Evidence::default());
        assert_eq!(judged.exit.signal, Some(9));
        assert_eq!(judged.cgroup.oom_kills, Some(1));
        let silent = Ended {
            is_oom: false,
            ..ended
        };
        assert_eq!(add(silent, Evidence::default()).cgroup.oom_kills, None);
    }

    #[test]
    fn a_trial_that_was_lost_says_why() {
        let Ending::Measured(evidence) = lost("it ended".to_owned(), Some("no order".to_owned()))
        else {
            panic!("it is evidence");
        };
        let failure = evidence.failure.expect("it was lost");
        assert_eq!(failure.detail, "it ended; it said: no order");
        assert_eq!(failure.cause, Invalid::RuntimeLost);
    }
}
