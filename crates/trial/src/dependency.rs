//! One dependency of a trial: contained, started, ready, seeded, watched, ended.
//!
//! Owns its life cycle and its record. The same machinery as for the application contains it, so it
//! dies with the trial in the same way. All dependencies: [`crate::dependencies`].

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use loadline_analysis::record::{DependencyEvidence, InvalidReason, MeasurementFailure};
use loadline_cgroup::{CgroupLimits, Controller};
use loadline_protocol::{AppSpec, DependencySpec, Readiness, TrialOrder};
use loadline_sizing::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;
use crate::container::{AppContainer, ContainedProgram, ContainerBase, ContainerNetwork, SHM};
use crate::counted::DependencyCounters;
use crate::cpus::{self, CpuPlan};
use crate::group::TASKS;
use crate::halt::{self, HaltReason, Stop, refusal_halt};
use crate::instance::InstanceState;
use crate::notes::{InstanceNote, NoteSender};
use crate::output::{AppOutput, LineWatch};
use crate::probe::{ProbeThread, ReadinessProbe};
use crate::program::ProgramSpec;
use crate::redactor::Redactor;
use crate::site::Site;

const TICK: Duration = Duration::from_millis(20);
const READ: Duration = Duration::from_secs(2);
const LAST: usize = 3;

pub(crate) struct SideCommand {
    name: &'static str,
    command: fn(&DependencySpec) -> &[String],
    hint: &'static str,
}

const SEED: SideCommand = SideCommand {
    name: "seed",
    command: |dependency| &dependency.seed,
    hint: "run it by hand against the dependency; it runs once, in the dependency's environment and directory, when that is ready",
};

pub(crate) const RESET: SideCommand = SideCommand {
    name: "reset",
    command: |dependency| &dependency.reset,
    hint: "run it by hand against the dependency after some requests; it runs between two trials, in the dependency's environment and directory, and must leave what the seed left",
};

const BACKLOG: SideCommand = SideCommand {
    name: "backlog command",
    command: |_| &[],
    hint: "run it by hand; it runs before each start of the application, in the network of its dependencies, and must leave the same backlog each time (--backlog)",
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DependencyEnd {
    pub name: String,
    /// How: `exit code 1`.
    pub how: String,
    pub last_output: Vec<String>,
    pub failure: MeasurementFailure,
}

/// Where dependencies of a trial are started, and until when.
#[derive(Clone, Copy)]
pub(crate) struct DependencySite<'a> {
    pub(crate) site: &'a Site,
    pub(crate) order: &'a TrialOrder,
    pub(crate) plan: &'a CpuPlan,
    pub(crate) stop: Stop<'a>,
}

/// A running dependency. The fields are dropped in order: watchers before the watched.
pub(crate) struct RunningDependency {
    pub(crate) spec: DependencySpec,
    probing: Option<ProbeThread>,
    process: DependencyProcess,
    pub(crate) counted: DependencyCounters,
}

impl RunningDependency {
    pub(crate) fn start_dependency(
        at: DependencySite<'_>,
        dependency: &DependencySpec,
        network: ContainerNetwork,
    ) -> Result<Self, HaltReason> {
        let cpus = at.site.dependency_cpus(dependency, at.plan)?;
        let limits = dependency_limits(at.site, dependency, &cpus);
        at.site.refuse_too_large(&limits, 1)?;
        let to = DependencyStart {
            at,
            dependency,
            suffix: format!("dependency-{}", dependency.name),
            limits,
            cpus: &cpus,
            network,
        };
        let watched = match &dependency.readiness {
            Readiness::LogLine { contains } => Some(contains.as_str()),
            _ => None,
        };
        let mut process = to.prepare_process(&dependency.app, watched)?;
        process.container.start_application()?;
        let evidence = DependencyEvidence {
            name: dependency.name.clone(),
            image: dependency.app.image().map(|image| image.id.clone()),
            cpu_count: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
            beside: at.plan.beside_dependency(&cpus),
            cpus: cpus::format_cpu_list(&cpus),
            cpu_limit: dependency.cpu,
            memory_limit: dependency.memory,
            ..DependencyEvidence::default()
        };
        let group = process.container.application_group().clone();
        Ok(Self {
            spec: dependency.clone(),
            probing: None,
            counted: DependencyCounters::new(group, evidence),
            process,
        })
    }

