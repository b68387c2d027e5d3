//! From lines to a [`GcLog`]: chooses the grammar of each line, puts together what several lines
//! say about one pause, and adds up.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use loadline_files::LineJoiner;

use super::classic::ClassicReader;
use super::cycles::GcCycles;
use super::event::{
    ClockAxis, CollectionWork, GcCpuTimes, GcLogEvent, HeaderFact, HeapChange, LogTime,
};
use super::header::{GarbageCollector, GcLogHeader};
use super::log::{AllocationStall, GcLog, GcLogInput, GcPause, Safepoint};
use super::names::PauseNames;
use super::numbering::CollectionNumbers;
use super::openj9::{OpenJ9, WallClock};
use super::summary::GcSummary;
use super::window::{BoundedEntries, DroppedEntries, LogWindow};
use super::{lines, unified};

/// Clocks of neighbouring lines may differ by this much without a new JVM: threads write late.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;

/// A pause shorter than this says nothing about CPU: logs count it in steps of 10 ms.
const STARVED_FROM: Duration = Duration::from_millis(20);

/// CPU that was got, of what the threads could use, below which a pause counts as starved. In 456
/// pauses over 20 ms under a CPU quota this found all but one; it is a hint, no proof.
const STARVED_SHARE: f64 = 0.7;
const OPEN_LIMIT: usize = 16;

#[derive(Debug)]
pub struct GcLogBuilder {
    header: GcLogHeader,
    input: GcLogInput,
    summary: GcSummary,
    window: Option<LogWindow>,
    pauses: BoundedEntries<GcPause>,
    safepoints: BoundedEntries<Safepoint>,
    stalls: BoundedEntries<AllocationStall>,
    joiner: LineJoiner,
    classic: ClassicReader,
    openj9: OpenJ9,
    names: PauseNames,
    numbering: CollectionNumbers,
    last: Option<GcPause>,
    begun: VecDeque<Option<u64>>,
    clock: LogSpan,
    heap_in_use: Option<u64>,
    heap_left: Option<u64>,
    cycles: GcCycles,
}

#[derive(Debug, Default)]
struct LogSpan {
    /// The clock of its first time. Damaged lines may have another one, which says nothing here.
    axis: Option<ClockAxis>,
    first: Option<u64>,
    last: u64,
}

impl GcLogBuilder {
    /// Keeps up to `keep` pauses, safepoints and stalls each; counts and sums are always whole.
    pub fn new(keep: usize) -> Self {
        Self {
            header: GcLogHeader::default(),
            input: GcLogInput::default(),
            summary: GcSummary::default(),
            window: None,
            pauses: BoundedEntries::new(keep),
            safepoints: BoundedEntries::new(keep),
            stalls: BoundedEntries::new(keep),
            joiner: LineJoiner::default(),
            classic: ClassicReader::default(),
            openj9: OpenJ9::default(),
            names: PauseNames::default(),
            numbering: CollectionNumbers::default(),
            last: None,
            begun: VecDeque::new(),
            clock: LogSpan::default(),
            heap_in_use: None,
            heap_left: None,
            cycles: GcCycles::default(),
        }
    }

    /// Adds up this part of the log too, [from, to) on CLOCK_MONOTONIC in ns, and keeps its
    /// entries first.
    pub fn with_window(mut self, window: Option<(u64, u64)>) -> Self {
        self.window = window.map(|(from, to)| LogWindow::new(from, to));
        self
    }

    /// Puts a log that has only the wall clock (OpenJ9) on CLOCK_MONOTONIC too.
    pub fn with_wall_clock(mut self, wall: Option<WallClock>) -> Self {
        if let Some(wall) = wall {
            self.openj9.set_wall(wall);
        }
        self
    }

    pub fn read(&mut self, reader: impl Read) {
        let mut counts = self.input.counts;
        let result = lines::for_each(reader, &mut counts, |line| self.add_line(line));
        self.input.counts = counts;
        if let Err(error) = result {
            self.input.stopped = Some(error.to_string());
        }
    }

