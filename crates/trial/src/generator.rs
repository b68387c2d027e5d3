//! Load from a separate process: `loadline load-part`.
//!
//! Owns the translation of a load phase into the generator's order and of its messages into
//! evidence, and the life of the process. `loadline-load` makes the load.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use loadline_analysis::record::{
    DueEvidence, InvalidReason, LoadEvidence, LoadFrom, RequestEvidence, SecondEvidence,
};
use loadline_cgroup::ControlGroup;
use loadline_load::histogram::encode_histogram;
use loadline_load::part::{
    self, LoadMessage, LoadOrder, ObservedMessage, ResultMessage, SecondMessage, TotalsMessage,
};
use loadline_load::remote::{Generators, RemoteLoadFailure};
use loadline_load::{LoadError, LoadModel, LoadPart, LoadPlan, RequestTotals, User, Users};
use loadline_protocol::{LoadCommandSpec, LoadPhase};
use loadline_sizing::Bytes;
use loadline_sys::{prlimit, set_parent_process_death_signal};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process};

use crate::cpus::CpuPlan;
use crate::halt::{self, HaltReason, failed_for};
use crate::load_command::observed_share;
use crate::notes::{GeneratorLine, InstanceNote, NoteSender};
use crate::spawner::{self, GuardedChild};
use loadline_analysis::foreign_text::indented_line;

/// After the phase and its drain, the generator may take this long before it counts as stuck.
const SLACK: Duration = Duration::from_secs(20);

const STOPPED: Duration = Duration::from_secs(3);
pub(crate) const FRONT_MEMORY: Bytes = Bytes::from_mib(1024);

/// What Rust's allocator says before it gives up (`handle_alloc_error`).
const NO_MEMORY: &str = "memory allocation of";

pub fn run_load_process(
    mut orders: impl BufRead + std::os::fd::AsFd,
    messages: impl std::io::Write,
) -> Result<(), LoadError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| LoadError::System {
        call: "prctl(PR_SET_PDEATHSIG)",
        errno,
        hint: "a seccomp profile may forbid it",
    })?;
    match part::read_order(&mut orders)? {
        None => Ok(()),
        Some(order) => match order.front_port {
            None => part::run(&order, messages),
            Some(port) => loadline_proxy::front::run(order, port, orders, messages),
        },
    }
}

pub(crate) struct GeneratorSetup<'a> {
    pub(crate) loadline: &'a Path,
    pub(crate) trial: &'a str,
    pub(crate) group: Option<&'a ControlGroup>,
    pub(crate) part: LoadPart,
    pub(crate) users: &'a [User],
    pub(crate) from_ns: Option<u64>,
    pub(crate) cpus: &'a CpuPlan,
    pub(crate) network: Option<PathBuf>,
    pub(crate) generators: Option<&'a Generators>,
    /// The program that makes it in the place of the process, which only stands before the service.
    pub(crate) command: Option<&'a LoadCommandSpec>,
}

/// One instance's share of a load phase under way. Dropping it kills the generator.
pub(crate) struct GeneratorProcess {
    child: GuardedChild,
    orders: Option<ChildStdin>,
    pub(crate) begin: Instant,
    allowed: Duration,
    drain: Duration,
    memory: Bytes,
    stopped: Option<Instant>,
    pub(crate) seconds: Vec<SecondEvidence>,
    result: Option<Box<ResultMessage>>,
    observed: Option<Box<ObservedMessage>>,
    standing: Option<PathBuf>,
    failed: Option<(RemoteLoadFailure, String)>,
    complaint: Option<String>,
}

