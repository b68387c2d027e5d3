//! Evidence and records for this crate's tests: a sound trial, to be changed at one place.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use crate::latency::{empty_histogram, encode_histogram};
use crate::record::*;
use crate::slo::Slo;

pub fn configuration(memory_mib: u64) -> Configuration {
    Configuration {
        label: format!("{memory_mib}Mi"),
        cpu: Some(Cpus::from_whole(1)),
        memory: Some(Bytes::from_mib(memory_mib)),
        ..Configuration::default()
    }
}

pub fn slo() -> Slo {
    "p99<50ms,errors<1%,start<20s".parse().unwrap()
}

/// 3000 requests at 300/s, latencies 1..20 ms.
pub fn steady_load() -> LoadEvidence {
    let mut histogram = empty_histogram();
    for request in 0..3000_u64 {
        histogram
            .record(1_000_000 + request % 20 * 1_000_000)
            .unwrap();
    }
    let text = encode_histogram(&histogram).unwrap();
    LoadEvidence {
        phase: TrialPhase::Measure,
        instance: None,
        offered_rate: Some(300.0),
        achieved_rate: 300.0,
        duration: Duration::from_secs(10),
        scheduled: 3000,
        ok: 3000,
        errors: BTreeMap::new(),
        unfinished: 0,
        latency: text.clone(),
        service_time: Some(text),
        send_lag_p99: Some(Duration::from_micros(200)),
        generator_cpu: Some(Duration::from_millis(400)),
        saturated: None,
        by_request: Vec::new(),
        by_second: Vec::new(),
        load_from: None,
    }
}

pub fn empty_gc_log() -> GcEvidence {
    GcEvidence {
        collector: "Serial".to_owned(),
        ..GcEvidence::default()
    }
}

pub fn passing_evidence() -> Evidence {
    let second = |n: u64| SecondEvidence {
        at_ns: n * 1_000_000_000,
        offered: Some(300),
        achieved: Some(300),
        errors: Some(0),
        ..SecondEvidence::default()
    };
    Evidence {
        start: StartEvidence {
            ready: Some(Duration::from_secs(3)),
            deadline: Duration::from_secs(60),
            ..StartEvidence::default()
        },
        load: vec![steady_load()],
        cgroup: CgroupEvidence {
            oom_kills: Some(0),
            peak_memory: Some(Bytes::from_mib(120)),
            measure_cpu: Some(Duration::from_secs(6)),
            cpu: Some(Duration::from_secs(12)),
            measure_nr_periods: Some(100),
            measure_nr_throttled: Some(4),
            measure_throttled: Some(Duration::from_millis(250)),
            ..CgroupEvidence::default()
        },
        exit: ExitEvidence {
            code: Some(143),
            ..ExitEvidence::default()
        },
        seconds: (1..=10).map(second).collect(),
        ..Evidence::default()
    }
}

pub fn not_ready() -> Evidence {
    let mut evidence = passing_evidence();
    evidence.start.ready = None;
    evidence.start.last_probe = "connection refused".to_owned();
    evidence.load.clear();
    evidence.seconds.clear();
    evidence
}

pub fn with_exit(mut evidence: Evidence, code: Option<i32>, signal: Option<i32>) -> Evidence {
    evidence.exit = ExitEvidence {
        before_stop: true,
        code,
        signal,
        ..ExitEvidence::default()
    };
    evidence
}

pub fn with_output(mut evidence: Evidence, output: &str) -> Evidence {
    evidence.last_output = output.lines().map(str::to_owned).collect();
    evidence
}

pub fn trial_record(
    id: &str,
    purpose: TrialPurpose,
    memory_mib: u64,
    verdict: TrialVerdict,
) -> TrialRecord {
    TrialRecord {
        schema: SCHEMA,
        id: id.to_owned(),
        result: "result".to_owned(),
        purpose,
        configuration: configuration(memory_mib),
        repeat: 1,
        started_at_unix_ms: 0,
        slo: slo(),
        verdict,
        reason: format!("reason of {id}").into(),
        objectives: Vec::new(),
        evidence: passing_evidence(),
    }
}