    fn add_line(&mut self, line: &[u8]) {
        let Some(line) = self.joiner.join_line(line) else {
            return;
        };
        let line = &*line;
        // A record of a classic log may go on with a line that looks decorated.
        let mut classic = std::mem::take(&mut self.classic);
        let mut has_event = false;
        let parsed = unified::parse_unified_line(line, &mut |event| {
            has_event = true;
            self.add_event(event);
        });
        match parsed {
            unified::UnifiedLine::Gc(id) => {
                self.input.gc_lines += 1;
                // Without an event it is the tag that says what it is.
                self.input.is_gc_log |= id.is_some() || !has_event;
                if let Some(id) = id {
                    self.numbering.note(id);
                }
            }
            unified::UnifiedLine::Other => self.input.other_lines += 1,
            unified::UnifiedLine::None => {
                if self.read_openj9_line(line)
                    || classic.parse_classic_line(line, &mut |event| self.add_event(event))
                {
                    self.input.gc_lines += 1;
                } else if line.trim_ascii().is_empty() {
                    self.input.empty_lines += 1;
                } else {
                    self.input.unknown_lines += 1;
                }
            }
        }
        self.classic = classic;
    }

    fn read_openj9_line(&mut self, line: &[u8]) -> bool {
        if line.trim_ascii_start().first() != Some(&b'<') {
            return false;
        }
        let mut openj9 = std::mem::take(&mut self.openj9);
        let is_known = openj9.parse_openj9_line(line, &mut |event| self.add_event(event));
        self.openj9 = openj9;
        is_known
    }

    fn add_event(&mut self, event: GcLogEvent<'_>) {
        self.input.is_gc_log |= event.is_evidence();
        match event {
            GcLogEvent::Fact(fact) => {
                if matches!(fact, HeaderFact::Version { is_start: true, .. }) {
                    self.end_life();
                }
                self.header.take_fact(fact);
            }
            GcLogEvent::JvmStart => self.end_life(),
            GcLogEvent::PauseStart(id) => self.begin_collection(id),
            GcLogEvent::Pause(pause) => self.add_pause(pause),
            GcLogEvent::PauseHeap(heap) => self.pause_heap(heap),
            GcLogEvent::Cpu { id, cpu } => self.add_cpu_times(id, cpu),
            GcLogEvent::EvacuationFailure => self.summary.evacuation_failures += 1,
            GcLogEvent::Phase { name, duration } => {
                self.summary.phases.add_named(name, duration);
            }
            GcLogEvent::Concurrent(work) => {
                self.end_pause_of(work.id);
                self.add_concurrent(work);
            }
            GcLogEvent::CycleStart(id) => {
                self.header.take_fact(HeaderFact::Generational);
                self.cycles.begin_cycle(id);
            }
            GcLogEvent::Cycle { id, end, heap } => self.add_cycle(id, end, heap),
            GcLogEvent::Stall {
                name,
                end,
                duration,
            } => self.add_stall(name, end, duration),
            GcLogEvent::Safepoint {
                name,
                end,
                reaching,
                total,
            } => self.add_safepoint(name, end, reaching, total),
            GcLogEvent::Dropped(lines) => {
                let so_far = &mut self.input.dropped_lines;
                *so_far = so_far.saturating_add(lines);
            }
        }
    }

    fn begin_collection(&mut self, id: Option<u64>) {
        if self.begun.len() == OPEN_LIMIT {
            self.begun.pop_front();
            self.input.unfinished_pauses += 1;
        }
        self.begun.push_back(id);
    }