    /// Waits until it is ready, and runs its seed, in its network and on its CPUs.
    pub(crate) fn await_seeded(&mut self, at: DependencySite<'_>) -> Result<(), HaltReason> {
        let begin = Instant::now();
        while self.process.state.ready_ns.is_none() {
            if (at.stop)() {
                return Err(HaltReason::Stopped);
            }
            self.process.take_notes(TICK);
            let state = &mut self.process.state;
            if let Some(detail) = state.stage_failure.take() {
                let hint =
                    "the program must be executable for the dependency's user: user = \"1000\"";
                return Err(refusal_halt("starting it", detail, hint));
            }
            if state.foreign_listener {
                let why = "another program of the machine listens on its port";
                return Err(self.dependency_halt(why));
            }
            if let Some(failure) = state.failure.take() {
                return Err(HaltReason::Failed(failure));
            }
            if state.is_over() {
                let how = state.how_it_ended();
                return Err(self.dependency_halt(&format!("it ended before it was ready ({how})")));
            }
            if begin.elapsed() > self.spec.start_deadline {
                let last = match &self.spec.readiness {
                    Readiness::LogLine { contains } => format!("no line with `{contains}`"),
                    _ => state.last_probe.clone(),
                };
                let waited = self.spec.start_deadline.as_secs_f64();
                let why = format!("it was not ready within {waited} s ({last})");
                return Err(self.dependency_halt(&why));
            }
            if self.probing.is_none() && state.exec_ns.is_some() {
                let own = &at.plan.generator;
                self.probing = self.process.start_probe(&self.spec, own)?;
            }
        }
        self.probing = None;
        let state = &self.process.state;
        let ready = state.ready_ns.zip(state.exec_ns);
        self.counted.evidence.ready =
            ready.map(|(ready, exec)| Duration::from_nanos(ready.saturating_sub(exec)));
        self.counted.evidence.seed = self.run_side_command(at, &SEED)?;
        Ok(())
    }

    pub(crate) fn run_side_command(
        &mut self,
        at: DependencySite<'_>,
        errand: &SideCommand,
    ) -> Result<Option<Duration>, HaltReason> {
        let command = (errand.command)(&self.spec);
        if command.is_empty() {
            return Ok(None);
        }
        let cpus = at.site.dependency_cpus(&self.spec, at.plan)?;
        let to = DependencyStart {
            at,
            dependency: &self.spec,
            suffix: format!("{}-{}", errand.name, self.spec.name),
            limits: errand_limits(at.site, None),
            cpus: &cpus,
            network: self.dependency_network(),
        };
        let app = self.spec.with_command(command);
        let process = &mut self.process;
        let meanwhile = || process.take_notes(Duration::ZERO);
        run_errand(to, &app, errand, meanwhile).map(Some)
    }

    pub(crate) fn dependency_network(&self) -> ContainerNetwork {
        self.process.container.application_network()
    }

    pub(crate) fn poll_end(&mut self) -> Option<DependencyEnd> {
        let failure = self.poll_failure()?;
        Some(DependencyEnd {
            name: self.counted.evidence.name.clone(),
            how: self.process.state.how_it_ended(),
            last_output: self.process.output.last_lines(),
            failure,
        })
    }

    pub(crate) fn poll_failure(&mut self) -> Option<MeasurementFailure> {
        self.process.take_notes(Duration::ZERO);
        let state = &self.process.state;
        state.is_over().then(|| {
            let how = format!("it ended during the trial ({})", state.how_it_ended());
            self.dependency_failure(&how)
        })
    }

