//! Tests that measure times hold only if the machine lets threads run. A witness on every CPU tells
//! whether it did, so that a failure is the product's and not the machine's.
//!
//! A test asserts conditions that no machine can break: that fails at once. Failures that a busy
//! machine can cause are returned as errors, which count unless a CPU stood still or other
//! processes took much of the CPUs. The test's and the product's own work counts as neither: a
//! witness sleeps nearly always, so the scheduler lets it run soon, and the CPU time of this
//! process is excluded. Source of the CPU time: /proc/stat (kernel
//! Documentation/filesystems/proc.rst, 1.7).

#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../cpus/mod.rs"]
mod cpus;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// Share of the CPUs' time that others may take of a quiet machine. A process that always wants
/// one of two CPUs takes half.
const TAKEN: f64 = 0.25;
/// Runs before a machine that is never quiet ends a test without a verdict.
const RUNS: u32 = 5;

/// Tests that measure would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test until it succeeds, or has an error although the machine was quiet: no CPU stood
/// still for `most` at a time, and others took little. Its bounds must hold on such a machine.
#[allow(clippy::print_stdout, reason = "it is what the test says")]
pub fn measured(name: &str, most: Duration, once: impl Fn() -> Result<(), String>) {
    // A test that failed before leaves nothing behind that could harm this one.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for run in 1..=RUNS {
        let witness = Witness::start();
        let result = once();
        let seen = witness.end();
        let Err(why) = result else {
            return;
        };
        println!("{name}: run {run}: {why}; {seen:?}");
        let is_quiet = seen.standstill < most && seen.taken < TAKEN;
        assert!(!is_quiet, "{why}; the machine was quiet: {seen:?}");
    }
    println!(
        "SKIP {name}: in each of {RUNS} runs a CPU stood still for {most:?} or more, or others \
         took a quarter of the CPUs or more"
    );
}

/// An error unless it holds.
pub fn holds(it_does: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    it_does.then_some(()).ok_or_else(why)
}

/// What a machine did besides the test.
#[derive(Debug)]
struct Seen {
    /// The longest time in which a CPU let no other thread run.
    standstill: Duration,
    /// Share of the CPUs' time that others took.
    taken: f64,
}

/// A thread on every CPU that wakes up every millisecond.
struct Witness {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
    began: Instant,
    taken_before: f64,
}

impl Witness {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |cpu| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || watch(cpu, &stop))
        };
        let threads = cpus::allowed().into_iter().map(start).collect();
        Self {
            stop,
            threads,
            began: Instant::now(),
            taken_before: taken_seconds(),
        }
    }

    fn end(mut self) -> Seen {
        let taken = taken_seconds() - self.taken_before;
        let cpus = self.threads.len() as f64;
        let all = self.began.elapsed().as_secs_f64() * cpus;
        self.stop.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads).into_iter();
        let longest = threads.map(|thread| thread.join().expect("a witness does not panic"));
        Seen {
            standstill: longest.max().expect("there is a CPU"),
            taken: taken / all,
        }
    }
}

impl Drop for Witness {
    /// A test that panics must not leave them to the next one.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The longest time between two wake-ups.
fn watch(cpu: usize, stop: &AtomicBool) -> Duration {
    cpus::pin(cpu);
    let mut before = Instant::now();
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
        let now = Instant::now();
        longest = longest.max(now - before);
        before = now;
    }
    longest
}

/// CPU time of all processes but this one, on the CPUs that it may use.
fn taken_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").expect("Linux has it");
    let allowed: Vec<String> = cpus::allowed().iter().map(|n| format!("cpu{n}")).collect();
    let lines = stat.lines().map(|line| line.split_whitespace());
    let ticks = lines.filter_map(|mut fields| {
        let cpu = fields.next()?;
        let is_allowed = allowed.iter().any(|allowed| allowed == cpu);
        is_allowed.then(|| busy_ticks(fields))
    });
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let own = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    ticks.sum::<f64>() / clock_ticks_per_second() as f64 - own
}

/// All of the first eight numbers of a CPU but the fourth and the fifth, in which it was idle.
fn busy_ticks<'a>(numbers: impl Iterator<Item = &'a str>) -> f64 {
    let ticks = numbers.map(|n| n.parse::<f64>().expect("a number"));
    let busy = ticks.take(8).enumerate();
    let busy = busy.filter(|(index, _)| !(3..=4).contains(index));
    busy.map(|(_, ticks)| ticks).sum()
}