impl GeneratorProcess {
    pub(crate) fn start_generator(
        load: &LoadPhase,
        wanted: &GeneratorSetup<'_>,
        tell: NoteSender,
    ) -> Result<Self, HaltReason> {
        let mut command = spawner::part_command(wanted.loadline, "load-part");
        command.env("LOADLINE_TRIAL", wanted.trial);
        let child = spawner::spawn_command(command)
            .map_err(halt::step_failed("starting the load generator"))?;
        let mut generator = Self {
            child: GuardedChild(child),
            orders: None,
            begin: Instant::now(),
            allowed: Duration::ZERO,
            drain: Duration::ZERO,
            memory: match wanted.command {
                Some(_) => FRONT_MEMORY,
                None => generator_memory(load, wanted.part),
            },
            stopped: None,
            seconds: Vec::new(),
            result: None,
            observed: None,
            standing: None,
            failed: None,
            complaint: None,
        };
        generator.join_group(wanted.group)?;
        generator.limit_memory()?;
        let child = &mut generator.child.0;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(halt::measurement_failed("the load generator has no pipes"));
        };
        generator.orders = Some(stdin);
        generator.begin_phase(load, wanted)?;
        std::thread::Builder::new()
            .name("generator".to_owned())
            .spawn(move || read(stdout, stderr, &tell))
            .map_err(halt::step_failed("starting a thread"))?;
        Ok(generator)
    }

    pub(crate) fn begin_phase(
        &mut self,
        load: &LoadPhase,
        wanted: &GeneratorSetup<'_>,
    ) -> Result<(), HaltReason> {
        self.begin = Instant::now();
        self.allowed = generator_deadline(&load.plan);
        self.drain = load.plan.drain;
        self.seconds.clear();
        if let Some(command) = wanted.command {
            self.allowed += command.first_request;
        }
        let order = serde_json::to_vec(&generator_order(load, wanted))
            .map_err(halt::step_failed("writing the load generator's order"))?;
        if let Some(orders) = &mut self.orders {
            let sent = orders.write_all(&order).and_then(|()| orders.flush());
            sent.map_err(halt::step_failed("sending the load generator its order"))?;
        }
        if wanted.command.is_none() {
            // A process that gets one order ends with it.
            self.orders = None;
        }
        Ok(())
    }

    pub(crate) fn front_network(&self) -> Option<&Path> {
        self.standing.as_deref()
    }

    pub(crate) fn is_front(&self) -> bool {
        self.orders.is_some() && self.complaint.is_none()
    }

    /// Puts it into its own group before it gets its order, that is before it does anything.
    fn join_group(&self, group: Option<&ControlGroup>) -> Result<(), HaltReason> {
        for file in group.iter().flat_map(|group| group.join_files()) {
            std::fs::write(&file, self.id().to_string()).map_err(|error| {
                let file = file.display();
                halt::measurement_failed(format_args!("moving the generator by {file}: {error}"))
            })?;
        }
        Ok(())
    }

    /// Limits its own memory. If it has a group, that counts the kernel's part too; without a group
    /// (pods, remote engines) this is the only limit.
    fn limit_memory(&self) -> Result<(), HaltReason> {
        let allowed = getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX);
        let most = Some(self.memory.as_bytes().min(allowed));
        let most = Rlimit {
            current: most,
            maximum: most,
        };
        let limited = prlimit(self.pid(), Resource::Data, most).map(drop);
        limited.map_err(halt::step_failed("limiting the load generator's memory"))
    }

    /// Its process, which is our child and not reaped yet: the id cannot be another's.
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.id()).ok().and_then(Pid::from_raw)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn take_generator_line(&mut self, line: GeneratorLine) -> Option<&SecondEvidence> {
        match line {
            GeneratorLine::Message(LoadMessage::Second(message)) => {
                self.seconds.push(second_evidence(&message));
                return self.seconds.last();
            }
            GeneratorLine::Message(LoadMessage::Result(result)) => self.result = Some(result),
            GeneratorLine::Message(LoadMessage::Observed(observed)) => {
                self.observed = Some(observed);
            }
            GeneratorLine::Message(LoadMessage::Standing { network }) => {
                self.standing = Some(network);
            }
            GeneratorLine::Message(LoadMessage::Failed { how, detail }) => {
                self.failed = Some((how, detail))
            }
            GeneratorLine::End(complaint) => self.complaint = Some(complaint),
        }
        None
    }

    /// Whether its output has ended. Even after the result it must be read to the end: a remainder
    /// would reach the next phase.
    pub(crate) fn is_over(&self) -> bool {
        self.complaint.is_some() || self.observed.is_some()
    }

    /// Asks it to end before its time, once. Before its first word it may not be ready for a signal,
    /// which would end it without a result.
    pub(crate) fn ask_to_stop(&mut self) {
        let has_spoken = self.result.is_some() || self.standing.is_some();
        let can_be_stopped = has_spoken || !self.seconds.is_empty();
        if self.stopped.is_some() || !can_be_stopped {
            return;
        }
        self.stopped = Some(Instant::now());
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    pub(crate) fn is_stuck(&self) -> bool {
        let is_late = |since: Instant| since.elapsed() > STOPPED + self.drain;
        !self.is_over()
            && (self.begin.elapsed() > self.allowed || self.stopped.is_some_and(is_late))
    }

    pub(crate) fn finish_share(
        &mut self,
        load: &LoadPhase,
        part: LoadPart,
        group: Option<&ControlGroup>,
    ) -> Result<LoadShare, HaltReason> {
        self.stopped = None;
        if let Some(observed) = self.observed.take() {
            return observed_share(load, *observed, std::mem::take(&mut self.seconds));
        }
        if let Some((how, detail)) = self.failed.take() {
            return Err(no_load_halt(how, detail));
        }
        let Some(mut result) = self.result.take() else {
            return Err(self.gave_nothing(group));
        };
        Ok(LoadShare {
            start_ns: result.start_ns,
            end_ns: result.end_ns,
            users: std::mem::take(&mut result.users),
            cut_pauses: result.measure.totals.cut_pauses,
            load: load_evidence(load, part, *result),
            seconds: std::mem::take(&mut self.seconds),
        })
    }

    pub(crate) fn gave_nothing(&mut self, group: Option<&ControlGroup>) -> HaltReason {
        let complaint = self.complaint.take().unwrap_or_default();
        // In a pod it has the container's cgroup, which is as old as the trial.
        let container = || ControlGroup::of_process(Path::new("/proc"), std::process::id()).ok();
        let group = group.cloned().or_else(container);
        let sample = group.and_then(|group| group.read().ok());
        let kills = sample.and_then(|sample| sample.memory?.oom_kill);
        if kills.is_some_and(|kills| kills > 0) || complaint.contains(NO_MEMORY) {
            let why = format!(
                "the load generator took more memory than it may have ({} for this load) and was \
                 killed; try fewer connections or streams (--connections, --streams), and \
                 please report it: no server should be able to cause this",
                self.memory
            );
            return failed_for(InvalidReason::GeneratorSaturated, why);
        }
        halt::measurement_failed(format_args!("the load generator failed: {complaint}"))
    }
}

