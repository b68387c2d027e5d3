//! Load from a process of its own: `loadline load-part`.
//!
//! Owns the translation of a load phase into the generator's order and of its messages into
//! evidence, and the life of the process. How load is made is `loadline-load`'s.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use loadline_analysis::record::{LoadEvidence, RequestEvidence, SecondEvidence};
use loadline_cgroup::NoiseMeter;
use loadline_load::part::{Message, Order, RequestMessage, ResultMessage, SecondMessage};
use loadline_load::{LoadError, Model, Part, Plan};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::fleet::Place;
use super::instance::{LocalInstance, Note, invalid, tool_error};
use super::spawner;
use crate::backend::{BackendError, Driven, LoadPhase, Network, Observer, Progress, share_of};

/// Beyond the phase and its drain, so long may the generator take before it counts as stuck.
const SLACK: Duration = Duration::from_secs(20);

/// After SIGTERM the result comes as soon as answers stop coming.
const STOPPED: Duration = Duration::from_secs(3);

/// Of the generator's own complaint, so much is kept.
const COMPLAINT: u64 = 4096;

/// The process itself, `loadline load-part`: dies with the loadline that started it, instead of
/// going on for the rest of the phase.
///
/// # Errors
/// As [`loadline_load::part::run`].
pub fn load_part(
    order: impl std::io::Read,
    messages: impl std::io::Write,
) -> Result<(), LoadError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| LoadError::System {
        call: "prctl(PR_SET_PDEATHSIG)",
        errno,
        hint: "a seccomp profile may forbid it",
    })?;
    loadline_load::part::run(order, messages)
}

/// What the generator's output is read as.
pub(super) enum Line {
    /// A message.
    Message(Message),
    /// The end of the output, with what it wrote to standard error or what could not be read.
    End(String),
}

/// The running generator; dropping it kills it.
struct Generator {
    child: Child,
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Already ended: then there is nothing to kill, only to reap.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the instance's share of one load phase, from a moment on CLOCK_MONOTONIC or at once; ends
/// early when the application has ended.
pub(super) fn drive(
    instance: &mut LocalInstance,
    load: &LoadPhase,
    from_ns: Option<u64>,
    observer: &mut dyn Observer,
) -> Result<Driven, BackendError> {
    let generator = start(instance, load, from_ns)?;
    let mut course = Course {
        noise: instance.begin_window(Some(generator.child.id())),
        load,
        begin: Instant::now(),
        stopped: None,
        seconds: Vec::new(),
        result: None,
        complaint: None,
    };
    // Until its output ends, also after the result: what is left unread would reach the next phase.
    while course.complaint.is_none() {
        course.tick(instance, observer);
        if observer.interrupted() {
            return Err(BackendError::Interrupted);
        }
        // Before its first word it may not be ready for a signal, which would end it without a result.
        let can_be_stopped = course.result.is_some() || !course.seconds.is_empty();
        if course.stopped.is_none() && can_be_stopped && instance.state.is_over() {
            course.stopped = Some(Instant::now());
            generator.terminate();
        }
        if course.is_stuck() {
            return Err(invalid("the load generator did not end".to_owned()));
        }
    }
    instance.end_window(course.noise.take());
    // The result is its last message; it ends by itself.
    if let Some(result) = course.result.take() {
        let application_ended = instance.state.is_over();
        let place = instance.place;
        return Ok(driven(
            load,
            place,
            *result,
            course.seconds,
            application_ended,
        ));
    }
    let complaint = course.complaint.unwrap_or_default();
    Err(invalid(format!("the load generator failed: {complaint}")))
}

/// One load phase under way.
struct Course<'a> {
    noise: Option<NoiseMeter>,
    load: &'a LoadPhase,
    begin: Instant,
    stopped: Option<Instant>,
    seconds: Vec<SecondEvidence>,
    result: Option<Box<ResultMessage>>,
    complaint: Option<String>,
}

impl Course<'_> {
    fn tick(&mut self, instance: &mut LocalInstance, observer: &mut dyn Observer) {
        for line in instance.tick_for_generator() {
            match line {
                Line::Message(Message::Second(message)) => {
                    observer.progress(Progress {
                        phase: self.load.phase,
                        elapsed: self.begin.elapsed(),
                        p99: message.p99,
                        rate: Some(message.ok as f64),
                    });
                    self.seconds.push(second(&message));
                    if let Some(noise) = &mut self.noise {
                        noise.tick();
                    }
                }
                Line::Message(Message::Result(result)) => self.result = Some(result),
                Line::End(complaint) => self.complaint = Some(complaint),
            }
        }
    }

    fn is_stuck(&self) -> bool {
        let plan = &self.load.plan;
        let length = match plan.model {
            // Requests that all time out, one after the other on each connection.
            Model::ClosedRequests { requests } => {
                let rounds = requests.div_ceil(u64::from(plan.at_once()));
                let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
                plan.timeout.saturating_mul(rounds)
            }
            ref model => model.duration().unwrap_or_default(),
        };
        let allowed = length.saturating_add(plan.timeout + plan.drain + SLACK);
        let is_late = |since: Instant| since.elapsed() > STOPPED + plan.drain;
        self.begin.elapsed() > allowed || self.stopped.is_some_and(is_late)
    }
}

