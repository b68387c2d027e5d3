//! The end of a trial: thread dump, SIGTERM, grace, kill, collect, remove.
//!
//! Owns the order of the steps, which matters: what the application said and used is collected
//! before the group is gone, and nothing is removed before everything is dead.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, ExitEvidence};
use rustix::process::Signal;

use super::gc;
use super::instance::LocalInstance;
use super::probe::{Finding, Probing, Question};
use super::recording as samples;
use crate::application_pauses;
use crate::backend::{Observer, Readiness};

/// How long a JVM may take to write its thread dump.
const DUMP: Duration = Duration::from_secs(1);

/// When nothing was written for so long, the dump is complete.
const DUMP_QUIET: Duration = Duration::from_millis(200);

/// How long an application that was ready may take to answer once more, else it hangs.
const ANSWER: Duration = Duration::from_secs(1);

/// How long init may take to say how a killed application ended; milliseconds as a rule.
const TOLD: Duration = Duration::from_secs(2);

/// How long dying may take once killed; milliseconds as a rule.
const END: Duration = Duration::from_secs(10);

/// Stops the application and hands over what was measured.
pub(super) fn stop(
    instance: &mut LocalInstance,
    grace: Duration,
    observer: &mut dyn Observer,
) -> Evidence {
    instance.drain_notes();
    let mut evidence = Evidence {
        last_output: instance.output.last_lines(),
        ..Evidence::default()
    };
    evidence.exit.before_stop = instance.state.is_over() && instance.state.exec_ns.is_some();
    if instance.state.exec_ns.is_some() && !instance.state.is_over() {
        if instance.is_jvm && (instance.state.ready_ns.is_none() || hangs(instance)) {
            evidence.thread_dump = thread_dump(instance);
        }
        terminate(instance, grace, observer, &mut evidence.exit);
    }
    end(instance, &mut evidence);
    if evidence.exit.before_stop || evidence.exit.unclean_stop {
        // Only now has the reader of the pipe seen everything: a dead process says why it died in
        // its last lines.
        evidence.last_output = instance.output.last_lines();
    }
    collect(instance, &mut evidence);
    evidence
}

impl LocalInstance {
    fn drain_notes(&mut self) {
        let notes: Vec<_> = self.notes.try_iter().collect();
        for note in notes {
            self.state.take(note);
        }
    }
}

/// Whether an application that was ready does not answer any more.
fn hangs(instance: &LocalInstance) -> bool {
    let (port, question) = match &instance.spec.readiness {
        Readiness::Http { port, path } => (*port, Question::Http { path: path.clone() }),
        Readiness::Tcp { port } => (*port, Question::Tcp),
        Readiness::LogLine { .. } => return false,
    };
    let Ok(probe) = instance.probe_for(port, question) else {
        return false;
    };
    let (tell, told) = std::sync::mpsc::channel();
    let begin = Instant::now();
    let Ok(_probing) = Probing::start(probe, move |finding| drop(tell.send(finding))) else {
        return false;
    };
    while let Some(left) = ANSWER.checked_sub(begin.elapsed()) {
        match told.recv_timeout(left) {
            Ok(Finding::NotYet { .. }) => {}
            Ok(_) => return false,
            Err(_) => return true,
        }
    }
    true
}

/// What the JVM says to SIGQUIT: its threads, on its standard output.
fn thread_dump(instance: &mut LocalInstance) -> Vec<String> {
    let before = instance.output.total();
    instance.sandbox.signal(Signal::QUIT);
    let begin = Instant::now();
    let mut seen = (before, Instant::now());
    while begin.elapsed() < DUMP && !instance.state.is_over() {
        instance.tick();
        let total = instance.output.total();
        if total != seen.0 {
            seen = (total, Instant::now());
        } else if total != before && seen.1.elapsed() > DUMP_QUIET {
            break;
        }
    }
    instance.output.lines_since(before)
}

