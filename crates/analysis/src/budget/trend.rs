//! Whether the live set of one start rises, and how long its heap will last.
//!
//! Owns the significance test. A heap after young collections still holds garbage of the old
//! generation, so full collections decide if there were any; otherwise the lows of all collections
//! must rise by far more.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::median;
use crate::record::{Evidence, HeapAfter, TrialPhase};
use crate::wire;

const FEWEST: usize = 6;
/// Number of windows; their lows replace full collections where there were none.
const WINDOWS: usize = 8;
/// A rise by less than this share of the heap is no rise: by full collections, and by lows of all.
const LEAST_RISE: (f64, f64) = (0.03, 0.25);

/// A live set that rises under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSetTrend {
    /// By how much, in a minute of the judged load.
    #[serde(rename = "bytes_per_minute", with = "wire::bytes")]
    pub per_minute: Bytes,
    /// How long the heap lasts at that pace; `None` where its size is not known.
    #[serde(rename = "lasts_ns", with = "wire::nanos_opt", default)]
    pub lasts: Option<Duration>,
}

/// The rise of the live set over the load of a start. What a burst sent counts as the time in which the
/// judged load sends as much.
pub fn live_set_trend(evidence: &Evidence, heap: Option<Bytes>) -> Option<LiveSetTrend> {
    let gc = evidence.gc.as_ref()?;
    let judged = judged_seconds(evidence)?;
    let at = |after: &HeapAfter| {
        let time = judged_time(&judged, after.at_ns)?;
        Some((time, after.bytes.as_bytes() as f64))
    };
    let all = || gc.heaps_after.iter().filter_map(at).collect::<Vec<_>>();
    let full = gc.heaps_after.iter().filter(|after| after.is_full);
    let full: Vec<_> = full.filter_map(at).collect();
    let (values, least) = if full.len() >= FEWEST {
        (full, LEAST_RISE.0)
    } else {
        (lows(&all()), LEAST_RISE.1)
    };
    let top = heap.or(gc.heap_max);
    let (first, last) = (values.first()?, values.last()?);
    let size = top.map_or(f64::MAX, |top| top.as_bytes() as f64);
    let slope = rising_slope(&values, size)?;
    let least = least * if top.is_some() { size } else { last.1 };
    if slope * (last.0 - first.0) < least {
        return None;
    }
    let lasts = |top: Bytes| {
        let left = (top.as_bytes() as f64 - last.1).max(0.0);
        Duration::from_secs_f64((left / slope).min(1e9))
    };
    Some(LiveSetTrend {
        per_minute: Bytes::from_bytes((slope * 60.0) as u64),
        lasts: top.map(lasts),
    })
}

/// Ends of the seconds of load, ns, each with the judged time until then, seconds.
fn judged_seconds(evidence: &Evidence) -> Option<Vec<(u64, f64)>> {
    use TrialPhase::{Again, Age, Measure, Peak, Squeeze};
    let load = evidence.load_in(Measure).next()?;
    let rate = load.scheduled as f64 / load.duration.as_secs_f64();
    let is_loaded = |phase| matches!(phase, Measure | Peak | Age | Squeeze | Again);
    let mut time = 0.0;
    let mut seconds = Vec::new();
    for second in &evidence.seconds {
        let mut phases = evidence.phases.iter().filter(|s| is_loaded(s.phase));
        if !phases.any(|span| span.start < second.at_ns && second.at_ns <= span.end) {
            continue;
        }
        time += second.achieved? as f64 / rate;
        seconds.push((second.at_ns, time));
    }
    (rate > 0.0 && seconds.len() >= FEWEST).then_some(seconds)
}

fn judged_time(seconds: &[(u64, f64)], at_ns: u64) -> Option<f64> {
    let next = seconds.partition_point(|(end, _)| *end < at_ns);
    seconds.get(next).map(|(_, time)| *time)
}

fn lows(values: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if values.len() < 2 * WINDOWS {
        return Vec::new();
    }
    let windows = values.chunks(values.len().div_ceil(WINDOWS));
    let low = |window: &[(f64, f64)]| window.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    windows.filter_map(low).collect()
}

/// Of the rise of all values, the rise of their second half is at least so much: caches that fill rise
/// and then stop.
const LATE_RISE: f64 = 0.3;
/// Share of its heap from which on a live set fills it.
const FULL: f64 = 0.9;

fn rising_slope(values: &[(f64, f64)], top: f64) -> Option<f64> {
    let slope = theil_sen(values)?;
    // What has filled its heap cannot rise any more.
    if values.last()?.1 >= FULL * top {
        return Some(slope);
    }
    let late: Vec<f64> = slopes(&values[values.len() / 2..]);
    median(&late)
        .filter(|late| *late >= LATE_RISE * slope)
        .map(|late| late.min(slope))
}

fn slopes(values: &[(f64, f64)]) -> Vec<f64> {
    let pairs = values.iter().enumerate();
    let pairs = pairs.flat_map(|(i, a)| values[i + 1..].iter().map(move |b| (a, b)));
    let apart = pairs.filter(|(a, b)| b.0 > a.0);
    apart.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect()
}

/// The median slope between all pairs (Theil 1950, Sen 1968), where the values rise whatever chance does
/// (Mann 1945: S of all pairs beyond 2.6 standard deviations, one chance in 200).
fn theil_sen(values: &[(f64, f64)]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < FEWEST {
        return None;
    }
    let slopes = slopes(values);
    let sign = |slope: &f64| f64::from(i8::from(*slope > 0.0) - i8::from(*slope < 0.0));
    let score: f64 = slopes.iter().map(sign).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    median(&slopes).filter(|slope| score >= 2.6 * deviation && *slope > 0.0)
}
