//! Samples of a trial's cgroup while it runs: into the event log as they come.
//!
//! Owns the sampling thread's work: rows to pieces, the kills for memory, the peak of RSS. Keeps no
//! more than the rows of one piece. Counters are read from the trial's own leaf group: v1 counters
//! are not hierarchical.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loadline_cgroup::{
    CgroupError, CgroupSample, CgroupSampler, ControlGroup, SamplerOptions, SamplerReport,
};
use loadline_protocol::log::{ChunkContent, EventLog};
use loadline_sizing::Bytes;

use crate::cpus;
use crate::process_text::{kib_field, read_status};
use crate::samples::{SampleRow, encode_rows};

/// Distance of readings of process memory, ns.
const RSS_EVERY: u64 = 1_000_000_000;

const ROWS: usize = 1000;

/// Longest piece, ns: a killed trial loses at most this much.
const TIME: u64 = 10_000_000_000;

pub struct SampleRecording {
    shared: Arc<RecordingState>,
    sampler: Option<CgroupSampler>,
}

struct RecordingState {
    spool: Mutex<RowSpool>,
    peak_rss: Mutex<Option<Bytes>>,
    is_oom: AtomicBool,
}

pub struct RecordingResult {
    pub end_ns: u64,
    /// Whether OOM kills were counted after the application ended. An engine may remove the group
    /// first.
    pub has_end: bool,
    pub peak_rss: Option<Bytes>,
    pub report: SamplerReport,
}

#[derive(Debug)]
pub struct RowSpool {
    log: Arc<EventLog>,
    instance: u32,
    rows: Vec<SampleRow>,
    last_ns: u64,
}

impl RowSpool {
    pub fn new(log: Arc<EventLog>, instance: u32) -> Self {
        Self {
            log,
            instance,
            rows: Vec::new(),
            last_ns: 0,
        }
    }

    pub fn add_sample(&mut self, sample: &CgroupSample) {
        self.last_ns = self.last_ns.max(sample.at_ns);
        self.rows.push(SampleRow::from_sample(sample));
        let first = self.rows.first().map_or(0, |row| row.at_ns);
        if self.rows.len() >= ROWS || sample.at_ns.saturating_sub(first) >= TIME {
            self.flush_rows();
        }
    }

    pub fn flush_rows(&mut self) {
        if !self.rows.is_empty() {
            let piece = encode_rows(&self.rows);
            self.log
                .append_whole_chunk(ChunkContent::Samples, self.instance, &piece);
            self.rows.clear();
        }
    }
}

impl SampleRecording {
    pub fn start_recording(
        group: &ControlGroup,
        options: SamplerOptions,
        own_cpus: Vec<u32>,
        spool: RowSpool,
    ) -> Result<Self, CgroupError> {
        let shared = Arc::new(RecordingState {
            spool: Mutex::new(spool),
            peak_rss: Mutex::new(None),
            is_oom: AtomicBool::new(false),
        });
        let sink = sink(Arc::clone(&shared), group.clone(), own_cpus);
        let sampler = Some(CgroupSampler::start_sampling(group, options, sink)?);
        Ok(Self { shared, sampler })
    }

    /// Whether the kernel has killed for memory in the group, as of the last sample.
    pub fn is_oom(&self) -> bool {
        self.shared.is_oom.load(Ordering::Relaxed)
    }

    /// Stops sampling, adds a last sample if there is one, and returns the result.
    pub fn finish_recording(
        mut self,
        last: impl FnOnce() -> Option<CgroupSample>,
    ) -> RecordingResult {
        let sampler = self.sampler.take().map(CgroupSampler::stop_sampling);
        let report = sampler.unwrap_or_default();
        let mut spool = lock_mutex(&self.shared.spool);
        let last = last();
        if let Some(sample) = &last {
            spool.add_sample(sample);
        }
        spool.flush_rows();
        RecordingResult {
            end_ns: spool.last_ns,
            has_end: last.as_ref().is_some_and(CgroupSample::has_oom_kills),
            peak_rss: *lock_mutex(&self.shared.peak_rss),
            report,
        }
    }
}

fn sink(
    shared: Arc<RecordingState>,
    group: ControlGroup,
    cpus: Vec<u32>,
) -> impl FnMut(&CgroupSample) + Send {
    let mut is_pinned = false;
    let mut rss_due = 0;
    move |sample| {
        if !is_pinned {
            cpus::pin_this_thread(&cpus);
            is_pinned = true;
        }
        let kills = sample.memory.and_then(|memory| memory.oom_kill);
        if kills.is_some_and(|kills| kills > 0) {
            shared.is_oom.store(true, Ordering::Relaxed);
        }
        lock_mutex(&shared.spool).add_sample(sample);
        if sample.at_ns >= rss_due {
            rss_due = sample.at_ns + RSS_EVERY;
            let now = group.process_ids().ok().and_then(|pids| read_rss(&pids));
            let mut peak = lock_mutex(&shared.peak_rss);
            *peak = now.max(*peak);
        }
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// RSS of processes, from /proc/PID/status: the high-water mark of a single process, the sum of
/// present values for several. Not from smaps_rollup: that walks the page tables of the heap with
/// the address space locked, during the measurement.
fn read_rss(pids: &[u32]) -> Option<Bytes> {
    let field = if pids.len() == 1 { "VmHWM:" } else { "VmRSS:" };
    let of = |pid: &u32| kib_field(&read_status(*pid)?, field);
    // A kernel thread or zombie has no such line; an ended process has no file.
    pids.iter().filter_map(of).reduce(Bytes::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_process_is_read_from_its_status() {
        let status = "Name:\tjava\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib_field(status, "VmHWM:"), Some(Bytes::from_mib(2)));
        assert_eq!(kib_field(status, "VmSwap:"), None);
        assert!(read_rss(&[std::process::id()]).is_some_and(|rss| rss > Bytes::from_kib(100)));
        assert_eq!(read_rss(&[]), None);
    }
}
