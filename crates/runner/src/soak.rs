//! Soaks: how their time is divided, what runs in them, and records of killed ones.
//!
//! Owns the lengths of cycles and rest, and the record made from an event log without an end. A
//! soak is judged from the points that it has, so a kill after hours loses minutes.

use std::fs::File;
use std::time::Duration;

use loadline_analysis::record::{
    Evidence, InvalidReason, MOST_POINTS, MeasurementFailure, SCHEMA, SoakEvidence, TrialPurpose,
    TrialRecord,
};
use loadline_analysis::slo::Slo;
use loadline_analysis::verdict::{VerdictThresholds, judge_trial};
use loadline_experiment::Experiment;
use loadline_protocol::log::{ChunkContent, EventLogReader, LogEntry};
use loadline_protocol::{SoakSettings, TrialEvent};
use loadline_trial::soaking::fold_collections;

use crate::store::{Store, StoreError, UnfinishedTrial};

const EVERY: Duration = Duration::from_millis(500);

/// Rest between the cycles, as a share, with its least and its most.
const REST: (f64, Duration, Duration) = (0.05, Duration::from_secs(3), Duration::from_secs(300));

pub fn divide_soak(length: Duration) -> (SoakSettings, Duration) {
    let rest = length.mul_f64(REST.0).clamp(REST.1, REST.2);
    let every = (length / MOST_POINTS).max(EVERY);
    let cycle = length.saturating_sub(rest) / 2;
    (SoakSettings { every, rest }, cycle)
}

/// Makes records of the soaks of a result that were killed, from what their logs hold; how many.
pub fn salvage(store: &Store, result: &str, experiment: &Experiment) -> Result<usize, StoreError> {
    let mut configurations = experiment.configurations().into_iter();
    let label = configurations.next().map(|first| first.label);
    let mut saved = 0;
    for mut trial in store.unfinished_trials(result, TrialPurpose::Soak)? {
        trial.configuration.label = label.clone().unwrap_or_default();
        if let Some(record) = salvage_record(store, result, &trial, &experiment.slo) {
            store.finish_trial(&record)?;
            saved += 1;
        }
    }
    Ok(saved)
}

/// The record of a killed soak; `None` where it had seen nothing.
fn salvage_record(
    store: &Store,
    result: &str,
    trial: &UnfinishedTrial,
    slo: &Slo,
) -> Option<TrialRecord> {
    let log = store.trial_log_path(&trial.id);
    let open = || File::open(&log).map(EventLogReader::new).ok();
    let mut soak = read_soak_evidence(open()?);
    if soak.points.is_empty() {
        return None;
    }
    let gc_log = open()?.join_chunks(ChunkContent::GcLog, 0);
    fold_collections(&mut soak.points, gc_log);
    let detail = "loadline was killed; what its log holds is kept".to_owned();
    soak.cut = Some("it was killed".to_owned());
    let evidence = Evidence {
        soak: Some(soak),
        failure: Some(MeasurementFailure::new(InvalidReason::RuntimeLost, detail)),
        ..Evidence::default()
    };
    let thresholds = VerdictThresholds::default();
    let judgement = judge_trial(&trial.configuration, slo, &evidence, &thresholds);
    Some(TrialRecord {
        schema: SCHEMA,
        id: trial.id.clone(),
        result: result.to_owned(),
        purpose: TrialPurpose::Soak,
        configuration: trial.configuration.clone(),
        repeat: trial.repeat,
        started_at_unix_ms: trial.started_at_unix_ms,
        slo: slo.clone(),
        verdict: judgement.verdict,
        reason: judgement.reason,
        objectives: judgement.objectives,
        evidence,
    })
}

