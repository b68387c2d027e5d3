//! One dependency of a trial: contained, started, ready, seeded, watched, ended.
//!
//! Owns what is done with one of them and what its record says. It is held by the same machinery as
//! the application, so it dies with the trial as that does. All of a trial: [`crate::dependencies`].

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use loadline_analysis::record::{DependencyEvidence, Failure, Invalid};
use loadline_cgroup::{Controller, Group, Limits};
use loadline_trial::{App, Dependency, Order, Readiness};

use crate::clock::monotonic_ns;
use crate::container::{Container, Frame, Net, SHM};
use crate::counted::Counted;
use crate::cpus::{self, CpuPlan};
use crate::group::TASKS;
use crate::halt::{self, Halt, refused};
use crate::holder::Held;
use crate::instance::State;
use crate::keeper::Ended;
use crate::notes::{Note, Teller};
use crate::output::{Output, Watch};
use crate::probe::{Probe, Probing};
use crate::program::Program;
use crate::redactor::Redactor;
use crate::site::Site;
use crate::trial::Stop;

/// How long to wait for news at a time.
const TICK: Duration = Duration::from_millis(20);

/// How long its last words may take once it is dead; milliseconds as a rule.
const READ: Duration = Duration::from_secs(2);

/// Of what a failed one said, so many lines stand in the reason.
const LAST: usize = 3;

/// A command that runs beside a dependency and ends.
struct Errand {
    /// Its name in an experiment, and in those of cgroups.
    name: &'static str,
    command: fn(&Dependency) -> &[String],
    hint: &'static str,
}

const SEED: Errand = Errand {
    name: "seed",
    command: |dependency| &dependency.seed,
    hint: "run it by hand against the dependency; it runs once, in the dependency's environment and directory, when that is ready",
};

const RESET: Errand = Errand {
    name: "reset",
    command: |dependency| &dependency.reset,
    hint: "run it by hand against the dependency after some requests; it runs between two trials, in the dependency's environment and directory, and must leave what the seed left",
};

/// A dependency that runs. The fields are dropped in order: who watches before what is watched.
pub(crate) struct Running {
    probing: Option<Probing>,
    process: Process,
    counted: Counted,
}

impl Running {
    /// Makes it with its limits, and starts it.
    ///
    /// # Errors
    /// [`Halt`]; what was made is gone again.
    pub(crate) fn start(
        site: &Site,
        order: &Order,
        dependency: &Dependency,
        plan: &CpuPlan,
        network: Net,
    ) -> Result<Self, Halt> {
        let cpus = site.dependency_cpus(dependency, plan)?;
        let limits = limits(site, dependency, &cpus);
        site.refuse_too_large(&limits, 1)?;
        let to = Start {
            site,
            order,
            dependency,
            suffix: format!("dependency-{}", dependency.name),
            limits,
            cpus: &cpus,
            network,
            own: &plan.generator,
        };
        let watched = match &dependency.readiness {
            Readiness::LogLine { contains } => Some(contains.clone()),
            Readiness::Http { .. } | Readiness::Tcp { .. } | Readiness::Command { .. } => None,
        };
        let mut process = to.prepare(&dependency.app, watched)?;
        process.container.start()?;
        let evidence = DependencyEvidence {
            name: dependency.name.clone(),
            image: match &dependency.app {
                App::Image(image) => Some(image.id.clone()),
                App::Command { .. } => None,
            },
            cpu_count: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            beside: plan.beside(&cpus),
            cpus: cpus::list(&cpus),
            cpu_limit: dependency.cpu,
            memory_limit: dependency.memory,
            ..DependencyEvidence::default()
        };
        Ok(Self {
            probing: None,
            counted: Counted::new(process.container.group().clone(), evidence),
            process,
        })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`Halt::Failed`] where it never gets there.
    pub(crate) fn await_ready(
        &mut self,
        dependency: &Dependency,
        own: &[u32],
        stop: Stop<'_>,
    ) -> Result<(), Halt> {
        let begin = Instant::now();
        while self.process.state.ready_ns.is_none() {
            if stop() {
                return Err(Halt::Stopped);
            }
            self.process.take(TICK);
            let state = &mut self.process.state;
            if let Some(detail) = state.stage_failure.take() {
                let hint =
                    "the program must be executable for the dependency's user: user = \"1000\"";
                return Err(refused("starting it", detail, hint));
            }
            if state.foreign_listener {
                return Err(self.failed("another program of the machine listens on its port"));
            }
            if let Some(failure) = state.failure.take() {
                return Err(Halt::Failed(failure));
            }
            if state.is_over() {
                let how = state.how_it_ended();
                return Err(self.failed(&format!("it ended before it was ready ({how})")));
            }
            if begin.elapsed() > dependency.start_deadline {
                let last = match &dependency.readiness {
                    Readiness::LogLine { contains } => format!("no line with `{contains}`"),
                    _ => state.last_probe.clone(),
                };
                let waited = dependency.start_deadline.as_secs_f64();
                return Err(self.failed(&format!("it was not ready within {waited} s ({last})")));
            }
            if self.probing.is_none() && state.exec_ns.is_some() {
                self.probing = self.process.probe(&dependency.readiness, own)?;
            }
        }
        self.probing = None;
        let state = &self.process.state;
        let ready = state.ready_ns.zip(state.exec_ns);
        self.counted.evidence.ready =
            ready.map(|(ready, exec)| Duration::from_nanos(ready.saturating_sub(exec)));
        Ok(())
    }

