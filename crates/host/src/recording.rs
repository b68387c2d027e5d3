//! The cgroup of one trial over time: samples to seconds, peaks and the measure phase's counters.
//!
//! Owns the recording (a sampler, samples at most 100 ms apart) and the pure functions over it.
//! Counters are read from the trial's own leaf group: v1 counters are not hierarchical. A counter
//! at a moment is the one of the last sample before it, so a difference is off by 100 ms of growth
//! at most.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_analysis::estimate;
use loadline_analysis::pauses::PauseEvidence;
use loadline_analysis::record::{CgroupEvidence, Failure, Invalid, SecondEvidence};
use loadline_cgroup::{
    CgroupError, CpuSample, Group, MemorySample, Sample, Sampler, SamplerOptions,
};
use loadline_sizing::Bytes;

use super::cpus;
use super::samplefile::SampleFile;
use super::watching;
use crate::samples::SampleError;

/// Distance of readings of process memory, ns.
const RSS_EVERY: u64 = SECOND;

const SECOND: u64 = 1_000_000_000;

/// One sample, as much of it as a record needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Point {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CPU time used.
    pub cpu: Option<Duration>,
    /// Periods with runnable tasks.
    pub nr_periods: Option<u64>,
    /// Of them, throttled.
    pub nr_throttled: Option<u64>,
    /// Throttled time, a sum over CPUs.
    pub throttled: Option<Duration>,
    /// Memory.
    pub memory: Option<MemorySample>,
}

impl Point {
    /// Takes over a sample.
    pub fn new(sample: &Sample) -> Self {
        let cpu: &CpuSample = &sample.cpu;
        Self {
            at_ns: sample.at_ns,
            cpu: cpu.usage,
            nr_periods: cpu.nr_periods,
            nr_throttled: cpu.nr_throttled,
            throttled: cpu.throttled_time,
            memory: sample.memory,
        }
    }
}

/// A running recording; dropping it stops it.
pub struct Recording {
    shared: Arc<Shared>,
    sampler: Option<Sampler>,
    options: SamplerOptions,
    /// How many CPUs the application may run on.
    cpus: usize,
}

#[derive(Default)]
struct Shared {
    points: Mutex<Vec<Point>>,
    /// The same samples as the estimators of throttling read them.
    counters: Mutex<Vec<estimate::Sample>>,
    peak_rss: Mutex<Option<Bytes>>,
    is_oom: AtomicBool,
    /// Why the samples on disk are not complete.
    file_failure: Mutex<Option<SampleError>>,
}

/// What a recording gave.
pub struct Recorded {
    /// The samples in order of time.
    pub points: Vec<Point>,
    /// The peak of RSS.
    pub peak_rss: Option<Bytes>,
    /// Where it stood throttled, and what watching cost.
    pub pauses: PauseEvidence,
    /// What is to be said about it.
    pub warnings: Vec<String>,
    /// Why it is not complete.
    pub failure: Option<Failure>,
}

impl Recording {
    /// Starts sampling a group that may run on so many CPUs, in a thread pinned to `own_cpus`;
    /// every sample also goes to `file`.
    ///
    /// # Errors
    /// A group that is gone, a thread that cannot be started.
    pub fn start(
        group: &Group,
        options: SamplerOptions,
        cpus: usize,
        own_cpus: Vec<u32>,
        file: SampleFile,
    ) -> Result<Self, CgroupError> {
        let shared = Arc::new(Shared::default());
        let sink = sink(Arc::clone(&shared), group.clone(), own_cpus, file);
        let sampler = Sampler::start(group, options, sink)?;
        Ok(Self {
            shared,
            sampler: Some(sampler),
            options,
            cpus,
        })
    }

    /// Whether the kernel has killed for memory in the group, as of the last sample.
    pub fn is_oom(&self) -> bool {
        self.shared.is_oom.load(Ordering::Relaxed)
    }

    /// Adds a sample taken elsewhere, such as the last one.
    pub fn add(&self, sample: &Sample) {
        lock(&self.shared.points).push(Point::new(sample));
    }

    /// Stops sampling and hands over; `measure` is the measure phase on CLOCK_MONOTONIC.
    pub fn finish(&mut self, measure: Option<(u64, u64)>) -> Recorded {
        let report = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        let counters = std::mem::take(&mut *lock(&self.shared.counters));
        let (pauses, warnings) =
            watching::evidence(&counters, &report, self.options, self.cpus, measure);
        let ended = report
            .failure
            .filter(|error| !error.is_gone())
            .map(|error| tool_error(error.to_string()));
        let file = lock(&self.shared.file_failure).take().map(|error| Failure {
            cause: if error.disk_full {
                Invalid::DiskFull
            } else {
                Invalid::ToolError
            },
            detail: error.to_string(),
        });
        let mut points = std::mem::take(&mut *lock(&self.shared.points));
        points.sort_by_key(|point| point.at_ns);
        Recorded {
            points,
            peak_rss: *lock(&self.shared.peak_rss),
            pauses,
            warnings,
            failure: file.or(ended),
        }
    }
}

