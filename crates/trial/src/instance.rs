//! One instance of a trial: its container, its watchers, and its state.
//!
//! Owns how one is made, and the rules of its start. All instances of a trial are driven together
//! ([`crate::instances`]); the container is an [`AppContainer`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loadline_analysis::record::{InvalidReason, MeasurementFailure, MemoryParts, StartEvidence};
use loadline_cgroup::{CgroupLimits, ControlGroup, Controller, CpuSample, GroupName, Pace};
use loadline_load::{LoadPart, User};
use loadline_protocol::log::EventLog;
use loadline_protocol::{AppSpec, Readiness, TrialOrder};
use loadline_sizing::Bytes;

use crate::clock::monotonic_ns;
use crate::container::{
    AppContainer, ContainedProgram, ContainerBase, ContainerEvent, ContainerNetwork, SHM,
};
use crate::cpus::CpuPlan;
use crate::dependency::watch_for_line;
use crate::gc::GcLogTail;
use crate::group::{self, TrialGroup};
use crate::halt::{self, HaltReason, failed_for, refusal_halt};
use crate::notes::{InstanceNote, NoteSender};
use crate::output::{AppOutput, LineWatch, OutputCopy};
use crate::probe::{ProbeFinding, ProbeMethod, ProbeThread, ReadinessProbe};
use crate::program::ProgramSpec;
use crate::recording::{RowSpool, SampleRecording};
use crate::redactor::Redactor;
use crate::run_output::{MAVEN_OUT_OF_MEMORY, OUT_OF_MEMORY};
use crate::run_watch::RunWatch;
use crate::site::Site;
use crate::{at_ready, generator, metrics, oci, parts, watching};

/// Shares of the generator, which may share CPUs with the application: it must keep its schedule, and
/// it takes little.
pub(crate) const GENERATOR_SHARES: u64 = 16 * 1024;

const NO_GENERATOR_LIMIT: &str = "the load generator's cgroup has no memory limit here (no memory \
    controller): only what it allocates itself is limited";

pub(crate) const START_HINT: &str =
    "the program must be executable for the application's user; another user: --user";

