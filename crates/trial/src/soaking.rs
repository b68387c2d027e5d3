//! A soak while it runs: memory in parts into the event log, and the JVM's own account without load.
//!
//! Owns what a point and a look read, and when. A point costs the application nothing: /proc counters
//! that the kernel keeps anyway, and the file of counters that HotSpot writes anyway. A look makes the
//! JVM collect and walks its pages; it is taken only where no load is judged. Sources:
//! proc_pid_status(5), proc_pid_fd(5), `sun.gc.*` of hsperfdata.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline_analysis::record::{SecondEvidence, SoakEvidence, SoakLook, SoakPoint, TrialPhase};
use loadline_cgroup::MemorySample;
use loadline_jvm::attach::run_jcmd;
use loadline_jvm::footprint::{direct_buffers, live_heap};
use loadline_jvm::gclog;
use loadline_jvm::hsperf::HsperfCounters;
use loadline_protocol::log::{ChunkContent, EventLog};
use loadline_protocol::{SoakSettings, TrialEvent};
use loadline_sizing::Bytes;

use crate::clock::monotonic_ns;
use crate::instance::Instance;
use crate::parts::read_process;
use crate::process_text::{MOST_PROCESSES, read_status, status_number};

/// Most descriptors of a process that are asked what they are; more are only counted.
const MOST_ASKED: usize = 20_000;

/// Longest time that one point takes for the counters of its JVMs.
const LONGEST_READING: Duration = Duration::from_secs(1);

const GENERATIONS: u32 = 3;
const AROUND: Duration = Duration::from_secs(1);

/// GC log that is read at once, in bytes.
const CHUNK: usize = 4 << 20;

pub(crate) struct SoakRun {
    pub(crate) soak: SoakSettings,
    log: Arc<EventLog>,
    due: Instant,
    requests: u64,
    errors: u64,
    pub(crate) seen: SoakEvidence,
}

impl SoakRun {
    pub(crate) fn new(soak: SoakSettings, log: &Arc<EventLog>) -> Self {
        Self {
            soak,
            log: Arc::clone(log),
            due: Instant::now(),
            requests: 0,
            errors: 0,
            seen: SoakEvidence::default(),
        }
    }

    pub(crate) fn count_second(&mut self, second: &SecondEvidence) {
        self.requests += second.achieved.unwrap_or(0);
        self.errors += second.errors.unwrap_or(0);
    }

    pub(crate) fn take_due_point(&mut self, phase: TrialPhase, instances: &[Instance]) {
        if Instant::now() < self.due {
            return;
        }
        // A machine that stood still owes one point, not all that it missed.
        self.due = Instant::now() + self.soak.every;
        let point = SoakPoint {
            phase,
            requests: self.requests,
            errors: self.errors,
            ..read_point(instances)
        };
        // A log without room ends the trial as incomplete: its pieces do not fit either.
        let event = TrialEvent::Soak(Box::new(point.clone()));
        let _ = self.log.append_event(&event);
        self.seen.points.push(point);
    }

    /// Asks the JVM where its memory is, while nothing is judged; the last time also what malloc can
    /// give back.
    pub(crate) fn probe_jvms(&mut self, instances: &[Instance], is_last: bool) {
        // A sum without one instance would look like growth once it is back.
        let asked = instances.iter().map(|instance| {
            let processes = instance.process_ids();
            processes.iter().find_map(|pid| probe_jvm(*pid, is_last))
        });
        let taken: Option<Vec<SoakLook>> = asked.collect();
        if let Some(look) = taken.and_then(|looks| looks.into_iter().reduce(add_looks)) {
            let look = SoakLook {
                requests: self.requests,
                ..look
            };
            let event = TrialEvent::Look(Box::new(look.clone()));
            let _ = self.log.append_event(&event);
            self.seen.looks.push(look);
        }
    }

    pub(crate) fn finish_soak(mut self, log: &EventLog) -> SoakEvidence {
        fold_log(&mut self.seen.points, log);
        self.seen
    }
}

#[derive(Default)]
pub(crate) struct OutagePoints {
    due: Option<Instant>,
    points: Vec<SoakPoint>,
}

impl OutagePoints {
    pub(crate) fn take_due_point(&mut self, instances: &[Instance]) {
        if self.due.is_some_and(|due| Instant::now() < due) {
            return;
        }
        self.due = Some(Instant::now() + AROUND);
        self.points.push(read_point(instances));
    }

    /// Puts them into the seconds in which they were taken, with what the GC log says of the heap.
    pub(crate) fn fold_into_seconds(mut self, log: &EventLog, seconds: &mut [SecondEvidence]) {
        fold_log(&mut self.points, log);
        // Into the first are folded all collections since the JVM's start.
        if let Some(first) = self.points.first_mut() {
            first.heap_after = None;
        }
        for point in self.points {
            let at = seconds.partition_point(|second| second.at_ns < point.at_ns);
            if let Some(second) = seconds.get_mut(at) {
                second.threads = point.threads;
                second.sockets = point.sockets;
                second.heap_committed = point.heap_committed;
                second.heap_after = point.heap_after;
            }
        }
    }
}

