//! A run as a file, so that an estimator can be judged again on earlier data.
//!
//! Owns the form: one JSON document a run. Only this program writes and reads it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_analysis::estimate::CounterSample;
use loadline_analysis::pauses::PauseEvidence;
use loadline_analysis::span::{TimeSpan, TimeSpans};
use loadline_cgroup::{PhaseLock, SamplerReport};
use loadline_sizing::Cpus;
use serde_json::{Value, json};

use crate::scene::Seen;
use crate::trace::Scheduled;

/// Writes a run below a directory.
pub fn write(directory: &Path, jdk: &str, limit: Cpus, seen: &Seen) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let mut number = 0;
    let mut path = directory.join(format!("{jdk}-{limit}-{number}.json"));
    while path.exists() {
        number += 1;
        path = directory.join(format!("{jdk}-{limit}-{number}.json"));
    }
    let document = json!({
        "jdk": jdk,
        "limit": limit.to_string(),
        "pauses": seen.pauses.iter().map(|(tid, s)| (*tid, s.start, s.end)).collect::<Vec<_>>(),
        "throttled": per_thread(&seen.scheduled.throttled),
        "waiting": per_thread(&seen.scheduled.waiting),
        "on_cpu": pairs(&seen.scheduled.on_cpu),
        "lost": seen.scheduled.lost,
        "log": seen.log,
        "fast": samples(&seen.fast.0),
        "fast_report": report(&seen.fast.1),
        "locked": samples(&seen.locked.0),
        "locked_report": report(&seen.locked.1),
        "period": seen.period,
        "counted": seen.throttled,
    });
    let packed = zstd::encode_all(serde_json::to_vec(&document)?.as_slice(), 3)?;
    Ok(fs::write(path, packed)?)
}

/// A run with its JDK and limit.
pub type Run = (String, Cpus, Seen);

/// The runs kept in a directory, in order of their names.
pub fn read(directory: &Path) -> Result<Vec<Run>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    paths.iter().map(|path| run(path)).collect()
}

fn run(path: &Path) -> Result<Run, Box<dyn Error>> {
    let bytes = zstd::decode_all(fs::File::open(path)?)?;
    let document: Value = serde_json::from_slice(&bytes)?;
    let get = |name: &str| document[name].clone();
    let pauses: Vec<(u32, u64, u64)> = serde_json::from_value(get("pauses"))?;
    let seen = Seen {
        pauses: pauses
            .into_iter()
            .map(|(tid, start, end)| (tid, TimeSpan::new(start, end)))
            .collect(),
        scheduled: Scheduled {
            throttled: threads(get("throttled"))?,
            waiting: threads(get("waiting"))?,
            on_cpu: spans(serde_json::from_value(get("on_cpu"))?),
            lost: serde_json::from_value(get("lost"))?,
        },
        log: serde_json::from_value::<PauseEvidence>(get("log"))?,
        fast: (taken(get("fast"))?, reported(get("fast_report"))?),
        locked: (taken(get("locked"))?, reported(get("locked_report"))?),
        period: serde_json::from_value(get("period"))?,
        throttled: serde_json::from_value(get("counted"))?,
    };
    let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    Ok((text("jdk"), text("limit").parse()?, seen))
}

type PerThread = std::collections::BTreeMap<u32, TimeSpans>;

fn pairs(spans: &TimeSpans) -> Vec<(u64, u64)> {
    spans.as_slice().iter().map(|s| (s.start, s.end)).collect()
}

fn spans(pairs: Vec<(u64, u64)>) -> TimeSpans {
    pairs
        .into_iter()
        .map(|(a, b)| TimeSpan::new(a, b))
        .collect()
}

fn per_thread(all: &PerThread) -> Vec<(u32, Vec<(u64, u64)>)> {
    all.iter().map(|(tid, s)| (*tid, pairs(s))).collect()
}

fn threads(value: Value) -> Result<PerThread, serde_json::Error> {
    let all: Vec<(u32, Vec<(u64, u64)>)> = serde_json::from_value(value)?;
    Ok(all.into_iter().map(|(tid, s)| (tid, spans(s))).collect())
}

fn samples(all: &[CounterSample]) -> Value {
    let one = |s: &CounterSample| json!([s.at, s.usage, s.throttled, s.per_cpu]);
    all.iter().map(one).collect()
}

fn taken(value: Value) -> Result<Vec<CounterSample>, serde_json::Error> {
    let all: Vec<(u64, u64, u64, Vec<u64>)> = serde_json::from_value(value)?;
    let one = |(at, usage, throttled, per_cpu)| CounterSample {
        at,
        usage,
        per_cpu,
        throttled,
    };
    Ok(all.into_iter().map(one).collect())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn report(of: &SamplerReport) -> Value {
    let lock = of.phase_lock.map(|l| (l.boundary_ns, nanos(l.uncertainty)));
    let gap = nanos(of.longest_gap);
    json!([
        of.samples,
        nanos(of.wall),
        nanos(of.cpu),
        of.gap_count,
        gap,
        lock,
        of.is_realtime
    ])
}

fn reported(value: Value) -> Result<SamplerReport, serde_json::Error> {
    type Row = (u64, u64, u64, u64, u64, Option<(u64, u64)>, bool);
    let (samples, wall, cpu, gap_count, gap, lock, is_realtime): Row =
        serde_json::from_value(value)?;
    Ok(SamplerReport {
        samples,
        wall: Duration::from_nanos(wall),
        cpu: Duration::from_nanos(cpu),
        gap_count,
        longest_gap: Duration::from_nanos(gap),
        phase_lock: lock.map(|(boundary_ns, uncertainty)| PhaseLock {
            boundary_ns,
            uncertainty: Duration::from_nanos(uncertainty),
        }),
        is_realtime,
        ..SamplerReport::default()
    })
}