    pub(crate) fn end_dependency(mut self) -> DependencyEvidence {
        self.probing = None;
        self.process.take_notes(Duration::ZERO);
        let state = &self.process.state;
        if state.is_over() {
            self.counted.evidence.ended = Some(state.how_it_ended());
        }
        self.counted.read_last_memory();
        let said = self.process.end_process();
        let evidence = &mut self.counted.evidence;
        let is_killed = evidence.oom_kills.is_some_and(|kills| kills > 0);
        if is_killed || evidence.ended.is_some() || evidence.ready.is_none() {
            evidence.last_output = said;
        }
        self.counted.evidence
    }

    fn dependency_halt(&self, why: &str) -> HaltReason {
        HaltReason::Failed(self.dependency_failure(why))
    }

    fn dependency_failure(&self, why: &str) -> MeasurementFailure {
        let said = quote_lines(&self.process.output.last_lines());
        let why = format!("the dependency {}: {why}{said}", self.counted.evidence.name);
        MeasurementFailure::new(InvalidReason::Dependency, why)
    }
}

/// Runs the command that restores a trial's backlog, before the application starts.
pub(crate) fn run_backlog(
    at: DependencySite<'_>,
    backlog: &DependencySpec,
    network: ContainerNetwork,
) -> Result<Duration, HaltReason> {
    let to = DependencyStart {
        at,
        dependency: backlog,
        suffix: backlog.name.clone(),
        limits: errand_limits(at.site, backlog.memory),
        cpus: &at.plan.generator,
        network,
    };
    run_errand(to, &backlog.app, &BACKLOG, || {})
}

/// Runs a command to its end, at most for the start deadline.
fn run_errand(
    to: DependencyStart<'_>,
    app: &AppSpec,
    errand: &SideCommand,
    mut meanwhile: impl FnMut(),
) -> Result<Duration, HaltReason> {
    let (deadline, stop) = (to.dependency.start_deadline, to.at.stop);
    let mut ran = to.prepare_process(app, None)?;
    let begin = Instant::now();
    ran.container.start_application()?;
    while !ran.state.is_over() && begin.elapsed() < deadline {
        ran.take_notes(TICK);
        meanwhile();
        if let Some(detail) = ran.state.stage_failure.take() {
            let what = format!("starting its {}", errand.name);
            return Err(refusal_halt(&what, detail, errand.hint));
        }
        if stop() {
            return Err(HaltReason::Stopped);
        }
    }
    let is_late = !ran.state.is_over();
    let ended = ran.state.ended;
    let how = if is_late {
        format!("it did not end within {deadline:?}")
    } else {
        ran.state.how_it_ended()
    };
    let said = ran.end_process();
    match ended {
        Some(ended) if ended.code == Some(0) => Ok(begin.elapsed()),
        _ => {
            let why = format!("{how}{}", quote_lines(&said));
            Err(refusal_halt(
                &format!("its {}", errand.name),
                why,
                errand.hint,
            ))
        }
    }
}

pub(crate) struct DependencyStart<'a> {
    pub(crate) at: DependencySite<'a>,
    pub(crate) dependency: &'a DependencySpec,
    pub(crate) suffix: String,
    pub(crate) limits: CgroupLimits,
    pub(crate) cpus: &'a [u32],
    pub(crate) network: ContainerNetwork,
}

impl DependencyStart<'_> {
    pub(crate) fn prepare_process(
        self,
        app: &AppSpec,
        watched: Option<&str>,
    ) -> Result<DependencyProcess, HaltReason> {
        let DependencySite { site, order, .. } = self.at;
        let name = format!("{}-{}", order.trial, self.suffix);
        let (queue, notes) = channel();
        let teller = NoteSender::new(0, queue);
        let (reader, writer) = std::io::pipe().map_err(halt::step_failed("making a pipe"))?;
        let redactor = Redactor::new(&order.secrets);
        let found = |at_ns| InstanceNote::LineFound { at_ns };
        let watch = watched.map(|text| watch_for_line(text, &teller, found));
        let output = AppOutput::read(
            reader,
            None,
            redactor,
            watch,
            self.at.plan.generator.clone(),
        );
        let output = output.map_err(halt::step_failed(
            "starting the thread that reads its output",
        ))?;
        let hosts = order.peer_names();
        let held = ContainedProgram {
            frame: ContainerBase {
                name: &name,
                limits: &self.limits,
                shm: self.dependency.shm.unwrap_or(SHM),
                network: self.network,
                hosts: &hosts,
                scratch: &order.scratch.with_file_name(&name),
                open_files: site.options.open_files,
                evict_page_cache: false,
            },
            app,
            trial: &order.trial,
            program: &ProgramSpec::from_app(app, self.dependency.account),
            cpus: self.cpus,
            directories: &self.dependency.directories,
            hidden: &order.hidden,
            gc_log: None,
            as_shipped: false,
            run: None,
        };
        let mut state = InstanceState::default();
        let container = held.prepare_container(site, writer, &teller, &mut state.warnings)?;
        Ok(DependencyProcess {
            container,
            output,
            notes,
            teller,
            state,
        })
    }
}