fn fold_log(points: &mut [SoakPoint], log: &EventLog) {
    if let Ok(reader) = log.open_reader() {
        fold_collections(points, reader.join_chunks(ChunkContent::GcLog, 0));
    }
}

/// Assigns the heap before and after collections to the points that follow. The log is read in
/// parts, because a day's log does not fit into memory.
pub fn fold_collections(points: &mut [SoakPoint], log: impl Read) {
    let mut lines = BufReader::new(log);
    let mut part = Vec::with_capacity(CHUNK + 1024);
    loop {
        part.clear();
        while part.len() < CHUNK {
            match lines.read_until(b'\n', &mut part) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        if part.is_empty() {
            return;
        }
        for pause in gclog::read(part.as_slice(), usize::MAX).pauses {
            if let (Some(at), Some(heap)) = (pause.end.monotonic_ns, pause.heap) {
                let place = points.partition_point(|p| p.at_ns < at);
                if let Some(point) = points.get_mut(place) {
                    let [before, after] = [heap.before, heap.after].map(Bytes::from_bytes);
                    point.heap_before = point.heap_before.max(Some(before));
                    point.heap_after =
                        Some(point.heap_after.map_or(after, |least| least.min(after)));
                }
            }
        }
    }
}

fn read_point(instances: &[Instance]) -> SoakPoint {
    let processes: Vec<u32> = instances.iter().flat_map(Instance::process_ids).collect();
    let statuses = processes.iter().filter_map(|pid| read_status(*pid));
    let statuses: Vec<String> = statuses.collect();
    let sum = |name: &str| {
        let numbers = statuses.iter().filter_map(|s| status_number(s, name));
        numbers.reduce(u64::saturating_add)
    };
    let kib = |name: &str| sum(name).map(Bytes::from_kib);
    let open = processes.iter().filter_map(|pid| descriptors(*pid));
    let open: Vec<(u64, u64)> = open.collect();
    let begin = Instant::now();
    let counters: Vec<HsperfCounters> = processes
        .iter()
        // The application may have made each reading slow.
        .take_while(|_| begin.elapsed() < LONGEST_READING)
        .filter_map(|pid| HsperfCounters::for_jvm(*pid).ok())
        .take(MOST_PROCESSES)
        .collect();
    let groups = instances
        .iter()
        .filter_map(|i| i.container.application_group().read().ok());
    let used =
        groups.filter_map(|sample| sample.memory.as_ref().and_then(MemorySample::working_set));
    let all = |of: fn(&HsperfCounters) -> Option<u64>| {
        let values = counters.iter().filter_map(of);
        values.reduce(u64::saturating_add).map(Bytes::from_bytes)
    };
    SoakPoint {
        at_ns: monotonic_ns(),
        phase: TrialPhase::Measure,
        requests: 0,
        errors: 0,
        anon: kib("RssAnon:"),
        file: kib("RssFile:"),
        working_set: used.reduce(Bytes::saturating_add),
        heap_after: None,
        heap_before: None,
        heap_committed: all(heap_committed),
        metaspace: all(|c| c.counter_number("sun.gc.metaspace.capacity")),
        threads: sum("Threads:"),
        descriptors: open.iter().map(|o| o.0).reduce(|a, b| a + b),
        sockets: open.iter().map(|o| o.1).reduce(|a, b| a + b),
    }
}

fn descriptors(pid: u32) -> Option<(u64, u64)> {
    let (mut all, mut sockets) = (0, 0);
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        all += 1;
        let asked = all <= MOST_ASKED;
        let target = asked.then(|| fs::read_link(entry.path()).ok()).flatten();
        sockets += u64::from(target.is_some_and(|t| t.to_string_lossy().starts_with("socket:")));
    }
    Some((all as u64, sockets))
}

/// In use in the old generation, as of the last collection; ZGC and Shenandoah have none.
pub(crate) fn old_in_use(counters: &HsperfCounters) -> Option<Bytes> {
    let used = counters.counter_number("sun.gc.generation.1.space.0.used");
    used.map(Bytes::from_bytes)
}

pub(crate) fn heap_committed(counters: &HsperfCounters) -> Option<u64> {
    let of = |n| counters.counter_number(&format!("sun.gc.generation.{n}.capacity"));
    (0..GENERATIONS).filter_map(of).reduce(u64::saturating_add)
}

