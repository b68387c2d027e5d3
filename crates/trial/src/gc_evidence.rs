//! From a JVM's own log to the GC figures of a record.
//!
//! Owns when the figures of the measure phase are known, and the warning about pauses that did not
//! fit into a record. Knows no log format, and does not add up; `loadline_jvm::gclog` does both.

use std::time::Duration;

use loadline_analysis::pauses::{PauseEvidence, no_room};
use loadline_analysis::record::{GcEvidence, HeapAfter, SecondEvidence};
use loadline_jvm::gclog::{AllocationStall, GcLog, GcPause, Safepoint};
use loadline_sizing::Bytes;

pub const KEPT_PAUSES: usize = 10_000;
const KEPT_HEAPS: usize = 500;

/// The GC figures; the window of the log is the measure phase. `None` for a log without a
/// collector.
pub fn gc_evidence(log: &GcLog) -> Option<GcEvidence> {
    let collector = log.header.collector?;
    // A pause without the trial's clock may lie in the measure phase or not: then nothing is known.
    let measured = log.window.as_ref().filter(|window| window.unplaced == 0);
    let has_cpu = log.summary.cpu_count > 0;
    let summary = &log.summary;
    let workers = log.header.machine.parallel_workers;
    let spans = log.pauses.iter().filter_map(GcPause::monotonic_span);
    Some(GcEvidence {
        collector: collector.collector_name().to_owned(),
        jdk: log.header.jvm_description(),
        pauses: summary.stw.count,
        pause_sum: summary.stw.total,
        pause_max: summary.stw.max,
        full_gcs: summary.full,
        gc_cpu: has_cpu.then(|| summary.cpu.total_cpu()),
        measure_gc_cpu: measured.filter(|_| has_cpu).map(|window| window.cpu),
        measure_pauses: measured.map(|window| window.stw.count),
        measure_pause_sum: measured.map(|window| window.stw.total),
        measure_pause_max: measured.map(|window| window.stw.max),
        parallel_workers: workers.and_then(|n| n.try_into().ok()),
        heap_after_max: summary.heap_after_max.map(Bytes::from_bytes),
        heap_max: log.header.heap_max_bytes.map(Bytes::from_bytes),
        allocated: Some(Bytes::from_bytes(summary.allocated)),
        promoted: summary.promoted.map(Bytes::from_bytes),
        heaps_after: heaps_after(log),
        pause_spans_ns: spans.collect(),
    })
}

/// Heap in use after collections: all full ones, and an even sample of the others.
fn heaps_after(log: &GcLog) -> Vec<HeapAfter> {
    let after = |pause: &GcPause| {
        Some(HeapAfter {
            at_ns: pause.monotonic_span()?.1,
            bytes: Bytes::from_bytes(pause.heap?.after),
            committed: pause.heap?.committed.map(Bytes::from_bytes),
            is_full: pause.name.is_full_collection(),
        })
    };
    let all: Vec<HeapAfter> = log.pauses.iter().filter_map(after).collect();
    let every = all.len().div_ceil(KEPT_HEAPS).max(1);
    let all = all.into_iter().enumerate();
    let kept = all.filter(|(index, heap)| index % every == 0 || heap.is_full);
    kept.map(|(_, heap)| heap).take(2 * KEPT_HEAPS).collect()
}

/// Assigns the pauses of a log to the seconds in which they ended; nothing if some pauses did not
/// fit or have no clock.
pub fn add_pauses(log: &GcLog, seconds: &mut [SecondEvidence]) {
    let spans = || log.pauses.iter().filter_map(GcPause::monotonic_span);
    if spans().count() as u64 != log.summary.stw.count {
        return;
    }
    for second in seconds.iter_mut() {
        second.gc_pause = Some(Duration::ZERO);
    }
    for (start, end) in spans() {
        let at = seconds.partition_point(|second| second.at_ns < end);
        if let Some(pause) = seconds.get_mut(at).and_then(|s| s.gc_pause.as_mut()) {
            *pause += Duration::from_nanos(end - start);
        }
    }
}

