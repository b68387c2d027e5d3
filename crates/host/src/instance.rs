//! One prepared application on this machine: the phases of a trial, from start to stop.
//!
//! Owns the state of a trial and who tells it what: init's events, the readiness probe, the
//! output and the load generator all send a [`Note`] to the one thread that runs the trial.
//! Making it is in [`super::prepare`], ending it in [`super::stop`], load in [`super::generator`].

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, Failure, Invalid, NoiseEvidence, Phase, StartEvidence};
use loadline_cgroup::{Group, Layout, Noise, NoiseMeter, Sample};
use loadline_sizing::Bytes;

use super::Options;
use super::at_ready;
use super::cpus::CpuPlan;
use super::errors::{cgroup_unable, unable};
use super::fleet::Place;
use super::generator::{self, Line};
use super::group::TrialGroup;
use super::listener;
use super::neighbour::Neighbour;
use super::output::Output;
use super::probe::{Finding, Probe, Probing, Question};
use super::protocol::Event;
use super::recording::Recording;
use super::samplefile::SampleFile;
use super::sandbox::Sandbox;
use super::scratch::Scratch;
use super::watching;
use crate::backend::monotonic_ns;
use crate::backend::{
    BackendError, Driven, Instance, InstanceSpec, LoadPhase, Network, Observer, Progress, Readiness,
};

/// How often a waiting trial looks at its observer.
const TICK: Duration = Duration::from_millis(50);

/// What the threads of a trial tell it.
pub(super) enum Note {
    /// From init.
    Event(Event),
    /// Every process of the trial is dead.
    Gone,
    /// The line that the experiment names was written; it does not decide.
    LogLine {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// The line that says "ready" was written.
    LineFound {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// From the readiness probe.
    Probe(Finding),
    /// From the load generator.
    Generator(Line),
}

/// How the application's process ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// One application of a trial. The fields are dropped in order: processes before their group,
/// the group before their files.
pub(super) struct LocalInstance {
    pub(super) spec: InstanceSpec,
    pub(super) place: Place,
    pub(super) options: Options,
    pub(super) layout: Layout,
    pub(super) plan: CpuPlan,
    pub(super) is_jvm: bool,
    /// Home of the JDK whose `java` is the command, where it is one.
    pub(super) jdk: Option<PathBuf>,
    pub(super) recording: Option<Recording>,
    pub(super) sandbox: Sandbox,
    pub(super) output: Output,
    pub(super) group: TrialGroup,
    pub(super) generator_group: Option<TrialGroup>,
    pub(super) neighbour: Option<Neighbour>,
    pub(super) scratch: Scratch,
    pub(super) notes: Receiver<Note>,
    pub(super) tell: Sender<Note>,
    pub(super) state: State,
}

/// What is known of the trial so far.
#[derive(Default)]
pub(super) struct State {
    pub(super) exec_ns: Option<u64>,
    pub(super) ready_ns: Option<u64>,
    pub(super) log_line_ns: Option<u64>,
    pub(super) ended: Option<Ended>,
    pub(super) is_gone: bool,
    pub(super) is_oom: bool,
    /// Why the command could not be executed.
    pub(super) stage_failure: Option<String>,
    pub(super) last_probe: String,
    pub(super) foreign_listener: bool,
    /// Ends of the generator's seconds, CLOCK_MONOTONIC.
    pub(super) load_ends: Vec<u64>,
    pub(super) measure: Option<(u64, u64)>,
    /// RSS and PSS right after the measure phase.
    pub(super) loaded: (Option<Bytes>, Option<Bytes>),
    pub(super) noise: NoiseEvidence,
    pub(super) warnings: Vec<String>,
    /// How it became ready, for the sum of several.
    pub(super) start: StartEvidence,
    pub(super) failure: Option<Failure>,
}

impl State {
    /// Takes a note. Notes of the generator are for [`generator`].
    pub(super) fn take(&mut self, note: Note) {
        match note {
            Note::Event(Event::Exec { at_ns }) => self.exec_ns = Some(at_ns),
            Note::Event(Event::Exited { code, signal, .. }) => {
                self.ended = Some(Ended { code, signal });
            }
            Note::Event(Event::Failed { detail }) => self.stage_failure = Some(detail),
            Note::Event(Event::Held { .. } | Event::Prepared) | Note::Generator(_) => {}
            Note::Gone => self.is_gone = true,
            Note::LineFound { at_ns } => self.ready_ns = Some(at_ns),
            Note::LogLine { at_ns } => self.log_line_ns = Some(at_ns),
            Note::Probe(Finding::Ready { at_ns, detail }) => {
                self.ready_ns = Some(at_ns);
                self.last_probe = detail;
            }
            Note::Probe(Finding::NotYet { detail }) => self.last_probe = detail,
            Note::Probe(Finding::Foreign) => self.foreign_listener = true,
            Note::Probe(Finding::Broken { detail }) => {
                self.failure = Some(Failure {
                    cause: Invalid::ToolError,
                    detail,
                });
            }
        }
    }

    /// Whether the application has ended, or everything.
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some() || self.is_gone
    }
}

impl LocalInstance {
    /// Waits for the next note, at most a tick, then takes all that are there. Looks after the
    /// out-of-memory rule too.
    pub(super) fn tick(&mut self) {
        // Outside of load phases a generator has nothing to say that matters.
        drop(self.tick_for_generator());
    }

