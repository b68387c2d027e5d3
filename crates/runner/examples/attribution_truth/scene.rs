//! One run: the workload in a cgroup, traced and sampled, and all observations.
//!
//! Owns the cgroup and the process; both are gone when it returns.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use loadline_analysis::estimate::CounterSample;
use loadline_analysis::pauses::PauseEvidence;
use loadline_analysis::span::TimeSpan;
use loadline_cgroup::{
    CgroupLayout, CgroupLimits, CgroupSampler, ControlGroup, GroupName, SamplerOptions,
    SamplerReport,
};
use loadline_jvm::detect::InstalledJdk;
use loadline_jvm::gclog::{GcLog, GcLogBuilder, WallClock};
use loadline_jvm::log_option::gc_log_options;
use loadline_sizing::{Cpus, Vm};
use loadline_trial::clock::{monotonic_ns, wall_ahead_ns};

use crate::trace::{Scheduled, Tracer};

/// The study's workload scaled to a heap that fits small machines.
const HEAP: &str = "1500m";
const THRESHOLD: u32 = 1_500_000;

/// A pause is an allocation that took longer than this.
pub const LONG: u64 = 50_000_000;

/// Weight of the group: neighbours shall not disturb.
const SHARES: u64 = 20 * 1024;

/// Everything seen in one run.
pub struct Seen {
    /// Long pauses with the thread that had them.
    pub pauses: Vec<(u32, TimeSpan)>,
    /// The scheduler's truth.
    pub scheduled: Scheduled,
    /// Safepoints, as trials keep them.
    pub log: PauseEvidence,
    /// Samples at 1 kHz and what they cost.
    pub fast: (Vec<CounterSample>, SamplerReport),
    /// Samples once a period and what they cost.
    pub locked: (Vec<CounterSample>, SamplerReport),
    /// CFS period, ns.
    pub period: u64,
    /// Throttled time of the group at the end, ns.
    pub throttled: u64,
}

/// Why this machine cannot run it.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it makes cgroups and traces the scheduler, for which it must be root".into());
    }
    (!crate::jar().is_file()).then(|| "the workload is not built: make workloads".into())
}

/// Runs the workload under a limit for some seconds.
pub fn run(
    tracer: &Tracer,
    jdk: &InstalledJdk,
    limit: Cpus,
    gc_threads: u32,
    seconds: u64,
) -> Result<Seen, Box<dyn Error>> {
    let layout = CgroupLayout::detect(Path::new("/sys/fs/cgroup"), Path::new("/proc"))?;
    let name = GroupName::new(Path::new("/proc"), "attribution-truth")?;
    let group = ControlGroup::create_group(&layout, &name.to_string())?;
    let (log, said) = (
        tempfile::NamedTempFile::new()?,
        tempfile::NamedTempFile::new()?,
    );
    let mut command = workload(jdk, log.path(), gc_threads, seconds, &group);
    command.stdout(said.reopen()?);
    let wall = wall_clock();
    let seen = in_group(&group, tracer, limit, seconds, &mut command, said.path());
    group.kill_processes(Duration::from_secs(10))?;
    group.remove_dirs(Duration::from_secs(10))?;
    let mut seen = seen?;
    loadline_trial::gc_evidence::add_standstills(&read(log.path(), wall)?, &mut seen.log);
    Ok(seen)
}

/// Where the wall clock lies now: OpenJ9's log has no other one.
fn wall_clock() -> WallClock {
    let ahead_ns = wall_ahead_ns();
    WallClock {
        ahead_ns,
        set: Vec::new(),
        started_ms: (monotonic_ns().cast_signed() + ahead_ns) / 1_000_000,
    }
}

fn read(log: &Path, wall: WallClock) -> Result<GcLog, Box<dyn Error>> {
    let mut builder =
        GcLogBuilder::new(loadline_analysis::pauses::KEPT).with_wall_clock(Some(wall));
    builder.read(fs::File::open(log)?);
    Ok(builder.finish_log())
}

/// A JVM's default collector on a server, with its whole heap from the start.
fn collector(kind: Vm, gc_threads: u32) -> Vec<String> {
    match kind {
        Vm::HotSpot => vec![
            "-XX:+AlwaysPreTouch".to_owned(),
            "-XX:+UseG1GC".to_owned(),
            format!("-XX:ParallelGCThreads={gc_threads}"),
        ],
        Vm::OpenJ9 => vec![
            "-Xgcpolicy:gencon".to_owned(),
            format!("-Xgcthreads{gc_threads}"),
        ],
    }
}