/// Adds when threads stood, as the log tells it: safepoints, and pauses where the log has no
/// safepoints; stalls that have a clock.
pub fn add_standstills(log: &GcLog, pauses: &mut PauseEvidence) {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let safepoint = |s: &Safepoint| {
        let (start, end) = s.monotonic_span()?;
        Some((start, end, nanos(s.reaching.unwrap_or_default())))
    };
    let pause = |p: &GcPause| p.monotonic_span().map(|(start, end)| (start, end, 0));
    pauses.safepoints_ns = if !log.safepoints.is_empty() {
        log.safepoints.iter().filter_map(safepoint).collect()
    } else {
        log.pauses.iter().filter_map(pause).collect()
    };
    let stall = |s: &AllocationStall| {
        let end = s.end.monotonic_ns?;
        Some((end.saturating_sub(nanos(s.duration)), end))
    };
    // Pacing is a sum over threads and a cycle: it has no place in time.
    let placed = log.stalls.iter().filter(|s| &*s.name != "Pacing");
    pauses.stalls_ns = placed.filter_map(stall).collect();
    pauses.safepoints_ns.sort_unstable();
    pauses.stalls_ns.sort_unstable();
}

/// What of the measure phase found no room in the record, as a warning; `None` where all did.
pub fn cut_warning(log: &GcLog) -> Option<String> {
    let cut = &log.cut;
    no_room(&[
        ("GC pauses", cut.pauses),
        ("safepoints", cut.safepoints),
        ("stalls", cut.stalls),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, keep: usize, measure: Option<(u64, u64)>) -> GcLog {
        let mut builder = loadline_jvm::gclog::GcLogBuilder::new(keep).with_window(measure);
        builder.read(text.as_bytes());
        builder.finish_log()
    }

    const LOG: &str = "\
[1000000000ns][info][gc,init] Version: 17.0.15+6 (release)
[1000000000ns][info][gc,init] Heap Max Capacity: 64M
[1000000000ns][info][gc     ] Using Serial
[2000000000ns][info][gc     ] GC(0) Pause Young (Allocation Failure) 16M->5M(61M) 10.000ms
[2000000000ns][info][gc,cpu ] GC(0) User=0.02s Sys=0.01s Real=0.01s
[3000000000ns][info][gc     ] GC(1) Pause Full (Metadata GC Threshold) 9M->7M(61M) 30.000ms
[3000000000ns][info][gc,cpu ] GC(1) User=0.03s Sys=0.00s Real=0.03s
";

    #[test]
    fn the_measured_window_takes_the_pauses_that_end_in_it() {
        let log = read(LOG, KEPT_PAUSES, Some((2_500_000_000, 3_500_000_000)));
        let gc = gc_evidence(&log).unwrap();
        assert_eq!((gc.pauses, gc.full_gcs, gc.measure_pauses), (2, 1, Some(1)));
        assert_eq!(gc.measure_pause_max, Some(Duration::from_millis(30)));
        assert_eq!(
            (gc.gc_cpu, gc.measure_gc_cpu),
            (
                Some(Duration::from_millis(60)),
                Some(Duration::from_millis(30))
            )
        );
        assert_eq!(
            (gc.heap_after_max, gc.heap_max),
            (Some(Bytes::from_mib(7)), Some(Bytes::from_mib(64)))
        );
        assert_eq!(gc.allocated, Some(Bytes::from_mib(4)));
        assert_eq!(
            gc.promoted,
            Some(Bytes::from_mib(0)),
            "a full collection promotes nothing"
        );
        assert_eq!(gc.pause_spans_ns[0], (1_990_000_000, 2_000_000_000));
    }

    #[test]
    fn each_pause_belongs_to_the_second_in_which_it_ended() {
        let seconds = || {
            let at = |second: u64| SecondEvidence {
                at_ns: second * 1_000_000_000 + 500_000_000,
                ..SecondEvidence::default()
            };
            (1..5).map(at).collect::<Vec<_>>()
        };
        let paused = |keep| {
            let mut seconds = seconds();
            add_pauses(&read(LOG, keep, Some((0, u64::MAX))), &mut seconds);
            let ms = |s: &SecondEvidence| s.gc_pause.map(|pause| pause.as_millis());
            seconds.iter().map(ms).collect::<Vec<_>>()
        };
        assert_eq!(paused(KEPT_PAUSES), [Some(0), Some(10), Some(30), Some(0)]);
        // One found no room.
        assert_eq!(paused(1), [None; 4]);
    }

    #[test]
    fn the_measured_window_does_not_end_with_the_room_for_pauses() {
        let log = read(LOG, 1, Some((2_500_000_000, 3_500_000_000)));
        let gc = gc_evidence(&log).unwrap();
        assert_eq!(gc.measure_pauses, Some(1));
        assert_eq!(gc.measure_gc_cpu, Some(Duration::from_millis(30)));
        assert_eq!(gc.pause_spans_ns, [(2_970_000_000, 3_000_000_000)]);
        assert_eq!(cut_warning(&log), None, "the pause before it is no loss");
        let log = read(LOG, 1, Some((0, u64::MAX)));
        let told = cut_warning(&log).unwrap();
        assert!(told.starts_with("1 GC pauses found no room"), "{told}");
    }

    #[test]
    fn pauses_without_the_trials_clock_are_unknown_in_the_measure_phase() {
        let classic = "\
OpenJDK 64-Bit Server VM (25.402-b06) for linux-amd64 JRE (1.8.0_402-b06), built on Jan  1 2024
1.500: [GC (Allocation Failure) [PSYoungGen: 16384K->2048K(18432K)] 16384K->2056K(59392K), 0.0100000 secs] [Times: user=0.02 sys=0.01, real=0.01 secs]
";
        let gc = gc_evidence(&read(classic, 10, Some((0, u64::MAX)))).unwrap();
        assert_eq!((gc.pauses, gc.measure_pauses), (1, None));
        assert_eq!(gc.gc_cpu, Some(Duration::from_millis(30)));
        assert_eq!(
            (
                gc.measure_gc_cpu,
                gc.measure_pause_sum,
                gc.measure_pause_max
            ),
            (None, None, None)
        );
        let gc = gc_evidence(&read(LOG, 10, None)).unwrap();
        assert_eq!((gc.pauses, gc.measure_pauses), (2, None));
        let quiet = gc_evidence(&read(LOG, 10, Some((0, 1)))).unwrap();
        assert_eq!(quiet.measure_pauses, Some(0));
    }

    #[test]
    fn standstills_are_the_safepoints_else_the_pauses() {
        let mut seen = PauseEvidence::default();
        add_standstills(&loadline_jvm::gclog::read(LOG.as_bytes(), 10), &mut seen);
        assert_eq!(seen.safepoints_ns[0], (1_990_000_000, 2_000_000_000, 0));
        let more = "\
[4000000000ns][info][safepoint] Safepoint \"X\", Time since last: 5 ns, Reaching safepoint: 700 ns, At safepoint: 300 ns, Total: 1000 ns
[5000000000ns][info][gc] Allocation Stall (main) 2.000ms
";
        let log = format!("{LOG}{more}");
        add_standstills(&loadline_jvm::gclog::read(log.as_bytes(), 10), &mut seen);
        assert_eq!(seen.safepoints_ns, [(3_999_999_000, 4_000_000_000, 700)]);
        assert_eq!(seen.stalls_ns, [(4_998_000_000, 5_000_000_000)]);
    }

    #[test]
    fn a_log_without_a_collector_gives_nothing() {
        assert!(gc_evidence(&read("hello\n", 10, None)).is_none());
    }
}