/// Reads the mappings of a JVM, its live set after a collection, and the last time how much malloc gives
/// back. `None` for other programs. Native memory tracking would tell more, but takes 10 to 15 MiB that
/// the limit does not have.
fn probe_jvm(pid: u32, is_last: bool) -> Option<SoakLook> {
    let histogram = run_jcmd(pid, "GC.class_histogram").ok()?;
    let seen = read_process(pid)?;
    let trimmed = is_last.then(|| {
        run_jcmd(pid, "System.trim_native_heap").ok()?;
        Some(read_process(pid)?.malloc)
    });
    Some(SoakLook {
        at_ns: monotonic_ns(),
        requests: 0,
        live_heap: live_heap(&histogram),
        direct_buffers: Some(direct_buffers(&histogram)),
        heap: seen.heap,
        direct: None,
        stacks: seen.stacks,
        metaspace: seen.metaspace,
        code_cache: seen.code_cache,
        jvm: seen.other,
        malloc: seen.malloc,
        files: seen.files.saturating_add(seen.private_files),
        threads: seen.threads,
        malloc_trimmed: trimmed.flatten(),
    })
}

fn add_looks(a: SoakLook, b: SoakLook) -> SoakLook {
    let both = |a: Option<Bytes>, b: Option<Bytes>| Some(a?.saturating_add(b?));
    let buffers = a.direct_buffers.zip(b.direct_buffers);
    SoakLook {
        at_ns: a.at_ns.max(b.at_ns),
        requests: a.requests,
        live_heap: both(a.live_heap, b.live_heap),
        heap: a.heap.saturating_add(b.heap),
        direct: both(a.direct, b.direct),
        direct_buffers: buffers.map(|(a, b)| a.saturating_add(b)),
        stacks: a.stacks.saturating_add(b.stacks),
        metaspace: a.metaspace.saturating_add(b.metaspace),
        code_cache: a.code_cache.saturating_add(b.code_cache),
        jvm: a.jvm.saturating_add(b.jvm),
        malloc: a.malloc.saturating_add(b.malloc),
        files: a.files.saturating_add(b.files),
        threads: a.threads + b.threads,
        malloc_trimmed: both(a.malloc_trimmed, b.malloc_trimmed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> SoakPoint {
        SoakPoint {
            at_ns: ns,
            ..read_point(&[])
        }
    }

    #[test]
    fn collections_go_to_the_point_behind_them_lows_and_highs() {
        let log = "\
[1000000000ns][info][gc     ] Using Serial
[2000000000ns][info][gc     ] GC(0) Pause Young (Allocation Failure) 16M->5M(61M) 10.000ms
[2500000000ns][info][gc     ] GC(1) Pause Young (Allocation Failure) 20M->6M(61M) 10.000ms
[6000000000ns][info][gc     ] GC(2) Pause Full (System.gc()) 9M->7M(61M) 30.000ms
[9000000000ns][info][gc     ] GC(3) Pause Young (Allocation Failure) 9M->7M(61M) 30.000ms
";
        let mut points = [at(1_500_000_000), at(3_000_000_000), at(6_000_000_000)];
        fold_collections(&mut points, log.as_bytes());
        let heaps = points.each_ref().map(|p| (p.heap_before, p.heap_after));
        let mib = |n| Some(Bytes::from_mib(n));
        assert_eq!(heaps, [(None, None), (mib(20), mib(5)), (mib(9), mib(7))]);
    }

    #[test]
    fn several_jvms_are_looked_at_together() {
        let of = |mib: u64| SoakLook {
            live_heap: Some(Bytes::from_mib(mib)),
            direct: None,
            direct_buffers: Some(mib),
            malloc: Bytes::from_mib(10 * mib),
            threads: mib,
            ..SoakLook::default()
        };
        let both = add_looks(of(1), of(2));
        assert_eq!(
            (both.live_heap, both.threads),
            (Some(Bytes::from_mib(3)), 3)
        );
        assert_eq!(
            (both.direct_buffers, both.malloc),
            (Some(3), Bytes::from_mib(30))
        );
        let unknown = SoakLook {
            live_heap: None,
            ..of(2)
        };
        assert_eq!(add_looks(of(1), unknown).live_heap, None);
    }

    #[test]
    fn counts_come_from_proc() {
        let status = "Name:\tjava\nRssAnon:\t  2048 kB\nThreads:\t31\n";
        assert_eq!(status_number(status, "RssAnon:"), Some(2048));
        assert_eq!(status_number(status, "Threads:"), Some(31));
        assert_eq!(status_number(status, "VmSwap:"), None);
        let (all, sockets) = descriptors(std::process::id()).expect("its own");
        let (_here, _there) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let (more, now) = descriptors(std::process::id()).expect("its own");
        assert!(
            all >= 3 && more >= 2 && now >= sockets.min(2),
            "{all} {more} {sockets} {now}"
        );
        assert_eq!(descriptors(u32::MAX), None);
        let nothing = read_point(&[]);
        assert_eq!(
            (nothing.anon, nothing.threads, nothing.descriptors),
            (None, None, None)
        );
    }
}