    /// The same; hands out what the generator said.
    pub(super) fn tick_for_generator(&mut self) -> Vec<Line> {
        // It cannot be disconnected: this instance holds a sender itself.
        let first = self.notes.recv_timeout(TICK).ok();
        let more: Vec<Note> = self.notes.try_iter().collect();
        let mut lines = Vec::new();
        for note in first.into_iter().chain(more) {
            match note {
                Note::Generator(line) => lines.push(line),
                note => self.state.take(note),
            }
        }
        self.end_after_oom();
        lines
    }

    /// A container dies as a whole when the kernel kills one of its processes for memory. v2 does
    /// that by memory.oom.group, which `Group::apply` sets; for v1 it is done here.
    pub(super) fn end_after_oom(&mut self) {
        let is_oom = self.recording.as_ref().is_some_and(Recording::is_oom);
        if is_oom && !self.state.is_oom {
            self.state.is_oom = true;
            self.group.kill_quietly();
        }
    }

    /// A sample of the trial's group now; `None` when it is gone.
    pub(super) fn sample(&self) -> Option<Sample> {
        self.group.group().read().ok()
    }

    fn record(&mut self) -> Result<(), BackendError> {
        let all = self.plan.application.iter().chain(&self.plan.generator);
        let machine = all.max().map_or(0, |cpu| *cpu as usize + 1);
        let file = SampleFile::create(&self.spec.samples, machine);
        let file = file.map_err(|e| invalid(e.to_string()))?;
        let options = watching::options(self.spec.sampling, &self.spec.configuration);
        let cpus = self.plan.application.len();
        let own = self.plan.generator.clone();
        let recording = Recording::start(self.group.group(), options, cpus, own, file);
        self.recording = Some(recording.map_err(|e| cgroup_unable("sampling the cgroup", &e))?);
        Ok(())
    }

    /// Begins to watch what else happens on the machine; `generator` is the process that makes
    /// the load. Noise that cannot be measured is told as `None` in the record; of several instances
    /// the fleet measures it.
    pub(super) fn begin_window(&self, generator: Option<u32>) -> Option<NoiseMeter> {
        if self.place.of > 1 {
            return None;
        }
        let groups = self.groups();
        let alone = generator.filter(|_| self.generator_group.is_none());
        NoiseMeter::start(&self.layout, &groups, alone.as_slice()).ok()
    }

    /// All groups of this instance, the application's first.
    pub(super) fn groups(&self) -> Vec<&Group> {
        let mut groups = vec![self.group.group()];
        groups.extend(self.generator_group.as_ref().map(TrialGroup::group));
        groups.extend(self.neighbour.as_ref().map(Neighbour::group));
        groups
    }

    /// RSS and PSS of the application now, from smaps_rollup.
    pub(super) fn weigh(&mut self) {
        if !self.state.is_over() {
            let processes = self.group.group().processes().unwrap_or_default();
            self.state.loaded = at_ready::memory(&processes);
        }
    }

