//! The scheduler's own account of a process: a `sched_switch` trace in a separate trace instance.
//!
//! Owns tracefs and the meaning of its lines. Since Linux 6.18 a task is throttled on its way back
//! to user mode, and such a task leaves the CPU with state `R+`, a preempted task with `R`. Earlier
//! kernels mark both alike: there the trace does not show throttling. A task that is woken in a
//! throttled group has no such mark: it slept, and from `sched_wakeup` on it is runnable and does
//! not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use loadline_analysis::span::{TimeSpan, TimeSpans};

/// Room for events of each CPU, KiB.
const BUFFER_KIB: &str = "65536";

/// The first kernel with a trace that distinguishes throttling from preemption.
const SINCE: (u32, u32) = (6, 18);

/// tracefs with an instance that only this program uses; dropping it removes both.
pub struct Tracer {
    instance: PathBuf,
    /// Where tracefs was mounted for this, if it was not there.
    mounted: Option<PathBuf>,
}

/// When the threads of a process ran and when they stood.
#[derive(Default)]
pub struct Scheduled {
    /// For each thread: throttled, from leaving the CPU to being back on one.
    pub throttled: BTreeMap<u32, TimeSpans>,
    /// For each thread: runnable and not running for another reason: pushed aside by others, or
    /// woken and not yet on a CPU.
    pub waiting: BTreeMap<u32, TimeSpans>,
    /// Some thread of the process was on a CPU.
    pub on_cpu: TimeSpans,
    /// Events that were lost: the trace is not whole.
    pub lost: u64,
}

impl Scheduled {
    /// A thread was throttled, and none ran.
    pub fn all_stood(&self) -> TimeSpans {
        self.any_throttled().difference(&self.on_cpu)
    }

    /// When this thread stood because of the quota: marked so, or runnable without running while
    /// other threads of its group were marked so.
    pub fn own(&self, thread: u32) -> TimeSpans {
        let none = TimeSpans::default();
        let marked = self.throttled.get(&thread).unwrap_or(&none);
        let waited = self.waiting.get(&thread).unwrap_or(&none);
        marked.union(&waited.intersection(&self.any_throttled()))
    }

    fn any_throttled(&self) -> TimeSpans {
        let spans = self.throttled.values().flat_map(|s| s.as_slice());
        spans.copied().collect()
    }
}