fn workload(
    jdk: &InstalledJdk,
    log: &Path,
    gc_threads: u32,
    seconds: u64,
    group: &ControlGroup,
) -> Command {
    let join: String = group
        .join_files()
        .iter()
        .map(|file| format!("echo 0 > {} && ", file.display()))
        .collect();
    let mut command = Command::new("sh");
    // It waits for the trace: threads that were there before are not followed.
    command.args(["-c", &format!("read go && {join} exec \"$0\" \"$@\"")]);
    command.arg(&jdk.java);
    command.args([format!("-Xms{HEAP}"), format!("-Xmx{HEAP}")]);
    command.args(collector(jdk.kind, gc_threads));
    command.args(gc_log_options(log, &jdk.version, jdk.kind));
    command.arg("-jar").arg(crate::jar()).args([
        format!("--threshold={THRESHOLD}"),
        format!("--seconds={seconds}"),
        "--over-us=20000".to_owned(),
    ]);
    command.stdin(Stdio::piped());
    command
}

fn in_group(
    group: &ControlGroup,
    tracer: &Tracer,
    limit: Cpus,
    seconds: u64,
    command: &mut Command,
    said: &Path,
) -> Result<Seen, Box<dyn Error>> {
    let limits = CgroupLimits {
        cpu_quota: Some(limit),
        cpu_shares: Some(SHARES),
        ..CgroupLimits::default()
    };
    group.apply_limits(&limits)?;
    let (fast, fast_samples) = sampler(group, SamplerOptions::every(Duration::from_millis(1)))?;
    let (locked, locked_samples) = sampler(group, SamplerOptions::phase_locked(limits.cpu_period))?;
    let mut child = command.spawn()?;
    tracer.begin(child.id())?;
    let mut gate = child.stdin.take().ok_or("the workload has no input")?;
    gate.write_all(b"go\n")?;
    let threads = follow(&mut child, Duration::from_secs(seconds + 30))?;
    let scheduled = tracer.end(&threads.keys().copied().collect())?;
    let text = fs::read_to_string(said)?;
    Ok(Seen {
        pauses: pauses(&text, &threads)?,
        scheduled,
        log: PauseEvidence::default(),
        fast: (taken(&fast_samples), fast.stop_sampling()),
        locked: (taken(&locked_samples), locked.stop_sampling()),
        period: u64::try_from(limits.cpu_period.as_nanos())?,
        throttled: group
            .read()?
            .cpu
            .throttled_time
            .map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)),
    })
}

type Shared = Arc<Mutex<Vec<CounterSample>>>;

fn sampler(
    group: &ControlGroup,
    options: SamplerOptions,
) -> Result<(CgroupSampler, Shared), Box<dyn Error>> {
    let shared = Shared::default();
    let sink = Arc::clone(&shared);
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let sampler = CgroupSampler::start_sampling(group, options, move |sample| {
        let cpu = &sample.cpu;
        sink.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(CounterSample {
                at: sample.at_ns,
                usage: cpu.usage.map_or(0, nanos),
                per_cpu: cpu.usage_percpu.iter().copied().map(nanos).collect(),
                throttled: cpu.throttled_time.map_or(0, nanos),
            });
    })?;
    Ok((sampler, shared))
}

fn taken(shared: &Shared) -> Vec<CounterSample> {
    std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Waits for the end; returns all threads it ever saw, with their names.
fn follow(child: &mut Child, deadline: Duration) -> Result<BTreeMap<u32, String>, Box<dyn Error>> {
    let begin = Instant::now();
    let mut threads = BTreeMap::new();
    let tasks = format!("/proc/{}/task", child.id());
    while child.try_wait()?.is_none() {
        if begin.elapsed() > deadline {
            child.kill()?;
            child.wait()?;
            return Err("the workload did not end in time".into());
        }
        for entry in fs::read_dir(&tasks).into_iter().flatten().flatten() {
            let tid = entry.file_name().to_string_lossy().parse::<u32>();
            let name = fs::read_to_string(entry.path().join("comm"));
            if let (Ok(tid), Ok(name)) = (tid, name) {
                threads.insert(tid, name.trim().to_owned());
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(threads)
}

/// The long events of the workload's own JSON; its threads are numbered as they are named.
fn pauses(
    text: &str,
    threads: &BTreeMap<u32, String>,
) -> Result<Vec<(u32, TimeSpan)>, Box<dyn Error>> {
    let json: serde_json::Value = serde_json::from_str(text.trim())?;
    let all = json["threads"]
        .as_array()
        .ok_or("no threads in the result")?;
    let mut pauses = Vec::new();
    for (number, thread) in all.iter().enumerate() {
        let name = format!("allocator-{number}");
        let tid = threads
            .iter()
            .find(|(_, n)| **n == name)
            .map(|(tid, _)| *tid);
        let tid = tid.ok_or_else(|| format!("no thread {name} was seen"))?;
        for event in thread["events"].as_array().into_iter().flatten() {
            let (Some(start), Some(end)) = (event[0].as_u64(), event[1].as_u64()) else {
                continue;
            };
            if end - start > LONG {
                pauses.push((tid, TimeSpan::new(start, end)));
            }
        }
    }
    Ok(pauses)
}