    /// Ends the window; the last one counts: the measure phase of a trial that got so far.
    pub(super) fn end_window(&mut self, meter: Option<NoiseMeter>) {
        if let Some(noise) = meter.and_then(|meter| meter.finish().ok()) {
            self.state.noise = noise_evidence(noise);
        }
    }

    /// One load phase: this instance's share of it, from a moment on CLOCK_MONOTONIC or at once.
    pub(super) fn drive_from(
        &mut self,
        load: &LoadPhase,
        from_ns: Option<u64>,
        observer: &mut dyn Observer,
    ) -> Result<Driven, BackendError> {
        let driven = generator::drive(self, load, from_ns, observer)?;
        if load.phase == Phase::Measure {
            self.state.measure = Some((driven.start_ns, driven.end_ns));
        }
        let ends = driven.seconds.iter().map(|second| second.at_ns);
        self.state.load_ends.extend(ends);
        Ok(driven)
    }

    fn refuse_taken_port(&self) -> Result<(), BackendError> {
        let port = match (self.spec.network, &self.spec.readiness) {
            (Network::Own, _) | (_, Readiness::LogLine { .. }) => return Ok(()),
            (_, Readiness::Http { port, .. } | Readiness::Tcp { port }) => *port,
        };
        port_is_free(port)
    }

    fn probe(&self) -> Result<Option<Probing>, BackendError> {
        let (port, question) = match &self.spec.readiness {
            Readiness::Http { port, path } => (*port, Question::Http { path: path.clone() }),
            Readiness::Tcp { port } => (*port, Question::Tcp),
            Readiness::LogLine { .. } => return Ok(None),
        };
        let probe = self.probe_for(port, question)?;
        let tell = self.tell.clone();
        let tell = move |finding| drop(tell.send(Note::Probe(finding)));
        let started = Probing::start(probe, tell);
        started.map(Some).map_err(tool_error("starting the probe"))
    }

    pub(super) fn probe_for(&self, port: u16, question: Question) -> Result<Probe, BackendError> {
        let group = self.group.group().clone();
        let processes = move || group.processes().unwrap_or_default();
        let network = match self.spec.network {
            Network::Host => None,
            Network::Own => {
                let network = self.sandbox.network();
                Some(network.map_err(tool_error("opening the trial's network namespace"))?)
            }
        };
        Ok(Probe {
            port,
            question,
            processes: network.is_none().then(|| Box::new(processes) as _),
            network,
            cpus: self.plan.generator.clone(),
        })
    }

    /// Waits for readiness; returns when there is nothing more to wait for.
    fn await_ready(
        &mut self,
        deadline: Duration,
        observer: &mut dyn Observer,
    ) -> Result<(), BackendError> {
        let begin = Instant::now();
        let mut probing = None;
        while begin.elapsed() < deadline {
            self.tick();
            if let Some(detail) = self.state.stage_failure.take() {
                return Err(unable("starting the application", detail, START_HINT));
            }
            if self.state.foreign_listener {
                return Err(foreign(&self.spec.readiness));
            }
            let is_decided = self.state.ready_ns.is_some() || self.state.failure.is_some();
            if is_decided || self.state.is_over() {
                break;
            }
            if probing.is_none() && self.state.exec_ns.is_some() {
                probing = self.probe()?;
            }
            observer.progress(Progress {
                phase: Phase::Start,
                elapsed: begin.elapsed(),
                p99: None,
                rate: None,
            });
            if observer.interrupted() {
                return Err(BackendError::Interrupted);
            }
        }
        Ok(())
    }