impl Generator {
    fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It is our child and not reaped yet: the id cannot be another's.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn start(
    instance: &LocalInstance,
    load: &LoadPhase,
    from_ns: Option<u64>,
) -> Result<Generator, BackendError> {
    let mut command = Command::new(&instance.options.program);
    command
        .arg("load-part")
        .env_clear()
        .env("LOADLINE_TRIAL", &instance.spec.trial)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = spawner::spawn(command).map_err(tool_error("starting the load generator"))?;
    let mut generator = Generator { child };
    place(instance, &generator)?;
    let order = serde_json::to_vec(&order(instance, load, from_ns))
        .map_err(|e| invalid(format!("writing the load generator's order: {e}")))?;
    let (stdin, stdout, stderr) = (
        generator.child.stdin.take(),
        generator.child.stdout.take(),
        generator.child.stderr.take(),
    );
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(invalid("the load generator has no pipes".to_owned()));
    };
    stdin
        .write_all(&order)
        .map_err(tool_error("sending the load generator its order"))?;
    // Closing it ends the order.
    drop(stdin);
    let tell = instance.tell.clone();
    std::thread::Builder::new()
        .name("generator".to_owned())
        .spawn(move || read(stdout, stderr, &tell))
        .map_err(tool_error("starting a thread"))?;
    Ok(generator)
}

/// Puts it into its own group before it gets its order, that is before it does anything.
fn place(instance: &LocalInstance, generator: &Generator) -> Result<(), BackendError> {
    let Some(group) = &instance.generator_group else {
        return Ok(());
    };
    for file in group.group().join_files() {
        std::fs::write(&file, generator.child.id().to_string())
            .map_err(|e| invalid(format!("moving the generator by {}: {e}", file.display())))?;
    }
    Ok(())
}

fn read(stdout: ChildStdout, stderr: ChildStderr, tell: &Sender<Note>) {
    let mut complaint = String::new();
    for line in BufReader::new(stdout).lines() {
        let message = line
            .map_err(|e| e.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|e| e.to_string()));
        match message {
            // The receiver is gone when the trial is over; then nobody wants to know.
            Ok(message) => drop(tell.send(Note::Generator(Line::Message(message)))),
            Err(error) => {
                complaint = format!("its output is not understood: {error}");
                break;
            }
        }
    }
    let mut said = Vec::new();
    let _ = stderr.take(COMPLAINT).read_to_end(&mut said);
    complaint.push_str(&super::plain(&String::from_utf8_lossy(&said)));
    let _ = tell.send(Note::Generator(Line::End(complaint)));
}

fn order(instance: &LocalInstance, load: &LoadPhase, from_ns: Option<u64>) -> Order {
    let (plan, place) = (&instance.plan, instance.place);
    let connections = share_of(load.plan.connections, place.index, place.of);
    let threads = (connections as usize).min(plan.generator.len());
    // Where the application runs on the same CPUs, the kernel chooses: pinning would make the
    // generator wait for the application.
    let cpus = if plan.is_shared() {
        Vec::new()
    } else {
        plan.generator[plan.generator.len() - threads..].to_vec()
    };
    Order {
        plan: Plan {
            connections,
            part: Part {
                index: place.index,
                of: place.of,
            },
            start_ns: from_ns,
            cpus,
            ..load.plan.clone()
        },
        netns: (instance.spec.network == Network::Own).then(|| instance.sandbox.network_path()),
    }
}

fn second(message: &SecondMessage) -> SecondEvidence {
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

fn driven(
    load: &LoadPhase,
    place: Place,
    result: ResultMessage,
    seconds: Vec<SecondEvidence>,
    application_ended: bool,
) -> Driven {
    let measure = result.measure;
    let offered_rate = load.plan.model.rate();
    Driven {
        load: vec![LoadEvidence {
            phase: load.phase,
            instance: (place.of > 1).then_some(place.index + 1),
            offered_rate: offered_rate.map(|rate| rate / f64::from(place.of)),
            achieved_rate: measure.achieved_rate(),
            duration: measure.duration,
            scheduled: measure.scheduled,
            ok: measure.ok,
            errors: measure.errors,
            unfinished: measure.unfinished,
            latency: measure.latency,
            service_time: measure.service_time,
            send_lag_p99: result.health.send_lag_p99,
            generator_cpu: result.health.cpu,
            saturated: result.health.saturated,
            by_request: by_request(load, measure.by_request),
        }],
        seconds,
        start_ns: result.start_ns,
        end_ns: result.end_ns,
        application_ended,
    }
}

/// The requests of the mix by their names.
fn by_request(load: &LoadPhase, totals: Vec<RequestMessage>) -> Vec<RequestEvidence> {
    let names = load.plan.mix.iter().map(|weighted| weighted.name.clone());
    let named = names.zip(totals).map(|(name, totals)| RequestEvidence {
        name,
        ok: totals.ok,
        failed: totals.failed,
        unfinished: totals.unfinished,
        latency: totals.latency,
    });
    named.collect()
}