fn tool_error(detail: String) -> Failure {
    Failure {
        cause: Invalid::ToolError,
        detail,
    }
}

fn sink(
    shared: Arc<Shared>,
    group: Group,
    cpus: Vec<u32>,
    mut file: SampleFile,
) -> impl FnMut(&Sample) + Send {
    let mut is_pinned = false;
    let mut rss_due = 0;
    let mut memory = None;
    move |sample| {
        if !is_pinned {
            cpus::pin_this_thread(&cpus);
            is_pinned = true;
        }
        let kills = sample.memory.and_then(|memory| memory.oom_kill);
        if kills.is_some_and(|kills| kills > 0) {
            shared.is_oom.store(true, Ordering::Relaxed);
        }
        // Memory is read less often than the CPU: a point has the latest there is.
        memory = sample.memory.or(memory);
        lock(&shared.points).push(Point {
            memory,
            ..Point::new(sample)
        });
        lock(&shared.counters).extend(watching::counters(sample));
        if let Err(error) = file.add(sample) {
            lock(&shared.file_failure).get_or_insert(error);
        }
        if sample.at_ns >= rss_due {
            rss_due = sample.at_ns + RSS_EVERY;
            let now = group.processes().ok().and_then(|pids| rss(&pids));
            let mut peak = lock(&shared.peak_rss);
            *peak = now.max(*peak);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// RSS of processes, from /proc/PID/status: the high-water mark of a single one, the sum of the
/// present values of several. Not from smaps_rollup: that walks the page tables of the heap with
/// the address space locked, in the middle of what is measured.
fn rss(pids: &[u32]) -> Option<Bytes> {
    let field = if pids.len() == 1 { "VmHWM:" } else { "VmRSS:" };
    let of = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status_field(&status, field)
    };
    // A kernel thread or zombie has no such line; one that ended has no file.
    pids.iter().filter_map(of).reduce(Bytes::saturating_add)
}

/// Source: proc_pid_status(5): `VmRSS:\t  1234 kB`.
fn status_field(status: &str, name: &str) -> Option<Bytes> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number = rest.trim().strip_suffix("kB")?.trim();
    number.parse().ok().map(Bytes::from_kib)
}

/// The last sample at or before a moment.
pub fn at(points: &[Point], moment: u64) -> Option<&Point> {
    let after = points.partition_point(|point| point.at_ns <= moment);
    points.get(after.checked_sub(1)?)
}

/// Peaks over everything; counters over the life of the group and over `measure`.
pub fn evidence(
    points: &[Point],
    peak_rss: Option<Bytes>,
    measure: Option<(u64, u64)>,
) -> CgroupEvidence {
    let memory = |get: fn(&MemorySample) -> Option<Bytes>| {
        let values = points.iter().filter_map(|point| get(&point.memory?));
        values.max()
    };
    let count = |get: fn(&MemorySample) -> Option<u64>| {
        let values = points.iter().filter_map(|point| get(&point.memory?));
        values.max()
    };
    let window = measure.and_then(|(start, end)| Some((at(points, start)?, at(points, end)?)));
    let (begin, end) = (window.map(|w| *w.0), window.map(|w| *w.1));
    CgroupEvidence {
        peak_memory: memory(|m| m.peak.max(m.usage)),
        peak_working_set: memory(MemorySample::working_set),
        peak_anon: memory(|m| m.anon),
        peak_anon_huge: memory(|m| m.anon_huge),
        peak_rss,
        // Read once, when the judged load is over.
        loaded_rss: None,
        loaded_pss: None,
        oom_kills: count(|m| m.oom_kill),
        file_refaults: count(|m| m.refault_file),
        major_faults: count(|m| m.pgmajfault),
        cpu: points.iter().filter_map(|point| point.cpu).max(),
        measure_cpu: growth_of(begin, end, |p| p.cpu),
        measure_nr_periods: growth_of(begin, end, |p| p.nr_periods),
        measure_nr_throttled: growth_of(begin, end, |p| p.nr_throttled),
        measure_throttled: growth_of(begin, end, |p| p.throttled),
    }
}

fn growth_of<T: Growth>(
    begin: Option<Point>,
    end: Option<Point>,
    get: fn(&Point) -> Option<T>,
) -> Option<T> {
    get(&end?).and_then(|end| Some(end.growth(get(&begin?)?)))
}

trait Growth: Sized {
    fn growth(self, begin: Self) -> Self;
}

impl Growth for u64 {
    fn growth(self, begin: Self) -> Self {
        self.saturating_sub(begin)
    }
}

impl Growth for Duration {
    fn growth(self, begin: Self) -> Self {
        self.saturating_sub(begin)
    }
}

/// Cuts the recording into seconds from `start` to the last sample. Where the generator told its
/// own seconds (`load_ends`), the cuts are theirs, so that the trial can put the two together.
pub fn seconds(points: &[Point], start: u64, load_ends: &[u64]) -> Vec<SecondEvidence> {
    let end = points.last().map_or(0, |point| point.at_ns);
    let mut result = Vec::new();
    let mut begin = start;
    let mut load_ends = load_ends.iter().copied().peekable();
    while begin < end {
        // A second of the generator once it has begun; the 50 ms bridge rounding of its ends.
        let told = load_ends.next_if(|at| *at < begin + SECOND + SECOND / 20);
        let until_load = load_ends
            .peek()
            .map_or(u64::MAX, |at| at.saturating_sub(SECOND));
        let cut = told.unwrap_or((begin + SECOND).min(end).min(until_load));
        if cut > begin {
            result.push(second(points, begin, cut));
            begin = cut;
        }
    }
    result
}

fn second(points: &[Point], begin: u64, end: u64) -> SecondEvidence {
    let first = at(points, begin).copied();
    let last = at(points, end).copied();
    let memory = last.and_then(|point| point.memory);
    SecondEvidence {
        at_ns: end,
        cpu: growth_of(first, last, |p| p.cpu),
        nr_throttled: growth_of(first, last, |p| p.nr_throttled),
        throttled: growth_of(first, last, |p| p.throttled),
        memory: memory.and_then(|m| m.usage),
        working_set: memory.and_then(|m| m.working_set()),
        anon: memory.and_then(|m| m.anon),
        ..SecondEvidence::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a CPU, growing memory, one throttled period a second.
    fn points(from_ms: u64, to_ms: u64) -> Vec<Point> {
        (from_ms..=to_ms)
            .step_by(100)
            .map(|ms| Point {
                at_ns: ms * 1_000_000,
                cpu: Some(Duration::from_millis(ms / 2)),
                nr_periods: Some(ms / 100),
                nr_throttled: Some(ms / 1000),
                throttled: Some(Duration::from_millis(ms / 10)),
                memory: Some(MemorySample {
                    usage: Some(Bytes::from_mib(ms / 100)),
                    inactive_file: Some(Bytes::from_mib(1)),
                    oom_kill: Some(0),
                    ..MemorySample::default()
                }),
            })
            .collect()
    }

    #[test]
    fn peaks_are_over_all_and_counters_over_the_measure_phase() {
        let points = points(0, 10_000);
        let window = Some((4_050_000_000, 8_020_000_000));
        let evidence = evidence(&points, Some(Bytes::from_mib(7)), window);
        assert_eq!(evidence.peak_memory, Some(Bytes::from_mib(100)));
        assert_eq!(evidence.peak_working_set, Some(Bytes::from_mib(99)));
        assert_eq!(evidence.cpu, Some(Duration::from_secs(5)));
        assert_eq!(evidence.measure_cpu, Some(Duration::from_secs(2)));
        assert_eq!(evidence.measure_nr_periods, Some(40));
        assert_eq!(evidence.measure_nr_throttled, Some(4));
        assert_eq!(evidence.oom_kills, Some(0));
        assert_eq!(evidence.file_refaults, None);
    }

    #[test]
    fn without_samples_or_a_measure_phase_nothing_is_claimed() {
        assert_eq!(evidence(&[], None, Some((1, 2))), CgroupEvidence::default());
        let evidence = evidence(&points(0, 1000), None, None);
        assert_eq!(evidence.measure_cpu, None);
        assert!(evidence.cpu.is_some());
    }

    #[test]
    fn the_generators_seconds_are_kept_and_the_rest_is_cut_evenly() {
        let points = points(0, 6000);
        let load_ends = [3_500_000_000, 4_500_000_000];
        let seconds = seconds(&points, 0, &load_ends);
        let ends: Vec<u64> = seconds.iter().map(|s| s.at_ns / 1_000_000).collect();
        assert_eq!(ends, [1000, 2000, 2500, 3500, 4500, 5500, 6000]);
        let cpu: Duration = seconds.iter().filter_map(|s| s.cpu).sum();
        assert_eq!(cpu, Duration::from_secs(3));
        assert_eq!(seconds[0].working_set, Some(Bytes::from_mib(9)));
    }

    proptest::proptest! {
        #[test]
        fn any_seconds_of_the_generator_give_rising_cuts(
            start in 0..5_000_000_000u64,
            load_ends in proptest::collection::vec(0..9_000_000_000u64, 0..12),
        ) {
            let seconds = seconds(&points(0, 6000), start, &load_ends);
            proptest::prop_assert!(seconds.iter().all(|s| s.at_ns > start));
            proptest::prop_assert!(seconds.is_sorted_by_key(|s| s.at_ns));
        }
    }

    #[test]
    fn memory_of_a_process_is_read_from_its_status() {
        let status = "Name:\tjava\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(status_field(status, "VmHWM:"), Some(Bytes::from_mib(2)));
        assert_eq!(status_field(status, "VmSwap:"), None);
        assert!(rss(&[std::process::id()]).is_some_and(|rss| rss > Bytes::from_kib(100)));
        assert_eq!(rss(&[]), None);
    }
}
