//! The end of a trial: thread dump, SIGTERM, grace, kill, collect, remove.
//!
//! Owns the order of the steps, which matters: what an application said and used is collected before
//! its group is gone, and nothing is removed before everything is dead. Every step is done for all
//! instances before the next.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, ExitEvidence, StartEvidence, TrialPhase};
use loadline_cgroup::{Pace, SamplerReport};
use loadline_protocol::TrialOrder;
use loadline_protocol::log::{ChunkContent, EventLog, PIECE};
use rustix::process::Signal;

use crate::gc_evidence::{add_pauses, add_standstills, cut_warning, gc_evidence};
use crate::instance::Instance;
use crate::instances::Instances;
use crate::probe::ProbeFinding;
use crate::program::ProgramSpec;
use crate::run_output::OUT_OF_MEMORY;
use crate::samples::{SampleRow, SampleRows};
use crate::summary::{SummaryTimes, summarize_rows};
use crate::{application_pauses, halt, sight, watching};

const DUMP: Duration = Duration::from_secs(1);
const DUMP_QUIET: Duration = Duration::from_millis(200);

/// How long an application that was ready may take to answer once more, else it hangs.
const ANSWER: Duration = Duration::from_secs(1);

const READ: Duration = Duration::from_secs(5);

/// Most that is taken over of a file of the application, in bytes: a start-up cache has some 100 MB.
const HANDED_OVER: u64 = 4 << 30;

const NOT_TOLD: &str = "its own process exited on SIGTERM, but its children did not and were killed, as in a container; a start script must `exec` its JVM";

/// How long a container may take to say how a killed application ended; milliseconds as a rule.
const TOLD: Duration = Duration::from_secs(2);

/// Stops the applications and returns the evidence of each, in their order. With `is_given_up` its
/// behaviour is known already: it is not checked for a hang.
pub(crate) fn end_instances(
    instances: &mut Instances,
    order: &TrialOrder,
    program: &ProgramSpec,
    (grace, is_given_up): (Duration, bool),
    log: &EventLog,
) -> Vec<Evidence> {
    instances.drain();
    let mut parts: Vec<Evidence> = instances.all.iter().map(before_stop).collect();
    for (index, part) in parts.iter_mut().enumerate() {
        let instance = &instances.all[index];
        let is_silent =
            || !is_given_up && (!instance.state.was_ready() || is_hanging(instance, order));
        if is_to_end(instance) && instance.is_jvm && is_silent() {
            part.thread_dump = thread_dump(instances, index);
        }
    }
    terminate(instances, grace);
    for (instance, part) in instances.all.iter().zip(&mut parts) {
        part.exit.unclean_stop = is_to_end(instance);
    }
    kill_instances(instances, &mut parts);
    for (instance, part) in instances.all.iter_mut().zip(&mut parts) {
        collect_evidence(instance, (order, program), log, part);
    }
    parts
}

fn before_stop(instance: &Instance) -> Evidence {
    let state = &instance.state;
    Evidence {
        last_output: instance.output.last_lines(),
        exit: ExitEvidence {
            before_stop: state.is_over() && state.exec_ns.is_some(),
            ..ExitEvidence::default()
        },
        ..Evidence::default()
    }
}

fn is_hanging(instance: &Instance, order: &TrialOrder) -> bool {
    let (tell, told) = std::sync::mpsc::channel();
    let begin = Instant::now();
    let asked = instance.start_probing(order, move |finding| drop(tell.send(finding)));
    let Ok(Some(_probing)) = asked else {
        return false;
    };
    while let Some(left) = ANSWER.checked_sub(begin.elapsed()) {
        match told.recv_timeout(left) {
            Ok(ProbeFinding::NotYet { .. }) => {}
            Ok(_) => return false,
            Err(_) => return true,
        }
    }
    true
}

fn thread_dump(instances: &mut Instances, index: usize) -> Vec<String> {
    let before = instances.all[index].output.written_bytes();
    let container = &mut instances.all[index].container;
    container.signal_application(Signal::QUIT);
    let begin = Instant::now();
    let mut seen = (before, Instant::now());
    while begin.elapsed() < DUMP && !instances.all[index].state.is_over() {
        instances.wait_tick();
        let total = instances.all[index].output.written_bytes();
        if total != seen.0 {
            seen = (total, Instant::now());
        } else if total != before && seen.1.elapsed() > DUMP_QUIET {
            break;
        }
    }
    instances.all[index].output.lines_since(before)
}

fn is_to_end(instance: &Instance) -> bool {
    instance.state.is_running() && instance.container.is_within_reach()
}