fn no_load_halt(how: RemoteLoadFailure, detail: String) -> HaltReason {
    let cause = match how {
        RemoteLoadFailure::Lost => InvalidReason::RuntimeLost,
        RemoteLoadFailure::Clock => InvalidReason::ClockJump,
        RemoteLoadFailure::Unreachable => {
            return halt::refusal_halt(
                "sending load from generator pods",
                format_args!("the application is ready on localhost, but not for {detail}"),
                "it must listen on all addresses (0.0.0.0 or ::), not on 127.0.0.1 alone, and no NetworkPolicy may keep pods of this namespace from it; or leave --generators out",
            );
        }
    };
    failed_for(cause, detail)
}

pub(crate) fn generator_memory(load: &LoadPhase, part: LoadPart) -> Bytes {
    let plan = LoadPlan {
        connections: part.share_of(load.plan.connections),
        ..load.plan.clone()
    };
    Bytes::from_mib(plan.max_memory().div_ceil(1 << 20))
}

/// The result of one instance's share of a load phase.
pub(crate) struct LoadShare {
    pub(crate) load: LoadEvidence,
    pub(crate) seconds: Vec<SecondEvidence>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) users: Vec<User>,
    pub(crate) cut_pauses: u64,
}

pub fn generator_deadline(plan: &LoadPlan) -> Duration {
    let length = match plan.model {
        // Requests that all time out, one after the other on each connection.
        LoadModel::ClosedRequests { requests } => {
            let rounds = requests.div_ceil(u64::from(plan.max_in_flight()));
            let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
            plan.timeout.saturating_mul(rounds)
        }
        ref model => model.scheduled_duration().unwrap_or_default(),
    };
    length.saturating_add(plan.timeout + plan.drain + SLACK)
}

fn read(stdout: ChildStdout, stderr: ChildStderr, tell: &NoteSender) {
    let mut complaint = String::new();
    for line in BufReader::new(stdout).lines() {
        let message = line
            .map_err(|e| e.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|e| e.to_string()));
        match message {
            Ok(message) => tell.send_note(InstanceNote::Generator(GeneratorLine::Message(message))),
            Err(error) => {
                complaint = format!("its output is not understood: {error}");
                break;
            }
        }
    }
    let said = spawner::read_complaint(Some(stderr));
    complaint.push_str(&indented_line(&said.replace('\n', "; ")));
    tell.send_note(InstanceNote::Generator(GeneratorLine::End(complaint)));
}

