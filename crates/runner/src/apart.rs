//! A remote engine as a host: each trial is two containers there, and the output of the first one
//! carries the trial.
//!
//! Owns the way from log lines to the event log on this machine, when the application may start,
//! and what only the engine knows about its end. [`loadline_trial::apart`] runs there. After a lost
//! connection the log is requested again, and duplicate lines are dropped by offset.

use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadline_analysis::record::{
    Evidence, ExitEvidence, InvalidReason, MachineDescription, MeasurementFailure, StartEvidence,
    TrialPhase,
};
use loadline_protocol::log::{EventLogReader, LogEntry};
use loadline_protocol::{ContainerEngine, RunRefusal, TrialEnding, TrialEvent, TrialOrder};
use loadline_trial::apart::{self, ApartContainers, ContainerEnd};
use loadline_trial::oci::image::EngineImage;
use loadline_trial::pod::{self, ImageReading, LineEffect};
use loadline_trial::run_output::RunOutput;

use crate::host::{Delivery, TrialHandle, TrialHost, WRITABLE};

/// Longest time between two looks at what came.
const POLL: Duration = Duration::from_millis(50);

/// An application that was started but not seen for this long is looked up.
const UNSEEN: Duration = Duration::from_secs(10);

const AWAY: Duration = Duration::from_secs(60);
const LAST: Duration = Duration::from_secs(20);
const STOPPING: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct ApartHost {
    engine: ContainerEngine,
    images: Vec<(String, ImageReading)>,
    machine: MachineDescription,
}

impl ApartHost {
    /// Removes what a killed loadline of this machine left there. The images were looked into when
    /// they were found; all are of one engine.
    pub fn new(images: &[&EngineImage]) -> Result<(Self, apart::EngineSweep), RunRefusal> {
        let refused = |why: &str| {
            let hint = "name one for all: --engine podman or docker";
            RunRefusal::new("an engine apart", why, hint)
        };
        let first = images.first().ok_or_else(|| refused("there is no image"))?;
        if images.iter().any(|image| image.engine != first.engine) {
            return Err(refused("the images are those of several engines"));
        }
        let looked =
            |image: &&EngineImage| Some((image.id.clone(), image.seen.as_deref()?.clone()));
        let images: Vec<_> = images.iter().filter_map(looked).collect();
        let seen = images.first();
        let (_, seen) = seen.ok_or_else(|| refused("the image was not examined"))?;
        let host = Self {
            engine: first.engine.clone(),
            machine: MachineDescription {
                apart: first.engine.apart.clone(),
                ..seen.machine.clone()
            },
            images,
        };
        let swept = apart::sweep_engine(&host.engine);
        Ok((host, swept))
    }
}

impl TrialHost for ApartHost {
    fn host_machine(&self) -> MachineDescription {
        self.machine.clone()
    }

    fn slot_count(&self) -> usize {
        1
    }

    fn order_refusal(&self, order: &TrialOrder) -> Option<RunRefusal> {
        let what = apart::unsupported_apart(order)?;
        let kind = self.engine.kind;
        let why = match &self.engine.apart {
            Some(why) => format!("trials on a remote {kind} cannot do this yet ({why})"),
            None => "trials next to its containers cannot do this yet".to_owned(),
        };
        let hint = "measure it where the engine runs, as root: docs/guides/images.md";
        Some(RunRefusal::new(what, why, hint))
    }

    fn launch_trial(
        &mut self,
        _slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal> {
        let id = order.app.image().map_or("", |image| &image.id);
        let seen = self.images.iter().find(|(known, _)| known == id);
        let (_, seen) = seen.ok_or_else(|| {
            let why = "it was not examined";
            RunRefusal::new("starting the image", why, "run loadline again")
        })?;
        let (log, reading) = delivery.make_log()?;
        let reading = EventLogReader::new(reading);
        let (tell, events) = channel();
        let asked = Arc::new(AtomicBool::new(false));
        let follow = ApartFollower {
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
            let _ = tell.send(TrialEvent::Ended(ending));
        });
        Ok(Box::new(ApartTrial {
            events,
            asked,
            thread: Some(thread.map_err(|e| RunRefusal::new("starting a thread", e, WRITABLE))?),
            is_over: false,
        }))
    }
}

#[derive(Debug)]
struct ApartTrial {
    events: Receiver<TrialEvent>,
    asked: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
}