fn terminate(instances: &mut Instances, grace: Duration) {
    let begin = Instant::now();
    let is_any = |instances: &Instances| instances.all.iter().any(is_to_end);
    for instance in instances.all.iter_mut().filter(|i| is_to_end(i)) {
        instance.container.signal_application(Signal::TERM);
    }
    while is_any(instances) && begin.elapsed() < grace {
        instances.wait_tick();
        instances.report_elapsed(TrialPhase::Stop, begin.elapsed());
    }
    // A machine that stood still for the whole grace may have the end waiting to be read.
    if is_any(instances) {
        instances.wait_tick();
    }
}

fn kill_instances(instances: &mut Instances, parts: &mut [Evidence]) {
    for (instance, part) in instances.all.iter_mut().zip(&mut *parts) {
        part.failure = instance.container.outside_interference();
        let group = instance.container.application_group();
        let left = group.process_ids().unwrap_or_default().len() as u64;
        let own = u64::from(is_to_end(instance));
        part.exit.leftover_processes = left.saturating_sub(own);
        let was_told = !part.exit.before_stop && own == 0;
        if was_told && instance.is_jvm && left > 0 {
            part.warnings.push(NOT_TOLD.to_owned());
        }
        if let Err(error) = instance.container.kill_container() {
            part.warnings.push(error.to_string());
        }
    }
    // With its container an application's way to tell ends too: before that it must have told how it
    // ended.
    let begin = Instant::now();
    while instances.all.iter().any(is_to_end) && begin.elapsed() < TOLD {
        instances.wait_tick();
    }
    for (instance, part) in instances.all.iter_mut().zip(parts) {
        if instance.container.shut_down() {
            if !instance.output.wait_for_end(READ) {
                let text = "a process outside of the trial holds the application's output open";
                part.warnings.push(text.to_owned());
            }
        } else {
            let text = "processes of the trial could not be killed; `loadline clean` tries again";
            part.warnings.push(text.to_owned());
        }
        if part.exit.before_stop || part.exit.unclean_stop {
            // Only now has the reader of the pipe seen everything: a dead process says why it died
            // in its last lines.
            part.last_output = instance.output.last_lines();
        }
    }
    instances.drain();
}

/// Everything that was measured, then the group goes.
fn collect_evidence(
    instance: &mut Instance,
    (order, program): (&TrialOrder, &ProgramSpec),
    log: &EventLog,
    evidence: &mut Evidence,
) {
    if let Some(ended) = instance.state.ended {
        evidence.exit.code = ended.code;
        evidence.exit.signal = ended.signal;
    }
    evaluate_samples(instance, order, log, evidence);
    if let Err(error) = instance.container.remove_group() {
        evidence.warnings.push(error.to_string());
    }
    add_gc_evidence(instance, (order, program), evidence);
    application_pauses(instance, evidence);
    // One file is wanted, not one of each instance.
    let wanted = order.hand_over.iter().filter(|_| instance.part.index == 0);
    for (number, seen) in (0..).zip(wanted) {
        hand_over(instance, ChunkContent::File(number), seen, log, evidence);
    }
    let state = &mut instance.state;
    // The line may come after ready, so only the end of the trial knows.
    let line = state.log_line_ns.zip(state.exec_ns);
    let line = line.and_then(|(line, exec)| line.checked_sub(exec));
    evidence.start = StartEvidence {
        log_line: line.map(Duration::from_nanos),
        ..state.start.take().unwrap_or_default()
    };
    let out_of_memory = instance.output.first_line_with(OUT_OF_MEMORY);
    if let (true, Some(line)) = (order.is_timed(), out_of_memory) {
        // A JVM lives on without the thread that worked.
        evidence.last_output.push(line);
    }
    let run = order.run.as_ref();
    evidence.run =
        run.map(|run| std::mem::take(&mut state.run).into_evidence(run, &instance.output));
    evidence.failure = state.failure.take().or(evidence.failure.take());
    evidence.warnings.append(&mut instance.plan.warnings);
    evidence.warnings.append(&mut state.warnings);
    evidence.warnings.extend(instance.output.cut_notice());
}