fn generator_order(load: &LoadPhase, wanted: &GeneratorSetup<'_>) -> LoadOrder {
    let (plan, part) = (wanted.cpus, wanted.part);
    let connections = part.share_of(load.plan.connections);
    let threads = (connections as usize).min(plan.generator.len());
    // Where the application runs on the same CPUs, the kernel chooses: pinning would make the
    // generator wait for the application.
    let cpus = if plan.is_shared() {
        Vec::new()
    } else {
        plan.generator[plan.generator.len() - threads..].to_vec()
    };
    let users = load.plan.users.as_ref().map(|users| Users {
        present: wanted.users.to_vec(),
        ..users.clone()
    });
    LoadOrder {
        plan: LoadPlan {
            users,
            connections,
            part,
            start_ns: wanted.from_ns,
            cpus,
            ..load.plan.clone()
        },
        netns: wanted.network.clone(),
        generators: wanted.generators.cloned(),
        front_port: wanted.command.and_then(|command| command.port),
    }
}

fn second_evidence(message: &SecondMessage) -> SecondEvidence {
    SecondEvidence {
        at_ns: message.at_ns,
        offered: Some(message.offered),
        achieved: Some(message.ok),
        errors: Some(message.errors),
        p50: message.p50,
        p99: message.p99,
        max: message.max,
        ..SecondEvidence::default()
    }
}

fn load_evidence(load: &LoadPhase, part: LoadPart, result: ResultMessage) -> LoadEvidence {
    let offered_rate = load.plan.model.mean_rate();
    let names = load.plan.mix.iter().map(|weighted| weighted.name.clone());
    let service_time = encode_histogram(&result.measure.totals.service_time);
    let generators = result.generators;
    LoadEvidence {
        instance: (part.of > 1).then_some(part.index + 1),
        offered_rate: offered_rate.map(|rate| rate / f64::from(part.of)),
        service_time: Some(service_time),
        send_lag_p99: Some(result.health.send_lag_p99),
        generator_cpu: Some(result.health.cpu),
        saturated: result.health.saturated,
        load_from: (!generators.is_empty()).then_some(LoadFrom::Generators { generators }),
        ..outcome_evidence(load, &result.measure, names)
    }
}

/// The outcomes of a load phase, whoever sent it.
pub(crate) fn outcome_evidence(
    load: &LoadPhase,
    message: &TotalsMessage,
    names: impl Iterator<Item = String>,
) -> LoadEvidence {
    let totals = &message.totals;
    let by_request = names.zip(&totals.by_request);
    LoadEvidence {
        phase: load.phase,
        instance: None,
        offered_rate: load.plan.model.mean_rate(),
        achieved_rate: message.achieved_rate(),
        duration: message.duration,
        scheduled: totals.scheduled,
        ok: totals.ok,
        errors: totals.errors_by_name(),
        unfinished: totals.unfinished,
        latency: encode_histogram(&totals.latency),
        service_time: None,
        send_lag_p99: None,
        generator_cpu: None,
        saturated: None,
        by_request: by_request.map(request_evidence).collect(),
        by_second: totals.by_second.iter().map(due_evidence).collect(),
        load_from: None,
    }
}

fn due_evidence(totals: &RequestTotals) -> DueEvidence {
    DueEvidence {
        ok: totals.ok,
        failed: totals.failed + totals.unfinished,
        latency: encode_histogram(&totals.latency),
    }
}

fn request_evidence((name, totals): (String, &RequestTotals)) -> RequestEvidence {
    RequestEvidence {
        name,
        ok: totals.ok,
        failed: totals.failed,
        unfinished: totals.unfinished,
        latency: encode_histogram(&totals.latency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_load_from_generators_is_no_evidence_or_a_refusal() {
        let told = |how| match no_load_halt(how, "the generator g on n: why".to_owned()) {
            HaltReason::Failed(failure) => failure.cause.reason_name().to_owned(),
            HaltReason::Refused(refusal) => refusal.to_string(),
            HaltReason::Stopped => "stopped".to_owned(),
        };
        assert_eq!(told(RemoteLoadFailure::Lost), "runtime_lost");
        assert_eq!(told(RemoteLoadFailure::Clock), "clock_jump");
        insta::assert_snapshot!(told(RemoteLoadFailure::Unreachable), @"sending load from generator pods: the application is ready on localhost, but not for the generator g on n: why");
    }
}