fn read_soak_evidence(mut log: EventLogReader<File>) -> SoakEvidence {
    let mut soak = SoakEvidence::default();
    while let Ok(Some(record)) = log.next_entry() {
        match record {
            LogEntry::Event(TrialEvent::Soak(point)) => soak.points.push(*point),
            LogEntry::Event(TrialEvent::Look(look)) => soak.looks.push(*look),
            LogEntry::Event(_) | LogEntry::Piece(_) => {}
        }
    }
    soak
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::{SoakPoint, TrialPhase};
    use loadline_protocol::TrialProgress;
    use loadline_protocol::log::EventLog;
    use loadline_sizing::Bytes;
    use loadline_trial::samples::{SampleRow, encode_rows};

    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn time_is_divided_into_two_cycles_and_a_rest() {
        let hours = |n: u64| Duration::from_secs(3600 * n);
        let (soak, cycle) = divide_soak(hours(4));
        assert_eq!(
            (soak.every, soak.rest),
            (Duration::from_secs(5), Duration::from_secs(300))
        );
        assert_eq!(2 * cycle + soak.rest, hours(4));
        let (soak, cycle) = divide_soak(loadline_experiment::SHORTEST_SOAK);
        assert_eq!((soak.every, soak.rest), (EVERY, REST.1));
        // Fewer points than windows would leave lows out.
        assert!(cycle.as_secs_f64() / soak.every.as_secs_f64() > 30.0);
        assert_eq!(divide_soak(hours(24)).0.every, Duration::from_secs(30));
    }

    fn point(second: u64, random: u64) -> TrialEvent {
        TrialEvent::Soak(Box::new(SoakPoint {
            at_ns: second * 1_000_000_000 + random % 1000,
            phase: TrialPhase::Measure,
            requests: second * 200,
            errors: 0,
            anon: Some(Bytes::from_kib(200_000 + random % 4096)),
            file: Some(Bytes::from_kib(30_000)),
            working_set: Some(Bytes::from_kib(240_000 + random % 8192)),
            heap_after: None,
            heap_before: None,
            heap_committed: Some(Bytes::from_mib(128)),
            metaspace: Some(Bytes::from_kib(60_000)),
            threads: Some(30 + random % 4),
            descriptors: Some(90 + random % 9),
            sockets: Some(30 + random % 9),
        }))
    }

    /// Seconds as a soak writes them: a row of samples, a figure, five lines of GC log.
    fn write(log: &EventLog, seconds: u64, every: u64) {
        let mut random = loadline_analysis::random::RandomStream::from_seed(1);
        let mut rows = Vec::new();
        for second in 0..seconds {
            let noise = random.next_u64();
            rows.push(SampleRow {
                at_ns: second * 1_000_000_000 + noise % 100_000,
                cpu: Some(Duration::from_nanos(
                    second * 400_000_000 + noise % 10_000_000,
                )),
                per_cpu_ns: (0..16)
                    .map(|cpu| second * 30_000_000 + noise % (1 << (cpu + 8)))
                    .collect(),
                nr_periods: Some(second * 10),
                nr_throttled: Some(second + noise % 2),
                throttled: Some(Duration::from_nanos(second * 9_000_000 + noise % 50_000)),
                ..SampleRow::default()
            });
            if rows.len() == 10 {
                log.append_whole_chunk(ChunkContent::Samples, 0, &encode_rows(&rows));
                rows.clear();
            }
            let progress = TrialProgress {
                phase: TrialPhase::Measure,
                elapsed: Duration::from_secs(second),
                p99: Some(Duration::from_nanos(4_000_000 + noise % 3_000_000)),
                rate: Some(200.0),
            };
            log.append_event(&TrialEvent::Progress(progress))
                .expect("room");
            let mut lines = String::new();
            for n in 0..5 {
                let at = second * 1_000_000_000 + n * 190_000_000 + noise % 9_000_000;
                let (id, before) = (second * 5 + n, 60 + noise % 30);
                lines += &format!(
                    "[{at}ns][info][gc          ] GC({id}) Pause Young (Allocation Failure) {before}M->41M(128M) {}.{:03}ms\n",
                    2 + noise % 9,
                    noise % 1000
                );
            }
            log.append_chunk(ChunkContent::GcLog, 0, lines.as_bytes());
            if second % every == 0 {
                log.append_event(&point(second, noise)).expect("room");
            }
        }
    }

    /// An hour at the rates of a soak of 24 h, times 24: the log has no part that grows otherwise.
    #[test]
    fn a_day_fits_on_disk_and_into_a_record() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("soak.log");
        let mut options = File::options();
        let file = options.read(true).append(true).create_new(true).open(&path);
        let log = EventLog::begin_log(file.expect("a file")).expect("it is empty");
        let every = divide_soak(Duration::from_secs(DAY)).0.every.as_secs();
        write(&log, DAY / 24, every);
        let length = std::fs::metadata(&path).expect("it is there").len();
        println!("a day of a soak: {} MB", length * 24 / 1_000_000);
        assert!(length * 24 <= 200_000_000, "{length}");
        let mut soak = read_soak_evidence(EventLogReader::new(File::open(&path).expect("a file")));
        assert_eq!(soak.points.len() as u64, DAY / 24 / every);
        let log = EventLogReader::new(File::open(&path).expect("a file"));
        fold_collections(&mut soak.points, log.join_chunks(ChunkContent::GcLog, 0));
        let with_heap = soak.points.iter().filter(|p| p.heap_after.is_some());
        assert!(with_heap.count() + 1 >= soak.points.len());
        assert!(u64::from(MOST_POINTS) >= DAY / every);
    }
}