fn evaluate_samples(
    instance: &mut Instance,
    order: &TrialOrder,
    log: &EventLog,
    evidence: &mut Evidence,
) {
    let Some(recording) = instance.recording.take() else {
        return;
    };
    let recorded = recording.finish_recording(|| instance.container.last_sample());
    let (state, index) = (&instance.state, instance.part.index);
    let times = SummaryTimes {
        start: state.exec_ns.unwrap_or(u64::MAX),
        end: recorded.end_ns,
        load_ends: &state.load_ends,
        measure: state.measure,
        judged_until: match (order.memory_study, state.judged_until) {
            (Some(_), Some(end)) => end,
            _ => u64::MAX,
        },
    };
    let cpus = instance.plan.application.len();
    let (report, watched) = (&recorded.report, (instance.pace, cpus));
    let warnings = evaluate(log, index, times, report, watched, evidence);
    evidence.cgroup.cpus = u32::try_from(cpus).ok();
    evidence.cgroup.oom_kills = oom_kills(evidence.cgroup.oom_kills, recorded.has_end);
    evidence.cgroup.peak_rss = recorded.peak_rss;
    (evidence.cgroup.loaded_rss, evidence.cgroup.loaded_pss) = state.loaded;
    evidence.warnings.extend(warnings);
    let ended = recorded.report.failure.filter(|error| !error.is_gone());
    evidence.failure = evidence.failure.take().or(ended.map(halt::own_failure));
}

/// A counter last read before the end does not include a kill at the end.
fn oom_kills(seen: Option<u64>, has_end: bool) -> Option<u64> {
    seen.filter(|kills| has_end || *kills > 0)
}

/// Fills in the figures derived from an instance's samples, rereading the log as often as
/// necessary; returns warnings.
fn evaluate(
    log: &EventLog,
    instance: u32,
    times: SummaryTimes<'_>,
    report: &SamplerReport,
    (pace, cpus): (Pace, usize),
    evidence: &mut Evidence,
) -> Vec<String> {
    let rows = || {
        let log = log.open_reader().into_iter();
        log.flat_map(move |log| SampleRows::new(log, instance))
    };
    (evidence.cgroup, evidence.seconds) = summarize_rows(rows(), times);
    let counters = || rows().filter_map(|row: SampleRow| row.throttling_counters());
    let (pauses, warnings) = watching::pause_evidence(counters, report, pace, cpus, times.measure);
    evidence.pauses = Some(pauses);
    warnings
}

/// Adds the GC figures and safepoints; none without a log. A JVM that did not see its limits is a
/// warning.
fn add_gc_evidence(
    instance: &mut Instance,
    (order, program): (&TrialOrder, &ProgramSpec),
    evidence: &mut Evidence,
) {
    // An application that was never executed has no log to miss.
    let Some(exec_ns) = instance.state.exec_ns else {
        return;
    };
    let at_ready = instance.state.start.as_ref();
    let has_counters = at_ready.is_some_and(|start| start.classes.is_some());
    let (measure, warnings) = (instance.state.measure, &mut instance.state.warnings);
    let container = instance.container.as_ref();
    // An image may have a JDK and run something else: then nothing kept a JVM's counters.
    let is_jvm = container.jdk_path().is_some() || has_counters;
    let log = instance.gc.as_mut();
    let log = log.and_then(|gc| gc.read(container, (exec_ns, measure), is_jvm, warnings));
    if instance.is_jvm {
        let header = log.as_ref().map(|log| &log.header);
        let configuration = &order.configuration;
        let home = container.jdk_path();
        let blind =
            sight::blindness_warning(program, configuration, header, home, &sight::MachineFiles);
        warnings.extend(blind);
    }
    let Some(log) = log else { return };
    evidence.gc = gc_evidence(&log);
    add_pauses(&log, &mut evidence.seconds);
    warnings.extend(cut_warning(&log));
    if let Some(pauses) = &mut evidence.pauses {
        add_standstills(&log, pauses);
    }
}