/// SIGTERM, then the grace time.
fn terminate(
    instance: &mut LocalInstance,
    grace: Duration,
    observer: &mut dyn Observer,
    exit: &mut ExitEvidence,
) {
    let begin = Instant::now();
    instance.sandbox.signal(Signal::TERM);
    while !instance.state.is_over() && begin.elapsed() < grace {
        instance.tick();
        observer.progress(crate::backend::Progress {
            phase: loadline_analysis::record::Phase::Stop,
            elapsed: begin.elapsed(),
            p99: None,
            rate: None,
        });
    }
    // A machine that stood still for the whole grace may have the end waiting to be read.
    instance.tick();
    exit.unclean_stop = !instance.state.is_over();
}

/// Kills what is left, in the group and in the namespace, until nothing is.
fn end(instance: &mut LocalInstance, evidence: &mut Evidence) {
    let left = instance.group.group().processes().unwrap_or_default().len() as u64;
    let own = u64::from(instance.state.exec_ns.is_some() && !instance.state.is_over());
    evidence.exit.leftover_processes = left.saturating_sub(own);
    if let Err(error) = instance.group.group().kill(END) {
        evidence.warnings.push(error.to_string());
    }
    // With the socket init ends too: before that it must have said how the application ended.
    let begin = Instant::now();
    while own > 0 && !instance.state.is_over() && begin.elapsed() < TOLD {
        instance.tick();
    }
    if instance.sandbox.end(END) {
        // The last writer is dead: the reader comes to its end.
        instance.output.finish();
    } else {
        let text = "processes of the trial could not be killed; `loadline clean` tries again";
        evidence.warnings.push(text.to_owned());
    }
    instance.drain_notes();
}

/// Everything that was measured, then the group goes.
fn collect(instance: &mut LocalInstance, evidence: &mut Evidence) {
    if let Some(ended) = instance.state.ended {
        evidence.exit.code = ended.code;
        evidence.exit.signal = ended.signal;
    }
    let last = instance.sample();
    if let Some(recording) = &mut instance.recording {
        if let Some(sample) = &last {
            recording.add(sample);
        }
        let recorded = recording.finish(instance.state.measure);
        let start = instance.state.exec_ns.unwrap_or(u64::MAX);
        let points = &recorded.points;
        evidence.cgroup = samples::evidence(points, recorded.peak_rss, instance.state.measure);
        (evidence.cgroup.loaded_rss, evidence.cgroup.loaded_pss) = instance.state.loaded;
        evidence.seconds = samples::seconds(points, start, &instance.state.load_ends);
        evidence.pauses = Some(recorded.pauses);
        evidence.warnings.extend(recorded.warnings);
        evidence.failure = recorded.failure;
    }
    if let Some(failure) = instance.state.failure.take() {
        evidence.failure = Some(failure);
    }
    if let Err(error) = instance.group.remove() {
        evidence.warnings.push(error.to_string());
    }
    gc::collect(instance, evidence);
    application_pauses(instance, evidence);
    evidence.start.log_line = instance.log_line();
    if let Some(keep) = &instance.spec.keep
        && let Err(error) = instance.scratch.keep(&keep.seen, &keep.to)
    {
        evidence.warnings.push(error.to_string());
    }
    evidence.noise = std::mem::take(&mut instance.state.noise);
    evidence.warnings.append(&mut instance.plan.warnings);
    evidence.warnings.append(&mut instance.state.warnings);
    evidence.warnings.extend(instance.output.log_failure());
}

/// What the application wrote down about itself; most applications write nothing.
fn application_pauses(instance: &LocalInstance, evidence: &mut Evidence) {
    let seen = Path::new(application_pauses::PATH);
    let read = instance.scratch.read(seen, application_pauses::CAP);
    let Some(pauses) = &mut evidence.pauses else {
        return;
    };
    match read {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let application = application_pauses::parse(&text);
            if bytes.len() as u64 == application_pauses::CAP {
                let text = "the file of its own pauses is longer than loadline reads: the last ones are missing";
                evidence.warnings.push(text.to_owned());
            }
            if application.lost > 0 {
                evidence.warnings.push(format!(
                    "{} pauses that the application saw are not in the record: `explain` may count too few",
                    application.lost
                ));
            }
            pauses.application = Some(application);
        }
        Err(error) if error.source.kind() == ErrorKind::NotFound => {}
        Err(error) => evidence.warnings.push(format!("its own pauses: {error}")),
    }
}