impl TrialHandle for ApartTrial {
    fn next(&mut self) -> Option<TrialEvent> {
        if self.is_over {
            return None;
        }
        let event = match self.events.try_recv() {
            Ok(event) => event,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                let why = "the thread of the trial died".to_owned();
                TrialEvent::Ended(runtime_lost_ending(why, None))
            }
        };
        self.is_over = matches!(event, TrialEvent::Ended(_));
        Some(event)
    }

    fn stop_trial(&mut self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

impl Drop for ApartTrial {
    fn drop(&mut self) {
        self.stop_trial();
        if let Some(thread) = self.thread.take() {
            // One that died has removed its containers on its way.
            let _ = thread.join();
        }
    }
}

struct ApartFollower {
    engine: ContainerEngine,
    seen: ImageReading,
    order: TrialOrder,
    asked: Arc<AtomicBool>,
    log: File,
    reading: EventLogReader<File>,
    written: u64,
    is_seen: bool,
}

impl ApartFollower {
    fn carry_out(mut self, tell: &Sender<TrialEvent>) -> TrialEnding {
        let mut pair = match ApartContainers::make_both(&self.engine, &self.order, &self.seen) {
            Ok(pair) => pair,
            Err(refusal) => return TrialEnding::Refused(refusal),
        };
        let mut ending = match self.until_it_ends(&pair, tell) {
            Ok(TrialEnding::Measured(evidence)) => self.complete_evidence(&pair, *evidence),
            Ok(ending) => ending,
            Err(why) => runtime_lost_ending(why, pair.own_words()),
        };
        if let (Err(error), TrialEnding::Measured(evidence)) = (pair.remove_both(), &mut ending) {
            let text = format!("not removed, the next start tries it again: {error}");
            evidence.warnings.push(text);
        }
        ending
    }

    fn until_it_ends(
        &mut self,
        pair: &ApartContainers,
        tell: &Sender<TrialEvent>,
    ) -> Result<TrialEnding, String> {
        let (mut started, mut asked, mut heard) = (None, None, Instant::now());
        loop {
            let follow = pair.follow_output().map_err(|e| e.to_string())?;
            let lines = ContainerLogLines::from_child(follow)?;
            loop {
                match lines.next() {
                    Ok(line) => {
                        heard = Instant::now();
                        let taken = pod::append_line(&mut self.log, &line, &mut self.written)?;
                        if taken == LineEffect::Armed && started.is_none() {
                            started = Some(Instant::now());
                            if let Err(refusal) = pair.start_app_container() {
                                return Ok(TrialEnding::Refused(refusal));
                            }
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if let Some(ending) = self.forward_new_events(tell)? {
                    return Ok(ending);
                }
                if self.asked.load(Ordering::Relaxed) && asked.is_none() {
                    asked = Some(Instant::now());
                    pair.ask_to_end();
                }
                if asked.is_some_and(|asked: Instant| asked.elapsed() > STOPPING) {
                    return Ok(TrialEnding::Stopped);
                }
                if started.is_some_and(|at: Instant| at.elapsed() > UNSEEN) && !self.is_seen {
                    return self.explain_unseen_application(pair);
                }
            }
            match pair.is_running() {
                Some(false) => return Err("loadline's own container ended midway".to_owned()),
                None if heard.elapsed() > AWAY => {
                    return Err("the engine no longer answers".to_owned());
                }
                _ => std::thread::sleep(POLL * 10),
            }
        }
    }

    fn forward_new_events(
        &mut self,
        tell: &Sender<TrialEvent>,
    ) -> Result<Option<TrialEnding>, String> {
        loop {
            match self.reading.next_entry().map_err(|e| e.to_string())? {
                Some(LogEntry::Event(TrialEvent::Ended(ending))) => return Ok(Some(ending)),
                Some(LogEntry::Event(event)) => {
                    self.is_seen |= matches!(
                        event,
                        TrialEvent::Phase {
                            phase: TrialPhase::Start,
                            ..
                        }
                    );
                    // Nobody listens to a trial that was dropped.
                    let _ = tell.send(event);
                }
                Some(LogEntry::Piece(_)) => {}
                None => return Ok(None),
            }
        }
    }

    fn explain_unseen_application(&self, pair: &ApartContainers) -> Result<TrialEnding, String> {
        let Some(ended) = pair.container_end() else {
            let why = "it runs, but a second container of the same user cannot inspect it: a security module, user namespaces or a virtual machine per container prevents that";
            let hint = "measure it where the engine runs, as root: docs/guides/images.md";
            let what = "reading the counters of the application's container";
            return Ok(TrialEnding::Refused(RunRefusal::new(what, why, hint)));
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
        let mut evidence = Evidence {
            last_output: pair.last_lines(&self.order.secrets),
            ..add_exit(ended, evidence)
        };
        self.settle_run(pair, &mut evidence);
        Ok(TrialEnding::Measured(Box::new(evidence)))
    }

    fn settle_run(&self, pair: &ApartContainers, evidence: &mut Evidence) {
        let Some(mut output) = RunOutput::for_order(&self.order) else {
            return;
        };
        match pair.read_output(|line| output.take_line(line)) {
            Ok(()) => output.settle_end(evidence),
            Err(error) => {
                let lost = MeasurementFailure::new(InvalidReason::RuntimeLost, error.to_string());
                evidence.failure.get_or_insert(lost);
            }
        }
    }

    fn complete_evidence(&self, pair: &ApartContainers, mut evidence: Evidence) -> TrialEnding {
        let begin = Instant::now();
        while begin.elapsed() < LAST {
            if let Some(ended) = pair.container_end() {
                evidence = add_exit(ended, evidence);
                break;
            }
            std::thread::sleep(POLL);
        }
        self.settle_run(pair, &mut evidence);
        // It is the engine's machine, whichever: there is but one.
        evidence.node = None;
        let is_clean = evidence.start.ready.is_some() && !evidence.exit.before_stop;
        if !is_clean {
            evidence.last_output = pair.last_lines(&self.order.secrets);
        }
        TrialEnding::Measured(Box::new(evidence))
    }
}

fn add_exit(ended: ContainerEnd, mut evidence: Evidence) -> Evidence {
    (evidence.exit.code, evidence.exit.signal) = (ended.code, ended.signal);
    if ended.is_oom {
        let seen = evidence.cgroup.oom_kills.unwrap_or_default();
        evidence.cgroup.oom_kills = Some(seen.max(1));
    }
    evidence
}

fn runtime_lost_ending(why: String, said: Option<String>) -> TrialEnding {
    let said = said.map_or_else(String::new, |said| format!("; it said: {said}"));
    let lost = MeasurementFailure::new(InvalidReason::RuntimeLost, format!("{why}{said}"));
    TrialEnding::Measured(Box::new(Evidence::failed(lost)))
}

const LINES: usize = 256;

struct ContainerLogLines {
    program: Child,
    lines: Receiver<String>,
}

impl ContainerLogLines {
    fn from_child(mut program: Child) -> Result<Self, String> {
        let output = program.stdout.take().ok_or("it has no output")?;
        // It blocks while no reader takes lines: the application's output fills no memory.
        let (tell, lines) = sync_channel(LINES);
        let reading = std::thread::Builder::new().name("lines".to_owned());
        let reading = reading.spawn(move || {
            let (mut output, mut block) = (output, vec![0; 16 << 10]);
            let (mut splitter, mut is_wanted) = (pod::LineSplitter::default(), true);
            // Until the reader has gone.
            while let (true, Ok(length @ 1..)) = (is_wanted, output.read(&mut block)) {
                let tell = |line| is_wanted &= tell.send(line).is_ok();
                splitter.take_bytes(&block[..length], tell);
            }
        });
        reading.map_err(|e| e.to_string())?;
        Ok(Self { program, lines })
    }

    fn next(&self) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(POLL)
    }
}

impl Drop for ContainerLogLines {
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
        let ended = ContainerEnd {
            code: None,
            signal: Some(9),
            is_oom: true,
        };
        let judged = add_exit(ended, Evidence::default());
        assert_eq!(judged.exit.signal, Some(9));
        assert_eq!(judged.cgroup.oom_kills, Some(1));
        let silent = ContainerEnd {
            is_oom: false,
            ..ended
        };
        assert_eq!(add_exit(silent, Evidence::default()).cgroup.oom_kills, None);
    }

    #[test]
    fn a_trial_that_was_lost_says_why() {
        let TrialEnding::Measured(evidence) =
            runtime_lost_ending("it ended".to_owned(), Some("no order".to_owned()))
        else {
            panic!("it is evidence");
        };
        let failure = evidence.failure.expect("it was lost");
        assert_eq!(failure.detail, "it ended; it said: no order");
        assert_eq!(failure.cause, InvalidReason::RuntimeLost);
    }
}