fn application_pauses(instance: &Instance, evidence: &mut Evidence) {
    let Some(pauses) = &mut evidence.pauses else {
        return;
    };
    let mut bytes = Vec::new();
    let path = Path::new(application_pauses::PATH);
    let opened = instance.container.open_file(path);
    let read = opened.and_then(|file| file.take(application_pauses::CAP).read_to_end(&mut bytes));
    match read {
        Ok(_) => {
            let text = String::from_utf8_lossy(&bytes);
            let application = application_pauses::parse_pauses(&text);
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
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => evidence.warnings.push(format!("its own pauses: {error}")),
    }
}

fn hand_over(
    instance: &Instance,
    content: ChunkContent,
    seen: &Path,
    log: &EventLog,
    evidence: &mut Evidence,
) {
    let opened = if seen.as_os_str().as_encoded_bytes().ends_with(b"/") {
        (instance.container.open_only(seen)).map(|(name, file)| (Some(name), file))
    } else {
        instance.container.open_file(seen).map(|file| (None, file))
    };
    let copied = opened.and_then(|(name, mut file)| {
        refuse_too_large(file.metadata()?.len())?;
        let mut part = Vec::with_capacity(PIECE);
        if let Some(name) = name {
            part.extend_from_slice(name.as_encoded_bytes());
            part.push(b'\n');
            log.append_chunk(content, instance.part.index, &part);
            part.clear();
        }
        while file.by_ref().take(PIECE as u64).read_to_end(&mut part)? > 0 {
            log.append_chunk(content, instance.part.index, &part);
            part.clear();
        }
        Ok(())
    });
    if let Err(error) = copied {
        let warning = format!("cannot read {}: {error}", seen.display());
        evidence.warnings.push(warning);
    }
}

/// A sparse file says that it has terabytes, and they would all be copied.
fn refuse_too_large(bytes: u64) -> std::io::Result<()> {
    if bytes <= HANDED_OVER {
        return Ok(());
    }
    let why = format!("it has {bytes} bytes, and at most {HANDED_OVER} are taken");
    Err(std::io::Error::new(ErrorKind::FileTooLarge, why))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;
    use std::sync::Arc;

    use loadline_cgroup::CgroupSample;

    use super::*;
    use crate::recording::RowSpool;

    const SAMPLES: u64 = 3_600_000;

    /// What the process of a trial may take, KiB.
    const ALLOWED: u64 = 64 << 10;

    const CHILD: &str = "LOADLINE_TEST_LOG";

    /// Two CPUs, throttled at the end of every other period of 100 ms.
    fn sample(n: u64) -> CgroupSample {
        let (period, within) = (n / 100, n % 100);
        let ran = match period % 2 {
            0 => within / 2,
            _ => within.min(50),
        };
        let usage = Duration::from_millis(period * 50 + ran);
        let mut sample = CgroupSample {
            at_ns: n * 1_000_000,
            ..CgroupSample::default()
        };
        sample.cpu.usage = Some(2 * usage);
        sample.cpu.usage_percpu = vec![usage, usage];
        sample.cpu.nr_periods = Some(period);
        sample.cpu.throttled_time = Some(Duration::from_millis(period / 2 * 100));
        sample.memory = (within == 0).then(Default::default);
        sample
    }

    #[test]
    fn a_counter_that_was_not_read_at_the_end_knows_no_kill_that_was_the_end() {
        assert_eq!(oom_kills(Some(0), false), None);
        assert_eq!(oom_kills(Some(0), true), Some(0));
        assert_eq!(oom_kills(Some(1), false), Some(1));
    }

    /// Peaks cover a whole process, so this test needs its own.
    #[test]
    fn an_hour_of_samples_at_1_ms_stays_below_64_mib() {
        if let Some(path) = std::env::var_os(CHILD) {
            return child(Path::new(&path));
        }
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        let name = "ending::tests::an_hour_of_samples_at_1_ms_stays_below_64_mib";
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, &log)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        let peak = said.lines().find_map(|line| line.split_once("VmHWM:"));
        let peak = peak.and_then(|(_, text)| text.split_whitespace().next()?.parse().ok());
        let peak: u64 = peak.expect("it says its peak");
        let length = std::fs::metadata(&log).expect("its log").len();
        println!(
            "{SAMPLES} samples: peak {peak} KiB, log {} KiB",
            length >> 10
        );
        assert!(peak < ALLOWED, "{peak} KiB");
    }

    fn child(path: &Path) {
        let mut options = File::options();
        let options = options.read(true).append(true).create_new(true);
        let file = options.open(path).expect("a file");
        let log = Arc::new(EventLog::begin_log(file).expect("it is empty"));
        let mut spool = RowSpool::new(Arc::clone(&log), 0);
        (0..SAMPLES).for_each(|n| spool.add_sample(&sample(n)));
        spool.flush_rows();
        let end = SAMPLES * 1_000_000;
        let times = SummaryTimes {
            start: 0,
            end,
            load_ends: &[],
            measure: Some((0, end)),
            judged_until: u64::MAX,
        };
        let mut evidence = Evidence::default();
        let pace = Pace::Every(Duration::from_millis(1));
        let report = SamplerReport::default();
        evaluate(&log, 0, times, &report, (pace, 2), &mut evidence);
        assert_eq!(evidence.seconds.len(), 3600);
        let pauses = evidence.pauses.expect("it is watched");
        assert!(
            pauses.throttled_ns.len() > 5000,
            "{}",
            pauses.throttled_ns.len()
        );
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
        println!("\n{}", peak.expect("a peak"));
    }
}
