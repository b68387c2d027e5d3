//! Service-level indicators: the figures people read, derived from a record.
//!
//! Owns every derivation used by tables and reports, so that no figure is stored twice. A figure
//! that this kernel, JVM or phase did not give is `None`, never zero.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_sizing::Bytes;

use crate::latency::{self, Latency, LatencyError};
use crate::record::{
    CgroupEvidence, Evidence, GcEvidence, LoadFrom, PhaseSpan, RequestEvidence, TrialPhase,
    TrialRecord,
};
use crate::slo::{JvmObjective, Quantile};
use crate::startup;

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredLoad {
    pub latency: Latency,
    pub offered_rate: Option<f64>,
    pub achieved_rate: f64,
    pub duration: Duration,
    pub scheduled: u64,
    pub ok: u64,
    pub errors: BTreeMap<String, u64>,
    pub unfinished: u64,
    /// The largest send lag p99 of the parts; `None` where none was measured.
    pub send_lag_p99: Option<Duration>,
    pub is_observed: bool,
    pub saturated: Option<String>,
    pub by_request: Vec<MeasuredRequest>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRequest {
    pub name: String,
    pub latency: Latency,
    pub failed: u64,
}

impl MeasuredRequest {
    fn from_request(request: &RequestEvidence) -> Result<Self, LatencyError> {
        let failed = request.failed + request.unfinished;
        let histogram = latency::decode_histogram(&request.latency)?;
        Ok(Self {
            name: request.name.clone(),
            latency: Latency::new(histogram, request.ok + failed)?,
            failed,
        })
    }

    pub fn sent(&self) -> u64 {
        self.latency.scheduled()
    }

    /// Share of requests without a good response, in [0, 1]; `None` without requests.
    pub fn error_share(&self) -> Option<f64> {
        quotient(self.failed as f64, self.sent() as f64)
    }
}

impl MeasuredLoad {
    /// The judged load, without its peak.
    pub fn from_evidence(evidence: &Evidence) -> Result<Option<Self>, LatencyError> {
        Self::in_phase(evidence, TrialPhase::Measure)
    }

    pub fn in_phase(evidence: &Evidence, phase: TrialPhase) -> Result<Option<Self>, LatencyError> {
        let mut sum: Option<Self> = None;
        for part in evidence.load_in(phase) {
            let requests = part.by_request.iter();
            let part = Self {
                latency: Latency::from_load(part)?,
                offered_rate: part.offered_rate,
                achieved_rate: part.achieved_rate,
                duration: part.duration,
                scheduled: part.scheduled,
                ok: part.ok,
                errors: part.errors.clone(),
                unfinished: part.unfinished,
                send_lag_p99: part.send_lag_p99,
                is_observed: matches!(part.load_from, Some(LoadFrom::Command { .. })),
                saturated: part.saturated.clone(),
                by_request: requests
                    .map(MeasuredRequest::from_request)
                    .collect::<Result<_, _>>()?,
            };
            match &mut sum {
                None => sum = Some(part),
                Some(sum) => sum.add_part(part)?,
            }
        }
        Ok(sum)
    }

    fn add_part(&mut self, part: Self) -> Result<(), LatencyError> {
        self.latency.merge(&part.latency)?;
        self.offered_rate = self.offered_rate.zip(part.offered_rate).map(|(a, b)| a + b);
        self.achieved_rate += part.achieved_rate;
        self.duration = self.duration.max(part.duration);
        self.scheduled += part.scheduled;
        self.ok += part.ok;
        for (kind, count) in part.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.unfinished += part.unfinished;
        self.send_lag_p99 = self.send_lag_p99.max(part.send_lag_p99);
        self.saturated = self.saturated.take().or(part.saturated);
        for request in part.by_request {
            match self.by_request.iter_mut().find(|r| r.name == request.name) {
                Some(sum) => {
                    sum.latency.merge(&request.latency)?;
                    sum.failed += request.failed;
                }
                None => self.by_request.push(request),
            }
        }
        Ok(())
    }

    /// One request of the mix by its name; `None` if the mix lacks it.
    pub fn request_named(&self, name: &str) -> Option<&MeasuredRequest> {
        self.by_request.iter().find(|request| request.name == name)
    }

    /// Share of scheduled requests without a good response, in [0, 1]; `None` without requests.
    pub fn error_share(&self) -> Option<f64> {
        let failed = self.scheduled.saturating_sub(self.ok);
        quotient(failed as f64, self.scheduled as f64)
    }

    /// The rate that was asked for: the plan's, or less where a random schedule drew fewer.
    pub fn asked_rate(&self) -> Option<f64> {
        let drawn = quotient(self.scheduled as f64, self.duration.as_secs_f64());
        let drawn = drawn.unwrap_or(f64::INFINITY);
        self.offered_rate.map(|offered| offered.min(drawn))
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sli {
    pub start: Option<Duration>,
    /// CPU time until ready: hardly moved by a noisy machine, unlike the start time.
    pub start_cpu: Option<Duration>,
    /// Throttled time until ready: a sum over CPUs, it may exceed the start time.
    pub start_throttled: Option<Duration>,
    pub start_log_line: Option<Duration>,
    pub start_classes: Option<u64>,
    /// Share of the loaded classes that came from a class archive, in [0, 1].
    pub start_archived_share: Option<f64>,
    pub start_rss: Option<Bytes>,
    /// Resident memory at ready, shared pages divided among the sharing processes.
    pub start_pss: Option<Bytes>,
    pub time_to_performance: Option<Duration>,
    pub offered_rate: Option<f64>,
    pub achieved_rate: Option<f64>,
    /// Share of scheduled requests without a good response, in [0, 1].
    pub error_share: Option<f64>,
    /// Latency percentiles from the intended send time over all scheduled requests. `None` also
    /// when the percentile lies in requests that failed.
    pub p50: Option<Duration>,
    pub p90: Option<Duration>,
    pub p99: Option<Duration>,
    pub p99_9: Option<Duration>,
    pub max: Option<Duration>,
    /// CPU time of the application per good response in the measure phase.
    pub cpu_per_request: Option<Duration>,
    pub cpus_used: Option<f64>,
    /// Highest memory usage, page cache included.
    pub peak_memory: Option<Bytes>,
    pub peak_working_set: Option<Bytes>,
    pub peak_rss: Option<Bytes>,
    /// CPU time of the collector as a share of the application's, in [0, 1]: see [`gc_cpu_share`].
    pub gc_cpu_share: Option<f64>,
    /// Stop-the-world time of the collector as a share of the measure phase, in [0, 1]; `None`
    /// where the log does not tell which pauses lie in it (JDK 8).
    pub gc_pause_share: Option<f64>,
    /// The longest collector pause in the measure phase; `None` as above.
    pub gc_pause_max: Option<Duration>,
    /// Throttled periods as a share of all periods with runnable tasks, in [0, 1].
    pub throttled_periods_share: Option<f64>,
}

impl Sli {
    pub fn from_record(record: &TrialRecord) -> Result<Self, LatencyError> {
        let evidence = &record.evidence;
        let measured = MeasuredLoad::from_evidence(evidence)?;
        let duration = measured.as_ref().map(|m| m.duration);
        let duration = duration.or_else(|| judged_time(evidence));
        // A partial phase is not a valid sample.
        let load = measured.as_ref().filter(|_| evidence.ended_early.is_none());
        let cgroup = &evidence.cgroup;
        let gc = evidence.gc.as_ref();
        Ok(Self {
            start: evidence.start.ready,
            start_cpu: evidence.start.cpu,
            start_throttled: evidence.start.throttled,
            start_log_line: evidence.start.log_line,
            start_classes: evidence.start.classes,
            start_archived_share: startup::archived_share(record),
            start_rss: evidence.start.rss,
            start_pss: evidence.start.pss,
            time_to_performance: startup::time_to_performance(record),
            cpu_per_request: per_request(cgroup.measure_cpu, measured.as_ref()),
            cpus_used: time_share(cgroup.measure_cpu, duration),
            peak_memory: cgroup.peak_memory,
            peak_working_set: cgroup.peak_working_set,
            peak_rss: cgroup.peak_rss,
            gc_cpu_share: gc_cpu_share(evidence),
            gc_pause_share: time_share(gc.and_then(|gc| gc.measure_pause_sum), duration),
            gc_pause_max: gc.and_then(|gc| gc.measure_pause_max),
            throttled_periods_share: throttled_share(cgroup),
            ..load.map(of_load).unwrap_or_default()
        })
    }

    /// The load of the burst behind the judged one; `None` without it.
    pub fn of_peak(evidence: &Evidence) -> Result<Option<Self>, LatencyError> {
        let measured = MeasuredLoad::in_phase(evidence, TrialPhase::Peak)?;
        Ok(measured.as_ref().map(of_load))
    }
}

fn of_load(measured: &MeasuredLoad) -> Sli {
    let at =
        |fraction| Quantile::from_fraction(fraction).and_then(|q| measured.latency.quantile(q));
    Sli {
        offered_rate: measured.offered_rate,
        achieved_rate: Some(measured.achieved_rate),
        error_share: measured.error_share(),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: measured.latency.max(),
        ..Sli::default()
    }
}

/// CPU time of the collector as a share of the application's, in [0, 1]: of the measure phase,
/// or of the whole trial where that is not known: an application that never got ready, a log that
/// does not place its pauses on the trial's clock (JDK 8).
pub fn gc_cpu_share(evidence: &Evidence) -> Option<f64> {
    let gc = evidence.gc.as_ref()?;
    time_share(gc.measure_gc_cpu, evidence.cgroup.measure_cpu)
        .or_else(|| time_share(gc.gc_cpu, evidence.cgroup.cpu))
}

/// How many of the last collections tell the live set, where no full one does.
const COLLECTIONS: usize = 5;

/// The measured share of an objective about the JVM, in [0, 1]; `None` without a log of one JVM.
pub fn jvm_share(objective: JvmObjective, evidence: &Evidence) -> Option<f64> {
    let gc = evidence.gc.as_ref()?;
    match objective {
        JvmObjective::Heap { .. } => {
            let most = gc.heap_max?.as_bytes() as f64;
            let after = heap_after_collections(gc, evidence)?;
            quotient(after.as_bytes() as f64, most)
        }
        JvmObjective::Gc { .. } => {
            let is_placed = gc.pauses == 0 || !gc.pause_spans_ns.is_empty();
            let in_phase = gc.measure_pause_sum;
            let in_phase = in_phase.or(is_placed.then_some(Duration::ZERO));
            if in_phase.is_some() {
                return time_share(in_phase, judged_time(evidence));
            }
            // JDK 8 does not place its pauses: all, of the whole trial.
            let whole = evidence.phases.iter().map(PhaseSpan::length).sum();
            time_share(Some(gc.pause_sum), Some(whole))
        }
    }
}

/// The most after a full collection of the judged time; without one the least after the last
/// collections, since young ones leave garbage behind. Nothing if the heap never filled.
fn heap_after_collections(gc: &GcEvidence, evidence: &Evidence) -> Option<Bytes> {
    let judged = evidence.span_of(TrialPhase::Measure);
    let (from, to) = judged.map_or((0, u64::MAX), |span| (span.start, span.end));
    let heaps = || gc.heaps_after.iter().filter(|heap| heap.at_ns <= to);
    let full = heaps().filter(|heap| heap.is_full && heap.at_ns >= from);
    let last = heaps().rev().take(COLLECTIONS).map(|heap| heap.bytes);
    let seen = full.map(|heap| heap.bytes).max().or(last.min());
    seen.or(gc.heap_after_max)
        .or((gc.pauses == 0).then(Bytes::default))
}

/// The judged time: of the requests, else of the phase, else of the whole run.
pub(crate) fn judged_time(evidence: &Evidence) -> Option<Duration> {
    let of_load = evidence.load_in(TrialPhase::Measure).next();
    let of_phase = evidence.span_of(TrialPhase::Measure);
    let of_run = evidence.start.ready.filter(|_| evidence.run.is_some());
    let of_load = of_load.map(|load| load.duration);
    of_load.or(of_phase.map(PhaseSpan::length)).or(of_run)
}

fn time_share(part: Option<Duration>, whole: Option<Duration>) -> Option<f64> {
    quotient(part?.as_secs_f64(), whole?.as_secs_f64())
}

fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn per_request(cpu: Option<Duration>, load: Option<&MeasuredLoad>) -> Option<Duration> {
    quotient(cpu?.as_secs_f64(), load?.ok as f64).map(Duration::from_secs_f64)
}

fn throttled_share(cgroup: &CgroupEvidence) -> Option<f64> {
    let (throttled, periods) = (cgroup.measure_nr_throttled?, cgroup.measure_nr_periods?);
    quotient(throttled as f64, periods as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{EarlyEnd, GcEvidence, HeapAfter, TrialPurpose, TrialVerdict};

    #[test]
    fn figures_come_from_the_measure_phase_alone() {
        let mut record = fixture::trial_record("a", TrialPurpose::Matrix, 240, TrialVerdict::Pass);
        let mut warm_up = fixture::steady_load();
        warm_up.phase = TrialPhase::WarmUp;
        warm_up.achieved_rate = 7.0;
        record.evidence.load.insert(0, warm_up);
        record.evidence.gc = Some(GcEvidence {
            collector: "Serial".to_owned(),
            jdk: None,
            pauses: 9,
            pause_sum: Duration::from_secs(9),
            pause_max: Duration::from_secs(9),
            full_gcs: 0,
            gc_cpu: Some(Duration::from_secs(9)),
            measure_gc_cpu: Some(Duration::from_millis(600)),
            measure_pauses: Some(3),
            measure_pause_sum: Some(Duration::from_millis(500)),
            measure_pause_max: Some(Duration::from_millis(90)),
            parallel_workers: None,
            heap_after_max: None,
            heap_max: None,
            allocated: None,
            promoted: None,
            heaps_after: Vec::new(),
            pause_spans_ns: Vec::new(),
        });
        let sli = Sli::from_record(&record).unwrap();
        assert_eq!(sli.achieved_rate, Some(300.0));
        assert_eq!(sli.cpu_per_request, Some(Duration::from_millis(2)));
        assert_eq!(sli.cpus_used, Some(0.6));
        assert!((sli.gc_cpu_share.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(sli.gc_pause_share, Some(0.05));
        assert_eq!(sli.throttled_periods_share, Some(0.04));
        let p99 = sli.p99.unwrap().as_secs_f64();
        assert!((p99 / 0.020 - 1.0).abs() < 1e-3, "{p99}");
    }

    #[test]
    fn shares_of_the_jvm_come_from_its_log() {
        let heap = |at_ns, mib, is_full| HeapAfter {
            at_ns,
            bytes: Bytes::from_mib(mib),
            committed: None,
            is_full,
        };
        let mut evidence = Evidence {
            phases: vec![PhaseSpan {
                phase: TrialPhase::Measure,
                start: 10_000_000_000,
                end: 20_000_000_000,
            }],
            gc: Some(GcEvidence {
                pauses: 3,
                heap_max: Some(Bytes::from_mib(100)),
                measure_pause_sum: Some(Duration::from_millis(500)),
                heaps_after: vec![
                    heap(11_000_000_000, 90, false),
                    heap(12_000_000_000, 40, false),
                    heap(30_000_000_000, 10, true),
                ],
                ..fixture::empty_gc_log()
            }),
            ..Evidence::default()
        };
        let (of_heap, of_gc) = (
            JvmObjective::Heap { bound: 0.8 },
            JvmObjective::Gc { bound: 0.1 },
        );
        assert_eq!(jvm_share(of_gc, &evidence), Some(0.05));
        assert_eq!(jvm_share(of_heap, &evidence), Some(0.4));
        if let Some(gc) = &mut evidence.gc {
            gc.heaps_after.insert(2, heap(13_000_000_000, 70, true));
        }
        assert_eq!(jvm_share(of_heap, &evidence), Some(0.7), "a full one tells");
        evidence.gc = None;
        assert_eq!(jvm_share(of_heap, &evidence), None);
    }

    #[test]
    fn a_part_of_a_phase_is_no_sample_of_it() {
        let mut record =
            fixture::trial_record("a", TrialPurpose::Search, 240, TrialVerdict::SloMiss);
        record.evidence.ended_early = Some(EarlyEnd {
            phase: TrialPhase::Measure,
            reason: "it could not pass".to_owned(),
        });
        let sli = Sli::from_record(&record).unwrap();
        assert_eq!(
            (sli.p99, sli.achieved_rate, sli.error_share),
            (None, None, None)
        );
        assert_eq!(sli.start, record.evidence.start.ready);
    }

    #[test]
    fn collections_of_unknown_time_are_unknown_in_the_measure_phase() {
        let mut record = fixture::trial_record("a", TrialPurpose::Matrix, 240, TrialVerdict::Pass);
        record.evidence.cgroup.cpu = Some(Duration::from_secs(12));
        record.evidence.gc = Some(GcEvidence {
            pauses: 9,
            pause_sum: Duration::from_secs(4),
            gc_cpu: Some(Duration::from_secs(9)),
            ..fixture::empty_gc_log()
        });
        let sli = Sli::from_record(&record).unwrap();
        assert_eq!((sli.gc_pause_share, sli.gc_pause_max), (None, None));
        assert_eq!(sli.gc_cpu_share, Some(0.75), "of the whole trial");
    }

    #[test]
    fn instances_add_up() {
        let mut evidence = fixture::passing_evidence();
        evidence.load.push(fixture::steady_load());
        let measured = MeasuredLoad::from_evidence(&evidence).unwrap().unwrap();
        assert_eq!(measured.offered_rate, Some(600.0));
        assert_eq!(
            (measured.scheduled, measured.latency.succeeded()),
            (6000, 6000)
        );
        assert_eq!(measured.duration, Duration::from_secs(10));
    }

    #[test]
    fn what_was_not_measured_is_not_zero() {
        let mut record = fixture::trial_record("a", TrialPurpose::Matrix, 240, TrialVerdict::Pass);
        record.evidence = Evidence::default();
        assert_eq!(Sli::from_record(&record), Ok(Sli::default()));
    }
}