impl Tracer {
    /// Opens an instance.
    pub fn open() -> Result<Self, String> {
        let release =
            fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|e| e.to_string())?;
        if version(&release).is_none_or(|v| v < SINCE) {
            return Err(format!(
                "the trace of kernel {} does not tell throttling from preemption (Linux {}.{} does)",
                release.trim(),
                SINCE.0,
                SINCE.1
            ));
        }
        let (root, mounted) = tracefs()?;
        let instance = root.join(format!("instances/loadline-{}", std::process::id()));
        let tracer = Self { instance, mounted };
        fs::create_dir(&tracer.instance).map_err(|e| format!("no trace instance: {e}"))?;
        tracer.set("trace_clock", "mono")?;
        tracer.set("buffer_size_kb", BUFFER_KIB)?;
        tracer.set("options/event-fork", "1")?;
        Ok(tracer)
    }

    /// Begins to trace a process and everything that it will start.
    pub fn begin(&self, pid: u32) -> Result<(), String> {
        self.set("trace", "")?;
        self.set("set_event_pid", &pid.to_string())?;
        self.set("events/sched/sched_switch/enable", "1")?;
        self.set("events/sched/sched_wakeup/enable", "1")?;
        self.set("tracing_on", "1")
    }

    /// Ends it and reads what the threads did.
    pub fn end(&self, threads: &BTreeSet<u32>) -> Result<Scheduled, String> {
        self.set("tracing_on", "0")?;
        self.set("events/sched/sched_switch/enable", "0")?;
        self.set("events/sched/sched_wakeup/enable", "0")?;
        let file = fs::File::open(self.instance.join("trace")).map_err(|e| e.to_string())?;
        let mut scheduled = read(BufReader::new(file), threads);
        scheduled.lost = self.lost();
        self.set("set_event_pid", "")?;
        Ok(scheduled)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.instance.join(file);
        fs::write(&path, value).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn lost(&self) -> u64 {
        let stats = fs::read_dir(self.instance.join("per_cpu"))
            .into_iter()
            .flatten();
        let overrun = |path: PathBuf| {
            let text = fs::read_to_string(path.join("stats")).ok()?;
            let line = text.lines().find_map(|l| l.strip_prefix("overrun:"))?;
            line.trim().parse::<u64>().ok()
        };
        stats
            .flatten()
            .filter_map(|entry| overrun(entry.path()))
            .sum()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // No other program uses the instance; a leftover is gone after the next reboot.
        let _ = fs::remove_dir(&self.instance);
        if let Some(mounted) = &self.mounted {
            let _ = rustix::mount::unmount(mounted, rustix::mount::UnmountFlags::empty());
            let _ = fs::remove_dir(mounted);
        }
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// tracefs where it is mounted, else mounted for this.
fn tracefs() -> Result<(PathBuf, Option<PathBuf>), String> {
    let usual = Path::new("/sys/kernel/tracing");
    if usual.join("instances").is_dir() {
        return Ok((usual.to_owned(), None));
    }
    let own = std::env::temp_dir().join(format!("loadline-tracefs-{}", std::process::id()));
    fs::create_dir(&own).map_err(|e| e.to_string())?;
    let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NOEXEC;
    match rustix::mount::mount("none", &own, "tracefs", flags, None) {
        Ok(()) => Ok((own.clone(), Some(own))),
        Err(error) => {
            let _ = fs::remove_dir(&own);
            Err(format!("tracefs cannot be mounted: {error}"))
        }
    }
}

/// What a line says.
enum Line {
    /// One thread left a CPU in this state, another came.
    Switch {
        at: u64,
        left: u32,
        state: String,
        came: u32,
    },
    /// A thread that slept became runnable.
    Woken { at: u64, thread: u32 },
}

/// `... 1234.567890: sched_switch: prev_comm=a b prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=2 ...`
/// `... 1234.567890: sched_wakeup: comm=a b pid=1 prio=120 target_cpu=000`
fn parse(line: &str) -> Option<Line> {
    // A thread may be called anything: fields are looked for from the back.
    let field = |text: &str, name: &str| {
        let value = text.rsplit_once(name)?.1;
        Some(value.split(' ').next()?.to_owned())
    };
    if let Some((head, event)) = line.split_once(": sched_wakeup: ") {
        let (at, thread) = (stamp(head)?, field(event, " pid=")?.parse().ok()?);
        return Some(Line::Woken { at, thread });
    }
    let (head, event) = line.split_once(": sched_switch: ")?;
    let (left, came) = event.split_once(" ==> ")?;
    Some(Line::Switch {
        at: stamp(head)?,
        left: field(left, " prev_pid=")?.parse().ok()?,
        state: field(left, " prev_state=")?,
        came: field(came, " next_pid=")?.parse().ok()?,
    })
}

/// The time at the end of a line's head, ns.
fn stamp(head: &str) -> Option<u64> {
    let (seconds, micros) = head.rsplit(' ').next()?.split_once('.')?;
    let micros = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    Some(micros * 1000)
}

/// Why a thread is not on a CPU.
enum Away {
    Throttled,
    Waiting,
    Sleeping,
}

fn read(lines: impl BufRead, threads: &BTreeSet<u32>) -> Scheduled {
    let mut throttled: BTreeMap<u32, Vec<TimeSpan>> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, Vec<TimeSpan>> = BTreeMap::new();
    let mut on_cpu = Vec::new();
    let mut away: BTreeMap<u32, (u64, Away)> = BTreeMap::new();
    let mut running: BTreeMap<u32, u64> = BTreeMap::new();
    for line in lines.lines().map_while(Result::ok) {
        match parse(&line) {
            Some(Line::Woken { at, thread }) => {
                if let Some(since) = away.get_mut(&thread)
                    && matches!(since.1, Away::Sleeping)
                {
                    *since = (at, Away::Waiting);
                }
            }
            Some(Line::Switch {
                at,
                left,
                state,
                came,
            }) => {
                if threads.contains(&left) {
                    on_cpu.extend(running.remove(&left).map(|since| TimeSpan::new(since, at)));
                    let why = match state.as_str() {
                        "R+" => Away::Throttled,
                        "R" => Away::Waiting,
                        _ => Away::Sleeping,
                    };
                    away.insert(left, (at, why));
                }
                if threads.contains(&came) {
                    running.insert(came, at);
                    match away.remove(&came) {
                        Some((since, Away::Throttled)) => {
                            throttled
                                .entry(came)
                                .or_default()
                                .push(TimeSpan::new(since, at));
                        }
                        Some((since, Away::Waiting)) => {
                            waiting
                                .entry(came)
                                .or_default()
                                .push(TimeSpan::new(since, at));
                        }
                        Some((_, Away::Sleeping)) | None => {}
                    }
                }
            }
            None => {}
        }
    }
    Scheduled {
        throttled: sets(throttled),
        waiting: sets(waiting),
        on_cpu: on_cpu.into_iter().collect(),
        lost: 0,
    }
}

fn sets(all: BTreeMap<u32, Vec<TimeSpan>>) -> BTreeMap<u32, TimeSpans> {
    let set = |(tid, spans): (u32, Vec<TimeSpan>)| (tid, spans.into_iter().collect());
    all.into_iter().map(set).collect()
}