    /// Runs its seed, in its network and on its CPUs.
    ///
    /// # Errors
    /// [`Halt::Refused`] with what a failed one said.
    pub(crate) fn seed(
        &mut self,
        of: (&Site, &Order),
        dependency: &Dependency,
        plan: &CpuPlan,
        stop: Stop<'_>,
    ) -> Result<(), Halt> {
        let took = self.run(of, dependency, plan, &SEED, stop)?;
        self.counted.evidence.seed = took;
        Ok(())
    }

    /// Runs its reset in the same way, between two trials; gives how long it took.
    ///
    /// # Errors
    /// [`Halt::Refused`] with what a failed one said.
    pub(crate) fn reset(
        &mut self,
        of: (&Site, &Order),
        dependency: &Dependency,
        plan: &CpuPlan,
        stop: Stop<'_>,
    ) -> Result<Option<Duration>, Halt> {
        self.run(of, dependency, plan, &RESET, stop)
    }

    fn run(
        &mut self,
        (site, order): (&Site, &Order),
        dependency: &Dependency,
        plan: &CpuPlan,
        errand: &Errand,
        stop: Stop<'_>,
    ) -> Result<Option<Duration>, Halt> {
        let command = (errand.command)(dependency);
        if command.is_empty() {
            return Ok(None);
        }
        let cpus = site.dependency_cpus(dependency, plan)?;
        let to = Start {
            site,
            order,
            dependency,
            suffix: format!("{}-{}", errand.name, dependency.name),
            limits: Limits::default(),
            cpus: &cpus,
            network: self.network(),
            own: &plan.generator,
        };
        let mut ran = to.prepare(&dependency.beside(command), None)?;
        let begin = Instant::now();
        ran.container.start()?;
        while !ran.state.is_over() && begin.elapsed() < dependency.start_deadline {
            ran.take(TICK);
            self.process.take(Duration::ZERO);
            if let Some(detail) = ran.state.stage_failure.take() {
                let what = format!("starting its {}", errand.name);
                return Err(refused(&what, detail, errand.hint));
            }
            if stop() {
                return Err(Halt::Stopped);
            }
        }
        let is_late = !ran.state.is_over();
        let ended = ran.state.ended;
        let how = match is_late {
            true => format!("it did not end within {:?}", dependency.start_deadline),
            false => ran.state.how_it_ended(),
        };
        let said = ran.end();
        match ended {
            Some(ended) if ended.code == Some(0) => Ok(Some(begin.elapsed())),
            _ => Err(refused(
                &format!("its {}", errand.name),
                format!("{how}{}", quoted(&said)),
                errand.hint,
            )),
        }
    }

    /// The network that the application and other dependencies share with it.
    pub(crate) fn network(&self) -> Net {
        self.process.container.network()
    }

    /// Its cgroup.
    pub(crate) fn group(&self) -> &Group {
        self.counted.group()
    }

    /// What is counted of it.
    pub(crate) fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }

    /// What its record says so far.
    pub(crate) fn evidence(&self) -> &DependencyEvidence {
        &self.counted.evidence
    }

    /// What is to be said of one that has ended.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        let failure = self.look()?;
        Some(Ended {
            name: self.evidence().name.clone(),
            how: self.process.state.how_it_ended(),
            last_output: self.process.output.last_lines(),
            failure,
        })
    }

    /// Takes what it told, without waiting; why the trial cannot go on, if it has ended.
    pub(crate) fn look(&mut self) -> Option<Failure> {
        self.process.take(Duration::ZERO);
        let state = &self.process.state;
        state.is_over().then(|| {
            let how = format!("it ended during the trial ({})", state.how_it_ended());
            self.failure(&how)
        })
    }

    /// Ends it, removes what it left, and hands over what was measured.
    pub(crate) fn end(mut self) -> DependencyEvidence {
        self.probing = None;
        self.process.take(Duration::ZERO);
        let state = &self.process.state;
        if state.is_over() {
            self.counted.evidence.ended = Some(state.how_it_ended());
        }
        self.counted.finish();
        let said = self.process.end();
        let evidence = &mut self.counted.evidence;
        let is_killed = evidence.oom_kills.is_some_and(|kills| kills > 0);
        if is_killed || evidence.ended.is_some() || evidence.ready.is_none() {
            evidence.last_output = said;
        }
        self.counted.evidence
    }

    fn failed(&self, why: &str) -> Halt {
        Halt::Failed(self.failure(why))
    }

    fn failure(&self, why: &str) -> Failure {
        let said = quoted(&self.process.output.last_lines());
        Failure {
            cause: Invalid::Dependency,
            detail: format!("the dependency {}: {why}{said}", self.counted.evidence.name),
        }
    }
}

