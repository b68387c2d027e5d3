//! Samples a group over time in a separate thread: at a fixed interval, or once per CFS period,
//! just after its boundary.
//!
//! Owns the thread, its absolute deadlines and the account of its own cost. Gaps are recorded,
//! never filled. The thread must not be in the sampled group.

mod alarm;
mod schedule;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::CgroupError;
use crate::group::ControlGroup;
use crate::reader::{CgroupReader, monotonic_ns};
use crate::sample::CgroupSample;
use alarm::SampleTimer;
use schedule::SampleSchedule;
pub use schedule::{Pace, PhaseLock, SampleGap};

/// Reading memory.stat flushes counters of all CPUs.
const SLOW_FLOOR: Duration = Duration::from_millis(20);

/// Most stored gaps; all are counted.
const MAX_GAPS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplerOptions {
    pub pace: Pace,
    /// Memory and the number of tasks are read at the first sample after each such interval;
    /// never faster than every 20 ms.
    pub memory_every: Duration,
}

impl SamplerOptions {
    /// One sample each `interval` (1 s, 100 ms, 1 ms); memory every 100 ms at most.
    pub fn every(interval: Duration) -> Self {
        Self {
            pace: Pace::Every(interval),
            memory_every: Duration::from_millis(100),
        }
    }

    /// One sample each CFS period, 1.5 ms after its boundary; memory every second, since
    /// this pace is for when sampling shall cost next to nothing.
    pub fn phase_locked(period: Duration) -> Self {
        Self {
            pace: Pace::PhaseLocked(period),
            memory_every: Duration::from_secs(1),
        }
    }
}

#[derive(Debug)]
pub struct CgroupSampler {
    alarm: Arc<SampleTimer>,
    thread: Option<JoinHandle<SamplerReport>>,
}

#[derive(Debug, Default)]
pub struct SamplerReport {
    pub samples: u64,
    pub wall: Duration,
    pub cpu: Duration,
    /// Times with missed samples, the first 10 000.
    pub gaps: Vec<SampleGap>,
    pub gap_count: u64,
    pub longest_gap: Duration,
    pub phase_lock: Option<PhaseLock>,
    /// Whether the scheduler let it run at once (SCHED_FIFO); else it waits while CPUs are busy.
    pub is_realtime: bool,
    pub failure: Option<CgroupError>,
}

impl SamplerReport {
    pub fn cpu_share(&self) -> f64 {
        self.cpu.as_secs_f64() / self.wall.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn add_gap(&mut self, gap: SampleGap) {
        self.gap_count += 1;
        self.longest_gap = self.longest_gap.max(gap.gap_length());
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(gap);
        }
    }
}

impl CgroupSampler {
    /// Starts the thread. `sink` gets every sample on that thread, in order; it must be quick,
    /// and it clones what it keeps: the sample's memory is reused.
    /// Errors: A group that is gone, a thread that cannot be started.
    pub fn start_sampling(
        group: &ControlGroup,
        options: SamplerOptions,
        sink: impl FnMut(&CgroupSample) + Send + 'static,
    ) -> Result<Self, CgroupError> {
        let cannot = |e| CgroupError::for_file("start the sampler of", group.first_dir(), e);
        let reader = group.open_reader()?;
        let alarm = Arc::new(SampleTimer::new().map_err(cannot)?);
        let waits = Arc::clone(&alarm);
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(reader, options, &waits, sink))
            .map_err(cannot)?;
        Ok(Self {
            alarm,
            thread: Some(thread),
        })
    }

    pub fn stop_sampling(mut self) -> SamplerReport {
        match self.join_thread() {
            Some(Ok(report)) => report,
            // The sink panicked; its panic is the caller's.
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => SamplerReport::default(),
        }
    }

    fn join_thread(&mut self) -> Option<thread::Result<SamplerReport>> {
        self.alarm.cancel_wait();
        Some(self.thread.take()?.join())
    }
}

impl Drop for CgroupSampler {
    fn drop(&mut self) {
        let _ = self.join_thread();
    }
}

fn run(
    mut reader: CgroupReader,
    options: SamplerOptions,
    alarm: &SampleTimer,
    mut sink: impl FnMut(&CgroupSample),
) -> SamplerReport {
    let start = monotonic_ns();
    let cpu_start = thread_cpu();
    // A late sample places a stop wrongly. Without this right, samples are late when the machine is
    // busy, and the gaps show it.
    let mut report = SamplerReport {
        is_realtime: loadline_sys::run_at_once().is_ok(),
        ..SamplerReport::default()
    };
    let mut schedule = SampleSchedule::new(options.pace, start);
    let mut memory = SlowReading::new(options.memory_every);
    let mut sample = CgroupSample::default();
    let mut grid = None;
    loop {
        let woken = alarm.wait_until_due(schedule.next(), schedule.interval(), &mut grid);
        let taken = match woken {
            Ok(true) => take_sample(&mut reader, &mut sample, &mut memory),
            Ok(false) => break,
            Err(e) => Err(CgroupError::for_file("wait for", Path::new("timerfd"), e)),
        };
        if let Err(error) = taken {
            report.failure = Some(error);
            break;
        }
        report.samples += 1;
        sink(&sample);
        if let Some(gap) = schedule.note_sample(sample.at_ns, monotonic_ns(), sample.cpu.nr_periods)
        {
            report.add_gap(gap);
        }
    }
    report.phase_lock = schedule.phase_lock();
    report.wall = Duration::from_nanos(monotonic_ns() - start);
    report.cpu = thread_cpu().saturating_sub(cpu_start);
    report
}

/// Takes one sample; slow readings only when due. PSI is read before and after a trial
/// ([`crate::noise`]), which loses no stall time between.
fn take_sample(
    reader: &mut CgroupReader,
    sample: &mut CgroupSample,
    memory: &mut SlowReading,
) -> Result<(), CgroupError> {
    let now = monotonic_ns();
    sample.at_ns = now;
    reader.read_cpu(&mut sample.cpu)?;
    (sample.memory, sample.pids_current) = if memory.is_due(now) {
        (Some(reader.read_memory()?), reader.read_pids()?)
    } else {
        (None, None)
    };
    Ok(())
}

struct SlowReading {
    interval: u64,
    next: u64,
}

impl SlowReading {
    fn new(interval: Duration) -> Self {
        Self {
            interval: saturating_nanos(interval.max(SLOW_FLOOR)),
            next: 0,
        }
    }

    fn is_due(&mut self, now: u64) -> bool {
        if now < self.next {
            return false;
        }
        // A tenth early counts, so that a 100 ms sampler with a little jitter reads every time.
        self.next = now + self.interval - self.interval / 10;
        true
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