    fn add_pause(&mut self, pause: CollectionWork<'_>) {
        self.commit_pause();
        self.begun.retain(|begun| *begun != pause.id);
        if self.header.collector.is_none()
            && let Some(collector) = GarbageCollector::of_pause(pause.name)
        {
            self.header.take_fact(HeaderFact::CollectorMark(collector));
        }
        let (name, evacuation_failed) = self.names.name_for(pause.name);
        self.summary.evacuation_failures += u64::from(evacuation_failed);
        self.advance_clock(pause.end, pause.duration);
        self.last = Some(GcPause {
            name,
            id: pause.id,
            end: pause.end,
            duration: pause.duration,
            heap: pause.heap,
            cpu: None,
        });
    }

    fn commit_pause(&mut self) {
        let Some(pause) = self.last.take() else {
            return;
        };
        self.summary.stw.add_duration(pause.duration);
        self.summary.full += u64::from(pause.name.is_full_collection());
        let tally = self.summary.by_name.entry(pause.name.clone()).or_default();
        tally.add_duration(pause.duration);
        if let Some(heap) = pause.heap {
            self.summary.add_heap(heap, pause.name.is_full_collection());
            self.count_allocated(heap);
            self.count_promoted(heap, pause.name.is_full_collection());
        }
        self.check_starvation(&pause);
        let window = self.window.as_mut();
        let is_inside = window.is_none_or(|window| window.add_if_inside(&pause));
        self.pauses.add_entry(pause, is_inside);
    }

    fn pause_heap(&mut self, heap: HeapChange) {
        if let Some(last) = &mut self.last {
            last.heap = Some(heap);
        }
    }

    /// CPU times of the last pause. CMS writes them after its concurrent phases too: those are of
    /// no pause.
    fn add_cpu_times(&mut self, id: Option<u64>, cpu: GcCpuTimes) {
        let last = self.last.as_mut();
        let Some(last) = last.filter(|last| last.id == id && last.cpu.is_none()) else {
            return;
        };
        last.cpu = Some(cpu);
        let sum = &mut self.summary.cpu;
        sum.user += cpu.user;
        sum.system += cpu.system;
        sum.real += cpu.real;
        self.summary.cpu_count += 1;
    }

    /// A concurrent phase of the same collection ends what can be said about its pause. Classic
    /// logs have no numbers, and phases anywhere.
    fn end_pause_of(&mut self, id: Option<u64>) {
        if id.is_some() && self.last.as_ref().is_some_and(|last| last.id == id) {
            self.commit_pause();
        }
    }

    /// Whether the pause got the CPU it could use. With more than two threads (and CPUs for them)
    /// that is their sum; with one or two, one thread's worth: a pause has serial phases.
    fn check_starvation(&mut self, pause: &GcPause) {
        let Some(cpu) = pause.cpu.filter(|_| pause.duration >= STARVED_FROM) else {
            return;
        };
        self.summary.long_with_cpu += 1;
        let workers = self.header.machine.parallel_workers.unwrap_or(1);
        let usable = match workers.min(self.header.machine.cpus.unwrap_or(workers)) {
            0..=2 => 1.0,
            threads => threads as f64,
        };
        let got = cpu.total_cpu().as_secs_f64() / usable;
        self.summary.starved += u64::from(got < STARVED_SHARE * pause.duration.as_secs_f64());
    }

    fn add_concurrent(&mut self, work: CollectionWork<'_>) {
        self.advance_clock(work.end, work.duration);
        let concurrent = &mut self.summary.concurrent;
        concurrent.add_named(work.name, work.duration);
        if let Some(heap) = work.heap {
            // Shenandoah frees in its concurrent clean-up; other phases are no collection.
            if memchr::memmem::find(work.name, b"cleanup").is_some() {
                self.summary.add_heap(heap, false);
            }
            self.count_allocated(heap);
        }
    }

    fn add_cycle(&mut self, id: u64, end: LogTime, heap: HeapChange) {
        self.advance_clock(end, Duration::ZERO);
        // It includes later allocations, so it does not show the live set.
        self.summary.add_heap(heap, false);
        if self.cycles.end_cycle(id) {
            // The figure before it is older than what the other one left: no growth from there.
            self.in_use(heap.after)
        } else {
            self.count_allocated(heap)
        }
    }

