//! From a JVM's own log to the GC figures of a record.
//!
//! Owns which pauses belong to the measure phase: those that end in it, on CLOCK_MONOTONIC. Knows
//! no log format; that is `loadline_jvm::gclog`'s.

use std::time::Duration;

use loadline_analysis::pauses::PauseEvidence;
use loadline_analysis::record::GcEvidence;
use loadline_jvm::gclog::{GcLog, Pause, Safepoint, Stall};
use loadline_sizing::Bytes;

/// Pauses that a record keeps one by one; more are only counted.
pub const KEPT_PAUSES: usize = 10_000;

/// The GC figures; `measure` is the measured window on CLOCK_MONOTONIC, ns. `None` for a log that
/// has nothing of a collector in it.
pub fn gc_evidence(log: &GcLog, measure: Option<(u64, u64)>) -> Option<GcEvidence> {
    let collector = log.header.collector?;
    let in_measure = |pause: &&Pause| {
        let end = pause.end.monotonic_ns;
        matches!((end, measure), (Some(end), Some((from, to))) if (from..to).contains(&end))
    };
    let measured: Vec<&Pause> = log.pauses.iter().filter(in_measure).collect();
    let gc_cpu = |pauses: &[&Pause]| {
        pauses
            .iter()
            .filter_map(|p| p.cpu)
            .map(|c| c.cpu())
            .sum::<Duration>()
    };
    let has_cpu = log.summary.cpu_count > 0;
    let summary = &log.summary;
    Some(GcEvidence {
        collector: collector.name().to_owned(),
        jdk: log.header.jdk.clone(),
        pauses: summary.stw.count,
        pause_sum: summary.stw.total,
        pause_max: summary.stw.max,
        full_gcs: summary.full,
        gc_cpu: has_cpu.then(|| summary.cpu.cpu()),
        measure_gc_cpu: (has_cpu && measure.is_some()).then(|| gc_cpu(&measured)),
        measure_pauses: measured.len() as u64,
        measure_pause_sum: measured.iter().map(|p| p.duration).sum(),
        measure_pause_max: measured
            .iter()
            .map(|p| p.duration)
            .max()
            .unwrap_or_default(),
        heap_after_max: summary.heap_after_max.map(Bytes::from_bytes),
        heap_max: log.header.heap_max_bytes.map(Bytes::from_bytes),
        pause_spans_ns: log
            .pauses
            .iter()
            .filter_map(Pause::monotonic_span)
            .collect(),
    })
}

/// Adds when threads stood, as the log tells it: safepoints, and pauses where the log has no
/// safepoints; stalls that have a clock.
pub fn add_standstills(log: &GcLog, pauses: &mut PauseEvidence) {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let safepoint = |s: &Safepoint| {
        let (start, end) = s.monotonic_span()?;
        Some((start, end, nanos(s.reaching.unwrap_or_default())))
    };
    let pause = |p: &Pause| p.monotonic_span().map(|(start, end)| (start, end, 0));
    pauses.safepoints_ns = match log.safepoints.is_empty() {
        false => log.safepoints.iter().filter_map(safepoint).collect(),
        true => log.pauses.iter().filter_map(pause).collect(),
    };
    let stall = |s: &Stall| {
        let end = s.end.monotonic_ns?;
        Some((end.saturating_sub(nanos(s.duration)), end))
    };
    // Pacing is a sum over threads and a cycle: it has no place in time.
    let placed = log.stalls.iter().filter(|s| &*s.name != "Pacing");
    pauses.stalls_ns = placed.filter_map(stall).collect();
    pauses.safepoints_ns.sort_unstable();
    pauses.stalls_ns.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let log = loadline_jvm::gclog::read(LOG.as_bytes(), KEPT_PAUSES);
        let gc = gc_evidence(&log, Some((2_500_000_000, 3_500_000_000))).unwrap();
        assert_eq!((gc.pauses, gc.full_gcs, gc.measure_pauses), (2, 1, 1));
        assert_eq!(gc.measure_pause_max, Duration::from_millis(30));
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
        assert_eq!(gc.pause_spans_ns[0], (1_990_000_000, 2_000_000_000));
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
        assert!(gc_evidence(&loadline_jvm::gclog::read("hello\n".as_bytes(), 10), None).is_none());
    }
}