/// One application of a trial. The fields are dropped in order: watchers before the watched.
pub(crate) struct Instance {
    pub(crate) part: LoadPart,
    pub(crate) plan: CpuPlan,
    pub(crate) is_jvm: bool,
    pub(crate) pace: Pace,
    pub(crate) recording: Option<SampleRecording>,
    probing: Option<ProbeThread>,
    pub(crate) container: Box<dyn AppContainer>,
    pub(crate) output: AppOutput,
    pub(crate) gc: Option<GcLogTail>,
    pub(crate) generator_group: Option<TrialGroup>,
    pub(crate) teller: NoteSender,
    log: Arc<EventLog>,
    pub(crate) state: InstanceState,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessEnd {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// Its state. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub(crate) struct InstanceState {
    pub(crate) exec_ns: Option<u64>,
    pub(crate) ready_ns: Option<u64>,
    pub(crate) log_line_ns: Option<u64>,
    pub(crate) ended: Option<ProcessEnd>,
    pub(crate) is_gone: bool,
    is_oom: bool,
    pub(crate) stage_failure: Option<String>,
    pub(crate) last_probe: String,
    pub(crate) foreign_listener: bool,
    pub(crate) start: Option<StartEvidence>,
    pub(crate) load_ends: Vec<u64>,
    pub(crate) measure: Option<(u64, u64)>,
    /// The end of its judged load, the peak included.
    pub(crate) judged_until: Option<u64>,
    pub(crate) users: Vec<User>,
    pub(crate) loaded: (Option<Bytes>, Option<Bytes>),
    pub(crate) parts: Option<MemoryParts>,
    pub(crate) warnings: Vec<String>,
    pub(crate) failure: Option<MeasurementFailure>,
    pub(crate) run: RunWatch,
}

impl InstanceState {
    pub(crate) fn take_note(&mut self, note: InstanceNote) {
        match note {
            InstanceNote::Told(ContainerEvent::Exec { at_ns }) => self.exec_ns = Some(at_ns),
            InstanceNote::Told(ContainerEvent::NotExecuted) => self.exec_ns = None,
            InstanceNote::Told(ContainerEvent::Exited { code, signal }) => {
                self.ended = Some(ProcessEnd { code, signal });
            }
            InstanceNote::Told(ContainerEvent::Failed { detail }) => {
                self.stage_failure = Some(detail)
            }
            InstanceNote::Told(ContainerEvent::Gone) => self.is_gone = true,
            InstanceNote::LineFound { at_ns } => self.ready_ns = Some(at_ns),
            InstanceNote::LogLine { at_ns } => self.log_line_ns = Some(at_ns),
            InstanceNote::Probe(ProbeFinding::Ready { at_ns, detail }) => {
                self.ready_ns = Some(at_ns);
                self.last_probe = detail;
            }
            InstanceNote::Probe(ProbeFinding::NotYet { detail }) => self.last_probe = detail,
            InstanceNote::Probe(ProbeFinding::Foreign) => self.foreign_listener = true,
            InstanceNote::Probe(ProbeFinding::Broken { detail }) => {
                self.failure = Some(halt::own_failure(detail))
            }
            InstanceNote::Generator(_) => {}
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some() || self.is_gone
    }

    pub(crate) fn how_it_ended(&self) -> String {
        let how = self.ended.map(|ended| (ended.code, ended.signal));
        match how.unwrap_or_default() {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "for an unknown reason".to_owned(),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.exec_ns.is_some() && !self.is_over()
    }

    pub(crate) fn was_ready(&self) -> bool {
        let start = self.start.as_ref();
        start.is_some_and(|start| start.ready.is_some())
    }
}

impl Instance {
    pub(crate) fn prepare_instance(
        site: &Site,
        order: &TrialOrder,
        program: &ProgramSpec,
        part: LoadPart,
        network: ContainerNetwork,
        (log, teller): (Arc<EventLog>, NoteSender),
    ) -> Result<Self, HaltReason> {
        let configuration = &order.configuration;
        let plan = site.plan_cpus(order, part.index)?;
        let is_never_throttled = plan.never_throttles(configuration.cpu);
        let limits = group::limits_for_configuration(&site.layout, configuration, &plan);
        site.refuse_too_large(&limits, part.of)?;
        let name = numbered_name(&order.trial, part.index);
        let mut state = InstanceState::default();
        let generator_group = generator_group(site, order, &name, part, &mut state.warnings)?;
        let (reader, writer) = std::io::pipe().map_err(halt::step_failed("making a pipe"))?;
        let copy = OutputCopy {
            log: Arc::clone(&log),
            instance: part.index,
        };
        let redactor = Redactor::new(&order.secrets);
        let watch = ready_line_watch(order, &teller);
        let output = AppOutput::read(reader, Some(copy), redactor, watch, plan.generator.clone());
        let output = output.map_err(halt::step_failed(
            "starting the thread that reads the output",
        ))?;
        if let Some(run) = &order.run {
            let lacks_heap = [OUT_OF_MEMORY, MAVEN_OUT_OF_MEMORY].map(str::to_owned);
            output.look_for(lacks_heap.into_iter().chain(run.output.clone()));
        } else if order.is_timed() {
            output.look_for([OUT_OF_MEMORY.to_owned()]);
        }
        let scratch = order.scratch.file_name().unwrap_or_default();
        let scratch = numbered_name(&scratch.to_string_lossy(), part.index);
        let scratch = order.scratch.with_file_name(scratch);
        let hosts = order.peer_names();
        let held = ContainedProgram {
            frame: ContainerBase {
                name: &name,
                limits: &limits,
                shm: order.configuration.shm.unwrap_or(SHM),
                network,
                hosts: &hosts,
                scratch: &scratch,
                open_files: site.options.open_files,
                evict_page_cache: site.options.evict_page_cache,
            },
            app: &order.app,
            trial: &order.trial,
            program,
            cpus: &plan.application,
            directories: &[],
            hidden: &order.hidden,
            gc_log: order.gc_log.as_deref(),
            as_shipped: order.as_shipped,
            run: order.run.as_ref(),
        };
        let container = held.prepare_container(site, writer, &teller, &mut state.warnings)?;
        let gc = order.gc_log.clone();
        Ok(Self {
            part,
            // A start script has no JDK, but the caller may know it.
            is_jvm: container.jdk_path().is_some() || order.gc_log.is_some(),
            pace: watching::sampling_pace(order.sampling, configuration, is_never_throttled),
            recording: None,
            probing: None,
            container,
            output,
            gc: gc.map(|seen| GcLogTail::new(seen, Arc::clone(&log), part.index)),
            generator_group,
            teller,
            log,
            state,
            plan,
        })
    }

    pub(crate) fn start_instance(&mut self) -> Result<(), HaltReason> {
        if !self.container.is_within_reach() {
            return self.container.start_application();
        }
        let spool = RowSpool::new(Arc::clone(&self.log), self.part.index);
        let options = watching::sampler_options(self.pace);
        let own = self.plan.generator.clone();
        let group = self.container.application_group();
        let recording = SampleRecording::start_recording(group, options, own, spool);
        let recording = recording.map_err(|e| halt::cgroup_refusal("sampling the cgroup", &e))?;
        self.recording = Some(recording);
        self.container.start_application()
    }

    /// One look at a start under way: begins to ask once it is executed. `true` when there is
    /// nothing more to wait for.
    pub(crate) fn check_start(&mut self, order: &TrialOrder) -> Result<bool, HaltReason> {
        if let Some(detail) = self.state.stage_failure.take() {
            // An engine says why in the words of its client.
            let said = self.output.last_lines().pop();
            let detail = said.map_or(detail.clone(), |said| format!("{detail}: {said}"));
            return Err(refusal_halt("starting the application", detail, START_HINT));
        }
        if self.state.foreign_listener {
            return Err(foreign_listener_halt(&order.readiness));
        }
        if self.state.is_over() && self.state.exec_ns.is_none() && !self.was_too_large() {
            let how = self.state.how_it_ended();
            return Err(halt::measurement_failed(format_args!(
                "the process that was to become the application ended before ({how})"
            )));
        }
        if let (Some(run), Some(ended), None) = (&order.run, self.state.ended, self.state.ready_ns)
        {
            let now = monotonic_ns();
            let seen = (&self.output, &*self.container);
            let is_success = !self.container.learns_exit_code()
                || self.state.run.is_success(run, ended.code, seen);
            self.state.ready_ns = is_success.then_some(now);
        }
        let is_decided = self.state.ready_ns.is_some() || self.state.failure.is_some();
        if is_decided || self.state.is_over() {
            self.settle_start(order);
            self.end_start_cpu(order)?;
            return self.refuse_other_options(order).map(|()| true);
        }
        if self.probing.is_none() && self.state.exec_ns.is_some() {
            let teller = self.teller.clone();
            self.probing = self.start_probing(order, move |finding| {
                teller.send_note(InstanceNote::Probe(finding))
            })?;
        }
        Ok(false)
    }

    /// What the JVM of an image or of a start script runs with is seen only from its running: without
    /// the options that were ordered, another configuration would be measured.
    fn refuse_other_options(&self, order: &TrialOrder) -> Result<(), HaltReason> {
        // A run has ended by now, and with it what would be looked at.
        if !self.state.was_ready() || order.run.is_some() {
            return Ok(());
        }
        let other = match &order.app {
            AppSpec::Image(image) => {
                let log = order.gc_log.as_deref();
                let has_log = log.is_some_and(|seen| self.container.open_file(seen).is_ok());
                oci::missing_options(&image.options, &self.process_ids(), has_log)
            }
            // Straight behind `java` they cannot be lost, and the user's own may win over them.
            AppSpec::Command { command, .. }
                if command.first().is_none_or(|c| c.ends_with("/java")) =>
            {
                None
            }
            AppSpec::Command { .. } => {
                let options = order.configuration.jvm_options.iter();
                let wanted: Vec<String> = options.map(|option| option.text.clone()).collect();
                oci::overruled_options(&wanted, &self.process_ids())
            }
        };
        match other {
            None => Ok(()),
            Some(detail) => Err(failed_for(InvalidReason::OtherOptions, detail)),
        }
    }

    pub(crate) fn settle_start(&mut self, order: &TrialOrder) {
        if self.state.start.is_none() {
            self.probing = None;
            self.state.start = Some(self.start_evidence(order));
        }
    }

    /// From its readiness on the application has the CPU that it is judged with.
    fn end_start_cpu(&self, order: &TrialOrder) -> Result<(), HaltReason> {
        let configuration = &order.configuration;
        if configuration.start_cpu.is_none() || self.state.is_over() {
            return Ok(());
        }
        let limits = CgroupLimits {
            cpu_quota: configuration.cpu,
            cpu_period: configuration.cpu_period,
            cpu_burst: configuration.cpu_burst,
            ..CgroupLimits::default()
        };
        let group = self.container.application_group();
        let changed = group.set_cpu_quota(&limits);
        changed.map_err(|e| halt::cgroup_refusal("ending start-cpu", &e).into())
    }

    pub(crate) fn start_probing(
        &self,
        order: &TrialOrder,
        tell: impl Fn(ProbeFinding) + Send + 'static,
    ) -> Result<Option<ProbeThread>, HaltReason> {
        let container = self.container.as_ref();
        let program = ProgramSpec::from_order(order);
        let cpus = &self.plan.generator;
        let Some(mut probe) =
            ReadinessProbe::for_container(&order.readiness, container, program, cpus)?
        else {
            return Ok(None);
        };
        if let Readiness::Sample { .. } = order.readiness {
            probe.question = ProbeMethod::Metrics(metrics::metric_sources(order)?);
        }
        let started = ProbeThread::start_probing(probe, tell);
        started
            .map(Some)
            .map_err(halt::step_failed("starting the probe"))
    }

    fn start_evidence(&self, order: &TrialOrder) -> StartEvidence {
        let state = &self.state;
        let sample = if state.is_over() {
            self.container.last_sample()
        } else {
            self.container.application_group().read().ok()
        };
        let cpu = sample.as_ref().map(|sample| &sample.cpu);
        let before = self.container.at_exec();
        let before = before.as_ref().map(|sample| &sample.cpu);
        let since = |counter: fn(&CpuSample) -> Option<Duration>| {
            let earlier = before.and_then(counter).unwrap_or_default();
            Some(cpu.and_then(counter)?.saturating_sub(earlier))
        };
        // An application that has ended was never ready, even if a probe got through first.
        let ready = state
            .ready_ns
            .filter(|_| order.run.is_some() || !state.is_over());
        let last_probe = match &order.readiness {
            Readiness::LogLine { contains } if ready.is_none() => {
                format!("no line with `{contains}`")
            }
            Readiness::LogLine { contains } => format!("a line with `{contains}`"),
            _ => state.last_probe.clone(),
        };
        let at_ready = match ready {
            Some(_) => at_ready::read(&self.process_ids()),
            None => StartEvidence::default(),
        };
        StartEvidence {
            ready: ready
                .zip(state.exec_ns)
                .map(|(ready, exec)| Duration::from_nanos(ready.saturating_sub(exec))),
            deadline: order.start_deadline,
            cpu: since(|cpu| cpu.usage),
            throttled: since(|cpu| cpu.throttled_time),
            last_probe,
            ..at_ready
        }
    }

    pub(crate) fn was_too_large(&self) -> bool {
        let sample = self.container.application_group().read().ok();
        let kills = sample.and_then(|sample| sample.memory?.oom_kill);
        self.state.is_oom || kills.is_some_and(|kills| kills > 0)
    }

    /// Whether the output of a run or a consumer says so, whatever became of the JVM.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.output.first_line_with(OUT_OF_MEMORY).is_some()
    }

    /// CPU time since its exec; `None` if the kernel does not tell.
    pub(crate) fn cpu_used(&self) -> Option<Duration> {
        let now = self.container.application_group().read().ok()?.cpu.usage?;
        let before = self.container.at_exec().and_then(|at| at.cpu.usage);
        Some(now.saturating_sub(before.unwrap_or_default()))
    }

    /// File pages that had to be read again so far; `None` where the kernel does not tell.
    pub(crate) fn refaults(&self) -> Option<u64> {
        let sample = self.container.application_group().read().ok()?;
        sample.memory?.refault_file
    }

    pub(crate) fn process_ids(&self) -> Vec<u32> {
        let group = self.container.application_group();
        group.process_ids().unwrap_or_default()
    }

    /// A container dies as a whole when the kernel kills one of its processes for memory. v2 does
    /// that by memory.oom.group, which `Group::apply` sets; for v1 it is done here.
    pub(crate) fn end_after_oom(&mut self) {
        let is_oom = self.recording.as_ref().is_some_and(SampleRecording::is_oom);
        if is_oom && !self.state.is_oom {
            self.state.is_oom = true;
            // What survives is found when the trial ends.
            let _ = self.container.kill_container();
        }
    }

    pub(crate) fn look_at_clock(&mut self) {
        if let Some(gc) = &mut self.gc {
            gc.look_at_clock();
        }
    }

    pub(crate) fn copy_output(&mut self) {
        self.output.flush_to_log();
        if let Some(gc) = &mut self.gc {
            // Not there yet, or never: reported at the end of the trial.
            let _ = gc.copy_new_bytes(self.container.as_ref());
        }
    }

    pub(crate) fn look_at_jvms(&mut self, elapsed: Duration) {
        let group = self.container.application_group();
        let processes = || group.process_ids().unwrap_or_default();
        self.state.run.look_at_jvms(processes, elapsed);
    }

    /// Takes RSS and PSS of the application now, from smaps_rollup, and its parts; `requests` were
    /// answered by now.
    pub(crate) fn measure_memory(&mut self, requests: u64) {
        if !self.state.is_over() {
            self.state.loaded = at_ready::rss_and_pss(&self.process_ids());
            self.state.parts = self.read_parts(requests);
        }
    }

    pub(crate) fn read_parts(&self, requests: u64) -> Option<MemoryParts> {
        let group = self.container.application_group();
        parts::read_parts(&self.process_ids(), group, requests)
    }

    pub(crate) fn readable_groups(&self) -> impl Iterator<Item = &ControlGroup> {
        let generator = self.generator_group.as_ref().map(TrialGroup::as_group);
        let own =
            Some(self.container.application_group()).filter(|_| self.container.is_within_reach());
        own.into_iter().chain(generator)
    }
}

/// The name of one of several instances: the trial's for the first, with `-2` for the second.
fn numbered_name(name: &str, index: u32) -> String {
    match index {
        0 => name.to_owned(),
        _ => format!("{name}-{}", index + 1),
    }
}

/// A separate group for the generator: its usage is not noise, it keeps its schedule next to the
/// application, and its memory is limited, because servers are not trusted. In a pod it uses the
/// container's group.
fn generator_group(
    site: &Site,
    order: &TrialOrder,
    name: &str,
    part: LoadPart,
    warnings: &mut Vec<String>,
) -> Result<Option<TrialGroup>, HaltReason> {
    if site.options.is_pod || order.load.is_empty() || order.is_timed() {
        return Ok(None);
    }
    let making = |error| halt::cgroup_refusal("making the load generator's cgroup", &error);
    let trial = format!("{name}-generator");
    let name = GroupName::new(Path::new("/proc"), &trial).map_err(making)?;
    let memory = order.load.iter().map(|load| match order.load_command {
        Some(_) => generator::FRONT_MEMORY,
        None => generator::generator_memory(load, part),
    });
    let has_memory = site.layout.hierarchy_of(Controller::Memory).is_some();
    if !has_memory {
        warnings.push(NO_GENERATOR_LIMIT.to_owned());
    }
    let limits = CgroupLimits {
        cpu_shares: Some(GENERATOR_SHARES),
        memory: memory.max().filter(|_| has_memory),
        ..CgroupLimits::default()
    };
    let group = TrialGroup::create_limited(&site.layout, &name.to_string(), &limits);
    Ok(Some(group.map_err(making)?))
}

fn ready_line_watch(order: &TrialOrder, teller: &NoteSender) -> Option<LineWatch> {
    let (text, note): (_, fn(u64) -> InstanceNote) = match (&order.readiness, &order.log_line) {
        (Readiness::LogLine { contains }, _) => {
            (contains, |at_ns| InstanceNote::LineFound { at_ns })
        }
        (_, Some(text)) => (text, |at_ns| InstanceNote::LogLine { at_ns }),
        (_, None) => return None,
    };
    Some(watch_for_line(text, teller, note))
}

fn foreign_listener_halt(readiness: &Readiness) -> HaltReason {
    let port = readiness.asked_port().unwrap_or_default();
    halt::measurement_failed(format_args!(
        "port {port} is served by a process that is not part of the trial; nothing was sent to it"
    ))
}