    /// Bytes allocated since the last heap figure: growth before a collection and within it.
    fn count_allocated(&mut self, heap: HeapChange) {
        self.in_use(heap.before);
        self.in_use(heap.after);
    }

    fn count_promoted(&mut self, heap: HeapChange, is_full: bool) {
        let promoted = self.summary.promoted.get_or_insert(0);
        if let Some(last) = self.heap_left.replace(heap.after).filter(|_| !is_full) {
            *promoted = promoted.saturating_add(heap.after.saturating_sub(last));
        }
    }

    fn in_use(&mut self, bytes: u64) {
        if let Some(last) = self.heap_in_use.replace(bytes) {
            let grown = bytes.saturating_sub(last);
            self.summary.allocated = self.summary.allocated.saturating_add(grown);
        }
    }

    fn add_stall(&mut self, name: &[u8], end: LogTime, duration: Duration) {
        self.advance_clock(end, Duration::ZERO);
        let name = self.summary.stalls.add_named(name, duration);
        let stall = AllocationStall {
            name,
            end,
            duration,
        };
        self.stalls.add_entry(stall, self.is_inside(end));
    }

    fn add_safepoint(
        &mut self,
        name: Option<&[u8]>,
        end: LogTime,
        reaching: Option<Duration>,
        total: Duration,
    ) {
        self.advance_clock(end, total);
        let safepoints = &mut self.summary.safepoints;
        let kept: Arc<str> = safepoints.add_named(name.unwrap_or(b"unnamed"), total);
        if let Some(reaching) = reaching {
            self.summary.reaching.add_duration(reaching);
        }
        let safepoint = Safepoint {
            name: name.map(|_| kept),
            end,
            reaching,
            total,
        };
        self.safepoints.add_entry(safepoint, self.is_inside(end));
    }

    fn is_inside(&self, end: LogTime) -> bool {
        let window = self.window.as_ref();
        window.is_none_or(|window| window.has_end(end))
    }

    fn advance_clock(&mut self, end: LogTime, duration: Duration) {
        let axis = self.clock.axis.or_else(|| end.axis());
        let Some(now) = axis.and_then(|axis| end.time_on(axis)) else {
            return;
        };
        let begin = now.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        if now.saturating_add(CLOCK_SLACK_NS) < self.clock.last {
            self.end_life();
        }
        self.clock.axis = axis;
        self.clock.first.get_or_insert(begin);
        self.clock.last = self.clock.last.max(now);
    }

    fn end_life(&mut self) {
        self.commit_pause();
        let clock = std::mem::take(&mut self.clock);
        if let Some(first) = clock.first {
            self.summary.jvm_starts += 1;
            self.summary.logged += Duration::from_nanos(clock.last.saturating_sub(first));
        }
        self.input.unfinished_pauses += self.begun.len() as u64;
        self.begun.clear();
        self.heap_in_use = None;
        self.heap_left = None;
        self.cycles = GcCycles::default();
        self.numbering.restart();
    }

    pub fn finish_log(mut self) -> GcLog {
        self.commit_pause();
        self.end_life();
        self.classic.finish_record();
        self.input.unfinished_pauses += self.classic.unfinished;
        self.input.is_gc_log |= self.classic.is_gc_log;
        self.input.missing_collections = self.numbering.missing_count();
        self.input.first_collection = self.numbering.first_number().filter(|first| *first > 0);
        self.summary.jvm_starts = self.summary.jvm_starts.max(1);
        let (kept_pauses, pauses) = self.pauses.into_entries();
        let (kept_safepoints, safepoints) = self.safepoints.into_entries();
        let (kept_stalls, stalls) = self.stalls.into_entries();
        GcLog {
            header: self.header,
            input: self.input,
            summary: self.summary,
            window: self.window,
            pauses: kept_pauses,
            safepoints: kept_safepoints,
            stalls: kept_stalls,
            cut: DroppedEntries {
                pauses,
                safepoints,
                stalls,
            },
        }
    }
}