    fn start_evidence(&self, deadline: Duration) -> StartEvidence {
        let state = &self.state;
        let sample = self.sample();
        let cpu = sample.as_ref().map(|sample| &sample.cpu);
        // An application that has ended was never ready, even if a probe got through first.
        let ready = state.ready_ns.filter(|_| !state.is_over());
        let last_probe = match &self.spec.readiness {
            Readiness::LogLine { contains } if ready.is_none() => {
                format!("no line with `{contains}`")
            }
            Readiness::LogLine { contains } => format!("a line with `{contains}`"),
            _ => state.last_probe.clone(),
        };
        StartEvidence {
            ready: ready
                .zip(state.exec_ns)
                .map(|(ready, exec)| Duration::from_nanos(ready.saturating_sub(exec))),
            deadline,
            cpu: cpu.and_then(|cpu| cpu.usage),
            throttled: cpu.and_then(|cpu| cpu.throttled_time),
            last_probe,
            ..self.at_ready()
        }
    }

    /// What the application's processes had when it was ready, which is now.
    fn at_ready(&self) -> StartEvidence {
        if self.state.ready_ns.is_none() || self.state.is_over() {
            return StartEvidence::default();
        }
        let processes = self.group.group().processes().unwrap_or_default();
        at_ready::read(&processes)
    }

    /// Exec to the line that the experiment names.
    pub(super) fn log_line(&self) -> Option<Duration> {
        let since = self.state.log_line_ns?.checked_sub(self.state.exec_ns?);
        since.map(Duration::from_nanos)
    }
}

const START_HINT: &str =
    "the program must be executable for the application's user; another user: --user";

impl Instance for LocalInstance {
    fn start(
        &mut self,
        deadline: Duration,
        observer: &mut dyn Observer,
    ) -> Result<StartEvidence, BackendError> {
        self.refuse_taken_port()?;
        self.record()?;
        let noise = self.begin_window(None);
        let started = self.sandbox.start();
        started.map_err(|e| invalid(format!("starting the application: {e}")))?;
        self.await_ready(deadline, observer)?;
        self.end_window(noise);
        Ok(self.start_evidence(deadline))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        match &self.spec.readiness {
            Readiness::Http { port, .. } | Readiness::Tcp { port } => {
                vec![SocketAddr::from((Ipv4Addr::LOCALHOST, *port))]
            }
            Readiness::LogLine { .. } => Vec::new(),
        }
    }

    fn drive(
        &mut self,
        load: &LoadPhase,
        observer: &mut dyn Observer,
    ) -> Result<Driven, BackendError> {
        let driven = self.drive_from(load, None, observer)?;
        if load.phase == Phase::Measure {
            self.weigh();
        }
        Ok(driven)
    }

    fn stop(&mut self, grace: Duration, observer: &mut dyn Observer) -> Evidence {
        super::stop::stop(self, grace, observer)
    }
}

/// A window's noise as a record has it.
pub(super) fn noise_evidence(noise: Noise) -> NoiseEvidence {
    NoiseEvidence {
        steal: noise.steal,
        foreign_cpu: noise.foreign_cpu,
        host_cpu_pressure: noise.host_cpu_pressure,
        contention: noise.contention,
        swap_in_pages: noise.swap_in_pages,
        clock_jump: Some(noise.clock_jump),
        outer_throttled: noise.outer_throttled,
    }
}

/// Refuses to start an application whose port another server has: its answers would be measured.
pub(super) fn port_is_free(port: u16) -> Result<(), BackendError> {
    match listener::taken(port) {
        None => Ok(()),
        Some(error) => Err(unable(
            &format!("port {port} of this machine"),
            format!("another program listens on it ({error}); nothing was sent to it"),
            "stop the other program, choose another port, or give the application a network of its own (the default)",
        )),
    }
}

fn foreign(readiness: &Readiness) -> BackendError {
    let port = match readiness {
        Readiness::Http { port, .. } | Readiness::Tcp { port } => *port,
        Readiness::LogLine { .. } => 0,
    };
    invalid(format!(
        "port {port} is served by a process that is not part of the trial; nothing was sent to it"
    ))
}

pub(super) fn invalid(detail: String) -> BackendError {
    BackendError::Invalid {
        cause: Invalid::ToolError,
        detail,
    }
}

pub(super) fn tool_error(step: &str) -> impl FnOnce(std::io::Error) -> BackendError + '_ {
    move |error| invalid(format!("{step}: {error}"))
}

/// The note for a line of the output.
pub(super) fn line_found() -> Note {
    Note::LineFound {
        at_ns: monotonic_ns(),
    }
}
