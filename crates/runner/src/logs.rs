//! The raw evidence of a finished trial, read again: every figure of a record must be derivable from
//! what the application wrote and the kernel counted.
//!
//! Owns the reading, from the event log of a trial.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use loadline_analysis::span::TimeSpan;
use loadline_analysis::timeline::{TimelineStep, span_around, to_steps};
use loadline_jvm::gclog;
use loadline_protocol::log::{ChunkContent, EventLogReader};
use loadline_trial::samples::SampleRows;

use crate::store::Store;

const LARGEST: u64 = 256 << 20;

pub fn gc_log(store: &Store, trial: &str) -> Option<String> {
    gc_log_in(&store.trial_log_path(trial))
}

pub(crate) fn gc_log_in(log: &Path) -> Option<String> {
    read_log_text(log, ChunkContent::GcLog)
}

pub(crate) fn output_in(log: &Path) -> Option<String> {
    read_log_text(log, ChunkContent::Output)
}

fn read_log_text(log: &Path, content: ChunkContent) -> Option<String> {
    let mut bytes = Vec::new();
    let from = EventLogReader::new(File::open(log).ok()?).join_chunks(content, 0);
    from.take(LARGEST).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// What the cgroup of a trial's first instance used around each of these pauses; empty where samples
/// were not kept or counted nothing.
pub fn timelines(store: &Store, trial: &str, pauses: &[TimeSpan]) -> Vec<Vec<TimelineStep>> {
    let spans: Vec<TimeSpan> = pauses.iter().map(|pause| span_around(*pause)).collect();
    let mut found = vec![Vec::new(); spans.len()];
    let log = File::open(store.trial_log_path(trial)).into_iter();
    for row in log.flat_map(|log| SampleRows::new(EventLogReader::new(log), 0)) {
        let Some(sample) = row.throttling_counters() else {
            continue;
        };
        for (span, samples) in spans.iter().zip(&mut found) {
            if span.start <= sample.at && sample.at <= span.end {
                samples.push(sample.clone());
            }
        }
    }
    found.iter().map(|samples| to_steps(samples)).collect()
}

/// The log lines about pauses and safepoints that overlap a span; `pauses` are the record's, which
/// place a log that has only the wall clock.
pub fn lines_within<'a>(log: &'a str, span: TimeSpan, pauses: &[(u64, u64)]) -> Vec<&'a str> {
    match wall_ahead_ms(log, pauses) {
        Some(ahead_ms) => openj9_lines(log, span, ahead_ms),
        None => hotspot_lines(log, span),
    }
}

const LOOKED_AT: usize = 1000;

/// How far the wall clock of OpenJ9's log is ahead of the trial's, ms: a pause of the record has
/// the same length in the log, to the microsecond. `None` for HotSpot's log, or if no pause
/// matches.
fn wall_ahead_ms(log: &str, pauses: &[(u64, u64)]) -> Option<i64> {
    if log.starts_with('[') {
        return None;
    }
    let read = gclog::read(log.as_bytes(), LOOKED_AT);
    let placed = read.pauses.iter().find_map(|pause| {
        let length = pause.duration.as_nanos();
        let mut all = pauses.iter();
        let same = all.find(|(start, end)| u128::from(end - start) == length);
        Some((pause.end.unix_ms?, same?.1))
    });
    let (unix_ms, end_ns) = placed?;
    Some(unix_ms - i64::try_from(end_ns / 1_000_000).ok()?)
}

/// OpenJ9: what begins, ends and takes its time in a stop. A stamp is cut to milliseconds.
fn openj9_lines(log: &str, span: TimeSpan, ahead_ms: i64) -> Vec<&str> {
    const TELLING: &str =
        "<exclusive-start <exclusive-end <af-start <sys-start <percolate <gc-op <gc-end";
    let ms = |ns: u64| i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX);
    let (from, to) = (ms(span.start) - 1, ms(span.end) + 1);
    let is_within = |line: &&str| {
        let stamp = gclog::stamp_ms(line).map(|stamp| stamp - ahead_ms);
        stamp.is_some_and(|at| from <= at && at <= to)
    };
    let tells = |line: &&str| TELLING.split(' ').any(|begin| line.starts_with(begin));
    let lines = log.lines().map(str::trim);
    lines.filter(tells).filter(is_within).collect()
}