/// What a container for a dependency or its seed is made of.
struct Start<'a> {
    site: &'a Site,
    order: &'a Order,
    dependency: &'a Dependency,
    /// Tells its cgroup and files from those of others of the trial.
    suffix: String,
    limits: Limits,
    cpus: &'a [u32],
    network: Net,
    /// CPUs of loadline's own threads.
    own: &'a [u32],
}

impl Start<'_> {
    fn prepare(self, app: &App, watched: Option<String>) -> Result<Process, Halt> {
        let name = format!("{}-{}", self.order.trial, self.suffix);
        let (queue, notes) = channel();
        let teller = Teller::new(0, queue);
        let (reader, writer) = std::io::pipe().map_err(halt::step("making a pipe"))?;
        let redactor = Redactor::new(&self.order.secrets);
        let watch = watched.map(|text| watch(text, teller.clone()));
        let output = Output::read(reader, None, redactor, watch, self.own.to_vec());
        let output = output.map_err(halt::step("starting the thread that reads its output"))?;
        let hosts = self.order.hosts();
        let held = Held {
            frame: Frame {
                name: &name,
                limits: &self.limits,
                shm: self.dependency.shm.unwrap_or(SHM),
                network: self.network,
                hosts: &hosts,
                scratch: &self.order.scratch.with_file_name(&name),
                open_files: self.site.options.open_files,
                evict_page_cache: false,
            },
            app,
            trial: &self.order.trial,
            program: &Program::of_app(app, self.dependency.account),
            cpus: self.cpus,
            directories: &self.dependency.directories,
            hidden: &self.order.hidden,
            gc_log: None,
            as_shipped: false,
        };
        let mut state = State::default();
        let container = held.prepare(self.site, writer, &teller, &mut state.warnings)?;
        Ok(Process {
            container,
            output,
            notes,
            teller,
            state,
        })
    }
}

/// A contained process and what is known of it.
struct Process {
    container: Box<dyn Container>,
    output: Output,
    notes: Receiver<(usize, Note)>,
    teller: Teller,
    state: State,
}

impl Process {
    /// Takes what it told; waits at most so long for something.
    fn take(&mut self, patience: Duration) {
        let first = self.notes.recv_timeout(patience).ok();
        for (_, note) in first.into_iter().chain(self.notes.try_iter()) {
            self.state.take(note);
        }
    }

    fn probe(&self, readiness: &Readiness, own: &[u32]) -> Result<Option<Probing>, Halt> {
        let Some(probe) = Probe::of(readiness, self.container.as_ref(), own)? else {
            return Ok(None);
        };
        let teller = self.teller.clone();
        let started = Probing::start(probe, move |finding| teller.tell(Note::Probe(finding)));
        started.map(Some).map_err(halt::step("starting the probe"))
    }

    /// Kills it, removes its group, and gives the last that it wrote.
    fn end(&mut self) -> Vec<String> {
        // What survives, or stays, is found by the next sweep.
        let _ = self.container.kill();
        if self.container.end() {
            // A process of nobody's that still holds its output is not waited for.
            let _ = self.output.finish(READ);
        }
        let _ = self.container.remove();
        self.output.last_lines()
    }
}

fn watch(text: String, teller: Teller) -> Watch {
    Watch {
        text,
        found: Box::new(move || {
            let at_ns = monotonic_ns();
            teller.tell(Note::LineFound { at_ns });
        }),
    }
}

fn limits(site: &Site, dependency: &Dependency, cpus: &[u32]) -> Limits {
    let has_cpuset = site.layout.place(Controller::Cpuset).is_some();
    Limits {
        cpu_quota: dependency.cpu,
        cpuset: has_cpuset.then(|| cpus.iter().copied().collect()),
        memory: dependency.memory,
        pids: Some(TASKS),
        ..Limits::default()
    }
}

/// The last lines of what something said, as the end of a sentence.
fn quoted(lines: &[String]) -> String {
    let said: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
    let from = said.len().saturating_sub(LAST);
    match said[from..].join(" / ") {
        text if text.is_empty() => ", it said nothing".to_owned(),
        text => format!(", it said: {text}"),
    }
}