pub(crate) struct DependencyProcess {
    pub(crate) container: Box<dyn AppContainer>,
    pub(crate) output: AppOutput,
    notes: Receiver<(usize, InstanceNote)>,
    teller: NoteSender,
    pub(crate) state: InstanceState,
}

impl DependencyProcess {
    /// Takes its events; waits at most `patience` for the first.
    pub(crate) fn take_notes(&mut self, patience: Duration) {
        let first = self.notes.recv_timeout(patience).ok();
        for (_, note) in first.into_iter().chain(self.notes.try_iter()) {
            self.state.take_note(note);
        }
    }

    fn start_probe(
        &self,
        dependency: &DependencySpec,
        own: &[u32],
    ) -> Result<Option<ProbeThread>, HaltReason> {
        let program = ProgramSpec::from_app(&dependency.app, dependency.account);
        let container = self.container.as_ref();
        let Some(probe) =
            ReadinessProbe::for_container(&dependency.readiness, container, program, own)?
        else {
            return Ok(None);
        };
        let teller = self.teller.clone();
        let started = ProbeThread::start_probing(probe, move |finding| {
            teller.send_note(InstanceNote::Probe(finding))
        });
        started
            .map(Some)
            .map_err(halt::step_failed("starting the probe"))
    }

    pub(crate) fn end_process(&mut self) -> Vec<String> {
        // What survives, or stays, is found by the next sweep.
        let _ = self.container.kill_container();
        if self.container.shut_down() {
            // A foreign process that still holds the output is not waited for.
            let _ = self.output.wait_for_end(READ);
        }
        let _ = self.container.remove_group();
        self.output.last_lines()
    }
}

pub(crate) fn watch_for_line(
    text: &str,
    of: &NoteSender,
    note: fn(u64) -> InstanceNote,
) -> LineWatch {
    let teller = of.clone();
    LineWatch {
        text: text.to_owned(),
        found: Box::new(move || teller.send_note(note(monotonic_ns()))),
    }
}

/// It may not take all processes of the machine; its memory may be limited where memory can be.
fn errand_limits(site: &Site, memory: Option<Bytes>) -> CgroupLimits {
    let has_memory = site.layout.hierarchy_of(Controller::Memory).is_some();
    CgroupLimits {
        memory: memory.filter(|_| has_memory),
        pids: Some(TASKS),
        ..CgroupLimits::default()
    }
}

fn dependency_limits(site: &Site, dependency: &DependencySpec, cpus: &[u32]) -> CgroupLimits {
    let has_cpuset = site.layout.hierarchy_of(Controller::Cpuset).is_some();
    CgroupLimits {
        cpu_quota: dependency.cpu,
        cpuset: has_cpuset.then(|| cpus.iter().copied().collect()),
        memory: dependency.memory,
        pids: Some(TASKS),
        ..CgroupLimits::default()
    }
}

pub(crate) fn quote_lines(lines: &[String]) -> String {
    let said: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
    let from = said.len().saturating_sub(LAST);
    match said[from..].join(" / ") {
        text if text.is_empty() => ", it said nothing".to_owned(),
        text => format!(", it said: {text}"),
    }
}