/// HotSpot, with CLOCK_MONOTONIC stamps (`[123ns]`): a line is written at the end of the event it
/// describes.
fn hotspot_lines(log: &str, span: TimeSpan) -> Vec<&str> {
    let tells = |line: &&str| {
        let is_pause =
            line.contains("[gc ") || line.contains("[gc]") || line.contains("[gc,phases");
        (is_pause && line.contains(" Pause ") && line.ends_with("ms"))
            || line.contains("Safepoint \"")
            || line.contains(" Stall (")
    };
    let stamp = |line: &&str| {
        let stamp = line.strip_prefix('[')?.split_once("ns]")?.0;
        stamp.parse::<u64>().ok()
    };
    // Logging takes its time: a line may come a little after the end of the pause.
    let late = span.end.saturating_add(1_000_000);
    let is_within = |line: &&str| stamp(line).is_some_and(|at| span.start < at && at <= late);
    log.lines().filter(is_within).filter(tells).collect()
}
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_protocol::log::EventLog;
    use loadline_trial::samples::{SampleRow, encode_rows};

    use super::*;

    #[test]
    fn the_lines_behind_a_pause_are_those_that_end_in_it() {
        let log = "\
[100000000ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 56.205ms
[105000000ns][info][gc,start    ] GC(1) Pause Young (Normal) (G1 Evacuation Pause)
[150000000ns][info][gc          ] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 45.205ms
[150100000ns][info][safepoint   ] Safepoint \"G1CollectForAllocation\", Time since last: 1 ns, Total: 45300000 ns
[150200000ns][info][gc,cpu      ] GC(1) User=0.02s Sys=0.00s Real=0.06s
garbage
[990000000ns][info][safepoint   ] Safepoint \"Cleanup\", Total: 5 ns";
        let lines = lines_within(log, TimeSpan::new(101_000_000, 150_000_000), &[]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("GC(1) Pause") && lines[1].contains("Safepoint"));
    }

    #[test]
    fn the_lines_of_openj9_behind_a_pause_are_found_by_the_record() {
        let log = r#"<?xml version="1.0" ?>
<verbosegc version="x">
<exclusive-start id="2" timestamp="2023-11-14T22:13:21.000" intervalms="900.500">
</exclusive-start>
<gc-start id="3" type="scavenge" contextid="1" timestamp="2023-11-14T22:13:21.001">
</gc-start>
<gc-op id="4" type="scavenge" timems="9.000" contextid="1" timestamp="2023-11-14T22:13:21.010" />
<exclusive-end id="5" timestamp="2023-11-14T22:13:21.012" durationms="12.345" />
<exclusive-start id="6" timestamp="2023-11-14T22:13:22.000" intervalms="1000.000">
</exclusive-start>
<gc-start id="7" type="scavenge" contextid="1" timestamp="2023-11-14T22:13:22.001">
</gc-start>
<exclusive-end id="8" timestamp="2023-11-14T22:13:22.002" durationms="2.000" />
"#;
        // The first one, 5 s after the trial's clock began.
        let (start, end) = (5_000_400_000, 5_012_745_000);
        let recorded = [(start, end), (6_000_400_000, 6_002_400_000)];
        let lines = lines_within(log, TimeSpan::new(start, end), &recorded);
        let tags: Vec<&str> = lines.iter().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(tags, ["<exclusive-start", "<gc-op", "<exclusive-end"]);
        assert!(lines[2].contains("12.345"));
        assert_eq!(
            lines_within(log, TimeSpan::new(start, end), &[]),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_log_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open_or_create(directory.path()).expect("a store");
        assert_eq!(gc_log(&store, "none"), None);
        let mut file = File::options();
        file.read(true).append(true).create(true);
        let file = file.open(store.trial_log_path("new")).expect("a file");
        let log = EventLog::begin_log(file).expect("it is empty");
        log.append_chunk(ChunkContent::GcLog, 0, b"hel");
        log.append_chunk(ChunkContent::GcLog, 1, b"another's");
        log.append_chunk(ChunkContent::GcLog, 0, b"lo");
        assert_eq!(gc_log(&store, "new").as_deref(), Some("hello"));
    }

    #[test]
    fn the_samples_around_a_pause_are_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open_or_create(directory.path()).expect("a store");
        let mut file = File::options();
        file.read(true).append(true).create(true);
        let file = file.open(store.trial_log_path("t")).expect("a file");
        let log = EventLog::begin_log(file).expect("it is empty");
        let row = |at_ns| SampleRow {
            at_ns,
            cpu: Some(Duration::from_nanos(2 * at_ns)),
            throttled: Some(Duration::ZERO),
            ..SampleRow::default()
        };
        let rows: Vec<SampleRow> = (1..100).map(|n| row(n * 10)).collect();
        log.append_chunk(ChunkContent::Samples, 0, &encode_rows(&rows));
        let pauses = [TimeSpan::new(100, 200), TimeSpan::new(5000, 6000)];
        let found = timelines(&store, "t", &pauses);
        assert_eq!((found[0].len(), found[1].len()), (14, 0));
        assert_eq!((found[0][0].from_ns, found[0][0].cpus), (80, 2.0));
    }
}
